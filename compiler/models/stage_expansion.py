"""Stage ``expansion``: a low program, verified.

All there are so far are written by hand; what stands for the expansion of a planned program is the writing of
it.
"""

from typing import Final

import numpy as np

from compiler.errors import InternalError
from compiler.figures import FIGURES, Figures, counted
from compiler.low.codec import LOW_PROGRAM
from compiler.low.ir import LowProgram, Role
from compiler.low.verify import verify
from compiler.models.artifacts import ExpandedProgram
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.store.codec import Fields
from compiler.store.stage import Stage

_SHOWN: Final = 3


def expanded(inputs: SkeletonOptions, _options: object) -> ExpandedProgram:
    """The program.

    Raises:
        InternalError: its verifier finds faults.
    """
    program = skeleton(inputs)
    faults = verify(program)
    if faults:
        shown = "; ".join(str(fault) for fault in faults[:_SHOWN])
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        raise InternalError(
            f"the program breaks its rules: {shown}{more}",
            stage="expansion",
            subject="low program",
            nodes=program.nodes,
            next_step="report the model and the options",
        )
    return ExpandedProgram(program=program, figures=_figures(program))


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


EXPANSION: Final = Stage(
    name="expansion",
    module=__name__,
    format=1,
    inputs=SkeletonOptions,
    outputs=Fields(of=ExpandedProgram, codecs=(("program", LOW_PROGRAM), ("figures", FIGURES))),
    tables=("target", "instructions", "decisions"),
    function=expanded,
)
