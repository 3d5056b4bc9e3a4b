"""What no schedule of a phase can beat, and what its rows need at least.

Input: a demand. Output: ``Bounds``, columns by tile and their maxima. All are bounds of ordinary transfers as
demanded: joining, splitting or routing them otherwise is another demand.

* **Endpoint.** A tile sends and receives one word an event, so that a phase lasts as long as the busiest tile
  sends, or receives.
* **Latency-aware.** The first source is selected at event 1 or later, its first word is written 52 events and
  two for each row later, and the row goes on for five after the last: a tile in row r that receives n words
  is busy for n + 58 + 2 r events. Nothing is added for senders.
* **Row words.** Each send has an instruction that starts it. Each reception has a selection, the last one a
  neutral control behind it, and each payload that continues no other on its tile a pointer; an instruction of
  one word carries one control, one of two words two. The return is a word. Waits are not counted.

Time to mux is not a sum of a part of the sender and one of the receiver, so these are bounds, not promises.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.exchange.ir import Demand, PlacedTransfers
from compiler.target import costs, fabric
from compiler.target.memory import SRAM_END
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, BoolArray, Bytes, Events, Int64Array, Words


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Bounds of a phase. Columns are by the tiles that take part, ascending.

    Args:
        tiles: physical tiles.
        sent: words that each sends.
        received: words that each receives.
        sends: transfers that each sends.
        receives: transfers that each receives.
        latency: events that each is busy at least.
        control_words: words of its row at least.
    """

    tiles: Int64Array
    sent: Int64Array
    received: Int64Array
    sends: Int64Array
    receives: Int64Array
    latency: Int64Array
    control_words: Int64Array

    @property
    def endpoint(self) -> Words:
        """Words of the busiest direction of any tile; 0 for a phase without transfers."""
        return Words(int(np.maximum(self.sent, self.received).max(initial=0)))

    @property
    def horizon(self) -> Events:
        """Events that the phase lasts at least."""
        return Events(int(self.latency.max(initial=0)))

    @property
    def largest_row(self) -> Bytes:
        """Bytes of the largest row at least."""
        return Bytes(WORD_BYTES * int(self.control_words.max(initial=0)))

    @property
    def estimated_row(self) -> Bytes:
        """Bytes of the largest row as estimated from its numbers of sends and receives."""
        words = costs.SEND_ROW_WORDS * self.sends + costs.RECEIVE_ROW_WORDS * self.receives + 1
        return Bytes(WORD_BYTES * int(words.max(initial=0)))


def bounds_of_phase(demand: Demand) -> Bounds:
    """The bounds of a demand."""
    moves, tiles = demand.transfers, demand.tiles
    source = np.searchsorted(tiles, moves.source)
    receiver = np.searchsorted(tiles, moves.receiver)

    def total(place: Int64Array, amount: Int64Array) -> Int64Array:
        return np.bincount(place, weights=amount, minlength=len(tiles)).astype(np.int64)

    sends = np.bincount(source, minlength=len(tiles))
    receives = np.bincount(receiver, minlength=len(tiles))
    pointers = np.bincount(receiver[_needs_pointer(demand)], minlength=len(tiles))
    return Bounds(
        tiles=tiles,
        sent=total(source, moves.words),
        received=total(receiver, moves.recipient_words),
        sends=sends,
        receives=receives,
        latency=latency_bounds(moves)[tiles],
        control_words=sends + receives + (receives > 0) + np.maximum(pointers, receives > 0) + 1,
    )


def latency_bounds(moves: PlacedTransfers) -> Int64Array:
    """[all tiles of the chip] events that each is busy at least, 0 for those that take no part."""
    sent = np.bincount(moves.source, moves.words, TILE_COUNT).astype(np.int64)
    received = np.bincount(moves.receiver, moves.recipient_words, TILE_COUNT).astype(np.int64)
    around = (
        fabric.SELECT_AFTER_PASSING
        + fabric.select_to_writes(np.arange(TILE_COUNT))
        + fabric.ROW_AFTER_LAST_WRITE
    )
    return np.maximum(sent, np.where(received > 0, received + around, 0))


def _needs_pointer(demand: Demand) -> BoolArray:
    """[recipients] whether no other payload of the tile ends at this one's start, moving alike."""
    moves = demand.transfers
    begin = moves.receiver * SRAM_END + moves.receiver_address
    end = begin + WORD_BYTES * moves.recipient_words
    # Strides as small numbers, so that place and stride are one number.
    strides, stride = np.unique(moves.receiver_stride, return_inverse=True)
    return ~np.isin(begin * len(strides) + stride, end * len(strides) + stride)
