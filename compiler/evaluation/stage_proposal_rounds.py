"""Stages ``proposal_rounds`` and ``candidate_evaluation``: the search for a better program.

Both routines of a build are here (DS-01). ``searched`` is the loop::

    evaluate the baseline, or if it finds no place the fastest smaller program that does;
    the build fails if there is none
    while attempts remain:
        propose recipes around the incumbent
        build their programs and estimate them; drop the slower, the repeated and those that cannot be built
        sort by estimate, keep as many as there are attempts
        evaluate them; the first in that order that is better than the incumbent takes its place
        none: stop

``evaluated`` is one candidate, from its whole-device program to the bytes of its package and to scheduled
cycles at final addresses: expand, generate kernels, place provisionally, size what the program itself needs,
place in what remains, schedule, emit, each a stage of its own with its result in the store (EC-01). What does
not fit anywhere on this way is no candidate. What counts is scheduled cycles, and a candidate has to be
better by ``MARGIN`` (DS-12). A stage of a challenger that fails is its fate, and touches nothing of the
incumbent (DS-19).

**At the same time.** Programs of a round are built, and its candidates evaluated, by as many workers as the
store has (``StageCaller.each``). Results are taken in the order of proposals and of the shortlist, so that
the first improvement in that order is accepted whoever is faster (DS-16), and ledger, record and package are
those of one worker. What was begun behind an accepted candidate is given up: it counts as begun, and as no
attempt.

Every evaluation is in the store when it is done, so that a search that was killed goes on where it was. The
record of the search lists what it consumed; when a stage behind it changes, a reuse derives those results
again and the search is repeated from the first that differs.
"""

import dataclasses
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final, Protocol, final

from compiler.errors import DoesNotFit, Measure, NumberKind, ScheduleInfeasible, Unsupported
from compiler.estimate.low import timeline
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.evaluation.artifacts import (
    EmissionInputs,
    FinalPlacementInputs,
    HostShapes,
    SupportSizingInputs,
    host_shapes,
)
from compiler.evaluation.faults import InjectChoices, falsified_cycles
from compiler.evaluation.ledger import ATTEMPTS, LEDGER, Entry, Fate, Ledger
from compiler.evaluation.scheduling import scheduled
from compiler.evaluation.stage_emission import EMISSION
from compiler.evaluation.stage_final_placement import FINAL_PLACEMENT
from compiler.evaluation.stage_support_sizing import SUPPORT_SIZING
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.exchange.phase_times import phase_times
from compiler.figures import FIGURES, Figures, counted
from compiler.graph.codec import StoredGraph
from compiler.graph.ir import Graph
from compiler.kernels.artifacts import OBJECTS, KernelObjectsInputs
from compiler.kernels.stage_objects import KERNEL_OBJECTS
from compiler.low.artifacts import SYMBOLS, ExpansionInputs
from compiler.low.codec import LOW_PROGRAM
from compiler.low.stage_expansion import EXPANSION
from compiler.mid.codec import MID_PROGRAM
from compiler.mid.ir import MidProgram
from compiler.package.artifacts import IMAGE, SUPPORT, HasPackageChoices
from compiler.placement.artifacts import ProvisionalPlacementInputs
from compiler.placement.codec import PLACEMENT
from compiler.placement.stage_provisional import PROVISIONAL_PLACEMENT
from compiler.planner.artifacts import (
    CONSIDERED,
    RECIPE,
    SUMMARY,
    CandidateInputs,
    Considered,
    PlannedProgram,
    Summary,
)
from compiler.planner.choices import PlanningChoices
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.propose import only_moves_tiles, propose, smaller
from compiler.planner.recipe import Recipe
from compiler.planner.stage_baseline import BASELINE_CANDIDATE
from compiler.store.codec import Fields, JsonCodec, Single
from compiler.store.digest import Digest
from compiler.store.stage import Artifact, Outcome, Stage, StageCaller, StageRunner
from compiler.target.units import Cycles

FALLBACKS: Final = 8
"""Smaller programs that are evaluated where the baseline finds no place. Policy."""

