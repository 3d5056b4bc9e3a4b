"""First fit: requests one after another, each at the lowest base that is left to it.

Each order of requests gives one cheap try; ``ORDERS`` are the portfolio, tried in turn before any search. No
order backtracks, and a failure of all of them proves nothing. In all of them requests that must be
interleaved come first.

**Windows.** A request that need not be interleaved is tried in the standard region, then in the interleaved
one, then across both. That standard memory is preferred is policy: interleaved memory is scarce only to those
that must have it. A lower address is preferred for no other reason than that one must be.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias, final

import numpy as np

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.lowest import lowest
from compiler.placement.model import NOWHERE, Model


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


Order: TypeAlias = Callable[[Model], Column]
"""A key [requests] for each request; smaller keys are placed first, equal ones by number."""

_LARGE: Final = 1 << 32
"""More than bytes of any request."""


def _bytes(model: Model) -> Column:
    most = np.zeros(len(model.alignment), dtype=np.int64)
    np.maximum.at(most, model.member, model.live)
    return most


def _area(model: Model) -> Column:
    area = np.zeros(len(model.alignment), dtype=np.int64)
    np.add.at(area, model.member, model.live)
    return area


def _life(model: Model) -> Column:
    return np.diff(model.place_first)


def _begin(model: Model) -> Column:
    begin = np.zeros(len(model.alignment), dtype=np.int64)
    lives = np.flatnonzero(_life(model))
    begin[lives] = model.place[model.place_first[lives]]
    return begin


def _separated(model: Model) -> Column:
    pairs = np.diff(model.apart_first)
    owner = np.repeat(np.arange(len(model.alignment)), np.diff(model.neighbour_first))
    separated = np.zeros(len(model.alignment), dtype=np.int64)
    separated[owner[pairs > 0]] = 1
    return separated


ORDERS: Final[Mapping[str, Order]] = MappingProxyType(
    {
        "bytes": lambda model: -_bytes(model),
        "area": lambda model: -_area(model),
        "life, then bytes": lambda model: -_life(model) * _LARGE - _bytes(model),
        "begin, then bytes": lambda model: _begin(model) * _LARGE - _bytes(model),
        "alignment, then bytes": lambda model: -model.alignment * _LARGE - _bytes(model),
        "separated, then bytes": lambda model: -_separated(model) * _LARGE - _bytes(model),
    }
)
"""By name: largest first; most bytes times moments first; longest-lived first; in the order of time;
strictest alignment first; those that must be apart from others first."""


def first_fit(model: Model, windows: Column, order: Order) -> Bases | Stuck:
    """Places requests in an order; deterministic.

    Args:
        model: the problem.
        windows: [requests, windows, 2] lowest and highest base of each window, in the order of preference.
        order: which request is next.
    """
    border = int(model.memory[2])
    count = len(model.alignment)
    must = np.zeros(count, dtype=np.bool_)
    for request in range(count):
        first, last = model.domain_first[request : request + 2].tolist()
        must[request] = first < last and int(model.domain_low[first]) >= border
    sequence = np.lexsort((np.arange(count), order(model), ~must)).astype(np.int64)
    base = np.zeros(count, dtype=np.int64)
    placed = _place(model, windows, sequence, base)
    return Bases(base=base) if placed == count else Stuck(request=int(sequence[placed]), placed=placed)


@compiled
def _place(model: Model, windows: Column, sequence: Column, base: Column) -> int:
    """Places as many as find a base, and says how many."""
    is_placed = np.zeros(len(base), dtype=np.bool_)
    level = np.zeros(len(base), dtype=np.int64)
    nobody_asks = np.zeros(1, dtype=np.uint64)
    for count in range(len(sequence)):
        request = sequence[count]
        found = NOWHERE
        for window in range(windows.shape[1]):
            lowest_base = lowest(
                model, request, windows[request, window, 0], base, is_placed, level, nobody_asks
            )
            if lowest_base <= windows[request, window, 1]:
                found = lowest_base
                break
        if found == NOWHERE:
            return count
        base[request] = found
        is_placed[request] = True
    return len(sequence)
