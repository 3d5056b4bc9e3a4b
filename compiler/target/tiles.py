"""The tiles of a C600: how many, where they are, and their two numberings.

Programs number tiles *logically*, 0 .. 1471. The exchange fabric numbers them *physically* by place: 23
rows of 16 columns of 4 lanes. Logical numbers run in pairs up one half-column and down the next, so that
two tiles whose logical numbers differ in the last bit are exchange partners and share a place but for one
bit of the lane.

Functions in the singular take and return one tile; those in the plural take and return arrays of any shape.
All refuse numbers that are no tile with ``ValueError``.
"""

import functools
from typing import Annotated

import numpy as np

from compiler.target.standing import PUBLISHED, VERIFIED
from compiler.target.units import Int64Array, IntegerArray, LogicalTile, PhysicalTile

ROWS: Annotated[int, VERIFIED] = 23
"""Rows of tiles. Fact, ran on hardware."""

COLUMNS: Annotated[int, VERIFIED] = 16
"""Columns of tiles. Fact, ran on hardware."""

LANES: Annotated[int, VERIFIED] = 4
"""Tiles at one row and column. Fact, ran on hardware."""

TILES_PER_ROW: Annotated[int, VERIFIED] = COLUMNS * LANES
"""Tiles in a row; physical numbers ascend by it from row to row. Fact, ran on hardware."""

TILE_COUNT: Annotated[int, VERIFIED] = ROWS * TILES_PER_ROW
"""Tiles of the chip, and one more than the largest number in either numbering. Fact, ran on hardware."""

WORKERS_PER_TILE: Annotated[int, VERIFIED] = 6
"""Worker contexts of a tile, beside its supervisor. Fact, ran on hardware."""

PARTNER_LANE: Annotated[int, VERIFIED] = 2
"""The bit of a physical number in which exchange partners differ. Fact, ran on hardware."""

PARTNER_LOGICAL: Annotated[int, VERIFIED] = 1
"""The bit of a logical number in which exchange partners differ. Fact, ran on hardware."""

CLOCK_HERTZ: Annotated[int, PUBLISHED] = 1_500_000_000
"""Clock that converts cycles to seconds. Figure, published; agrees with the card's stated peak rate."""


def row(tile: PhysicalTile) -> int:
    """Row of a tile, 0 .. 22."""
    return check_tile(tile) // TILES_PER_ROW


def column(tile: PhysicalTile) -> int:
    """Column of a tile, 0 .. 15."""
    return check_tile(tile) // LANES % COLUMNS


def lane(tile: PhysicalTile) -> int:
    """Lane of a tile, 0 .. 3."""
    return check_tile(tile) % LANES


def rows(tiles: IntegerArray) -> Int64Array:
    """Row of each tile."""
    return check_tiles(tiles) // TILES_PER_ROW


def partner(tile: PhysicalTile) -> PhysicalTile:
    """The tile whose transmit lane a paired transfer borrows."""
    return PhysicalTile(check_tile(tile) ^ PARTNER_LANE)


def logical_partner(tile: LogicalTile) -> LogicalTile:
    """``partner`` in logical numbers."""
    return LogicalTile(_logical(tile) ^ PARTNER_LOGICAL)


def logical_to_physical(tile: LogicalTile) -> PhysicalTile:
    """Physical number of a tile (the mapping ran on hardware with all tiles)."""
    pair, second = divmod(_logical(tile), 2)
    half_column, step = divmod(pair, ROWS)
    # Half-columns are walked up and down in turn.
    tile_row = step if half_column % 2 == 0 else ROWS - 1 - step
    tile_column, tile_lane = divmod(half_column, 2)
    return PhysicalTile(tile_row * TILES_PER_ROW + tile_column * LANES + tile_lane + PARTNER_LANE * second)


def physical_to_logical(tile: PhysicalTile) -> LogicalTile:
    """Logical number of a tile."""
    tile_row, tile_column, tile_lane = row(tile), column(tile), lane(tile)
    second, low_lane = divmod(tile_lane, PARTNER_LANE)
    half_column = 2 * tile_column + low_lane
    step = tile_row if half_column % 2 == 0 else ROWS - 1 - tile_row
    return LogicalTile(2 * (half_column * ROWS + step) + second)


def physical_tiles(logical: IntegerArray) -> Int64Array:
    """``logical_to_physical`` of each tile."""
    return _physical_by_logical()[check_tiles(logical)]


def logical_tiles(physical: IntegerArray) -> Int64Array:
    """``physical_to_logical`` of each tile."""
    return _logical_by_physical()[check_tiles(physical)]


def check_tiles(tiles: IntegerArray) -> Int64Array:
    """The same numbers, once each is known to be a tile of either numbering."""
    wide = tiles.astype(np.int64, copy=False)
    if wide.size and (wide.min() < 0 or wide.max() >= TILE_COUNT):
        outside = (wide < 0) | (wide >= TILE_COUNT)
        raise ValueError(f"tile {int(wide[outside][0])} is outside 0..{TILE_COUNT - 1}")
    return wide


@functools.cache
def _physical_by_logical() -> Int64Array:
    return _table([logical_to_physical(LogicalTile(tile)) for tile in range(TILE_COUNT)])


@functools.cache
def _logical_by_physical() -> Int64Array:
    return _table([physical_to_logical(PhysicalTile(tile)) for tile in range(TILE_COUNT)])


def _table(tiles: list[PhysicalTile] | list[LogicalTile]) -> Int64Array:
    table = np.array(tiles, dtype=np.int64)
    table.flags.writeable = False
    return table


def check_tile(tile: PhysicalTile) -> PhysicalTile:
    """The same number, once it is known to be a tile."""
    if not 0 <= tile < TILE_COUNT:
        raise ValueError(f"physical tile {tile} is outside 0..{TILE_COUNT - 1}")
    return tile


def _logical(tile: LogicalTile) -> int:
    if not 0 <= tile < TILE_COUNT:
        raise ValueError(f"logical tile {tile} is outside 0..{TILE_COUNT - 1}")
    return tile
