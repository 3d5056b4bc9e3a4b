"""Machine code of ``transpose``: blocks of four rows and two columns."""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.registers import ARITHMETIC_ZEROS, ZERO, a, a2, m
from compiler.kernels import emit
from compiler.kernels.rearrange.sides import ATOM, PANEL_ROW, WORD
from compiler.kernels.rearrange.stripes_code import (
    ALONG_BYTES,
    HELD,
    MATRICES,
    PANELS_AT,
    ROWS_AT,
    STRIPE,
    STRIPE_BYTES,
    launch_stripes,
)
from compiler.kernels.rearrange.transpose import PAIR, QUAD

_MOVED, _PANELS, _SHARES, _ROW, _BLOCK_BYTES, _PANEL_BYTES = range(2, 8)
"""Arguments behind the pointers, and words of the frame that hold them."""
(
    _ALONG,
    _ALL_PAIRS,
    _FILL,
    _PAIRS,
    _ROW_WORDS,
    _ROW_BYTES,
    _MATRIX_BYTES,
    _BACK,
    _MIDDLE,
    _LANES,
    _ROW_LANES,
    _ROW_JUMP,
    _PANEL_JUMP,
    _ADVANCE,
    _MATRIX,
    _QUADS,
    _ROWS_AT,
    _PANELS_AT,
    _HELD,
) = range(8, 27)
"""Words of the frame that are made of them."""
_FRAME: Final = 27

_NONE: Final[Half] = ("fnop",)
_STEP: Final = PANEL_ROW // ATOM
"""Atoms from panel row to panel row."""


def write_transpose(code: Builder, *, is_packing: bool, is_drained: bool) -> None:
    """The kernel of a direction and an order inside of panel rows."""
    _supervisor(code, is_packing=is_packing, is_drained=is_drained)
    emit.begin_workers(code)
    _worker(code, is_packing=is_packing, is_drained=is_drained)


def _supervisor(code: Builder, *, is_packing: bool, is_drained: bool) -> None:
    emit.call_frame(code, 8, _FRAME)
    scratch, other = m(0), m(1)
    moved, panels, shares, row = (emit.argument(index) for index in (_MOVED, _PANELS, _SHARES, _ROW))
    block_bytes = emit.argument(_BLOCK_BYTES)
    if is_packing:
        code.emit("mov", scratch, PANELS_AT)
        code.emit("mov", PANELS_AT, ROWS_AT)
        code.emit("mov", ROWS_AT, scratch)
    # Lanes, and what a lane steps from block to block.
    pairs = other
    code.emit("shr", pairs, row, 16)
    emit.store(code, pairs, _PAIRS)
    code.emit("shl", scratch, shares, 10)
    code.emit("shr", scratch, scratch, 29)
    emit.store(code, scratch, _ROW_LANES)
    code.emit("shl", scratch, shares, 13)
    code.emit("shr", scratch, scratch, 29)
    emit.store(code, scratch, _LANES)
    code.emit("mul", block_bytes, block_bytes, scratch)
    code.emit("mul", scratch, scratch, pairs)
    emit.store(code, scratch, _ADVANCE)
    code.emit("sub", scratch, scratch, pairs)
    code.emit("shl", scratch, scratch, 2)
    emit.store(code, scratch, _ROW_JUMP)
    code.emit("mul", scratch, pairs, -PAIR * PANEL_ROW)
    code.emit("add", scratch, scratch, block_bytes)
    emit.store(code, scratch, _PANEL_JUMP)
    # Steps between the rows of a block, in words.
    code.emit("shl", row, row, 16)
    code.emit("shr", row, row, 16)
    emit.store(code, row, _ROW_WORDS)
    if is_drained:
        code.emit("mul", scratch, row, 7)
        emit.store(code, scratch, _MIDDLE)
    code.emit("mul", scratch, row, -9 if is_drained else -3)
    code.emit("add", scratch, scratch, 1)
    emit.store(code, scratch, _BACK)
    code.emit("shl", ALONG_BYTES, row, 2)
    emit.store(code, ALONG_BYTES, _ROW_BYTES)
    # Extents.
    code.emit("shl", scratch, moved, 16)
    code.emit("shr", scratch, scratch, 16)
    emit.store(code, scratch, _ALONG)
    code.emit("mul", scratch, scratch, ALONG_BYTES)
    emit.store(code, scratch, _MATRIX_BYTES)
    code.emit("shr", scratch, panels, 16)
    code.emit("shr", other, moved, 16)
    emit.store(code, scratch if is_packing else other, _ALL_PAIRS)
    if is_packing:
        code.emit("sub", other, scratch, other)
        emit.store(code, other, _FILL)
    code.emit("shl", MATRICES, shares, 16)
    code.emit("shr", MATRICES, MATRICES, 16)
    code.emit("shl", STRIPE, panels, 16)
    code.emit("shr", STRIPE, STRIPE, 16)
    code.emit("mul", STRIPE_BYTES, STRIPE, scratch)
    code.emit("shl", STRIPE_BYTES, STRIPE_BYTES, 2)
    if is_packing:
        code.emit("shr", scratch, STRIPE, 2)
        emit.store(code, scratch, _QUADS)

    def store() -> None:
        if is_drained:
            code.emit("add", other, HELD, 15)
            code.emit("shr", other, other, 4)
            code.emit("shl", other, other, 2)
        elif not is_packing:
            code.emit("add", other, HELD, QUAD - 1)
            code.emit("shr", other, other, 2)
        if not is_packing:
            emit.store(code, other, _QUADS)
        emit.store(code, ROWS_AT, _ROWS_AT)
        emit.store(code, PANELS_AT, _PANELS_AT)
        emit.store(code, HELD, _HELD)

    launch_stripes(code, along=_ALONG, matrix=_MATRIX, matrix_bytes=_MATRIX_BYTES, store=store)
    emit.close_frame(code, _FRAME)


