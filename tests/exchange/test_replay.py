"""Replay: schedules at other addresses are right there, or another is asked for."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import ScheduleInfeasible
from compiler.exchange.check import CheckKind, check_phase
from compiler.exchange.ir import Demand, PlacedTransfers, RowReservations, ScheduledPhase
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import iterations_of, with_addresses
from compiler.exchange.replay import Rebuild, RebuildReason, moved_phase, replay
from compiler.exchange.rows import encode_rows
from compiler.exchange.sections import base_sections
from compiler.low.ids import StepId
from tests.exchange.paired import MixedPhase, mixed_phases
from tests.exchange.phases import NODES, RandomPhase, Transfer, demand, placed, random_phases
from tests.exchange.test_paired import as_placed, phase_of
from tests.exchange.test_sections import with_bases


def moved(wanted: Demand, by: dict[int, int]) -> Demand:
    """Everything on a tile moved by so many bytes; dependences as they were, since all on a tile moves."""
    moves = wanted.transfers
    offset = np.array([by.get(tile, 0) for tile in range(2048)])
    return replace(
        wanted,
        transfers=replace(
            moves,
            address=moves.address + offset[moves.source],
            receiver_address=moves.receiver_address + offset[moves.receiver],
        ),
    )


def asked_of(wanted: Demand) -> PlacedTransfers:
    """A demand is itself a valid thing to ask for."""
    return wanted.transfers


def reason_of(result: ScheduledPhase | Rebuild) -> RebuildReason:
    assert isinstance(result, Rebuild)
    return result.reason


@settings(max_examples=60)
@given(phase=random_phases() | random_phases(moving=True), seed=st.integers(0, 2**32 - 1))
def test_replayed_rows_are_right_or_refused(phase: RandomPhase, seed: int) -> None:
    """XR-03: whatever replay returns passes the checker at the new addresses."""
    result = schedule_phase(demand(phase.transfers, phase.iterations))
    random = np.random.default_rng(seed)
    shift = int(random.choice((4, 8, 64, 0x4000)))
    by = {int(tile): shift * int(random.integers(0, 2)) for tile in result.demand.tiles}
    try:
        wanted = moved(result.demand, by)
    except ValueError:  # outside of memory
        return
    try:
        replayed = replay(result, wanted)
    except ScheduleInfeasible:
        with pytest.raises(ScheduleInfeasible):
            schedule_phase(wanted)
        return
    if isinstance(replayed, Rebuild):
        assert replayed.reason is RebuildReason.SHARED_ELEMENT
        rebuilt = moved_phase(result, wanted)
        assert not check_phase(asked_of(wanted), wanted.iterations, rebuilt.rows, rebuilt.patches)
        return
    found = check_phase(asked_of(wanted), wanted.iterations, replayed.rows, replayed.patches)
    assert not found, [str(finding) for finding in found]
    fresh, _ = encode_rows(wanted, result.schedule)
    assert (fresh.words == replayed.rows.words).all()


@settings(max_examples=60)
@given(phase=random_phases(), seed=st.integers(0, 2**32 - 1))
def test_a_refused_replay_would_be_wrong(phase: RandomPhase, seed: int) -> None:
    """One transfer reads elsewhere: what replay refuses, the checker finds in the relocated rows."""
    result = schedule_phase(demand(phase.transfers))
    moves = result.demand.transfers
    if not len(moves.source):
        return
    random = np.random.default_rng(seed)
    address = moves.address.copy()
    one = int(random.integers(0, len(address)))
    address[one] += 4 * int(random.integers(-2000, 2000))
    try:
        wanted = replace(
            demand([]), transfers=replace(moves, address=address), dependences=result.demand.dependences
        )
        replayed = replay(result, wanted)
    except (ValueError, ScheduleInfeasible):
        return
    words = with_addresses(result.rows.words, result.sites, iterations_of(wanted))
    found = check_phase(asked_of(wanted), 1, replace(result.rows, words=words), result.patches)
    kinds = {finding.kind for finding in found}
    if isinstance(replayed, ScheduledPhase):
        assert (replayed.rows.words == words).all()
        assert kinds <= {CheckKind.DELIVERY}  # the dependences were not taken anew
    else:
        assert replayed == Rebuild(reason=RebuildReason.SHARED_ELEMENT, transfer=one)
        assert CheckKind.SHARED_ELEMENT in kinds


@settings(max_examples=30)
@given(phase=mixed_phases(), by=st.sampled_from((4, 8, 32)))
def test_paired_phases_move_by_whole_items(phase: MixedPhase, by: int) -> None:
    wanted = as_placed(phase.transfers)
    result = phase_of(wanted, list(phase.slots), np.array(phase.is_paired, dtype=np.bool_))
    elsewhere = moved(wanted, {int(tile): by for tile in wanted.tiles})
    replayed = replay(result, elsewhere)
    if by % 8 and any(phase.is_paired):
        assert reason_of(replayed) is RebuildReason.MISALIGNED
        return
    assert isinstance(replayed, ScheduledPhase)
    assert not check_phase(asked_of(elsewhere), 1, replayed.rows, replayed.patches)


ONE = Transfer(source=0, address=0x60000, words=50, recipients=((64, 0xA0000, 0),))
NEXT = Transfer(source=4, address=0x60000, words=50, recipients=((64, 0xA00C8, 0),))
BACK = Transfer(source=64, address=0x60000, words=50, recipients=((0, 0xB0000, 0),))


def test_other_transfers_need_another_schedule() -> None:
    result = schedule_phase(demand([ONE, BACK]))
    for other in ([ONE], [BACK, ONE], [replace(ONE, words=49), BACK], [ONE, replace(BACK, source=66)]):
        assert reason_of(replay(result, demand(other))) is RebuildReason.OTHER_TRANSFERS


def test_a_payload_that_needs_its_own_pointer_needs_other_rows() -> None:
    result = schedule_phase(demand([ONE, NEXT]))
    apart = demand([ONE, replace(NEXT, recipients=((64, 0xA0100, 0),))])
    assert str(replay(result, apart)) == (
        "transfer 1: a payload no longer follows the one before it in memory, and its row sets no pointer"
    )
    strides = demand([ONE, replace(NEXT, recipients=((64, 0xA00C8, 8),))], 2)
    assert reason_of(replay(result, strides)) is RebuildReason.NO_POINTER
    together = demand(
        [replace(ONE, recipients=((64, 0xC0000, 8),)), replace(NEXT, recipients=((64, 0xC00C8, 8),))], 2
    )
    assert isinstance(replay(result, together), ScheduledPhase)


def test_elements_that_meet_at_the_new_addresses_need_another_schedule() -> None:
    """In any iteration, and until five events behind the payload."""
    result = schedule_phase(demand([ONE, BACK]))
    assert isinstance(replay(result, demand([ONE, BACK])), ScheduledPhase)
    near = replace(BACK, address=0xA4000)
    assert reason_of(replay(result, demand([ONE, near]))) is RebuildReason.SHARED_ELEMENT
    assert isinstance(replay(moved_phase(result, demand([ONE, near])), demand([ONE, near])), ScheduledPhase)
    later = replace(BACK, address=0x98200, stride=0x8000)
    assert reason_of(replay(result, demand([ONE, later], 2))) is RebuildReason.SHARED_ELEMENT
    assert isinstance(replay(result, demand([ONE, later], 1)), ScheduledPhase)
    rebuilt = schedule_phase(demand([ONE, near]))
    assert not check_phase(placed([ONE, near]), 1, rebuilt.rows, rebuilt.patches)


def test_data_that_a_transfer_would_need_before_they_arrive_need_another_schedule() -> None:
    result = schedule_phase(demand([ONE, BACK]))
    forward = replace(BACK, address=0xA0000)
    found = replay(result, demand([ONE, forward]))
    assert found == Rebuild(reason=RebuildReason.DATA_ORDER, transfer=1)


def test_data_in_the_element_of_the_row_cannot_be_helped() -> None:
    result = schedule_phase(demand([ONE]))
    places = RowReservations(tile=np.array([0]), address=np.array([0x60400]), byte_count=np.array([64]))
    with pytest.raises(ScheduleInfeasible):
        replay(result, demand([ONE]), places)
    assert isinstance(replay(result, demand([replace(ONE, address=0x50000)]), places), ScheduledPhase)


def test_bases_move_with_their_operands_or_need_other_rows() -> None:
    every = [
        replace(ONE, stride=512),
        replace(ONE, address=0x60100, recipients=((66, 0xA0000, 0),), stride=512),
    ]
    plain = schedule_phase(demand(every, 3))
    result = with_bases(plain.demand, plain.schedule)
    assert base_sections(result.demand, result.schedule) is not None
    elsewhere = [replace(transfer, address=transfer.address - 0x2000, stride=-64) for transfer in every]
    replayed = replay(result, demand(elsewhere, 3))
    assert isinstance(replayed, ScheduledPhase)
    assert len(replayed.patches.word) == 0
    assert not check_phase(placed(elsewhere), 3, replayed.rows, replayed.patches, None, replayed.sections)
    apart = [elsewhere[0], replace(elsewhere[1], stride=64)]
    assert reason_of(replay(result, demand(apart, 3))) is RebuildReason.OTHER_STRIDES


def test_a_replayed_phase_keeps_what_it_is_of() -> None:
    result = schedule_phase(demand([ONE, BACK]))
    other = replace(demand([ONE, BACK]), step=StepId(9), nodes=NODES)
    replayed = replay(result, other)
    assert isinstance(replayed, ScheduledPhase)
    assert replayed.demand.step == 9
