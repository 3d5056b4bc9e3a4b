"""What follows from the slot in which a transfer starts, for both kinds of transfers.

Input: a demand, the start of every transfer, and which transfers are *paired*. Output: a ``Schedule``. An
ordinary transfer sends a word in each slot; a paired one sends two, as one item of 64 bits, with its own
transmit lane and that of the sender's partner, and reaches both members of each receiving pair.

Events of a transfer of n items that starts in slot S (facts of the vendor's tools; T is the time to mux of
the receiver, for a pair that of its *late* member, which is 1 more than that of its *early* member):

===================  ======================  ============================================================
event                ordinary                paired
===================  ======================  ============================================================
select               S + T + 1, own mux      S + T, multiplexer of the pair, by the early member alone
format               none                    write - 2 to n events later, both members
write (and pointer)  select + 52 + 2 row     select + 53 + 2 row, both members
release              select + n              select + n, by the early member alone
row lasts to         write + n + 5           write + n + 5
===================  ======================  ============================================================

So in either kind the payload is written at events [write, write + n) of each receiver, its source is selected
at [select, release), and no other payload of that tile, of either kind, may be written at the same time; that
is all that two transfers need on a tile to follow each other, with these exceptions for paired ones:

* only a pointer and the tile's own multiplexer may change at one event: every other two controls of a tile
  are at distinct events (``rows`` refuses what is not), where controls are those that remain when a format or
  a selection goes on without a break;
* the multiplexer of a pair is written by one of its members at one event, and selects for one at a time;
* no two controls at the event right behind a lone one of a format or a pair's multiplexer (``rows``);
* the format is set when everything before is written: that payloads are disjoint is not enough by two events,
  so that an ordinary payload has ended at ``write - 2``.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.ir import Demand, PlacedTransfers, Schedule
from compiler.target import fabric
from compiler.target.fabric import MULTICAST, PAIRED_ITEM_BYTES, SendControl
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array

SHORTEST_SENDING_ROW: Final = 6
"""Events that the row of a sender has at least. Fact, vendor tools: so long is the row of any lone send."""

WORDS_OF_PAIRED_ITEM: Final = PAIRED_ITEM_BYTES // WORD_BYTES
"""Words that a paired transfer sends in a slot."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distances:
    """What does not depend on the start of a transfer.

    Args:
        items: [transfers] slots that it sends for, and events that it is written for.
        earliest: [transfers] the least slot: no source is selected before event 1.
        to_select: [recipients] from the first slot to the event of the selection.
        to_write: [recipients] from there to the event of the first write.
    """

    items: Int64Array
    earliest: Int64Array
    to_select: Int64Array
    to_write: Int64Array


