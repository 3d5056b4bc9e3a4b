"""One phase of the fabric at a time: order of reads and writes, state, determinism, refusals."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from compiler.isa.rows import ControlKind, Row, decode_row, planned_row
from compiler.simulator.exchange_faults import ExchangeFaultKind
from compiler.simulator.fabric import (
    MEMORY_WORDS,
    NO_POINTER,
    Phase,
    PhaseResult,
    ReceivingSide,
    run_phase,
)
from compiler.target.memory import SRAM_BASE
from compiler.target.units import Events, PhysicalTile
from tests.simulator.exchange_plans import NEUTRAL, Plan, random_memory

A, B, C = 0x60000, 0x90000, 0xA0000


def span(memory: npt.NDArray[np.uint32], place: int, address: int, words: int) -> npt.NDArray[np.uint32]:
    at = (address - SRAM_BASE) // 4
    return memory[place, at : at + words]


def run(plan: Plan) -> tuple[PhaseResult, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Result, memory before, memory after."""
    phase = Phase.of(plan.rows())
    memory, shadow = random_memory(len(phase.tiles))
    before = memory.copy()
    return run_phase(phase, memory, shadow), before, memory


def test_receive_then_forward() -> None:
    """What arrived is sent on from the slot on whose number is that of the event behind its last write."""
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    arrived = 64 + 10
    plan.ordinary(64, [(128, C)], 10, arrived, B)
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 2, C, 10), span(before, 0, A, 10))


def test_forwarding_before_the_end_of_the_payload_is_a_conflict() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.ordinary(64, [(128, C)], 10, 73, B)
    result, _, _ = run(plan)
    assert [fault.kind for fault in result.faults] == [ExchangeFaultKind.SEND_RECEIVE_ELEMENT]


def test_sending_before_being_overwritten() -> None:
    """A stream whose last slot precedes the first write keeps the old words."""
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.ordinary(64, [(128, C)], 10, 64 - 10, B)
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 2, C, 10), span(before, 1, B, 10))
    np.testing.assert_array_equal(span(after, 1, B, 10), span(before, 0, A, 10))


def test_later_of_two_payloads_stays() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.ordinary(128, [(64, B + 8)], 10, 80, A)
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 1, B, 2), span(before, 0, A, 2))
    np.testing.assert_array_equal(span(after, 1, B + 8, 10), span(before, 2, A, 10))


def test_words_that_nobody_selects_vanish() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    rows = plan.rows()
    del rows[PhysicalTile(64)]
    memory, shadow = random_memory(1)
    before = memory.copy()
    result = run_phase(Phase.of(rows), memory, shadow)
    assert result.faults == ()
    assert result.delivered_words == 0
    np.testing.assert_array_equal(memory, before)


def test_the_wrong_direction_is_silence() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.sends[0] = [(slot, count, item, control ^ 3) for slot, count, item, control in plan.sends[0]]
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(after, before)


