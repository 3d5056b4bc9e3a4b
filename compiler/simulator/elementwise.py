"""Element-wise arithmetic on halves and words: one element in, pattern and flags out.

Results are ``pattern | flags << 16`` for halves and ``pattern | flags << 32`` for words, as in ``rounding``.
A result is invalid when a NaN comes out though none went in, or when a signalling NaN went in (decision
``float-flags``). Comparisons give all ones or zero; only ``cmpne`` is true when an operand is NaN. ``max``
and ``min`` of a NaN and a number give the number (decision ``max-min-nan``); of two zeros, ``max`` gives +0
unless both are negative, ``min`` -0 unless both are positive; the sum of opposite numbers is +0, or -0 when
rounding toward minus infinity (decision ``zero-signs``).
"""

from compiler.compiled import compiled
from compiler.simulator.operations import (
    F_ABSADD,
    F_ABSMAX,
    F_ADD,
    F_CMPEQ,
    F_CMPGT,
    F_CMPLE,
    F_CMPLT,
    F_CMPNE,
    F_MAX,
    F_MIN,
    F_SUB,
)
from compiler.simulator.rounding import (
    HALF_INFINITY,
    HALF_NAN,
    INVALID,
    NOT_NEAREST,
    OVERFLOW,
    ROUNDING,
    WORD_INFINITY,
    WORD_NAN,
    float_to_word,
    half_to_float,
    nearest_half,
    round_half,
    round_word,
    signed_sum,
    word_to_float,
)

import numpy as np  # isort: skip


@compiled
def is_nan_half(half: int) -> bool:
    """Whether a half is NaN."""
    return (half & 0x7FFF) > HALF_INFINITY


@compiled
def is_nan_word(word: int) -> bool:
    """Whether a binary32 pattern is NaN."""
    return (word & 0x7FFFFFFF) > WORD_INFINITY


@compiled
def _signals_half(half: int) -> bool:
    return is_nan_half(half) and half & 0x200 == 0


@compiled
def _signals_word(word: int) -> bool:
    return is_nan_word(word) and word & 0x400000 == 0


@compiled
def compare(kind: int, x: np.float32, y: np.float32) -> bool:
    """Result of a comparison."""
    if kind == F_CMPEQ:
        return bool(x == y)
    if kind == F_CMPNE:
        return bool(x != y)
    if kind == F_CMPLT:
        return bool(x < y)
    if kind == F_CMPLE:
        return bool(x <= y)
    if kind == F_CMPGT:
        return bool(x > y)
    return bool(x >= y)


@compiled
def _select(kind: int, a: int, b: int, x: np.float32, y: np.float32, nan: int) -> int:
    """Max or min: one of two patterns."""
    if x != x:
        return nan if y != y else b
    if y != y or (x > y if kind == F_MAX else x < y):
        return a
    if x == y:
        return a & b if kind == F_MAX else a | b
    return b


@compiled
def half_binary(kind: int, a: int, b: int, control: int, random: int) -> int:
    """An operation on two halves.

    Args:
        kind: one of the ``F_*`` kinds.
        a: first operand.
        b: second operand.
        control: FP_CTL.
        random: 16 random bits.
    """
    if kind in (F_ABSADD, F_ABSMAX):
        a &= 0x7FFF
        b &= 0x7FFF
        kind = F_ADD if kind == F_ABSADD else F_MAX
    x = half_to_float(a)
    y = half_to_float(b)
    if kind >= F_CMPEQ:
        return 0xFFFF if compare(kind, x, y) else 0
    if kind in (F_MAX, F_MIN):
        return _select(kind, a, b, x, y, HALF_NAN)
    if control & NOT_NEAREST:
        if kind == F_ADD:
            result = round_half(signed_sum(np.float64(x), np.float64(y), control), control, random)
        elif kind == F_SUB:
            result = round_half(signed_sum(np.float64(x), -np.float64(y), control), control, random)
        else:
            result = round_half(np.float64(x) * np.float64(y), control, random)
    elif kind == F_ADD:
        result = nearest_half(x + y, control)
    elif kind == F_SUB:
        result = nearest_half(x - y, control)
    else:
        result = nearest_half(x * y, control)
    if result == HALF_NAN and (
        not (is_nan_half(a) or is_nan_half(b)) or _signals_half(a) or _signals_half(b)
    ):
        return HALF_NAN | (INVALID << 16)
    return result


@compiled
def word_flags(word: int, a: int, b: int) -> int:
    """A binary32 result of two binary32 operands, with the flags that it shows."""
    if (word & WORD_INFINITY) != WORD_INFINITY:
        return word
    if is_nan_word(word):
        if not (is_nan_word(a) or is_nan_word(b)) or _signals_word(a) or _signals_word(b):
            return WORD_NAN | (INVALID << 32)
        return WORD_NAN
    is_finite = (a & WORD_INFINITY) != WORD_INFINITY and (b & WORD_INFINITY) != WORD_INFINITY
    return word | (OVERFLOW << 32) if is_finite else word


@compiled
def _directed_word(kind: int, a: int, b: int, control: int) -> int:
    x = np.float64(word_to_float(a))
    y = np.float64(word_to_float(b))
    if kind == F_ADD:
        exact = signed_sum(x, y, control)
    elif kind == F_SUB:
        exact = signed_sum(x, -y, control)
    else:
        exact = x * y
    result = round_word(exact, control)
    return word_flags(result & 0xFFFFFFFF, a, b) | (result & (OVERFLOW << 32))


@compiled
def word_binary(kind: int, a: int, b: int, control: int) -> int:
    """An operation on two binary32 patterns; see :func:`half_binary`."""
    if kind in (F_ABSADD, F_ABSMAX):
        a &= 0x7FFFFFFF
        b &= 0x7FFFFFFF
        kind = F_ADD if kind == F_ABSADD else F_MAX
    x = word_to_float(a)
    y = word_to_float(b)
    if kind >= F_CMPEQ:
        return 0xFFFFFFFF if compare(kind, x, y) else 0
    if kind in (F_MAX, F_MIN):
        return _select(kind, a, b, x, y, WORD_NAN)
    if control & ROUNDING:
        return _directed_word(kind, a, b, control)
    if kind == F_ADD:
        return word_flags(float_to_word(x + y), a, b)
    if kind == F_SUB:
        return word_flags(float_to_word(x - y), a, b)
    return word_flags(float_to_word(x * y), a, b)


@compiled
def half_clamp(a: int, low: int, high: int) -> int:
    """A half limited to [low, high]: the larger of it and ``low``, then the smaller of that and ``high``."""
    return half_binary(F_MIN, half_binary(F_MAX, a, low, 0, 0), high, 0, 0)


@compiled
def word_clamp(a: int, low: int, high: int) -> int:
    """:func:`half_clamp` of binary32."""
    return word_binary(F_MIN, word_binary(F_MAX, a, low, 0), high, 0)
