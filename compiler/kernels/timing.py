"""The clock of one tile, for the cycle formulas of families.

A formula is the structure of a kernel walked with this clock: instructions of the supervisor, launches of six
workers that issue known numbers of words, and waits for them. It models what the target states (``costs``):
worker w issues in cycles w modulo 6, the supervisor issues in slots of workers that are not active, and a
wait ends a fixed time after the last exit. Nothing else moves time, so the walk is as long as the run, except
for the slot in which a call happens to begin.
"""

from collections.abc import Sequence
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.target.costs import (
    SUPERVISOR_LAUNCH,
    SUPERVISOR_LOAD,
    SUPERVISOR_LOCAL_SYNC,
    SUPERVISOR_REGISTER_ACCESS,
    SUPERVISOR_SIMPLE,
    SUPERVISOR_TAKEN_BRANCH,
    WORKER_ISSUE,
)
from compiler.target.units import Cycles

SIMPLE: Final = int(SUPERVISOR_SIMPLE)
LOAD: Final = int(SUPERVISOR_LOAD)
TAKEN: Final = int(SUPERVISOR_TAKEN_BRANCH)
REGISTER: Final = int(SUPERVISOR_REGISTER_ACCESS)
_SLOTS: Final = int(WORKER_ISSUE)
_LAUNCH: Final = int(SUPERVISOR_LAUNCH)
_RENDEZVOUS: Final = int(SUPERVISOR_LOCAL_SYNC)


@final
class Clock:
    """Time on a tile while a kernel runs.

    Args:
        slot: slot of the first cycle, 0 to 5.
    """

    def __init__(self, slot: int = 0) -> None:
        self._start: Final = slot
        self._now = slot
        self._exits = idle_workers()

    @property
    def elapsed(self) -> Cycles:
        """Cycles until the supervisor can issue next, workers aside."""
        return Cycles(self._now - self._start)

    @property
    def slot(self) -> int:
        """Slot of that cycle."""
        return self._now % _SLOTS

    def supervisor(self, *cycles: int) -> None:
        """Instructions of the supervisor, by the cycles that each takes."""
        for duration in cycles:
            self._now = issued(self._now, self._exits) + duration

    def launch(self, issues: Sequence[int]) -> None:
        """Start six workers that issue so many instructions or bundles each, their exit included."""
        self._now = launched(self._now, self._exits, np.array(issues, dtype=np.int64))

    def wait(self) -> None:
        """``sync`` of the supervisor with its workers."""
        self._now = waited(self._now, self._exits)


def idle_workers() -> npt.NDArray[np.int64]:
    """Exits [workers] of workers that were never started."""
    return np.full(_SLOTS, -1, dtype=np.int64)


@compiled
def issued(now: int, exits: npt.NDArray[np.int64]) -> int:
    """The first cycle from ``now`` on in which the supervisor may issue, given the exits of its workers."""
    first = exits[0]
    for end in exits:
        first = min(first, end)
    at = max(now, first + 1)
    while exits[at % _SLOTS] >= at:
        at += 1
    return at


@compiled
def launched(now: int, exits: npt.NDArray[np.int64], issues: npt.NDArray[np.int64]) -> int:
    """The cycle behind a launch; ``exits`` become those of the workers that it starts."""
    at = issued(now, exits) + _LAUNCH
    for worker in range(_SLOTS):
        exits[worker] = at + (worker - at) % _SLOTS + _SLOTS * (issues[worker] - 1)
    return at


@compiled
def waited(now: int, exits: npt.NDArray[np.int64]) -> int:
    """The cycle behind a wait for all workers."""
    last = exits[0]
    for end in exits:
        last = max(last, end)
    return max(issued(now, exits) + SIMPLE, last + _RENDEZVOUS)


def shares(count: int) -> tuple[int, ...]:
    """How many of ``count`` items each of six workers takes."""
    return tuple((count + _SLOTS - 1 - worker) // _SLOTS for worker in range(_SLOTS))


LANES: Final = ((6, 1), (3, 2), (2, 3), (1, 6))
"""(columns, rows) that six workers can do side by side."""


def lane_share(count: int, lane: int, lanes: int) -> int:
    """How many of ``count`` items a lane takes in turn; 0 or less for none."""
    return -(-(count - lane) // lanes)


AFTER_LAST_ISSUE: Final = _RENDEZVOUS + SIMPLE + TAKEN
"""Cycles from the last issue of the last worker to the end of a kernel of one launch."""


def first_issues(instructions: int) -> npt.NDArray[np.int64]:
    """[workers] the cycle of each worker's first issue, behind so many simple instructions and the launch.

    For formulas of many calls at once: the supervisor finds a slot before the last worker has left, so that
    the wait ends with the last exit.
    """
    launched = instructions * SIMPLE + _LAUNCH
    return launched + (np.arange(_SLOTS, dtype=np.int64) - launched) % _SLOTS


def call_cycles(instructions: int, issues: Sequence[int]) -> Cycles:
    """A kernel of one launch.

    Args:
        instructions: simple ones of the supervisor before the launch.
        issues: of each worker.
    """
    clock = Clock()
    clock.supervisor(*[SIMPLE] * instructions)
    clock.launch(issues)
    clock.wait()
    clock.supervisor(SIMPLE, TAKEN)
    return clock.elapsed
