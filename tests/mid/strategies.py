"""Random small programs, well formed by construction: every operation, any formats and owners."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import CoordinateMapping, Shape, identity
from compiler.geometry.order import AmpLeft, RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F8, F16, F32, Precision, encode_f143
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, broadcast_relation
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.geometry.views import transpose, window
from compiler.kernels.pointwise.binding import Operation
from compiler.mid.build import BlockBuilder, program
from compiler.mid.ir import Compute, CopyPart, MidProgram, MidValueId, MovementPolicy, StorageAlias, Value
from compiler.mid.work import Cast, Elementwise
from tests.geometry.strategies import formats
from tests.mid.products import accumulated, grid_format, parallel_product, reduced, replicated

TILES = 24
"""Tiles of most programs; formats of the geometry's strategies have more owners now and then."""

EXTENTS = st.sampled_from([1, 2, 3, 5, 16, 17, 32, 40])


@st.composite
def owner_maps(draw: st.DrawFn, owners: int, tile_count: int) -> OwnerMap:
    """A map with a place for each owner."""
    permutation = None
    embedding = None
    if draw(st.booleans()):
        seed = draw(st.integers(0, 1 << 20))
        shuffled = np.random.default_rng(seed).permutation(tile_count)
        permutation = tuple(TileId(int(tile)) for tile in shuffled)
    if draw(st.booleans()):
        count = draw(st.integers(owners, tile_count))
        first = draw(st.integers(0, tile_count - count))
        embedding = tuple(TileId(tile) for tile in range(first, first + count))
    domain = tile_count if embedding is None else len(embedding)
    return OwnerMap(
        tile_count=tile_count,
        rotation=draw(st.integers(0, domain - 1)),
        embedding=embedding,
        permutation=permutation,
    )


@st.composite
def placements(
    draw: st.DrawFn, shape: Shape, precision: Precision, tile_count: int
) -> tuple[TensorFormat, OwnerMap]:
    """A format that accepts a shape, and owners for it; whole on one tile where the format has too many."""
    chosen = draw(formats(shape, precision))
    if chosen.layout.tiling.owner_count > tile_count:
        chosen = grid_format(RowMajor(), precision=precision)
    return chosen, draw(owner_maps(chosen.layout.tiling.owner_count, tile_count))


@st.composite
def local_layouts(
    draw: st.DrawFn, shape: Shape, tile_count: int, precisions: Sequence[Precision]
) -> TensorLayout:
    """A layout for operands and results of one element-wise computation, in all of these precisions."""
    if draw(st.integers(0, 4)) == 0:
        return TensorLayout(
            order=RowMajor(),
            tiling=LinearTiling(
                partitions=draw(st.integers(1, 5)),
                grain=4 * draw(st.integers(1, 3)),
                replicas=draw(st.integers(1, 2)),
            ),
        )
    is_panels = len(shape) > 1 and all(isinstance(each, F16) for each in precisions) and draw(st.booleans())
    cuts: list[AxisTiling] = []
    left = tile_count
    for axis, extent in enumerate(shape):
        most = min(left, extent, 4)
        partitions = draw(st.integers(1, most))
        is_last = axis == len(shape) - 1
        block = 16 if is_panels and is_last else draw(st.sampled_from([1, 2, 4]))
        cuts.append(
            AxisTiling(
                axis=axis,
                partitions=partitions,
                block_size=block,
                padding_multiple=block,
                padding=Padding.ZERO,
            )
        )
        left //= partitions
    tiling = GridTiling(axes=tuple(draw(st.permutations(cuts))), replicas=draw(st.integers(1, max(1, left))))
    return TensorLayout(order=AmpLeft() if is_panels else RowMajor(), tiling=tiling)


@dataclass(slots=True)
class Growing:
    """A program under construction, with what can be read in it."""

    builder: BlockBuilder
    tile_count: int
    values: list[MidValueId]

    def pick(self, draw: st.DrawFn, *, rank: int | None = None, is_half: bool = False) -> MidValueId | None:
        """One of the values of a rank, F16 if asked."""
        found = [
            value
            for value in self.values
            if (rank is None or len(self.builder.value(value).shape) == rank)
            and (not is_half or isinstance(self.builder.value(value).format.precision, F16))
        ]
        return draw(st.sampled_from(found)) if found else None


