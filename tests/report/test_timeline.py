"""Where cycles go: shares add up, agree with the estimate's clock, and with a walk over every tile."""

import numpy as np
import pytest
from hypothesis import given

from compiler.errors import NumberKind
from compiler.estimate.low import PhaseTime, timeline
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, LowProgram
from compiler.low.steps import executions
from compiler.report.timeline import PARTS, CycleShares, Share, cycle_shares, phase_table, times_of
from compiler.target.costs import INTERNAL_SYNC, KERNEL_LAUNCH, PHASE_RESIDUAL
from tests.estimate.phases import EXCHANGES, PROGRAM, phase_times_of_steps
from tests.report.builds import Small


def assert_adds_up(shares: CycleShares) -> None:
    """Steps and nodes make the run, part by part."""
    assert shares.total.cycles == pytest.approx(shares.cycles.value)
    for part in PARTS:
        whole = getattr(shares.total, part)
        assert sum(getattr(step.share, part) for step in shares.steps) == pytest.approx(whole)
        assert sum(getattr(node.share, part) for node in shares.nodes) == pytest.approx(whole)
        assert min(getattr(step.share, part) for step in shares.steps) >= 0.0


def slow_shares(program: LowProgram, phases: dict[StepId, PhaseTime]) -> dict[int, int]:
    """Cycles by step: each tile's way from barrier to barrier as a list, the longest of which counts."""
    found: dict[int, int] = {}
    ways: list[list[tuple[int, int]]] = [[] for _ in range(program.tile_count)]

    def close() -> None:
        for step, cycles in max(ways, key=lambda way: sum(cycles for _, cycles in way)):
            found[step] = found.get(step, 0) + cycles
        for way in ways:
            way.clear()

    for step, _ in executions(program.steps):
        if isinstance(step, ComputeStep):
            for table in (program.calls, program.copies):
                for row in np.flatnonzero(table.step == step.step).tolist():
                    cycles = program.bindings[int(table.binding[row])].cycles + KERNEL_LAUNCH
                    ways[int(table.tile[row])].append((step.step, cycles))
            continue
        phase = phases[step.step]
        if not phase.takes_part.any():
            continue
        for tile in np.flatnonzero(phase.takes_part).tolist():
            ways[tile].append((step.step, int(phase.overhead) - int(INTERNAL_SYNC)))
        close()
        for tile, way in enumerate(ways):
            way.append((step.step, int(INTERNAL_SYNC) + int(phase.row[tile])))
    close()
    return found


@given(phase_times_of_steps())
def test_a_repeat_adds_up_to_the_clock(phases: dict[StepId, PhaseTime]) -> None:
    shares = cycle_shares(PROGRAM, phases, NumberKind.SCHEDULED)
    assert_adds_up(shares)
    clock = timeline(PROGRAM, phases, NumberKind.SCHEDULED)
    assert shares.cycles.value == clock.cycles
    assert shares.cycles.kind is NumberKind.SCHEDULED
    slow = slow_shares(PROGRAM, phases)
    assert {step.step: step.share.cycles for step in shares.steps if step.share.cycles} == pytest.approx(
        {step: cycles for step, cycles in slow.items() if cycles}
    )
    # The average tile works what the tiles work, but for what it does while others are in their rows.
    assert shares.total.compute <= float(clock.busy.mean()) + 1e-6


def test_where_all_rows_are_alike_the_average_tile_works_what_the_tiles_work() -> None:
    everyone = np.ones(PROGRAM.tile_count, dtype=np.bool_)
    time = PhaseTime(takes_part=everyone, row=np.full(PROGRAM.tile_count, 100), overhead=PHASE_RESIDUAL)
    phases = dict.fromkeys(EXCHANGES, time)
    shares = cycle_shares(PROGRAM, phases, NumberKind.SCHEDULED)
    clock = timeline(PROGRAM, phases, NumberKind.SCHEDULED)
    assert shares.total.compute == pytest.approx(float(clock.busy.mean()))
    assert shares.total.exchange + shares.total.overhead == clock.exchange


def test_steps_say_what_they_are(wide: Small) -> None:
    shares = cycle_shares(wide.program, times_of(wide.exchange, wide.program), NumberKind.SCHEDULED)
    assert_adds_up(shares)
    starts = [step.start for step in shares.steps]
    assert starts == sorted(starts)
    assert [step.step for step in shares.steps] == list(range(len(shares.steps)))
    assert {step.kind for step in shares.steps} == {"compute", "exchange"}
    assert {node for step in shares.steps for node in step.nodes} == {node.node for node in shares.nodes}
    for step in shares.steps:
        if step.kind == "compute":
            assert step.share.exchange == step.share.overhead == 0.0
        else:
            assert step.share.compute == step.share.idle == 0.0
            assert INTERNAL_SYNC <= step.share.overhead <= PHASE_RESIDUAL


def test_phases_are_told_against_their_bounds(wide: Small) -> None:
    """Bound, horizon, ratio, bytes of rows and limiting tile of every phase."""
    table = phase_table(wide.exchange)
    assert [phase.step for phase in table] == sorted(wide.exchange.phases)
    for phase in table:
        scheduled = wide.exchange.phases[StepId(phase.step)]
        assert phase.horizon.value >= phase.bound.value > 0
        assert (phase.horizon.kind, phase.bound.kind) == (NumberKind.SCHEDULED, NumberKind.BOUND)
        assert phase.ratio == phase.horizon.value / phase.bound.value
        sizes = 4 * np.diff(scheduled.rows.first_word)
        assert (phase.row_bytes.value, phase.all_row_bytes.value) == (sizes.max(), sizes.sum())
        assert phase.limiting_tile in scheduled.demand.tiles


def test_shares_add() -> None:
    one = Share(compute=1.0, idle=2.0)
    other = Share(compute=10.0, exchange=3.0, overhead=4.0)
    assert one.plus(other, 0.5) == Share(compute=6.0, exchange=1.5, overhead=2.0, idle=2.0)
    assert one.plus(other).cycles == 20.0


def test_occupancy(wide: Small, narrow: Small) -> None:
    """Event by event: transmit lanes in use, and tiles that receive."""
    for small in (wide, narrow):
        for phase, figures in zip(small.exchange.phases.values(), phase_table(small.exchange), strict=True):
            moves, schedule = phase.demand.transfers, phase.schedule
            horizon = int(schedule.horizon.max(initial=0))
            sending, receiving = [0] * horizon, [0] * horizon
            for transfer, slot in enumerate(schedule.slot.tolist()):
                is_paired = bool(schedule.is_paired[transfer])
                items = int(moves.words[transfer]) // (2 if is_paired else 1)
                for event in range(slot, slot + items):
                    sending[event] += 2 if is_paired else 1
                for recipient in range(*moves.first_recipient[transfer : transfer + 2].tolist()):
                    start = int(schedule.write[recipient])
                    for event in range(start, start + items):
                        receiving[event] += 1
            found = figures.occupancy
            assert 1 <= len(found.sending) <= 160
            for line, wanted in ((found.sending, sending), (found.receiving, receiving)):
                parts = [wanted[start : start + found.events] for start in range(0, horizon, found.events)]
                assert line == pytest.approx([sum(part) / len(part) for part in parts], abs=1e-3)
            assert figures.tiles == len(schedule.tiles)