def test_partial_capture_takes_the_words_that_pass() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    select = min(event for event, kind, _ in plan.controls[64] if kind is ControlKind.XPIC0)
    plan.controls[64] = [
        (select + 3, ControlKind.XPIC0, 0),
        (select + 7, ControlKind.XPIC0, NEUTRAL),
        (2, ControlKind.PIC0, B // 4),
    ]
    result, before, after = run(plan)
    assert result.faults == ()
    assert (result.written.item.tolist(), result.written.count.tolist()) == ([3], [4])
    np.testing.assert_array_equal(span(after, 1, B, 4), span(before, 0, A + 12, 4))


def test_a_pointer_control_in_the_middle_of_a_payload() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.controls[64].append((64 + 4, ControlKind.PIC0, C // 4))
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 1, B, 4), span(before, 0, A, 4))
    np.testing.assert_array_equal(span(after, 1, C, 6), span(before, 0, A + 16, 6))


def test_a_word_written_on_the_event_after_a_change_of_format_is_too_late() -> None:
    """Its format was sampled before the change: it counts as a word that is still to be written."""
    for change, kinds in ((63, [ExchangeFaultKind.FORMAT_CHANGE]), (65, [])):
        plan = Plan()
        plan.ordinary(0, [(64, B)], 1, 40, A)
        plan.controls[64].append((change, ControlKind.PIC1, 1))
        result, _, _ = run(plan)
        assert [fault.kind for fault in result.faults] == kinds


def test_a_stream_with_a_pause_is_two() -> None:
    """The cursor stays, the slots do not."""
    words = np.array([0x78600001 | A // 4 << 3, 0x40A00004, 0x70600001, 0x43A00000], dtype=np.uint32)
    row = decode_row(words)
    assert isinstance(row, Row)
    memory, shadow = random_memory(1)
    sent = run_phase(Phase.of({PhysicalTile(0): row}), memory, shadow).sent
    assert (sent.slot.tolist(), sent.count.tolist()) == ([0, 9], [4, 4])
    assert sent.address.tolist() == [A, A + 16]


def test_a_pointer_that_nobody_set_stays_unset() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.controls[64] = [control for control in plan.controls[64] if control[1] is not ControlKind.PIC0]
    result, _, _ = run(plan)
    assert [fault.kind for fault in result.faults] == [ExchangeFaultKind.POINTER_UNSET]
    assert result.written.address.tolist() == [NO_POINTER]
    assert result.exit.pointer.tolist() == [NO_POINTER, NO_POINTER]


def test_uninitialised_words_arrive_as_such() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B), (128, B)], 10, 40, A)
    phase = Phase.of(plan.rows())
    memory, shadow = random_memory(3)
    at, to = (A - SRAM_BASE) // 4 + 3, (B - SRAM_BASE) // 4 + 3
    shadow[0, at] = 1
    result = run_phase(phase, memory, shadow)
    assert [(fault.kind, fault.address) for fault in result.faults] == [
        (ExchangeFaultKind.UNINITIALISED_SEND, A + 12)
    ]
    assert shadow[1, to] == shadow[2, to] == 1
    assert memory[1, to] == memory[0, at]


def test_places_choose_rows_of_memory() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    memory, shadow = random_memory(5)
    before = memory.copy()
    result = run_phase(Phase.of(plan.rows()), memory, shadow, np.array([3, 1]))
    assert result.faults == ()
    np.testing.assert_array_equal(span(memory, 1, B, 10), span(before, 3, A, 10))


def test_exchange_registers_afterwards() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B)], 10, 40, A)
    plan.controls[64].append((75, ControlKind.XPIC1, 5))
    result, _, _ = run(plan)
    assert result.exit.pointer.tolist() == [NO_POINTER, B + 40]
    assert result.exit.mux.tolist() == [NEUTRAL, NEUTRAL]
    assert result.exit.pair_mux.tolist() == [NEUTRAL, 5]
    assert result.exit.format.tolist() == [0, 0]


def test_bases_from_registers_and_entry() -> None:
    """Bases written in rows count from then on; pointers add the base at the time they are set."""
    sender = planned_row(horizon=Events(60), sends=[(40, 10, 4, 1)])
    plan = Plan()
    plan.ordinary(0, [(64, 0)], 10, 40, A)
    phase = Phase.of(plan.rows() | {PhysicalTile(0): sender})
    entry = ReceivingSide.neutral(2)
    phase = replace(
        phase,
        entry=replace(entry, outgoing_base=np.array([A, 0]), incoming_base=np.array([0, B])),
    )
    memory, shadow = random_memory(2)
    before = memory.copy()
    result = run_phase(phase, memory, shadow)
    assert result.faults == ()
    assert (result.sent.address.tolist(), result.written.address.tolist()) == ([A + 16], [B])
    np.testing.assert_array_equal(span(memory, 1, B, 10), span(before, 0, A + 16, 10))


