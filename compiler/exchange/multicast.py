"""An order of transfers with several recipients each: by load, and by when they could start.

Input: transfers and which of them are meant. Output: those, in order.

A multicast needs a place in the lanes of all its recipients at once, at distances that its sender gives, so
that each one leaves holes in most of them.

**Groups.** Where several go to the same tiles, what keeps holes small is to put next what fits best behind
what is there: the transfer that would arrive first, on an average of its recipients, if each took it when it
has done everything before. Large ones, by words times recipients, are hard to fit and fill lanes well; they
get a head start of one event for each ``LOAD`` of that product.

The start that lanes leave to a transfer only grows while others are placed. So each waits in the bucket of
the time that it had when last looked at; the first of the earliest bucket is looked at again, and is next if
it is still the earliest. Most are not, which one lane tells: the one that held it back the last time is
looked at first.

**Scattered.** Where most go to tiles of their own (``split.are_scattered``), whatever comes first leaves
holes that only small ones fill. So the order is that of falling load, as in packing: words times
recipients, times the words of the busiest recipient, which bounds the phase. It is a sort, and the timing
fills the holes.
"""

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
    earliest = distances.earliest
    key = earliest + ahead
    latest = int(key[chosen].max() - key[chosen].min()) + 1
    return _ordered(
        chosen,
        earliest,
        ahead - int(key[chosen].min()),
        moves.words,
        moves.source,
        first,
        moves.receiver,
        distances.to_select,
        latest,
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
    buckets: int,
    tiles: int,
) -> Int64Array:
    """Take the earliest until none is left.

    Args:
        chosen: transfers to order.
        earliest: [transfers] least slot.
        ahead: [transfers] from a slot to the bucket, at least 0 for the earliest.
        words: [transfers].
        source: [transfers] physical sender.
        first_recipient: [transfers + 1].
        receiver: [recipients] physical receiver.
        to_select: [recipients] from the slot to the selection.
        buckets: number of buckets that are used at first.
        tiles: number of tiles.
    """
    order = np.empty(chosen.size, dtype=np.int64)
    # Buckets are linked lists of places in ``chosen``, the last one put in first.
    head = np.full(2 * buckets, -1, dtype=np.int64)
    link = np.empty(chosen.size, dtype=np.int64)
    brake = np.full(chosen.size, -1, dtype=np.int64)
    for place in range(chosen.size - 1, -1, -1):
        bucket = earliest[chosen[place]] + ahead[chosen[place]]
        link[place] = head[bucket]
        head[bucket] = place
    send_until = np.zeros(tiles, dtype=np.int64)
    receive_until = np.ones(tiles, dtype=np.int64)
    found = 0
    now = 0
    while found < chosen.size:
        place = head[now]
        if place < 0:
            now += 1
            continue
        head[now] = link[place]
        transfer = chosen[place]
        start = max(earliest[transfer], send_until[source[transfer]])
        if brake[place] >= 0:
            start = max(start, receive_until[receiver[brake[place]]] - to_select[brake[place]])
        if start + ahead[transfer] <= now:
            for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
                possible = receive_until[receiver[recipient]] - to_select[recipient]
                if possible > start:
                    start = possible
                    brake[place] = recipient
        bucket = start + ahead[transfer]
        if bucket > now:
            while bucket >= head.size:
                larger = np.full(2 * head.size, -1, dtype=np.int64)
                larger[: head.size] = head
                head = larger
            link[place] = head[bucket]
            head[bucket] = place
            continue
        order[found] = transfer
        found += 1
        send_until[source[transfer]] = start + words[transfer]
        for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
            receive_until[receiver[recipient]] = start + to_select[recipient] + words[transfer]
    return order
