"""Rounding to binary16, against NumPy's and over every half."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F16
from compiler.graph.rounding import round_to_halves, rounded


def _halves(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[float]:
    """NumPy's rounding, but too large numbers become the largest."""
    with np.errstate(over="ignore"):
        found = values.astype(np.float16).astype(np.float32)
    overflowed = np.isinf(found) & ~np.isinf(values)
    return np.where(overflowed, np.copysign(np.float32(65504), values), found).tolist()


def _bits(values: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[int]:
    return values.view(np.uint32).tolist()


def test_every_half_its_neighbours_and_every_tie() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    finite = np.sort(halves[np.isfinite(halves)].astype(np.float32))
    ties = (finite[1:].astype(np.float64) + finite[:-1]).astype(np.float32) / 2
    numbers = np.concatenate([finite, ties])
    for values in (numbers, np.nextafter(numbers, np.float32(9e9)), np.nextafter(numbers, np.float32(-9e9))):
        found = rounded(values.astype(np.float32), F16())
        wanted = np.array(_halves(values.astype(np.float32)), dtype=np.float32)
        assert _bits(found) == _bits(wanted)


@given(st.lists(st.integers(min_value=0, max_value=(1 << 32) - 1), min_size=1))
def test_any_binary32(bits: list[int]) -> None:
    values = np.array(bits, dtype=np.uint32).view(np.float32)
    found, wanted = rounded(values, F16()), np.array(_halves(values), dtype=np.float32)
    nan = np.isnan(values)
    assert np.isnan(found[nan]).all()
    assert _bits(found[~nan]) == _bits(wanted[~nan])
    copy = values.copy()
    round_to_halves.py_func(copy, copy.view(np.uint32))
    assert _bits(copy) == _bits(found)
