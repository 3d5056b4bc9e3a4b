"""The auxiliary lane: every instruction that works on the arithmetic register file.

:func:`execute_aux` reads its sources, returns the result as two packed words and leaves writing it to the
caller, so that the other half of a bundle still sees the old registers. Conversions follow the decisions
``float-to-integer``, ``byte-conversions`` and ``symmetric-numbers``, places of maxima ``maxc-position``.
"""

import numpy as np

from compiler.simulator.accumulators import execute_accumulate
from compiler.simulator.borrowing import borrowing
from compiler.simulator.control import read_float_register, write_float_register
from compiler.simulator.decoder import (
    BROADCAST,
    BROADCAST_LOW,
    BROADCAST_UPPER,
    IMMEDIATE,
    R0,
    R1,
    R2,
)
from compiler.simulator.elementwise import half_binary, half_clamp, is_nan_word, word_binary, word_clamp
from compiler.simulator.functions import half_function, word_function
from compiler.simulator.integers import integer, signed
from compiler.simulator.matrix import execute_amp, operand_format, scale_of
from compiler.simulator.operations import (
    ACCUMULATE,
    AMP,
    AND64,
    ANDC64,
    F8V2TOF16,
    F8V4TOF16,
    F16TOF32,
    F16V2CLAMP,
    F16V2MAXC,
    F16V2SUFROMUI,
    F16V2SUM,
    F16V2TOF8,
    F16V2TOF32,
    F16V4,
    F16V4CLAMP,
    F16V4MAXC,
    F16V4RMASK,
    F16V4SUM,
    F16V8TOF8,
    F32,
    F32CLAMP,
    F32FROMI32,
    F32FROMUI32,
    F32INT,
    F32SUFROMUI,
    F32TOF16,
    F32TOI32,
    F32TOUI32,
    F32V2RMASK,
    F32V2SUFROMUI,
    F32V2TOF16,
    F32V4TOF16,
    F_ADD,
    F_MAX,
    FUNCTION_F16V2,
    FUNCTION_F32,
    INTEGER_A,
    LAST_BITWISE,
    NOT64,
    OR64,
    ROLL32,
    SORT4X32LO,
    UGET,
    UPUT,
    URAND32,
    URAND64,
)
from compiler.simulator.random_numbers import draw
from compiler.simulator.rounding import (
    DOWN,
    HIGHEST_ROUNDING,
    INVALID,
    NEAREST,
    ROUNDING,
    ROUNDING_SHIFT,
    STOCHASTIC,
    UP,
    WORD_NAN,
    byte_to_double,
    float_to_word,
    half_to_float,
    power_of_two,
    round_byte,
    round_half,
    round_word,
    to_half,
    word_to_float,
)
from compiler.simulator.state import (
    ACCUMULATOR_STRIDE,
    ARF,
    FAULT_ADDRESS,
    FAULT_SHIFT,
    FP_CTL,
    PERTURB,
    RAISED,
    UNDEFINED_VALUE,
    Accumulators,
    State,
    Weights,
)

_WORD: int = 0xFFFFFFFF


@borrowing
def half_to_word(half: int) -> int:
    """A half as a binary32 pattern, NaNs made the one NaN."""
    word = float_to_word(half_to_float(half))
    return WORD_NAN if is_nan_word(word) else word


@borrowing
def round_integral(number: float, mode: int) -> float:
    """An integral binary64 number near ``number``."""
    if mode == NEAREST:
        return np.float64(np.rint(number))
    if mode == DOWN:
        return np.float64(np.floor(number))
    if mode == UP:
        return np.float64(np.ceil(number))
    return np.float64(np.trunc(number))


@borrowing
def _saturated(number: float, low: float, high: float) -> int:
    """An integral number as a word, limited to a range: ``pattern | flags << 32``. NaN gives 0."""
    if number != number:
        return INVALID << 32
    if number < low:
        return (int(low) & _WORD) | (INVALID << 32)
    if number > high:
        return (int(high) & _WORD) | (INVALID << 32)
    return int(number) & _WORD


