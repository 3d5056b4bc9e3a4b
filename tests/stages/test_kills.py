"""Builds that are killed at any moment: what they did stays, and the next ends as if nothing was."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compiler.fingerprint import REPOSITORY
from compiler.store.store import Store
from compiler.store.verify import scrub

KILLS = 5
BUILD = ("build", "mlp-smoke", "--tiles", "64", "--attempts", "2", "--runs", "1")


def begun(folder: Path, name: str, *words: str) -> subprocess.Popen[str]:
    """A build that runs; its package is ``name`` in ``folder``."""
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "pipeline.cli", *BUILD, "--output", str(folder / f"{name}.ipuexe")),
            *("--store", str(folder / "store"), *words),
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY.root)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def package(folder: Path, name: str, *words: str) -> bytes:
    """The package of a build that nobody disturbs."""
    build = begun(folder, name, *words)
    _, complaints = build.communicate(timeout=600)
    assert (build.returncode, complaints) == (0, "")
    return (folder / f"{name}.ipuexe").read_bytes()


@pytest.mark.slow
def test_a_build_killed_again_and_again_ends_with_the_same_package(tmp_path: Path) -> None:
    """CA-06, DS-13: killed at five random moments with two workers, then resumed with one.

    The package is the one of a build that used no store, and the one of a warm build.
    """
    started = time.monotonic()
    wanted = package(tmp_path, "disabled", "--cache", "off")
    seconds = time.monotonic() - started
    dice = random.Random(11)
    for _ in range(KILLS):
        build = begun(tmp_path, "killed", "--workers", "2")
        try:
            build.wait(timeout=dice.uniform(0.2, 1.0) * seconds)
        except subprocess.TimeoutExpired:
            build.kill()
        build.communicate(timeout=30)  # no worker outlives its build and keeps what it prints to
    assert package(tmp_path, "resumed") == wanted
    assert package(tmp_path, "warm", "--workers", "2") == wanted
    with Store.open(tmp_path / "store") as store:
        found = scrub(store)
    assert (found.damaged, found.incomplete) == ((), ())
    assert not list(tmp_path.glob(".*.part"))
