"""How full tiles are: what of them the program itself takes, what stays in them, and what lives when.

Input: a low program, its placement, and the support that was placed around it. Storage that several buffers
share, at once or in turn, counts once. Tiles are physical in what comes out, so that it can be drawn as the
chip is laid out (``target.tiles``).
"""

from collections import Counter
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.low.ir import LowProgram, Role
from compiler.low.steps import table_of
from compiler.package.support import Purpose, Support
from compiler.placement.ir import Placement
from compiler.placement.problem import lifetimes, problems_of
from compiler.target.memory import SRAM_SIZE
from compiler.target.tiles import TILE_COUNT, logical_to_physical, physical_tiles
from compiler.target.units import Int64Array, LogicalTile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileClass:
    """Tiles whose memory has the same problem: equal sizes, lives, demands and reservations.

    Args:
        tile: physical number of the first of them by logical number.
        tiles: how many.
        own: bytes for code, rows, tables and runtime.
        resident: bytes of tensors that stay from run to run, or that the host writes or reads.
        peak: bytes of tensors that live at the fullest step.
    """

    tile: int
    tiles: int
    own: int
    resident: int
    peak: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUse:
    """Memory of all tiles; bytes are counted.

    Args:
        size: bytes of a tile.
        used: [physical tiles] bytes that hold something at some time.
        own: [physical tiles] of them, code, rows, tables and runtime.
        rows: [physical tiles] of them, exchange rows.
        resident: [physical tiles] bytes of parameters, inputs and outputs.
        fullest: physical tile that uses most, the lowest of several.
        steps: numbers of the steps that ``live`` is about.
        live: [series][steps] bytes of tensors that live in each step; each series once.
        series: [physical tiles] which of ``live`` a tile has.
        classes: those with most tiles first.
    """

    size: int
    used: tuple[int, ...]
    own: tuple[int, ...]
    rows: tuple[int, ...]
    resident: tuple[int, ...]
    fullest: int
    steps: tuple[int, ...]
    live: tuple[tuple[int, ...], ...]
    series: tuple[int, ...]
    classes: tuple[TileClass, ...]


def memory_use(program: LowProgram, placement: Placement, support: Support) -> MemoryUse:
    """How full the tiles of a placed program are."""
    buffers, reservations = program.buffers, support.reservations
    physical = physical_tiles(np.arange(TILE_COUNT))
    own = np.bincount(reservations.tile, weights=reservations.byte_count, minlength=TILE_COUNT)
    is_row = reservations.purpose == Purpose.ROWS
    rows = np.bincount(
        reservations.tile[is_row], weights=reservations.byte_count[is_row], minlength=TILE_COUNT
    )
    stop = placement.address + buffers.byte_count
    used = covered(
        np.concatenate([buffers.tile, reservations.tile]),
        np.concatenate([placement.address, reservations.start]),
        np.concatenate([stop, reservations.start + reservations.byte_count]),
    )
    stays = buffers.role != Role.TEMPORARY
    resident = covered(buffers.tile[stays], placement.address[stays], stop[stays])
    live = live_bytes(program, placement)
    series, of_logical = np.unique(live, axis=1, return_inverse=True)
    tables = {
        name: _by_physical(column, physical)
        for name, column in (("used", used), ("own", own), ("rows", rows), ("resident", resident))
    }
    return MemoryUse(
        size=SRAM_SIZE,
        **tables,
        fullest=int(np.argmax(tables["used"])),
        steps=tuple(range(len(live))),
        live=tuple(tuple(column) for column in series.T.tolist()),
        series=_by_physical(of_logical.reshape(-1), physical),
        classes=_classes(program, support, own.astype(np.int64), resident, live),
    )


def live_bytes(program: LowProgram, placement: Placement) -> Int64Array:
    """[steps, logical tiles] bytes of tensors that live in each step, storage that is shared counted once."""
    first, last = lifetimes(program)
    count = len(table_of(program.steps).kind)
    stop = placement.address + program.buffers.byte_count
    found = np.zeros((count, TILE_COUNT), dtype=np.int64)
    for step in range(count):
        lives = (first <= step) & (step <= last)
        found[step] = covered(program.buffers.tile[lives], placement.address[lives], stop[lives])
    return found


def covered(tiles: Int64Array, starts: Int64Array, stops: Int64Array) -> Int64Array:
    """[logical tiles] bytes that lie in at least one of some ranges.

    Args:
        tiles: tile of each range.
        starts: its first byte address.
        stops: the first behind.
    """
    order = np.lexsort((stops, starts, tiles))
    # Behind one another, tiles have addresses that never meet: one sweep does all of them.
    place = tiles[order] * (1 << 32)
    start, stop = place + starts[order], place + stops[order]
    reach = np.maximum.accumulate(np.concatenate([[-1], stop]))[:-1]
    added = np.maximum(0, stop - np.maximum(start, reach))
    return np.bincount(tiles[order], weights=added, minlength=TILE_COUNT).astype(np.int64)


def _by_physical(
    column: "np.ndarray[tuple[int], np.dtype[np.generic]]", physical: Int64Array
) -> tuple[int, ...]:
    found = np.zeros(TILE_COUNT, dtype=np.int64)
    found[physical] = column
    return tuple(found.tolist())


def _classes(
    program: LowProgram, support: Support, own: Int64Array, resident: Int64Array, live: Int64Array
) -> tuple[TileClass, ...]:
    problems = problems_of(program, support.reservations.for_placement(program.tile_count))
    digests = [(problem.digest(), int(problem.tile)) for problem in problems]
    counts = Counter(digest for digest, _ in digests)
    first: dict[bytes, int] = {}
    for digest, tile in digests:
        first.setdefault(digest, tile)
    peak = live.max(axis=0, initial=0)
    return tuple(
        TileClass(
            tile=logical_to_physical(LogicalTile(first[digest])),
            tiles=tiles,
            own=int(own[first[digest]]),
            resident=int(resident[first[digest]]),
            peak=int(peak[first[digest]]),
        )
        for digest, tiles in sorted(counts.items(), key=lambda item: (-item[1], first[item[0]]))
    )