_QUAD_NUMBER, _ROWS_BASE, _PANELS_BASE, _ALL_LEFT, _WORD, _COUNT_ROWS = m(0), m(1), m(2), m(3), m(4), m(5)
_ROWS_SIDE, _PANELS_SIDE, _ROW_STEP, _BACK_STEP, _COUNT, _LEFT_PAIRS = m(6), m(7), m(8), m(9), m(10), m(11)
"""Registers of a worker. A word is also the step in the middle of drained blocks."""


def _worker(code: Builder, *, is_packing: bool, is_drained: bool) -> None:
    word, pairs, left = _WORD, _COUNT, _LEFT_PAIRS
    rows_at, panels_at, quad, rows = _ROWS_SIDE, _PANELS_SIDE, _QUAD_NUMBER, _COUNT_ROWS
    code.label("worker")
    emit.worker_lanes(code, _LANES, _ROW_LANES)
    lane = m(11)
    emit.load(code, rows, _PAIRS)
    code.emit("mul", _ALL_LEFT, lane, rows)
    code.emit("shl", rows_at, _ALL_LEFT, 2)
    emit.load(code, _ROWS_BASE, _ROWS_AT)
    code.emit("add", _ROWS_BASE, _ROWS_BASE, rows_at)
    emit.load(code, rows, _BLOCK_BYTES)
    code.emit("mul", panels_at, lane, rows)
    emit.load(code, _PANELS_BASE, _PANELS_AT)
    code.emit("add", _PANELS_BASE, _PANELS_BASE, panels_at)
    emit.load(code, rows, _ALL_PAIRS)
    code.emit("sub", _ALL_LEFT, rows, _ALL_LEFT)
    emit.load(code, _ROW_STEP, _ROW_WORDS)
    emit.load(code, _BACK_STEP, _BACK)
    code.emit("cmpslt", word, ZERO, _ALL_LEFT)
    code.emit("brz", word, Symbol("done"))
    code.label("quad")
    emit.load(code, word, _QUADS)
    code.emit("cmpult", word, quad, word)
    code.emit("brz", word, Symbol("done"))
    _point(code, is_packing=is_packing, is_drained=is_drained)
    code.emit("mov", left, _ALL_LEFT)
    code.label("block")
    if is_packing:
        emit.load(code, word, _FILL)
        code.emit("sub", pairs, left, word)
        emit.load(code, word, _PAIRS)
        code.emit("min", pairs, pairs, word)
        code.emit("brz", rows, Symbol("empty"))
        code.emit("cmpslt", word, ZERO, pairs)
        code.emit("brz", word, Symbol("empty"))
    else:
        emit.load(code, word, _PAIRS)
        code.emit("min", pairs, word, left)
    code.emit("cmpeq", word, rows, QUAD)
    code.emit("brz", word, Symbol("edge"))
    code.emit("add", pairs, pairs, -1)
    if is_packing:
        _pack_quad(code)
    else:
        if is_drained:
            emit.load(code, word, _MIDDLE)
        _unpack_quad(code, is_drained=is_drained)
    code.label("behind")
    if is_packing:
        emit.load(code, word, _FILL)
        code.emit("brz", word, Symbol("step"))
        code.emit("sub", pairs, left, word)
        emit.load(code, word, _PAIRS)
        code.emit("min", pairs, pairs, word)
        code.emit("min", word, word, left)
        code.emit("sub", pairs, word, pairs)
        code.label("clear")
        code.emit("shl", pairs, pairs, 1)
        with code.repeat(pairs):
            code.bundle(("st64step", ARITHMETIC_ZEROS, ZERO, panels_at, _STEP), _NONE)
    code.label("step")
    emit.load(code, word, _ADVANCE)
    code.emit("sub", left, left, word)
    code.emit("cmpslt", word, ZERO, left)
    code.emit("brz", word, Symbol("next"))
    for pointer, jump in ((rows_at, _ROW_JUMP), (panels_at, _PANEL_JUMP)):
        emit.load(code, word, jump)
        code.emit("add", pointer, pointer, word)
    code.emit("bri", Symbol("block"))
    code.label("next")
    emit.load(code, word, _ROW_LANES)
    code.emit("add", quad, quad, word)
    code.emit("bri", Symbol("quad"))
    code.label("done")
    code.emit("exitz", ZERO)
    if is_packing:
        code.label("empty")
        emit.load(code, pairs, _PAIRS)
        code.emit("min", pairs, pairs, left)
        code.emit("bri", Symbol("clear"))
    _edges(code, is_packing=is_packing, is_drained=is_drained)


