"""Products as planners make them: operands copied to a grid of tiles, parts of K side by side or in turn."""

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.order import AmpLeft, AmpRight, ElementOrder, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16, Precision
from compiler.geometry.product import matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, ProductOperand, Side
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding
from compiler.geometry.views import window
from compiler.kernels.gemm.binding import Mode
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import MidValueId, StorageAlias
from compiler.mid.work import Product, Sum


def grid_format(
    order: ElementOrder,
    axes: tuple[AxisTiling, ...] = (),
    *,
    replicas: int = 1,
    precision: Precision | None = None,
    is_interleaved: bool = False,
) -> TensorFormat:
    """A grid in F16, unless another precision is given."""
    return TensorFormat(
        precision=F16() if precision is None else precision,
        layout=TensorLayout(
            order=order,
            tiling=GridTiling(axes=axes, replicas=replicas),
            memory_class=MemoryClass.INTERLEAVED if is_interleaved else MemoryClass.STANDARD,
        ),
    )


def cut(axis: int, partitions: int, *, block: int = 1, stride: int | None = None) -> AxisTiling:
    """Whole blocks, the axis padded to one."""
    return AxisTiling(
        axis=axis,
        partitions=partitions,
        block_size=block,
        padding_multiple=block,
        padding=Padding.ZERO,
        owner_stride=stride,
    )


def replicated(tile_count: int, precision: Precision | None = None) -> TensorFormat:
    """A whole row-major tensor on so many tiles."""
    return grid_format(RowMajor(), replicas=tile_count, precision=precision)


def bounds_of_parts(extent: int, parts: int, micro: int) -> tuple[tuple[int, int], ...]:
    """Balanced parts of whole panels, as a tiling cuts them."""
    shards = cut(0, parts, block=micro).shards(extent)
    return tuple(zip(map(int, shards.starts), map(int, shards.logical_ends), strict=True))


def parallel_product(
    builder: BlockBuilder,
    x: MidValueId,
    w: MidValueId,
    *,
    owners: OwnerMap,
    rows: int,
    columns: int,
    parts: int,
    node: str,
) -> MidValueId:
    """Partials [parts, M, N] of a product of [M, K] and [K, N] on a grid of rows x columns x parts tiles."""
    left, right = builder.value(x), builder.value(w)
    (m, k), n = left.shape, right.shape[1]
    precision = left.format.precision
    micro = precision.micro
    axes = matrix_product(left.shape, right.shape)
    near_x = builder.copy(
        x,
        tensor_format=grid_format(
            AmpLeft(),
            (cut(0, rows, stride=columns * parts), cut(1, parts, block=micro, stride=1)),
            replicas=columns,
            precision=precision,
        ),
        owners=owners,
        node=node,
    )
    near_w = builder.copy(
        w,
        tensor_format=grid_format(
            AmpRight(),
            (cut(0, parts, block=micro, stride=1), cut(1, columns, block=16, stride=parts)),
            replicas=rows,
            precision=right.format.precision,
            is_interleaved=True,
        ),
        owners=owners,
        node=node,
    )
    return builder.compute(
        Product(axes=axes, parts=bounds_of_parts(k, parts, micro)),
        (near_x, near_w),
        (ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT)),
        shape=(parts, m, n),
        tensor_format=grid_format(
            AmpLeft(),
            (
                cut(0, parts, stride=1),
                cut(1, rows, stride=columns * parts),
                cut(2, columns, block=16, stride=parts),
            ),
            is_interleaved=True,
        ),
        owners=owners,
        node=node,
    )


def reduced(
    builder: BlockBuilder,
    partials: MidValueId,
    *,
    tensor_format: TensorFormat,
    owners: OwnerMap,
    batch: int | None = None,
    node: str,
) -> MidValueId:
    """The sum of partials."""
    shape = builder.value(partials).shape[1:]
    return builder.compute(
        Sum(batch=batch),
        (partials,),
        (Identity(rank=len(shape)),),
        shape=shape,
        tensor_format=tensor_format,
        owners=owners,
        node=node,
    )


def accumulated(
    builder: BlockBuilder,
    x: MidValueId,
    w: MidValueId,
    *,
    owners: OwnerMap,
    rows: int,
    columns: int,
    parts: int,
    node: str,
) -> MidValueId:
    """The product of [M, K] and [K, N] on a grid of rows x columns tiles, parts of K in turn."""
    left, right = builder.value(x), builder.value(w)
    (m, k), n = left.shape, right.shape[1]
    micro = left.format.precision.micro
    sums: MidValueId | None = None
    for start, stop in bounds_of_parts(k, parts, micro):
        slices = (window(left.shape, Region(bounds=((0, m), (start, stop)))),)
        slices += (window(right.shape, Region(bounds=((start, stop), (0, n)))),)
        near_x = builder.copy(
            x,
            tensor_format=grid_format(
                AmpLeft(),
                (cut(0, rows, stride=columns), cut(1, 1, block=micro)),
                replicas=columns,
                precision=left.format.precision,
            ),
            owners=owners,
            mapping=slices[0],
            node=node,
        )
        near_w = builder.copy(
            w,
            tensor_format=grid_format(
                AmpRight(),
                (cut(0, 1, block=micro), cut(1, columns, block=16, stride=1)),
                replicas=rows,
                precision=right.format.precision,
                is_interleaved=True,
            ),
            owners=owners,
            mapping=slices[1],
            node=node,
        )
        axes = matrix_product((m, stop - start), (stop - start, n))
        sides = (ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT))
        continues = sums is not None
        sums = builder.compute(
            Product(axes=axes, mode=Mode.ACCUMULATE if continues else Mode.INITIALIZE),
            (near_x, near_w) if sums is None else (near_x, near_w, sums),
            (*sides, Identity(rank=2)) if continues else sides,
            shape=(m, n),
            tensor_format=grid_format(
                AmpLeft(), (cut(0, rows), cut(1, columns, block=16)), is_interleaved=True
            ),
            owners=owners,
            aliases=(StorageAlias(result=0, operand=2),) if continues else (),
            node=node,
        )
    assert sums is not None
    return sums
