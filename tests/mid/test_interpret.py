"""The interpreter of whole-device programs against a dense oracle, and what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, AmpRight, AmpTransposedLeft, AmpTransposedRight, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.product import matrix_product
from compiler.geometry.relation import ProductOperand, Side
from compiler.kernels.gemm.binding import Orientation
from compiler.mid.build import BlockBuilder, program, renumbered
from compiler.mid.interpret import Elements, interpret
from compiler.mid.ir import Block, Compute, MidProgram, MidValueId, Repeat, Value, operands_of, results_of
from compiler.mid.local import local_calls
from compiler.mid.order import in_definition_order
from compiler.mid.verify import verify
from compiler.mid.work import Product, Sum
from tests.mid.dense import chained, evaluate
from tests.mid.examples import small_program, with_value
from tests.mid.machine import check_on_bytes
from tests.mid.products import cut, grid_format, parallel_product, reduced
from tests.mid.strategies import programs, tensors_of


@given(made=programs(), seed=st.integers(0, 1 << 32))
def test_random_programs_are_what_they_are_on_whole_tensors(made: MidProgram, seed: int) -> None:
    """Bit for bit, every value of the program (ML-20, ML-14, RD-01, ML-38)."""
    assert verify(made) == ()
    tensors = tensors_of(made, seed)
    found, wanted = interpret(made, tensors), evaluate(made, tensors)
    assert list(found) == list(wanted)
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype
        assert found[name].shape == array.shape
        assert found[name].tobytes() == array.tobytes(), name


@given(made=programs(has_repeats=False), seed=st.integers(0, 1 << 32))
def test_kernels_on_bytes_give_the_same_numbers(made: MidProgram, seed: int) -> None:
    """Shard by shard, each call as ``local`` makes it (OI-05)."""
    assert verify(made) == ()
    event(f"on kernels: {sorted(set(check_on_bytes(made, tensors_of(made, seed))))}")


@st.composite
def reductions(draw: st.DrawFn) -> MidProgram:
    """A parallel product and its sum, scattered over the tiles that multiplied or over others."""
    m, n = draw(st.integers(1, 9)), draw(st.sampled_from([5, 16, 33, 48]))
    k = draw(st.sampled_from([33, 40, 70, 96]))
    rows, columns, parts = draw(st.integers(1, min(m, 3))), draw(st.integers(1, 2)), draw(st.integers(2, 3))
    tiles = draw(st.integers(rows * columns * parts, 24))
    everywhere = OwnerMap(tile_count=tiles)
    builder = BlockBuilder()

    def argument(name: str, shape: tuple[int, int]) -> MidValueId:
        return builder.argument(
            Value(name=name, shape=shape, format=grid_format(RowMajor()), owners=everywhere)
        )

    product = parallel_product(
        builder,
        argument("x", (m, k)),
        argument("w", (k, n)),
        owners=everywhere,
        rows=rows,
        columns=columns,
        parts=parts,
        node="up",
    )
    summed = product
    if draw(st.integers(0, 3)) == 0:
        # Several partials on a tile: none of them is its own.
        elsewhere = grid_format(
            RowMajor(), (cut(0, draw(st.integers(1, 2))), cut(1, draw(st.integers(1, m))))
        )
        summed = builder.copy(
            product,
            tensor_format=elsewhere
            if elsewhere.layout.tiling.owner_count <= tiles
            else grid_format(RowMajor()),
            owners=everywhere,
            node="up",
        )
    by_rows = draw(st.booleans())
    pieces = draw(st.integers(1, m if by_rows else -(-n // 16)))
    order = draw(st.sampled_from([AmpLeft(), RowMajor()]))
    block = 16 if isinstance(order, AmpLeft) else 4
    scattered = grid_format(
        order,
        (cut(0, pieces if by_rows else rows), cut(1, columns if by_rows else pieces, block=block)),
    )
    owners = everywhere
    if scattered.layout.tiling.owner_count > tiles:
        scattered = grid_format(order, (cut(1, 1, block=block),))
    if draw(st.booleans()):
        owners = OwnerMap(tile_count=tiles, rotation=draw(st.integers(0, tiles - 1)))
    total = reduced(
        builder,
        summed,
        tensor_format=scattered,
        owners=owners,
        batch=draw(st.one_of(st.none(), st.integers(1, 3))),
        node="up",
    )
    return program(
        builder.finish((total, product)), name="sum", tile_count=tiles, input_count=1, outputs=("y", "p")
    )


@given(made=reductions(), seed=st.integers(0, 1 << 32))
def test_sums_begin_with_the_own_partial_where_it_covers_the_shard(made: MidProgram, seed: int) -> None:
    """By element, by kernel and by interpreter; whatever is brought at a time (RD-01, ML-38)."""
    assert verify(made) == ()
    tensors = tensors_of(made, seed)
    found, wanted = interpret(made, tensors), evaluate(made, tensors)
    assert found["y"].tobytes() == wanted["y"].tobytes()
    calls = local_calls(made.block, sum_of(made))
    assert calls.own_partial is not None
    assert calls.is_in_place is not None
    event(f"own: {bool((calls.own_partial >= 0).any())}, in place: {bool(calls.is_in_place.any())}")
    assert check_on_bytes(made, tensors) == ["Product", "Sum"]


def test_a_tile_with_several_partials_has_none_of_its_own() -> None:
    """Then sums are in the order of partials; of one partial for a tile, each begins with its own."""
    owners = OwnerMap(tile_count=4)
    for holders, own in ((1, [-1] * 4), (2, [-1] * 4), (4, [0, 1, 2, 3])):
        builder = BlockBuilder()
        partials = builder.argument(
            Value(
                name="p", shape=(4, 8, 16), format=grid_format(RowMajor(), (cut(0, holders),)), owners=owners
            )
        )
        total = reduced(
            builder, partials, tensor_format=grid_format(RowMajor(), (cut(0, 4),)), owners=owners, node="s"
        )
        made = program(builder.finish((total,)), name="s", tile_count=4, input_count=1, outputs=("y",))
        assert verify(made) == ()
        calls = local_calls(made.block, sum_of(made))
        assert calls.own_partial is not None
        assert calls.own_partial.tolist() == own
        tensors = tensors_of(made, holders)
        assert interpret(made, tensors)["y"].tobytes() == evaluate(made, tensors)["y"].tobytes()
        assert check_on_bytes(made, tensors) == ["Sum"]


def sum_of(made: MidProgram) -> Compute:
    """The only sum of a program."""
    (found,) = (
        operation
        for operation in made.block.operations
        if isinstance(operation, Compute) and isinstance(operation.work, Sum)
    )
    return found


@pytest.mark.parametrize("orientation", Orientation)
@pytest.mark.parametrize("batch", [(1,), (3,), (2, 3)])
def test_batches_and_both_orientations(orientation: Orientation, batch: tuple[int, ...]) -> None:
    """A call for each matrix of a tile's batch; the result of a swapped product lies transposed."""
    m, k, n = 20, 40, 32
    is_swapped = orientation is Orientation.SWAPPED
    tiles = OwnerMap(tile_count=4)
    builder = BlockBuilder()
    shapes = ((*batch, m, k), (*batch, k, n), (*batch, m, n))
    orders = (
        (AmpTransposedRight(), AmpTransposedLeft(), AmpTransposedLeft())
        if is_swapped
        else (AmpLeft(), AmpRight(), AmpLeft())
    )
    # Where the left operand is the weights, its rows are the columns of the unit.
    blocks = ((16, 16), (16, 1), (16, 1)) if is_swapped else ((1, 16), (16, 16), (1, 16))
    formats = [
        grid_format(
            order,
            (cut(-2, 1, block=rows), cut(-1, 1, block=columns)),
            replicas=4,
            is_interleaved=number == 2,
        )
        for number, (order, (rows, columns)) in enumerate(zip(orders, blocks, strict=True))
    ]
    x, w = (
        builder.argument(Value(name=name, shape=shape, format=tensor_format, owners=tiles))
        for name, shape, tensor_format in zip("xw", shapes, formats, strict=False)
    )
    axes = matrix_product(shapes[0], shapes[1])
    y = builder.compute(
        Product(axes=axes, orientation=orientation),
        (x, w),
        (ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT)),
        shape=shapes[2],
        tensor_format=formats[2],
        owners=tiles,
    )
    made = program(builder.finish((y,)), name="batches", tile_count=4, input_count=1, outputs=("y",))
    assert verify(made) == ()
    (compute,) = (each for each in made.block.operations if isinstance(each, Compute))
    calls = local_calls(made.block, compute)
    matrices = math.prod(batch)
    assert calls.owner.tolist() == [owner for owner in range(4) for _ in range(matrices)]
    assert len(calls.requests) == matrices
    # In ascending order: the last axis of the batch is the fastest.
    firsts = [
        calls.requests[number].operands[0].region.starts[:-2] for number in map(int, calls.request[:matrices])
    ]
    assert firsts == list(np.ndindex(batch))
    tensors = tensors_of(made, matrices)
    assert check_on_bytes(made, tensors) == ["Product"]
    found = interpret(made, tensors)["y"]
    for number in np.ndindex(batch):
        left, right = (tensors[name][number].astype(np.float64) for name in "xw")
        sums = np.zeros((m, n), dtype=np.float16)
        assert found[number].tobytes() == chained(left, right, sums, 16, None).tobytes()


