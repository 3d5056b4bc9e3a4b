"""Bounds and the report of a phase."""

import numpy as np
import pytest
from hypothesis import given

from compiler.errors import NumberKind
from compiler.exchange.bound import bounds_of_phase
from compiler.exchange.phase import schedule_phase
from compiler.exchange.report import report_of
from tests.exchange.phases import RandomPhase, Transfer, demand, random_phases


def sent_to(tile: int, words: int) -> Transfer:
    return Transfer(source=0, address=0x60000, words=words, recipients=((tile, 0xA0000, 0),))


@pytest.mark.parametrize(("tile", "latency"), [(2, 100 + 58), (64, 100 + 60), (64 * 22, 100 + 58 + 44)])
def test_a_receiver_is_busy_for_its_words_and_the_way_of_the_first(tile: int, latency: int) -> None:
    bounds = bounds_of_phase(demand([sent_to(tile, 100)]))
    assert (bounds.endpoint, bounds.horizon) == (100, latency)
    assert schedule_phase(demand([sent_to(tile, 100)])).schedule.horizon.max() == latency


def test_a_busy_sender_bounds_the_phase() -> None:
    wanted = demand([sent_to(64 * row, 1000) for row in range(1, 6)])
    bounds = bounds_of_phase(wanted)
    assert (bounds.endpoint, bounds.horizon) == (5000, 5000)
    assert bounds.sends.tolist() == [5, 0, 0, 0, 0, 0]
    assert bounds.receives.tolist() == [0, 1, 1, 1, 1, 1]


@given(random_phases(largest=20))
def test_bounds_are_what_each_tile_sends_and_receives(phase: RandomPhase) -> None:
    wanted = demand(phase.transfers)
    bounds = bounds_of_phase(wanted)
    for index, tile in enumerate(bounds.tiles.tolist()):
        sent = int(wanted.transfers.words[wanted.transfers.source == tile].sum())
        received = sum(
            transfer.words
            for transfer in phase.transfers
            for receiver, _, _ in transfer.recipients
            if receiver == tile
        )
        assert (bounds.sent[index], bounds.received[index]) == (sent, received)
        expected = max(sent, received + 58 + 2 * (tile // 64) if received else 0)
        assert bounds.latency[index] == expected
    row_words = np.diff(schedule_phase(wanted).rows.first_word)
    assert (bounds.control_words <= row_words).all()


def test_payloads_that_continue_each_other_need_one_pointer() -> None:
    far = [
        Transfer(source=source, address=0x60000, words=8, recipients=((64, 0xA0000 + 64 * number, 0),))
        for number, source in enumerate((0, 4, 8))
    ]
    near = [
        Transfer(source=source, address=0x60000, words=8, recipients=((64, 0xA0000 + 32 * number, 0),))
        for number, source in enumerate((0, 4, 8))
    ]
    words = [int(bounds_of_phase(demand(phase)).control_words.max()) for phase in (far, near)]
    assert words == [3 + 1 + 3 + 1, 3 + 1 + 1 + 1]


def test_the_report_says_what_limits_the_phase_and_what_its_numbers_are() -> None:
    report = report_of(schedule_phase(demand([sent_to(64, 100)])))
    assert str(report) == (
        "exchange step 3: 160 events (scheduled), 1.000 of the bound 160; limited by what physical tile 64"
        " receives; 1 transfers, 1 recipients; largest row 20 bytes (scheduled)"
    )
    assert report.latency_bound.kind is NumberKind.BOUND
    assert report.horizon.kind is NumberKind.SCHEDULED
    assert report.row_bytes_bound.value <= report.row_bytes.value
    assert report.all_row_bytes.value == 4 * (4 + 5)
