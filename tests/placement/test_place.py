"""Placements of random problems, by brute force where problems are small, and the outcomes that never mix."""

import itertools

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.errors import DoesNotFit
from compiler.geometry.owners import TileId
from compiler.low.ir import LowProgram, Role
from compiler.placement.check import check
from compiler.placement.firstfit import ORDERS, Bases, first_fit
from compiler.placement.ir import Placement
from compiler.placement.model import model_of, windows_of
from compiler.placement.place import Infeasible, Placed, Unknown, attempt, place
from compiler.placement.problem import Reserved, lifetimes, problems_of, runtime_ranges
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, STANDARD, Region, element_key
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.placement.devices import TILES, mlp_like
from tests.placement.programs import Life, Lives, program_of, random_lives

_RUNTIME = runtime_ranges(DEFAULT_LAYOUT, 2)


def _live_bytes(program: LowProgram, tile: int, step: int, *, interleaved: bool) -> int:
    """Bytes of a tile that live at a step, by counting bytes that are not shared."""
    first, last = lifetimes(program)
    buffers = program.buffers
    held: set[tuple[int, int]] = set()
    for row in np.flatnonzero((buffers.tile == tile) & (first <= step) & (step <= last)).tolist():
        if not interleaved or buffers.interleaved[row]:
            start = int(buffers.displacement[row])
            words = range(start // 4, (start + int(buffers.byte_count[row])) // 4)
            held.update((int(buffers.root[row]), word) for word in words)
    return 4 * len(held)


@hypothesis.given(random_lives(most=9, sizes=st.integers(1, 60_000)))
def test_what_is_placed_passes_the_check_and_what_is_infeasible_is_too_large(lives: Lives) -> None:
    program = program_of(lives)
    outcome = attempt(program, _RUNTIME)
    match outcome:
        case Placed(placement=placement):
            assert check(program, placement, _RUNTIME) == ()
        case Infeasible(proof=proof):
            problem, bound = outcome.problem, proof.bound
            hypothesis.assume(bound is not None)
            assert bound is not None
            assert bound.shortfall > 0
            needed = _live_bytes(
                program,
                problem.tile,
                int(problem.steps[bound.rank]),
                interleaved=bound.space.base == INTERLEAVED.base,
            )
            assert needed >= bound.needed
        case Unknown(tried=tried):
            assert all(bound.shortfall <= 0 for bound in tried.bounds)


def _exists(lives: Lives, low: int, high: int) -> bool:
    """Whether some bases in [low, high) place everything, by trying all of them."""
    program = program_of(lives)
    buffers = program.buffers
    roots = np.flatnonzero(buffers.tile == 0)
    leaders = [row for row in roots.tolist() if buffers.root[row] == row]
    assert len(program.sequences.first) == 0
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=low - SRAM_BASE),
        Reserved(tile=TileId(0), start=high, size=SRAM_END - high),
    )
    for bases in itertools.product(range(low, high, 4), repeat=len(leaders)):
        base = np.zeros(len(buffers.tile), dtype=np.int64)
        base[leaders] = bases
        base[buffers.tile == 1] = STANDARD.base
        placement = Placement(
            address=base[buffers.root] + buffers.displacement, stride=np.zeros(0, dtype=np.int64)
        )
        if not check(program, placement, reserved):
            return True
    return False


@hypothesis.settings(max_examples=40)
@hypothesis.given(random_lives(most=3, sizes=st.integers(1, 6), steps=3), st.sampled_from([0, 4, 8]))
def test_no_problem_with_a_solution_is_called_infeasible(lives: Lives, shift: int) -> None:
    singles = Lives(lives=tuple(life for life in lives.lives if life.members == 1), apart=())
    hypothesis.assume(singles.lives)
    low, high = INTERLEAVED.base + shift, INTERLEAVED.base + 40
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=low - SRAM_BASE),
        Reserved(tile=TileId(0), start=high, size=SRAM_END - high),
    )
    outcome = attempt(program_of(singles), reserved)
    if isinstance(outcome, Infeasible):
        assert not _exists(singles, low, high)
    elif isinstance(outcome, Placed):
        assert _exists(singles, low, high)


