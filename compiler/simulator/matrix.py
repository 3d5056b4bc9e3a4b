"""The matrix units (AMP): phases, common weights, queues of partials and results.

**Numbers** (decision ``amp-arithmetic``). One instruction adds to each of its accumulators the products of
its elements, summed in index order in binary64, times two to FP_SCL for halves and 8-bit operands, plus the
accumulator, rounded once to nearest binary32. Partials enter unscaled; half results are rounded once as they
leave, by the rounding mode or stochastically.

**Engines** (decision ``amp-engines``). All four engines have eight channels in each set of units; with two or
one, the first four or two take part, and a group has half or a quarter of the phases. The others keep their
accumulators.

**Queues** (decision ``amp-queues``). Phase 0 starts a group: the accumulators go to the result queue in queue
order and are replaced by the queued partials (zero where none was pushed). Every instruction with a partial
operand then pushes it and takes as many results. Queue order is the order in which phases name the units:
of 16 units 0, 1, 8, 9, 2, 3, 10, 11, ...; of 8 units their number.

A queue that each phase addresses with its own number would behave alike in every sensible loop, and it is not
known which one hardware has. Both are kept; the first instruction whose result (or whose group's start)
would differ is recorded in ``QUEUE_PC``. Pushing past a whole group, or starting a group while results wait,
has no stated meaning at all and stops the tile with QUEUE_OVERFLOW.

**Common weights** are shared. A worker that has used them since its launch and uses them again after they
changed stops the tile with WEIGHTS_CHANGED: its results would depend on when the supervisor came by.

Bit k of a mask in ``*_TAINT`` follows queue position k: whether the value descends from SRAM that nothing
wrote. Over-reading loops feed such values to units whose result nobody takes, so they are tracked here and
refused only where a result is used.
"""

import math

import numpy as np

from compiler.simulator.accumulators import fresh_flags, pattern_of
from compiler.simulator.borrowing import borrowing
from compiler.simulator.decoder import ENGINES_SHIFT
from compiler.simulator.operations import (
    F8V8HIHOV4AMP,
    F16V4HIHOV4AMP,
    F16V4SIHOAMP,
    F16V4SISOAMP,
    F32SISOAMP,
    F32SISOV2AMP,
)
from compiler.simulator.random_numbers import draw
from compiler.simulator.rounding import (
    INVALID,
    STOCHASTIC,
    byte_to_double,
    float_to_word,
    half_to_float,
    power_of_two,
    to_half,
    word_to_float,
)
from compiler.simulator.state import (
    ACCUMULATOR_TAINT,
    ARF,
    BYTE_VALUES,
    COMMON_WEIGHTS,
    CURRENT_PC,
    CYCLE,
    ELEMENTS,
    FAULT_SHIFT,
    FP_CTL,
    FP_NFMT,
    FP_SCL,
    IN_COUNT,
    IN_QUEUE,
    IN_SLOTS,
    IN_TAINT,
    NEVER,
    OPERAND_FORMAT_BIT,
    OUT_COUNT,
    OUT_NEXT,
    OUT_QUEUE,
    OUT_SLOTS,
    OUT_TAINT,
    PREVIOUS,
    QUEUE_CONTEXT,
    QUEUE_CYCLE,
    QUEUE_OVERFLOW,
    QUEUE_PC,
    RAISED,
    SCALE_BIT,
    TAS,
    UNDEFINED,
    WEIGHT_FORMAT_BIT,
    WEIGHT_KIND,
    WEIGHT_VERSION,
    WEIGHTS_CHANGED,
    WEIGHTS_SEEN,
    Accumulators,
    State,
    Weights,
)

_KIND_F16 = 1
_KIND_F152 = 2
_KIND_F143 = 3
_KIND_F32 = 4


@borrowing
def clear_accumulators(state: State, base: int, first: int, accumulators: Accumulators) -> None:
    """Zero all accumulators of a worker and both queues."""
    for k in range(PREVIOUS):
        accumulators[first + k] = np.float32(0.0)
    state[base + IN_COUNT] = 0
    state[base + OUT_COUNT] = 0
    state[base + OUT_NEXT] = 0
    state[base + ACCUMULATOR_TAINT] = 0
    state[base + IN_TAINT] = 0
    state[base + OUT_TAINT] = 0


@borrowing
def scale_of(state: State, base: int) -> int:
    """The signed exponent of FP_SCL."""
    field = (state[base + FP_SCL] >> state[SCALE_BIT]) & 63
    return field - 64 if field >= 32 else field


@borrowing
def operand_format(state: State, base: int) -> int:
    """1 when 8-bit register operands are F143, 0 for F152."""
    return (state[base + FP_NFMT] >> state[OPERAND_FORMAT_BIT]) & 1


