"""An order of transfers with several recipients each: by load, and by when they could start.

Input: transfers and which of them are meant. Output: those, in order.

A multicast needs a place in the lanes of all its recipients at once, at distances that its sender gives, so
that each one leaves holes in most of them.

**Groups.** Where several go to the same tiles, what keeps holes small is to put next what fits best behind
what is there: the transfer that would arrive first, on an average of its recipients, if each took it when it
has done everything before. Large ones, by words times recipients, are hard to fit and fill lanes well; they
get a head start of one event for each ``LOAD`` of that product.

The start that lanes leave to a transfer only grows while others are placed, and one lane holds it back most:
the *brake*. What waits for one lane keeps its order among itself however long that lane gets, since each
start is the end of the lane less something that never changes. So every lane has a heap of those that it
holds back, and lanes are in a heap by the first of theirs, with the key that it had when it was put in (keys
only grow, so that the least is current, or is put in again). The first of all is looked at: it is next, or
another lane holds it back further, to whose heap it goes. A look costs the logarithm of the transfers;
looking at all that wait for a lane whenever it gets longer cost their square.

**Scattered.** Where most go to tiles of their own (``split.are_scattered``), whatever comes first leaves
holes that only small ones fill. So the order is that of falling load, as in packing: words times
recipients, times the words of the busiest recipient, which bounds the phase. It is a sort, and the timing
fills the holes.
"""

import heapq
from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.events import Distances
from compiler.exchange.ir import PlacedTransfers
from compiler.exchange.split import are_scattered
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Int64Array

LOAD: Final = 2
"""Words, times recipients, that are worth an event earlier. Policy."""


def multicast_order(moves: PlacedTransfers, distances: Distances, chosen: Int64Array) -> Int64Array:
    """Some of the transfers, first to be placed first.

    Args:
        moves: transfers.
        distances: theirs, as ordinary ones.
        chosen: rows of it, ascending.
    """
    if not len(chosen):
        return chosen
    first = moves.first_recipient
    counts = first[1:] - first[:-1]
    if are_scattered(moves, chosen, np.zeros(len(moves.receiver), dtype=np.int64)):
        received = np.bincount(moves.receiver, moves.recipient_words, TILE_COUNT).astype(np.int64)
        busiest = np.maximum.reduceat(received[moves.receiver], first[:-1])
        return chosen[np.argsort(-(moves.words * counts * busiest)[chosen], kind="stable")]
    to_write = distances.to_select + distances.to_write
    ahead = np.add.reduceat(to_write, first[:-1]) // counts - moves.words * counts // LOAD
    return _ordered(
        chosen,
        distances.earliest,
        ahead - int((distances.earliest + ahead)[chosen].min()),
        moves.words,
        moves.source,
        first,
        moves.receiver,
        distances.to_select,
        TILE_COUNT,
    )


@compiled
def _ordered(
    chosen: Int64Array,
    earliest: Int64Array,
    ahead: Int64Array,
    words: Int64Array,
    source: Int64Array,
    first_recipient: Int64Array,
    receiver: Int64Array,
    to_select: Int64Array,
    tiles: int,
) -> Int64Array:
    """Take the first until none is left.

    Args:
        chosen: transfers to order.
        earliest: [transfers] least slot.
        ahead: [transfers] from a slot to the key by which the first is found, at least 0 for the earliest.
        words: [transfers].
        source: [transfers] physical sender.
        first_recipient: [transfers + 1].
        receiver: [recipients] physical receiver.
        to_select: [recipients] from the slot to the selection.
        tiles: number of tiles.
    """
    order = np.empty(chosen.size, dtype=np.int64)
    # Lanes: sends of each tile, its receives, and one that never gets longer, in which all wait at first.
    lanes = 2 * tiles + 1
    until = np.zeros(lanes, dtype=np.int64)
    until[tiles : 2 * tiles] = 1
    nobody = 2 * tiles
    far = 1 << 40
    # The key of a transfer is the end of its brake and this.
    behind = earliest[chosen] + ahead[chosen]
    first = np.full(lanes, -1, dtype=np.int64)
    children = np.full((chosen.size, 2), -1, dtype=np.int64)
    for place in range(chosen.size):
        first[nobody] = _together(behind, children, first[nobody], place)
    queued = np.full(lanes, far, dtype=np.int64)
    queued[nobody] = behind[first[nobody]]
    heap = [queued[nobody] * lanes + nobody]
    found = 0
    while found < chosen.size:
        entry = heapq.heappop(heap)
        lane = entry % lanes
        key = entry // lanes
        if key != queued[lane]:
            continue
        place = int(first[lane])
        if until[lane] + behind[place] == key:
            transfer = chosen[place]
            brake = int(source[transfer])
            start = max(earliest[transfer], until[brake])
            offset = 0
            for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
                possible = until[tiles + receiver[recipient]] - to_select[recipient]
                if possible > start:
                    start = possible
                    brake = tiles + int(receiver[recipient])
                    offset = to_select[recipient]
            first[lane] = _together(behind, children, children[place, 0], children[place, 1])
            children[place, 0] = -1
            children[place, 1] = -1
            if start + ahead[transfer] > key:
                behind[place] = ahead[transfer] - offset
                first[brake] = _together(behind, children, first[brake], place)
                if brake != lane and start + ahead[transfer] < queued[brake]:
                    queued[brake] = start + ahead[transfer]
                    heapq.heappush(heap, queued[brake] * lanes + brake)
            else:
                order[found] = transfer
                found += 1
                until[source[transfer]] = start + words[transfer]
                for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
                    until[tiles + receiver[recipient]] = start + to_select[recipient] + words[transfer]
        queued[lane] = far
        if first[lane] >= 0:
            queued[lane] = until[lane] + behind[first[lane]]
            heapq.heappush(heap, queued[lane] * lanes + lane)
    return order


@compiled
def _together(key: Int64Array, children: Int64Array, one: int, other: int) -> int:
    """The first of two heaps that become one; -1 is none. Equal keys in order of their places (skew heap)."""
    if one < 0 or other < 0:
        return max(one, other)
    if (key[other], other) < (key[one], one):
        one, other = other, one
    first = one
    while True:
        right = children[one, 1]
        children[one, 1] = children[one, 0]
        if right < 0:
            children[one, 0] = other
            return first
        if (key[other], other) < (key[right], right):
            right, other = other, right
        children[one, 0] = right
        one = right
