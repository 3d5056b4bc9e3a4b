"""How much of each tile's memory the program itself needs, and where: the part that tensors cannot have.

Input: linked code, and everything that programs are emitted from, with provisional addresses. The emitters
run once (``programs``), what they write is measured, and places are chosen in one order, the same for sizing
and emission (EC-07, EC-16, EC-17):

1. linked code, from the entry upwards, then from ``upper_code``;
2. the host programs, then the tile program, each in the first room that executable memory has left, with the
   fetcher's look-ahead behind them;
3. elements that hold code, look-ahead included, are closed to tensors;
4. exchange rows, in elements of their own, from the next boundary on;
5. samples of profiled programs, then tables, in the first hole of a closed element, else behind the rows.

What is left in a closed element belongs to what can still grow, tables and rows: final schedules may patch
more words than provisional ones. Tensors are placed and exchanges scheduled elsewhere; nothing here moves
them.

The window of the host and the runtime's state are reserved on every tile. Tensors that live between two host
batches of a run may lie in the window, and in no other reservation.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

import numpy as np

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.exchange.ir import RowReservations
from compiler.geometry.owners import TileId
from compiler.isa.linker import Image
from compiler.package.assembly import Area, Bases
from compiler.package.programs import ProgramInputs, emit_programs
from compiler.placement.problem import Reserved
from compiler.target.memory import (
    BUNDLE_ALIGNMENT,
    EXECUTABLE_LIMIT,
    FETCH_LOOKAHEAD,
    SRAM_BASE,
    STANDARD,
)
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.tiles import TILE_COUNT, physical_tiles
from compiler.target.units import WORD_BYTES, Int64Array

STAGE: Final = "support sizing"

_LAYOUT: Final = DEFAULT_LAYOUT


class Purpose(IntEnum):
    """What a reservation is for."""

    CODE = 0
    """Linked code, host programs, tile program, tables among them, and the rest of their elements."""
    WINDOW = 1
    """Packets and staged data of the host."""
    STATE = 2
    """Completion word, samples, stacks."""
    ROWS = 3
    """Exchange rows."""
    TABLES = 4
    """Samples and tables that no hole could take."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservations:
    """Byte ranges that tensors cannot have, by tile, then address. Those of a tile are disjoint.

    Args:
        tile: logical tile; every tile of the chip has some.
        start: first byte address.
        byte_count: bytes, at least one.
        purpose: ``Purpose``.
    """

    tile: Int64Array
    start: Int64Array
    byte_count: Int64Array
    purpose: Int64Array

    def for_placement(self, tile_count: int) -> tuple[Reserved, ...]:
        """The ranges on the tiles of a build, for ``placement.place``."""
        return tuple(
            Reserved(tile=TileId(tile), start=start, size=size, between_runs=purpose == Purpose.WINDOW)
            for tile, start, size, purpose in zip(
                self.tile.tolist(),
                self.start.tolist(),
                self.byte_count.tolist(),
                self.purpose.tolist(),
                strict=True,
            )
            if tile < tile_count
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Support:
    """Places of everything but tensors.

    Args:
        start: [areas, tiles] byte address at which each area of each tile begins.
        capacity: [areas, tiles] bytes that it may have.
        headroom: [tiles] bytes by which the code of a tile may grow before it closes another element.
        reservations: what placement must keep free.
    """

    start: Int64Array
    capacity: Int64Array
    headroom: Int64Array
    reservations: Reservations

    @property
    def bases(self) -> Bases:
        """The starts as emission takes them."""
        return Bases(address=self.start)

    def row_reservations(self) -> RowReservations:
        """Where rows will lie, in physical tiles, for the schedule, which adds the look-ahead behind them."""
        chosen = np.flatnonzero(self.reservations.purpose == Purpose.ROWS)
        physical = physical_tiles(self.reservations.tile[chosen])
        order = np.argsort(physical)
        return RowReservations(
            tile=physical[order],
            address=self.reservations.start[chosen][order],
            byte_count=self.reservations.byte_count[chosen][order] - FETCH_LOOKAHEAD,
        )


def size_support(image: Image, inputs: ProgramInputs) -> Support:
    """Sizes and places of everything that is not a tensor.

    Args:
        image: from ``runtime.link_tile_code``.
        inputs: what programs are emitted from; placement and exchange may be provisional.

    Raises:
        DoesNotFit: executable memory is too small for the code of a tile.
    """
    sizes = _sizes(inputs)
    ends = _linked_ends(image)
    start = np.zeros((len(Area), TILE_COUNT), dtype=np.int64)
    capacity = np.zeros_like(start)
    headroom = np.zeros(TILE_COUNT, dtype=np.int64)
    reserved: list[tuple[int, int, int, int]] = []
    # Tiles with equal sizes have equal layouts, and most tiles are alike.
    distinct, kind_of = np.unique(sizes, axis=1, return_inverse=True)
    kinds = kind_of.reshape(-1)
    for kind, wanted in enumerate(distinct.T.tolist()):
        tiles = np.flatnonzero(kinds == kind)
        layout = _lay_out(ends, wanted, int(tiles[0]))
        start[:, tiles] = np.array(layout.start)[:, None]
        capacity[:, tiles] = np.array(layout.capacity)[:, None]
        headroom[tiles] = layout.headroom
        reserved += [(tile, *span) for tile in tiles.tolist() for span in layout.reserved]
    table = np.array(sorted(reserved), dtype=np.int64)
    return Support(
        start=start,
        capacity=capacity,
        headroom=headroom,
        reservations=Reservations(
            tile=table[:, 0], start=table[:, 1], byte_count=table[:, 2], purpose=table[:, 3]
        ),
    )


def _sizes(inputs: ProgramInputs) -> Int64Array:
    """Bytes [areas, tiles] of what the emitters write, at addresses that any code can have."""
    anywhere = np.full((len(Area), TILE_COUNT), int(_LAYOUT.upper_code), dtype=np.int64)
    assembly = emit_programs(inputs, Bases(address=anywhere)).assembly
    return np.stack([assembly.stream(area).sizes for area in Area])


def _linked_ends(image: Image) -> tuple[int, int]:
    """First free byte in the lower and in the upper range of code."""
    ends = [int(_LAYOUT.lower_code.start), int(_LAYOUT.upper_code)]
    for section in image.sections:
        upper = section.address >= _LAYOUT.upper_code
        ends[upper] = max(ends[upper], section.address + section.size)
    return ends[0], ends[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _TileLayout:
    """Places on one kind of tile; ``reserved`` holds (start, bytes, purpose)."""

    start: tuple[int, ...]
    capacity: tuple[int, ...]
    headroom: int
    reserved: tuple[tuple[int, int, int], ...]


def _lay_out(linked_ends: tuple[int, int], sizes: list[int], tile: int) -> _TileLayout:
    """Steps 2 to 5 of the module's order."""
    limits = (int(_LAYOUT.window.start), int(EXECUTABLE_LIMIT))
    cursors = list(linked_ends)
    start = dict.fromkeys(Area, 0)
    capacity = {area: sizes[area] for area in Area}
    for area in (Area.HOST, Area.PROGRAM):
        for number, limit in enumerate(limits):
            address = _up(cursors[number], BUNDLE_ALIGNMENT)
            if address + sizes[area] + FETCH_LOOKAHEAD <= limit:
                start[area] = address
                cursors[number] = address + sizes[area]
                break
        else:
            raise _no_room(tile, sizes, linked_ends)
    upper_used = cursors[1] > _LAYOUT.upper_code
    closed_end = _next_element(cursors[1] + FETCH_LOOKAHEAD) if upper_used else int(_LAYOUT.upper_code)
    last = 1 if upper_used else 0
    headroom = (closed_end if upper_used else limits[0]) - FETCH_LOOKAHEAD - cursors[last]

    rows_end = closed_end
    start[Area.ROWS] = closed_end
    if sizes[Area.ROWS]:
        rows_end = _next_element(closed_end + sizes[Area.ROWS] + FETCH_LOOKAHEAD)
        capacity[Area.ROWS] = rows_end - FETCH_LOOKAHEAD - closed_end
    if rows_end > EXECUTABLE_LIMIT:
        raise _no_room(tile, sizes, linked_ends)

    reserved = [
        (int(SRAM_BASE), limits[0] - SRAM_BASE, Purpose.CODE),
        (int(_LAYOUT.window.start), int(_LAYOUT.window.size), Purpose.WINDOW),
        (int(_LAYOUT.state.start), int(_LAYOUT.state.size), Purpose.STATE),
        (int(_LAYOUT.upper_code), closed_end - _LAYOUT.upper_code, Purpose.CODE),
        (closed_end, rows_end - closed_end, Purpose.ROWS),
    ]
    holes = [(cursors[0], limits[0]), (cursors[1], closed_end)]
    behind = rows_end
    for area in (Area.SAMPLES, Area.TABLES):
        for number, (low, high) in enumerate(holes):
            start[area] = _up(low, WORD_BYTES)
            end = start[area] + sizes[area]
            if end <= high:
                holes[number] = (end, high)
                # Nothing is put behind tables.
                capacity[area] = (high if area is Area.TABLES else end) - start[area]
                break
        else:
            start[area], behind = behind, behind + sizes[area]
    reserved.append((rows_end, behind - rows_end, Purpose.TABLES))
    return _TileLayout(
        start=tuple(start[area] for area in Area),
        capacity=tuple(capacity[area] for area in Area),
        headroom=headroom,
        reserved=tuple(span for span in reserved if span[1]),
    )


def _no_room(tile: int, sizes: list[int], linked_ends: tuple[int, int]) -> DoesNotFit:
    linked = linked_ends[0] - _LAYOUT.entry + linked_ends[1] - _LAYOUT.upper_code
    room = _LAYOUT.window.start - _LAYOUT.entry + EXECUTABLE_LIMIT - _LAYOUT.upper_code
    parts = {
        "host programs": sizes[Area.HOST],
        "tile program": sizes[Area.PROGRAM],
        "exchange rows": sizes[Area.ROWS],
    }
    measures = [
        Measure(name=name, value=value, unit="bytes", kind=NumberKind.MEASURED)
        for name, value in (("linked code", linked), *parts.items())
    ]
    total = Measure(
        name="together, in whole elements and with look-ahead more",
        value=linked + sum(parts.values()),
        limit=room,
        unit="bytes",
        kind=NumberKind.MEASURED,
    )
    return DoesNotFit(
        "the executable memory of a tile has no room for its code and exchange rows",
        stage=STAGE,
        subject=f"tile {tile}",
        numbers=[*measures, total],
        next_step="use fewer kinds of kernels, or give this tile fewer calls and transfers",
    )


def _up(address: int, boundary: int) -> int:
    return -(-address // boundary) * boundary


def _next_element(address: int) -> int:
    """The element boundary at or above an address of the standard region."""
    return STANDARD.base + _up(address - STANDARD.base, STANDARD.element_size)
