"""The search with several workers: the ledger and the records of one, and what planning leaves for it."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from compiler.compile import run_stage
from compiler.config import BuildOptions, PlanningOptions
from compiler.evaluation.ledger import Entry, Fate
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Normal
from compiler.graph.text import text_of_graph
from compiler.models.subjects import GraphModel
from compiler.store.ahead import Backend, Workers
from compiler.store.result import StageResult
from compiler.store.statistics import Counts
from compiler.store.verify import scrub
from tests.stages.builds import opened, outcomes

OPTIONS = BuildOptions(planning=PlanningOptions(tiles=8, attempts=3))
EVALUATION = ("stage", "candidate_evaluation")


@cache
def model() -> GraphModel:
    """One row through two products: the best choice of each is not the best of both."""
    build = GraphBuilder("row")
    x = build.input("x", (1, 256), fill=Normal(sigma=1.0))
    hidden = build.gemm(x, build.parameter("first", (256, 1024), fill=Normal(sigma=0.06)), name="up")
    second = build.parameter("second", (1024, 256), fill=Normal(sigma=0.03))
    build.output(build.gemm(build.gelu(hidden), second, name="down"))
    return GraphModel(name="row", text=text_of_graph(build.finish(), with_provenance=True))


def search(root: Path, workers: Workers | None = None) -> tuple[Mapping[str, StageResult[Any]], Counts]:
    """Stages up to the search, and what was counted of evaluations."""
    done: dict[str, StageResult[Any]] = {}
    with opened(root, workers=workers) as store:
        for name in ("model_graph", "baseline_candidate", "proposal_rounds"):
            done[name] = run_stage(name, store, model(), OPTIONS, done)
        return done, store.statistics.counts.get(EVALUATION, Counts())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[Mapping[str, StageResult[Any]], Counts]:
    """One worker, a cold store."""
    return search(tmp_path_factory.mktemp("alone") / "store")


@pytest.mark.parametrize("backend", [Backend.LOKY, Backend.THREADING])
def test_workers_change_neither_ledger_nor_record(
    backend: Backend, alone: tuple[Mapping[str, StageResult[Any]], Counts], tmp_path: Path
) -> None:
    """DS-08, DS-11, DS-13, DS-15 .. DS-17: two at a time; what was begun in vain is told, and counts not."""
    found, counts = search(tmp_path / "store", Workers(count=2, backend=backend))
    assert found["proposal_rounds"].value().ledger == alone[0]["proposal_rounds"].value().ledger
    assert outcomes(found) == outcomes(alone[0])
    assert any(entry.fate is Fate.ACCEPTED for entry in found["proposal_rounds"].value().ledger)
    assert counts.begun >= alone[1].begun
    with opened(tmp_path / "store") as store:
        report = scrub(store)
        assert (report.damaged, report.incomplete) == ((), ())


def test_candidates_that_are_no_better_use_up_the_budget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """DS-12, DS-14: with an unreachable margin the search stops after its attempts, with the baseline."""
    monkeypatch.setattr("compiler.evaluation.stage_proposal_rounds.MARGIN", 0.9)
    ledgers: list[tuple[Entry, ...]] = []
    for count in (1, 2):
        found, counts = search(tmp_path / str(count), Workers(count=count))
        ledgers.append(found["proposal_rounds"].value().ledger)
        assert counts.begun == OPTIONS.planning.attempts + 1
        assert counts.lost == 0
        assert found["proposal_rounds"].value().recipe == found["baseline_candidate"].value().recipe
    assert ledgers[0] == ledgers[1]
    assert [entry.fate for entry in ledgers[0]].count(Fate.NO_BETTER) == OPTIONS.planning.attempts


def test_planning_is_kept_with_what_it_left(
    alone: tuple[Mapping[str, StageResult[Any]], Counts],
) -> None:
    """PR-14: alternatives, and what was dropped by reason; nothing is planned again to tell them."""
    for name in ("baseline_candidate", "proposal_rounds"):
        planned = alone[0][name].value()
        assert planned.considered.alternatives.keys() == planned.recipe.gemms.keys()
        for path, choice in planned.recipe.gemms.items():
            assert planned.considered.dropped[path]
            assert len({each.choice for each in planned.considered.alternatives[path]} - {choice}) > 1