def _point(code: Builder, *, is_packing: bool, is_drained: bool) -> None:
    """The first block of a quad on both sides, and how many of its rows are moved."""
    word, quad, rows = _WORD, _QUAD_NUMBER, _COUNT_ROWS
    rows_at, panels_at = _ROWS_SIDE, _PANELS_SIDE
    if is_drained:
        first = rows_at
        code.emit("shr", first, quad, 2)
        code.emit("shl", first, first, 4)
        code.emit("and", word, quad, 3)
        code.emit("shl", word, word, 1)
        code.emit("add", first, first, word)
        emit.load(code, rows, _HELD)
        code.emit("sub", rows, rows, first)
        code.emit("add", word, rows, -8)
        for register in (rows, word):
            code.emit("max", register, register, 0)
            code.emit("min", register, register, 2)
        code.emit("add", rows, rows, word)
        code.emit("brz", rows, Symbol("next"))
        code.emit("mul", rows_at, first, _ROW_STEP)
        code.emit("shl", rows_at, rows_at, 2)
    else:
        emit.load(code, word, _HELD)
        code.emit("shl", rows, quad, 2)
        code.emit("sub", rows, word, rows)
        code.emit("min", rows, rows, QUAD)
        if is_packing:
            code.emit("max", rows, rows, 0)
        code.emit("mul", rows_at, quad, _ROW_STEP)
        code.emit("shl", rows_at, rows_at, 4)
    code.emit("add", rows_at, rows_at, _ROWS_BASE)
    code.emit("shr", panels_at, quad, 2)
    emit.load(code, word, _PANEL_BYTES)
    code.emit("mul", panels_at, panels_at, word)
    code.emit("and", word, quad, 3)
    code.emit("shl", word, word, 3)
    code.emit("add", panels_at, panels_at, word)
    code.emit("add", panels_at, panels_at, _PANELS_BASE)


_FIRST: Final = (a2(4), a2(6))
"""Packing: atoms of the first and the second column."""


def _pack_quad(code: Builder) -> None:
    """Words $a0 to $a3 of four rows, to two atoms; the loads are one block ahead."""
    rows_at, panels_at, step, back = _ROWS_SIDE, _PANELS_SIDE, _ROW_STEP, _BACK_STEP
    first, second = _FIRST
    code.emit("ld32step", a(0), ZERO, rows_at, step)
    code.emit("ld32step", a(1), ZERO, rows_at, step)
    code.emit("ld32step", a(2), ZERO, rows_at, step)
    code.emit("sort4x16lo", a(4), a(0), a(1))
    code.emit("sort4x16hi", a(6), a(0), a(1))
    code.emit("ld32step", a(3), ZERO, rows_at, back)
    with code.repeat(_COUNT):
        code.bundle(("ld32step", a(0), ZERO, rows_at, step), ("sort4x16lo", a(5), a(2), a(3)))
        code.bundle(("st64step", first, ZERO, panels_at, _STEP), ("sort4x16hi", a(7), a(2), a(3)))
        code.bundle(("ld32step", a(1), ZERO, rows_at, step), _NONE)
        code.bundle(("ld32step", a(2), ZERO, rows_at, step), ("sort4x16lo", a(4), a(0), a(1)))
        code.bundle(("st64step", second, ZERO, panels_at, _STEP), ("sort4x16hi", a(6), a(0), a(1)))
        code.bundle(("ld32step", a(3), ZERO, rows_at, back), _NONE)
    code.emit("sort4x16lo", a(5), a(2), a(3))
    code.emit("sort4x16hi", a(7), a(2), a(3))
    for pair in _FIRST:
        code.emit("st64step", pair, ZERO, panels_at, _STEP)