@borrowing
def _bitwise(operation: int, low: int, high: int, other_low: int, other_high: int) -> int:
    """Operations from ``AND64`` to ``LAST_BITWISE``."""
    if operation == AND64:
        return (low & other_low) | ((high & other_high) << 32)
    if operation == ANDC64:
        return (low & ~other_low) | ((high & ~other_high) << 32)
    if operation == OR64:
        return (low | other_low) | ((high | other_high) << 32)
    if operation == NOT64:
        return (low ^ _WORD) | ((high ^ _WORD) << 32)
    if operation == SORT4X32LO:
        return low | (other_low << 32)
    if operation == ROLL32:
        return high | (other_low << 32)
    return high | (other_high << 32)


@borrowing
def _elementwise(
    operation: int, low: int, high: int, other_low: int, other_high: int, base: int, state: State
) -> int:
    """Operations of the four shapes; flags are added to RAISED."""
    kind = operation & 15
    control = state[base + FP_CTL]
    if operation >= F32:
        result = word_binary(kind, low, other_low, control)
        flags = result >> 32
        value = result & _WORD
        if operation >= F32 + 16:
            result = word_binary(kind, high, other_high, control)
            flags |= result >> 32
            value |= result << 32
        if flags:
            state[base + RAISED] |= flags
        return value
    random = 0
    if control & STOCHASTIC and kind < F_MAX:
        random = draw(state, base)
    result = half_binary(kind, low & 0xFFFF, other_low & 0xFFFF, control, random & 0xFFFF)
    upper = half_binary(kind, low >> 16, other_low >> 16, control, (random >> 16) & 0xFFFF)
    flags = (result | upper) >> 16
    value = (result & 0xFFFF) | ((upper & 0xFFFF) << 16)
    if operation >= F16V4:
        result = half_binary(kind, high & 0xFFFF, other_high & 0xFFFF, control, (random >> 32) & 0xFFFF)
        upper = half_binary(kind, high >> 16, other_high >> 16, control, (random >> 48) & 0xFFFF)
        flags |= (result | upper) >> 16
        value |= ((result & 0xFFFF) << 32) | ((upper & 0xFFFF) << 48)
    if flags:
        state[base + RAISED] |= flags
    return value


@borrowing
def _to_halves(state: State, base: int, place: int, count: int) -> int:
    """``count`` binary32 registers as packed halves."""
    control = state[base + FP_CTL]
    random = draw(state, base) if control & STOCHASTIC else 0
    value = 0
    for k in range(count):
        result = to_half(word_to_float(state[place + k]), control, (random >> (16 * k)) & 0xFFFF)
        value |= (result & 0xFFFF) << (16 * k)
        state[base + RAISED] |= result >> 16
    return value


@borrowing
def _bytes_to_halves(state: State, base: int, word: int, count: int) -> int:
    """``count`` 8-bit floats times two to FP_SCL, as packed halves."""
    control = state[base + FP_CTL]
    random = draw(state, base) if control & STOCHASTIC else 0
    is_143 = operand_format(state, base)
    scale = power_of_two(scale_of(state, base))
    value = 0
    for k in range(count):
        number = byte_to_double((word >> (8 * k)) & 0xFF, is_143) * scale
        result = round_half(number, control, (random >> (16 * k)) & 0xFFFF)
        value |= (result & 0xFFFF) << (16 * k)
        state[base + RAISED] |= result >> 16
    return value


@borrowing
def _halves_to_bytes(state: State, base: int, place: int, count: int) -> int:
    """``count`` halves times two to FP_SCL, as packed 8-bit floats."""
    control = state[base + FP_CTL]
    is_143 = operand_format(state, base)
    scale = power_of_two(scale_of(state, base))
    value = 0
    random = 0
    for k in range(count):
        if k & 3 == 0 and control & STOCHASTIC:
            random = draw(state, base)
        half = (state[place + (k >> 1)] >> (16 * (k & 1))) & 0xFFFF
        number = np.float64(half_to_float(half)) * scale
        result = round_byte(number, is_143, control, (random >> (16 * (k & 3))) & 0xFFFF)
        value |= (result & 0xFF) << (8 * k)
        state[base + RAISED] |= result >> 8
    return value


