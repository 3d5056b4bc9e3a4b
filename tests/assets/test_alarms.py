"""Every check of a build fails when what it watches is wrong: faults are made on purpose, through options.

What stands behind a failed check does not run, and what it says holds the numbers and their limits.
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import dagster as dg
import pytest

from assets.slowdown import SLOWER_TAG
from compiler.compile import Results
from compiler.config import BuildOptions, InjectOptions
from compiler.models import programs
from pipeline.cli import main
from pipeline.home import VARIABLE
from tests.assets.launching import failures, launched, materialized, metadata_of, names_of, verdicts
from tests.stages.builds import MODEL, MODEL_OPTIONS, SMALL

Fault = Literal["none", "wrong_output", "more_cycles", "unrepeatable", "worse_program"]


@pytest.fixture
def store(builds: tuple[Path, Mapping[str, Results]], tmp_path: Path) -> Path:
    """A copy of the shared store, for wrong results."""
    return shutil.copytree(builds[0], tmp_path / "store")


def with_fault(fault: Fault, options: BuildOptions | None = None) -> BuildOptions:
    """Options of a build with something wrong."""
    chosen = BuildOptions() if options is None else options
    return chosen.model_copy(update={"inject": InjectOptions(fault=fault)})


def description_of(result: dg.ExecuteInProcessResult, name: str) -> str:
    """What a failed check says."""
    (check,) = [check for check in result.get_asset_check_evaluations() if check.check_name == name]
    assert not check.passed
    return str(check.description)


def test_a_wrong_output_of_a_model_fails_against_the_reference(
    instance: dg.DagsterInstance, store: Path
) -> None:
    result = launched(instance, MODEL, store, options=with_fault("wrong_output", MODEL_OPTIONS))
    assert not result.success
    names = names_of(MODEL)
    assert list(materialized(result)) == names[: names.index("simulation") + 1]
    said = description_of(result, "numerics_equal")
    assert re.match(
        r"run 0, output second: [\d,]+ of [\d,]+ elements are beyond the tolerance, the first at \[.*\]: "
        r"\S+ instead of \S+; run 1, ",
        said,
    )


def test_a_program_that_is_worse_than_the_baseline_goes_no_further(
    instance: dg.DagsterInstance, store: Path
) -> None:
    result = launched(instance, MODEL, store, options=with_fault("worse_program", MODEL_OPTIONS))
    assert not result.success
    names = names_of(MODEL)
    assert list(materialized(result)) == names[: names.index("proposal_rounds") + 1]
    said = description_of(result, "never_worse_than_baseline")
    assert re.fullmatch(r"accepted: [\d,]+ cycles \(scheduled\), limit [\d,]+, [\d,]+ too many", said)


def test_bytes_that_no_two_runs_have_alike_fail_where_they_are_made(
    instance: dg.DagsterInstance, store: Path
) -> None:
    options = with_fault("unrepeatable")
    assert launched(instance, SMALL, store, options=options).success
    result = launched(instance, SMALL, store, options=options, cache="verify")
    assert not result.success
    assert verdicts(result)["emission/second_build_identical"]
    assert not verdicts(result)["simulation/second_build_identical"]
    assert "gave different bytes" in failures(result)["small__simulation"]


def test_more_cycles_are_a_warning_by_day_and_an_error_by_night(
    instance: dg.DagsterInstance, store: Path
) -> None:
    """The run says so in a tag; a fault that was made on purpose is nothing to be compared with."""
    first = launched(instance, SMALL, store)
    assert verdicts(first)["simulation/no_more_cycles"]
    before = metadata_of(materialized(first)["simulation"])["run 1 (cycles, simulated)"]
    day = launched(instance, SMALL, store, options=with_fault("more_cycles"))
    assert day.success
    said = description_of(day, "no_more_cycles")
    assert said.startswith(f"{before:,} -> {before * 5 // 4:,} cycles (simulated), +2")
    assert said.endswith(f" %, limit {int(before * 1.005):,}")
    run = instance.get_run_by_id(day.run_id)
    assert run is not None
    assert run.tags[SLOWER_TAG] == f"simulation: {said}"

    again = launched(instance, SMALL, store, options=with_fault("more_cycles"))
    assert verdicts(again)["simulation/no_more_cycles"]
    assert launched(instance, SMALL, store).success
    night = launched(instance, SMALL, store, options=with_fault("more_cycles"), cache="verify")
    assert not night.success
    assert description_of(night, "no_more_cycles") == said


def test_a_failed_check_ends_the_command_with_1_and_leaves_no_package(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PROGRAMS", {SMALL.name: SMALL})
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    words = ["build", "small", "--store", str(store), "--dagster", "--inject"]
    assert main([*words, "more_cycles"]) == 0
    assert main([*words, "wrong_output"]) == 1
    assert re.match(
        r"check numerics_equal of small/simulation failed: run 0, output y: [\d,]+ of [\d,]+ elements differ "
        r"from the low program's, the first at ",
        capsys.readouterr().err,
    )
    assert [path.name for path in tmp_path.glob("*.ipuexe")] == ["small.ipuexe"]
