"""From times to instructions: one row for each tile of a phase, with the places of its addresses.

Input: a demand and its schedule. Output: ``Rows`` and ``Sites``.

A row is written from left to right with a cursor of time. What a tile has to do is a list of sends (a first
slot and a length) and of *moments*: events with a pointer, a selection, or both. A control at event e acts in
slot e - 1, its *issue slot*.

* Outside of sends, one control: ``delaypic`` or ``delayxpic`` up to the event, behind a plain ``delay`` when
  it is too far. Two: a ``delay`` up to the issue slot, then a ``sendpicp`` that sends nothing.
* A send starts with ``send``. In it, ``sendoff`` leads up to the next issue slot; ``sendpic`` or ``sendpicp``
  there carries one or two controls and goes on sending.
* ``sendpicp`` and its wait last until the next issue slot or send, or as long as the instruction can.

**Alignment.** ``sendpicp`` has two words and must start at an even one. Where it would not, an earlier
instruction that takes two events or more is cut in two, the nearest first, back to and including the previous
``sendpicp``; beyond that a cut would move an aligned instruction. If there is none, everything since the
previous pair happens event by event, in an odd number of words. Then the last of them becomes a ``sendpicp``,
too: what it lacks is said again, the source that is selected and the pointer where it stands. That is how two
messages meet that follow each other from one source into one buffer, so nothing changes. A ``send`` could not
be replaced so; the timing keeps pairs away from the event after a send's first instruction.

**Sites.** Instructions are columns until the end: operation, events, who owns the address, at which offset.
Cuts act on these columns; only then the words are computed, all at once, and with each word the site of its
address, from the same row of the same columns (XR-01, XR-02, XR-04). Addresses are absolute: base registers
hold 0.
"""

import functools
from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import bounds_of, expanded
from compiler.exchange.ir import Demand, Rows, Schedule, SiteKind, Sites, WordArray
from compiler.exchange.relocation import with_addresses
from compiler.target import words as encoders
from compiler.target.instructions import Field, InstructionForm, instruction_table
from compiler.target.registers import NEUTRAL_MUX, MainRegister
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array
from compiler.target.words import Control


class Operation(IntEnum):
    """Instructions that rows are made of."""

    DELAY = 0
    DELAYPIC = 1
    DELAYXPIC = 2
    SEND = 3
    SENDOFF = 4
    SENDPIC_POINTER = 5
    """``sendpic`` with a pointer."""
    SENDPIC_MUX = 6
    """``sendpic`` with a selection."""
    SENDPICP = 7
    """``sendpicp`` in a send."""
    WAITPICP = 8
    """``sendpicp`` that sends nothing."""
    RETURN = 9


class Column(IntEnum):
    """Columns of the table of instructions that a row is written as."""

    OPERATION = 0
    EVENTS = 1
    """Events that it takes."""
    TRANSFER = 2
    """What it sends, or -1."""
    OFFSET = 3
    """Words of that sent before, where it states the address."""
    MUX = 4
    """Selection that it carries, or -1."""
    POINTER = 5
    """Recipient whose pointer it carries, or -1."""
    POINTER_OFFSET = 6
    """Words written of that one's payload before."""


_FORMS = {
    Operation.DELAY: ("delay", "u19"),
    Operation.DELAYPIC: ("delaypic", "u7 u1 u18"),
    Operation.DELAYXPIC: ("delayxpic", "u12 u1 u13"),
    Operation.SEND: ("send", "u6 u18 u3"),
    Operation.SENDOFF: ("sendoff", "u12 u11 u3"),
    Operation.SENDPIC_POINTER: ("sendpic", "u6 u2 u18"),
    Operation.SENDPIC_MUX: ("sendpic", "u6 u2 u18"),
    Operation.SENDPICP: ("sendpicp", "u6 u18 u3 u1"),
    Operation.WAITPICP: ("sendpicp", "u6 u18 u3 u1"),
}

_NONE = -1
"""In columns: nothing."""


@functools.cache
def idle_row() -> WordArray:
    """The row of a tile that takes no part in a phase: it returns at once."""
    row = np.array([encoders.br(MainRegister.M10)], dtype=np.uint32)
    row.flags.writeable = False
    return row


