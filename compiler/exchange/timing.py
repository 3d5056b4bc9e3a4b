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

``earliest`` finds the least start in none of them. Transfers that come later in the order may fill gaps.

What no delay can cure is refused before: a sender that receives its own words into the element that it
reads, and data in the element of the tile's row.
"""

import numpy as np

from compiler.errors import ScheduleInfeasible
from compiler.exchange.columns import bounds_of
from compiler.exchange.demand import STAGE
from compiler.exchange.earliest import earliest_starts
from compiler.exchange.events import distances_of, schedule_of_starts
from compiler.exchange.ir import Demand, RowReservations, Schedule
from compiler.target import fabric
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_END, element_keys, ranges_share_an_element
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array


def schedule(
    demand: Demand,
    order: Int64Array,
    *,
    earliest: Int64Array | None = None,
    reservations: RowReservations | None = None,
) -> Schedule:
    """Give every transfer its time.

    Args:
        demand: what moves.
        order: [transfers] who chooses first; predecessors in data come before.
        earliest: [transfers] slot before which each may not start; 0 for all if None.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    check_addresses(demand, reservations)
    return schedule_of_starts(demand, starts_of(demand, order, earliest=earliest))


def starts_of(demand: Demand, order: Int64Array, *, earliest: Int64Array | None = None) -> Int64Array:
    """[transfers] the slot of each transfer; as ``schedule``, for addresses that are known to be legal."""
    transfers = demand.transfers
    source, receiver = transfers.source, transfers.receiver
    distances = distances_of(transfers, np.zeros(len(source), dtype=np.bool_))
    first = distances.earliest if earliest is None else np.maximum(earliest, distances.earliest)
    reads = _elements(demand, transfers.address, transfers.stride, transfers.words)
    writes = _elements(
        demand, transfers.receiver_address, transfers.receiver_stride, transfers.recipient_words
    )
    data = demand.dependences
    may_share = _may_share(reads, source, writes, receiver)
    return earliest_starts(
        order,
        first,
        distances.items,
        source,
        transfers.first_recipient,
        receiver,
        distances.to_select,
        fabric.select_to_writes(np.arange(TILE_COUNT)),
        *reads,
        *writes,
        may_share,
        _alike(demand, may_share) if earliest is None else np.full(len(source), -1),
        np.searchsorted(data.after, np.arange(len(source) + 1)),
        data.before,
        data.before_recipient,
        data.after_recipient,
        bounds_of(np.bincount(source, minlength=TILE_COUNT)),
        bounds_of(np.bincount(receiver, minlength=TILE_COUNT)),
        int(fabric.ROW_AFTER_LAST_WRITE),
    )


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
    none = np.iinfo(np.int64).max
    low, high = np.full((2, TILE_COUNT), none), np.full((2, TILE_COUNT), -1)
    for side, (spans, tile) in enumerate(((reads, source), (writes, receiver))):
        for lowest, highest in zip(*spans, strict=True):
            np.minimum.at(low[side], tile, lowest)
            np.maximum.at(high[side], tile, highest)
    return (low[0] <= high[1]) & (low[1] <= high[0])


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
