"""``tilewright explain``: the last build from the store, whole and unfinished."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.graph.text import text_of_graph
from compiler.models.smoke import mlp_smoke
from compiler.models.subjects import GraphModel
from compiler.report.build import build_report, report_from_json
from compiler.store.layout import Access
from compiler.store.store import Store
from compiler.tables import table_digests
from pipeline.cli import main
from pipeline.last_results import build_with, last_build
from tests.report.builds import Small, small_builds

STAGES = (
    "model_graph",
    "baseline_candidate",
    "proposal_rounds",
    "expansion",
    "kernel_objects",
    "provisional_placement",
    "support_sizing",
    "final_placement",
    "emission",
    "simulation",
    "build_report",
)


OPTIONS = BuildOptions(
    planning=PlanningOptions(tiles=2, attempts=1), simulation=SimulationOptions(runs=1, seed=7)
)
"""Of the build that was not the last."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A build for four tiles."""
    return small_builds(tmp_path_factory)["wide"]


def explained(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed."""
    assert main(["explain", *words]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_every_stage_in_order(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(["wide", "--store", str(small.root)], capsys).splitlines()
    heads = [line.partition(":")[0] for line in lines if line and not line.startswith(" ")]
    assert [head for head in heads if head in STAGES] == list(STAGES)
    assert sum(line == "  would be reused for the same inputs and options" for line in lines) == len(STAGES)
    # The other build in the store differs in its tiles and nothing else that the planner reads.
    assert "    option planning.tiles 2 -> 4" in lines


def test_what_the_planner_decided(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    """Recipe and alternatives, and every candidate of the search with what became of it."""
    text = explained(["wide", "proposal_rounds", "--store", str(small.root)], capsys)
    report = build_report(small.built)
    for choice in report.choices:
        assert f"  {choice.node}: {choice.choice}\n" in text
        assert f"kept {len(choice.kept)} (" in text
        assert all(f"{dropped.count:,} {dropped.reason}" in text for dropped in choice.dropped)
    assert text.count("\n    * ") == len(report.choices)  # the chosen one is shown, wherever it ranks
    assert len(report.considered) > 1
    for candidate in report.considered:
        assert f"    round {candidate.round}, {candidate.change}: {candidate.fate}" in text
    baseline = explained(["wide", "baseline_candidate", "--store", str(small.root)], capsys)
    assert "operations, estimated" in baseline
    assert "candidates of the search" not in baseline
    everything = explained(["wide", "proposal_rounds", "--all", "--store", str(small.root)], capsys)
    assert len(everything.splitlines()) > len(text.splitlines())


def test_what_placement_and_exchange_came_to(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    placement = explained(["wide", "final_placement", "--store", str(small.root)], capsys)
    assert "fullest tiles, by physical number" in placement
    emission = explained(["wide", "emission", "--store", str(small.root)], capsys)
    report = build_report(small.built)
    for phase in report.phases:
        assert f"  phase of step {phase.step} for " in emission
        assert phase.limit in emission
    assert f"  {report.cycles.cycles}; where they go" in emission


def test_the_data_of_the_build(small: Small, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Printed and written, the same."""
    wanted = build_report(small.built)
    text = explained(["wide", "--json", "--store", str(small.root)], capsys)
    assert report_from_json(text) == wanted
    path = tmp_path / "report.json"
    told = explained(["wide", "model_graph", "--report", str(path), "--store", str(small.root)], capsys)
    assert told.startswith("model_graph: done")
    assert path.read_text() == text
    assert json.loads(text)["model"] == "wide"


def test_a_build_that_came_half_way(small: Small, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What lies behind the last stage it came to is older, and not told as part of it."""
    root = tmp_path / "store"
    shutil.copytree(small.root, root)
    with Store.open(root) as store:
        other = store.last.read("expansion", "narrow")
        assert other is not None
        store.last.write("expansion", "wide", other.document)
        last = last_build(store, "wide")
    assert [stage.name for stage in last.stages] == list(STAGES[:3])
    text = explained(["wide", "--store", str(root)], capsys)
    assert text.splitlines()[-1] == (f"not reached by this build: {', '.join(STAGES[3:])}")
    assert main(["explain", "wide", "--json", "--store", str(root)]) == 1
    assert capsys.readouterr().err == (
        "invalid input (last build): wide: stage expansion gave nothing that the store holds.\n"
        "  next: build it again: tilewright build wide\n"
    )


def test_the_build_with_given_options(
    small: Small, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Found by its keys, whatever was built last; what was never built is told with what it differs in."""
    text = text_of_graph(mlp_smoke(4), with_provenance=True)
    with Store.open(small.root, access=Access.READ_ONLY, tables=table_digests()) as store:
        last = last_build(store, "narrow")
        found = build_with(store, GraphModel(name="narrow", text=text), OPTIONS, "")
        assert [stage.name for stage in found.stages] == [stage.name for stage in last.stages]
        assert all(stage.is_built for stage in found.stages)
        for one, other in zip(found.stages, last.stages, strict=True):
            assert (one.document, one.seconds) == (other.document, other.seconds)
    (tmp_path / "wide.graph").write_text(text)
    words = [str(tmp_path / "wide.graph"), "--option", "planning.tiles=3", "--store", str(small.root)]
    other = explained(words, capsys).splitlines()
    assert other[0] == "model_graph: not built"
    assert other[2] == "  would run, since there is no result for these inputs and options"
    assert other[3] == "  differs from the nearest other result in:"
    assert any("name" in line for line in other[4:-1])
    assert other[-1].startswith("not reached by this build: baseline_candidate, ")


def test_what_is_not_in_the_store(small: Small, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", "other", "--store", str(small.root)]) == 1
    assert capsys.readouterr().err == (
        "invalid input (last build): other: the store knows no build of it.\n"
        "  next: build it first: tilewright build other\n"
    )
    assert main(["explain", "wide", "linking", "--store", str(small.root)]) == 1
    assert capsys.readouterr().err == (
        "invalid input (explain): wide linking: this build came to no stage of this name.\n"
        f"  next: give one of {', '.join(STAGES)}\n"
    )
    assert main(["explain", "wide", "--store", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.startswith("store (store): ")
