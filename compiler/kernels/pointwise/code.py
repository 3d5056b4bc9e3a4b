"""Machine code of element-wise sums. That of GELU is in ``gelu_code``.

Each kernel is one launch. The supervisor stores its arguments in a frame; workers take items in turn or, for
rows, by lanes. Loops are pipelined by one item: a bundle loads the next item while it adds the last.
"""

from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ZERO, a, a2, m
from compiler.kernels import emit
from compiler.kernels.pointwise import gelu, gelu_code
from compiler.kernels.pointwise.binding import Variant, variant_of
from compiler.kernels.pointwise.common import WORKERS
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

_X, _Y, _SUM = a2(0), a2(2), a2(4)


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol."""
    code = emit.begin(key)
    if key == gelu.FLAT:
        gelu_code.flat(code)
        return code.finish()
    if key == gelu.NARROW:
        gelu_code.narrow(code)
        return code.finish()
    if key in gelu.ROWS:
        has_bias, is_f8 = gelu.ROWS[key]
        gelu_code.rows(code, decisions, has_bias=has_bias, is_f8=is_f8)
        return code.finish()
    variant, is_split = variant_of(key)
    match variant:
        case Variant.FLAT:
            _flat(code)
        case Variant.ROWS:
            _rows(code)
        case Variant.NARROW:
            _narrow(code, is_split=is_split)
    return code.finish()


def _flat(code: Builder) -> None:
    emit.call_frame(code, 6, 6)
    emit.launch_and_return(code, Symbol("worker"), 6)
    emit.begin_workers(code)
    out, left, right, count, tail, worker = m(0), m(1), m(2), m(3), m(4), m(5)
    load_at, store_at, is_last = m(6), m(7), m(8)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, left, right, count, tail)):
        emit.load(code, register, word)
    code.emit("cmpeq", is_last, worker, tail)
    emit.share_of(code, worker, count, tail)
    code.emit("shl", load_at, worker, 3)
    code.emit("mov", store_at, load_at)
    code.emit("brz", count, Symbol("tail"))
    code.emit("ld64", _X, left, load_at, 0)
    code.emit("ld64step", _Y, right, load_at, WORKERS)
    code.emit("add", count, count, -1)
    with code.repeat(count):
        code.bundle(("ld64", _X, left, load_at, 0), ("f16v4add", _SUM, _X, _Y))
        code.bundle(("ld64step", _Y, right, load_at, WORKERS), ("fnop",))
        code.bundle(("st64step", _SUM, out, store_at, WORKERS), ("fnop",))
    code.emit("f16v4add", _SUM, _X, _Y)
    code.emit("st64step", _SUM, out, store_at, WORKERS)
    code.label("tail")
    # The worker whose turn it would be takes what does not fill 64 bits.
    code.emit("brz", is_last, Symbol("done"))
    emit.load(code, tail, 5)
    code.emit("brz", tail, Symbol("done"))
    code.emit("and", count, tail, 2)
    code.emit("brz", count, Symbol("half"))
    code.emit("ld32", a(0), left, store_at, 0)
    code.emit("ld32", a(2), right, store_at, 0)
    code.emit("f16v2add", a(4), a(0), a(2))
    code.emit("st32", a(4), out, store_at, 0)
    code.emit("add", store_at, store_at, 4)
    code.label("half")
    code.emit("and", tail, tail, 1)
    code.emit("brz", tail, Symbol("done"))
    code.emit("ldb16", a(0), left, store_at, 0)
    code.emit("ldb16", a(2), right, store_at, 0)
    code.emit("f16v2add", a(4), a(0), a(2))
    emit.store_half(code, a(4), a(5), out, store_at)
    code.label("done")
    code.emit("exitz", ZERO)


def _rows(code: Builder) -> None:
    """Lanes of columns and rows.

    By columns, a repeated quad stays in a register while rows pass by; by rows, it is loaded for each row.
    """
    out, whole, repeated, outer, own_rows, rows_left, own_columns, columns_left = range(8)
    column_lanes, row_lanes, row_bytes, outer_bytes, by_rows, words = range(8, 14)
    rows, quads, lanes, per_lane = (emit.argument(index) for index in range(4, 8))
    one, other = m(0), m(1)
    emit.call_frame(code, 4, words)
    code.emit("and", one, lanes, 0xFF)
    emit.store(code, one, column_lanes)
    code.emit("shr", other, per_lane, 16)
    emit.store(code, other, own_columns)
    code.emit("mul", one, one, other)
    code.emit("sub", one, quads, one)
    emit.store(code, one, columns_left)
    code.emit("shr", one, lanes, 8)
    code.emit("and", one, one, 0xFF)
    emit.store(code, one, row_lanes)
    code.emit("shl", other, per_lane, 16)
    code.emit("shr", other, other, 16)
    emit.store(code, other, own_rows)
    code.emit("mul", one, one, other)
    code.emit("sub", one, rows, one)
    emit.store(code, one, rows_left)
    code.emit("shl", one, quads, 3)
    emit.store(code, one, row_bytes)
    code.emit("mul", one, one, rows)
    emit.store(code, one, outer_bytes)
    code.emit("shr", one, lanes, 16)
    emit.store(code, one, by_rows)
    emit.launch_and_return(code, Symbol("worker"), words)
    emit.begin_workers(code)
    code.label("worker")
    emit.worker_lanes(code, column_lanes, row_lanes)
    # Rows of the lane, minus one; the same for columns.
    for count, left, lane, mine, rest in (
        (m(6), m(8), m(0), own_rows, rows_left),
        (m(8), m(10), m(11), own_columns, columns_left),
    ):
        emit.load(code, count, mine)
        emit.load(code, left, rest)
        emit.share_of(code, lane, count, left)
        code.emit("add", count, count, -1)
        code.emit("brneg", count, Symbol("done"))
    # Bytes to the lane's first column, from one of its rows to the next, to the first row.
    emit.load(code, m(7), row_bytes)
    code.emit("shl", m(11), m(11), 3)
    code.emit("mul", m(5), m(7), m(3))
    code.emit("mul", m(10), m(0), m(7))
    emit.load(code, m(0), out)
    code.emit("add", m(0), m(0), m(10))
    emit.load(code, m(1), whole)
    code.emit("add", m(1), m(1), m(10))
    emit.load(code, m(2), repeated)
    emit.load(code, m(9), outer)
    code.emit("add", m(9), m(9), -1)
    emit.load(code, m(10), by_rows)
    code.emit("brnz", m(10), Symbol("by_rows"))
    code.emit("shr", m(5), m(5), 3)
    code.label("outer")
    code.emit("mov", m(8), m(11))
    code.label("column")
    code.emit("mov", m(3), m(8))
    code.emit("mov", m(10), m(8))
    code.emit("ld64step", _Y, m(2), m(8), m(4))
    code.emit("ld64step", _X, m(1), m(3), m(5))
    with code.repeat(m(6)):
        code.bundle(("ld64step", _X, m(1), m(3), m(5)), ("f16v4add", _SUM, _X, _Y))
        code.bundle(("st64step", _SUM, m(0), m(10), m(5)), ("fnop",))
    code.emit("f16v4add", _SUM, _X, _Y)
    code.emit("st64", _SUM, m(0), m(10), 0)
    code.emit("cmpult", m(10), m(8), m(7))
    code.emit("brnz", m(10), Symbol("column"))
    emit.load(code, m(3), outer_bytes)
    code.emit("add", m(0), m(0), m(3))
    code.emit("add", m(1), m(1), m(3))
    code.emit("add", m(2), m(2), m(7))
    code.emit("brnzdec", m(9), Symbol("outer"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("by_rows")
    code.emit("mov", m(7), m(6))
    code.label("row")
    code.emit("mov", m(3), m(11))
    code.emit("mov", m(10), m(11))
    code.emit("ld64", _X, m(1), m(3), 0)
    code.emit("ld64step", _Y, m(2), m(3), m(4))
    with code.repeat(m(8)):
        code.bundle(("ld64", _X, m(1), m(3), 0), ("f16v4add", _SUM, _X, _Y))
        code.bundle(("ld64step", _Y, m(2), m(3), m(4)), ("fnop",))
        code.bundle(("st64step", _SUM, m(0), m(10), m(4)), ("fnop",))
    code.emit("f16v4add", _SUM, _X, _Y)
    code.emit("st64", _SUM, m(0), m(10), 0)
    code.emit("add", m(0), m(0), m(5))
    code.emit("add", m(1), m(1), m(5))
    code.emit("brnzdec", m(7), Symbol("row"))
    # On to the next run: forward by the whole, back by the rows of this lane.
    code.emit("add", m(10), m(6), 1)
    code.emit("mul", m(10), m(10), m(5))
    emit.load(code, m(3), outer_bytes)
    code.emit("sub", m(3), m(3), m(10))
    code.emit("add", m(0), m(0), m(3))
    code.emit("add", m(1), m(1), m(3))
    emit.load(code, m(3), row_bytes)
    code.emit("add", m(2), m(2), m(3))
    code.emit("brnzdec", m(9), Symbol("by_rows"))
    code.emit("exitz", ZERO)


def _narrow(code: Builder, *, is_split: bool) -> None:
    """Words of the result in turn, each worker with its own position in the repeated run.

    The loop is for words whose pair lies inside the run and tests beforehand whether the next one does. When
    not, the position is past the end and goes back by a run, or, in a run of odd width, it is the last half
    and pairs up with the first.
    """
    emit.call_frame(code, 8, 8)
    emit.launch_and_return(code, Symbol("worker"), 8)
    emit.begin_workers(code)
    out, whole, repeated, count, rest, worker = m(0), m(1), m(2), m(3), m(4), m(5)
    position, width, advance, limit, is_inside, is_last = m(6), m(7), m(8), m(9), m(10), m(11)
    x, y, second, z = a(0), a(2), a(3), a(4)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, whole, repeated, count, rest)):
        emit.load(code, register, word)
    emit.load(code, width, 6)
    emit.load(code, advance, 7)
    code.emit("cmpeq", is_last, worker, rest)
    emit.share_of(code, worker, count, rest)
    code.emit("shl", position, worker, 2)
    code.emit("add", out, out, position)
    code.emit("add", whole, whole, position)
    code.label("reduce")
    code.emit("cmpult", is_inside, position, width)
    code.emit("brnz", is_inside, Symbol("reduced"))
    code.emit("sub", position, position, width)
    code.emit("bri", Symbol("reduce"))
    code.label("reduced")
    code.emit("brz", count, Symbol("tail"))
    code.emit("add", count, count, -1)
    # A pair is inside when it begins before this.
    code.emit("add", limit, width, -2 if is_split else 0)
    code.emit("cmpult", is_inside, position, limit)
    emit.place(code, 4 if is_split else 3)
    code.label("word")
    code.emit("brz", is_inside, Symbol("outside"))
    code.emit("ld32step", x, ZERO, whole, WORKERS)
    if is_split:
        code.emit("ldb16", y, repeated, position, 0)
        code.emit("ldb16", second, repeated, position, 1)
        code.bundle(("add", position, position, advance), ("sort4x16lo", y, y, second))
        code.bundle(("cmpult", is_inside, position, limit), ("f16v2add", z, x, y))
    else:
        code.emit("ld32", y, repeated, position, 0)
        code.bundle(("add", position, position, advance), ("f16v2add", z, x, y))
        code.emit("cmpult", is_inside, position, limit)
    code.emit("st32step", z, ZERO, out, WORKERS)
    code.emit("brnzdec", count, Symbol("word"))
    code.emit("bri", Symbol("tail"))
    code.label("outside")
    if is_split:
        code.emit("cmpult", is_inside, position, width)
        code.emit("brnz", is_inside, Symbol("ends"))
    code.emit("sub", position, position, width)
    code.emit("cmpult", is_inside, position, limit)
    code.emit("bri", Symbol("word"))
    if is_split:
        emit.place(code, 3)
        code.label("ends")
        code.emit("ld32step", x, ZERO, whole, WORKERS)
        code.emit("ldb16", y, repeated, position, 0)
        code.emit("ldb16", second, repeated, ZERO, 0)
        code.bundle(("add", position, position, advance), ("sort4x16lo", y, y, second))
        code.bundle(("cmpult", is_inside, position, limit), ("f16v2add", z, x, y))
        code.emit("st32step", z, ZERO, out, WORKERS)
        code.emit("brnzdec", count, Symbol("word"))
    code.label("tail")
    code.emit("brz", is_last, Symbol("done"))
    emit.load(code, count, 5)
    code.emit("brz", count, Symbol("done"))
    code.emit("ldb16", x, whole, ZERO, 0)
    code.emit("add", limit, width, -2)
    code.emit("ldb16", y, repeated, limit, 0)
    code.emit("f16v2add", z, x, y)
    emit.store_half(code, z, a(5), out, ZERO)
    code.label("done")
    code.emit("exitz", ZERO)