@borrowing
def fill_byte_values(weights: Weights) -> None:
    """Write the numbers of all 8-bit patterns where the units look them up."""
    for is_143 in range(2):
        for byte in range(256):
            weights[BYTE_VALUES + 256 * is_143 + byte] = byte_to_double(byte, is_143)


@borrowing
def decode_weights(state: State, weights: Weights, kind: int) -> None:
    """Fill ``weights`` [phase, element, unit] from the common weights."""
    elements = 8 if kind in (_KIND_F143, _KIND_F152) else 4
    values = BYTE_VALUES + (256 if kind == _KIND_F143 else 0)
    for unit in range(16):
        for column in range(4):
            bits = state[COMMON_WEIGHTS + 4 * unit + column]
            if kind == _KIND_F32:
                for half in range(2):
                    place = ((2 * column + half) * 8) * 16 + unit
                    weights[place] = np.float64(word_to_float((bits >> (32 * half)) & 0xFFFFFFFF))
                continue
            for element in range(elements):
                place = (column * 8 + element) * 16 + unit
                if elements == 4:
                    weights[place] = np.float64(half_to_float((bits >> (16 * element)) & 0xFFFF))
                else:
                    weights[place] = weights[values + ((bits >> (8 * element)) & 0xFF)]
    state[WEIGHT_KIND] = kind


@borrowing
def unit_at(position: int, is_wide: bool) -> int:
    """The unit at a queue position; wide instructions use both sets of units."""
    if not is_wide:
        return position
    return 2 * (position >> 2) + (position & 1) + (8 if position & 2 else 0)


@borrowing
def _report(state: State, base: int, worker: int) -> None:
    if state[QUEUE_PC] == 0:
        state[QUEUE_PC] = state[base + CURRENT_PC]
        state[QUEUE_CYCLE] = state[CYCLE]
        state[QUEUE_CONTEXT] = worker


@borrowing
def _differ(a: np.float32, b: np.float32) -> bool:
    return float_to_word(a) != float_to_word(b)


@borrowing
def _start_group(
    state: State, base: int, worker: int, first: int, units: int, is_wide: bool, accumulators: Accumulators
) -> None:
    count = state[base + IN_COUNT]
    if state[base + OUT_COUNT] > 0 or count > units:
        state[base + RAISED] |= QUEUE_OVERFLOW << FAULT_SHIFT
        return
    bank = accumulators[first : first + PREVIOUS]
    for position in range(count, units):
        bank[IN_QUEUE + position] = np.float32(0.0)
    differing = 0
    for position in range(units):
        partial = bank[IN_QUEUE + position]
        differing |= float_to_word(partial) ^ float_to_word(bank[IN_SLOTS + position])
        bank[IN_SLOTS + position] = np.float32(0.0)
        unit = unit_at(position, is_wide)
        bank[OUT_QUEUE + position] = bank[unit]
        bank[OUT_SLOTS + position] = bank[unit]
        bank[unit] = partial
    if differing:
        _report(state, base, worker)
    state[base + OUT_COUNT] = units
    state[base + OUT_NEXT] = 0
    state[base + IN_COUNT] = 0


@borrowing
def _flags(
    accumulators: Accumulators, first: int, units: int, weights: Weights, column: int, elements: int
) -> int:
    """Flags of a step after which some accumulator is not finite."""
    flags = 0
    for unit in range(units):
        result = np.float64(accumulators[first + unit])
        if math.isfinite(result):
            continue
        total = 0.0
        is_known = True
        for element in range(elements):
            x = weights[ELEMENTS + element]
            weight = weights[column + 16 * element + unit]
            total += x * weight
            is_known = is_known and x == x and weight == weight
        if total != total and is_known:
            flags |= INVALID
        flags |= fresh_flags(result, np.float64(accumulators[first + PREVIOUS + unit]), total)
    return flags


# The loops over units work on one slice of each array: its indices are known not to be negative and its
# parts not to overlap, and only then do they compile to plain vector code.


@borrowing
def _multiply1(accumulators: Accumulators, first: int, units: int, weights: Weights, column: int) -> None:
    x0 = weights[ELEMENTS]
    sums = accumulators[first : first + 16]
    w = weights[column : column + 16]
    for unit in range(units):
        sums[unit] = np.float32(np.float64(sums[unit]) + x0 * w[unit])


@borrowing
def _multiply4(
    accumulators: Accumulators, first: int, units: int, weights: Weights, column: int, scale: float
) -> None:
    x0 = weights[ELEMENTS]
    x1 = weights[ELEMENTS + 1]
    x2 = weights[ELEMENTS + 2]
    x3 = weights[ELEMENTS + 3]
    sums = accumulators[first : first + 16]
    w = weights[column : column + 64]
    for unit in range(units):
        total = x0 * w[unit]
        total = total + x1 * w[unit + 16]
        total = total + x2 * w[unit + 32]
        total = total + x3 * w[unit + 48]
        sums[unit] = np.float32(np.float64(sums[unit]) + total * scale)


