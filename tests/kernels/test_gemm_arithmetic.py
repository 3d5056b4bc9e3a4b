"""The numbers of products against the definition written out with NumPy, bit for bit."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, decode_f143
from compiler.kernels.gemm.arithmetic import STEPS, multiply
from compiler.kernels.halves import round_halves


def reference(
    left: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float16],
    micro: int,
    scale: int | None,
) -> npt.NDArray[np.float16]:
    """Panel after panel, instruction after instruction, product after product."""
    step = micro // STEPS
    for panel in range(0, left.shape[1], micro):
        total = sums.astype(np.float32)
        # Values that are not finite are ordinary here: they come out as they would.
        with np.errstate(invalid="ignore", over="ignore"):
            for first in range(panel, panel + micro, step):
                part = left[:, first, None] * weights[None, first]
                for k in range(first + 1, first + step):
                    part = part + left[:, k, None] * weights[None, k]
                if scale is not None:
                    part = np.ldexp(part, scale)
                total = (total.astype(np.float64) + part).astype(np.float32)
        sums = round_halves(total)
    return sums


def any_halves(random: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float16]:
    """Halves of every size: subnormal ones, large ones, and now and then what is not finite."""
    values = random.integers(0, 1 << 16, shape, dtype=np.uint16).view(np.float16)
    plain = (random.standard_normal(shape) * 10.0 ** random.integers(-6, 4, shape)).astype(np.float16)
    return np.where(random.random(shape) < 0.002, values, plain)


@given(
    seed=st.integers(0, 1 << 32),
    rows=st.integers(1, 5),
    panels=st.integers(1, 4),
    columns=st.sampled_from([1, 16, 48, 33]),
    scale=st.one_of(st.none(), st.integers(-32, 31)),
)
def test_multiply_is_the_definition(
    seed: int, rows: int, panels: int, columns: int, scale: int | None
) -> None:
    """Halves, and codes with every scale, on top of any sums."""
    random = np.random.default_rng(seed)
    sums = any_halves(random, (rows, columns))
    if scale is None:
        micro = F16.micro
        left = any_halves(random, (rows, panels * micro)).astype(np.float64)
        weights = any_halves(random, (panels * micro, columns)).astype(np.float64)
    else:
        micro = F8.micro
        left, weights = (
            decode_f143(random.integers(0, 256, shape, dtype=np.uint8)).astype(np.float64)
            for shape in ((rows, panels * micro), (panels * micro, columns))
        )
    made = multiply(left, weights, sums, micro, scale)
    assert np.array_equal(made.view(np.uint16), reference(left, weights, sums, micro, scale).view(np.uint16))


@pytest.mark.parametrize("k", [1, 15, 17, 40])
def test_a_last_panel_that_is_not_full(k: int) -> None:
    """What is missing counts as zero."""
    random = np.random.default_rng(k)
    left = random.standard_normal((3, k)).astype(np.float16).astype(np.float64)
    weights = random.standard_normal((k, 16)).astype(np.float16).astype(np.float64)
    whole = -(-k // 16) * 16
    padded = np.zeros((3, whole)), np.zeros((whole, 16))
    padded[0][:, :k], padded[1][:k] = left, weights
    sums = np.zeros((3, 16), dtype=np.float16)
    assert np.array_equal(multiply(left, weights, sums, 16), reference(*padded, sums, 16, None))


def test_every_rounding_of_a_sum() -> None:
    """Sums of one product that lie between, on and beyond halves: as NumPy rounds, but for what overflows."""
    bits = np.arange(0, 1 << 16, 3, dtype=np.uint16)
    values = bits.view(np.float16).astype(np.float64)
    left = np.zeros((len(values), 16))
    left[:, 0], left[:, 1] = values, 1.0
    weights = np.zeros((16, 3))
    weights[0] = 1.0
    weights[1] = [2.0**-24, 2.0**-12, 15.99]
    sums = np.zeros((len(values), 3), dtype=np.float16)
    made = multiply(left, weights, sums, 16)
    assert np.array_equal(made.view(np.uint16), reference(left, weights, sums, 16, None).view(np.uint16))


@pytest.mark.parametrize("micro", [16, 32])
def test_products_of_an_instruction_are_summed_in_their_order(micro: int) -> None:
    """Binary64 cannot hold a large and a small one together: what is left depends on the order."""
    step = micro // STEPS
    for small in range(step):
        for others in ((0, 1), (1, 2), (0, 2), (step - 2, step - 1)):
            left, weights = np.zeros((1, micro)), np.zeros((micro, 16))
            left[0, list(others)], weights[list(others)] = 32768.0, 65504.0
            left[0, others[1]] *= -1
            if small not in others:
                left[0, small], weights[small] = 2.0**-12, 2.0**-12
            sums = np.zeros((1, 16), dtype=np.float16)
            made = multiply(left, weights, sums, micro)
            # What comes before both are gone is lost; else it is the smallest half.
            is_lost = small < others[1]
            assert (made == (0 if is_lost or small in others else np.float16(2.0**-24))).all()
