"""What callers of the stages of placement need."""

from dataclasses import dataclass
from typing import final

from compiler.low.ir import LowProgram
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvisionalPlacementInputs:
    """Of stage ``provisional_placement``: a verified program."""

    program: Artifact[LowProgram]