@borrowing
def _symmetric(state: State, base: int, operation: int, low: int, high: int) -> int:
    """Unsigned integers as numbers from -1/2 to 1/2, never zero: (u + 1/2) / 2**bits - 1/2."""
    control = state[base + FP_CTL]
    value = 0
    if operation in (F32SUFROMUI, F32V2SUFROMUI):
        value = round_word((low + 0.5) / 4294967296.0 - 0.5, control) & _WORD
        if operation == F32V2SUFROMUI:
            value |= (round_word((high + 0.5) / 4294967296.0 - 0.5, control) & _WORD) << 32
        return value
    random = draw(state, base) if control & STOCHASTIC else 0
    both = low | (high << 32)
    for k in range(2 if operation == F16V2SUFROMUI else 4):
        number = (((both >> (16 * k)) & 0xFFFF) + 0.5) / 65536.0 - 0.5
        value |= (round_half(number, control, (random >> (16 * k)) & 0xFFFF) & 0xFFFF) << (16 * k)
    return value


@borrowing
def _masked(state: State, base: int, low: int, high: int, probability: int, halves: bool) -> int:
    """Elements that survive with a probability in units of 2**-16; bit 16 keeps all."""
    random = draw(state, base)
    both = low | (high << 32)
    value = 0
    elements = 4 if halves else 2
    width = 64 // elements
    for k in range(elements):
        if probability >> 16 & 1 or (random >> (16 * k)) & 0xFFFF < probability & 0xFFFF:
            value |= both & (((1 << width) - 1) << (width * k))
    return value


@borrowing
def _convert(
    operation: int,
    low: int,
    high: int,
    other_low: int,
    other_high: int,
    r1: int,
    immediate: int,
    base: int,
    state: State,
) -> int:
    """Conversions, sums of elements, limits and the like."""
    control = state[base + FP_CTL]
    if operation == F16TOF32:
        return half_to_word(low & 0xFFFF)
    if operation == F16V2TOF32:
        return half_to_word(low & 0xFFFF) | (half_to_word(low >> 16) << 32)
    place = base + ARF + r1
    if operation == F32TOF16:
        half = _to_halves(state, base, place, 1)
        return half | (half << 16)
    if operation == F32V2TOF16:
        return _to_halves(state, base, place, 2)
    if operation == F32V4TOF16:
        return _to_halves(state, base, place, 4)
    if operation in (F16V2SUM, F16V4SUM):
        result = word_binary(F_ADD, half_to_word(low & 0xFFFF), half_to_word(low >> 16), control)
        state[base + RAISED] |= result >> 32
        value = result & _WORD
        if operation == F16V4SUM:
            result = word_binary(F_ADD, half_to_word(high & 0xFFFF), half_to_word(high >> 16), control)
            state[base + RAISED] |= result >> 32
            value |= (result & _WORD) << 32
        return value
    if operation == F16V2MAXC:
        return half_binary(F_MAX, low & 0xFFFF, low >> 16, 0, 0)
    if operation == F16V4MAXC:
        return half_binary(F_MAX, low & 0xFFFF, low >> 16, 0, 0) | (
            half_binary(F_MAX, high & 0xFFFF, high >> 16, 0, 0) << 16
        )
    if operation == F32INT:
        if immediate > HIGHEST_ROUNDING:
            state[base + RAISED] |= UNDEFINED_VALUE << FAULT_SHIFT
            state[base + FAULT_ADDRESS] = immediate
            return 0
        number = round_integral(np.float64(word_to_float(low)), immediate)
        return WORD_NAN if number != number else float_to_word(np.float32(number))
    if operation in (F32TOI32, F32TOUI32):
        number = round_integral(np.float64(word_to_float(low)), (control & ROUNDING) >> ROUNDING_SHIFT)
        if operation == F32TOI32:
            result = _saturated(number, -2147483648.0, 2147483647.0)
        else:
            result = _saturated(number, 0.0, 4294967295.0)
        state[base + RAISED] |= result >> 32
        return result & _WORD
    if operation == F32FROMI32:
        return round_word(np.float64(signed(low)), control)
    if operation == F32FROMUI32:
        return round_word(np.float64(low), control)
    if operation == F8V2TOF16:
        return _bytes_to_halves(state, base, low, 2)
    if operation == F8V4TOF16:
        return _bytes_to_halves(state, base, low, 4)
    if operation == F16V2TOF8:
        return _halves_to_bytes(state, base, place, 2)
    if operation == F16V8TOF8:
        return _halves_to_bytes(state, base, place, 8)
    if F16V2SUFROMUI <= operation <= F32V2SUFROMUI:
        return _symmetric(state, base, operation, low, high)
    if operation in (F16V4RMASK, F32V2RMASK):
        return _masked(state, base, low, high, other_low, operation == F16V4RMASK)
    if operation in (F16V2CLAMP, F16V4CLAMP):
        floor = other_low & 0xFFFF
        ceiling = other_low >> 16
        value = half_clamp(low & 0xFFFF, floor, ceiling) | (half_clamp(low >> 16, floor, ceiling) << 16)
        if operation == F16V4CLAMP:
            value |= half_clamp(high & 0xFFFF, floor, ceiling) << 32
            value |= half_clamp(high >> 16, floor, ceiling) << 48
        return value
    value = word_clamp(low, other_low, other_high)
    if operation != F32CLAMP:
        value |= word_clamp(high, other_low, other_high) << 32
    return value