def test_lane_borrowing_leaves_receiving_alone() -> None:
    """A tile receives while its partner sends paired items (ran on hardware, lesson 40)."""
    plan = Plan()
    plan.paired(0, [(64, B, B)], 100, 40, A)
    plan.ordinary(128, [(2, B)], 50, 60, A)
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 1, B, 50), span(before, 4, A, 50))


def test_adjacent_tiles_send_at_once() -> None:
    """Only paired items need the partner's lane (ran on hardware, lesson 40)."""
    plan = Plan()
    plan.ordinary(0, [(64, B)], 400, 40, A)
    plan.ordinary(2, [(128, B)], 400, 40, A)
    result, before, after = run(plan)
    assert result.faults == ()
    np.testing.assert_array_equal(span(after, 2, B, 400), span(before, 0, A, 400))
    np.testing.assert_array_equal(span(after, 3, B, 400), span(before, 1, A, 400))


def test_delivered_words_count_every_receiver() -> None:
    plan = Plan()
    plan.ordinary(0, [(64, B), (128, B)], 10, 40, A)
    plan.paired(260, [(64, C, C)], 6, 120, A)
    result, _, _ = run(plan)
    assert result.faults == ()
    assert result.delivered_words == 2 * 10 + 2 * 12


def busy_phase() -> Phase:
    generator = np.random.default_rng(3)
    tiles = [int(tile) for tile in generator.choice(1472, 60, replace=False)]
    plan = Plan()
    for turn in range(6):
        for index, tile in enumerate(tiles):
            receiver = tiles[(index + turn + 1) % len(tiles)]
            plan.ordinary(tile, [(receiver, B + 0x400 * turn)], 80, 90 + 300 * turn, A + 0x400 * turn)
    return Phase.of(plan.rows())


def snapshot(phase: Phase) -> tuple[bytes, list[list[int]]]:
    memory, shadow = random_memory(len(phase.tiles))
    result = run_phase(phase, memory, shadow)
    assert result.faults == ()
    columns = (result.written.tile, result.written.event, result.written.address, result.sent.slot)
    return memory.tobytes() + shadow.tobytes(), [column.tolist() for column in columns]


def test_runs_are_identical_in_any_number_of_threads() -> None:
    phase = busy_phase()
    expected = snapshot(phase)
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as pool:
            assert all(found == expected for found in pool.map(snapshot, [phase] * 3))


class TestRefusals:
    """Mistakes of the caller."""

    def phase(self) -> Phase:
        """Two tiles."""
        plan = Plan()
        plan.ordinary(0, [(64, B)], 10, 40, A)
        return Phase.of(plan.rows())

    def test_order_of_tiles(self) -> None:
        """They ascend."""
        with pytest.raises(ValueError, match="the tiles of a phase must ascend"):
            replace(self.phase(), tiles=np.array([64, 0]))

    def test_number_of_rows(self) -> None:
        """One each."""
        with pytest.raises(ValueError, match="a phase of 2 tiles needs one row and one entry of each column"):
            replace(self.phase(), rows=())

    def test_registers(self) -> None:
        """Sixteen each."""
        with pytest.raises(ValueError, match=r"registers must have the shape \(2, 16\)"):
            replace(self.phase(), registers=np.zeros((2, 3), dtype=np.int64))

    def test_memory(self) -> None:
        """The whole SRAM of each place."""
        memory = np.zeros((2, 10), dtype=np.uint32)
        with pytest.raises(ValueError, match=rf"must have the shape \[places, {MEMORY_WORDS}\]"):
            run_phase(self.phase(), memory, memory.astype(np.uint8))

    def test_places(self) -> None:
        """One each, and existing."""
        memory, shadow = random_memory(2)
        for places in ([0, 0], [0, 2]):
            with pytest.raises(ValueError, match="every tile needs a place of its own in memory"):
                run_phase(self.phase(), memory, shadow, np.array(places))
