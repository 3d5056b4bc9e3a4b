"""Machine code of copies and fills.

Each is one launch, or two for rows of halves that can meet in a word. Loops hold a load and a store for each
unit, or a store alone, and nothing else.
"""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ARITHMETIC_ZERO, ARITHMETIC_ZEROS, STACK_POINTER, ZERO, Main, a, a2, m
from compiler.kernels import emit
from compiler.kernels.copy.binding import WORKERS, Kind, Shape
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol; no decision changes it."""
    del decisions
    kind_name, shape_name = key.variant.split("_")
    kind = Kind(kind_name)
    code = emit.begin(key)
    match Shape(shape_name):
        case Shape.SPAN:
            _span(code, kind, _unit(key))
        case Shape.ROWS:
            _rows(code, kind, _unit(key))
        case Shape.HALVES:
            _halves(code, kind)
    return code.finish()


def _unit(key: SymbolKey) -> int:
    return int(key.choice("unit").removeprefix("u")) // 8


def _units(
    code: Builder, kind: Kind, unit: int, count: Main, out: Main, source: Main, step: Main | int
) -> None:
    """Copy or fill ``count`` units, both pointers moving by ``step`` units."""
    bits = 8 * unit
    register = a2(0) if unit == 8 else a(0)
    zero = ARITHMETIC_ZEROS if unit == 8 else ARITHMETIC_ZERO
    idle: Half = ("fnop",)
    with code.repeat(count):
        if kind is Kind.MOVE:
            code.bundle((f"ld{bits}step", register, ZERO, source, step), idle)
        code.bundle((f"st{bits}step", register if kind is Kind.MOVE else zero, ZERO, out, step), idle)


def _span(code: Builder, kind: Kind, unit: int) -> None:
    pointers = [m(0), m(1)] if kind is Kind.MOVE else [m(0)]
    words = len(pointers) + 2
    count, left, worker, offset = m(2), m(3), m(4), m(5)
    emit.call_frame(code, words, words)
    emit.launch_and_return(code, Symbol("worker"), words)
    emit.begin_workers(code)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((*pointers, count, left)):
        emit.load(code, register, word)
    emit.share_of(code, worker, count, left)
    code.emit("shl", offset, worker, unit.bit_length() - 1)
    for pointer in pointers:
        code.emit("add", pointer, pointer, offset)
    _units(code, kind, unit, count=count, out=pointers[0], source=pointers[-1], step=WORKERS)
    code.emit("exitz", ZERO)


def _rows(code: Builder, kind: Kind, unit: int) -> None:
    is_move = kind is Kind.MOVE
    sides = 2 if is_move else 1
    # Words of the frame: pointers, strides, then what the supervisor computes.
    strides = range(sides, 2 * sides)
    own_rows, rows_left, own_columns, columns_left, column_lanes, row_lanes = range(2 * sides, 2 * sides + 6)
    words = 2 * sides + 6
    rows, columns, lanes, per_lane, *stride_arguments = (
        emit.argument(index) for index in range(sides, 2 * sides + 4)
    )
    one, other = m(0), m(1)
    emit.call_frame(code, sides, words)
    for word, register in zip(strides, stride_arguments, strict=True):
        emit.store(code, register, word)
    for lane_word, count, mine, rest in (
        (column_lanes, columns, own_columns, columns_left),
        (row_lanes, rows, own_rows, rows_left),
    ):
        if lane_word == column_lanes:
            code.emit("and", one, lanes, 0xFF)
            code.emit("shr", other, per_lane, 16)
        else:
            code.emit("shr", one, lanes, 8)
            code.emit("shl", other, per_lane, 16)
            code.emit("shr", other, other, 16)
        emit.store(code, one, lane_word)
        emit.store(code, other, mine)
        code.emit("mul", one, one, other)
        code.emit("sub", one, count, one)
        emit.store(code, one, rest)
    emit.launch_and_return(code, Symbol("worker"), words)
    emit.begin_workers(code)
    code.label("worker")
    emit.worker_lanes(code, column_lanes, row_lanes)
    # Rows of the lane, minus one, and its columns.
    emit.load(code, m(6), own_rows)
    emit.load(code, m(8), rows_left)
    emit.share_of(code, m(0), m(6), m(8))
    code.emit("add", m(6), m(6), -1)
    code.emit("brneg", m(6), Symbol("done"))
    emit.load(code, m(7), own_columns)
    emit.load(code, m(8), columns_left)
    emit.share_of(code, m(11), m(7), m(8))
    code.emit("brz", m(7), Symbol("done"))
    code.emit("shl", m(11), m(11), unit.bit_length() - 1)
    # Each side: pointer to the lane's first unit, bytes from one of its rows to the next.
    pairs = ((m(1), m(2)), (m(5), m(8)))[:sides]
    for word, (pointer, step) in enumerate(pairs):
        emit.load(code, step, strides[word])
        code.emit("mul", m(9), step, m(0))
        emit.load(code, pointer, word)
        code.emit("add", pointer, pointer, m(9))
        code.emit("add", pointer, pointer, m(11))
        code.emit("mul", step, step, m(3))
    code.label("row")
    running = (m(9), m(10))[:sides]
    for at, (pointer, _) in zip(running, pairs, strict=True):
        code.emit("mov", at, pointer)
    _units(code, kind, unit, count=m(7), out=running[0], source=running[-1], step=m(4))
    for pointer, step in pairs:
        code.emit("add", pointer, pointer, step)
    code.emit("brnzdec", m(6), Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)


_SIXTH: Final = 43691
_SIXTH_SHIFT: Final = 18
"""x * _SIXTH >> _SIXTH_SHIFT is x // 6 for x below ``binding.MOST_SIXTHS``."""


