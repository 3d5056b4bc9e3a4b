"""The layout of a value in another precision on the same tiles: what a cast makes."""

from math import lcm

from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import axis_multiples
from compiler.geometry.precision import Precision
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding


def recast(tensor_format: TensorFormat, rank: int, precision: Precision) -> TensorFormat:
    """The same shards in another precision, padded to what panels of the order need there.

    Args:
        tensor_format: of a value.
        rank: of the value.
        precision: of the result of a cast.

    Raises:
        ValueError: the order is not for so many axes.
    """
    layout = tensor_format.layout
    tiling = layout.tiling
    if isinstance(tiling, GridTiling):
        multiples = axis_multiples(layout.order, precision, rank)
        by_axis = tiling.tilings(rank)
        strides = dict(zip((cut.axis % rank for cut in tiling.axes), tiling.owner_strides, strict=True))
        axes: list[AxisTiling] = []
        for axis, (cut, multiple) in enumerate(zip(by_axis, multiples, strict=True)):
            if cut is None and multiple == 1:
                continue
            cut = AxisTiling(axis=axis, partitions=1) if cut is None else cut
            axes.append(
                AxisTiling(
                    axis=axis,
                    partitions=cut.partitions,
                    padding_groups=cut.padding_groups,
                    block_size=cut.block_size,
                    padding_multiple=cut.padding_multiple,
                    shard_padding_multiple=lcm(cut.shard_padding_multiple, multiple),
                    padding=Padding.ZERO,
                    owner_stride=strides.get(axis, tiling.owner_count),
                )
            )
        tiling = GridTiling(replicas=tiling.replicas, axes=tuple(axes))
    return TensorFormat(
        precision=precision,
        layout=TensorLayout(order=layout.order, tiling=tiling, memory_class=layout.memory_class),
    )
