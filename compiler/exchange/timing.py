"""When every transfer of a phase starts: the earliest moment that all rules of the fabric leave.

Input: a demand, an order of its transfers, and where rows lie if that is known. Output: a ``Schedule``.

A transfer of n words that starts in slot S of its sender has no other freedom: with T its time to mux, a
recipient selects the source at event R = S + T + 1, writes the first word at P = R + 52 + 2 * row, and is
neutral again at N = R + n. So every rule is a set of forbidden starts, and each set is a union of intervals:

* slots are not negative: S >= 0, and R >= 1 at every recipient;
* a tile sends one thing at a time: slots [S, S + n) are disjoint;
* a tile takes one thing at a time: windows [R, R + n) are disjoint. Windows [P, P + n) then are too, since
  P - R is the same for all ordinary transfers of a tile;
* the instruction that starts a send carries no control, so that no control may be at event S + 1 of a send of
  the same tile; and it cannot give way to another, so that no two controls are at event S + 2 (``rows``);
* what is read and what is written on a tile at overlapping times lies in different memory elements, in every
  iteration. The write counts until the row could end, five events after the last word;
* data keep their order: where the same bytes are concerned, the later transfer starts when the earlier ended.

Several controls at one event need no rule here. Windows are disjoint, so two pointers, or two selections,
never coincide, except for a neutral and the next selection, which replaces it; a pointer and a selection may.

Paired transfers (``events``) send two words in a slot and have rules of their own. They are used for all
transfers that can be paired, or for none: where that lowers the latency-aware bound enough (``PAYS``), both
schedules are worked out, and the shorter one is taken. Mixed modes rarely help.

``earliest`` and ``earliest_paired`` find the least start in none of them. Transfers that come later in the
order may fill gaps.

What no delay can cure is refused before: a sender that receives its own words into the element that it
reads, and data in the element of the tile's row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.errors import ScheduleInfeasible
from compiler.exchange.bound import latency_bounds
from compiler.exchange.columns import bounds_of
from compiler.exchange.demand import STAGE
from compiler.exchange.earliest import earliest_starts
from compiler.exchange.earliest_paired import earliest_paired_starts
from compiler.exchange.events import (
    SHORTEST_SENDING_ROW,
    Distances,
    can_be_paired,
    distances_of,
    is_early,
    may_be_paired,
    schedule_of_starts,
)
from compiler.exchange.ir import Demand, RowReservations, Schedule
from compiler.target import fabric
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_END, element_keys, ranges_share_an_element
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array

PAYS: Final = (3, 4)
"""Bound with paired transfers, as a fraction of that with ordinary ones, up to which paired ones are looked
at: the search takes ten times as long, and a few among ordinary ones gain little. Policy."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A demand as the search for starts needs it, whatever the order.

    Args:
        demand: what moves.
        is_paired: [transfers] which transfers are paired.
        distances: of all events from the starts.
        reads: [iterations, transfers] first and last memory element of each source.
        writes: [iterations, recipients] the same of each destination.
        may_share: [tiles] whether a read and a write of the tile can share an element.
        alike: [transfers] a number for those to which all rules apply alike.
    """

    demand: Demand
    is_paired: BoolArray
    distances: Distances
    reads: tuple[Int64Array, Int64Array]
    writes: tuple[Int64Array, Int64Array]
    may_share: BoolArray
    alike: Int64Array

    def starts(self, order: Int64Array, earliest: Int64Array | None = None) -> Int64Array:
        """[transfers] the slot of each transfer; arguments as in ``schedule``."""
        transfers, data, distances = self.demand.transfers, self.demand.dependences, self.distances
        source, receiver = transfers.source, transfers.receiver
        first = distances.earliest if earliest is None else np.maximum(earliest, distances.earliest)
        waiting = (
            np.searchsorted(data.after, np.arange(len(source) + 1)),
            data.before,
            data.before_recipient,
            data.after_recipient,
        )
        to_write = distances.to_select + distances.to_write
        after = fabric.select_to_writes(np.arange(TILE_COUNT))
        taken = np.concatenate([np.bincount(end, minlength=TILE_COUNT) for end in (source, receiver)])
        drain = int(fabric.ROW_AFTER_LAST_WRITE)
        if not self.is_paired.any():
            return earliest_starts(
                order,
                first,
                distances.items,
                source,
                transfers.first_recipient,
                receiver,
                distances.to_select,
                to_write,
                after,
                *self.reads,
                *self.writes,
                self.may_share,
                self.alike if earliest is None else np.full(len(source), -1),
                *waiting,
                bounds_of(taken),
                drain,
            )
        member = np.where(self.is_paired[transfers.transfer_of_recipient], 1 + is_early(transfers), 0)
        lent = np.bincount(source[self.is_paired] ^ PARTNER_LANE, minlength=TILE_COUNT)
        return earliest_paired_starts(
            order,
            first,
            distances.items,
            self.is_paired,
            source,
            transfers.first_recipient,
            receiver,
            member,
            to_write - after[receiver],
            to_write,
            after,
            *self.reads,
            *self.writes,
            *waiting,
            bounds_of(np.concatenate([taken, lent])),
            drain,
            int(fabric.FORMAT_BEFORE_WRITE),
            PARTNER_LANE,
        )

    def schedule(self, slot: Int64Array) -> Schedule:
        """The schedule with these starts."""
        return schedule_of_starts(self.demand, slot, self.is_paired, self.distances)

    def horizon(self, slot: Int64Array) -> int:
        """Events of the longest row for these starts; at least those of a row that sends."""
        owner = self.demand.transfers.transfer_of_recipient
        end = slot + self.distances.items
        written = end[owner] + self.distances.to_select + self.distances.to_write
        last = int(written.max(initial=0)) + int(fabric.ROW_AFTER_LAST_WRITE)
        return max(int(end.max(initial=0)), last, SHORTEST_SENDING_ROW)


def prepared(demand: Demand, is_paired: BoolArray) -> Prepared:
    """Prepare a demand for the search.

    Args:
        demand: what moves.
        is_paired: [transfers] which transfers are paired; only some that can be.
    """
    transfers = demand.transfers
    reads = _elements(demand, transfers.address, transfers.stride, transfers.words)
    writes = _elements(
        demand, transfers.receiver_address, transfers.receiver_stride, transfers.recipient_words
    )
    may_share = _may_share(reads, transfers.source, writes, transfers.receiver)
    return Prepared(
        demand=demand,
        is_paired=is_paired,
        distances=distances_of(transfers, is_paired),
        reads=reads,
        writes=writes,
        may_share=may_share,
        alike=_alike(demand, may_share),
    )


def prepared_variants(demand: Demand) -> tuple[Prepared, ...]:
    """A demand with ordinary transfers only, and with all paired that can be if that lowers its bound."""
    moves = demand.transfers
    ordinary = np.zeros(len(moves.source), dtype=np.bool_)
    bound = int(latency_bounds(moves).max(initial=0))

    def pays(bounds: Int64Array) -> bool:
        return int(bounds.max(initial=0)) * PAYS[1] <= bound * PAYS[0]

    # Most phases need no closer look at which transfers can be paired.
    perhaps = may_be_paired(moves)
    if perhaps.any() and pays(latency_bounds(moves, perhaps, partners_lend=False)):
        paired = can_be_paired(moves)
        if pays(latency_bounds(moves, paired)):
            return prepared(demand, ordinary), prepared(demand, paired)
    return (prepared(demand, ordinary),)


def schedule(
    demand: Demand,
    order: Int64Array,
    *,
    earliest: Int64Array | None = None,
    reservations: RowReservations | None = None,
) -> Schedule:
    """Give every transfer its time: the shorter schedule of all ordinary and of all paired that can be.

    Args:
        demand: what moves.
        order: [transfers] who chooses first; predecessors in data come before.
        earliest: [transfers] slot before which each may not start; 0 for all if None.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    check_addresses(demand, reservations)
    best, slot = shortest(prepared_variants(demand), order, earliest=earliest)
    return best.schedule(slot)


