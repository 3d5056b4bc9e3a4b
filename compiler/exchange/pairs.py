"""Transfers with one recipient each, grouped by their two ends.

Input: a demand and which of its transfers are meant. Output: ``Pairs``: for an order, transfers with the same
sender and the same receiver are alike but for their length, so that whoever chooses a partner for a tile
looks at its pairs and not at its transfers, of which there may be fifty times as many.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.exchange.columns import bounds_of
from compiler.exchange.ir import PlacedTransfers
from compiler.target import fabric
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """Pairs of sender and receiver in order of sender, then receiver.

    Args:
        source: [pairs] physical tile.
        receiver: [pairs] physical tile.
        time_to_mux: [pairs].
        first: [pairs + 1] where the transfers of each begin in ``transfer``.
        transfer: transfers of the demand, those of a pair in its order.
        words: of each entry of ``transfer``.
        first_of_source: [tiles + 1] where the pairs of each sender begin.
        first_of_receiver: [tiles + 1] where those of each receiver begin in ``by_receiver``.
        by_receiver: pairs in order of receiver, then sender.
    """

    source: Int64Array
    receiver: Int64Array
    time_to_mux: Int64Array
    first: Int64Array
    transfer: Int64Array
    words: Int64Array
    first_of_source: Int64Array
    first_of_receiver: Int64Array
    by_receiver: Int64Array


def pairs_of(moves: PlacedTransfers, chosen: Int64Array) -> Pairs:
    """The pairs of some transfers.

    Args:
        moves: transfers.
        chosen: rows of it with one recipient each, ascending.
    """
    key = moves.source[chosen] * TILE_COUNT + moves.receiver[moves.first_recipient[chosen]]
    order = np.argsort(key, kind="stable")
    keys, first = np.unique(key[order], return_index=True)
    source, receiver = keys // TILE_COUNT, keys % TILE_COUNT
    return Pairs(
        source=source,
        receiver=receiver,
        time_to_mux=fabric.times_to_mux(source, receiver),
        first=np.append(first, len(chosen)),
        transfer=chosen[order],
        words=moves.words[chosen[order]],
        first_of_source=bounds_of(np.bincount(source, minlength=TILE_COUNT)),
        first_of_receiver=bounds_of(np.bincount(receiver, minlength=TILE_COUNT)),
        by_receiver=np.argsort(receiver, kind="stable"),
    )


def words_of_ends(pairs: Pairs) -> tuple[Int64Array, Int64Array]:
    """[tiles] words that each sends and that each receives."""
    counts = pairs.first[1:] - pairs.first[:-1]
    ends = (np.repeat(end, counts) for end in (pairs.source, pairs.receiver))
    sent, received = (np.bincount(end, pairs.words, TILE_COUNT).astype(np.int64) for end in ends)
    return sent, received
