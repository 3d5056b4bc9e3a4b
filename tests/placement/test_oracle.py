"""Constrained problems against CP-SAT: what is refuted has no solution, and CP-SAT places no more of them.

``fixtures/placement/cp_sat.json`` holds what CP-SAT found out in 60 seconds of one core each: rows of seed,
lives, slack and judgement. Run as a script for a comparison of other problems:
``python -m tests.placement.test_oracle SEEDS LIVES SLACK SECONDS``.
"""

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from compiler.placement.check import check
from compiler.placement.model import model_of
from compiler.placement.place import Infeasible, Outcome, Placed, Unknown, attempt
from compiler.placement.problem import problems_of
from compiler.placement.search import LOWEST, WEIGHTED_WAYS, Verdict, search
from tests.placement.constrained import constrained

if TYPE_CHECKING:
    from tests.placement.oracle import Judgement

_RECORDED: Final[list[tuple[int, int, float, str]]] = [
    tuple(row)
    for row in json.loads((Path(__file__).parent.parent / "fixtures/placement/cp_sat.json").read_text())
]


def _agrees(seed: int, count: int, slack: float, judgement: str) -> None:
    """Nothing is missed that CP-SAT places, nothing refuted that it places, or placed that it refutes."""
    program, reserved = constrained(seed, count, slack)
    outcome = attempt(program, reserved)
    match outcome:
        case Placed():
            assert check(program, outcome.placement, reserved) == ()
            assert judgement != "infeasible"
        case Infeasible():
            assert judgement != "placed"
        case Unknown():
            assert outcome.tried.nodes > 0
            assert judgement != "placed"


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_missed_that_was_placed_with_some_room(seed: int) -> None:
    rows = [row for row in _RECORDED if row[0] == seed and row[2] >= 0.02 and row[1] < 40]
    assert len(rows) >= 20
    for row in rows:
        _agrees(*row)


def test_tries_of_another_kind_find_what_the_first_kind_misses() -> None:
    """Why the last turn of a search does not begin as the first did: a problem without a spare byte."""
    problem = problems_of(*constrained(0, 40, 0.0))[0]
    model = model_of(problem)
    assert search(model, 40_000, LOWEST).verdict is Verdict.GIVEN_UP
    assert search(model, 40_000, WEIGHTED_WAYS).verdict is Verdict.FOUND


@pytest.mark.slow
def test_nothing_is_missed_that_was_placed_with_little_room() -> None:
    for row in _RECORDED:
        if (row[2] < 0.02 or row[1] == 40) and row[3] != "unknown":
            _agrees(*row)


def _both(seed: int, count: int, slack: float, seconds: float) -> tuple[Outcome, "Judgement"]:
    from tests.placement.oracle import judge

    program, reserved = constrained(seed, count, slack)
    outcome = attempt(program, reserved)
    if isinstance(outcome, Placed):
        assert check(program, outcome.placement, reserved) == ()
    return outcome, judge(program, 0, reserved, seconds)


@pytest.mark.parametrize("slack", [-0.01, 0.0, 0.05])
@pytest.mark.parametrize("seed", range(16))
def test_what_is_refuted_has_no_solution(seed: int, slack: float) -> None:
    pytest.importorskip("ortools", reason="CP-SAT is not installed")
    from tests.placement.oracle import Judgement

    outcome, judgement = _both(seed, 5, slack, 5)
    match outcome:
        case Infeasible():
            assert judgement is Judgement.INFEASIBLE
        case Placed():
            assert judgement is Judgement.PLACED
        case Unknown():
            assert outcome.tried.nodes > 0


@pytest.mark.slow
@pytest.mark.parametrize(("count", "slack"), [(12, 0.04), (30, 0.03)])
def test_as_many_are_placed_as_by_the_oracle(count: int, slack: float) -> None:
    pytest.importorskip("ortools", reason="CP-SAT is not installed")
    from tests.placement.oracle import Judgement

    both = [_both(seed, count, slack, 3) for seed in range(6)]
    placed = sum(isinstance(outcome, Placed) for outcome, _ in both)
    assert placed >= sum(judgement is Judgement.PLACED for _, judgement in both)


def main(words: list[str]) -> None:
    """Prints how often each pair of outcomes occurs, and the longest time of ours."""
    from tests.placement.oracle import judge

    seeds, count, slack, seconds = int(words[0]), int(words[1]), float(words[2]), float(words[3])
    pairs: Counter[tuple[str, str]] = Counter()
    longest = 0.0
    for seed in range(seeds):
        program, reserved = constrained(seed, count, slack)
        begin = time.perf_counter()
        outcome = attempt(program, reserved)
        longest = max(longest, time.perf_counter() - begin)
        pairs[type(outcome).__name__, judge(program, 0, reserved, seconds).value] += 1
    for (ours, theirs), number in sorted(pairs.items()):
        sys.stdout.write(f"{ours} here, {theirs} by CP-SAT: {number}\n")
    sys.stdout.write(f"longest time here: {longest:.1f} s\n")


if __name__ == "__main__":
    main(sys.argv[1:])
