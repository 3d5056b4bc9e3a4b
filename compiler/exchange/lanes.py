"""Lanes: what each tile is busy with, and when. The searches for starts keep them (``earliest``).

A lane is one thing that a tile does one at a time: sending, receiving, lending its transmit lane. It is a
stretch of a table with one row for each *window*, in order of time; windows of a lane are disjoint, so that
their begins and their ends ascend alike. An insertion moves what is later in the lane.

A transfer *looks* at its lanes in turn, and has room when all have agreed since its start last moved. Starts
only grow in a search, so that each lane is walked along once; a bisection finds where to begin. In an order
of transfers that is nearly that of time most questions are about the end of a lane, which is asked first.

The leading windows of a lane with no gap between them that the shortest transfer of the phase fits into are
its *solid* part. It only grows, and no search looks there. Nor does one look before the last ``MOST_OPEN``
windows: where a tile talks to a thousand others, each transfer would look at all that came before.

Rejected: windows with only such gaps between them as one block, everywhere in a lane. Searches then take half
the steps, and all of it takes a quarter longer, for blocks must be kept beside the windows.
"""

from enum import IntEnum

from compiler.compiled import compiled
from compiler.target.units import Int64Array


class Window(IntEnum):
    """Columns of windows."""

    BEGIN = 0
    END = 1
    OWNER = 2
    """Who sends or receives then."""
    MEMBER = 3
    """Of receptions where some are paired: 0 ordinary, 1 late member of a pair, 2 early member."""


class Look(IntEnum):
    """Columns of the lanes that one transfer needs."""

    LANE = 0
    AHEAD = 1
    """From the slot of the transfer to its window in the lane."""
    PLACE = 2
    """Where the lane was looked at last; no window before is in the way."""
    OWNER = 3
    """Of the window."""


LOOK_COLUMNS = len(Look)
# Numba knows no length of an enumeration.

STEPS = 4
"""Windows that are walked over before the rest is bisected."""


MOST_OPEN = 256
"""Windows at the end of a lane between which there may be room. Policy."""


@compiled
def place_after(windows: Int64Array, column: int, low: int, high: int, time: int) -> int:
    """The first of the windows ``low`` to ``high`` that begins or ends, by ``column``, beyond ``time``."""
    if low == high or windows[high - 1, column] <= time:
        return high
    high -= 1
    while low < high:
        middle = (low + high) >> 1
        if windows[middle, column] <= time:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def onward(windows: Int64Array, column: int, place: int, high: int, time: int) -> int:
    """The same from a place that is near it, perhaps."""
    for _ in range(STEPS):
        if place == high or windows[place, column] > time:
            return place
        place += 1
    return place_after(windows, column, place, high, time)


@compiled
def look_at(looks: Int64Array, count: int, lane: int, ahead: int, solid: Int64Array, owner: int) -> int:
    """Write down a lane as number ``count`` of those that a transfer needs; how many there are then."""
    looks[count, Look.LANE.value] = lane
    looks[count, Look.AHEAD.value] = ahead
    looks[count, Look.PLACE.value] = solid[lane]
    looks[count, Look.OWNER.value] = owner
    return count + 1


@compiled
def start_with_room(
    windows: Int64Array, stop: Int64Array, looks: Int64Array, count: int, start: int, length: int
) -> int:
    """The earliest start, not before ``start``, at which lanes have room.

    Args:
        windows: the table.
        stop: [lanes] the place behind the last window of each.
        looks: the lanes; none has room in its solid part from ``start`` on.
        count: how many.
        start: slot.
        length: of all windows.
    """
    look = 0
    agreed = 0
    while agreed < count:
        begin = start + looks[look, Look.AHEAD.value]
        high = int(stop[looks[look, Look.LANE.value]])
        place = onward(windows, Window.END.value, int(looks[look, Look.PLACE.value]), high, begin)
        if place < high and windows[place, Window.BEGIN.value] < begin + length:
            agreed = 0
            while place < high and windows[place, Window.BEGIN.value] < begin + length:
                begin = int(windows[place, Window.END.value])
                place += 1
            start = begin - looks[look, Look.AHEAD.value]
        looks[look, Look.PLACE.value] = place
        agreed += 1
        look += 1
        if look == count:
            look = 0
    return int(start)


