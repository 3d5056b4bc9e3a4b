"""Stage ``proposal_rounds``: the search for a better program, with the baseline as first incumbent.

Both routines of a build are here. ``searched`` is the loop::

    evaluate the baseline; the build fails if it is not feasible
    while attempts remain:
        propose recipes around the incumbent
        build their programs and estimate them; drop the slower, the repeated and those that cannot be built
        sort by estimate, and evaluate one after another until one is better than the incumbent
        none: stop; else it is the incumbent

``_evaluated`` is one candidate, from its whole-device program to scheduled cycles at final addresses: expand,
place, schedule, size, place and schedule finally, each a stage of its own with its result in the store
(EC-01). What counts is scheduled cycles, and a candidate has to be better by ``MARGIN`` (DS-12). Candidates
are evaluated in the order of the shortlist, so that the first improvement in that order is taken whoever is
faster (DS-16). A stage of a challenger that fails is its fate, and touches nothing of the incumbent (DS-19).

Every evaluation is in the store when it is done, so that a search that was killed goes on where it was. The
record of this stage lists what it consumed; when a stage behind it changes, a reuse derives those results
again and the search is repeated from the first that differs.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final, Protocol, final

from compiler.errors import DoesNotFit, Measure, NumberKind, ScheduleInfeasible, Unsupported
from compiler.estimate.low import of_horizons, timeline
from compiler.evaluation.artifacts import FinalPlacementInputs
from compiler.evaluation.faults import InjectChoices, falsified_cycles
from compiler.evaluation.ledger import LEDGER, Entry, Fate, Ledger
from compiler.evaluation.scheduling import scheduled
from compiler.evaluation.stage_final_placement import FINAL_PLACEMENT
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.figures import FIGURES, Figures, counted
from compiler.graph.codec import StoredGraph
from compiler.graph.ir import Graph
from compiler.low.artifacts import ExpansionInputs
from compiler.low.codec import LOW_PROGRAM
from compiler.low.stage_expansion import EXPANSION
from compiler.mid.codec import MID_PROGRAM, program_digest
from compiler.mid.ir import MidProgram
from compiler.package.artifacts import PackageChoices
from compiler.placement.codec import PLACEMENT
from compiler.planner.artifacts import RECIPE, CandidateInputs, PlannedProgram
from compiler.planner.candidate import Candidate, Setting, build_candidate
from compiler.planner.choices import HasPlanningChoices, PlanningChoices, setting_of
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.propose import propose
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.planner.stage_baseline import BASELINE_CANDIDATE
from compiler.store.codec import Fields
from compiler.store.digest import Digest
from compiler.store.stage import Outcome, Stage, StageCaller
from compiler.target.units import Cycles

MARGIN: Final = 0.002
"""Part of the incumbent's cycles by which a challenger has to be better: less is not worth a change."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchOutcome:
    """What stage ``proposal_rounds`` gives: the accepted program.

    Args:
        program: the program.
        recipe: all choices that lead to it.
        ledger: every candidate and its fate.
        figures: of the search.
    """

    program: MidProgram
    recipe: Recipe
    ledger: Ledger
    figures: Figures


class SearchChoices(PlanningChoices, Protocol):
    """What is read of the options of planning."""

    @property
    def attempts(self) -> int:
        """Challengers that are evaluated at most."""
        ...


