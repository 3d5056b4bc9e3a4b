"""Control registers of workers and supervisor: what reading and writing them does.

A register that is not listed here is refused (NO_REGISTER), never ignored.
"""

from compiler.simulator.accumulators import scale_register
from compiler.simulator.borrowing import borrowing
from compiler.simulator.matrix import clear_accumulators
from compiler.simulator.random_numbers import seed
from compiler.simulator.rounding import HIGHEST_ROUNDING, ROUNDING, ROUNDING_SHIFT
from compiler.simulator.state import (
    ACCUMULATOR_STRIDE,
    ACTIVE,
    COMMON_WEIGHTS,
    CONTEXT_STRIDE,
    CURRENT_PC,
    CYCLE,
    DBG_DATA,
    FAULT_ADDRESS,
    FAULT_SHIFT,
    FP_CTL,
    FP_NFMT,
    FP_SCL,
    FP_STS,
    MRF,
    NO_FAULT,
    NO_REGISTER,
    PRNG_0,
    PRNG_1,
    RAISED,
    REPEAT_COUNT,
    REPEAT_END,
    REPEAT_FIRST,
    STATUS,
    SUPERVISOR,
    SUPERVISOR_CSR,
    SYNC_ENDPOINT,
    TAS,
    UNDEFINED_VALUE,
    WEIGHT_KIND,
    WEIGHT_VERSION,
    WORKERS,
    WORKERS_ACTIVE,
    Accumulators,
    State,
)
from compiler.target.control_registers import UPPER_REGISTERS, SupervisorRegister, WorkerRegister

_WORD: int = 0xFFFFFFFF

_W_PC = int(WorkerRegister.PC)
_W_WSR = int(WorkerRegister.WSR)
_W_VERTEX_BASE = int(WorkerRegister.VERTEX_BASE)
_W_WORKER_BASE = int(WorkerRegister.WORKER_BASE)
_W_REPEAT_COUNT = int(WorkerRegister.REPEAT_COUNT)
_W_REPEAT_FIRST = int(WorkerRegister.REPEAT_FIRST)
_W_REPEAT_END = int(WorkerRegister.REPEAT_END)
_W_SYNC_ENDPOINT = int(WorkerRegister.SYNC_ENDPOINT)
_W_COUNT_L = int(WorkerRegister.COUNT_L)
_W_COUNT_U = int(WorkerRegister.COUNT_U)
_W_DBG_DATA = int(WorkerRegister.DBG_DATA)

_U_FP_STS = int(WorkerRegister.FP_STS) - UPPER_REGISTERS
_U_FP_CLR = int(WorkerRegister.FP_CLR) - UPPER_REGISTERS
_U_FP_CTL = int(WorkerRegister.FP_CTL) - UPPER_REGISTERS
_U_PRNG_0_0 = int(WorkerRegister.PRNG_0_0) - UPPER_REGISTERS
_U_PRNG_0_1 = int(WorkerRegister.PRNG_0_1) - UPPER_REGISTERS
_U_PRNG_1_0 = int(WorkerRegister.PRNG_1_0) - UPPER_REGISTERS
_U_PRNG_1_1 = int(WorkerRegister.PRNG_1_1) - UPPER_REGISTERS
_U_PRNG_SEED = int(WorkerRegister.PRNG_SEED) - UPPER_REGISTERS
_U_TAS = int(WorkerRegister.TAS) - UPPER_REGISTERS
_U_FP_NFMT = int(WorkerRegister.FP_NFMT) - UPPER_REGISTERS
_U_FP_SCL = int(WorkerRegister.FP_SCL) - UPPER_REGISTERS

_ZAACC = WorkerRegister.FP_CLR.field("ZAACC").mask
_FLOAT_FLAGS = 7

