"""What a tile has to control, and when: the moments of its row.

Input: the payloads of a tile in order of their writes, as rows of a table (``Payload``). Output: *moments*,
in order of events: what the multiplexers, the pointer and the format change to at that event.

Each of the four registers changes in the order of the payloads, so that its changes are a list that is
already sorted; the moments are the four lists merged. What needs no change is left out:

* a source that is selected where the one before ends replaces the neutral value, as does a next source of the
  pair that the same member selects;
* a payload that follows the one before in memory, in every iteration, finds the pointer where it ended;
* a paired payload whose format begins where that of the one before ends, and is the same, keeps it.
"""

from enum import IntEnum
from typing import Final

from compiler.compiled import compiled
from compiler.target import fabric
from compiler.target.registers import NEUTRAL_MUX
from compiler.target.units import WORD_BYTES, Int64Array

NONE: Final = -1
"""In a column of moments or instructions: nothing."""

PAIR_SELECTOR: Final = 1 << 13
"""Added to what a multiplexer selects where it is that of the pair. This is how instructions store the two;
``words`` takes both from the instruction table."""

NEUTRAL: Final = int(NEUTRAL_MUX)


class Payload(IntEnum):
    """Columns of the table of payloads, one row for each recipient."""

    SELECT = 0
    """Event of the selection."""
    WRITE = 1
    """Event of the first write."""
    ITEMS = 2
    """Events that it is written for."""
    MUX = 3
    """What to select, with ``PAIR_SELECTOR``; ``NONE`` for the late member of a pair."""
    FORMAT = 4
    """``IncomingFormat``; 0 for an ordinary payload."""
    WORDS = 5
    ADDRESS = 6
    """Bytes, in iteration 0."""
    STRIDE = 7


class Moment(IntEnum):
    """Columns of the table of moments; each but the first is ``NONE`` where nothing changes."""

    EVENT = 0
    MUX = 1
    """What to select, with ``PAIR_SELECTOR``."""
    POINTER = 2
    """Recipient whose pointer to set."""
    FORMAT = 3
    """``IncomingFormat``."""


_LISTS: Final = 4
_OWN: Final = 0
_POINTER: Final = 1
_PAIR: Final = 2
_FORMAT: Final = 3
_FORMAT_BEFORE_WRITE: Final = int(fabric.FORMAT_BEFORE_WRITE)
_FAR: Final = 1 << 60


@compiled
def moments_of(payloads: Int64Array, recipients: Int64Array, lists: Int64Array, moments: Int64Array) -> int:
    """Fill ``moments``; their number.

    Args:
        payloads: the table of payloads of a phase.
        recipients: those of a tile, in order of writes.
        lists: [4, at least twice the recipients and 1, 2] room for the changes of each register.
        moments: [at least 5 times the recipients, 4] room for the result.

    Raises:
        ValueError: payloads overlap, or changes meet at an event that cannot share it.
    """
    _changes(payloads, recipients, lists)
    own = 0
    pointer = 0
    pair = 0
    form = 0
    found = 0
    last = 0
    while True:
        event = min(
            int(lists[_OWN, own, 0]),
            int(lists[_POINTER, pointer, 0]),
            int(lists[_PAIR, pair, 0]),
            int(lists[_FORMAT, form, 0]),
        )
        if event == _FAR:
            break
        if event <= last:
            raise ValueError("payloads of a tile overlap, or two changes of one register meet")
        last = event
        moments[found, Moment.EVENT.value] = event
        moments[found, Moment.MUX.value] = NONE
        moments[found, Moment.POINTER.value] = NONE
        moments[found, Moment.FORMAT.value] = NONE
        alone = 0
        if lists[_OWN, own, 0] == event:
            moments[found, Moment.MUX.value] = lists[_OWN, own, 1]
            own += 1
            alone += 1
        if lists[_POINTER, pointer, 0] == event:
            moments[found, Moment.POINTER.value] = lists[_POINTER, pointer, 1]
            pointer += 1
            alone += 1
        if lists[_PAIR, pair, 0] == event:
            moments[found, Moment.MUX.value] = lists[_PAIR, pair, 1]
            pair += 1
            alone += 2
        if lists[_FORMAT, form, 0] == event:
            moments[found, Moment.FORMAT.value] = lists[_FORMAT, form, 1]
            form += 1
            alone += 2
        if alone > 2:
            raise ValueError("controls of a paired transfer meet others at one event")
        found += 1
    return found


@compiled
def _changes(payloads: Int64Array, recipients: Int64Array, lists: Int64Array) -> None:
    """Fill the changes of each register, with a last entry beyond all events.

    An entry that ends something is written at once and taken back if the next payload goes on with it.
    """
    own = 0
    pointer = 0
    pair = 0
    form = 0
    behind = -1  # address at which the payload before ended, and its stride
    stride = 0
    for position in range(recipients.size):
        recipient = int(recipients[position])
        select = int(payloads[recipient, Payload.SELECT.value])
        write = int(payloads[recipient, Payload.WRITE.value])
        items = int(payloads[recipient, Payload.ITEMS.value])
        mux = int(payloads[recipient, Payload.MUX.value])
        incoming = int(payloads[recipient, Payload.FORMAT.value])
        address = int(payloads[recipient, Payload.ADDRESS.value])
        if incoming == 0:
            if own > 0 and lists[_OWN, own - 1, 0] == select:
                own -= 1
            own = _append(lists, _OWN, own, select, mux)
            own = _append(lists, _OWN, own, select + items, NEUTRAL)
        else:
            if mux != NONE:
                if pair > 0 and lists[_PAIR, pair - 1, 0] == select:
                    pair -= 1
                pair = _append(lists, _PAIR, pair, select, mux)
                pair = _append(lists, _PAIR, pair, select + items, NEUTRAL + PAIR_SELECTOR)
            begin = write - _FORMAT_BEFORE_WRITE
            if form > 0 and lists[_FORMAT, form - 1, 0] == begin and lists[_FORMAT, form - 2, 1] == incoming:
                form -= 1
            else:
                form = _append(lists, _FORMAT, form, begin, incoming)
            form = _append(lists, _FORMAT, form, begin + items, 0)
        if address != behind or int(payloads[recipient, Payload.STRIDE.value]) != stride:
            pointer = _append(lists, _POINTER, pointer, write, recipient)
        behind = address + WORD_BYTES * int(payloads[recipient, Payload.WORDS.value])
        stride = int(payloads[recipient, Payload.STRIDE.value])
    lists[_OWN, own, 0] = _FAR
    lists[_POINTER, pointer, 0] = _FAR
    lists[_PAIR, pair, 0] = _FAR
    lists[_FORMAT, form, 0] = _FAR


@compiled
def _append(lists: Int64Array, which: int, at: int, event: int, value: int) -> int:
    lists[which, at, 0] = event
    lists[which, at, 1] = value
    return at + 1
