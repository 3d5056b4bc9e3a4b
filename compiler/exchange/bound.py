"""What no schedule of a phase can beat, and what its rows need at least.

Input: a demand. Output: ``Bounds``, columns by tile and their maxima. All are bounds of the transfers as
demanded, ordinary ones if nothing else is said: joining, splitting or routing them otherwise is another
demand.

* **Endpoint.** A tile sends and receives one word an event, so that a phase lasts as long as the busiest tile
  sends, or receives.
* **Latency-aware.** The first source is selected at event 1 or later, its first word is written 52 events and
  two for each row later, and the row goes on for five after the last: a tile in row r that receives n words
  is busy for n + 58 + 2 r events. Nothing is added for senders.
* **Paired.** The same with two words an event for all transfers that can be paired; those also keep the
  transmit lane of the sender's partner busy.
* **Row words.** Each send has an instruction that starts it. Each reception has a selection, the last one a
  neutral control behind it, and each payload that continues no other on its tile a pointer; an instruction of
  one word carries one control, one of two words two. The return is a word. Waits are not counted.

Time to mux is not a sum of a part of the sender and one of the receiver, so these are bounds, not promises.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.exchange.demand import STAGE
from compiler.exchange.events import WORDS_OF_PAIRED_ITEM, can_be_paired
from compiler.exchange.ir import Demand, PlacedTransfers
from compiler.target import costs, fabric
from compiler.target.memory import SRAM_END
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
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
        paired: the same where everything that can be paired is.
        control_words: words of its row at least.
    """

    tiles: Int64Array
    sent: Int64Array
    received: Int64Array
    sends: Int64Array
    receives: Int64Array
    latency: Int64Array
    paired: Int64Array
    control_words: Int64Array

    @property
    def endpoint(self) -> Words:
        """Words of the busiest direction of any tile; 0 for a phase without transfers."""
        return Words(int(np.maximum(self.sent, self.received).max(initial=0)))

    @property
    def horizon(self) -> Events:
        """Events that the phase lasts at least with ordinary transfers."""
        return Events(int(self.latency.max(initial=0)))

    @property
    def paired_horizon(self) -> Events:
        """Events that it lasts at least where everything that can be paired is."""
        return Events(int(self.paired.max(initial=0)))

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
        paired=latency_bounds(moves, can_be_paired(moves))[tiles],
        control_words=sends + receives + (receives > 0) + np.maximum(pointers, receives > 0) + 1,
    )


def latency_bounds(
    moves: PlacedTransfers, is_paired: BoolArray | None = None, *, partners_lend: bool = True
) -> Int64Array:
    """[all tiles of the chip] events that each is busy at least, 0 for those that take no part.

    Args:
        moves: transfers.
        is_paired: [transfers] which of them are paired; none if None.
        partners_lend: whether paired ones keep the transmit lane of the sender's partner busy, as they do.
            Without, the bounds are those of no transfers, but any fewer paired ones have larger bounds.
    """
    items = moves.words
    if is_paired is not None:
        items = np.where(is_paired, items // WORDS_OF_PAIRED_ITEM, items)
    sent = np.bincount(moves.source, items, TILE_COUNT).astype(np.int64)
    if is_paired is not None and partners_lend:
        lent = moves.source[is_paired] ^ PARTNER_LANE
        sent += np.bincount(lent, items[is_paired], TILE_COUNT).astype(np.int64)
    received = np.bincount(moves.receiver, items[moves.transfer_of_recipient], TILE_COUNT).astype(np.int64)
    around = (
        fabric.SELECT_AFTER_PASSING
        + fabric.select_to_writes(np.arange(TILE_COUNT))
        + fabric.ROW_AFTER_LAST_WRITE
    )
    return np.maximum(sent, np.where(received > 0, received + around, 0))


def refuse_rows_beyond_budget(demand: Demand) -> None:
    """Refuse a phase whose rows cannot be small enough, before anything is scheduled.

    Raises:
        DoesNotFit: a row needs more than ``costs.ROW_BUDGET`` whatever the schedule.
    """
    moves = demand.transfers
    # Most phases are far from the budget: three words for each reception and one for each send say so.
    most = 3 * np.bincount(moves.receiver, minlength=TILE_COUNT)
    most += np.bincount(moves.source, minlength=TILE_COUNT)
    if WORD_BYTES * (int(most.max()) + 3) <= costs.ROW_BUDGET:
        return
    bounds = bounds_of_phase(demand)
    if bounds.largest_row <= costs.ROW_BUDGET:
        return
    place = int(np.argmax(bounds.control_words))
    raise _beyond_budget(demand, int(bounds.tiles[place]), bounds.largest_row, NumberKind.BOUND)


def refuse_large_rows(demand: Demand, tiles: Int64Array, first_word: Int64Array) -> None:
    """Refuse rows that came out too large: waits and pointers said again are not in the bound.

    Args:
        demand: what they move.
        tiles: [rows] physical tiles.
        first_word: [rows + 1] where each begins.

    Raises:
        DoesNotFit: a row has more than ``costs.ROW_BUDGET``.
    """
    size = WORD_BYTES * np.diff(first_word)
    largest = int(np.argmax(size)) if size.size else None
    if largest is not None and size[largest] > costs.ROW_BUDGET:
        raise _beyond_budget(demand, int(tiles[largest]), Bytes(int(size[largest])), NumberKind.SCHEDULED)


def _beyond_budget(demand: Demand, tile: int, row: Bytes, kind: NumberKind) -> DoesNotFit:
    """The error about a row of this size."""
    moves = demand.transfers
    sent = np.flatnonzero(moves.source == tile)
    received = moves.transfer_of_recipient[moves.receiver == tile]
    nodes = sorted({int(node) for node in moves.node[np.concatenate([sent, received])].tolist()})
    return DoesNotFit(
        f"physical tile {tile} sends {len(sent):,} spans and receives {len(received):,} in one exchange"
        " phase, more than an exchange row may control",
        stage=STAGE,
        subject=f"exchange step {demand.step}",
        next_step="move fewer and longer spans: layouts whose tiles cut less across each other",
        numbers=[
            Measure(
                name="bytes of the row at least" if kind is NumberKind.BOUND else "bytes of the row",
                value=int(row),
                unit="bytes",
                kind=kind,
                limit=int(costs.ROW_BUDGET),
            )
        ],
        nodes=[demand.nodes[node] for node in nodes],
    )


def _needs_pointer(demand: Demand) -> BoolArray:
    """[recipients] whether no other payload of the tile ends at this one's start, moving alike."""
    moves = demand.transfers
    begin = moves.receiver * SRAM_END + moves.receiver_address
    end = begin + WORD_BYTES * moves.recipient_words
    # Strides as small numbers, so that place and stride are one number.
    strides, stride = np.unique(moves.receiver_stride, return_inverse=True)
    return ~np.isin(begin * len(strides) + stride, end * len(strides) + stride)
