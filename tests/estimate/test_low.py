"""Times of low programs: sums of the tables, tile by tile; schedules come close to the simulator."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import NumberKind
from compiler.estimate.low import of_horizons, phase_estimates, timeline
from compiler.low.expand.program import expand
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram
from compiler.low.steps import executions
from compiler.mid.ir import MidProgram
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.report.timeline import horizons_of
from compiler.target.costs import (
    KERNEL_LAUNCH,
    PHASE_OVERHEAD,
    PHASE_RESIDUAL,
    RECEIVE_FRAGMENT,
    SEND_FRAGMENT,
)
from tests.low.planned import programs
from tests.report.builds import small_builds

PROGRAM = skeleton(SkeletonOptions(rows=7, panels=2))
"""A Repeat of two over products, exchanges and sums."""


def _walked(program: LowProgram, phases: Mapping[StepId, int]) -> tuple[int, int, list[int]]:
    """Cycles, cycles in phases and busy cycles by tile: every run of every step, row by row."""
    time, busy, exchange = [0] * program.tile_count, [0] * program.tile_count, 0
    for step, _ in executions(program.steps):
        match step:
            case ComputeStep():
                for table in (program.calls, program.copies):
                    for row in np.flatnonzero(table.step == step.step).tolist():
                        cycles = program.bindings[int(table.binding[row])].cycles + KERNEL_LAUNCH
                        time[int(table.tile[row])] += cycles
                        busy[int(table.tile[row])] += cycles
            case ExchangeStep():
                time = [max(time) + phases[step.step]] * program.tile_count
                exchange += phases[step.step]
    return max(time), exchange, busy


@settings(max_examples=10)
@given(program=programs())
def test_times_are_sums_of_the_tables(program: MidProgram) -> None:
    """AL-04, AL-07: each call, copy and phase once for each run, whatever rewrites did before."""
    _assert_sums(expand(program))


def test_times_of_a_repeat() -> None:
    _assert_sums(PROGRAM)


def _assert_sums(program: LowProgram) -> None:
    phases = phase_estimates(program)
    timed = timeline(program, phases, NumberKind.ESTIMATED)
    cycles, exchange, busy = _walked(program, phases)
    assert (timed.cycles, timed.exchange, timed.busy.tolist()) == (cycles, exchange, busy)
    assert timed.phases == sum(isinstance(step, ExchangeStep) for step, _ in executions(program.steps))
    assert timed.kind is NumberKind.ESTIMATED
    first_runs = {step.step for step, _ in executions(program.steps)}
    assert [step.step for step in timed.steps] == sorted(first_runs)
    assert all(step.start <= step.end for step in timed.steps)


@given(horizons=st.lists(st.integers(0, 9000), min_size=2, max_size=2))
def test_scheduled_phases_take_what_their_rows_take(horizons: list[int]) -> None:
    """A phase is its longest row and what surrounds it; nothing else of the program changes."""
    steps = sorted({step.step for step, _ in executions(PROGRAM.steps) if isinstance(step, ExchangeStep)})
    phases = of_horizons(dict(zip(steps, horizons, strict=True)))
    assert [phases[step] - PHASE_RESIDUAL for step in steps] == horizons
    timed = timeline(PROGRAM, phases, NumberKind.SCHEDULED)
    assert timed.kind is NumberKind.SCHEDULED
    assert timed.cycles == _walked(PROGRAM, phases)[0]
    other = timeline(PROGRAM, phase_estimates(PROGRAM), NumberKind.ESTIMATED)
    assert np.array_equal(timed.busy, other.busy)


def test_a_phase_is_priced_by_its_busiest_end() -> None:
    """Words or fragments, sent or received, whichever is most on any tile."""
    transfers, recipients, tile = PROGRAM.transfers, PROGRAM.recipients, PROGRAM.buffers.tile
    for step, cycles in phase_estimates(PROGRAM).items():
        ends: dict[tuple[str, int], list[int]] = {}
        for row in np.flatnonzero(transfers.step == step).tolist():
            words = int(transfers.byte_count[row]) // 4
            ends.setdefault(("send", int(tile[transfers.source[row]])), []).append(words)
            for taken in np.flatnonzero(recipients.transfer == row).tolist():
                ends.setdefault(("receive", int(tile[recipients.destination[taken]])), []).append(words)
        price = {"send": SEND_FRAGMENT, "receive": RECEIVE_FRAGMENT}
        most = max(max(sum(words), price[end] * len(words)) for (end, _), words in ends.items())
        assert cycles == PHASE_OVERHEAD + most


@pytest.mark.slow
def test_scheduled_cycles_are_those_of_the_simulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Within 5 %, for a small model on a few tiles."""
    for build in small_builds(tmp_path_factory).values():
        simulated = build.built.simulated
        assert simulated is not None
        phases = of_horizons(horizons_of(build.exchange))
        scheduled = timeline(build.program, phases, NumberKind.SCHEDULED).cycles
        assert scheduled == pytest.approx(int(simulated.cycles.max()), rel=0.05)
