"""Does a phase do what was asked? Decodes its rows and follows every word.

Input: placed transfers as the low program has them, before any is joined or cut, and the words of the phase's
rows, with the patches of its iterations. Output: everything that is wrong, nothing if all is well. What is
believed is what was asked, the fabric's facts and the row decoder; how the rows came about (demand, order,
timing, encoder, sites) is not looked at, and no code of it runs here (XR-06).

For every iteration:

1. the patches are applied and every row is decoded;
2. what multiplexers select is met with what tiles send (``arrivals``): a receiver takes in its slot k what
   its source sent in slot k - T, and writes it at event k + 53 + 2 * row at the pointer that is set then.
   That gives moves: consecutive words with their origin, their place and their times;
3. the rules of the fabric are applied to rows and moves (``rules``, by ``CheckKind``);
4. what the moves do to memory is compared with what was asked for (``delivery``): every word of every tile
   must hold what it should, and nothing else may have changed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.arrivals import NOBODY, Course, Fault, Move, Registers, Stream, course_of
from compiler.exchange.delivery import Moves, chip_words, first_difference
from compiler.exchange.demand import exchange_steps, placed_transfers
from compiler.exchange.ir import (
    BEFORE_ROW,
    BaseSections,
    Patches,
    PlacedTransfers,
    RowReservations,
    Rows,
    ScheduledExchange,
)
from compiler.exchange.rules import Rule, broken_rules
from compiler.isa.rows import UNKNOWN, RefusedRow
from compiler.low.address import Addresses
from compiler.low.ids import StepId
from compiler.low.ir import LowProgram
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_END
from compiler.target.registers import MainRegister
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, Int64Array, PhysicalTile


@final
class CheckKind(Enum):
    """What can be wrong; the value is the sentence."""

    REFUSED = "the row cannot be decoded"
    MISSING_ROW = "a tile of the demand has no row"
    FOREIGN_CONTROL = "a control or send of a kind that transfers between tiles do not use"
    UNKNOWN_SOURCE = "a multiplexer selects a tile that takes no part"
    STAYS_SELECTED = "the row ends while a source is selected or a paired format is set"
    CONTROL_PAIR = "two controls share an event that may not"
    BORROWED_LANE = "a tile sends while its partner uses its transmit lane"
    PAIR_MUX = "both members of a pair use its multiplexer at once"
    LATE_MEMBER = "the multiplexer of a pair is set by the member that items pass last"
    LONE_MEMBER = "a paired item arrives at a tile whose partner takes no part"
    WRONG_MUX = "an item passes a multiplexer of the other kind"
    OVERLAPPING_RECEIVES = "two items are to be written at once"
    NO_POINTER = "a word arrives before any pointer is set"
    CUT_SHORT = "the row ends too soon after a word that is written"
    FORMAT = "an item arrives in another format than the one that is set"
    FORMAT_CHANGE = "the format changes before an ordinary word is written"
    OUTSIDE = "a word outside of memory is read or written"
    MISALIGNED = "an item is read or written at an address that is no multiple of its size"
    SHARED_ELEMENT = "a word is read and another written in one memory element at the same time"
    ROW_ELEMENT = "data is moved in a memory element that the row is fetched from"
    ISOLATED_LOOPBACK = "a stream reaches nobody but its sender"
    SEND_CONTROL = "the send control does not fit the recipients"
    DELIVERY = "a byte does not hold what was asked for"


_OF_FAULTS: Final = {
    Fault.FOREIGN_CONTROL: CheckKind.FOREIGN_CONTROL,
    Fault.FOREIGN_SEND: CheckKind.FOREIGN_CONTROL,
    Fault.UNKNOWN_SOURCE: CheckKind.UNKNOWN_SOURCE,
    Fault.STAYS_SELECTED: CheckKind.STAYS_SELECTED,
    Fault.CONTROL_PAIR: CheckKind.CONTROL_PAIR,
}

_OF_RULES: Final = {
    Rule.BORROWED_LANE: CheckKind.BORROWED_LANE,
    Rule.PAIR_MUX: CheckKind.PAIR_MUX,
    Rule.LATE_MEMBER: CheckKind.LATE_MEMBER,
    Rule.LONE_MEMBER: CheckKind.LONE_MEMBER,
    Rule.WRONG_MUX: CheckKind.WRONG_MUX,
    Rule.OVERLAPPING_RECEIVES: CheckKind.OVERLAPPING_RECEIVES,
    Rule.NO_POINTER: CheckKind.NO_POINTER,
    Rule.CUT_SHORT: CheckKind.CUT_SHORT,
    Rule.FORMAT: CheckKind.FORMAT,
    Rule.FORMAT_CHANGE: CheckKind.FORMAT_CHANGE,
    Rule.ISOLATED_LOOPBACK: CheckKind.ISOLATED_LOOPBACK,
    Rule.SEND_CONTROL: CheckKind.SEND_CONTROL,
    Rule.OUTSIDE_READ: CheckKind.OUTSIDE,
    Rule.OUTSIDE_WRITE: CheckKind.OUTSIDE,
    Rule.MISALIGNED: CheckKind.MISALIGNED,
    Rule.SHARED_ELEMENT: CheckKind.SHARED_ELEMENT,
    Rule.ROW_ELEMENT: CheckKind.ROW_ELEMENT,
}

_WITHOUT_PLACES: Final = (Rule.NO_POINTER, Rule.OUTSIDE_READ, Rule.OUTSIDE_WRITE, Rule.MISALIGNED)
"""With one of these broken, memory is no map of words."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong.

    Args:
        kind: what.
        tile: physical tile.
        iteration: in which iteration of the Repeat.
        detail: where and when, in words.
    """

    kind: CheckKind
    tile: PhysicalTile
    iteration: int
    detail: str

    def __str__(self) -> str:
        """One sentence without a full stop."""
        return f"tile {self.tile}, iteration {self.iteration}: {self.kind.value}: {self.detail}"


def check_phase(
    asked: PlacedTransfers,
    iterations: int,
    rows: Rows,
    patches: Patches,
    reservations: RowReservations | None = None,
    sections: BaseSections | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong with the rows of a phase, iteration by iteration.

    Args:
        asked: what was asked for, in the order meant.
        iterations: how often the phase runs in a go through its Repeat.
        rows: the rows.
        patches: one use for each iteration.
        reservations: where rows lie, if known.
        sections: what the programs of tiles put into registers before each iteration, by section: the only
            columns that are looked at are tile, side, register, start, address and stride.

    Raises:
        ValueError: something is asked for that is not words.
    """
    if ((asked.address | asked.stride) % WORD_BYTES != 0).any() or (
        (asked.receiver_address | asked.receiver_stride) % WORD_BYTES != 0
    ).any():
        raise ValueError("a transfer is a whole number of words")
    has_part, has_row = np.zeros((2, TILE_COUNT), dtype=np.bool_)
    has_part[asked.source] = has_part[asked.receiver] = True
    has_row[rows.tiles] = True
    missing = np.flatnonzero(has_part & ~has_row)
    if missing.size:
        return tuple(
            Finding(kind=CheckKind.MISSING_ROW, tile=PhysicalTile(tile), iteration=0, detail="no words")
            for tile in missing.tolist()
        )
    findings: list[Finding] = []
    moves = bool(asked.stride.any() or asked.receiver_stride.any() or len(patches.word) or sections)
    for iteration in range(iterations if moves else 1):
        words = rows.words.copy()
        words[patches.word] = patches.values[:, iteration]
        course = course_of(replace(rows, words=words), _registers(rows.tiles, sections, iteration))
        if isinstance(course, RefusedRow):
            detail = "words follow its end" if course.refusal is None else str(course.refusal)
            tile = PhysicalTile(int(rows.tiles[course.row]))
            refused = Finding(kind=CheckKind.REFUSED, tile=tile, iteration=iteration, detail=detail)
            return (*findings, refused)
        row_begin, row_end = _fetched(rows, reservations)
        findings += _findings(asked, course, iteration, row_begin, row_end)
    return tuple(findings)


