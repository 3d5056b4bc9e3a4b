"""Casts in the simulator."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.geometry.relation import Identity
from compiler.kernels import registry
from compiler.kernels.cast.binding import CastParameters
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from tests.kernels.machine import MANY, bound, refused, run
from tests.kernels.tensors import operand
from tests.kernels.typed import dtype_of, loaded_values, stored_values

RESULT, SOURCE = 0x60000, 0x70000
PAIRS: tuple[tuple[type[Precision], type[Precision]], ...] = (
    (F32, F16),
    (F16, F32),
    (F16, F8),
    (F8, F16),
    (F8, F8),
)


def cast(
    result: LocalOperand, source: LocalOperand, *aliases: Alias, is_separate: bool = False
) -> Binding | Refusal:
    """The cast of one operand."""
    relations = (None, Identity(rank=len(result.backing)))
    parameters = CastParameters(is_separate=is_separate)
    return registry.bind("cast", parameters, (result, source), relations, aliases)


def precision_of(kind: type[Precision], exponent: int) -> Precision:
    return F8(scale_exponent=exponent) if kind is F8 else kind()


def reference(
    values: npt.NDArray[np.generic], source: Precision, result: Precision
) -> npt.NDArray[np.generic]:
    """The cast by way of binary64, in which every value of the three precisions is exact."""
    exact = (
        decode_f143(values.astype(np.uint8), source.scale_exponent).astype(np.float64)
        if isinstance(source, F8)
        else values.astype(np.float64)
    )
    match result:
        case F8():
            return encode_f143(exact, result.scale_exponent)
        case F16():
            with np.errstate(over="ignore"):
                return np.clip(exact, -65504, 65504).astype(np.float16)
        case F32():
            return exact.astype(np.float32)


def check(binding: Binding, values: npt.NDArray[np.generic], seed: int = 0) -> None:
    """Run a cast of these values [logical extents]; hold it to the reference and to its formula."""
    result, source = (access.operand for access in binding.accesses)
    assert result is not None
    assert source is not None
    address = SOURCE if binding.aliases else RESULT
    outcome = run(binding, (address, SOURCE), {Operand(0): stored_values(source, values)}, seed=seed)
    found = loaded_values(result, outcome.memory, address)
    wanted = reference(values, source.precision, result.precision)
    assert np.array_equal(found, wanted, equal_nan=result.precision != F8() and found.dtype != np.uint8)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


def random_values(random: np.random.Generator, where: LocalOperand) -> npt.NDArray[np.generic]:
    """Numbers of very different sizes, or any codes."""
    if isinstance(where.precision, F8):
        return random.integers(0, 256, where.logical).astype(np.uint8)
    spread = np.exp2(random.integers(-20, 9, where.logical))
    return (random.standard_normal(where.logical) * spread).astype(dtype_of(where))


@pytest.mark.parametrize("is_separate", [False, True])
@pytest.mark.parametrize("pair", PAIRS)
@MANY
@given(
    count=st.integers(1, 150),
    exponents=st.tuples(st.integers(-31, 31), st.integers(-31, 31)),
    seed=st.integers(0, 1 << 16),
)
def test_vectors_of_any_length(
    count: int,
    pair: tuple[type[Precision], type[Precision]],
    exponents: tuple[int, int],
    is_separate: bool,
    seed: int,
) -> None:
    """Bytes and halves at the end share a word with others, which survive."""
    if pair == (F8, F16):
        exponents = (min(exponents[0], 7), 0)
    source = operand(RowMajor(), (count,), precision=precision_of(pair[0], exponents[0]), origin=8)
    result = operand(RowMajor(), (count,), precision=precision_of(pair[1], exponents[1]), origin=8)
    binding = bound(cast(result, source, is_separate=is_separate))
    check(binding, random_values(np.random.default_rng(seed), source), seed)


@pytest.mark.parametrize("exponent", [-31, -9, -1, 0, 3, 11, 31])
@pytest.mark.parametrize("is_separate", [False, True])
def test_every_half_becomes_a_code(exponent: int, is_separate: bool) -> None:
    """All 65,536, infinities and NaN among them; a code is never the NaN for a number."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    source = operand(RowMajor(), values.shape)
    result = operand(RowMajor(), values.shape, precision=F8(scale_exponent=exponent))
    binding = bound(cast(result, source, is_separate=is_separate))
    outcome = run(binding, (0x60000, 0x98000), {Operand(0): values.view(np.uint8)}, exceptions=4)
    found = outcome.memory.read(0x60000, len(values))
    assert np.array_equal(found, encode_f143(values.astype(np.float64), exponent))
    assert ((found == 0x80) == np.isnan(values)).all()


@pytest.mark.parametrize("exponent", range(-32, 32))
def test_every_code_becomes_a_half(exponent: int) -> None:
    codes = np.arange(256, dtype=np.uint8)
    source = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=exponent))
    result = operand(RowMajor(), codes.shape)
    check(bound(cast(result, source)), codes)


@pytest.mark.parametrize("difference", range(-31, 32))
def test_every_code_changes_its_scale(difference: int) -> None:
    """In place; every difference of scale exponents, some of them from far ends of the range."""
    codes = np.arange(256, dtype=np.uint8)
    start = -32 if difference >= 0 else 31
    for first in (0, start):
        source = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=first))
        result = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=first + difference))
        check(bound(cast(result, source, Alias(result=Result(0), operand=Operand(0)))), codes)


def test_every_half_becomes_a_word_and_comes_back() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    half = operand(RowMajor(), values.shape)
    word = operand(RowMajor(), values.shape, precision=F32())
    there = run(
        bound(cast(word, half)), (0x60000, 0xA8000), {Operand(0): values.view(np.uint8)}, exceptions=0
    )
    words = there.memory.read(0x60000, 4 * len(values))
    with np.errstate(invalid="ignore"):
        assert np.array_equal(words.view(np.float32), values.astype(np.float32), equal_nan=True)
    back = run(bound(cast(half, word)), (0xA8000, 0x60000), {Operand(0): words}, exceptions=0)
    again = back.memory.read(0xA8000, 2 * len(values)).view(np.float16)
    assert np.array_equal(again, values, equal_nan=True)


def test_words_between_halves_are_rounded_to_even() -> None:
    """The middle between a half and the next, and the words beside it; every second half."""
    values = np.arange(0x7BFF, dtype=np.uint16).view(np.float16).astype(np.float32)
    above = (np.arange(0x7BFF, dtype=np.uint16) + np.uint16(1)).view(np.float16).astype(np.float32)
    middle = (values + above) / 2
    words = np.stack([np.nextafter(middle, values), middle, -np.nextafter(middle, above)])[:, ::2].reshape(-1)
    source = operand(RowMajor(), words.shape, precision=F32())
    result = operand(RowMajor(), words.shape)
    outcome = run(bound(cast(result, source)), (0x60000, 0x88000), {Operand(0): words.view(np.uint8)})
    found = outcome.memory.read(0x60000, 2 * len(words)).view(np.uint16)
    assert np.array_equal(found, words.astype(np.float16).view(np.uint16))


@pytest.mark.parametrize("order", [RowMajor(), AmpLeft(), AmpRight()])
def test_padding_stays_zero(order: RowMajor | AmpLeft | AmpRight) -> None:
    """Orders whose panels are as wide in both precisions, or that have none."""
    source = operand(order, (32, 32), logical=(31, 29), precision=F8(scale_exponent=-2))
    result = operand(order, (32, 32), logical=(31, 29), precision=F8())
    check(bound(cast(result, source)), random_values(np.random.default_rng(0), source))


@MANY
@given(
    rows=st.integers(1, 14),
    columns=st.integers(1, 100),
    is_row_over=st.booleans(),
    exponent=st.integers(-12, 12),
    seed=st.integers(0, 1 << 16),
)
def test_two_panels_of_halves_become_one_of_codes(
    rows: int, columns: int, is_row_over: bool, exponent: int, seed: int
) -> None:
    """Where the second of two panels is missing, its place becomes zero."""
    physical = rows + is_row_over
    source = operand(AmpLeft(), (physical, -(-columns // 16) * 16), logical=(rows, columns))
    result = operand(
        AmpLeft(),
        (physical, -(-columns // 32) * 32),
        logical=(rows, columns),
        precision=F8(scale_exponent=exponent),
    )
    check(bound(cast(result, source)), random_values(np.random.default_rng(seed), source), seed)


def test_cycles_at_known_points() -> None:
    """Cycles of a kernel known to be good, measured on hardware, are not exceeded."""
    source = operand(RowMajor(), (8320,))
    result = operand(RowMajor(), (8320,), precision=F8())
    binding = bound(cast(result, source, is_separate=True))
    check(binding, random_values(np.random.default_rng(0), source))
    assert binding.cycles <= 2706


def test_extents_and_scales_never_make_another_kernel() -> None:
    def symbol(count: int, exponent: int) -> str:
        result = operand(RowMajor(), (count,), precision=F8(scale_exponent=exponent))
        return str(bound(cast(result, operand(RowMajor(), (count,)))).symbol)

    assert len({symbol(*shape) for shape in ((1, 0), (9, -3), (4000, 5))}) == 1


VECTOR = operand(RowMajor(), (16,))
CODES = operand(RowMajor(), (16,), precision=F8())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: cast(CODES, operand(RowMajor(), (16,), precision=F32())),
            "operand 0 in f32 cannot become f8 in one cast",
        ),
        (
            lambda: cast(operand(AmpLeft(), (4, 32)), operand(AmpLeft(), (4, 32), precision=F32())),
            "operand 0 does not have its elements in the sequence of the result's",
        ),
        (
            lambda: cast(operand(RowMajor(), (16,), precision=F8(scale_exponent=-32)), VECTOR),
            "result 0 has a scale exponent whose inverse does not fit six bits",
        ),
        (
            lambda: cast(CODES, VECTOR, Alias(result=Result(0), operand=Operand(0))),
            "result 0 at operand 0 +0 is not a storage that the cast may take",
        ),
        (
            lambda: cast(CODES, operand(RowMajor(), (16,), origin=4)),
            "operand 0 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: cast(CODES, operand(RowMajor(), (16,), logical=(15,))),
            "operand 0 has fewer elements than the result needs",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
