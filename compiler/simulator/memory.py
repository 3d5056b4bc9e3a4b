"""Loads and stores: alignment, range, conflicts, unwritten bytes, touched bytes.

Every load and store goes through :func:`check`. Two accesses of one instruction that meet in a memory element
are a fault (decision ``element-conflict``). Addresses inside the functions are byte offsets from the
start of SRAM.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.decoder import IMMEDIATE, R0, R1, R2, R3
from compiler.simulator.operations import (
    LD2XST64PACE,
    LD32,
    LD32A,
    LD64,
    LD64A32,
    LD64A32PACE,
    LD64B16PACE,
    LD128,
    LDB8,
    LDB16,
    LDD16A64,
    LDD16B16,
    LDD16V2A32,
    LDS8,
    LDS16,
    LDST64PACE,
    MEMORY,
    ST32,
    ST32A,
    ST64,
    ST64PACE,
    STEP,
    STM32STEP,
)
from compiler.simulator.state import (
    ARF,
    BASE,
    CODE_WORDS,
    CONFLICT,
    FAULT_ADDRESS,
    MISALIGNED,
    MRF,
    NO_FAULT,
    OUT_OF_RANGE,
    REGION1_OFFSET,
    SIZE,
    TAINT,
    WIDE_OUTSIDE,
    Decoded,
    Memory,
    Shadow,
    State,
)
from compiler.target.memory import ARRAY_SIZE, ATOM_SIZE

_WORD: int = 0xFFFFFFFF
_ARRAY = int(ARRAY_SIZE)
_ATOM = int(ATOM_SIZE)


@borrowing
def check(state: State, base: int, address: int, size: int) -> int:
    """Whether an access of ``size`` bytes at a byte address may happen: NO_FAULT or the fault it is."""
    offset = address - BASE
    if offset >= 0 and offset <= SIZE - size and address & (size - 1) == 0:
        if size < 16 or offset >= REGION1_OFFSET:
            return NO_FAULT
        state[base + FAULT_ADDRESS] = address
        return WIDE_OUTSIDE
    state[base + FAULT_ADDRESS] = address
    return MISALIGNED if address & (size - 1) else OUT_OF_RANGE


@borrowing
def conflicts(first: int, second: int) -> bool:
    """Whether two accesses of at most 64 bits at byte offsets need one memory array at once."""
    if first < REGION1_OFFSET or second < REGION1_OFFSET:
        return first // _ARRAY == second // _ARRAY
    first -= REGION1_OFFSET
    second -= REGION1_OFFSET
    return first // (2 * _ARRAY) == second // (2 * _ARRAY) and first // _ATOM & 1 == second // _ATOM & 1


@borrowing
def _note_read(shadow: Shadow, touched: Shadow, word: int, mask: int) -> int:
    """Record a read of some bytes of a word: 1 when one of them was never written."""
    if touched.size > 0:
        touched[word] |= mask
    return 0 if shadow[word] & mask == mask else 1


@borrowing
def _set_taint(state: State, base: int, bit: int, tainted: int) -> None:
    if tainted:
        state[base + TAINT] |= 1 << bit
    elif state[base + TAINT] != 0:
        state[base + TAINT] &= ~(1 << bit)


@borrowing
def _load_word(
    state: State, base: int, memory: Memory, shadow: Shadow, touched: Shadow, offset: int, place: int
) -> None:
    """A checked 32-bit load into the register at place 0 .. 31 of the context (MRF, then ARF)."""
    word = offset >> 2
    state[base + place] = int(memory[word])
    _set_taint(state, base, place, _note_read(shadow, touched, word, 15))


@borrowing
def _store_word(
    state: State,
    base: int,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
    offset: int,
    value: int,
    place: int,
) -> None:
    """A checked 32-bit store of a value that was in the register at ``place``."""
    word = offset >> 2
    memory[word] = value
    if touched.size > 0:
        touched[word] |= 0xF0
    shadow[word] = 0 if state[base + TAINT] >> place & 1 else 15
    if word < CODE_WORDS and decoded[word] != 0:
        # Both words of a bundle were checked together.
        decoded[word & ~1] = 0
        decoded[word | 1] = 0


@borrowing
def _clear_zero_registers(state: State, base: int) -> None:
    state[base + MRF + 15] = 0
    state[base + ARF + 14] = 0
    state[base + ARF + 15] = 0
    if state[base + TAINT] != 0:
        state[base + TAINT] &= ~((1 << 15) | (1 << 30) | (1 << 31))


@borrowing
def shift_of(kind: int) -> int:
    """Binary logarithm of the bytes that a plain load or store moves."""
    if kind in (LD32, LD32A, ST32, ST32A):
        return 2
    if kind in (LD64, ST64):
        return 3
    if kind == LD128:
        return 4
    return 0 if kind <= LDB8 else 1


@borrowing
def _load_narrow(
    state: State, base: int, memory: Memory, shadow: Shadow, touched: Shadow, kind: int, offset: int, r0: int
) -> None:
    """Loads of 8 and 16 bits."""
    word = offset >> 2
    size = 1 if kind <= LDB8 else 2
    tainted = _note_read(shadow, touched, word, ((1 << size) - 1) << (offset & 3))
    value = int(memory[word]) >> (8 * (offset & 3))
    if size == 1:
        value &= 0xFF
        if kind == LDS8 and value & 0x80:
            value |= 0xFFFFFF00
    else:
        value &= 0xFFFF
        if kind == LDS16 and value & 0x8000:
            value |= 0xFFFF0000
    place = MRF + r0
    if kind == LDB8:
        value *= 0x01010101
        place = ARF + r0
    elif kind == LDB16:
        value *= 0x10001
        place = ARF + r0
    state[base + place] = value
    _set_taint(state, base, place, tainted)


@borrowing
def execute_memory(
    operation: int,
    micro: int,
    base: int,
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
) -> int:
    """Run a plain or post-incrementing load or store: NO_FAULT or the fault it is."""
    kind = operation & 15
    r1 = (micro >> R1) & 15
    r2 = (micro >> R2) & 15
    r0 = (micro >> R0) & 15
    shift = shift_of(kind)
    advance = (state[base + ((micro >> R3) & 15)] << shift) + (micro >> IMMEDIATE)
    address = state[base + r1] + state[base + r2]
    if operation < MEMORY + STEP:
        address += advance
    address &= _WORD
    size = 1 << shift
    offset = address - BASE
    if offset < 0 or offset > SIZE - size or address & (size - 1) or kind == LD128:
        fault = check(state, base, address, size)
        if fault:
            return fault
    if kind == LD64:
        _load_word(state, base, memory, shadow, touched, offset, ARF + r0)
        _load_word(state, base, memory, shadow, touched, offset + 4, ARF + r0 + 1)
    elif kind == LD32:
        _load_word(state, base, memory, shadow, touched, offset, MRF + r0)
    elif kind == LD32A:
        _load_word(state, base, memory, shadow, touched, offset, ARF + r0)
    elif kind == LD128:
        for k in range(4):
            _load_word(state, base, memory, shadow, touched, offset + 4 * k, ARF + r0 + k)
    elif kind == ST64:
        for k in range(2):
            place = ARF + r0 + k
            value = state[base + place]
            _store_word(state, base, memory, shadow, touched, decoded, offset + 4 * k, value, place)
    elif kind >= ST32:
        place = (MRF if kind == ST32 else ARF) + r0
        _store_word(state, base, memory, shadow, touched, decoded, offset, state[base + place], place)
    else:
        _load_narrow(state, base, memory, shadow, touched, kind, offset, r0)
    if operation >= MEMORY + STEP:
        state[base + r2] = (state[base + r2] + advance) & _WORD
    _clear_zero_registers(state, base)
    return NO_FAULT


@borrowing
def _advance(state: State, base: int, stride_register: int, selector: int) -> int:
    """Accesses by which a packed address moves."""
    if selector == 0:
        return 1
    field = (state[base + stride_register] >> (10 * (selector - 1))) & 0x3FF
    return field - 1024 if field >= 512 else field


@borrowing
def _write_packed(state: State, base: int, pair: int, a0: int, a1: int, a2: int) -> None:
    """Pack three 21-bit byte addresses into two registers."""
    state[base + pair] = (a0 & 0x1FFFFF) | ((a2 & 0x7FF) << 21)
    state[base + pair + 1] = (a1 & 0x1FFFFF) | (((a2 >> 11) & 0x3FF) << 21)


@borrowing
def execute_pace(
    operation: int,
    micro: int,
    base: int,
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
) -> int:
    """Run a load and store with packed addresses: NO_FAULT or the fault it is.

    The source of the store is read before a load writes it. Each address moves by multiples of the bytes
    that it accesses (decision ``pace-strides`` where they are not 8).
    """
    pair = (micro >> R1) & 15
    stride = (micro >> R2) & 15
    r0 = (micro >> R0) & 15
    r3 = (micro >> R3) & 15
    selectors = micro >> IMMEDIATE
    low = state[base + pair]
    high = state[base + pair + 1]
    a0 = low & 0x1FFFFF
    a1 = high & 0x1FFFFF
    a2 = (low >> 21) | (((high >> 21) & 0x3FF) << 11)
    size1 = _ATOM
    if operation == LD64A32PACE:
        size1 = 4
    elif operation == LD64B16PACE:
        size1 = 2
    loads0 = operation != ST64PACE
    loads1 = operation != ST64PACE and operation != LDST64PACE
    stores = operation in (LDST64PACE, LD2XST64PACE, ST64PACE)
    if loads0:
        fault = check(state, base, a0, 8)
        if fault:
            return fault
    if loads1:
        fault = check(state, base, a1, size1)
        if fault:
            return fault
    if stores:
        fault = check(state, base, a2, 8)
        if fault:
            return fault
    o0 = a0 - BASE
    o1 = a1 - BASE
    o2 = a2 - BASE
    if (
        (loads0 and loads1 and conflicts(o0, o1))
        or (loads0 and stores and conflicts(o0, o2))
        or (loads1 and stores and conflicts(o1, o2))
    ):
        state[base + FAULT_ADDRESS] = a2 if stores else a1
        return CONFLICT
    if stores:
        for k in range(2):
            place = ARF + r3 + k
            value = state[base + place]
            _store_word(state, base, memory, shadow, touched, decoded, o2 + 4 * k, value, place)
    if loads0:
        _load_word(state, base, memory, shadow, touched, o0, ARF + r0)
        _load_word(state, base, memory, shadow, touched, o0 + 4, ARF + r0 + 1)
        a0 += _ATOM * _advance(state, base, stride, selectors & 3)
    if loads1:
        second = r0 + 2 if operation == LD2XST64PACE else r3
        if operation == LD64B16PACE:
            _load_narrow(state, base, memory, shadow, touched, LDB16, o1, second)
        else:
            _load_word(state, base, memory, shadow, touched, o1, ARF + second)
            if size1 == _ATOM:
                _load_word(state, base, memory, shadow, touched, o1 + 4, ARF + second + 1)
        a1 += size1 * _advance(state, base, stride, (selectors >> 2) & 3)
    if stores:
        field = 0
        if operation == LDST64PACE:
            field = 2
        elif operation == LD2XST64PACE:
            field = 4
        a2 += _ATOM * _advance(state, base, stride, (selectors >> field) & 3)
    _write_packed(state, base, pair, a0, a1, a2)
    _clear_zero_registers(state, base)
    return NO_FAULT


@borrowing
def _load_delta(memory: Memory, shadow: Shadow, touched: Shadow, address: int, size: int) -> int:
    """A checked 16 or 32-bit value that is to become a delta register; bit 32 says it was never written."""
    offset = address - BASE
    word = offset >> 2
    tainted = _note_read(shadow, touched, word, ((1 << size) - 1) << (offset & 3))
    value = int(memory[word]) >> (8 * (offset & 3))
    return (value & (0xFFFF if size == 2 else _WORD)) | (tainted << 32)


@borrowing
def execute_shared(
    operation: int,
    micro: int,
    base: int,
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
) -> int:
    """Run ``ld64a32``, the ``ldd16`` loads and ``stm32step``: NO_FAULT or the fault it is."""
    r0 = (micro >> R0) & 15
    r1 = (micro >> R1) & 15
    r2 = (micro >> R2) & 15
    r3 = (micro >> R3) & 15
    pointer = state[base + r1]
    if operation == STM32STEP:
        fault = check(state, base, pointer, 4)
        if fault:
            return fault
        value = state[base + r0]
        _store_word(state, base, memory, shadow, touched, decoded, pointer - BASE, value, r0)
        state[base + r1] = (pointer + (state[base + r3] << 2)) & _WORD
        _clear_zero_registers(state, base)
        return NO_FAULT
    delta = state[base + r3]
    size = 4
    if operation == LDD16A64:
        size = 8
    elif operation == LDD16B16:
        size = 2
    pointed = 8
    if operation == LDD16V2A32:
        pointed = 4
        delta >>= 16
    elif operation != LD64A32:
        pointed = 2
    address = (state[base + r2] + (delta & 0xFFFF)) & _WORD
    fault = check(state, base, pointer, pointed)
    if fault:
        return fault
    fault = check(state, base, address, size)
    if fault:
        return fault
    if conflicts(pointer - BASE, address - BASE):
        state[base + FAULT_ADDRESS] = address
        return CONFLICT
    offset = address - BASE
    if operation == LD64A32:
        _load_word(state, base, memory, shadow, touched, offset, ARF + r0 + 1)
        _load_word(state, base, memory, shadow, touched, pointer - BASE, ARF + r0 + 2)
        _load_word(state, base, memory, shadow, touched, pointer - BASE + 4, ARF + r0 + 3)
    else:
        if operation == LDD16B16:
            _load_narrow(state, base, memory, shadow, touched, LDB16, offset, r0)
        else:
            _load_word(state, base, memory, shadow, touched, offset, ARF + r0)
            if operation == LDD16A64:
                _load_word(state, base, memory, shadow, touched, offset + 4, ARF + r0 + 1)
        loaded = _load_delta(memory, shadow, touched, pointer, pointed)
        state[base + r3] = loaded & _WORD
        _set_taint(state, base, r3, loaded >> 32)
    state[base + r1] = (pointer + pointed) & _WORD
    _clear_zero_registers(state, base)
    return NO_FAULT