@compiled
def insert(
    windows: Int64Array,
    stop: Int64Array,
    solid: Int64Array,
    full: Int64Array,
    shortest: int,
    look: Int64Array,
    start: int,
    length: int,
) -> int:
    """Put a window into a lane and let its solid part grow; its place.

    Args:
        windows: the table.
        stop: [lanes] the place behind the last window of each.
        solid: [lanes] the place behind its solid part.
        full: [lanes] when that part ends.
        shortest: length of the shortest transfer.
        look: the lane, as it was looked at for this start.
        start: slot of the transfer.
        length: of the window.
    """
    lane = look[Look.LANE.value]
    found = look[Look.PLACE.value]
    begin = start + look[Look.AHEAD.value]
    high = int(stop[lane])
    for place in range(high, found, -1):
        for column in range(windows.shape[1]):
            windows[place, column] = windows[place - 1, column]
    windows[found, Window.BEGIN.value] = begin
    windows[found, Window.END.value] = begin + length
    windows[found, Window.OWNER.value] = look[Look.OWNER.value]
    high += 1
    stop[lane] = high
    place = int(solid[lane])
    end = int(full[lane])
    while place < high and int(windows[place, Window.BEGIN.value]) - end < shortest:
        end = int(windows[place, Window.END.value])
        place += 1
    while high - place > MOST_OPEN:
        end = int(windows[place, Window.END.value])
        place += 1
    solid[lane] = place
    full[lane] = end
    return int(found)


@compiled
def share(
    low: Int64Array, high: Int64Array, span: int, other_low: Int64Array, other_high: Int64Array, other: int
) -> bool:
    """Whether two spans share a memory element in an iteration; columns are [iterations, spans]."""
    for iteration in range(low.shape[0]):
        if (
            low[iteration, span] <= other_high[iteration, other]
            and other_low[iteration, other] <= high[iteration, span]
        ):
            return True
    return False


@compiled
def after_reads(
    windows: Int64Array,
    low: int,
    high: int,
    write: int,
    length: int,
    read_low: Int64Array,
    read_high: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
    recipient: int,
) -> int:
    """The earliest event, not before ``write``, from which no send of a tile reads what is written.

    Args:
        windows: the table.
        low: where the sends of the tile begin.
        high: the place behind the last of them.
        write: event.
        length: events that the write counts for.
        read_low: [iterations, transfers] lowest memory element that is read.
        read_high: [iterations, transfers] the highest.
        write_low: [iterations, recipients] lowest memory element that is written.
        write_high: [iterations, recipients] the highest.
        recipient: whose write it is.
    """
    place = place_after(windows, Window.END.value, low, high, write)
    while place < high and windows[place, Window.BEGIN.value] < write + length:
        if share(
            read_low, read_high, int(windows[place, Window.OWNER.value]), write_low, write_high, recipient
        ):
            write = int(windows[place, Window.END.value])
        place += 1
    return write


@compiled
def after_writes(
    windows: Int64Array,
    low: int,
    high: int,
    start: int,
    length: int,
    after: int,
    drain: int,
    read_low: Int64Array,
    read_high: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
    transfer: int,
) -> int:
    """The earliest slot, not before ``start``, from which no write to a tile meets what is read there.

    Arguments are those of ``after_reads`` with the sides changed; windows of receptions are written ``after``
    events later, and for ``drain`` events longer.
    """
    place = place_after(windows, Window.END.value, low, high, start - after - drain)
    while place < high and windows[place, Window.BEGIN.value] + after < start + length:
        if share(
            read_low, read_high, transfer, write_low, write_high, int(windows[place, Window.OWNER.value])
        ):
            start = int(windows[place, Window.END.value]) + after + drain
        place += 1
    return start


@compiled
def after_data(
    transfer: int,
    slot: Int64Array,
    items: Int64Array,
    to_write: Int64Array,
    first_dependence: Int64Array,
    before: Int64Array,
    before_recipient: Int64Array,
    after_recipient: Int64Array,
) -> int:
    """The earliest slot that the data of a transfer leave to it; negative if it waits for none.

    Args:
        transfer: which.
        slot: [transfers] of those that it waits for, at least.
        items: [transfers] slots that each sends for.
        to_write: [recipients] from the slot to the first write.
        first_dependence: [transfers + 1] rows of the next three columns, by the transfer that waits.
        before: whom it waits for.
        before_recipient: at which of that one's recipients, or negative at its sender.
        after_recipient: which of its own recipients waits, or negative for its sender.
    """
    start = -1
    for row in range(int(first_dependence[transfer]), int(first_dependence[transfer + 1])):
        other = int(before[row])
        time = int(slot[other]) + int(items[other])
        if before_recipient[row] >= 0:
            time += int(to_write[before_recipient[row]])
        if after_recipient[row] >= 0:
            time -= int(to_write[after_recipient[row]])
        start = max(start, time)
    return start
