"""Fetching: from an address to a decoded, checked instruction, and recording what cannot run."""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.decoder import (
    CHECKED,
    OPERATION_MASK,
    PAIRED,
    R0,
    R3,
    RESULT_WORDS,
    decode_word,
)
from compiler.simulator.operations import (
    AUX,
    ILLEGAL,
    LD2X64PACE,
    LD64A32PACE,
    LD64B16PACE,
    SAME,
    UNSUPPORTED,
)
from compiler.simulator.state import (
    BASE,
    CODE_WORDS,
    CONTEXT_STRIDE,
    CURRENT_PC,
    CYCLE,
    FAULT_CODE,
    FAULT_CONTEXT,
    FAULT_CYCLE,
    FAULT_DATA,
    FAULT_PC,
    ILLEGAL_BUNDLE,
    ILLEGAL_INSTRUCTION,
    NO_FAULT,
    SAME_DESTINATIONS,
    STOP_FAULT,
    UNINITIALISED,
    Decoded,
    Memory,
    Shadow,
    State,
    Table,
)

_WRITTEN: int = 15
"""Mark of a word of which all four bytes were written."""


@borrowing
def code_index(pc: int) -> int:
    """Index of an instruction address among words of code, or -1 when nothing can run there."""
    offset = pc - BASE
    if pc & 3 or offset < 0 or offset >= 4 * CODE_WORDS:
        return -1
    return offset >> 2


@borrowing
def fetch(
    index: int,
    supervisor: int,
    memory: Memory,
    shadow: Shadow,
    decoded: Decoded,
    forms: Table,
    lookup: Table,
) -> int:
    """Decode the word at an index and remember it. What nothing wrote is no instruction."""
    micro = ILLEGAL
    if shadow[index] == _WRITTEN:
        micro = decode_word(int(memory[index]), supervisor, forms, lookup)
    decoded[index] = micro
    return micro


@borrowing
def refusal(index: int, micro: int, shadow: Shadow) -> int:
    """The fault of a word that was decoded to ILLEGAL or SAME."""
    if micro & OPERATION_MASK == SAME:
        return SAME_DESTINATIONS
    return ILLEGAL_INSTRUCTION if shadow[index] == _WRITTEN else UNINITIALISED


@borrowing
def written_registers(micro: int) -> int:
    """The arithmetic registers that an instruction writes from its destination on, one bit each."""
    words = (micro >> RESULT_WORDS) & 3
    group = 15 if words == 3 else (1 << words) - 1
    return group << ((micro >> R0) & 15)


@borrowing
def check_bundle(
    index: int, memory: Memory, shadow: Shadow, decoded: Decoded, forms: Table, lookup: Table
) -> int:
    """Decode both words of a bundle and check it: NO_FAULT or the fault it is."""
    if index & 1 or index + 1 >= CODE_WORDS:
        return ILLEGAL_BUNDLE
    main = fetch(index, 0, memory, shadow, decoded, forms, lookup)
    aux = fetch(index + 1, 0, memory, shadow, decoded, forms, lookup)
    if main & OPERATION_MASK > UNSUPPORTED:
        return refusal(index, main, shadow)
    if aux & OPERATION_MASK > UNSUPPORTED:
        return refusal(index + 1, aux, shadow)
    main_operation = main & OPERATION_MASK
    aux_operation = aux & OPERATION_MASK
    is_aux_lane = aux_operation >= AUX or aux_operation == UNSUPPORTED
    if aux & PAIRED == 0 or not is_aux_lane or AUX <= main_operation < UNSUPPORTED:
        return ILLEGAL_BUNDLE
    written = written_registers(main)
    if main_operation in (LD2X64PACE, LD64A32PACE, LD64B16PACE):
        second = 3 if main_operation == LD2X64PACE else 1
        written |= second << ((main >> R3) & 15)
    result = written_registers(aux)
    # $a13 is where the idle instruction of the lane writes; $a14 and $a15 drop what is written.
    if written & result & 0x1FFF:
        return ILLEGAL_BUNDLE
    decoded[index] = main | CHECKED
    return NO_FAULT


@borrowing
def note_fault(state: State, code: int, context: int, data: int) -> int:
    """Record a fault of the running instruction and give the reason to stop."""
    base = context * CONTEXT_STRIDE
    state[FAULT_CODE] = code
    state[FAULT_CONTEXT] = context
    state[FAULT_PC] = state[base + CURRENT_PC]
    state[FAULT_DATA] = data
    state[FAULT_CYCLE] = state[CYCLE]
    return STOP_FAULT
