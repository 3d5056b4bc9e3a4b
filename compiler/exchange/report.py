"""How good the schedule of a phase is, in numbers that say what kind they are.

Input: a scheduled phase. Output: a ``PhaseReport``; ``str`` of it is a line for people.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.errors import Measure, NumberKind
from compiler.exchange.bound import bounds_of_phase, latency_bounds
from compiler.exchange.events import WORDS_OF_PAIRED_ITEM
from compiler.exchange.ir import ScheduledPhase
from compiler.low.ids import StepId
from compiler.target.tiles import PARTNER_LANE
from compiler.target.units import WORD_BYTES, Int64Array, PhysicalTile


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseReport:
    """One phase in numbers.

    Args:
        step: exchange step.
        transfers: spans that are sent.
        recipients: spans that are received.
        endpoint_bound: words of the busiest direction of any tile, as events.
        paired_transfers: how many of them are paired.
        latency_bound: events that the phase lasts at least with ordinary transfers.
        paired_bound: the same where everything that can be paired is.
        used_bound: the same of the transfers as they are used, some of them paired.
        horizon: events of the longest row.
        ratio: horizon over the bound of the transfers used; 1.0 for a phase without transfers.
        limiting_tile: physical tile that gives the bound of the transfers used, the lowest of several; None
            without transfers.
        is_limited_by_receiving: whether it does so by what it receives.
        row_bytes: bytes of the largest row.
        row_bytes_bound: bytes that the largest row needs at least.
        all_row_bytes: bytes of all rows.
        patched_words: words that change between iterations.
    """

    step: StepId
    transfers: int
    recipients: int
    paired_transfers: int
    endpoint_bound: Measure
    latency_bound: Measure
    paired_bound: Measure
    used_bound: Measure
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
            f" {self.ratio:.3f} of the bound {self.used_bound.value:,}; {self.limit};"
            f" {self.transfers:,} transfers, {self.recipients:,} recipients;"
            f" largest row {self.row_bytes.value:,} bytes (scheduled)"
        )

    @property
    def limit(self) -> str:
        """What bounds the phase, in words."""
        if self.limiting_tile is None:
            return "nothing moves"
        verb = "receives" if self.is_limited_by_receiving else "sends"
        return f"limited by what physical tile {self.limiting_tile} {verb}"


def report_of(phase: ScheduledPhase) -> PhaseReport:
    """The numbers of a phase."""
    bounds = bounds_of_phase(phase.demand)
    horizon = int(phase.schedule.horizon.max(initial=0))
    row_bytes = WORD_BYTES * np.diff(phase.rows.first_word)
    moves, is_paired = phase.demand.transfers, phase.schedule.is_paired
    used = latency_bounds(moves, is_paired)
    bound = int(used.max(initial=0))
    tile = int(np.argmax(used)) if len(bounds.tiles) else None
    items = np.where(is_paired, moves.words // WORDS_OF_PAIRED_ITEM, moves.words)
    received = int(items[moves.transfer_of_recipient[moves.receiver == tile]].sum())
    return PhaseReport(
        step=phase.demand.step,
        transfers=len(moves.source),
        recipients=len(moves.receiver),
        paired_transfers=int(is_paired.sum()),
        endpoint_bound=_measure("endpoint bound", bounds.endpoint, "events", NumberKind.BOUND),
        latency_bound=_measure("latency-aware bound", bounds.horizon, "events", NumberKind.BOUND),
        paired_bound=_measure("paired bound", bounds.paired_horizon, "events", NumberKind.BOUND),
        used_bound=_measure("bound of transfers used", bound, "events", NumberKind.BOUND),
        horizon=_measure("horizon", horizon, "events", NumberKind.SCHEDULED),
        ratio=horizon / bound if bound else 1.0,
        limiting_tile=None if tile is None else PhysicalTile(tile),
        is_limited_by_receiving=received > 0 and bound != _sent(phase, tile, items),
        row_bytes=_measure("largest row", int(row_bytes.max(initial=0)), "bytes", NumberKind.SCHEDULED),
        row_bytes_bound=_measure("least bytes of a row", bounds.largest_row, "bytes", NumberKind.BOUND),
        all_row_bytes=_measure("all rows", int(row_bytes.sum()), "bytes", NumberKind.SCHEDULED),
        patched_words=_measure("patched words", len(phase.patches.word), "words", NumberKind.SCHEDULED),
    )


def _sent(phase: ScheduledPhase, tile: int | None, items: Int64Array) -> int:
    """Events that a tile's transmit lane is in use, for itself or its partner."""
    moves = phase.demand.transfers
    if tile is None:
        return 0
    lent = phase.schedule.is_paired & (moves.source == tile ^ PARTNER_LANE)
    return int(items[(moves.source == tile) | lent].sum())


def _measure(name: str, value: int, unit: str, kind: NumberKind) -> Measure:
    return Measure(name=name, value=int(value), unit=unit, kind=kind)
