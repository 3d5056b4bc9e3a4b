"""Numbers of each precision as binary32 arrays: rounding, and reading what files and hosts store.

Rounding is to nearest even. A finite number that is too large becomes the largest finite one, as on the
device (decision ``overflow``); infinities stay in F16, and F8 has none. NaN stays NaN.
"""

from typing import assert_never

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143


def rounded(values: npt.NDArray[np.float32], precision: Precision) -> npt.NDArray[np.float32]:
    """``values`` (any shape) rounded to ``precision``: a new array, or the same one for F32."""
    match precision:
        case F32():
            return values
        case F16():
            copy = values.ravel().copy()
            round_to_halves(copy, copy.view(np.uint32))
            return copy.reshape(values.shape)
        case F8(scale_exponent=scale):
            return decode_f143(encode_f143(values, scale), scale)
        case _:
            assert_never(precision)


def stored(values: npt.NDArray[np.float64], precision: Precision) -> npt.NDArray[np.generic]:
    """``values`` as they are stored: little-endian binary32 or binary16, or F143 codes."""
    match precision:
        case F32():
            largest = np.finfo(np.float32).max
            return np.clip(values, -largest, largest).astype(F32.dtype)
        case F16():
            return np.clip(values, -65504, 65504).astype(F16.dtype)
        case F8(scale_exponent=scale):
            return encode_f143(values, scale)
        case _:
            assert_never(precision)


def loaded(array: npt.NDArray[np.generic], precision: Precision) -> npt.NDArray[np.float32]:
    """The numbers of an array as it is stored."""
    if isinstance(precision, F8):
        return decode_f143(array, precision.scale_exponent)
    return array.astype(np.float32)


@compiled
def round_to_halves(values: npt.NDArray[np.float32], bits: npt.NDArray[np.uint32]) -> None:
    """Round in place to the nearest binary16.

    Normal halves keep 10 of the 23 bits of a mantissa: the half of what is dropped is added, less one bit
    unless the last kept bit is odd. Below 2^-14 halves are multiples of 2^-24, which is the spacing of
    binary32 from 1/2 to 1: adding 1/2 rounds, and subtracting it is exact.

    Args:
        values: [n].
        bits: the same memory as integers.
    """
    for index in range(len(values)):
        sign = bits[index] & np.uint32(0x80000000)
        magnitude = bits[index] & np.uint32(0x7FFFFFFF)
        if magnitude >= np.uint32(0x7F800000):  # infinity and NaN
            continue
        if magnitude < np.uint32(0x38800000):  # 2^-14
            half = np.float32(-0.5) if sign else np.float32(0.5)
            values[index] = (values[index] + half) - half
            bits[index] |= sign  # of a zero
        else:
            odd = (magnitude >> np.uint32(13)) & np.uint32(1)
            magnitude = (magnitude + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
            bits[index] = min(magnitude, np.uint32(0x477FE000)) | sign  # 65504
