"""Solves the problem of one tile: bounds, the portfolio of orders, then two searches in turn.

**Parts.** Requests that live at other times do not meet, so a problem falls apart at each moment that no
life crosses, and each part is solved on its own.

**Searches.** One looks for bases, lowest first (``search``): best where memory is crowded. It knows strides
only as given, and is asked with the tightest. The other decides what lies below what (``precedence``):
best where reserved ranges and sequences cut memory up, and strides are variables of it. Each is complete on
its own, but a proof of the first says nothing about other strides. They have turns, a short one first.
The search for bases has two. In its short one there is time for tries of one kind and hardly more, so the
last begins with another kind, at the same chances; begun alike, it would repeat what has failed.

**Conflict.** What is proven infeasible is reduced to requests none of which can be left out: leaving one out,
the rest could no longer be refuted (by the same means, with fewer nodes). With proofs that come from the
search such a set may be larger than the smallest one, but each of its requests is needed for the proof.
"""

import dataclasses
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

import numpy as np

from compiler.low.ir import Column
from compiler.placement.bound import Bound, bounds_of
from compiler.placement.firstfit import ORDERS, Bases, Stuck, first_fit
from compiler.placement.model import model_of, windows_of
from compiler.placement.precedence import search_precedences
from compiler.placement.problem import NEVER, TileProblem, members_of, only
from compiler.placement.search import LOWEST, WEIGHTED_WAYS, Verdict, search

DEFAULT_NODES: Final = 1_300_000
"""Decisions of the searches for each distinct problem, before it is given up. Policy: some seconds."""

_MANY: Final = 600
"""Spans beyond which there are too many pairs for precedences."""

_TURNS: Final = ((1 / 32, LOWEST), (13 / 16, None), (5 / 32, WEIGHTED_WAYS))
"""Parts of the decisions, and the kind of tries that a search for bases at the tightest strides begins with;
None where they are spent on precedences."""

_RULES: Final = 84
"""Rules of precedence that can be asked in the time of a decision on a base. Measured."""

_FILTER_NODES: Final = 2_000


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
    has_strides = bool((members_of(problem) > 1).any())
    spent = 0
    for share, kind in _TURNS if len(problem.size) <= _MANY else ((1.0, LOWEST),):
        part = int(nodes * share)
        if kind is None:
            ordered = search_precedences(problem, part * _RULES)
            if ordered.verdict is Verdict.FOUND:
                return Solution(base=ordered.base, stride=ordered.stride)
            verdict, used = ordered.verdict, ordered.nodes
        else:
            found = search(model, part, kind)
            if found.verdict is Verdict.FOUND:
                return Solution(base=found.bases, stride=problem.stride)
            verdict = Verdict.GIVEN_UP if has_strides else found.verdict
            used = found.nodes
        spent += used
        if verdict is Verdict.NONE:
            return _Proof(bound=None, bounds=bounds, nodes=spent)
    return Open(stuck=tuple(stuck), bounds=bounds, nodes=spent)


def _needed(problem: TileProblem, requests: list[int]) -> tuple[int, ...]:
    """The requests without those that a refutation can do without, smallest left out first."""
    size = np.bincount(problem.request, problem.size, len(problem.alignment)).astype(np.int64)
    kept = list(requests)
    for request in sorted(requests, key=lambda request: (int(size[request]), -request)):
        fewer = [other for other in kept if other != request]
        if fewer and isinstance(_attempt(only(problem, fewer), _FILTER_NODES), _Proof):
            kept = fewer
    return tuple(kept)
