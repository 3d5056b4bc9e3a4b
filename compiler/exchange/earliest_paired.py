"""The search for starts where some transfers are paired: as ``earliest``, with the rules of both kinds.

Input: the columns of a demand as ``timing`` prepares them. Output: a slot for each transfer. ``events``
states the rules of paired transfers. The lanes are those of ``earliest`` and one more: the slots in which a
tile's partner sends paired items, and so uses its transmit lane.

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
from compiler.target.units import BoolArray, Int64Array


@compiled
def _place_after(ascending: Int64Array, low: int, high: int, time: int) -> int:
    """The first of ``ascending[low:high]`` beyond ``time``."""
    while low < high:
        middle = (low + high) >> 1
        if ascending[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _past(begins: Int64Array, ends: Int64Array, low: int, high: int, start: int, length: int) -> int:
    """The earliest start, not before ``start``, of an interval that meets none of ``[begins, ends)``."""
    place = _place_after(ends, low, high, start)
    while place < high and begins[place] < start + length:
        start = int(ends[place])
        place += 1
    return start


@compiled
def _past_receptions(
    begins: Int64Array,
    ends: Int64Array,
    members: Int64Array,
    low: int,
    high: int,
    start: int,
    length: int,
    member: int,
    guard: int,
) -> int:
    """The same for a reception, with ``guard`` events between an ordinary one and a paired one behind it."""
    place = _place_after(ends, low, high, start - guard)
    while place < high and begins[place] - guard < start + length:
        is_paired = members[place] != 0
        ahead = guard if is_paired and member == 0 else 0
        behind = guard if not is_paired and member != 0 else 0
        if begins[place] - ahead < start + length and start < ends[place] + behind:
            start = int(ends[place]) + behind
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
def _controls(
    begins: Int64Array,
    ends: Int64Array,
    members: Int64Array,
    low: int,
    high: int,
    after: int,
    event: int,
) -> int:
    """What a tile controls around an event: four bits each for the event before, the event, and the next.

    The bits are 1 own multiplexer, 2 pointer, 4 multiplexer of the pair, 8 format.

    Args:
        begins: windows of the tile's receptions, in places ``low`` to ``high``.
        ends: their ends.
        members: 0 ordinary, 1 late member of a pair, 2 early member.
        low: see ``begins``.
        high: see ``begins``.
        after: from a window's begin to the first write.
        event: the event.
    """
    bits = 0
    place = _place_after(ends, low, high, event - 2)
    while place < high and begins[place] <= event + 2:
        bits |= _selections(int(begins[place]), int(ends[place]), int(members[place]), event)
        place += 1
    event -= after
    place = _place_after(ends, low, high, event - 2)
    while place < high and begins[place] <= event + 3:
        bits |= _writes(int(begins[place]), int(ends[place]), int(members[place]), event)
        place += 1
    return bits


@compiled
def _reception_is_legal(
    begins: Int64Array,
    ends: Int64Array,
    members: Int64Array,
    low: int,
    high: int,
    partner_low: int,
    partner_high: int,
    after: int,
    begin: int,
    length: int,
    member: int,
    sends: Int64Array,
    first_send: int,
    last_send: int,
    own_send: int,
) -> bool:
    """Whether the controls of one more window agree with those of the tile, and with its sends.

    Args:
        begins: see ``_controls``.
        ends: see ``_controls``.
        members: see ``_controls``.
        low: see ``_controls``.
        high: see ``_controls``.
        partner_low: places of the partner's windows.
        partner_high: see ``partner_low``.
        after: see ``_controls``.
        begin: the window.
        length: its length.
        member: its kind.
        sends: starts of the tile's sends, in places ``first_send`` to ``last_send``.
        first_send: see ``sends``.
        last_send: see ``sends``.
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
            if (_controls(begins, ends, members, partner_low, partner_high, after, event) >> 4) & 4:
                return False
        bits = _controls(begins, ends, members, low, high, after, event)
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
        place = _place_after(sends, first_send, last_send, event - 3)
        if place < last_send and int(sends[place]) == event - 2:
            if here == 3:
                return False
            place += 1
        if place < last_send and int(sends[place]) == event - 1:
            return False
    return True


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
def _grown(begins: Int64Array, ends: Int64Array, high: int, solid: int, full: int, shortest: int) -> int:
    """The place behind the solid part of a lane, which reached up to the windows from ``solid`` on."""
    while solid < high and int(begins[solid]) - full < shortest:
        full = int(ends[solid])
        solid += 1
    return solid


