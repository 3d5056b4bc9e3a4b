"""A build gives the same bytes, whatever the store does and wherever it runs."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.errors import DoesNotFit
from compiler.fingerprint import REPOSITORY
from compiler.store.layout import Mode
from compiler.store.result import Status
from tests.stages.builds import (
    MODEL,
    MODEL_OPTIONS,
    SUBJECTS,
    TOO_LARGE,
    build_in_process,
    opened,
    outcomes,
    stage_modules,
)

INHERITED = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}


@pytest.mark.parametrize("kind", SUBJECTS)
def test_disabled_cold_and_warm_caches_give_equal_bytes(
    kind: str, builds: tuple[Path, Mapping[str, Results]]
) -> None:
    """CA-06, and of every stage, those inside of others included."""
    root, built = builds
    cold, (subject, options) = built[kind], SUBJECTS[kind]
    # A search leaves the results of the stages that it tried.
    assert {result.status for result in cold.values()} - {Status.HIT} == {Status.COMPUTED}
    with opened(root) as store:
        again = build(store, subject, options)
    with opened(root, mode=Mode.OFF) as store:
        disabled = build(store, subject, options)
    assert {result.status for result in again.values()} == {Status.HIT}
    assert {result.status for result in disabled.values()} == {Status.BYPASSED}
    assert outcomes(cold) == outcomes(again) == outcomes(disabled)
    assert {stage for stage, _ in outcomes(cold)} == set(stage_modules(kind))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_verifying_a_warm_store_finds_no_difference(
    kind: str, builds: tuple[Path, Mapping[str, Results]]
) -> None:
    """Every stage is computed again; a strict store raises at the first byte that differs."""
    root, built = builds
    with opened(root, mode=Mode.VERIFY) as store:
        verified = build(store, *SUBJECTS[kind])
        assert not store.statistics.events
    assert outcomes(verified) == outcomes(built[kind])


def test_hash_seed_changes_nothing(builds: tuple[Path, Mapping[str, Results]], tmp_path: Path) -> None:
    said = build_in_process(
        "program",
        REPOSITORY.root,
        tmp_path / "none",
        mode="OFF",
        environment={**INHERITED, "PYTHONHASHSEED": "1"},
    )
    assert said.outcomes == outcomes(builds[1]["program"])
    assert not (tmp_path / "none").exists()


def test_two_workers_and_one_give_equal_bytes(
    builds: tuple[Path, Mapping[str, Results]], tmp_path: Path
) -> None:
    """DS-11, DS-13, DS-16: the same outcome of every run in the same order, ledger and package among them."""
    said = build_in_process(
        "model",
        REPOSITORY.root,
        tmp_path / "store",
        workers=2,
        environment={**INHERITED, "PYTHONHASHSEED": "2"},
    )
    assert said.outcomes == outcomes(builds[1]["model"])
    assert said.events == []


@pytest.mark.parametrize("kind", SUBJECTS)
def test_workers_enter_no_key(kind: str, builds: tuple[Path, Mapping[str, Results]]) -> None:
    subject, options = SUBJECTS[kind]
    with opened(builds[0]) as store:
        results = build(store, subject, options.model_copy(update={"workers": 2}))
    assert all(result.hit for result in results.values())


def test_options_reach_what_they_are_about(builds: tuple[Path, Mapping[str, Results]]) -> None:
    """Rounding and replicated inputs are planned anew; seed and number of runs are simulated anew."""
    root, built = builds
    others = {
        "baseline_candidate": MODEL_OPTIONS.model_copy(
            update={"planning": PlanningOptions(tiles=16, attempts=1, rounding="stochastic")}
        ),
        "simulation": MODEL_OPTIONS.model_copy(update={"simulation": SimulationOptions(seed=2, runs=1)}),
    }
    for first, options in others.items():
        with opened(root) as store:
            results = build(store, MODEL, options)
        assert next(name for name, result in results.items() if not result.hit) == first
        assert results["simulation"].value().differences == ()
        same = [name for name, result in results.items() if result.digest == built["model"][name].digest]
        before = list(results)[: list(results).index(first)]
        assert same[: len(before)] == before
        assert not {first, "simulation"} & set(same)  # placements can be alike between them


def test_an_edit_that_changes_no_byte_stops_where_it_was_made(tmp_path: Path) -> None:
    """Early cutoff. A model of equal graph, and a kernel of equal code, leave everything behind them.

    Stages that run others list what those gave. The search and its evaluations run again, since what they
    list was given by no code of today, and so does ``support_sizing`` when rows are encoded anew;
    ``emission`` finds its rows among those that they made.
    """
    source = tmp_path / "source"
    shutil.copytree(REPOSITORY.root / "compiler", source / "compiler")
    first = build_in_process("model", source, tmp_path / "store", environment=INHERITED)
    assert first.computed == set(stage_modules("model"))
    searching = {"proposal_rounds", "candidate_evaluation"}
    for edited, wanted in (
        ("models/smoke.py", {"model_graph"}),
        ("kernels/reduce/code.py", {"kernel_objects", *searching}),
        ("exchange/rows.py", {"exchange.rows", "support_sizing", *searching}),
    ):
        path = source / "compiler" / edited
        path.write_text(path.read_text() + "\n_ADDED = 1\n")
        again = build_in_process("model", source, tmp_path / "store", environment=INHERITED)
        # What is reused rests on runs under the code of then, beside those of today: some are listed twice.
        assert set(again.outcomes) == set(first.outcomes)
        assert again.computed == wanted, edited
    # The last edit was one of the encoder of rows: what ran before it was reused, and the search says why.
    assert [name for name, reasons in again.reasons.items() if reasons] == ["proposal_rounds"]
    assert again.reasons["proposal_rounds"] == [
        "consumed stage exchange.rows has not been run under its present code"
    ]
    path.write_text(path.read_text().replace('"""', '"""Edited: ', 1) + "\n# edited\n")
    assert build_in_process("model", source, tmp_path / "store", environment=INHERITED).computed == set()


def test_a_failure_is_kept_and_stops_what_stands_behind(tmp_path: Path) -> None:
    """The error says the same each time, and the reused one costs no search."""
    texts: list[str] = []
    said: list[str] = []
    for _ in range(2):
        with opened(tmp_path / "store") as store:
            with pytest.raises(DoesNotFit) as raised:
                build(store, TOO_LARGE, BuildOptions(), report=lambda name, _: said.append(name))
            computed = {stage for (_, stage), counts in store.statistics.counts.items() if counts.misses}
        texts.append(str(raised.value))
        assert computed == (
            {"expansion", "kernel_objects", "provisional_placement"} if len(texts) == 1 else set()
        )
    assert said == ["expansion", "kernel_objects"] * 2
    assert texts[0] == texts[1]
    assert "limit 620,832" in texts[0]
