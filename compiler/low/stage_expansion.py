"""Stage ``expansion``: what each tile does, from a whole-device program; verified."""

from typing import Final

from compiler.figures import FIGURES
from compiler.low.artifacts import SYMBOLS, ExpandedProgram, ExpansionInputs
from compiler.low.codec import LOW_PROGRAM
from compiler.low.expand.program import expand
from compiler.low.verified import verified
from compiler.store.codec import Fields
from compiler.store.stage import Stage


def expanded(inputs: ExpansionInputs, _options: object) -> ExpandedProgram:
    """The low program.

    Raises:
        Unsupported: a movement or a kernel that does not exist.
        InternalError: the verifier finds faults in what was made.
    """
    return verified(expand(inputs.program.value()))


EXPANSION: Final = Stage(
    name="expansion",
    module=__name__,
    format=1,
    inputs=ExpansionInputs,
    outputs=Fields(
        of=ExpandedProgram, codecs=(("program", LOW_PROGRAM), ("symbols", SYMBOLS), ("figures", FIGURES))
    ),
    tables=("target", "instructions", "decisions"),
    function=expanded,
)
