"""Machine code of casts; that of panels is in ``panels_code``.

Units are pipelined by one: while one is converted and stored, the next is loaded. A narrowing conversion
loads two halves of a unit and stores one result, a widening one the other way round. With two ports, one of
its loads and one of its stores are the same instruction.
"""

from typing import Final, assert_never

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import STACK_POINTER, VERTEX_BASE, ZERO, a, a2, a4, m, m2
from compiler.kernels import emit, emit_eight_bit
from compiler.kernels.cast import linear, panels, panels_code
from compiler.kernels.cast.conversions import Conversion
from compiler.kernels.cast.linear import WORKERS, Linear
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

_OUT, _IN, _COUNT, _LEFT, _TAIL, _EXPONENT, _FACTOR, _TAIL_OUT, _TAIL_IN = range(9)
"""Words of the frame. A factor without an exponent is in the place of the latter."""
_FRAME: Final = 9

_NARROWING: Final[dict[Conversion, str]] = {
    Conversion.F32_F16: "f32v4tof16",
    Conversion.F16_F8: "f16v8tof8",
}
_WIDENING: Final[dict[Conversion, str]] = {
    Conversion.F16_F32: "f16v2tof32",
    Conversion.F8_F16: "f8v4tof16",
}
_ATOM: Final = 8
_PACKED: Final = m2(8)
_BY_LOAD: Final = 1
_BY_STORE: Final = 2
"""Selectors of a packed address: which stride moves it."""
_STRIDE_BITS: Final = 10

_SIXTH: Final = 43691
_SIXTH_SHIFT: Final = 18
"""x * _SIXTH >> _SIXTH_SHIFT is x // 6 for x below 98304, more than there are units on a tile."""


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol.

    Raises:
        ValueError: the family has no such kernel.
    """
    if key in panels.KERNELS:
        return panels_code.program(panels.KERNELS[key], decisions)
    if key not in linear.KERNELS:
        raise ValueError(f"family cast has no kernel {key}")
    kernel = linear.KERNELS[key]
    code = emit.begin(key)
    if kernel.is_shared:
        _chunks(code, kernel)
    else:
        _one_launch(code, kernel)
    _workers(code, kernel, decisions)
    return code.finish()


def _source_unit(conversion: Conversion) -> int:
    return conversion.unit * conversion.source_bytes


def _result_unit(conversion: Conversion) -> int:
    return conversion.unit * conversion.result_bytes


def _one_launch(code: Builder, kernel: Linear) -> None:
    """The supervisor's part: where the elements behind the last unit are, and all units at once."""
    conversion = kernel.conversion
    emit.call_frame(code, kernel.argument_count, _FRAME)
    units, place = m(0), m(1)
    code.emit("mul", units, emit.argument(_COUNT), WORKERS)
    code.emit("add", units, units, emit.argument(_LEFT))
    ends = ((_TAIL_OUT, _OUT, _result_unit(conversion)), (_TAIL_IN, _IN, _source_unit(conversion)))
    for word, pointer, unit in ends:
        code.emit("mul", place, units, unit)
        code.emit("add", place, place, emit.argument(pointer))
        emit.store(code, place, word)
    emit.launch_and_return(code, Symbol("worker"), _FRAME)


def _chunks(code: Builder, kernel: Linear) -> None:
    """The supervisor's part where result and operand share storage: a launch for each chunk.

    Elements behind the last unit count as a unit, which is the last of the last chunk.
    """
    conversion = kernel.conversion
    ratio = conversion.source_bytes // conversion.result_bytes
    out, source, units, left, tail = (emit.argument(word) for word in (_OUT, _IN, _COUNT, _LEFT, _TAIL))
    chunk, sixth = emit.argument(kernel.argument_count - 1), m(9)
    now, scratch = m(0), m(1)
    emit.call_frame(code, kernel.argument_count, _FRAME)
    code.emit("mul", units, units, WORKERS)
    code.emit("add", units, units, left)
    code.emit("min", left, tail, 1)
    code.emit("add", left, left, units)
    emit.store(code, ZERO, _TAIL)
    code.emit("setzi", sixth, _SIXTH)
    code.label("chunk")
    code.emit("min", now, chunk, left)
    code.emit("sub", left, left, now)
    code.emit("min", now, now, units)
    code.emit("sub", units, units, now)
    code.emit("brnz", left, Symbol("units"))
    emit.store(code, tail, _TAIL)
    code.label("units")
    code.emit("mul", scratch, now, sixth)
    code.emit("shr", scratch, scratch, _SIXTH_SHIFT)
    emit.store(code, scratch, _COUNT)
    code.emit("mul", scratch, scratch, WORKERS)
    code.emit("sub", scratch, now, scratch)
    emit.store(code, scratch, _LEFT)
    ends = (
        (_OUT, _TAIL_OUT, out, _result_unit(conversion)),
        (_IN, _TAIL_IN, source, _source_unit(conversion)),
    )
    for word, tail_word, pointer, unit in ends:
        emit.store(code, pointer, word)
        code.emit("mul", scratch, now, unit)
        code.emit("add", pointer, pointer, scratch)
        emit.store(code, pointer, tail_word)
    code.emit("setzi", scratch, Symbol("worker"))
    code.emit("runall", scratch, STACK_POINTER, 0)
    code.emit("shl", chunk, chunk, ratio.bit_length() - 1)
    code.emit("sync", emit.LOCAL)
    code.emit("brnz", left, Symbol("chunk"))
    emit.close_frame(code, _FRAME)


