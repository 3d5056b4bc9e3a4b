"""Starts against a reference that tries everything; what no start can cure is refused."""

import numpy as np
import pytest
from hypothesis import given, settings

from compiler.errors import ScheduleInfeasible
from compiler.exchange.ir import RowReservations
from compiler.exchange.order import chosen_order
from compiler.exchange.phase import schedule_phase
from compiler.exchange.timing import prepared, schedule
from compiler.target.fabric import ROW_AFTER_LAST_WRITE, time_to_mux
from compiler.target.units import PhysicalTile
from tests.exchange.phases import LENGTHS, RandomPhase, Transfer, demand, random_phases
from tests.exchange.slow import slow_starts


@settings(max_examples=40)
@given(random_phases(largest=7) | random_phases(largest=5, moving=True))
def test_every_transfer_gets_the_earliest_legal_start(phase: RandomPhase) -> None:
    """In any order that data allow: here the table's, or the list order."""
    short = tuple(transfer for transfer in phase.transfers if transfer.words <= max(LENGTHS))
    wanted = demand(short, phase.iterations)
    order = np.arange(len(wanted.transfers.source))
    ordinary = prepared(wanted, np.zeros(len(order), dtype=np.bool_))
    for chosen in (order, chosen_order(wanted).order):
        starts = slow_starts(wanted, chosen.tolist())
        assert ordinary.starts(chosen).tolist() == [starts[number] for number in order.tolist()]


def test_a_gap_is_filled_by_a_later_transfer() -> None:
    """The second transfer must wait for the first; the third fits before it."""
    first = Transfer(source=0, address=0x60000, words=100, recipients=((64, 0xA0000, 0),))
    second = Transfer(source=128, address=0x60000, words=100, recipients=((64, 0xB0000, 0),))
    third = Transfer(source=128, address=0x70000, words=10, recipients=((192, 0xB0000, 0),))
    times = schedule(demand([first, second, third]), np.arange(3))
    assert times.slot[2] < times.slot[1]


def test_a_read_of_data_that_arrives_in_the_phase_waits_for_all_of_it() -> None:
    arrives = Transfer(source=0, address=0x60000, words=50, recipients=((64, 0xA0000, 0),))
    forwards = Transfer(source=64, address=0xA0000, words=1, recipients=((128, 0xA0000, 0),))
    times = schedule(demand([arrives, forwards]), np.arange(2))
    assert times.slot[1] == times.write[0] + 50 + ROW_AFTER_LAST_WRITE


def test_a_row_that_sends_has_at_least_six_events() -> None:
    late = next(
        tile for tile in range(64) if tile % 4 and time_to_mux(PhysicalTile(1408), PhysicalTile(tile)) > 0
    )
    times = schedule(
        demand([Transfer(source=1408, address=0x60000, words=1, recipients=((late, 0xA0000, 0),))]),
        np.arange(1),
    )
    assert times.slot.tolist() == [0]
    assert times.horizon[times.tiles == 1408].tolist() == [6]


LOOPBACK = Transfer(
    source=7, address=0x60000, words=30, recipients=((7, 0x60400, 0), (9, 0xA0000, 0)), stride=0
)
MOVING = Transfer(
    source=7, address=0x60000, words=30, recipients=((7, 0x68000, 0), (9, 0xA0000, 0)), stride=0x4000
)
PLAIN = Transfer(source=7, address=0x60000, words=30, recipients=((9, 0x7C000, 0),))


def reservation(tile: int, address: int, size: int = 64) -> RowReservations:
    return RowReservations(tile=np.array([tile]), address=np.array([address]), byte_count=np.array([size]))


def test_a_sender_that_reads_and_writes_one_element_is_refused() -> None:
    with pytest.raises(ScheduleInfeasible, match="receives its own words at 0x60400"):
        schedule_phase(demand([LOOPBACK]))


def test_the_element_of_any_iteration_counts() -> None:
    assert schedule_phase(demand([MOVING], iterations=2)).schedule.slot.size == 1
    with pytest.raises(ScheduleInfeasible, match="iteration 2"):
        schedule_phase(demand([MOVING], iterations=3))


@pytest.mark.parametrize(
    ("tile", "address", "size", "verb"),
    [
        (7, 0x63F00, 64, "sends from"),
        (9, 0x7FF00, 64, "receives at"),
        (9, 0x7BF80, 128, "receives at"),  # only the look-ahead reaches the element
    ],
)
def test_data_in_the_element_of_the_row_is_refused(tile: int, address: int, size: int, verb: str) -> None:
    with pytest.raises(ScheduleInfeasible, match=verb):
        schedule_phase(demand([PLAIN]), reservation(tile, address, size))


@pytest.mark.parametrize(("tile", "address"), [(7, 0x64000), (9, 0x7BF00), (8, 0x60000)])
def test_data_beside_the_element_of_the_row_is_accepted(tile: int, address: int) -> None:
    assert schedule_phase(demand([PLAIN]), reservation(tile, address)).schedule.slot.size == 1
