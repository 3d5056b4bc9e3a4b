"""Times of a low program, tile by tile: estimated before its exchanges are scheduled, scheduled afterwards.

Every tile has a time of its own. A call or a local copy takes what its binding says and what calling costs.
An exchange step is a barrier, which is passed when the last tile has come to it; behind it each tile with a
row has its row to run, and one without goes on at once (``PhaseTime``). What the rows take is the only thing
that differs: a schedule says how long each is (``exchange.phase_times``); ``phase_estimates`` prices a phase
as ``low.prices`` and the rewrites do: all tiles have a row that is as long as the busiest end, since which
of them is done earlier is up to the schedule. Iterations of a Repeat are walked until two in a row cost
the same; the others cost that too.

Calls and copies are counted as the tables say, once for each row (AL-04): nothing is known here of what an
earlier form of the program had.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never, final

import numpy as np

from compiler.errors import NumberKind
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.low.prices import PerTile, loads_of, work_of_steps
from compiler.low.steps import StepKind, rows_by_step, table_of
from compiler.target.costs import INTERNAL_SYNC, PHASE_OVERHEAD
from compiler.target.units import BoolArray, Cycles


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseTime:
    """What an exchange step takes.

    Args:
        takes_part: [tiles] whether the tile has a row.
        row: [tiles] cycles of its row; 0 where there is none.
        overhead: cycles of a tile with a row beyond it, from its arrival on if it is the last to come.
    """

    takes_part: BoolArray
    row: PerTile
    overhead: Cycles

    def __post_init__(self) -> None:
        """One shape; a tile without a row runs none; no barrier is faster than a barrier."""
        if self.takes_part.shape != self.row.shape or self.row.ndim != 1:
            raise ValueError(f"columns of {self.takes_part.shape} and {self.row.shape} tiles")
        if (self.row < 0).any() or self.row[~self.takes_part].any():
            raise ValueError("a row takes no negative time, and none where there is no row")
        if self.overhead < INTERNAL_SYNC:
            raise ValueError(f"the barrier alone takes {INTERNAL_SYNC} cycles, not {self.overhead}")

    @property
    def longest(self) -> Cycles:
        """Cycles of the whole step from the arrival of its last tile on; none where no tile has a row."""
        return Cycles(self.overhead + int(self.row.max())) if self.takes_part.any() else Cycles(0)

    @property
    def before(self) -> PerTile:
        """[tiles] cycles of the overhead that a tile has before it stands at the barrier."""
        return np.where(self.takes_part, self.overhead - int(INTERNAL_SYNC), 0)

    def passed(self, time: PerTile) -> PerTile:
        """When each tile goes on to the next step.

        Args:
            time: [tiles] cycles at which they come to this one.
        """
        if not self.takes_part.any():
            return time
        return int((time + self.before).max()) + int(INTERNAL_SYNC) + self.row


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTime:
    """One step in its first iteration.

    Args:
        step: which.
        kind: compute or exchange.
        start: cycles at which its first tile begins; of an exchange, at which the last tile comes to it.
        end: cycles at which its last tile is done.
        busiest: cycles of the tile that works longest; of an exchange, its phase.
        mean: cycles of work of a tile on average; of an exchange, its phase.
        iterations: how often it runs.
    """

    step: StepId
    kind: StepKind
    start: Cycles
    end: Cycles
    busiest: Cycles
    mean: float
    iterations: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timeline:
    """A program in time.

    Args:
        cycles: of one run.
        exchange: cycles of all phases, overhead included, each with its longest row.
        phases: how many there are.
        busy: [tiles] cycles of calls and copies.
        kind: estimated, or scheduled where all phases are.
        steps: in program order.
    """

    cycles: Cycles
    exchange: Cycles
    phases: int
    busy: PerTile
    kind: NumberKind
    steps: tuple[StepTime, ...]


def phase_estimates(program: LowProgram) -> dict[StepId, PhaseTime]:
    """What each exchange step takes before it is scheduled: its busiest end, and the phase, on all tiles."""
    steps = len(table_of(program.steps).kind)
    sent, first_sent = rows_by_step(program.transfers.step, steps)
    received, first_received = rows_by_step(program.transfers.step[program.recipients.transfer], steps)
    found: dict[StepId, PhaseTime] = {}
    everyone = np.ones(program.tile_count, dtype=np.bool_)
    for number in np.unique(program.transfers.step).tolist():
        loads = loads_of(
            program,
            sent[first_sent[number] : first_sent[number + 1]],
            received[first_received[number] : first_received[number + 1]],
        )
        row = np.full(program.tile_count, loads.cycles - PHASE_OVERHEAD)
        found[StepId(number)] = PhaseTime(takes_part=everyone, row=row, overhead=PHASE_OVERHEAD)
    return found


def timeline(program: LowProgram, phases: Mapping[StepId, PhaseTime], kind: NumberKind) -> Timeline:
    """The program in time.

    Args:
        program: the program.
        phases: what each exchange step takes; one that moves nothing may be missing.
        kind: how that came about.
    """
    return _Walk(program, phases).result(kind)


@final
class _Walk:
    def __init__(self, program: LowProgram, phases: Mapping[StepId, PhaseTime]) -> None:
        self._program = program
        self._table = table_of(program.steps)
        self._phases = phases
        self._work = work_of_steps(program, len(self._table.kind))
        self._time = np.zeros(program.tile_count, dtype=np.int64)
        self._busy = np.zeros(program.tile_count, dtype=np.int64)
        self._exchange: int = 0
        self._count: int = 0
        self._steps: dict[StepId, StepTime] = {}

    def result(self, kind: NumberKind) -> Timeline:
        for step in self._program.steps:
            self._run(step)
        return Timeline(
            cycles=Cycles(int(self._time.max())),
            exchange=Cycles(self._exchange),
            phases=self._count,
            busy=self._busy,
            kind=kind,
            steps=tuple(self._steps[step] for step in sorted(self._steps)),
        )

    def _run(self, step: Step) -> None:
        match step:
            case ComputeStep(step=number):
                work = self._work[number]
                start = int(self._time.min())
                self._time += work
                self._busy += work
                self._note(number, StepKind.COMPUTE, start, int(work.max()), float(work.mean()))
            case ExchangeStep(step=number):
                phase = self._phases.get(number)
                cost = 0 if phase is None else int(phase.longest)
                start = int(self._time.max())
                if phase is not None:
                    self._time = phase.passed(self._time)
                self._exchange += cost
                self._count += 1
                self._note(number, StepKind.EXCHANGE, start, cost, float(cost))
            case RepeatStep(count=count, body=body):
                self._repeat(count, body)
            case _:
                assert_never(step)

    def _repeat(self, count: int, body: tuple[Step, ...]) -> None:
        before: PerTile | None = None
        for iteration in range(count):
            time, busy = self._time.copy(), self._busy.copy()
            exchange, phases = self._exchange, self._count
            for step in body:
                self._run(step)
            added = self._time - time
            if before is not None and np.array_equal(before, added):
                left = count - iteration - 1
                self._time += left * added
                self._busy += left * (self._busy - busy)
                self._exchange += left * (self._exchange - exchange)
                self._count += left * (self._count - phases)
                return
            before = added

    def _note(self, step: StepId, kind: StepKind, start: int, busiest: int, mean: float) -> None:
        if step not in self._steps:
            self._steps[step] = StepTime(
                step=step,
                kind=kind,
                start=Cycles(start),
                end=Cycles(int(self._time.max())),
                busiest=Cycles(busiest),
                mean=mean,
                iterations=int(self._table.iterations[step]),
            )
