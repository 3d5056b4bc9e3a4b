"""The search for starts where some transfers are paired: as ``earliest``, with the rules of both kinds.

Input: the columns of a demand as ``timing`` prepares them. Output: a slot for each transfer. ``events``
states the rules of paired transfers. There is one more kind of lane: the slots in which a tile's partner
sends paired items, and so uses its transmit lane.

A reception of either kind is kept as the window [write - d, write - d + items) where d leads from the
selection of an ordinary reception to its write. With that, ordinary windows are [R, N), and those of paired
ones follow by one and the same distance from their selection, their format, and their first write. So windows
of both kinds are disjoint when what they write is, two more events lie free between an ordinary one and a
paired one behind it, and what a tile controls at an event is found by asking which windows begin or end at a
certain distance from it.

A transfer that objects to a control is tried one event later: the rules about single events are many, the
events few.
"""

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.lanes import (
    LOOK_COLUMNS,
    Look,
    Window,
    after_data,
    after_reads,
    after_writes,
    insert,
    look_at,
    place_after,
    start_with_room,
)
from compiler.target.units import BoolArray, Int64Array


@compiled
def _past_receptions(
    windows: Int64Array, low: int, high: int, start: int, length: int, member: int, guard: int
) -> int:
    """The earliest start, not before ``start``, of a reception that meets no other.

    ``guard`` events lie between an ordinary one and a paired one behind it.
    """
    place = place_after(windows, Window.END.value, low, high, start - guard)
    while place < high and windows[place, Window.BEGIN.value] - guard < start + length:
        is_paired = windows[place, Window.MEMBER.value] != 0
        ahead = guard if is_paired and member == 0 else 0
        behind = guard if not is_paired and member != 0 else 0
        begin, end = windows[place, Window.BEGIN.value] - ahead, windows[place, Window.END.value] + behind
        if begin < start + length and start < end:
            start = int(end)
        place += 1
    return start


@compiled
def _at(delta: int, bit: int) -> int:
    """A bit among those of the event before, the event, and the one behind it; none if it is further away."""
    return bit << (4 * (delta + 1)) if -1 <= delta <= 1 else 0


@compiled
def _selections(begin: int, end: int, member: int, event: int) -> int:
    """Bits of the multiplexers around an event, of one window."""
    if member == 0:
        return _at(begin - event, 1) | _at(end - event, 1)
    if member == 2:
        return _at(begin - 1 - event, 4) | _at(end - 1 - event, 4)
    return 0


@compiled
def _writes(begin: int, end: int, member: int, event: int) -> int:
    """Bits of pointer and format around an event that lies ``after`` behind the one given, of one window."""
    bits = _at(begin - event, 2)
    if member > 0:
        bits |= _at(begin - 2 - event, 8) | _at(end - 2 - event, 8)
    return bits


@compiled
def _controls(windows: Int64Array, low: int, high: int, after: int, event: int) -> int:
    """What a tile controls around an event: four bits each for the event before, the event, and the next.

    The bits are 1 own multiplexer, 2 pointer, 4 multiplexer of the pair, 8 format.

    Args:
        windows: the table of all lanes.
        low: where the tile's receptions begin.
        high: the place behind the last of them.
        after: from a window's begin to the first write.
        event: the event.
    """
    bits = 0
    place = place_after(windows, Window.END.value, low, high, event - 2)
    while place < high and windows[place, Window.BEGIN.value] <= event + 2:
        begin, end = int(windows[place, Window.BEGIN.value]), int(windows[place, Window.END.value])
        bits |= _selections(begin, end, int(windows[place, Window.MEMBER.value]), event)
        place += 1
    event -= after
    place = place_after(windows, Window.END.value, low, high, event - 2)
    while place < high and windows[place, Window.BEGIN.value] <= event + 3:
        begin, end = int(windows[place, Window.BEGIN.value]), int(windows[place, Window.END.value])
        bits |= _writes(begin, end, int(windows[place, Window.MEMBER.value]), event)
        place += 1
    return bits


@compiled
def _reception_is_legal(
    windows: Int64Array,
    low: int,
    high: int,
    partner_low: int,
    partner_high: int,
    after: int,
    begin: int,
    length: int,
    member: int,
    first_send: int,
    last_send: int,
    own_send: int,
) -> bool:
    """Whether the controls of one more window agree with those of the tile, and with its sends.

    Args:
        windows: see ``_controls``.
        low: see ``_controls``.
        high: see ``_controls``.
        partner_low: where the partner's receptions begin.
        partner_high: the place behind the last of them.
        after: see ``_controls``.
        begin: the window.
        length: its length.
        member: its kind.
        first_send: where the tile's sends begin.
        last_send: the place behind the last of them.
        own_send: start of one more send, negative for none.
    """
    end = begin + length
    for number in range(5):
        if number == 0:
            event = begin + after
        elif number < 3:
            event = begin if number == 1 else end
            event += 0 if member == 0 else after - 2
        else:
            if member != 2:
                break
            event = (begin if number == 3 else end) - 1
            # The pair's multiplexer is written by one member at a time.
            if (_controls(windows, partner_low, partner_high, after, event) >> 4) & 4:
                return False
        bits = _controls(windows, low, high, after, event)
        bits |= _selections(begin, end, member, event) | _writes(begin, end, member, event - after)
        before, here, behind = bits & 15, (bits >> 4) & 15, bits >> 8
        # One of a format or a pair's multiplexer is alone, and no two are right behind it.
        if here > 4 and here != 8:
            return False
        if here >= 4 and behind & 3 == 3:
            return False
        if here == 3 and before >= 4:
            return False
        if own_send == event - 1 or (own_send == event - 2 and here == 3):
            return False
        place = place_after(windows, Window.BEGIN.value, first_send, last_send, event - 3)
        if place < last_send and int(windows[place, Window.BEGIN.value]) == event - 2:
            if here == 3:
                return False
            place += 1
        if place < last_send and int(windows[place, Window.BEGIN.value]) == event - 1:
            return False
    return True


