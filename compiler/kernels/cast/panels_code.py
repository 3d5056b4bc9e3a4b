"""Machine code of casts between F16 and F143 where panels change.

A worker goes through the half panels of its lane and in each through the rows of its lane. Codes and halves
have a pointer of their own each, whichever of them is loaded, so that both directions share all but their
loops. A row of a whole half panel has four quads of halves and two of codes:

* through one port six bundles for its six loads and stores, with conversions beside them;
* through two ports four bundles, in which two stores of a row go with two loads of the next: packing, the
  quads of lower codes come by the packed address and the upper ones by a pointer of their own.
"""

from typing import Final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import (
    ARITHMETIC_ZEROS,
    STACK_POINTER,
    ZERO,
    ArithmeticPair,
    Main,
    a,
    a2,
    a4,
    m,
    m2,
)
from compiler.kernels import emit, emit_eight_bit
from compiler.kernels.cast.panels import (
    ATOM,
    COLUMN_LANES_BIT,
    LANES_MASK,
    PANEL_ROW,
    QUADS,
    REST_BIT,
    ROW_LANES_BIT,
    Panels,
)
from compiler.target.isa_decisions import Decisions

(
    _RESULT,
    _OPERAND,
    _ROWS,
    _SHAPE,
    _ROWS_PER_LANE,
    _STRIDES,
    _SCALE,
    _FIRST,
    _COLUMN_LANES,
    _ROW_LANES,
    _OWN_ROWS,
    _ROWS_LEFT,
    _OWN_MOVED,
    _MOVED_LEFT,
    _WHOLE,
    _REST,
    _COUNT,
    _STEP,
    _ROW,
    _PANEL_BYTES,
    _PACE,
) = range(21)
"""Words of the frame: the arguments, then what the supervisor makes of them. ``_WHOLE`` are whole half panels
of the halves, ``_COUNT`` those to do, ``_PACE`` strides of a packed address."""
_FRAME: Final = 21
_ARGUMENTS: Final = 7

_CODES_AT: Final = m(0)
_HALVES: Final = m(1)
_CODES: Final = m(2)
_CODES_STRIDE: Final = m(3)
_PACE_STRIDES: Final = m(4)
_HALVES_STRIDE: Final = m(5)
_CLEARED: Final = m(6)
_MOVED: Final = m(7)
_HALVES_AT: Final = m(8)
_SPARE: Final = m(9)
_SCRATCH: Final = m(10)
_HALF_PANEL: Final = m(11)
_PACKED: Final = m2(8)
"""Replaces the pointer to halves and the register behind it."""

_ON, _LOAD_NEXT, _STORE_NEXT = range(3)
"""Selectors of a packed address: the next quad, the next row of what is loaded, of what is stored."""
_STRIDE_BITS: Final = 10
_WORD_BITS: Final = 32


def program(kernel: Panels, decisions: Decisions) -> Program:
    """The kernel of a symbol."""
    code = emit.begin(kernel.symbol)
    _supervisor(code, kernel)
    emit.begin_workers(code)
    _shares(code, decisions, kernel)
    code.label("half_panel")
    _places(code)
    if kernel.is_packing:
        _clear_rows(code)
    emit.load(code, _SCRATCH, _WHOLE)
    code.emit("cmpult", _SPARE, _HALF_PANEL, _SCRATCH)
    code.emit("brz", _SPARE, Symbol("not_whole"))
    if kernel.has_two_ports:
        (_pack_through_two_ports if kernel.is_packing else _unpack_through_two_ports)(code)
    else:
        (_pack if kernel.is_packing else _unpack)(code)
    code.label("next")
    emit.load(code, _SCRATCH, _COLUMN_LANES)
    code.emit("add", _HALF_PANEL, _HALF_PANEL, _SCRATCH)
    emit.load(code, _SCRATCH, _COUNT)
    code.emit("cmpult", _SCRATCH, _HALF_PANEL, _SCRATCH)
    code.emit("brnz", _SCRATCH, Symbol("half_panel"))
    code.label("done")
    code.emit("exitz", ZERO)
    code.label("not_whole")
    _rest(code, kernel)
    return code.finish()


