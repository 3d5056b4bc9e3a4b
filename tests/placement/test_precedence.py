"""The search by precedence decides small problems as trying everything does, strides included."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.geometry.owners import TileId
from compiler.low.ir import Role
from compiler.placement.check import check
from compiler.placement.place import Infeasible, Placed, attempt, place
from compiler.placement.precedence import search_precedences
from compiler.placement.problem import Reserved, TileProblem, members_of, problems_of, runtime_ranges
from compiler.placement.search import Verdict
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, element_key
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.units import Address
from tests.placement.constrained import constrained
from tests.placement.programs import Life, Lives, program_of, random_lives

WORK = 2_000_000


def _places(problem: TileProblem, request: int, base: int, stride: int) -> list[tuple[int, int]]:
    """(span, address) of a request's spans."""
    spans = problem.spans_of(request)
    change = stride - int(problem.stride[request])
    return [
        (span, base + int(problem.offset[span] + problem.member[span] * change))
        for span in range(spans.start, spans.stop)
    ]


def _meets(problem: TileProblem, one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two spans live at once and share bytes, or an element that they must not share."""
    (a, low), (b, high) = one, other
    if problem.first[a] > problem.last[b] or problem.first[b] > problem.last[a]:
        return False
    if sorted((a, b)) in problem.apart.tolist():
        keys = [
            {
                element_key(Address(start)),
                element_key(Address(start + int(problem.size[s] + problem.tail[s]) - 1)),
            }
            for s, start in (one, other)
        ]
        if keys[0] & keys[1]:
            return True
    if problem.request[a] == problem.request[b]:
        return bool(problem.sequence[problem.request[a]] >= 0 and abs(low - high) < problem.size[a])
    return bool(low < high + problem.size[b] and high < low + problem.size[a])


def _fits(problem: TileProblem, place: tuple[int, int]) -> bool:
    span, start = place
    stop = start + int(problem.size[span])
    if start < (INTERLEAVED.base if problem.interleaved[span] else SRAM_BASE):
        return False
    if stop + problem.tail[span] > SRAM_END:
        return False
    concerned = problem.blocked.tolist() + (problem.between.tolist() if problem.resident[span] else [])
    return all(stop <= low or high <= start for low, high in concerned)


def exists(problem: TileProblem, low: int, high: int) -> bool:
    """Whether some bases and strides between two addresses place everything, by trying all of them."""
    members = members_of(problem)
    placed: list[tuple[int, int]] = []

    def extend(request: int) -> bool:
        if request == len(problem.alignment):
            return True
        grain = int(problem.alignment[request])
        strides = [int(problem.stride[request])]
        if members[request] > 1:
            strides = list(range(strides[0], high - low, grain))
        for stride in strides:
            for base in range(-(-low // grain) * grain, high, grain):
                own = _places(problem, request, base, stride)
                everything = placed + own
                if all(_fits(problem, place) for place in own) and not any(
                    _meets(problem, one, other)
                    for number, one in enumerate(everything)
                    for other in everything[max(number + 1, len(placed)) :]
                ):
                    placed.extend(own)
                    if extend(request + 1):
                        return True
                    del placed[-len(own) :]
        return False

    return extend(0)


@hypothesis.settings(deadline=None)
@hypothesis.given(
    random_lives(most=4, sizes=st.integers(1, 5), steps=3),
    st.integers(-6, 8),
    st.integers(0, 4),
    st.integers(6, 14),
)
def test_small_problems_are_decided_as_by_brute_force(lives: Lives, hole: int, size: int, room: int) -> None:
    """Around a border of elements and of the regions, with a hole."""
    border = INTERLEAVED.base
    low, high = border - 24, border + 4 * room
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=low - SRAM_BASE),
        Reserved(tile=TileId(0), start=border + 4 * hole, size=4 * size),
        Reserved(tile=TileId(0), start=high, size=SRAM_END - high),
    )
    program = program_of(lives)
    problem = problems_of(program, reserved)[0]
    found = search_precedences(problem, WORK)
    assert found.verdict is not Verdict.GIVEN_UP
    # What is told as a solution is looked at by the checker; that there is none, by trying everything.
    outcome = attempt(program, reserved)
    if found.verdict is Verdict.FOUND:
        places = [
            place
            for request in range(len(problem.alignment))
            for place in _places(problem, request, int(found.base[request]), int(found.stride[request]))
        ]
        assert all(_fits(problem, place) for place in places)
        assert not any(
            _meets(problem, one, other) for number, one in enumerate(places) for other in places[number + 1 :]
        )
        assert isinstance(outcome, Placed)
        assert check(program, outcome.placement, reserved) == ()
    else:
        assert not exists(problem, low, high)
        assert isinstance(outcome, Infeasible)


@pytest.mark.parametrize(("seed", "count", "slack"), [(2, 16, 0.02), (4, 20, 0.03)])
def test_sequences_that_straddle_a_reserved_range_get_their_strides(
    seed: int, count: int, slack: float
) -> None:
    """RP-02: several sequences of three members, whose strides must fit each other."""
    program, reserved = constrained(seed, count, slack)
    outcome = attempt(program, reserved)
    assert isinstance(outcome, Placed)
    assert check(program, outcome.placement, reserved) == ()


def test_no_stride_is_a_proof() -> None:
    """Eight lives of which the sequences cannot be put around a hole, at any stride."""
    program, reserved = constrained(1, 8, 0.05)
    outcome = attempt(program, reserved)
    assert isinstance(outcome, Infeasible)
    assert outcome.proof.bound is None


def test_members_that_must_be_apart_are() -> None:
    """Two members of one sequence that a call takes at once: the stride reaches into another element."""
    program = program_of(
        Lives(lives=(Life(byte_count=640, members=3), Life(byte_count=64))), apart_members=((0, 1), (1, 2))
    )
    placement = place(program, ())
    assert check(program, placement, ()) == ()
    assert len({element_key(Address(address)) for address in placement.address[:3].tolist()}) == 3


def test_what_shares_storage_may_have_to_be_apart_from_its_root() -> None:
    """Root and alias are rigid, so the base must be such that a border of elements is between them."""
    lives = Lives(lives=(Life(byte_count=1024, first=0, last=1, aliases=((960, 4096, 0, 1),)),))
    program = program_of(lives, apart_members=((0, 1),))
    with pytest.raises(Exception, match="does not fit"):
        place(program, ())


def test_temporaries_may_lie_where_the_host_works_between_runs() -> None:
    """A tile that is full but for the host's window has room for what lives in steps only (TA-06)."""
    window = DEFAULT_LAYOUT.window
    kept = SRAM_END - DEFAULT_LAYOUT.data_start
    lives = Lives(
        lives=(
            Life(byte_count=kept, alignment=4, role=Role.PARAMETER),
            Life(byte_count=int(window.size), first=0, last=0),
        )
    )
    program, reserved = program_of(lives), runtime_ranges(DEFAULT_LAYOUT, 2)
    placement = place(program, reserved)
    assert check(program, placement, reserved) == ()
    assert placement.address[:2].tolist() == [DEFAULT_LAYOUT.data_start, window.start]


def test_the_work_of_a_search_is_limited_and_the_same_each_time() -> None:
    program, reserved = constrained(0, 40, 0.0)
    problem = problems_of(program, reserved)[0]
    one, other = (search_precedences(problem, 300_000) for _ in range(2))
    assert one.verdict is other.verdict is Verdict.GIVEN_UP
    assert one.nodes == other.nodes > 0
    assert np.array_equal(one.base, other.base)
