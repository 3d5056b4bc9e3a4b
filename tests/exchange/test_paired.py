"""Paired transfers: known rows word for word, random phases in the simulator, and which can be paired."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from compiler.exchange.check import check_phase
from compiler.exchange.events import can_be_paired, schedule_of_starts
from compiler.exchange.ir import Demand, ScheduledPhase, SiteKind
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows
from compiler.isa.rows import ControlKind, Row, decode_row
from compiler.target.fabric import SendControl, paired_time_to_mux, select_to_write, time_to_mux
from compiler.target.tiles import logical_to_physical, partner
from compiler.target.units import BoolArray, LogicalTile, PhysicalTile
from tests.exchange.memory import carry_out, random_memory, row_of, run
from tests.exchange.paired import MixedPhase, is_legal, mixed_phases
from tests.exchange.phases import NODES, STEP, RandomPhase, Transfer, demand, placed, random_phases
from tests.fixtures.exchange.examples import load

PAIRED = [
    phase for phase in load("phases")["phases"] if all(transfer["paired"] for transfer in phase["transfers"])
]


def phase_of(wanted: Demand, slots: list[int], is_paired: BoolArray) -> ScheduledPhase:
    times = schedule_of_starts(wanted, np.array(slots, dtype=np.int64), is_paired)
    rows, sites = encode_rows(wanted, times)
    patches = patches_between(rows.words, sites, iterations_of(wanted))
    return ScheduledPhase(demand=wanted, schedule=times, rows=rows, sites=sites, patches=patches)


def as_placed(transfers: tuple[Transfer, ...]) -> Demand:
    """A demand in which nothing is joined."""
    every = demand([])
    return Demand(
        step=STEP,
        iterations=1,
        transfers=placed(transfers),
        dependences=every.dependences,
        nodes=NODES,
    )


@pytest.mark.parametrize("phase", PAIRED, ids=lambda phase: phase["about"][:40])
def test_paired_phases_of_the_examples_are_encoded_word_for_word(phase: dict[str, Any]) -> None:
    transfers = tuple(
        Transfer(
            source=transfer["physical_source"],
            address=transfer["address"],
            words=2 * transfer["items"],
            recipients=tuple(
                (receiver["physical"], receiver["address"], 0) for receiver in transfer["receivers"]
            ),
        )
        for transfer in phase["transfers"]
    )
    assert can_be_paired(placed(transfers)).all()
    slots = [transfer["send_slot"] for transfer in phase["transfers"]]
    result = phase_of(as_placed(transfers), slots, np.ones(len(slots), dtype=np.bool_))
    receivers = [receiver for transfer in phase["transfers"] for receiver in transfer["receivers"]]
    assert result.schedule.select.tolist() == [receiver["select"] for receiver in receivers]
    assert result.schedule.write.tolist() == [receiver["first_write"] for receiver in receivers]
    for tile in phase["tiles"]:
        words = row_of(result.rows, tile["physical"])
        assert [f"{word:08x}" for word in words.tolist()] == tile["row"]["words"]
    assert not check_phase(placed(transfers), 1, result.rows, result.patches)


def test_paired_plans_of_the_examples_have_their_events() -> None:
    for plan in load("paired_plans")["plans"]:
        source = logical_to_physical(LogicalTile(plan["source"]))
        members = [logical_to_physical(LogicalTile(tile)) for tile in plan["pair"]]
        transfer = Transfer(
            source=source,
            address=0x50000,
            words=2 * plan["items"],
            recipients=tuple((int(tile), 0x98000, 0) for tile in members),
        )
        result = phase_of(as_placed((transfer,)), [plan["send_slot"]], np.array([True]))
        assert result.schedule.select.tolist() == [plan["select"]] * 2
        assert result.schedule.write.tolist() == [plan["first_write"]] * 2
        assert result.schedule.control.tolist() == [plan["control"]]
        rows = [decode_row(row_of(result.rows, int(tile))) for tile in members]
        selecting = [
            tile
            for tile, row in zip(plan["pair"], rows, strict=True)
            if isinstance(row, Row) and (row.controls.kind == ControlKind.XPIC1).any()
        ]
        assert selecting == [plan["early_member"]]


def test_four_paired_messages_without_a_gap_have_the_controls_of_the_vendor_row() -> None:
    example = load("paired_plans")["back_to_back"]
    tile = logical_to_physical(LogicalTile(example["tile"]))
    transfers = tuple(
        Transfer(
            source=int(logical_to_physical(LogicalTile(source))),
            address=0x60000,
            words=2 * example["items"],
            recipients=tuple((int(member), 0xA0000 + 0x1000 * n, 0) for member in (tile, partner(tile))),
        )
        for n, source in enumerate(example["sources"])
    )
    result = phase_of(as_placed(transfers), example["send_slots"], np.ones(4, dtype=np.bool_))
    row = decode_row(row_of(result.rows, int(tile)))
    assert isinstance(row, Row)
    controls = row.controls
    by_kind = {kind: controls.event[controls.kind == kind].tolist() for kind in ControlKind}
    assert by_kind[ControlKind.XPIC1] == [*example["selects"], example["neutral"]]
    assert by_kind[ControlKind.PIC0] == example["pointers"]
    assert by_kind[ControlKind.PIC1] == [example["format_on"], example["format_off"]]
    assert not check_phase(placed(transfers), 1, result.rows, result.patches)


@settings(max_examples=60)
@given(mixed_phases())
def test_the_simulator_delivers_mixed_phases_without_a_fault(phase: MixedPhase) -> None:
    """Ordinary and paired transfers, multicasts, to the sender's own pair too, both ways at once."""
    wanted = as_placed(phase.transfers)
    result = phase_of(wanted, list(phase.slots), np.array(phase.is_paired, dtype=np.bool_))
    found = check_phase(placed(phase.transfers), 1, result.rows, result.patches)
    assert not found, [str(finding) for finding in found]
    memory = random_memory(result.rows.tiles)
    expected = memory.copy()
    carry_out(expected, result.rows.tiles, phase.transfers, 0)
    run(result, memory, 0)
    assert (memory == expected).all()


