"""Machine code of ``halves``: gathering units into panel rows, and runs of rows out of them."""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.registers import ARITHMETIC_ZERO, ARITHMETIC_ZEROS, STACK_POINTER, ZERO, Main, a, a2, m
from compiler.kernels import emit
from compiler.kernels.rearrange.halves import ROWS_TOGETHER, WORKERS
from compiler.kernels.rearrange.sides import HALF, PANEL_ROW, RUN
from compiler.kernels.rearrange.stripes_code import (
    ALONG_BYTES,
    HELD,
    LEFT,
    MATRICES,
    PANELS_AT,
    ROWS_AT,
    STRIPE,
    STRIPE_BYTES,
    launch_stripes,
)

_MOVED, _PANELS, _SHARES, _ROW_BYTES, _MATRIX_BYTES, _PANEL_BYTES = range(2, 8)
"""Arguments behind the pointers, and words of the frame that hold them; the others are made of them."""
_ALONG, _MATRIX, _BLOCK_BYTES, _SHIFT, _ROWS_AT, _PANELS_AT, _STEP = range(8, 15)
"""Words of both directions."""
_LANES, _LINE_LANES, _SKIP, _JUMP, _ACROSS_BYTES, _ALL_LINES, _MOVED_LINES, _OF_STRIPE, _HELD = range(15, 24)
"""Words of packing."""
_LINE_BLOCK, _LINE, _RUN, _RUN_BYTES, _COLUMNS, _LINES = range(15, 21)
"""Words of unpacking; the last two are neighbours in this sequence."""
_FRAME: Final = 24

_NONE: Final[Half] = ("fnop",)
_SIXTH: Final = 43691
_SIXTH_SHIFT: Final = 18
"""x * _SIXTH >> _SIXTH_SHIFT is x // 6 for x below 98304; here it is below 6 * (4096 + 6)."""


def write_halves(code: Builder, *, is_packing: bool, lanes: str) -> None:
    """The kernel of a direction and an order inside of panel rows."""
    emit.call_frame(code, 8, _FRAME)
    if is_packing:
        _pack_supervisor(code)
    else:
        _unpack_supervisor(code, lanes)
    emit.close_frame(code, _FRAME)
    emit.begin_workers(code)
    if is_packing:
        _pack_worker(code)
    else:
        _unpack_worker(code, lanes)


def _take(code: Builder, to: Main, source: Main, low: int, bits: int) -> None:
    """A field of an argument. Two instructions."""
    code.emit("shl", to, source, 32 - low - bits)
    code.emit("shr", to, to, 32 - bits)


def _begin(code: Builder, across: Main) -> None:
    """Words of both directions. Twelve instructions.

    $m1 := whether rows are along, and ``across`` := bytes from coordinate to coordinate across. Bytes along
    are those of a row where rows are along, else two; across it is the other way round.
    """
    scratch, flag, row_bytes = m(0), m(1), ALONG_BYTES
    moved, shares = emit.argument(_MOVED), emit.argument(_SHARES)
    _take(code, scratch, moved, 0, 16)
    emit.store(code, scratch, _ALONG)
    _take(code, scratch, shares, 16, 5)
    emit.store(code, scratch, _SHIFT)
    _take(code, flag, shares, 21, 1)
    code.emit("add", scratch, row_bytes, -HALF)
    code.emit("mul", scratch, scratch, flag)
    code.emit("sub", across, row_bytes, scratch)
    code.emit("add", ALONG_BYTES, scratch, HALF)


