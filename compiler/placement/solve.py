"""Solves the problem of one tile: bounds, the portfolio of orders, then the search, over strides if need be.

**Parts.** Requests that live at other times do not meet, so a problem falls apart at each moment that no
life crosses, and each part is solved on its own.

**Strides.** A sequence's stride is part of the solution. The tightest one is tried first, and nearly always
serves. When the search finds nothing with it, members are placed freely, only in their order. If even that
is refuted, every stride is. For sequences of two members it is the solution, since their distance is the
stride; so these stay free. Longer ones are given a stride one after the other, each time with the others
still free: what is refuted then is refuted for all of their strides. Tried are the distances that were found
free, then all strides, if they are few, or else those that leave room for a reserved range or another request
between two members, and a sample. Nothing is called infeasible on a sample.

**Conflict.** What is proven infeasible is reduced to requests none of which can be left out: leaving one out,
the rest could no longer be refuted (by the same means, with fewer nodes). With proofs that come from the
search such a set may be larger than the smallest one, but each of its requests is needed for the proof.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.low.ir import Column
from compiler.placement.bound import Bound, bounds_of
from compiler.placement.firstfit import ORDERS, Bases, Stuck, first_fit
from compiler.placement.model import model_of, windows_of
from compiler.placement.problem import NEVER, TileProblem, only, with_free_members, with_strides
from compiler.placement.search import Verdict, search
from compiler.target.memory import SRAM_BASE, SRAM_END

DEFAULT_NODES: Final = 400_000
"""Decisions of the search for each distinct problem, before it is given up. Policy: some seconds."""

_FILTER_NODES: Final = 2_000

_ALL_STRIDES: Final = 1024
"""Strides of a sequence up to which all are tried."""

_LEAST_SHARE: Final = 200
"""Nodes that are worth trying a stride with."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Everything has a place.

    Args:
        base: [requests] byte address of each request.
        stride: [requests] bytes from a member of the request's sequence to the next; 0 without one.
    """

    base: Column
    stride: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Refuted:
    """Nothing can fit.

    Args:
        bound: the bound that proves it; None if the search did.
        bounds: all bounds.
        conflict: requests that cannot coexist, and none of which can be left out.
        nodes: decisions that the proof took; 0 with a bound.
    """

    bound: Bound | None
    bounds: tuple[Bound, ...]
    conflict: tuple[int, ...]
    nodes: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Open:
    """Nothing was found, and nothing is proven.

    Args:
        stuck: where each order of ``ORDERS`` ended; requests of the first part that is open.
        bounds: all bounds, all met.
        nodes: decisions that the search made.
    """

    stuck: tuple[Stuck, ...]
    bounds: tuple[Bound, ...]
    nodes: int


Answer: TypeAlias = Solution | Refuted | Open


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """That nothing fits, by a bound or else by so many decisions."""

    bound: Bound | None
    bounds: tuple[Bound, ...]
    nodes: int


def solve(problem: TileProblem, nodes: int) -> Answer:
    """Places the requests of a tile; deterministic.

    Args:
        problem: the tile's problem, at its tightest strides.
        nodes: decisions that the search may make; with 0 there is none, only orders.
    """
    found = _attempt(problem, nodes)
    if not isinstance(found, _Proof):
        return found
    concerned = problem.request if found.bound is None else problem.request[list(found.bound.spans)]
    wanted = sorted({int(request) for request in concerned})
    return Refuted(
        bound=found.bound, bounds=found.bounds, conflict=_needed(problem, wanted), nodes=found.nodes
    )


def _attempt(problem: TileProblem, nodes: int) -> Solution | _Proof | Open:
    bounds = bounds_of(problem)
    for bound in bounds:
        if bound.shortfall > 0:
            return _Proof(bound=bound, bounds=bounds, nodes=0)
    whole = Solution(base=np.zeros_like(problem.alignment), stride=problem.stride.copy())
    first_open: Open | None = None
    for requests in parts_in_time(*_hulls(problem)):
        answer = _attempt_part(only(problem, requests), bounds, nodes)
        match answer:
            case Solution():
                whole.base[requests], whole.stride[requests] = answer.base, answer.stride
            case Open():
                # A later part may yet be proven infeasible, which says more.
                stuck = tuple(dataclasses.replace(one, request=requests[one.request]) for one in answer.stuck)
                if first_open is None:
                    first_open = dataclasses.replace(answer, stuck=stuck)
            case _Proof():
                return answer
            case _:
                assert_never(answer)
    return whole if first_open is None else first_open


def _hulls(problem: TileProblem) -> tuple[Column, Column]:
    """First moment [requests] of each request's life and the one after its last; (0, 0) if it never lives."""
    lives = problem.last != NEVER[1]
    first = np.full(len(problem.alignment), NEVER[0], dtype=np.int64)
    stop = np.zeros(len(problem.alignment), dtype=np.int64)
    np.minimum.at(first, problem.request[lives], problem.first[lives])
    np.maximum.at(stop, problem.request[lives], problem.last[lives] + 1)
    return np.minimum(first, stop), stop


