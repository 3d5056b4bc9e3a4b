"""First fit: requests one after another, each at the lowest address that is left to it.

**Problem.** A base for each request so that no two spans that live at once share bytes, separated ones share
no memory element, and nothing lies in a reserved range. In general NP-hard; each order of requests gives one
cheap try.

**Method.** What is already placed forbids open intervals of bases: a span at [a, b) keeps a span of size n at
offset o from every base in (a - o - n, b - o), and a separated one from the same interval around all elements
that it touches. The forbidden intervals, sorted by their lower ends, are walked once from the bottom of the
domain. Cost: requests x spans, with a sort each.

**Domains.** A request that need not be interleaved is tried in the standard region, then in the interleaved
one, then across both. That standard memory is preferred is policy: interleaved memory is scarce only to those
that must have it. A lower address is preferred for no other reason than that one must be.

**Orders.** ``ORDERS`` are tried in turn by ``place``. In all of them requests that must be interleaved come
first. No order backtracks. There is no complete search here, and a failure of all orders proves nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, final

import numpy as np

from compiler.low.ir import Column
from compiler.placement.problem import TileProblem
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, STANDARD, element_keys


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bases:
    """A solution.

    Args:
        base: [requests] byte address of each request.
    """

    base: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """An order that did not work out.

    Args:
        request: the first request that found no place.
        placed: requests that had one.
    """

    request: int
    placed: int


Order: TypeAlias = Callable[[TileProblem], Column]
"""A key [requests] for each request; smaller keys are placed first, equal ones by number."""


def _bytes(problem: TileProblem) -> Column:
    return np.bincount(problem.request, problem.size, len(problem.alignment)).astype(np.int64)


def _begin(problem: TileProblem) -> Column:
    begin = np.full(len(problem.alignment), np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(begin, problem.request, problem.first)
    return begin


def _steps(problem: TileProblem) -> Column:
    end = np.full(len(problem.alignment), -1, dtype=np.int64)
    np.maximum.at(end, problem.request, problem.last)
    return np.maximum(end - np.minimum(_begin(problem), end), 0) + 1


ORDERS: Final[Mapping[str, Order]] = MappingProxyType(
    {
        "bytes": lambda problem: -_bytes(problem),
        "area": lambda problem: -_bytes(problem) * _steps(problem),
        "life, then bytes": lambda problem: -_steps(problem) * (1 << 32) - _bytes(problem),
        "begin, then bytes": lambda problem: _ranks(_begin(problem)) * (1 << 32) - _bytes(problem),
        "alignment, then bytes": lambda problem: -problem.alignment * (1 << 32) - _bytes(problem),
        "separated, then bytes": lambda problem: -_separated(problem) * (1 << 32) - _bytes(problem),
    }
)
"""By name: largest first; most bytes times steps first; longest-lived first; in the order of time; strictest
alignment first; those that must be apart from others first."""


def _separated(problem: TileProblem) -> Column:
    separated = np.zeros(len(problem.alignment), dtype=np.int64)
    separated[problem.request[problem.apart]] = 1
    return separated


def _ranks(values: Column) -> Column:
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def first_fit(problem: TileProblem, order: Order) -> Bases | Stuck:
    """Places requests in an order; deterministic."""
    must = np.zeros(len(problem.alignment), dtype=np.int64)
    np.maximum.at(must, problem.request, problem.interleaved)
    sequence = np.lexsort((np.arange(len(must)), order(problem), -must)).tolist()
    base = np.zeros(len(must), dtype=np.int64)
    address = np.zeros(len(problem.size), dtype=np.int64)
    is_placed = np.zeros(len(problem.size), dtype=np.bool_)
    partners = _partners(problem)
    for count, request in enumerate(sequence):
        spans = problem.spans_of(request)
        forbidden = _forbidden(problem, spans, np.flatnonzero(is_placed), address, partners)
        found = _lowest(problem, request, spans, forbidden)
        if found is None:
            return Stuck(request=request, placed=count)
        base[request] = found
        address[spans] = found + problem.offset[spans]
        is_placed[spans] = True
    return Bases(base=base)


def _partners(problem: TileProblem) -> dict[int, list[int]]:
    """For each span those that it must be separate from while both live."""
    partners: dict[int, list[int]] = {}
    for one, other in problem.apart.tolist():
        partners.setdefault(one, []).append(other)
        partners.setdefault(other, []).append(one)
    return partners


def _forbidden(
    problem: TileProblem, spans: slice, placed: Column, address: Column, partners: dict[int, list[int]]
) -> list[tuple[int, int]]:
    """Open intervals of bases that some span may not have, by lower end."""
    lows: list[Column] = []
    highs: list[Column] = []
    blocked = problem.blocked
    is_placed = np.zeros(len(problem.size), dtype=np.bool_)
    is_placed[placed] = True
    for span in range(spans.start, spans.stop):
        offset, size = int(problem.offset[span]), int(problem.size[span])
        meets = (problem.first[placed] <= problem.last[span]) & (problem.first[span] <= problem.last[placed])
        others = placed[meets]
        lows += [address[others] - offset - size, blocked[:, 0] - offset - size]
        highs += [address[others] + problem.size[others] - offset, blocked[:, 1] - offset]
        apart = np.array(
            [
                other
                for other in partners.get(span, ())
                if is_placed[other]
                and problem.first[other] <= problem.last[span]
                and problem.first[span] <= problem.last[other]
            ],
            dtype=np.int64,
        )
        start, stop = _elements(address[apart], address[apart] + problem.size[apart] + problem.tail[apart])
        lows.append(start - offset - size - int(problem.tail[span]))
        highs.append(stop - offset)
    low, high = np.concatenate(lows), np.concatenate(highs)
    order = np.argsort(low, kind="stable")
    return list(zip(low[order].tolist(), high[order].tolist(), strict=True))


def _elements(start: Column, stop: Column) -> tuple[Column, Column]:
    """The whole memory elements that ranges lie in."""
    if not len(start):
        return start, stop
    last = element_keys(stop - 1)
    size = np.where(last < STANDARD.end, STANDARD.element_size, INTERLEAVED.element_size)
    return element_keys(start), last + size


def _lowest(problem: TileProblem, request: int, spans: slice, forbidden: list[tuple[int, int]]) -> int | None:
    """The lowest base in the first domain that has one."""
    alignment = int(problem.alignment[request])
    offset, stop = problem.offset[spans], problem.offset[spans] + problem.size[spans]
    end_of_tails = int((stop + problem.tail[spans]).max())
    must = problem.interleaved[spans] == 1
    domains = (
        [(INTERLEAVED.base, SRAM_END)]
        if must.any()
        else [(STANDARD.base, STANDARD.end), (INTERLEAVED.base, SRAM_END), (SRAM_BASE, SRAM_END)]
    )
    for low, high in domains:
        # What need not be interleaved may begin below, beside a span of its request that must.
        least = max(int((low - offset[must]).max()) if must.any() else low, int(low - offset.min()))
        most = min(high - int(stop.max()), SRAM_END - end_of_tails)
        base = _aligned(least, alignment)
        for start, end in forbidden:
            if start >= base:
                break
            if end > base:
                base = _aligned(end, alignment)
        if base <= most:
            return base
    return None


def _aligned(address: int, alignment: int) -> int:
    return -(-address // alignment) * alignment
