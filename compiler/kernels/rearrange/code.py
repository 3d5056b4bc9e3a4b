"""Machine code of rearrangements: panels of 32 bytes, four loads and four stores each."""

from typing import Final

from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ARITHMETIC_ZEROS, ZERO, Main, a2, m
from compiler.kernels import emit
from compiler.kernels.rearrange.binding import ATOM, ATOMS, PANELS
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

_OUT, _IN, _BOTH_ROWS, _SHAPE, _IN_STRIDES, _IN_BLOCK, _OUT_STRIDES, _OUT_BLOCK = range(8)
"""Arguments, and the words of the frame that hold them; the other words are made of them."""
_ROWS, _MOVED_ROWS, _PANELS, _REST, _FILL, _LANES, _ROW_LANES, _LEFT = range(8, 16)
_IN_ROW, _IN_STEP, _OUT_ROW, _OUT_STEP = range(16, 20)
_FRAME: Final = 20

_HALF_WORD: Final = 16
_LAST: Final = ATOM * (ATOMS - 1)


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol; no decision changes it."""
    del decisions
    if key != PANELS:
        raise ValueError(f"there is no code of {key}")
    code = emit.begin(key)
    _supervisor(code)
    emit.begin_workers(code)
    _worker(code)
    return code.finish()


def _supervisor(code: Builder) -> None:
    """Take the arguments apart."""
    emit.call_frame(code, 8, _FRAME)
    field = m(0)

    def take(argument: int, low: int, bits: int, word: int, *, in_bytes: bool = False) -> None:
        code.emit("shl", field, emit.argument(argument), 32 - low - bits)
        code.emit("shr", field, field, 32 - bits)
        if in_bytes:
            code.emit("shl", field, field, 3)
        emit.store(code, field, word)

    take(_BOTH_ROWS, 0, _HALF_WORD, _ROWS)
    take(_BOTH_ROWS, _HALF_WORD, _HALF_WORD, _MOVED_ROWS)
    for word, low, bits in (
        (_PANELS, 0, 15),
        (_REST, 15, 2),
        (_FILL, 17, 3),
        (_LANES, 20, 3),
        (_ROW_LANES, 23, 3),
        (_LEFT, 26, 3),
    ):
        take(_SHAPE, low, bits, word)
    for argument, row, step in ((_IN_STRIDES, _IN_ROW, _IN_STEP), (_OUT_STRIDES, _OUT_ROW, _OUT_STEP)):
        take(argument, 0, _HALF_WORD, row, in_bytes=True)
        take(argument, _HALF_WORD, _HALF_WORD, step)
    emit.launch_and_return(code, Symbol("worker"), _FRAME)


def _worker(code: Builder) -> None:
    source, out, row, source_base, scratch, last = m(0), m(1), m(2), m(3), m(4), m(5)
    in_stride, out_stride, panels, has_rest, word, out_base = m(6), m(7), m(8), m(9), m(10), m(11)
    lanes, lane = scratch, out_base
    code.label("worker")
    emit.worker_lanes(code, _LANES, _ROW_LANES)
    code.emit("mov", row, m(0))
    emit.load(code, panels, _PANELS)
    emit.load(code, has_rest, _LEFT)
    emit.share_of(code, lane, panels, has_rest)
    # The lane whose turn it would be does what is no whole panel.
    emit.load(code, has_rest, _LEFT)
    code.emit("cmpeq", has_rest, lane, has_rest)
    # Each lane begins at its first panel; the last base takes the register of the lane.
    for stride, base, step, pointer in (
        (in_stride, source_base, _IN_STEP, _IN),
        (out_stride, out_base, _OUT_STEP, _OUT),
    ):
        emit.load(code, word, step)
        code.emit("mul", stride, word, lanes)
        code.emit("mul", word, word, lane)
        code.emit("shl", word, word, 3)
        emit.load(code, base, pointer)
        code.emit("add", base, base, word)
    code.emit("setzi", last, _LAST)

    def point(pointer: Main, base: Main, block: int, of_row: int) -> None:
        """The lane's first panel in a row. Eight instructions."""
        code.emit("shr", pointer, row, 4)
        emit.load(code, word, block)
        code.emit("mul", pointer, pointer, word)
        code.emit("and", scratch, row, 15)
        emit.load(code, word, of_row)
        code.emit("mul", scratch, scratch, word)
        code.emit("add", pointer, pointer, scratch)
        code.emit("add", pointer, pointer, base)

    code.label("row")
    emit.load(code, word, _ROWS)
    code.emit("cmpult", word, row, word)
    code.emit("brz", word, Symbol("done"))
    point(out, out_base, _OUT_BLOCK, _OUT_ROW)
    emit.load(code, word, _MOVED_ROWS)
    code.emit("cmpult", word, row, word)
    code.emit("brz", word, Symbol("clear"))
    point(source, source_base, _IN_BLOCK, _IN_ROW)
    with code.repeat(panels):
        for atom in range(ATOMS - 1):
            code.bundle(("ld64", a2(2 * atom), ZERO, source, atom), ("fnop",))
        code.bundle(("ld64step", a2(6), last, source, in_stride), ("fnop",))
        for atom in range(ATOMS - 1):
            code.bundle(("st64", a2(2 * atom), ZERO, out, atom), ("fnop",))
        code.bundle(("st64step", a2(6), last, out, out_stride), ("fnop",))
    code.emit("brz", has_rest, Symbol("next"))
    emit.load(code, word, _REST)
    with code.repeat(word):
        code.bundle(("ld64step", a2(0), ZERO, source, 1), ("fnop",))
        code.bundle(("st64step", a2(0), ZERO, out, 1), ("fnop",))
    emit.load(code, word, _FILL)
    code.label("fill")
    with code.repeat(word):
        code.bundle(("st64step", ARITHMETIC_ZEROS, ZERO, out, 1), ("fnop",))
    code.label("next")
    emit.load(code, word, _ROW_LANES)
    code.emit("add", row, row, word)
    code.emit("bri", Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("clear")
    with code.repeat(panels):
        for atom in range(ATOMS - 1):
            code.bundle(("st64", ARITHMETIC_ZEROS, ZERO, out, atom), ("fnop",))
        code.bundle(("st64step", ARITHMETIC_ZEROS, last, out, out_stride), ("fnop",))
    code.emit("brz", has_rest, Symbol("next"))
    emit.load(code, word, _FILL)
    emit.load(code, scratch, _REST)
    code.emit("add", word, word, scratch)
    code.emit("bri", Symbol("fill"))
