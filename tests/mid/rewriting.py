"""Programs that rewrites have something to do in, and what must hold of whatever a rewrite gives."""

import dataclasses
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from compiler.estimate.mid import price_of_copy
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import Shape
from compiler.geometry.order import AmpLeft, AmpRight, AmpTransposedLeft, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16, Precision
from compiler.geometry.recast import recast
from compiler.geometry.relation import Identity, broadcast_relation
from compiler.geometry.tiling import GridTiling
from compiler.kernels.contract import Refusal
from compiler.kernels.pointwise.binding import Operation
from compiler.low.execute import Execution
from compiler.low.expand.program import expand
from compiler.low.movement import Impossible
from compiler.low.verify import verify as verify_low
from compiler.mid.build import BlockBuilder, program
from compiler.mid.interpret import interpret
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Repeat, StorageAlias, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.text import text_of_program
from compiler.mid.verify import verify
from compiler.mid.work import Cast, Elementwise, Sum, Work
from tests.mid.products import cut, grid_format, parallel_product, reduced, replicated
from tests.mid.strategies import (
    TILES,
    mappings_of,
    owner_maps,
    placements,
    programs,
    tensors_of,
)

CODES = F8(scale_exponent=-3)


def cycles_of_copy(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    """What movement would need for a copy."""
    price = price_of_copy(copy, sources, result)
    return None if isinstance(price, Impossible) else price.cycles


def free_copy(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    """A price that allows every copy."""
    del copy, sources, result
    return 0


def impossible_copy(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    """A price that allows none."""
    del copy, sources, result


def only_halves(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    """A price that allows copies of all but codes."""
    del copy, sources
    return None if isinstance(result.format.precision, F8) else 0


def cheap_packing(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    """A price by which rows are packed wherever that is possible at all."""
    del copy
    return 1 if any(".packed" in each.name for each in (*sources, result)) else 3


def blocks_of(block: Block) -> list[Block]:
    """A block and the bodies in it."""
    found = [block]
    for operation in block.operations:
        if isinstance(operation, Repeat):
            found += blocks_of(operation.body)
    return found


def works_of(made: MidProgram) -> list[Work]:
    """What a program computes, bodies included, in order."""
    return [
        operation.work
        for block in blocks_of(made.block)
        for operation in block.operations
        if isinstance(operation, Compute)
    ]


def copies_of(made: MidProgram) -> int:
    """How many copies a program has, bodies included."""
    return sum(
        isinstance(operation, Copy) for block in blocks_of(made.block) for operation in block.operations
    )


def refusals(made: MidProgram) -> list[str]:
    """Calls that no family makes."""
    found: list[str] = []
    for block in blocks_of(made.block):
        for operation in block.operations:
            if isinstance(operation, Compute):
                bindings = bind_all(local_calls(block, operation))
                found += [binding.reason for binding in bindings if isinstance(binding, Refusal)]
    return found


def check_rewritten(before: MidProgram, rewrite: Callable[[MidProgram], MidProgram], seed: int) -> MidProgram:
    """The rewritten program: well formed, as bindable as before, with the same ends, the same bits.

    A second time, the rewrite does the same.
    """
    assert verify(before) == ()
    after = rewrite(before)
    assert verify(after) == ()
    assert text_of_program(rewrite(before)) == text_of_program(after)
    for of in (_arguments, _results):
        assert of(after) == of(before)
    assert after.outputs == before.outputs
    assert len(refusals(after)) <= len(refusals(before))
    tensors = tensors_of(before, seed)
    wanted, found = interpret(before, tensors), interpret(after, tensors)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].tobytes() == array.tobytes(), name
    return after


def _arguments(made: MidProgram) -> list[Value]:
    return [made.block.value(argument) for argument in made.block.arguments]


def _results(made: MidProgram) -> list[tuple[Shape, TensorFormat, OwnerMap]]:
    values = [made.block.value(result) for result in made.block.results]
    return [(value.shape, value.format, value.owners) for value in values]


@st.composite
def with_fewer_outputs(draw: st.DrawFn, max_operations: int = 4) -> MidProgram:
    """A random program of which some values are read by nobody but its operations, or by nobody."""
    made = draw(programs(max_operations=max_operations))
    block = made.block
    kept = draw(
        st.lists(st.integers(0, len(block.results) - 1), min_size=1, max_size=len(block.results), unique=True)
    )
    kept = [len(block.results) - 1 - number for number in kept]
    return dataclasses.replace(
        made,
        block=dataclasses.replace(block, results=tuple(block.results[number] for number in kept)),
        outputs=tuple(made.outputs[number] for number in kept),
    )


def elementwise(
    builder: BlockBuilder, operation: Operation, *operands: MidValueId, in_place: bool = False
) -> MidValueId:
    """Element-wise work in the layout of its first operand."""
    value = builder.value(operands[0])
    return builder.compute(
        Elementwise(operation=operation),
        operands,
        [broadcast_relation(builder.value(each).shape, value.shape) for each in operands],
        shape=value.shape,
        tensor_format=value.format,
        owners=value.owners,
        aliases=(StorageAlias(result=0, operand=0),) if in_place else (),
        node="pointwise",
    )


def cast(builder: BlockBuilder, operand: MidValueId) -> MidValueId:
    """F8 codes where a value is."""
    value = builder.value(operand)
    return builder.compute(
        Cast(),
        (operand,),
        (Identity(rank=len(value.shape)),),
        shape=value.shape,
        tensor_format=recast(value.format, len(value.shape), CODES),
        owners=value.owners,
        node="cast",
    )


def anywhere(draw: st.DrawFn, builder: BlockBuilder, source: MidValueId, tile_count: int) -> MidValueId:
    """A copy to any tiles, in any coordinates."""
    value = builder.value(source)
    mapping = draw(mappings_of(value.shape))
    tensor_format, owners = draw(placements(mapping.destination_shape, value.format.precision, tile_count))
    return builder.copy(source, tensor_format=tensor_format, owners=owners, mapping=mapping, node="view")


@st.composite
def pointwise_layouts(draw: st.DrawFn, shape: Shape, tile_count: int) -> TensorLayout:
    """Grids of rows or panels, as products leave their results."""
    is_panels = draw(st.booleans())
    block = 16 if is_panels else draw(st.sampled_from([4, 8]))
    rows = draw(st.integers(1, min(4, shape[0])))
    columns = draw(st.integers(1, min(tile_count // rows, -(-shape[1] // block), 3)))
    axes = (cut(0, rows), cut(1, columns, block=block))
    return TensorLayout(
        order=AmpLeft() if is_panels else RowMajor(),
        tiling=GridTiling(axes=tuple(draw(st.permutations(axes)))),
    )


@st.composite
def chains(draw: st.DrawFn) -> MidProgram:
    """A bias, a GELU, a cast to F8 and copies, in a body or not; some values between are read by others."""
    shape = (draw(st.integers(1, 40)), draw(st.sampled_from([16, 32, 48, 80])))
    tile_count = 16
    layout = draw(pointwise_layouts(shape, tile_count))
    tensor_format = TensorFormat(precision=F16(), layout=layout)
    owner_count = layout.tiling.owner_count
    owners = draw(owner_maps(owner_count, tile_count))
    has_body = draw(st.booleans())
    outer = BlockBuilder()
    inner = BlockBuilder() if has_body else outer

    def declared(builder: BlockBuilder, name: str, of: Shape, how: TensorFormat) -> MidValueId:
        return builder.argument(Value(name=name, shape=of, format=how, owners=owners))

    x = declared(outer, "x", shape, tensor_format)
    biases = [declared(outer, f"b{number}", (shape[1],), replicated(owner_count)) for number in range(2)]
    h, bias = x, biases[0]
    if has_body:
        h = declared(inner, "h", shape, tensor_format)
        bias = declared(inner, "bias", (shape[1],), replicated(owner_count))
    near = inner.copy(h, tensor_format=tensor_format, owners=owners, node="near")
    total = elementwise(inner, Operation.ADD, near, bias, in_place=draw(st.booleans()))
    curved = elementwise(inner, Operation.GELU, total, in_place=draw(st.booleans()))
    last = curved
    if draw(st.integers(0, 3)):
        last = cast(inner, curved)
        if draw(st.booleans()):
            last = anywhere(draw, inner, last, tile_count)
    taken = {
        operation.operands[0]
        for operation in inner.finish(()).operations
        if isinstance(operation, Compute) and operation.aliases
    }
    if not has_body:
        others = [each for each in (total, curved) if each not in taken and draw(st.integers(0, 4)) == 0]
        results = list(dict.fromkeys([last, *others]))
        return finished(outer, results, tile_count)
    # The body carries the GELU on; what is cast is dropped there, unless it is read.
    kept = curved
    if kept in taken or draw(st.booleans()):
        kept = inner.copy(curved, tensor_format=tensor_format, owners=owners, node="carry")
    made = outer.repeat(
        2,
        carried=(outer.copy(x, tensor_format=tensor_format, owners=owners, node="start"),),
        invariants=(),
        sequences=(biases,),
        body=inner.finish((kept,)),
        node="repeat",
    )
    return finished(outer, list(made), tile_count)


def finished(builder: BlockBuilder, results: Sequence[MidValueId], tile_count: int) -> MidProgram:
    """A program of a block whose first argument is its input."""
    return program(
        builder.finish(results),
        name="chain",
        tile_count=tile_count,
        input_count=1,
        outputs=[f"out{number}" for number in range(len(results))],
    )


@st.composite
def copied_twice(draw: st.DrawFn) -> MidProgram:
    """Equal and nearly equal copies and casts of one value, read by others that may take their storage."""
    shape = (draw(st.integers(1, 24)), draw(st.sampled_from([16, 32, 64])))
    builder = BlockBuilder()
    tensor_format, owners = draw(placements(shape, F16(), TILES))
    x = builder.argument(Value(name="x", shape=shape, format=tensor_format, owners=owners))
    layout = draw(pointwise_layouts(shape, TILES))
    near = TensorFormat(precision=F16(), layout=layout)
    where = [draw(owner_maps(layout.tiling.owner_count, TILES)) for _ in range(2)]
    results: list[MidValueId] = []
    for _ in range(draw(st.integers(2, 4))):
        value = builder.copy(x, tensor_format=near, owners=draw(st.sampled_from(where)), node="copy")
        match draw(st.integers(0, 3)):
            case 0:
                results.append(value)
            case 1:
                results.append(cast(builder, value))
            case 2:
                results.append(elementwise(builder, Operation.GELU, value, in_place=draw(st.booleans())))
            case _:
                results.append(anywhere(draw, builder, cast(builder, value), TILES))
    return finished(builder, results, TILES)


@st.composite
def views_of_views(draw: st.DrawFn) -> MidProgram:
    """Copies of copies, some of which others read."""
    shape = (draw(st.integers(1, 12)), draw(st.sampled_from([4, 16, 24])))
    builder = BlockBuilder()
    tensor_format, owners = draw(placements(shape, F16(), TILES))
    x = builder.argument(Value(name="x", shape=shape, format=tensor_format, owners=owners))
    made = [x]
    for _ in range(draw(st.integers(2, 5))):
        made.append(
            anywhere(draw, builder, made[draw(st.integers(max(0, len(made) - 2), len(made) - 1))], TILES)
        )
    results = [made[-1], *(each for each in made[1:-1] if draw(st.integers(0, 3)) == 0)]
    return finished(builder, results, TILES)


@st.composite
def donors(draw: st.DrawFn) -> MidProgram:
    """Casts of values long enough to lend their storage; some are read later, or lie in another's."""
    shape = (draw(st.integers(8, 64)), draw(st.sampled_from([32, 64, 128])))
    builder = BlockBuilder()
    layout = draw(pointwise_layouts(shape, 4))
    tensor_format = TensorFormat(precision=F16(), layout=layout)
    owners = draw(owner_maps(layout.tiling.owner_count, TILES))
    x = builder.argument(Value(name="x", shape=shape, format=tensor_format, owners=owners))
    value = x
    if draw(st.integers(0, 3)):
        value = builder.copy(x, tensor_format=tensor_format, owners=owners, node="near")
    if draw(st.booleans()):
        value = elementwise(builder, Operation.GELU, value, in_place=value != x and draw(st.booleans()))
    codes = cast(builder, value)
    results = [codes]
    if draw(st.booleans()):
        value_of_codes = builder.value(codes)
        results = [
            builder.copy(
                codes, tensor_format=value_of_codes.format, owners=OwnerMap(tile_count=TILES), node="away"
            )
        ]
    if draw(st.integers(0, 3)) == 0:
        results.append(elementwise(builder, Operation.GELU, value))
    return finished(builder, results, TILES)


@st.composite
def two_reductions(draw: st.DrawFn) -> MidProgram:
    """Products of one operand with several weights, summed on tiles that the sums have in common."""
    m, k, n = draw(st.integers(1, 9)), draw(st.sampled_from([33, 64])), draw(st.sampled_from([16, 48]))
    builder = BlockBuilder()
    everywhere = OwnerMap(tile_count=TILES)
    x = builder.argument(Value(name="x", shape=(m, k), format=grid_format(RowMajor()), owners=everywhere))
    results: list[MidValueId] = []
    count = draw(st.integers(2, 4))
    weights = [
        builder.argument(
            Value(name=f"w{number}", shape=(k, n), format=grid_format(RowMajor()), owners=everywhere)
        )
        for number in range(count)
    ]
    for weight in weights:
        partials = parallel_product(
            builder, x, weight, owners=everywhere, rows=1, columns=1, parts=2, node="product"
        )
        pieces = draw(st.integers(1, min(m, 3)))
        total = reduced(
            builder,
            partials,
            tensor_format=grid_format(AmpLeft(), (cut(0, pieces), cut(1, 1, block=16))),
            owners=draw(owner_maps(pieces, TILES)),
            node="sum",
        )
        match draw(st.integers(0, 3)):
            case 0:
                results.append(total)
            case 1:
                results.append(elementwise(builder, Operation.GELU, total, in_place=draw(st.booleans())))
            case 2:
                value = builder.value(total)
                bias = builder.argument(
                    Value(name=f"b{len(results)}", shape=(n,), format=replicated(pieces), owners=value.owners)
                )
                results.append(elementwise(builder, Operation.BIAS_GELU, total, bias))
            case _:
                results.append(anywhere(draw, builder, total, TILES))
    return finished(builder, results, TILES)


def seeds() -> st.SearchStrategy[int]:
    """Of the contents of arguments."""
    return st.integers(0, 1 << 32)


def one_chain() -> MidProgram:
    """Bias, GELU and cast to F8 of panels on two tiles."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=2)
    tensor_format = grid_format(AmpLeft(), (cut(0, 1), cut(1, 2, block=32)))
    x = builder.argument(Value(name="x", shape=(8, 64), format=tensor_format, owners=owners))
    bias = builder.argument(
        Value(name="bias", shape=(64,), format=grid_format(RowMajor(), (cut(0, 2, block=32),)), owners=owners)
    )
    total = elementwise(builder, Operation.ADD, x, bias)
    curved = elementwise(builder, Operation.GELU, total, in_place=True)
    return finished(builder, [cast(builder, curved)], 2)


def cast_far_away() -> MidProgram:
    """A cast on the tiles that a copy goes to."""
    builder = BlockBuilder()
    here = OwnerMap(tile_count=4)
    x = builder.argument(
        Value(
            name="x",
            shape=(8, 64),
            format=grid_format(AmpLeft(), (cut(0, 2), cut(1, 1, block=32))),
            owners=here,
        )
    )
    far = builder.copy(
        x,
        tensor_format=grid_format(AmpLeft(), (cut(0, 1), cut(1, 1, block=32)), replicas=4),
        owners=here,
    )
    return finished(builder, [cast(builder, far)], 4)


def precisions_of_copies(made: MidProgram) -> list[Precision]:
    """What each copy of a program moves."""
    return [
        made.block.value(operation.result).format.precision
        for operation in made.block.operations
        if isinstance(operation, Copy)
    ]


def groups_of(made: MidProgram) -> list[list[MidValueId]]:
    """Results of sums that stand one behind the other."""
    groups: list[list[MidValueId]] = [[]]
    for operation in made.block.operations:
        if isinstance(operation, Compute) and isinstance(operation.work, Sum):
            groups[-1].append(operation.results[0])
        elif groups[-1]:
            groups.append([])
    return [group for group in groups if group]


def tiles_of_result(made: MidProgram, number: MidValueId) -> list[int]:
    """The tiles of a value."""
    value = made.block.value(number)
    return [int(tile) for tile in value.owners.tiles(value.distribution.owner_count)]


@st.composite
def row_copies(draw: st.DrawFn) -> MidProgram:
    """Rows on a few tiles that many tiles read as panels, or as panels of the transposed."""
    shape = (draw(st.sampled_from([16, 64, 320])), draw(st.sampled_from([64, 256])))
    builder = BlockBuilder()
    holders = draw(st.integers(1, 3))
    source = draw(st.sampled_from([RowMajor(), RowMajor(), AmpLeft()]))
    order = draw(st.sampled_from([AmpLeft(), AmpTransposedLeft(), AmpRight()]))
    x = builder.argument(
        Value(
            name="x",
            shape=shape,
            format=grid_format(source, (cut(0, holders, block=16), cut(1, 1, block=16))),
            owners=OwnerMap(tile_count=64),
        )
    )
    axes = (cut(0, draw(st.integers(1, 4)), block=16), cut(1, draw(st.integers(1, 4)), block=16))
    near = builder.copy(
        x,
        tensor_format=grid_format(order, axes, replicas=draw(st.sampled_from([1, 4]))),
        owners=OwnerMap(tile_count=64),
        node="near",
    )
    return finished(builder, [near], 64)


def check_on_tiles(made: MidProgram, seed: int) -> None:
    """Expands a program, and runs that on bytes: the same outputs as the interpreter's."""
    low = expand(made)
    assert list(verify_low(low)) == []
    tensors = tensors_of(made, seed)
    execution = Execution(low)
    names = [argument.name for argument in _arguments(made)]
    execution.upload({name: tensors[name] for name in names[made.input_count :]})
    found = execution.run({name: tensors[name] for name in names[: made.input_count]})
    for name, array in interpret(made, tensors).items():
        assert found[name].tobytes() == array.tobytes(), name
