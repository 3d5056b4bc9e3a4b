"""Random phases, whole: rows pass the checker, and the simulator moves every word where it was wanted."""

import numpy as np
from hypothesis import given, settings

from compiler.exchange.check import check_phase
from compiler.exchange.ir import ScheduledPhase
from compiler.exchange.phase import schedule_phase
from compiler.exchange.report import report_of
from tests.exchange.memory import carry_out, random_memory, run
from tests.exchange.phases import RandomPhase, Transfer, demand, placed, random_phases


def scheduled(phase: RandomPhase) -> ScheduledPhase:
    return schedule_phase(demand(phase.transfers, phase.iterations))


@given(random_phases() | random_phases(moving=True))
def test_rows_of_random_phases_pass_the_checker(phase: RandomPhase) -> None:
    """XR-06: decoded independently, the rows obey every rule and deliver every byte, in every iteration."""
    result = scheduled(phase)
    found = check_phase(placed(phase.transfers), phase.iterations, result.rows, result.patches)
    assert not found, [str(finding) for finding in found]


@settings(max_examples=40)
@given(random_phases() | random_phases(moving=True))
def test_the_simulator_delivers_random_phases_without_a_fault(phase: RandomPhase) -> None:
    result = scheduled(phase)
    memory = random_memory(result.rows.tiles)
    for iteration in range(phase.iterations):
        expected = memory.copy()
        carry_out(expected, result.rows.tiles, phase.transfers, iteration)
        run(result, memory, iteration)
        assert (memory == expected).all()


@given(random_phases(largest=20))
def test_no_schedule_beats_the_bounds(phase: RandomPhase) -> None:
    report = report_of(scheduled(phase))
    assert report.endpoint_bound.value <= report.latency_bound.value <= report.horizon.value
    assert report.row_bytes_bound.value <= report.row_bytes.value


def test_a_phase_is_the_same_every_time() -> None:
    random = np.random.default_rng(7)
    transfers = [
        Transfer(
            source=int(random.integers(0, 40)),
            address=0x60000 + 4 * int(random.integers(0, 1000)),
            words=int(random.integers(1, 80)),
            recipients=((40 + int(random.integers(0, 40)), 0xA0000 + 4 * int(random.integers(0, 1000)), 0),),
        )
        for _ in range(300)
    ]
    first, second = (schedule_phase(demand(transfers)) for _ in range(2))
    assert (first.rows.words == second.rows.words).all()
    assert (first.sites.word == second.sites.word).all()


def test_a_phase_without_transfers_has_no_rows() -> None:
    result = schedule_phase(demand([]))
    assert len(result.rows.words) == 0
    assert not check_phase(placed([]), 1, result.rows, result.patches)
    assert report_of(result).ratio == 1.0


def test_rows_that_cannot_be_aligned_are_timed_again() -> None:
    """Words that arrive one an event at scattered addresses put a single control between two pairs."""
    # Each transfer is one word; sources differ in time to mux, so that pairs and single controls mix.
    sources = [64 * row + lane for row in range(1, 12) for lane in (0, 1, 2, 3)]
    transfers = [
        Transfer(source=source, address=0x60000, words=1, recipients=((0, 0xA0000 + 16 * number, 0),))
        for number, source in enumerate(sources + sources)
    ]
    result = schedule_phase(demand(transfers))
    assert not check_phase(placed(transfers), 1, result.rows, result.patches)


def test_a_full_exchange_of_a_few_tiles_comes_close_to_its_bound() -> None:
    tiles = [0, 5, 64, 130, 301, 777, 1030, 1471]
    transfers = [
        Transfer(
            source=source,
            address=0x60000 + 0x400 * there,
            words=256,
            recipients=((receiver, 0xA0000 + 0x400 * here, 0),),
        )
        for here, source in enumerate(tiles)
        for there, receiver in enumerate(tiles)
        if source != receiver
    ]
    report = report_of(schedule_phase(demand(transfers)))
    assert report.ratio <= 1.25
