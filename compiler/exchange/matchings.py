"""An order of transfers with one recipient each: rounds, each a matching of senders and receivers.

Input: ``Pairs``. Output: their transfers in the order of their rounds.

**Problem.** Where most tiles are equally busy, no tile may ever idle, and an order that serves the busiest
end first leaves, near the end, transfers whose ends are free at different times. Without latency the cure is
classic: a bipartite graph whose ends have at most n edges splits into n matchings, and in each round every
busy tile has a partner. With latency a round arrives late by the time to mux T, which differs from pair to
pair, and a receiver idles where a small T is followed by a large one: word after word sent without a gap
arrives with one. Sent the other way round, the later words arrive too early and are held back, which costs
the sender slots, but once: if T only falls from round to round, then all that is lost is its whole fall.

**Method.** Each round takes the matching with the greatest sum of T among those that serve the most words
left. T is a part of the sender, a part of the receiver, and a rest; in the sum of a matching that leaves no
busy tile out the first two are the same whoever is matched, so that the sum sees the rest alone, which is
what decides.

The matching is found by an auction: senders bid for receivers, each for the one of greatest worth, which is T
less the price, and raises the price by the difference to its second choice plus ``STEP``. Whoever is outbid
bids again. A receiver's price starts below zero by ``URGENCY`` for each unit of what it still has to
receive, and a sender gives up the round where no worth is above the same of what it has to send. So busy ends
are matched before others, and an end whose work is done early may sit out a round. The sum is then within
``STEP`` for each sender of the greatest one. Senders who are more than the receivers that they all want would
raise prices by single steps up to their limits; the step therefore doubles after every ``PATIENCE`` bids for
each sender, and the round comes to an end.

Transfers differ in length. A round lasts one *unit*, the median of the lengths, and an end takes part when
what it was given before ends in the first half of that round's time.

Cost: bids x pairs of a sender; on relations of all 1,472 tiles about seven bids for each transfer.
"""

from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.pairs import Pairs, words_of_ends
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Int64Array

STEP: Final = 2
"""Least rise of a price, in events. Policy: 1 costs half again as much time and gains nothing."""

PATIENCE: Final = 16
"""Bids of a round, for each of its senders, after which the step doubles. Policy."""

URGENCY: Final = 1024
"""What a unit of words is worth, in events: more than differences of T can outweigh. Policy."""


def matching_order(pairs: Pairs) -> Int64Array:
    """All transfers of the pairs in order of their rounds, those of a round by falling time to mux."""
    if not len(pairs.transfer):
        return pairs.transfer
    sent, received = words_of_ends(pairs)
    unit = int(np.median(pairs.words))
    worth = pairs.time_to_mux - pairs.time_to_mux.min()
    rounds = _rounds(
        pairs.receiver,
        worth,
        pairs.first,
        pairs.words,
        pairs.first_of_source,
        sent,
        received,
        max(unit, 1),
        TILE_COUNT,
        STEP,
        PATIENCE,
        URGENCY,
    )
    counts = pairs.first[1:] - pairs.first[:-1]
    # One number orders by round, then by falling worth, then by place.
    return pairs.transfer[
        np.argsort(rounds * (int(worth.max()) + 1) - np.repeat(worth, counts), kind="stable")
    ]


@compiled
def _rounds(
    receiver: Int64Array,
    worth: Int64Array,
    first: Int64Array,
    words: Int64Array,
    first_of_source: Int64Array,
    sent: Int64Array,
    received: Int64Array,
    unit: int,
    tiles: int,
    step: int,
    patience: int,
    urgency: int,
) -> Int64Array:
    """The round of each transfer. ``sent`` and ``received`` are used up."""
    rounds = np.empty(words.size, dtype=np.int64)
    following = first[:-1].copy()
    lists = np.arange(receiver.size)
    stop = first_of_source[1:].copy()
    sender_until = np.zeros(tiles, dtype=np.int64)
    receiver_until = np.zeros(tiles, dtype=np.int64)
    price = np.empty(tiles, dtype=np.int64)
    holder = np.empty(tiles, dtype=np.int64)
    held = np.empty(tiles, dtype=np.int64)
    bidders = np.empty(tiles, dtype=np.int64)
    far = 1 << 60
    left = words.size
    number = 0
    while left > 0:
        now = number * unit
        for tile in range(tiles):
            holder[tile] = -1
            price[tile] = -(urgency * received[tile]) // unit
            if 2 * (receiver_until[tile] - now) > unit:
                price[tile] = far
        waiting = 0
        for tile in range(tiles):
            if stop[tile] > first_of_source[tile] and 2 * (sender_until[tile] - now) <= unit:
                bidders[waiting] = tile
                waiting += 1
        least = step
        bids = 0
        limit = patience * waiting
        while waiting > 0:
            waiting -= 1
            bids += 1
            if bids > limit:
                least *= 2
                bids = 0
            sender = bidders[waiting]
            second = -(urgency * sent[sender]) // unit
            best = second - 1
            chosen = -1
            for place in range(first_of_source[sender], stop[sender]):
                value = worth[lists[place]] - price[receiver[lists[place]]]
                if value > best:
                    second = max(second, best)
                    best = value
                    chosen = place
                elif value > second:
                    second = value
            if chosen < 0:
                continue
            target = receiver[lists[chosen]]
            price[target] += best - second + least
            if holder[target] >= 0:
                bidders[waiting] = holder[target]
                waiting += 1
            holder[target] = sender
            held[target] = chosen
        for tile in range(tiles):
            sender = holder[tile]
            if sender < 0:
                continue
            pair = lists[held[tile]]
            taken = following[pair]
            rounds[taken] = number
            left -= 1
            sent[sender] -= words[taken]
            received[tile] -= words[taken]
            sender_until[sender] = max(sender_until[sender], now) + words[taken]
            receiver_until[tile] = max(receiver_until[tile], now) + words[taken]
            following[pair] += 1
            if following[pair] == first[pair + 1]:
                stop[sender] -= 1
                lists[held[tile]] = lists[stop[sender]]
        number += 1
    return rounds
