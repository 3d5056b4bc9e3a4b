"""Formats and the pinned numerics of the matrix units in NumPy, written from their definitions."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Halves = npt.NDArray[np.float16]
Bytes = npt.NDArray[np.uint8]

HALF_MAX = 65504.0


def byte_values(is_143: bool) -> Floats:
    """The number of each of the 256 patterns of an 8-bit float."""
    mantissa_bits, bias = (3, 8) if is_143 else (2, 16)
    values = np.zeros(256)
    for pattern in range(256):
        exponent = (pattern & 0x7F) >> mantissa_bits
        fraction = (pattern & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
        magnitude = (
            fraction * 2.0 ** (1 - bias) if exponent == 0 else (1 + fraction) * 2.0 ** (exponent - bias)
        )
        values[pattern] = -magnitude if pattern & 0x80 else magnitude
    values[0x80] = np.nan
    return values


def saturated_half(values: npt.NDArray[np.floating[Any]]) -> Halves:
    """Rounded to nearest even; finite values never become infinite."""
    with np.errstate(over="ignore", invalid="ignore"):
        halves = values.astype(np.float16)
    too_large = np.isinf(halves) & np.isfinite(values)
    return np.where(too_large, np.copysign(np.float16(HALF_MAX), halves), halves).astype(np.float16)


def product(left: Floats, right: Floats, start: Halves | None, micro: int, scale: int = 0) -> Halves:
    """A product as six workers compute it: panel after panel, halves between panels.

    Args:
        left: [R, K] as binary64.
        right: [K, C] as binary64.
        start: [R, C] partials, or None to start from zero.
        micro: K of a panel; a quarter of it goes into one instruction.
        scale: exponent by which each instruction's sum of products is multiplied.
    """
    rows, columns = left.shape[0], right.shape[1]
    result = np.zeros((rows, columns), np.float16) if start is None else start
    step = micro // 4
    for panel in range(0, left.shape[1], micro):
        accumulator = result.astype(np.float32)
        for first in range(panel, panel + micro, step):
            total = left[:, first : first + 1] * right[first]
            for element in range(first + 1, first + step):
                total = total + left[:, element : element + 1] * right[element]
            accumulator = (accumulator.astype(np.float64) + total * 2.0**scale).astype(np.float32)
        result = saturated_half(accumulator)
    return result