@compiled
def earliest_paired_starts(
    order: Int64Array,
    first: Int64Array,
    items: Int64Array,
    is_paired: BoolArray,
    source: Int64Array,
    first_recipient: Int64Array,
    receiver: Int64Array,
    member: Int64Array,
    to_window: Int64Array,
    to_write: Int64Array,
    after_window: Int64Array,
    read_low: Int64Array,
    read_high: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
    first_dependence: Int64Array,
    before: Int64Array,
    before_recipient: Int64Array,
    after_recipient: Int64Array,
    room: Int64Array,
    drain: int,
    guard: int,
    partner_lane: int,
) -> Int64Array:
    """The slot of each transfer. Arguments not named here are those of ``earliest.earliest_starts``.

    Args:
        order: see there.
        first: see there.
        items: see there.
        is_paired: [transfers].
        source: see there.
        first_recipient: see there.
        receiver: see there.
        member: [recipients] column ``Window.MEMBER`` of each.
        to_window: [recipients] from the start of the send to the window of the reception.
        to_write: see there.
        after_window: [tiles] from the begin of a window to the first write.
        read_low: see there.
        read_high: see there.
        write_low: see there.
        write_high: see there.
        first_dependence: see there.
        before: see there.
        before_recipient: see there.
        after_recipient: see there.
        room: [3 * tiles + 1] where the sends of each tile are kept, then its receives, then the paired sends
            of its partner.
        drain: see there.
        guard: events between an ordinary reception and a paired one behind it.
        partner_lane: bit in which the numbers of partners differ.
    """
    tiles = after_window.size
    slot = np.zeros(source.size, dtype=np.int64)
    windows = np.empty((room[-1], 4), dtype=np.int64)
    stop = room[:-1].copy()
    solid = room[:-1].copy()
    full = np.zeros(stop.size, dtype=np.int64)
    shortest = int(items.min()) if items.size else 0
    most = 0
    for transfer in range(source.size):
        most = max(most, int(first_recipient[transfer + 1] - first_recipient[transfer]))
    looks = np.empty((most + 4, LOOK_COLUMNS), dtype=np.int64)
    for transfer in order:
        length = int(items[transfer])
        sender = int(source[transfer])
        partner = sender ^ partner_lane
        recipients = range(int(first_recipient[transfer]), int(first_recipient[transfer + 1]))
        start = max(
            int(first[transfer]),
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
        # First the lanes that it takes, then those that it only needs to be free.
        count = look_at(looks, 0, sender, 0, solid, transfer)
        for recipient in recipients:
            lane, ahead = tiles + int(receiver[recipient]), int(to_window[recipient])
            count = look_at(looks, count, lane, ahead, solid, recipient)
        taken = count
        if is_paired[transfer]:
            taken = count = look_at(looks, count, 2 * tiles + partner, 0, solid, transfer)
            count = look_at(looks, count, partner, 0, solid, transfer)
        count = look_at(looks, count, 2 * tiles + sender, 0, solid, transfer)
        for look in looks[:count]:
            start = max(start, int(full[look[Look.LANE.value]] - look[Look.AHEAD.value]))

        is_settled = False
        while not is_settled:
            tried = start_with_room(windows, stop, looks, count, start, length)
            start = tried
            for recipient in recipients:
                lane = tiles + int(receiver[recipient])
                ahead = int(to_window[recipient])
                low, high = int(room[lane]), int(stop[lane])
                window = _past_receptions(
                    windows, low, high, start + ahead, length, int(member[recipient]), guard
                )
                start = window - ahead
            # The sender: its first instruction, and nothing written to the element that it reads.
            low, high = int(room[tiles + sender]), int(stop[tiles + sender])
            after = int(after_window[sender])
            bits = _controls(windows, low, high, after, start + 1)
            if (bits >> 4) & 15 != 0 or bits >> 8 == 3:
                start += 1
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
                lane = tiles + tile
                beside = tiles + (tile ^ partner_lane)
                while not _reception_is_legal(
                    windows,
                    int(room[lane]),
                    int(stop[lane]),
                    int(room[beside]),
                    int(stop[beside]),
                    int(after_window[tile]),
                    start + int(to_window[recipient]),
                    length,
                    int(member[recipient]),
                    int(room[tile]),
                    int(stop[tile]),
                    start if tile == sender else -9,
                ):
                    start += 1
                distance = int(to_write[recipient])
                start = (
                    after_reads(
                        windows,
                        int(room[tile]),
                        int(stop[tile]),
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
        for look in looks[:taken]:
            place = insert(windows, stop, solid, full, shortest, look, start, length)
            if tiles <= look[Look.LANE.value] < 2 * tiles:
                windows[place, Window.MEMBER.value] = member[look[Look.OWNER.value]]
    return slot