def shortest(
    variants: Sequence[Prepared], order: Int64Array, *, earliest: Int64Array | None = None
) -> tuple[Prepared, Int64Array]:
    """The variant with the shortest schedule, the first of several, and its starts.

    Args:
        variants: one or more of the same demand.
        order: see ``schedule``.
        earliest: see ``schedule``.
    """
    tried = [(variant, variant.starts(order, earliest)) for variant in variants]
    return min(tried, key=lambda one: one[0].horizon(one[1]))


def _alike(demand: Demand, may_share: BoolArray) -> Int64Array:
    """[transfers] a number for those to which all rules apply alike, -1 for those unlike all others.

    Transfers of equal length between the same two tiles, if neither memory elements nor data matter.
    """
    transfers = demand.transfers
    result = np.full(len(transfers.source), -1)
    if len(demand.dependences.after):
        return result
    first = transfers.first_recipient
    receiver = transfers.receiver[first[:-1]]
    is_plain = (first[1:] - first[:-1] == 1) & ~may_share[transfers.source] & ~may_share[receiver]
    chosen = np.flatnonzero(is_plain)
    key = (transfers.source[chosen] * TILE_COUNT + receiver[chosen]) * (fabric.LONGEST_TRANSFER + 1)
    _, result[chosen] = np.unique(key + transfers.words[chosen], return_inverse=True)
    return result