def _halves(code: Builder, kind: Kind) -> None:
    """Rows of 16-bit units, word by word of the destination."""
    sides = 2 if kind is Kind.MOVE else 1
    strides = range(sides, 2 * sides)
    count, column_lanes, row_lanes, own_rows, rows_left = range(2 * sides, 2 * sides + 5)
    words = 2 * sides + 5
    _halves_supervisor(code, sides, words)
    emit.begin_workers(code)
    code.label("worker")
    emit.worker_lanes(code, column_lanes, row_lanes)
    lanes, twice, lane, rows = m(8), m(9), m(11), m(6)
    code.emit("mov", lanes, m(4))
    code.emit("add", twice, m(4), m(4))
    emit.load(code, rows, own_rows)
    emit.load(code, m(7), rows_left)
    emit.share_of(code, m(0), rows, m(7))
    code.emit("add", rows, rows, -1)
    code.emit("brneg", rows, Symbol("done"))
    pointers = (m(3), m(1))[:sides]
    for word, pointer in enumerate(pointers):
        emit.load(code, m(2), strides[word])
        code.emit("mul", m(2), m(2), m(0))
        emit.load(code, pointer, word)
        code.emit("add", pointer, pointer, m(2))
    # A row: how many halves are left, where in the destination, where in the source.
    left, out, source, scratch, run, run_out = m(2), m(5), m(4), m(0), m(7), m(10)
    running = (out, source)[:sides]
    code.label("row")
    emit.load(code, left, count)
    code.emit("and", scratch, pointers[0], 2)
    for at, pointer in zip(running, pointers, strict=True):
        code.emit("mov", at, pointer)
    code.emit("brz", scratch, Symbol("aligned"))
    code.emit("add", left, left, -1)
    code.emit("add", out, out, -2)
    code.emit("brnz", lane, Symbol("headless"))
    code.emit("ldb16", a(0), out, ZERO, 0)
    if kind is Kind.MOVE:
        code.emit("ldb16", a(1), source, ZERO, 0)
    code.emit("sort4x16lo", a(0), a(0), a(1) if kind is Kind.MOVE else ARITHMETIC_ZERO)
    code.emit("st32", a(0), out, ZERO, 0)
    code.label("headless")
    code.emit("add", out, out, 4)
    if kind is Kind.MOVE:
        code.emit("add", source, source, 2)
    code.label("aligned")
    # Words of this lane: those from the lane on in steps of the lanes.
    code.emit("shr", scratch, left, 1)
    code.emit("sub", scratch, scratch, lane)
    code.emit("add", scratch, scratch, lanes)
    code.emit("add", scratch, scratch, -1)
    emit.load(code, run, row_lanes)
    code.emit("mul", scratch, scratch, run)
    code.emit("setzi", run, _SIXTH)
    code.emit("mul", scratch, scratch, run)
    code.emit("shr", scratch, scratch, _SIXTH_SHIFT)
    code.emit("brz", scratch, Symbol("end"))
    code.emit("shl", run, lane, 2)
    code.emit("add", run_out, out, run)
    if kind is Kind.MOVE:
        code.emit("add", run, source, run)
        code.emit("ldb16", a(1), run, ZERO, 1)
        code.emit("ldb16step", a(0), ZERO, run, twice)
        code.emit("add", scratch, scratch, -1)
        with code.repeat(scratch):
            code.bundle(("ldb16", a(1), run, ZERO, 1), ("sort4x16lo", a(2), a(0), a(1)))
            code.bundle(("ldb16step", a(0), ZERO, run, twice), ("fnop",))
            code.bundle(("st32step", a(2), ZERO, run_out, lanes), ("fnop",))
        code.emit("sort4x16lo", a(2), a(0), a(1))
        code.emit("st32", a(2), run_out, ZERO, 0)
    else:
        with code.repeat(scratch):
            code.bundle(("st32step", ARITHMETIC_ZERO, ZERO, run_out, lanes), ("fnop",))
    code.label("end")
    code.emit("and", scratch, left, 1)
    code.emit("brz", scratch, Symbol("next"))
    code.emit("add", scratch, lane, 1)
    code.emit("cmpeq", scratch, scratch, lanes)
    code.emit("brz", scratch, Symbol("next"))
    code.emit("shr", left, left, 1)
    code.emit("shl", left, left, 2)
    for at in running:
        code.emit("add", at, at, left)
    code.emit("ldb16", a(1), out, ZERO, 1)
    if kind is Kind.MOVE:
        code.emit("ldb16", a(0), source, ZERO, 0)
    code.emit("sort4x16lo", a(0), a(0) if kind is Kind.MOVE else ARITHMETIC_ZERO, a(1))
    code.emit("st32", a(0), out, ZERO, 0)
    code.label("next")
    emit.load(code, m(2), row_lanes)
    for word, pointer in enumerate(pointers):
        emit.load(code, scratch, strides[word])
        code.emit("mul", scratch, scratch, m(2))
        code.emit("add", pointer, pointer, scratch)
    code.emit("brnzdec", rows, Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)


