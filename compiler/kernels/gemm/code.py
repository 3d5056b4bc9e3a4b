"""Machine code of products: one kernel per mode, precision, weight feed and rounding.

**Supervisor.** For each column group, for each panel of K: wait for the workers, load 512 bytes of weights,
launch the workers at the entry for this panel. The bookkeeping between launch and wait costs little: it runs
in the slots of workers that have finished and within the latency of ``sync``.

**Workers** split the rows into six contiguous parts. Their registers survive from launch to launch of a call,
so only the first entry looks at arguments; it also chooses the two passes of the worker by its number of rows
(0, 1, 2, 3 or more) and keeps their addresses.

============  ========================================================================
register      of a worker, retained
============  ========================================================================
m0:1          packed addresses: left, partials, results
m2, m3        its first left row in panel 0, and in the current panel
m4            its first result row in the current column group
m5, m6        bytes from panel to panel, of left and result
m7, m8        addresses of its initializing and accumulating pass
m9, m11       rows minus 2, rows minus 3: iterations of their loops
============  ========================================================================

**Passes.** Number the AMP instructions of a pass by steps: step t works on K-quad t % 4 (the phase) of row
t // 4, 8 bytes that are four elements of F16 or eight of F8. A step multiplies the quad loaded by the step
before, injects a quad of partials for the *next* row, and takes a quad of results of the row *before*. So a
pass has four more steps than quads to drain results, and an accumulating pass four more in front, steps
-4 .. -1, which multiply zeros and inject the partials of row 0. The phases of these are 0 .. 3 too: queues of
the unit that phases address would behave the same.

**Blocks.** Where the result is in blocks of 16 rows, a worker does the rows of each block by a pass of their
own and returns from it to a loop over its blocks. Other registers are retained then:

============  ========================================================================
register      of a worker, for results in blocks
============  ========================================================================
m2, m3, m4    as above
m5, m6        its rows, and how many of them the first block has room for
m7, m8        in a launch: first left row and first result row of a block
m9, m11       in a pass: as above the one that it uses; the other, rows in the blocks that follow
============  ========================================================================

The accumulating pass stores a result two steps after taking it, alternating between two registers: the store
of step t then goes to a quad of other parity than the partials that the same bundle loads for step t + 1, as
interleaved memory demands. Nothing is loaded that is not used: the first and last steps are written out, and
only steps that load and store everything repeat.
"""

from dataclasses import dataclass
from typing import Final, assert_never, final

from compiler.isa.builder import Builder, Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import ARITHMETIC_ZEROS, STACK_POINTER, ZERO, Main, a, a2, a4, m, m2
from compiler.kernels import emit
from compiler.kernels.gemm.arithmetic import QUAD_BYTES
from compiler.kernels.gemm.binding import (
    BLOCK_ROWS,
    PANEL_BYTES,
    ROW_BYTES,
    Factor,
    Kernel,
    Mode,
    Rounding,
    Weights,
)
from compiler.kernels.symbols import SymbolKey
from compiler.target.control_registers import SupervisorRegister, WorkerRegister
from compiler.target.isa_decisions import Decisions
from compiler.target.registers import EightBitFormat

ENTRY_BASES: Final = (0, 32, 8, 40, 16, 48, 24, 56)
"""First common weight of each 64 bytes of a panel, in the order of memory: two columns of 16 K. With it the
unit drains columns in natural order."""

_OUT, _LEFT, _QUOTIENT, _REMAINDER, _LEFT_STRIDE, _OUT_STRIDE, _CONTROL, _GAP = range(8)
"""Words of the frame; the gap is from the end of a block of the result to the next block."""
_FRAME: Final = 8

_SIXTH: Final = 10923
_SIXTH_SHIFT: Final = 16
"""x * _SIXTH >> _SIXTH_SHIFT is x // 6 for x below 0x4000."""

_REGISTER_BITS: Final = 32
_SCALE_BITS: Final = 6
"""Of the two's complement field of FP_ISCL."""

_PACKED: Final = m2(0)
_X: Final = a2(0)
_PARTIAL: Final = a2(2)
_TAKEN: Final = (a2(4), a2(6))

