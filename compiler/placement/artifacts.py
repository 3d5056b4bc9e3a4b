"""What callers of the stages of placement need."""

from dataclasses import dataclass
from typing import final

from compiler.figures import Figures
from compiler.low.ir import LowProgram
from compiler.placement.ir import Placement
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvisionalPlacementInputs:
    """Of stage ``provisional_placement``: a verified program."""

    program: Artifact[LowProgram]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProvisionalPlacement:
    """What stage ``provisional_placement`` gives.

    Args:
        placement: of tensors, beside the runtime alone.
        figures: how full tiles are with them.
    """

    placement: Placement
    figures: Figures