def _halves_supervisor(code: Builder, sides: int, words: int) -> None:
    """One launch, or two over even and odd rows at twice the strides."""
    count, column_lanes, row_lanes, own_rows, rows_left = range(2 * sides, 2 * sides + 5)
    pointers = [emit.argument(index) for index in range(sides)]
    rows, halves, lanes, *strides = (emit.argument(index) for index in range(sides, 2 * sides + 3))
    one, other, second = m(0), m(1), m(9)
    emit.open_frame(code, words)
    emit.store(code, halves, count)
    code.emit("and", one, lanes, 0xFF)
    emit.store(code, one, column_lanes)
    code.emit("shr", one, lanes, 8)
    code.emit("and", one, one, 0xFF)
    emit.store(code, one, row_lanes)
    code.emit("shr", one, lanes, 24)
    code.emit("add", pointers[0], pointers[0], one)
    code.emit("shr", second, lanes, 16)
    code.emit("and", second, second, 1)
    for word, stride in enumerate(strides, start=sides):
        code.emit("shl", one, stride, second)
        emit.store(code, one, word)
    code.emit("add", one, rows, second)
    code.emit("shr", one, one, second)

    def launch() -> None:
        """Launch over the number of rows in $m0."""
        code.emit("ld32", other, STACK_POINTER, column_lanes)
        code.emit("mul", other, other, one)
        code.emit("setzi", lanes, _SIXTH)
        code.emit("mul", other, other, lanes)
        code.emit("shr", other, other, _SIXTH_SHIFT)
        emit.store(code, other, own_rows)
        code.emit("ld32", lanes, STACK_POINTER, row_lanes)
        code.emit("mul", other, other, lanes)
        code.emit("sub", one, one, other)
        emit.store(code, one, rows_left)
        for word, pointer in enumerate(pointers):
            emit.store(code, pointer, word)
        code.emit("setzi", one, Symbol("worker"))
        code.emit("runall", one, STACK_POINTER, 0)
        code.emit("sync", emit.LOCAL)

    launch()
    code.emit("brz", second, Symbol("return"))
    for pointer, stride in zip(pointers, strides, strict=True):
        code.emit("add", pointer, pointer, stride)
    code.emit("shr", one, rows, 1)
    launch()
    code.label("return")
    emit.close_frame(code, words)