LESS: Final = 0.02
"""Part of a tile's memory for data that such a program has to need less than one that failed. Policy."""

FEWER: Final = 0.8
"""Of the phases of one that failed: how many such a program may have at most if it needs as much. Policy."""

MARGIN: Final = 0.002
"""Part of the incumbent's cycles by which a challenger has to be better: less is not worth a change."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SearchOutcome:
    """What stage ``proposal_rounds`` gives: the accepted program.

    Args:
        program: the program.
        recipe: all choices that lead to it.
        considered: and what else there was for it.
        ledger: every candidate and its fate.
        figures: of the search.
    """

    program: MidProgram
    recipe: Recipe
    considered: Considered
    ledger: Ledger
    figures: Figures


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EvaluationInputs:
    """Of stage ``candidate_evaluation``: a whole-device program, and the shapes of its tensors for users."""

    program: Artifact[MidProgram]
    shapes: HostShapes


class SearchChoices(PlanningChoices, Protocol):
    """What is read of the options of planning."""

    @property
    def attempts(self) -> int:
        """Challengers that are evaluated at most."""
        ...


class HasSearchChoices(HasPackageChoices, Protocol):
    """What is read of the options of a build."""

    @property
    def planning(self) -> SearchChoices:
        """How programs are planned and searched."""
        ...

    @property
    def inject(self) -> InjectChoices:
        """What is made wrong on purpose."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Challenger:
    """A program that is worth an evaluation: as it is planned, and what it does otherwise, in words."""

    planned: Outcome[PlannedProgram]
    summary: Summary
    change: str


def searched(inputs: CandidateInputs, options: HasSearchChoices, caller: StageCaller) -> SearchOutcome:
    """The accepted program.

    Raises:
        TilewrightError: the baseline cannot be planned, placed, scheduled or emitted.
    """
    graph = StoredGraph(structure=inputs.structure.value(), labels=inputs.labels.value()).graph
    incumbent, cycles, ledger, visited = _begun(inputs, options, caller, graph)
    attempts = 0 if inputs.recipe else options.planning.attempts
    number = 0
    while attempts > 0:
        number += 1
        shortlist, entries = _shortlist(graph, inputs, options, caller, incumbent, visited, number)
        ledger += entries
        tried = shortlist[:attempts]
        evaluations = caller.each(
            CANDIDATE_EVALUATION, [_evaluation(each.planned, graph) for each in tried], options
        )
        is_better, count = False, 0
        with closing(evaluations):
            for challenger, outcome in zip(tried, evaluations, strict=True):
                count += 1
                visited.add(challenger.summary.identity)
                entry = _judged(_entry(challenger, number), outcome, cycles)
                ledger.append(entry)
                is_better = entry.fate is Fate.ACCEPTED
                if is_better:
                    incumbent, cycles = challenger.planned, outcome.value()
                    break
        ledger += [_entry(challenger, number) for challenger in shortlist[count:]]
        attempts -= count
        if not is_better:
            break
    accepted = incumbent.value()
    return SearchOutcome(
        program=accepted.program,
        recipe=accepted.recipe,
        considered=accepted.considered,
        ledger=tuple(ledger),
        figures=_figures(ledger, falsified_cycles(cycles, options.inject.fault)),
    )


