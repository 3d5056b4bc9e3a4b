"""Hypothesis strategies: every precision, every order, small shapes that fit them."""

from collections.abc import Sequence

from hypothesis import strategies as st

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
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
from compiler.geometry.region import Region
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from tests.geometry.interpreter import MICRO, multiples_of

PRECISIONS: tuple[Precision, ...] = (F32(), F16(), F8(scale_exponent=-3))


def orders_of(precision: Precision) -> tuple[ElementOrder, ...]:
    """One of each order, blocks of two panel rows by 4 columns, and the weight format of products."""
    u = MICRO[type(precision)]
    return (
        RowMajor(),
        AmpLeft(),
        AmpTransposedLeft(),
        AmpRight(),
        AmpTransposedRight(),
        AmpOutput(),
        AmpTransposedOutput(),
        BlockMajor(row_block=2 * u, column_block=4),
        BlockMajor(row_block=u, column_block=16),
        BlockMajorTransposed(row_block=2 * u, column_block=4),
    )


precisions = st.sampled_from(PRECISIONS)


@st.composite
def storages(draw: st.DrawFn) -> tuple[Precision, ElementOrder, tuple[int, ...]]:
    """A precision, an order, and extents of one to three axes that the order accepts."""
    precision = draw(precisions)
    order = draw(st.sampled_from(orders_of(precision)))
    if isinstance(order, RowMajor):
        return precision, order, tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    row_multiple, column_multiple = multiples_of(order, precision)
    batch = draw(st.sampled_from([(), (), (2,), (3,), (2, 2)]))
    rows, columns = (
        multiple * draw(st.integers(1, 7 if multiple == 1 else 2 if batch else 3))
        for multiple in (row_multiple, column_multiple)
    )
    return precision, order, (*batch, rows, columns)


@st.composite
def regions(draw: st.DrawFn, extents: Sequence[int]) -> Region:
    """A region inside extents; axes are whole, one coordinate or anything between, sometimes empty."""
    bounds: list[tuple[int, int]] = []
    for extent in extents:
        start, stop = sorted(draw(st.tuples(st.integers(0, extent), st.integers(0, extent))))
        whole = draw(st.booleans())
        bounds.append((0, extent) if whole else (start, stop))
    return Region(bounds=tuple(bounds))


@st.composite
def axis_tilings(draw: st.DrawFn, axis: int, extent: int, multiple: int = 1) -> AxisTiling:
    """A tiling of an axis whose shards are multiples of ``multiple`` wide."""
    groups = draw(st.sampled_from([g for g in (1, 1, 2, 3) if extent % g == 0]))
    group = extent // groups
    block = draw(st.sampled_from([1, 2, 3, multiple] if multiple == 1 else [multiple, 1, 2 * multiple]))
    return AxisTiling(
        axis=axis,
        partitions=groups * draw(st.integers(1, min(3, group))),
        padding_groups=groups,
        block_size=block,
        padding_multiple=block * draw(st.integers(1, 2)),
        shard_padding_multiple=multiple * draw(st.integers(1, 2)),
        padding=Padding.ZERO,
    )


@st.composite
def formats(draw: st.DrawFn, shape: Sequence[int], precision: Precision) -> TensorFormat:
    """A grid or linear format that accepts ``shape``."""
    orders = orders_of(precision) if len(shape) > 1 else (RowMajor(),)
    order = draw(st.sampled_from(orders))
    memory_class = draw(st.sampled_from(MemoryClass))
    replicas = draw(st.integers(1, 3))
    if draw(st.integers(0, 3)) == 0:
        lanes = (
            1
            if isinstance(order, RowMajor)
            else 16
            if "Output" in type(order).__name__
            else MICRO[type(precision)]
        )
        tiling = LinearTiling(
            partitions=draw(st.integers(1, 6)), grain=lanes * draw(st.integers(1, 5)), replicas=replicas
        )
    else:
        multiples = [1] * len(shape)
        if len(shape) > 1:
            multiples[-2:] = multiples_of(order, precision)
        cuts = [
            draw(axis_tilings(axis - len(shape) if draw(st.booleans()) else axis, extent, multiple))
            for axis, (extent, multiple) in enumerate(zip(shape, multiples, strict=True))
            if multiple > 1 or draw(st.booleans())
        ]
        tiling = GridTiling(replicas=replicas, axes=tuple(draw(st.permutations(cuts))))
    return TensorFormat(
        precision=precision, layout=TensorLayout(order=order, tiling=tiling, memory_class=memory_class)
    )
