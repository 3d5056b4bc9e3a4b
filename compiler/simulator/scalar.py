"""The main lane without memory: integer operations, branches and calls, for workers and supervisor alike."""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.decoder import (
    IMMEDIATE,
    R0,
    R1,
    R2,
    R3,
)
from compiler.simulator.integers import integer
from compiler.simulator.operations import (
    ATOM,
    BR,
    BRNEG,
    BRNZ,
    BRNZDEC,
    BRPOS,
    BRZ,
    CALL,
    MOVZ,
    TAPACK,
)
from compiler.simulator.state import (
    ARF,
    MRF,
    PC,
    State,
)

_WORD: int = 0xFFFFFFFF


@borrowing
def branch(operation: int, micro: int, base: int, following: int, state: State) -> bool:
    """Run a branch or call, PC already at the next instruction: whether it was taken."""
    target = micro >> IMMEDIATE
    r1 = (micro >> R1) & 15
    condition = state[base + MRF + r1]
    taken = True
    if operation == BR:
        target = condition
    elif operation == CALL:
        # The field has one bit more than addresses, which hardware ignores.
        target &= 0x1FFFFF
        r0 = (micro >> R0) & 15
        if r0 != 15:
            state[base + MRF + r0] = following
    elif operation == BRNZ:
        taken = condition != 0
    elif operation == BRZ:
        taken = condition == 0
    elif operation == BRNEG:
        taken = condition >> 31 == 1
    elif operation == BRPOS:
        taken = condition >> 31 == 0
    elif operation == BRNZDEC:
        taken = condition != 0
        if taken:
            state[base + MRF + r1] = condition - 1
    if taken:
        state[base + PC] = target
    return taken


@borrowing
def simple_integer(operation: int, micro: int, base: int, state: State) -> None:
    """Run an integer operation, MOVZ, ATOM or TAPACK."""
    r0 = (micro >> R0) & 15
    r1 = (micro >> R1) & 15
    b = (state[base + ((micro >> R2) & 15)] + (micro >> IMMEDIATE)) & _WORD
    if operation == TAPACK:
        a0 = state[base + r1]
        a2 = state[base + ((micro >> R3) & 15)]
        state[base + r0] = (a0 & 0x1FFFFF) | ((a2 & 0x7FF) << 21)
        state[base + r0 + 1] = (b & 0x1FFFFF) | (((a2 >> 11) & 0x3FF) << 21)
    elif operation == MOVZ:
        if state[base + r1] != 0:
            state[base + r0] = b
    elif operation == ATOM:
        state[base + r0] = state[base + ARF + r1]
    else:
        state[base + r0] = integer(operation, state[base + r1], b)
    state[base + MRF + 15] = 0
