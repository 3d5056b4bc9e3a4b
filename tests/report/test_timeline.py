"""Where cycles go: shares add up, agree with the estimate's clock, and with a walk over every tile."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import NumberKind
from compiler.estimate.low import of_horizons, timeline
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, LowProgram
from compiler.low.steps import executions
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.report.timeline import PARTS, CycleShares, Share, cycle_shares, horizons_of, phase_table
from compiler.target.costs import KERNEL_LAUNCH, PHASE_RESIDUAL
from tests.report.builds import Small

PROGRAM = skeleton(SkeletonOptions(rows=5, panels=2))
"""Its Repeat begins with local work and has several exchanges."""

EXCHANGES = sorted({step.step for step, _ in executions(PROGRAM.steps) if not isinstance(step, ComputeStep)})

horizons = st.lists(st.integers(0, 5000), min_size=len(EXCHANGES), max_size=len(EXCHANGES)).map(
    lambda lengths: dict(zip(EXCHANGES, lengths, strict=True))
)


def assert_adds_up(shares: CycleShares) -> None:
    """Steps and nodes make the run, part by part."""
    assert shares.total.cycles == pytest.approx(shares.cycles.value)
    for part in PARTS:
        whole = getattr(shares.total, part)
        assert sum(getattr(step.share, part) for step in shares.steps) == pytest.approx(whole)
        assert sum(getattr(node.share, part) for node in shares.nodes) == pytest.approx(whole)
        assert min(getattr(step.share, part) for step in shares.steps) >= 0.0


def slow_shares(program: LowProgram, lengths: dict[StepId, int]) -> dict[int, float]:
    """Cycles by step, a list of works per tile at a time."""
    found: dict[int, float] = {}
    block: list[tuple[int, list[int]]] = []

    def close() -> None:
        totals = [sum(works[tile] for _, works in block) for tile in range(program.tile_count)]
        tile = totals.index(max(totals))
        for step, works in block:
            found[step] = found.get(step, 0.0) + works[tile]
        block.clear()

    for step, _ in executions(program.steps):
        if isinstance(step, ComputeStep):
            works = [0] * program.tile_count
            for table in (program.calls, program.copies):
                for row in range(len(table.step)):
                    if table.step[row] == step.step:
                        cycles = program.bindings[int(table.binding[row])].cycles
                        works[int(table.tile[row])] += cycles + KERNEL_LAUNCH
            block.append((step.step, works))
        else:
            close()
            found[step.step] = found.get(step.step, 0.0) + lengths[step.step] + PHASE_RESIDUAL
    close()
    return found


@given(horizons)
def test_a_repeat_adds_up_to_the_clock(lengths: dict[StepId, int]) -> None:
    shares = cycle_shares(PROGRAM, lengths, NumberKind.SCHEDULED)
    assert_adds_up(shares)
    clock = timeline(PROGRAM, of_horizons(lengths), NumberKind.SCHEDULED)
    assert shares.cycles.value == clock.cycles
    assert shares.cycles.kind is NumberKind.SCHEDULED
    assert shares.total.exchange + shares.total.overhead == clock.exchange
    # What the average tile works is what the tiles work.
    assert shares.total.compute == pytest.approx(float(clock.busy.mean()))


def test_steps_have_the_work_of_the_tile_that_decides() -> None:
    lengths = dict.fromkeys(EXCHANGES, 100)
    shares = cycle_shares(PROGRAM, lengths, NumberKind.ESTIMATED)
    slow = slow_shares(PROGRAM, lengths)
    assert {step.step: step.share.cycles for step in shares.steps} == pytest.approx(slow)


def test_steps_say_what_they_are(wide: Small) -> None:
    shares = cycle_shares(wide.program, horizons_of(wide.exchange), NumberKind.SCHEDULED)
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
            assert step.share.overhead == PHASE_RESIDUAL


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
