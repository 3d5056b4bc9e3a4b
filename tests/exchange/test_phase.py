"""Random phases, whole: rows pass the checker, and the simulator moves every word where it was wanted."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

from compiler.exchange.check import check_phase
from compiler.exchange.ir import ScheduledPhase, SiteKind
from compiler.exchange.phase import schedule_phase
from compiler.exchange.report import report_of
from compiler.exchange.rows import encode_rows
from compiler.exchange.timing import schedule
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


def single_words(count: int, tiles: list[int], seed: int) -> RandomPhase:
    """Words one by one, most to tile 0, some continuing others: a control or two at nearly every event."""
    random = np.random.default_rng(seed)
    transfers: list[Transfer] = []
    address = 0xA0000
    for _ in range(count):
        words = int(random.choice((1, 1, 1, 2)))
        address += int(random.choice((0, 16)))
        source = int(random.choice(tiles))
        receiver = 0 if source != 0 else 64
        transfers.append(
            Transfer(source=source, address=0x60000, words=words, recipients=((receiver, address, 0),))
        )
        address += 4 * words
    return RandomPhase(transfers=tuple(transfers), iterations=1)


@pytest.mark.parametrize("tiles", [[1, 2, 3, 64, 66, 128, 200, 300], [0, 1, 64, 66]])
def test_two_words_of_one_instruction_are_aligned_where_every_event_has_a_control(tiles: list[int]) -> None:
    """The second phase sends as densely as it receives."""
    for seed in range(12):
        phase = single_words(120, tiles, seed)
        result = scheduled(phase)
        found = check_phase(placed(phase.transfers), 1, result.rows, result.patches)
        assert not found, [str(finding) for finding in found]
        memory = random_memory(result.rows.tiles)
        expected = memory.copy()
        carry_out(expected, result.rows.tiles, phase.transfers, 0)
        run(result, memory, 0)
        assert (memory == expected).all()


def test_a_pair_that_completes_another_says_again_what_holds() -> None:
    """Where nothing can be cut to align a pair, pointers are set that the payloads would not need."""
    result = scheduled(single_words(120, [1, 2, 3, 64, 66, 128, 200, 300], 0))
    is_pointer = np.array([not SiteKind(kind).is_send for kind in result.sites.kind.tolist()])
    owners = result.sites.owner[is_pointer].tolist()
    assert len(owners) > len(set(owners))


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (93, "a control is due in the first slot of a send"),
        (94, "two controls are due right behind the first instruction of a send"),
    ],
)
def test_times_that_no_row_can_keep_are_refused(start: int, message: str) -> None:
    """Pairs at events 94 and 96, and a send between them; the timing gives no such times."""
    wanted = demand(
        [
            Transfer(source=64, address=0x60000, words=300, recipients=((260, 0x70000, 0),)),
            Transfer(source=0, address=0x60400, words=2, recipients=((64, 0x74000, 0),)),
            Transfer(source=128, address=0x60400, words=52, recipients=((64, 0x78000, 0),)),
            Transfer(source=192, address=0x60400, words=2, recipients=((64, 0x7C000, 0),)),
            Transfer(source=0, address=0x60800, words=9, recipients=((64, 0x64000, 0),)),
        ]
    )
    earliest = np.array([200, 70, 68, 118, 126])
    times = schedule(wanted, np.argsort(earliest), earliest=earliest)
    assert times.select.tolist()[1:] == [40, 42, 94, 96]
    assert times.write.tolist()[1:] == [94, 96, 148, 150]
    slot = times.slot.copy()
    slot[0] = start
    with pytest.raises(ValueError, match=message):
        encode_rows(wanted, dataclasses.replace(times, slot=slot))


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