def _begin_loops(code: Builder, of_stripe: int | None) -> None:
    """Registers of the loops, and the bytes of a block. Eleven instructions, or twelve.

    Args:
        code: behind :func:`_begin`.
        of_stripe: word for the panels of a stripe.
    """
    scratch, panels, panel_bytes = m(0), emit.argument(_PANELS), emit.argument(_PANEL_BYTES)
    _take(code, MATRICES, emit.argument(_SHARES), 0, 16)
    _take(code, STRIPE, panels, 0, 16)
    code.emit("shr", scratch, panels, 16)
    code.emit("mul", STRIPE_BYTES, STRIPE, scratch)
    code.emit("shl", STRIPE_BYTES, STRIPE_BYTES, 1)
    code.emit("shr", scratch, STRIPE, 4)
    if of_stripe is not None:
        emit.store(code, scratch, of_stripe)
    code.emit("mul", LEFT, scratch, panel_bytes)
    emit.store(code, LEFT, _BLOCK_BYTES)


def _pack_supervisor(code: Builder) -> None:
    scratch, across, panel_bytes = m(0), emit.argument(_MATRIX_BYTES), emit.argument(_PANEL_BYTES)
    moved, panels, shares = (emit.argument(index) for index in (_MOVED, _PANELS, _SHARES))
    _begin(code, across)
    emit.store(code, across, _ACROSS_BYTES)
    code.emit("shr", scratch, ALONG_BYTES, 1)
    emit.store(code, scratch, _STEP)
    _take(code, scratch, shares, 25, 3)
    emit.store(code, scratch, _LINE_LANES)
    # From a lane's panel row to its next: units of the row-major side, atoms of the panels.
    lanes, skip = scratch, across
    _take(code, lanes, shares, 22, 3)
    emit.store(code, lanes, _LANES)
    code.emit("shl", skip, lanes, 4)
    code.emit("add", skip, skip, 1 - RUN)
    code.emit("mul", skip, skip, ALONG_BYTES)
    code.emit("shr", skip, skip, 1)
    emit.store(code, skip, _SKIP)
    code.emit("mul", scratch, lanes, panel_bytes)
    code.emit("shr", scratch, scratch, 3)
    code.emit("add", scratch, scratch, -3)
    emit.store(code, scratch, _JUMP)
    code.emit("shr", scratch, moved, 16)
    emit.store(code, scratch, _MOVED_LINES)
    code.emit("shr", scratch, panels, 16)
    emit.store(code, scratch, _ALL_LINES)
    _begin_loops(code, _OF_STRIPE)
    code.emit("mov", scratch, PANELS_AT)
    code.emit("mov", PANELS_AT, ROWS_AT)
    code.emit("mov", ROWS_AT, scratch)

    def store() -> None:
        emit.store(code, ROWS_AT, _ROWS_AT)
        emit.store(code, PANELS_AT, _PANELS_AT)
        emit.store(code, HELD, _HELD)

    launch_stripes(code, along=_ALONG, matrix=_MATRIX, matrix_bytes=_MATRIX_BYTES, store=store)