_ON: Final = 0
_STAY: Final = 1
"""Selectors of an address: move on by a quad; move by the first stride, which is zero here."""


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol."""
    kernel = Kernel.of(key)
    steps = _steps(kernel.factor, decisions)
    code = emit.begin(key)
    _supervisor(code, kernel, decisions)
    emit.begin_workers(code)
    if kernel.has_blocks:
        _entries_of_blocks(code, kernel.mode)
    else:
        _entries(code, kernel.mode)
    modes = dict.fromkeys((kernel.mode, Mode.ACCUMULATE))
    for mode in modes:
        around = _IN_BLOCKS[mode] if kernel.has_blocks else _ALONE
        if kernel.has_blocks:
            _blocks(code, mode, around)
        if mode is Mode.INITIALIZE:
            _initializing_pass(code, steps, around, rows=1)
            _initializing_pass(code, steps, around, rows=2)
        else:
            for rows in (1, 2, 3):
                _accumulating_pass(code, steps, around, rows=rows)
    return code.finish()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Surroundings:
    """Where a pass finds its rows and what it does behind them.

    Args:
        left: first left row.
        out: first result row.
        following: label to go on at; None to exit.
    """

    left: Main
    out: Main
    following: str | None

    def end(self, code: Builder) -> None:
        """The last instruction of a pass."""
        if self.following is None:
            code.emit("exitz", ZERO)
        else:
            code.emit("bri", Symbol(self.following))


_ALONE: Final = _Surroundings(left=m(3), out=m(4), following=None)
_IN_BLOCKS: Final = {
    mode: _Surroundings(left=m(7), out=m(8), following=f"{mode.value}_following") for mode in Mode
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The AMP instruction of a precision: its mnemonic and the flags of its four phases."""

    mnemonic: str
    phases: tuple[int, ...]


def _steps(factor: Factor, decisions: Decisions) -> _Steps:
    match factor:
        case Factor.F16:
            mnemonic, flags = "f16v4hihov4amp", "TAMP_F16V4_E4_P"
        case Factor.F8:
            mnemonic, flags = "f8v8hihov4amp", "TAMP_F8V8_E4_P"
        case _:
            assert_never(factor)
    phases = tuple(decisions.constants[f"{flags}{phase}"] for phase in range(4))
    return _Steps(mnemonic=mnemonic, phases=phases)


def _supervisor(code: Builder, kernel: Kernel, decisions: Decisions) -> None:
    out, left, weights, rows, groups, panel_rows, weight_stride, last = (
        emit.argument(index) for index in range(8)
    )
    scratch, count, k_panels, entry = m(0), m(1), panel_rows, rows
    emit.open_frame(code, _FRAME)
    emit.store(code, out, _OUT)
    emit.store(code, left, _LEFT)
    code.emit("mul", scratch, rows, _SIXTH)
    code.emit("shr", scratch, scratch, _SIXTH_SHIFT)
    emit.store(code, scratch, _QUOTIENT)
    code.emit("mul", scratch, scratch, 6)
    code.emit("sub", scratch, rows, scratch)
    emit.store(code, scratch, _REMAINDER)
    row_shift = ROW_BYTES.bit_length() - 1
    code.emit("shl", scratch, panel_rows, 16)
    code.emit("shr", scratch, scratch, 16 - row_shift)
    emit.store(code, scratch, _LEFT_STRIDE)
    code.emit("shr", scratch, panel_rows, 16)
    code.emit("shl", scratch, scratch, row_shift)
    emit.store(code, scratch, _OUT_STRIDE)
    code.emit("shl", k_panels, groups, 16)
    code.emit("shr", k_panels, k_panels, 16)
    code.emit("add", k_panels, k_panels, -1)
    code.emit("shr", groups, groups, 16)
    code.emit("add", groups, groups, -1)
    if kernel.has_blocks:
        code.emit("add", scratch, last, -BLOCK_ROWS * ROW_BYTES)
        emit.store(code, scratch, _GAP)
    _put_formats(code, kernel.factor, decisions, last, scratch)
    if kernel.rounding is Rounding.STOCHASTIC:
        code.emit("get", scratch, int(SupervisorRegister.FP_ICTL))
        emit.store(code, scratch, _CONTROL)
        code.emit("setzi", count, SupervisorRegister.FP_ICTL.field("ESR").mask)
        code.emit("or", scratch, scratch, count)
        code.emit("put", int(SupervisorRegister.FP_ICTL), scratch)
    code.emit("setzi", entry, Symbol("first"))
    column = code.label("column")
    code.emit("put", int(SupervisorRegister.CCCSLOAD), weights)
    code.emit("add", weights, weights, weight_stride)
    code.emit("mov", count, k_panels)
    panel = code.label("panel")
    code.emit("sync", emit.LOCAL)
    _load_weights(code, kernel.weights)
    code.emit("runall", entry, STACK_POINTER, 0)
    code.emit("setzi", entry, Symbol("next_panel"))
    code.emit("brnzdec", count, panel)
    code.emit("setzi", entry, Symbol("next_column"))
    code.emit("brnzdec", groups, column)
    code.emit("sync", emit.LOCAL)
    if kernel.rounding is Rounding.STOCHASTIC:
        code.emit("ld32", scratch, STACK_POINTER, _CONTROL)
        code.emit("put", int(SupervisorRegister.FP_ICTL), scratch)
    emit.close_frame(code, _FRAME)


