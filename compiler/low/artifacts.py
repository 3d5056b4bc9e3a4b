"""What callers of the stages that give low programs need."""

from dataclasses import dataclass
from typing import final

from compiler.figures import Figures
from compiler.low.ir import LowProgram
from compiler.mid.ir import MidProgram
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpansionInputs:
    """Of stage ``expansion``: a whole-device program."""

    program: Artifact[MidProgram]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedProgram:
    """A low program that its verifier accepts, and figures of it."""

    program: LowProgram
    figures: Figures
