"""Times of low programs: sums of the tables, tile by tile; schedules come close to the simulator."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from compiler.compile import build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.errors import NumberKind
from compiler.estimate.low import PhaseTime, phase_estimates, timeline
from compiler.graph.text import text_of_graph
from compiler.low.expand.program import expand
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram
from compiler.low.steps import executions
from compiler.mid.ir import MidProgram
from compiler.models.smoke import gemm_benchmark
from compiler.models.subjects import GraphModel
from compiler.report.timeline import times_of
from compiler.store.layout import Access
from compiler.store.store import Store
from compiler.tables import table_digests
from compiler.target.costs import (
    INTERNAL_SYNC,
    KERNEL_LAUNCH,
    PHASE_OVERHEAD,
    PHASE_RESIDUAL,
    RECEIVE_FRAGMENT,
    SEND_FRAGMENT,
)
from compiler.target.tiles import logical_tiles
from compiler.target.units import Cycles
from pipeline.last_results import built_of, last_build
from tests.estimate.phases import PROGRAM, phase_times_of_steps
from tests.low.planned import programs
from tests.report.builds import small_builds


def _walked(program: LowProgram, phases: Mapping[StepId, PhaseTime]) -> tuple[int, int, list[int]]:
    """Cycles, cycles in phases and busy cycles by tile: every run of every step, row by row, tile by tile."""
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
                phase = phases[step.step]
                rows = {tile: int(phase.row[tile]) for tile in np.flatnonzero(phase.takes_part).tolist()}
                if not rows:
                    continue
                barrier = INTERNAL_SYNC + max(
                    at + (phase.overhead - INTERNAL_SYNC if tile in rows else 0)
                    for tile, at in enumerate(time)
                )
                time = [barrier + rows.get(tile, 0) for tile in range(program.tile_count)]
                exchange += phase.overhead + max(rows.values())
    return max(time), exchange, busy


@settings(max_examples=10)
@given(program=programs())
def test_times_are_sums_of_the_tables(program: MidProgram) -> None:
    """AL-04, AL-07: each call, copy and phase once for each run, whatever rewrites did before."""
    expanded = expand(program)
    _assert_sums(expanded, phase_estimates(expanded))


@given(phases=phase_times_of_steps())
def test_tiles_go_on_behind_their_own_rows(phases: dict[StepId, PhaseTime]) -> None:
    """A tile waits for the barrier, and for no row but its own, in each iteration of a Repeat."""
    _assert_sums(PROGRAM, phases)


def _assert_sums(program: LowProgram, phases: Mapping[StepId, PhaseTime]) -> None:
    timed = timeline(program, phases, NumberKind.ESTIMATED)
    cycles, exchange, busy = _walked(program, phases)
    assert (timed.cycles, timed.exchange, timed.busy.tolist()) == (cycles, exchange, busy)
    assert timed.phases == sum(isinstance(step, ExchangeStep) for step, _ in executions(program.steps))
    assert timed.kind is NumberKind.ESTIMATED
    first_runs = {step.step for step, _ in executions(program.steps)}
    assert [step.step for step in timed.steps] == sorted(first_runs)
    assert all(step.start <= step.end for step in timed.steps)


def test_scheduled_phases_take_what_their_rows_take(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each tile its own row and what surrounds it; a tile without one none."""
    for small in small_builds(tmp_path_factory).values():
        found = times_of(small.exchange, small.program)
        for step, phase in small.exchange.phases.items():
            rows = dict(
                zip(
                    logical_tiles(phase.schedule.tiles).tolist(), phase.schedule.horizon.tolist(), strict=True
                )
            )
            time = found[step]
            assert np.flatnonzero(time.takes_part).tolist() == sorted(rows)
            assert time.row.tolist() == [rows.get(tile, 0) for tile in range(small.program.tile_count)]
            assert time.overhead == PHASE_RESIDUAL
            assert time.longest == PHASE_RESIDUAL + max(rows.values())


@pytest.mark.parametrize(
    ("takes_part", "row", "overhead"),
    [([True], [1, 2], 250), ([True], [-1], 250), ([True, False], [3, 1], 250), ([True], [3], 1)],
)
def test_phases_that_cannot_be(takes_part: list[bool], row: list[int], overhead: int) -> None:
    with pytest.raises(ValueError, match=r"columns|row|barrier"):
        PhaseTime(takes_part=np.array(takes_part), row=np.array(row), overhead=Cycles(overhead))


def test_a_phase_is_priced_by_its_busiest_end() -> None:
    """Words or fragments, sent or received, whichever is most on any tile."""
    transfers, recipients, tile = PROGRAM.transfers, PROGRAM.recipients, PROGRAM.buffers.tile
    for step, phase in phase_estimates(PROGRAM).items():
        ends: dict[tuple[str, int], list[int]] = {}
        for row in np.flatnonzero(transfers.step == step).tolist():
            words = int(transfers.byte_count[row]) // 4
            ends.setdefault(("send", int(tile[transfers.source[row]])), []).append(words)
            for taken in np.flatnonzero(recipients.transfer == row).tolist():
                ends.setdefault(("receive", int(tile[recipients.destination[taken]])), []).append(words)
        price = {"send": SEND_FRAGMENT, "receive": RECEIVE_FRAGMENT}
        most = max(max(sum(words), price[end] * len(words)) for (end, _), words in ends.items())
        assert phase.longest == PHASE_OVERHEAD + most
        assert phase.takes_part.all()
        assert set(phase.row.tolist()) == {most}


@pytest.mark.slow
def test_scheduled_cycles_are_those_of_the_simulator(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Within 5 %, for a small model on a few tiles."""
    for small in small_builds(tmp_path_factory).values():
        simulated = small.built.simulated
        assert simulated is not None
        phases = times_of(small.exchange, small.program)
        scheduled = timeline(small.program, phases, NumberKind.SCHEDULED).cycles
        assert scheduled == pytest.approx(int(simulated.cycles.max()), rel=0.05)


def test_tiles_without_a_row_do_not_wait_for_rows(tmp_path: Path) -> None:
    """Of 16 tiles 14 take part in the only phase, and end its rows one after another."""
    model = GraphModel(name="uneven", text=text_of_graph(gemm_benchmark(1426, 64, 16), with_provenance=True))
    options = BuildOptions(
        planning=PlanningOptions(tiles=16, attempts=0), simulation=SimulationOptions(runs=1, seed=7)
    )
    with Store.open(tmp_path, tables=table_digests(), strict=True) as store:
        build(store, model, options)
    with Store.open(tmp_path, access=Access.READ_ONLY, tables=table_digests()) as store:
        built = built_of(store, last_build(store, model.name))
    assert built.simulated is not None
    simulated = int(built.simulated.cycles.max())
    times = times_of(built.exchange, built.program)
    assert [int(time.takes_part.sum()) for time in times.values()] == [14]
    assert timeline(built.program, times, NumberKind.SCHEDULED).cycles == pytest.approx(simulated, rel=0.02)
    alike = {
        step: PhaseTime(
            takes_part=np.ones_like(time.takes_part),
            row=np.full_like(time.row, time.row.max()),
            overhead=time.overhead,
        )
        for step, time in times.items()
    }
    assert timeline(built.program, alike, NumberKind.SCHEDULED).cycles > 1.05 * simulated