def check_program(
    program: LowProgram,
    placement: Addresses,
    physical: Int64Array,
    exchange: ScheduledExchange,
    reservations: RowReservations | None = None,
) -> Mapping[StepId, tuple[Finding, ...]]:
    """What is wrong with the phases of a program: ``check_phase`` of every exchange step that has any.

    Args:
        program: what was asked for.
        placement: addresses of its buffers, strides of its sequences.
        physical: [tiles of the build] physical number of each logical tile.
        exchange: the rows.
        reservations: where rows lie, if known.

    Raises:
        ValueError: a step of the exchange is no exchange step of the program, or one of those is missing.
    """
    if set(exchange.phases) != set(exchange_steps(program)):
        raise ValueError("phases and exchange steps do not correspond")
    findings: dict[StepId, tuple[Finding, ...]] = {}
    for step, phase in exchange.phases.items():
        asked, iterations = placed_transfers(program, placement, step, physical)
        found = check_phase(asked, iterations, phase.rows, phase.patches, reservations, phase.sections)
        if found:
            findings[step] = found
    return findings


_MAIN_REGISTERS: Final = 16


def _registers(tiles: Int64Array, sections: BaseSections | None, iteration: int) -> Registers:
    """What the rows find in registers in one iteration."""
    main = np.full((len(tiles), _MAIN_REGISTERS), UNKNOWN, dtype=np.int64)
    main[:, MainRegister.M15] = 0
    bases = np.zeros((2, len(tiles)), dtype=np.int64)
    if sections is not None:
        index = np.searchsorted(tiles, sections.tile)
        value = sections.address + iteration * sections.stride
        main[index, sections.register] = value
        before = np.flatnonzero(sections.start == BEFORE_ROW)
        bases[sections.is_incoming[before], index[before]] = value[before]
    return Registers(main=main, outgoing_base=bases[0], incoming_base=bases[1])


