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

**When.** A multicast is cut where its sender has the time: its words, with all its multicasts in parts, stay
below ``SPARE`` of the endpoint bound, which is therefore the same. One none of whose recipients receives
anything else stays whole, since nobody waits. The sender's own copy stays with other recipients, since a
stream that nobody else takes does not arrive.
"""

from typing import Final

import numpy as np

from compiler.exchange.ir import PlacedTransfers
from compiler.target.tiles import COLUMNS, TILE_COUNT, TILES_PER_ROW
from compiler.target.units import Int64Array

SPARE: Final = (1, 2)
"""Part of the endpoint bound that a sender may use up, as a fraction. Policy."""

_HALF: Final = COLUMNS // 2


def regions(tiles: Int64Array) -> Int64Array:
    """Region of each physical tile, 0 .. 3: which half of the columns, and near or far along the fold."""
    column = tiles % TILES_PER_ROW // (TILES_PER_ROW // COLUMNS)
    half = column // _HALF
    folded = np.where(half == 0, column, COLUMNS - 1 - column)
    return 2 * half + folded // (_HALF // 2)


def split_multicasts(moves: PlacedTransfers) -> PlacedTransfers:
    """The transfers, with multicasts in parts where that helps."""
    if len(moves.receiver) == len(moves.source):
        return moves
    owner = moves.transfer_of_recipient
    region = regions(moves.receiver)
    home = np.flatnonzero(moves.is_loopback)
    part = region.copy()
    part[home] = -1
    # The sender's own copy goes with the first part of the others.
    others = np.full(len(moves.source), TILE_COUNT)
    np.minimum.at(others, owner[part >= 0], part[part >= 0])
    part[home] = others[owner[home]]
    order = np.lexsort((part, owner))
    is_new = np.append(True, (owner[order][1:] != owner[order][:-1]) | (part[order][1:] != part[order][:-1]))
    parts = np.bincount(owner[order][is_new], minlength=len(moves.source))

    receives = np.bincount(moves.receiver, minlength=TILE_COUNT)
    busiest = max(
        np.bincount(moves.source, moves.words).max(), np.bincount(moves.receiver, moves.recipient_words).max()
    )
    is_alone = np.logical_and.reduceat(receives[moves.receiver] == 1, moves.first_recipient[:-1])
    sent = np.bincount(moves.source, moves.words * parts, TILE_COUNT)
    has_time = sent * SPARE[1] <= busiest * SPARE[0]
    stays = (parts == 1) | is_alone | ~has_time[moves.source]
    if stays.all():
        return moves
    part[stays[owner]] = 0
    order = np.lexsort((part, owner))
    is_new = np.append(True, (owner[order][1:] != owner[order][:-1]) | (part[order][1:] != part[order][:-1]))
    first = np.flatnonzero(is_new)
    chosen = owner[order[first]]
    return PlacedTransfers(
        row=moves.row[chosen],
        node=moves.node[chosen],
        source=moves.source[chosen],
        address=moves.address[chosen],
        stride=moves.stride[chosen],
        words=moves.words[chosen],
        first_recipient=np.append(first, len(order)),
        receiver=moves.receiver[order],
        receiver_address=moves.receiver_address[order],
        receiver_stride=moves.receiver_stride[order],
    )
