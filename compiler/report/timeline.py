"""Where the cycles of a run go: by step, by graph node, and into compute, exchange, overhead and idling.

Input: a low program and what its exchange steps take. The times are those of ``estimate.low``: what a call or
copy takes by its binding, an exchange as a barrier, and behind it a row on each tile that has one. Here each
cycle of the run is given to one step, so that the steps add up to the run:

* Between two barriers the tile that comes to the second one last decides when that is passed; of several the
  lowest counts. What it does on the way is what the cycles are given to: its row of the exchange behind the
  first barrier, if it has one, then its work in each compute step.
* Of the cycles of compute steps the average tile works in a part, which is *compute*, and waits in the rest,
  which is *idle*: the same part for all steps between two barriers. Where others work more than the tile that
  decides, while it still runs its row, that is all of them.
* An exchange step has as many cycles as that tile's row has events, which is *exchange*, and the barrier and
  what the tile does for it, which is *overhead*.

The cycles of a step are given to graph nodes by the work of their calls and copies on the deciding tile, or
by the bytes received for them.

The *occupancy* of a phase is how many tiles have an item on the way out, and in, at each event, as averages
over equal stretches of events.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, final

import numpy as np

from compiler.errors import Measure, NumberKind
from compiler.estimate.low import PhaseTime
from compiler.exchange.events import WORDS_OF_PAIRED_ITEM
from compiler.exchange.ir import ScheduledExchange, ScheduledPhase
from compiler.exchange.phase_times import phase_times
from compiler.exchange.report import report_of
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, LowProgram, RepeatStep
from compiler.low.prices import cycles_of_bindings, work_of_steps
from compiler.low.steps import StepKind, executions, in_order, rows_by_step, table_of
from compiler.target.costs import INTERNAL_SYNC
from compiler.target.units import Int64Array

PARTS: Final = ("compute", "exchange", "overhead", "idle")
"""Names of the parts of a ``Share``."""

_MOST_STRETCHES: Final = 160
"""Of the occupancy of a phase: as many as a reader can tell apart in a plot."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Cycles of a run, by what happens in them. They may be fractions: the average tile works in a part."""

    compute: float = 0.0
    exchange: float = 0.0
    overhead: float = 0.0
    idle: float = 0.0

    @property
    def cycles(self) -> float:
        """All of them."""
        return self.compute + self.exchange + self.overhead + self.idle

    def plus(self, other: "Share", factor: float = 1.0) -> "Share":
        """This and a multiple of another."""
        return Share(
            compute=self.compute + factor * other.compute,
            exchange=self.exchange + factor * other.exchange,
            overhead=self.overhead + factor * other.overhead,
            idle=self.idle + factor * other.idle,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepShare:
    """One compute or exchange step.

    Args:
        step: its number.
        kind: compute or exchange.
        nodes: graph nodes that it works for, those with most cycles first.
        iterations: how often it runs.
        tiles: tiles that do something in it.
        start: cycle of the run at which its first iteration begins, for the tile that decides.
        share: cycles of all iterations.
    """

    step: int
    kind: str
    nodes: tuple[str, ...]
    iterations: int
    tiles: int
    start: int
    share: Share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeShare:
    """One graph node: cycles of all steps that work for it."""

    node: str
    share: Share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CycleShares:
    """A run.

    Args:
        cycles: of the run; their kind is that of the lengths of rows.
        total: by what happens in them.
        steps: in program order.
        nodes: in the order of the program's nodes, those with cycles.
    """

    cycles: Measure
    total: Share
    steps: tuple[StepShare, ...]
    nodes: tuple[NodeShare, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """How busy an exchange is while it lasts.

    Args:
        events: of each stretch.
        sending: transmit lanes in use on average in each stretch; a paired transfer uses two.
        receiving: tiles that receive on average in each stretch.
    """

    events: int
    sending: tuple[float, ...]
    receiving: tuple[float, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFigures:
    """One exchange phase.

    Args:
        step: exchange step.
        nodes: graph nodes that it moves bytes for.
        iterations: how often it runs in one go through its Repeat.
        transfers: spans that are sent, and how many of them are paired.
        paired_transfers: of them.
        recipients: spans that are received.
        bound: events that it takes at least with the transfers as they are used.
        horizon: events of its longest row.
        ratio: of both; 1.0 where nothing moves.
        row_bytes: of its largest row.
        all_row_bytes: of all its rows.
        limiting_tile: physical tile that gives the bound.
        limit: what bounds it, in words.
        tiles: tiles that take part.
        occupancy: how busy it is while it lasts.
    """

    step: int
    nodes: tuple[str, ...]
    iterations: int
    transfers: int
    paired_transfers: int
    recipients: int
    bound: Measure
    horizon: Measure
    ratio: float
    row_bytes: Measure
    all_row_bytes: Measure
    limiting_tile: int | None
    limit: str
    tiles: int
    occupancy: Occupancy


def phase_table(exchange: ScheduledExchange) -> tuple[PhaseFigures, ...]:
    """The phases of a program, in its order."""
    found: list[PhaseFigures] = []
    for step in sorted(exchange.phases):
        phase = exchange.phases[step]
        report, moves = report_of(phase), phase.demand.transfers
        nodes: list[int] = np.unique(moves.node).tolist()
        found.append(
            PhaseFigures(
                step=step,
                nodes=tuple(phase.demand.nodes[node] for node in nodes),
                iterations=phase.demand.iterations,
                transfers=report.transfers,
                paired_transfers=report.paired_transfers,
                recipients=report.recipients,
                bound=report.used_bound,
                horizon=report.horizon,
                ratio=report.ratio,
                row_bytes=report.row_bytes,
                all_row_bytes=report.all_row_bytes,
                limiting_tile=report.limiting_tile,
                limit=report.limit,
                tiles=len(phase.schedule.tiles),
                occupancy=occupancy_of(phase),
            )
        )
    return tuple(found)


def occupancy_of(phase: ScheduledPhase) -> Occupancy:
    """How busy a phase is, in at most ``_MOST_STRETCHES`` stretches over its horizon."""
    moves, schedule = phase.demand.transfers, phase.schedule
    is_paired = schedule.is_paired
    items = np.where(is_paired, moves.words // WORDS_OF_PAIRED_ITEM, moves.words)
    received = items[moves.transfer_of_recipient]
    stop = int(schedule.horizon.max(initial=0))  # no item is on its way behind it
    events = max(1, -(-stop // _MOST_STRETCHES))
    return Occupancy(
        events=events,
        sending=_averages(schedule.slot, items, np.where(is_paired, 2, 1), events, stop),
        receiving=_averages(schedule.write, received, np.ones_like(received), events, stop),
    )


def _averages(
    start: Int64Array, length: Int64Array, weight: Int64Array, events: int, stop: int
) -> tuple[float, ...]:
    """Weights of the intervals over each event, as averages of stretches of so many events."""
    stretches = -(-stop // events)
    change = np.zeros(stretches * events + 1, dtype=np.int64)
    np.add.at(change, start, weight)
    np.subtract.at(change, start + length, weight)
    busy = np.cumsum(change)[:-1].reshape(stretches, events).sum(axis=1)
    # The last stretch may be shorter.
    lengths = np.minimum(events, stop - events * np.arange(stretches))
    return tuple(round(value, 3) for value in (busy / lengths).tolist())


def times_of(exchange: ScheduledExchange, program: LowProgram) -> dict[StepId, PhaseTime]:
    """What the phases of a program take."""
    schedules = {step: phase.schedule for step, phase in exchange.phases.items()}
    return phase_times(schedules, program.tile_count)


def cycle_shares(program: LowProgram, phases: Mapping[StepId, PhaseTime], kind: NumberKind) -> CycleShares:
    """Where the cycles of a run go.

    Args:
        program: the program.
        phases: what each exchange step takes; one that moves nothing may be missing.
        kind: how that came about.
    """
    return _Walk(program, phases).result(kind)


@final
class _Walk:
    """One walk over a program. What lies between two barriers is booked when the second one comes."""

    def __init__(self, program: LowProgram, phases: Mapping[StepId, PhaseTime]) -> None:
        self._program = program
        self._phases = {step: phase for step, phase in phases.items() if phase.takes_part.any()}
        self._table = table_of(program.steps)
        self._numbers = [step.step for step, _ in in_order(program.steps) if not isinstance(step, RepeatStep)]
        self._work = work_of_steps(program, len(self._table.kind))
        self._weights = _Weights(program, len(self._table.kind))
        self._clock = 0
        self._passed: StepId | None = None
        self._open: list[StepId] = []
        self._steps: dict[StepId, Share] = {number: Share() for number in self._numbers}
        self._starts: dict[StepId, int] = {}
        self._of_node: dict[int, Share] = {}
        self._decided = cache(self._deciding)

    def result(self, kind: NumberKind) -> CycleShares:
        for step, _ in executions(self._program.steps):
            if isinstance(step, ComputeStep):
                self._open.append(step.step)
            elif step.step in self._phases:
                self._close(step.step)
        self._close(None)
        total = Share()
        for number in self._numbers:
            total = total.plus(self._steps[number])
        return CycleShares(
            cycles=Measure(name="a run", value=self._clock, unit="cycles", kind=kind),
            total=total,
            steps=tuple(self._step(number) for number in self._numbers),
            nodes=tuple(
                NodeShare(node=self._program.nodes[node], share=self._of_node[node])
                for node in sorted(self._of_node)
            ),
        )

    def _step(self, number: StepId) -> StepShare:
        kind = StepKind(int(self._table.kind[number]))
        if kind is StepKind.COMPUTE:
            weights, tiles = self._weights.of_compute(number), int((self._work[number] > 0).sum())
        else:
            weights, tiles = self._weights.of_exchange(number), self._weights.tiles_of_exchange(number)
        ordered = sorted(weights, key=lambda node: (-weights[node], node))
        return StepShare(
            step=number,
            kind=kind.name.lower(),
            nodes=tuple(self._program.nodes[node] for node in ordered),
            iterations=int(self._table.iterations[number]),
            tiles=tiles,
            start=self._starts.get(number, 0),
            share=self._steps[number],
        )

    def _close(self, barrier: StepId | None) -> None:
        """Book what lies between the last barrier and the next one, or the end of the run."""
        steps = tuple(self._open)
        self._open.clear()
        tile, part = self._decided(self._passed, steps, barrier)
        if self._passed is not None:
            row = int(self._phases[self._passed].row[tile])
            self._book_exchange(self._passed, exchange=row, overhead=int(INTERNAL_SYNC))
        for number in steps:
            cycles = int(self._work[number, tile])
            share = Share(compute=part * cycles, idle=(1.0 - part) * cycles)
            self._book(number, share, self._weights.of_compute(number, tile))
            self._clock += cycles
        if barrier is not None:
            before = int(self._phases[barrier].before[tile])
            self._book_exchange(barrier, exchange=0, overhead=before)
        self._passed = barrier

    def _book_exchange(self, number: StepId, *, exchange: int, overhead: int) -> None:
        share = Share(exchange=float(exchange), overhead=float(overhead))
        self._book(number, share, self._weights.of_exchange(number))
        self._clock += exchange + overhead

    def _deciding(
        self, passed: StepId | None, steps: tuple[StepId, ...], barrier: StepId | None
    ) -> tuple[int, float]:
        """The tile that comes last to the next barrier, and what part of its work the average tile has."""
        work = self._work[list(steps)].sum(axis=0)
        way = work.copy()
        if passed is not None:
            way += self._phases[passed].row
        if barrier is not None:
            way += self._phases[barrier].before
        tile = int(way.argmax())
        return tile, min(1.0, float(work.mean()) / int(work[tile])) if work[tile] else 0.0

    def _book(self, number: StepId, share: Share, weights: Mapping[int, int]) -> None:
        self._starts.setdefault(number, self._clock)
        self._steps[number] = self._steps[number].plus(share)
        whole = sum(weights.values())
        for node, weight in weights.items():
            if weight:
                self._of_node[node] = self._of_node.get(node, Share()).plus(share, weight / whole)


@final
class _Weights:
    """How much of a step is for which graph node: cycles of calls and copies, or bytes received."""

    def __init__(self, program: LowProgram, step_count: int) -> None:
        self._program = program
        self._cycles = cycles_of_bindings(program)
        self._calls = rows_by_step(program.calls.step, step_count)
        self._copies = rows_by_step(program.copies.step, step_count)
        self._taken = rows_by_step(program.transfers.step[program.recipients.transfer], step_count)
        self.of_compute = cache(self._of_compute)
        self.of_exchange = cache(self._of_exchange)

    def _of_compute(self, step: int, tile: int | None = None) -> Mapping[int, int]:
        """Cycles by node, on one tile or all."""
        found: dict[int, int] = {}
        for table, (order, first) in (
            (self._program.calls, self._calls),
            (self._program.copies, self._copies),
        ):
            rows = order[first[step] : first[step + 1]]
            if tile is not None:
                rows = rows[table.tile[rows] == tile]
            nodes, place = np.unique(table.node[rows], return_inverse=True)
            sums = np.bincount(place, weights=self._cycles[table.binding[rows]], minlength=len(nodes))
            for node, cycles in zip(nodes.tolist(), sums.tolist(), strict=True):
                found[node] = found.get(node, 0) + int(cycles)
        return found

    def _of_exchange(self, step: int) -> Mapping[int, int]:
        """Bytes received by node."""
        order, first = self._taken
        transfers = self._program.recipients.transfer[order[first[step] : first[step + 1]]]
        nodes, place = np.unique(self._program.transfers.node[transfers], return_inverse=True)
        sums = np.bincount(place, weights=self._program.transfers.byte_count[transfers], minlength=len(nodes))
        return {node: int(size) for node, size in zip(nodes.tolist(), sums.tolist(), strict=True)}

    def tiles_of_exchange(self, step: int) -> int:
        """Tiles that send or receive."""
        order, first = self._taken
        rows = order[first[step] : first[step + 1]]
        recipients, transfers = self._program.recipients, self._program.transfers
        tile = self._program.buffers.tile
        sources = tile[transfers.source[recipients.transfer[rows]]]
        return len(np.union1d(sources, tile[recipients.destination[rows]]))
