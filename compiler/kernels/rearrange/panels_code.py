"""Machine code of ``panels``: loads and stores of units, eight bundles for a panel row of 64-bit ones."""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.registers import ARITHMETIC_ZERO, ARITHMETIC_ZEROS, ZERO, Main, a, a2, m
from compiler.kernels import emit
from compiler.kernels.rearrange.sides import ATOM, MOST, PANEL_ROW

_OUT, _IN, _BOTH_ROWS, _SHAPE, _IN_STRIDES, _IN_BLOCK, _OUT_STRIDES, _OUT_BLOCK = range(8)
"""Arguments, and the words of the frame that hold them; the other words are made of them."""
_ROWS, _MOVED_ROWS, _PANELS, _REST, _FILL, _LANES, _ROW_LANES, _LEFT = range(8, 16)
_IN_ROW, _IN_STEP, _OUT_ROW, _OUT_STEP, _NARROW, _NARROW_FILL = range(16, 22)
_FRAME: Final = 22

_HALF_WORD: Final = 16
_NONE: Final[Half] = ("fnop",)


def write_panels(code: Builder, units: tuple[int, int], *, is_drained: bool) -> None:
    """The kernel that loads and stores units of 8 or 4 bytes; drained panel rows in units of 8."""
    _supervisor(code, units)
    emit.begin_workers(code)
    _worker(code, units, is_drained=is_drained)


def _supervisor(code: Builder, units: tuple[int, int]) -> None:
    """Take the arguments apart."""
    emit.call_frame(code, 8, _FRAME)
    field = m(0)

    def take(argument: int, low: int, bits: int, word: int, *, unit: int = 1) -> None:
        code.emit("shl", field, emit.argument(argument), 32 - low - bits)
        code.emit("shr", field, field, 32 - bits)
        if unit > 1:
            code.emit("shl", field, field, unit.bit_length() - 1)
        emit.store(code, field, word)

    take(_BOTH_ROWS, 0, _HALF_WORD, _ROWS)
    take(_BOTH_ROWS, _HALF_WORD, _HALF_WORD, _MOVED_ROWS)
    for word, low, bits in (
        (_PANELS, 0, 13),
        (_REST, 13, 3),
        (_FILL, 16, 7),
        (_LANES, 23, 3),
        (_ROW_LANES, 26, 3),
        (_LEFT, 29, 3),
    ):
        take(_SHAPE, low, bits, word)
    words = ((_IN_STRIDES, _IN_ROW, _IN_STEP), (_OUT_STRIDES, _OUT_ROW, _OUT_STEP))
    for unit, (argument, row, step) in zip(units, words, strict=True):
        take(argument, 0, _HALF_WORD, row, unit=unit)
        take(argument, _HALF_WORD, _HALF_WORD, step)
    take(_IN_BLOCK, 20, 4, _NARROW)
    take(_IN_BLOCK, 24, 8, _NARROW_FILL)
    take(_IN_BLOCK, 0, 20, _IN_BLOCK)
    emit.launch_and_return(code, Symbol("worker"), _FRAME)


