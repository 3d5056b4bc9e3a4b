"""Code that readies a worker for conversions between halves and F143. Only ``code`` modules import this."""

from typing import Final

from compiler.isa.builder import Builder
from compiler.isa.registers import VERTEX_BASE, ZERO, Arithmetic
from compiler.target.control_registers import WorkerRegister
from compiler.target.isa_decisions import Decisions
from compiler.target.registers import EightBitFormat

_UPPER: Final = 256
"""``uget`` and ``uput`` count control registers from here."""


def ready(code: Builder, decisions: Decisions, word: int | None, scratch: Arithmetic) -> None:
    """Set format and exponent, and no exception for overflow. The exponent is a word of the frame, or zero.

    Takes ``eight_bit.SETUP`` instructions.

    ``FP_SCL`` has its field at the lowest bits; a build with another place of it is refused.
    """
    if decisions.constants["FP_SCL_SCALE"] != 0:
        raise ValueError("kernels that convert to F143 need the scale in the lowest bits of FP_SCL")
    formats = EightBitFormat.F143 << decisions.constants["FP_NFMT_ARF_FMT"]
    if word is None:
        code.emit("setzi", scratch, 0)
    else:
        code.emit("ld32", scratch, VERTEX_BASE, ZERO, word)
    code.emit("uput", int(WorkerRegister.FP_SCL) - _UPPER, scratch)
    code.emit("setzi", scratch, formats)
    code.emit("uput", int(WorkerRegister.FP_NFMT) - _UPPER, scratch)
    code.emit("uget", scratch, int(WorkerRegister.FP_CTL) - _UPPER)
    code.emit("andc", scratch, scratch, WorkerRegister.FP_CTL.field("OFLO").mask)
    code.emit("uput", int(WorkerRegister.FP_CTL) - _UPPER, scratch)