def _supervisor(code: Builder, kernel: Panels) -> None:
    rows, shape, per_lane, strides = (emit.argument(index) for index in range(2, 6))
    one, row_lanes, panel_bytes = m(0), m(1), m(8)
    emit.call_frame(code, _ARGUMENTS, _FRAME)

    def low_part(word: Main, bits: int, into: Main) -> None:
        """The low bits of a word."""
        code.emit("shl", into, word, _WORD_BITS - bits)
        code.emit("shr", into, into, _WORD_BITS - bits)

    code.emit("shr", one, shape, COLUMN_LANES_BIT)
    code.emit("and", one, one, LANES_MASK)
    emit.store(code, one, _COLUMN_LANES)
    code.emit("shr", row_lanes, shape, ROW_LANES_BIT)
    emit.store(code, row_lanes, _ROW_LANES)
    if kernel.has_two_ports:
        _pace(code, kernel, strides, row_lanes)
    low_part(per_lane, 16, one)
    emit.store(code, one, _OWN_ROWS)
    code.emit("mul", one, one, row_lanes)
    low_part(rows, 16, panel_bytes)
    code.emit("sub", one, panel_bytes, one)
    emit.store(code, one, _ROWS_LEFT)
    code.emit("shl", panel_bytes, panel_bytes, PANEL_ROW.bit_length() - 1)
    emit.store(code, panel_bytes, _PANEL_BYTES)
    code.emit("shr", one, per_lane, 16)
    emit.store(code, one, _OWN_MOVED)
    code.emit("mul", one, one, row_lanes)
    code.emit("shr", rows, rows, 16)
    code.emit("sub", one, rows, one)
    emit.store(code, one, _MOVED_LEFT)
    low_part(strides, 16, one)
    code.emit("shl", one, one, ATOM.bit_length() - 1)
    emit.store(code, one, _ROW)
    code.emit("shr", one, strides, 16)
    code.emit("shl", one, one, PANEL_ROW.bit_length() - 1)
    emit.store(code, one, _STEP)
    code.emit("shr", one, shape, REST_BIT)
    code.emit("and", one, one, QUADS - 1)
    emit.store(code, one, _REST)
    low_part(shape, REST_BIT, shape)
    emit.store(code, shape, _WHOLE)
    code.emit("min", one, one, 1)
    code.emit("add", one, one, shape)
    if kernel.is_packing:
        # Both halves of a panel of codes are made.
        code.emit("and", rows, one, 1)
        code.emit("add", one, one, rows)
    emit.store(code, one, _COUNT)
    if kernel.is_shared:
        _chunks(code, count=one, whole=shape)
    else:
        emit.launch_and_return(code, Symbol("worker"), _FRAME)


