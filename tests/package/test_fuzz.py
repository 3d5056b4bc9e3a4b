"""Mutated packages load or end in ``PackageInvalid``, without a crash and in bounded memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MUTANTS = 100_000


@pytest.mark.slow
def test_mutated_packages_load_or_end_in_package_invalid() -> None:
    """In a process of its own: a signal or a lack of memory fails the test and does not end the tests."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.package.fuzz", "2026", str(MUTANTS)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    outcomes = json.loads(child.stdout)
    assert outcomes["loaded"] + outcomes["invalid"] == MUTANTS
    # Mutations that break everything, or nothing, would test little.
    assert 0.05 < outcomes["loaded"] / MUTANTS < 0.5
