"""Does a phase do what was asked? Decodes its rows and follows every word.

Input: placed transfers as the low program has them, before any is joined or cut, and the words of the phase's
rows, with the patches of its iterations. Output: everything that is wrong, nothing if all is well. What is
believed is what was asked, the fabric's facts and the row decoder; how the rows came about (demand, order,
timing, encoder, sites) is not looked at, and no code of it runs here (XR-06).

For every iteration:

1. the patches are applied and every row is decoded;
2. what multiplexers select is met with what tiles send: a receiver takes in its slot k what its source sent
   in slot k - T, and writes it at event k + 53 + 2 * row at the pointer that is set then. That gives *moves*:
   consecutive words with their origin, their place and their times;
3. the rules of the fabric are applied to rows and moves (``CheckKind``);
4. what the moves do to memory is compared with what was asked for (``delivery``): every byte of every tile
   must hold what it should, and nothing else may have changed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np

from compiler.exchange.columns import expanded
from compiler.exchange.delivery import Moves, first_difference, line_key
from compiler.exchange.demand import exchange_steps, placed_transfers
from compiler.exchange.ir import (
    Patches,
    PlacedTransfers,
    RowReservations,
    Rows,
    ScheduledExchange,
    WordArray,
)
from compiler.isa.rows import ControlKind, Row, RowRefusal, decode_row
from compiler.low.address import Addresses
from compiler.low.ids import StepId
from compiler.low.ir import LowProgram
from compiler.target import fabric
from compiler.target.memory import (
    FETCH_LOOKAHEAD,
    SRAM_BASE,
    SRAM_END,
    ranges_share_an_element,
)
from compiler.target.registers import NEUTRAL_MUX
from compiler.target.units import WORD_BYTES, Int64Array, PhysicalTile


@final
class CheckKind(Enum):
    """What can be wrong; the value is the sentence."""

    REFUSED = "the row cannot be decoded"
    MISSING_ROW = "a tile of the demand has no row"
    FOREIGN_CONTROL = "a control or send of a kind that ordinary transfers do not use"
    UNKNOWN_SOURCE = "the multiplexer selects a tile that takes no part"
    STAYS_SELECTED = "the row ends while a source is selected"
    NO_POINTER = "a word arrives before any pointer is set"
    CUT_SHORT = "the row ends too soon after a word that is written"
    OUTSIDE = "a word outside of memory is read or written"
    SHARED_ELEMENT = "a word is read and another written in one memory element at the same time"
    ROW_ELEMENT = "data is moved in a memory element that the row is fetched from"
    ISOLATED_LOOPBACK = "a stream reaches nobody but its sender"
    SEND_CONTROL = "the send control does not fit the recipients"
    DELIVERY = "a byte does not hold what was asked for"


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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Streams:
    """What is sent, one entry for each sending instruction, in order of tile and slot."""

    tile: Int64Array
    slot: Int64Array
    count: Int64Array
    address: Int64Array
    control: Int64Array


def check_phase(
    asked: PlacedTransfers,
    iterations: int,
    rows: Rows,
    patches: Patches,
    reservations: RowReservations | None = None,
) -> tuple[Finding, ...]:
    """Everything that is wrong with the rows of a phase, iteration by iteration.

    Args:
        asked: what was asked for, in the order meant.
        iterations: how often the phase runs in a go through its Repeat.
        rows: the rows.
        patches: one use for each iteration.
        reservations: where rows lie, if known.
    """
    findings: list[Finding] = []
    missing = np.setdiff1d(np.concatenate([asked.source, asked.receiver]), rows.tiles)
    if missing.size:
        return tuple(
            Finding(kind=CheckKind.MISSING_ROW, tile=PhysicalTile(tile), iteration=0, detail="no words")
            for tile in missing.tolist()
        )
    moves = bool(asked.stride.any() or asked.receiver_stride.any() or len(patches.word))
    patched = np.unique(np.searchsorted(rows.first_word, patches.word, side="right") - 1)
    decoded: list[Row] = []
    for iteration in range(iterations if moves else 1):
        words = rows.words.copy()
        words[patches.word] = patches.values[:, iteration]
        for index in patched.tolist() if iteration else range(len(rows.tiles)):
            row = _decoded(words[rows.first_word[index] : rows.first_word[index + 1]])
            if isinstance(row, str):
                tile = PhysicalTile(int(rows.tiles[index]))
                findings.append(Finding(kind=CheckKind.REFUSED, tile=tile, iteration=iteration, detail=row))
                return tuple(findings)
            decoded[index : index + 1] = [row]
        findings += _Iteration(asked, rows.tiles, decoded, iteration, reservations).findings()
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
        found = check_phase(asked, iterations, phase.rows, phase.patches, reservations)
        if found:
            findings[step] = found
    return findings


def _decoded(words: WordArray) -> Row | str:
    row = decode_row(words)
    if isinstance(row, RowRefusal):
        return str(row)
    if len(row.words) != len(words):
        return f"the row returns after {len(row.words)} of {len(words)} words"
    return row


@final
class _Iteration:
    """One run of the phase, from its decoded rows."""

    def __init__(
        self,
        asked: PlacedTransfers,
        tiles: Int64Array,
        rows: list[Row],
        iteration: int,
        reservations: RowReservations | None,
    ) -> None:
        self._asked = asked
        self._tiles = tiles
        self._rows = rows
        self._iteration = iteration
        self._reservations = reservations
        self._horizon = np.array([row.horizon for row in rows], dtype=np.int64)
        self._control_tile = np.repeat(tiles, [len(row.controls.event) for row in rows])
        self._control_event = _joined([row.controls.event for row in rows])
        self._control_kind = _joined([row.controls.kind for row in rows])
        self._control_value = _joined([row.controls.value for row in rows])
        self._streams = _Streams(
            tile=np.repeat(tiles, [len(row.sends.slot) for row in rows]),
            slot=_joined([row.sends.slot for row in rows]),
            count=_joined([row.sends.count for row in rows]),
            address=WORD_BYTES * _joined([row.sends.item for row in rows]),
            control=_joined([row.sends.control for row in rows]),
        )

    def findings(self) -> Iterator[Finding]:
        """Rules first; delivery only where words can be followed."""
        structural = [*self._controls(), *self._selections()]
        if structural:
            yield from structural
            return
        moves = self._moves()
        unset = np.flatnonzero(moves.address < 0)
        for index in unset[:1]:
            yield self._at(CheckKind.NO_POINTER, moves.receiver, moves.event, index)
        if unset.size:
            return
        outside = [*self._outside(moves)]
        if outside:
            yield from outside
            return
        yield from self._ends(moves)
        yield from self._elements(moves)
        yield from self._row_elements(moves)
        yield from self._send_controls(moves)
        yield from self._delivery(moves)

    def _found(self, kind: CheckKind, tile: int, detail: str) -> Finding:
        return Finding(kind=kind, tile=PhysicalTile(tile), iteration=self._iteration, detail=detail)

    def _at(self, kind: CheckKind, tile: Int64Array, event: Int64Array, index: int) -> Finding:
        return self._found(kind, int(tile[index]), f"event {int(event[index])}")

    def _controls(self) -> Iterator[Finding]:
        """Only pointers, selections of the tile's own multiplexer, and sends of 32-bit words."""
        tile, event, kind = self._control_tile, self._control_event, self._control_kind
        foreign = np.flatnonzero(~np.isin(kind, [ControlKind.XPIC0, ControlKind.PIC0]))
        for index in foreign[:1].tolist():
            yield self._at(CheckKind.FOREIGN_CONTROL, tile, event, index)
        streams = self._streams
        foreign = np.flatnonzero((streams.control == 0) | (streams.control > fabric.MULTICAST))
        for index in foreign[:1].tolist():
            yield self._at(CheckKind.FOREIGN_CONTROL, streams.tile, streams.slot, index)

    def _selections(self) -> Iterator[Finding]:
        """Sources take part, and every row leaves its multiplexer neutral."""
        chosen = np.flatnonzero(self._control_kind == ControlKind.XPIC0)
        tile, value = self._control_tile[chosen], self._control_value[chosen]
        known = (value == NEUTRAL_MUX) | np.isin(value, self._tiles)
        for index in np.flatnonzero(~known)[:1].tolist():
            yield self._found(CheckKind.UNKNOWN_SOURCE, int(tile[index]), f"value {int(value[index]):#x}")
        is_last = np.append(tile[1:] != tile[:-1], True)[: len(tile)]
        for index in np.flatnonzero(is_last & (value != NEUTRAL_MUX))[:1].tolist():
            yield self._found(CheckKind.STAYS_SELECTED, int(tile[index]), f"source {int(value[index])}")

    def _sends_between(
        self, tile: Int64Array, begin: Int64Array, end: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """The first send of each tile that a window of slots meets, and how many it meets.

        They are neighbours: sends of a tile are disjoint in time.
        """
        streams = self._streams
        ends = line_key(streams.tile, streams.slot + streams.count)
        begins = line_key(streams.tile, streams.slot)
        first = np.searchsorted(ends, line_key(tile, begin), "right")
        behind = np.searchsorted(begins, line_key(tile, end), "left")
        return first, np.maximum(behind - first, 0)

    def _moves(self) -> Moves:
        """Meet selections with sends, and place what arrives at the pointers."""
        streams = self._streams
        chosen = np.flatnonzero(self._control_kind == ControlKind.XPIC0)
        tile, value = self._control_tile[chosen], self._control_value[chosen]
        begin = self._control_event[chosen]
        # A row leaves its multiplexer neutral, so that every selection has a next one on its tile.
        end = np.append(begin[1:], 0)[: len(begin)]
        selects = np.flatnonzero(value != NEUTRAL_MUX)
        receiver, source = tile[selects], value[selects]
        to_select = fabric.times_to_mux(source, receiver) + fabric.SELECT_AFTER_PASSING
        # In slots of the sender:
        first, last = begin[selects] - to_select, end[selects] - to_select
        low = np.searchsorted(
            line_key(streams.tile, streams.slot + streams.count), line_key(source, first), "right"
        )
        high = np.searchsorted(line_key(streams.tile, streams.slot), line_key(source, last), "left")
        counts = np.maximum(high - low, 0)
        stream = expanded(low, counts)
        window = np.repeat(np.arange(len(selects)), counts)
        skipped = np.maximum(first[window] - streams.slot[stream], 0)
        words = np.minimum(last[window] - streams.slot[stream], streams.count[stream]) - skipped
        slot = streams.slot[stream] + skipped
        direction = fabric.directions(source[window], receiver[window])
        arrives = np.flatnonzero((words > 0) & (streams.control[stream] & direction != 0))
        window, stream, skipped, words, slot = (
            column[arrives] for column in (window, stream, skipped, words, slot)
        )
        event = slot + to_select[window] + fabric.select_to_writes(receiver[window])
        captured = Moves(
            source=source[window],
            source_address=streams.address[stream] + WORD_BYTES * skipped,
            slot=slot,
            receiver=receiver[window],
            address=np.full(len(window), -1),
            event=event,
            words=words,
            stream=stream,
        )
        return self._placed(captured)

    def _placed(self, captured: Moves) -> Moves:
        """Cut what arrives where pointers are set, and give it addresses."""
        set_at = np.flatnonzero(self._control_kind == ControlKind.PIC0)
        setting = line_key(self._control_tile[set_at], self._control_event[set_at])
        value = WORD_BYTES * self._control_value[set_at]
        key = line_key(captured.receiver, captured.event)
        # Settings after the first word and before the end of each move.
        first = np.searchsorted(setting, key, "right")
        counts = np.searchsorted(setting, key + captured.words, "left") - first
        move = np.repeat(np.arange(len(key)), counts + 1)
        cut = np.arange(len(move)) - np.repeat(np.cumsum(counts + 1) - counts - 1, counts + 1)
        known = np.minimum(first[move] + cut - 1, len(setting) - 1)
        begin = np.where(cut == 0, 0, setting[known] - key[move] if len(setting) else 0)
        end = np.append(begin[1:], 0)[: len(begin)]
        is_last = cut == counts[move]
        end[is_last] = captured.words[move[is_last]]
        pieces = Moves(
            source=captured.source[move],
            source_address=captured.source_address[move] + WORD_BYTES * begin,
            slot=captured.slot[move] + begin,
            receiver=captured.receiver[move],
            address=np.zeros(len(move), dtype=np.int64),
            event=captured.event[move] + begin,
            words=end - begin,
            stream=captured.stream[move],
        )
        order = np.lexsort((pieces.event, pieces.receiver))
        pieces = pieces.taken(order)
        # The pointer of a piece: the last setting on its tile, and all words written there since.
        key = line_key(pieces.receiver, pieces.event)
        latest = np.searchsorted(setting, key, "right") - 1
        written = np.cumsum(pieces.words) - pieces.words
        since = np.searchsorted(key, setting, "left")
        before = np.append(written, written[-1:] + pieces.words[-1:])[since] if len(key) else since
        has_pointer = latest >= 0
        known = np.maximum(latest, 0)
        if len(setting):
            has_pointer &= self._control_tile[set_at][known] == pieces.receiver
            address = value[known] + WORD_BYTES * (written - before[known])
        else:
            address = written
        return Moves(
            source=pieces.source,
            source_address=pieces.source_address,
            slot=pieces.slot,
            receiver=pieces.receiver,
            address=np.where(has_pointer, address, -1),
            event=pieces.event,
            words=pieces.words,
            stream=pieces.stream,
        )

    def _outside(self, moves: Moves) -> Iterator[Finding]:
        for tile, address, words in (
            (self._streams.tile, self._streams.address, self._streams.count),
            (moves.receiver, moves.address, moves.words),
        ):
            wrong = (address < SRAM_BASE) | (address + WORD_BYTES * words > SRAM_END)
            for index in np.flatnonzero(wrong)[:1].tolist():
                yield self._found(CheckKind.OUTSIDE, int(tile[index]), f"address {int(address[index]):#x}")

    def _ends(self, moves: Moves) -> Iterator[Finding]:
        """Rows outlast what is written."""
        horizon = self._horizon[np.searchsorted(self._tiles, moves.receiver)]
        cut = moves.event + moves.words + fabric.ROW_AFTER_LAST_WRITE > horizon
        for index in np.flatnonzero(cut)[:1].tolist():
            yield self._at(CheckKind.CUT_SHORT, moves.receiver, moves.event, index)

    def _elements(self, moves: Moves) -> Iterator[Finding]:
        """Reads and writes that overlap in time, the writes until five events after their end."""
        streams = self._streams
        until = moves.event + moves.words + fabric.ROW_AFTER_LAST_WRITE
        low, counts = self._sends_between(moves.receiver, moves.event, until)
        stream = expanded(low, counts)
        move = np.repeat(np.arange(len(low)), counts)
        if move.size == 0:
            return
        shared = ranges_share_an_element(
            streams.address[stream],
            WORD_BYTES * streams.count[stream],
            moves.address[move],
            WORD_BYTES * moves.words[move],
        )
        for index in np.flatnonzero(shared)[:1].tolist():
            yield self._found(
                CheckKind.SHARED_ELEMENT,
                int(moves.receiver[move[index]]),
                f"read at {int(streams.address[stream[index]]):#x}, slot {int(streams.slot[stream[index]])},"
                f" written at {int(moves.address[move[index]]):#x}, event {int(moves.event[move[index]])}",
            )

    def _row_elements(self, moves: Moves) -> Iterator[Finding]:
        if self._reservations is None:
            return
        streams, places = self._streams, self._reservations
        begin_of = dict(zip(places.tile.tolist(), places.address.tolist(), strict=True))
        size_of = dict(zip(self._tiles.tolist(), [len(row.words) for row in self._rows], strict=True))
        for tile, address, words in (
            (streams.tile, streams.address, streams.count),
            (moves.receiver, moves.address, moves.words),
        ):
            has_row = np.flatnonzero(np.isin(tile, places.tile))
            if has_row.size == 0:
                continue
            begin = np.array([begin_of[name] for name in tile[has_row].tolist()], dtype=np.int64)
            size = np.array([size_of[name] for name in tile[has_row].tolist()], dtype=np.int64)
            size = np.minimum(WORD_BYTES * size + FETCH_LOOKAHEAD, SRAM_END - begin)
            shared = ranges_share_an_element(address[has_row], WORD_BYTES * words[has_row], begin, size)
            for index in np.flatnonzero(shared)[:1].tolist():
                yield self._found(
                    CheckKind.ROW_ELEMENT,
                    int(tile[has_row[index]]),
                    f"data at {int(address[has_row[index]]):#x}, row at {int(begin[index]):#x}",
                )

    def _send_controls(self, moves: Moves) -> Iterator[Finding]:
        """Words for one tile go its way only, words for several both ways; nobody sends to itself alone."""
        streams = self._streams
        count = len(streams.tile)
        home = moves.source == moves.receiver
        away = np.bincount(moves.stream[~home], minlength=count) > 0
        alone = (np.bincount(moves.stream[home], minlength=count) > 0) & ~away
        for index in np.flatnonzero(alone)[:1].tolist():
            yield self._at(CheckKind.ISOLATED_LOOPBACK, streams.tile, streams.slot, index)
        pairs = np.unique(np.stack([moves.stream, moves.receiver]), axis=1)
        number = np.bincount(pairs[0], minlength=count)
        wrong = (number > 1) != (streams.control == fabric.MULTICAST)
        for index in np.flatnonzero(wrong & (number > 0))[:1].tolist():
            yield self._at(CheckKind.SEND_CONTROL, streams.tile, streams.slot, index)

    def _delivery(self, moves: Moves) -> Iterator[Finding]:
        asked, iteration = self._asked, self._iteration
        owner = asked.transfer_of_recipient
        # In time of its own: transfer after transfer.
        wanted = Moves(
            source=asked.source[owner],
            source_address=(asked.address + iteration * asked.stride)[owner],
            slot=owner,
            receiver=asked.receiver,
            address=asked.receiver_address + iteration * asked.receiver_stride,
            event=owner + 1,
            words=asked.recipient_words,
            stream=owner,
        )
        difference = first_difference(wanted, moves)
        if difference is not None:
            tile, detail = difference
            yield self._found(CheckKind.DELIVERY, tile, detail)


def _joined(columns: list[Int64Array]) -> Int64Array:
    return np.concatenate([np.empty(0, dtype=np.int64), *columns])