def encode_rows(demand: Demand, schedule: Schedule) -> tuple[Rows, Sites]:
    """Write the rows of all tiles of a phase, with the addresses of iteration 0.

    Raises:
        ValueError: the schedule has a control in the first slot of a send, or a pair right behind it.
    """
    moves, tiles = demand.transfers, schedule.tiles
    sends = np.lexsort((schedule.slot, moves.source))
    first_send = np.append(np.searchsorted(moves.source[sends], tiles), len(sends))
    payloads = np.lexsort((schedule.write, moves.receiver))
    first_payload = np.append(np.searchsorted(moves.receiver[payloads], tiles), len(payloads))
    tile, event, mux, pointer = _moments(demand, schedule)
    first_moment = np.append(np.searchsorted(tile, np.arange(len(tiles))), len(tile))
    # A send and a moment take at most a wait, two instructions of their own, one that leads on and a cut
    # each; beside them a row has delays that the longest one cannot cover, and its return.
    room = 5 * (np.diff(first_send) + np.diff(first_moment)) + schedule.horizon // encoders.DELAY_LIMIT + 8
    table = np.empty((int(room.sum()), len(Column)), dtype=np.int64)
    begin = bounds_of(room)[:-1]
    counts = _write_rows(
        table,
        begin,
        first_send,
        sends,
        schedule.slot,
        moves.words,
        first_payload,
        payloads,
        schedule.write,
        schedule.write + moves.recipient_words,
        first_moment,
        event,
        mux,
        pointer,
        schedule.horizon,
        _limits(),
    )
    return _encoded(demand, schedule, table[expanded(begin, counts)], counts)


def _limits() -> Int64Array:
    """Most events of the instructions up to ``SENDOFF``, by operation."""
    return np.array(
        [
            encoders.DELAY_LIMIT,
            encoders.DELAYPIC_LIMIT,
            encoders.DELAYXPIC_LIMIT,
            encoders.SEND_LIMIT,
            encoders.SENDOFF_LIMIT,
        ],
        dtype=np.int64,
    )