def _pace(code: Builder, kernel: Panels, strides: Main, row_lanes: Main) -> None:
    """Strides of the packed address: from the last quad of a row to the first of the lane's next row."""
    halves, codes = m(0), m(9)
    code.emit("shl", halves, strides, 16)
    code.emit("shr", halves, halves, 16)
    code.emit("mul", halves, halves, row_lanes)
    code.emit("shl", codes, row_lanes, (PANEL_ROW // ATOM).bit_length() - 1)
    code.emit("add", codes, codes, -1)
    load, store = (halves, codes) if kernel.is_packing else (codes, halves)
    code.emit("add", halves, halves, -1 if kernel.is_packing else -(QUADS - 1))
    code.emit("shl", store, store, _STRIDE_BITS)
    code.emit("or", halves, load, store)
    emit.store(code, halves, _PACE)


def _chunks(code: Builder, *, count: Main, whole: Main) -> None:
    """A launch and a rendezvous for each chunk of panels, twice as many as in the one before."""
    result, operand, first, panel_bytes = m(2), m(3), m(9), m(8)
    left, chunk, scratch = m(4), m(6), m(1)
    code.emit("mov", left, count)
    code.emit("shl", chunk, first, 1)
    code.label("chunk")
    code.emit("min", count, chunk, left)
    emit.store(code, count, _COUNT)
    code.emit("sub", left, left, count)
    code.emit("min", scratch, whole, count)
    emit.store(code, scratch, _WHOLE)
    code.emit("sub", whole, whole, scratch)
    emit.store(code, result, _RESULT)
    emit.store(code, operand, _OPERAND)
    code.emit("setzi", scratch, Symbol("worker"))
    code.emit("runall", scratch, STACK_POINTER, 0)
    code.emit("mul", count, count, panel_bytes)
    code.emit("add", operand, operand, count)
    code.emit("shr", count, count, 1)
    code.emit("add", result, result, count)
    code.emit("shl", chunk, chunk, 1)
    code.emit("sync", emit.LOCAL)
    code.emit("brnz", left, Symbol("chunk"))
    emit.close_frame(code, _FRAME)


def _shares(code: Builder, decisions: Decisions, kernel: Panels) -> None:
    """Lanes and shares of the worker, its first rows and its strides."""
    row_lane, row_lanes = m(0), m(3)
    code.label("worker")
    emit.worker_lanes(code, _COLUMN_LANES, _ROW_LANES)
    emit.load(code, _MOVED, _OWN_MOVED)
    emit.load(code, _SCRATCH, _MOVED_LEFT)
    emit.share_of(code, row_lane, _MOVED, _SCRATCH)
    if kernel.is_packing:
        emit.load(code, _CLEARED, _OWN_ROWS)
        emit.load(code, _SCRATCH, _ROWS_LEFT)
        emit.share_of(code, row_lane, _CLEARED, _SCRATCH)
        code.emit("brz", _CLEARED, Symbol("done"))
        code.emit("sub", _CLEARED, _CLEARED, _MOVED)
    else:
        code.emit("brz", _MOVED, Symbol("done"))
    emit.load(code, _SCRATCH, _COUNT)
    code.emit("cmpult", _SCRATCH, _HALF_PANEL, _SCRATCH)
    code.emit("brz", _SCRATCH, Symbol("done"))
    halves, codes = (_OPERAND, _RESULT) if kernel.is_packing else (_RESULT, _OPERAND)
    emit.load(code, _HALVES, halves)
    emit.load(code, _CODES, codes)
    emit.load(code, _HALVES_STRIDE, _ROW)
    code.emit("mul", _SCRATCH, row_lane, _HALVES_STRIDE)
    code.emit("add", _HALVES, _HALVES, _SCRATCH)
    code.emit("shl", _SCRATCH, row_lane, PANEL_ROW.bit_length() - 1)
    code.emit("add", _CODES, _CODES, _SCRATCH)
    code.emit("mul", _HALVES_STRIDE, _HALVES_STRIDE, row_lanes)
    code.emit("shr", _HALVES_STRIDE, _HALVES_STRIDE, ATOM.bit_length() - 1)
    code.emit("shl", _CODES_STRIDE, row_lanes, (PANEL_ROW // ATOM).bit_length() - 1)
    emit_eight_bit.ready(code, decisions, _SCALE, a(0))


def _places(code: Builder) -> None:
    """Where the first row of a half panel is."""
    code.emit("shr", _CODES_AT, _HALF_PANEL, 1)
    emit.load(code, _SCRATCH, _PANEL_BYTES)
    code.emit("mul", _CODES_AT, _CODES_AT, _SCRATCH)
    code.emit("add", _CODES_AT, _CODES_AT, _CODES)
    code.emit("and", _SCRATCH, _HALF_PANEL, 1)
    code.emit("shl", _SCRATCH, _SCRATCH, (PANEL_ROW // 2).bit_length() - 1)
    code.emit("add", _CODES_AT, _CODES_AT, _SCRATCH)
    emit.load(code, _SCRATCH, _STEP)
    code.emit("mul", _HALVES_AT, _HALF_PANEL, _SCRATCH)
    code.emit("add", _HALVES_AT, _HALVES_AT, _HALVES)


def _clear_rows(code: Builder) -> None:
    """Rows that only the codes have."""
    code.emit("brz", _CLEARED, Symbol("cleared"))
    code.emit("mul", _SCRATCH, _MOVED, _CODES_STRIDE)
    code.emit("shl", _SCRATCH, _SCRATCH, ATOM.bit_length() - 1)
    code.emit("add", _SCRATCH, _SCRATCH, _CODES_AT)
    with code.repeat(_CLEARED):
        code.bundle(("st64", ARITHMETIC_ZEROS, ZERO, _SCRATCH, 1), ("fnop",))
        code.bundle(("st64step", ARITHMETIC_ZEROS, ZERO, _SCRATCH, _CODES_STRIDE), ("fnop",))
    code.label("cleared")


def _pack(code: Builder) -> None:
    with code.repeat(_MOVED):
        code.bundle(("ld64", a2(6), ZERO, _HALVES_AT, 3), ("fnop",))
        code.bundle(("ld64", a2(4), ZERO, _HALVES_AT, 2), ("fnop",))
        code.bundle(("ld64", a2(2), ZERO, _HALVES_AT, 1), ("f16v8tof8", a2(4), a4(4)))
        code.bundle(("ld64step", a2(0), ZERO, _HALVES_AT, _HALVES_STRIDE), ("fnop",))
        code.bundle(("st64", a2(4), ZERO, _CODES_AT, 1), ("f16v8tof8", a2(0), a4(0)))
        code.bundle(("st64step", a2(0), ZERO, _CODES_AT, _CODES_STRIDE), ("fnop",))


def _unpack(code: Builder) -> None:
    with code.repeat(_MOVED):
        code.bundle(("ld64", a2(2), ZERO, _CODES_AT, 1), ("fnop",))
        code.bundle(("ld64step", a2(0), ZERO, _CODES_AT, _CODES_STRIDE), ("f8v4tof16", a2(6), a(3)))
        code.bundle(("st64", a2(6), ZERO, _HALVES_AT, 3), ("f8v4tof16", a2(4), a(2)))
        code.bundle(("st64", a2(4), ZERO, _HALVES_AT, 2), ("f8v4tof16", a2(6), a(1)))
        code.bundle(("st64", a2(6), ZERO, _HALVES_AT, 1), ("f8v4tof16", a2(4), a(0)))
        code.bundle(("st64step", a2(4), ZERO, _HALVES_AT, _HALVES_STRIDE), ("fnop",))


def _after_first_row(code: Builder, load: Main, load_stride: Main, store: Main) -> None:
    """Make the packed address: of the lane's second row to load, of its first to store."""
    code.emit("shl", _SPARE, load_stride, ATOM.bit_length() - 1)
    code.emit("add", load, load, _SPARE)
    code.emit("tapack", _PACKED, load, ZERO, store)
    emit.load(code, _PACE_STRIDES, _PACE)


def _pack_through_two_ports(code: Builder) -> None:
    """Lower quads by the packed address; ``upper`` points at the third quad of a row."""
    upper, rounds = _SCRATCH, _CODES_AT
    code.emit("brz", _MOVED, Symbol("next"))
    code.emit("ld64", a2(0), ZERO, _HALVES_AT, 0)
    code.emit("ld64", a2(2), ZERO, _HALVES_AT, 1)
    code.emit("add", upper, _HALVES_AT, QUADS // 2 * ATOM)
    code.emit("ld64", a2(6), ZERO, upper, 1)
    code.emit("ld64step", a2(4), ZERO, upper, _HALVES_STRIDE)
    code.emit("f16v8tof8", a2(2), a4(0))
    _after_first_row(code, _HALVES_AT, _HALVES_STRIDE, _CODES_AT)
    code.emit("add", rounds, _MOVED, -1)
    with code.repeat(rounds):
        _paced(code, a2(0), a2(2), _ON | _ON << 2, ("f16v8tof8", a2(4), a4(4)))
        _paced(code, a2(2), a2(4), _LOAD_NEXT | _STORE_NEXT << 2, ("fnop",))
        code.bundle(("ld64", a2(6), ZERO, upper, 1), ("f16v8tof8", a2(2), a4(0)))
        code.bundle(("ld64step", a2(4), ZERO, upper, _HALVES_STRIDE), ("fnop",))
    code.emit("f16v8tof8", a2(4), a4(4))
    code.emit("st64pace", a2(2), _PACKED, _PACE_STRIDES, _ON)
    code.emit("st64pace", a2(4), _PACKED, _PACE_STRIDES, _ON)


def _unpack_through_two_ports(code: Builder) -> None:
    """All by the packed address; the third and fourth quad of a row are stored with the next row's loads."""
    rounds = _SCRATCH
    code.emit("ld64", a2(0), ZERO, _CODES_AT, 0)
    code.emit("ld64", a2(2), ZERO, _CODES_AT, 1)
    code.emit("mov", _SCRATCH, _HALVES_AT)
    _after_first_row(code, _CODES_AT, _CODES_STRIDE, _SCRATCH)
    code.emit("add", rounds, _MOVED, -1)
    code.emit("f8v4tof16", a2(4), a(0))
    emit.place(code, 0)
    lower: tuple[tuple[ArithmeticPair, Half], ...] = (
        (a2(4), ("f8v4tof16", a2(6), a(1))),
        (a2(6), ("f8v4tof16", a2(4), a(2))),
    )
    for stored, conversion in lower:
        code.bundle(("st64pace", stored, _PACKED, _PACE_STRIDES, _ON), conversion)
    with code.repeat(rounds):
        _paced(code, a2(0), a2(4), _ON | _ON << 2, ("f8v4tof16", a2(6), a(3)))
        _paced(code, a2(2), a2(6), _LOAD_NEXT | _STORE_NEXT << 2, ("f8v4tof16", a2(4), a(0)))
        for stored, conversion in lower:
            code.bundle(("st64pace", stored, _PACKED, _PACE_STRIDES, _ON), conversion)
    emit.place(code, 0)
    code.bundle(("st64pace", a2(4), _PACKED, _PACE_STRIDES, _ON), ("f8v4tof16", a2(6), a(3)))
    code.emit("st64pace", a2(6), _PACKED, _PACE_STRIDES, _ON)


def _paced(code: Builder, loaded: ArithmeticPair, stored: ArithmeticPair, selectors: int, aux: Half) -> None:
    code.bundle(("ldst64pace", loaded, stored, _PACKED, _PACE_STRIDES, selectors), aux)


_LOAD: Final[Half] = ("ld64step", a2(0), ZERO, _HALVES_AT, _HALVES_STRIDE)
_PACK_LOWER: Final[Half] = ("f16v8tof8", a2(4), a4(0))
_STORE_CODES: Final[Half] = ("st64step", a2(4), ZERO, _CODES_AT, _CODES_STRIDE)
_CLEAR_UPPER: Final[Half] = ("st64", ARITHMETIC_ZEROS, ZERO, _CODES_AT, 1)
_NO: Final[Half] = ("fnop",)
_PACKED_RESTS: Final[dict[int, tuple[tuple[Half, Half], ...]]] = {
    0: (
        (_CLEAR_UPPER, _NO),
        (("st64step", ARITHMETIC_ZEROS, ZERO, _CODES_AT, _CODES_STRIDE), _NO),
    ),
    1: ((_LOAD, _NO), (_CLEAR_UPPER, _PACK_LOWER), (_STORE_CODES, _NO)),
    2: (
        (("ld64", a2(2), ZERO, _HALVES_AT, 1), _NO),
        (_LOAD, _NO),
        (_CLEAR_UPPER, _PACK_LOWER),
        (_STORE_CODES, _NO),
    ),
    3: (
        (("ld64", a2(4), ZERO, _HALVES_AT, 2), _NO),
        (("ld64", a2(2), ZERO, _HALVES_AT, 1), ("f16v8tof8", a2(4), a4(4))),
        (_LOAD, _NO),
        (("st64", a2(4), ZERO, _CODES_AT, 1), _PACK_LOWER),
        (_STORE_CODES, _NO),
    ),
}
"""Bundles for a row that ends in so many quads of halves. What is missing of a quad of codes is converted
from registers that hold zero."""

_STORE_HALVES: Final[Half] = ("st64step", a2(4), ZERO, _HALVES_AT, _HALVES_STRIDE)
_UNPACKED_RESTS: Final[dict[int, tuple[tuple[Half, Half], ...]]] = {
    1: (
        (("ld32step", a(0), ZERO, _CODES_AT, _SPARE), _NO),
        (("nop",), ("f8v4tof16", a2(4), a(0))),
        (_STORE_HALVES, _NO),
    ),
    2: (
        (("ld64step", a2(0), ZERO, _CODES_AT, _CODES_STRIDE), _NO),
        (("nop",), ("f8v4tof16", a2(6), a(1))),
        (("st64", a2(6), ZERO, _HALVES_AT, 1), ("f8v4tof16", a2(4), a(0))),
        (_STORE_HALVES, _NO),
    ),
    3: (
        (("ld32", a(2), ZERO, _CODES_AT, 2), _NO),
        (("ld64step", a2(0), ZERO, _CODES_AT, _CODES_STRIDE), ("f8v4tof16", a2(6), a(2))),
        (("st64", a2(6), ZERO, _HALVES_AT, 2), ("f8v4tof16", a2(4), a(1))),
        (("st64", a2(4), ZERO, _HALVES_AT, 1), ("f8v4tof16", a2(4), a(0))),
        (_STORE_HALVES, _NO),
    ),
}


def _rest(code: Builder, kernel: Panels) -> None:
    """The half panel in which rows end; packing, also that of which they have nothing."""
    bodies = _PACKED_RESTS if kernel.is_packing else _UNPACKED_RESTS
    if kernel.is_packing:
        code.emit("cmpeq", _SPARE, _HALF_PANEL, _SCRATCH)
        code.emit("brz", _SPARE, Symbol("rest_0"))
    emit.load(code, _SCRATCH, _REST)
    for quads in range(min(bodies), QUADS - 1):
        if quads > 0:
            code.emit("add", _SCRATCH, _SCRATCH, -1)
        code.emit("brz", _SCRATCH, Symbol(f"rest_{quads}"))
    for quads in reversed(bodies):
        code.label(f"rest_{quads}")
        if kernel.is_packing and quads % 2:
            code.emit("setzi", a(2 * quads), 0)
            code.emit("setzi", a(2 * quads + 1), 0)
        if not kernel.is_packing and quads == 1:
            code.emit("shl", _SPARE, _CODES_STRIDE, 1)
        with code.repeat(_MOVED):
            for main, aux in bodies[quads]:
                code.bundle(main, aux)
        code.emit("bri", Symbol("next"))
