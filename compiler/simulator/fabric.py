"""The exchange fabric: runs one phase of all tiles that take part, from their rows.

Input: a ``Phase``, which says who takes part, with which decoded row, and what the receiving side of each
tile was set to; and the memory of the tiles. Output: a ``PhaseResult``. Guarantees:

* a phase is checked completely before anything moves: with a fault of timing or addresses, memory is as it
  was before. A word that is sent uninitialised is a fault too, but the phase takes its course, and what
  arrives is marked uninitialised as well;
* nothing depends on the order of dictionaries, threads or the past: two runs give identical results.

``fabric_timeline`` has the model, ``fabric_checks`` the rules and ``fabric_moves`` the order of reads and
writes.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
import numpy.typing as npt

from compiler.isa.rows import ControlKind, Row
from compiler.simulator.exchange_faults import ExchangeFault, ExchangeFaultKind
from compiler.simulator.fabric_checks import NO_ADDRESS, address_faults, timing_faults
from compiler.simulator.fabric_moves import move
from compiler.simulator.fabric_timeline import NO_POINTER, Course, course_of
from compiler.target.memory import SRAM_SIZE
from compiler.target.registers import NEUTRAL_MUX, IncomingFormat
from compiler.target.tiles import check_tiles
from compiler.target.units import WORD_BYTES, Address, BoolArray, Events, Int64Array, PhysicalTile

MAIN_REGISTERS = 16
MEMORY_WORDS = SRAM_SIZE // WORD_BYTES


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReceivingSide:
    """What the exchange registers of tiles hold, each shape [tiles].

    Args:
        mux: source that the tile listens to.
        pair_mux: what the tile has set the multiplexer of its pair to.
        pointer: byte address for the next incoming word, or ``NO_POINTER``.
        format: ``registers.IncomingFormat``.
        incoming_base: byte address added to pointers.
        outgoing_base: byte address added to addresses of sends.
    """

    mux: Int64Array
    pair_mux: Int64Array
    pointer: Int64Array
    format: Int64Array
    incoming_base: Int64Array
    outgoing_base: Int64Array

    @classmethod
    def neutral(cls, count: int) -> Self:
        """Nothing selected, no pointer, ordinary format, bases 0."""
        return cls(
            mux=np.full(count, NEUTRAL_MUX, dtype=np.int64),
            pair_mux=np.full(count, NEUTRAL_MUX, dtype=np.int64),
            pointer=np.full(count, NO_POINTER, dtype=np.int64),
            format=np.full(count, IncomingFormat.ORDINARY, dtype=np.int64),
            incoming_base=np.zeros(count, dtype=np.int64),
            outgoing_base=np.zeros(count, dtype=np.int64),
        )

    def by_control(self) -> dict[ControlKind, Int64Array]:
        """The same, by the control that changes it."""
        return {
            ControlKind.XPIC0: self.mux,
            ControlKind.XPIC1: self.pair_mux,
            ControlKind.PIC0: self.pointer,
            ControlKind.PIC1: self.format,
            ControlKind.INCOMING_BASE: self.incoming_base,
            ControlKind.OUTGOING_BASE: self.outgoing_base,
        }


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Phase:
    """One exchange phase as its tiles enter it.

    Args:
        tiles: physical tiles that take part, ascending, shape [tiles].
        rows: the row of each.
        row_address: byte address of each row, or ``NO_ADDRESS`` for one that is not in memory.
        registers: main registers of each supervisor, shape [tiles, 16].
        workers_active: whether workers run in each.
        entry: exchange registers of each.
    """

    tiles: Int64Array
    rows: tuple[Row, ...]
    row_address: Int64Array
    registers: Int64Array
    workers_active: BoolArray
    entry: ReceivingSide

    def __post_init__(self) -> None:
        """All columns are of the same tiles."""
        check_tiles(self.tiles)
        count = len(self.tiles)
        if (self.tiles[1:] <= self.tiles[:-1]).any():
            raise ValueError("the tiles of a phase must ascend")
        columns = (self.row_address, self.workers_active, *self.entry.by_control().values())
        if len(self.rows) != count or any(column.shape != (count,) for column in columns):
            raise ValueError(
                f"a phase of {count} tiles needs one row and one entry of each column for each tile"
            )
        if self.registers.shape != (count, MAIN_REGISTERS):
            raise ValueError(f"registers must have the shape {(count, MAIN_REGISTERS)}")

    @classmethod
    def of(cls, rows: dict[PhysicalTile, Row], entry: ReceivingSide | None = None) -> Self:
        """A phase of rows alone: idle workers, registers of 0, rows not in memory.

        Args:
            rows: of each tile.
            entry: exchange registers of the tiles in ascending order; neutral when None.
        """
        tiles = sorted(rows)
        count = len(tiles)
        return cls(
            tiles=np.array(tiles, dtype=np.int64),
            rows=tuple(rows[tile] for tile in tiles),
            row_address=np.full(count, NO_ADDRESS, dtype=np.int64),
            registers=np.zeros((count, MAIN_REGISTERS), dtype=np.int64),
            workers_active=np.zeros(count, dtype=np.bool_),
            entry=ReceivingSide.neutral(count) if entry is None else entry,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SentStreams:
    """What was sent, shape [streams], in order of tile and slot.

    Args:
        tile: physical sender.
        slot: slot of the first item.
        count: items, one each slot.
        address: byte address of the first.
        item_bytes: 4 or 8.
        control: bits of ``fabric.SendControl``.
        word: index in the row, or -1.
    """

    tile: Int64Array
    slot: Int64Array
    count: Int64Array
    address: Int64Array
    item_bytes: Int64Array
    control: Int64Array
    word: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenPayloads:
    """What was written, shape [payloads], in order of tile and event.

    Args:
        tile: physical receiver.
        source: physical sender.
        event: event at which the first item is written.
        count: items, one each event.
        address: byte address of the first, or ``NO_POINTER``.
        stream: index in ``SentStreams``.
        item: first item, counted in the stream.
    """

    tile: Int64Array
    source: Int64Array
    event: Int64Array
    count: Int64Array
    address: Int64Array
    stream: Int64Array
    item: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseResult:
    """What a phase did.

    Args:
        faults: everything that is wrong, by event and tile; of each kind the first on each tile.
        sent: what was put on the fabric.
        written: what was taken from it.
        horizon: events of each tile's row, in order of ``Phase.tiles``.
        exit: exchange registers afterwards.
    """

    faults: tuple[ExchangeFault, ...]
    sent: SentStreams
    written: WrittenPayloads
    horizon: Int64Array
    exit: ReceivingSide

    @property
    def delivered_words(self) -> int:
        """Words written, counted at every receiver."""
        return int((self.written.count * (self.sent.item_bytes[self.written.stream] // WORD_BYTES)).sum())


def run_phase(
    phase: Phase,
    memory: npt.NDArray[np.uint32],
    shadow: npt.NDArray[np.uint8],
    places: Int64Array | None = None,
) -> PhaseResult:
    """Run a phase.

    Args:
        phase: who takes part, and how.
        memory: SRAM from its lowest address on, shape [places, words]; changed.
        shadow: bit k of an entry says that byte k of the word was written; same shape, changed.
        places: row of ``memory`` of each tile; in order of the tiles when None.

    Raises:
        ValueError: arrays of other shapes.
    """
    places = np.arange(len(phase.tiles)) if places is None else places
    if memory.shape != shadow.shape or memory.ndim != 2 or memory.shape[1] != MEMORY_WORDS:
        raise ValueError(f"memory and shadow must have the shape [places, {MEMORY_WORDS}]")
    if len(set(places.tolist())) != len(phase.tiles) or not ((places >= 0) & (places < len(memory))).all():
        raise ValueError("every tile needs a place of its own in memory")
    course = course_of(phase.tiles, phase.rows, phase.registers, phase.entry.by_control())
    faults = timing_faults(course, phase.workers_active)
    if not faults:
        row_size = np.array([WORD_BYTES * len(row.words) for row in phase.rows], dtype=np.int64)
        faults = address_faults(course, phase.row_address, row_size)
    if not faults:
        unwritten = move(course.streams, course.arrivals, memory, shadow, places)
        faults = _uninitialised(course, unwritten)
    streams, arrivals = course.streams, course.arrivals
    return PhaseResult(
        faults=faults,
        sent=SentStreams(
            tile=course.tiles[streams.tile],
            slot=streams.slot,
            count=streams.count,
            address=streams.address,
            item_bytes=streams.size,
            control=streams.control,
            word=streams.word,
        ),
        written=WrittenPayloads(
            tile=course.tiles[arrivals.tile],
            source=course.tiles[streams.tile[arrivals.stream]],
            event=arrivals.event,
            count=arrivals.count,
            address=arrivals.address,
            stream=arrivals.stream,
            item=arrivals.item,
        ),
        horizon=course.horizon,
        exit=_exit(course),
    )


def _exit(course: Course) -> ReceivingSide:
    """What was set last."""

    def last(kind: ControlKind) -> Int64Array:
        settings = course.settings[kind]
        ends = np.append(settings.tile[1:] != settings.tile[:-1], True)[: len(settings.tile)]
        return settings.value[ends]

    return ReceivingSide(
        mux=last(ControlKind.XPIC0),
        pair_mux=last(ControlKind.XPIC1),
        pointer=course.pointer,
        format=last(ControlKind.PIC1),
        incoming_base=last(ControlKind.INCOMING_BASE),
        outgoing_base=last(ControlKind.OUTGOING_BASE),
    )


def _uninitialised(course: Course, unwritten: Int64Array) -> tuple[ExchangeFault, ...]:
    """The first word of each tile that was sent without ever having been written."""
    streams = course.streams
    faults: dict[int, ExchangeFault] = {}
    for stream in np.flatnonzero(unwritten >= 0).tolist():
        tile = int(streams.tile[stream])
        if tile in faults:  # streams of a tile are in order of slots
            continue
        offset = WORD_BYTES * int(unwritten[stream])
        word = int(streams.word[stream])
        faults[tile] = ExchangeFault(
            kind=ExchangeFaultKind.UNINITIALISED_SEND,
            tile=PhysicalTile(int(course.tiles[tile])),
            event=Events(int(streams.slot[stream]) + offset // int(streams.size[stream])),
            word=None if word < 0 else word,
            address=Address(int(streams.address[stream]) + offset),
        )
    return tuple(sorted(faults.values(), key=lambda fault: (fault.event, fault.tile)))
