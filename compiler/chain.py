"""The stages of a build in their order, as facts: what a listing or a graph needs, and nothing that runs.

Naming a stage here imports nothing of it. ``compiler.compile`` runs them.
"""

from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from compiler.models.programs import Program
from compiler.models.subjects import GraphModel, Subject


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


_PLACING: Final = (
    ChainStage(
        name="kernel_objects",
        module="compiler.kernels.stage_objects",
        after=("expansion",),
        summary="The machine code of every kernel that the program calls, as object files. The only stage "
        "that generators of kernels belong to.",
    ),
    ChainStage(
        name="provisional_placement",
        module="compiler.placement.stage_provisional",
        after=("expansion",),
        summary="Where tensors would be if a tile held nothing but them and the runtime. Decides which "
        "exchange schedules and loops the program needs. When it fails, tensors alone are too large for a "
        "tile; the message says by how much and at which step.",
    ),
    ChainStage(
        name="support_sizing",
        module="compiler.evaluation.stage_support_sizing",
        after=("expansion", "provisional_placement", "kernel_objects"),
        summary="What the program itself takes of each tile: linked code, exchange rows, tables, tile and "
        "host programs, sized from what their emitters write for the provisional placement. When it fails, "
        "an exchange cannot be scheduled or the code of a tile is too large.",
    ),
    ChainStage(
        name="final_placement",
        module="compiler.evaluation.stage_final_placement",
        after=("expansion", "support_sizing"),
        summary="Where tensors are, beside everything else that a tile holds. When it fails, a tile is too "
        "full; the message says by how much and at which step.",
    ),
)
_EMITTING: Final = ChainStage(
    name="emission",
    module="compiler.evaluation.stage_emission",
    after=("expansion", "support_sizing", "final_placement"),
    summary="The package: exchanges scheduled at final addresses, every delivered byte followed, all "
    "tiles emitted, the file read back. When it fails on an exchange, the message names step and tile.",
)


def _reporting(*after: str) -> ChainStage:
    return ChainStage(
        name="build_report",
        module="compiler.report.stage_report",
        after=after,
        summary="What the other stages gave, to look at: where cycles go, exchanges, memory of tiles, the "
        "search, and where options come from, as data and as a page. It decides nothing.",
    )


PROGRAM_CHAIN: Final = (
    ChainStage(
        name="expansion",
        module="compiler.models.stage_program",
        after=(),
        summary="What each tile does: buffers, kernel calls, copies and transfers, verified. When it fails, "
        "the program breaks a rule of low programs, which the message names with table and row.",
    ),
    *_PLACING,
    _EMITTING,
    ChainStage(
        name="simulation",
        module="compiler.evaluation.stage_simulation",
        after=("expansion", "emission"),
        summary="The package run from its bytes, with random weights and inputs, and compared bit for bit "
        "with the low program. Cycles are simulated. When it fails, the message holds the device's faults.",
    ),
    _reporting("expansion", "support_sizing", "final_placement", "emission", "simulation"),
)
"""Of a hand-written program. Every stage stands behind those whose results it takes."""

MODEL_CHAIN: Final = (
    ChainStage(
        name="model_graph",
        module="compiler.models.stage_graph",
        after=(),
        summary="The graph of the model. When it fails, the model is not well formed; the message names "
        "nodes and lines.",
    ),
    ChainStage(
        name="baseline_candidate",
        module="compiler.planner.stage_baseline",
        after=("model_graph",),
        summary="Which algorithm and layout every node has, by estimates: the whole-device program and its "
        "recipe. When it fails, the message names the nodes that cannot be planned, or the bound that the "
        "model exceeds.",
    ),
    ChainStage(
        name="proposal_rounds",
        module="compiler.evaluation.stage_proposal_rounds",
        after=("model_graph", "baseline_candidate"),
        summary="The search: recipes around the best program so far, judged by schedules at final addresses. "
        "Its ledger says what became of every candidate. When it fails, the baseline cannot be placed or "
        "scheduled; the message says where.",
    ),
    ChainStage(
        name="expansion",
        module="compiler.low.stage_expansion",
        after=("proposal_rounds",),
        summary="What each tile does: buffers, kernel calls, copies and transfers, verified. When it fails, "
        "a layout has no movement or no kernel, which the message names with its node.",
    ),
    *_PLACING,
    replace(_EMITTING, after=("model_graph", *_EMITTING.after)),
    ChainStage(
        name="simulation",
        module="compiler.evaluation.stage_model_simulation",
        after=("model_graph", "emission"),
        summary="The package run from its bytes, with random weights and inputs, and compared with the "
        "reference of the graph. Cycles are simulated. When it fails, the message holds the device's faults.",
    ),
    _reporting(
        "model_graph",
        "baseline_candidate",
        "proposal_rounds",
        "expansion",
        "support_sizing",
        "final_placement",
        "emission",
        "simulation",
    ),
)
"""Of a model. Every stage stands behind those whose results it takes."""


def chain_of(subject: Subject) -> tuple[ChainStage, ...]:
    """The stages of a build."""
    match subject:
        case GraphModel():
            return MODEL_CHAIN
        case Program():
            return PROGRAM_CHAIN
        case _:
            assert_never(subject)


def onwards(chain: tuple[ChainStage, ...], name: str) -> tuple[str, ...]:
    """A stage of a chain and every stage that stands behind it, by name and in order."""
    found: list[str] = []
    for stage in chain:
        if stage.name == name or any(earlier in found for earlier in stage.after):
            found.append(stage.name)
    return tuple(found)
