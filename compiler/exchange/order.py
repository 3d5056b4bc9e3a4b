"""In which order transfers are given their times.

Input: a demand. Output: a permutation of its transfers in which every transfer comes behind those it depends
on. The timing then gives each, in this order, the earliest start that is left, gaps included.

Two orders are tried, cheapest first, and bounds decide:

1. *List order.* Multicasts first (``multicast``): they are hard to place, and the rest fits around them. Then
   single recipients, the busiest end first (``pressure``). A phase that some tiles bound ends there: its
   schedule is as long as they are busy.
2. *Matchings.* Where the first schedule is more than ``CLOSE_ENOUGH`` above the latency-aware bound, single
   recipients are ordered round by round (``matchings``), and the shorter schedule wins.

Time to mux is no sum of a part of the sender and one of the receiver: the bound is a bound, and a phase above
it may well be the best there is.

Data that depend on each other change the order last: a transfer is as urgent as the most urgent of those that
wait for it, and among equals the table's order holds.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.bound import latency_bounds
from compiler.exchange.ir import Demand, Schedule
from compiler.exchange.matchings import matching_order
from compiler.exchange.multicast import multicast_order
from compiler.exchange.pairs import Pairs, pairs_of
from compiler.exchange.pressure import pressure_order
from compiler.exchange.timing import schedule
from compiler.target.units import Int64Array

CLOSE_ENOUGH: Final = (1, 100)
"""How far above its bound a schedule may be before matchings are tried, as a fraction of it. Policy."""


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
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    transfers = demand.transfers
    is_lone = transfers.first_recipient[1:] - transfers.first_recipient[:-1] == 1
    multicasts = multicast_order(transfers, np.flatnonzero(~is_lone))
    pairs = pairs_of(transfers, np.flatnonzero(is_lone))
    first = _timed(demand, multicasts, pressure_order(pairs))
    bound = int(latency_bounds(transfers).max(initial=0))
    excess = _horizon(first) - bound
    if excess * CLOSE_ENOUGH[1] <= bound * CLOSE_ENOUGH[0] or not _can_be_matched(pairs):
        return first
    second = _timed(demand, multicasts, matching_order(pairs))
    return second if _horizon(second) < _horizon(first) else first


def _can_be_matched(pairs: Pairs) -> bool:
    return len(pairs.transfer) > 1


def _horizon(ordered: Ordered) -> int:
    return int(ordered.schedule.horizon.max(initial=0))


def _timed(demand: Demand, multicasts: Int64Array, others: Int64Array) -> Ordered:
    order = behind_data(demand, np.concatenate([multicasts, others]))
    return Ordered(order=order, schedule=schedule(demand, order))


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
