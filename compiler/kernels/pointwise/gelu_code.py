"""Machine code of GELU.

Fourteen instructions of the arithmetic unit make four results (``gelu.gelu`` is the same sequence in NumPy).
The main unit is idle beside most of them, so that loads, stores and addresses cost nothing. The loop begins
with the second instruction: the first of the next four elements runs beside the store of these.

=========  ===================================================================
register   holds
=========  ===================================================================
a0:1       h, then h + abs(h)
a2:3       elements, then abs(h), then c
a4:5       polynomial, tanh, result
a6         (1/2, 1) as halves, low first
a7         (0, limit of c), then (A, B): loaded from the frame as they are needed
=========  ===================================================================
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.registers import ARITHMETIC_ZERO, ARITHMETIC_ZEROS, VERTEX_BASE, ZERO, a, a2, m
from compiler.kernels import emit
from compiler.kernels.pointwise.common import WORKERS
from compiler.kernels.pointwise.gelu import CUBIC, HALF, LIMIT, LINEAR, ONE

_HALF: Final = a2(0)
_LIMITED: Final = a2(2)
_ELEMENTS: Final = _LIMITED
_VALUE: Final = a2(4)
_RESULT: Final = _VALUE
_FACTORS: Final = a(6)
_CHANGING: Final = a(7)

_FIRST: Final[Half] = ("f16v4mul", _HALF, _FACTORS.low, _ELEMENTS)
_REST: Final[tuple[Half, ...]] = (
    ("f16v4absadd", _LIMITED, _HALF, ARITHMETIC_ZEROS),
    ("f16v4add", _HALF, _HALF, _LIMITED),
    ("f16v4clamp", _LIMITED, _LIMITED, _CHANGING),
    ("f16v4mul", _VALUE, _LIMITED, _LIMITED),
    ("f16v4mul", _VALUE, _CHANGING.high, _VALUE),
    ("f16v4add", _VALUE, _CHANGING.low, _VALUE),
    ("f16v4mul", _VALUE, _VALUE, _LIMITED),
    ("f16v2tanh", a(4), a(4)),
    ("f16v2tanh", a(5), a(5)),
    ("f16v4sub", _VALUE, _FACTORS.high, _VALUE),
    ("f16v4max", _VALUE, _VALUE, ARITHMETIC_ZEROS),
    ("f16v4mul", _VALUE, _LIMITED, _VALUE),
    ("f16v4sub", _RESULT, _HALF, _VALUE),
)
_CLAMP: Final = 2
_LAST_LIMITED: Final = 11
"""Places in ``_REST``: where the limit is used, and where ``c`` is for the last time."""

_CONSTANTS: Final = ((HALF, ONE), (np.float16(0), LIMIT), (LINEAR, CUBIC))
"""In the frame, behind what else is in it: factors, bounds, polynomial."""


def _store_constants(code: Builder, word: int) -> None:
    """Put the constants into the frame from a word on. Nine instructions of the supervisor."""
    for index, (low, high) in enumerate(_CONSTANTS):
        code.emit("ldconst", m(0), int(low.view(np.uint16)) | int(high.view(np.uint16)) << 16)
        emit.store(code, m(0), word + index)


def _load_factors(code: Builder, word: int) -> None:
    """Constants that the first instructions need. Two instructions."""
    code.emit("ld32", _FACTORS, VERTEX_BASE, ZERO, word)
    code.emit("ld32", _CHANGING, VERTEX_BASE, ZERO, word + 1)


def _rest(code: Builder, word: int, beside: Mapping[int, Half]) -> None:
    """All instructions but the first, in bundles.

    Args:
        code: where they go.
        word: of the frame with the constants.
        beside: instructions of the main unit by place, where it does not load constants.
    """
    loads: dict[int, Half] = {
        _CLAMP: ("ld32", _CHANGING, VERTEX_BASE, ZERO, word + 2),
        _CLAMP + 4: ("ld32", _CHANGING, VERTEX_BASE, ZERO, word + 1),
    }
    for place, operation in enumerate(_REST):
        code.bundle(beside.get(place, loads.get(place, ("nop",))), operation)


def flat(code: Builder) -> None:
    """Four elements at a time; one worker also does what is left, in the place of a last four."""
    constants = 5
    emit.call_frame(code, 5, 8)
    _store_constants(code, constants)
    emit.launch_and_return(code, Symbol("worker"), 8)
    emit.begin_workers(code)
    out, elements, count, left, worker = m(0), m(1), m(2), m(3), m(4)
    load_at, store_at, is_last, tail = m(5), m(6), m(7), m(8)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, elements, count, left)):
        emit.load(code, register, word)
    code.emit("cmpeq", is_last, worker, left)
    emit.share_of(code, worker, count, left)
    code.emit("shl", load_at, worker, 3)
    code.emit("mov", store_at, load_at)
    code.emit("zero", tail)
    _load_factors(code, constants)
    code.emit("brz", count, Symbol("tail"))
    code.emit("ld64step", _ELEMENTS, elements, load_at, WORKERS)
    code.emit("add", count, count, -1)
    code.emit("f16v4mul", _HALF, _FACTORS.low, _ELEMENTS)
    load: Half = ("ld64step", _ELEMENTS, elements, load_at, WORKERS)
    with code.repeat(count):
        _rest(code, constants, {_LAST_LIMITED: load})
        code.bundle(("st64step", _RESULT, out, store_at, WORKERS), _FIRST)
    code.label("last")
    _rest(code, constants, {})
    code.emit("brnz", tail, Symbol("store_tail"))
    code.emit("st64step", _RESULT, out, store_at, WORKERS)
    code.label("tail")
    code.emit("brz", is_last, Symbol("done"))
    emit.load(code, tail, 4)
    code.emit("brz", tail, Symbol("done"))
    code.emit("zero", _ELEMENTS)
    # A pair stands in the first word, the half that is over in the second.
    pair, half, place = left, is_last, count
    code.emit("and", pair, tail, 2)
    code.emit("shl", place, pair, 1)
    code.emit("add", place, place, store_at)
    code.emit("brz", pair, Symbol("half"))
    code.emit("ld32", a(2), elements, store_at, 0)
    code.label("half")
    code.emit("and", half, tail, 1)
    code.emit("brz", half, Symbol("loaded"))
    code.emit("ldb16", a(3), elements, place, 0)
    code.emit("sort4x16lo", a(3), a(3), ARITHMETIC_ZERO)
    code.label("loaded")
    code.emit("f16v4mul", _HALF, _FACTORS.low, _ELEMENTS)
    code.emit("bri", Symbol("last"))
    code.label("store_tail")
    code.emit("brz", pair, Symbol("store_half"))
    code.emit("st32", a(4), out, store_at, 0)
    code.label("store_half")
    code.emit("brz", half, Symbol("done"))
    emit.store_half(code, a(5), a(0), out, place)
    code.label("done")
    code.emit("exitz", ZERO)
