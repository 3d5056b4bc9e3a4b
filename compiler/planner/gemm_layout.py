"""Where everything of a chosen product lies: formats and owners, derived here alone and never chosen (PR-27).

A tile of the product has one coordinate in each of batch, rows, columns and K; parts of K are numbered
fastest, so that the tiles of a cell are neighbours. An operand is cut along its own axes and held by every
tile whose remaining coordinate does not matter to it.

Sums are scattered over tiles that made a partial of the same cell, so that each begins with its own. For that
the pieces of a sum divide the cells exactly: an axis that is scattered is padded to a multiple of all pieces
(``padding_multiple``); the last pieces may hold padding alone, and their tiles idle.

**Homes.** An argument that is stored once lies in *pieces*: the shards of its consumers, each cut among the
tiles that will hold copies of it, along whichever axis is slower in storage first. Each piece is then one run
of bytes in the shards it is copied to. Weights that are brought in blocks of K come in a run for each column
group of a block however they are cut; their pieces are as small as so many tiles can have them, since such a
product is chosen where memory is short.
"""

from dataclasses import dataclass
from typing import assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.mapping import Shape
from compiler.geometry.order import (
    AMP_COLUMNS,
    AmpLeft,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    ElementOrder,
)
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F16, Precision
from compiler.geometry.relation import Side
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding, round_up
from compiler.kernels.gemm.binding import MOST_GROUPS, MOST_ROWS, Orientation
from compiler.planner.gemm_choice import Algorithm, GemmChoice, GridOrder, Residency
from compiler.planner.gemm_problem import GemmProblem, OperandForm


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A distributed shape.

    Args:
        shape: logical extents.
        format: precision and layout.
        owners: which tile holds which owner.
    """

    shape: Shape
    format: TensorFormat
    owners: OwnerMap


def fault(problem: GemmProblem, choice: GemmChoice) -> str | None:
    """Why a choice does not suit a problem, in a sentence without final full stop; None when it does."""
    if choice.tiles > problem.tile_count:
        return f"{choice.tiles} tiles are needed, {problem.tile_count} are there"
    row_unit, column_unit = units(choice)
    for name, extent, unit, parts in (
        ("batch", problem.batch, 1, choice.batch_parts),
        ("row", problem.rows, row_unit, choice.row_parts),
        ("column", problem.columns, column_unit, choice.column_parts),
        ("K", problem.inner, problem.micro, choice.inner_parts),
    ):
        if parts > -(-extent // unit):
            return f"empty {name} shard: {parts} parts of {-(-extent // unit)} x {unit}"
    for name, extent, unit, parts, pieces in (
        ("row", problem.rows, row_unit, choice.row_parts, choice.scatter_rows),
        ("column", problem.columns, column_unit, choice.column_parts, choice.scatter_columns),
    ):
        width = -(-extent // (unit * parts * pieces)) * pieces
        if pieces > 1 and (parts - 1) * width >= -(-extent // unit):
            return f"empty {name} shard: {parts} parts of {width} x {unit} exceed {extent}"
    if choice.parameter_residency is Residency.RESIDENT and (
        problem.parameter is None or problem.is_cast(problem.parameter)
    ):
        return "no operand is a parameter in the precision that is multiplied"
    if choice.inner_block is not None and choice.inner_block % problem.micro:
        return f"blocks of {choice.inner_block} are no multiple of {problem.micro}"
    if choice.inner_block is not None and choice.inner_block >= problem.inner:
        return f"one block of {choice.inner_block} is all of K"
    rows, batch = local_rows(problem, choice), -(-problem.batch // choice.batch_parts)
    if rows >= MOST_ROWS or rows * batch >= MOST_GROUPS:
        return f"{rows} rows of {batch} matrices are more than a call takes"
    return None


def local_rows(problem: GemmProblem, choice: GemmChoice) -> int:
    """Rows of the matrix unit on a tile, padding included."""
    row_unit, column_unit = units(choice)
    match choice.orientation:
        case Orientation.NORMAL:
            extent, unit, parts, pieces = problem.rows, row_unit, choice.row_parts, choice.scatter_rows
        case Orientation.SWAPPED:
            extent, unit, parts, pieces = (
                problem.columns,
                column_unit,
                choice.column_parts,
                choice.scatter_columns,
            )
        case _:
            assert_never(choice.orientation)
    return -(-extent // (unit * parts * pieces)) * pieces * unit


def units(choice: GemmChoice) -> tuple[int, int]:
    """What shards of rows and of columns are multiples of."""
    match choice.orientation:
        case Orientation.NORMAL:
            return 1, AMP_COLUMNS
        case Orientation.SWAPPED:
            return AMP_COLUMNS, 1
        case _:
            assert_never(choice.orientation)


def weights_side(choice: GemmChoice) -> Side:
    """Which operand is the matrix unit's weights."""
    return Side.RIGHT if choice.orientation is Orientation.NORMAL else Side.LEFT


