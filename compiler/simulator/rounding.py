"""Binary16, binary32 and the 8-bit formats: bit patterns to numbers and back, each rounding done once.

Patterns are integers. A rounding function returns the pattern with the floating-point flags it raises above
it: ``pattern | flags << 16`` for halves, ``<< 32`` for words, ``<< 8`` for bytes. ``control`` is a FP_CTL
word; ``random`` is 16 fresh random bits and is used only when FP_CTL asks for stochastic rounding.

**One rounding.** Sums, differences and products of halves are exact in binary64 (their bits span 42 and 22
places). For nearest even, binary32 arithmetic followed by rounding to binary16 gives the same result: 24 bits
are at least twice 11 plus 2, for which double rounding is known to be harmless. Other modes start from the
exact binary64 value.

**Stochastic rounding** adds 16 random bits to the first 16 bits behind the last place and carries: an exact
value never changes, and a value a fraction f (in units of 2**-16, rounded down) above its lower neighbour
goes up with probability f.

**Overflow** of halves and bytes follows the decision ``overflow``: largest finite value, or NaN with NANOO;
binary32 overflows to infinity (or to the largest value when the rounding mode points to zero), as IEEE 754
says, because NANOO speaks of half results (decision ``word-overflow``). An infinity that goes in comes out.
There is one NaN pattern of each format (decision ``nan-pattern``).

Rounding modes are the codes of the decisions ``TFPU_ROUND_*``; writing another one to FP_CTL or FP_ICTL stops
the tile (decision ``rounding-codes``), so that none arrives here.
"""

import math
from typing import Final

import numpy as np

from compiler.compiled import compiled

INVALID: Final = 1
DIVISION_BY_ZERO: Final = 2
OVERFLOW: Final = 4

ROUNDING: Final = 7 << 16
ROUNDING_SHIFT: Final = 16
STOCHASTIC: Final = 1 << 19
NAN_ON_OVERFLOW: Final = 1 << 20
NOT_NEAREST: Final = ROUNDING | STOCHASTIC

NEAREST: Final = 0
DOWN: Final = 1
UP: Final = 2
TOWARD_ZERO: Final = 3
HIGHEST_ROUNDING: Final = 3
"""Codes above it mean nothing that any source states."""

HALF_NAN: Final = 0x7E00
HALF_MAX: Final = 0x7BFF
HALF_INFINITY: Final = 0x7C00
WORD_NAN: Final = 0x7FC00000
WORD_INFINITY: Final = 0x7F800000
BYTE_NAN: Final = 0x80

LONGEST_SHIFT: Final = 61
"""A significand of 53 bits moved this far has nothing left, not even half of the last place."""


@compiled
def word_to_float(pattern: int) -> np.float32:
    """The binary32 number of a pattern."""
    return np.uint32(pattern).view(np.float32)


@compiled
def float_to_word(number: np.float32) -> int:
    """The pattern of a binary32 number."""
    return int(np.int64(np.float32(number).view(np.uint32)))


@compiled
def double_bits(number: float) -> int:
    """The pattern of a binary64 number, as a signed integer."""
    return int(np.float64(number).view(np.int64))


@compiled
def bits_to_double(pattern: int) -> float:
    """The binary64 number of a pattern."""
    return np.float64(np.int64(pattern).view(np.float64))


@compiled
def power_of_two(exponent: int) -> float:
    """Two to a power that is no subnormal binary64 number."""
    return bits_to_double((exponent + 1023) << 52)


@compiled
def half_to_float(half: int) -> np.float32:
    """The number of a half, exact in binary32."""
    magnitude = half & 0x7FFF
    sign = (half & 0x8000) << 16
    if magnitude >= HALF_INFINITY:
        return word_to_float(sign | WORD_INFINITY | ((magnitude & 0x3FF) << 13))
    if magnitude < 0x400:
        small = np.float32(magnitude) * np.float32(2.0**-24)
        return -small if sign else small
    return word_to_float(sign | ((magnitude << 13) + (112 << 23)))


@compiled
def _overflowed(sign: int, control: int) -> int:
    pattern = HALF_NAN if control & NAN_ON_OVERFLOW else sign | HALF_MAX
    return pattern | (OVERFLOW << 16)


