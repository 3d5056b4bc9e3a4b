"""The conversions of casts: what each does to a value, and with which arguments.

==========  =====================================================================================
conversion  what happens to a value
==========  =====================================================================================
F32 to F16  rounded; too large: the largest half
F16 to F32  nothing
F16 to F8   times 2**-scale, rounded to a code; too large: the largest
F8 to F16   code value times 2**scale; too large: the largest half
F8 to F8    value kept, rounded to a code of the other scale
F32 to F8   times 2**-scale, rounded to a half, and that to a code; too large: the largest
F8 to F32   code value times 2**scale
==========  =====================================================================================

The tile converts F32 to and from halves, and halves to and from F143, so that F32 and F143 meet through a
half that is scaled already: no scale moves values out of its range. What is seen of it are the two roundings
of F32 to F8, where a half lies between two codes.
"""

from enum import Enum
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.kernels.contract import Scalar
from compiler.kernels.eight_bit import codes_of, exponent_of, halves_of, quantizing, restoring
from compiler.kernels.halves import halves, round_halves

_BYTES: Final = {"f32": 4, "f16": 2, "f8": 1}
NAMES: Final = {F32: "f32", F16: "f16", F8: "f8"}
"""Of precisions, in symbols."""


class Conversion(Enum):
    """From one precision to another; F143 has a scale."""

    F32_F16 = ("f32", "f16")
    F16_F32 = ("f16", "f32")
    F16_F8 = ("f16", "f8")
    F8_F16 = ("f8", "f16")
    F8_F8 = ("f8", "f8")
    F32_F8 = ("f32", "f8")
    F8_F32 = ("f8", "f32")

    @property
    def source_bytes(self) -> int:
        """Of an element."""
        return _BYTES[self.value[0]]

    @property
    def result_bytes(self) -> int:
        """Of an element."""
        return _BYTES[self.value[1]]

    @property
    def unit(self) -> int:
        """Elements in 64 bits of the narrower side."""
        return 8 // min(self.source_bytes, self.result_bytes)

    @property
    def is_eight_bit(self) -> bool:
        """Whether F143 takes part."""
        return "f8" in self.value

    @property
    def is_narrowing(self) -> bool:
        """Whether the result is shorter than the source."""
        return self.result_bytes < self.source_bytes

    @property
    def has_exponent(self) -> bool:
        """Whether an argument says by which power of two the conversion of halves multiplies."""
        return self.is_eight_bit and "f32" not in self.value

    @property
    def has_factor(self) -> bool:
        """Whether an argument is a number by which all elements are multiplied."""
        return self is Conversion.F8_F8 or (self.is_eight_bit and "f32" in self.value)

    @property
    def scale_count(self) -> int:
        """Arguments that scales make."""
        return self.has_exponent + self.has_factor


def conversion_of(source: Precision, result: Precision) -> Conversion | None:
    """The conversion between two precisions; None when both are the same and have no scale."""
    pair = (NAMES[type(source)], NAMES[type(result)])
    return next((each for each in Conversion if each.value == pair), None)


def scale_arguments(source: Precision, result: Precision) -> tuple[Scalar, ...] | None:
    """The arguments that scales make; None when one does not fit.

    The register with the power of two serves both conversions of F8 to F8: half of the exponent is applied by
    each, and what is odd by a multiplication between them. All but the last conversion are exact, or so far
    out of range that the result is zero, or the largest code, in any case.
    """
    match source, result:
        case F8(), F8():
            difference = source.scale_exponent - result.scale_exponent
            factor = np.float16(2 if difference % 2 else 1)
            return (
                restoring(difference // 2),
                Scalar(name="factor", value=int(factor.view(np.uint16))),
            )
        case F32(), F8():
            return (_power(-result.scale_exponent),)
        case F8(), F32():
            return (_power(source.scale_exponent),)
        case _, F8():
            conversion = quantizing(result.scale_exponent)
            return None if conversion is None else (conversion,)
        case F8(), _:
            return (restoring(source.scale_exponent),)
        case _:
            return ()


def _power(exponent: int) -> Scalar:
    """A power of two as a binary32 argument."""
    return Scalar(name="factor", value=int(np.ldexp(np.float32(1), exponent).view(np.uint32)))


def converted(
    conversion: Conversion, data: npt.NDArray[np.uint8], scales: tuple[int, ...]
) -> npt.NDArray[np.generic]:
    """Elements [n] of the result, from the bytes of the operand and the arguments for scales."""
    match conversion:
        case Conversion.F32_F16:
            return round_halves(data.view(np.dtype("<f4")))
        case Conversion.F16_F32:
            with np.errstate(invalid="ignore"):
                return _with_one_nan(halves(data).astype(np.float32))
        case Conversion.F16_F8:
            return codes_of(halves(data), scales[0])
        case Conversion.F8_F16:
            return halves_of(data, scales[0])
        case Conversion.F8_F8:
            exponent = 2 * exponent_of(scales[0]) + (scales[1] != int(np.float16(1).view(np.uint16)))
            values = np.ldexp(decode_f143(data).astype(np.float64), exponent)
            return encode_f143(values)
        case Conversion.F32_F8:
            with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                scaled = data.view(np.dtype("<f4")) * _number(scales[0])
            return encode_f143(round_halves(scaled))
        case Conversion.F8_F32:
            return _with_one_nan(decode_f143(data) * _number(scales[0]))
        case _:
            assert_never(conversion)


def _number(argument: int) -> np.float32:
    """The number that an argument is."""
    return np.uint32(argument).view(np.float32)


def _with_one_nan(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The same values; the tile has one NaN."""
    return np.where(np.isnan(values), np.float32(np.nan), values)