def parts_of_inner(problem: GemmProblem, choice: GemmChoice) -> tuple[tuple[int, int], ...]:
    """Bounds of the parts of K; of all shards of operands alike."""
    shards = _inner_axis(problem, choice, 0).shards(problem.inner, 0)
    return tuple(
        (int(start), int(stop)) for start, stop in zip(shards.starts, shards.logical_ends, strict=True)
    )


def blocks_of_inner(problem: GemmProblem, choice: GemmChoice) -> tuple[tuple[int, int], ...]:
    """Bounds of the blocks of K that an output-stationary product takes one after the other."""
    block = problem.inner if choice.inner_block is None else choice.inner_block
    return tuple((start, min(start + block, problem.inner)) for start in range(0, problem.inner, block))


def resident(
    problem: GemmProblem,
    choice: GemmChoice,
    side: Side,
    *,
    window: tuple[int, int] | None = None,
    precision: Precision | None = None,
) -> Placement:
    """An operand where it is multiplied.

    Args:
        problem: the product.
        choice: how it is computed.
        side: which operand.
        window: the part of K that is there; None for all.
        precision: None for the one that is multiplied; another for what is cast there.
    """
    form = problem.form(side)
    row_stride, column_stride, batch_stride = _strides(choice)
    row_unit, column_unit = units(choice)
    match side:
        case Side.LEFT:
            replicas, stride, unit = choice.column_parts, row_stride, row_unit
            parts, pieces = choice.row_parts, choice.scatter_rows
        case Side.RIGHT:
            replicas, stride, unit = choice.row_parts, column_stride, column_unit
            parts, pieces = choice.column_parts, choice.scatter_columns
        case _:
            assert_never(side)
    axes = [
        _cell_axis(form.outer, parts, unit, pieces, stride),
        _inner_axis(problem, choice, form.inner),
    ]
    if form.batch is not None:
        axes.append(AxisTiling(axis=form.batch, partitions=choice.batch_parts, owner_stride=batch_stride))
    is_weights = side is weights_side(choice)
    return Placement(
        shape=form.shape if window is None else form.window(*window),
        format=TensorFormat(
            precision=problem.precision if precision is None else precision,
            layout=TensorLayout(
                order=operand_order(form, is_weights=is_weights),
                tiling=GridTiling(replicas=replicas, axes=tuple(axes)),
                memory_class=choice.weight_memory if is_weights else MemoryClass.STANDARD,
            ),
        ),
        owners=OwnerMap(tile_count=problem.tile_count),
    )


