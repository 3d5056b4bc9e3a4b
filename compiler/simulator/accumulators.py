"""Simple accumulation, and reading the accumulators back.

Accumulators are binary32 (decision ``accumulators``). A value is added in binary64 and the sum rounded once
to nearest binary32; products of one instruction that meet in one accumulator are first summed in index order
in binary64. Flags: invalid when a NaN appears, overflow when an infinity appears, that the operands did not
bring.
"""

import math

from compiler.simulator.borrowing import borrowing
from compiler.simulator.operations import (
    F16V2CMAC,
    F16V2GINA,
    F16V4ABSACC,
    F16V4ACC,
    F16V4CMAC,
    F16V4GACC,
    F16V4MIX,
    F16V8ABSACC,
    F16V8ACC,
    F16V8SQACC,
    F32MAC,
    F32V2AXPY,
    F32V2GINA,
    F32V2MAC,
    F32V4ABSACC,
    F32V4ACC,
)
from compiler.simulator.random_numbers import draw
from compiler.simulator.rounding import (
    INVALID,
    OVERFLOW,
    STOCHASTIC,
    WORD_NAN,
    float_to_word,
    half_to_float,
    to_half,
    word_to_float,
)
from compiler.simulator.state import (
    ARF,
    FAULT_ADDRESS,
    FAULT_SHIFT,
    FP_CTL,
    RAISED,
    TAS,
    UNDEFINED_REGISTER,
    UNDEFINED_VALUE,
    Accumulators,
    State,
)
from compiler.target.control_registers import WorkerRegister

import numpy as np  # isort: skip


_TAS_NUMBER = int(WorkerRegister.TAS)
_LAST_BANK = 3


@borrowing
def scale_register(state: State, base: int) -> int:
    """What TAS holds; an undefined one is a fault in RAISED and reads as 0."""
    value = state[base + TAS]
    if value >= 0:
        return value
    state[base + RAISED] |= UNDEFINED_REGISTER << FAULT_SHIFT
    state[base + FAULT_ADDRESS] = _TAS_NUMBER
    return 0


@borrowing
def half_at(state: State, place: int, index: int) -> float:
    """Number ``index`` of consecutive registers that hold halves, from state position ``place``."""
    return np.float64(half_to_float((state[place + (index >> 1)] >> (16 * (index & 1))) & 0xFFFF))


@borrowing
def word_at(state: State, place: int) -> float:
    """The binary32 number of a register."""
    return np.float64(word_to_float(state[place]))


@borrowing
def pattern_of(number: np.float32) -> int:
    """The pattern of an accumulator, NaNs made the one NaN."""
    return WORD_NAN if number != number else float_to_word(number)


@borrowing
def fresh_flags(result: float, old: float, added: float) -> int:
    """Flags of an accumulator that became ``result``: NaN or infinity out of finite numbers."""
    if math.isfinite(result) or (not math.isfinite(old) and result == old):
        return 0
    if result != result:
        return 0 if old != old or added != added else INVALID
    return OVERFLOW if math.isfinite(old) and math.isfinite(added) else 0


@borrowing
def _add(accumulators: Accumulators, place: int, value: float) -> int:
    old = np.float64(accumulators[place])
    result = np.float32(old + value)
    accumulators[place] = result
    return fresh_flags(np.float64(result), old, value)


@borrowing
def _product_flags(x: float, y: float) -> int:
    product = x * y
    return INVALID if product != product and x == x and y == y else 0


@borrowing
def _multiply_add(
    state: State, accumulators: Accumulators, first: int, x: int, y: int, operation: int
) -> int:
    """The operations of two register operands at state positions ``x`` and ``y``."""
    flags = 0
    if operation in (F32MAC, F32V2MAC):
        for k in range(1 if operation == F32MAC else 2):
            a = word_at(state, x + k)
            b = word_at(state, y + k)
            flags |= _product_flags(a, b) | _add(accumulators, first + k, a * b)
        return flags
    for k in range(1 if operation == F16V2CMAC else 2):
        a0 = half_at(state, x, 2 * k)
        a1 = half_at(state, x, 2 * k + 1)
        b0 = half_at(state, y, 2 * k)
        b1 = half_at(state, y, 2 * k + 1)
        flags |= _product_flags(a0, b0) | _product_flags(a1, b1)
        flags |= _add(accumulators, first + k, a0 * b0 + a1 * b1)
    return flags