def _fetched(rows: Rows, reservations: RowReservations | None) -> tuple[Int64Array, Int64Array]:
    """[tiles] from where to where each row is fetched, with what the fetch looks ahead; empty if unknown."""
    begin = np.zeros(len(rows.tiles), dtype=np.int64)
    end = np.zeros(len(rows.tiles), dtype=np.int64)
    if reservations is not None and len(reservations.tile):
        place = np.minimum(np.searchsorted(reservations.tile, rows.tiles), len(reservations.tile) - 1)
        known = reservations.tile[place] == rows.tiles
        size = WORD_BYTES * np.diff(rows.first_word) + FETCH_LOOKAHEAD
        begin[known] = reservations.address[place][known]
        end[known] = np.minimum(begin + size, SRAM_END)[known]
    return begin, end


def _findings(
    asked: PlacedTransfers, course: Course, iteration: int, row_begin: Int64Array, row_end: Int64Array
) -> Iterator[Finding]:
    """Rules first; delivery only where words can be followed."""

    def found(kind: CheckKind, index: int, detail: str) -> Finding:
        tile = PhysicalTile(int(course.tiles[index]))
        return Finding(kind=kind, tile=tile, iteration=iteration, detail=detail)

    has_faults = False
    for fault in Fault:
        index, event, value = course.faults[fault].tolist()
        if index != NOBODY:
            has_faults = True
            yield found(_OF_FAULTS[fault], index, _fault_text(fault, event, value))
    if has_faults:
        return
    broken = broken_rules(course, row_begin, row_end)
    for rule in Rule:
        index, event, first, second = broken[rule].tolist()
        if index != NOBODY:
            yield found(_OF_RULES[rule], index, _rule_text(rule, event, first, second))
    if any(int(broken[rule, 0]) != NOBODY for rule in _WITHOUT_PLACES):
        return
    difference = first_difference(_wanted(asked, iteration), _found(course))
    if difference is not None:
        tile, detail = difference
        yield Finding(kind=CheckKind.DELIVERY, tile=PhysicalTile(tile), iteration=iteration, detail=detail)


