"""Stage ``baseline_candidate``: a whole-device program from a graph, by the best choice of every product.

With a recipe, choices that it makes are taken from it: a kept recipe builds its program without search. What
else there was is kept beside the program, for whoever proposes another one or explains this one.

The fronts of each product come from a stage of their own, so that programs share them: every candidate of a
search is planned here.
"""

import functools
from typing import Final

from compiler.errors import InternalError, Measure, NumberKind, few_of
from compiler.estimate.mid import MidCost
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.figures import FIGURES, Figures
from compiler.graph.codec import StoredGraph
from compiler.mid.codec import MID_PROGRAM, program_digest
from compiler.mid.verify import verify
from compiler.planner.artifacts import (
    CONSIDERED,
    RECIPE,
    SUMMARY,
    CandidateInputs,
    Considered,
    PlannedProgram,
    Summary,
)
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import HasPlanningChoices, setting_of
from compiler.planner.fronts import FrontInputs
from compiler.planner.gemm_candidates import GemmCandidates
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.planner.stage_fronts import PRODUCT_FRONTS
from compiler.store.codec import Fields
from compiler.store.stage import Stage, StageCaller


def baseline(inputs: CandidateInputs, options: HasPlanningChoices, caller: StageCaller) -> PlannedProgram:
    """The program.

    Raises:
        Unsupported: something of the graph cannot be planned.
        DoesNotFit: no layout could hold it.
        InvalidInput: the recipe is none.
        InternalError: the verifier finds faults in what was planned.
    """
    graph = StoredGraph(structure=inputs.structure.value(), labels=inputs.labels.value()).graph
    recipe = recipe_of_json(inputs.recipe, "recipe") if inputs.recipe else Recipe()

    @functools.cache
    def fronts(asked: FrontInputs) -> GemmCandidates:
        return caller.run(PRODUCT_FRONTS, asked, options).value()

    candidate = build_candidate(graph, setting_of(options.planning), recipe, fronts)
    faults = verify(candidate.program)
    if faults:
        raise InternalError(
            f"the planned program breaks its rules: {few_of(faults)}",
            stage="baseline_candidate",
            subject=graph.name,
            next_step="report the model and the options",
        )
    return PlannedProgram(
        program=candidate.program,
        recipe=candidate.recipe,
        considered=Considered(
            alternatives=candidate.alternatives, dropped=candidate.dropped, rewrites=candidate.tried
        ),
        summary=Summary(
            cycles=int(candidate.cost.cycles),
            bytes=int(candidate.cost.bytes),
            interleaved_bytes=int(candidate.cost.interleaved_bytes),
            phases=candidate.cost.phases,
            identity=program_digest(candidate.program),
        ),
        figures=figures_of_cost(candidate.cost),
    )


def figures_of_cost(cost: MidCost) -> Figures:
    """What a program costs, the most telling first."""

    def estimated(name: str, value: int, unit: str, limit: int | None = None) -> Measure:
        return Measure(name=name, value=value, unit=unit, kind=NumberKind.ESTIMATED, limit=limit)

    return (
        estimated("a run", cost.cycles, "cycles"),
        estimated("exchange phases", cost.phases, "phases"),
        estimated("data of a tile at most", cost.bytes, "bytes", DATA_BUDGET),
        estimated("interleaved data of a tile at most", cost.interleaved_bytes, "bytes", INTERLEAVED_BUDGET),
        estimated("parameters of a tile at most", cost.resident_bytes, "bytes"),
    )


BASELINE_CANDIDATE: Final = Stage(
    name="baseline_candidate",
    module=__name__,
    format=1,
    inputs=CandidateInputs,
    outputs=Fields(
        of=PlannedProgram,
        codecs=(
            ("program", MID_PROGRAM),
            ("recipe", RECIPE),
            ("considered", CONSIDERED),
            ("summary", SUMMARY),
            ("figures", FIGURES),
        ),
    ),
    reads=("planning.tiles", "planning.rounding", "planning.replicate_inputs"),
    tables=("target", "instructions", "decisions"),
    calling=baseline,
)
