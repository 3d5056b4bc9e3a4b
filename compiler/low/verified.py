"""The last step of whatever makes a low program: it is verified, and counted."""

import numpy as np

from compiler.errors import InternalError, few_of
from compiler.figures import Figures, counted
from compiler.low.artifacts import ExpandedProgram
from compiler.low.ir import LowProgram, Role
from compiler.low.verify import verify


def verified(program: LowProgram) -> ExpandedProgram:
    """A program as the output of a stage.

    Raises:
        InternalError: its verifier finds faults.
    """
    faults = verify(program)
    if faults:
        raise InternalError(
            f"the program breaks its rules: {few_of(faults)}",
            stage="expansion",
            subject="low program",
            nodes=program.nodes,
            next_step="report the model and the options",
        )
    symbols = tuple(sorted({str(binding.symbol) for binding in program.bindings}))
    return ExpandedProgram(program=program, symbols=symbols, figures=_figures(program))


def _figures(program: LowProgram) -> Figures:
    buffers = program.buffers
    resident = np.bincount(
        buffers.tile, weights=buffers.byte_count * (buffers.role == Role.PARAMETER), minlength=1
    )
    return (
        counted("tiles with buffers", len(np.unique(buffers.tile)), "tiles", limit=program.tile_count),
        counted("kernel calls and copies", len(program.calls.step) + len(program.copies.step), "calls"),
        counted("transfers", len(program.transfers.step), "transfers"),
        counted("most parameters of a tile", int(resident.max()), "bytes"),
    )