def test_a_paired_send_states_again_where_it_is_beside_two_controls() -> None:
    """An address in items of 64 bits, in the middle of a send."""
    transfers = (
        Transfer(source=64, address=0x60000, words=600, recipients=((256, 0xA0000, 0), (258, 0xA0000, 0))),
        Transfer(source=0, address=0x60400, words=54, recipients=((64, 0xA4000, 0),)),
        Transfer(source=128, address=0x60400, words=30, recipients=((64, 0xAC000, 0),)),
    )
    slots = [40, 70, 120]
    assert is_legal([(transfer, n == 0, slots[n]) for n, transfer in enumerate(transfers)])
    result = phase_of(as_placed(transfers), slots, np.array([True, False, False]))
    wide = result.sites.kind == SiteKind.WIDE_PAIR_ITEM
    assert result.sites.owner[wide].tolist() == [0]
    word = int(result.rows.words[result.sites.word[wide]][0])
    offset = int(result.sites.offset[wide][0])
    assert 8 * (word >> 3 & 0x3FFFF) == 0x60000 + 4 * offset
    assert not check_phase(placed(transfers), 1, result.rows, result.patches)


def brute_can_be_paired(transfer: Transfer) -> bool:
    source = PhysicalTile(transfer.source)
    tiles = [PhysicalTile(tile) for tile, _, _ in transfer.recipients]
    if any(partner(tile) not in tiles for tile in tiles) or {int(t) | 2 for t in tiles} == {int(source) | 2}:
        return False
    numbers = [transfer.address, transfer.stride, 4 * transfer.words]
    numbers += [number for _, address, stride in transfer.recipients for number in (address, stride)]
    if any(number % 8 for number in numbers):
        return False
    items = transfer.words // 2
    slot = 1000
    for tile in tiles:
        select = slot + paired_time_to_mux(source, tile)
        write = select + 1 + select_to_write(tile)
        events = [write - 2, write, write - 2 + items]
        if time_to_mux(source, tile) < time_to_mux(source, partner(tile)):
            events += [select, select + items]
        if len(events) != len(set(events)) or (tile == source and slot + 1 in events):
            return False
    return True


@given(random_phases(moving=True) | random_phases() | mixed_phases())
def test_what_can_be_paired(phase: RandomPhase | MixedPhase) -> None:
    found = can_be_paired(placed(phase.transfers))
    assert found.tolist() == [brute_can_be_paired(transfer) for transfer in phase.transfers]


@pytest.mark.parametrize(("items", "can"), [(1, True), (2, False), (51, False), (52, True), (53, False)])
def test_lengths_whose_own_events_meet_cannot_be_paired(items: int, *, can: bool) -> None:
    transfer = Transfer(
        source=128, address=0x60000, words=2 * items, recipients=((4, 0xA0000, 0), (6, 0xA0000, 0))
    )
    assert can_be_paired(placed([transfer])).tolist() == [can]
    assert brute_can_be_paired(transfer) == can


def test_a_pair_that_includes_the_sender_gets_words_both_ways() -> None:
    transfer = Transfer(
        source=64,
        address=0x50000,
        words=16,
        recipients=((64, 0xA0000, 0), (66, 0xA0000, 0), (4, 0xA0000, 0), (6, 0xA0000, 0)),
    )
    assert can_be_paired(placed([transfer])).all()
    result = phase_of(as_placed((transfer,)), [100], np.array([True]))
    assert result.schedule.control.tolist() == [SendControl.EAST | SendControl.WEST | SendControl.PAIRED]
    assert not check_phase(placed([transfer]), 1, result.rows, result.patches)
    memory = random_memory(result.rows.tiles)
    expected = memory.copy()
    carry_out(expected, result.rows.tiles, [transfer], 0)
    run(result, memory, 0)
    assert (memory == expected).all()


def test_controls_of_a_paired_transfer_share_no_event() -> None:
    wanted = as_placed(
        (
            Transfer(source=0, address=0x60000, words=4, recipients=((4, 0xA0000, 0), (6, 0xA0000, 0))),
            Transfer(source=64, address=0x60000, words=2, recipients=((4, 0xA0100, 0),)),
        )
    )
    with pytest.raises(ValueError, match="meet others at one event"):
        phase_of(wanted, [100, 100], np.array([True, False]))
