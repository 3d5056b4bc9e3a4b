"""What callers of the stage of this package need."""

from dataclasses import dataclass
from typing import final

from compiler.figures import Figures
from compiler.low.ir import LowProgram


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedProgram:
    """A low program that its verifier accepts, and figures of it."""

    program: LowProgram
    figures: Figures
