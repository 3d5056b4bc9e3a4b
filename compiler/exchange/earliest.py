"""The search for starts: each transfer in turn gets the earliest slot that no rule forbids.

Input: the columns of a demand as ``timing`` prepares them. Output: a slot for each transfer. ``timing``
states the rules; here each is a set of intervals of forbidden starts. The start is pushed past the interval
of the first rule that objects, then again, until none does. Each push goes to the end of a forbidden
interval, so nothing legal is skipped.

Sends and receives of each tile are kept in order of time: a bisection finds where to look, and what follows
is a walk over the neighbours that overlap. An insertion moves what is later on the tile. Rejected: a calendar
of single slots (time and memory grow with the words, not with the transfers), and a sweep over time for all
tiles at once (it decides the order, too).
"""

import numpy as np

from compiler.compiled import compiled
from compiler.target.units import Int64Array


@compiled
def _after(ends: Int64Array, low: int, high: int, time: int) -> int:
    """The first of ascending ``ends[low:high]`` beyond ``time``."""
    while low < high:
        middle = (low + high) // 2
        if ends[middle] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _holds(values: Int64Array, low: int, high: int, value: int) -> bool:
    """Whether ascending ``values[low:high]`` hold a value."""
    place = _after(values, low, high, value - 1)
    return place < high and int(values[place]) == value


@compiled
def _selects(begins: Int64Array, ends: Int64Array, low: int, high: int, event: int) -> bool:
    """Whether one of the receive windows begins or ends at an event."""
    return _holds(begins, low, high, event) or _holds(ends, low, high, event)


@compiled
def _points(begins: Int64Array, low: int, high: int, after: int, event: int) -> bool:
    """Whether one of the receives writes its first word at an event, ``after`` its selection."""
    return _holds(begins, low, high, event - after)


@compiled
def _past(begins: Int64Array, ends: Int64Array, low: int, high: int, start: int, length: int) -> int:
    """The earliest start, not before ``start``, of an interval that meets none of ``[begins, ends)``."""
    place = _after(ends, low, high, start)
    while place < high and begins[place] < start + length:
        start = int(ends[place])
        place += 1
    return start


