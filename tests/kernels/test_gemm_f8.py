"""Products of F8 matrices in the simulator: semantics, scales, padding and cycles."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, AmpRight, AmpTransposedLeft, AmpTransposedRight, BlockMajor
from compiler.geometry.precision import F8, F16, F32, F143_NAN, decode_f143, encode_f143
from compiler.kernels.contract import Binding, Operand, PaddingState, Refusal, Result, Scalar
from compiler.kernels.gemm.binding import GemmParameters, Mode, Orientation, Rounding
from tests.kernels.machine import INTERLEAVED, MANY, STANDARD, bound, new_tile, refused, run
from tests.kernels.products import is_close, places, plain, product, reference_of_codes, storages
from tests.kernels.tensors import loaded, normal_halves, operand, random_codes, stored

INITIALIZE = GemmParameters(mode=Mode.INITIALIZE)

QUIET_SCALES = st.tuples(st.integers(-32, 31), st.integers(-32, -10)).filter(
    lambda pair: pair[1] - pair[0] in range(-32, 32)
)
"""(exponent of left, scale of the product): so small that no sum of a test overflows F16."""


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@MANY
@given(
    rows=st.integers(1, 27),
    k_groups=st.integers(1, 3),
    column_groups=st.integers(1, 3),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 31), st.integers(0, 15)),
    scales=QUIET_SCALES,
    seed=st.integers(0, 1 << 16),
)
def test_products_equal_their_semantics_in_any_shape(
    mode: Mode,
    is_wide: bool,
    rows: int,
    k_groups: int,
    column_groups: int,
    padding: tuple[int, int, int],
    scales: tuple[int, int],
    seed: int,
) -> None:
    """KB-01 .. KB-05; poison, tails, smallest alignment, exact accesses, any scale."""
    k, columns = 32 * k_groups, 16 * column_groups
    logical = (max(1, rows - padding[0]), k - padding[1], columns - padding[2])
    exponents = (scales[0], scales[1] - scales[0])
    binding = plain(
        rows,
        k,
        columns,
        mode=mode,
        is_wide=is_wide,
        logical=logical,
        precisions=(F8(scale_exponent=exponents[0]), F8(scale_exponent=exponents[1])),
    )
    random = np.random.default_rng(seed)
    left, right = random_codes(random, logical[:2]), random_codes(random, logical[1:])
    start = normal_halves(random, (logical[0], logical[2]))
    result, left_storage, right_storage = storages(binding)
    contents = {
        Operand(0): stored(left_storage, left),
        Operand(1): stored(right_storage, right),
        Result(0): stored(result, start),
    }
    outcome = run(binding, places(binding), contents, seed=seed)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.flops == 2 * logical[0] * logical[1] * logical[2]
    found = loaded(result, outcome.memory, places(binding)[0]).astype(np.float64)
    exact = np.ldexp(decode_f143(left).astype(np.float64) @ decode_f143(right).astype(np.float64), scales[1])
    if mode is Mode.ACCUMULATE:
        exact += start
    # Chained rounding to F16 errs by half a unit of the largest sum of each panel.
    largest = np.ldexp(np.abs(decode_f143(left)) @ np.abs(decode_f143(right)), scales[1]) + np.abs(start)
    assert (np.abs(found - exact) <= k_groups * (largest * 2.0**-11 + 2.0**-25)).all()


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize(
    ("rows", "k", "columns", "scale"),
    [(1, 32, 16, -12), (2, 64, 16, -20), (5, 96, 16, -11), (7, 64, 32, -32)],
)
def test_semantics_are_the_pinned_definition(rows: int, k: int, columns: int, scale: int, mode: Mode) -> None:
    random = np.random.default_rng(rows)
    left, right = random_codes(random, (rows, k)), random_codes(random, (k, columns))
    start = normal_halves(random, (rows, columns))
    exponents = (scale // 2, scale - scale // 2)
    binding = plain(
        rows,
        k,
        columns,
        mode=mode,
        precisions=(F8(scale_exponent=exponents[0]), F8(scale_exponent=exponents[1])),
    )
    result, left_storage, right_storage = storages(binding)
    outcome = run(
        binding,
        places(binding),
        {
            Operand(0): stored(left_storage, left),
            Operand(1): stored(right_storage, right),
            Result(0): stored(result, start),
        },
    )
    first = start if mode is Mode.ACCUMULATE else np.zeros_like(start)
    expected = reference_of_codes(left, right, first, scale)
    found = loaded(result, outcome.memory, places(binding)[0])
    assert np.array_equal(found.view(np.uint16), expected.view(np.uint16))


@pytest.mark.parametrize(("left_exponent", "right_exponent"), [(-32, 0), (-1, 0), (0, 0), (31, -31), (31, 0)])
def test_every_scale_is_an_argument(left_exponent: int, right_exponent: int) -> None:
    """The smallest code of F143, 2^-10, counts as much as the scale says: up to 2^-20 * 2^31."""
    binding = plain(
        3, 32, 16, precisions=(F8(scale_exponent=left_exponent), F8(scale_exponent=right_exponent))
    )
    assert str(binding.symbol) == "gemm.initialize.precision=f8.weights=wide.rounding=nearest"
    assert binding.arguments[-1] == Scalar(name="scale", value=left_exponent + right_exponent)
    left, right = np.zeros((3, 32), dtype=np.uint8), np.zeros((32, 16), dtype=np.uint8)
    left[0, 5], left[2, 31] = 0x01, 0x81
    right[5, :], right[31, :] = 0x01, 0x02
    result, left_storage, right_storage = storages(binding)
    outcome = run(
        binding,
        places(binding),
        {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)},
    )
    found = loaded(result, outcome.memory, places(binding)[0])
    unit = np.float16(2.0 ** (left_exponent + right_exponent - 20))
    assert (found == np.array([unit, 0, -2 * unit])[:, None]).all()


def test_the_nan_of_f8_comes_out_as_one() -> None:
    binding = plain(2, 32, 16, precisions=(F8(), F8(scale_exponent=-12)))
    left, right = np.full((2, 32), 0x40, dtype=np.uint8), np.full((32, 16), 0x40, dtype=np.uint8)
    left[1, 7] = F143_NAN
    result, left_storage, right_storage = storages(binding)
    outcome = run(
        binding,
        places(binding),
        {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)},
        exceptions=0,
    )
    found = loaded(result, outcome.memory, places(binding)[0])
    assert (found[0] == np.float16(32 * 2.0**-12)).all()
    assert np.isnan(found[1]).all()


def test_stochastic_rounding_goes_to_a_neighbour() -> None:
    binding = plain(12, 32, 16, rounding=Rounding.STOCHASTIC, precisions=(F8(), F8(scale_exponent=-12)))
    random = np.random.default_rng(8)
    left, right = random_codes(random, (12, 32)), random_codes(random, (32, 16))
    result, left_storage, right_storage = storages(binding)
    outcome = run(
        binding,
        places(binding),
        {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)},
        check_numbers=False,
    )
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    found = loaded(result, outcome.memory, places(binding)[0]).astype(np.float64)
    exact = decode_f143(left).astype(np.float64) @ decode_f143(right, -12).astype(np.float64)
    spacing = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    assert (np.abs(found - exact) <= 1.001 * spacing).all()


def test_a_call_of_one_precision_leaves_nothing_for_the_next() -> None:
    """Formats, scale and decoded weights belong to a call."""
    tile = new_tile()
    random = np.random.default_rng(10)
    for precision in (F8(scale_exponent=-6), F16(), F8(scale_exponent=-9), F16()):
        for mode in Mode:
            binding = plain(7, 64, 32, mode=mode, precisions=(precision, precision))
            contents = {
                reference: random_codes(random, (size * precision.element_bytes,))
                if isinstance(precision, F8)
                else normal_halves(random, (size,)).view(np.uint8)
                for reference, size in ((Operand(0), 7 * 64), (Operand(1), 64 * 32))
            }
            start = normal_halves(random, (7 * 32,)).view(np.uint8)
            run(binding, places(binding), {**contents, Result(0): start}, tile=tile)


def test_the_swapped_orientation_computes_the_transpose() -> None:
    random = np.random.default_rng(4)
    rows, k, columns = 32, 64, 13
    precision = F8(scale_exponent=-6)
    result = operand(AmpTransposedLeft(), (rows, columns), is_interleaved=True)
    weights = operand(AmpTransposedRight(), (rows, k), is_interleaved=True, precision=precision)
    moving = operand(AmpTransposedLeft(), (k, columns), precision=precision)
    binding = bound(
        product(
            result,
            weights,
            moving,
            GemmParameters(mode=Mode.INITIALIZE, orientation=Orientation.SWAPPED),
        )
    )
    left, right = random_codes(random, (rows, k)), random_codes(random, (k, columns))
    addresses = (INTERLEAVED, 0xC0000, STANDARD)
    outcome = run(binding, addresses, {Operand(0): stored(weights, left), Operand(1): stored(moving, right)})
    expected = reference_of_codes(right.T, left.T, np.zeros((columns, rows), dtype=np.float16), -12)
    found = loaded(result, outcome.memory, INTERLEAVED)
    assert np.array_equal(found.view(np.uint16), expected.T.view(np.uint16))


def test_padding_of_codes_is_zero() -> None:
    binding = plain(5, 64, 32, logical=(4, 50, 20), precisions=(F8(), F8(scale_exponent=-12)))
    for access in binding.operands:
        assert access.padding
        assert all(padding.before is PaddingState.ZERO for padding in access.padding)


ACCURACY_SHAPES = [(64, 128, 64), (122, 160, 32)]


@pytest.mark.parametrize(("rows", "k", "columns"), ACCURACY_SHAPES)
def test_results_about_one_are_accurate(rows: int, k: int, columns: int) -> None:
    """Codes of unit normal rows and of columns of unit length: the error allowed of a product."""
    random = np.random.default_rng(12)
    left = encode_f143(random.standard_normal((rows, k)), -5)
    right = encode_f143(random.standard_normal((k, columns)) / np.sqrt(k), -9)
    binding = plain(rows, k, columns, precisions=(F8(scale_exponent=-5), F8(scale_exponent=-9)))
    result, left_storage, right_storage = storages(binding)
    outcome = run(
        binding,
        places(binding),
        {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)},
    )
    found = loaded(result, outcome.memory, places(binding)[0]).astype(np.float64)
    exact = decode_f143(left, -5).astype(np.float64) @ decode_f143(right, -9).astype(np.float64)
    assert is_close(found, exact)


WHOLE = operand(AmpLeft(), (4, 16), is_interleaved=True)
LEFT_OPERAND = operand(AmpLeft(), (4, 64), precision=F8(scale_exponent=20))
RIGHT_OPERAND = operand(AmpRight(), (64, 16), precision=F8(scale_exponent=-20))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: product(
                WHOLE,
                LEFT_OPERAND,
                operand(AmpRight(), (64, 16), precision=F8(scale_exponent=12)),
                INITIALIZE,
            ),
            "the scale exponents of operand 0, 20, and operand 1, 12, add up to 32, which is not -32 .. 31",
        ),
        (
            lambda: product(WHOLE, LEFT_OPERAND, operand(AmpRight(), (64, 16)), INITIALIZE),
            "operand 0 is F8 and operand 1 F16; both are F16 or both F8",
        ),
        (
            lambda: product(
                WHOLE,
                operand(AmpLeft(), (4, 64), precision=F32()),
                operand(AmpRight(), (64, 16), precision=F32()),
                INITIALIZE,
            ),
            "operand 0 is F32 and operand 1 F32; both are F16 or both F8",
        ),
        (
            lambda: product(
                operand(AmpLeft(), (4, 32), precision=F8()),
                LEFT_OPERAND,
                operand(AmpRight(), (64, 32), precision=F8()),
                INITIALIZE,
            ),
            "result 0 is F8; products are F16",
        ),
        (
            lambda: product(operand(AmpLeft(), (4, 16)), LEFT_OPERAND, RIGHT_OPERAND, INITIALIZE),
            "result 0 must be in interleaved memory because K has more than one panel",
        ),
        (
            lambda: product(
                operand(AmpLeft(), (4, 32)),
                operand(AmpLeft(), (4, 64), region=((0, 4), (0, 48)), precision=F8()),
                operand(
                    BlockMajor(row_block=64, column_block=16),
                    (64, 32),
                    region=((0, 48), (0, 32)),
                    precision=F8(),
                ),
                INITIALIZE,
            ),
            "K: 48, padding included, is no multiple of 32",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07: what the unit cannot multiply is refused when binding, in these words."""
    assert refused(answer()) == reason
