"""Bases instead of patches: rows of a Repeat whose moving addresses count from registers."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.exchange.check import CheckKind, check_phase
from compiler.exchange.ir import BEFORE_ROW, Demand, Schedule, ScheduledPhase
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows
from compiler.exchange.sections import base_sections, based
from compiler.simulator.fabric import Phase, ReceivingSide, run_phase
from compiler.target.registers import MainRegister
from compiler.target.units import WORD_BYTES
from tests.exchange.memory import carry_out, decoded, random_memory
from tests.exchange.paired import MixedPhase, mixed_phases
from tests.exchange.phases import RandomPhase, Transfer, demand, placed, random_phases
from tests.exchange.test_paired import as_placed, phase_of


def with_bases(wanted: Demand, times: Schedule) -> ScheduledPhase:
    """The rows of a schedule, with sections where they help."""
    sections = base_sections(wanted, times)
    rows, sites = encode_rows(wanted, times, sections)
    patches = patches_between(rows.words, sites, iterations_of(wanted, sections))
    return ScheduledPhase(
        demand=wanted, schedule=times, rows=rows, sites=sites, patches=patches, sections=sections
    )


def check_deliveries(phase: ScheduledPhase, transfers: tuple[Transfer, ...]) -> None:
    """Every iteration passes the checker and delivers in the simulator, bases set as a program would."""
    iterations = phase.demand.iterations
    found = check_phase(placed(transfers), iterations, phase.rows, phase.patches, None, phase.sections)
    assert not found, [str(finding) for finding in found]
    memory = random_memory(phase.rows.tiles)
    for iteration in range(iterations):
        words = phase.rows.words.copy()
        words[phase.patches.word] = phase.patches.values[:, iteration]
        plan = Phase.of(decoded(phase.rows, words))
        registers, entry = plan.registers.copy(), ReceivingSide.neutral(len(plan.tiles))
        if phase.sections is not None:
            sections = phase.sections
            for index, tile in enumerate(sections.tile.tolist()):
                place = int(np.flatnonzero(plan.tiles == tile)[0])
                value = int(sections.address[index] + iteration * sections.stride[index])
                registers[place, sections.register[index]] = value
                if sections.start[index] == BEFORE_ROW:
                    side = entry.incoming_base if sections.is_incoming[index] else entry.outgoing_base
                    side[place] = value
        expected = memory.copy()
        carry_out(expected, plan.tiles, transfers, iteration)
        result = run_phase(
            replace(plan, registers=registers, entry=entry), memory, np.full(memory.shape, 15, dtype=np.uint8)
        )
        assert not result.faults, [str(fault) for fault in result.faults]
        assert (memory == expected).all()


@settings(max_examples=40)
@given(phase=random_phases(moving=True, largest=12), one_stride=st.booleans())
def test_random_moving_phases_deliver_with_bases(phase: RandomPhase, *, one_stride: bool) -> None:
    """RP-05: what is left to patch is what no section covers."""
    transfers = phase.transfers
    if one_stride and transfers:  # as in a Repeat over one sequence
        stride = transfers[0].stride
        transfers = tuple(replace(transfer, stride=stride) for transfer in transfers)
        if any(transfer.source == tile for transfer in transfers for tile, _, _ in transfer.recipients):
            return
    plain = schedule_phase(demand(transfers, phase.iterations))
    result = with_bases(plain.demand, plain.schedule)
    assert len(result.patches.word) <= len(plain.patches.word)
    check_deliveries(result, transfers)


def test_a_tile_whose_sends_all_advance_needs_no_patch() -> None:
    transfers = tuple(
        Transfer(
            source=0, address=0x50000 + 64 * n, words=8, stride=512, recipients=((64, 0xA0000 + 32 * n, 0),)
        )
        for n in range(4)
    )
    plain = schedule_phase(demand(transfers, 3))
    assert len(plain.patches.word) > 0
    result = with_bases(plain.demand, plain.schedule)
    assert len(result.patches.word) == 0
    assert result.sections is not None
    assert result.sections.tile.tolist() == [0]
    assert result.sections.start.tolist() == [BEFORE_ROW]
    assert (result.sections.address[0], result.sections.stride[0]) == (0x50000, 512)
    check_deliveries(result, transfers)


def test_moving_and_fixed_sends_switch_bases_in_the_row() -> None:
    """13 events between two sends suffice for one switch; fixed sends count from 0."""
    fixed = Transfer(source=0, address=0x50000, words=8, recipients=((64, 0xA0000, 0),))
    moving = Transfer(source=0, address=0x60000, words=8, stride=64, recipients=((128, 0xA0000, 64),))
    last = Transfer(source=0, address=0x70000, words=4, stride=-32, recipients=((192, 0xA0000, 0),))
    wanted = demand([fixed, moving, last], 4)
    times = schedule_phase(wanted).schedule
    far = np.array([100, 200, 300])
    moved = phase_of(wanted, far.tolist(), np.zeros(3, dtype=np.bool_)).schedule
    result = with_bases(wanted, moved)
    assert len(result.patches.word) == 0
    sections = result.sections
    assert sections is not None
    sends = sections.is_incoming == 0
    assert sections.register[sends].tolist() == [MainRegister.M7, MainRegister.M6]
    assert (sections.start[sends] >= np.array([108, 208])).all()
    check_deliveries(result, (fixed, moving, last))
    # Back to back there is no room: the words of the sends are patched.
    dense = with_bases(wanted, times)
    assert len(dense.patches.word) == 2
    check_deliveries(dense, (fixed, moving, last))


@settings(max_examples=30)
@given(mixed_phases(), st.integers(0, 64))
def test_paired_sends_count_from_bases_in_their_items(phase: MixedPhase, step: int) -> None:
    transfers = tuple(replace(transfer, stride=8 * step) for transfer in phase.transfers)
    wanted = replace(as_placed(transfers), iterations=2)
    times = phase_of(wanted, list(phase.slots), np.array(phase.is_paired, dtype=np.bool_)).schedule
    result = with_bases(wanted, times)
    assert len(result.patches.word) == 0
    check_deliveries(result, transfers)


def test_a_wrong_base_is_found() -> None:
    """The checker believes what the program sets, not what the encoder meant."""
    transfers = (Transfer(source=0, address=0x50000, words=8, stride=512, recipients=((64, 0xA0000, 0),)),)
    plain = schedule_phase(demand(transfers, 2))
    result = with_bases(plain.demand, plain.schedule)
    assert result.sections is not None
    wrong = replace(result.sections, stride=result.sections.stride + WORD_BYTES)
    found = check_phase(placed(transfers), 2, result.rows, result.patches, None, wrong)
    assert [(finding.kind, finding.iteration) for finding in found] == [(CheckKind.DELIVERY, 1)]


def test_bases_follow_their_operands_to_other_addresses() -> None:
    transfers = [Transfer(source=0, address=0x50000, words=8, stride=512, recipients=((64, 0xA0000, 0),))]
    plain = schedule_phase(demand(transfers, 2))
    sections = base_sections(plain.demand, plain.schedule)
    assert sections is not None
    other = demand([replace(transfers[0], address=0x51000, stride=-64)], 2)
    moved = based(sections, other, plain.schedule)
    assert moved is not None
    assert (moved.address[0], moved.stride[0]) == (0x51000, -64)