def test_equal_tiles_are_one_problem_and_get_equal_addresses() -> None:
    lives = tuple(
        Life(byte_count=4000 * size, first=first, last=2, tile=tile)
        for tile in (0, 1, 2)
        for size, first in ((3, 0), (5, 1), (7, 2))
    )
    program = program_of(Lives(lives=lives), tile_count=4)
    problems = problems_of(program, ())
    assert len({problem.digest() for problem in problems[:3]}) == 1
    placement = place(program, ())
    per_tile = [placement.address[program.buffers.tile == tile].tolist() for tile in (0, 1, 2)]
    assert per_tile[0] == per_tile[1] == per_tile[2]


@pytest.mark.parametrize(
    "change",
    [
        {"byte_count": 4004},
        {"alignment": 16},
        {"tail": 16},
        {"interleaved": True},
        {"last": 1},
        {"members": 2},
    ],
)
def test_whatever_matters_to_placement_is_in_the_digest(change: dict[str, int]) -> None:
    def digest(life: Life) -> bytes:
        other = Life(byte_count=400, first=2, last=2)
        return problems_of(program_of(Lives(lives=(life, other))), ())[0].digest()

    base = {"byte_count": 4000, "first": 0, "last": 2}
    assert digest(Life(**base)) != digest(Life(**{**base, **change}))  # pyright: ignore[reportArgumentType]  # mixed field types


def test_lives_are_numbered_by_rank() -> None:
    """Tiles that do the same at other times are one problem."""
    early = program_of(
        Lives(lives=(Life(byte_count=400, first=0, last=1), Life(byte_count=400, first=1, last=2)))
    )
    late = program_of(
        Lives(lives=(Life(byte_count=400, first=3, last=5), Life(byte_count=400, first=5, last=9)))
    )
    assert problems_of(early, ())[0].digest() == problems_of(late, ())[0].digest()


def test_a_repeat_is_one_interval_and_residents_live_always() -> None:
    """RP-04: weights stay resident between runs."""
    lives = Lives(
        lives=(
            Life(byte_count=8, first=0, last=0),
            Life(byte_count=8, first=2, last=2),
            Life(byte_count=8, first=1, last=1, role=Role.PARAMETER),
            Life(byte_count=8, first=4, last=4),
        )
    )
    program = program_of(lives, repeat=(1, 3))
    first, last = lifetimes(program)
    # Steps: 0, the Repeat 1 with the body 2, 3, 4, then 5.
    assert list(zip(first.tolist(), last.tolist(), strict=True))[:4] == [(0, 0), (1, 4), (0, 5), (5, 5)]


def test_buffers_in_turn_share_memory() -> None:
    size = 0x60000
    lives = tuple(Life(byte_count=size, first=step, last=step) for step in range(5))
    program = program_of(Lives(lives=lives))
    placement = place(program, _RUNTIME)
    assert len(set(placement.address[:5].tolist())) == 1


def test_classes_whose_peaks_do_not_coincide_share_the_interleaved_region() -> None:
    """Summing the peaks of both classes would refuse this."""
    lives = (
        Life(byte_count=400_000, first=0, last=0, interleaved=True),
        Life(byte_count=560_000, first=1, last=1),
    )
    program = program_of(Lives(lives=lives))
    assert check(program, place(program, _RUNTIME), _RUNTIME) == ()


def test_separated_buffers_reserve_no_whole_elements() -> None:
    """Twenty-seven small members beside one separated buffer take their bytes, not 27 elements."""
    lives = Lives(
        lives=(
            Life(byte_count=64, members=27, role=Role.TEMPORARY, first=0, last=3),
            Life(byte_count=64, first=0, last=3),
            Life(byte_count=560_000, first=0, last=3),
        ),
        apart=((0, 1),),
    )
    program = program_of(lives)
    placement = place(program, _RUNTIME)
    assert check(program, placement, _RUNTIME) == ()
    assert int(placement.stride[0]) == 64


def test_separations_count_the_tail() -> None:
    lives = Lives(
        lives=(Life(byte_count=16, tail=64, first=0, last=0), Life(byte_count=16, first=0, last=0)),
        apart=((0, 1),),
    )
    program = program_of(lives)
    placement = place(program, ())
    first, second = placement.address[:2].tolist()
    assert element_key(second) not in {element_key(first), element_key(first + 16 + 64 - 1)}


def test_what_shares_storage_moves_with_its_root() -> None:
    """A result that begins before the operand it takes over: a negative displacement (LC-09)."""
    lives = Lives(
        lives=(
            Life(byte_count=70_000, first=0, last=1, aliases=((-32_768, 35_000, 1, 2),)),
            Life(byte_count=1000, first=2, last=2),
        )
    )
    program = program_of(lives)
    placement = place(program, _RUNTIME)
    assert check(program, placement, _RUNTIME) == ()
    assert placement.address[1] == placement.address[0] - 32_768