@st.composite
def mappings_of(draw: st.DrawFn, shape: Shape) -> CoordinateMapping:
    """Identity, a transposition or a window."""
    match draw(st.integers(0, 2)):
        case 0:
            return identity(shape)
        case 1:
            return transpose(shape, tuple(draw(st.permutations(range(len(shape))))))
        case _:
            bounds: list[tuple[int, int]] = []
            for extent in shape:
                start = draw(st.integers(0, extent - 1))
                bounds.append((start, draw(st.integers(start + 1, extent))))
            return window(shape, Region(bounds=tuple(bounds)))


def _grow_copy(draw: st.DrawFn, growing: Growing) -> MidValueId | None:
    source = draw(st.sampled_from(growing.values))
    value = growing.builder.value(source)
    if draw(st.integers(0, 3)) == 0 and len(value.shape) > 0:
        # A concatenation along the last axis.
        width = value.shape[-1]
        shape = (*value.shape[:-1], 2 * width)
        whole = [(0, extent) for extent in value.shape[:-1]]
        parts = tuple(
            CopyPart(
                source=source,
                region=Region(bounds=(*whole, (half * width, (half + 1) * width))),
                mapping=identity(value.shape),
            )
            for half in range(2)
        )
        tensor_format, owners = draw(placements(shape, value.format.precision, growing.tile_count))
        return growing.builder.copy_parts(
            parts, shape=shape, tensor_format=tensor_format, owners=owners, node="concat"
        )
    mapping = draw(mappings_of(value.shape))
    tensor_format, owners = draw(
        placements(mapping.destination_shape, value.format.precision, growing.tile_count)
    )
    return growing.builder.copy(
        source,
        tensor_format=tensor_format,
        owners=owners,
        mapping=mapping,
        policy=draw(st.sampled_from(MovementPolicy)),
        node="view",
    )


def _grow_cast(draw: st.DrawFn, growing: Growing) -> MidValueId | None:
    source = draw(st.sampled_from(growing.values))
    value = growing.builder.value(source)
    precision = value.format.precision
    target = draw(
        st.sampled_from([each for each in (F32(), F16(), F8(scale_exponent=-3)) if each != precision])
    )
    layout = draw(local_layouts(value.shape, growing.tile_count, (precision, target)))
    owners = draw(owner_maps(layout.tiling.owner_count, growing.tile_count))
    near = growing.builder.copy(
        source, tensor_format=TensorFormat(precision=precision, layout=layout), owners=owners, node="cast"
    )
    return growing.builder.compute(
        Cast(),
        (near,),
        (Identity(rank=len(value.shape)),),
        shape=value.shape,
        tensor_format=TensorFormat(precision=target, layout=layout),
        owners=owners,
        node="cast",
    )


def _grow_elementwise(draw: st.DrawFn, growing: Growing) -> MidValueId | None:
    source = growing.pick(draw, is_half=True)
    if source is None:
        return None
    shape = growing.builder.value(source).shape
    layout = draw(local_layouts(shape, growing.tile_count, (F16(),)))
    owners = draw(owner_maps(layout.tiling.owner_count, growing.tile_count))
    tensor_format = TensorFormat(precision=F16(), layout=layout)
    near = growing.builder.copy(source, tensor_format=tensor_format, owners=owners, node="pointwise")
    operation = draw(st.sampled_from(Operation))
    operands = [near]
    if operation is not Operation.GELU:
        others = [
            value
            for value in growing.values
            if isinstance(growing.builder.value(value).format.precision, F16)
            and _broadcasts(growing.builder.value(value).shape, shape)
        ]
        other = draw(st.sampled_from([*others, source]))
        other_shape = growing.builder.value(other).shape
        alike = other_shape == shape and (isinstance(layout.tiling, LinearTiling) or draw(st.booleans()))
        if not alike and isinstance(layout.tiling, LinearTiling):
            other, other_shape, alike = source, shape, True
        operands.append(
            growing.builder.copy(
                other,
                tensor_format=tensor_format if alike else replicated(layout.tiling.owner_count),
                owners=owners,
                node="pointwise",
            )
        )
    return growing.builder.compute(
        Elementwise(operation=operation),
        operands,
        [broadcast_relation(growing.builder.value(operand).shape, shape) for operand in operands],
        shape=shape,
        tensor_format=tensor_format,
        owners=owners,
        aliases=(StorageAlias(result=0, operand=0),) if draw(st.booleans()) else (),
        node="pointwise",
    )