def _fault_text(fault: Fault, event: int, value: int) -> str:
    match fault:
        case Fault.FOREIGN_CONTROL | Fault.CONTROL_PAIR:
            return f"event {event}, kind {value}"
        case Fault.FOREIGN_SEND:
            return f"slot {event}, control {value}"
        case Fault.UNKNOWN_SOURCE:
            return f"event {event}, value {value:#x}"
        case Fault.STAYS_SELECTED:
            return f"since event {event}, source {value:#x}"


def _rule_text(rule: Rule, event: int, first: int, second: int) -> str:
    match rule:
        case Rule.OUTSIDE_READ | Rule.OUTSIDE_WRITE | Rule.MISALIGNED:
            return f"event {event}, address {first:#x}"
        case Rule.SHARED_ELEMENT:
            return f"slot {event}, read at {first:#x}, written at {second:#x}"
        case Rule.ROW_ELEMENT:
            return f"event {event}, data at {first:#x}, row at {second:#x}"
        case Rule.BORROWED_LANE | Rule.PAIR_MUX:
            return f"event {event}, partner {first}"
        case Rule.LATE_MEMBER | Rule.LONE_MEMBER | Rule.WRONG_MUX:
            return f"event {event}, source {first}"
        case Rule.CUT_SHORT:
            return f"event {event}, the row ends at {first}"
        case Rule.FORMAT:
            return f"event {event}, format {first} instead of {second}"
        case Rule.FORMAT_CHANGE:
            return f"event {event}, words until {first}"
        case Rule.SEND_CONTROL:
            return f"slot {event}, control {first} for {second} tiles"
        case Rule.OVERLAPPING_RECEIVES | Rule.NO_POINTER | Rule.ISOLATED_LOOPBACK:
            return f"event {event}"


def _wanted(asked: PlacedTransfers, iteration: int) -> Moves:
    """What was asked for, in time of its own: transfer after transfer."""
    owner = asked.transfer_of_recipient
    reads = chip_words(asked.source, asked.address + iteration * asked.stride)
    address = asked.receiver_address + iteration * asked.receiver_stride
    return Moves(
        read=reads[owner],
        slot=owner,
        written=chip_words(asked.receiver, address),
        event=owner + 1,
        words=asked.words[owner],
        reads=reads,
        read_words=asked.words,
    )


def _found(course: Course) -> Moves:
    """What happens."""
    moves, streams = course.moves, course.streams
    reads = chip_words(course.tiles[streams[:, Stream.TILE]], streams[:, Stream.ADDRESS])
    item_words = streams[:, Stream.SIZE] // WORD_BYTES
    read, slot, words = _read_places(moves, reads, streams[:, Stream.SLOT], item_words)
    return Moves(
        read=read,
        slot=slot,
        written=chip_words(course.tiles[moves[:, Move.TILE]], moves[:, Move.ADDRESS]),
        event=moves[:, Move.EVENT],
        words=words,
        reads=reads,
        read_words=item_words * streams[:, Stream.COUNT],
    )


@compiled
def _read_places(
    moves: Int64Array, reads: Int64Array, slots: Int64Array, item_words: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Of each move the place that is read, the slot, and how many words; ``reads`` and so on by stream."""
    read = np.empty(moves.shape[0], dtype=np.int64)
    slot = np.empty(moves.shape[0], dtype=np.int64)
    words = np.empty(moves.shape[0], dtype=np.int64)
    for move in range(moves.shape[0]):
        stream = moves[move, Move.STREAM.value]
        item = moves[move, Move.ITEM.value]
        read[move] = reads[stream] + item_words[stream] * item
        slot[move] = slots[stream] + item
        words[move] = item_words[stream] * moves[move, Move.COUNT.value]
    return read, slot, words
