"""Which transfers of a phase touch the same bytes, and so keep the order of the table.

Input: placed transfers and the number of iterations. Output: ``Dependences``: every pair of transfers of
which one writes bytes of a tile that the other reads or writes there, in any iteration (reads after writes,
writes after reads, writes after writes). That the table's order is meant is the low program's decision; that
a transfer may read what an earlier one brought in the same phase follows from it.

Each access is one interval of a line on which the tiles' memories lie end to end. With intervals in order of
their begin and the furthest end so far beside them, all partners of a write are found walking back from the
last that begins before the write ends, and the walk stops where nothing before reaches it: the work is a
sort, and one step for each pair found or nested interval. Reads are never compared with reads, of which a
popular shard has thousands.
"""

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import ascending
from compiler.exchange.ir import SOURCE_SIDE, Dependences, PlacedTransfers
from compiler.target.memory import SRAM_END
from compiler.target.units import WORD_BYTES, Int64Array


def dependences_of(transfers: PlacedTransfers, iterations: int) -> Dependences:
    """All pairs that must keep their order.

    Args:
        transfers: the phase; the order of its rows is the order meant.
        iterations: iterations whose addresses are looked at.
    """
    owner = transfers.transfer_of_recipient
    everyone = np.arange(len(transfers.source))
    everywhere = np.arange(len(owner))
    found = [np.empty((4, 0), dtype=np.int64)]
    for iteration in range(iterations):
        read_begin = transfers.source * SRAM_END + transfers.address + iteration * transfers.stride
        write_begin = (
            transfers.receiver * SRAM_END + transfers.receiver_address + iteration * transfers.receiver_stride
        )
        reads = _ordered(read_begin, transfers.words, everyone, np.full_like(everyone, SOURCE_SIDE))
        writes = _ordered(write_begin, transfers.recipient_words, owner, everywhere)
        found += [_pairs(writes, reads), _pairs(writes, writes)]
    columns = np.unique(np.concatenate(found, axis=1), axis=1)
    after, before, after_recipient, before_recipient = columns
    return Dependences(
        before=before, after=after, before_recipient=before_recipient, after_recipient=after_recipient
    )


def _ordered(begin: Int64Array, words: Int64Array, transfer: Int64Array, side: Int64Array) -> Int64Array:
    """Accesses in order of their begin: begin, end, furthest end so far, transfer, side."""
    order = ascending(begin)
    end = (begin + WORD_BYTES * words)[order]
    return np.stack([begin[order], end, np.maximum.accumulate(end), transfer[order], side[order]])


def _pairs(writes: Int64Array, others: Int64Array) -> Int64Array:
    """Overlaps of different transfers as columns: after, before, side of after, side of before."""
    found = _overlaps(writes[0], writes[1], others[0], others[1], others[2])
    first_transfer: Int64Array = writes[3][found[0]]
    second_transfer: Int64Array = others[3][found[1]]
    first_side: Int64Array = writes[4][found[0]]
    second_side: Int64Array = others[4][found[1]]
    is_first = first_transfer < second_transfer
    after_side = np.where(is_first, second_side, first_side)
    before_side = np.where(is_first, first_side, second_side)
    after = np.maximum(first_transfer, second_transfer)
    before = np.minimum(first_transfer, second_transfer)
    return np.stack([after, before, after_side, before_side])[:, first_transfer != second_transfer]


@compiled
def _overlaps(
    begin: Int64Array, end: Int64Array, other_begin: Int64Array, other_end: Int64Array, reach: Int64Array
) -> Int64Array:
    """Overlapping intervals of two lists, as rows of their numbers, shape [2, pairs].

    Args:
        begin: where the intervals of the first list begin.
        end: where they end.
        other_begin: where those of the second list begin, ascending.
        other_end: where they end.
        reach: the furthest end of the second list up to each.
    """
    found = np.empty((2, 16), dtype=np.int64)
    count = 0
    last = np.searchsorted(other_begin, end)
    for interval in range(begin.size):
        other = int(last[interval]) - 1
        while other >= 0 and reach[other] > begin[interval]:
            if other_end[other] > begin[interval]:
                if count == found.shape[1]:
                    larger = np.empty((2, 2 * count), dtype=np.int64)
                    larger[:, :count] = found
                    found = larger
                found[0, count] = interval
                found[1, count] = other
                count += 1
            other -= 1
    return found[:, :count]
