"""How full tiles are: what of them the program itself takes, what stays in them, and what lives when.

Input: a low program, its placement, and the support that was placed around it. Storage that several buffers
share, at once or in turn, counts once. Tiles are physical in what comes out, so that it can be drawn as the
chip is laid out (``target.tiles``).

What lies where on a tile, and when, is a ``TileMap``: rectangles of addresses and steps. Tiles fall into few
classes, so maps are kept once and tiles say which they have. Tensors and what the program itself takes are
maps of their own, since rows differ in size between tiles that hold alike tensors. Neighbours that live
equally long for one graph node are one rectangle.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.low.ids import NO_ROW
from compiler.low.ir import LowProgram, Role
from compiler.low.steps import table_of
from compiler.package.support import Purpose, Reservations, Support
from compiler.placement.ir import Placement
from compiler.placement.problem import lifetimes, problems_of
from compiler.target.memory import EXECUTABLE_LIMIT, SRAM_BASE, SRAM_SIZE
from compiler.target.tiles import TILE_COUNT, logical_to_physical, physical_tiles
from compiler.target.units import Int64Array, LogicalTile

KINDS: Final = (*(purpose.name.lower() for purpose in Purpose), *(role.name.lower() for role in Role))
"""What a rectangle of a ``TileMap`` is: a purpose of the program itself, or the role of a tensor."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileMap:
    """What lies where and when: columns with an entry for each rectangle, by address, then step.

    Args:
        start: first byte address.
        size: bytes.
        first: step from which on it is there.
        last: step to whose end it is.
        kind: entry of ``KINDS``.
        name: entry of ``MemoryUse.names``: tensor of the host, graph node or area.
    """

    start: tuple[int, ...]
    size: tuple[int, ...]
    first: tuple[int, ...]
    last: tuple[int, ...]
    kind: tuple[int, ...]
    name: tuple[int, ...]


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
        base: its first byte address.
        interleaved: byte address at which the interleaved region begins.
        used: [physical tiles] bytes that hold something at some time.
        own: [physical tiles] of them, code, rows, tables and runtime.
        rows: [physical tiles] of them, exchange rows.
        resident: [physical tiles] bytes of parameters, inputs and outputs.
        fullest: physical tile that uses most, the lowest of several.
        steps: numbers of the steps that ``live`` is about.
        live: [series][steps] bytes of tensors that live in each step; each series once.
        series: [physical tiles] which of ``live`` a tile has.
        classes: those with most tiles first.
        class_of: [physical tiles] which of them a tile is in; -1 without tensors.
        names: of what maps show.
        tensors: maps of tensors.
        tensors_of: [physical tiles] which of them a tile has.
        support: maps of what the program itself takes.
        support_of: [physical tiles] which of them a tile has.
    """

    size: int
    base: int
    interleaved: int
    used: tuple[int, ...]
    own: tuple[int, ...]
    rows: tuple[int, ...]
    resident: tuple[int, ...]
    fullest: int
    steps: tuple[int, ...]
    live: tuple[tuple[int, ...], ...]
    series: tuple[int, ...]
    classes: tuple[TileClass, ...]
    class_of: tuple[int, ...]
    names: tuple[str, ...]
    tensors: tuple[TileMap, ...]
    tensors_of: tuple[int, ...]
    support: tuple[TileMap, ...]
    support_of: tuple[int, ...]


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
    stays = (buffers.role != Role.TEMPORARY) | (buffers.cleared == 1)
    resident = covered(buffers.tile[stays], placement.address[stays], stop[stays])
    live = live_bytes(program, placement)
    series, of_logical = np.unique(live, axis=1, return_inverse=True)
    tables = {
        name: _by_physical(column, physical)
        for name, column in (("used", used), ("own", own), ("rows", rows), ("resident", resident))
    }
    classes, class_of = _classes(program, support, own.astype(np.int64), resident, live)
    names, tensor_names = _names_of(program)
    tensors, tensors_of = _maps(_tensor_rectangles(program, placement, tensor_names))
    areas, areas_of = _maps(_support_rectangles(reservations, len(live), first_name=len(names)))
    return MemoryUse(
        size=SRAM_SIZE,
        base=SRAM_BASE,
        interleaved=EXECUTABLE_LIMIT,
        **tables,
        fullest=int(np.argmax(tables["used"])),
        steps=tuple(range(len(live))),
        live=tuple(tuple(column) for column in series.T.tolist()),
        series=_by_physical(of_logical.reshape(-1), physical),
        classes=classes,
        class_of=_by_physical(class_of, physical),
        names=(*names, *_AREAS),
        tensors=tensors,
        tensors_of=_by_physical(tensors_of, physical),
        support=areas,
        support_of=_by_physical(areas_of, physical),
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
) -> tuple[tuple[TileClass, ...], Int64Array]:
    """The classes, and [logical tiles] the class of each tile or -1."""
    problems = problems_of(program, support.reservations.for_placement(program.tile_count))
    digests = [(problem.digest(), int(problem.tile)) for problem in problems]
    counts = Counter(digest for digest, _ in digests)
    first: dict[bytes, int] = {}
    for digest, tile in digests:
        first.setdefault(digest, tile)
    peak = live.max(axis=0, initial=0)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], first[item[0]]))
    number = {digest: place for place, (digest, _) in enumerate(ordered)}
    class_of = np.full(TILE_COUNT, -1, dtype=np.int64)
    for digest, tile in digests:
        class_of[tile] = number[digest]
    return tuple(
        TileClass(
            tile=logical_to_physical(LogicalTile(first[digest])),
            tiles=tiles,
            own=int(own[first[digest]]),
            resident=int(resident[first[digest]]),
            peak=int(peak[first[digest]]),
        )
        for digest, tiles in ordered
    ), class_of


_COLUMNS: Final = ("start", "size", "first", "last", "kind", "name")
"""Of a table of rectangles, behind the logical tile, which comes first."""

_AREAS: Final = tuple(purpose.name.lower() for purpose in Purpose)


def _names_of(program: LowProgram) -> tuple[tuple[str, ...], Int64Array]:
    """Names of what tensors are for, and [buffers] which of them a buffer has.

    Shards of a tensor of the host have its name, all others that of their graph node.
    """
    buffers = program.buffers
    of_host = buffers.value != NO_ROW
    numbers = np.where(of_host, buffers.value, len(program.values) + buffers.node)
    return (*(value.name for value in program.values), *program.nodes), numbers


def _tensor_rectangles(program: LowProgram, placement: Placement, names: Int64Array) -> Int64Array:
    """[rectangles, 1 + columns] what tensors take."""
    buffers = program.buffers
    first, last = lifetimes(program)
    kind = buffers.role + len(Purpose)
    columns = (buffers.tile, placement.address, buffers.byte_count, first, last, kind, names)
    return _joined(np.stack(columns, axis=1)[last >= first])


def _support_rectangles(reservations: Reservations, steps: int, *, first_name: int) -> Int64Array:
    """[rectangles, 1 + columns] what the program itself takes, in all steps."""
    always = np.zeros_like(reservations.tile)
    purpose = reservations.purpose
    columns = (reservations.tile, reservations.start, reservations.byte_count, always)
    return _joined(np.stack((*columns, always + max(steps - 1, 0), purpose, purpose + first_name), axis=1))


def _joined(rectangles: Int64Array) -> Int64Array:
    """The rectangles by tile, address and step, with neighbours joined that differ in nothing else."""
    # What can be joined comes one behind the other.
    chosen = rectangles[np.lexsort(rectangles[:, [2, 1, 6, 5, 4, 3, 0]].T)]
    start, size = chosen[:, 1], chosen[:, 2]
    others = chosen[:, [0, 3, 4, 5, 6]]
    alike = (others[1:] == others[:-1]).all(axis=1)
    is_next = np.zeros(len(chosen), dtype=np.bool_)
    is_next[1:] = alike & (start[1:] == start[:-1] + size[:-1])
    run = np.cumsum(~is_next) - 1
    joined = chosen[~is_next]
    joined[:, 2] = np.bincount(run, weights=size, minlength=len(joined)).astype(np.int64)
    return joined[np.lexsort(joined[:, [6, 5, 2, 4, 3, 1, 0]].T)]


def _maps(rectangles: Int64Array) -> tuple[tuple[TileMap, ...], Int64Array]:
    """Distinct maps, in the order of the tiles that have them first, and [logical tiles] which each has."""
    bounds = np.searchsorted(rectangles[:, 0], np.arange(TILE_COUNT + 1))
    number: dict[bytes, int] = {}
    found: list[TileMap] = []
    map_of = np.zeros(TILE_COUNT, dtype=np.int64)
    for tile in range(TILE_COUNT):
        rows = np.ascontiguousarray(rectangles[bounds[tile] : bounds[tile + 1], 1:])
        key = rows.tobytes()
        if key not in number:
            number[key] = len(found)
            columns = rows.T.tolist()
            found.append(
                TileMap(**{name: tuple(column) for name, column in zip(_COLUMNS, columns, strict=True)})
            )
        map_of[tile] = number[key]
    return tuple(found), map_of