def distances_of(moves: PlacedTransfers, is_paired: BoolArray) -> Distances:
    """The distances of transfers, some of them paired.

    Args:
        moves: the transfers.
        is_paired: [transfers] which of them are; only some that can be, see ``can_be_paired``.
    """
    owner = moves.transfer_of_recipient
    to_select = fabric.times_to_mux(moves.source[owner], moves.receiver) + fabric.SELECT_AFTER_PASSING
    to_write = fabric.select_to_writes(moves.receiver)
    paired = np.flatnonzero(is_paired[owner])
    if paired.size:
        # The early member selects for both, an event later than it would for itself.
        source = moves.source[owner[paired]]
        to_select[paired] = fabric.paired_times_to_mux(source, moves.receiver[paired])
        to_write[paired] += fabric.SELECT_AFTER_PASSING
    earliest = np.zeros(len(moves.source), dtype=np.int64)
    if len(owner):
        np.maximum(earliest, 1 - np.minimum.reduceat(to_select, moves.first_recipient[:-1]), out=earliest)
    return Distances(
        items=np.where(is_paired, moves.words // WORDS_OF_PAIRED_ITEM, moves.words),
        earliest=earliest,
        to_select=to_select,
        to_write=to_write,
    )


def can_be_paired(moves: PlacedTransfers) -> BoolArray:
    """[transfers] which of them can be paired at all, at the addresses of every iteration.

    Receivers are whole pairs, others than the sender's among them; addresses and strides are multiples of 8;
    the number of words is even; and no two of the events of one transfer coincide on a tile, the start of its
    own send included.
    """
    result = may_be_paired(moves)
    candidate = np.flatnonzero(result)
    if not candidate.size:
        return result
    result[candidate] = _events_are_apart(moves.taken(candidate))
    return result


def may_be_paired(moves: PlacedTransfers) -> BoolArray:
    """[transfers] all that ``can_be_paired`` finds and perhaps more, found with less work."""
    is_aligned = (moves.address | moves.stride) % PAIRED_ITEM_BYTES == 0
    is_aligned &= moves.words % WORDS_OF_PAIRED_ITEM == 0
    return is_aligned & _reaches_whole_pairs(moves.first_recipient, moves.receiver, TILE_COUNT, PARTNER_LANE)


def _events_are_apart(moves: PlacedTransfers) -> BoolArray:
    """[transfers] which of those that reach whole pairs can be paired."""
    first, owner = moves.first_recipient, moves.transfer_of_recipient
    items = moves.words // WORDS_OF_PAIRED_ITEM
    after = fabric.select_to_writes(moves.receiver)
    # Items at which the release meets the format (one event before an ordinary write) or the pointer.
    apart = (items[owner] != after - 1) & (items[owner] != after + 1)
    apart &= items[owner] != fabric.FORMAT_BEFORE_WRITE
    # The release in the first slot of the send, where the sender selects for its own pair.
    late = fabric.paired_times_to_mux(moves.source[owner], moves.receiver)
    selects_at_home = moves.is_loopback & is_early(moves)
    apart &= ~(selects_at_home & (late + items[owner] == fabric.SELECT_AFTER_PASSING))
    fits = apart & ((moves.receiver_address | moves.receiver_stride) % PAIRED_ITEM_BYTES == 0)
    away = (moves.receiver | PARTNER_LANE) != (moves.source[owner] | PARTNER_LANE)
    return np.logical_and.reduceat(fits, first[:-1]) & np.logical_or.reduceat(away, first[:-1])


@compiled
def _reaches_whole_pairs(
    first_recipient: Int64Array, receiver: Int64Array, tiles: int, partner_lane: int
) -> BoolArray:
    """[transfers] whether the partner of each receiver is a receiver."""
    seen = np.full(tiles, -1, dtype=np.int64)
    result = np.zeros(first_recipient.size - 1, dtype=np.bool_)
    for transfer in range(result.size):
        recipients = range(first_recipient[transfer], first_recipient[transfer + 1])
        if len(recipients) % 2 == 1:
            continue
        for recipient in recipients:
            seen[receiver[recipient]] = transfer
        result[transfer] = True
        for recipient in recipients:
            if seen[receiver[recipient] ^ partner_lane] != transfer:
                result[transfer] = False
                break
    return result


def is_early(moves: PlacedTransfers) -> BoolArray:
    """[recipients] whether a word passes this member of its pair before the other."""
    source = moves.source[moves.transfer_of_recipient]
    partner = moves.receiver ^ PARTNER_LANE
    return fabric.times_to_mux(source, moves.receiver) < fabric.times_to_mux(source, partner)


def send_controls(moves: PlacedTransfers, is_paired: BoolArray) -> Int64Array:
    """[transfers] bits of ``fabric.SendControl``: one direction for a lone receiver (or pair), else both."""
    first = moves.first_recipient
    if not len(moves.source):
        return np.zeros(0, dtype=np.int64)
    is_lone = first[1:] - first[:-1] == np.where(is_paired, 2, 1)
    at_home = np.logical_or.reduceat(moves.is_loopback, first[:-1])
    direction = fabric.directions(moves.source, moves.receiver[first[:-1]])
    control = np.where(is_lone & ~(is_paired & at_home), direction, np.int64(MULTICAST))
    control[is_paired] |= SendControl.PAIRED
    return control


def schedule_of_starts(
    demand: Demand, slot: Int64Array, is_paired: BoolArray, distances: Distances | None = None
) -> Schedule:
    """Everything that follows from starts.

    Args:
        demand: what moves.
        slot: [transfers] slot of the first item sent.
        is_paired: [transfers] which transfers are paired.
        distances: those of these transfers, if they are known.
    """
    moves = demand.transfers
    owner = moves.transfer_of_recipient
    if distances is None:
        distances = distances_of(moves, is_paired)
    select = slot[owner] + distances.to_select
    write = select + distances.to_write
    items = distances.items[owner]
    tiles = demand.tiles
    horizon = np.zeros(TILE_COUNT, dtype=np.int64)
    _raise_to(horizon, moves.source, np.maximum(slot + distances.items, SHORTEST_SENDING_ROW))
    _raise_to(horizon, moves.receiver, write + items + fabric.ROW_AFTER_LAST_WRITE)
    return Schedule(
        slot=slot,
        control=send_controls(moves, is_paired),
        select=select,
        write=write,
        release=select + items,
        tiles=tiles,
        horizon=horizon[tiles],
    )


@compiled
def _raise_to(column: Int64Array, row: Int64Array, least: Int64Array) -> None:
    """Raise entries of a column to what is asked for."""
    for index in range(row.size):
        column[row[index]] = max(column[row[index]], least[index])
