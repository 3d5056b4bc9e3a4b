"""Stage ``build_report``: what a build gave, as data and as a page made of them.

Exchanges are those of the package: the stages that scheduled them for its emission are asked again, and the
store has their results.
"""

from typing import Final

from compiler.evaluation.scheduling import scheduled
from compiler.exchange.artifacts import exchange_of
from compiler.figures import FIGURES
from compiler.graph.codec import StoredGraph
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.report.artifacts import ReportInputs
from compiler.report.build import Built, OptionValue, Origin, Planned, build_report
from compiler.report.written import WrittenReport, written
from compiler.store.codec import BYTES, Fields
from compiler.store.stage import Stage, StageRunner


def reported(inputs: ReportInputs, options: object, caller: StageRunner) -> WrittenReport:
    """The report of a build.

    Raises:
        ScheduleInfeasible: as the emission of the package would.
    """
    exchange = scheduled(caller, inputs.program, inputs.placement, inputs.row_reservations, options)
    report = build_report(
        Built(
            model=inputs.model,
            options=tuple(
                OptionValue(name=name, value=value, origin=Origin(origin))
                for name, value, origin in inputs.options
            ),
            planned=_planned(inputs),
            ledger=() if inputs.ledger is None else inputs.ledger.value(),
            program=inputs.program.value(),
            placement=inputs.placement.value(),
            support=inputs.support.value(),
            exchange=exchange_of(exchange.demands.value(), exchange.schedules.value(), exchange.rows.value()),
            package_bytes=len(inputs.package.value()),
            simulated=None if inputs.simulated is None else inputs.simulated.value(),
        )
    )
    return written(report)


def _planned(inputs: ReportInputs) -> Planned | None:
    structure, labels, program = inputs.structure, inputs.labels, inputs.planned
    recipe, considered = inputs.recipe, inputs.considered
    if structure is None or labels is None or program is None or recipe is None or considered is None:
        return None
    return Planned(
        graph=StoredGraph(structure=structure.value(), labels=labels.value()).graph,
        program=program.value(),
        recipe=recipe.value(),
        baseline=None if inputs.baseline is None else inputs.baseline.value(),
        given=recipe_of_json(inputs.given, "recipe of the build") if inputs.given else Recipe(),
        considered=considered.value(),
    )


BUILD_REPORT: Final = Stage(
    name="build_report",
    module=__name__,
    format=1,
    inputs=ReportInputs,
    outputs=Fields(of=WrittenReport, codecs=(("data", BYTES), ("page", BYTES), ("figures", FIGURES))),
    tables=("target", "instructions", "decisions"),
    calling=reported,
)