def _begun(
    inputs: CandidateInputs, options: HasSearchChoices, caller: StageCaller, graph: Graph
) -> tuple[Outcome[PlannedProgram], Cycles, list[Entry], set[Digest]]:
    """The first incumbent, its cycles, its entries, and what was visited.

    It is the baseline, or the fastest smaller program where the baseline finds no place. That the bytes of a
    tile suffice does not mean that there is a place for each buffer, and estimates know the bytes alone. What
    failed sets the mark: the next one has to need clearly less than each of them, of memory in all, of
    interleaved memory, or of phases, whose code and rows leave less of it.

    Raises:
        TilewrightError: the baseline fails, and nothing smaller can take its place.
    """
    baseline = caller.run(BASELINE_CANDIDATE, _planning(inputs, inputs.recipe), options)
    summary = baseline.part("summary", SUMMARY).value()
    entry = Entry(
        round=0,
        change="the best choice of each product",
        fate=Fate.BASELINE,
        estimated_cycles=summary.cycles,
    )
    visited = {summary.identity}
    try:
        cycles = caller.run(CANDIDATE_EVALUATION, _evaluation(baseline, graph), options).value()
    except DoesNotFit as error:
        if inputs.recipe:
            raise
        refusal = error
    else:
        return baseline, cycles, [dataclasses.replace(entry, scheduled_cycles=cycles)], visited
    ledger = [dataclasses.replace(entry, fate=Fate.FAILED, reason=refusal.message)]
    failed = [summary]
    for challenger in _smaller(inputs, options, caller, baseline.value()):
        if len(failed) > FALLBACKS or not all(_is_less(challenger.summary, other) for other in failed):
            continue
        visited.add(challenger.summary.identity)
        entry = dataclasses.replace(
            entry, change=challenger.change, estimated_cycles=challenger.summary.cycles
        )
        try:
            cycles = caller.run(CANDIDATE_EVALUATION, _evaluation(challenger.planned, graph), options).value()
        except (DoesNotFit, ScheduleInfeasible, Unsupported) as error:
            ledger.append(dataclasses.replace(entry, fate=Fate.FAILED, reason=error.message))
            failed.append(challenger.summary)
            continue
        ledger.append(dataclasses.replace(entry, scheduled_cycles=cycles))
        return challenger.planned, cycles, ledger, visited
    raise refusal


def _smaller(
    inputs: CandidateInputs, options: HasSearchChoices, caller: StageCaller, baseline: PlannedProgram
) -> list[_Challenger]:
    """What could take the place of a baseline, the fastest first."""
    found: list[_Challenger] = []
    for recipe in smaller(baseline):
        try:
            planned = caller.run(BASELINE_CANDIDATE, _planning(inputs, recipe.to_json()), options)
        except (Unsupported, DoesNotFit):
            continue
        found.append(
            _Challenger(
                planned=planned,
                summary=planned.part("summary", SUMMARY).value(),
                change=change_of(baseline.recipe, recipe),
            )
        )
    return sorted(found, key=lambda each: each.summary.cycles)


def _is_less(one: Summary, other: Summary) -> bool:
    """Whether a program needs clearly less than another of something that can be in short supply."""
    return (
        one.bytes <= other.bytes - LESS * DATA_BUDGET
        or one.interleaved_bytes <= other.interleaved_bytes - LESS * INTERLEAVED_BUDGET
        or one.phases <= FEWER * other.phases
    )


def evaluated(inputs: EvaluationInputs, options: HasPackageChoices, caller: StageRunner) -> Cycles:
    """Scheduled cycles of a program whose package can be emitted.

    Raises:
        TilewrightError: a stage failed.
    """
    expanded = caller.run(EXPANSION, ExpansionInputs(program=inputs.program), options)
    program, symbols = expanded.part("program", LOW_PROGRAM), expanded.part("symbols", SYMBOLS)
    kernels = caller.run(KERNEL_OBJECTS, KernelObjectsInputs(symbols=symbols), options)
    provisional = caller.run(
        PROVISIONAL_PLACEMENT, ProvisionalPlacementInputs(program=program), options
    ).part("placement", PLACEMENT)
    sized = caller.run(
        SUPPORT_SIZING,
        SupportSizingInputs(
            program=program,
            placement=provisional,
            symbols=symbols,
            objects=kernels.part("objects", OBJECTS),
        ),
        options,
    )
    support = sized.part("support", SUPPORT)
    row_reservations = sized.part("row_reservations", ROW_RESERVATIONS)
    placement = caller.run(
        FINAL_PLACEMENT, FinalPlacementInputs(program=program, support=support), options
    ).part("placement", PLACEMENT)
    exchange = scheduled(caller, program, placement, row_reservations, options)
    caller.run(
        EMISSION,
        EmissionInputs(
            program=program,
            placement=placement,
            code=sized.part("code", IMAGE),
            support=support,
            row_reservations=row_reservations,
            shapes=inputs.shapes,
        ),
        options,
    )
    schedules = {
        demand.step: schedule
        for demand, schedule in zip(exchange.demands.value(), exchange.schedules.value(), strict=True)
    }
    tables = program.value()
    times = phase_times(schedules, tables.tile_count)
    return timeline(tables, times, NumberKind.SCHEDULED).cycles