@borrowing
def _multiply8(
    accumulators: Accumulators, first: int, units: int, weights: Weights, column: int, scale: float
) -> None:
    x0 = weights[ELEMENTS]
    x1 = weights[ELEMENTS + 1]
    x2 = weights[ELEMENTS + 2]
    x3 = weights[ELEMENTS + 3]
    x4 = weights[ELEMENTS + 4]
    x5 = weights[ELEMENTS + 5]
    x6 = weights[ELEMENTS + 6]
    x7 = weights[ELEMENTS + 7]
    sums = accumulators[first : first + 16]
    w = weights[column : column + 128]
    for unit in range(units):
        total = x0 * w[unit]
        total = total + x1 * w[unit + 16]
        total = total + x2 * w[unit + 32]
        total = total + x3 * w[unit + 48]
        total = total + x4 * w[unit + 64]
        total = total + x5 * w[unit + 80]
        total = total + x6 * w[unit + 96]
        total = total + x7 * w[unit + 112]
        sums[unit] = np.float32(np.float64(sums[unit]) + total * scale)


@borrowing
def _keep_previous(accumulators: Accumulators, first: int) -> None:
    bank = accumulators[first : first + PREVIOUS + 16]
    for unit in range(16):
        bank[PREVIOUS + unit] = bank[unit]


@borrowing
def _all_finite(accumulators: Accumulators, first: int, units: int) -> bool:
    sums = accumulators[first : first + 16]
    check = np.float32(0.0)
    for unit in range(units):
        check += sums[unit] * np.float32(0.0)
    return bool(check == np.float32(0.0))


@borrowing
def execute_amp(
    operation: int,
    phase: int,
    r1: int,
    r2: int,
    is_discarded: bool,
    base: int,
    worker: int,
    first: int,
    state: State,
    accumulators: Accumulators,
    weights: Weights,
) -> int:
    """Run a matrix instruction.

    Args:
        operation: which.
        phase: 0 to 3, or 0 to 7 for binary32, and the engines above it.
        r1: first register of the elements.
        r2: first register of the partials.
        is_discarded: the results go to the zero registers.
        base: position of the context in ``state``.
        worker: its number.
        first: position of its accumulators.
        state: see the module ``state``.
        accumulators: see the module ``state``.
        weights: decoded common weights; brought up to date here.

    Returns:
        The results, packed; flags and QUEUE_OVERFLOW are added to RAISED.
    """
    is_word = operation in (F32SISOAMP, F32SISOV2AMP)
    is_byte = operation == F8V8HIHOV4AMP
    is_wide = operation in (F16V4HIHOV4AMP, F32SISOV2AMP) or is_byte
    idle = phase >> ENGINES_SHIFT
    phase &= (1 << ENGINES_SHIFT) - 1
    units = (16 if is_wide else 8) >> idle
    takes_words = is_word or operation in (F16V4SISOAMP, F16V4SIHOAMP)
    gives_words = is_word or operation == F16V4SISOAMP
    count = 4 if operation == F16V4HIHOV4AMP or is_byte else 2
    kind = _KIND_F16
    if is_word:
        kind = _KIND_F32
    elif is_byte:
        is_143 = (state[base + FP_NFMT] >> state[WEIGHT_FORMAT_BIT]) & 1
        kind = _KIND_F143 if is_143 else _KIND_F152
    if state[base + WEIGHTS_SEEN] != state[WEIGHT_VERSION]:
        if state[base + WEIGHTS_SEEN] != NEVER:
            state[base + RAISED] |= WEIGHTS_CHANGED << FAULT_SHIFT
            return 0
        state[base + WEIGHTS_SEEN] = state[WEIGHT_VERSION]
    if state[WEIGHT_KIND] != kind:
        decode_weights(state, weights, kind)

    if phase == 0:
        _start_group(state, base, worker, first, units, is_wide, accumulators)
        if state[base + RAISED] >> FAULT_SHIFT:
            return 0
    has_partial = not (operation == F32SISOAMP and phase & 1)
    # Position that this phase names.
    named = (phase if operation == F32SISOAMP else phase * count) & 15

    value = 0
    if has_partial:
        place = base + ARF + r2
        pushed = state[base + IN_COUNT]
        if pushed + count > units:
            state[base + RAISED] |= QUEUE_OVERFLOW << FAULT_SHIFT
            return 0
        for k in range(count):
            if takes_words:
                partial = word_to_float(state[place + k])
            else:
                partial = half_to_float((state[place + (k >> 1)] >> (16 * (k & 1))) & 0xFFFF)
            accumulators[first + IN_QUEUE + pushed + k] = partial
            accumulators[first + IN_SLOTS + named + k] = partial
        state[base + IN_COUNT] = pushed + count
        next_result = state[base + OUT_NEXT]
        waiting = state[base + OUT_COUNT]
        control = state[base + FP_CTL]
        random = draw(state, base) if control & STOCHASTIC and not gives_words else 0
        for k in range(count):
            result = np.float32(0.0)
            if waiting > k:
                result = np.float32(accumulators[first + OUT_QUEUE + next_result + k])
            if not is_discarded and _differ(result, accumulators[first + OUT_SLOTS + named + k]):
                _report(state, base, worker)
            if gives_words:
                value |= pattern_of(result) << (32 * k)
            else:
                half = to_half(result, control, (random >> (16 * k)) & 0xFFFF)
                value |= (half & 0xFFFF) << (16 * k)
                if not is_discarded:
                    state[base + RAISED] |= half >> 16
        if waiting > 0:
            state[base + OUT_NEXT] = next_result + count
            state[base + OUT_COUNT] = waiting - count

    _keep_previous(accumulators, first)
    column = phase * 128
    source = base + ARF + r1
    elements = 4
    scale = 1.0
    if is_word:
        elements = 1
        weights[ELEMENTS] = np.float64(word_to_float(state[source]))
        state[base + TAS] = state[UNDEFINED]  # a word instruction keeps something there
    elif is_byte:
        elements = 8
        scale = power_of_two(scale_of(state, base))
        values = BYTE_VALUES + 256 * operand_format(state, base)
        for k in range(8):
            byte = (state[source + (k >> 2)] >> (8 * (k & 3))) & 0xFF
            weights[ELEMENTS + k] = weights[values + byte]
    else:
        scale = power_of_two(scale_of(state, base))
        for k in range(4):
            half = (state[source + (k >> 1)] >> (16 * (k & 1))) & 0xFFFF
            weights[ELEMENTS + k] = np.float64(half_to_float(half))
    # All sixteen units side by side, or the first of each set.
    sets = 2 if is_wide and idle else 1
    units //= sets
    for number in range(sets):
        start = first + 8 * number
        at_set = column + 8 * number
        if elements == 4:
            _multiply4(accumulators, start, units, weights, at_set, scale)
        elif elements == 8:
            _multiply8(accumulators, start, units, weights, at_set, scale)
        else:
            _multiply1(accumulators, start, units, weights, at_set)
        if not _all_finite(accumulators, start, units):
            state[base + RAISED] |= _flags(accumulators, start, units, weights, at_set, elements)
    return value


