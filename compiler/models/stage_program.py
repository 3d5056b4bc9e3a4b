"""Stage ``expansion`` of hand-written programs: the low program is written down, and verified.

It stands where models have a graph, a plan and its expansion.
"""

from typing import Final

from compiler.figures import FIGURES
from compiler.low.artifacts import SYMBOLS, ExpandedProgram
from compiler.low.codec import LOW_PROGRAM
from compiler.low.verified import verified
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.store.codec import Fields
from compiler.store.stage import Stage


def written(inputs: SkeletonOptions, _options: object) -> ExpandedProgram:
    """The program.

    Raises:
        InternalError: its verifier finds faults.
    """
    return verified(skeleton(inputs))


WRITTEN_PROGRAM: Final = Stage(
    name="expansion",
    module=__name__,
    format=1,
    inputs=SkeletonOptions,
    outputs=Fields(
        of=ExpandedProgram, codecs=(("program", LOW_PROGRAM), ("symbols", SYMBOLS), ("figures", FIGURES))
    ),
    tables=("target", "instructions", "decisions"),
    function=written,
)