def _moments(demand: Demand, schedule: Schedule) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Controls of all tiles, one row for each tile and event, in that order.

    Returns:
        Index of the tile, event, what the multiplexer is to select or ``_NONE``, the recipient whose pointer
        is to be set or ``_NONE``.
    """
    moves = demand.transfers
    place = np.searchsorted(schedule.tiles, moves.receiver)
    recipient = np.arange(len(moves.receiver))
    hands_over, continues = _unbroken(demand, schedule)
    is_last, is_new = ~hands_over, ~continues
    tile = np.concatenate([place, place[is_last], place[is_new]])
    event = np.concatenate([schedule.select, schedule.release[is_last], schedule.write[is_new]])
    none = np.full(len(recipient), _NONE)
    selected = moves.source[moves.transfer_of_recipient]
    neutral = np.full(len(recipient), NEUTRAL_MUX)
    mux = np.concatenate([selected, neutral[is_last], none[is_new]])
    pointer = np.concatenate([none, none[is_last], recipient[is_new]])
    order = np.lexsort((event, tile))
    tile, event = tile[order], event[order]
    is_first = np.append(True, (tile[1:] != tile[:-1]) | (event[1:] != event[:-1]))[: len(tile)]
    begin = np.flatnonzero(is_first)
    if begin.size == 0:
        return tile, event, mux, pointer
    # Of two controls at one event one has a selection and the other a pointer; _NONE is less than either.
    return (
        tile[begin],
        event[begin],
        np.maximum.reduceat(mux[order], begin),
        np.maximum.reduceat(pointer[order], begin),
    )


def _unbroken(demand: Demand, schedule: Schedule) -> tuple[BoolArray, BoolArray]:
    """[recipients] after which the next source is selected at once, and which need no pointer."""
    moves = demand.transfers
    order = np.lexsort((schedule.select, moves.receiver))
    left, right = order[:-1], order[1:]
    is_same_tile = moves.receiver[left] == moves.receiver[right]
    hands_over = np.zeros(len(moves.receiver), dtype=np.bool_)
    continues = np.zeros(len(moves.receiver), dtype=np.bool_)
    hands_over[left] = is_same_tile & (schedule.release[left] == schedule.select[right])
    behind = moves.receiver_address + WORD_BYTES * moves.recipient_words
    continues[right] = (
        is_same_tile
        & (behind[left] == moves.receiver_address[right])
        & (moves.receiver_stride[left] == moves.receiver_stride[right])
    )
    return hands_over, continues


@compiled
def _write_rows(
    table: Int64Array,
    begin: Int64Array,
    first_send: Int64Array,
    sends: Int64Array,
    slot: Int64Array,
    words: Int64Array,
    first_payload: Int64Array,
    payloads: Int64Array,
    write: Int64Array,
    written: Int64Array,
    first_moment: Int64Array,
    moment_event: Int64Array,
    moment_mux: Int64Array,
    moment_pointer: Int64Array,
    horizon: Int64Array,
    limits: Int64Array,
) -> Int64Array:
    """Write the instructions of each tile into ``table`` from ``begin`` on; their number for each tile.

    ``sends`` are transfers and ``payloads`` recipients, of each tile in order of time. ``slot`` and ``words``
    are of all transfers; ``write`` and ``written``, the first event and the one behind the last, of all
    recipients.
    """
    counts = np.zeros(horizon.size, dtype=np.int64)
    for tile in range(horizon.size):
        counts[tile] = _write_row(
            table[begin[tile] :],
            sends[first_send[tile] : first_send[tile + 1]],
            slot,
            words,
            payloads[first_payload[tile] : first_payload[tile + 1]],
            write,
            written,
            moment_event[first_moment[tile] : first_moment[tile + 1]],
            moment_mux[first_moment[tile] : first_moment[tile + 1]],
            moment_pointer[first_moment[tile] : first_moment[tile + 1]],
            int(horizon[tile]),
            limits,
        )
    return counts


@compiled
def _write_row(
    table: Int64Array,
    sends: Int64Array,
    slot: Int64Array,
    words: Int64Array,
    payloads: Int64Array,
    write: Int64Array,
    written: Int64Array,
    event: Int64Array,
    mux: Int64Array,
    pointer: Int64Array,
    horizon: int,
    limits: Int64Array,
) -> int:
    """Write one row; see ``_write_rows``. Sends, payloads and moments are those of the tile."""
    at = 0  # the next instruction
    paired = 0  # the instruction behind the last two-word one; its word is even
    time = 0
    moment = 0
    send = 0
    selected = -1  # by the moments so far; irrelevant before the first
    payload = 0
    while True:
        start = int(slot[sends[send]]) if send < sends.size else horizon
        issue = int(event[moment]) - 1 if moment < event.size else horizon
        is_send = send < sends.size and start <= issue
        transfer = -1
        end = start
        if is_send:
            # A send, with the controls that fall into it. Its first instruction carries none.
            if start == issue and moment < event.size:
                raise ValueError("a control is due in the first slot of a send")
            at = _wait(table, at, start - time, limits)
            transfer = int(sends[send])
            end = start + int(words[transfer])
            length = min(end - start, issue - start, int(limits[Operation.SEND.value]))
            at = _emit(table, at, Operation.SEND.value, length, transfer, 0, -1, -1)
            time = start + length
            send += 1
        elif moment == event.size:
            at = _wait(table, at, horizon - time, limits)
            return _emit(table, at, Operation.RETURN.value, 0, -1, 0, -1, -1)
        # The rest of the send, with all moments in it; or one moment outside of sends.
        while time < end if is_send else time <= issue:
            if is_send and (moment == event.size or time < issue):
                length = min(end - time, issue - time, int(limits[Operation.SENDOFF.value]))
                at = _emit(table, at, Operation.SENDOFF.value, length, transfer, time - start, -1, -1)
                time += length
                continue
            following = int(event[moment + 1]) - 1 if moment + 1 < event.size else horizon
            is_pair = mux[moment] >= 0 and pointer[moment] >= 0
            offset = 0
            if is_send:
                offset = time - start
                length = min(end - time, following - time, int(limits[Operation.SEND.value]))
                operation = Operation.SENDPICP.value
                if not is_pair:
                    operation = (
                        Operation.SENDPIC_POINTER.value if mux[moment] < 0 else Operation.SENDPIC_MUX.value
                    )
            elif is_pair:
                at = _wait(table, at, issue - time, limits)
                time = issue
                operation = Operation.WAITPICP.value
                length = min(following - issue, start - issue, int(limits[Operation.SEND.value]))
            else:
                operation = Operation.DELAYPIC.value if mux[moment] < 0 else Operation.DELAYXPIC.value
                length = min(issue + 1 - time, int(limits[operation]))
                at = _wait(table, at, issue + 1 - time - length, limits)
                time = issue + 1 - length
            if is_pair:
                cut = _cut_before(table, paired, at)
                if cut == at and (at - paired) % 2 == 1:
                    # Nothing can be cut: the last instruction, which takes one event, becomes a pair as well,
                    # at the event that is now.
                    while payload + 1 < payloads.size and written[payloads[payload]] <= time:
                        payload += 1
                    recipient = int(payloads[payload])
                    _complete(table, at - 1, selected, recipient, max(time - int(write[recipient]), 0))
                at = cut
                paired = at + 1
            at = _emit(table, at, operation, length, transfer, offset, int(mux[moment]), int(pointer[moment]))
            if mux[moment] >= 0:
                selected = int(mux[moment])
            time += length
            moment += 1
            issue = following
            if not is_send:
                break


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
) -> int:
    """Write an instruction; the place of the next."""
    table[at, Column.OPERATION.value] = operation
    table[at, Column.EVENTS.value] = events
    table[at, Column.TRANSFER.value] = transfer
    table[at, Column.OFFSET.value] = offset
    table[at, Column.MUX.value] = mux
    table[at, Column.POINTER.value] = pointer
    table[at, Column.POINTER_OFFSET.value] = 0
    return at + 1


@compiled
def _wait(table: Int64Array, at: int, events: int, limits: Int64Array) -> int:
    """Let events pass, none if there are none; the place of the next instruction."""
    while events > 0:
        length = min(events, int(limits[Operation.DELAY.value]))
        at = _emit(table, at, Operation.DELAY.value, length, -1, 0, -1, -1)
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
        if events < 2:
            continue
        for moved in range(at, place, -1):
            for column in range(table.shape[1]):
                table[moved, column] = table[moved - 1, column]
        operation = int(table[place, Column.OPERATION.value])
        transfer = int(table[place, Column.TRANSFER.value])
        if operation == Operation.DELAYPIC.value or operation == Operation.DELAYXPIC.value:
            # Its control comes at the end: the second part is the instruction.
            _emit(table, place, Operation.DELAY.value, events - 1, -1, 0, -1, -1)
            table[place + 1, Column.EVENTS.value] = 1
        else:
            # Its control, or its address, comes first: the second part goes on.
            is_plain = operation == Operation.SEND.value or operation == Operation.SENDOFF.value
            kept = 1 if is_plain else events - 1
            table[place, Column.EVENTS.value] = kept
            goes_on = Operation.SENDOFF.value if transfer >= 0 else Operation.DELAY.value
            offset = int(table[place, Column.OFFSET.value]) + kept
            _emit(table, place + 1, goes_on, events - kept, transfer, offset, -1, -1)
        return at + 1
    return at


@compiled
def _complete(table: Int64Array, place: int, selected: int, recipient: int, written: int) -> None:
    """Turn an instruction of one event into a pair that says again what holds.

    Args:
        table: instructions.
        place: which.
        selected: what the multiplexer selects, if the instruction does not say.
        recipient: whose payload is being written or comes next.
        written: words of it that have been written.
    """
    operation = int(table[place, Column.OPERATION.value])
    if operation == Operation.SEND.value:
        raise ValueError("two controls are due right behind the first instruction of a send")
    is_send = table[place, Column.TRANSFER.value] >= 0
    table[place, Column.OPERATION.value] = Operation.SENDPICP.value if is_send else Operation.WAITPICP.value
    if table[place, Column.MUX.value] < 0:
        table[place, Column.MUX.value] = selected
    if table[place, Column.POINTER.value] < 0:
        table[place, Column.POINTER.value] = recipient
        table[place, Column.POINTER_OFFSET.value] = written


def _encoded(demand: Demand, schedule: Schedule, table: Int64Array, counts: Int64Array) -> tuple[Rows, Sites]:
    """Words and sites of the instructions of all tiles; ``counts`` of them belong to each."""
    operation, transfer, offset, pointer = (
        table[:, column] for column in (Column.OPERATION, Column.TRANSFER, Column.OFFSET, Column.POINTER)
    )
    is_pair = (operation == Operation.SENDPICP) | (operation == Operation.WAITPICP)
    place = bounds_of(1 + is_pair)
    template = np.zeros(int(place[-1]), dtype=np.int64)
    control = np.where(transfer >= 0, schedule.control[transfer], 0)
    zero = np.zeros_like(control)
    mux = table[:, Column.MUX]
    stored = table[:, Column.EVENTS] - 1
    operands = {
        Operation.DELAY: (stored,),
        Operation.DELAYPIC: (stored, zero, zero),
        Operation.DELAYXPIC: (stored, zero, mux),
        Operation.SEND: (stored, zero, control),
        Operation.SENDOFF: (stored, zero, control),
        Operation.SENDPIC_POINTER: (stored, zero + Control.POINTER, zero),
        Operation.SENDPIC_MUX: (stored, zero + Control.OWN_MUX, mux),
        Operation.SENDPICP: (stored, zero, control, zero),
        Operation.WAITPICP: (stored, zero, zero, zero),
    }
    for name, values in operands.items():
        chosen = np.flatnonzero(operation == name)
        form = _form(name)
        template[place[chosen]] = form.fixed_bits | _packed(form.fields, [value[chosen] for value in values])
    pairs = np.flatnonzero(is_pair)
    payload_fields = _form(Operation.SENDPICP).payload_fields
    template[place[pairs] + 1] = _packed(payload_fields, [mux[pairs], zero[pairs]])
    template[place[np.flatnonzero(operation == Operation.RETURN)]] = idle_row()[0]

    # The kind of address that each operation holds, if any; a pair has one of each kind.
    item_kind = np.full(len(Operation), _NONE)
    item_kind[Operation.SEND], item_kind[Operation.SENDPICP] = SiteKind.SEND_ITEM, SiteKind.PAIR_ITEM
    pointer_kind = np.full(len(Operation), _NONE)
    pointer_kind[Operation.DELAYPIC] = SiteKind.DELAY_POINTER
    pointer_kind[Operation.SENDPIC_POINTER] = SiteKind.SEND_POINTER
    pointer_kind[Operation.SENDPICP] = pointer_kind[Operation.WAITPICP] = SiteKind.PAIR_POINTER
    items = np.flatnonzero(item_kind[operation] != _NONE)
    pointers = np.flatnonzero(pointer_kind[operation] != _NONE)
    word = np.concatenate([place[items], place[pointers] + is_pair[pointers]])
    order = np.argsort(word)
    kind = np.concatenate([item_kind[operation[items]], pointer_kind[operation[pointers]]])
    owner = np.concatenate([transfer[items], pointer[pointers]])
    within = np.concatenate([offset[items], table[pointers, Column.POINTER_OFFSET]])
    sites = Sites(word=word[order], kind=kind[order], owner=owner[order], offset=within[order])
    moves = demand.transfers
    rows = Rows(
        tiles=schedule.tiles,
        first_word=place[bounds_of(counts)],
        words=with_addresses(template.astype(np.uint32), sites, moves.address, moves.receiver_address),
    )
    return rows, sites


@functools.cache
def _form(operation: Operation) -> InstructionForm:
    mnemonic, kinds = _FORMS[operation]
    return instruction_table().form(mnemonic, kinds.split())


def _packed(fields: Sequence[Field], operands: Sequence[Int64Array]) -> Int64Array:
    """Operand bits at their places in words."""
    word = np.zeros_like(operands[0])
    for field in fields:
        bits = (operands[field.operand] >> field.operand_low) & ((1 << field.width) - 1)
        word |= bits << field.low
    return word
