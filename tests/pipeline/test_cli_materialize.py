"""``tilewright materialize``: one stage, or it and all behind it, in the history that the pages show."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest

from assets.factory import key_of
from compiler.chain import PROGRAM_CHAIN
from compiler.compile import Results, build
from compiler.config import BuildOptions
from compiler.models import programs
from pipeline.cli import main
from pipeline.home import VARIABLE
from tests.stages.builds import SMALL, opened

STAGES = [stage.name for stage in PROGRAM_CHAIN]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """A store with a build of the small program."""
    root = tmp_path_factory.mktemp("materialize") / "store"
    with opened(root) as store:
        return root, build(store, SMALL, BuildOptions())


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A small program, and a home of its own."""
    monkeypatch.setattr(programs, "PROGRAMS", {SMALL.name: SMALL})
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))


def materialized(home: Path) -> Mapping[str, dg.AssetMaterialization]:
    """What the home knows of the stages."""
    found: dict[str, dg.AssetMaterialization] = {}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        for name in STAGES:
            event = instance.get_latest_materialization_event(key_of(SMALL, name))
            if event is not None and event.asset_materialization is not None:
                found[name] = event.asset_materialization
    return found


def test_a_stage_is_reused_or_computed_and_says_why(
    built: tuple[Path, Results], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    store = shutil.copytree(built[0], tmp_path / "store")
    words = ["materialize", "small", "final_placement", "--store", str(store)]
    assert main(words) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.match(r"final_placement: reused, [\d.]+ s \(measured\) saved; fullest tile: ", said[0])
    assert said[1:] == ["  since nothing that decides the result changed"]
    assert main([*words, "--cache", "refresh"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert re.match(r"final_placement: computed in [\d.]+ s \(measured\); fullest tile: ", said[0])
    assert said[1:] == [
        "  since computed again, since the store is opened to refresh",
        "  the outcome still holds: the bytes are those that were materialized before",
    ]
    (found,) = materialized(tmp_path / "home").values()
    assert found.metadata["why"].value == "computed again, since the store is opened to refresh"
    assert found.metadata["outcome"].value == (
        "still holds: the bytes are those that were materialized before"
    )
    assert (found.tags or {})["dagster/data_version"] == built[1]["final_placement"].digest


def test_a_stage_and_all_behind_it(
    built: tuple[Path, Results], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["materialize", "small", "emission", "--from", "--store", str(built[0]), "--runs", "1"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^(\w+): (\w+)", out, re.MULTILINE) == [
        ("emission", "reused"),
        ("simulation", "computed"),
        ("build_report", "computed"),
    ]
    assert "  since option simulation.runs 2 -> 1\n" in out
    assert list(materialized(tmp_path / "home")) == ["emission", "simulation", "build_report"]


def test_a_stage_that_is_none_is_told(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["materialize", "small", "placement"]) == 1
    assert capsys.readouterr().err == (
        "invalid input (materialize): placement: there is no stage of this name.\n"
        f"  next: name one of {', '.join(STAGES)}\n"
    )
    assert not (tmp_path / "home").exists()