@compiled
def _insert(column: Int64Array, place: int, high: int, value: int) -> None:
    """Put a value at ``place`` of ``column[..high]``, moving what follows."""
    for index in range(high, place, -1):
        column[index] = column[index - 1]
    column[place] = value


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
    read_low: Int64Array,
    read_high: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
    first_dependence: Int64Array,
    before: Int64Array,
    before_recipient: Int64Array,
    after_recipient: Int64Array,
    send_room: Int64Array,
    lent_room: Int64Array,
    receive_room: Int64Array,
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
        member: [recipients] 0 of an ordinary transfer, 1 late member of a pair, 2 early member.
        to_window: [recipients] from the start of the send to the window of the reception.
        to_write: [tiles] from the begin of a window to the first write.
        read_low: see there.
        read_high: see there.
        write_low: see there.
        write_high: see there.
        first_dependence: see there.
        before: see there.
        before_recipient: see there.
        after_recipient: see there.
        send_room: see there.
        lent_room: [tiles + 1] where the paired sends of each tile's partner are kept.
        receive_room: see there.
        drain: see there.
        guard: events between an ordinary reception and a paired one behind it.
        partner_lane: bit in which the numbers of partners differ.
    """
    slot = np.zeros(source.size, dtype=np.int64)
    send_begin = np.zeros(source.size, dtype=np.int64)
    send_end = np.zeros(source.size, dtype=np.int64)
    send_of = np.zeros(source.size, dtype=np.int64)
    lent_begin = np.zeros(lent_room[-1], dtype=np.int64)
    lent_end = np.zeros(lent_room[-1], dtype=np.int64)
    receive_begin = np.zeros(receiver.size, dtype=np.int64)
    receive_end = np.zeros(receiver.size, dtype=np.int64)
    receive_of = np.zeros(receiver.size, dtype=np.int64)
    receive_member = np.zeros(receiver.size, dtype=np.int64)
    send_stop = send_room[:-1].copy()
    lent_stop = lent_room[:-1].copy()
    receive_stop = receive_room[:-1].copy()
    send_solid = send_room[:-1].copy()
    send_full = np.zeros(send_solid.size, dtype=np.int64)
    receive_solid = receive_room[:-1].copy()
    receive_full = np.zeros(receive_solid.size, dtype=np.int64)
    shortest = int(items.min()) if items.size else 0
    for position in range(order.size):
        transfer = int(order[position])
        length = int(items[transfer])
        sender = int(source[transfer])
        partner = sender ^ partner_lane
        recipients = range(int(first_recipient[transfer]), int(first_recipient[transfer + 1]))
        start = max(int(first[transfer]), int(send_full[sender]))
        for recipient in recipients:
            start = max(start, int(receive_full[receiver[recipient]]) - int(to_window[recipient]))
        for row in range(int(first_dependence[transfer]), int(first_dependence[transfer + 1])):
            other = int(before[row])
            time = int(slot[other]) + int(items[other])
            through = int(before_recipient[row])
            if through >= 0:
                time += int(to_window[through]) + int(to_write[receiver[through]])
            through = int(after_recipient[row])
            if through >= 0:
                time -= int(to_window[through]) + int(to_write[receiver[through]])
            start = max(start, time)

        is_settled = False
        while not is_settled:
            # A place in all lanes.
            tried = start - 1
            while start != tried:
                tried = start
                low, high = int(send_solid[sender]), int(send_stop[sender])
                start = _past(send_begin, send_end, low, high, start, length)
                low, high = int(lent_room[sender]), int(lent_stop[sender])
                start = _past(lent_begin, lent_end, low, high, start, length)
                if is_paired[transfer]:
                    low, high = int(send_room[partner]), int(send_stop[partner])
                    start = _past(send_begin, send_end, low, high, start, length)
                for recipient in recipients:
                    tile = int(receiver[recipient])
                    ahead = int(to_window[recipient])
                    # The last window of the solid part may need its guard.
                    low = max(int(receive_solid[tile]) - 1, int(receive_room[tile]))
                    high = int(receive_stop[tile])
                    kind = int(member[recipient])
                    window = _past_receptions(
                        receive_begin,
                        receive_end,
                        receive_member,
                        low,
                        high,
                        start + ahead,
                        length,
                        kind,
                        guard,
                    )
                    start = window - ahead
            # The sender: its first instruction, and nothing written to the element that it reads.
            low, high = int(receive_room[sender]), int(receive_stop[sender])
            after = int(to_write[sender])
            bits = _controls(receive_begin, receive_end, receive_member, low, high, after, start + 1)
            if (bits >> 4) & 15 != 0 or bits >> 8 == 3:
                start += 1
            place = _place_after(receive_end, low, high, start - after - drain)
            while place < high and int(receive_begin[place]) + after < start + length:
                if _share(read_low, read_high, transfer, write_low, write_high, int(receive_of[place])):
                    start = int(receive_end[place]) + after + drain
                place += 1
            # Each recipient: the same from the other side.
            for recipient in recipients:
                tile = int(receiver[recipient])
                beside = tile ^ partner_lane
                after = int(to_write[tile])
                low, high = int(send_room[tile]), int(send_stop[tile])
                while not _reception_is_legal(
                    receive_begin,
                    receive_end,
                    receive_member,
                    int(receive_room[tile]),
                    int(receive_stop[tile]),
                    int(receive_room[beside]),
                    int(receive_stop[beside]),
                    after,
                    start + int(to_window[recipient]),
                    length,
                    int(member[recipient]),
                    send_begin,
                    low,
                    high,
                    start if tile == sender else -9,
                ):
                    start += 1
                write = start + int(to_window[recipient]) + after
                place = _place_after(send_end, low, high, write)
                while place < high and int(send_begin[place]) < write + length + drain:
                    if _share(read_low, read_high, int(send_of[place]), write_low, write_high, recipient):
                        write = int(send_end[place])
                    place += 1
                start = write - after - int(to_window[recipient])
            is_settled = start == tried

        slot[transfer] = start
        stop = int(send_stop[sender])
        place = _place_after(send_end, int(send_room[sender]), stop, start)
        _insert(send_begin, place, stop, start)
        _insert(send_end, place, stop, start + length)
        _insert(send_of, place, stop, transfer)
        send_stop[sender] += 1
        low = int(send_solid[sender])
        place = _grown(send_begin, send_end, stop + 1, low, int(send_full[sender]), shortest)
        if place > low:
            send_solid[sender] = place
            send_full[sender] = send_end[place - 1]
        if is_paired[transfer]:
            stop = int(lent_stop[partner])
            place = _place_after(lent_end, int(lent_room[partner]), stop, start)
            _insert(lent_begin, place, stop, start)
            _insert(lent_end, place, stop, start + length)
            lent_stop[partner] += 1
        for recipient in recipients:
            tile = int(receiver[recipient])
            window = start + int(to_window[recipient])
            stop = int(receive_stop[tile])
            place = _place_after(receive_end, int(receive_room[tile]), stop, window)
            _insert(receive_begin, place, stop, window)
            _insert(receive_end, place, stop, window + length)
            _insert(receive_of, place, stop, recipient)
            _insert(receive_member, place, stop, int(member[recipient]))
            receive_stop[tile] += 1
            low = int(receive_solid[tile])
            place = _grown(receive_begin, receive_end, stop + 1, low, int(receive_full[tile]), shortest)
            if place > low:
                receive_solid[tile] = place
                receive_full[tile] = receive_end[place - 1]
    return slot