@compiled
def _insert(column: Int64Array, place: int, high: int, value: int) -> None:
    """Put a value at ``place`` of ``column[..high]``, moving what follows."""
    for index in range(high, place, -1):
        column[index] = column[index - 1]
    column[place] = value


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
def earliest_starts(
    order: Int64Array,
    first: Int64Array,
    words: Int64Array,
    source: Int64Array,
    first_recipient: Int64Array,
    receiver: Int64Array,
    to_select: Int64Array,
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
    receive_room: Int64Array,
    drain: int,
) -> Int64Array:
    """The slot of each transfer.

    Args:
        order: who chooses first.
        first: [transfers] the least slot.
        words: [transfers].
        source: [transfers] physical sender.
        first_recipient: [transfers + 1].
        receiver: [recipients] physical receiver.
        to_select: [recipients] from the start of the send to R.
        to_write: [tiles] from R to P.
        read_low: [iterations, transfers] lowest memory element that is read.
        read_high: [iterations, transfers] the highest.
        write_low: [iterations, recipients] lowest memory element that is written.
        write_high: [iterations, recipients] the highest.
        first_dependence: [transfers + 1] rows of the next three columns, by the transfer that waits.
        before: whom it waits for.
        before_recipient: at which of that one's recipients, or negative at its sender.
        after_recipient: which of its own recipients waits, or negative for its sender.
        send_room: [tiles + 1] where the sends of each tile are kept.
        receive_room: [tiles + 1] where its receives are kept, as windows [R, N).
        drain: events after a payload that count as part of it for memory elements.
    """
    slot = np.zeros(source.size, dtype=np.int64)
    send_begin = np.empty(source.size, dtype=np.int64)
    send_end = np.empty(source.size, dtype=np.int64)
    send_of = np.empty(source.size, dtype=np.int64)
    receive_begin = np.empty(receiver.size, dtype=np.int64)
    receive_end = np.empty(receiver.size, dtype=np.int64)
    receive_of = np.empty(receiver.size, dtype=np.int64)
    send_stop = send_room[:-1].copy()
    receive_stop = receive_room[:-1].copy()
    for position in range(order.size):
        transfer = int(order[position])
        length = int(words[transfer])
        sender = int(source[transfer])
        recipients = range(int(first_recipient[transfer]), int(first_recipient[transfer + 1]))
        start = int(first[transfer])
        for row in range(int(first_dependence[transfer]), int(first_dependence[transfer + 1])):
            other = int(before[row])
            time = int(slot[other]) + int(words[other])
            through = int(before_recipient[row])
            if through >= 0:
                time += int(to_select[through]) + int(to_write[receiver[through]])
            through = int(after_recipient[row])
            if through >= 0:
                time -= int(to_select[through]) + int(to_write[receiver[through]])
            start = max(start, time)

        is_settled = False
        while not is_settled:
            tried = start
            # The sender: one send at a time, no control at the event after the start, nothing written to
            # the element that is read.
            start = _past(send_begin, send_end, int(send_room[sender]), int(send_stop[sender]), start, length)
            low, high = int(receive_room[sender]), int(receive_stop[sender])
            after = int(to_write[sender])
            if (
                _selects(receive_begin, receive_end, low, high, start + 1)
                or _points(receive_begin, low, high, after, start + 1)
                or (
                    _selects(receive_begin, receive_end, low, high, start + 2)
                    and _points(receive_begin, low, high, after, start + 2)
                )
            ):
                start += 1
            place = _after(receive_end, low, high, start - after - drain)
            while place < high and int(receive_begin[place]) + after < start + length:
                if _share(read_low, read_high, transfer, write_low, write_high, int(receive_of[place])):
                    start = int(receive_end[place]) + after + drain
                place += 1
            # Each recipient: the same from the other side.
            for recipient in recipients:
                tile = int(receiver[recipient])
                after = int(to_write[tile])
                low, high = int(receive_room[tile]), int(receive_stop[tile])
                select = start + int(to_select[recipient])
                select = _past(receive_begin, receive_end, low, high, select, length)
                release = select + length
                write = select + after
                # Which of the three events get a second control.
                select_meets = _points(receive_begin, low, high, after, select)
                release_meets = _points(receive_begin, low, high, after, release) or release == write
                write_meets = _selects(receive_begin, receive_end, low, high, write) or release == write
                low, high = int(send_room[tile]), int(send_stop[tile])
                if (
                    _holds(send_begin, low, high, select - 1)
                    or _holds(send_begin, low, high, release - 1)
                    or _holds(send_begin, low, high, write - 1)
                    or (select_meets and _holds(send_begin, low, high, select - 2))
                    or (release_meets and _holds(send_begin, low, high, release - 2))
                    or (write_meets and _holds(send_begin, low, high, write - 2))
                    # Its own send is not in the list yet, and its own release can come right behind it.
                    or (tile == sender and release_meets and release == start + 2)
                ):
                    select += 1
                place = _after(send_end, low, high, select + after)
                while place < high and int(send_begin[place]) < select + after + length + drain:
                    if _share(read_low, read_high, int(send_of[place]), write_low, write_high, recipient):
                        select = int(send_end[place]) - after
                    place += 1
                start = select - int(to_select[recipient])
            is_settled = start == tried

        slot[transfer] = start
        stop = int(send_stop[sender])
        place = _after(send_end, int(send_room[sender]), stop, start)
        _insert(send_begin, place, stop, start)
        _insert(send_end, place, stop, start + length)
        _insert(send_of, place, stop, transfer)
        send_stop[sender] += 1
        for recipient in recipients:
            tile = int(receiver[recipient])
            select = start + int(to_select[recipient])
            stop = int(receive_stop[tile])
            place = _after(receive_end, int(receive_room[tile]), stop, select)
            _insert(receive_begin, place, stop, select)
            _insert(receive_end, place, stop, select + length)
            _insert(receive_of, place, stop, recipient)
            receive_stop[tile] += 1
    return slot
