"""What the code generators share: the frame of a call, the launch of workers, the share of a worker.

Only ``code`` modules of families import this.

A kernel is one section of code: the supervisor's part under the kernel's symbol, then the workers'. The
supervisor keeps what workers need in a frame on its stack and launches all six with the frame as vertex base,
so that worker code reads word k of it by ``ld32 $m, $vertex_base, k``.
"""

from typing import Final

from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.program import SectionKind
from compiler.isa.registers import LINK, STACK_POINTER, VERTEX_BASE, ZERO, Arithmetic, Main, m
from compiler.kernels.symbols import SymbolKey
from compiler.target.control_registers import WorkerRegister
from compiler.target.instructions import Mode
from compiler.target.registers import SyncZone
from compiler.target.runtime_layout import FIRST_ARGUMENT, FRAME_ALIGNMENT

LOCAL: Final = int(SyncZone.LOCAL)


def argument(index: int) -> Main:
    """The register of an argument."""
    return m(FIRST_ARGUMENT + index)


def begin(key: SymbolKey) -> Builder:
    """A builder that stands at the kernel's entry, in supervisor code."""
    code = Builder(str(key))
    code.section(f".text.{key}", SectionKind.CODE, Mode.SUPERVISOR)
    code.align(8)
    code.label(str(key), is_global=True, is_function=True)
    return code


def begin_workers(code: Builder) -> None:
    """Continue the kernel's section with worker code."""
    code.section(f".text.{code.name}", SectionKind.CODE, Mode.WORKER)
    code.align(8)


def frame_bytes(words: int) -> int:
    """Bytes of a frame of so many words."""
    return -(-4 * words // FRAME_ALIGNMENT) * FRAME_ALIGNMENT


def open_frame(code: Builder, words: int) -> None:
    """Reserve a frame."""
    code.emit("add", STACK_POINTER, STACK_POINTER, -frame_bytes(words))


def store(code: Builder, register: Main, word: int) -> None:
    """Put a register of the supervisor into the frame."""
    code.emit("st32", register, STACK_POINTER, word)


def close_frame(code: Builder, words: int) -> None:
    """Release the frame and return."""
    code.emit("add", STACK_POINTER, STACK_POINTER, frame_bytes(words))
    code.emit("br", LINK)


def load(code: Builder, register: Main, word: int) -> None:
    """Get a word of the frame into a register of a worker."""
    code.emit("ld32", register, VERTEX_BASE, ZERO, word)


def worker_number(code: Builder, register: Main) -> None:
    """The worker's number, 0 to 5. Two instructions."""
    code.emit("get", register, int(WorkerRegister.WSR))
    code.emit("and", register, register, WorkerRegister.WSR.field("CTXTID_M1").mask)


def call_frame(code: Builder, count: int, words: int) -> None:
    """Open a frame of ``words`` words and put ``count`` arguments into the first of them, in order."""
    open_frame(code, words)
    for index in range(count):
        store(code, argument(index), index)


def launch_and_return(code: Builder, entry: Symbol, words: int) -> None:
    """Run all workers from an entry with the frame, wait, and return."""
    code.emit("setzi", m(0), entry)
    code.emit("runall", m(0), STACK_POINTER, 0)
    code.emit("sync", LOCAL)
    close_frame(code, words)


def share_of(code: Builder, worker: Main, quotient: Main, remainder: Main) -> None:
    """Quotient := items of this worker, given items // 6 and items % 6. Two instructions.

    Items go to workers in turn; ``remainder`` is overwritten.
    """
    code.emit("cmpult", remainder, worker, remainder)
    code.emit("add", quotient, quotient, remainder)


def store_half(code: Builder, half: Arithmetic, scratch: Arithmetic, base: Main, offset: Main) -> None:
    """Put the low half of ``half`` at base + offset, a word boundary; the other half there stays.

    Four instructions; both registers are overwritten.
    """
    code.emit("ld32", scratch, base, offset, 0)
    code.emit("sort4x16hi", scratch, scratch, scratch)
    code.emit("sort4x16lo", half, half, scratch)
    code.emit("st32", half, base, offset, 0)


def worker_lanes(code: Builder, column_lanes: int, row_lanes: int) -> None:
    """m4 := column lanes, m3 := row lanes, m0 := lane of rows, m11 := lane of columns. Nine instructions.

    The lane of rows is worker // column lanes; 6 * 11 / 64 is just above 1.
    """
    worker_number(code, m(11))
    load(code, m(4), column_lanes)
    load(code, m(3), row_lanes)
    code.emit("mul", m(0), m(11), m(3))
    code.emit("mul", m(0), m(0), 11)
    code.emit("shr", m(0), m(0), 6)
    code.emit("mul", m(1), m(0), m(4))
    code.emit("sub", m(11), m(11), m(1))


def place(code: Builder, singles: int) -> None:
    """Pad so that bundles can follow behind so many single instructions."""
    code.align(8)
    if singles % 2:
        code.emit("nop")
