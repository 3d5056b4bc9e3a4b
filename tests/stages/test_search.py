"""The search, by its ledger: what is tried, in which order, and what is taken."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import run_stage
from compiler.config import BuildOptions, PlanningOptions
from compiler.errors import DoesNotFit
from compiler.estimate.mid import estimate
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.evaluation import stage_final_placement
from compiler.evaluation.ledger import Entry, Fate, Ledger
from compiler.evaluation.stage_proposal_rounds import FALLBACKS, FEWER, LESS, MARGIN, SearchOutcome
from compiler.low.ir import LowProgram
from compiler.models.subjects import GraphModel
from compiler.placement.place import Placed, place_counted
from compiler.placement.problem import Reserved
from compiler.planner.artifacts import PlannedProgram
from compiler.store.layout import Mode
from compiler.store.result import StageResult
from compiler.store.stage import Namespace
from compiler.store.store import Store
from tests.stages.builds import opened

TRIED = (Fate.ACCEPTED, Fate.NO_BETTER, Fate.FAILED)
ATTEMPTS = 2


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> SearchOutcome:
    """Of a search around a small model."""
    root: Path = tmp_path_factory.mktemp("search")
    options = BuildOptions(planning=PlanningOptions(tiles=16, attempts=ATTEMPTS))
    model = GraphModel(name="mlp-block-small")
    done: dict[str, StageResult[object]] = {}
    with opened(root) as store:
        for stage in ("model_graph", "baseline_candidate", "proposal_rounds"):
            done[stage] = run_stage(stage, store, model, options, done)
    found = done["proposal_rounds"].value()
    assert isinstance(found, SearchOutcome)
    return found


def _rounds(ledger: Ledger) -> list[list[Entry]]:
    """The entries of each round, the baseline's left out."""
    last = max(entry.round for entry in ledger)
    return [[entry for entry in ledger if entry.round == number] for number in range(1, last + 1)]


def test_the_baseline_is_evaluated_first(outcome: SearchOutcome) -> None:
    """DS-04, DS-05: it is an executable program with scheduled cycles, the first incumbent."""
    first, *others = outcome.ledger
    assert first.fate is Fate.BASELINE
    assert first.scheduled_cycles is not None
    assert all(entry.fate is not Fate.BASELINE for entry in others)


def test_attempts_are_counted_and_end_the_search(outcome: SearchOutcome) -> None:
    """DS-02, DS-07, DS-14: no more than asked for; fewer where a round finds nothing better."""
    tried = [entry for entry in outcome.ledger if entry.fate in TRIED]
    assert 0 < len(tried) <= ATTEMPTS
    for entries in _rounds(outcome.ledger)[:-1]:
        assert any(entry.fate is Fate.ACCEPTED for entry in entries)


def test_only_what_is_new_and_looks_better_is_evaluated(outcome: SearchOutcome) -> None:
    """DS-09, EC-20: the slower, the repeated and what cannot be built have no scheduled cycles."""
    for entry in outcome.ledger:
        if entry.fate in (Fate.SLOWER, Fate.REPEATED, Fate.REFUSED, Fate.NOT_TRIED):
            assert entry.scheduled_cycles is None
        assert bool(entry.reason) == (entry.fate in (Fate.REFUSED, Fate.FAILED))


def test_mappings_of_tiles_are_left_to_schedules(outcome: SearchOutcome) -> None:
    """PR-30: a mapping costs the same by every estimate, and is not dropped for that."""
    mapped = [entry for entry in _rounds(outcome.ledger)[0] if entry.change.startswith("tile_mapping")]
    assert len(mapped) == 2
    assert all(entry.estimated_cycles == outcome.ledger[0].estimated_cycles for entry in mapped)
    # Within one block of tiles, both mappings are the same.
    assert [entry.fate for entry in mapped if entry.fate in (*TRIED, Fate.NOT_TRIED)]
    assert {entry.fate for entry in mapped} <= {*TRIED, Fate.NOT_TRIED, Fate.REPEATED}


def test_the_shortlist_is_tried_by_estimate_up_to_the_first_that_is_better(outcome: SearchOutcome) -> None:
    """DS-10, DS-12, DS-13, EC-20: candidates behind the accepted one are recorded, and not tried."""
    incumbent = outcome.ledger[0]
    for entries in _rounds(outcome.ledger):
        shortlist = [entry for entry in entries if entry.fate in (*TRIED, Fate.NOT_TRIED)]
        estimates = [entry.estimated_cycles or 0 for entry in shortlist]
        assert all(one <= other for one, other in pairwise(estimates))
        for entry in shortlist:
            # Estimates cannot see which tile has which number.
            is_numbering = entry.change.startswith("tile_mapping") or " fast" in entry.change
            assert (entry.estimated_cycles or 0) < (incumbent.estimated_cycles or 0) + is_numbering
        fates = [entry.fate for entry in shortlist]
        if Fate.ACCEPTED in fates:
            place = fates.index(Fate.ACCEPTED)
            assert set(fates[place + 1 :]) <= {Fate.NOT_TRIED}
            accepted = shortlist[place]
            assert accepted.scheduled_cycles is not None
            assert accepted.scheduled_cycles <= (1 - MARGIN) * (incumbent.scheduled_cycles or 0)
            incumbent = accepted
        else:
            assert set(fates[: fates.index(Fate.NOT_TRIED)] if Fate.NOT_TRIED in fates else fates) <= set(
                TRIED
            )
    accepted_cycles = next(figure.value for figure in outcome.figures if figure.name == "accepted")
    assert accepted_cycles == incumbent.scheduled_cycles