def _pack_worker(code: Builder) -> None:
    line, source, out, left, scratch, step = m(0), m(1), m(2), m(3), m(4), m(5)
    skip, jump, count, units, word, lane = m(6), m(7), m(8), m(9), m(10), m(11)
    code.label("worker")
    emit.worker_lanes(code, _LANES, _LINE_LANES)
    emit.load(code, step, _STEP)
    emit.load(code, skip, _SKIP)
    emit.load(code, jump, _JUMP)
    code.label("line")
    emit.load(code, word, _ALL_LINES)
    code.emit("cmpult", word, line, word)
    code.emit("brz", word, Symbol("done"))
    # The lane's first panel row on both sides.
    emit.load(code, word, _SHIFT)
    code.emit("shr", out, line, word)
    code.emit("shl", scratch, out, word)
    code.emit("sub", scratch, line, scratch)
    emit.load(code, word, _BLOCK_BYTES)
    code.emit("mul", out, out, word)
    code.emit("shl", scratch, scratch, 5)
    code.emit("add", out, out, scratch)
    emit.load(code, word, _PANELS_AT)
    code.emit("add", out, out, word)
    emit.load(code, word, _PANEL_BYTES)
    code.emit("mul", word, word, lane)
    code.emit("add", out, out, word)
    emit.load(code, word, _ACROSS_BYTES)
    code.emit("mul", source, line, word)
    emit.load(code, word, _ROWS_AT)
    code.emit("add", source, source, word)
    code.emit("mul", word, lane, step)
    code.emit("shl", word, word, 5)
    code.emit("add", source, source, word)
    # How much the row-major side has for it: nothing where the line is padding.
    emit.load(code, units, _HELD)
    emit.load(code, word, _MOVED_LINES)
    code.emit("cmpult", word, line, word)
    code.emit("mul", units, units, word)
    code.emit("shr", left, units, 4)
    # This lane's share of the whole panel rows.
    emit.load(code, word, _LANES)
    code.emit("sub", count, left, lane)
    code.emit("add", count, count, word)
    code.emit("add", count, count, -1)
    emit.load(code, word, _LINE_LANES)
    code.emit("mul", count, count, word)
    code.emit("setzi", word, _SIXTH)
    code.emit("mul", count, count, word)
    code.emit("shr", count, count, _SIXTH_SHIFT)
    with code.repeat(count):
        _gather(code, source, out, step, skip, jump)
    # The lane whose turn it would be does what is no whole panel row.
    emit.load(code, word, _LANES)
    code.emit("mul", word, word, count)
    code.emit("add", word, word, lane)
    code.emit("cmpeq", word, word, left)
    code.emit("brz", word, Symbol("next"))
    code.emit("and", units, units, RUN - 1)
    emit.load(code, word, _OF_STRIPE)
    code.emit("sub", left, word, left)
    code.emit("brz", left, Symbol("next"))
    emit.load(code, scratch, _PANEL_BYTES)
    code.emit("brz", units, Symbol("clear"))
    code.emit("sub", word, RUN, units)
    code.emit("shr", word, word, 1)
    code.emit("shr", count, units, 1)
    code.emit("and", units, units, 1)
    with code.repeat(count):
        code.bundle(("ldb16step", a(0), ZERO, source, step), _NONE)
        code.bundle(("ldb16step", a(1), ZERO, source, step), _NONE)
        code.bundle(("nop",), ("sort4x16lo", a(2), a(0), a(1)))
        code.bundle(("st32step", a(2), ZERO, out, 1), _NONE)
    code.emit("brz", units, Symbol("fill"))
    code.emit("ldb16", a(0), source, ZERO, 0)
    code.emit("sort4x16lo", a(0), a(0), ARITHMETIC_ZERO)
    code.emit("st32step", a(0), ZERO, out, 1)
    code.label("fill")
    with code.repeat(word):
        code.bundle(("st32step", ARITHMETIC_ZERO, ZERO, out, 1), _NONE)
    code.emit("add", out, out, scratch)
    code.emit("add", out, out, -PANEL_ROW)
    code.emit("add", left, left, -1)
    code.label("clear")
    code.emit("shr", scratch, scratch, 3)
    code.emit("add", scratch, scratch, -3)
    with code.repeat(left):
        for _ in range(3):
            code.bundle(("st64step", ARITHMETIC_ZEROS, ZERO, out, 1), _NONE)
        code.bundle(("st64step", ARITHMETIC_ZEROS, ZERO, out, scratch), _NONE)
    code.label("next")
    emit.load(code, word, _LINE_LANES)
    code.emit("add", line, line, word)
    code.emit("bri", Symbol("line"))
    code.label("done")
    code.emit("exitz", ZERO)


def _gather(code: Builder, source: Main, out: Main, step: Main, skip: Main, jump: Main) -> None:
    """A panel row of sixteen units at one stride: sixteen loads, four stores, and eight sorts beside them.

    Units are loaded in twos, into $a6 and $a7, and sorted while the next two are. Atoms are made in $a0:1 and
    $a2:3 in turn.
    """

    def sort(word: int) -> Half:
        return ("sort4x16lo", a(word % 4), a(6), a(7))

    words = RUN // 2
    for word in range(words):
        code.bundle(("ldb16step", a(6), ZERO, source, step), sort(word - 1) if word else _NONE)
        code.bundle(("ldb16step", a(7), ZERO, source, step if word < words - 1 else skip), _NONE)
        if word in (2, 4):
            code.bundle(("st64step", a2(word - 2), ZERO, out, 1), _NONE)
    code.bundle(("st64step", a2(0), ZERO, out, 1), sort(words - 1))
    code.bundle(("st64step", a2(2), ZERO, out, jump), _NONE)


