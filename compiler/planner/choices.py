"""Which options of a build planning reads."""

from typing import Protocol

from compiler.kernels.gemm.binding import Rounding
from compiler.planner.candidate import Setting


class PlanningChoices(Protocol):
    """What is read of the options of planning."""

    @property
    def tiles(self) -> int:
        """Tiles of the build."""
        ...

    @property
    def rounding(self) -> str:
        """How sums of products become F16: nearest or stochastic."""
        ...

    @property
    def replicate_inputs(self) -> bool:
        """Whether the host writes inputs to every tile that reads them."""
        ...


class HasPlanningChoices(Protocol):
    """What is read of the options of a build."""

    @property
    def planning(self) -> PlanningChoices:
        """How programs are planned."""
        ...


def setting_of(choices: PlanningChoices) -> Setting:
    """What all candidates of a build have in common."""
    return Setting(
        tile_count=choices.tiles,
        rounding=Rounding(choices.rounding),
        replicate_inputs=choices.replicate_inputs,
    )
