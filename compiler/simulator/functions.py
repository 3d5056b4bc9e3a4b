"""The transcendental functions, rounded once from binary64 to nearest even (decision ``transcendental``).

Real units are less accurate. ``perturb`` moves every finite, non-zero result by one unit in the last place,
so that a kernel can be shown not to rely on more: up (away from zero), down, or by a bit mixed from the
operands.
"""

import math

import numpy as np

from compiler.compiled import compiled
from compiler.simulator.elementwise import is_nan_half, is_nan_word
from compiler.simulator.operations import (
    F_DIV,
    F_EXP,
    F_EXP2,
    F_LN,
    F_LOG2,
    F_OORX,
    F_OOX,
    F_SIGM,
    F_SQRT,
    F_TANH,
)
from compiler.simulator.rounding import (
    DIVISION_BY_ZERO,
    HALF_INFINITY,
    HALF_NAN,
    INVALID,
    NAN_ON_OVERFLOW,
    OVERFLOW,
    WORD_INFINITY,
    WORD_NAN,
    half_to_float,
    round_half,
    round_word,
    word_to_float,
)
from compiler.simulator.state import PERTURB_DOWN, PERTURB_NONE, PERTURB_UP


@compiled
def flags_of(function: int, x: float, y: float) -> int:
    """Flags that the operands alone decide."""
    if x != x or y != y:
        return 0
    if function in (F_LN, F_LOG2):
        if x < 0.0:
            return INVALID
        return DIVISION_BY_ZERO if x == 0.0 else 0
    if function == F_OOX:
        return DIVISION_BY_ZERO if x == 0.0 else 0
    if function == F_OORX:
        if x < 0.0:
            return INVALID
        return DIVISION_BY_ZERO if x == 0.0 else 0
    if function == F_SQRT:
        return INVALID if x < 0.0 else 0
    if function == F_DIV:
        if y == 0.0:
            return INVALID if x == 0.0 else (0 if math.isinf(x) else DIVISION_BY_ZERO)
        return INVALID if math.isinf(x) and math.isinf(y) else 0
    return 0


@compiled
def _reciprocal(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0.0 else 1.0 / x


@compiled
def evaluate(function: int, x: float, y: float) -> float:
    """Value of a function in binary64; ``y`` is the divisor of F_DIV and 0 otherwise."""
    if x != x or y != y:
        return math.nan
    if function == F_EXP:
        return math.inf if x > 709.0 else math.exp(x)
    if function == F_EXP2:
        return math.inf if x > 1023.0 else math.pow(2.0, x)
    if function == F_SIGM:
        return 0.0 if x < -709.0 else 1.0 / (1.0 + math.exp(-x))
    if function == F_TANH:
        return math.tanh(x)
    if function == F_OOX:
        return _reciprocal(x)
    if function == F_DIV:
        if y == 0.0:
            return math.nan if x == 0.0 else math.copysign(math.inf, x) * math.copysign(1.0, y)
        return x / y
    if function in (F_LN, F_LOG2):
        if x < 0.0:
            return math.nan
        if x == 0.0:
            return -math.inf
        return math.log(x) if function == F_LN else math.log2(x)
    # F_OORX and F_SQRT
    if x < 0.0:
        return math.nan
    root = math.sqrt(x)
    return root if function == F_SQRT else _reciprocal(root)


@compiled
def _direction(perturb: int, a: int, b: int) -> int:
    """1 or -1: which way a result moves."""
    if perturb == PERTURB_UP:
        return 1
    if perturb == PERTURB_DOWN:
        return -1
    mixed = ((a ^ (b << 7)) * 0x9E3779B1) & 0xFFFFFFFF
    return 1 if mixed >> 31 else -1


@compiled
def word_function(function: int, a: int, b: int, perturb: int) -> int:
    """A function of binary32 patterns: ``pattern | flags << 32``.

    Args:
        function: one of the ``F_*`` functions.
        a: operand.
        b: divisor of F_DIV, otherwise 0.
        perturb: one of the ``PERTURB_*`` modes.
    """
    if is_nan_word(a) or is_nan_word(b):
        return WORD_NAN
    x = np.float64(word_to_float(a))
    y = np.float64(word_to_float(b))
    flags = flags_of(function, x, y)
    result = round_word(evaluate(function, x, y), 0)
    word = result & 0xFFFFFFFF
    if math.isinf(x) or math.isinf(y) or flags:
        return word | (flags << 32)
    magnitude = word & 0x7FFFFFFF
    if magnitude == WORD_INFINITY:
        return word | (OVERFLOW << 32)
    if perturb != PERTURB_NONE and magnitude != 0:
        moved = magnitude + _direction(perturb, a, b)
        if moved < WORD_INFINITY:
            word = (word & 0x80000000) | moved
    return word


@compiled
def half_function(function: int, a: int, control: int, perturb: int) -> int:
    """A function of a half: ``pattern | flags << 16``; see :func:`word_function`."""
    if is_nan_half(a):
        return HALF_NAN
    x = np.float64(half_to_float(a))
    flags = flags_of(function, x, 1.0)
    value = evaluate(function, x, 1.0)
    if math.isinf(x) or flags or value != value:
        return (round_half(value, 0, 0) & 0xFFFF) | (flags << 16)
    if math.isinf(value):
        value = 1e300  # overflows like any finite number that is too large
    result = round_half(value, control & NAN_ON_OVERFLOW, 0)
    half = result & 0xFFFF
    magnitude = half & 0x7FFF
    if result >> 16 == 0 and perturb != PERTURB_NONE and magnitude != 0:
        moved = magnitude + _direction(perturb, a, 0)
        if moved < HALF_INFINITY:
            half = (half & 0x8000) | moved
    return half | (result & (OVERFLOW << 16))
