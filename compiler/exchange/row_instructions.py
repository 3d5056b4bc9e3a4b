"""One row as instructions: which, how long, and what each carries, before any word is computed.

Input: the sends of a tile, its moments (``row_moments``) and its writes of base registers. Output: rows of a
table (``Column``). ``rows`` has the rules in words.

A row is written from left to right with a cursor of time. Whatever comes first is next: a send with all
moments in it, a moment alone, or a write of a base register. A control at event e acts in slot e - 1, its
*issue slot*.
"""

from enum import IntEnum
from typing import Final

from compiler.compiled import compiled
from compiler.exchange.row_moments import NEUTRAL, NONE, PAIR_SELECTOR, Moment, Payload
from compiler.target import words as encoders
from compiler.target.costs import EXCHANGE_PUT_EVENTS
from compiler.target.units import Int64Array


class Operation(IntEnum):
    """Instructions that rows are made of. ``sendpicp`` without a transfer sends nothing."""

    DELAY = 0
    DELAYPIC = 1
    DELAYXPIC = 2
    SEND = 3
    SENDOFF = 4
    SENDPIC = 5
    SENDPICP = 6
    PUT = 7
    """Writes a base register."""
    RETURN = 8


class Column(IntEnum):
    """Columns of the table of instructions."""

    OPERATION = 0
    EVENTS = 1
    """Events that it takes."""
    TRANSFER = 2
    """What it sends, or ``NONE``; which section begins, for ``PUT``."""
    OFFSET = 3
    """Items of that sent before, where it states the address."""
    MUX = 4
    """Selection that it carries, with its selector, or ``NONE``."""
    POINTER = 5
    """Recipient whose pointer it carries, or ``NONE``."""
    POINTER_OFFSET = 6
    """Words written of that one's payload before."""
    FORMAT = 7
    """Format that it carries, or ``NONE``."""


class Send(IntEnum):
    """Columns of the table of sends, one row for each transfer."""

    SLOT = 0
    ITEMS = 1
    CONTROL = 2
    """Bits of ``fabric.SendControl``."""


_DELAY_LIMIT: Final = int(encoders.DELAY_LIMIT)
_DELAYPIC_LIMIT: Final = int(encoders.DELAYPIC_LIMIT)
_DELAYXPIC_LIMIT: Final = int(encoders.DELAYXPIC_LIMIT)
_SEND_LIMIT: Final = int(encoders.SEND_LIMIT)
_SENDOFF_LIMIT: Final = int(encoders.SENDOFF_LIMIT)
_PUT_EVENTS: Final = int(EXCHANGE_PUT_EVENTS)
_NEVER: Final = 1 << 60


