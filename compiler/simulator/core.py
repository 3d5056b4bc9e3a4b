"""The interpreter of one tile: six worker slots, the supervisor between them, and what stops them.

**Slots.** Cycle c belongs to worker c mod 6. An active worker issues one instruction or bundle in each of its
slots and sees every result of the one before. The supervisor issues in slots whose worker is inactive, as
soon as its previous instruction is done, and is held while all six run (decision ``supervisor-slots``).
Instructions execute one at a time in the order of their cycles, so the outcome is that of the program and of
nothing else.

**Bundles.** Both halves read registers before either writes: the auxiliary half is evaluated first, its
result is written after the main half ran. The main half writes only registers that the auxiliary half does
not write (checked once, when the bundle is decoded).

**Workers.** ``f32div`` keeps its worker for three turns, everything else for one (decision ``divide-turns``);
how they exit reaches the supervisor as the decision ``consensus`` says.

**Repeats.** A body holds only bundles of plain instructions; the address behind it returns to its start while
iterations remain.

:func:`run_tile` is the one entry. It stops at a cycle limit, at a fault (described in the ``FAULT_*``
fields), before an instruction of the exchange, at an instruction that is not simulated, when the supervisor
arrives at address 0, or when nothing is active.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.control import (
    read_worker_register,
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
    RESULT_WORDS,
    SUPERVISOR_MODE,
)
from compiler.simulator.fetching import check_bundle, code_index, fetch, note_fault, refusal
from compiler.simulator.memory import execute_memory, execute_pace, execute_shared
from compiler.simulator.operations import (
    ADD,
    AMP,
    AUX,
    CALL,
    CONTROL,
    EXITNEG,
    EXITNZ,
    EXITPOS,
    EXITZ,
    F_DIV,
    FUNCTION_F32,
    GET,
    LAST_INTEGER,
    LD2X64PACE,
    LD64A32,
    PUT,
    RPT,
    SETZI,
    TAPACK,
    UGET,
    UNSUPPORTED,
    UPUT,
)
from compiler.simulator.scalar import branch, simple_integer
from compiler.simulator.state import (
    ACTIVE,
    ACTIVE_WORKERS,
    AMP_INSTRUCTIONS,
    ARF,
    CONTEXT_STRIDE,
    CURRENT_PC,
    CYCLE,
    FAULT_ADDRESS,
    FAULT_SHIFT,
    FLOAT_EXCEPTION,
    FP_CTL,
    FP_STS,
    ILLEGAL_REPEAT,
    INACTIVE,
    INSTRUCTIONS,
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
    STOP_IDLE,
    STOP_LIMIT,
    STOP_UNSUPPORTED,
    SUPERVISOR,
    SUPERVISOR_CSR,
    TAINT,
    TRAPPED,
    UNDEFINED_REGISTER,
    UNINITIALISED,
    WAITING,
    Accumulators,
    Decoded,
    Memory,
    Shadow,
    State,
    Table,
    Weights,
)
from compiler.simulator.supervisor import step_supervisor
from compiler.simulator.taint import aux_taint, main_taint, set_result_taint
from compiler.simulator.vectors import execute_aux
from compiler.target.control_registers import SupervisorRegister, WorkerRegister
from compiler.target.costs import (
    DIVIDE_TURNS,
    SUPERVISOR_LOCAL_SYNC,
    WORKER_ISSUE,
)

_WORD: int = 0xFFFFFFFF
_SLOTS = int(WORKER_ISSUE)
_RENDEZVOUS = int(SUPERVISOR_LOCAL_SYNC)
_DIVIDE_TURNS = int(DIVIDE_TURNS)
_SSR = SUPERVISOR_CSR + int(SupervisorRegister.SSR)
_LC = SupervisorRegister.SSR.field("LC").mask
_REPEAT_FIRST = int(WorkerRegister.REPEAT_FIRST)
_REPEAT_END = int(WorkerRegister.REPEAT_END)
_ENABLES = 7
_SUPERVISOR_BASE = SUPERVISOR * CONTEXT_STRIDE


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
            return UNDEFINED_REGISTER if immediate in (_REPEAT_FIRST, _REPEAT_END) else NO_REGISTER
        if (micro >> R0) & 15 != 15:
            state[base + MRF + ((micro >> R0) & 15)] = value
        return NO_FAULT
    if operation == PUT:
        return write_worker_register(state, base, immediate, source)
    return TRAPPED


@borrowing
def refuse_fetch(
    index: int, worker: int, state: State, memory: Memory, shadow: Shadow, decoded: Decoded
) -> int:
    """Why a worker cannot run what it fetched: the reason to stop."""
    micro = decoded[index]
    if micro & OPERATION_MASK == UNSUPPORTED:
        return STOP_UNSUPPORTED
    return note_fault(state, refusal(index, micro, shadow), worker, int(memory[index]))


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
            micro = fetch(index, 0, memory, shadow, decoded, forms, lookup)
        following = pc + 4
        aux = 0
        if micro & PAIRED:
            if micro & CHECKED == 0:
                fault = check_bundle(index, memory, shadow, decoded, forms, lookup)
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
            stop = refuse_fetch(index if is_main else index + 1, slot, state, memory, shadow, decoded)
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
