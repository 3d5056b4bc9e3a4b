"""The search for starts: for each transfer in turn the earliest slot that no rule forbids.

Input: the columns of a demand as ``timing`` prepares them. Output: a slot for each transfer. ``timing``
states the rules; here each is a set of intervals of forbidden starts. The start is pushed past the interval
of the first rule that objects, then again, until none does. Each push goes to the end of a forbidden
interval, so nothing legal is skipped.

The sends and the receives of each tile are a lane each (``lanes``).

**Elements** are compared only on tiles whose reads and writes, taken as two ranges, meet at all; on others
nothing can be shared.

Rejected: a calendar of single slots (time and memory grow with the words, not with the transfers), and a
sweep over time for all tiles at once (it decides the order, too).
"""

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.lanes import (
    LOOK_COLUMNS,
    Window,
    after_data,
    after_reads,
    after_writes,
    insert,
    look_at,
    onward,
    place_after,
    start_with_room,
)
from compiler.target.units import BoolArray, Int64Array


@compiled
def _changes(windows: Int64Array, low: int, high: int, event: int) -> bool:
    """Whether one of the windows begins or ends at an event."""
    place = place_after(windows, Window.END.value, low, high, event - 1)
    return place < high and (
        int(windows[place, Window.END.value]) == event or int(windows[place, Window.BEGIN.value]) == event
    )


@compiled
def _begins(windows: Int64Array, low: int, high: int, event: int) -> bool:
    """Whether one of the windows begins at an event."""
    place = place_after(windows, Window.END.value, low, high, event)
    return place < high and int(windows[place, Window.BEGIN.value]) == event


@compiled
def _first_instruction_is_bare(windows: Int64Array, low: int, high: int, after: int, start: int) -> bool:
    """Whether a tile that receives in these windows may start a send: no control in it, no two behind it."""
    if low == high:
        return True
    if _changes(windows, low, high, start + 1) or _begins(windows, low, high, start + 1 - after):
        return False
    return not (_begins(windows, low, high, start + 2 - after) and _changes(windows, low, high, start + 2))


@compiled
def _controls_are_free(
    windows: Int64Array,
    low: int,
    high: int,
    after: int,
    select: int,
    release: int,
    first_send: int,
    last_send: int,
) -> bool:
    """The same from the other side: whether a reception in [select, release) leaves all sends their place.

    Args:
        windows: the table of all lanes.
        low: where the tile's receptions begin, windows from selection to release.
        high: the place behind the last of them.
        after: events from a selection to its write.
        select: event of the selection.
        release: event of the release.
        first_send: where the tile's sends begin.
        last_send: the place behind the last of them.
    """
    if first_send == last_send:
        return True
    write = select + after
    # A send that starts one slot before one of the three events has it in its first instruction; one that
    # starts two slots before must not have a second control there.
    first = place_after(windows, Window.BEGIN.value, first_send, last_send, select - 3)
    place = first
    if place < last_send and int(windows[place, Window.BEGIN.value]) == select - 2:
        if _begins(windows, low, high, select - after):
            return False
        place += 1
    if place < last_send and int(windows[place, Window.BEGIN.value]) == select - 1:
        return False
    place = onward(windows, Window.BEGIN.value, first, last_send, release - 3)
    if place < last_send and int(windows[place, Window.BEGIN.value]) == release - 2:
        if release == write or _begins(windows, low, high, release - after):
            return False
        place += 1
    if place < last_send and int(windows[place, Window.BEGIN.value]) == release - 1:
        return False
    place = onward(windows, Window.BEGIN.value, first, last_send, write - 3)
    if place < last_send and int(windows[place, Window.BEGIN.value]) == write - 2:
        if release == write or _changes(windows, low, high, write):
            return False
        place += 1
    return not (place < last_send and int(windows[place, Window.BEGIN.value]) == write - 1)