@compiled
def instructions_of(
    table: Int64Array,
    send_table: Int64Array,
    transfers: Int64Array,
    payload_table: Int64Array,
    recipients: Int64Array,
    moments: Int64Array,
    puts: Int64Array,
    put_events: Int64Array,
    horizon: int,
) -> int:
    """Write the instructions of a row; their number.

    Args:
        table: room for them.
        send_table: the table of sends of the phase.
        transfers: those that the tile sends, in order of slots.
        payload_table: the table of payloads of the phase.
        recipients: those of the tile, in order of writes.
        moments: those of the tile.
        puts: sections that begin within the row, in order of time.
        put_events: [sections] event at which the write of the base register begins.
        horizon: events of the row.

    Raises:
        ValueError: the times cannot be kept by any row.
    """
    at = 0  # the next instruction
    paired = 0  # the instruction behind the last two-word one; its word is even
    time = 0
    moment = 0
    send = 0
    put = 0
    selected = NEUTRAL  # by the moments so far
    payload = 0
    while True:
        start = int(send_table[transfers[send], Send.SLOT.value]) if send < transfers.size else _NEVER
        issue = int(moments[moment, Moment.EVENT.value]) - 1 if moment < moments.shape[0] else _NEVER
        base = int(put_events[puts[put]]) if put < puts.size else _NEVER
        if base <= start and base <= issue:
            if base == _NEVER:
                if time > horizon:
                    raise ValueError("the row is too short for what it does")
                at = _wait(table, at, horizon - time)
                return _emit(table, at, Operation.RETURN.value, 0, NONE, 0, NONE, NONE, NONE)
            if base < time or base + _PUT_EVENTS > min(start, issue):
                raise ValueError("a base register is written while something is sent or controlled")
            at = _wait(table, at, base - time)
            at = _emit(table, at, Operation.PUT.value, _PUT_EVENTS, int(puts[put]), 0, NONE, NONE, NONE)
            time = base + _PUT_EVENTS
            put += 1
            continue
        transfer = NONE
        end = 0
        is_send = start <= issue
        if is_send:
            # A send, with the controls that fall into it. Its first instruction carries none.
            if start == issue:
                raise ValueError("a control is due in the first slot of a send")
            if start < time:
                raise ValueError("sends of a tile overlap")
            at = _wait(table, at, start - time)
            transfer = int(transfers[send])
            end = start + int(send_table[transfer, Send.ITEMS.value])
            if base < end:
                raise ValueError("a base register is written while something is sent or controlled")
            length = min(end - start, issue - start, _SEND_LIMIT)
            at = _emit(table, at, Operation.SEND.value, length, transfer, 0, NONE, NONE, NONE)
            time = start + length
            send += 1
        # The rest of the send, with all moments in it; or one moment outside of sends.
        while time < end if is_send else time <= issue:
            if is_send and time < issue:
                length = min(end - time, issue - time, _SENDOFF_LIMIT)
                at = _emit(
                    table, at, Operation.SENDOFF.value, length, transfer, time - start, NONE, NONE, NONE
                )
                time += length
                continue
            following = base
            if moment + 1 < moments.shape[0]:
                following = min(following, int(moments[moment + 1, Moment.EVENT.value]) - 1)
            mux = int(moments[moment, Moment.MUX.value])
            pointer = int(moments[moment, Moment.POINTER.value])
            form = int(moments[moment, Moment.FORMAT.value])
            is_pair = mux >= 0 and pointer >= 0
            offset = 0
            if is_send:
                offset = time - start
                length = min(end - time, following - time, _SEND_LIMIT)
                operation = Operation.SENDPICP.value if is_pair else Operation.SENDPIC.value
            elif is_pair:
                at = _wait(table, at, issue - time)
                time = issue
                operation = Operation.SENDPICP.value
                length = min(following, start, horizon) - issue
                length = min(length, _SEND_LIMIT)
            else:
                operation = Operation.DELAYXPIC.value if mux >= 0 else Operation.DELAYPIC.value
                length = min(issue + 1 - time, _DELAYXPIC_LIMIT if mux >= 0 else _DELAYPIC_LIMIT)
                at = _wait(table, at, issue + 1 - time - length)
                time = issue + 1 - length
            if is_pair:
                cut = _cut_before(table, paired, at)
                if cut == at and (at - paired) % 2 == 1:
                    # Nothing can be cut: the last instruction, which takes one event, becomes a pair as well,
                    # at the event that is now.
                    while payload + 1 < recipients.size and _end(payload_table, recipients[payload]) <= time:
                        payload += 1
                    _complete(table, at - 1, selected, payload_table, int(recipients[payload]), time)
                at = cut
                paired = at + 1
            at = _emit(table, at, operation, length, transfer, offset, mux, pointer, form)
            if 0 <= mux < PAIR_SELECTOR:
                selected = mux
            time += length
            moment += 1
            issue = following
            if moment < moments.shape[0]:
                issue = int(moments[moment, Moment.EVENT.value]) - 1
            elif is_send:
                issue = _NEVER
            if not is_send:
                break


@compiled
def _end(payload_table: Int64Array, recipient: int) -> int:
    """Event at which a payload is written."""
    return int(payload_table[recipient, Payload.WRITE.value] + payload_table[recipient, Payload.ITEMS.value])


