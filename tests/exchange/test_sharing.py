"""Rows stored once: whatever phase ran before, each finds its own row after its patches."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.exchange.check import check_phase
from compiler.exchange.ir import Patches, Rows, ScheduledPhase, WordArray
from compiler.exchange.phase import schedule_phase
from compiler.exchange.replay import Rebuild, replay
from compiler.exchange.sharing import SharedRows, share_rows
from compiler.target.units import Words
from tests.exchange.phases import RandomPhase, Transfer, demand, placed, random_phases
from tests.exchange.test_replay import moved

NO_LIMIT = Words(1 << 30)


def own_words(phase: ScheduledPhase, iteration: int) -> WordArray:
    words = phase.rows.words.copy()
    words[phase.patches.word] = phase.patches.values[:, iteration]
    return words


def run_in_order(shared: SharedRows, phases: list[ScheduledPhase], order: list[tuple[int, int]]) -> None:
    """Uses in some order on one memory: each leaves the rows of its phase as that phase has them."""
    memory = shared.words.copy()
    for number, iteration in order:
        use, phase = shared.uses[number], phases[number]
        memory[use.patches.word] = use.patches.values[:, iteration]
        own = own_words(phase, iteration)
        for index, row in enumerate(use.row.tolist()):
            found = memory[shared.first_word[row] : shared.first_word[row + 1]]
            expected = own[phase.rows.first_word[index] : phase.rows.first_word[index + 1]]
            assert shared.tile[row] == phase.rows.tiles[index]
            assert (found == expected).all()


@settings(max_examples=30)
@given(
    phase=random_phases(largest=12) | random_phases(largest=12, moving=True),
    shifts=st.lists(st.sampled_from((0, 0, 4, 8, 0x100)), min_size=1, max_size=4),
    limit=st.sampled_from((0, 1, 3, NO_LIMIT)),
    seed=st.integers(0, 2**32 - 1),
)
def test_uses_find_their_rows_in_any_order(
    phase: RandomPhase, shifts: list[int], limit: int, seed: int
) -> None:
    first = schedule_phase(demand(phase.transfers, phase.iterations))
    phases = [first]
    for shift in shifts:
        try:
            wanted = moved(first.demand, {int(tile): shift for tile in first.demand.tiles})
        except ValueError:  # outside of memory
            continue
        other = replay(first, wanted)
        phases.append(schedule_phase(wanted) if isinstance(other, Rebuild) else other)
    shared = share_rows(phases, Words(limit))
    uses: list[tuple[int, int]] = [
        (number, iteration)
        for number, used in enumerate(phases)
        for iteration in range(used.demand.iterations)
    ]
    random = np.random.default_rng(seed)
    for _ in range(2):
        order: list[int] = random.permutation(len(uses)).tolist()
        run_in_order(shared, phases, [uses[index] for index in [*order, *reversed(order)]])
    for use, used in zip(shared.uses, phases, strict=True):
        own = len(used.patches.word)
        if limit == 0:
            assert len(use.patches.word) == own


ONE = Transfer(source=0, address=0x60000, words=50, recipients=((64, 0xA0000, 0),))
NEAR = replace(ONE, address=0x60100)
MOVING = replace(ONE, stride=256)


def test_rows_at_equal_addresses_are_one_without_patches() -> None:
    """Both deltas are zero."""
    phases = [schedule_phase(demand([ONE])) for _ in range(2)]
    shared = share_rows(phases, Words(0))
    assert shared.tile.tolist() == [0, 64]
    assert len(shared.words) == len(phases[0].rows.words)
    for use in shared.uses:
        assert use.row.tolist() == [0, 1]
        assert not len(use.patches.word)


def test_a_use_with_the_stored_addresses_writes_them_too() -> None:
    """A delta of zero first or last: the other use would otherwise leave its own behind."""
    for transfers in ([ONE, NEAR], [NEAR, ONE]):
        phases = [schedule_phase(demand([transfer])) for transfer in transfers]
        shared = share_rows(phases, Words(1))
        assert shared.tile.tolist() == [0, 64]
        assert [len(use.patches.word) for use in shared.uses] == [1, 1]
        run_in_order(shared, phases, [(0, 0), (1, 0), (0, 0), (0, 0), (1, 0)])
        run_in_order(shared, phases, [(1, 0), (0, 0), (1, 0)])


def test_iterations_of_a_repeat_are_uses_too() -> None:
    phases = [
        schedule_phase(demand([MOVING], 3)),
        schedule_phase(demand([ONE])),
        schedule_phase(demand([NEAR])),
    ]
    shared = share_rows(phases, Words(1))
    assert shared.tile.tolist() == [0, 64]
    run_in_order(shared, phases, [(0, 2), (1, 0), (0, 0), (2, 0), (0, 1), (1, 0)])


def test_what_a_use_may_write_limits_what_is_shared() -> None:
    phases = [schedule_phase(demand([ONE])), schedule_phase(demand([NEAR]))]
    shared = share_rows(phases, Words(0))
    assert shared.tile.tolist() == [0, 64, 0]
    assert [use.row.tolist() for use in shared.uses] == [[0, 1], [2, 1]]
    assert not any(len(use.patches.word) for use in shared.uses)


def test_rows_of_other_times_lengths_or_sources_are_not_shared() -> None:
    """In the last case the row of the receiver of both is the same."""
    others = {
        replace(ONE, words=49): [0, 64, 0, 64],
        replace(ONE, source=2): [0, 64, 2, 64],
        replace(ONE, recipients=((2, 0xA0000, 0), (64, 0xA0000, 0))): [0, 64, 0, 2],
    }
    for other, tiles in others.items():
        phases = [schedule_phase(demand([ONE])), schedule_phase(demand([other]))]
        assert share_rows(phases, NO_LIMIT).tile.tolist() == tiles


def test_a_shared_row_passes_the_checker_in_each_phase() -> None:
    asked = [[ONE], [NEAR]]
    phases = [schedule_phase(demand(transfers)) for transfers in asked]
    shared = share_rows(phases, Words(1))
    for transfers, phase, use in zip(asked, phases, shared.uses, strict=True):
        rows = Rows(tiles=phase.rows.tiles, first_word=shared.first_word, words=shared.words)
        assert not check_phase(placed(transfers), 1, rows, use.patches)
    stale = Patches(word=np.empty(0, dtype=np.int64), values=np.empty((0, 1), dtype=np.uint32))
    rows = Rows(tiles=phases[1].rows.tiles, first_word=shared.first_word, words=shared.words)
    assert check_phase(placed(asked[1]), 1, rows, stale)