@borrowing
def taint_of_amp(
    operation: int, phase: int, x_taint: int, partial_taint: int, base: int, state: State
) -> int:
    """Follow unwritten values through the matrix units, before the instruction runs.

    Args:
        operation: which.
        phase: its phase and engines.
        x_taint: whether an element register holds such values.
        partial_taint: the same of the partials.
        base: position of the context in ``state``.
        state: see the module ``state``.

    Returns:
        1 when the result descends from unwritten bytes, else 0.
    """
    is_wide = operation in (F16V4HIHOV4AMP, F8V8HIHOV4AMP, F32SISOV2AMP)
    idle = phase >> ENGINES_SHIFT
    phase &= (1 << ENGINES_SHIFT) - 1
    units = (16 if is_wide else 8) >> idle
    count = 4 if operation in (F16V4HIHOV4AMP, F8V8HIHOV4AMP) else 2
    accumulator_taint = state[base + ACCUMULATOR_TAINT]
    out_taint = state[base + OUT_TAINT]
    in_taint = state[base + IN_TAINT]
    next_result = state[base + OUT_NEXT]
    waiting = state[base + OUT_COUNT]
    pushed = state[base + IN_COUNT]
    # Whatever the engines, the first positions belong to the units that take part.
    taking_part = (1 << units) - 1
    if phase == 0:
        out_taint = accumulator_taint & taking_part
        accumulator_taint = (accumulator_taint & ~taking_part) | in_taint
        in_taint = 0
        next_result = 0
        waiting = units
        pushed = 0
    result = 0
    if not (operation == F32SISOAMP and phase & 1):
        window = (1 << count) - 1
        if partial_taint:
            in_taint |= window << pushed
        if waiting > 0 and (out_taint >> next_result) & window:
            result = 1
    if x_taint:
        accumulator_taint |= taking_part
    state[base + ACCUMULATOR_TAINT] = accumulator_taint
    state[base + IN_TAINT] = in_taint
    state[base + OUT_TAINT] = out_taint
    return result
