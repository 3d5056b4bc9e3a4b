"""The calibration of kernels: its assets and command, and that a formula that is off is found."""

import re
from pathlib import Path

import dagster as dg
import pytest

from compiler.target.units import Cycles
from pipeline.calibration import LIMIT, Calibration, Point, calibrate
from pipeline.calibration_assets import CHECK, FAMILIES, JOB
from pipeline.calibration_plots import page, small_plot
from pipeline.cli import main
from pipeline.definitions import defs
from pipeline.kernel_samples import SAMPLES
from tests.assets.launching import metadata_of


def point(estimated: int) -> Point:
    """A call that takes 1,000 cycles."""
    return Point(
        symbol="copy.move", options="", shape=(1, 64), estimated=Cycles(estimated), simulated=Cycles(1000)
    )


def test_every_family_that_can_be_described_is_calibrated() -> None:
    assert set(FAMILIES) == set(SAMPLES)


def test_the_job_measures_every_family(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pictures are small enough to be shown in place, and every formula is within the limit."""
    monkeypatch.setattr("compiler.cache_home.cache_home", lambda: tmp_path)
    result = defs.resolve_job_def(JOB).execute_in_process(
        instance=instance, run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    )
    assert result.success
    found = {
        event.step_materialization_data.materialization.asset_key.path[
            -1
        ]: event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
    }
    assert set(found) == set(FAMILIES)
    for family, materialization in found.items():
        shown = metadata_of(materialization)
        assert shown["result"].startswith(f"the formula of {family} is at most ")
        assert shown["worst deviation (%)"] <= 100 * LIMIT
        assert shown["calls"] >= 5
        assert len(shown["deviations between the limits"]) < 1000
        assert len(shown["furthest off"]) < 1000
        text = Path(shown["page"]).read_text()
        assert family in text
        assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text), "one file"
    checks = result.get_asset_check_evaluations()
    assert {check.check_name for check in checks} == {CHECK}
    assert all(check.passed for check in checks)


def test_a_formula_that_is_off_fails_its_check(
    instance: dg.DagsterInstance, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict names the call, both numbers and the limit; the command ends with 1."""
    off = Calibration(family="copy", extents=("rows", "row_bytes"), points=(point(1000), point(1021)))
    monkeypatch.setattr("compiler.cache_home.cache_home", lambda: tmp_path)

    def measured(family: str) -> Calibration:
        assert family == "copy"
        return off

    monkeypatch.setattr("pipeline.calibration.calibrate", measured)
    result = defs.resolve_job_def(JOB).execute_in_process(
        instance=instance,
        asset_selection=[dg.AssetKey(["calibration", "copy"])],
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        raise_on_error=False,
    )
    assert not result.success
    (check,) = result.get_asset_check_evaluations()
    assert not check.passed
    assert check.description == (
        "the formula of copy is at most 2.10 % off, limit 2 %, at 2 calls: 1,021 cycles (estimated), "
        "1,000 (simulated) for 1,64"
    )
    assert main(["calibrate", "copy"]) == 1


def test_the_command_prints_a_line_for_each_family(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["calibrate", "copy", "reduce", "--page", str(tmp_path / "page.html")]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("the formula of copy is at most ")
    assert second.startswith("the formula of reduce is at most ")
    assert last == f"plots: {tmp_path / 'page.html'}"
    assert main(["calibrate", "copies"]) == 1
    assert "there is no such kernel family" in capsys.readouterr().err


def test_deviations_are_the_formula_against_the_simulation() -> None:
    assert point(1021).deviation == pytest.approx(0.021)
    within = Calibration(family="copy", extents=("rows", "row_bytes"), points=(point(1000), point(981)))
    assert within.is_within_limit
    assert within.worst.estimated == 981
    with pytest.raises(ValueError, match="no call of copy was measured"):
        Calibration(family="copy", extents=("rows", "row_bytes"), points=())
    assert len(small_plot(calibrate("gemm"))) < 1000
    assert "2.10 % off" in page(
        [Calibration(family="copy", extents=("rows", "row_bytes"), points=(point(1021),))]
    )