def _broadcasts(operand: Shape, result: Shape) -> bool:
    try:
        broadcast_relation(operand, result)
    except ValueError:
        return False
    return True


def _grow_product(draw: st.DrawFn, growing: Growing) -> MidValueId | None:
    builder = growing.builder
    pairs = [
        (x, w)
        for x in growing.values
        for w in growing.values
        if _multiplies(builder.value(x), builder.value(w))
    ]
    if not pairs:
        return None
    x, w = draw(st.sampled_from(pairs))
    rows = draw(st.integers(1, min(3, builder.value(x).shape[0])))
    columns = draw(st.integers(1, 2))
    most = -(-builder.value(x).shape[1] // builder.value(x).format.precision.micro)
    parts = draw(st.integers(1, min(4, most)))
    if draw(st.integers(0, 2)) == 0:
        owners = draw(owner_maps(rows * columns, growing.tile_count))
        return accumulated(
            builder, x, w, owners=owners, rows=rows, columns=columns, parts=parts, node="product"
        )
    owners = draw(owner_maps(rows * columns * parts, growing.tile_count))
    partials = parallel_product(
        builder, x, w, owners=owners, rows=rows, columns=columns, parts=parts, node="product"
    )
    growing.values.append(partials)
    if parts == 1:
        return None
    shape = builder.value(partials).shape[1:]
    if draw(st.booleans()):
        # On the tiles that multiplied, so that own partials come first.
        pieces = draw(st.integers(1, max(1, min(shape[0], rows * parts))))
        scattered = grid_format(
            AmpLeft(),
            (
                AxisTiling(axis=0, partitions=pieces, padding=Padding.ZERO),
                AxisTiling(
                    axis=1, partitions=columns, block_size=16, padding_multiple=16, padding=Padding.ZERO
                ),
            ),
        )
    else:
        scattered, _ = draw(placements(shape, F16(), growing.tile_count))
        if isinstance(scattered.layout.tiling, LinearTiling):
            scattered = replace(scattered, layout=replace(scattered.layout, order=RowMajor()))
        scattered = replace(
            scattered,
            layout=replace(scattered.layout, tiling=replace(scattered.layout.tiling, replicas=1)),
        )
        owners = draw(owner_maps(scattered.layout.tiling.owner_count, growing.tile_count))
    return reduced(
        builder,
        partials,
        tensor_format=scattered,
        owners=owners,
        batch=draw(st.one_of(st.none(), st.integers(1, 3))),
        node="product",
    )


def _multiplies(x: Value, w: Value) -> bool:
    one, other = x.format.precision, w.format.precision
    return (
        len(x.shape) == len(w.shape) == 2
        and x.shape[1] == w.shape[0]
        and type(one) is type(other)
        and isinstance(one, F16 | F8)
    )


def _grow_repeat(draw: st.DrawFn, growing: Growing) -> MidValueId | None:
    """A bias that is another one each time, and a sum with something that never changes, a few times."""
    source = growing.pick(draw, is_half=True)
    if source is None:
        return None
    outer = growing.builder
    shape = outer.value(source).shape
    layout = draw(local_layouts(shape, growing.tile_count, (F16(),)))
    tensor_format = TensorFormat(precision=F16(), layout=layout)
    owners = draw(owner_maps(layout.tiling.owner_count, growing.tile_count))
    carried = outer.copy(source, tensor_format=tensor_format, owners=owners, node="repeat")
    count = draw(st.integers(1, 3))
    same = [value for value in growing.values if _is_like(outer.value(value), shape)]
    members = [
        outer.copy(draw(st.sampled_from(same)), tensor_format=tensor_format, owners=owners, node="repeat")
        for _ in range(count)
    ]
    body = BlockBuilder()

    def argument(name: str) -> MidValueId:
        return body.argument(Value(name=name, shape=shape, format=tensor_format, owners=owners))

    h, fixed, member = argument("h"), argument("fixed"), argument("member")
    relation = Identity(rank=len(shape))

    def step(operation: Operation, *operands: MidValueId) -> MidValueId:
        return body.compute(
            Elementwise(operation=operation),
            operands,
            (relation,) * len(operands),
            shape=shape,
            tensor_format=tensor_format,
            owners=owners,
            node="body",
        )

    result = step(Operation.ADD, step(Operation.BIAS_GELU, h, member), fixed)
    if draw(st.booleans()):
        elsewhere, others = draw(placements(shape, F16(), growing.tile_count))
        far = body.copy(result, tensor_format=elsewhere, owners=others, node="body")
        result = body.copy(far, tensor_format=tensor_format, owners=owners, node="body")
    return outer.repeat(
        count,
        carried=(carried,),
        invariants=(members[0],),
        sequences=(members,),
        body=body.finish((result,)),
        node="repeat",
    )[0]


def _is_like(value: Value, shape: Shape) -> bool:
    return value.shape == shape and isinstance(value.format.precision, F16)


_PLAIN = (_grow_copy, _grow_cast, _grow_elementwise, _grow_product, _grow_product)


@st.composite
def programs(draw: st.DrawFn, max_operations: int = 4, has_repeats: bool = True) -> MidProgram:
    """A program whose every value is an output; all but the storage that another value takes."""
    tile_count = TILES
    kinds = (*_PLAIN, _grow_repeat) if has_repeats else _PLAIN
    growing = Growing(builder=BlockBuilder(), tile_count=tile_count, values=[])
    m, k, n = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    is_f8 = draw(st.integers(0, 2)) == 0
    factors: tuple[Precision, Precision] = (F8(scale_exponent=1), F8(scale_exponent=-4))
    shapes: tuple[tuple[str, Shape, Precision], ...] = (
        ("x", (m, k), factors[0] if is_f8 else F16()),
        ("w", (k, n), factors[1] if is_f8 else F16()),
        ("b", (n,), F16()),
        ("h", (m, n), F16()),
    )
    for name, shape, precision in shapes:
        tensor_format, owners = draw(placements(shape, precision, tile_count))
        growing.values.append(
            growing.builder.argument(Value(name=name, shape=shape, format=tensor_format, owners=owners))
        )
    for _ in range(draw(st.integers(1, max_operations))):
        made = draw(st.sampled_from(kinds))(draw, growing)
        if made is not None:
            growing.values.append(made)
    block = growing.builder.finish(())
    taken = {
        operation.operands[alias.operand]
        for operation in block.operations
        if isinstance(operation, Compute)
        for alias in operation.aliases
    }
    results = [MidValueId(number) for number in range(len(block.values)) if number not in taken]
    names = [block.value(value).name for value in results]
    return program(
        growing.builder.finish(results),
        name="random",
        tile_count=tile_count,
        input_count=2,
        outputs=names,
    )


def tensors_of(made: MidProgram, seed: int) -> dict[str, npt.NDArray[np.generic]]:
    """Contents for inputs and parameters."""
    random = np.random.default_rng(seed)
    tensors: dict[str, npt.NDArray[np.generic]] = {}
    for argument in made.block.arguments:
        value = made.block.value(argument)
        numbers = random.standard_normal(value.shape) * 2.0 ** random.integers(-6, 5, value.shape)
        match value.format.precision:
            case F8(scale_exponent=scale):
                tensors[value.name] = encode_f143(numbers, scale)
            case precision:
                tensors[value.name] = numbers.astype(precision.dtype)
    return tensors