def _unpack_supervisor(code: Builder, lanes: str) -> None:
    scratch, flag, panel_bytes = m(0), m(1), emit.argument(_PANEL_BYTES)
    _begin(code, emit.argument(_MATRIX_BYTES))
    # Either the lines or the columns are those of the stripe: the launch overwrites one of them.
    code.emit("shr", scratch, emit.argument(_MOVED), 16)
    emit.store(code, scratch, _COLUMNS)
    emit.store(code, scratch, _LINES)
    _begin_loops(code, None)
    block_bytes = LEFT
    code.emit("brz", flag, Symbol("columns"))
    values = (
        (_SHIFT, 4),
        (_LINE_BLOCK, panel_bytes),
        (_LINE, HALF),
        (_RUN_BYTES, block_bytes),
        (_STEP, RUN),
    )
    _store_all(code, values)
    code.emit("shr", scratch, panel_bytes, 5)
    emit.store(code, scratch, _RUN)
    code.emit("bri", Symbol("both"))
    code.label("columns")
    _store_all(
        code,
        (
            (_LINE_BLOCK, block_bytes),
            (_LINE, PANEL_ROW),
            (_RUN_BYTES, panel_bytes),
            (_STEP, 1),
            (_RUN, RUN // 2 if lanes == "drained_columns" else RUN),
        ),
    )
    code.label("both")
    code.emit("shl", flag, flag, 2)

    def store() -> None:
        emit.store(code, ROWS_AT, _ROWS_AT)
        emit.store(code, PANELS_AT, _PANELS_AT)
        code.emit("st32", HELD, STACK_POINTER, flag, _COLUMNS)

    launch_stripes(code, along=_ALONG, matrix=_MATRIX, matrix_bytes=_MATRIX_BYTES, store=store)


def _store_all(code: Builder, values: tuple[tuple[int, Main | int], ...]) -> None:
    """Put registers and numbers into words of the frame."""
    for word, value in values:
        if isinstance(value, int):
            code.emit("setzi", m(0), value)
            emit.store(code, m(0), word)
        else:
            emit.store(code, value, word)


_SHORT: Final = 1
_LONG: Final = 3
"""Steps from unit to unit of a drained panel row, in turn, in units."""
_SECOND_RUN: Final = 4
"""Bytes from the first of its two runs to the second."""


def _unpack_worker(code: Builder, lanes: str) -> None:
    row, offset, run_at, out, source, left = m(0), m(1), m(2), m(3), m(4), m(5)
    units, count, word, step, run_bytes = m(6), m(7), m(8), m(9), m(10)
    is_alternating = lanes == "drained_columns"
    other_step = m(11) if is_alternating else step
    code.label("worker")
    emit.worker_number(code, row)
    # Rows are numbered so that each two of one worker begin and end at words.
    emit.load(code, offset, _ROWS_AT)
    code.emit("and", offset, offset, HALF)
    code.emit("shr", offset, offset, 1)
    code.emit("shl", row, row, 1)
    code.emit("sub", row, row, offset)
    code.emit("max", row, row, 0)
    emit.load(code, step, _STEP)
    emit.load(code, run_bytes, _RUN_BYTES)
    code.label("row")
    emit.load(code, word, _LINES)
    code.emit("cmpult", word, row, word)
    code.emit("brz", word, Symbol("done"))
    emit.load(code, word, _SHIFT)
    code.emit("shr", run_at, row, word)
    code.emit("shl", source, run_at, word)
    code.emit("sub", source, row, source)
    if lanes == "drained_rows":
        _drained_place(code, source, word, units)
    emit.load(code, word, _LINE_BLOCK)
    code.emit("mul", run_at, run_at, word)
    emit.load(code, word, _LINE)
    code.emit("mul", source, source, word)
    code.emit("add", run_at, run_at, source)
    emit.load(code, word, _PANELS_AT)
    code.emit("add", run_at, run_at, word)
    emit.load(code, word, _ROW_BYTES)
    code.emit("mul", out, row, word)
    emit.load(code, word, _ROWS_AT)
    code.emit("add", out, out, word)
    emit.load(code, left, _COLUMNS)
    if is_alternating:
        code.emit("setzi", run_bytes, _SECOND_RUN)
    code.label("run")
    emit.load(code, units, _RUN)
    code.emit("min", units, units, left)
    code.emit("sub", left, left, units)
    code.emit("mov", source, run_at)
    if is_alternating:
        code.emit("setzi", step, _SHORT)
        code.emit("setzi", other_step, _LONG)
    code.emit("and", word, out, HALF)
    code.emit("brz", word, Symbol("words"))
    # The upper half of a word; the lower one stays.
    code.emit("add", out, out, -HALF)
    code.emit("ldb16", a(0), out, ZERO, 0)
    code.emit("ldb16step", a(1), ZERO, source, step)
    code.emit("sort4x16lo", a(0), a(0), a(1))
    code.emit("st32step", a(0), ZERO, out, 1)
    code.emit("add", units, units, -1)
    if is_alternating:
        code.emit("setzi", step, _LONG)
        code.emit("setzi", other_step, _SHORT)
    code.label("words")
    code.emit("shr", count, units, 1)
    code.emit("brz", count, Symbol("last"))
    code.emit("ldb16step", a(0), ZERO, source, step)
    code.emit("ldb16step", a(1), ZERO, source, other_step)
    code.emit("add", count, count, -1)
    with code.repeat(count):
        code.bundle(("ldb16step", a(0), ZERO, source, step), ("sort4x16lo", a(2), a(0), a(1)))
        code.bundle(("ldb16step", a(1), ZERO, source, other_step), _NONE)
        code.bundle(("st32step", a(2), ZERO, out, 1), _NONE)
    code.emit("sort4x16lo", a(2), a(0), a(1))
    code.emit("st32step", a(2), ZERO, out, 1)
    code.label("last")
    code.emit("and", word, units, 1)
    code.emit("brz", word, Symbol("next"))
    # The lower half of a word; the upper one stays.
    code.emit("ldb16", a(0), source, ZERO, 0)
    code.emit("ldb16", a(1), out, ZERO, 1)
    code.emit("sort4x16lo", a(0), a(0), a(1))
    code.emit("st32", a(0), out, ZERO, 0)
    code.emit("add", out, out, HALF)
    code.label("next")
    code.emit("add", run_at, run_at, run_bytes)
    if is_alternating:
        emit.load(code, word, _PANEL_BYTES)
        code.emit("sub", run_bytes, word, run_bytes)
    code.emit("brnz", left, Symbol("run"))
    # To the second row of two, or to the first of the next two of this worker.
    code.emit("add", word, row, offset)
    code.emit("and", word, word, 1)
    code.emit("mul", word, word, ROWS_TOGETHER * (WORKERS - 1))
    code.emit("add", row, row, word)
    code.emit("add", row, row, 1)
    code.emit("bri", Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)


def _drained_place(code: Builder, place: Main, scratch: Main, other: Main) -> None:
    """Place of a row in its panel, from its number there: pairs are stored as 0, 4, 1, 5, 2, 6, 3, 7."""
    code.emit("and", scratch, place, 1)
    code.emit("shr", place, place, 1)
    code.emit("shr", other, place, 2)
    code.emit("and", place, place, 3)
    code.emit("shl", place, place, 1)
    code.emit("add", place, place, other)
    code.emit("shl", place, place, 1)
    code.emit("add", place, place, scratch)