def test_a_refusal_is_an_error_of_the_closed_hierarchy() -> None:
    program = program_of(Lives(lives=(Life(byte_count=700_000, node="mlp.up"),)))
    with pytest.raises(DoesNotFit) as caught:
        place(program, _RUNTIME)
    assert caught.value.nodes == ("mlp.up",)


def test_placement_is_deterministic() -> None:
    lives = Lives(
        lives=tuple(
            Life(byte_count=4 * (n % 7 + 1) * 1000, first=n % 5, last=n % 5 + n % 3) for n in range(20)
        )
    )
    one, other = place(program_of(lives), _RUNTIME), place(program_of(lives), _RUNTIME)
    assert one.address.tobytes() == other.address.tobytes()
    assert not one.address.flags.writeable


def test_reserved_ranges_belong_to_tiles_of_the_build() -> None:
    program = program_of(Lives(lives=(Life(byte_count=4),)))
    with pytest.raises(ValueError, match="no range of a tile"):
        place(program, [Reserved(tile=TileId(5), start=SRAM_BASE, size=4)])


def test_a_sequence_may_reach_over_a_reserved_range() -> None:
    """RP-02: the stride is established here. At the tightest one nothing fits on either side."""
    lives = Lives(lives=(Life(byte_count=600, members=3), Life(byte_count=400, first=0, last=0)))
    program = program_of(lives)
    base = INTERLEAVED.base
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=base - SRAM_BASE),
        Reserved(tile=TileId(0), start=base + 640, size=400),
        Reserved(tile=TileId(0), start=base + 1648, size=400),
        Reserved(tile=TileId(0), start=base + 3056, size=SRAM_END - base - 3056),
    )
    placement = place(program, reserved)
    assert check(program, placement, reserved) == ()
    assert int(placement.stride[0]) > 600


def test_residents_and_sequences_of_a_whole_device_are_placed_once_per_kind() -> None:
    program = mlp_like(4, 3)
    reserved = runtime_ranges(DEFAULT_LAYOUT, TILES)
    outcome = attempt(program, reserved)
    assert isinstance(outcome, Placed)
    assert outcome.classes == 5  # four kinds, and the tile that has the sink as well
    assert check(program, outcome.placement, reserved) == ()
    first = program.sequences.first
    expected = outcome.placement.address[first] + 2 * outcome.placement.stride
    third = np.flatnonzero(program.buffers.member == 2)
    assert outcome.placement.address[third].tolist() == expected.tolist()


def test_what_interlocks_is_placed() -> None:
    """One request of two spans is above a second at one step, and below a third at another."""
    lives = Lives(
        lives=(
            Life(byte_count=400, first=0, last=0, alignment=4, aliases=((396, 400, 1, 1),)),
            Life(byte_count=396, first=1, last=1, alignment=4),
            Life(byte_count=396, first=0, last=0, alignment=4),
        )
    )
    program = program_of(lives)
    low, high = INTERLEAVED.base, INTERLEAVED.base + 796
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=low - SRAM_BASE),
        Reserved(tile=TileId(0), start=high, size=SRAM_END - high),
    )
    placement = place(program, reserved)
    assert check(program, placement, reserved) == ()
    root, alias, late, early = placement.address[:4].tolist()
    assert (root, alias, late, early) == (low, low + 396, low, low + 400)


@pytest.mark.parametrize(("preferred", "region"), [(0, STANDARD), (1, INTERLEAVED)])
def test_which_region_is_preferred_is_told_and_not_derived_from_addresses(
    preferred: int, region: Region
) -> None:
    """TA-10: windows come in the order of preference; a request that may lie anywhere goes to the first."""
    program = program_of(Lives(lives=(Life(byte_count=64), Life(byte_count=128))))
    problem = next(each for each in problems_of(program, _RUNTIME) if each.tile == 0)
    windows = windows_of(problem)
    ordered = np.concatenate([windows[:, preferred : preferred + 1], windows], axis=1)
    outcome = first_fit(model_of(problem), ordered, ORDERS["bytes"])
    assert isinstance(outcome, Bases)
    assert all(region.base <= base < region.end for base in outcome.base.tolist())