def _planning(inputs: CandidateInputs, recipe: str) -> CandidateInputs:
    return CandidateInputs(structure=inputs.structure, labels=inputs.labels, recipe=recipe)


def _evaluation(planned: Outcome[PlannedProgram], graph: Graph) -> EvaluationInputs:
    return EvaluationInputs(program=planned.part("program", MID_PROGRAM), shapes=host_shapes(graph))


def _shortlist(
    graph: Graph,
    inputs: CandidateInputs,
    options: HasSearchChoices,
    caller: StageCaller,
    incumbent: Outcome[PlannedProgram],
    visited: set[Digest],
    number: int,
) -> tuple[list[_Challenger], list[Entry]]:
    """Challengers that are worth an evaluation, best estimate first, and the fates of the others.

    Raises:
        TilewrightError: the planner broke an invariant.
    """
    present = incumbent.value()
    recipes = propose(graph, present)
    kept: list[_Challenger] = []
    entries: list[Entry] = []
    seen = set(visited)
    plans = caller.each(
        BASELINE_CANDIDATE, [_planning(inputs, recipe.to_json()) for recipe in recipes], options
    )
    for recipe, planned in zip(recipes, plans, strict=True):
        change = change_of(present.recipe, recipe)
        match planned.failure:
            case None:
                pass
            case DoesNotFit() | Unsupported() as error:
                entries.append(Entry(round=number, change=change, fate=Fate.REFUSED, reason=error.message))
                continue
            case error:
                raise error
        challenger = _Challenger(
            planned=planned, summary=planned.part("summary", SUMMARY).value(), change=change
        )
        is_for_schedules = only_moves_tiles(present.recipe, recipe)
        fate = _fate_by_estimate(challenger.summary, present.summary, seen, may_be_equal=is_for_schedules)
        if fate is None:
            seen.add(challenger.summary.identity)
            kept.append(challenger)
        else:
            entries.append(dataclasses.replace(_entry(challenger, number), fate=fate))
    kept.sort(key=lambda challenger: challenger.summary.cycles)
    return kept, entries


def _fate_by_estimate(
    challenger: Summary, incumbent: Summary, seen: set[Digest], *, may_be_equal: bool
) -> Fate | None:
    """Why a challenger is not worth an evaluation; None when it is.

    Args:
        challenger: what it would cost.
        incumbent: what that costs.
        seen: programs that were visited, or wait for it.
        may_be_equal: whether estimates cannot tell the two, so that scheduled cycles have to.
    """
    if challenger.identity in seen:
        return Fate.REPEATED
    is_faster = challenger.cycles < incumbent.cycles
    return None if is_faster or (may_be_equal and challenger.cycles == incumbent.cycles) else Fate.SLOWER


def _entry(challenger: _Challenger, number: int) -> Entry:
    """Of a challenger that was not tried."""
    return Entry(
        round=number,
        change=challenger.change,
        fate=Fate.NOT_TRIED,
        estimated_cycles=challenger.summary.cycles,
    )


def _judged(entry: Entry, outcome: Outcome[Cycles], incumbent: Cycles) -> Entry:
    """What became of a challenger that was evaluated.

    Raises:
        TilewrightError: a stage broke an invariant.
    """
    match outcome.failure:
        case None:
            cycles = outcome.value()
            fate = Fate.NO_BETTER if cycles > (1 - MARGIN) * incumbent else Fate.ACCEPTED
            return dataclasses.replace(entry, fate=fate, scheduled_cycles=cycles)
        case DoesNotFit() | ScheduleInfeasible() | Unsupported() as error:
            return dataclasses.replace(entry, fate=Fate.FAILED, reason=error.message)
        case error:
            raise error