def test_a_tile_without_what_it_reads_is_told() -> None:
    """Though the program was not verified."""
    made = small_program()
    elsewhere = OwnerMap(tile_count=4, rotation=1)
    moved = replace(made, block=with_value(made.block, "x", lambda x: replace(x, owners=elsewhere)))
    with pytest.raises(ValueError, match="a tile does not hold what it reads of x"):
        interpret(moved, tensors_of(moved, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": None}, "x has no values"),
        ({"x": np.zeros((8, 31), dtype=np.float16)}, "x is float16[8,32], the values are float16[8,31]"),
        ({"x": np.zeros((8, 32), dtype=np.float32)}, "x is float16[8,32], the values are float32[8,32]"),
    ],
)
def test_wrong_tensors_are_refused(change: dict[str, Elements | None], message: str) -> None:
    """With what was expected."""
    made = small_program()
    tensors = {
        name: array
        for name, array in {**tensors_of(made, 0), **change}.items()
        if isinstance(array, np.ndarray)
    }
    with pytest.raises(ValueError, match="x") as caught:
        interpret(made, tensors)
    assert str(caught.value) == message


def unrolled(repeat: Repeat, builder: BlockBuilder) -> tuple[MidValueId, ...]:
    """The iterations of a Repeat, one after the other."""
    carried = repeat.carried
    for iteration in range(repeat.count):
        members = tuple(sequence[iteration] for sequence in repeat.sequences)
        carried = builder.insert(repeat.body, (*carried, *repeat.invariants, *members))
    return carried