def _worker(code: Builder, units: tuple[int, int], *, is_drained: bool) -> None:
    source, out, row, source_base, scratch, narrow_fill = m(0), m(1), m(2), m(3), m(4), m(5)
    in_stride, out_stride, panels, has_rest, word, out_base = m(6), m(7), m(8), m(9), m(10), m(11)
    lanes, lane = scratch, out_base
    unit = min(units)
    single = a2(0) if unit == ATOM else a(0)
    zero = ARITHMETIC_ZEROS if unit == ATOM else ARITHMETIC_ZERO
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
    for side_unit, stride, base, step, pointer in (
        (units[0], in_stride, source_base, _IN_STEP, _IN),
        (units[1], out_stride, out_base, _OUT_STEP, _OUT),
    ):
        emit.load(code, word, step)
        code.emit("mul", stride, word, lanes)
        code.emit("mul", word, word, lane)
        code.emit("shl", word, word, side_unit.bit_length() - 1)
        emit.load(code, base, pointer)
        code.emit("add", base, base, word)

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
        if is_drained:
            _drained_panel(code, source, out, in_stride, out_stride)
        else:
            _panel_row(code, "ld", units[0], source, in_stride)
            _panel_row(code, "st", units[1], out, out_stride)
    code.label("rest")
    code.emit("brz", has_rest, Symbol("next"))
    emit.load(code, word, _REST)
    if is_drained:
        _drained_rest(code, source, out, word)
    else:
        with code.repeat(word):
            code.bundle((f"ld{8 * unit}step", single, ZERO, source, 1), _NONE)
            code.bundle((f"st{8 * unit}step", single, ZERO, out, 1), _NONE)
    code.label("behind")
    emit.load(code, word, _FILL)
    code.label("fill")
    with code.repeat(word):
        code.bundle((f"st{8 * unit}step", zero, ZERO, out, 1), _NONE)
    code.label("next")
    emit.load(code, word, _ROW_LANES)
    code.emit("add", row, row, word)
    code.emit("bri", Symbol("row"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("clear")
    emit.load(code, word, _NARROW)
    emit.load(code, scratch, _NARROW_FILL)
    code.emit("or", scratch, scratch, word)
    code.emit("brnz", scratch, Symbol("narrow"))
    with code.repeat(panels):
        _panel_row(code, "st", units[1], out, out_stride, is_zero=True)
    code.emit("brz", has_rest, Symbol("next"))
    emit.load(code, word, _FILL)
    emit.load(code, scratch, _REST)
    code.emit("add", word, word, scratch)
    code.emit("bri", Symbol("fill"))
    # A last panel of fewer units in each row. No row follows, so that most registers are free.
    code.label("narrow")
    narrow, fill = row, narrow_fill
    point(source, source_base, _IN_BLOCK, _IN_ROW)
    emit.load(code, narrow, _NARROW)
    emit.load(code, fill, _NARROW_FILL)
    code.emit("brz", panels, Symbol("narrow_done"))
    code.emit("add", panels, panels, -1)
    for side_unit, stride, width in ((units[0], in_stride, word), (units[1], out_stride, scratch)):
        code.emit("shl", stride, stride, side_unit.bit_length() - 1)
        code.emit("mul", width, narrow, -unit)
        code.emit("add", stride, stride, width)
    code.emit("mul", word, fill, -unit)
    code.emit("add", out_stride, out_stride, word)
    code.label("narrow_row")
    with code.repeat(narrow):
        code.bundle((f"ld{8 * unit}step", single, ZERO, source, 1), _NONE)
        code.bundle((f"st{8 * unit}step", single, ZERO, out, 1), _NONE)
    with code.repeat(fill):
        code.bundle((f"st{8 * unit}step", zero, ZERO, out, 1), _NONE)
    code.emit("add", source, source, in_stride)
    code.emit("add", out, out, out_stride)
    code.emit("brnzdec", panels, Symbol("narrow_row"))
    code.label("narrow_done")
    code.emit("setzi", row, MOST - 1)
    code.emit("bri", Symbol("rest"))


def _panel_row(
    code: Builder, access: str, unit: int, pointer: Main, stride: Main, *, is_zero: bool = False
) -> None:
    """Load or store a panel row, the first unit last, so that it can step on."""
    for number in (*range(1, PANEL_ROW // unit), 0):
        if unit == ATOM:
            register = ARITHMETIC_ZEROS if is_zero else a2(2 * number)
        else:
            register = ARITHMETIC_ZERO if is_zero else a(number)
        if number:
            code.bundle((f"{access}{8 * unit}", register, ZERO, pointer, number), _NONE)
        else:
            code.bundle((f"{access}{8 * unit}step", register, ZERO, pointer, stride), _NONE)


def _drained_panel(code: Builder, source: Main, out: Main, in_stride: Main, out_stride: Main) -> None:
    """A panel row whose pairs are stored as 0, 4, 1, 5, 2, 6, 3, 7; its second half is done first."""
    code.bundle(("ld64", a2(0), ZERO, source, 2), _NONE)
    code.bundle(("ld64", a2(2), ZERO, source, 3), _NONE)
    code.bundle(("ld64", a2(4), ZERO, source, 1), ("sort4x32lo", a2(6), a2(0), a2(2)))
    code.bundle(("st64", a2(6), ZERO, out, 1), ("sort4x32hi", a2(0), a2(0), a2(2)))
    code.bundle(("ld64step", a2(2), ZERO, source, in_stride), _NONE)
    code.bundle(("st64", a2(0), ZERO, out, 3), ("sort4x32hi", a2(0), a2(2), a2(4)))
    code.bundle(("st64", a2(0), ZERO, out, 2), ("sort4x32lo", a2(6), a2(2), a2(4)))
    code.bundle(("st64step", a2(6), ZERO, out, out_stride), _NONE)


def _drained_rest(code: Builder, source: Main, out: Main, count: Main) -> None:
    """The first one, two or three atoms of a panel row, or none."""
    code.emit("brz", count, Symbol("behind"))
    for number in range(4):
        code.emit("ld64step", a2(2 * number), ZERO, source, 1)
    code.emit("sort4x32lo", a2(4), a2(4), a2(6))
    code.emit("sort4x32lo", a2(6), a2(0), a2(2))
    code.emit("sort4x32hi", a2(0), a2(0), a2(2))
    for pair in (a2(6), a2(4)):
        code.emit("st64step", pair, ZERO, out, 1)
        code.emit("add", count, count, -1)
        code.emit("brz", count, Symbol("behind"))
    code.emit("st64step", a2(0), ZERO, out, 1)
