"""Number formats of tensor elements, and the codec of the 8-bit float F143.

A precision says how wide an element is and how many elements fill one 32-byte panel row, the unit in which
the AMP matrix unit reads its operands. Everything else in this package takes panel shapes from here, never
from a constant.

F143 has 1 sign, 4 exponent (bias 8) and 3 mantissa bits: (-1)^s * 2^(e-8) * (1 + m/8) for e >= 1 and
m * 2^-10 for e = 0. The largest magnitude is 240 (0x7f), zero is 0x00 only, 0x80 is the only NaN, and there
is no infinity. A stored value counts as code value * 2^scale exponent. (Source: vendor instruction
documentation and measurements on hardware.)
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

PANEL_ROW_BYTES: Final = 32
"""Bytes of one panel row: what the AMP unit multiplies per row and coefficient load, in every precision."""

F143_LARGEST: Final = 240.0
F143_NAN: Final = 0x80
SCALE_EXPONENTS: Final = range(-32, 32)
"""Scale exponents of conversions: six bits, two's complement."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class F32:
    """IEEE binary32."""

    element_bytes: ClassVar[int] = 4
    micro: ClassVar[int] = 8
    dtype: ClassVar[np.dtype[np.float32]] = np.dtype("<f4")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class F16:
    """IEEE binary16."""

    element_bytes: ClassVar[int] = 2
    micro: ClassVar[int] = 16
    dtype: ClassVar[np.dtype[np.float16]] = np.dtype("<f2")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class F8:
    """F143 codes that stand for code value * 2^``scale_exponent``.

    Raises:
        ValueError: the scale exponent does not fit six bits.
    """

    scale_exponent: int = 0

    element_bytes: ClassVar[int] = 1
    micro: ClassVar[int] = 32
    dtype: ClassVar[np.dtype[np.uint8]] = np.dtype("u1")

    def __post_init__(self) -> None:
        _check_scale(self.scale_exponent)


Precision: TypeAlias = F32 | F16 | F8
"""How elements are stored. ``micro`` is the number of elements in a panel row (K per AMP step)."""


def encode_f143(values: npt.ArrayLike, scale_exponent: int = 0) -> npt.NDArray[np.uint8]:
    """Codes of ``values`` (any shape): nearest even, saturating at +-240, NaN to 0x80, zero to 0x00.

    Infinities saturate; a negative value that rounds to zero becomes 0x00.

    Raises:
        ValueError: the scale exponent does not fit six bits.
    """
    _check_scale(scale_exponent)
    # Signalling NaNs and values that overflow at this scale are ordinary inputs: NaN and saturation.
    with np.errstate(invalid="ignore", over="ignore"):
        exact = np.ldexp(np.asarray(values, dtype=np.float64), -scale_exponent)
    magnitude = np.minimum(np.abs(np.nan_to_num(exact, nan=0.0)), F143_LARGEST)
    # frexp returns m in [1/2, 1), so binades start at exponent - 1; below 2^-7 the spacing no longer shrinks.
    spacing_exponent = np.maximum(np.frexp(magnitude)[1] - 1, -7) - 3
    rounded = np.ldexp(np.rint(np.ldexp(magnitude, -spacing_exponent)), spacing_exponent)
    # In units of 2^-10 every representable magnitude is an integer, and codes grow by 8 per binade.
    units = np.ldexp(rounded, 10).astype(np.int64)
    binade = np.maximum(np.frexp(units.astype(np.float64))[1] - 1, 3)
    codes = ((binade - 3) << 3) + (units >> (binade - 3))
    codes = np.where((exact < 0) & (codes != 0), codes | 0x80, codes)
    return np.where(np.isnan(exact), F143_NAN, codes).astype(np.uint8)


def decode_f143(codes: npt.ArrayLike, scale_exponent: int = 0) -> npt.NDArray[np.float32]:
    """Values of F143 ``codes`` (uint8, any shape), times 2^``scale_exponent``; exact in binary32.

    Raises:
        ValueError: the scale exponent does not fit six bits.
    """
    _check_scale(scale_exponent)
    return np.ldexp(_CODE_VALUES[np.asarray(codes, dtype=np.uint8)], scale_exponent)


def scale_for_max(largest: float) -> int:
    """Smallest scale exponent at which ``largest`` does not saturate: ceil(log2(largest / 240)), clamped.

    Raises:
        ValueError: ``largest`` is negative or not finite.
    """
    if not (math.isfinite(largest) and largest >= 0):
        raise ValueError(f"the largest magnitude must be finite and not negative, not {largest}")
    if largest == 0:
        return SCALE_EXPONENTS.start
    mantissa, exponent = math.frexp(largest)
    limit, limit_exponent = math.frexp(F143_LARGEST)
    scale = exponent - limit_exponent + (mantissa > limit)
    return min(max(scale, SCALE_EXPONENTS.start), SCALE_EXPONENTS.stop - 1)


def _check_scale(scale_exponent: int) -> None:
    if scale_exponent not in SCALE_EXPONENTS:
        raise ValueError(
            f"scale exponent {scale_exponent} is not in {SCALE_EXPONENTS.start} .. {SCALE_EXPONENTS.stop - 1}"
        )


def _code_values() -> npt.NDArray[np.float32]:
    codes = np.arange(256)
    exponent, mantissa = codes >> 3 & 15, codes & 7
    normal = np.ldexp(1.0 + mantissa / 8.0, exponent - 8)
    magnitude = np.where(exponent == 0, np.ldexp(mantissa.astype(np.float64), -10), normal)
    values = np.where(codes & 0x80, -magnitude, magnitude)
    values[F143_NAN] = np.nan
    return values.astype(np.float32)


_CODE_VALUES: Final = _code_values()