_S_PC = int(SupervisorRegister.PC)
_S_SSR = int(SupervisorRegister.SSR)
_S_CR = int(SupervisorRegister.CR)
_S_TILE_ID = int(SupervisorRegister.TILE_ID)
_S_WORKER0_BASE = int(SupervisorRegister.WORKER0_BASE)
_S_SCOUNT_L = int(SupervisorRegister.SCOUNT_L)
_S_SCOUNT_U = int(SupervisorRegister.SCOUNT_U)
_S_CTXT_STS = int(SupervisorRegister.CTXT_STS)
_S_FP_ICTL = int(SupervisorRegister.FP_ICTL)
_S_FP_INFMT = int(SupervisorRegister.FP_INFMT)
_S_FP_ISCL = int(SupervisorRegister.FP_ISCL)
_S_CCCSLOAD = int(SupervisorRegister.CCCSLOAD)
_S_DBG_DATA = int(SupervisorRegister.DBG_DATA)
_S_FIRST_EXCHANGE = int(SupervisorRegister.INCOMING_MUX)
_S_LAST_EXCHANGE = int(SupervisorRegister.EXCHANGE_ADJ)

_LC = SupervisorRegister.SSR.field("LC").mask
_LC_CLR = SupervisorRegister.CR.field("LC_CLR").mask
_LC_SET = SupervisorRegister.CR.field("LC_SET").mask
_ZCWEI = SupervisorRegister.CR.field("ZCWEI").mask


@borrowing
def read_float_register(state: State, base: int, index: int) -> int:
    """Register ``index`` of ``uget``; an unknown or undefined one is a fault in RAISED."""
    if index == _U_FP_STS:
        return state[base + FP_STS]
    if index == _U_FP_CTL:
        return state[base + FP_CTL]
    if index == _U_TAS:
        return scale_register(state, base)
    if index == _U_PRNG_0_0:
        return state[base + PRNG_0] & _WORD
    if index == _U_PRNG_0_1:
        return (state[base + PRNG_0] >> 32) & _WORD
    if index == _U_PRNG_1_0:
        return state[base + PRNG_1] & _WORD
    if index == _U_PRNG_1_1:
        return (state[base + PRNG_1] >> 32) & _WORD
    if index == _U_FP_NFMT:
        return state[base + FP_NFMT]
    if index == _U_FP_SCL:
        return state[base + FP_SCL]
    if index in (_U_FP_CLR, _U_PRNG_SEED):
        return 0
    state[base + RAISED] |= NO_REGISTER << FAULT_SHIFT
    state[base + FAULT_ADDRESS] = index + UPPER_REGISTERS
    return 0


@borrowing
def write_float_register(
    state: State, base: int, worker: int, index: int, word: int, accumulators: Accumulators
) -> None:
    """``uput`` of a word."""
    if index == _U_FP_CLR:
        state[base + FP_STS] &= ~(word & _FLOAT_FLAGS)
        if word & _ZAACC:
            clear_accumulators(state, base, worker * ACCUMULATOR_STRIDE, accumulators)
    elif index == _U_FP_CTL:
        state[base + FP_CTL] = word
        code = (word & ROUNDING) >> ROUNDING_SHIFT
        if code > HIGHEST_ROUNDING:
            state[base + RAISED] |= UNDEFINED_VALUE << FAULT_SHIFT
            state[base + FAULT_ADDRESS] = code
    elif index == _U_TAS:
        state[base + TAS] = word
    elif index == _U_FP_NFMT:
        state[base + FP_NFMT] = word
    elif index == _U_FP_SCL:
        state[base + FP_SCL] = word
    elif index == _U_PRNG_SEED:
        seed(state, base, word)
    elif index == _U_PRNG_0_0:
        state[base + PRNG_0] = (state[base + PRNG_0] & ~_WORD) | word
    elif index == _U_PRNG_0_1:
        state[base + PRNG_0] = (state[base + PRNG_0] & _WORD) | (word << 32)
    elif index == _U_PRNG_1_0:
        state[base + PRNG_1] = (state[base + PRNG_1] & ~_WORD) | word
    elif index == _U_PRNG_1_1:
        state[base + PRNG_1] = (state[base + PRNG_1] & _WORD) | (word << 32)
    else:
        state[base + RAISED] |= NO_REGISTER << FAULT_SHIFT
        state[base + FAULT_ADDRESS] = index + UPPER_REGISTERS


