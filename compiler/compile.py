"""Building a model: its stages in order, each through the store.

``build`` is the whole of it. ``run_stage`` is one step of it, for an orchestrator that decides itself what to
run; both give the same results, since neither does anything else. The search of a build and the evaluation of
a candidate are stages, in ``evaluation.stage_proposal_rounds``. ``looked_up`` is a build that runs nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from math import prod
from typing import Any, Final, TypeAlias, assert_never, final

from compiler.chain import chain_of
from compiler.config import BuildOptions
from compiler.errors import Measure, NumberKind
from compiler.evaluation.artifacts import (
    HOST_FILES,
    EmissionInputs,
    FinalPlacementInputs,
    HostShapes,
    ModelSimulationInputs,
    Simulated,
    SimulationInputs,
    SupportSizingInputs,
    host_shapes,
)
from compiler.evaluation.ledger import LEDGER
from compiler.evaluation.stage_emission import EMISSION
from compiler.evaluation.stage_final_placement import FINAL_PLACEMENT
from compiler.evaluation.stage_model_simulation import MODEL_SIMULATION
from compiler.evaluation.stage_proposal_rounds import PROPOSAL_ROUNDS
from compiler.evaluation.stage_simulation import SIMULATION
from compiler.evaluation.stage_support_sizing import SUPPORT_SIZING
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.figures import FIGURES, Figures, counted
from compiler.graph.codec import LABELS, STRUCTURE, StoredGraph
from compiler.graph.flops import graph_flops
from compiler.graph.ir import Graph
from compiler.kernels.artifacts import OBJECTS, KernelObjectsInputs
from compiler.kernels.stage_objects import KERNEL_OBJECTS
from compiler.low.artifacts import SYMBOLS, ExpansionInputs
from compiler.low.codec import LOW_PROGRAM
from compiler.low.stage_expansion import EXPANSION
from compiler.mid.codec import MID_PROGRAM
from compiler.models.artifacts import ModelGraphInputs
from compiler.models.programs import Program
from compiler.models.skeleton import SkeletonOptions
from compiler.models.stage_graph import MODEL_GRAPH
from compiler.models.stage_program import WRITTEN_PROGRAM
from compiler.models.subjects import GraphModel, Subject
from compiler.package.artifacts import IMAGE, SUPPORT
from compiler.placement.artifacts import ProvisionalPlacementInputs
from compiler.placement.codec import PLACEMENT
from compiler.placement.stage_provisional import PROVISIONAL_PLACEMENT
from compiler.planner.artifacts import CONSIDERED, RECIPE, CandidateInputs
from compiler.planner.stage_baseline import BASELINE_CANDIDATE
from compiler.report.artifacts import ReportInputs
from compiler.report.build import option_values
from compiler.report.stage_report import BUILD_REPORT
from compiler.store.codec import BYTES
from compiler.store.result import StageResult
from compiler.store.stage import AnyStage
from compiler.store.store import LookedUp, Store

Results: TypeAlias = Mapping[str, StageResult[Any]]
"""Results of stages by name."""


_SHARED_STAGES: Final[tuple[AnyStage, ...]] = (
    PROVISIONAL_PLACEMENT,
    KERNEL_OBJECTS,
    SUPPORT_SIZING,
    FINAL_PLACEMENT,
    EMISSION,
    BUILD_REPORT,
)
"""From a low program to its package, whoever made it; and the report."""


def stage_of(name: str, subject: Subject) -> AnyStage:
    """The stage of a subject's chain with that name.

    Raises:
        KeyError: its chain has none.
    """
    own: tuple[AnyStage, ...]
    match subject:
        case GraphModel():
            own = (MODEL_GRAPH, BASELINE_CANDIDATE, PROPOSAL_ROUNDS, EXPANSION, MODEL_SIMULATION)
        case Program():
            own = (WRITTEN_PROGRAM, SIMULATION)
        case _:
            assert_never(subject)
    return {stage.name: stage for stage in (*own, *_SHARED_STAGES)}[name]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Request:
    """What a stage of the chain is asked for."""

    stage: AnyStage
    inputs: object


def build(
    store: Store,
    subject: Subject,
    options: BuildOptions,
    *,
    recipe: str = "",
    report: Callable[[str, StageResult[Any]], None] | None = None,
) -> Results:
    """Build a model or a program.

    Args:
        store: where results are looked up and kept.
        subject: what is built.
        options: how.
        recipe: of a model, choices that are given, as JSON.
        report: is told the name and result of each stage when it is there.

    Raises:
        TilewrightError: a stage failed; those behind it do not run.
    """
    done: dict[str, StageResult[Any]] = {}
    for stage in chain_of(subject):
        done[stage.name] = run_stage(stage.name, store, subject, options, done, recipe=recipe)
        if report is not None:
            report(stage.name, done[stage.name])
    return done


def looked_up(
    store: Store, subject: Subject, options: BuildOptions, *, recipe: str = ""
) -> Mapping[str, StageResult[Any] | LookedUp]:
    """What ``build`` would reuse, in order, up to the first stage that failed or would run.

    Args:
        store: where results are looked up; nothing is computed or written.
        subject: what would be built.
        options: how.
        recipe: of a model, choices that are given, as JSON.
    """
    found: dict[str, StageResult[Any] | LookedUp] = {}
    done: dict[str, StageResult[Any]] = {}
    for stage in chain_of(subject):
        request = request_of(stage.name, subject, options, done, recipe=recipe)
        known = found[stage.name] = store.look_up(request.stage, request.inputs, options)
        if isinstance(known, LookedUp) or known.failure is not None:
            break
        done[stage.name] = known
    return found


def run_stage(
    name: str,
    store: Store,
    subject: Subject,
    options: BuildOptions,
    done: Results,
    *,
    recipe: str = "",
) -> StageResult[Any]:
    """Run one stage of the chain.

    Args:
        name: which.
        store: where results are looked up and kept.
        subject: what is built.
        options: how.
        done: results of the stages that it stands behind.
        recipe: of a model, choices that are given, as JSON.

    Raises:
        TilewrightError: the stage failed, now or when the reused result was computed.
        KeyError: there is no such stage, or a result is missing.
    """
    request = request_of(name, subject, options, done, recipe=recipe)
    return store.run(request.stage, request.inputs, options, label=subject.name)


def request_of(
    name: str, subject: Subject, options: BuildOptions, done: Results, *, recipe: str = ""
) -> Request:
    """What one stage of the chain is asked for.

    Args:
        name: which.
        subject: what is built.
        options: how.
        done: results of the stages that it stands behind.
        recipe: of a model, choices that are given, as JSON.

    Raises:
        KeyError: there is no such stage, or a result is missing.
    """
    inputs: object
    match name, subject:
        case "model_graph", GraphModel():
            inputs = ModelGraphInputs(
                name=subject.name,
                text=subject.text,
                tiles=None if subject.text else options.planning.tiles,
                batch=subject.batch,
                precision=subject.precision,
            )
        case "baseline_candidate" | "proposal_rounds", GraphModel():
            inputs = CandidateInputs(
                structure=done["model_graph"].part("structure", STRUCTURE),
                labels=done["model_graph"].part("labels", LABELS),
                recipe=recipe,
            )
        case "expansion", GraphModel():
            inputs = ExpansionInputs(program=done["proposal_rounds"].part("program", MID_PROGRAM))
        case "expansion", Program(rows=rows, panels=panels):
            inputs = SkeletonOptions(rows=rows, panels=panels)
        case "provisional_placement", _:
            inputs = ProvisionalPlacementInputs(program=done["expansion"].part("program", LOW_PROGRAM))
        case "kernel_objects", _:
            inputs = KernelObjectsInputs(symbols=done["expansion"].part("symbols", SYMBOLS))
        case "support_sizing", _:
            inputs = SupportSizingInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                placement=done["provisional_placement"].part("placement", PLACEMENT),
                symbols=done["expansion"].part("symbols", SYMBOLS),
                objects=done["kernel_objects"].part("objects", OBJECTS),
            )
        case "final_placement", _:
            inputs = FinalPlacementInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                support=done["support_sizing"].part("support", SUPPORT),
            )
        case "emission", _:
            sized = done["support_sizing"]
            inputs = EmissionInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                placement=done["final_placement"].part("placement", PLACEMENT),
                code=sized.part("code", IMAGE),
                support=sized.part("support", SUPPORT),
                row_reservations=sized.part("row_reservations", ROW_RESERVATIONS),
                shapes=_shapes(subject, done),
            )
        case "simulation", GraphModel():
            inputs = ModelSimulationInputs(
                structure=done["model_graph"].part("structure", STRUCTURE),
                labels=done["model_graph"].part("labels", LABELS),
                package=done["emission"].part("package", BYTES),
                host_files=done["emission"].part("host_files", HOST_FILES),
            )
        case "simulation", Program():
            inputs = SimulationInputs(
                program=done["expansion"].part("program", LOW_PROGRAM),
                package=done["emission"].part("package", BYTES),
                host_files=done["emission"].part("host_files", HOST_FILES),
            )
        case "build_report", _:
            inputs = _report_inputs(subject, options, done, recipe)
        case _:
            raise KeyError(name)
    return Request(stage=stage_of(name, subject), inputs=inputs)


def _report_inputs(subject: Subject, options: BuildOptions, done: Results, recipe: str) -> ReportInputs:
    graph, baseline = done.get("model_graph"), done.get("baseline_candidate")
    search, simulation = done.get("proposal_rounds"), done.get("simulation")
    sized, emitted = done["support_sizing"], done["emission"]
    return ReportInputs(
        model=subject.name,
        options=tuple((value.name, value.value, value.origin.value) for value in option_values(options)),
        plotting=version("bokeh"),
        given=recipe,
        structure=None if graph is None else graph.part("structure", STRUCTURE),
        labels=None if graph is None else graph.part("labels", LABELS),
        planned=None if search is None else search.part("program", MID_PROGRAM),
        recipe=None if search is None else search.part("recipe", RECIPE),
        considered=None if search is None else search.part("considered", CONSIDERED),
        baseline=None if baseline is None else baseline.part("recipe", RECIPE),
        ledger=None if search is None else search.part("ledger", LEDGER),
        program=done["expansion"].part("program", LOW_PROGRAM),
        placement=done["final_placement"].part("placement", PLACEMENT),
        support=sized.part("support", SUPPORT),
        row_reservations=sized.part("row_reservations", ROW_RESERVATIONS),
        package=emitted.part("package", BYTES),
        simulated=simulation,
    )


def figures_of(name: str, result: StageResult[Any]) -> Figures:
    """The figures of a stage's result, the most telling first."""
    match name:
        case "model_graph":
            graph = result.part("structure", STRUCTURE).value()
            return (
                counted("parameters", _parameter_count(graph), "elements"),
                counted("operations", graph_flops(graph), "FLOP"),
            )
        case "simulation":
            simulated: Simulated = result.value()
            cycles = tuple(
                Measure(name=f"run {number}", value=int(count), unit="cycles", kind=NumberKind.SIMULATED)
                for number, count in enumerate(simulated.cycles)
            )
            return cycles + tuple(
                Measure(
                    name=f"1 - cosine of {output} at most",
                    value=round(1e9 * float((1.0 - values[:, 1]).max())),
                    unit="billionths",
                    kind=NumberKind.SIMULATED,
                )
                for output, values in sorted(simulated.accuracy.items())
            )
        case _:
            return result.part("figures", FIGURES).value()


def _shapes(subject: Subject, done: Results) -> HostShapes:
    """Of a model's tensors as its graph has them; a hand-written program has no others than its own."""
    if not isinstance(subject, GraphModel):
        return ()
    graph = done["model_graph"].part("structure", STRUCTURE).value()
    labels = done["model_graph"].part("labels", LABELS).value()
    return host_shapes(StoredGraph(structure=graph, labels=labels).graph)


def _parameter_count(graph: Graph) -> int:
    return sum(prod(graph.block.values[value].type.shape) for value in graph.parameters)
