"""The search for starts: each transfer in turn gets the earliest slot that no rule forbids.

Input: the columns of a demand as ``timing`` prepares them. Output: a slot for each transfer. ``timing``
states the rules; here each is a set of intervals of forbidden starts. The start is pushed past the interval
of the first rule that objects, then again, until none does. Each push goes to the end of a forbidden
interval, so nothing legal is skipped.

**Lanes.** The sends and the receives of each tile are a lane each: windows in order of time, in a stretch of
three flat columns. A bisection finds where to look, and what follows is a walk over the neighbours that
overlap. An insertion moves what is later on the tile. The leading windows of a lane with no gap between them
that the shortest transfer of the phase fits into are its *solid* part; it only grows, and no search looks
there. In an order that is nearly that of time this leaves a step or two for each transfer, whatever the
number of windows.

**Elements** are compared only on tiles whose reads and writes, taken as two ranges, meet at all; on others
nothing can be shared.

Rejected: a calendar of single slots (time and memory grow with the words, not with the transfers), and a
sweep over time for all tiles at once (it decides the order, too).
"""

import numpy as np

from compiler.compiled import compiled
from compiler.target.units import BoolArray, Int64Array


@compiled
def _after(ascending: Int64Array, low: int, high: int, time: int) -> int:
    """The first of ``ascending[low:high]`` beyond ``time``; most questions are about the end."""
    if low == high or ascending[high - 1] <= time:
        return high
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _changes(begins: Int64Array, ends: Int64Array, low: int, high: int, event: int) -> bool:
    """Whether one of the windows begins or ends at an event."""
    place = _after(ends, low, high, event - 1)
    return place < high and (int(ends[place]) == event or int(begins[place]) == event)


@compiled
def _begins(begins: Int64Array, low: int, high: int, event: int) -> bool:
    """Whether one of the windows begins at an event."""
    place = _after(begins, low, high, event - 1)
    return place < high and int(begins[place]) == event


@compiled
def _past(begins: Int64Array, ends: Int64Array, low: int, high: int, start: int, length: int) -> int:
    """The earliest start, not before ``start``, of an interval that meets none of ``[begins, ends)``."""
    place = _after(ends, low, high, start)
    while place < high and begins[place] < start + length:
        start = int(ends[place])
        place += 1
    return start


@compiled
def _share(
    low: Int64Array, high: Int64Array, span: int, other_low: Int64Array, other_high: Int64Array, other: int
) -> bool:
    """Whether two spans share an element in an iteration."""
    for iteration in range(low.shape[0]):
        if (
            low[iteration, span] <= other_high[iteration, other]
            and other_low[iteration, other] <= high[iteration, span]
        ):
            return True
    return False


@compiled
def _insert(
    begins: Int64Array,
    ends: Int64Array,
    owners: Int64Array,
    stop: Int64Array,
    solid: Int64Array,
    full: Int64Array,
    shortest: int,
    tile: int,
    start: int,
    length: int,
    owner: int,
) -> None:
    """Put a window into the lane of a tile, and let its solid part grow."""
    high = int(stop[tile])
    place = _after(ends, int(solid[tile]), high, start)
    for index in range(high, place, -1):
        begins[index] = begins[index - 1]
        ends[index] = ends[index - 1]
        owners[index] = owners[index - 1]
    begins[place] = start
    ends[place] = start + length
    owners[place] = owner
    high += 1
    stop[tile] = high
    place = int(solid[tile])
    end = int(full[tile])
    while place < high and int(begins[place]) - end < shortest:
        end = int(ends[place])
        place += 1
    solid[tile] = place
    full[tile] = end


@compiled
def _first_instruction_is_bare(
    begins: Int64Array, ends: Int64Array, low: int, high: int, after: int, start: int
) -> bool:
    """Whether a tile that receives in these windows may start a send: no control in it, no two behind it."""
    if low == high:
        return True
    if _changes(begins, ends, low, high, start + 1) or _begins(begins, low, high, start + 1 - after):
        return False
    return not (
        _begins(begins, low, high, start + 2 - after) and _changes(begins, ends, low, high, start + 2)
    )


