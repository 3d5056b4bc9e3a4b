"""The exact text of every fault of an exchange phase, each from a minimal phase that has it."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from compiler.isa.rows import ControlKind, Row, RowRefusal, decode_row
from compiler.simulator.exchange_faults import ExchangeFault
from compiler.simulator.exchange_faults import ExchangeFaultKind as Kind
from compiler.simulator.fabric import Phase, run_phase
from compiler.target.memory import SRAM_BASE
from compiler.target.units import PhysicalTile
from tests.simulator.exchange_plans import Plan, random_memory

A = 0x60000
B = 0x90000
FAR = 0xA0000


def transfer(**changed: int) -> Plan:
    """Ten words from tile 0 to tile 64."""
    facts = {"source": 0, "receiver": 64, "words": 10, "slot": 40, "address": A, "to": B} | changed
    plan = Plan()
    plan.ordinary(
        facts["source"], [(facts["receiver"], facts["to"])], facts["words"], facts["slot"], facts["address"]
    )
    return plan


def row(*words: int) -> Row:
    """A row from its words."""
    result = decode_row(np.array(words, dtype=np.uint32))
    assert not isinstance(result, RowRefusal)
    return result


def workers_active() -> Phase:
    phase = Phase.of(transfer().rows())
    return replace(phase, workers_active=np.array([True, False]))


def control_pair() -> Phase:
    # delay 1; sendpicp without sending: neutral own multiplexer, and format 0 through selector 1
    return Phase.of({PhysicalTile(0): row(0x40A00000, 0x40A00000, 0xF8200000, 0x19000000, 0x43A00000)})


def overlapping_sends() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 10, 40, A)
    plan.paired(2, [(128, B, B)], 10, 45, A)
    return Phase.of(plan.rows())


def borrowed_lane() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 10, 40, A)
    plan.ordinary(2, [(128, B)], 10, 45, A)
    return Phase.of(plan.rows())


def pair_mux_conflict() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 20, 40, A)
    plan.controls[66] += [(15, ControlKind.XPIC1, 1), (20, ControlKind.XPIC1, 0x640)]
    return Phase.of(plan.rows())


def late_pair_mux() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 10, 40, A)
    for control in [control for control in plan.controls[64] if control[1] is ControlKind.XPIC1]:
        plan.controls[64].remove(control)
        plan.controls[66].append((control[0], control[1], control[2] ^ 2))
    return Phase.of(plan.rows())


def incomplete_pair() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 10, 40, A)
    rows = plan.rows()
    del rows[PhysicalTile(66)]
    return Phase.of(rows)


def isolated_loopback() -> Phase:
    return Phase.of(transfer(receiver=0).rows())


def isolated_paired_loopback() -> Phase:
    plan = Plan()
    plan.paired(0, [(0, B, B)], 10, 40, A)
    return Phase.of(plan.rows())


def format_mismatch() -> Phase:
    plan = transfer()
    plan.controls[64].append((2, ControlKind.PIC1, 1))
    return Phase.of(plan.rows())


def format_change() -> Phase:
    # Words are written at events 64 .. 73: too early by one event.
    plan = transfer()
    plan.controls[64].append((73, ControlKind.PIC1, 1))
    return Phase.of(plan.rows())


def overlapping_receives() -> Phase:
    plan = Plan()
    plan.paired(0, [(64, B, B)], 10, 40, A)
    plan.ordinary(128, [(64, FAR)], 1, 44, A)
    plan.controls[64] = [control for control in plan.controls[64] if control[2] != FAR // 4]
    return Phase.of(plan.rows())


def pointer_unset() -> Phase:
    plan = transfer()
    plan.controls[64] = [control for control in plan.controls[64] if control[1] is not ControlKind.PIC0]
    return Phase.of(plan.rows())


def payload_cut() -> Phase:
    plan = transfer()
    return Phase.of(plan.rows() | {PhysicalTile(64): plan.row(64, spare=-1)})


def send_address() -> Phase:
    return Phase.of(transfer(address=0xE7FF0).rows())


def receive_address() -> Phase:
    return Phase.of(transfer(to=0xE7FF0).rows())


def send_receive_element() -> Phase:
    plan = transfer(words=40)
    plan.ordinary(64, [(0, A + 0x1000)], 40, 40, A)
    return Phase.of(plan.rows())


def send_row_element() -> Phase:
    return replace(Phase.of(transfer().rows()), row_address=np.array([0x60800, -1]))


def receive_row_element() -> Phase:
    # The row ends in the element before; its look-ahead reaches the data.
    plan = transfer(to=0x64000)
    return replace(Phase.of(plan.rows()), row_address=np.array([-1, 0x63FFC]))


def uninitialised_send() -> Phase:
    words = (0x40A00027, 0x79200001 | (A // 4 << 3), 0x43A00000)
    return Phase.of(transfer().rows() | {PhysicalTile(0): row(*words)})


CASES: list[tuple[Callable[[], Phase], str]] = [
    (workers_active, "tile 0, event 0: workers run while the tile exchanges"),
    (
        control_pair,
        (
            "tile 0, event 3, row word 2: two controls share an event,"
            " which only a pointer and the tile's own multiplexer may"
        ),
    ),
    (
        overlapping_sends,
        "tile 0, event 45: paired items are sent while the partner 2 sends paired items",
    ),
    (
        borrowed_lane,
        "tile 2, event 45: an item is sent while paired items of the partner 0 use the transmit lane",
    ),
    (
        pair_mux_conflict,
        "tile 64, event 15: the multiplexer of the pair is in use by the partner 66 too",
    ),
    (
        late_pair_mux,
        (
            "tile 66, event 11: the multiplexer of the pair selects tile 0,"
            " whose items pass the partner first: the partner must select it"
        ),
    ),
    (
        incomplete_pair,
        "tile 64, event 10: a paired item of tile 0 arrives, but the partner takes no part in the phase",
    ),
    (
        isolated_loopback,
        "tile 0, event 40: a stream reaches nobody but its own sender, which hardware does not deliver",
    ),
    (
        isolated_paired_loopback,
        "tile 0, event 40: a stream reaches nobody but its own sender, which hardware does not deliver",
    ),
    (
        format_mismatch,
        "tile 64, event 64: an item of tile 0 arrives in another format than the one that is set",
    ),
    (
        format_change,
        "tile 64, event 73: the format changes before a word of tile 0 has been written",
    ),
    (
        # Whatever makes two items arrive at once also breaks a rule of formats or of the pair.
        overlapping_receives,
        (
            "tile 64, event 72: an item of tile 128 arrives in another format than the one that is set\n"
            "tile 64, event 72: two items are to be written at once"
        ),
    ),
    (pointer_unset, "tile 64, event 64: a word of tile 0 arrives while no pointer is set"),
    (
        payload_cut,
        (
            "tile 64, event 73: an item of tile 0 is written, which 5 more events must follow,"
            " but the row ends at event 78"
        ),
    ),
    (
        send_address,
        "tile 0, event 44: an item is read at 0xe8000, outside SRAM or misaligned",
    ),
    (
        receive_address,
        "tile 64, event 68: an item of tile 0 is written at 0xe8000, outside SRAM or misaligned",
    ),
    (
        send_receive_element,
        (
            "tile 0, event 66: a stream is read from 0x60000 while a payload is written"
            " to 0x61000 in the same memory element"
        ),
    ),
    (
        send_row_element,
        "tile 0, event 40: a stream is read from 0x60000, in a memory element of the row at 0x60800",
    ),
    (
        receive_row_element,
        "tile 64, event 64: a payload is written to 0x64000, in a memory element of the row at 0x63ffc",
    ),
    (
        uninitialised_send,
        "tile 0, event 42, row word 1: the word at 0x60008 is sent, but nothing was ever written there",
    ),
]


def run(make: Callable[[], Phase]) -> list[ExchangeFault]:
    phase = make()
    memory, shadow = random_memory(len(phase.tiles))
    if make is uninitialised_send:
        shadow[0, (A - SRAM_BASE) // 4 + 2] = 3
    return list(run_phase(phase, memory, shadow).faults)


@pytest.mark.parametrize(("make", "text"), CASES, ids=[make.__name__ for make, _ in CASES])
def test_text(make: Callable[[], Phase], text: str) -> None:
    assert "\n".join(map(str, run(make))) == text


def test_every_kind_has_a_text() -> None:
    assert {fault.kind for make, _ in CASES for fault in run(make)} == set(Kind)


@pytest.mark.parametrize("make", [format_change, payload_cut, borrowed_lane])
def test_a_fault_leaves_memory_alone(make: Callable[[], Phase]) -> None:
    phase = make()
    memory, shadow = random_memory(len(phase.tiles))
    before = memory.copy()
    run_phase(phase, memory, shadow)
    np.testing.assert_array_equal(memory, before)
