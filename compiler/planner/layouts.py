"""Layouts of values that no product asks for: rows over tiles, and what is read beside a given layout."""

from math import prod
from typing import Final

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.mapping import Shape
from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F16, Precision
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding

ROW_MULTIPLE: Final = 8
"""Bytes that rows of halves and of codes are padded to multiples of."""


def row_format(shape: Shape, precision: Precision, tile_count: int) -> TensorFormat:
    """Row-major, whole rows on each tile, cut along the leading axes; a vector is cut into words.

    Rows are padded to whole words of 64 bits: the host and exchanges move words, and kernels that walk rows
    begin each at one. Tiles that would get nothing are left out.
    """
    axes: list[AxisTiling] = []
    left = tile_count
    # As many words as halves, so that casts between the two make whole rows.
    block = ROW_MULTIPLE // min(precision.element_bytes, F16.element_bytes)
    if len(shape) == 1:
        parts = min(left, -(-shape[0] // block))
        axes.append(_cut(0, parts, block))
    for axis, extent in enumerate(shape[:-1]):
        parts = min(left, extent)
        left //= parts
        if parts > 1:
            axes.append(_cut(axis, parts, 1))
    if len(shape) > 1 and shape[-1] % block:
        axes.append(_cut(len(shape) - 1, 1, block))
    layout = TensorLayout(order=RowMajor(), tiling=GridTiling(axes=tuple(axes)))
    return TensorFormat(precision=precision, layout=layout)


def beside(tensor_format: TensorFormat, rank: int, shape: Shape, precision: Precision) -> TensorFormat | None:
    """The layout of a value that repeats along axes of another: on each tile what its shard needs.

    Args:
        tensor_format: of the other value; its owners are those of the result.
        rank: axes of the other value.
        shape: of the value, aligned at the last axis; axes of extent 1 repeat, and so do missing ones.
        precision: of the value.

    Returns:
        The format, or None where the other value is no grid.
    """
    tiling = tensor_format.layout.tiling
    if not isinstance(tiling, GridTiling):
        return None
    new = rank - len(shape)
    cuts: list[AxisTiling] = []
    for cut, stride in zip(tiling.axes, tiling.owner_strides, strict=True):
        axis = cut.axis % rank - new
        if axis >= 0 and shape[axis] > 1:
            cuts.append(
                AxisTiling(
                    axis=axis,
                    partitions=cut.partitions,
                    padding_groups=cut.padding_groups,
                    block_size=cut.block_size,
                    padding_multiple=cut.padding_multiple,
                    shard_padding_multiple=cut.shard_padding_multiple,
                    padding=Padding.ZERO,
                    owner_stride=stride,
                )
            )
    replicas = tiling.owner_count // prod(cut.partitions for cut in cuts)
    layout = TensorLayout(
        order=RowMajor(),
        tiling=GridTiling(replicas=replicas, axes=tuple(cuts)),
        memory_class=MemoryClass.STANDARD,
    )
    return TensorFormat(precision=precision, layout=layout)


def _cut(axis: int, partitions: int, block: int) -> AxisTiling:
    return AxisTiling(
        axis=axis,
        partitions=partitions,
        block_size=block,
        padding_multiple=block,
        padding=Padding.ZERO,
    )
