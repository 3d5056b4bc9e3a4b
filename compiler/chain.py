"""The stages of a build in their order, as facts: what a listing or a graph needs, and nothing that runs.

Naming a stage here imports nothing of it. ``compiler.compile`` runs them.
"""

from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChainStage:
    """One stage of the chain.

    Args:
        name: of the stage.
        module: that declares it.
        after: the stages whose results it takes.
        summary: what it decides, and where to look when it fails.
    """

    name: str
    module: str
    after: tuple[str, ...]
    summary: str


CHAIN: Final = (
    ChainStage(
        name="expansion",
        module="compiler.models.stage_expansion",
        after=(),
        summary="What each tile does: buffers, kernel calls, copies and transfers, verified. When it fails, "
        "the program breaks a rule of low programs, which the message names with table and row.",
    ),
    ChainStage(
        name="final_placement",
        module="compiler.evaluation.stage_final_placement",
        after=("expansion",),
        summary="Where everything is: tensors, linked code, exchange rows and tables. Places and schedules "
        "provisionally, sizes what the program itself needs, then places in what remains. When it fails, a "
        "tile is too full; the message says by how much and at which step.",
    ),
    ChainStage(
        name="emission",
        module="compiler.evaluation.stage_emission",
        after=("expansion", "final_placement"),
        summary="The package: exchanges scheduled at final addresses, every delivered byte followed, all "
        "tiles emitted, the file read back. When it fails on an exchange, the message names step and tile.",
    ),
    ChainStage(
        name="simulation",
        module="compiler.evaluation.stage_simulation",
        after=("expansion", "emission"),
        summary="The package run from its bytes, with random weights and inputs, and compared bit for bit "
        "with the low program. Cycles are simulated. When it fails, the message holds the device's faults.",
    ),
)
"""Every stage stands behind those whose results it takes."""