class HasSearchChoices(HasPlanningChoices, Protocol):
    """What is read of the options of a build."""

    @property
    def planning(self) -> SearchChoices:
        """How programs are planned and searched."""
        ...

    @property
    def package(self) -> PackageChoices:
        """What kind of package is built: its programs are part of what has to fit."""
        ...

    @property
    def inject(self) -> InjectChoices:
        """What is made wrong on purpose."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Incumbent:
    """The best program so far, and what it takes."""

    candidate: Candidate
    planned: Outcome[PlannedProgram]
    cycles: Cycles


def searched(inputs: CandidateInputs, options: HasSearchChoices, caller: StageCaller) -> SearchOutcome:
    """The accepted program.

    Raises:
        TilewrightError: the baseline cannot be planned, placed or scheduled.
    """
    graph = StoredGraph(structure=inputs.structure.value(), labels=inputs.labels.value()).graph
    setting = setting_of(options.planning)
    given = recipe_of_json(inputs.recipe, "recipe") if inputs.recipe else Recipe()
    planned = caller.run(
        BASELINE_CANDIDATE,
        CandidateInputs(structure=inputs.structure, labels=inputs.labels, recipe=inputs.recipe),
        options,
    )
    baseline = build_candidate(graph, setting, given)
    incumbent = _Incumbent(candidate=baseline, planned=planned, cycles=_evaluated(planned, options, caller))
    ledger = [
        Entry(
            round=0,
            change="the best choice of each product",
            fate=Fate.BASELINE,
            estimated_cycles=baseline.cost.cycles,
            scheduled_cycles=incumbent.cycles,
        )
    ]
    visited = {program_digest(baseline.program)}
    attempts = 0 if inputs.recipe else options.planning.attempts
    number = 0
    while attempts > 0:
        number += 1
        shortlist, entries = _shortlist(graph, setting, incumbent.candidate, visited, number)
        ledger += entries
        better: _Incumbent | None = None
        for change, challenger in shortlist:
            entry = Entry(
                round=number,
                change=change,
                fate=Fate.NOT_TRIED,
                estimated_cycles=challenger.cost.cycles,
            )
            if attempts > 0 and better is None:
                attempts -= 1
                visited.add(program_digest(challenger.program))
                entry, better = _tried(inputs, options, caller, challenger, incumbent, entry)
            ledger.append(entry)
        if better is None:
            break
        incumbent = better
    return SearchOutcome(
        program=incumbent.candidate.program,
        recipe=incumbent.candidate.recipe,
        ledger=tuple(ledger),
        figures=_figures(ledger, falsified_cycles(incumbent.cycles, options.inject.fault)),
    )


def _shortlist(
    graph: Graph, setting: Setting, incumbent: Candidate, visited: set[Digest], number: int
) -> tuple[list[tuple[str, Candidate]], list[Entry]]:
    """Challengers that are worth an evaluation, best estimate first, and the fates of the others."""
    kept: list[tuple[str, Candidate]] = []
    entries: list[Entry] = []
    seen = set(visited)
    for recipe in propose(graph, incumbent):
        change = change_of(incumbent.recipe, recipe)
        try:
            challenger = build_candidate(graph, setting, recipe)
        except (Unsupported, DoesNotFit) as error:
            entries.append(Entry(round=number, change=change, fate=Fate.REFUSED, reason=error.message))
            continue
        digest, cycles = program_digest(challenger.program), challenger.cost.cycles
        if digest in seen:
            fate = Fate.REPEATED
        elif cycles >= incumbent.cost.cycles:
            fate = Fate.SLOWER
        else:
            seen.add(digest)
            kept.append((change, challenger))
            continue
        entries.append(Entry(round=number, change=change, fate=fate, estimated_cycles=cycles))
    kept.sort(key=lambda entry: entry[1].cost.cycles)
    return kept, entries


def _tried(
    inputs: CandidateInputs,
    options: HasSearchChoices,
    caller: StageCaller,
    challenger: Candidate,
    incumbent: _Incumbent,
    entry: Entry,
) -> tuple[Entry, _Incumbent | None]:
    """What became of a challenger, and the new incumbent if it is one."""
    planning = CandidateInputs(
        structure=inputs.structure, labels=inputs.labels, recipe=challenger.recipe.to_json()
    )
    try:
        planned = caller.run(BASELINE_CANDIDATE, planning, options)
        cycles = _evaluated(planned, options, caller)
    except (DoesNotFit, ScheduleInfeasible, Unsupported) as error:
        return dataclasses.replace(entry, fate=Fate.FAILED, reason=error.message), None
    if cycles > (1 - MARGIN) * incumbent.cycles:
        return dataclasses.replace(entry, fate=Fate.NO_BETTER, scheduled_cycles=cycles), None
    accepted = dataclasses.replace(entry, fate=Fate.ACCEPTED, scheduled_cycles=cycles)
    return accepted, _Incumbent(candidate=challenger, planned=planned, cycles=cycles)


def _evaluated(planned: Outcome[PlannedProgram], options: HasSearchChoices, caller: StageCaller) -> Cycles:
    """Scheduled cycles of a program at its final addresses.

    Raises:
        TilewrightError: a stage failed.
    """
    expanded = caller.run(EXPANSION, ExpansionInputs(program=planned.part("program", MID_PROGRAM)), options)
    program = expanded.part("program", LOW_PROGRAM)
    placed = caller.run(FINAL_PLACEMENT, FinalPlacementInputs(program=program), options)
    exchange = scheduled(
        caller,
        program,
        placed.part("placement", PLACEMENT),
        placed.part("row_reservations", ROW_RESERVATIONS),
        options,
    )
    horizons = {
        demand.step: int(schedule.horizon.max(initial=0))
        for demand, schedule in zip(exchange.demands.value(), exchange.schedules.value(), strict=True)
    }
    return timeline(program.value(), of_horizons(horizons), NumberKind.SCHEDULED).cycles


def change_of(before: Recipe, after: Recipe) -> str:
    """What a recipe does otherwise than another, in words."""
    changes = [
        f"{path}: {_words(choice)}"
        for path, choice in after.gemms.items()
        if before.gemms.get(path) != choice
    ]
    changes += [
        f"{name} = {value}"
        for name, value in after.options.model_dump().items()
        if getattr(before.options, name) != value
    ]
    return "; ".join(changes) if changes else "nothing"


def _words(choice: GemmChoice) -> str:
    scattered = f", sum scattered {choice.scatter_rows} x {choice.scatter_columns}"
    return (
        f"{choice.grid}, {choice.orientation.value}, parameter {choice.parameter_residency.value}, "
        f"weights {choice.weight_memory.value}{scattered if choice.inner_parts > 1 else ''}"
    )


def _figures(ledger: list[Entry], cycles: Cycles) -> Figures:
    baseline = ledger[0].scheduled_cycles
    if baseline is None:
        raise AssertionError("the baseline was evaluated")
    tried = (Fate.ACCEPTED, Fate.NO_BETTER, Fate.FAILED)
    return (
        Measure(name="accepted", value=cycles, unit="cycles", kind=NumberKind.SCHEDULED, limit=baseline),
        Measure(name="baseline", value=baseline, unit="cycles", kind=NumberKind.SCHEDULED),
        counted("candidates", len(ledger), "candidates"),
        counted("evaluated beside the baseline", sum(entry.fate in tried for entry in ledger), "candidates"),
        counted("accepted steps", sum(entry.fate is Fate.ACCEPTED for entry in ledger), "candidates"),
    )


PROPOSAL_ROUNDS: Final = Stage(
    name="proposal_rounds",
    module=__name__,
    format=1,
    inputs=CandidateInputs,
    outputs=Fields(
        of=SearchOutcome,
        codecs=(("program", MID_PROGRAM), ("recipe", RECIPE), ("ledger", LEDGER), ("figures", FIGURES)),
    ),
    reads=(
        "planning.tiles",
        "planning.rounding",
        "planning.replicate_inputs",
        "planning.attempts",
        "package.runs",
        "inject.fault",
    ),
    tables=("target", "instructions", "decisions"),
    calling=searched,
)