@compiled
def _controls_are_free(
    begins: Int64Array,
    ends: Int64Array,
    low: int,
    high: int,
    after: int,
    select: int,
    release: int,
    sends: Int64Array,
    first_send: int,
    last_send: int,
) -> bool:
    """The same from the other side: whether a reception in [select, release) leaves all sends their place.

    Args:
        begins: selections of the tile's receptions, in places ``low`` to ``high``.
        ends: their releases.
        low: see ``begins``.
        high: see ``begins``.
        after: events from a selection to its write.
        select: event of the selection.
        release: event of the release.
        sends: starts of the tile's sends, in places ``first_send`` to ``last_send``.
        first_send: see ``sends``.
        last_send: see ``sends``.
    """
    if first_send == last_send:
        return True
    write = select + after
    # A send that starts one slot before one of the three events has it in its first instruction; one that
    # starts two slots before must not have a second control there.
    place = _after(sends, first_send, last_send, select - 3)
    if place < last_send and int(sends[place]) == select - 2:
        if _begins(begins, low, high, select - after):
            return False
        place += 1
    if place < last_send and int(sends[place]) == select - 1:
        return False
    place = _after(sends, first_send, last_send, release - 3)
    if place < last_send and int(sends[place]) == release - 2:
        if release == write or _begins(begins, low, high, release - after):
            return False
        place += 1
    if place < last_send and int(sends[place]) == release - 1:
        return False
    place = _after(sends, first_send, last_send, write - 3)
    if place < last_send and int(sends[place]) == write - 2:
        if release == write or _changes(begins, ends, low, high, write):
            return False
        place += 1
    return not (place < last_send and int(sends[place]) == write - 1)


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
    send_room: Int64Array,
    receive_room: Int64Array,
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
        to_select: [recipients] from the start of the send to R.
        to_write: [tiles] from R to P.
        read_low: [iterations, transfers] lowest memory element that is read.
        read_high: [iterations, transfers] the highest.
        write_low: [iterations, recipients] lowest memory element that is written.
        write_high: [iterations, recipients] the highest.
        may_share: [tiles] whether a read and a write of the tile can share an element.
        alike: [transfers] a number for those to which all rules apply alike, negative where there is none.
        first_dependence: [transfers + 1] rows of the next three columns, by the transfer that waits.
        before: whom it waits for.
        before_recipient: at which of that one's recipients, or negative at its sender.
        after_recipient: which of its own recipients waits, or negative for its sender.
        send_room: [tiles + 1] where the sends of each tile are kept.
        receive_room: [tiles + 1] where its receives are kept, as windows [R, N).
        drain: events after a payload that count as part of it for memory elements.
    """
    slot = np.zeros(source.size, dtype=np.int64)
    send_begin = np.zeros(source.size, dtype=np.int64)
    send_end = np.zeros(source.size, dtype=np.int64)
    send_of = np.zeros(source.size, dtype=np.int64)
    receive_begin = np.zeros(receiver.size, dtype=np.int64)
    receive_end = np.zeros(receiver.size, dtype=np.int64)
    receive_of = np.zeros(receiver.size, dtype=np.int64)
    send_stop = send_room[:-1].copy()
    send_solid = send_room[:-1].copy()
    send_full = np.zeros(send_stop.size, dtype=np.int64)
    receive_stop = receive_room[:-1].copy()
    receive_solid = receive_room[:-1].copy()
    receive_full = np.zeros(receive_stop.size, dtype=np.int64) + 1
    shortest = int(items.min()) if items.size else 0
    # Lanes only fill: whoever is alike starts later.
    settled = np.zeros(alike.max() + 1 if alike.size else 0, dtype=np.int64)
    for position in range(order.size):
        transfer = int(order[position])
        length = int(items[transfer])
        sender = int(source[transfer])
        recipients = range(int(first_recipient[transfer]), int(first_recipient[transfer + 1]))
        start = max(int(first[transfer]), int(send_full[sender]))
        if alike[transfer] >= 0:
            start = max(start, int(settled[alike[transfer]]))
        for recipient in recipients:
            start = max(start, int(receive_full[receiver[recipient]]) - int(to_select[recipient]))
        for row in range(int(first_dependence[transfer]), int(first_dependence[transfer + 1])):
            other = int(before[row])
            time = int(slot[other]) + int(items[other])
            through = int(before_recipient[row])
            if through >= 0:
                time += int(to_select[through]) + int(to_write[receiver[through]])
            through = int(after_recipient[row])
            if through >= 0:
                time -= int(to_select[through]) + int(to_write[receiver[through]])
            start = max(start, time)

        is_settled = False
        while not is_settled:
            # A place in all lanes.
            tried = start - 1
            while start != tried:
                tried = start
                start = _past(
                    send_begin, send_end, int(send_solid[sender]), int(send_stop[sender]), start, length
                )
                for recipient in recipients:
                    tile = int(receiver[recipient])
                    ahead = int(to_select[recipient])
                    low, high = int(receive_solid[tile]), int(receive_stop[tile])
                    start = _past(receive_begin, receive_end, low, high, start + ahead, length) - ahead
            # The sender: its first instruction, and nothing written to the element that it reads.
            low, high = int(receive_room[sender]), int(receive_stop[sender])
            after = int(to_write[sender])
            if not _first_instruction_is_bare(receive_begin, receive_end, low, high, after, start):
                start += 1
            if may_share[sender]:
                place = _after(receive_end, low, high, start - after - drain)
                while place < high and int(receive_begin[place]) + after < start + length:
                    if _share(read_low, read_high, transfer, write_low, write_high, int(receive_of[place])):
                        start = int(receive_end[place]) + after + drain
                    place += 1
            # Each recipient: the same from the other side.
            for recipient in recipients:
                tile = int(receiver[recipient])
                after = int(to_write[tile])
                select = start + int(to_select[recipient])
                release = select + length
                low, high = int(send_room[tile]), int(send_stop[tile])
                if not _controls_are_free(
                    receive_begin,
                    receive_end,
                    int(receive_room[tile]),
                    int(receive_stop[tile]),
                    after,
                    select,
                    release,
                    send_begin,
                    low,
                    high,
                ):
                    start += 1
                elif (
                    tile == sender
                    and release == start + 2
                    and (
                        release == select + after
                        or _begins(
                            receive_begin,
                            int(receive_room[tile]),
                            int(receive_stop[tile]),
                            release - after,
                        )
                    )
                ):
                    # Its own send is in no lane yet: a release right behind its first instruction is a second
                    # control there if a pointer is set at that event.
                    start += 1
                if may_share[tile]:
                    write = start + int(to_select[recipient]) + after
                    place = _after(send_end, low, high, write)
                    while place < high and int(send_begin[place]) < write + length + drain:
                        if _share(read_low, read_high, int(send_of[place]), write_low, write_high, recipient):
                            write = int(send_end[place])
                        place += 1
                    start = write - after - int(to_select[recipient])
            is_settled = start == tried

        slot[transfer] = start
        if alike[transfer] >= 0:
            settled[alike[transfer]] = start + length
        _insert(
            send_begin,
            send_end,
            send_of,
            send_stop,
            send_solid,
            send_full,
            shortest,
            sender,
            start,
            length,
            transfer,
        )
        for recipient in recipients:
            _insert(
                receive_begin,
                receive_end,
                receive_of,
                receive_stop,
                receive_solid,
                receive_full,
                shortest,
                int(receiver[recipient]),
                start + int(to_select[recipient]),
                length,
                recipient,
            )
    return slot