@given(made=programs(), seed=st.integers(0, 1 << 32))
def test_a_repeat_is_its_iterations_one_after_the_other(made: MidProgram, seed: int) -> None:
    """Built with ``insert``, which means the same wherever it is put (ML-34, ML-28)."""
    builder = BlockBuilder()
    numbers: dict[MidValueId, MidValueId] = {}
    for argument in made.block.arguments:
        numbers[argument] = builder.argument(made.block.value(argument))
    for operation in made.block.operations:
        if isinstance(operation, Repeat):
            renamed = renumbered(replace(operation, results=()), numbers)
            assert isinstance(renamed, Repeat)
            ends = unrolled(renamed, builder)
        else:
            read = tuple(dict.fromkeys(operands_of(operation)))
            block = Block(
                values=made.block.values,
                arguments=read,
                operations=(operation,),
                results=results_of(operation),
            )
            ends = builder.insert(in_definition_order(block), tuple(numbers[value] for value in read))
        numbers.update(zip(results_of(operation), ends, strict=True))
    flat = replace(made, block=builder.finish(tuple(numbers[result] for result in made.block.results)))
    assert verify(flat) == ()
    tensors = tensors_of(made, seed)
    found, wanted = interpret(flat, tensors), interpret(made, tensors)
    assert all(found[name].tobytes() == array.tobytes() for name, array in wanted.items())