def _unpack_quad(code: Builder, *, is_drained: bool) -> None:
    """Atoms $a0:1 and $a2:3 of two columns, to four words, of which the last is stored a round later."""
    rows_at, panels_at, step, back = _ROWS_SIDE, _PANELS_SIDE, _ROW_STEP, _BACK_STEP
    middle = _WORD if is_drained else step
    code.emit("ld64step", a2(0), ZERO, panels_at, _STEP)
    code.emit("ld64step", a2(2), ZERO, panels_at, _STEP)
    code.emit("sort4x16lo", a(4), a(0), a(2))
    code.emit("sort4x16hi", a(5), a(0), a(2))
    code.emit("st32step", a(4), ZERO, rows_at, step)
    code.emit("sort4x16lo", a(6), a(1), a(3))
    code.emit("st32step", a(5), ZERO, rows_at, middle)
    with code.repeat(_COUNT):
        code.bundle(("st32step", a(6), ZERO, rows_at, step), ("sort4x16hi", a(7), a(1), a(3)))
        code.bundle(("ld64step", a2(0), ZERO, panels_at, _STEP), _NONE)
        code.bundle(("ld64step", a2(2), ZERO, panels_at, _STEP), _NONE)
        code.bundle(("st32step", a(7), ZERO, rows_at, back), ("sort4x16lo", a(4), a(0), a(2)))
        code.bundle(("st32step", a(4), ZERO, rows_at, step), ("sort4x16hi", a(5), a(0), a(2)))
        code.bundle(("st32step", a(5), ZERO, rows_at, middle), ("sort4x16lo", a(6), a(1), a(3)))
    code.emit("sort4x16hi", a(7), a(1), a(3))
    code.emit("st32step", a(6), ZERO, rows_at, step)
    code.emit("st32step", a(7), ZERO, rows_at, back)


def _edges(code: Builder, *, is_packing: bool, is_drained: bool) -> None:
    """Quads of one, two or three rows."""
    word, pairs = _WORD, _COUNT
    code.label("edge")
    code.emit("add", word, _COUNT_ROWS, -1)
    code.emit("brz", word, Symbol("rows1"))
    code.emit("add", word, word, -1)
    code.emit("brz", word, Symbol("rows2"))
    for rows in (3, 2, 1):
        code.label(f"rows{rows}")
        third = _ROW_STEP
        if rows == 3:
            emit.load(code, word, _ROW_BYTES)
            if is_drained:
                # The quads of a panel have ever fewer rows: the step back is not needed again.
                third = _BACK_STEP
                emit.load(code, third, _MIDDLE)
        code.emit("add", pairs, pairs, -1)
        # Delta and offset of each row.
        places = ((ZERO, 0), (ZERO, _ROW_STEP), (word, third))[:rows]
        if is_packing:
            for missing in range(rows, QUAD):
                code.emit("zero", a(missing))
            code.label(f"pairs{rows}")
            for number, (delta, offset) in enumerate(places):
                code.emit("ld32", a(number), _ROWS_SIDE, delta, offset)
            for which, pair in zip(("sort4x16lo", "sort4x16hi"), _FIRST, strict=True):
                code.emit(which, a(pair.first), a(0), a(1))
                code.emit(which, a(pair.first + 1), a(2), a(3))
                code.emit("st64step", pair, ZERO, _PANELS_SIDE, _STEP)
        else:
            code.label(f"pairs{rows}")
            for pair in (a2(0), a2(2)):
                code.emit("ld64step", pair, ZERO, _PANELS_SIDE, _STEP)
            for number, (delta, offset) in enumerate(places):
                which = "sort4x16hi" if number % 2 else "sort4x16lo"
                code.emit(which, a(4), a(number // 2), a(2 + number // 2))
                code.emit("st32", a(4), _ROWS_SIDE, delta, offset)
        code.emit("add", _ROWS_SIDE, _ROWS_SIDE, WORD)
        code.emit("brnzdec", pairs, Symbol(f"pairs{rows}"))
        code.emit("bri", Symbol("behind"))
