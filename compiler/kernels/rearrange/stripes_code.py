"""The supervisor of kernels that launch their workers for each stripe.

Registers of the loops: $m2 pointer of the row-major side, $m3 of the panels, $m4 matrices that are left, $m5
coordinates along that are left, $m6 those of a stripe, $m7 bytes of one on the row-major side, $m8 bytes of a
stripe of the panels, $m9 those that this stripe holds, $m0 a scratch register, $m1 for the kernel's own.
"""

from collections.abc import Callable
from typing import Final

from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.registers import STACK_POINTER, m
from compiler.kernels import emit

ROWS_AT: Final = m(2)
PANELS_AT: Final = m(3)
MATRICES: Final = m(4)
LEFT: Final = m(5)
STRIPE: Final = m(6)
ALONG_BYTES: Final = m(7)
STRIPE_BYTES: Final = m(8)
HELD: Final = m(9)


def launch_stripes(
    code: Builder, *, along: int, matrix: int, matrix_bytes: int, store: Callable[[], None]
) -> None:
    """Launch ``worker`` for all stripes of all matrices.

    Args:
        code: at the end of the set-up; all registers above but LEFT and HELD have their values.
        along: word of the frame with the coordinates along of a matrix.
        matrix: word with the pointer of the matrix of the row-major side.
        matrix_bytes: word with the bytes from matrix to matrix there.
        store: puts what the workers need into the frame.
    """
    scratch = m(0)
    code.label("matrix")
    code.emit("ld32", LEFT, STACK_POINTER, along)
    emit.store(code, ROWS_AT, matrix)
    code.label("stripe")
    code.emit("min", HELD, LEFT, STRIPE)
    store()
    code.emit("setzi", scratch, Symbol("worker"))
    code.emit("runall", scratch, STACK_POINTER, 0)
    code.emit("sync", emit.LOCAL)
    code.emit("mul", scratch, HELD, ALONG_BYTES)
    code.emit("add", ROWS_AT, ROWS_AT, scratch)
    code.emit("add", PANELS_AT, PANELS_AT, STRIPE_BYTES)
    code.emit("sub", LEFT, LEFT, HELD)
    code.emit("brnz", LEFT, Symbol("stripe"))
    code.emit("ld32", scratch, STACK_POINTER, matrix_bytes)
    code.emit("ld32", ROWS_AT, STACK_POINTER, matrix)
    code.emit("add", ROWS_AT, ROWS_AT, scratch)
    code.emit("add", MATRICES, MATRICES, -1)
    code.emit("brnz", MATRICES, Symbol("matrix"))
