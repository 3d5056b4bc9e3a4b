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
from compiler.exchange.events import schedule_of_starts
from compiler.exchange.ir import Demand, RowReservations, Schedule
from compiler.target import fabric
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_END, element_keys, ranges_share_an_element
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, Int64Array


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
    transfers = demand.transfers
    owner = transfers.transfer_of_recipient
    source, receiver = transfers.source, transfers.receiver
    # From the slot of a word to the selection of its source, and from there to its write.
    to_select = fabric.times_to_mux(source[owner], receiver) + fabric.SELECT_AFTER_PASSING
    first = np.zeros(len(source), dtype=np.int64) if earliest is None else np.maximum(earliest, 0)
    np.maximum.at(first, owner, 1 - to_select)
    data = demand.dependences
    slot = earliest_starts(
        order,
        first,
        transfers.words,
        source,
        transfers.first_recipient,
        receiver,
        to_select,
        fabric.select_to_writes(np.arange(TILE_COUNT)),
        *_elements(demand, transfers.address, transfers.stride, transfers.words),
        *_elements(demand, transfers.receiver_address, transfers.receiver_stride, transfers.recipient_words),
        np.searchsorted(data.after, np.arange(len(source) + 1)),
        data.before,
        data.before_recipient,
        data.after_recipient,
        bounds_of(np.bincount(source, minlength=TILE_COUNT)),
        bounds_of(np.bincount(receiver, minlength=TILE_COUNT)),
        int(fabric.ROW_AFTER_LAST_WRITE),
    )
    return schedule_of_starts(demand, slot)


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
