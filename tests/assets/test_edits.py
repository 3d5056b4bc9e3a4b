"""What edits of generators and of the row encoder do to stages, tried in a copy of the sources."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.home import VARIABLE
from tests.ui.serving import copied_checkout


def materialized(checkout: Path, stage: str, *more: str) -> str:
    """What ``tilewright materialize`` in a checkout says."""
    words = ["materialize", "mlp-smoke", stage, "--tiles", "16", "--attempts", "0", "--runs", "1", *more]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-B", "-m", "pipeline.cli", *words, "--store", "../store"],
        cwd=checkout,
        env={**os.environ, VARIABLE: str(checkout.parent / "home"), "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def edit(checkout: Path, path: str) -> None:
    """Add a statement that changes nothing."""
    file = checkout / path
    file.write_text(f"{file.read_text()}\n_ADDED = 1\n")


@pytest.mark.slow
def test_edits_behind_planning_leave_it_fresh_and_the_search_says_whether_it_holds(tmp_path: Path) -> None:
    checkout = copied_checkout(tmp_path / "checkout")
    first = materialized(checkout, "model_graph", "--from")
    assert re.findall(r"^(\w+): (\w+)", first, re.MULTILINE)[:3] == [
        ("model_graph", "computed"),
        ("baseline_candidate", "computed"),
        ("proposal_rounds", "computed"),
    ]

    for edited, consumed in (
        ("compiler/kernels/gemm/code.py", "kernel_objects"),
        ("compiler/exchange/rows.py", "exchange.rows"),
    ):
        edit(checkout, edited)
        assert materialized(checkout, "baseline_candidate").startswith("baseline_candidate: reused, ")
        result, why, outcome = materialized(checkout, "proposal_rounds").splitlines()
        assert result.startswith("proposal_rounds: computed in ")
        assert why == f"  since consumed stage {consumed} has not been run under its present code"
        assert outcome == ("  the outcome still holds: the bytes are those that were materialized before")
