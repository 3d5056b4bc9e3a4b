"""``tilewright nightly``: every model has its turn, and what failed is told and tagged."""

from pathlib import Path

import dagster as dg
import pytest

from pipeline.cli import main
from pipeline.home import VARIABLE
from pipeline.nightly import DAY_TAG
from pipeline.notices import STAGE_TAG


def test_a_model_that_fails_does_not_keep_the_others_from_their_turn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    words = ["nightly", "attention-smoke", "vit-small", "--store", str(tmp_path / "store")]
    assert main(words) == 1
    told = capsys.readouterr()
    assert [line for line in told.out.splitlines() if not line.startswith(" ")] == [
        "attention-smoke",
        "vit-small",
        "0 of 2 models built and as before; failed: attention-smoke, vit-small",
    ]
    assert told.err.count("unsupported (planner): ") == 2
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        runs = instance.get_runs()
    assert len(runs) == 2
    for run in runs:
        assert run.tags[STAGE_TAG] == "baseline_candidate"
        assert DAY_TAG in run.tags


def test_a_name_that_is_none_is_refused_before_any_work(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    assert main(["nightly", "mlp-smoke", "huge"]) == 1
    assert "huge: there is no model of this name" in capsys.readouterr().err
    assert not (tmp_path / "home").exists()