def _workers(code: Builder, kernel: Linear, decisions: Decisions) -> None:
    """Units in turn, then what is behind them."""
    conversion = kernel.conversion
    emit.begin_workers(code)
    out, source, count, left, worker, is_last = m(0), m(1), m(2), m(3), m(5), m(6)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, source, count, left)):
        emit.load(code, register, word)
    code.emit("cmpeq", is_last, worker, left)
    emit.share_of(code, worker, count, left)
    if conversion.is_eight_bit:
        emit_eight_bit.ready(code, decisions, _EXPONENT if conversion.has_exponent else None, a(0))
    for pointer, unit in ((out, _result_unit(conversion)), (source, _source_unit(conversion))):
        code.emit("mul", left, worker, unit)
        code.emit("add", pointer, pointer, left)
    code.emit("brz", count, Symbol("tail"))
    code.emit("add", count, count, -1)
    match conversion:
        case Conversion.F32_F16 | Conversion.F16_F8:
            _narrowing(code, _NARROWING[conversion], has_two_ports=kernel.has_two_ports)
        case Conversion.F16_F32 | Conversion.F8_F16:
            _widening(code, _WIDENING[conversion], has_two_ports=kernel.has_two_ports)
        case Conversion.F8_F8:
            _rescaling(code)
        case Conversion.F32_F8:
            _narrowing_twice(code)
        case Conversion.F8_F32:
            _widening_twice(code)
        case _:
            assert_never(conversion)
    code.label("tail")
    _tail(code, conversion)
    code.label("done")
    code.emit("exitz", ZERO)


def _strides(load: int, store: int) -> int:
    """Strides of packed addresses, in atoms, in the register that holds them."""
    return load | store << _STRIDE_BITS


def _narrowing(code: Builder, convert: str, *, has_two_ports: bool) -> None:
    out, source, count, second, strides = m(0), m(1), m(2), m(4), m(7)
    conversion: Half = (convert, a2(4), a4(0))
    first_load: Half = ("ld64step", a2(0), ZERO, source, 2 * WORKERS)
    if has_two_ports:
        code.emit("add", second, source, _ATOM)
        code.emit("ld64step", a2(2), ZERO, second, 2 * WORKERS)
        code.emit("tapack", _PACKED, second, ZERO, out)
        code.emit("setzi", strides, _strides(2 * WORKERS, WORKERS))
        code.emit("ld64step", a2(0), ZERO, source, 2 * WORKERS)
        with code.repeat(count):
            code.bundle(first_load, conversion)
            code.bundle(("ldst64pace", a2(2), a2(4), _PACKED, strides, _BY_LOAD | _BY_STORE << 2), ("fnop",))
        code.emit(convert, a2(4), a4(0))
        code.emit("st64pace", a2(4), _PACKED, strides, _BY_STORE)
        return
    code.emit("setzi", second, _ATOM)
    code.emit("ld64", a2(0), ZERO, source, 0)
    code.emit("ld64step", a2(2), second, source, 2 * WORKERS)
    with code.repeat(count):
        code.bundle(("ld64", a2(0), ZERO, source, 0), conversion)
        code.bundle(("ld64step", a2(2), second, source, 2 * WORKERS), ("fnop",))
        code.bundle(("st64step", a2(4), ZERO, out, WORKERS), ("fnop",))
    code.emit(convert, a2(4), a4(0))
    code.emit("st64step", a2(4), ZERO, out, WORKERS)


