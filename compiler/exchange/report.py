"""How good the schedule of a phase is, in numbers that say what kind they are.

Input: a scheduled phase. Output: a ``PhaseReport``; ``str`` of it is a line for people.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.errors import Measure, NumberKind
from compiler.exchange.bound import bounds_of_phase
from compiler.exchange.ir import ScheduledPhase
from compiler.low.ids import StepId
from compiler.target.units import WORD_BYTES, PhysicalTile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """One phase in numbers.

    Args:
        step: exchange step.
        transfers: spans that are sent.
        recipients: spans that are received.
        endpoint_bound: words of the busiest direction of any tile, as events.
        latency_bound: events that the phase lasts at least.
        horizon: events of the longest row.
        ratio: horizon over the latency-aware bound; 1.0 for a phase without transfers.
        limiting_tile: physical tile that gives the latency-aware bound, the lowest of several; None without
            transfers.
        is_limited_by_receiving: whether it does so by what it receives.
        row_bytes: bytes of the largest row.
        row_bytes_bound: bytes that the largest row needs at least.
        all_row_bytes: bytes of all rows.
        patched_words: words that change between iterations.
    """

    step: StepId
    transfers: int
    recipients: int
    endpoint_bound: Measure
    latency_bound: Measure
    horizon: Measure
    ratio: float
    limiting_tile: PhysicalTile | None
    is_limited_by_receiving: bool
    row_bytes: Measure
    row_bytes_bound: Measure
    all_row_bytes: Measure
    patched_words: Measure

    def __str__(self) -> str:
        """What a person wants to know first."""
        return (
            f"exchange step {self.step}: {self.horizon.value:,} events (scheduled),"
            f" {self.ratio:.3f} of the bound {self.latency_bound.value:,}; {self._limit()};"
            f" {self.transfers:,} transfers, {self.recipients:,} recipients;"
            f" largest row {self.row_bytes.value:,} bytes (scheduled)"
        )

    def _limit(self) -> str:
        if self.limiting_tile is None:
            return "nothing moves"
        verb = "receives" if self.is_limited_by_receiving else "sends"
        return f"limited by what physical tile {self.limiting_tile} {verb}"


def report_of(phase: ScheduledPhase) -> PhaseReport:
    """The numbers of a phase."""
    bounds = bounds_of_phase(phase.demand)
    horizon = int(phase.schedule.horizon.max(initial=0))
    row_bytes = WORD_BYTES * np.diff(phase.rows.first_word)
    tile = int(np.argmax(bounds.latency)) if len(bounds.tiles) else None
    return PhaseReport(
        step=phase.demand.step,
        transfers=len(phase.demand.transfers.source),
        recipients=len(phase.demand.transfers.receiver),
        endpoint_bound=_measure("endpoint bound", bounds.endpoint, "events", NumberKind.BOUND),
        latency_bound=_measure("latency-aware bound", bounds.horizon, "events", NumberKind.BOUND),
        horizon=_measure("horizon", horizon, "events", NumberKind.SCHEDULED),
        ratio=horizon / bounds.horizon if bounds.horizon else 1.0,
        limiting_tile=None if tile is None else PhysicalTile(int(bounds.tiles[tile])),
        is_limited_by_receiving=tile is not None and bool(bounds.latency[tile] > bounds.sent[tile]),
        row_bytes=_measure("largest row", int(row_bytes.max(initial=0)), "bytes", NumberKind.SCHEDULED),
        row_bytes_bound=_measure("least bytes of a row", bounds.largest_row, "bytes", NumberKind.BOUND),
        all_row_bytes=_measure("all rows", int(row_bytes.sum()), "bytes", NumberKind.SCHEDULED),
        patched_words=_measure("patched words", len(phase.patches.word), "words", NumberKind.SCHEDULED),
    )


def _measure(name: str, value: int, unit: str, kind: NumberKind) -> Measure:
    return Measure(name=name, value=int(value), unit=unit, kind=kind)
