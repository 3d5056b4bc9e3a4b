"""Casts that keep the sequence of elements, in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision, encode_f143
from compiler.kernels.contract import Binding, Operand, Refusal
from tests.kernels.casts import cast, check, precision_of, random_values, shared
from tests.kernels.machine import MANY, bound, refused, run
from tests.kernels.tensors import operand

PAIRS: tuple[tuple[type[Precision], type[Precision]], ...] = (
    (F32, F16),
    (F16, F32),
    (F16, F8),
    (F8, F16),
    (F8, F8),
    (F32, F8),
    (F8, F32),
)


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


@pytest.mark.parametrize("wanted", [F16, F32])
@pytest.mark.parametrize("exponent", range(-32, 32))
def test_every_code_becomes_a_half_or_a_word(exponent: int, wanted: type[F16 | F32]) -> None:
    """No scale moves a word out of its range."""
    codes = np.arange(256, dtype=np.uint8)
    source = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=exponent))
    result = operand(RowMajor(), codes.shape, precision=wanted())
    check(bound(cast(result, source)), codes)


@pytest.mark.parametrize("difference", range(-31, 32))
def test_every_code_changes_its_scale(difference: int) -> None:
    """In place; every difference of scale exponents, some of them from far ends of the range."""
    codes = np.arange(256, dtype=np.uint8)
    start = -32 if difference >= 0 else 31
    for first in (0, start):
        source = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=first))
        result = operand(RowMajor(), codes.shape, precision=F8(scale_exponent=first + difference))
        check(bound(cast(result, source, shared(0))), codes)


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


@pytest.mark.parametrize("exponent", [-32, -14, -3, 0, 8, 9, 31])
def test_words_become_codes_at_every_scale(exponent: int) -> None:
    """All halves as words, so that one rounding is left; numbers that no half holds; and what is no number.

    The scaled word is rounded to a half first: a word just above the middle of two codes goes to the middle,
    and from there to the even code.
    """
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    halves = halves[np.isfinite(halves)][::2]
    scaled = np.ldexp(halves, exponent)
    special = np.array([np.inf, -np.inf, np.nan, 3e38, -3e38, 1e-45, -0.0, 0.0], dtype=np.float32)
    middles = np.ldexp(np.array([1.0625, 1.1875, 17, 19], dtype=np.float32), exponent)
    between = np.concatenate([np.nextafter(middles, np.float32(np.inf)), middles, -middles])
    words = np.concatenate([scaled, special, between, np.zeros(4, dtype=np.float32)])
    source = operand(RowMajor(), words.shape, precision=F32())
    result = operand(RowMajor(), words.shape, precision=F8(scale_exponent=exponent))
    binding = bound(cast(result, source))
    outcome = run(binding, (0x60000, 0x88000), {Operand(0): words.view(np.uint8)}, exceptions=0)
    found = outcome.memory.read(0x60000, len(words))
    assert np.array_equal(found[: len(halves)], encode_f143(halves))
    assert found[len(halves) :][:8].tolist() == [0x7F, 0xFF, 0x80, 0x7F, 0xFF, 0x00, 0x00, 0x00]
    above, exact, negative = found[len(halves) + 8 :][:12].reshape(3, 4)
    assert np.array_equal(above, exact)
    assert np.array_equal(negative, exact | 0x80)
    assert np.array_equal(exact, encode_f143([1.0, 1.25, 16.0, 20.0]))


@pytest.mark.parametrize("order", [RowMajor(), AmpLeft(), AmpRight()])
def test_padding_stays_zero(order: RowMajor | AmpLeft | AmpRight) -> None:
    """Orders whose panels are as wide in both precisions, or that have none."""
    source = operand(order, (32, 32), logical=(31, 29), precision=F8(scale_exponent=-2))
    result = operand(order, (32, 32), logical=(31, 29), precision=F8())
    check(bound(cast(result, source)), random_values(np.random.default_rng(0), source))


def test_cycles_at_known_points() -> None:
    """Cycles of a kernel known to be good, measured on hardware, are not exceeded."""
    source = operand(RowMajor(), (8320,))
    result = operand(RowMajor(), (8320,), precision=F8())
    binding = bound(cast(result, source, is_separate=True))
    check(binding, random_values(np.random.default_rng(0), source))
    assert binding.cycles <= 2706


@pytest.mark.parametrize("pair", PAIRS)
def test_other_directions_take_what_their_loads_stores_and_arithmetic_take(
    pair: tuple[type[Precision], type[Precision]],
) -> None:
    """Kernels known to be good take a cycle for each 64 bits loaded or stored, when they are not slower."""
    source = operand(RowMajor(), (4800,), precision=precision_of(pair[0], 0))
    result = operand(RowMajor(), (4800,), precision=precision_of(pair[1], 0))
    cycles = bound(cast(result, source)).cycles
    moved = 4800 * (source.precision.element_bytes + result.precision.element_bytes) // 8
    issues: dict[tuple[type[Precision], type[Precision]], int] = {(F8, F8): 5, (F32, F8): 7, (F8, F32): 10}
    arithmetic = issues.get(pair, 0) * 4800 // 8
    assert cycles <= max(moved, arithmetic) + 330


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
        (lambda: cast(VECTOR, VECTOR), "operand 0 in f16 cannot become f16 in one cast"),
        (
            lambda: cast(operand(AmpLeft(), (4, 32)), operand(AmpLeft(), (4, 32), precision=F32())),
            "operand 0 does not have its elements in the sequence of the result's",
        ),
        (
            lambda: cast(operand(RowMajor(), (16,), precision=F8(scale_exponent=-32)), VECTOR),
            "result 0 has a scale exponent whose inverse does not fit six bits",
        ),
        (
            lambda: cast(CODES, VECTOR, shared(0)),
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
        (
            lambda: cast(
                operand(RowMajor(), (4, 6)),
                operand(RowMajor(), (4, 8), region=((0, 4), (0, 6)), precision=F32()),
            ),
            "operand 0 is not one gapless run of bytes",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
