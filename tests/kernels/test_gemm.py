"""Products in the simulator against a scalar reference of their own, their semantics and their bindings."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    BlockMajor,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, decode_f143, encode_f143
from compiler.geometry.product import matrix_product
from compiler.geometry.relation import Identity
from compiler.kernels import registry
from compiler.kernels.contract import (
    Alias,
    Binding,
    Operand,
    PaddingState,
    Reference,
    Refusal,
    Result,
    arguments_at,
    check_addresses,
)
from compiler.kernels.gemm.binding import GemmParameters, Mode, Orientation, Rounding
from tests.kernels.machine import INTERLEAVED, MANY, STANDARD, Bytes, bound, new_tile, refused, run
from tests.kernels.products import (
    LEFT,
    RESULT,
    WIDE_WEIGHTS,
    is_close,
    places,
    plain,
    product,
    reference,
    storages,
)
from tests.kernels.tensors import Halves, loaded, normal_halves, operand, stored


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@MANY
@given(
    rows=st.integers(1, 27),
    k_groups=st.integers(1, 3),
    column_groups=st.integers(1, 3),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 15), st.integers(0, 15)),
    seed=st.integers(0, 1 << 16),
)
def test_products_equal_their_semantics_in_any_shape(
    mode: Mode,
    is_wide: bool,
    rows: int,
    k_groups: int,
    column_groups: int,
    padding: tuple[int, int, int],
    seed: int,
) -> None:
    """KB-01 .. KB-05; lessons 1, 4, 6, 7: poison, tails, smallest alignment, exact accesses."""
    k, columns = 16 * k_groups, 16 * column_groups
    logical = (max(1, rows - padding[0]), k - padding[1], columns - padding[2])
    binding = plain(rows, k, columns, mode=mode, is_wide=is_wide, logical=logical)
    random = np.random.default_rng(seed)
    left, right, start = (
        normal_halves(random, (logical[0], logical[1]), 0.5),
        normal_halves(random, (logical[1], logical[2]), 0.5),
        normal_halves(random, (logical[0], logical[2]), 0.5),
    )
    geometry = storages(binding)
    contents = {
        Operand(0): stored(geometry[1], left),
        Operand(1): stored(geometry[2], right),
        Result(0): stored(geometry[0], start),
    }
    outcome = run(binding, places(binding), contents, seed=seed)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.flops == 2 * logical[0] * logical[1] * logical[2]
    found = loaded(geometry[0], outcome.memory, places(binding)[0]).astype(np.float64)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    if mode is Mode.ACCUMULATE:
        exact += start
    assert is_close(found, exact)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(("rows", "k", "columns"), [(1, 16, 16), (2, 32, 16), (5, 48, 16), (7, 32, 32)])
def test_semantics_are_the_pinned_definition(rows: int, k: int, columns: int, mode: Mode) -> None:
    random = np.random.default_rng(rows)
    left, right = normal_halves(random, (rows, k)), normal_halves(random, (k, columns))
    start = normal_halves(random, (rows, columns))
    binding = plain(rows, k, columns, mode=mode)
    result = storages(binding)[0]
    outcome = run(
        binding,
        places(binding),
        {
            Operand(0): stored(operand(AmpLeft(), (rows, k)), left),
            Operand(1): stored(operand(AmpRight(), (k, columns)), right),
            Result(0): stored(result, start),
        },
    )
    expected = reference(left, right, start if mode is Mode.ACCUMULATE else np.zeros_like(start))
    found = loaded(result, outcome.memory, RESULT)
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))


def check_numbers(
    binding: Binding, left: Halves, right: Halves, expected: npt.NDArray[np.float64], addresses: list[int]
) -> None:
    """Run a product of values [logical extents of each operand] and compare its result with ``expected``."""
    result, left_storage, right_storage = storages(binding)
    contents = {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)}
    outcome = run(binding, addresses, contents)
    found = loaded(result, outcome.memory, addresses[0]).astype(np.float64)
    assert np.allclose(found.reshape(expected.shape), expected, rtol=0.01, atol=0.05)


def test_one_matrix_of_a_batch_is_a_slice_of_panels() -> None:
    """AMP-left storage of a batch interleaves its matrices panel by panel: rows of one are a stride apart."""
    random = np.random.default_rng(1)
    batch, rows, k, columns, index = 3, 7, 32, 48, 1
    axes = matrix_product((batch, rows, k), (batch, k, columns))
    here = (index, index + 1)
    binding = bound(
        product(
            operand(
                AmpLeft(), (batch, rows, columns), region=(here, (0, rows), (0, columns)), is_interleaved=True
            ),
            operand(AmpLeft(), (batch, rows, k), region=(here, (0, rows), (0, k))),
            operand(AmpRight(), (batch, k, columns), region=(here, (0, k), (0, columns))),
            GemmParameters(mode=Mode.INITIALIZE),
            axes,
        )
    )
    left, right = normal_halves(random, (1, rows, k)), normal_halves(random, (1, k, columns))
    expected = left.astype(np.float64) @ right.astype(np.float64)
    check_numbers(binding, left, right, expected, [INTERLEAVED, STANDARD, 0x70000])


def test_a_block_of_k_and_columns_of_larger_weights() -> None:
    random = np.random.default_rng(2)
    rows, k, columns = 9, 64, 64
    binding = bound(
        product(
            operand(AmpLeft(), (rows, columns), region=((2, 9), (16, 48)), is_interleaved=True),
            operand(AmpLeft(), (rows, k), region=((1, 8), (16, 48))),
            operand(BlockMajor(row_block=k, column_block=16), (k, columns), region=((16, 48), (32, 64))),
            GemmParameters(mode=Mode.INITIALIZE),
        )
    )
    left, right = normal_halves(random, (7, 32)), normal_halves(random, (32, 32))
    expected = left.astype(np.float64) @ right.astype(np.float64)
    check_numbers(binding, left, right, expected, [INTERLEAVED, STANDARD, 0x70000])


def test_keys_of_attention_are_weights_as_they_are() -> None:
    """Scores: queries times transposed keys, which are stored row by row of their panels."""
    random = np.random.default_rng(3)
    queries, keys, channels = 5, 32, 48
    axes = matrix_product((queries, channels), (keys, channels), transpose_right=True)
    binding = bound(
        product(
            operand(AmpLeft(), (queries, keys), is_interleaved=True),
            operand(AmpLeft(), (queries, channels)),
            operand(AmpTransposedRight(), (keys, channels), is_interleaved=True),
            GemmParameters(mode=Mode.INITIALIZE),
            axes,
        )
    )
    left, right = normal_halves(random, (queries, channels)), normal_halves(random, (keys, channels))
    expected = left.astype(np.float64) @ right.astype(np.float64).T
    check_numbers(binding, left, right, expected, [INTERLEAVED, STANDARD, 0xC0000])


def test_the_swapped_orientation_computes_the_transpose() -> None:
    """MO-02: the family keeps its register order, result, AMP left, weights, whatever the operands are."""
    random = np.random.default_rng(4)
    rows, k, columns = 32, 48, 13
    binding = bound(
        product(
            operand(AmpTransposedLeft(), (rows, columns), is_interleaved=True),
            operand(AmpTransposedRight(), (rows, k), is_interleaved=True),
            operand(AmpTransposedLeft(), (k, columns)),
            GemmParameters(mode=Mode.INITIALIZE, orientation=Orientation.SWAPPED),
        )
    )
    assert binding.separate == ((Result(0), Operand(1)),)
    left, right = normal_halves(random, (rows, k)), normal_halves(random, (k, columns))
    expected = left.astype(np.float64) @ right.astype(np.float64)
    check_numbers(binding, left, right, expected, [INTERLEAVED, 0xC0000, STANDARD])


def test_one_panel_of_k_writes_to_any_memory() -> None:
    random = np.random.default_rng(5)
    binding = bound(
        product(
            operand(AmpLeft(), (11, 32)),
            operand(AmpLeft(), (11, 16)),
            operand(AmpRight(), (16, 32)),
            GemmParameters(mode=Mode.INITIALIZE),
        )
    )
    left, right = normal_halves(random, (11, 16)), normal_halves(random, (16, 32))
    expected = left.astype(np.float64) @ right.astype(np.float64)
    check_numbers(binding, left, right, expected, [0x74000, STANDARD, 0x70000])


def test_products_chain_without_a_conversion() -> None:
    """The result of one product is the left operand of the next, padding included."""
    first = plain(5, 32, 32, logical=(4, 20, 25))
    second = plain(5, 32, 16, logical=(4, 25, 3))
    (written,) = first.results[0].padding
    for needed in second.operands[0].padding:
        assert needed.before in (written.after, PaddingState.FINITE)


@pytest.mark.parametrize("mode", list(Mode))
def test_overflow_saturates_and_is_an_exception_when_enabled(mode: Mode) -> None:
    binding = plain(3, 16, 16, mode=mode)
    left = np.full((3, 16), 200, dtype=np.float16)
    right = np.full((16, 16), 300, dtype=np.float16)
    contents = {
        Operand(0): stored(operand(AmpLeft(), (3, 16)), left),
        Operand(1): stored(operand(AmpRight(), (16, 16)), right),
    }
    outcome = run(binding, places(binding), contents, exceptions=0)
    assert (outcome.memory.read(RESULT, 96).view(np.float16) == 65504).all()
    with pytest.raises(AssertionError, match="overflow"):
        run(binding, places(binding), contents)


def test_numbers_that_are_not_finite_come_out_as_they_would() -> None:
    binding = plain(4, 16, 16)
    left = normal_halves(np.random.default_rng(6), (4, 16))
    left[1, 3], left[2, 5], left[3, 0] = np.nan, np.inf, -np.inf
    right = np.abs(normal_halves(np.random.default_rng(7), (16, 16))) + np.float16(1)
    contents = {
        Operand(0): stored(operand(AmpLeft(), (4, 16)), left),
        Operand(1): stored(operand(AmpRight(), (16, 16)), right),
    }
    outcome = run(binding, places(binding), contents, exceptions=0)
    found = outcome.memory.read(RESULT, 128).view(np.float16).reshape(4, 16)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()
    assert (found[2] == np.inf).all()
    assert (found[3] == -np.inf).all()


def test_stochastic_rounding_goes_to_a_neighbour_and_leaves_the_tile_as_it_was() -> None:
    binding = plain(12, 16, 16, rounding=Rounding.STOCHASTIC)
    random = np.random.default_rng(8)
    left, right = normal_halves(random, (12, 16)), normal_halves(random, (16, 16))
    result = operand(AmpLeft(), (12, 16))
    outcome = run(
        binding,
        places(binding),
        {
            Operand(0): stored(operand(AmpLeft(), (12, 16)), left),
            Operand(1): stored(operand(AmpRight(), (16, 16)), right),
        },
        check_numbers=False,
    )
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    found = loaded(result, outcome.memory, RESULT).astype(np.float64)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    spacing = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    assert (np.abs(found - exact) <= 1.001 * spacing).all()


@pytest.mark.parametrize("precision", [F16(), F8(scale_exponent=-6)])
@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@MANY
@given(
    rows=st.integers(1, 27),
    k_groups=st.integers(1, 2),
    column_groups=st.integers(1, 2),
    seed=st.integers(0, 1 << 16),
)
def test_stochastic_rounding_of_any_product(
    mode: Mode,
    is_wide: bool,
    precision: F16 | F8,
    rows: int,
    k_groups: int,
    column_groups: int,
    seed: int,
) -> None:
    """Each panel of K rounds to one of two neighbours."""
    k, columns = precision.micro * k_groups, 16 * column_groups
    binding = plain(
        rows,
        k,
        columns,
        mode=mode,
        is_wide=is_wide,
        rounding=Rounding.STOCHASTIC,
        precisions=(precision, precision),
    )
    random = np.random.default_rng(seed)
    exact = [random.standard_normal(shape) * 0.5 for shape in ((rows, k), (k, columns), (rows, columns))]
    result, *factors = storages(binding)
    start = exact[2].astype(np.float16)
    contents: dict[Reference, Bytes] = {Result(0): stored(result, start)}
    numbers: list[npt.NDArray[np.float64]] = []
    for index, (where, values) in enumerate(zip(factors, exact[:2], strict=True)):
        if isinstance(precision, F8):
            codes = encode_f143(values, precision.scale_exponent)
            contents[Operand(index)] = stored(where, codes)
            numbers.append(decode_f143(codes, precision.scale_exponent).astype(np.float64))
        else:
            contents[Operand(index)] = stored(where, values.astype(np.float16))
            numbers.append(values.astype(np.float16).astype(np.float64))
    outcome = run(binding, places(binding), contents, seed=seed, check_numbers=False)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    found = loaded(result, outcome.memory, RESULT).astype(np.float64)
    wanted = numbers[0] @ numbers[1] + (start if mode is Mode.ACCUMULATE else 0)
    assert is_close(found, wanted)


def test_calls_leave_nothing_behind_that_changes_the_next() -> None:
    """Accumulators, queues and registers of workers survive a call; the next begins in any slot."""
    tile = new_tile()
    random = np.random.default_rng(10)
    for rows, k, columns in ((1, 16, 16), (3, 32, 16), (12, 16, 32), (7, 48, 16), (2, 16, 16), (40, 32, 32)):
        for mode in Mode:
            binding = plain(rows, k, columns, mode=mode)
            left = normal_halves(random, (rows * k,))
            left[0] = np.nan
            outcome = run(
                binding,
                places(binding),
                {
                    Operand(0): left.view(np.uint8),
                    Operand(1): normal_halves(random, (k * columns,)).view(np.uint8),
                    Result(0): normal_halves(random, (rows * columns,)).view(np.uint8),
                },
                tile=tile,
            )
            assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


def test_results_about_one_are_accurate() -> None:
    """Unit normal rows and columns of unit length, rounded to F16 after each of 36 panels."""
    rows, k, columns = 61, 576, 32
    binding = plain(rows, k, columns)
    random = np.random.default_rng(11)
    left = normal_halves(random, (rows, k), 1.0)
    right = normal_halves(random, (k, columns), k**-0.5)
    result, left_storage, right_storage = storages(binding)
    contents = {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)}
    outcome = run(binding, (INTERLEAVED + 8, LEFT, WIDE_WEIGHTS), contents)
    found = loaded(result, outcome.memory, INTERLEAVED + 8).astype(np.float64)
    assert is_close(found, left.astype(np.float64) @ right.astype(np.float64))


POINTS = [
    # rows, K, columns, cycles of the reference kernel for interleaved weights (measured on hardware)
    (244, 64, 64, 18_576),
    (82, 96, 160, 29_508),
    (122, 80, 128, 26_232),
    (81, 80, 80, 12_402),
    (146, 48, 48, 7_122),
    (56, 64, 80, 8_076),
]


@pytest.mark.parametrize(("rows", "k", "columns", "measured"), POINTS)
@pytest.mark.parametrize("is_wide", [True, False])
def test_cycles_at_known_points(rows: int, k: int, columns: int, measured: int, is_wide: bool) -> None:
    """The formula is the simulated time within 2 %, and that is no worse than kernels known to be good."""
    binding = plain(rows, k, columns, is_wide=is_wide)
    random = np.random.default_rng(9)
    outcome = run(
        binding,
        (INTERLEAVED + 8, STANDARD + 8, 0xC0010 if is_wide else 0x74008),
        {
            Operand(0): normal_halves(random, (rows * k,)).view(np.uint8),
            Operand(1): normal_halves(random, (k * columns,), 0.2).view(np.uint8),
        },
    )
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    panels = (k // 16) * (columns // 16)
    bound_by_formula = 294 + panels * (4 * rows + 160) if is_wide else 294 + panels * (4 * rows + 266)
    assert outcome.cycles <= min(bound_by_formula, measured if is_wide else bound_by_formula)


def test_scalars_and_addresses_never_make_another_kernel() -> None:
    """Lesson 9: only what is compiled in is in the symbol."""
    bindings = [plain(rows, k, columns) for rows in (1, 6, 40) for k in (16, 48) for columns in (16, 32)]
    assert {str(binding.symbol) for binding in bindings} == {
        "gemm.initialize.precision=f16.weights=wide.rounding=nearest"
    }
    assert len({binding.arguments for binding in bindings}) == len(bindings)
    here = arguments_at(bindings[0], (RESULT, LEFT, WIDE_WEIGHTS))
    there = arguments_at(bindings[0], (RESULT + 64, LEFT + 64, WIDE_WEIGHTS + 64))
    assert [there[i] - here[i] for i in range(len(here))] == [64, 64, 64, 0, 0, 0, 0]


def test_addresses_are_checked_when_they_are_known() -> None:
    """KB-06."""
    binding = plain(5, 32, 16)
    good = (RESULT, LEFT, WIDE_WEIGHTS)
    symbol = str(binding.symbol)
    assert check_addresses(binding, good) is None
    assert check_addresses(binding, (RESULT + 4, LEFT, WIDE_WEIGHTS)) == (
        f"result 0 of {symbol} at 0x9000c is not aligned to 8 bytes"
    )
    assert check_addresses(binding, (RESULT, LEFT, WIDE_WEIGHTS + 8)) == (
        f"operand 1 of {symbol} at 0xc0018 is not aligned to 16 bytes"
    )
    assert check_addresses(binding, (0x70000, LEFT, WIDE_WEIGHTS)) == (
        f"result 0 of {symbol} at 0x70000 is not in interleaved memory"
    )
    assert check_addresses(binding, (RESULT, RESULT + 0x1000, WIDE_WEIGHTS)) == (
        f"result 0 and operand 0 of {symbol} share a memory element"
    )
    assert check_addresses(binding, (RESULT, 0x4BFF8, WIDE_WEIGHTS)) == (
        f"operand 0 of {symbol} at 0x4bff8..0x4c138 leaves SRAM"
    )


WHOLE = operand(AmpLeft(), (4, 16), is_interleaved=True)
LEFT_OPERAND = operand(AmpLeft(), (4, 32))
RIGHT_OPERAND = operand(AmpRight(), (32, 16))
INITIALIZE = GemmParameters(mode=Mode.INITIALIZE)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: product(operand(AmpLeft(), (4, 16)), LEFT_OPERAND, RIGHT_OPERAND, INITIALIZE),
            "result 0 must be in interleaved memory because K has more than one panel",
        ),
        (
            lambda: product(
                operand(AmpLeft(), (4, 16)),
                operand(AmpLeft(), (4, 16)),
                operand(AmpRight(), (16, 16)),
                GemmParameters(mode=Mode.ACCUMULATE),
            ),
            "result 0 must be in interleaved memory because it accumulates",
        ),
        (
            lambda: product(WHOLE, operand(RowMajor(), (4, 32)), RIGHT_OPERAND, INITIALIZE),
            "operand 0 is not stored in panels as the AMP unit reads it",
        ),
        (
            lambda: product(operand(AmpOutput(), (4, 16)), LEFT_OPERAND, RIGHT_OPERAND, INITIALIZE),
            "result 0 is not stored in panels as the AMP unit reads it",
        ),
        (
            lambda: product(WHOLE, LEFT_OPERAND, operand(RowMajor(), (32, 16)), INITIALIZE),
            "operand 1 is not stored in panels as the AMP unit reads it",
        ),
        (
            lambda: product(
                WHOLE,
                LEFT_OPERAND,
                operand(BlockMajor(row_block=16, column_block=32), (32, 32), region=((0, 32), (0, 16))),
                INITIALIZE,
                matrix_product((4, 32), (32, 16)),
            ),
            "operand 1 is not stored in panels as the AMP unit reads it",
        ),
        (
            lambda: product(WHOLE, operand(AmpLeft(), (4, 32), origin=4), RIGHT_OPERAND, INITIALIZE),
            "operand 0 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: product(
                WHOLE, LEFT_OPERAND, operand(AmpRight(), (32, 16), is_interleaved=True, origin=8), INITIALIZE
            ),
            "operand 1 begins at 8 modulo 32, not at a multiple of 16 bytes",
        ),
        (
            lambda: product(WHOLE, LEFT_OPERAND, operand(AmpRight(), (32, 16), logical=(20, 16)), INITIALIZE),
            "operand 0 has 32 elements along K, operand 1 has 20",
        ),
        (
            lambda: product(
                operand(AmpLeft(), (5, 16), is_interleaved=True), LEFT_OPERAND, RIGHT_OPERAND, INITIALIZE
            ),
            "rows: 4 in one operand but 5 in result 0, padding included",
        ),
        (
            lambda: product(WHOLE, operand(AmpLeft(), (4, 32), precision=F8()), RIGHT_OPERAND, INITIALIZE),
            "operand 0 is F8 and operand 1 F16; both are F16 or both F8",
        ),
        (
            lambda: product(
                operand(AmpLeft(), (2, 4, 16), is_interleaved=True),
                operand(AmpLeft(), (2, 4, 16)),
                operand(AmpRight(), (2, 16, 16)),
                INITIALIZE,
            ),
            "axis 0 of result 0 has extent 2; a call multiplies one matrix of a batch",
        ),
        (
            lambda: registry.bind("gemm", INITIALIZE, (WHOLE, LEFT_OPERAND), (None, None)),
            "a product has one result and two operands, not 2 in all",
        ),
        (
            lambda: registry.bind(
                "gemm", INITIALIZE, (WHOLE, LEFT_OPERAND, RIGHT_OPERAND), (None, Identity(rank=2), None)
            ),
            "the operands are not related to the result as left and right of one product",
        ),
        (
            lambda: registry.bind(
                "gemm",
                INITIALIZE,
                (WHOLE, LEFT_OPERAND, RIGHT_OPERAND),
                (None, None, None),
                (Alias(result=Result(0), operand=Operand(0)),),
            ),
            "the result of a product cannot take the storage of an operand",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07, KB-11: shapes and views that do not fit are refused when binding, in these words."""
    assert refused(answer()) == reason