@compiled
def nearest_half(number: np.float32, control: int) -> int:
    """Binary32 to half, nearest even. NaN raises nothing here: the operation knows whether it is invalid."""
    word = float_to_word(number)
    sign = (word >> 16) & 0x8000
    magnitude = word & 0x7FFFFFFF
    if magnitude < 113 << 23:
        # Adding one half puts the last place of a subnormal half at the last place of binary32.
        shifted = word_to_float(magnitude) + np.float32(0.5)
        return sign | (float_to_word(shifted) - (126 << 23))
    if magnitude >= WORD_INFINITY:
        return sign | HALF_INFINITY if magnitude == WORD_INFINITY else HALF_NAN
    half = (magnitude - (112 << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13
    if half >= HALF_INFINITY:
        return _overflowed(sign, control)
    return sign | half


@compiled
def _rounds_up(kept: int, rest: int, shift: int, sign: int, control: int, random: int) -> bool:
    """Whether a magnitude with ``rest`` (``shift`` bits, not zero) behind its last place goes up."""
    if control & STOCHASTIC:
        return (rest >> (shift - 16)) + random >= 1 << 16
    mode = (control & ROUNDING) >> ROUNDING_SHIFT
    if mode == NEAREST:
        half = 1 << (shift - 1)
        return rest > half or (rest == half and kept & 1 == 1)
    if mode == DOWN:
        return sign != 0
    if mode == UP:
        return sign == 0
    return False


@compiled
def _shortened(significand: int, places: int) -> int:
    """A significand moved right, never to zero: enough of a number far below the last place."""
    return max(significand >> min(places, 62), 1)


@compiled
def round_half(number: float, control: int, random: int) -> int:
    """Binary64 to half in any mode."""
    bits = double_bits(number)
    sign = 0x8000 if bits < 0 else 0
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude == 0:
        return sign
    biased = magnitude >> 52
    if biased == 0x7FF:
        return HALF_NAN if magnitude & 0xFFFFFFFFFFFFF else sign | HALF_INFINITY
    exponent = biased - 1023
    significand = (magnitude & 0xFFFFFFFFFFFFF) | (1 << 52 if biased else 0)
    is_normal = exponent >= -14
    shift = 42 if is_normal else 42 - 14 - exponent
    if shift > LONGEST_SHIFT:
        significand = _shortened(significand, shift - LONGEST_SHIFT)
        shift = LONGEST_SHIFT
    kept = significand >> shift
    rest = significand & ((1 << shift) - 1)
    if rest and _rounds_up(kept, rest, shift, sign, control, random):
        kept += 1
    half = ((exponent + 14) << 10) + kept if is_normal else kept
    if half >= HALF_INFINITY:
        return _overflowed(sign, control)
    return sign | half


@compiled
def to_half(number: np.float32, control: int, random: int) -> int:
    """Binary32 to half in any mode."""
    if control & NOT_NEAREST:
        return round_half(np.float64(number), control, random)
    return nearest_half(number, control)


@compiled
def round_word(number: float, control: int) -> int:
    """Binary64 to a binary32 pattern. Stochastic rounding does not concern binary32."""
    if number != number:
        return WORD_NAN
    nearest = np.float32(number)
    word = float_to_word(nearest)
    if np.float64(nearest) == number:
        return word
    mode = (control & ROUNDING) >> ROUNDING_SHIFT
    is_above = np.float64(nearest) > number
    is_negative = (word >> 31) == 1
    if mode == DOWN:
        must_move = is_above
    elif mode == UP:
        must_move = not is_above
    elif mode == TOWARD_ZERO:
        must_move = is_above != is_negative
    else:
        must_move = False
    if must_move:
        # One step down for a nearest that is too high, up for one that is too low.
        if word & 0x7FFFFFFF == 0:
            word = 0x80000001 if is_above else 1
        else:
            word += -1 if is_above != is_negative else 1
    if word & WORD_INFINITY == WORD_INFINITY or not math.isfinite(nearest):
        return word | (OVERFLOW << 32)
    return word


@compiled
def odd_sum(a: float, b: float) -> float:
    """``a + b`` in binary64, an inexact sum made odd: enough to round it to binary32 in any direction."""
    total = a + b
    if not math.isfinite(total):
        return total
    virtual = total - a
    error = (a - (total - virtual)) + (b - virtual)
    if error == 0.0:
        return total
    bits = double_bits(total)
    if bits & 1:
        return total
    return bits_to_double(bits + (1 if (error > 0.0) == (total > 0.0) else -1))


@compiled
def signed_sum(a: float, b: float, control: int) -> float:
    """:func:`odd_sum`; a zero sum of opposite numbers is negative when rounding toward minus infinity."""
    total = odd_sum(a, b)
    is_down = (control & ROUNDING) >> ROUNDING_SHIFT == DOWN
    if is_down and total == 0.0 and math.copysign(1.0, a) != math.copysign(1.0, b):
        return -0.0
    return total


@compiled
def byte_to_double(byte: int, is_143: int) -> float:
    """The number of an 8-bit float.

    Args:
        byte: the pattern.
        is_143: 1 for four exponent bits and three of mantissa, 0 for five and two.
    """
    if byte == BYTE_NAN:
        return math.nan
    mantissa_bits = 3 if is_143 else 2
    bias = 8 if is_143 else 16
    exponent = (byte & 0x7F) >> mantissa_bits
    mantissa = byte & ((1 << mantissa_bits) - 1)
    if exponent == 0:
        exponent = 1
    else:
        mantissa |= 1 << mantissa_bits
    number = math.ldexp(np.float64(mantissa), int(exponent) - bias - mantissa_bits)
    return -number if byte & 0x80 else number


@compiled
def round_byte(number: float, is_143: int, control: int, random: int) -> int:
    """Binary64 to an 8-bit float. An infinity overflows: the formats have none."""
    if number != number:
        return BYTE_NAN
    bits = double_bits(number)
    sign = 0x80 if bits < 0 else 0
    magnitude = bits & 0x7FFFFFFFFFFFFFFF
    if magnitude == 0:
        return 0
    mantissa_bits = 3 if is_143 else 2
    bias = 8 if is_143 else 16
    byte = 0x80
    biased = magnitude >> 52
    if biased != 0x7FF:
        exponent = biased - 1023
        significand = (magnitude & 0xFFFFFFFFFFFFF) | (1 << 52 if biased else 0)
        is_normal = exponent > -bias
        shift = 52 - mantissa_bits
        if not is_normal:
            shift += 1 - bias - exponent
        if shift > LONGEST_SHIFT:
            significand = _shortened(significand, shift - LONGEST_SHIFT)
            shift = LONGEST_SHIFT
        kept = significand >> shift
        rest = significand & ((1 << shift) - 1)
        if rest and _rounds_up(kept, rest, shift, sign, control, random):
            kept += 1
        byte = ((exponent + bias - 1) << mantissa_bits) + kept if is_normal else kept
    if byte > 0x7F:
        pattern = BYTE_NAN if control & NAN_ON_OVERFLOW else sign | 0x7F
        return pattern | (OVERFLOW << 8)
    # There is no negative zero: its pattern is the NaN.
    return sign | byte if byte else 0