@borrowing
def _gina_bank(selector: int) -> int:
    """Position of the eight accumulators that a selector shifts: set and parity."""
    return (16 if selector & 1 else 0) + (8 if selector & 2 else 0)


@borrowing
def _rounded_halves(state: State, base: int, accumulators: Accumulators, first: int, count: int) -> int:
    """``count`` accumulators as halves, packed; flags go to RAISED."""
    control = state[base + FP_CTL]
    random = draw(state, base) if control & STOCHASTIC else 0
    packed = 0
    for k in range(count):
        result = to_half(accumulators[first + k], control, (random >> (16 * k)) & 0xFFFF)
        packed |= (result & 0xFFFF) << (16 * k)
        state[base + RAISED] |= result >> 16
    return packed


@borrowing
def _scaled_sums(
    state: State, base: int, accumulators: Accumulators, first: int, x: int, y: int, operation: int
) -> None:
    """``f32v2axpy`` and ``f16v4mix``: new accumulators from TAS and two operands; flags go to RAISED."""
    tas = scale_register(state, base)
    flags = 0
    for k in range(4 if operation == F16V4MIX else 2):
        if operation == F16V4MIX:
            a = np.float64(half_to_float(tas & 0xFFFF)) * half_at(state, x, k)
            b = np.float64(half_to_float(tas >> 16)) * half_at(state, y, k)
        else:
            a = np.float64(word_to_float(tas)) * word_at(state, x + k)
            b = word_at(state, y + k)
        result = np.float32(a + b)
        accumulators[first + k] = result
        flags |= fresh_flags(np.float64(result), a, b)
    state[base + RAISED] |= flags


@borrowing
def execute_accumulate(
    operation: int,
    r1: int,
    r2: int,
    selector: int,
    base: int,
    first: int,
    state: State,
    accumulators: Accumulators,
) -> int:
    """Run an operation of the group ``ACCUMULATE``.

    Args:
        operation: which.
        r1: first arithmetic source register.
        r2: second.
        selector: immediate of the ``gina`` operations.
        base: position of the context in ``state``.
        first: position of its accumulators.
        state: see the module ``state``.
        accumulators: see the module ``state``.

    Returns:
        The result, two words packed; flags are added to RAISED.
    """
    x = base + ARF + r1
    y = base + ARF + r2
    if F32MAC <= operation <= F16V4CMAC:
        state[base + RAISED] |= _multiply_add(state, accumulators, first, x, y, operation)
        return 0
    if operation in (F32V2GINA, F16V2GINA):
        if selector > _LAST_BANK:
            state[base + RAISED] |= UNDEFINED_VALUE << FAULT_SHIFT
            state[base + FAULT_ADDRESS] = selector
            return 0
        bank = first + _gina_bank(selector)
        if operation == F32V2GINA:
            value = pattern_of(accumulators[bank]) | (pattern_of(accumulators[bank + 1]) << 32)
        else:
            value = _rounded_halves(state, base, accumulators, bank, 2)
        for k in range(6):
            accumulators[bank + k] = accumulators[bank + k + 2]
        for k in range(2):
            if operation == F32V2GINA:
                accumulators[bank + 6 + k] = word_to_float(state[x + k])
            else:
                accumulators[bank + 6 + k] = np.float32(half_at(state, x, k))
        return value
    if operation == F16V4GACC:
        return _rounded_halves(state, base, accumulators, first, 4)
    if operation == F32V2AXPY:
        value = pattern_of(accumulators[first]) | (pattern_of(accumulators[first + 1]) << 32)
        _scaled_sums(state, base, accumulators, first, x, y, operation)
        return value
    if operation == F16V4MIX:
        value = _rounded_halves(state, base, accumulators, first, 4)
        _scaled_sums(state, base, accumulators, first, x, y, operation)
        return value
    flags = 0
    is_half = operation <= F16V8SQACC
    for k in range(8 if F16V8ACC <= operation <= F16V8SQACC else 4):
        value_k = half_at(state, x, k) if is_half else word_at(state, x + k)
        if operation in (F16V4ABSACC, F16V8ABSACC, F32V4ABSACC):
            value_k = abs(value_k)
        elif operation not in (F16V4ACC, F16V8ACC, F32V4ACC):
            value_k *= value_k
        flags |= _add(accumulators, first + k, value_k)
    state[base + RAISED] |= flags
    return 0
