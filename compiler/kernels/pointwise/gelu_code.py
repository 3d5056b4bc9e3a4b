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
from compiler.isa.registers import ARITHMETIC_ZERO, ARITHMETIC_ZEROS, VERTEX_BASE, ZERO, a, a2, a4, m
from compiler.kernels import emit, emit_eight_bit
from compiler.kernels.pointwise.common import WORKERS
from compiler.kernels.pointwise.gelu import CUBIC, HALF, LIMIT, LINEAR, ONE
from compiler.target.isa_decisions import Decisions

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
_NOTHING: Final[Half] = ("nop",)
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
        code.bundle(beside.get(place, loads.get(place, _NOTHING)), operation)


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


def narrow(code: Builder) -> None:
    """Four elements at a time with a bias of any width, whose four places are found one by one.

    What is left at the end runs through the same loop, the place of a last four.
    """
    constants = 8
    emit.call_frame(code, 8, 11)
    _store_constants(code, constants)
    emit.launch_and_return(code, Symbol("worker"), 11)
    emit.begin_workers(code)
    out, elements, bias, count, has_rest, tail = m(0), m(1), m(2), m(3), m(4), m(5)
    place, width, advance, is_inside, second, third = m(6), m(7), m(8), m(9), m(10), m(11)
    code.label("worker")
    emit.worker_number(code, tail)
    for word, register in enumerate((out, elements, bias, count, has_rest)):
        emit.load(code, register, word)
    emit.load(code, width, 6)
    emit.load(code, advance, 7)
    code.emit("cmpeq", second, tail, has_rest)
    emit.share_of(code, tail, count, has_rest)
    code.emit("mov", has_rest, second)
    code.emit("shl", place, tail, 3)
    code.emit("add", out, out, place)
    code.emit("add", elements, elements, place)
    code.emit("zero", tail)
    _load_factors(code, constants)
    code.label("reduce")
    code.emit("cmpult", is_inside, place, width)
    code.emit("brnz", is_inside, Symbol("reduced"))
    code.emit("sub", place, place, width)
    code.emit("bri", Symbol("reduce"))
    code.label("reduced")
    code.emit("mov", second, place)
    code.emit("brz", count, Symbol("tail"))
    wrap: list[Half] = [
        # The conditional move moves when the condition is not zero.
        ("cmpult", is_inside, second, width),
        ("sub", place, second, width),
        ("movz", place, is_inside, second),
        ("add", second, place, 2),
        ("cmpult", is_inside, second, width),
        ("mul", second, second, is_inside),
        ("add", third, second, 2),
        ("cmpult", is_inside, third, width),
        ("mul", third, third, is_inside),
    ]
    fourth: list[Half] = [
        ("add", third, third, 2),
        ("cmpult", is_inside, third, width),
        ("mul", third, third, is_inside),
    ]
    low: Half = ("sort4x16lo", a(2), a(2), a(3))
    high: Half = ("sort4x16lo", a(3), a(3), a(0))
    add_bias: Half = ("f16v4add", _ELEMENTS, _HALF, _ELEMENTS)
    code.label("begin")
    for operation in wrap:
        _single(code, operation)
    code.emit("ldb16", a(2), bias, place, 0)
    code.emit("ldb16", a(3), bias, second, 0)
    _single(code, low)
    code.emit("ldb16", a(3), bias, third, 0)
    for operation in fourth:
        _single(code, operation)
    code.emit("ldb16", a(0), bias, third, 0)
    _single(code, high)
    code.emit("brnz", tail, Symbol("load_tail"))
    code.emit("ld64step", _HALF, ZERO, elements, WORKERS)
    code.emit("add", count, count, -1)
    code.label("start")
    _single(code, add_bias)
    _single(code, _FIRST)
    code.emit("add", second, place, advance)
    free = [at for at in range(_LAST_LIMITED) if at not in (_CLAMP, _CLAMP + 4)]
    beside = dict(zip(free, wrap, strict=True))
    beside[_LAST_LIMITED] = ("ldb16", a(2), bias, place, 0)
    beside[_LAST_LIMITED + 1] = ("ldb16", a(3), bias, second, 0)
    with code.repeat(count):
        _rest(code, constants, beside)
        code.bundle(("ldb16", a(3), bias, third, 0), low)
        for operation in fourth:
            code.bundle(operation, ("fnop",))
        code.bundle(("ldb16", a(0), bias, third, 0), ("fnop",))
        code.bundle(("ld64step", _HALF, ZERO, elements, WORKERS), high)
        code.bundle(("st64step", _RESULT, ZERO, out, WORKERS), add_bias)
        code.bundle(("add", second, place, advance), _FIRST)
    _rest(code, constants, {})
    code.emit("brnz", tail, Symbol("store_tail"))
    code.emit("st64step", _RESULT, ZERO, out, WORKERS)
    code.label("tail")
    code.emit("brz", has_rest, Symbol("done"))
    emit.load(code, tail, 5)
    code.emit("zero", count)
    code.emit("brnz", tail, Symbol("begin"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("load_tail")
    code.emit("zero", _HALF)
    code.emit("and", second, tail, 2)
    code.emit("brz", second, Symbol("load_one"))
    code.emit("ld32", a(0), ZERO, elements, 0)
    code.emit("and", second, tail, 1)
    code.emit("brz", second, Symbol("start"))
    code.emit("ldb16", a(1), ZERO, elements, 2)
    code.emit("sort4x16lo", a(1), a(1), ARITHMETIC_ZERO)
    code.emit("bri", Symbol("start"))
    code.label("load_one")
    code.emit("ldb16", a(0), ZERO, elements, 0)
    code.emit("sort4x16lo", a(0), a(0), ARITHMETIC_ZERO)
    code.emit("bri", Symbol("start"))
    code.label("store_tail")
    code.emit("and", second, tail, 2)
    code.emit("brz", second, Symbol("store_one"))
    code.emit("st32step", a(4), ZERO, out, 1)
    code.emit("and", second, tail, 1)
    code.emit("brz", second, Symbol("done"))
    code.emit("mov", a(4), a(5))
    code.label("store_one")
    emit.store_half(code, a(4), a(0), out, ZERO)
    code.emit("exitz", ZERO)


def _single(code: Builder, operation: Half) -> None:
    """An instruction that issues alone."""
    mnemonic, *arguments = operation
    code.emit(str(mnemonic), *(argument for argument in arguments if not isinstance(argument, str)))


(
    _OUT,
    _IN,
    _BIAS,
    _OWN_ROWS,
    _ROWS_LEFT,
    _OWN_COLUMNS,
    _COLUMNS_LEFT,
    _COLUMN_LANES,
    _ROW_LANES,
    _IN_SKIP,
    _OUT_SKIP,
    _IN_ROW,
    _OUT_ROW,
    _IN_ADVANCE,
    _OUT_ADVANCE,
    _CONVERSION,
    _SURPLUS,
    _SURPLUS_AT,
    _FRAME_CONSTANTS,
) = range(19)
"""Words of the frame of :func:`rows`."""
_ROWS_FRAME: Final = 22

_PANEL_ROW: Final = 32
"""Bytes of a row in one panel."""


def rows(code: Builder, decisions: Decisions, *, has_bias: bool, is_f8: bool) -> None:
    """Rows of whole quads, in panels or not, workers sharing columns and rows by lanes.

    A quad ``u`` bytes into a row stands ``u + u // 32 * skip`` bytes behind the row's first one, where the
    skip is from the end of a panel's row to the same row of the next panel; it is 0 without panels. F143
    halves ``u``.
    """
    _rows_supervisor(code, has_bias=has_bias, is_f8=is_f8)
    emit.begin_workers(code)
    source, out, bias, in_skip, step, out_skip = m(0), m(1), m(2), m(3), m(4), m(5)
    row, u, columns, at, out_at, first = m(6), m(7), m(8), m(9), m(10), m(11)
    code.label("worker")
    emit.worker_lanes(code, _COLUMN_LANES, _ROW_LANES)
    # Rows of the lane, minus one; the same for columns.
    for count, left, lane, mine, rest in (
        (row, columns, m(0), _OWN_ROWS, _ROWS_LEFT),
        (columns, at, first, _OWN_COLUMNS, _COLUMNS_LEFT),
    ):
        emit.load(code, count, mine)
        emit.load(code, left, rest)
        emit.share_of(code, lane, count, left)
        code.emit("add", count, count, -1)
        code.emit("brneg", count, Symbol("done"))
    emit.load(code, u, _IN_ROW)
    code.emit("mul", u, m(0), u)
    emit.load(code, at, _OUT_ROW)
    code.emit("mul", at, m(0), at)
    emit.load(code, source, _IN)
    code.emit("add", source, source, u)
    emit.load(code, out, _OUT)
    code.emit("add", out, out, at)
    if has_bias:
        emit.load(code, bias, _BIAS)
    emit.load(code, in_skip, _IN_SKIP)
    emit.load(code, out_skip, _OUT_SKIP)
    code.emit("shl", step, step, 3)
    code.emit("shl", first, first, 3)
    if is_f8:
        emit_eight_bit.ready(code, decisions, _CONVERSION, a(0))
    _load_factors(code, _FRAME_CONSTANTS)
    panel_bits = 6 if is_f8 else 5
    place_out: dict[int, Half] = {
        0: ("shr", out_at, u, panel_bits),
        1: ("mul", out_at, out_at, out_skip),
        3: ("shr", at, u, 1) if is_f8 else ("add", out_at, out_at, u),
    }
    if is_f8:
        place_out[4] = ("add", out_at, out_at, at)
    load_next: dict[int, Half] = {
        5: ("add", u, u, step),
        7: ("shr", at, u, 5),
        8: ("mul", at, at, in_skip),
        9: ("add", at, at, u),
        _LAST_LIMITED: ("ld64", _ELEMENTS, source, at, 0),
    }
    if has_bias:
        load_next[_LAST_LIMITED + 1] = ("ld64", _HALF, bias, u, 0)
    add_bias: Half = ("f16v4add", _ELEMENTS, _ELEMENTS, _HALF)
    convert: Half = ("f16v8tof8", _RESULT, a4(4))
    put: Half = ("st32", a(4), out, out_at, 0) if is_f8 else ("st64", _RESULT, out, out_at, 0)
    code.label("row")
    code.emit("mov", u, first)
    code.emit("shr", at, u, 5)
    code.emit("mul", at, at, in_skip)
    code.emit("add", at, at, u)
    code.emit("ld64", _ELEMENTS, source, at, 0)
    if has_bias:
        code.emit("ld64", _HALF, bias, u, 0)
        code.emit("f16v4add", _ELEMENTS, _ELEMENTS, _HALF)
    code.emit("f16v4mul", _HALF, _FACTORS.low, _ELEMENTS)
    with code.repeat(columns):
        _rest(code, _FRAME_CONSTANTS, place_out | load_next)
        if is_f8:
            code.bundle(_NOTHING, convert)
        if has_bias:
            code.bundle(put, add_bias)
        code.bundle(_NOTHING if has_bias else put, _FIRST)
    _rest(code, _FRAME_CONSTANTS, place_out)
    if is_f8:
        code.bundle(_NOTHING, convert)
        code.emit("st32", a(4), out, out_at, 0)
    else:
        code.emit("st64", _RESULT, out, out_at, 0)
    # The first lane of columns clears what is over in the row.
    code.emit("brnz", first, Symbol("next"))
    emit.load(code, at, _SURPLUS)
    emit.load(code, out_at, _SURPLUS_AT)
    code.emit("add", out_at, out_at, out)
    with code.repeat(at):
        code.bundle(
            ("st32step", ARITHMETIC_ZERO, ZERO, out_at, 1)
            if is_f8
            else ("st64step", ARITHMETIC_ZEROS, ZERO, out_at, 1),
            ("fnop",),
        )
    code.label("next")
    emit.load(code, at, _IN_ADVANCE)
    code.emit("add", source, source, at)
    emit.load(code, at, _OUT_ADVANCE)
    code.emit("add", out, out, at)
    code.emit("brnzdec", row, Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)


def _rows_supervisor(code: Builder, *, has_bias: bool, is_f8: bool) -> None:
    pointers = 2 + has_bias
    row_count, quads, shape, per_lane = (emit.argument(pointers + index) for index in range(4))
    one, other = m(0), m(1)
    emit.call_frame(code, pointers, _ROWS_FRAME)
    if is_f8:
        emit.store(code, emit.argument(pointers + 4), _CONVERSION)
    # Pointers are stored: their registers are free.
    row_lanes, skip, scratch = m(2), m(3), per_lane
    code.emit("and", one, shape, 0xFF)
    emit.store(code, one, _COLUMN_LANES)
    code.emit("shr", other, per_lane, 16)
    emit.store(code, other, _OWN_COLUMNS)
    code.emit("mul", one, one, other)
    code.emit("sub", one, quads, one)
    emit.store(code, one, _COLUMNS_LEFT)
    code.emit("shr", row_lanes, shape, 8)
    code.emit("and", row_lanes, row_lanes, 0xFF)
    emit.store(code, row_lanes, _ROW_LANES)
    code.emit("shl", other, per_lane, 16)
    code.emit("shr", other, other, 16)
    emit.store(code, other, _OWN_ROWS)
    code.emit("mul", other, other, row_lanes)
    code.emit("sub", other, row_count, other)
    emit.store(code, other, _ROWS_LEFT)
    _store_constants(code, _FRAME_CONSTANTS)
    # Bytes from the end of a row in one panel to the same row in the next.
    code.emit("add", row_count, row_count, -1)
    code.emit("mul", row_count, row_count, _PANEL_ROW)

    def side(flag_bit: int, words: tuple[int, int, int]) -> None:
        """Store skip, row and advance of a side whose rows have ``one`` bytes; leaves the skip."""
        code.emit("shr", other, shape, flag_bit)
        code.emit("and", other, other, 1)
        code.emit("mul", skip, row_count, other)
        emit.store(code, skip, words[0])
        code.emit("sub", scratch, _PANEL_ROW, one)
        code.emit("mul", scratch, scratch, other)
        code.emit("add", one, one, scratch)
        emit.store(code, one, words[1])
        code.emit("mul", one, one, row_lanes)
        emit.store(code, one, words[2])

    code.emit("shl", one, quads, 3)
    side(16, (_IN_SKIP, _IN_ROW, _IN_ADVANCE))
    quad_shift, panel_shift = (2, 3) if is_f8 else (3, 2)
    code.emit("shr", other, shape, 18)
    emit.store(code, other, _SURPLUS)
    code.emit("add", one, quads, other)
    code.emit("shl", one, one, quad_shift)
    side(17, (_OUT_SKIP, _OUT_ROW, _OUT_ADVANCE))
    code.emit("shr", one, quads, panel_shift)
    code.emit("mul", one, one, skip)
    code.emit("shl", other, quads, quad_shift)
    code.emit("add", one, one, other)
    emit.store(code, one, _SURPLUS_AT)
    emit.launch_and_return(code, Symbol("worker"), _ROWS_FRAME)
