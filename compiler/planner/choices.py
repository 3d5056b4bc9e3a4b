"""Which options of a build planning reads, and what all candidates of a build have in common."""

from dataclasses import dataclass
from typing import Protocol, final

from compiler.kernels.gemm.binding import Rounding


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every candidate of a build has in common.

    Args:
        tile_count: tiles of the build.
        rounding: how sums of products become F16.
        replicate_inputs: inputs are written by the host to every tile that reads them first.
    """

    tile_count: int
    rounding: Rounding = Rounding.NEAREST
    replicate_inputs: bool = False


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
