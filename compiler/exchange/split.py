"""Multicasts in parts, so that each part fits into the lanes of its recipients.

Input: transfers. Output: the same spans to the same recipients at the same addresses; some multicasts are
sent several times, each time to other recipients.

**Why.** A multicast takes the same time of all its recipients, shifted by their times to mux. From one sender
to the next these shifts change: where a recipient is far to one side of both, it changes one way, on the
other side of both the other way, and by which half of the columns each is in. What one recipient gains
another loses, and all of them wait for the one that loses most. Recipients in one *region*, the near or the
far columns of one half, change nearly alike. A part for each region costs the sender its words again, and the
receivers nothing, who are what bounds a phase of multicasts. On 5,562 multicasts to 21 tiles each the
schedule falls from 3.2 times the bound to 1.4.

**How fine.** Where most parts reach the same tiles as some other one (of the rows and columns of a GEMM),
those of a group follow each other at distances that hardly change within four regions. Where each reaches
tiles of its own (``are_scattered``) every lane is a puzzle of all of them: small pieces fit better, and eight
regions, or four for senders that have no time for eight, bring the same phase to 1.15 times the bound.

**When.** A multicast is cut where its sender has the time: its words, with all its multicasts in parts, stay
below a fraction of the endpoint bound, which is therefore the same. One none of whose recipients receives
anything else stays whole, since nobody waits. The sender's own copy stays with other recipients, since a
stream that nobody else takes does not arrive.
"""

from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.ir import PlacedTransfers
from compiler.target.tiles import COLUMNS, TILE_COUNT, TILES_PER_ROW
from compiler.target.units import Int64Array

SPARE: Final = (1, 2)
"""Part of the endpoint bound that a sender may use up, as a fraction. Policy."""

SCATTERED_SPARE: Final = (4, 5)
"""The same where multicasts are scattered. Policy."""

_HALF: Final = COLUMNS // 2
_MOST_PARTS: Final = 2 * _HALF
_MULTIPLIER: Final = 0x1E3779B97F4A7C15


def regions(tiles: Int64Array, parts_of_half: int) -> Int64Array:
    """Region of each physical tile: which half of the columns, and which of equal parts along the fold."""
    column = tiles % TILES_PER_ROW // (TILES_PER_ROW // COLUMNS)
    half = column // _HALF
    folded = np.where(half == 0, column, COLUMNS - 1 - column)
    return parts_of_half * half + folded * parts_of_half // _HALF


def are_scattered(moves: PlacedTransfers, multicasts: Int64Array, part: Int64Array) -> bool:
    """Whether most parts of the multicasts reach a set of tiles that no other one reaches.

    Args:
        moves: transfers.
        multicasts: which of them are meant.
        part: [recipients] the part that each is in, less than ``_MOST_PARTS``.
    """
    sets = np.sort(_set_numbers(moves.receiver, moves.first_recipient, multicasts, part))
    is_first, is_last = np.ones((2, len(sets)), dtype=np.bool_)
    is_first[1:] = sets[1:] != sets[:-1]
    is_last[:-1] = is_first[1:]
    return 2 * int((is_first & is_last).sum()) > len(sets)


@compiled
def _set_numbers(
    receiver: Int64Array, first_recipient: Int64Array, multicasts: Int64Array, part: Int64Array
) -> Int64Array:
    """[parts] numbers, equal for equal sets of recipients, and hardly ever for others."""
    found = np.empty(receiver.size, dtype=np.int64)
    count = 0
    place = np.empty(_MOST_PARTS, dtype=np.int64)
    for transfer in multicasts:
        place[:] = -1
        for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
            # The sum, in any order, of numbers that a multiplicative hash makes of tiles.
            mixed = (receiver[recipient] + 1) * _MULTIPLIER
            mixed = (mixed ^ mixed >> 29) * _MULTIPLIER
            mixed ^= mixed >> 32
            if place[part[recipient]] < 0:
                place[part[recipient]] = count
                found[count] = mixed
                count += 1
            else:
                found[place[part[recipient]]] += mixed
    return found[:count]


def split_multicasts(moves: PlacedTransfers) -> PlacedTransfers:
    """The transfers, with multicasts in parts where that helps."""
    multicasts = np.flatnonzero(moves.first_recipient[1:] - moves.first_recipient[:-1] > 1)
    if not len(multicasts):
        return moves
    owner = moves.transfer_of_recipient
    receives = np.bincount(moves.receiver, minlength=TILE_COUNT)
    is_alone = np.logical_and.reduceat(receives[moves.receiver] == 1, moves.first_recipient[:-1])
    busiest = max(
        np.bincount(moves.source, moves.words).max(), np.bincount(moves.receiver, moves.words[owner]).max()
    )
    part = np.zeros(len(moves.receiver), dtype=np.int64)
    stays = is_alone
    if are_scattered(moves, multicasts, _parts(moves, owner, 2)):
        attempts = ((4, SCATTERED_SPARE), (2, SCATTERED_SPARE))
    else:
        attempts = ((2, SPARE),)
    for parts_of_half, spare in attempts:
        cut = _parts(moves, owner, parts_of_half)
        number = _number_of_parts(moves.first_recipient, cut)
        sent = np.bincount(moves.source, moves.words * number, TILE_COUNT)
        has_time = sent * spare[1] <= busiest * spare[0]
        chosen = ~stays & (number > 1) & has_time[moves.source]
        part[chosen[owner]] = cut[chosen[owner]]
        stays = stays | chosen
    if not part.any():
        return moves
    order = np.lexsort((part, owner))
    is_new = np.append(True, (owner[order][1:] != owner[order][:-1]) | (part[order][1:] != part[order][:-1]))
    first = np.flatnonzero(is_new)
    whole = owner[order[first]]
    return PlacedTransfers(
        row=moves.row[whole],
        node=moves.node[whole],
        source=moves.source[whole],
        address=moves.address[whole],
        stride=moves.stride[whole],
        words=moves.words[whole],
        first_recipient=np.append(first, len(order)),
        receiver=moves.receiver[order],
        receiver_address=moves.receiver_address[order],
        receiver_stride=moves.receiver_stride[order],
    )


def _parts(moves: PlacedTransfers, owner: Int64Array, parts_of_half: int) -> Int64Array:
    """[recipients] the region of each; the sender's own copy goes with the first part of the others."""
    part = regions(moves.receiver, parts_of_half)
    home = np.flatnonzero(moves.is_loopback)
    if len(home):
        away = np.ones(len(part), dtype=np.bool_)
        away[home] = False
        others = np.full(len(moves.source), TILE_COUNT)
        np.minimum.at(others, owner[away], part[away])
        part[home] = others[owner[home]]
    return part


@compiled
def _number_of_parts(first_recipient: Int64Array, part: Int64Array) -> Int64Array:
    """[transfers] how many different parts the recipients of each are in; less than ``_MOST_PARTS``."""
    result = np.zeros(first_recipient.size - 1, dtype=np.int64)
    for transfer in range(result.size):
        seen = 0
        for recipient in range(first_recipient[transfer], first_recipient[transfer + 1]):
            bit = 1 << part[recipient]
            if seen & bit == 0:
                seen |= bit
                result[transfer] += 1
    return result
