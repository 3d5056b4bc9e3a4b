"""Machine code of casts.

Units are pipelined by one: while one is converted and stored, the next is loaded. A narrowing conversion
loads two halves of a unit and stores one result, a widening one the other way round. With two ports, one of
its loads and one of its stores are the same instruction.
"""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ARITHMETIC_ZEROS, VERTEX_BASE, ZERO, a, a2, a4, m, m2
from compiler.kernels import emit, emit_eight_bit
from compiler.kernels.cast.binding import WORKERS, Conversion, kernel_of
from compiler.kernels.cast.panels import MERGE
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

_OUT, _IN, _COUNT, _LEFT, _TAIL, _EXPONENT, _FACTOR, _TAIL_OUT, _TAIL_IN = range(9)
"""Words of the frame."""
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


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol."""
    if key == MERGE:
        code = emit.begin(key)
        _merge(code, decisions)
        return code.finish()
    conversion, is_separate = kernel_of(key)
    arguments = 5 + conversion.is_eight_bit + (conversion is Conversion.F8_F8)
    source_unit = conversion.unit * conversion.source_bytes
    result_unit = conversion.unit * conversion.result_bytes
    code = emit.begin(key)
    emit.call_frame(code, arguments, _FRAME)
    # Where the elements behind the last unit are.
    units, place = m(0), m(1)
    code.emit("mul", units, emit.argument(_COUNT), WORKERS)
    code.emit("add", units, units, emit.argument(_LEFT))
    for word, pointer, unit in ((_TAIL_OUT, _OUT, result_unit), (_TAIL_IN, _IN, source_unit)):
        code.emit("mul", place, units, unit)
        code.emit("add", place, place, emit.argument(pointer))
        emit.store(code, place, word)
    emit.launch_and_return(code, Symbol("worker"), _FRAME)
    emit.begin_workers(code)
    out, source, count, left, worker, is_last = m(0), m(1), m(2), m(3), m(5), m(6)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, source, count, left)):
        emit.load(code, register, word)
    code.emit("cmpeq", is_last, worker, left)
    emit.share_of(code, worker, count, left)
    if conversion.is_eight_bit:
        emit_eight_bit.ready(code, decisions, _EXPONENT, a(0))
    for pointer, unit in ((out, result_unit), (source, source_unit)):
        code.emit("mul", left, worker, unit)
        code.emit("add", pointer, pointer, left)
    code.emit("brz", count, Symbol("tail"))
    code.emit("add", count, count, -1)
    if conversion in _NARROWING:
        _narrowing(code, _NARROWING[conversion], is_separate=is_separate)
    elif conversion in _WIDENING:
        _widening(code, _WIDENING[conversion], is_separate=is_separate)
    else:
        _rescaling(code)
    code.label("tail")
    _tail(code, conversion)
    code.label("done")
    code.emit("exitz", ZERO)
    return code.finish()


(
    _ROWS,
    _PANELS,
    _LANES,
    _OWN_ROWS,
    _SCALE,
    _ROWS_LEFT,
    _PANEL_LANES,
    _ROW_LANES,
    _PANEL_BYTES,
    _HALVES,
) = range(2, 12)
"""Words of the frame of merged panels, behind those of result and operand."""
_MERGE_FRAME: Final = 12


def _merge(code: Builder, decisions: Decisions) -> None:
    """Row after row of a panel, six bundles for sixteen elements, then the lane's next panel."""
    emit.call_frame(code, 7, _MERGE_FRAME)
    one, lanes = m(0), m(1)
    code.emit("and", one, emit.argument(_LANES), 0xFF)
    emit.store(code, one, _PANEL_LANES)
    code.emit("shr", lanes, emit.argument(_LANES), 8)
    emit.store(code, lanes, _ROW_LANES)
    code.emit("mul", one, lanes, emit.argument(_OWN_ROWS))
    code.emit("sub", one, emit.argument(_ROWS), one)
    emit.store(code, one, _ROWS_LEFT)
    code.emit("shl", one, emit.argument(_ROWS), 5)
    emit.store(code, one, _PANEL_BYTES)
    code.emit("and", one, emit.argument(_PANELS), 1)
    code.emit("add", one, one, emit.argument(_PANELS))
    emit.store(code, one, _HALVES)
    emit.launch_and_return(code, Symbol("worker"), _MERGE_FRAME)
    emit.begin_workers(code)
    # out_at is the lane of rows, and at a scratch register, before they point at rows.
    out_at, source, out, stride, panel_lanes, last = m(0), m(1), m(2), m(3), m(4), m(5)
    rows, panels, at, panel_bytes, second, panel = m(6), m(7), m(8), m(9), m(10), m(11)
    code.label("worker")
    emit.worker_lanes(code, _PANEL_LANES, _ROW_LANES)
    emit.load(code, rows, _OWN_ROWS)
    emit.load(code, at, _ROWS_LEFT)
    emit.share_of(code, out_at, rows, at)
    code.emit("brz", rows, Symbol("done"))
    emit.load(code, at, _HALVES)
    code.emit("cmpult", at, panel, at)
    code.emit("brz", at, Symbol("done"))
    emit.load(code, source, _IN)
    emit.load(code, out, _OUT)
    emit.load(code, panel_bytes, _PANEL_BYTES)
    emit.load(code, panels, _PANELS)
    code.emit("shl", stride, stride, 2)
    code.emit("shl", out_at, out_at, 5)
    code.emit("add", source, source, out_at)
    code.emit("add", out, out, out_at)
    code.emit("setzi", last, 3 * _ATOM)
    emit_eight_bit.ready(code, decisions, _SCALE, a(0))
    code.label("panel")
    code.emit("shr", out_at, panel, 1)
    code.emit("mul", out_at, out_at, panel_bytes)
    code.emit("and", second, panel, 1)
    code.emit("shl", second, second, 4)
    code.emit("add", out_at, out_at, second)
    code.emit("add", out_at, out_at, out)
    code.emit("setzi", second, _ATOM)
    code.emit("cmpult", at, panel, panels)
    code.emit("brz", at, Symbol("clear"))
    code.emit("mul", at, panel, panel_bytes)
    code.emit("add", at, at, source)
    with code.repeat(rows):
        code.bundle(("ld64", a2(0), ZERO, at, 0), ("fnop",))
        code.bundle(("ld64", a2(2), ZERO, at, 1), ("fnop",))
        code.bundle(("ld64", a2(4), ZERO, at, 2), ("f16v8tof8", a2(0), a4(0)))
        code.bundle(("ld64step", a2(6), last, at, stride), ("fnop",))
        code.bundle(("st64", a2(0), ZERO, out_at, 0), ("f16v8tof8", a2(2), a4(4)))
        code.bundle(("st64step", a2(2), second, out_at, stride), ("fnop",))
    code.label("next")
    code.emit("add", panel, panel, panel_lanes)
    emit.load(code, at, _HALVES)
    code.emit("cmpult", at, panel, at)
    code.emit("brnz", at, Symbol("panel"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("clear")
    with code.repeat(rows):
        code.bundle(("st64", ARITHMETIC_ZEROS, ZERO, out_at, 0), ("fnop",))
        code.bundle(("st64step", ARITHMETIC_ZEROS, second, out_at, stride), ("fnop",))
    code.emit("bri", Symbol("next"))


def _strides(load: int, store: int) -> int:
    """Strides of packed addresses, in atoms, in the register that holds them."""
    return load | store << _STRIDE_BITS


def _narrowing(code: Builder, convert: str, *, is_separate: bool) -> None:
    out, source, count, second, strides = m(0), m(1), m(2), m(4), m(7)
    conversion: Half = (convert, a2(4), a4(0))
    first_load: Half = ("ld64step", a2(0), ZERO, source, 2 * WORKERS)
    if is_separate:
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


def _widening(code: Builder, convert: str, *, is_separate: bool) -> None:
    out, source, count, second, strides = m(0), m(1), m(2), m(4), m(7)
    low: Half = (convert, a2(4), a(0))
    high: Half = (convert, a2(2), a(1))
    code.emit("setzi", second, _ATOM)
    code.emit("ld64step", a2(0), ZERO, source, WORKERS)
    if is_separate:
        code.emit("tapack", _PACKED, source, ZERO, out)
        code.emit("setzi", strides, _strides(WORKERS, 2 * WORKERS))
    code.emit(convert, a2(4), a(0))
    with code.repeat(count):
        if is_separate:
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
    if conversion is Conversion.F16_F32:
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
