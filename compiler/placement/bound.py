"""What no placement can beat: lower bounds of each region, and the proof that a problem has no solution.

At every step the live bytes of a region must fit what is free there, by their number alone: alignment,
separation and fragmentation are left out. Bytes that spans of one request share count once. A region's bound
is its worst step. When it exceeds what is free, nothing fits, and the difference says by how much.

A second proof needs one request only: no gap between reserved ranges is as long as its longest span.

Bounds that hold are no promise: a problem that passes may still have no solution.
"""

from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.placement.problem import TileProblem
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END


class Space(Enum):
    """What a bound is about."""

    ALL = "SRAM"
    """Everything that lives, in all of SRAM."""
    INTERLEAVED = "interleaved memory"
    """What must be interleaved, in the interleaved region."""
    KEPT = "memory that is kept between runs"
    """What lives for the whole program, in SRAM that the host does not use."""
    GAP = "the longest gap of SRAM"
    """One span, between reserved ranges."""
    INTERLEAVED_GAP = "the longest gap of interleaved memory"
    """One span that must be interleaved, between reserved ranges."""

    @property
    def base(self) -> int:
        """Lowest address."""
        match self:
            case Space.ALL | Space.KEPT | Space.GAP:
                return SRAM_BASE
            case Space.INTERLEAVED | Space.INTERLEAVED_GAP:
                return INTERLEAVED.base


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Bytes needed at one step, against those that are free.

    Args:
        space: what it is about.
        needed: bytes that any placement needs.
        free: bytes that there are.
        rank: the step at which they are needed, as a rank of the problem's steps.
        spans: the spans that need them.
    """

    space: Space
    needed: int
    free: int
    rank: int
    spans: tuple[int, ...]

    @property
    def shortfall(self) -> int:
        """Bytes that are missing; not positive when the bound is met."""
        return self.needed - self.free


def bounds_of(problem: TileProblem) -> tuple[Bound, ...]:
    """The bound of each space that the problem uses, in the order of ``Space``."""
    everything = np.ones(len(problem.size), dtype=np.bool_)
    return tuple(
        bound
        for bound in (
            _peak(problem, Space.ALL, everything),
            _peak(problem, Space.INTERLEAVED, problem.interleaved == 1),
            _peak(problem, Space.KEPT, problem.resident == 1),
            _longest(problem, Space.GAP),
            _longest(problem, Space.INTERLEAVED_GAP),
        )
        if bound is not None
    )


def _peak(problem: TileProblem, space: Space, counted: npt.NDArray[np.bool_]) -> Bound | None:
    # Live bytes only grow where a life begins.
    ranks = np.unique(problem.first[counted & (problem.last >= 0)]).tolist()
    worst: tuple[int, int] | None = None
    for rank in ranks:
        needed = _live_bytes(problem, counted & _live(problem, rank))
        if worst is None or needed > worst[0]:
            worst = (needed, rank)
    if worst is None:
        return None
    needed, rank = worst
    spans = np.flatnonzero(counted & _live(problem, rank))
    free = sum(stop - start for start, stop in _gaps(problem, space))
    return Bound(space=space, needed=needed, free=free, rank=rank, spans=tuple(spans.tolist()))


def _live(problem: TileProblem, rank: int) -> npt.NDArray[np.bool_]:
    return (problem.first <= rank) & (rank <= problem.last)


def _live_bytes(problem: TileProblem, live: npt.NDArray[np.bool_]) -> int:
    """Bytes of some spans, those that spans of one request share counted once."""
    rows = np.flatnonzero(live)
    rows = rows[np.lexsort((problem.offset[rows], problem.request[rows]))]
    total, request, reach = 0, -1, 0
    for row in rows.tolist():
        start, stop = int(problem.offset[row]), int(problem.offset[row] + problem.size[row])
        if problem.request[row] != request:
            request, reach = int(problem.request[row]), start
        total += max(0, stop - max(start, reach))
        reach = max(reach, stop)
    return total


def _longest(problem: TileProblem, space: Space) -> Bound | None:
    interleaved = int(space is Space.INTERLEAVED_GAP)
    rows = np.flatnonzero((problem.interleaved == interleaved) & (problem.last >= 0))
    if not len(rows):
        return None
    row = int(rows[np.argmax(problem.size[rows])])
    free = max((stop - start for start, stop in _gaps(problem, space)), default=0)
    return Bound(
        space=space, needed=int(problem.size[row]), free=free, rank=int(problem.first[row]), spans=(row,)
    )


def _gaps(problem: TileProblem, space: Space) -> list[tuple[int, int]]:
    """Ranges of a space that are not reserved from what it is about."""
    gaps: list[tuple[int, int]] = []
    position = space.base
    reserved: list[list[int]] = problem.blocked.tolist()
    if space is Space.KEPT:
        reserved = sorted(reserved + problem.between.tolist())
    for start, stop in [*reserved, (SRAM_END, SRAM_END)]:
        if start > position:
            gaps.append((position, min(start, SRAM_END)))
        position = max(position, stop)
    return gaps