def _widening(code: Builder, convert: str, *, has_two_ports: bool) -> None:
    out, source, count, second, strides = m(0), m(1), m(2), m(4), m(7)
    low: Half = (convert, a2(4), a(0))
    high: Half = (convert, a2(2), a(1))
    code.emit("setzi", second, _ATOM)
    code.emit("ld64step", a2(0), ZERO, source, WORKERS)
    if has_two_ports:
        code.emit("tapack", _PACKED, source, ZERO, out)
        code.emit("setzi", strides, _strides(WORKERS, 2 * WORKERS))
    code.emit(convert, a2(4), a(0))
    with code.repeat(count):
        if has_two_ports:
            code.bundle(("ldst64pace", a2(0), a2(4), _PACKED, strides, _BY_LOAD | _BY_STORE << 2), high)
        else:
            code.bundle(("ld64step", a2(0), ZERO, source, WORKERS), high)
            code.bundle(("st64", a2(4), ZERO, out, 0), ("fnop",))
        code.bundle(("st64step", a2(2), second, out, 2 * WORKERS), low)
    code.emit("st64", a2(4), ZERO, out, 0)
    code.emit(convert, a2(2), a(1))
    code.emit("st64step", a2(2), second, out, 2 * WORKERS)


def _rescaling(code: Builder) -> None:
    """Two conversions to halves, two multiplications, one conversion back."""
    out, source, count = m(0), m(1), m(2)
    first: Half = ("f8v4tof16", a2(4), a(0))
    rest: tuple[tuple[Half, Half], ...] = (
        (("ld32", a(0), VERTEX_BASE, ZERO, _FACTOR), ("f8v4tof16", a2(6), a(1))),
        (("nop",), ("f16v4mul", a2(4), a(0).low, a2(4))),
        (("ld64step", a2(0), ZERO, source, WORKERS), ("f16v4mul", a2(6), a(0).low, a2(6))),
        (("nop",), ("f16v8tof8", a2(2), a4(4))),
    )
    code.emit("ld64step", a2(0), ZERO, source, WORKERS)
    code.emit("f8v4tof16", a2(4), a(0))
    with code.repeat(count):
        for main, aux in rest:
            code.bundle(main, aux)
        code.bundle(("st64step", a2(2), ZERO, out, WORKERS), first)
    for number, (main, aux) in enumerate(rest):
        # Nothing is left to load.
        code.bundle(main if number == 0 else ("nop",), aux)
    code.emit("st64step", a2(2), ZERO, out, WORKERS)


def _narrowing_twice(code: Builder) -> None:
    """Four pairs times the factor, two conversions to halves, one to codes.

    There is no register for the factor beside two quads: it is loaded to where the second pair of halves
    will be.
    """
    out, source, count, last = m(0), m(1), m(2), m(4)
    scale: tuple[Half, Half] = (
        ("f32v2mul", a2(0), a(6).word, a2(0)),
        ("f32v2mul", a2(2), a(6).word, a2(2)),
    )
    factor: Half = ("ld32", a(6), VERTEX_BASE, ZERO, _EXPONENT)
    first_load: Half = ("ld64", a2(0), ZERO, source, 0)

    def to_codes(following: Half, following_factor: Half) -> None:
        """From the scaled first quad of a unit on."""
        code.bundle(("ld64", a2(0), ZERO, source, 2), ("f32v4tof16", a2(4), a4(0)))
        code.bundle(("ld64step", a2(2), last, source, 4 * WORKERS), scale[0])
        code.bundle(("nop",), scale[1])
        code.bundle(following, ("f32v4tof16", a2(6), a4(0)))
        code.bundle(following_factor, ("f16v8tof8", a2(4), a4(4)))

    code.emit("setzi", last, 3 * _ATOM)
    emit.place(code, 0)
    code.bundle(first_load, ("fnop",))
    code.bundle(factor, ("fnop",))
    code.bundle(("ld64", a2(2), ZERO, source, 1), scale[0])
    code.bundle(("nop",), scale[1])
    with code.repeat(count):
        to_codes(first_load, factor)
        code.bundle(("ld64", a2(2), ZERO, source, 1), scale[0])
        code.bundle(("st64step", a2(4), ZERO, out, WORKERS), scale[1])
    emit.place(code, 0)
    to_codes(("nop",), ("nop",))
    code.emit("st64step", a2(4), ZERO, out, WORKERS)


