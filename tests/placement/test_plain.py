"""Plain instances: public ones, cut ones with a known packing, and every small one by brute force."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import strategies as st

from compiler.errors import InvalidInput
from compiler.placement.plain import PlainAnswer, PlainOutcome, PlainProblem, parse_plain, place_plain
from pipeline.cli import main

FOLDER = Path(__file__).parent.parent / "fixtures" / "minimalloc"
CAPACITY = 1_048_576


def _faults(problem: PlainProblem, capacity: int, answer: PlainAnswer) -> list[str]:
    """What is wrong with offsets, by looking at every pair."""
    rows = list(
        zip(
            problem.lower.tolist(),
            problem.upper.tolist(),
            problem.size.tolist(),
            answer.offsets.tolist(),
            strict=True,
        )
    )
    faults = [f"{row} outside" for row in rows if row[3] < 0 or row[3] + row[2] > capacity]
    for (l1, u1, s1, o1), (l2, u2, s2, o2) in itertools.combinations(rows, 2):
        if l1 < u2 and l2 < u1 and o1 < o2 + s2 and o2 < o1 + s1:
            faults.append(f"{(l1, u1, s1, o1)} meets {(l2, u2, s2, o2)}")
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("name", "ABCDE")
def test_public_instances_are_placed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / f"{name}.{CAPACITY}.csv"
    assert main(["place", str(path), "--capacity", str(CAPACITY), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    problem = parse_plain(path.read_text(), subject=name)
    offsets = np.array([record["offsets"][identity] for identity in problem.names], dtype=np.int64)
    answer = PlainAnswer(outcome=PlainOutcome.PLACED, offsets=offsets, nodes=0, conflict=())
    assert _faults(problem, CAPACITY, answer) == []
    assert record["outcome"] == "placed"
    assert record["height"] == int((offsets + problem.size).max())
    assert record["bound"] <= record["height"] <= record["capacity"] == CAPACITY


@pytest.mark.parametrize("name", "ABCDE")
def test_orders_alone_say_what_they_cannot_place(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / f"{name}.{CAPACITY}.csv"
    assert main(["place", str(path), "--capacity", str(CAPACITY), "--json", "--orders-only"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert record["outcome"] == "unknown"
    assert record["offsets"] == {}
    assert record["height"] is None


def cut(seed: int, count: int, moments: int, units: int) -> PlainProblem:
    """A rectangle of time by memory, cut again and again: it fills ``units`` bytes, and only just fits."""
    chance = np.random.default_rng(seed)
    pieces = [(0, moments, 0, units)]
    while len(pieces) < count:
        number = int(chance.integers(len(pieces)))
        lower, upper, low, high = pieces[number]
        if chance.random() < 0.5 and upper - lower > 1:
            at = int(chance.integers(lower + 1, upper))
            pieces[number : number + 1] = [(lower, at, low, high), (at, upper, low, high)]
        elif high - low > 1:
            at = int(chance.integers(low + 1, high))
            pieces[number : number + 1] = [(lower, upper, low, at), (lower, upper, at, high)]
    mixed: list[int] = chance.permutation(len(pieces)).tolist()
    pieces = [pieces[place] for place in mixed]
    return PlainProblem(
        names=tuple(str(number) for number in range(len(pieces))),
        lower=np.array([piece[0] for piece in pieces]),
        upper=np.array([piece[1] for piece in pieces]),
        size=np.array([piece[3] - piece[2] for piece in pieces]),
    )


@pytest.mark.parametrize(("seed", "count"), [(1, 20), (2, 40), (3, 60), (4, 90), (5, 120)])
def test_a_rectangle_that_was_cut_is_put_together(seed: int, count: int) -> None:
    problem = cut(seed, count, 150, 1024)
    answer = place_plain(problem, 1024)
    assert answer.outcome is PlainOutcome.PLACED
    assert _faults(problem, 1024, answer) == []
    less = place_plain(problem, 1023)
    assert less.outcome is PlainOutcome.INFEASIBLE
    kept = [problem.size[row] for row in less.conflict]
    assert sum(kept) > 1023


@pytest.mark.parametrize("room", [1.5, 1.0, 0.9])
def test_more_buffers_than_can_be_searched_get_a_right_answer(room: float) -> None:
    chance = np.random.default_rng(5)
    lower: npt.NDArray[np.int64] = chance.integers(0, 50_000, 5000)
    upper = lower + chance.integers(1, 300, 5000)
    lower[0], upper[0] = 0, 60_000  # joins them all
    size: npt.NDArray[np.int64] = chance.integers(1, 1000, 5000)
    problem = PlainProblem(names=tuple(map(str, range(5000))), lower=lower, upper=upper, size=size)
    bound, live = problem.bound()
    assert bound == max(int(size[(lower <= now) & (now < upper)].sum()) for now in lower.tolist())
    assert bound == size[live].sum()
    capacity = int(bound * room)
    answer = place_plain(problem, capacity)
    if room < 1:
        assert answer.outcome is PlainOutcome.INFEASIBLE
        kept = size[list(answer.conflict)]
        assert kept.sum() > capacity >= kept.sum() - kept.min()
        return
    assert answer.outcome is (PlainOutcome.PLACED if room > 1 else PlainOutcome.UNKNOWN)
    if room > 1:
        offset = answer.offsets
        assert int((offset + size).max()) <= capacity
        for row in range(0, 5000, 10):
            meets = (lower < upper[row]) & (lower[row] < upper)
            meets &= (offset < offset[row] + size[row]) & (offset[row] < offset + size)
            assert meets.sum() == 1


@st.composite
def _small(draw: st.DrawFn) -> tuple[PlainProblem, int]:
    count = draw(st.integers(1, 6))
    lower = [draw(st.integers(0, 5)) for _ in range(count)]
    upper = [draw(st.integers(first + 1, 6)) for first in lower]
    size = [draw(st.integers(1, 4)) for _ in range(count)]
    names = tuple(str(number) for number in range(count))
    problem = PlainProblem(
        names=names, lower=np.array(lower), upper=np.array(upper), size=np.array(size, dtype=np.int64)
    )
    return problem, max(1, problem.bound()[0] + draw(st.integers(-1, 1)))


def _solutions(problem: PlainProblem, capacity: int) -> Iterator[PlainAnswer]:
    for offsets in itertools.product(*[range(capacity - size + 1) for size in problem.size.tolist()]):
        answer = PlainAnswer(
            outcome=PlainOutcome.PLACED, offsets=np.array(offsets, dtype=np.int64), nodes=0, conflict=()
        )
        if not _faults(problem, capacity, answer):
            yield answer


@hypothesis.given(_small())
def test_small_instances_are_decided_as_by_brute_force(drawn: tuple[PlainProblem, int]) -> None:
    problem, capacity = drawn
    answer = place_plain(problem, capacity)
    hypothesis.assume(np.prod(np.maximum(capacity - problem.size + 1, 1)) < 3000)
    exists = next(_solutions(problem, capacity), None) is not None
    assert answer.outcome is (PlainOutcome.PLACED if exists else PlainOutcome.INFEASIBLE)
    if exists:
        assert _faults(problem, capacity, answer) == []
    else:
        rows = list(answer.conflict)
        assert next(_solutions(problem.only(rows), capacity), None) is None
        for row in rows:
            rest = [other for other in rows if other != row]
            assert not rest or next(_solutions(problem.only(rest), capacity), None) is not None


def test_columns_may_come_in_any_order() -> None:
    problem = parse_plain("size, id ,upper,lower\r\n4, x ,2,0\n\n3,y,3,2\n", subject="file")
    assert problem.names == ("x", "y")
    assert (problem.lower.tolist(), problem.upper.tolist(), problem.size.tolist()) == ([0, 2], [2, 3], [4, 3])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the columns are missing, not id, lower, upper, size"),
        ("id,lower,upper\n", "the columns are id, lower, upper, not id, lower, upper, size"),
        ("id,lower,upper,size\n", "there is no buffer in it"),
        ("id,lower,upper,size\na,0,1\n", "row 1 has 3 fields, not 4"),
        ("id,lower,upper,size\na,0,1,x\n", "row 1: size is no number from 0 to 281,474,976,710,656"),
        ("id,lower,upper,size\na,-1,1,1\n", "row 1: lower is no number from 0 to 281,474,976,710,656"),
        ("id,lower,upper,size\na,1,1,1\n", "row 1: a buffer lives for a moment and has a byte, at least"),
        ("id,lower,upper,size\na,0,1,1\na,0,1,1\n", "two buffers have the id a"),
    ],
)
def test_what_is_no_instance_is_refused(text: str, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_plain(text, subject="file")
    assert caught.value.message == reason


def test_the_command_tells_what_cannot_coexist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.csv"
    path.write_text("id,lower,upper,size\na,0,4,600\nb,2,6,500\nc,3,4,10\nd,5,8,900\n")
    assert main(["place", str(path), "--capacity", "1000"]) == 1
    assert capsys.readouterr().out.splitlines()[:-1] == [
        "infeasible: 4 buffers in 1,000 bytes",
        "  most bytes live at once: 1,400 (bound), at 5",
        "  these cannot coexist, 400 bytes too many live at once: b, d",
        "  next: give 1,400 bytes or more, or let one of these be smaller or live less long",
    ]
    assert main(["place", str(path), "--capacity", "1400"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "placed: 4 buffers in 1,400 bytes"


_INTERLOCKED = {
    "a": (0, 2, 3),
    "b": (0, 4, 1),
    "c": (2, 3, 2),
    "d": (2, 6, 1),
    "e": (3, 7, 1),
    "f": (4, 5, 2),
    "g": (6, 7, 3),
    "late": (5, 6, 2),
}
"""Buffers (lower, upper, size): never more than four bytes live, and yet four bytes are not enough."""


def test_the_command_tells_what_a_search_refuted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every moment has room for its bytes, and yet there is no packing; one is not needed for that."""
    path = tmp_path / "interlocked.csv"
    path.write_text(
        "id,lower,upper,size\n"
        + "\n".join(f"{name},{lower},{upper},{size}" for name, (lower, upper, size) in _INTERLOCKED.items())
    )
    assert main(["place", str(path), "--capacity", "4"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["infeasible: 8 buffers in 4 bytes", "  most bytes live at once: 4 (bound), at 0"]
    assert told[2] == (
        "  these cannot coexist, though never too many bytes live at once: a, b, c, d, e, f, g"
    )
    assert told[3] == "  next: give more bytes, or let one of these be smaller or live less long"
    assert main(["place", str(path), "--capacity", "4", "--orders-only"]) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "unknown: 8 buffers in 4 bytes"
    assert told[2:4] == [
        "  neither placed nor proven impossible",
        "  next: give more bytes, or more decisions with --nodes",
    ]


def test_what_refutes_is_found_among_many_others() -> None:
    """Seven buffers interlock; hundreds of others follow in the same part, and none of them is named."""
    rows = [_INTERLOCKED[name] for name in "abcdefg"]
    rows = [(lower, upper, 100 * size) for lower, upper, size in rows]
    rows += [(6 + number, 12 + number, 1) for number in range(300)]
    lower, upper, size = np.array(rows).T
    problem = PlainProblem(names=tuple(map(str, range(len(rows)))), lower=lower, upper=upper, size=size)
    answer = place_plain(problem, 400 + 1)
    assert answer.outcome is PlainOutcome.INFEASIBLE
    assert answer.conflict == tuple(range(7))