def pieces(problem: GemmProblem, choice: GemmChoice, side: Side, *, precision: Precision) -> Placement:
    """An operand stored once, in pieces of the shards of its consumers.

    What has to be cast is stored in panels along its last axis, as casts need it, and otherwise in the order
    of its consumers.
    """
    form = problem.form(side)
    is_weights = side is weights_side(choice) and not problem.is_cast(side)
    row_unit, column_unit = units(choice)
    match side:
        case Side.LEFT:
            extent, unit, parts, holders = problem.rows, row_unit, choice.row_parts, choice.column_parts
            scattered = choice.scatter_rows
        case Side.RIGHT:
            extent, unit, parts, holders = problem.columns, column_unit, choice.column_parts, choice.row_parts
            scattered = choice.scatter_columns
        case _:
            assert_never(side)
    outer = -(-extent // (unit * parts * scattered)) * scattered
    inner = -(-problem.inner // (problem.micro * choice.inner_parts))
    if is_weights and choice.inner_block is not None:
        outer_pieces, inner_pieces = _smallest_pieces(outer, inner, holders)
    elif is_weights:
        outer_pieces = min(outer, holders)
        inner_pieces = min(inner, holders // outer_pieces)
    else:
        inner_pieces = min(inner, holders)
        outer_pieces = min(outer, holders // inner_pieces)
    axes = [
        _blocks(form.outer, extent, unit * -(-outer // outer_pieces)),
        _blocks(form.inner, problem.inner, problem.micro * -(-inner // inner_pieces)),
    ]
    if form.batch is not None:
        axes.append(AxisTiling(axis=form.batch, partitions=choice.batch_parts, padding=Padding.ZERO))
    return Placement(
        shape=form.shape,
        format=TensorFormat(
            precision=precision,
            layout=TensorLayout(
                order=operand_order(form, is_weights=is_weights), tiling=GridTiling(axes=tuple(axes))
            ),
        ),
        owners=OwnerMap(tile_count=problem.tile_count),
    )


def _smallest_pieces(outer: int, inner: int, holders: int) -> tuple[int, int]:
    """Into how many pieces to cut two extents, for so many tiles, that the largest is small; outer first."""

    def largest(cut: tuple[int, int]) -> int:
        return -(-outer // cut[0]) * -(-inner // cut[1])

    cuts = [(pieces, min(inner, holders // pieces)) for pieces in range(min(outer, holders), 0, -1)]
    return min(cuts, key=largest)


def product(problem: GemmProblem, choice: GemmChoice) -> Placement:
    """What products make: partials with their axis in front, or the result of an output-stationary one."""
    row_stride, column_stride, batch_stride = _strides(choice)
    row_unit, column_unit = units(choice)
    has_partials = choice.algorithm is Algorithm.PARALLEL_REDUCTION
    shape = (choice.inner_parts, *problem.result_shape) if has_partials else problem.result_shape
    rank = len(shape)
    axes = [
        _cell_axis(rank - 2, choice.row_parts, row_unit, choice.scatter_rows, row_stride),
        _cell_axis(rank - 1, choice.column_parts, column_unit, choice.scatter_columns, column_stride),
    ]
    if len(problem.result_shape) == 3:
        axes.append(AxisTiling(axis=rank - 3, partitions=choice.batch_parts, owner_stride=batch_stride))
    if has_partials:
        axes.append(AxisTiling(axis=0, partitions=choice.inner_parts, owner_stride=1))
    panels = -(-problem.inner // problem.micro)
    is_accumulated = -(-panels // choice.inner_parts) > 1
    return Placement(
        shape=shape,
        format=TensorFormat(
            precision=F16(),
            layout=TensorLayout(
                order=result_order(choice),
                tiling=GridTiling(axes=tuple(axes)),
                memory_class=MemoryClass.INTERLEAVED if is_accumulated else MemoryClass.STANDARD,
            ),
        ),
        owners=OwnerMap(tile_count=problem.tile_count),
    )


def total(problem: GemmProblem, choice: GemmChoice) -> Placement:
    """The sum of partials, in pieces on tiles that made one of them."""
    row_unit, column_unit = units(choice)
    rank = len(problem.result_shape)
    row_pieces = choice.row_parts * choice.scatter_rows
    column_pieces = choice.column_parts * choice.scatter_columns
    cuts = [
        _axis(axis, parts, unit, parts if scattered > 1 else 1, None)
        for axis, parts, unit, scattered in (
            (rank - 2, row_pieces, row_unit, choice.scatter_rows),
            (rank - 1, column_pieces, column_unit, choice.scatter_columns),
        )
    ]
    if choice.grid_order is GridOrder.ROWS_FAST:
        cuts.reverse()
    axes = [AxisTiling(axis=axis, partitions=choice.batch_parts) for axis in range(rank - 2)] + cuts
    return Placement(
        shape=problem.result_shape,
        format=TensorFormat(
            precision=F16(),
            layout=TensorLayout(order=result_order(choice), tiling=GridTiling(axes=tuple(axes))),
        ),
        owners=_on_tiles(problem.tile_count, _tiles_of_total(choice)),
    )


def operand_order(form: OperandForm, *, is_weights: bool) -> ElementOrder:
    """How the matrix unit takes an operand."""
    if is_weights:
        return AmpTransposedRight() if form.is_inner_last else AmpRight()
    return AmpLeft() if form.is_inner_last else AmpTransposedLeft()


def result_order(choice: GemmChoice) -> ElementOrder:
    """How the matrix unit leaves its result, in terms of rows and columns."""
    return AmpLeft() if choice.orientation is Orientation.NORMAL else AmpTransposedLeft()


def _cell_axis(axis: int, parts: int, unit: int, pieces: int, stride: int) -> AxisTiling:
    """An axis of the grid, whose parts are cut into equal pieces in the sum."""
    return _axis(axis, parts, unit, parts * pieces if pieces > 1 else 1, stride)


def _axis(axis: int, parts: int, unit: int, equal: int, stride: int | None) -> AxisTiling:
    """Balanced parts of whole units, of an extent that divides into so many equal ones."""
    return AxisTiling(
        axis=axis,
        partitions=parts,
        block_size=unit,
        padding_multiple=unit * equal,
        padding=Padding.ZERO,
        owner_stride=stride,
    )


def _inner_axis(problem: GemmProblem, choice: GemmChoice, axis: int) -> AxisTiling:
    return _axis(axis, choice.inner_parts, problem.micro, 1, 1)


def _blocks(axis: int, extent: int, block: int) -> AxisTiling:
    """Blocks of one size, each a shard."""
    padded = round_up(extent, block)
    return AxisTiling(
        axis=axis,
        partitions=padded // block,
        block_size=block,
        padding_multiple=block,
        padding=Padding.ZERO,
    )


def _strides(choice: GemmChoice) -> tuple[int, int, int]:
    """Distances of tiles whose rows, columns or batch differ by one part."""
    inner = choice.inner_parts
    batch = choice.row_parts * choice.column_parts * inner
    match choice.grid_order:
        case GridOrder.COLUMNS_FAST:
            return inner * choice.column_parts, inner, batch
        case GridOrder.ROWS_FAST:
            return inner, inner * choice.row_parts, batch
        case _:
            assert_never(choice.grid_order)


def _tiles_of_total(choice: GemmChoice) -> npt.NDArray[np.int64]:
    """The tile [owners] of each piece of the sum, pieces numbered as :func:`total` lists its axes."""
    row_stride, column_stride, batch_stride = _strides(choice)
    row_pieces = choice.row_parts * choice.scatter_rows
    column_pieces = choice.column_parts * choice.scatter_columns
    if choice.grid_order is GridOrder.ROWS_FAST:
        shape = (choice.batch_parts, column_pieces, row_pieces)
        batch, column, row = np.indices(shape, dtype=np.int64).reshape(3, -1)
    else:
        shape = (choice.batch_parts, row_pieces, column_pieces)
        batch, row, column = np.indices(shape, dtype=np.int64).reshape(3, -1)
    piece = row % choice.scatter_rows * choice.scatter_columns + column % choice.scatter_columns
    partner = piece * (choice.inner_parts // (choice.scatter_rows * choice.scatter_columns))
    return (
        batch * batch_stride
        + row // choice.scatter_rows * row_stride
        + column // choice.scatter_columns * column_stride
        + partner
    )


def _on_tiles(tile_count: int, tiles: npt.NDArray[np.int64]) -> OwnerMap:
    if np.array_equal(tiles, np.arange(len(tiles))):
        return OwnerMap(tile_count=tile_count)
    return OwnerMap(tile_count=tile_count, embedding=tuple(TileId(int(tile)) for tile in tiles))