def parts_in_time(first: Column, stop: Column) -> list[list[int]]:
    """Groups of lives [first, stop) such that no two of different groups meet, each ascending, in time."""
    parts: list[list[int]] = []
    reach = 0
    for life in np.lexsort((np.arange(len(first)), first)).tolist():
        if not parts or first[life] >= reach:
            parts.append([])
        parts[-1].append(life)
        reach = max(reach, int(stop[life]))
    return [sorted(part) for part in parts]


def _attempt_part(problem: TileProblem, bounds: tuple[Bound, ...], nodes: int) -> Solution | _Proof | Open:
    model, windows = model_of(problem), windows_of(problem)
    stuck: list[Stuck] = []
    for order in ORDERS.values():
        fitted = first_fit(model, windows, order)
        if isinstance(fitted, Bases):
            return Solution(base=fitted.base, stride=problem.stride)
        stuck.append(fitted)
    if nodes == 0:
        return Open(stuck=tuple(stuck), bounds=bounds, nodes=0)
    members = _members(problem)
    has_choice = bool((members > 1).any())
    found = search(model, nodes // 2 if has_choice else nodes)
    spent, verdict = found.nodes, found.verdict
    if verdict is Verdict.FOUND:
        return Solution(base=found.bases, stride=problem.stride)
    if has_choice:
        size = np.bincount(problem.request, problem.size, len(members))
        descent = _Descent(
            members=members,
            long=sorted(np.flatnonzero(members > 2).tolist(), key=lambda request: (-size[request], request)),
            nodes=nodes - nodes // 2,
            share=max(_LEAST_SHARE, nodes // 128),
        )
        wider = descent.broaden(problem)
        if wider is not None:
            return wider
        spent += nodes - nodes // 2 - descent.nodes
        verdict = Verdict.NONE if descent.is_complete else Verdict.GIVEN_UP
    if verdict is Verdict.NONE:
        return _Proof(bound=None, bounds=bounds, nodes=spent)
    return Open(stuck=tuple(stuck), bounds=bounds, nodes=spent)


def _members(problem: TileProblem) -> Column:
    """[requests] members of each sequence that ever lives; 1 for what is none."""
    members = np.ones(len(problem.alignment), dtype=np.int64)
    lives = problem.last != NEVER[1]
    np.maximum.at(members, problem.request[lives], problem.member[lives] + 1)
    return members


def _strides(problem: TileProblem, request: int, members: int) -> tuple[tuple[int, ...], bool]:
    """Strides to try for a sequence, ascending, and whether no other could do."""
    tightest, alignment = int(problem.stride[request]), int(problem.alignment[request])
    size = int(problem.size[problem.spans_of(request)].max())
    widest = max(tightest, (_room(problem) - size) // (members - 1) // alignment * alignment)
    if (widest - tightest) // alignment < _ALL_STRIDES:
        return tuple(range(tightest, widest + 1, alignment)), True
    return _promising(problem, request, tightest, widest), False


def _room(problem: TileProblem) -> int:
    """Bytes from the lowest address that is not reserved to the end of the highest one."""
    low, high = int(SRAM_BASE), int(SRAM_END)
    for start, stop in problem.blocked.tolist():
        low = stop if start <= low else low
    for start, stop in reversed(problem.blocked.tolist()):
        high = start if stop >= high else high
    return high - low


def _promising(problem: TileProblem, request: int, tightest: int, widest: int) -> tuple[int, ...]:
    """Strides with room for something between two members, and some that grow ever faster."""
    alignment = int(problem.alignment[request])
    gaps = {int(stop - start) for start, stop in problem.blocked.tolist()}
    gaps |= {int(size) for size in problem.size[problem.request != request]}
    strides = {tightest + -(-gap // alignment) * alignment for gap in gaps}
    step = 1
    while tightest + step * alignment <= widest:
        strides.add(tightest + step * alignment)
        step += max(1, step // 8)
    return (tightest, *sorted(stride for stride in strides if tightest < stride <= widest))


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _Descent:
    """A walk through the strides of sequences of three members and more.

    Args:
        members: [requests] members of each.
        long: those sequences, the largest first.
        nodes: decisions that are left.
        share: decisions for each combination.
        breadth: strides that are tried of each.
        is_complete: whatever was left out so far was refuted.
    """

    members: Column
    long: list[int]
    nodes: int
    share: int
    breadth: int = 3
    is_complete: bool = True

    def broaden(self, problem: TileProblem) -> Solution | None:
        """Walks with ever more strides, as far as the nodes last."""
        while True:
            self.is_complete = True
            found = self.walk(problem, 0)
            if found is not None or self.is_complete or self.nodes <= 0 or self.breadth > 2 * _ALL_STRIDES:
                return found
            self.breadth *= 2

    def walk(self, problem: TileProblem, depth: int) -> Solution | None:
        """A solution in which the first ``depth`` of them have the problem's strides, if one is found."""
        freed = self.members > 1
        freed[self.long[:depth]] = False
        if self.nodes <= 0:
            self.is_complete = False
            return None
        limit = 8 * self.share if depth == 0 else self.share
        free, spent, verdict = _with_free(problem, freed, min(limit, self.nodes))
        self.nodes -= max(spent, _LEAST_SHARE // 8)
        if verdict is Verdict.NONE:
            return None
        if verdict is Verdict.FOUND and (free.stride_least == free.stride_most).all():
            return Solution(base=free.base, stride=free.stride_least)
        if depth == len(self.long):
            self.is_complete = False
            return None
        request = self.long[depth]
        choices, is_all = _strides(problem, request, int(self.members[request]))
        self.is_complete &= is_all and len(choices) <= self.breadth
        count = len(choices)
        if count > self.breadth:
            # More of the narrow ones, which waste less.
            choices = tuple(choices[count * step**2 // self.breadth**2] for step in range(self.breadth))
        if verdict is Verdict.FOUND:
            seen = (int(free.stride_least[request]), int(free.stride_most[request]))
            choices = (*seen, *choices)
        for choice in dict.fromkeys(choices):
            stride = problem.stride.copy()
            stride[request] = choice
            found = self.walk(with_strides(problem, stride), depth + 1)
            if found is not None:
                return found
            if self.nodes <= 0:
                self.is_complete = False
                break
        return None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Free:
    """Where requests were placed, some of them with members of their own bases.

    Args:
        base: [requests] base, of the first member if there are several.
        stride_least, stride_most: [requests] distances between members that follow each other.
    """

    base: Column
    stride_least: Column
    stride_most: Column


def _with_free(problem: TileProblem, freed: npt.NDArray[np.bool_], nodes: int) -> tuple[_Free, int, Verdict]:
    """A search in which members of some sequences [requests] only keep their order."""
    loose, owner, member = with_free_members(problem, freed)
    follows = np.flatnonzero(member > 0)
    found = search(model_of(loose, [(second - 1, second) for second in follows.tolist()]), nodes)
    least, most = problem.stride.copy(), problem.stride.copy()
    distance = found.bases[follows] - found.bases[follows - 1]
    least[owner[follows]], most[owner[follows]] = np.iinfo(np.int64).max, 0
    np.minimum.at(least, owner[follows], distance)
    np.maximum.at(most, owner[follows], distance)
    free = _Free(base=found.bases[member == 0], stride_least=least, stride_most=most)
    return free, found.nodes, found.verdict


def _needed(problem: TileProblem, requests: list[int]) -> tuple[int, ...]:
    """The requests without those that a refutation can do without, smallest left out first."""
    size = np.bincount(problem.request, problem.size, len(problem.alignment)).astype(np.int64)
    kept = list(requests)
    for request in sorted(requests, key=lambda request: (int(size[request]), -request)):
        fewer = [other for other in kept if other != request]
        if fewer and isinstance(_attempt(only(problem, fewer), _FILTER_NODES), _Proof):
            kept = fewer
    return tuple(kept)
