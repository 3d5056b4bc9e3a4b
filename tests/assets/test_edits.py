"""What edits of generators and of the row encoder do to stages, tried in a copy of the sources.

The search lists what it consumed, and says whether its outcome still holds; a package that is emitted alone
meanwhile is told to be of a search of other code.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.chain import MODEL_CHAIN
from pipeline.home import VARIABLE
from tests.ui.serving import copied_checkout


def said(checkout: Path, *words: str) -> str:
    """What ``tilewright`` in a checkout says."""
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


def materialized(checkout: Path, stage: str, *more: str) -> str:
    """What ``tilewright materialize`` says."""
    options = ("--tiles", "16", "--attempts", "0", "--runs", "1")
    return said(checkout, "materialize", "mlp-smoke", stage, *options, *more)


def stale(checkout: Path) -> set[str]:
    """The stages of the last build whose own code is another now, as ``tilewright explain`` says."""
    parts = re.split(r"^(?=\w+: done)", said(checkout, "explain", "mlp-smoke"), flags=re.MULTILINE)[1:]
    assert len(parts) == len(MODEL_CHAIN)
    found = {part.partition(":")[0] for part in parts if "  would run again, since code has changed" in part}
    fresh = {part.partition(":")[0] for part in parts if "  would be reused for the same inputs" in part}
    assert found | fresh == {stage.name for stage in MODEL_CHAIN}
    return found


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
    assert stale(checkout) == set()

    edited: tuple[tuple[str, str, set[str]], ...] = (
        ("compiler/kernels/gemm/code.py", "kernel_objects", {"kernel_objects"}),
        ("compiler/exchange/rows.py", "exchange.rows", set()),
    )
    known: set[str] = set()
    for path, consumed, made_stale in edited:
        edit(checkout, path)
        assert stale(checkout) - known == made_stale
        known |= made_stale
        if consumed in made_stale:  # emission alone runs the encoder, and no generator
            assert materialized(checkout, "emission").splitlines()[-1] == (
                f"  warning: search_outcome_holds: unknown: consumed stage {consumed} has not been run under "
                "its present code. Materialize proposal_rounds to see whether its outcome still holds."
            )
        result, why, outcome = materialized(checkout, "proposal_rounds").splitlines()
        assert result.startswith("proposal_rounds: computed in ")
        assert why == f"  since consumed stage {consumed} has not been run under its present code"
        assert outcome == ("  the outcome still holds: the bytes are those that were materialized before")
        assert "warning" not in materialized(checkout, "emission")
