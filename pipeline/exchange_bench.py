"""Measures the exchange compiler on a pattern: how close to its bound a phase comes, and how fast.

Input: a pattern's name and a seed. Output: ``Measured``: numbers, each with its kind; ``lines`` of it is what
the command line prints. Seconds are of this process's processor time, on one core, of the fastest of ``RUNS``
runs: a run with the same result takes longer only by what the machine does besides. Compilation of hot loops
happens in a run before them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar, final

from compiler.errors import InternalError
from compiler.exchange.check import check_phase
from compiler.exchange.demand import demand_of
from compiler.exchange.ir import Demand, PlacedTransfers, Schedule, ScheduledPhase
from compiler.exchange.order import chosen_order
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.report import PhaseReport, report_of
from compiler.exchange.rows import encode_rows
from pipeline.exchange_patterns import STEP, phase_of

T = TypeVar("T")

RUNS: Final = 3
"""How often each pattern is measured."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Seconds:
    """Processor seconds of each part."""

    demand: float
    order: float
    rows: float
    check: float

    @property
    def total(self) -> float:
        """From orders to checked rows; the demand is its input."""
        return self.order + self.rows + self.check


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A phase in numbers.

    Args:
        pattern: its name.
        seed: of its random parts.
        asked: transfers asked for.
        report: of the scheduled phase.
        row_words: words of all rows.
        seconds: what it took.
    """

    pattern: str
    seed: int
    asked: int
    report: PhaseReport
    row_words: int
    seconds: Seconds

    def lines(self) -> list[str]:
        """For people: a number, its unit, its kind."""
        report, seconds = self.report, self.seconds
        busiest = max(seconds.total, 1e-9)
        return [
            (
                f"pattern {self.pattern}, seed {self.seed}: {self.asked:,} transfers asked for,"
                f" {report.transfers:,} used, to {report.recipients:,} recipients"
            ),
            f"endpoint: {report.endpoint_bound.value:,} events (bound)",
            (
                f"latency-aware: {report.latency_bound.value:,} events with ordinary transfers,"
                f" {report.paired_bound.value:,} with all paired that can be (bound)"
            ),
            f"used: {report.paired_transfers:,} paired transfers, {report.used_bound.value:,} events (bound)",
            (
                f"horizon: {report.horizon.value:,} events (scheduled),"
                f" {report.ratio:.4f} of the bound of the transfers used"
            ),
            f"limiting tile: {report.limit}",
            (
                f"largest row: {report.row_bytes.value:,} bytes (scheduled), at least"
                f" {report.row_bytes_bound.value:,} (bound)"
            ),
            f"rows: {self.row_words / max(report.transfers, 1):.2f} words a transfer (scheduled), both ends",
            f"demand: {seconds.demand:.3f} s (measured)",
            (
                f"order and timing: {seconds.order:.3f} s; rows: {seconds.rows:.3f} s;"
                f" check: {seconds.check:.3f} s (measured)"
            ),
            (
                f"order to checked rows: {report.transfers / busiest:,.0f} transfers and"
                f" {report.recipients / busiest:,.0f} recipients a second (measured)"
            ),
        ]


def measured(pattern: str, seed: int) -> Measured:
    """Run a pattern.

    Raises:
        InternalError: the checker finds the rows wrong.
    """
    asked = phase_of(pattern, seed)
    _run(asked)
    runs = [_run(asked) for _ in range(RUNS)]
    phase, seconds = min(runs, key=lambda run: run[1].total)
    return Measured(
        pattern=pattern,
        seed=seed,
        asked=len(asked.source),
        report=report_of(phase),
        row_words=len(phase.rows.words),
        seconds=seconds,
    )


def _run(asked: PlacedTransfers) -> tuple[ScheduledPhase, Seconds]:
    demand, of_demand = _timed(lambda: demand_of(asked, step=STEP, iterations=1, nodes=("pattern",)))
    ordered, of_order = _timed(lambda: chosen_order(demand))
    phase, of_rows = _timed(lambda: _with_rows(demand, ordered.schedule))
    findings, of_check = _timed(lambda: check_phase(asked, 1, phase.rows, phase.patches))
    if findings:
        raise InternalError(
            str(findings[0]),
            stage="exchange",
            subject="rows of a pattern",
            next_step="report this message with the pattern and the seed",
        )
    return phase, Seconds(demand=of_demand, order=of_order, rows=of_rows, check=of_check)


def _with_rows(demand: Demand, schedule: Schedule) -> ScheduledPhase:
    rows, sites = encode_rows(demand, schedule)
    return ScheduledPhase(
        demand=demand,
        schedule=schedule,
        rows=rows,
        sites=sites,
        patches=patches_between(rows.words, sites, iterations_of(demand)),
    )


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin
