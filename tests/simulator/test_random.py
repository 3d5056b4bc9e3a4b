"""Random numbers and stochastic rounding: the generator, the bits each result takes, and the odds."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.gemm import Product
from tests.simulator.matrix_reference import WIDE_ORDER
from tests.simulator.numerics import Floats, byte_values
from tests.simulator.programs import run_worker
from tests.simulator.streams import set_float_control, stream_arithmetic
from tests.simulator.test_products import execute, operands

MASK64 = (1 << 64) - 1
ESR = 1 << 19


class Generator:
    """xoroshiro128 with and-or-xor output, in unbounded integers."""

    def __init__(self, seed: int) -> None:
        inverted = ~seed & 0xFFFFFFFF
        self.s0 = seed | inverted << 32
        low = (seed << 13 & 0xFFFFFFFF) | inverted >> 19
        high = (inverted << 13 & 0xFFFFFFFF) | seed >> 19
        self.s1 = low | high << 32

    @staticmethod
    def rotate(word: int, places: int) -> int:
        """A 64-bit word rotated left."""
        return (word << places | word >> (64 - places)) & MASK64

    def step(self) -> int:
        """The next 64 bits."""
        mixed, both = self.s0 ^ self.s1, self.s0 & self.s1
        self.s0 = self.rotate(self.s0, 55) ^ mixed ^ (mixed << 14 & MASK64)
        self.s1 = self.rotate(mixed, 36)
        return mixed ^ (self.rotate(both, 1) | self.rotate(both, 2))


def seeded(seed: int) -> str:
    return f"ldconst $a7, {seed:#x}\nuput $PRNG_SEED, $a7\n"


@given(seed=st.integers(0, 2**32 - 1))
def test_the_generator(seed: int) -> None:
    model = Generator(seed)
    state = [model.s0 & 0xFFFFFFFF, model.s0 >> 32, model.s1 & 0xFFFFFFFF, model.s1 >> 32]
    body = seeded(seed) + "".join(f"uget $a{k}, {3 + k}\n" for k in range(4))
    body += "urand64 $a4:5\nurand32 $a6\n"
    tile, run = run_worker(body)
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in range(4)] == state
    first, second = model.step(), model.step()
    got = [tile.arithmetic_register(0, k) for k in (4, 5, 6)]
    assert got == [first & 0xFFFFFFFF, first >> 32, second & 0xFFFFFFFF]


def test_state_of_the_generator_can_be_written() -> None:
    body = "".join(f"uput {3 + k}, $a{k}\n" for k in range(4)) + "urand64 $a4:5\n"
    tile, _ = run_worker(body, arithmetic={0: 1, 1: 2, 2: 3, 3: 4})
    model = Generator(0)
    model.s0, model.s1 = 1 | 2 << 32, 3 | 4 << 32
    value = model.step()
    assert [tile.arithmetic_register(0, k) for k in (4, 5)] == [value & 0xFFFFFFFF, value >> 32]


def test_a_fresh_tile_has_random_numbers() -> None:
    """Each worker has others, the same in every run."""
    draws: list[tuple[int, ...]] = []
    for worker in (0, 1, 5, 0):
        tile, _ = run_worker("urand64 $a0:1\n" * 20 + "urand64 $a2:3", worker=worker)
        draws.append(tuple(tile.arithmetic_register(worker, k) for k in range(4)))
    assert draws[0] == draws[3]
    assert len(set(draws)) == 3
    assert all(word for words in draws for word in words)


def stochastic(exact: Fraction, random: int) -> float:
    """The half that 16 random bits round an exact value to."""
    magnitude = abs(exact)
    exponent = -24
    while magnitude >= Fraction(2) ** (exponent + 11):
        exponent += 1
    scaled = magnitude / Fraction(2) ** exponent
    whole = scaled.numerator // scaled.denominator
    up = int((scaled - whole) * 65536) + random >= 65536
    result = (whole + up) * 2.0**exponent
    return -result if exact < 0 else result


@given(seed=st.integers(0, 2**32 - 1), small=st.integers(-20, 0))
def test_each_half_takes_16_bits(seed: int, small: int) -> None:
    random = np.random.default_rng(seed)
    numbers = (random.normal(size=(1, 8)) * 2.0**small).astype(np.float16)
    got = stream_arithmetic(
        "f16v4mul $a4:5, $a0:1, $a2:3", numbers.view(np.uint32), setup=set_float_control(ESR) + seeded(seed)
    ).view(np.float16)[0]
    bits = Generator(seed).step()
    for k in range(4):
        exact = Fraction(float(numbers[0, k])) * Fraction(float(numbers[0, 4 + k]))
        assert float(got[k]) == stochastic(exact, bits >> 16 * k & 0xFFFF)


def stochastic_byte(exact: Fraction, random: int, *, is_143: bool) -> int:
    """The 8-bit float, as its pattern, that 16 random bits round an exact value inside the range to."""
    table = byte_values(is_143=is_143)[:0x80]
    magnitude = abs(exact)
    below = int(np.searchsorted(table, float(magnitude), side="right")) - 1
    gap = Fraction(float(table[min(below + 1, 0x7F)])) - Fraction(float(table[below]))
    fraction = (magnitude - Fraction(float(table[below]))) / gap if gap else Fraction(0)
    pattern = below + (int(fraction * 65536) + random >= 65536)
    return pattern | 0x80 if exact < 0 and pattern else pattern


CLEAR = "setzi $a6, 8\nuput $FP_CLR, $a6\n"


@given(seed=st.integers(0, 2**32 - 1))
def test_each_result_of_a_conversion_takes_16_bits(seed: int) -> None:
    """Conversions of words, accumulators as halves, symmetric numbers: result k takes bits 16k and up."""
    random = np.random.default_rng(seed)
    words = random.normal(size=(1, 4)).astype(np.float32)
    raw = words.view(np.uint32)
    numbers = [Fraction(float(word)) for word in words[0]]
    symmetric = [Fraction(2 * int(half) + 1, 1 << 17) - Fraction(1, 2) for half in raw.view(np.uint16)[0]]
    cases = [
        ("f32v4tof16 $a4:5, $a0:3", numbers), ("f32v2tof16 $a4, $a2:3", numbers[2:]),
        ("f32tof16 $a4, $a1", numbers[1:2]), ("f16v4sufromui $a4:5, $a0:1", symmetric[:4]),
        ("f16v2sufromui $a4, $a1", symmetric[2:4]), (f"{CLEAR}f32v4acc $a0:3\nf16v4gacc $a4:5", numbers),
        (f"{CLEAR}f32v4acc $a0:3\nf16v2gina $a4, $a0, 0", numbers[:2]),
        (f"{CLEAR}uput $TAS, $azero\nf32v4acc $a0:3\nf16v4mix $a4:5, $azeros, $azeros", numbers),
    ]  # fmt: skip
    for body, exact in cases:
        got = stream_arithmetic(body, raw, setup=set_float_control(ESR) + seeded(seed)).view(np.float16)[0]
        bits = Generator(seed).step()
        for k, number in enumerate(exact):
            assert float(got[k]) == stochastic(number, bits >> 16 * k & 0xFFFF), (body, k)
        if body.startswith("f32tof16"):
            assert got[1] == got[0]


@given(seed=st.integers(0, 2**32 - 1), is_143=st.booleans())
def test_eight_bytes_take_two_steps(seed: int, *, is_143: bool) -> None:
    numbers = np.random.default_rng(seed).normal(size=(1, 8)).astype(np.float16)
    setup = f"setzi $a6, {2 if is_143 else 0}\nuput $FP_NFMT, $a6\n" + set_float_control(ESR) + seeded(seed)
    got = stream_arithmetic("f16v8tof8 $a4:5, $a0:3", numbers.view(np.uint32), setup=setup).view(np.uint8)[0]
    model = Generator(seed)
    steps = [model.step(), model.step()]
    for k, number in enumerate(numbers[0].tolist()):
        bits = steps[k // 4] >> 16 * (k % 4) & 0xFFFF
        assert got[k] == stochastic_byte(Fraction(number), bits, is_143=is_143), k


@given(seed=st.integers(0, 2**32 - 1), small=st.integers(-20, 0))
def test_each_half_of_the_matrix_units_takes_16_bits(seed: int, small: int) -> None:
    """One step of the generator for each instruction, 16 bits of it for each of its four results."""
    random = np.random.default_rng(seed)
    sums = (random.normal(size=16) * 2.0**small).astype(np.float32)
    tile = Tile(default_options())
    for unit in range(0, 16, 2):  # eight pairs through the even accumulators of both sets
        words = {k: int(sums[unit + k].view(np.uint32)) for k in range(2)}
        run_worker(f"f32v2gina $azeros, $a0:1, {2 * (unit // 8)}", arithmetic=words, tile=tile)
    phases = "".join(
        f"f16v4hihov4amp $a{2 * phase}:{2 * phase + 1}, $azeros, $azeros, TAMP_F16V4_E4_P{phase}\n"
        for phase in range(4)
    )
    _, run = run_worker(set_float_control(ESR) + seeded(seed) + phases, tile=tile)
    assert run.fault is None
    got = np.array([tile.arithmetic_register(0, k) for k in range(8)], np.uint32).view(np.float16)
    model = Generator(seed)
    steps = [model.step() for _ in range(4)]
    for index, unit in enumerate(WIDE_ORDER):
        bits = steps[index // 4] >> 16 * (index % 4) & 0xFFFF
        assert float(got[index]) == stochastic(Fraction(float(sums[unit])), bits)


def test_odds_of_rounding_up() -> None:
    """A value a quarter of the way between two halves goes up a quarter of the time."""
    count = 20_000
    words = np.zeros((count, 4), np.uint32)
    words[:, 0] = np.float32(1 + 2**-12).view(np.uint32)
    got = stream_arithmetic("f32tof16 $a4, $a0", words, setup=set_float_control(ESR) + seeded(3))[:, 0]
    ups = int((got & 0xFFFF == 0x3C01).sum())
    assert set((got & 0xFFFF).tolist()) == {0x3C00, 0x3C01}
    assert abs(ups / count - 0.25) < 4 * (0.25 * 0.75 / count) ** 0.5


@pytest.mark.parametrize("is_143", [True, False])
def test_stochastic_bytes_are_neighbours(is_143: bool) -> None:
    random = np.random.default_rng(1)
    words = random.normal(size=(500, 8)).astype(np.float16).view(np.uint32)
    setup = f"setzi $a6, {2 if is_143 else 0}\nuput $FP_NFMT, $a6\n" + set_float_control(ESR) + seeded(5)
    got = stream_arithmetic("f16v8tof8 $a4:5, $a0:3", words, setup=setup).view(np.uint8)
    table = byte_values(is_143=is_143)
    values = np.sort(table[np.isfinite(table)])
    numbers = words.view(np.float16).astype(np.float64)
    below = values[np.searchsorted(values, numbers, side="right") - 1]
    above = values[np.searchsorted(values, numbers, side="left")]
    results = table[got].reshape(numbers.shape)
    assert ((results == below) | (results == above)).all()
    assert (results == below).any()
    assert (results == above).any()


def test_random_masks() -> None:
    words = np.full((4000, 4), 0xFFFFFFFF, np.uint32)
    for probability, expected in ((0, 0.0), (0x10000, 1.0), (0x4000, 0.25), (0xC000, 0.75)):
        words[:, 2] = probability
        for name, kind in (("f16v4rmask", np.uint16), ("f32v2rmask", np.uint32)):
            got = stream_arithmetic(f"{name} $a4:5, $a0:1, $a2", words, setup=seeded(9)).view(kind)
            kept = float((got != 0).mean())
            assert set(np.unique(got).tolist()) <= {0, int(np.iinfo(kind).max)}
            assert abs(kept - expected) < 0.03


@pytest.mark.parametrize("panels", [1, 2, 5])
@pytest.mark.parametrize("is_byte", [False, True])
@pytest.mark.parametrize("accumulate", [False, True])
def test_stochastic_products_stay_within_one_step_a_panel(
    panels: int, *, is_byte: bool, accumulate: bool
) -> None:
    """Rounding one panel stochastically moves a result by less than one unit in the last place.

    So after k panels it is at most the sum of k such units from the exact sum, each unit that of the largest
    partial sum which the panel can have; binary32 sums inside add a thousandth.
    """
    shape = Product(
        rows=13, inner=panels * (32 if is_byte else 16), columns=32, stochastic=True,
        is_byte=is_byte, accumulate=accumulate, scale=-4 if is_byte else 0,
    )  # fmt: skip
    left, right, left_values, right_values = operands(shape, 11)
    start = np.random.default_rng(7).normal(size=(13, 32)).astype(np.float16) if accumulate else None
    _, run, out = execute(shape, left, right, start)
    assert run.stop is Stop.RETURNED
    _, _, rounded = execute(replace(shape, stochastic=False), left, right, start)
    exact = np.zeros((13, 32)) if start is None else start.astype(np.float64)
    bound = np.zeros_like(exact)
    for first in range(0, shape.inner, shape.micro):
        part = slice(first, first + shape.micro)
        exact = exact + left_values[:, part] @ right_values[part] * 2.0**shape.scale
        largest = np.abs(exact) + bound
        bound += np.spacing(largest.astype(np.float16)).astype(np.float64) * 1.001
        size = np.abs(left_values[:, part]) @ np.abs(right_values[part]) * 2.0**shape.scale
        bound += 2.0**-22 * (largest + size)
    assert (np.abs(out.astype(np.float64) - exact) <= bound).all()
    assert not np.array_equal(out, rounded)


def test_stochastic_products_are_right_on_average() -> None:
    """Over 60 seeds the mean of a result is within four standard deviations of its exact value."""
    shape = Product(rows=6, inner=16, columns=16, stochastic=True)
    left, right, left_values, right_values = operands(shape, 3)
    exact = left_values @ right_values
    results: list[Floats] = []
    for number in range(60):
        _, _, out = execute(shape, left, right, None, seeds=[6 * number + worker + 1 for worker in range(6)])
        results.append(out.astype(np.float64))
    step = np.spacing(np.abs(exact).astype(np.float16)).astype(np.float64)
    error = np.mean(results, axis=0) - exact
    # A result is one of two neighbours: its standard deviation is at most half a step.
    assert (np.abs(error) <= 4.5 * step / 2 / 60**0.5).all()
    assert (np.std(results, axis=0) > 0).mean() > 0.9