def _put_formats(code: Builder, factor: Factor, decisions: Decisions, scale: Main, scratch: Main) -> None:
    """Formats and scale of the unit, which workers take over at their launch."""
    formats: Main = ZERO
    exponent: Main = ZERO
    if factor is Factor.F8:
        bits = (decisions.constants["FP_NFMT_CWEI_FMT"], decisions.constants["FP_NFMT_ARF_FMT"])
        formats, exponent = scratch, scale
        code.emit("setzi", formats, sum(EightBitFormat.F143 << bit for bit in bits))
        code.emit("shl", exponent, exponent, _REGISTER_BITS - _SCALE_BITS)
        code.emit(
            "shr", exponent, exponent, _REGISTER_BITS - _SCALE_BITS - decisions.constants["FP_SCL_SCALE"]
        )
    code.emit("put", int(SupervisorRegister.FP_INFMT), formats)
    code.emit("put", int(SupervisorRegister.FP_ISCL), exponent)


def _load_weights(code: Builder, feed: Weights) -> None:
    words = 1 if feed is Weights.NARROW else 2
    mnemonic = "ld64putcs" if feed is Weights.NARROW else "ld128putcs"
    for base in ENTRY_BASES:
        for entry in range(base, base + PANEL_BYTES // len(ENTRY_BASES) // 8, words):
            code.emit(mnemonic, entry)


def _entries(code: Builder, mode: Mode) -> None:
    """Where launches begin: the first of a call, the next panel of K, the next column group."""
    quotient, remainder, worker, rows, offset = m(0), m(1), m(10), m(11), m(8)
    packed_zero = a(0)
    code.label("first")
    code.bundle(
        ("get", worker, int(WorkerRegister.WSR)),
        ("setzi", packed_zero, WorkerRegister.FP_CLR.field("ZAACC").mask),
    )
    code.bundle(
        ("and", worker, worker, WorkerRegister.WSR.field("CTXTID_M1").mask),
        ("uput", _upper(WorkerRegister.FP_CLR), packed_zero),
    )
    emit.load(code, quotient, _QUOTIENT)
    emit.load(code, remainder, _REMAINDER)
    code.emit("mul", offset, worker, quotient)
    code.emit("min", rows, worker, remainder)
    code.emit("add", offset, offset, rows)
    code.emit("shl", offset, offset, ROW_BYTES.bit_length() - 1)
    code.emit("cmpult", rows, worker, remainder)
    code.emit("add", rows, rows, quotient)
    emit.load(code, m(2), _LEFT)
    code.emit("add", m(2), m(2), offset)
    emit.load(code, m(4), _OUT)
    code.emit("add", m(4), m(4), offset)
    emit.load(code, m(5), _LEFT_STRIDE)
    emit.load(code, m(6), _OUT_STRIDE)
    code.emit("mov", m(3), m(2))
    initializes = mode is Mode.INITIALIZE
    chosen = m(7) if initializes else m(8)
    # The usual number of rows first.
    code.emit("add", m(9), rows, -2)
    code.emit("add", rows, rows, -3)
    if initializes:
        code.emit("setzi", m(7), Symbol("initialize_2"))
    code.emit("setzi", m(8), Symbol("accumulate_3"))
    code.emit("brpos", rows, Symbol("go"))
    code.emit("setzi", m(8), Symbol("accumulate_2"))
    code.emit("brz", m(9), Symbol("go"))
    if initializes:
        code.emit("setzi", m(7), Symbol("initialize_1"))
    code.emit("setzi", m(8), Symbol("accumulate_1"))
    code.emit("add", worker, m(9), 1)
    code.emit("brz", worker, Symbol("go"))
    if initializes:
        code.emit("setzi", m(7), Symbol("idle"))
    code.emit("setzi", m(8), Symbol("idle"))
    code.label("idle")
    code.emit("exitz", ZERO)
    code.label("next_column")
    code.emit("add", m(4), m(4), m(6))
    code.emit("mov", m(3), m(2))
    code.label("go")
    code.emit("br", chosen)
    code.label("next_panel")
    code.emit("add", m(3), m(3), m(5))
    code.emit("br", m(8))


def _entries_of_blocks(code: Builder, mode: Mode) -> None:
    """The same where the result is in blocks: behind each follows the loop over blocks of the first mode."""
    quotient, remainder, worker, first, scratch = m(0), m(1), m(10), m(8), m(9)
    rows, room, offset, blocks = m(5), m(6), m(10), m(7)
    packed_zero = a(0)
    code.label("first")
    code.bundle(
        ("get", worker, int(WorkerRegister.WSR)),
        ("setzi", packed_zero, WorkerRegister.FP_CLR.field("ZAACC").mask),
    )
    code.bundle(
        ("and", worker, worker, WorkerRegister.WSR.field("CTXTID_M1").mask),
        ("uput", _upper(WorkerRegister.FP_CLR), packed_zero),
    )
    emit.load(code, quotient, _QUOTIENT)
    emit.load(code, remainder, _REMAINDER)
    code.emit("mul", first, worker, quotient)
    code.emit("min", rows, worker, remainder)
    code.emit("add", first, first, rows)
    code.emit("cmpult", rows, worker, remainder)
    code.emit("add", rows, rows, quotient)
    code.emit("shl", offset, first, ROW_BYTES.bit_length() - 1)
    emit.load(code, m(2), _LEFT)
    code.emit("add", m(2), m(2), offset)
    code.emit("mov", m(3), m(2))
    emit.load(code, m(4), _OUT)
    code.emit("add", m(4), m(4), offset)
    code.emit("shr", blocks, first, BLOCK_ROWS.bit_length() - 1)
    emit.load(code, scratch, _GAP)
    code.emit("mul", blocks, blocks, scratch)
    code.emit("add", m(4), m(4), blocks)
    code.emit("and", room, first, BLOCK_ROWS - 1)
    code.emit("setzi", scratch, BLOCK_ROWS)
    code.emit("sub", room, scratch, room)
    code.emit("bri", Symbol(f"{mode.value}_blocks"))
    code.label("next_panel")
    emit.load(code, scratch, _LEFT_STRIDE)
    code.emit("add", m(3), m(3), scratch)
    code.emit("bri", Symbol(f"{Mode.ACCUMULATE.value}_blocks"))
    code.label("next_column")
    emit.load(code, scratch, _OUT_STRIDE)
    code.emit("add", m(4), m(4), scratch)
    code.emit("mov", m(3), m(2))


def _blocks(code: Builder, mode: Mode, around: _Surroundings) -> None:
    """A pass for each block of the result in which the worker has rows."""
    name = mode.value
    left, out = around.left, around.out
    # The pass with a loop takes this many rows at least, and its count from this register.
    least, rows, left_over = (2, m(9), m(11)) if mode is Mode.INITIALIZE else (3, m(11), m(9))
    code.label(f"{name}_blocks")
    code.emit("mov", left, m(3))
    code.emit("mov", out, m(4))
    code.emit("mov", left_over, m(5))
    code.emit("brz", left_over, Symbol(f"{name}_done"))
    code.emit("min", rows, m(6), left_over)
    code.label(f"{name}_block")
    code.emit("sub", left_over, left_over, rows)
    code.emit("add", rows, rows, -least)
    code.emit("brpos", rows, Symbol(f"{name}_{least}"))
    if least > 2:
        code.emit("add", m(10), rows, least - 2)
        code.emit("brz", m(10), Symbol(f"{name}_2"))
    code.emit("bri", Symbol(f"{name}_1"))
    code.label(f"{name}_following")
    code.emit("brz", left_over, Symbol(f"{name}_done"))
    code.emit("add", rows, rows, least)
    code.emit("shl", rows, rows, ROW_BYTES.bit_length() - 1)
    code.emit("add", left, left, rows)
    code.emit("add", out, out, rows)
    emit.load(code, rows, _GAP)
    code.emit("add", out, out, rows)
    code.emit("setzi", rows, BLOCK_ROWS)
    code.emit("min", rows, rows, left_over)
    code.emit("bri", Symbol(f"{name}_block"))
    code.label(f"{name}_done")
    code.emit("exitz", ZERO)


def _upper(register: WorkerRegister) -> int:
    """The number of a floating-point register in ``uput``."""
    return int(register) & 0xFF


def _amp(steps: _Steps, step: int, rows: int, *, adds: bool, into: int) -> Half:
    """The AMP instruction of a step in a pass over ``rows`` rows; ``into``: which register takes results."""
    return (
        steps.mnemonic,
        _TAKEN[into] if step >= 4 else ARITHMETIC_ZEROS,
        _X if 0 <= step < 4 * rows else ARITHMETIC_ZEROS,
        _PARTIAL if adds and step < 4 * (rows - 1) else ARITHMETIC_ZEROS,
        steps.phases[step % 4],
    )


def _initializing_pass(code: Builder, steps: _Steps, around: _Surroundings, *, rows: int) -> None:
    """A pass over one row, or (``rows`` 2) over two and more."""
    if rows == 1:
        emit.place(code, 2)
        code.label("initialize_1")
        code.emit("tapack", _PACKED, ZERO, ZERO, around.out)
    else:
        emit.place(code, 3)
        code.label("initialize_2")
        code.emit("add", m(10), around.left, 6 * QUAD_BYTES)
        code.emit("tapack", _PACKED, m(10), ZERO, around.out)
    code.emit("ld64", _X, around.left, ZERO, 0)

    def step(number: int) -> None:
        loads, stores = number + 1 < 4 * rows, number > 4
        main: Half = ("nop",)
        if loads and stores:
            main = ("ldst64pace", _X, _TAKEN[0], _PACKED, ZERO, _ON | _ON << 2)
        elif loads:
            main = ("ld64", _X, around.left, ZERO, number + 1)
        elif stores:
            main = ("st64pace", _TAKEN[0], _PACKED, ZERO, _ON)
        code.bundle(main, _amp(steps, number, rows, adds=False, into=0))

    for number in range(5):
        step(number)
    if rows > 1:
        with code.repeat(m(9)):
            for number in range(5, 9):
                code.bundle(
                    ("ldst64pace", _X, _TAKEN[0], _PACKED, ZERO, _ON | _ON << 2),
                    _amp(steps, number, number, adds=False, into=0),
                )
    for number in range(5, 4 * rows + 4):
        step(number)
    code.emit("st64pace", _TAKEN[0], _PACKED, ZERO, _ON)
    around.end(code)


def _accumulating_pass(code: Builder, steps: _Steps, around: _Surroundings, *, rows: int) -> None:
    """A pass over one row, over two, or (``rows`` 3) over three and more."""
    if rows == 1:
        emit.place(code, 2)
        code.label("accumulate_1")
        code.emit("tapack", _PACKED, around.left, around.out, around.out)
    else:
        emit.place(code, 3)
        code.label(f"accumulate_{rows}")
        code.emit("add", m(10), around.out, ROW_BYTES)
        code.emit("tapack", _PACKED, around.left, m(10), around.out)
    code.emit("ld64", _PARTIAL, around.out, ZERO, 0)

    def step(number: int) -> None:
        following = number + 1
        loads_x, loads_partial = 0 <= following < 4 * rows, following < 4 * (rows - 1)
        source = _TAKEN[number % 2]
        # Behind the last partial the pointer stays, so that a step without partials can load it once more.
        partial = _ON if following < 4 * (rows - 1) - 1 else _STAY
        main: Half = ("nop",)
        if following < 0:
            main = ("ld64", _PARTIAL, around.out, ZERO, following + 4)
        elif number < 6:
            into = _PARTIAL if loads_partial else ARITHMETIC_ZEROS
            main = ("ld2x64pace", _X, into, _PACKED, ZERO, _ON | partial << 2) if loads_x else main
        elif loads_x and loads_partial:
            main = ("ld2xst64pace", a4(0), source, _PACKED, ZERO, _ON | partial << 2 | _ON << 4)
        elif loads_x:
            main = ("ldst64pace", _X, source, _PACKED, ZERO, _ON | _ON << 2)
        else:
            main = ("st64pace", source, _PACKED, ZERO, _ON)
        code.bundle(main, _amp(steps, number, rows, adds=True, into=number % 2))

    for number in range(-4, 6):
        step(number)
    if rows > 2:
        with code.repeat(m(11)):
            for number in range(6, 10):
                code.bundle(
                    ("ld2xst64pace", a4(0), _TAKEN[number % 2], _PACKED, ZERO, _ON | _ON << 2 | _ON << 4),
                    _amp(steps, number, number, adds=True, into=number % 2),
                )
    for number in range(6, 4 * rows + 4):
        step(number)
    for number in range(2):
        code.emit("st64pace", _TAKEN[number], _PACKED, ZERO, _ON)
    around.end(code)