@borrowing
def read_worker_register(state: State, base: int, worker: int, index: int) -> int:
    """Register ``index`` of a worker's ``get``, negative for an unknown or undefined one."""
    if index == _W_WSR:
        return worker
    if index == _W_PC:
        return state[base + CURRENT_PC]
    if index == _W_VERTEX_BASE:
        return state[base + MRF + 13]
    if index == _W_WORKER_BASE:
        return state[base + MRF + 12]
    if index == _W_REPEAT_COUNT:
        return state[base + REPEAT_COUNT]
    if index == _W_REPEAT_FIRST:
        return state[base + REPEAT_FIRST]
    if index == _W_REPEAT_END:
        return state[base + REPEAT_END]
    if index == _W_SYNC_ENDPOINT:
        return state[base + SYNC_ENDPOINT]
    if index == _W_COUNT_L:
        return state[CYCLE] & _WORD
    if index == _W_COUNT_U:
        return state[CYCLE] >> 32
    if index == _W_DBG_DATA:
        return state[base + DBG_DATA]
    return -1


@borrowing
def write_worker_register(state: State, base: int, index: int, word: int) -> int:
    """A worker's ``put``: NO_FAULT or NO_REGISTER."""
    if index == _W_SYNC_ENDPOINT:
        state[base + SYNC_ENDPOINT] = word
    elif index == _W_DBG_DATA:
        state[base + DBG_DATA] = word
    else:
        return NO_REGISTER
    return NO_FAULT


@borrowing
def read_supervisor_register(state: State, index: int) -> int:
    """Register ``index`` of the supervisor's ``get``, or -1 for an unknown one."""
    if index == _S_PC:
        return state[SUPERVISOR * CONTEXT_STRIDE + CURRENT_PC]
    if index == _S_SCOUNT_L:
        return state[CYCLE] & _WORD
    if index == _S_SCOUNT_U:
        return state[CYCLE] >> 32
    if index == _S_CTXT_STS:
        word = 1
        for worker in range(WORKERS):
            if state[worker * CONTEXT_STRIDE + STATUS] == ACTIVE:
                word |= 1 << (2 * worker + 2)
        return word
    if (
        index in (_S_SSR, _S_TILE_ID, _S_FP_ICTL, _S_FP_INFMT, _S_FP_ISCL, _S_CCCSLOAD, _S_DBG_DATA)
        or _S_WORKER0_BASE <= index < _S_WORKER0_BASE + WORKERS
        or _S_FIRST_EXCHANGE <= index <= _S_LAST_EXCHANGE
    ):
        return state[SUPERVISOR_CSR + index]
    return 0 if index == _S_CR else -1


@borrowing
def write_supervisor_register(state: State, index: int, word: int) -> int:
    """The supervisor's ``put``: NO_FAULT or the fault it is.

    Exchange registers keep what is written; the fabric reads them.
    """
    if index == _S_CR:
        if word & _LC_CLR:
            state[SUPERVISOR_CSR + _S_SSR] &= ~_LC
        if word & _LC_SET:
            state[SUPERVISOR_CSR + _S_SSR] |= _LC
        if word & _ZCWEI:
            for index_of_weight in range(64):
                state[COMMON_WEIGHTS + index_of_weight] = 0
            state[WEIGHT_KIND] = 0
            state[WEIGHT_VERSION] += 1
        return NO_FAULT
    if _S_WORKER0_BASE <= index < _S_WORKER0_BASE + WORKERS:
        if state[(index - _S_WORKER0_BASE) * CONTEXT_STRIDE + STATUS] == ACTIVE:
            return WORKERS_ACTIVE
        state[SUPERVISOR_CSR + index] = word
        return NO_FAULT
    if (
        index in (_S_FP_ICTL, _S_FP_INFMT, _S_FP_ISCL, _S_CCCSLOAD, _S_DBG_DATA)
        or _S_FIRST_EXCHANGE <= index <= _S_LAST_EXCHANGE
    ):
        state[SUPERVISOR_CSR + index] = word
        code = (word & ROUNDING) >> ROUNDING_SHIFT
        if index == _S_FP_ICTL and code > HIGHEST_ROUNDING:
            state[SUPERVISOR * CONTEXT_STRIDE + FAULT_ADDRESS] = code
            return UNDEFINED_VALUE
        return NO_FAULT
    return NO_REGISTER
