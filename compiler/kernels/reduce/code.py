"""Machine code of sums of partials.

Groups of eight halves go to the six workers in turn. A group stays in two register pairs while a pointer runs
down the stack, two bundles for each partial: one loads the first quad and adds the second one of the partial
before, the other the reverse. Four halves that are left over go to the worker whose turn it would be.
"""

from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ZERO, a2, m
from compiler.kernels import emit
from compiler.kernels.reduce.binding import GROUP, QUAD, SYMBOL, WORKERS
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

_X, _Y, _SUM_X, _SUM_Y = a2(0), a2(2), a2(4), a2(6)


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol; no decision changes it."""
    del decisions
    if key != SYMBOL:
        raise ValueError(f"there is no kernel {key}")
    code = emit.begin(key)
    emit.call_frame(code, 8, 8)
    emit.launch_and_return(code, Symbol("worker"), 8)
    emit.begin_workers(code)
    _worker(code)
    return code.finish()


def _worker(code: Builder) -> None:
    out, seed, stack, count, left, worker = m(0), m(1), m(2), m(3), m(4), m(5)
    more, step, at, partial, is_last, stride = m(6), m(7), m(8), m(9), m(10), m(11)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, seed, stack, more, count, left)):
        emit.load(code, register, word)
    emit.load(code, stride, 7)
    code.emit("add", more, more, -1)
    code.emit("add", step, stride, -1)
    code.emit("cmpeq", is_last, worker, left)
    emit.share_of(code, worker, count, left)
    code.emit("shl", at, worker, (2 * GROUP).bit_length() - 1)
    code.emit("brz", count, Symbol("tail"))
    code.emit("add", count, count, -1)
    code.align(8)
    code.label("group")
    code.emit("ld64", _SUM_X, seed, at, 0)
    code.emit("ld64", _SUM_Y, seed, at, 1)
    code.emit("add", partial, stack, at)
    code.emit("ld64step", _X, ZERO, partial, 1)
    code.bundle(("ld64step", _Y, ZERO, partial, step), ("f16v4add", _SUM_X, _SUM_X, _X))
    with code.repeat(more):
        code.bundle(("ld64step", _X, ZERO, partial, 1), ("f16v4add", _SUM_Y, _SUM_Y, _Y))
        code.bundle(("ld64step", _Y, ZERO, partial, step), ("f16v4add", _SUM_X, _SUM_X, _X))
    code.bundle(("st64step", _SUM_X, out, at, 1), ("f16v4add", _SUM_Y, _SUM_Y, _Y))
    code.emit("st64step", _SUM_Y, out, at, WORKERS * GROUP // QUAD - 1)
    code.emit("brnzdec", count, Symbol("group"))
    code.label("tail")
    code.emit("brz", is_last, Symbol("done"))
    emit.load(code, left, 6)
    code.emit("brz", left, Symbol("done"))
    code.emit("ld64", _SUM_X, seed, at, 0)
    code.emit("add", partial, stack, at)
    code.emit("ld64step", _X, ZERO, partial, stride)
    with code.repeat(more):
        code.bundle(("ld64step", _X, ZERO, partial, stride), ("f16v4add", _SUM_X, _SUM_X, _X))
    code.emit("f16v4add", _SUM_X, _SUM_X, _X)
    code.emit("st64", _SUM_X, out, at, 0)
    code.label("done")
    code.emit("exitz", ZERO)
