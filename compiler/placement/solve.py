"""Solves the problem of one tile: bounds, the portfolio of orders, then the search, over strides if need be.

**Parts.** Requests that live at other times do not meet, so a problem falls apart at each moment that no
life crosses, and each part is solved on its own.

**Strides.** A sequence's stride is part of the solution. The tightest one is tried first, and nearly always
serves. When the search finds nothing with it, wider ones are tried, so that members can lie on both sides of
a reserved range: all of them if they are few, else a sample, one sequence at a time. Nothing is called
infeasible on a sample: either every stride was refuted, or the problem was in which members lie anywhere.

**Conflict.** What is proven infeasible is reduced to requests none of which can be left out: leaving one out,
the rest could no longer be refuted (by the same means, with fewer nodes). With proofs that come from the
search such a set may be larger than the smallest one, but each of its requests is needed for the proof.
"""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

import numpy as np

from compiler.low.ir import Column
from compiler.placement.bound import Bound, bounds_of
from compiler.placement.firstfit import ORDERS, Bases, Stuck, first_fit
from compiler.placement.model import model_of, windows_of
from compiler.placement.problem import NEVER, TileProblem, only, with_free_members, with_strides
from compiler.placement.search import Found, Verdict, search
from compiler.target.memory import SRAM_SIZE

DEFAULT_NODES: Final = 200_000
"""Decisions of the search for each distinct problem, before it is given up. Policy: some seconds."""

_FILTER_NODES: Final = 2_000
_ALL_STRIDES: Final = 256
_SAMPLED_STRIDES: Final = 48


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
    strides = _strides(problem)
    found = search(model, nodes if strides.only_one else nodes // 2)
    spent = found.nodes
    if found.verdict is Verdict.FOUND:
        return Solution(base=found.bases, stride=problem.stride)
    refuted = found.verdict is Verdict.NONE
    if not strides.only_one:
        free = search(model_of(with_free_members(problem)), nodes // 8)
        spent += free.nodes
        if free.verdict is not Verdict.NONE:
            wider = _wider(problem, strides, nodes - nodes // 2 - nodes // 8)
            if isinstance(wider, Solution):
                return wider
            refuted = refuted and wider.verdict is Verdict.NONE
            spent += wider.nodes
        else:
            refuted = True
    if refuted:
        return _Proof(bound=None, bounds=bounds, nodes=spent)
    return Open(stuck=tuple(stuck), bounds=bounds, nodes=spent)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Strides:
    """The strides to try.

    Args:
        choices: [requests] of each, ascending, the tightest first.
        all_of_them: no stride that could do is left out.
    """

    choices: tuple[tuple[int, ...], ...]
    all_of_them: bool

    @property
    def only_one(self) -> bool:
        """There is nothing to choose."""
        return all(len(choice) == 1 for choice in self.choices)


def _strides(problem: TileProblem) -> _Strides:
    choices: list[tuple[int, ...]] = []
    complete, product = True, 1
    for request in range(len(problem.alignment)):
        spans = problem.spans_of(request)
        tightest, alignment = int(problem.stride[request]), int(problem.alignment[request])
        last = int(problem.member[spans].max())
        if last == 0:
            choices.append((tightest,))
            continue
        widest = (SRAM_SIZE - int(problem.size[spans].max())) // last // alignment * alignment
        count = max(1, (widest - tightest) // alignment + 1)
        if count <= _ALL_STRIDES:
            choices.append(tuple(range(tightest, tightest + count * alignment, alignment)))
        else:
            complete = False
            choices.append(_sampled(tightest, widest, alignment))
        product *= len(choices[-1])
    return _Strides(choices=tuple(choices), all_of_them=complete and product <= _ALL_STRIDES)


def _sampled(tightest: int, widest: int, alignment: int) -> tuple[int, ...]:
    """Strides that grow ever faster."""
    growth = (widest - tightest) // alignment
    steps = {0, *range(1, 1 + _SAMPLED_STRIDES // 2)}
    step = 1
    while step < growth:
        steps.add(step)
        step += max(1, step // 3)
    return tuple(tightest + alignment * step for step in sorted(steps) if step <= growth)


def _wider(problem: TileProblem, strides: _Strides, nodes: int) -> Solution | Found:
    """Tries the strides other than the tightest."""
    variants = list(_variants(problem, strides))
    spent, verdict = 0, Verdict.NONE if strides.all_of_them else Verdict.GIVEN_UP
    for number, stride in enumerate(variants):
        share = max(1, (nodes - spent) // (len(variants) - number))
        found = search(model_of(with_strides(problem, stride)), share)
        spent += found.nodes
        if found.verdict is Verdict.FOUND:
            return Solution(base=found.bases, stride=stride)
        if found.verdict is Verdict.GIVEN_UP:
            verdict = Verdict.GIVEN_UP
    return Found(verdict=verdict, bases=problem.stride, nodes=spent)


def _variants(problem: TileProblem, strides: _Strides) -> Iterator[Column]:
    if strides.all_of_them:
        grids = np.meshgrid(*[np.array(choice) for choice in strides.choices], indexing="ij")
        yield from np.stack([grid.reshape(-1) for grid in grids], axis=1)[1:].astype(np.int64)
        return
    for request, choice in enumerate(strides.choices):
        for wider in choice[1:]:
            stride = problem.stride.copy()
            stride[request] = wider
            yield stride


def _needed(problem: TileProblem, requests: list[int]) -> tuple[int, ...]:
    """The requests without those that a refutation can do without, smallest left out first."""
    size = np.bincount(problem.request, problem.size, len(problem.alignment)).astype(np.int64)
    kept = list(requests)
    for request in sorted(requests, key=lambda request: (int(size[request]), -request)):
        fewer = [other for other in kept if other != request]
        if fewer and isinstance(_attempt(only(problem, fewer), _FILTER_NODES), _Proof):
            kept = fewer
    return tuple(kept)
