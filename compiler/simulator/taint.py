"""Bytes that nothing wrote: where their values go, and where using one is a fault.

SRAM starts as NaN patterns, and a shadow knows which bytes were written. A load of unwritten bytes taints its
registers, and moves and bit operations hand the taint on; a store of a tainted register leaves the bytes
unwritten. What may not see such a value is refused: floating-point arithmetic, addresses, branches, control
registers and the entry of workers. The matrix units carry the taint to their results (``matrix``), because
over-reading loops feed them values whose results nobody takes.

Called only while a context holds any such value, so it costs nothing otherwise.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.decoder import BROADCAST, IMMEDIATE, R0, R1, R2, R3, RESULT_WORDS
from compiler.simulator.matrix import taint_of_amp
from compiler.simulator.operations import (
    AMP,
    AND64,
    ATOM,
    BRI,
    CALL,
    F16V4,
    F16V4ABSACC,
    F16V4ACC,
    F16V4CLAMP,
    F16V4CMAC,
    F16V4HIHOAMP,
    F16V4MAXC,
    F16V4MIX,
    F16V4RMASK,
    F16V4SUFROMUI,
    F16V4SUM,
    F16V8ABSACC,
    F16V8ACC,
    F16V8SQACC,
    F16V8TOF8,
    F32,
    F32CLAMP,
    F32SISOAMP,
    F32SISOV2AMP,
    F32V2,
    F32V2AXPY,
    F32V2CLAMP,
    F32V2GINA,
    F32V2MAC,
    F32V2RMASK,
    F32V2SUFROMUI,
    F32V2TOF16,
    F32V4ABSACC,
    F32V4ACC,
    F32V4SQACC,
    F32V4TOF16,
    GET,
    INTEGER_A,
    LAST_BITWISE,
    LAST_INTEGER,
    LD2X64PACE,
    LD64A32,
    MEMORY,
    MOVZ,
    STM32STEP,
    TAPACK,
    TRAP,
)
from compiler.simulator.state import (
    ACCUMULATOR_TAINT,
    IN_TAINT,
    NO_FAULT,
    OUT_TAINT,
    TAINT,
    UNINITIALISED,
    State,
)

MATRIX_BIT: int = 1 << 32


@borrowing
def _words_of(operation: int) -> int:
    """Registers in the first and (times 16) second source group of a float operation."""
    if operation >= AMP:
        first = 1 if operation in (F32SISOAMP, F32SISOV2AMP) else 2
        return first | ((1 if operation == F16V4HIHOAMP else 2) << 4)
    if operation < INTEGER_A:
        return 0x22 if F16V4 <= operation < F32 or operation >= F32V2 else 0x11
    if operation in (F16V8ACC, F16V8ABSACC, F16V8SQACC, F32V4ACC, F32V4ABSACC, F32V4SQACC):
        return 0x04
    if operation in (F16V8TOF8, F32V4TOF16):
        return 0x04
    if operation in (F16V4ACC, F16V4ABSACC, F32V2GINA, F32V2TOF16, F16V4SUM, F16V4MAXC):
        return 0x02
    if operation in (F16V4SUFROMUI, F32V2SUFROMUI):
        return 0x02
    if operation in (F32V2MAC, F16V4CMAC, F32V2AXPY, F16V4MIX, F32V2CLAMP):
        return 0x22
    if operation in (F16V4CLAMP, F16V4RMASK, F32V2RMASK):
        return 0x12
    return 0x21 if operation == F32CLAMP else 0x11


@borrowing
def aux_taint(operation: int, micro: int, base: int, state: State) -> int:
    """Whether the result of an auxiliary instruction is tainted: 0 or 1, or -1 for a fault.

    Runs before the instruction.
    """
    taint = (state[base + TAINT] >> 16) & 0xFFFF
    r1 = (micro >> R1) & 15
    r2 = (micro >> R2) & 15
    if INTEGER_A <= operation <= LAST_BITWISE:
        words = 3 if operation >= AND64 and (micro >> RESULT_WORDS) & 3 == 2 else 1
        return 1 if taint & ((words << r1) | (words << r2)) else 0
    groups = _words_of(operation)
    first = (1 << (groups & 15)) - 1
    if operation < INTEGER_A and (micro >> BROADCAST) & 3:
        first = 1
    is_first_tainted = 1 if taint & (first << r1) else 0
    is_second_tainted = 1 if taint & (((1 << (groups >> 4)) - 1) << r2) else 0
    if operation >= AMP:
        result = taint_of_amp(operation, micro >> IMMEDIATE, is_first_tainted, is_second_tainted, base, state)
        if state[base + ACCUMULATOR_TAINT] | state[base + IN_TAINT] | state[base + OUT_TAINT]:
            state[base + TAINT] |= MATRIX_BIT
        else:
            state[base + TAINT] &= ~MATRIX_BIT
        return result
    if is_first_tainted or is_second_tainted:
        return -1
    reads_sums = F32V2GINA <= operation <= F16V4MIX
    return 1 if reads_sums and state[base + ACCUMULATOR_TAINT] else 0


@borrowing
def main_taint(operation: int, micro: int, base: int, state: State) -> int:
    """Check the sources of a main-lane instruction and pass taint through integer operations.

    Runs before the instruction; loads set the taint of what they load themselves.

    Returns:
        NO_FAULT or UNINITIALISED.
    """
    taint = state[base + TAINT]
    r0 = (micro >> R0) & 15
    r1 = (micro >> R1) & 15
    r2 = (micro >> R2) & 15
    r3 = (micro >> R3) & 15
    if operation <= LAST_INTEGER or operation in (TAPACK, GET):
        sources = (1 << r1) | (1 << r2)
        group = 1
        if operation == ATOM:
            sources = 1 << (16 + r1)
        elif operation == MOVZ:
            sources |= 1 << r0
        elif operation == TAPACK:
            sources |= 1 << r3
            group = 3
        elif operation == GET:
            sources = 0
        if taint & sources:
            state[base + TAINT] |= (group << r0) & 0x7FFF
        else:
            state[base + TAINT] &= ~(group << r0)
        return NO_FAULT
    if MEMORY <= operation < LD2X64PACE:
        used = (1 << r1) | (1 << r2) | (1 << r3)
    elif operation < LD64A32:
        # Packed addresses occupy a pair; r3 is a register of the other file there.
        used = (3 << r1) | (1 << r2)
    elif operation < TAPACK:
        used = (1 << r1) | (1 << r2) | (1 << r3)
    elif operation == STM32STEP:
        used = (1 << r1) | (1 << r3)
    elif operation in (BRI, CALL, TRAP):
        if operation == CALL:
            state[base + TAINT] &= ~(1 << r0)
        return NO_FAULT
    else:
        used = (1 << r1) | (1 << r2)
    return UNINITIALISED if taint & used & 0x7FFF else NO_FAULT


@borrowing
def set_result_taint(micro: int, tainted: int, base: int, state: State) -> None:
    """Note the taint of what an auxiliary instruction wrote."""
    words = (1 << ((micro >> RESULT_WORDS) & 3)) - 1
    bits = (words << (16 + ((micro >> R0) & 15))) & 0x3FFFFFFF
    if tainted:
        state[base + TAINT] |= bits
    else:
        state[base + TAINT] &= ~bits
