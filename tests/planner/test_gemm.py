"""The constructor of products: well formed, bindable, and right, whatever is chosen."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.geometry.distribution import distribute
from compiler.geometry.mapping import text_of_shape
from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Mode
from compiler.mid.ir import Compute, Copy
from compiler.mid.work import Cast, Product, Sum
from compiler.planner.gemm import input_home
from compiler.planner.gemm_choice import Algorithm, GemmChoice, Residency
from compiler.planner.gemm_layout import fault
from compiler.planner.gemm_problem import GemmProblem
from tests.planner.products import (
    SIDES,
    Built,
    build,
    choices,
    computed,
    expected,
    faults,
    problem_of,
    problems,
    tensors,
)


@given(data=st.data(), problem=problems())
def test_every_choice_builds_what_tiles_can_do(data: st.DataObject, problem: GemmProblem) -> None:
    """ML-06, ML-26, PR-26: well-formed mid, every call of which a family binds, equal to the reference."""
    choice = data.draw(choices(problem))
    assume(fault(problem, choice) is None)
    built = build(
        problem,
        choice,
        cast_before_copies=data.draw(st.booleans()),
        elsewhere=frozenset(side for side in SIDES if data.draw(st.integers(0, 2)) == 0),
    )
    assert faults(built) == []
    assert_right(problem, built)


def test_parallel_reductions_are_two_copies_a_product_and_a_sum() -> None:
    """ML-08, ML-10, ML-38: partials have an axis in front, and the product says where K is cut."""
    problem = problem_of(18, 130, 40, tile_count=64, parameter=None)
    built = build(
        problem,
        GemmChoice(
            algorithm=Algorithm.PARALLEL_REDUCTION,
            row_parts=3,
            column_parts=2,
            inner_parts=4,
            scatter_rows=2,
            scatter_columns=2,
        ),
    )
    assert kinds(built) == [Copy, Copy, Product, Sum]
    product = built.program.block.operations[2]
    assert isinstance(product, Compute)
    assert isinstance(product.work, Product)
    assert product.work.parts == ((0, 48), (48, 80), (80, 112), (112, 130))
    partials = built.program.block.value(product.results[0])
    assert text_of_shape(partials.shape) == "[4,18,40]"
    assert faults(built) == []


def test_output_stationary_products_accumulate_over_bounded_panels() -> None:
    """ML-09, ML-17: K in blocks, each brought by itself, and each product on top of the one before."""
    problem = problem_of(18, 130, 40, tile_count=6)
    built = build(
        problem,
        GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=3, column_parts=2, inner_block=64),
    )
    assert kinds(built) == [Copy, Copy, Product] * 3
    products = [operation for operation in built.program.block.operations if isinstance(operation, Compute)]
    modes = [product.work.mode for product in products if isinstance(product.work, Product)]
    assert modes == [Mode.INITIALIZE, Mode.ACCUMULATE, Mode.ACCUMULATE]
    assert [len(product.aliases) for product in products] == [0, 1, 1]
    assert faults(built) == []


@pytest.mark.parametrize("algorithm", Algorithm)
def test_resident_parameters_are_not_moved(algorithm: Algorithm) -> None:
    """A parameter that nothing else reads is declared where it is multiplied."""
    inner_parts = 1 if algorithm is Algorithm.OUTPUT_STATIONARY else 2
    for side in SIDES:
        problem = problem_of(9, 40, 33, tile_count=16, parameter=side)
        built = build(
            problem,
            GemmChoice(
                algorithm=algorithm,
                row_parts=2,
                column_parts=3,
                inner_parts=inner_parts,
                parameter_residency=Residency.RESIDENT,
            ),
        )
        assert kinds(built).count(Copy) == 1
        assert_right(problem, built)


@pytest.mark.parametrize("is_before", [False, True])
def test_casts_are_before_or_after_copies(is_before: bool) -> None:
    """ML-14, ML-18, ML-19: the same numbers either way, with casts as computations of their own."""
    precision = F8(scale_exponent=-3)
    problem = problem_of(18, 64, 40, tile_count=6, precision=precision, left_precision=F16())
    choice = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=3, column_parts=2)
    built = build(problem, choice, cast_before_copies=is_before)
    assert kinds(built) == ([Cast, Copy, Copy, Product] if is_before else [Copy, Cast, Copy, Product])
    assert faults(built) == []
    assert_right(problem, built)


@pytest.mark.parametrize("tile_count", [1, 4, 16])
@pytest.mark.parametrize("batch", [1, 3])
def test_gemm_smoke(batch: int, tile_count: int) -> None:
    """The smallest model, alone and as a batch of three: [b, T, 64] times [b, 64, 64 T]."""
    problem = problem_of(tile_count, 64, 64 * tile_count, tile_count=tile_count, batch=(batch,))
    choice = GemmChoice(
        algorithm=Algorithm.OUTPUT_STATIONARY,
        batch_parts=min(batch, tile_count),
        column_parts=max(1, tile_count // 4),
        parameter_residency=Residency.RESIDENT,
    )
    built = build(problem, choice)
    assert faults(built) == []
    assert_right(problem, built)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"row_parts": 5}, "5 tiles are needed, 4 are there"),
        ({"row_parts": 4}, "empty row shard: 4 parts of 3 x 1"),
        ({"column_parts": 4}, "empty column shard: 4 parts of 3 x 16"),
        ({"inner_block": 24}, "blocks of 24 are no multiple of 16"),
        ({"inner_block": 48}, "one block of 48 is all of K"),
        ({"parameter_residency": Residency.RESIDENT}, "no operand is a parameter in the precision"),
        (
            {
                "algorithm": Algorithm.PARALLEL_REDUCTION,
                "inner_parts": 4,
            },
            "empty K shard: 4 parts of 3 x 16",
        ),
    ],
)
def test_unsuitable_choices_say_why(fields: dict[str, object], reason: str) -> None:
    """PR-26: a choice is checked against the problem before anything is appended."""
    problem = problem_of(3, 48, 48, tile_count=4, parameter=None)
    choice = GemmChoice.model_validate({"algorithm": Algorithm.OUTPUT_STATIONARY, **fields})
    found = fault(problem, choice)
    assert found is not None
    assert reason in found
    with pytest.raises(ValueError, match="product: "):
        build(problem, choice)


def test_arguments_that_are_merged_say_whether_the_host_can_store_them() -> None:
    """[2, 9, K] as 18 rows is the same sequence; two batches and their rows as [batch, rows] too."""
    problem = problem_of(9, 40, 33, tile_count=16, left_batch=(2,), right_batch=())
    choice = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=4, column_parts=3)
    built = build(problem, choice)
    home = built.homes[Side.LEFT]
    assert home.shape == (18, 40)
    assert home.is_in_sequence
    turned = problem_of(
        9,
        40,
        33,
        tile_count=16,
        left_precision=F16(),
        precision=F8(),
        right_precision=F8(),
        transpose_left=True,
    )
    assert not build(turned, choice).homes[Side.LEFT].is_in_sequence


def kinds(built: Built) -> list[type]:
    """What the operations are, in order."""
    return [
        type(operation.work) if isinstance(operation, Compute) else type(operation)
        for operation in built.program.block.operations
    ]


def assert_right(problem: GemmProblem, built: Built) -> None:
    """The program gives what the graph means, within the tolerance of products."""
    arrays = tensors(problem, seed=1)
    wanted = expected(problem, arrays)
    error = np.abs(computed(built, arrays) - wanted)
    assert (error <= 0.03 + 0.05 * np.abs(wanted)).all()


@pytest.mark.parametrize(("columns", "parts"), [(1152, 15), (4304, 16), (64, 2)])
def test_homes_of_weights_that_come_in_blocks_are_spread(columns: int, parts: int) -> None:
    """Where a product is chosen for its little memory, no tile keeps much more than the mean of all."""
    problem = problem_of(729, 4304, columns, tile_count=64)
    choice = GemmChoice(
        algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=4, column_parts=parts, inner_block=16
    )
    home = input_home(choice, problem, Side.RIGHT)
    distribution = distribute(home.shape, home.format)
    largest = int(distribution.storage_bytes.max())
    mean = 2 * 4304 * columns / (4 * parts)
    assert largest <= 1.1 * mean
    assert distribution.owner_count <= 4 * parts
