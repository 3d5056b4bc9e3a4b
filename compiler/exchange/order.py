"""In which order transfers are given their times.

Input: a demand. Output: a permutation of its transfers in which every transfer comes behind those it depends
on. The timing then gives each, in this order, the earliest start that is left, gaps included.

Two orders are tried, cheapest first, and bounds decide:

1. *List order.* Multicasts first (``multicast``): they are hard to place, and the rest fits around them. Then
   single recipients, the busiest end first (``pressure``). A phase that some tiles bound ends there: its
   schedule is as long as they are busy.
2. *Matchings.* Where the first schedule is more than ``CLOSE_ENOUGH`` above the latency-aware bound, and most
   ends are nearly as busy as the busiest (``BALANCED``), single recipients are ordered round by round
   (``matchings``), and the shorter schedule wins. Where few ends are busy, they set the pace, and rounds that
   serve all alike do worse. Where a sender has more than ``MOST_PARTNERS``, rounds gain little (among 512
   tiles 1.23 times the bound instead of 1.25), and cost as the cube of the tiles.

Time to mux is no sum of a part of the sender and one of the receiver: the bound is a bound, and a phase above
it may well be the best there is.

Data that depend on each other change the order last: a transfer is as urgent as the most urgent of those that
wait for it, and among equals the table's order holds.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.bound import latency_bounds, refuse_rows_beyond_budget
from compiler.exchange.ir import Demand, Schedule
from compiler.exchange.matchings import matching_order
from compiler.exchange.multicast import multicast_order
from compiler.exchange.pairs import Pairs, pairs_of, words_of_ends
from compiler.exchange.pressure import pressure_order
from compiler.exchange.timing import Prepared, check_addresses, prepared_variants, shortest
from compiler.target.units import Int64Array

CLOSE_ENOUGH: Final = (1, 100)
"""How far above its bound a schedule may be before matchings are tried, as a fraction of it. Policy."""

BALANCED: Final = (3, 4)
"""Words of an end in the mean, as a fraction of those of the busiest end, from which on matchings
are tried. Policy."""

MOST_PARTNERS: Final = 256
"""Receivers of a sender in the mean up to which matchings are tried. Policy."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ordered:
    """An order and what comes of it.

    Args:
        order: [transfers] who chooses first.
        schedule: the times that it leads to.
    """

    order: Int64Array
    schedule: Schedule


def chosen_order(demand: Demand) -> Ordered:
    """The order with the shortest schedule of those that are tried.

    Raises:
        DoesNotFit: rows cannot be within their budget.
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    refuse_rows_beyond_budget(demand)
    transfers = demand.transfers
    check_addresses(demand, None)
    variants = prepared_variants(demand)
    is_lone = transfers.first_recipient[1:] - transfers.first_recipient[:-1] == 1
    multicasts = multicast_order(transfers, variants[0].distances, np.flatnonzero(~is_lone))
    pairs = pairs_of(transfers, np.flatnonzero(is_lone))

    def attempt(others: Int64Array) -> _Attempt:
        order = behind_data(demand, np.concatenate([multicasts, others]))
        variant, slot = shortest(variants, order)
        return _Attempt(order=order, variant=variant, slot=slot, horizon=variant.horizon(slot))

    best = attempt(pressure_order(pairs))
    bound = int(latency_bounds(transfers, best.variant.is_paired).max(initial=0))
    is_close = (best.horizon - bound) * CLOSE_ENOUGH[1] <= bound * CLOSE_ENOUGH[0]
    if not is_close and _is_balanced(pairs, bound):
        best = min(best, attempt(matching_order(pairs)), key=lambda one: one.horizon)
    return Ordered(order=best.order, schedule=best.variant.schedule(best.slot))


def _is_balanced(pairs: Pairs, bound: int) -> bool:
    """Whether most ends are nearly as busy as the busiest, and what they do is much of the phase.

    Not where they have too many partners.
    """
    senders = int((pairs.first_of_source[1:] > pairs.first_of_source[:-1]).sum())
    if len(pairs.source) > MOST_PARTNERS * senders:
        return False
    words = np.concatenate(words_of_ends(pairs))
    busy = words[words > 0]
    if not busy.size or 2 * int(busy.max()) < bound:
        return False
    return bool(busy.mean() * BALANCED[1] >= busy.max() * BALANCED[0])


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Attempt:
    order: Int64Array
    variant: Prepared
    slot: Int64Array
    horizon: int


def behind_data(demand: Demand, order: Int64Array) -> Int64Array:
    """An order, changed so that every transfer comes behind those it depends on, and otherwise as it was."""
    data = demand.dependences
    if not len(data.after):
        return order
    urgency = np.empty(len(order), dtype=np.int64)
    urgency[order] = np.arange(len(order))
    _inherit(data.before, data.after, urgency)
    return np.argsort(urgency, kind="stable")


@compiled
def _inherit(before: Int64Array, after: Int64Array, urgency: Int64Array) -> None:
    """Make each transfer as urgent as those that wait for it. Pairs ascend by ``after``."""
    # Whoever waits has a larger number than whom it waits for: from the end, its own urgency is final.
    for pair in range(after.size - 1, -1, -1):
        urgency[before[pair]] = min(urgency[before[pair]], urgency[after[pair]])
