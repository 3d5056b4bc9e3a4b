"""The exact message of everything that makes an exchange phase infeasible, each with the least such phase."""

from collections.abc import Sequence

import numpy as np
import pytest

from compiler.errors import DoesNotFit, ScheduleInfeasible
from compiler.exchange.ir import RowReservations
from compiler.exchange.phase import schedule_phase
from tests.exchange.phases import Transfer, demand

ALONE = Transfer(source=7, address=0x60000, words=30, recipients=((7, 0xA0000, 0),))
LOOPBACK = Transfer(source=7, address=0x60000, words=30, recipients=((7, 0x60400, 0), (9, 0xA0000, 0)))
PLAIN = Transfer(source=7, address=0x60000, words=30, recipients=((9, 0x7C000, 0),))


def message(transfers: Sequence[Transfer], row: tuple[int, int] | None = None) -> str:
    reservations = None
    if row is not None:
        reservations = RowReservations(
            tile=np.array([row[0]]), address=np.array([row[1]]), byte_count=np.array([64])
        )
    with pytest.raises(ScheduleInfeasible) as caught:
        schedule_phase(demand(transfers), reservations)
    return str(caught.value)


def test_a_transfer_to_its_sender_alone() -> None:
    assert message([ALONE]) == (
        "no schedule (exchange): exchange step 3, transfer 10: 30 words of physical tile 7 are sent to nobody"
        " but that tile, which the fabric does not deliver.\n"
        "  graph nodes: first\n"
        "  next: move them with a local copy"
    )


def test_a_sender_that_receives_into_the_element_that_it_reads() -> None:
    assert message([PLAIN, LOOPBACK]) == (
        "no schedule (exchange): exchange step 3, transfer 11: physical tile 7 receives its own words at"
        " 0x60400, in a memory element that it reads them from (0x60000, iteration 0).\n"
        "  graph nodes: second\n"
        "  next: keep the two buffers in different memory elements"
    )


def test_a_sender_that_receives_over_what_it_sends() -> None:
    """Cut in parts for its length, no part would read and write one element."""
    recipients = ((345, 0x98000, 0), (347, 0x97FFC, 0))
    long = Transfer(source=347, address=0x88008, words=20_000, recipients=recipients)
    assert message([long]) == (
        "no schedule (exchange): exchange step 3, transfer 10: physical tile 347 receives 20000 of its own"
        " words at 0x97ffc, over those that it sends from 0x88008 (iteration 0).\n"
        "  graph nodes: first\n"
        "  next: keep the two buffers in different memory elements"
    )


def test_data_in_the_element_of_a_row() -> None:
    assert message([PLAIN], (9, 0x7FF00)) == (
        "no schedule (exchange): exchange step 3, transfer 10: physical tile 9 receives at 0x7c000, in a"
        " memory element that its exchange row is fetched from (0x7ff00..0x7ff80).\n"
        "  graph nodes: first\n"
        "  next: place the row and the data in different memory elements"
    )


def test_a_row_that_cannot_be_small_enough() -> None:
    """EC-03: refused by its bound, before anything is scheduled: single words, each with its pointer."""
    many = [
        Transfer(source=7, address=0x60000, words=1, recipients=((9, 0x80000 + 8 * number, 0),))
        for number in range(10_240)
    ]
    with pytest.raises(DoesNotFit) as caught:
        schedule_phase(demand(many))
    assert str(caught.value) == (
        "does not fit (exchange): exchange step 3: physical tile 9 sends 0 spans and receives 10,240 in one"
        " exchange phase, more than an exchange row may control.\n"
        "  bytes of the row at least: 81,928 bytes (bound), limit 81,920, 8 too many\n"
        "  graph nodes: first, second\n"
        "  next: move fewer and longer spans: layouts whose tiles cut less across each other"
    )


def test_a_row_that_came_out_too_large() -> None:
    """At the budget by its bound; the waits in the row are not in the bound."""
    many = [
        Transfer(source=7, address=0x60000, words=1, recipients=((9, 0x80000 + 8 * number, 0),))
        for number in range(10_239)
    ]
    with pytest.raises(DoesNotFit) as caught:
        schedule_phase(demand(many))
    assert str(caught.value) == (
        "does not fit (exchange): exchange step 3: physical tile 9 sends 0 spans and receives 10,239 in one"
        " exchange phase, more than an exchange row may control.\n"
        "  bytes of the row: 81,924 bytes (scheduled), limit 81,920, 4 too many\n"
        "  graph nodes: first, second\n"
        "  next: move fewer and longer spans: layouts whose tiles cut less across each other"
    )
    schedule_phase(demand(many[:-1]))