def _widening_twice(code: Builder) -> None:
    """Two conversions to halves, four to pairs of words, and each pair times the factor."""
    out, source, count, last = m(0), m(1), m(2), m(4)
    scale: Half = ("f32v2mul", a2(4), a(6).word, a2(4))
    following: Half = ("ld64step", a2(0), ZERO, source, WORKERS)
    final_store: Half = ("st64step", a2(4), last, out, 4 * WORKERS)

    def to_words(load: Half) -> None:
        """From the first halves of a unit on; its last store is left."""
        code.bundle(("nop",), ("f16v2tof32", a2(4), a(2)))
        code.bundle(("nop",), scale)
        code.bundle(("st64", a2(4), ZERO, out, 0), ("f16v2tof32", a2(4), a(3)))
        code.bundle(("nop",), scale)
        code.bundle(("st64", a2(4), ZERO, out, 1), ("f8v4tof16", a2(2), a(1)))
        code.bundle(load, ("f16v2tof32", a2(4), a(2)))
        code.bundle(("nop",), scale)
        code.bundle(("st64", a2(4), ZERO, out, 2), ("f16v2tof32", a2(4), a(3)))
        code.bundle(("nop",), scale)

    code.emit("ld32", a(6), VERTEX_BASE, ZERO, _EXPONENT)
    code.emit("setzi", last, 3 * _ATOM)
    code.emit("ld64step", a2(0), ZERO, source, WORKERS)
    code.emit("f8v4tof16", a2(2), a(0))
    with code.repeat(count):
        to_words(following)
        code.bundle(final_store, ("f8v4tof16", a2(2), a(0)))
    to_words(("nop",))
    code.emit("st64step", a2(4), last, out, 4 * WORKERS)


def _tail(code: Builder, conversion: Conversion) -> None:
    """One element at a time, into the word that it shares with others."""
    out, source, count, value, is_last = m(0), m(1), m(2), m(3), m(6)
    shift, word, old, mask = m(4), m(5), m(7), m(8)
    code.emit("brz", is_last, Symbol("done"))
    emit.load(code, count, _TAIL)
    code.emit("brz", count, Symbol("done"))
    emit.load(code, out, _TAIL_OUT)
    emit.load(code, source, _TAIL_IN)
    code.label("element")
    match conversion:
        case Conversion.F32_F16:
            code.emit("ld32step", a(0), ZERO, source, 1)
            code.emit("f32tof16", a(0), a(0))
        case Conversion.F16_F32:
            code.emit("ldb16step", a(0), ZERO, source, 1)
            code.emit("f16tof32", a(0), a(0))
        case Conversion.F16_F8:
            code.emit("ldb16step", a(0), ZERO, source, 1)
            code.emit("f16v2tof8", a(0), a(0))
        case Conversion.F8_F16:
            code.emit("ldb8step", a(0), ZERO, source, 1)
            code.emit("f8v2tof16", a(0), a(0))
        case Conversion.F8_F8:
            code.emit("ldb8step", a(0), ZERO, source, 1)
            code.emit("f8v2tof16", a(0), a(0))
            code.emit("ld32", a(1), VERTEX_BASE, ZERO, _FACTOR)
            code.emit("f16v2mul", a(0), a(1).low, a(0))
            code.emit("f16v2tof8", a(0), a(0))
        case Conversion.F32_F8:
            code.emit("ld32step", a(0), ZERO, source, 1)
            code.emit("ld32", a(1), VERTEX_BASE, ZERO, _EXPONENT)
            code.emit("f32mul", a(0), a(1), a(0))
            code.emit("f32tof16", a(0), a(0))
            code.emit("f16v2tof8", a(0), a(0))
        case Conversion.F8_F32:
            code.emit("ldb8step", a(0), ZERO, source, 1)
            code.emit("f8v2tof16", a(0), a(0))
            code.emit("ld32", a(1), VERTEX_BASE, ZERO, _EXPONENT)
            code.emit("f16tof32", a(0), a(0))
            code.emit("f32mul", a(0), a(1), a(0))
    if conversion.result_bytes == 4:
        code.emit("st32step", a(0), ZERO, out, 1)
    else:
        code.emit("atom", value, a(0))
        code.emit("setzi", mask, (1 << 8 * conversion.result_bytes) - 1)
        code.emit("and", value, value, mask)
        code.emit("and", shift, out, 3)
        code.emit("sub", word, out, shift)
        code.emit("shl", shift, shift, 3)
        code.emit("shl", value, value, shift)
        code.emit("shl", mask, mask, shift)
        code.emit("ld32", old, word, ZERO, 0)
        code.emit("or", old, old, mask)
        code.emit("sub", old, old, mask)
        code.emit("or", old, old, value)
        code.emit("st32", old, word, ZERO, 0)
        code.emit("add", out, out, conversion.result_bytes)
    code.emit("add", count, count, -1)
    code.emit("brnz", count, Symbol("element"))