@pytest.mark.parametrize("refusals", [1, 1000])
def test_a_baseline_without_a_place_gives_way_to_a_smaller_program(
    refusals: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DS-05: the fastest that needs clearly less memory begins the search; without any the build fails."""
    asked: list[LowProgram] = []

    def refusing(program: LowProgram, reserved: tuple[Reserved, ...]) -> Placed:
        asked.append(program)
        if len(asked) <= refusals:
            raise DoesNotFit(
                f"no place for program {len(asked)}", stage="test", subject="x", next_step="none"
            )
        return place_counted(program, reserved)

    monkeypatch.setattr(stage_final_placement, "place_counted", refusing)
    options = BuildOptions(planning=PlanningOptions(tiles=16, attempts=0))
    model = GraphModel(name="mlp-block-small")
    done: dict[str, StageResult[object]] = {}
    with opened(tmp_path / "store") as store:
        for stage in ("model_graph", "baseline_candidate"):
            done[stage] = run_stage(stage, store, model, options, done)
        if refusals > 1:
            with pytest.raises(DoesNotFit) as refused:
                run_stage("proposal_rounds", store, model, options, done)
            assert refused.value.message == "no place for program 1"
            assert 1 < len(asked) <= 1 + FALLBACKS
            return
        outcome = run_stage("proposal_rounds", store, model, options, done).value()
        planned = done["baseline_candidate"].value()
    assert isinstance(outcome, SearchOutcome)
    assert isinstance(planned, PlannedProgram)
    failed, begun = outcome.ledger
    assert (failed.fate, failed.reason) == (Fate.FAILED, "no place for program 1")
    assert begun.fate is Fate.BASELINE
    assert begun.scheduled_cycles is not None
    before, after = estimate(planned.program), estimate(outcome.program)
    assert (
        after.bytes <= before.bytes - LESS * DATA_BUDGET
        or after.interleaved_bytes <= before.interleaved_bytes - LESS * INTERLEAVED_BUDGET
        or after.phases <= FEWER * before.phases
    )
    assert outcome.recipe != planned.recipe


def test_a_challenger_that_fails_touches_nothing_of_the_incumbent(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DS-19: where no challenger finds a place, program, recipe and cycles are the baseline's."""
    asked: list[LowProgram] = []

    def refusing(program: LowProgram, reserved: tuple[Reserved, ...]) -> Placed:
        asked.append(program)
        if len(asked) > 1:
            raise DoesNotFit("no place for a challenger", stage="test", subject="x", next_step="none")
        return place_counted(program, reserved)

    monkeypatch.setattr(stage_final_placement, "place_counted", refusing)
    options = BuildOptions(planning=PlanningOptions(tiles=16, attempts=ATTEMPTS))
    model = GraphModel(name="mlp-block-small")
    done: dict[str, StageResult[object]] = {}
    with opened(tmp_path / "store") as store:
        for stage in ("model_graph", "baseline_candidate", "proposal_rounds"):
            done[stage] = run_stage(stage, store, model, options, done)
        planned, outcome = done["baseline_candidate"].value(), done["proposal_rounds"].value()
    assert isinstance(planned, PlannedProgram)
    assert isinstance(outcome, SearchOutcome)
    baseline, *others = outcome.ledger
    failed = [entry for entry in others if entry.fate is Fate.FAILED]
    assert [entry.reason for entry in failed] == ["no place for a challenger"] * ATTEMPTS
    assert Fate.ACCEPTED not in {entry.fate for entry in others}
    assert (outcome.program, outcome.recipe) == (planned.program, planned.recipe)
    accepted = next(figure.value for figure in outcome.figures if figure.name == "accepted")
    assert accepted == baseline.scheduled_cycles


def test_products_are_planned_once_for_all_programs_that_have_them(tmp_path: Path) -> None:
    """ML-39, CA-01: fronts found for one program serve others, and give what they would have found."""
    model = GraphModel(name="mlp-smoke")

    def planned(store: Store, options: PlanningOptions) -> StageResult[PlannedProgram]:
        done: dict[str, StageResult[Any]] = {}
        for stage in ("model_graph", "baseline_candidate"):
            done[stage] = run_stage(stage, store, model, BuildOptions(planning=options), done)
        return done["baseline_candidate"]

    first, other = (PlanningOptions(tiles=16, replicate_inputs=replicates) for replicates in (False, True))
    fronts = (Namespace.FRAGMENT.value, "planner.fronts")
    with opened(tmp_path) as store:
        cold = planned(store, first)
        assert store.statistics.counts[fronts].misses > 0
    with opened(tmp_path) as store:
        warm = planned(store, other)
        assert store.statistics.counts[fronts].misses == 0
        assert store.statistics.counts[fronts].hits > 0
    with opened(tmp_path, mode=Mode.OFF) as store:
        assert planned(store, first).digest == cold.digest
        assert planned(store, other).digest == warm.digest
    assert warm.digest != cold.digest
