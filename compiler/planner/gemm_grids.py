"""All grids of a product, as columns, in terms of the matrix unit.

The unit's *rows* come from the operand that it streams (the left one in the normal orientation), its *column
groups*, 16 wide, from its weights. A grid says into how many parts batch, rows, column groups and panels of K
are cut, and over how many of a cell's tiles each of rows and column groups is scattered in the sum.

Left out, and counted by name:

* grids whose worst shard a smaller grid of the same kind has as well: more tiles for the same work, some of
  which may hold nothing;
* grids with more parts of K than there are panels;
* shapes that a call does not take.

Cost: grids of at most T tiles are some T * log(T)^2 / 2, all made and judged by column.
"""

import functools
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import ranges
from compiler.geometry.order import AMP_COLUMNS
from compiler.kernels.gemm.binding import MOST_GROUPS, MOST_ROWS, Orientation
from compiler.planner.gemm_problem import GemmProblem

Column = npt.NDArray[np.int64]

SMALLER_GRID: Final = "same worst shard as a smaller grid"
EMPTY_K_SHARD: Final = "empty K shard"
TOO_MANY_ROWS: Final = "more rows than a call takes"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grids:
    """Grids of one orientation, one a row.

    Args:
        orientation: which operand the unit streams.
        batch_parts, row_parts, column_parts, inner_parts: parts of each axis of the unit.
        scatter_rows, scatter_columns: pieces of a cell in the sum.
        batch: matrices of the worst shard.
        rows: rows of the worst shard, padding included.
        column_groups: of the worst shard.
        panels: of K, of the worst shard.
    """

    orientation: Orientation
    batch_parts: Column
    row_parts: Column
    column_parts: Column
    inner_parts: Column
    scatter_rows: Column
    scatter_columns: Column
    batch: Column
    rows: Column
    column_groups: Column
    panels: Column

    def __len__(self) -> int:
        """How many there are."""
        return len(self.rows)


def grids(problem: GemmProblem, orientation: Orientation) -> tuple[Grids, dict[str, int]]:
    """All grids worth a price, and how many were left out for each reason."""
    extents = problem.rows, problem.columns
    rows, columns = extents if orientation is Orientation.NORMAL else extents[::-1]
    groups = -(-columns // AMP_COLUMNS)
    panels = -(-problem.inner // problem.micro)
    parts = [
        _parts(batch_parts, problem.tile_count // batch_parts, rows, groups)
        for batch_parts in _distinct_parts(min(problem.batch, problem.tile_count), problem.batch)
    ]
    batch_parts, row_parts, column_parts, inner_parts = np.concatenate(parts, axis=1)
    dropped = {EMPTY_K_SHARD: int((inner_parts > panels).sum())}
    kept = inner_parts <= panels
    batch_parts, row_parts, column_parts, inner_parts = (
        column[kept] for column in (batch_parts, row_parts, column_parts, inner_parts)
    )
    grid, scatter_rows, scatter_columns = _scatterings(inner_parts)
    row_parts, column_parts = row_parts[grid], column_parts[grid]
    local_rows = _width(rows, row_parts, scatter_rows)
    local_groups = _width(groups, column_parts, scatter_columns)
    is_smallest = _is_smallest(rows, row_parts, scatter_rows, local_rows)
    is_smallest &= _is_smallest(groups, column_parts, scatter_columns, local_groups)
    dropped[SMALLER_GRID] = int((~is_smallest).sum())
    batch = -(-problem.batch // batch_parts[grid])
    is_callable = (local_rows < MOST_ROWS) & (local_rows * batch < MOST_GROUPS)
    dropped[TOO_MANY_ROWS] = int((is_smallest & ~is_callable).sum())
    chosen = np.flatnonzero(is_smallest & is_callable)
    grid = grid[chosen]
    return Grids(
        orientation=orientation,
        batch_parts=batch_parts[grid],
        row_parts=row_parts[chosen],
        column_parts=column_parts[chosen],
        inner_parts=inner_parts[grid],
        scatter_rows=scatter_rows[chosen],
        scatter_columns=scatter_columns[chosen],
        batch=batch[chosen],
        rows=local_rows[chosen],
        column_groups=local_groups[chosen],
        panels=-(-panels // inner_parts[grid]),
    ), dropped


def _distinct_parts(most: int, extent: int) -> list[int]:
    """The fewest parts for each width of the worst part."""
    return [
        parts for parts in range(1, most + 1) if parts == 1 or -(-extent // parts) < -(-extent // (parts - 1))
    ]


def _parts(batch_parts: int, tiles: int, rows: int, groups: int) -> npt.NDArray[np.int64]:
    """[4, count]: parts of batch, rows, columns and K whose product is at most the tiles."""
    row = np.arange(1, min(rows, tiles) + 1, dtype=np.int64)
    counts = np.minimum(groups, tiles // row)
    row, column = np.repeat(row, counts), ranges(counts) + 1
    counts = tiles // (row * column)
    inner = ranges(counts) + 1
    row, column = np.repeat(row, counts), np.repeat(column, counts)
    return np.stack([np.full_like(row, batch_parts), row, column, inner])


def _scatterings(inner_parts: Column) -> tuple[Column, Column, Column]:
    """Every way of scattering the sum of each grid: (grid, pieces of rows, pieces of columns)."""
    most = int(inner_parts.max(initial=1))
    starts, pairs = _divisor_pairs(most)
    counts = starts[inner_parts + 1] - starts[inner_parts]
    grid = np.repeat(np.arange(len(inner_parts), dtype=np.int64), counts)
    pair = pairs[starts[inner_parts[grid]] + ranges(counts)]
    return grid, pair[:, 0], pair[:, 1]


@functools.lru_cache(maxsize=16)
def _divisor_pairs(most: int) -> tuple[Column, npt.NDArray[np.int64]]:
    """Pairs whose product divides n, for n up to ``most``: row starts [most + 2] and pairs [count, 2]."""
    first = np.arange(1, most + 1, dtype=np.int64)
    counts = most // first
    first, second = np.repeat(first, counts), ranges(counts) + 1
    product = first * second
    counts = most // product
    number = np.repeat(product, counts) * (ranges(counts) + 1)
    first, second = np.repeat(first, counts), np.repeat(second, counts)
    order = np.lexsort((second, first, number))
    starts = np.searchsorted(number[order], np.arange(most + 2)).astype(np.int64)
    return starts, np.stack([first, second], axis=1)[order]


def _width(extent: int, parts: Column, pieces: Column) -> Column:
    """Units of the worst shard, which consists of equal pieces where it is scattered."""
    return -(-extent // (parts * pieces)) * pieces


def _is_smallest(extent: int, parts: Column, pieces: Column, width: Column) -> npt.NDArray[np.bool_]:
    return (parts == 1) | (_width(extent, np.maximum(parts - 1, 1), pieces) > width)
