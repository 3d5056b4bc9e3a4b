"""Arithmetic on binary16 as the tile does it, for the semantics of families.

One rounding to nearest even per result. A finite result that is too large becomes the largest finite number
(decision ``overflow``), an infinite one stays infinite, and there is one NaN.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

LARGEST: Final = np.float16(65504)
"""Largest finite half."""

_NAN: Final = np.uint16(0x7E00)


def halves(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.float16]:
    """Bytes [2 * n] as halves [n]."""
    return data.view(np.dtype("<f2"))


def round_halves(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    """Binary32 to halves, same shape."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = values.astype(np.float16)
    rounded = np.where(np.isinf(rounded) & np.isfinite(values), np.copysign(LARGEST, rounded), rounded)
    rounded.view(np.uint16)[np.isnan(rounded)] = _NAN
    return rounded


def add_halves(
    left: npt.NDArray[np.float16], right: npt.NDArray[np.float16] | np.float16
) -> npt.NDArray[np.float16]:
    """Sums of halves, broadcast. Binary32 has bits enough that rounding twice does no harm."""
    with np.errstate(invalid="ignore"):
        return round_halves(left.astype(np.float32) + right.astype(np.float32))


def multiply_halves(
    left: npt.NDArray[np.float16], right: npt.NDArray[np.float16] | np.float16
) -> npt.NDArray[np.float16]:
    """Products of halves, broadcast; binary32 holds them exactly."""
    with np.errstate(invalid="ignore"):
        return round_halves(left.astype(np.float32) * right.astype(np.float32))


def to_bytes(values: npt.NDArray[np.float16]) -> npt.NDArray[np.uint8]:
    """Halves of any shape as bytes, last axis fastest."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(-1)
