"""Conversions between halves and F143, for the semantics of families and for their code.

A tensor of F143 stores codes that stand for code value * 2**scale exponent. The conversion instructions take
one number format and one power of two from control registers of the worker; the scale is an argument of the
call. A value that is too large becomes the largest code, which is what quantization means by it: a kernel
that makes codes takes exceptions for overflow off its own workers (other exceptions stay).
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import SCALE_EXPONENTS, decode_f143, encode_f143
from compiler.kernels.contract import Scalar
from compiler.kernels.halves import round_halves

SETUP: Final = 7
"""Instructions that ready a worker for conversions."""

_FIELD: Final = 63


def quantizing(scale_exponent: int) -> Scalar | None:
    """The argument for making codes of this scale; None when its inverse does not fit the register."""
    if -scale_exponent not in SCALE_EXPONENTS:
        return None
    return Scalar(name="conversion_exponent", value=-scale_exponent & _FIELD)


def restoring(scale_exponent: int) -> Scalar:
    """The argument for reading codes of this scale."""
    return Scalar(name="conversion_exponent", value=scale_exponent & _FIELD)


def exponent_of(argument: int) -> int:
    """The signed exponent of such an argument."""
    return argument - (_FIELD + 1) if argument > _FIELD // 2 else argument


def codes_of(values: npt.NDArray[np.float16], argument: int) -> npt.NDArray[np.uint8]:
    """Codes of halves, same shape, as ``f16v8tof8`` makes them."""
    return encode_f143(values, -exponent_of(argument))


def halves_of(codes: npt.NDArray[np.uint8], argument: int) -> npt.NDArray[np.float16]:
    """Halves of codes, same shape, as ``f8v4tof16`` makes them."""
    return round_halves(decode_f143(codes, exponent_of(argument)))
