"""The oracle: element orders, shards and copies one element at a time, from their written definitions.

Slow and obvious on purpose. It shares nothing with the implementation but the value types that say what is
meant: orders are formulas here, not digits; blocks are dealt out one by one; a linear tiling sorts all
elements.
"""

import itertools
from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeAlias, assert_never

from compiler.geometry.layout import TensorFormat
from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling

Coordinate: TypeAlias = tuple[int, ...]

MICRO = {F32: 8, F16: 16, F8: 32}
BYTES = {F32: 4, F16: 2, F8: 1}

# Slots of columns 0 to 15 of a drain group.
OUTPUT_LANES = (0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)


def coordinates_of(extents: Sequence[int]) -> Iterator[Coordinate]:
    """All coordinates, last axis fastest."""
    return itertools.product(*(range(extent) for extent in extents))


def row_major(extents: Sequence[int], coordinate: Coordinate) -> int:
    """The flat position of a coordinate."""
    position = 0
    for value, extent in zip(coordinate, extents, strict=True):
        position = position * extent + value
    return position


def index_of(
    order: ElementOrder, precision: Precision, extents: Sequence[int], coordinate: Coordinate
) -> int:
    """Storage index by formula."""
    if isinstance(order, RowMajor):
        return row_major(extents, coordinate)
    u = MICRO[type(precision)]
    *batch, rows, columns = extents
    *outer, r, c = coordinate
    matrix = row_major(batch, tuple(outer))
    flat_r, flat_rows = matrix * rows + r, prod(batch) * rows
    match order:
        case AmpLeft():
            return c // u * flat_rows * u + flat_r * u + c % u
        case AmpOutput():
            return c // 16 * flat_rows * 16 + flat_r * 16 + OUTPUT_LANES[c % 16]
        case AmpTransposedLeft():
            inside = r // u * columns * u + c * u + r % u
        case AmpTransposedOutput():
            inside = r // 16 * columns * 16 + c * 16 + OUTPUT_LANES[r % 16]
        case AmpRight():
            inside = _right(u, rows, k=r, n=c)
        case AmpTransposedRight():
            inside = _right(u, columns, k=c, n=r)
        case BlockMajor(row_block=rb, column_block=cb):
            inside = _block(u, rb, cb, columns, r, c)
        case BlockMajorTransposed(row_block=rb, column_block=cb):
            inside = _block(u, rb, cb, rows, c, r)
        case _:
            assert_never(order)
    return matrix * rows * columns + inside


def _right(u: int, k_extent: int, *, k: int, n: int) -> int:
    panel = n // 16 * (k_extent // u) + k // u
    return panel * u * 16 + n % 16 * u + k % u


def _block(u: int, rb: int, cb: int, columns: int, r: int, c: int) -> int:
    panel = r // rb * (columns // cb) * (rb // u) + c // cb * (rb // u) + r % rb // u
    return panel * u * cb + c % cb * u + r % u


def multiples_of(order: ElementOrder, precision: Precision) -> tuple[int, int]:
    """What rows and columns must be multiples of."""
    u = MICRO[type(precision)]
    match order:
        case RowMajor():
            return 1, 1
        case AmpLeft():
            return 1, u
        case AmpTransposedLeft():
            return u, 1
        case AmpRight():
            return u, 16
        case AmpTransposedRight():
            return 16, u
        case AmpOutput():
            return 1, 16
        case AmpTransposedOutput():
            return 16, 1
        case BlockMajor(row_block=rb, column_block=cb):
            return rb, cb
        case BlockMajorTransposed(row_block=rb, column_block=cb):
            return cb, rb
        case _:
            assert_never(order)


def shards_of_axis(tiling: AxisTiling, extent: int) -> list[tuple[list[int], int]]:
    """Per shard its coordinates and physical width: groups padded, blocks dealt out, widths rounded up."""
    group = extent // tiling.padding_groups
    per_group = tiling.partitions // tiling.padding_groups
    shards: list[tuple[list[int], int]] = []
    for number in range(tiling.padding_groups):
        padded = group
        while padded % tiling.padding_multiple:
            padded += 1
        counts = [0] * per_group
        for block in range(padded // tiling.block_size):
            counts[block % per_group] += 1
        position = 0
        for count in counts:
            width = count * tiling.block_size
            inside = [c for c in range(position, position + width) if c < group]
            position += width
            while width % tiling.shard_padding_multiple:
                width += 1
            shards.append(([number * group + c for c in inside], width))
    return shards


def shard_storage(shape: Sequence[int], tensor_format: TensorFormat) -> list[dict[Coordinate, int]]:
    """Per shard, the element offset in its storage of each tensor coordinate that it holds."""
    order, precision, tiling = (
        tensor_format.layout.order,
        tensor_format.precision,
        tensor_format.layout.tiling,
    )
    match tiling:
        case GridTiling():
            by_axis: dict[int, AxisTiling] = {cut.axis % len(shape): cut for cut in tiling.axes}
            axes = [
                shards_of_axis(by_axis.get(axis, AxisTiling(axis=axis, partitions=1)), extent)
                for axis, extent in enumerate(shape)
            ]
            storages: list[dict[Coordinate, int]] = []
            for shard in itertools.product(*axes):
                extents = [width for _, width in shard]
                storages.append(
                    {
                        tuple(coordinate for _, coordinate in pairs): index_of(
                            order, precision, extents, tuple(local for local, _ in pairs)
                        )
                        for pairs in itertools.product(*(tuple(enumerate(inside)) for inside, _ in shard))
                    }
                )
            return storages
        case LinearTiling():
            multiples = [1] * len(shape)
            if len(shape) > 1:
                multiples[-2:] = multiples_of(order, precision)
            whole = [
                -(-extent // multiple) * multiple for extent, multiple in zip(shape, multiples, strict=True)
            ]
            sequence = sorted(
                (index_of(order, precision, whole, coordinate), coordinate)
                for coordinate in coordinates_of(shape)
            )
            grains = -(-prod(whole) // tiling.grain)
            counts = [0] * tiling.partitions
            for grain in range(grains):
                counts[grain % tiling.partitions] += 1
            storages = []
            start = 0
            for count in counts:
                end = start + count * tiling.grain
                storages.append({at: index - start for index, at in sequence if start <= index < end})
                start = end
            return storages
        case _:
            assert_never(tiling)