@borrowing
def execute_aux(
    operation: int,
    micro: int,
    base: int,
    worker: int,
    state: State,
    accumulators: Accumulators,
    weights: Weights,
) -> int:
    """Result of an instruction of the auxiliary lane.

    Args:
        operation: 192 .. 438.
        micro: its micro-operation.
        base: position of the context in ``state``.
        worker: its number.
        state: RAISED receives flags, and above them a fault.
        accumulators: of all workers.
        weights: decoded common weights.

    Returns:
        Two words, the lower register's in the low half.
    """
    registers = base + ARF
    r1 = (micro >> R1) & 15
    r2 = (micro >> R2) & 15
    low = state[registers + r1]
    immediate = micro >> IMMEDIATE
    if INTEGER_A <= operation < AND64:
        if (micro >> BROADCAST) & 3 == BROADCAST_LOW:
            low = (low & 0xFFFF) * 0x10001
        elif (micro >> BROADCAST) & 3 == BROADCAST_UPPER:
            low = (low >> 16) * 0x10001
        return integer(operation - INTEGER_A, low, (state[registers + r2] + immediate) & _WORD)
    # A single register is read with its upper neighbour, which the operation then ignores; behind $a15 lies
    # the program counter.
    high = state[registers + r1 + 1]
    other_low = state[registers + r2]
    other_high = state[registers + r2 + 1]
    if operation < INTEGER_A:
        spread = (micro >> BROADCAST) & 3
        if spread:
            if spread == BROADCAST_LOW:
                low = (low & 0xFFFF) * 0x10001
            elif spread == BROADCAST_UPPER:
                low = (low >> 16) * 0x10001
            high = low
        return _elementwise(operation, low, high, other_low, other_high, base, state)
    if operation <= LAST_BITWISE:
        return _bitwise(operation, low, high, other_low, other_high)
    if operation >= AMP:
        return execute_amp(
            operation,
            immediate,
            r1,
            r2,
            (micro >> R0) & 15 >= 14,
            base,
            worker,
            worker * ACCUMULATOR_STRIDE,
            state,
            accumulators,
            weights,
        )
    if operation >= ACCUMULATE:
        return execute_accumulate(
            operation, r1, r2, immediate, base, worker * ACCUMULATOR_STRIDE, state, accumulators
        )
    if operation >= FUNCTION_F16V2:
        function = operation - FUNCTION_F16V2
        control = state[base + FP_CTL]
        result = half_function(function, low & 0xFFFF, control, state[PERTURB])
        upper = half_function(function, low >> 16, control, state[PERTURB])
        state[base + RAISED] |= (result | upper) >> 16
        return (result & 0xFFFF) | ((upper & 0xFFFF) << 16)
    if operation >= FUNCTION_F32:
        result = word_function(operation - FUNCTION_F32, low, other_low, state[PERTURB])
        state[base + RAISED] |= result >> 32
        return result & _WORD
    if operation in (URAND32, URAND64):
        return draw(state, base)
    if operation == UGET:
        return read_float_register(state, base, immediate)
    if operation == UPUT:
        write_float_register(state, base, worker, immediate, low, accumulators)
        return 0
    return _convert(operation, low, high, other_low, other_high, r1, immediate, base, state)