def change_of(before: Recipe, after: Recipe) -> str:
    """What a recipe does otherwise than another, in words."""
    changes = [
        f"{path}: {_words(choice)}"
        for path, choice in after.gemms.items()
        if before.gemms.get(path) != choice
    ]
    changes += [
        f"{path} waits {form}"
        for path, form in after.boundaries.items()
        if before.boundaries.get(path, form) != form
    ]
    changes += [
        f"{name} at its first reader" if home == "first reader" else f"{name} elsewhere"
        for name, home in after.inputs.items()
        if before.inputs.get(name, home) != home
    ]
    changes += [f"{name} where that wants it" for name in before.inputs if name not in after.inputs]
    changes += [
        f"{name} = {value}"
        for name, value in after.options.model_dump().items()
        if getattr(before.options, name) != value
    ]
    return "; ".join(changes) if changes else "nothing"


def _words(choice: GemmChoice) -> str:
    scattered = f", sum scattered {choice.scatter_rows} x {choice.scatter_columns}"
    blocks = "" if choice.inner_block is None else f", K in blocks of {choice.inner_block}"
    return (
        f"{choice.grid}, {choice.orientation.value}, parameter {choice.parameter_residency.value}, "
        f"weights {choice.weight_memory.value}{scattered if choice.inner_parts > 1 else blocks}, "
        f"{choice.grid_order.value}"
    )


def _figures(ledger: Sequence[Entry], cycles: Cycles) -> Figures:
    baseline = next(entry.scheduled_cycles for entry in ledger if entry.fate is Fate.BASELINE)
    if baseline is None:
        raise AssertionError("the baseline was evaluated")
    tried = (Fate.ACCEPTED, Fate.NO_BETTER, Fate.FAILED)
    return (
        Measure(name="accepted", value=cycles, unit="cycles", kind=NumberKind.SCHEDULED, limit=baseline),
        Measure(name="baseline", value=baseline, unit="cycles", kind=NumberKind.SCHEDULED),
        counted("candidates", len(ledger), "candidates"),
        counted(ATTEMPTS, sum(entry.fate in tried for entry in ledger), "candidates"),
        counted("accepted steps", sum(entry.fate is Fate.ACCEPTED for entry in ledger), "candidates"),
    )


def plain_cycles(cycles: Cycles) -> object:
    """Cycles as a plain value."""
    return {"cycles": int(cycles)}


def cycles_of_plain(plain: Any) -> Cycles:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: there is no such number.
    """
    match plain:
        case {"cycles": int(cycles)} if len(plain) == 1:
            return Cycles(cycles)
        case _:
            raise ValueError("an evaluation gives cycles, a whole number")


CANDIDATE_EVALUATION: Final = Stage(
    name="candidate_evaluation",
    module=__name__,
    format=1,
    inputs=EvaluationInputs,
    outputs=Single(codec=JsonCodec(plain=plain_cycles, value=cycles_of_plain)),
    reads=("package.runs", "package.profile", "isa.overrides"),
    tables=("target", "instructions", "decisions"),
    calling=evaluated,
)
PROPOSAL_ROUNDS: Final = Stage(
    name="proposal_rounds",
    module=__name__,
    format=1,
    inputs=CandidateInputs,
    outputs=Fields(
        of=SearchOutcome,
        codecs=(
            ("program", MID_PROGRAM),
            ("recipe", RECIPE),
            ("considered", CONSIDERED),
            ("ledger", LEDGER),
            ("figures", FIGURES),
        ),
    ),
    reads=(
        "planning.tiles",
        "planning.rounding",
        "planning.replicate_inputs",
        "planning.attempts",
        "package.runs",
        "package.profile",
        "inject.fault",
        "isa.overrides",
    ),
    tables=("target", "instructions", "decisions"),
    calling=searched,
)
