"""The supervisor: one instruction at a time, each with its cycles.

It shares integer operations, loads, stores and branches with workers; launching workers, loading common
weights and the local sync are its own. An instruction of the exchange is left to whoever runs the fabric.
Cycles follow the decision ``supervisor-issue``, launches ``run-worker``, weight loads ``weight-pairs``.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.control import (
    read_supervisor_register,
    write_supervisor_register,
)
from compiler.simulator.decoder import (
    IMMEDIATE,
    OPERATION_MASK,
    R0,
    R1,
    R2,
    SUPERVISOR_MODE,
)
from compiler.simulator.fetching import code_index, fetch, note_fault, refusal
from compiler.simulator.memory import check, execute_memory, execute_shared
from compiler.simulator.operations import (
    CALL,
    CONTROL,
    EXCHANGE,
    GET,
    LAST_INTEGER,
    LD2X64PACE,
    LD64PUTCS,
    LD128PUTCS,
    PUT,
    RUN,
    RUNALL,
    ST32,
    SYNC,
    UNSUPPORTED,
)
from compiler.simulator.scalar import branch, simple_integer
from compiler.simulator.state import (
    ACTIVE,
    ACTIVE_WORKERS,
    BASE,
    COMMON_WEIGHTS,
    CONTEXT_STRIDE,
    CURRENT_PC,
    CYCLE,
    FAULT_ADDRESS,
    FP_CTL,
    FP_NFMT,
    FP_SCL,
    FP_STS,
    INVALID_LAUNCH,
    INVALID_PC,
    LAST_EXIT,
    MRF,
    NEVER,
    NO_FAULT,
    NO_REGISTER,
    PC,
    READY,
    REPEAT_END,
    REPEAT_FIRST,
    STATUS,
    STOP_EXCHANGE,
    STOP_RETURN,
    STOP_UNSUPPORTED,
    SUPERVISOR,
    SUPERVISOR_CSR,
    SUPERVISOR_INSTRUCTIONS,
    TAINT,
    TAS,
    TRAPPED,
    UNDEFINED,
    UNINITIALISED,
    WAITING,
    WEIGHT_KIND,
    WEIGHT_VERSION,
    WEIGHTS_SEEN,
    WORKERS,
    WORKERS_ACTIVE,
    Decoded,
    Memory,
    Shadow,
    State,
    Table,
)
from compiler.simulator.taint import main_taint
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import (
    SUPERVISOR_EXCHANGE_PUT,
    SUPERVISOR_LAUNCH,
    SUPERVISOR_LOAD,
    SUPERVISOR_LOCAL_SYNC,
    SUPERVISOR_REGISTER_ACCESS,
    SUPERVISOR_SIMPLE,
    SUPERVISOR_TAKEN_BRANCH,
    SUPERVISOR_WEIGHT_LOAD,
)
from compiler.target.registers import SyncZone

_WORD: int = 0xFFFFFFFF
_SIMPLE = int(SUPERVISOR_SIMPLE)
_LOAD = int(SUPERVISOR_LOAD)
_TAKEN = int(SUPERVISOR_TAKEN_BRANCH)
_REGISTER = int(SUPERVISOR_REGISTER_ACCESS)
_EXCHANGE_PUT = int(SUPERVISOR_EXCHANGE_PUT)
_LAUNCH = int(SUPERVISOR_LAUNCH)
_RENDEZVOUS = int(SUPERVISOR_LOCAL_SYNC)
_WEIGHT_LOAD = int(SUPERVISOR_WEIGHT_LOAD)
_LOCAL = int(SyncZone.LOCAL)
_ICTL = SUPERVISOR_CSR + int(SupervisorRegister.FP_ICTL)
_INFMT = SUPERVISOR_CSR + int(SupervisorRegister.FP_INFMT)
_ISCL = SUPERVISOR_CSR + int(SupervisorRegister.FP_ISCL)
_CCCSLOAD = SUPERVISOR_CSR + int(SupervisorRegister.CCCSLOAD)
_SSR = SUPERVISOR_CSR + int(SupervisorRegister.SSR)
_RAERR = SupervisorRegister.SSR.field("RAERR").mask
_FIRST_EXCHANGE_REGISTER = int(SupervisorRegister.INCOMING_MUX)
_WORKER0_BASE = SUPERVISOR_CSR + int(SupervisorRegister.WORKER0_BASE)
_SUPERVISOR_BASE = SUPERVISOR * CONTEXT_STRIDE


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
    undefined = state[UNDEFINED]
    state[base + TAS] = undefined
    state[base + REPEAT_FIRST] = undefined
    state[base + REPEAT_END] = undefined
    state[base + WEIGHTS_SEEN] = NEVER
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
    state[WEIGHT_VERSION] += 1
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
        micro = fetch(index, 1, memory, shadow, decoded, forms, lookup)
    operation = micro & OPERATION_MASK
    if operation == EXCHANGE or (operation == SYNC and micro >> IMMEDIATE != _LOCAL):
        return -STOP_EXCHANGE
    if operation == UNSUPPORTED:
        return -STOP_UNSUPPORTED
    if operation > UNSUPPORTED:
        return -note_fault(state, refusal(index, micro, shadow), SUPERVISOR, int(memory[index]))
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
