"""Floating-point instructions against NumPy and exact arithmetic: every half where there is one operand."""

import math
import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.simulator.numerics import Floats, byte_values
from tests.simulator.streams import Words, set_float_control, stream_arithmetic

HALVES = np.arange(1 << 16, dtype=np.uint16)
SPECIAL_HALVES = [
    0,
    0x8000,
    1,
    0x8001,
    0x3FF,
    0x400,
    0x3C00,
    0xBC00,
    0x7BFF,
    0xFBFF,
    0x7C00,
    0xFC00,
    0x7E00,
    0x7C01,
]
SPECIAL_WORDS = [
    0,
    0x80000000,
    1,
    0x80000001,
    0x7FFFFF,
    0x800000,
    0x3F800000,
    0xBF800000,
    0x7F7FFFFF,
    0xFF7FFFFF,
    0x7F800000,
    0xFF800000,
    0x7FC00000,
    0x7F800001,
    0x477FE000,
    0x477FF000,
    0x33000000,
    0x33000001,
]
HALF_MAX = 65504.0
ROUNDING = {"nearest": 0, "down": 1, "up": 2, "zero": 3}
NANOO = 1 << 20
ESR = 1 << 19

KINDS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "absadd": lambda a, b: np.abs(a) + np.abs(b),
    "absmax": lambda a, b: np.fmax(np.abs(a), np.abs(b)),
    "max": np.fmax,
    "min": np.fmin,
}
COMPARISONS: dict[str, Callable[[Floats, Floats], npt.NDArray[np.bool_]]] = {
    "cmpeq": np.equal,
    "cmpne": np.not_equal,
    "cmplt": np.less,
    "cmple": np.less_equal,
    "cmpgt": np.greater,
    "cmpge": np.greater_equal,
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Oracles meet NaN and infinity all the time."""
    with np.errstate(all="ignore"):
        yield


def half_operands(count: int = 3000) -> Words:
    """[n, 4] words of two halves, special values among them."""
    random = np.random.default_rng(3)
    halves = random.integers(0, 1 << 16, (count, 8)).astype(np.uint16)
    near_one = (
        0x3000 + random.integers(0, 0x1800, (count, 8)) + (random.integers(0, 2, (count, 8)) << 15)
    ).astype(np.uint16)
    halves = np.where(random.random((count, 8)) < 0.5, near_one, halves)
    pairs = np.array([[a, b] for a in SPECIAL_HALVES for b in SPECIAL_HALVES], np.uint16)
    halves[: len(pairs), :4] = pairs[:, :1]
    halves[: len(pairs), 4:] = pairs[:, 1:]
    return halves.view(np.uint32)


def word_operands(count: int = 3000) -> Words:
    """[n, 4] binary32 patterns, special values among them."""
    random = np.random.default_rng(4)
    words = random.integers(0, 1 << 32, (count, 4), dtype=np.uint32)
    close = random.normal(size=(count, 4)) * 2.0 ** random.integers(-30, 30, (count, 1))
    words = np.where(random.random((count, 4)) < 0.6, close.astype(np.float32).view(np.uint32), words)
    pairs = np.array([[a, b] for a in SPECIAL_WORDS for b in SPECIAL_WORDS], np.uint32)
    words[: len(pairs), :2] = pairs[:, :1]
    words[: len(pairs), 2:] = pairs[:, 1:]
    return words


def as_doubles(words: Words, *, halves: bool) -> Floats:
    """The numbers of words [n, k]: [n, 2k] of halves or [n, k] of binary32."""
    typed = np.ascontiguousarray(words).view(np.float16 if halves else np.float32)
    with np.errstate(invalid="ignore"):
        return typed.astype(np.float64)


def rounded_half(
    exact: Floats, mode: str = "nearest", *, nan_on_overflow: bool = False
) -> npt.NDArray[np.float16]:
    """Oracle of rounding to half: the nearest by NumPy, then one step where the mode points elsewhere."""
    with np.errstate(all="ignore"):
        half = exact.astype(np.float16)
        back = half.astype(np.float64)
        down = np.nextafter(half, np.float16(-np.inf))
        up = np.nextafter(half, np.float16(np.inf))
        too_high, too_low = back > exact, back < exact
        if mode == "down":
            half = np.where(too_high, down, half)
        elif mode == "up":
            half = np.where(too_low, up, half)
        elif mode == "zero":
            half = np.where(too_high & (exact > 0), down, np.where(too_low & (exact < 0), up, half))
        overflow = np.isfinite(exact) & (np.isinf(half) | (np.abs(exact) >= 65536))
        largest = np.copysign(np.float16(HALF_MAX), half)
        replacement = np.full_like(half, np.nan) if nan_on_overflow else largest
        return np.where(overflow, replacement, half).astype(np.float16)


def same(got: npt.NDArray[np.floating], expected: npt.NDArray[np.floating], *, zeros: bool = True) -> bool:
    """Equal bit for bit, any NaN for any NaN; ``zeros`` False lets the signs of zeros differ."""
    matches = (got == expected) | (np.isnan(got) & np.isnan(expected))
    if zeros:
        matches &= (np.signbit(got) == np.signbit(expected)) | np.isnan(got)
    return bool(matches.all())


SHAPES = {
    "f16v2": ("$a4", "$a0", "$a2", 1, True),
    "f16v4": ("$a4:5", "$a0:1", "$a2:3", 2, True),
    "f32": ("$a4", "$a0", "$a2", 1, False),
    "f32v2": ("$a4:5", "$a0:1", "$a2:3", 2, False),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic(shape: str, kind: str) -> None:
    target, first, second, count, halves = SHAPES[shape]
    words = half_operands() if halves else word_operands()
    with np.errstate(all="ignore"):
        a, b = as_doubles(words[:, :count], halves=halves), as_doubles(words[:, 2 : 2 + count], halves=halves)
        if halves:
            expected = rounded_half(KINDS[kind](a, b))
        else:
            # One binary32 operation: NumPy's is rounded once too.
            expected = KINDS[kind](a.astype(np.float32), b.astype(np.float32))  # pyright: ignore[reportArgumentType]  # the operators work in any precision
    got = stream_arithmetic(f"{shape}{kind} {target}, {first}, {second}", words)[:, :count]
    typed = np.ascontiguousarray(got).view(np.float16 if halves else np.float32)
    assert same(typed, expected, zeros="max" not in kind and "min" not in kind)


def test_signs_of_zeros_in_maxima_and_minima() -> None:
    zeros = [0, 1 << 31]
    words = np.array([[a, 0, b, 0] for a in zeros for b in zeros], np.uint32)
    assert stream_arithmetic("f32max $a4, $a0, $a2", words)[:, 0].tolist() == [0, 0, 0, 1 << 31]
    assert stream_arithmetic("f32min $a4, $a0, $a2", words)[:, 0].tolist() == [0, 1 << 31, 1 << 31, 1 << 31]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", COMPARISONS)
def test_comparisons(shape: str, kind: str) -> None:
    target, first, second, count, halves = SHAPES[shape]
    words = half_operands() if halves else word_operands()
    a, b = as_doubles(words[:, :count], halves=halves), as_doubles(words[:, 2 : 2 + count], halves=halves)
    got = np.ascontiguousarray(
        stream_arithmetic(f"{shape}{kind} {target}, {first}, {second}", words)[:, :count]
    )
    ones = got.view(np.uint16) == 0xFFFF if halves else got == 0xFFFFFFFF
    zeros = got.view(np.uint16) == 0 if halves else got == 0
    assert np.array_equal(ones, COMPARISONS[kind](a, b))
    assert np.array_equal(zeros, ~ones)


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "cmplt"])
def test_broadcasts(kind: str) -> None:
    words = half_operands()
    values = as_doubles(words, halves=True)
    for suffix, column in ((":BL", 0), (":BU", 1)):
        body = f"f16v4{kind} $a4:5, $a0{suffix}, $a2:3"
        got = stream_arithmetic(body, words)
        spread, other = values[:, column : column + 1], values[:, 4:8]
        if kind in COMPARISONS:
            assert np.array_equal(got.view(np.uint16) == 0xFFFF, COMPARISONS[kind](spread, other))
        else:
            with np.errstate(all="ignore"):
                expected = rounded_half(KINDS[kind](spread, other))
            assert same(got.view(np.float16), expected)
    words = word_operands()
    values = as_doubles(words, halves=False)
    got = stream_arithmetic(f"f32v2{kind} $a4:5, $a0:B, $a2:3", words)
    if kind in COMPARISONS:
        assert np.array_equal(got == 0xFFFFFFFF, COMPARISONS[kind](values[:, :1], values[:, 2:]))
    else:
        singles = words.view(np.float32)
        with np.errstate(all="ignore"):
            expected = KINDS[kind](singles[:, :1], singles[:, 2:])  # pyright: ignore[reportArgumentType]  # as above
        assert same(got.view(np.float32), expected)


@pytest.mark.parametrize("mode", ROUNDING)
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
@pytest.mark.parametrize("nanoo", [False, True])
def test_rounding_modes_of_halves(mode: str, kind: str, nanoo: bool) -> None:
    words = half_operands()
    control = ROUNDING[mode] << 16 | (NANOO if nanoo else 0)
    values = as_doubles(words, halves=True)
    got = stream_arithmetic(f"f16v4{kind} $a4:5, $a0:1, $a2:3", words, setup=set_float_control(control))
    with np.errstate(all="ignore"):
        expected = rounded_half(KINDS[kind](values[:, :4], values[:, 4:]), mode, nan_on_overflow=nanoo)
    if kind != "mul" and mode == "down":
        # The sum of opposite numbers is negative there; binary64 arithmetic to nearest made it positive.
        signs = np.signbit(values[:, :4]) != (np.signbit(values[:, 4:]) ^ (kind == "sub"))
        expected = np.where((expected == 0) & signs, np.float16(-0.0), expected)
    assert same(got.view(np.float16), expected)


def directed_word(exact: Fraction, mode: str) -> float:
    """The binary32 number that a mode rounds an exact number to."""
    nearest = float(np.float32(float(exact)))
    candidate = np.float32(nearest)
    while Fraction(float(candidate)) > exact:
        candidate = np.nextafter(candidate, np.float32(-np.inf))
    below = candidate
    while Fraction(float(np.nextafter(below, np.float32(np.inf)))) <= exact:
        below = np.nextafter(below, np.float32(np.inf))
    above = below if Fraction(float(below)) == exact else np.nextafter(below, np.float32(np.inf))
    if mode == "down" or (mode == "zero" and exact > 0):
        return float(below)
    return float(above)


@pytest.mark.parametrize("mode", ["down", "up", "zero"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
def test_rounding_modes_of_words(mode: str, kind: str) -> None:
    random = np.random.default_rng(9)
    numbers = random.normal(size=(400, 4)) * 2.0 ** random.integers(-20, 20, (400, 4))
    words = numbers.astype(np.float32).view(np.uint32)
    got = stream_arithmetic(f"f32{kind} $a4, $a0, $a2", words, setup=set_float_control(ROUNDING[mode] << 16))[
        :, 0
    ]
    operation = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}[kind]
    for index, (first, _, second, _) in enumerate(words.view(np.float32).tolist()):
        expected = directed_word(operation(Fraction(first), Fraction(second)), mode)
        assert got[index : index + 1].view(np.float32)[0] == np.float32(expected)


@pytest.mark.parametrize(
    ("quiet", "signalling", "one", "halves"),
    [(0x7E00, 0x7C01, 0x3C00, True), (0x7FC00001, 0x7F800001, 0x3F800000, False)],
)
def test_nan_payloads_and_flags(quiet: int, signalling: int, one: int, *, halves: bool) -> None:
    """One NaN comes out whatever went in; signalling ones are invalid, in arithmetic only."""
    shape, nan, infinity = ("f16v2", 0x7E00, 0x7C00) if halves else ("f32", 0x7FC00000, 0x7F800000)
    sign = 1 << (15 if halves else 31)
    mask = 0xFFFF if halves else 0xFFFFFFFF

    def flags(kind: str, first: int, second: int) -> tuple[int, int]:
        words = np.array([[first, 0, second, 0]], np.uint32)
        body = f"{shape}{kind} $a4, $a0, $a2\nuget $a5, $FP_STS"
        result, raised = stream_arithmetic(body, words)[0].tolist()
        return result & mask, raised

    for kind in ("add", "sub", "mul", "absadd"):
        for first, second in ((quiet, one), (one, quiet | sign), (quiet, quiet)):
            assert flags(kind, first, second) == (nan, 0)
        for first, second in ((signalling, one), (one, signalling | sign), (quiet, signalling)):
            assert flags(kind, first, second) == (nan, 1)
    for kind in ("max", "min", "absmax"):
        for value in (quiet, signalling):
            assert flags(kind, value, one) == (one, 0)
            assert flags(kind, one, value) == (one, 0)
    assert flags("max", quiet, signalling)[0] == nan
    assert flags("cmpeq", signalling, one) == (0, 0)
    assert flags("sub", infinity, infinity) == (nan, 1)
    assert flags("mul", infinity, 0) == (nan, 1)
    assert flags("add", infinity, one) == (infinity, 0)


@pytest.mark.parametrize("mode", ROUNDING)
def test_signs_of_zero_sums(mode: str) -> None:
    """Every pair of zeros, and of a number with its opposite, in binary32 and halves."""
    numbers = [0, 1 << 31, 0x3F800000, 0xBF800000]
    pairs = [(a, b) for a in numbers for b in numbers if (a ^ b) & 0x7FFFFFFF == 0]
    words = np.array([[a, 0, b, 0] for a, b in pairs], np.uint32)
    setup = set_float_control(ROUNDING[mode] << 16)
    for kind in ("add", "sub"):
        got = stream_arithmetic(f"f32{kind} $a4, $a0, $a2", words, setup=setup)[:, 0]
        upper = (words >> 16).astype(np.uint32)
        halves = stream_arithmetic(f"f16v2{kind} $a4, $a0, $a2", upper, setup=setup)[:, 0]
        for (a, b), word, half in zip(pairs, got.tolist(), halves.tolist(), strict=True):
            other = b ^ (1 << 31 if kind == "sub" else 0)
            if a == other and a & 0x7FFFFFFF:
                continue  # a sum of two ones
            is_negative = mode == "down" if a != other else a >> 31 == 1
            assert word == (1 << 31 if is_negative else 0), (mode, kind, hex(a), hex(b))
            assert half & 0xFFFF == (1 << 15 if is_negative else 0)


# In extended precision, which NumPy's declarations do not follow through every function.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "ln": np.log,
    "log2": np.log2,
    "sigm": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "oox": lambda x: 1 / x,
    "oorx": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
}


def functions_of(x: npt.NDArray[np.longdouble], name: str) -> npt.NDArray[np.longdouble]:
    """Extended precision values of a function."""
    return np.asarray(FUNCTIONS[name](x), np.longdouble)


@pytest.mark.parametrize("name", ["exp", "exp2", "ln", "log2", "sigm", "tanh"])
def test_functions_of_all_halves(name: str) -> None:
    words = np.zeros((len(HALVES) // 2, 4), np.uint32)
    words[:, 0] = HALVES.view(np.uint32)
    got = np.ascontiguousarray(stream_arithmetic(f"f16v2{name} $a4, $a0", words)[:, 0]).view(np.float16)
    exact = functions_of(HALVES.view(np.float16).astype(np.longdouble), name)
    with np.errstate(all="ignore"):
        doubles = exact.astype(np.float64)
        # What overflows here too still overflows like a number, unless the argument already was infinite.
        is_number = np.isfinite(HALVES.view(np.float16)) & (name in ("exp", "exp2"))
        doubles = np.where(np.isinf(doubles) & is_number, 1e300, doubles)
    assert same(got, rounded_half(doubles))


@pytest.mark.parametrize("name", ["exp", "exp2", "ln", "log2", "sigm", "tanh", "oox", "oorx", "sqrt"])
def test_functions_of_words(name: str) -> None:
    words = word_operands(6000)
    got = np.ascontiguousarray(stream_arithmetic(f"f32{name} $a4, $a0", words)[:, 0]).view(np.float32)
    with np.errstate(all="ignore"):
        x = np.ascontiguousarray(words[:, 0]).view(np.float32).astype(np.longdouble)
        expected = functions_of(x, name).astype(np.float32)
    if name == "oorx":  # the reciprocal of -0 is taken after its square root
        got, expected = got[x != 0], expected[x != 0]
    assert same(got, expected)


def test_division() -> None:
    words = word_operands()
    got = np.ascontiguousarray(stream_arithmetic("f32div $a4, $a0, $a2", words)[:, 0]).view(np.float32)
    singles = words.view(np.float32)
    with np.errstate(all="ignore"):
        assert same(got, singles[:, 0] / singles[:, 2])


def test_conversions_between_halves_and_words() -> None:
    words = np.zeros((len(HALVES) // 2, 4), np.uint32)
    words[:, 0] = HALVES.view(np.uint32)
    numbers = HALVES.view(np.float16).astype(np.float32).reshape(-1, 2)
    got = stream_arithmetic("f16v2tof32 $a4:5, $a0", words).view(np.float32)
    assert same(got, numbers)
    assert same(stream_arithmetic("f16tof32 $a4, $a0", words)[:, :1].copy().view(np.float32), numbers[:, :1])
    words = word_operands()
    for mode, code in ROUNDING.items():
        setup = set_float_control(code << 16)
        expected = rounded_half(as_doubles(words, halves=False), mode)
        got = stream_arithmetic("f32v4tof16 $a4:5, $a0:3", words, setup=setup).view(np.float16)
        assert same(got, expected)
        got = stream_arithmetic("f32v2tof16 $a4, $a2:3", words, setup=setup).view(np.float16)
        assert same(got[:, :2], expected[:, 2:])
        got = stream_arithmetic("f32tof16 $a4, $a1", words, setup=setup).view(np.float16)
        assert same(got[:, :2], expected[:, [1, 1]])


def test_sums_and_maxima_of_elements() -> None:
    words = half_operands()
    values = as_doubles(words, halves=True)
    with np.errstate(all="ignore"):
        sums = (values[:, 0:8:2] + values[:, 1:8:2]).astype(np.float32)
    assert same(stream_arithmetic("f16v2sum $a4, $a0", words)[:, :1].copy().view(np.float32), sums[:, :1])
    assert same(stream_arithmetic("f16v4sum $a4:5, $a0:1", words).view(np.float32), sums[:, :2])
    maxima = np.fmax(values[:, 0:8:2], values[:, 1:8:2]).astype(np.float16)
    got = stream_arithmetic("f16v2maxc $a4, $a0", words).view(np.float16)
    assert same(got[:, 0], maxima[:, 0], zeros=False)
    got = stream_arithmetic("f16v4maxc $a4, $a0:1", words).view(np.float16)
    assert same(got[:, :2], maxima[:, :2], zeros=False)


def test_clamps() -> None:
    words = half_operands()
    values = as_doubles(words, halves=True)
    low, high = values[:, 4:5], values[:, 5:6]
    expected = np.fmin(np.fmax(values[:, :4], low), high).astype(np.float16)
    assert same(
        stream_arithmetic("f16v4clamp $a4:5, $a0:1, $a2", words).view(np.float16), expected, zeros=False
    )
    got = stream_arithmetic("f16v2clamp $a4, $a0, $a2", words).view(np.float16)
    assert same(got[:, :2], expected[:, :2], zeros=False)
    words = word_operands()
    singles = words.view(np.float32)
    expected = np.fmin(np.fmax(singles[:, :2], singles[:, 2:3]), singles[:, 3:])
    assert same(
        stream_arithmetic("f32v2clamp $a4:5, $a0:1, $a2:3", words).view(np.float32), expected, zeros=False
    )
    got = stream_arithmetic("f32clamp $a4, $a0, $a2:3", words)[:, :1].copy().view(np.float32)
    assert same(got, expected[:, :1], zeros=False)


INTEGRAL: dict[str, Callable[[Floats], Floats]] = {
    "nearest": np.rint, "down": np.floor, "up": np.ceil, "zero": np.trunc,
}  # fmt: skip


@pytest.mark.parametrize("mode", ROUNDING)
def test_integral_numbers_and_integers(mode: str) -> None:
    words = word_operands()
    numbers = as_doubles(words, halves=False)[:, 0]
    integral = INTEGRAL[mode](numbers)
    got = stream_arithmetic(f"f32int $a4, $a0, {ROUNDING[mode]}", words)[:, :1].copy().view(np.float32)
    assert same(got[:, 0], integral.astype(np.float32))
    setup = set_float_control(ROUNDING[mode] << 16)
    for name, low, high in (("f32toi32", -(2**31), 2**31 - 1), ("f32toui32", 0, 2**32 - 1)):
        got = stream_arithmetic(f"{name} $a4, $a0", words, setup=setup)[:, 0]
        for word, number in zip(got.tolist(), integral.tolist(), strict=True):
            expected = 0 if math.isnan(number) else int(min(max(number, low), high))
            assert word == expected & 0xFFFFFFFF


def test_integers_to_words() -> None:
    words = word_operands()
    got = stream_arithmetic("f32fromi32 $a4, $a0", words)[:, 0].copy().view(np.float32)
    assert same(got, words[:, 0].astype(np.int32).astype(np.float32))
    got = stream_arithmetic("f32fromui32 $a4, $a0", words)[:, 0].copy().view(np.float32)
    assert same(got, words[:, 0].astype(np.float32))


def set_format(*, is_143: bool, scale: int) -> str:
    """Text that sets the format of 8-bit operands and the scale."""
    return (
        f"setzi $a6, {2 if is_143 else 0}\nuput $FP_NFMT, $a6\nsetzi $a6, {scale & 255}\nuput $FP_SCL, $a6\n"
    )


@pytest.mark.parametrize("is_143", [True, False])
@pytest.mark.parametrize("scale", [0, 5, -7])
def test_eight_bit_conversions(is_143: bool, scale: int) -> None:
    table = byte_values(is_143=is_143)
    setup = set_format(is_143=is_143, scale=scale)
    words = np.zeros((64, 4), np.uint32)
    words[:, 0] = np.arange(256, dtype=np.uint8).view(np.uint32)
    with np.errstate(invalid="ignore"):
        expected = rounded_half(table * 2.0**scale).reshape(-1, 4)
    got = stream_arithmetic("f8v4tof16 $a4:5, $a0", words, setup=setup).view(np.float16)
    assert same(got, expected)
    got = stream_arithmetic("f8v2tof16 $a4, $a0", words, setup=setup).view(np.float16)
    assert same(got[:, :2], expected[:, :2])

    words = HALVES.view(np.uint32).reshape(-1, 4)
    numbers = HALVES.view(np.float16).astype(np.float64) * 2.0**scale
    got = stream_arithmetic("f16v8tof8 $a4:5, $a0:3", words, setup=setup).view(np.uint8).reshape(-1)
    # Compare by value against the nearest of all values: every boundary is exact in binary64.
    order = np.argsort(table[:0x80])
    magnitudes = table[:0x80][order]
    boundaries = (magnitudes[1:] + magnitudes[:-1]) / 2
    with np.errstate(invalid="ignore"):
        index = np.searchsorted(boundaries, np.abs(numbers), side="left")
    tied = (index < len(boundaries)) & (np.abs(numbers) == boundaries[np.minimum(index, len(boundaries) - 1)])
    index = np.where(tied & (index % 2 == 1), index + 1, index)
    pattern = np.where((numbers < 0) & (index > 0), index | 0x80, index)
    pattern = np.where(np.isnan(numbers), 0x80, pattern)
    assert np.array_equal(got, pattern.astype(np.uint8))
    first = stream_arithmetic("f16v2tof8 $a4, $a0", words, setup=setup)[:, 0]
    assert np.array_equal(
        first, got.reshape(-1, 8)[:, 0].astype(np.uint32) | got.reshape(-1, 8)[:, 1].astype(np.uint32) << 8
    )


def test_overflow_of_eight_bit_results_to_nan() -> None:
    setup = set_format(is_143=True, scale=0) + set_float_control(NANOO)
    # 239.9 and 240, their negatives, both infinities, 0.
    words = np.array([[0x5B805B7F, 0xDB80DB7F, 0x7C00FC00, 0]], np.uint32)
    got = stream_arithmetic("f16v8tof8 $a4:5, $a0:3", words, setup=setup).view(np.uint8)[0]
    assert got.tolist() == [0x7F, 0x7F, 0xFF, 0xFF, 0x80, 0x80, 0, 0]


def test_symmetric_numbers() -> None:
    words = np.zeros((len(HALVES) // 2, 4), np.uint32)
    words[:, 0] = HALVES.view(np.uint32)
    expected = rounded_half((HALVES.astype(np.float64) + 0.5) / 65536 - 0.5).reshape(-1, 2)
    assert same(stream_arithmetic("f16v2sufromui $a4, $a0", words).view(np.float16)[:, :2], expected)
    words = word_operands()
    exact = (words[:, :2].astype(np.float64) + 0.5) / 2.0**32 - 0.5
    assert same(
        stream_arithmetic("f32v2sufromui $a4:5, $a0:1", words).view(np.float32), exact.astype(np.float32)
    )
    got = stream_arithmetic("f32sufromui $a4, $a0", words)[:, :1].copy().view(np.float32)
    assert same(got, exact[:, :1].astype(np.float32))
    words = half_operands()
    halves = words[:, :2].copy().view(np.uint16)
    expected = rounded_half((halves.astype(np.float64) + 0.5) / 65536 - 0.5)
    assert same(stream_arithmetic("f16v4sufromui $a4:5, $a0:1", words).view(np.float16), expected)


@pytest.mark.parametrize("mode", ["down", "up", "zero"])
@pytest.mark.parametrize("is_143", [True, False])
@pytest.mark.parametrize("scale", [0, -9, 4])
def test_rounding_modes_of_bytes(mode: str, is_143: bool, scale: int) -> None:
    """Every half goes to its neighbour among the 8-bit numbers on the side of the mode, or to the largest."""
    table = byte_values(is_143=is_143)
    values = np.unique(table[np.isfinite(table)])
    words = HALVES.view(np.uint32).reshape(-1, 4)
    setup = set_format(is_143=is_143, scale=scale) + set_float_control(ROUNDING[mode] << 16)
    got = stream_arithmetic("f16v8tof8 $a4:5, $a0:3", words, setup=setup).view(np.uint8).reshape(-1)
    numbers = HALVES.view(np.float16).astype(np.float64) * 2.0**scale
    limited = np.clip(numbers, values[0], values[-1])
    below = values[np.searchsorted(values, limited, side="right") - 1]
    above = values[np.minimum(np.searchsorted(values, limited, side="left"), len(values) - 1)]
    toward_zero = np.where(limited > 0, below, above)
    expected = {"down": below, "up": above, "zero": toward_zero}[mode]
    assert same(table[got], np.where(np.isnan(numbers), np.nan, expected), zeros=False)


@pytest.mark.parametrize("mode", ROUNDING)
def test_rounding_modes_of_other_conversions(mode: str) -> None:
    """Integers to binary32, sums of halves, symmetric numbers, accumulators as halves, 8-bit to halves."""
    setup = set_float_control(ROUNDING[mode] << 16)
    words = word_operands(600)
    signed = words[:, 0].astype(np.int32).tolist()
    for name, exact in (("f32fromi32", signed), ("f32fromui32", words[:, 0].tolist())):
        got = stream_arithmetic(f"{name} $a4, $a0", words, setup=setup)[:, 0].copy().view(np.float32)
        for number, result in zip(exact, got.tolist(), strict=True):
            assert result == word_of(Fraction(number), mode), (name, number)
    got = stream_arithmetic("f32v2sufromui $a4:5, $a0:1", words, setup=setup).view(np.float32)
    for number, result in zip(words[:, 1].tolist(), got[:, 1].tolist(), strict=True):
        assert result == word_of(Fraction(2 * number + 1, 2**33) - Fraction(1, 2), mode)
    halves = half_operands(600)
    values = as_doubles(halves, halves=True)
    got = stream_arithmetic("f16v2sufromui $a4, $a0", halves, setup=setup).view(np.float16)[:, :2]
    exact_halves = (halves[:, :1].copy().view(np.uint16).astype(np.float64) + 0.5) / 65536 - 0.5
    assert same(got, rounded_half(exact_halves, mode))
    got = stream_arithmetic("f16v2sum $a4, $a0", halves, setup=setup)[:, 0].copy().view(np.float32)
    for first, second, result in zip(values[:, 0].tolist(), values[:, 1].tolist(), got.tolist(), strict=True):
        if math.isfinite(first) and math.isfinite(second):
            assert result == word_of(Fraction(first) + Fraction(second), mode)
    body = "uput $FP_CLR, $a6\nf32v4acc $a0:3\nf16v4gacc $a4:5"
    got = stream_arithmetic(body, words, setup=setup + "setzi $a6, 8\n").view(np.float16)
    assert same(got, rounded_half(as_doubles(words, halves=False), mode), zeros=False)
    table = np.arange(256, dtype=np.uint8).view(np.uint32)
    words = np.zeros((64, 4), np.uint32)
    words[:, 0] = table
    for is_143 in (True, False):
        numbers = byte_values(is_143=is_143) * 2.0**-16
        used = set_format(is_143=is_143, scale=-16) + setup
        got = stream_arithmetic("f8v4tof16 $a4:5, $a0", words, setup=used).view(np.float16)
        assert same(got, rounded_half(numbers, mode).reshape(-1, 4))


def word_of(exact: Fraction, mode: str) -> float:
    """The binary32 number that any mode rounds an exact number to."""
    if mode != "nearest":
        return directed_word(exact, mode)
    below, above = directed_word(exact, "down"), directed_word(exact, "up")
    lower, upper = exact - Fraction(below), Fraction(above) - exact
    if lower != upper:
        return below if lower < upper else above
    return below if int(np.float32(below).view(np.uint32)) % 2 == 0 else above