@compiled
def _emit(
    table: Int64Array,
    at: int,
    operation: int,
    events: int,
    transfer: int,
    offset: int,
    mux: int,
    pointer: int,
    form: int,
) -> int:
    """Write an instruction; the place of the next."""
    table[at, Column.OPERATION.value] = operation
    table[at, Column.EVENTS.value] = events
    table[at, Column.TRANSFER.value] = transfer
    table[at, Column.OFFSET.value] = offset
    table[at, Column.MUX.value] = mux
    table[at, Column.POINTER.value] = pointer
    table[at, Column.POINTER_OFFSET.value] = 0
    table[at, Column.FORMAT.value] = form
    return at + 1


@compiled
def _wait(table: Int64Array, at: int, events: int) -> int:
    """Let events pass, none if there are none; the place of the next instruction."""
    while events > 0:
        length = min(events, _DELAY_LIMIT)
        at = _emit(table, at, Operation.DELAY.value, length, NONE, 0, NONE, NONE, NONE)
        events -= length
    return at


@compiled
def _cut_before(table: Int64Array, paired: int, at: int) -> int:
    """Make the word of instruction ``at`` even by a cut.

    Returns its new place, or ``at`` if no cut is needed or none is possible.

    ``paired`` is the instruction behind the last two-word one, whose word is even; all others have one word.
    """
    if (at - paired) % 2 == 0:
        return at
    for place in range(at - 1, max(paired - 1, 0) - 1, -1):
        events = int(table[place, Column.EVENTS.value])
        operation = int(table[place, Column.OPERATION.value])
        if events < 2 or operation == Operation.PUT.value:
            continue
        for moved in range(at, place, -1):
            for column in range(table.shape[1]):
                table[moved, column] = table[moved - 1, column]
        transfer = int(table[place, Column.TRANSFER.value])
        if operation == Operation.DELAYPIC.value or operation == Operation.DELAYXPIC.value:
            # Its control comes at the end: the second part is the instruction.
            _emit(table, place, Operation.DELAY.value, events - 1, NONE, 0, NONE, NONE, NONE)
            table[place + 1, Column.EVENTS.value] = 1
        else:
            # Its control, or its address, comes first: the second part goes on.
            is_plain = operation == Operation.SEND.value or operation == Operation.SENDOFF.value
            kept = 1 if is_plain else events - 1
            table[place, Column.EVENTS.value] = kept
            goes_on = Operation.SENDOFF.value if transfer >= 0 else Operation.DELAY.value
            offset = int(table[place, Column.OFFSET.value]) + kept
            _emit(table, place + 1, goes_on, events - kept, transfer, offset, NONE, NONE, NONE)
        return at + 1
    return at


@compiled
def _complete(
    table: Int64Array, place: int, selected: int, payload_table: Int64Array, recipient: int, time: int
) -> None:
    """Turn an instruction of one event into a pair that says again what holds.

    Args:
        table: instructions.
        place: which.
        selected: what the tile's multiplexer selects, if the instruction does not say.
        payload_table: payloads of the phase.
        recipient: whose payload is being written or comes next.
        time: event of the controls.
    """
    operation = int(table[place, Column.OPERATION.value])
    if operation == Operation.SEND.value:
        raise ValueError("two controls are due right behind the first instruction of a send")
    if operation == Operation.PUT.value:
        raise ValueError("two controls are due right behind a write of a base register")
    mux = int(table[place, Column.MUX.value])
    if mux >= PAIR_SELECTOR or table[place, Column.FORMAT.value] != NONE:
        raise ValueError("two controls are due right behind one of a paired transfer")
    table[place, Column.OPERATION.value] = Operation.SENDPICP.value
    if mux < 0:
        table[place, Column.MUX.value] = selected
    if table[place, Column.POINTER.value] < 0:
        written = max(time - int(payload_table[recipient, Payload.WRITE.value]), 0)
        if payload_table[recipient, Payload.FORMAT.value] != 0:
            written *= 2
        table[place, Column.POINTER.value] = recipient
        table[place, Column.POINTER_OFFSET.value] = written
