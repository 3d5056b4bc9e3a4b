"""An order of transfers with one recipient each: the busiest end first.

Input: ``Pairs``. Output: their transfers, most urgent first. An *end* is a tile as a sender, or as a
receiver; its *pressure* is the number of words that it still has to send, or to receive, in transfers that
are not yet ordered. Again and again the end with the highest pressure takes a transfer: the one whose other
end has the highest. So the ends that bound the phase never wait for others, and tiles take turns: once a tile
has a turn it is less urgent than those that had none. Using the whole load instead of what remains, or the
sum of both directions, kept serving ends whose work was done and made phases up to 2.85 times as long as
their bound.

Ties: senders before receivers, then the lower tile; of its partners the lower tile; of a pair's transfers the
earlier one.

A heap holds every end with the pressure that it had when pushed. Pressures only fall, so an entry found on
top is current, or is pushed again. A turn costs a look at ``CANDIDATES`` pairs of one end at most, and a few
steps of the heap: an end that has more pairs looks at some, at others the next time. Where all talk to all
that makes no difference that one could see, and without it the work grows with the square of the tiles for
each of them.
Choosing among transfers instead of ends needs a heap of all of them, of which those of a busy tile are stale
after each of its turns: on [1458, 4304] halves between two grids that took a hundred times as long.
"""

import heapq
from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.pairs import Pairs, words_of_ends
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Int64Array

CANDIDATES: Final = 64
"""Pairs of an end that are looked at in one turn. Policy."""


def pressure_order(pairs: Pairs) -> Int64Array:
    """All transfers of the pairs, most urgent first."""
    sent, received = words_of_ends(pairs)
    return _ordered(
        pairs.source,
        pairs.receiver,
        pairs.first,
        pairs.transfer,
        pairs.words,
        pairs.first_of_source,
        pairs.first_of_receiver,
        pairs.by_receiver,
        np.concatenate([sent, received]),
        TILE_COUNT,
        CANDIDATES,
    )


@compiled
def _ordered(
    source: Int64Array,
    receiver: Int64Array,
    first: Int64Array,
    transfer: Int64Array,
    words: Int64Array,
    first_of_source: Int64Array,
    first_of_receiver: Int64Array,
    by_receiver: Int64Array,
    pressure: Int64Array,
    tiles: int,
    candidates: int,
) -> Int64Array:
    """``pressure`` is that of all senders, then of all receivers; it is used up."""
    # The open pairs of an end are a stretch of a list; a pair that is done makes room for the last one.
    lists = np.concatenate((np.arange(source.size), by_receiver))
    begin = np.concatenate((first_of_source[:-1], first_of_receiver[:-1] + source.size))
    stop = np.concatenate((first_of_source[1:], first_of_receiver[1:] + source.size))
    following = first[:-1].copy()
    looked = np.zeros(2 * tiles, dtype=np.int64)
    order = np.empty(transfer.size, dtype=np.int64)
    ends = 2 * tiles
    # An entry is one number that is least for the highest pressure, then for the lowest end.
    heap = [-pressure[end] * ends + end for end in range(ends) if pressure[end] > 0]
    heapq.heapify(heap)
    found = 0
    while len(heap) > 0:
        entry = heapq.heappop(heap)
        end = entry % ends
        left = pressure[end]
        if left == 0:
            continue
        if -(entry // ends) != left:
            heapq.heappush(heap, -left * ends + end)
            continue
        partners = receiver if end < tiles else source
        offset = tiles if end < tiles else 0
        chosen = -1
        most = 0
        place = begin[end]
        looks = candidates
        has_more = stop[end] - begin[end] > candidates
        if has_more:
            place += looked[end] % (stop[end] - begin[end])
            looked[end] += candidates
        while looks > 0:
            if place >= stop[end]:
                if not has_more:
                    break
                place = begin[end]
            pair = lists[place]
            if following[pair] == first[pair + 1]:
                stop[end] -= 1
                lists[place] = lists[stop[end]]
                continue
            other = pressure[partners[pair] + offset]
            if other > most or (other == most and partners[pair] < partners[chosen]):
                chosen = pair
                most = other
            place += 1
            looks -= 1
        taken = following[chosen]
        following[chosen] += 1
        order[found] = transfer[taken]
        found += 1
        pressure[source[chosen]] -= words[taken]
        pressure[tiles + receiver[chosen]] -= words[taken]
        if pressure[end] > 0:
            heapq.heappush(heap, -pressure[end] * ends + end)
    return order