@compiled
def earliest_starts(
    order: Int64Array,
    first: Int64Array,
    items: Int64Array,
    source: Int64Array,
    first_recipient: Int64Array,
    receiver: Int64Array,
    to_select: Int64Array,
    to_write: Int64Array,
    after_select: Int64Array,
    read_low: Int64Array,
    read_high: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
    may_share: BoolArray,
    alike: Int64Array,
    first_dependence: Int64Array,
    before: Int64Array,
    before_recipient: Int64Array,
    after_recipient: Int64Array,
    room: Int64Array,
    drain: int,
) -> Int64Array:
    """The slot of each transfer.

    Args:
        order: who chooses first.
        first: [transfers] the least slot.
        items: [transfers] slots that each sends for.
        source: [transfers] physical sender.
        first_recipient: [transfers + 1].
        receiver: [recipients] physical receiver.
        to_select: [recipients] from the start of the send to the selection.
        to_write: [recipients] from the start of the send to the first write.
        after_select: [tiles] from a selection to the first write.
        read_low: [iterations, transfers] lowest memory element that is read.
        read_high: [iterations, transfers] the highest.
        write_low: [iterations, recipients] lowest memory element that is written.
        write_high: [iterations, recipients] the highest.
        may_share: [tiles] whether a read and a write of the tile can share an element.
        alike: [transfers] a number for those to which all rules apply alike, negative where there is none.
        first_dependence: see ``lanes.after_data``.
        before: see there.
        before_recipient: see there.
        after_recipient: see there.
        room: [2 * tiles + 1] where the sends of each tile are kept, then its receives, as windows from
            selection to release.
        drain: events after a payload that count as part of it for memory elements.
    """
    tiles = after_select.size
    slot = np.zeros(source.size, dtype=np.int64)
    windows = np.empty((source.size + receiver.size, 3), dtype=np.int64)
    stop = room[:-1].copy()
    solid = room[:-1].copy()
    full = np.zeros(stop.size, dtype=np.int64)
    full[tiles:] = 1
    shortest = int(items.min()) if items.size else 0
    most = 0
    for transfer in range(source.size):
        most = max(most, int(first_recipient[transfer + 1] - first_recipient[transfer]))
    looks = np.empty((most + 1, LOOK_COLUMNS), dtype=np.int64)
    # Lanes only fill: whoever is alike starts later.
    settled = np.zeros(alike.max() + 1 if alike.size else 0, dtype=np.int64)
    for transfer in order:
        length = int(items[transfer])
        sender = int(source[transfer])
        recipients = range(int(first_recipient[transfer]), int(first_recipient[transfer + 1]))
        start = max(int(first[transfer]), int(full[sender]))
        if alike[transfer] >= 0:
            start = max(start, int(settled[alike[transfer]]))
        start = max(
            start,
            after_data(
                transfer,
                slot,
                items,
                to_write,
                first_dependence,
                before,
                before_recipient,
                after_recipient,
            ),
        )
        count = look_at(looks, 0, sender, 0, solid, transfer)
        for recipient in recipients:
            lane, ahead = tiles + int(receiver[recipient]), int(to_select[recipient])
            start = max(start, int(full[lane]) - ahead)
            count = look_at(looks, count, lane, ahead, solid, recipient)

        is_settled = False
        while not is_settled:
            tried = start_with_room(windows, stop, looks, count, start, length)
            start = tried
            # The sender: its first instruction, and nothing written to the element that it reads.
            low, high = int(room[tiles + sender]), int(stop[tiles + sender])
            after = int(after_select[sender])
            if not _first_instruction_is_bare(windows, low, high, after, start):
                start += 1
            if may_share[sender]:
                start = after_writes(
                    windows,
                    low,
                    high,
                    start,
                    length,
                    after,
                    drain,
                    read_low,
                    read_high,
                    write_low,
                    write_high,
                    transfer,
                )
            # Each recipient: the same from the other side.
            for recipient in recipients:
                tile = int(receiver[recipient])
                after = int(after_select[tile])
                select = start + int(to_select[recipient])
                low, high = int(room[tiles + tile]), int(stop[tiles + tile])
                first_send, last_send = int(room[tile]), int(stop[tile])
                if (
                    not _controls_are_free(
                        windows, low, high, after, select, select + length, first_send, last_send
                    )
                ) or (
                    # Its own send is in no lane yet: a release right behind its first instruction is a second
                    # control there if a pointer is set at that event.
                    tile == sender
                    and select + length == start + 2
                    and (length == after or _begins(windows, low, high, start + 2 - after))
                ):
                    start += 1
                if may_share[tile]:
                    distance = int(to_write[recipient])
                    start = (
                        after_reads(
                            windows,
                            first_send,
                            last_send,
                            start + distance,
                            length + drain,
                            read_low,
                            read_high,
                            write_low,
                            write_high,
                            recipient,
                        )
                        - distance
                    )
            is_settled = start == tried

        slot[transfer] = start
        if alike[transfer] >= 0:
            settled[alike[transfer]] = start + length
        for look in looks[:count]:
            insert(windows, stop, solid, full, shortest, look, start, length)
    return slot
