"""The interpreter of one tile: six worker slots, the supervisor between them, and what stops them.

**Slots.** Cycle c belongs to worker c mod 6. An active worker issues one instruction or bundle in each of its
slots and sees every result of the one before. The supervisor issues in slots whose worker is inactive, as
soon as its previous instruction is done, and is held while all six run (decision ``supervisor-slots``).
Instructions execute one at a time in the order of their cycles, so the outcome is that of the program and of
nothing else.

**Bundles.** Both halves read registers before either writes: the auxiliary half is evaluated first, its
result is written after the main half ran. The main half writes only registers that the auxiliary half does
not write (checked once, when the bundle is decoded).

**Repeats.** A body holds only bundles of plain instructions; the address behind it returns to its start while
iterations remain.

:func:`run_tile` is the one entry. It stops at a cycle limit, at a fault (described in the ``FAULT_*``
fields), before an instruction of the exchange, at an instruction that is not simulated, when the supervisor
arrives at address 0, or when nothing is active.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.control import (
    read_supervisor_register,
    read_worker_register,
    write_supervisor_register,
    write_worker_register,
)
from compiler.simulator.decoder import (
    CHECKED,
    IMMEDIATE,
    OPERATION_MASK,
    PAIRED,
    R0,
    R1,
    R2,
    R3,
    RESULT_WORDS,
    SUPERVISOR_MODE,
    decode_word,
)
from compiler.simulator.integers import integer
from compiler.simulator.matrix import FAULT_SHIFT
from compiler.simulator.memory import check, execute_memory, execute_pace, execute_shared
from compiler.simulator.operations import (
    ADD,
    AMP,
    ATOM,
    AUX,
    BR,
    BRNEG,
    BRNZ,
    BRNZDEC,
    BRPOS,
    BRZ,
    CALL,
    CONTROL,
    EXCHANGE,
    EXITNEG,
    EXITNZ,
    EXITPOS,
    EXITZ,
    F_DIV,
    FUNCTION_F32,
    GET,
    ILLEGAL,
    LAST_INTEGER,
    LD2X64PACE,
    LD64A32,
    LD64PUTCS,
    LD128PUTCS,
    MOVZ,
    PUT,
    RPT,
    RUN,
    RUNALL,
    SETZI,
    ST32,
    SYNC,
    TAPACK,
    UGET,
    UNSUPPORTED,
    UPUT,
)
from compiler.simulator.state import (
    ACTIVE,
    ACTIVE_WORKERS,
    AMP_INSTRUCTIONS,
    ARF,
    BASE,
    CODE_WORDS,
    COMMON_WEIGHTS,
    CONTEXT_STRIDE,
    CURRENT_PC,
    CYCLE,
    FAULT_ADDRESS,
    FAULT_CODE,
    FAULT_CONTEXT,
    FAULT_CYCLE,
    FAULT_DATA,
    FAULT_PC,
    FLOAT_EXCEPTION,
    FP_CTL,
    FP_NFMT,
    FP_SCL,
    FP_STS,
    ILLEGAL_BUNDLE,
    ILLEGAL_INSTRUCTION,
    ILLEGAL_REPEAT,
    INACTIVE,
    INSTRUCTIONS,
    INVALID_LAUNCH,
    INVALID_PC,
    LAST_EXIT,
    MRF,
    NO_FAULT,
    NO_REGISTER,
    PC,
    RAISED,
    READY,
    REPEAT_COUNT,
    REPEAT_END,
    REPEAT_FIRST,
    STATUS,
    STOP_EXCHANGE,
    STOP_FAULT,
    STOP_IDLE,
    STOP_LIMIT,
    STOP_RETURN,
    STOP_UNSUPPORTED,
    SUPERVISOR,
    SUPERVISOR_CSR,
    SUPERVISOR_INSTRUCTIONS,
    TAINT,
    TRAPPED,
    UNINITIALISED,
    WAITING,
    WEIGHT_KIND,
    WORKERS,
    WORKERS_ACTIVE,
    Accumulators,
    Decoded,
    Memory,
    Shadow,
    State,
    Table,
    Weights,
)
from compiler.simulator.taint import aux_taint, main_taint, set_result_taint
from compiler.simulator.timing import DIVIDE_TURNS, WEIGHT_LOAD
from compiler.simulator.vectors import execute_aux
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import (
    SUPERVISOR_EXCHANGE_PUT,
    SUPERVISOR_LAUNCH,
    SUPERVISOR_LOAD,
    SUPERVISOR_LOCAL_SYNC,
    SUPERVISOR_REGISTER_ACCESS,
    SUPERVISOR_SIMPLE,
    SUPERVISOR_TAKEN_BRANCH,
    WORKER_ISSUE,
)
from compiler.target.registers import SyncZone

_WORD: int = 0xFFFFFFFF
_SLOTS = int(WORKER_ISSUE)
_SIMPLE = int(SUPERVISOR_SIMPLE)
_LOAD = int(SUPERVISOR_LOAD)
_TAKEN = int(SUPERVISOR_TAKEN_BRANCH)
_REGISTER = int(SUPERVISOR_REGISTER_ACCESS)
_EXCHANGE_PUT = int(SUPERVISOR_EXCHANGE_PUT)
_LAUNCH = int(SUPERVISOR_LAUNCH)
_RENDEZVOUS = int(SUPERVISOR_LOCAL_SYNC)
_WEIGHT_LOAD = int(WEIGHT_LOAD)
_DIVIDE_TURNS = int(DIVIDE_TURNS)
_LOCAL = int(SyncZone.LOCAL)
_ICTL = SUPERVISOR_CSR + int(SupervisorRegister.FP_ICTL)
_INFMT = SUPERVISOR_CSR + int(SupervisorRegister.FP_INFMT)
_ISCL = SUPERVISOR_CSR + int(SupervisorRegister.FP_ISCL)
_CCCSLOAD = SUPERVISOR_CSR + int(SupervisorRegister.CCCSLOAD)
_SSR = SUPERVISOR_CSR + int(SupervisorRegister.SSR)
_LC = SupervisorRegister.SSR.field("LC").mask
_RAERR = SupervisorRegister.SSR.field("RAERR").mask
_FIRST_EXCHANGE_REGISTER = int(SupervisorRegister.INCOMING_MUX)
_WORKER0_BASE = SUPERVISOR_CSR + int(SupervisorRegister.WORKER0_BASE)
_ENABLES = 7
_SUPERVISOR_BASE = SUPERVISOR * CONTEXT_STRIDE


@borrowing
def code_index(pc: int) -> int:
    """Index of an instruction address among words of code, or -1 when nothing can run there."""
    offset = pc - BASE
    if pc & 3 or offset < 0 or offset >= 4 * CODE_WORDS:
        return -1
    return offset >> 2


@borrowing
def fetch(index: int, supervisor: int, memory: Memory, decoded: Decoded, forms: Table, lookup: Table) -> int:
    """Decode the word at an index and remember it."""
    micro = decode_word(int(memory[index]), supervisor, forms, lookup)
    decoded[index] = micro
    return micro


@borrowing
def written_registers(micro: int) -> int:
    """The arithmetic registers that an instruction writes from its destination on, one bit each."""
    words = (micro >> RESULT_WORDS) & 3
    group = 15 if words == 3 else (1 << words) - 1
    return group << ((micro >> R0) & 15)


@borrowing
def check_bundle(index: int, memory: Memory, decoded: Decoded, forms: Table, lookup: Table) -> int:
    """Decode both words of a bundle and check it: NO_FAULT, ILLEGAL_BUNDLE or ILLEGAL_INSTRUCTION."""
    if index & 1 or index + 1 >= CODE_WORDS:
        return ILLEGAL_BUNDLE
    main = fetch(index, 0, memory, decoded, forms, lookup)
    aux = fetch(index + 1, 0, memory, decoded, forms, lookup)
    if main & OPERATION_MASK == ILLEGAL or aux & OPERATION_MASK == ILLEGAL:
        return ILLEGAL_INSTRUCTION
    main_operation = main & OPERATION_MASK
    aux_operation = aux & OPERATION_MASK
    is_aux_lane = aux_operation >= AUX or aux_operation == UNSUPPORTED
    if aux & PAIRED == 0 or not is_aux_lane or AUX <= main_operation < UNSUPPORTED:
        return ILLEGAL_BUNDLE
    written = written_registers(main)
    if main_operation == LD2X64PACE:
        written |= 3 << ((main >> R3) & 15)
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


@borrowing
def launch(state: State, worker: int, entry: int, vertex_base: int, ready: int) -> None:
    """Start a worker."""
    base = worker * CONTEXT_STRIDE
    state[base + PC] = entry
    state[base + STATUS] = ACTIVE
    state[base + READY] = ready
    state[base + MRF + 12] = state[_WORKER0_BASE + worker]
    state[base + MRF + 13] = vertex_base & _WORD
    state[base + FP_STS] = 0
    state[base + FP_CTL] = state[_ICTL]
    state[base + FP_NFMT] = state[_INFMT]
    state[base + FP_SCL] = state[_ISCL]
    state[base + TAINT] &= ~((1 << 12) | (1 << 13))
    state[ACTIVE_WORKERS] += 1


@borrowing
def start_workers(operation: int, micro: int, state: State) -> int:
    """``run`` and ``runall``: NO_FAULT or the fault it is."""
    entry = state[_SUPERVISOR_BASE + ((micro >> R1) & 15)]
    vertex_base = state[_SUPERVISOR_BASE + ((micro >> R2) & 15)]
    offset = 4 * (micro >> IMMEDIATE)
    state[_SUPERVISOR_BASE + FAULT_ADDRESS] = entry
    if operation == RUNALL and state[ACTIVE_WORKERS] > 0:
        state[_SSR] |= _RAERR
        return WORKERS_ACTIVE
    if code_index(entry) < 0:
        return INVALID_LAUNCH
    if vertex_base & 3:
        state[_SUPERVISOR_BASE + FAULT_ADDRESS] = vertex_base
        return INVALID_LAUNCH
    ready = state[CYCLE] + _LAUNCH
    for worker in range(WORKERS):
        if operation == RUNALL:
            launch(state, worker, entry, vertex_base + worker * offset, ready)
        elif state[worker * CONTEXT_STRIDE + STATUS] != ACTIVE:
            # There is one: the supervisor issues only in the slot of an inactive worker.
            launch(state, worker, entry, vertex_base + offset + BASE, ready)
            return NO_FAULT
    return NO_FAULT


@borrowing
def load_weights(
    operation: int, micro: int, state: State, memory: Memory, shadow: Shadow, touched: Shadow
) -> int:
    """``ld64putcs`` and ``ld128putcs``: NO_FAULT or the fault it is."""
    count = 1 if operation == LD64PUTCS else 2
    index = micro >> IMMEDIATE
    address = state[_CCCSLOAD]
    state[_SUPERVISOR_BASE + FAULT_ADDRESS] = index
    if index & (count - 1) or index + count > 64:
        return NO_REGISTER
    fault = check(state, _SUPERVISOR_BASE, address, 8 * count)
    if fault:
        return fault
    word = (address - BASE) >> 2
    for k in range(2 * count):
        if touched.size > 0:
            touched[word + k] |= 15
        if shadow[word + k] != 15:
            state[_SUPERVISOR_BASE + FAULT_ADDRESS] = address + 4 * k
            return UNINITIALISED
    for k in range(count):
        pattern = int(memory[word + 2 * k]) | (int(memory[word + 2 * k + 1]) << 32)
        state[COMMON_WEIGHTS + index + k] = pattern
    state[_CCCSLOAD] = address + 8 * count
    state[WEIGHT_KIND] = 0
    return NO_FAULT


@borrowing
def step_supervisor(
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
    forms: Table,
    lookup: Table,
) -> int:
    """Run one instruction of the supervisor: its cycles, or minus the reason to stop."""
    base = _SUPERVISOR_BASE
    pc = state[base + PC]
    state[base + CURRENT_PC] = pc
    if pc == 0:
        return -STOP_RETURN
    index = code_index(pc)
    if index < 0:
        return -note_fault(state, INVALID_PC, SUPERVISOR, pc)
    micro = decoded[index]
    if micro & SUPERVISOR_MODE == 0:
        micro = fetch(index, 1, memory, decoded, forms, lookup)
    operation = micro & OPERATION_MASK
    if operation == EXCHANGE or (operation == SYNC and micro >> IMMEDIATE != _LOCAL):
        return -STOP_EXCHANGE
    if operation == UNSUPPORTED:
        return -STOP_UNSUPPORTED
    if operation == ILLEGAL:
        return -note_fault(state, ILLEGAL_INSTRUCTION, SUPERVISOR, int(memory[index]))
    state[SUPERVISOR_INSTRUCTIONS] += 1
    following = pc + 4
    state[base + PC] = following
    if state[base + TAINT] != 0 and main_taint(operation, micro, base, state):
        return -note_fault(state, UNINITIALISED, SUPERVISOR, 0)
    cycles = _SIMPLE
    fault = NO_FAULT
    if operation <= LAST_INTEGER:
        simple_integer(operation, micro, base, state)
    elif operation < LD2X64PACE:
        fault = execute_memory(operation, micro, base, state, memory, shadow, touched, decoded)
        if operation & 15 < ST32:
            cycles = _LOAD
    elif operation < CONTROL:
        fault = execute_shared(operation, micro, base, state, memory, shadow, touched, decoded)
    elif operation <= CALL:
        if branch(operation, micro, base, following, state):
            cycles = _TAKEN
    elif operation in (LD64PUTCS, LD128PUTCS):
        fault = load_weights(operation, micro, state, memory, shadow, touched)
        cycles = _WEIGHT_LOAD
    elif operation in (RUN, RUNALL):
        fault = start_workers(operation, micro, state)
        cycles = _LAUNCH
    elif operation == SYNC:
        if state[ACTIVE_WORKERS] > 0:
            state[base + STATUS] = WAITING
        else:
            cycles = max(_SIMPLE, state[LAST_EXIT] + _RENDEZVOUS - state[CYCLE])
    elif operation == GET:
        cycles = _REGISTER
        register = micro >> IMMEDIATE
        value = read_supervisor_register(state, register)
        state[base + FAULT_ADDRESS] = register
        if value < 0:
            fault = NO_REGISTER
        elif (micro >> R0) & 15 != 15:
            state[base + MRF + ((micro >> R0) & 15)] = value
    elif operation == PUT:
        register = micro >> IMMEDIATE
        cycles = _EXCHANGE_PUT if register >= _FIRST_EXCHANGE_REGISTER else _REGISTER
        state[base + FAULT_ADDRESS] = register
        fault = write_supervisor_register(state, register, state[base + MRF + ((micro >> R1) & 15)])
    else:
        fault = TRAPPED
        state[base + FAULT_ADDRESS] = micro >> IMMEDIATE
    if fault:
        return -note_fault(state, fault, SUPERVISOR, state[base + FAULT_ADDRESS])
    return cycles


@borrowing
def rare_worker(operation: int, micro: int, base: int, worker: int, following: int, state: State) -> int:
    """Run a control or system instruction of a worker other than a branch: NO_FAULT or the fault it is."""
    r1 = (micro >> R1) & 15
    source = state[base + MRF + r1]
    immediate = micro >> IMMEDIATE
    if EXITZ <= operation <= EXITNEG:
        holds = source == 0
        if operation == EXITNZ:
            holds = source != 0
        elif operation == EXITPOS:
            holds = source >> 31 == 0
        elif operation == EXITNEG:
            holds = source >> 31 == 1
        if not holds:
            state[_SSR] &= ~_LC
        state[base + STATUS] = INACTIVE
        state[ACTIVE_WORKERS] -= 1
        state[LAST_EXIT] = state[CYCLE]
        return NO_FAULT
    if operation == RPT:
        if following & 7:
            state[base + FAULT_ADDRESS] = following
            return ILLEGAL_REPEAT
        # A register count has 16 bits; the zero register stands in for an immediate count.
        count = (source & 0xFFFF) + (immediate >> 8)
        end = following + 8 * ((immediate & 0xFF) + 1)
        state[base + REPEAT_FIRST] = following
        state[base + REPEAT_END] = end
        state[base + REPEAT_COUNT] = count
        if count == 0:
            state[base + PC] = end
        return NO_FAULT
    state[base + FAULT_ADDRESS] = immediate
    if operation == GET:
        value = read_worker_register(state, base, worker, immediate)
        if value < 0:
            return NO_REGISTER
        if (micro >> R0) & 15 != 15:
            state[base + MRF + ((micro >> R0) & 15)] = value
        return NO_FAULT
    if operation == PUT:
        return write_worker_register(state, base, immediate, source)
    return TRAPPED


@borrowing
def refuse_fetch(index: int, worker: int, state: State, memory: Memory, decoded: Decoded) -> int:
    """Why a worker cannot run what it fetched: minus the reason to stop."""
    micro = decoded[index]
    if micro & OPERATION_MASK == UNSUPPORTED:
        return STOP_UNSUPPORTED
    return note_fault(state, ILLEGAL_INSTRUCTION, worker, int(memory[index]))


@borrowing
def run_tile(
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
    accumulators: Accumulators,
    weights: Weights,
    forms: Table,
    lookup: Table,
    limit: int,
) -> int:
    """Run a tile until something stops it.

    Args:
        state: see the module ``state``, as the following ones.
        memory: SRAM as 32-bit words.
        shadow: written bytes.
        touched: read and written bytes, or empty.
        decoded: cache of micro-operations.
        accumulators: of the six workers.
        weights: decoded common weights.
        forms: decode table.
        lookup: decode table.
        limit: no instruction issues at this cycle or later.

    Returns:
        One of the ``STOP_*`` reasons.
    """
    cycle = state[CYCLE]
    slot = cycle % _SLOTS
    instructions = 0
    stop = STOP_LIMIT
    while True:
        if state[ACTIVE_WORKERS] == 0:
            # Nothing else happens until the supervisor is ready.
            if state[_SUPERVISOR_BASE + STATUS] == WAITING:
                state[_SUPERVISOR_BASE + STATUS] = ACTIVE
                state[_SUPERVISOR_BASE + READY] = max(cycle, state[LAST_EXIT] + _RENDEZVOUS)
            if state[_SUPERVISOR_BASE + STATUS] != ACTIVE:
                stop = STOP_IDLE
                break
            ready = state[_SUPERVISOR_BASE + READY]
            if ready > cycle:
                cycle = min(ready, limit)
                slot = cycle % _SLOTS
        if cycle >= limit:
            break
        base = slot * CONTEXT_STRIDE
        if state[base + STATUS] != ACTIVE:
            if state[_SUPERVISOR_BASE + STATUS] == ACTIVE and state[_SUPERVISOR_BASE + READY] <= cycle:
                state[CYCLE] = cycle
                outcome = step_supervisor(state, memory, shadow, touched, decoded, forms, lookup)
                if outcome < 0:
                    stop = -outcome
                    break
                state[_SUPERVISOR_BASE + READY] = cycle + outcome
            cycle += 1
            slot = slot + 1 if slot < _SLOTS - 1 else 0
            continue
        if state[base + READY] > cycle:
            cycle += 1
            slot = slot + 1 if slot < _SLOTS - 1 else 0
            continue

        state[CYCLE] = cycle
        pc = state[base + PC]
        state[base + CURRENT_PC] = pc
        index = code_index(pc)
        if index < 0:
            stop = note_fault(state, INVALID_PC, slot, pc)
            break
        micro = decoded[index]
        if micro == 0 or micro & SUPERVISOR_MODE:
            micro = fetch(index, 0, memory, decoded, forms, lookup)
        following = pc + 4
        aux = 0
        if micro & PAIRED:
            if micro & CHECKED == 0:
                fault = check_bundle(index, memory, decoded, forms, lookup)
                if fault:
                    stop = note_fault(state, fault, slot, int(memory[index]))
                    break
            aux = decoded[index + 1]
            following = pc + 8
        elif AUX <= micro & OPERATION_MASK < UNSUPPORTED:
            aux = micro
            micro = 0
        operation = micro & OPERATION_MASK
        aux_operation = aux & OPERATION_MASK
        if operation >= UNSUPPORTED or aux_operation >= UNSUPPORTED:
            is_main = operation >= UNSUPPORTED
            stop = refuse_fetch(index if is_main else index + 1, slot, state, memory, decoded)
            break
        remaining = state[base + REPEAT_COUNT]
        if remaining > 0:
            if micro & PAIRED == 0 or CONTROL <= operation < AUX or aux_operation in (UGET, UPUT):
                stop = note_fault(state, ILLEGAL_REPEAT, slot, pc)
                break
            if following == state[base + REPEAT_END]:
                remaining -= 1
                state[base + REPEAT_COUNT] = remaining
                if remaining > 0:
                    following = state[base + REPEAT_FIRST]
        state[base + PC] = following
        state[base + READY] = cycle + _SLOTS

        value = 0
        tainted = 0
        is_tainted_context = state[base + TAINT] != 0
        if aux != 0:
            instructions += 1
            if is_tainted_context:
                tainted = aux_taint(aux_operation, aux, base, state)
                if tainted < 0:
                    stop = note_fault(state, UNINITIALISED, slot, 0)
                    break
            value = execute_aux(aux_operation, aux, base, slot, state, accumulators, weights)
            raised = state[base + RAISED]
            if raised != 0:
                state[base + RAISED] = 0
                state[base + FP_STS] |= raised & _ENABLES
                if raised >> FAULT_SHIFT:
                    stop = note_fault(state, raised >> FAULT_SHIFT, slot, state[base + FAULT_ADDRESS])
                    break
                if raised & state[base + FP_CTL] & _ENABLES:
                    stop = note_fault(state, FLOAT_EXCEPTION, slot, raised & state[base + FP_CTL] & _ENABLES)
                    break
            if aux_operation >= AMP:
                state[AMP_INSTRUCTIONS] += 1
            elif aux_operation == FUNCTION_F32 + F_DIV:
                state[base + READY] = cycle + _DIVIDE_TURNS * _SLOTS

        if micro != 0:
            instructions += 1
            if is_tainted_context and main_taint(operation, micro, base, state):
                stop = note_fault(state, UNINITIALISED, slot, 0)
                break
            fault = NO_FAULT
            if operation in (ADD, SETZI):
                r0 = (micro >> R0) & 15
                if r0 != 15:
                    sum_of_sources = state[base + ((micro >> R1) & 15)] + state[base + ((micro >> R2) & 15)]
                    state[base + r0] = (sum_of_sources + (micro >> IMMEDIATE)) & _WORD
            elif operation <= LAST_INTEGER or operation == TAPACK:
                simple_integer(operation, micro, base, state)
            elif operation < LD2X64PACE:
                fault = execute_memory(operation, micro, base, state, memory, shadow, touched, decoded)
            elif operation < LD64A32:
                fault = execute_pace(operation, micro, base, state, memory, shadow, touched, decoded)
            elif operation < CONTROL:
                fault = execute_shared(operation, micro, base, state, memory, shadow, touched, decoded)
            elif operation <= CALL:
                branch(operation, micro, base, following, state)
            else:
                fault = rare_worker(operation, micro, base, slot, following, state)
            if fault:
                stop = note_fault(state, fault, slot, state[base + FAULT_ADDRESS])
                break

        if aux != 0:
            words = (aux >> RESULT_WORDS) & 3
            r0 = (aux >> R0) & 15
            if words != 0 and r0 < 8:
                state[base + ARF + r0] = value & _WORD
                if words == 2:
                    state[base + ARF + r0 + 1] = (value >> 32) & _WORD
            if state[base + TAINT] != 0:
                set_result_taint(aux, tainted, base, state)

        cycle += 1
        slot = slot + 1 if slot < _SLOTS - 1 else 0
    state[CYCLE] = cycle
    state[INSTRUCTIONS] += instructions
    return stop
