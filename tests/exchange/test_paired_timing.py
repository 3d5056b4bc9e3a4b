"""Starts of paired transfers: against a reference, then whole, in the checker and the simulator."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.exchange.bound import latency_bounds
from compiler.exchange.check import check_phase
from compiler.exchange.events import can_be_paired, schedule_of_starts
from compiler.exchange.ir import Demand, ScheduledPhase
from compiler.exchange.order import chosen_order
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows
from compiler.exchange.timing import prepared
from compiler.target.tiles import TILE_COUNT
from tests.exchange.memory import carry_out, random_memory, run
from tests.exchange.phases import RandomPhase, Transfer, demand, placed
from tests.exchange.slow import slow_starts


@st.composite
def paired_phases(draw: st.DrawFn, *, largest: int = 14) -> RandomPhase:
    """Phases among a few pairs of tiles; most transfers can be paired, some are ordinary."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    count = draw(st.integers(1, largest))
    lengths = draw(st.sampled_from(((2, 4, 6, 8), (6, 28, 104, 106, 108, 110), (2, 30, 64, 128))))
    often = draw(st.sampled_from((0.3, 0.7, 1.0)))
    near = draw(st.booleans())
    size = draw(st.integers(2, 4))
    block = int(random.integers(0, TILE_COUNT // 4))
    bases: list[int] = [4 * ((block + number) % (TILE_COUNT // 4)) for number in range(size)]
    if not near:
        bases = (4 * random.choice(TILE_COUNT // 4, size, replace=False)).tolist()
    pairs = [(base + lane, base + lane + 2) for base in bases for lane in (0, 1)][: size + 1]
    transfers: list[Transfer] = []
    for number in range(count):
        source = int(random.choice([tile for pair in pairs for tile in pair]))
        words = int(random.choice(lengths))
        others = [pair for pair in pairs if source not in pair]
        places: list[int] = random.permutation(len(others))[: int(random.integers(1, 3))].tolist()
        tiles = [tile for place in places for tile in others[place]]
        if random.random() > often:  # ordinary: half a pair, perhaps an odd length
            tiles, words = tiles[:1], words + int(random.integers(0, 2))
        elif random.random() < 0.2:
            tiles += [source, source ^ 2]
        transfers.append(
            Transfer(
                source=source,
                address=0x60000 + 0x800 * number,
                words=words,
                recipients=tuple((tile, 0xA0000 + 0x800 * number, 0) for tile in tiles),
            )
        )
    return RandomPhase(transfers=tuple(transfers), iterations=1)


def everything_paired(wanted: Demand, order: list[int]) -> ScheduledPhase:
    """The rows of a phase in which all that can be paired is."""
    variant = prepared(wanted, can_be_paired(wanted.transfers))
    times = schedule_of_starts(wanted, variant.starts(np.array(order, dtype=np.int64)), variant.is_paired)
    rows, sites = encode_rows(wanted, times)
    patches = patches_between(rows.words, sites, iterations_of(wanted))
    return ScheduledPhase(demand=wanted, schedule=times, rows=rows, sites=sites, patches=patches)


@settings(max_examples=60)
@given(paired_phases(largest=7))
def test_paired_transfers_get_the_earliest_legal_start(phase: RandomPhase) -> None:
    wanted = demand(phase.transfers)
    is_paired = can_be_paired(wanted.transfers)
    order = list(range(len(is_paired)))
    starts = slow_starts(wanted, order, is_paired.tolist())
    assert prepared(wanted, is_paired).starts(np.arange(len(order))).tolist() == [
        starts[number] for number in order
    ]


@settings(max_examples=100)
@given(paired_phases())
def test_rows_with_paired_transfers_pass_the_checker_and_deliver_in_the_simulator(phase: RandomPhase) -> None:
    wanted = demand(phase.transfers)
    result = everything_paired(wanted, list(range(len(wanted.transfers.source))))
    found = check_phase(placed(phase.transfers), 1, result.rows, result.patches)
    assert not found, [str(finding) for finding in found]
    memory = random_memory(result.rows.tiles)
    expected = memory.copy()
    carry_out(expected, result.rows.tiles, phase.transfers, 0)
    run(result, memory, 0)
    assert (memory == expected).all()


@settings(max_examples=40)
@given(paired_phases())
def test_the_shorter_of_both_schedules_is_taken_and_no_bound_is_beaten(phase: RandomPhase) -> None:
    """Paired ones are looked at where the bound is a quarter lower with them."""
    wanted = demand(phase.transfers)
    chosen = chosen_order(wanted)
    horizon = int(chosen.schedule.horizon.max())
    ordinary, paired = np.zeros(len(chosen.order), dtype=np.bool_), can_be_paired(wanted.transfers)
    bounds = [latency_bounds(wanted.transfers, is_paired).max() for is_paired in (ordinary, paired)]
    for is_paired in (ordinary, paired) if 4 * bounds[1] <= 3 * bounds[0] else (ordinary,):
        variant = prepared(wanted, is_paired)
        assert horizon <= variant.horizon(variant.starts(chosen.order))
    assert latency_bounds(wanted.transfers, chosen.schedule.is_paired).max() <= horizon


def test_a_long_span_for_a_pair_takes_half_the_time() -> None:
    transfer = Transfer(
        source=0,
        address=0x60000,
        words=2000,
        recipients=((64, 0xA0000, 0), (66, 0xA0000, 0)),
    )
    result = schedule_phase(demand([transfer]))
    assert result.schedule.is_paired.all()
    assert result.schedule.horizon.max() < 1000 + 100