def _may_share(
    reads: tuple[Int64Array, Int64Array],
    source: Int64Array,
    writes: tuple[Int64Array, Int64Array],
    receiver: Int64Array,
) -> BoolArray:
    """[tiles] whether the ranges of all elements that a tile reads, and that it writes, meet."""
    low, high = _ranges(*reads, source, TILE_COUNT)
    other_low, other_high = _ranges(*writes, receiver, TILE_COUNT)
    return (low <= other_high) & (other_low <= high)


@compiled
def _ranges(
    lowest: Int64Array, highest: Int64Array, tile: Int64Array, tiles: int
) -> tuple[Int64Array, Int64Array]:
    """[tiles] least and greatest of the elements [iterations, spans] of each tile; none is an empty range."""
    low = np.full(tiles, 1 << 40, dtype=np.int64)
    high = np.full(tiles, -1, dtype=np.int64)
    for iteration in range(lowest.shape[0]):
        for span in range(tile.size):
            low[tile[span]] = min(low[tile[span]], lowest[iteration, span])
            high[tile[span]] = max(high[tile[span]], highest[iteration, span])
    return low, high


def check_addresses(demand: Demand, reservations: RowReservations | None) -> None:
    """Refuse addresses that no start can make legal.

    Raises:
        ScheduleInfeasible: see the module.
    """
    transfers = demand.transfers
    home = np.flatnonzero(transfers.is_loopback)
    sender = transfers.transfer_of_recipient[home]
    size = WORD_BYTES * transfers.words
    for iteration in range(demand.distinct_iterations):
        read = transfers.address + iteration * transfers.stride
        written = transfers.receiver_address + iteration * transfers.receiver_stride
        if home.size:
            shared = np.flatnonzero(
                ranges_share_an_element(read[sender], size[sender], written[home], size[sender])
            )
            if shared.size:
                transfer, recipient = int(sender[shared[0]]), int(home[shared[0]])
                raise _infeasible(
                    demand,
                    transfer,
                    f"physical tile {int(transfers.source[transfer])} receives its own words at"
                    f" {int(written[recipient]):#x}, in a memory element that it reads them from"
                    f" ({int(read[transfer]):#x}, iteration {iteration})",
                    "keep the two buffers in different memory elements",
                )
        if reservations is not None:
            owner = transfers.transfer_of_recipient
            every = np.arange(len(transfers.source))
            _check_rows(demand, reservations, every, transfers.source, read, size, "sends from")
            _check_rows(demand, reservations, owner, transfers.receiver, written, size[owner], "receives at")


def _check_rows(
    demand: Demand,
    reservations: RowReservations,
    transfer: Int64Array,
    tile: Int64Array,
    address: Int64Array,
    size: Int64Array,
    verb: str,
) -> None:
    """Refuse data in an element of the tile's row, whose fetch looks ahead."""
    place = np.searchsorted(reservations.tile, tile)
    known = np.minimum(place, max(len(reservations.tile) - 1, 0))
    has_row = np.flatnonzero((place < len(reservations.tile)) & (reservations.tile[known] == tile))
    if has_row.size == 0:
        return
    row = known[has_row]
    begin = reservations.address[row]
    end = np.minimum(begin + reservations.byte_count[row] + FETCH_LOOKAHEAD, SRAM_END)
    shared = ranges_share_an_element(address[has_row], size[has_row], begin, end - begin)
    if shared.any():
        index = int(np.flatnonzero(shared)[0])
        where = int(has_row[index])
        raise _infeasible(
            demand,
            int(transfer[where]),
            f"physical tile {int(tile[where])} {verb} {int(address[where]):#x}, in a memory element that its"
            f" exchange row is fetched from ({int(begin[index]):#x}..{int(end[index]):#x})",
            "place the row and the data in different memory elements",
        )


def _infeasible(demand: Demand, transfer: int, message: str, next_step: str) -> ScheduleInfeasible:
    transfers = demand.transfers
    return ScheduleInfeasible(
        message,
        stage=STAGE,
        subject=f"exchange step {demand.step}, transfer {int(transfers.row[transfer])}",
        next_step=next_step,
        nodes=[demand.nodes[int(transfers.node[transfer])]],
    )


def _elements(
    demand: Demand, address: Int64Array, stride: Int64Array, words: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """First and last memory element of each span, shape [iterations, spans]."""
    iteration = np.arange(demand.distinct_iterations)[:, None]
    begin = address + iteration * stride
    return element_keys(begin), element_keys(begin + WORD_BYTES * words - 1)
