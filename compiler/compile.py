"""Building a model: its stages in order, each through the store.

``build`` is the whole of it. ``run_stage`` is one step of it, for an orchestrator that decides itself what to
run; both give the same results, since neither does anything else.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from compiler.chain import CHAIN
from compiler.config import BuildOptions
from compiler.errors import Measure, NumberKind
from compiler.evaluation.artifacts import (
    HOST_FILES,
    EmissionInputs,
    FinalPlacementInputs,
    SimulationInputs,
)
from compiler.evaluation.stage_emission import EMISSION
from compiler.evaluation.stage_final_placement import FINAL_PLACEMENT
from compiler.evaluation.stage_simulation import SIMULATION
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.figures import FIGURES, Figures
from compiler.low.codec import LOW_PROGRAM
from compiler.models.programs import Program
from compiler.models.skeleton import SkeletonOptions
from compiler.models.stage_expansion import EXPANSION
from compiler.package.artifacts import IMAGE, SUPPORT
from compiler.placement.codec import PLACEMENT
from compiler.store.codec import BYTES
from compiler.store.result import StageResult
from compiler.store.stage import AnyStage
from compiler.store.store import Store

Results: TypeAlias = Mapping[str, StageResult[Any]]
"""Results of stages by name."""

STAGES: Final[Mapping[str, AnyStage]] = {
    stage.name: stage for stage in (EXPANSION, FINAL_PLACEMENT, EMISSION, SIMULATION)
}
"""The stages of ``chain.CHAIN`` by name."""


def build(
    store: Store,
    model: Program,
    options: BuildOptions,
    *,
    report: Callable[[str, StageResult[Any]], None] | None = None,
) -> Results:
    """Build a model.

    Args:
        store: where results are looked up and kept.
        model: what is built.
        options: how.
        report: is told the name and result of each stage when it is there.

    Raises:
        TilewrightError: a stage failed; those behind it do not run.
    """
    done: dict[str, StageResult[Any]] = {}
    for stage in CHAIN:
        done[stage.name] = run_stage(stage.name, store, model, options, done)
        if report is not None:
            report(stage.name, done[stage.name])
    return done


def run_stage(
    name: str, store: Store, model: Program, options: BuildOptions, done: Results
) -> StageResult[Any]:
    """Run one stage of the chain.

    Args:
        name: which.
        store: where results are looked up and kept.
        model: what is built.
        options: how.
        done: results of the stages that it stands behind.

    Raises:
        TilewrightError: the stage failed, now or when the reused result was computed.
        KeyError: there is no such stage, or a result is missing.
    """
    label = model.name
    match name:
        case "expansion":
            skeleton = SkeletonOptions(rows=model.rows, panels=model.panels)
            return store.run(EXPANSION, skeleton, options, label=label)
        case "final_placement":
            placing = FinalPlacementInputs(program=done["expansion"].part("program", LOW_PROGRAM))
            return store.run(FINAL_PLACEMENT, placing, options, label=label)
        case "emission":
            placed = done["final_placement"]
            emitting = EmissionInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                placement=placed.part("placement", PLACEMENT),
                code=placed.part("code", IMAGE),
                support=placed.part("support", SUPPORT),
                row_reservations=placed.part("row_reservations", ROW_RESERVATIONS),
            )
            return store.run(EMISSION, emitting, options, label=label)
        case "simulation":
            simulating = SimulationInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                package=done["emission"].part("package", BYTES),
                host_files=done["emission"].part("host_files", HOST_FILES),
            )
            return store.run(SIMULATION, simulating, options, label=label)
        case _:
            raise KeyError(name)


def figures_of(name: str, result: StageResult[Any]) -> Figures:
    """The figures of a stage's result, the most telling first."""
    if name != "simulation":
        return result.part("figures", FIGURES).value()
    cycles = [int(count) for count in result.value().cycles]
    return tuple(
        Measure(name=f"run {number}", value=count, unit="cycles", kind=NumberKind.SIMULATED)
        for number, count in enumerate(cycles, start=1)
    )
