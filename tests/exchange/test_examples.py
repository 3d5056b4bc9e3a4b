"""Known rows, word for word, from the times that the examples give."""

from typing import Any

import numpy as np
import pytest

from compiler.exchange.check import check_phase
from compiler.exchange.ir import ScheduledPhase
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows, idle_row
from compiler.exchange.timing import schedule
from compiler.target.fabric import time_to_mux
from compiler.target.tiles import logical_to_physical
from compiler.target.units import LogicalTile, PhysicalTile
from tests.exchange.memory import row_of
from tests.exchange.phases import Transfer, demand, of_example, placed
from tests.fixtures.exchange.examples import load

ORDINARY = [
    phase
    for phase in load("phases")["phases"]
    if not any(transfer["paired"] for transfer in phase["transfers"])
]


def at_slots(transfers: list[Transfer], slots: list[int]) -> ScheduledPhase:
    """Rows of transfers that start in given slots."""
    wanted = demand(transfers)
    start = np.array(slots, dtype=np.int64)
    times = schedule(wanted, np.argsort(start), earliest=start)
    assert times.slot.tolist() == slots
    rows, sites = encode_rows(wanted, times)
    patches = patches_between(rows.words, sites, iterations_of(wanted))
    return ScheduledPhase(demand=wanted, schedule=times, rows=rows, sites=sites, patches=patches)


@pytest.mark.parametrize("phase", ORDINARY, ids=lambda phase: phase["about"][:40])
def test_phases_of_the_examples_are_encoded_word_for_word(phase: dict[str, Any]) -> None:
    slots = [transfer["send_slot"] for transfer in phase["transfers"]]
    result = at_slots(of_example(phase), slots)
    receivers = [receiver for transfer in phase["transfers"] for receiver in transfer["receivers"]]
    assert result.schedule.select.tolist() == [receiver["select"] for receiver in receivers]
    assert result.schedule.write.tolist() == [receiver["first_write"] for receiver in receivers]
    assert result.schedule.release.tolist() == [receiver["neutral"] for receiver in receivers]
    assert result.rows.tiles.tolist() == sorted(tile["physical"] for tile in phase["tiles"])
    for tile in phase["tiles"]:
        words = row_of(result.rows, tile["physical"])
        assert [f"{word:08x}" for word in words.tolist()] == tile["row"]["words"]
    assert not check_phase(placed(of_example(phase)), 1, result.rows, result.patches)


def test_the_vendor_row_of_four_messages_is_encoded_word_for_word() -> None:
    """Sources are selected where payloads begin: one pair of controls after the other."""
    (example,) = (row for row in load("rows")["rows"] if "physical_sources" in row)
    receiver = logical_to_physical(LogicalTile(example["tile"]))
    selects = [event for event, kind, _ in example["controls"] if kind == "OWN_MUX"][:-1]
    transfers = [
        Transfer(source=source, address=0x90000, words=52, recipients=((receiver, destination, 0),))
        for source, destination in zip(example["physical_sources"], example["destinations"], strict=True)
    ]
    slots = [
        select - 1 - time_to_mux(PhysicalTile(source), receiver)
        for select, source in zip(selects, example["physical_sources"], strict=True)
    ]
    result = at_slots(transfers, slots)
    assert [f"{word:08x}" for word in row_of(result.rows, receiver).tolist()] == example["row"]["words"]


def test_the_vendor_rows_of_a_multicast_are_encoded_word_for_word() -> None:
    """They open with a barrier; ours are entered behind it."""
    (example,) = (
        transfer
        for transfer in load("stand_alone")["transfers"]
        if len(transfer["receivers"]) == 2 and not transfer["paired"]
    )
    tiles = [logical_to_physical(LogicalTile(receiver["tile"])) for receiver in example["receivers"]]
    source = logical_to_physical(LogicalTile(example["source"]))
    recipients = tuple(
        (int(tile), int(receiver["destination_offset"]), 0)
        for tile, receiver in zip(tiles, example["receivers"], strict=True)
    )
    # The example reads at offset 0 of a base register; here addresses are absolute.
    transfer = Transfer(source=source, address=0x60000, words=example["items"], recipients=recipients)
    result = schedule_phase(demand([transfer]))
    assert result.schedule.slot.tolist() == [example["send_slot"]]
    for tile, receiver in zip(tiles, example["receivers"], strict=True):
        words = [f"{word:08x}" for word in row_of(result.rows, tile).tolist()]
        assert words == receiver["row"]["words"][1:]
    sender = row_of(result.rows, source).tolist()
    sender[1] &= ~(0x3FFFF << 3)
    assert [f"{word:08x}" for word in sender] == example["sender"]["words"][1:]


def test_a_length_that_no_row_can_receive_back_is_halved() -> None:
    example = load("limits")["must_split"]
    tile = int(logical_to_physical(LogicalTile(example["tile"])))
    transfer = Transfer(
        source=tile,
        address=0x60000,
        words=example["items"],
        recipients=((tile, 0xA0000, 0), (tile ^ 2, 0xA0000, 0)),
    )
    result = schedule_phase(demand([transfer]))
    assert result.demand.transfers.words.tolist() == example["halves"]
    assert not check_phase(placed([transfer]), 1, result.rows, result.patches)


def test_the_row_of_an_idle_tile_returns_at_once() -> None:
    assert idle_row().tolist() == [0x43A00000]
    result = schedule_phase(
        demand([Transfer(source=0, address=0x60000, words=1, recipients=((2, 0xA0000, 0),))])
    )
    assert result.rows.row(PhysicalTile(1)) is None
