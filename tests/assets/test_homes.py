"""Homes of Dagster under stress: many first uses at once, and processes that are killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest

from assets.processes import PROCESS_TAG, has_ended, this_process
from compiler.fingerprint import REPOSITORY
from pipeline.home import VARIABLE, prepare
from pipeline.lost_runs import LOST, lost_runs
from pipeline.notices import FAILURE_TAG

COMMAND = (sys.executable, "-W", "ignore", "-m", "pipeline.cli")


def started(words: list[str], home: Path) -> subprocess.Popen[str]:
    """A command of ours with a home."""
    return subprocess.Popen(
        [*COMMAND, *words],
        cwd=home.parent,
        env={**os.environ, VARIABLE: str(home), "PYTHONPATH": str(REPOSITORY.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_twelve_first_uses_of_a_home_at_once(tmp_path: Path) -> None:
    """Each runs a stage; all of them are in the one history afterwards."""
    words = ["materialize", "four-tiles", "expansion", "--store", str(tmp_path / "store")]
    commands = [started(words, tmp_path / "home") for _ in range(12)]
    said = [(command.communicate(), command.returncode) for command in commands]
    assert [code for _, code in said] == [0] * 12, said
    assert {error for (_, error), _ in said} == {""}
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        runs = instance.get_runs()
    assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 12


@pytest.mark.slow
def test_a_build_that_is_killed_leaves_everything_usable(tmp_path: Path) -> None:
    """The next one succeeds, takes what the killed one finished, and ends its run for it."""
    home = tmp_path / "home"
    words = ["build", "four-tiles", "--dagster", "--runs", "1", "--store", str(tmp_path / "store")]
    killed = started(words, home)
    assert killed.stdout is not None
    assert killed.stderr is not None
    assert killed.stdout.readline().startswith("expansion: computed ")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL
    with dg.DagsterInstance.from_config(str(home)) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.STARTED, "so Dagster believes"

    following = started(words, home)
    out, error = following.communicate()
    assert (following.returncode, error) == (0, "")
    assert out.startswith("expansion: reused, ")
    assert (tmp_path / "four-tiles.ipuexe").is_file()
    with dg.DagsterInstance.from_config(str(home)) as instance:
        latest, earlier = instance.get_runs()
        assert latest.status is dg.DagsterRunStatus.SUCCESS
        assert earlier.run_id == run.run_id
        assert earlier.status is dg.DagsterRunStatus.FAILURE
        assert earlier.tags[FAILURE_TAG] == LOST


def test_a_run_is_lost_when_its_process_is(tmp_path: Path) -> None:
    """A process that lives, one that ended, one of a number that was given again, and those elsewhere."""
    assert not has_ended(this_process())
    machine, boot, number, start = this_process().split(" ")
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    assert has_ended(f"{machine} {boot} {gone.pid} {start}")
    assert has_ended(f"{machine} {boot} {number} {int(start) - 1}")
    assert has_ended(f"{machine} {'0' * len(boot)} {number} {start}")
    assert not has_ended(f"elsewhere {boot} {gone.pid} {start}")
    assert not has_ended("said otherwise")

    prepare(tmp_path / "home")
    with dg.DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        lives, lost = (
            instance.create_run_for_job(
                _nothing, status=dg.DagsterRunStatus.STARTED, tags={PROCESS_TAG: process}
            ).run_id
            for process in (this_process(), f"{machine} {boot} {gone.pid} {start}")
        )
        context = dg.build_sensor_context(instance=instance)
        assert lost_runs(context) == dg.SkipReason(f"ended {lost}")
        assert lost_runs(context) == dg.SkipReason("every run that goes on has its process")
        found: Mapping[str, dg.DagsterRunStatus] = {run.run_id: run.status for run in instance.get_runs()}
    assert found == {lives: dg.DagsterRunStatus.STARTED, lost: dg.DagsterRunStatus.FAILURE}


@dg.job  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
def _nothing() -> None:
    pass
