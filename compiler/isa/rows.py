"""Exchange rows read back: from words of memory to timed sends and controls.

An exchange row is supervisor code in which every instruction takes a stated number of *events*; slot k is
the cycle between events k and k + 1. The decoder turns its words into what the tile does and when: items put
on the fabric, changes of the receiving side, writes of base registers. The simulator executes the result;
checkers and diagnostics compare it with what was intended.

It shares nothing with the encoders: masks and shifts below restate the layout of the words, so that an error
in one of the two is found by the other (requirement XR-06).

Input: words, from the first of the row on. The row ends with ``br $m10``; nothing behind it is looked at.
Guarantees:

* everything that is decoded has a meaning that vendor rows or hardware show; anything else is a
  ``RowRefusal`` with the index of the word and the reason. Refused are, among others, a stream that continues
  where none runs, a ``sendpicp`` that starts a stream instead of continuing it, and a stream across a write
  of OUTGOING_BASE;
* the columns of a ``Row`` are in order of time, and each entry names its word.

The first word counts as aligned to 8 bytes, as in memory: two-word instructions start at even indices. A
leading ``sync 3``, which vendor rows of single transfers have, takes no events.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Annotated, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.target.costs import EXCHANGE_PUT_EVENTS, SETZI_EVENTS
from compiler.target.fabric import SendControl
from compiler.target.standing import VENDOR, stands
from compiler.target.units import Events, Int64Array

WordArray: TypeAlias = npt.NDArray[np.uint32]


class Operation(IntEnum):
    """Instructions of rows."""

    SYNC = 0
    DELAY = 1
    DELAYPIC = 2
    DELAYXPIC = 3
    SEND = 4
    SENDOFF = 5
    SENDPIC = 6
    SENDPICP = 7
    SETZI = 8
    PUT = 9
    RETURN = 10


@stands(VENDOR)
class ControlKind(IntEnum):
    """What a control changes. A control at event e acts in slot e - 1."""

    XPIC0 = 0
    """The tile's own multiplexer: the source it listens to."""
    XPIC1 = 1
    """The multiplexer of its pair."""
    PIC0 = 2
    """The pointer for incoming words, in words from INCOMING_BASE."""
    PIC1 = 3
    """The format of incoming items."""
    OUTGOING_BASE = 4
    """The register added to item addresses of sends that start later."""
    INCOMING_BASE = 5
    """The register added to pointers set later."""


class SendKind(IntEnum):
    """Where the address of a send comes from."""

    START = 0
    """The instruction states it: a new stream."""
    CONTINUE = 1
    """It goes on where the stream stands."""


NO_REGISTER: Final = -1
"""In ``Controls.register``: the value is in the instruction."""

UNKNOWN: Final = -1
"""In ``Controls.value``: the register was set before the row."""

FIRST_CONTROL_AFTER: Annotated[Events, VENDOR] = Events(1)
"""A control that a sending instruction carries acts so many events after its start. Fact, vendor tools."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instructions:
    """The instructions of a row, shape [instructions].

    Args:
        word: index of the first word.
        start: event at which it starts, which is also its first slot.
        events: events that it takes.
        operation: ``Operation``.
    """

    word: Int64Array
    start: Int64Array
    events: Int64Array
    operation: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sends:
    """What a row puts on the fabric, one entry for each sending instruction, shape [sends].

    Args:
        word: index of the instruction.
        slot: slot of the first item; one item each slot.
        count: items.
        item: position of the first item in items of its size, from OUTGOING_BASE.
        control: bits of ``fabric.SendControl``; without a direction the slots pass and nothing is sent.
        kind: ``SendKind``.
    """

    word: Int64Array
    slot: Int64Array
    count: Int64Array
    item: Int64Array
    control: Int64Array
    kind: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Controls:
    """What a row changes, shape [controls].

    Args:
        word: index of the instruction.
        event: when; the change holds from slot ``event - 1`` on.
        kind: ``ControlKind``.
        value: the new value, or ``UNKNOWN`` for a register that the row did not set.
        register: the main register written to a base, or ``NO_REGISTER``.
    """

    word: Int64Array
    event: Int64Array
    kind: Int64Array
    value: Int64Array
    register: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Row:
    """A row as timed facts.

    Args:
        words: its words, the final branch included; empty for a row that was planned and never encoded.
        horizon: events that it takes.
        instructions: one entry for each instruction, in order.
        sends: in order of slots, no two at once, all before the horizon.
        controls: in order of events, all in 1 .. horizon; at most two at one event.
    """

    words: WordArray
    horizon: Events
    instructions: Instructions
    sends: Sends
    controls: Controls

    def __post_init__(self) -> None:
        """The columns describe one tile in order of time."""
        for columns in (self.instructions, self.sends, self.controls):
            if len({getattr(columns, column.name).shape for column in fields(columns)}) != 1:
                raise ValueError(f"{type(columns).__name__}: columns of different lengths")
        slot, count, event = self.sends.slot, self.sends.count, self.controls.event
        if slot.size and (
            slot[0] < 0
            or (count < 1).any()
            or (slot[1:] < slot[:-1] + count[:-1]).any()
            or slot[-1] + count[-1] > self.horizon
        ):
            raise ValueError(f"sends are not in order of slots within 0..{self.horizon}")
        if event.size and (event[0] < 1 or (event[1:] < event[:-1]).any() or event[-1] > self.horizon):
            raise ValueError(f"controls are not in order of events within 1..{self.horizon}")


class SendColumn(IntEnum):
    """Columns of a table of sends, as the fields of ``Sends``."""

    WORD = 0
    SLOT = 1
    COUNT = 2
    ITEM = 3
    CONTROL = 4
    KIND = 5


class ControlColumn(IntEnum):
    """Columns of a table of controls, as the fields of ``Controls``."""

    WORD = 0
    EVENT = 1
    KIND = 2
    VALUE = 3
    REGISTER = 4


class RefusalReason(IntEnum):
    """Why words are no row."""

    NO_END = 1
    NOT_A_ROW_INSTRUCTION = 2
    LATE_SYNC = 3
    OTHER_ZONE = 4
    OTHER_REGISTER = 5
    MISALIGNED = 6
    NO_SECOND_WORD = 7
    NO_STREAM = 8
    STARTS_STREAM = 9
    OTHER_ITEM = 10
    OTHER_STREAM = 11
    BASE_CHANGED = 12
    WIDE_MUX = 13
    OTHER_SIZE = 14


_REASONS: Final = {
    RefusalReason.NO_END: "the row does not end with br $m10",
    RefusalReason.NOT_A_ROW_INSTRUCTION: "is no instruction of a row",
    RefusalReason.LATE_SYNC: "sync may only be the first word",
    RefusalReason.OTHER_ZONE: "a row can only wait for sync zone 3",
    RefusalReason.OTHER_REGISTER: "a row may only put INCOMING_BASE and OUTGOING_BASE",
    RefusalReason.MISALIGNED: "sendpicp must start at an even word",
    RefusalReason.NO_SECOND_WORD: "the second word of sendpicp is missing",
    RefusalReason.NO_STREAM: "continues a stream, but none was started",
    RefusalReason.STARTS_STREAM: "carries a control and starts a stream, which only send can",
    RefusalReason.OTHER_ITEM: "sendpicp continues the stream at another item than the next",
    RefusalReason.OTHER_STREAM: "sendpicp continues the stream with another send control",
    RefusalReason.BASE_CHANGED: "continues a stream across a write of OUTGOING_BASE",
    RefusalReason.WIDE_MUX: "the multiplexer value has more than 13 bits",
    RefusalReason.OTHER_SIZE: "continues the stream with items of another size",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowRefusal:
    """Why words are no row.

    Args:
        word: index of the word.
        value: the word itself; 0 when it is missing.
        reason: what is wrong with it.
    """

    word: int
    value: int
    reason: RefusalReason

    def __str__(self) -> str:
        """One sentence without a full stop."""
        return f"row word {self.word} ({self.value:08x}): {_REASONS[self.reason]}"


_MAIN_REGISTERS = 16
_ZERO_REGISTER = 15
_OUTGOING_BASE = 0xA7
_INCOMING_BASE = 0xA4
_INTERNAL_ZONE = 3
_PAIRED = int(SendControl.PAIRED)
_DIRECTIONS = int(SendControl.EAST | SendControl.WEST)
_SETZI_EVENTS = int(SETZI_EVENTS)
_PUT_EVENTS = int(EXCHANGE_PUT_EVENTS)
_CONTROL_AFTER = int(FIRST_CONTROL_AFTER)


@compiled
def _operation(word: int) -> int:
    """``Operation`` of a word, or -1."""
    if word & 0xFFFFFFF0 == 0x41800000:
        return Operation.SYNC.value
    if word & 0xFFF80000 == 0x40A00000:
        return Operation.DELAY.value
    if word & 0xFC000000 == 0x60000000:
        return Operation.DELAYPIC.value
    if word & 0xFC000000 == 0x64000000:
        return Operation.DELAYXPIC.value
    if word & 0xF8000000 == 0x78000000:
        return Operation.SEND.value
    if word & 0xF8100000 == 0x70000000:
        return Operation.SENDOFF.value
    if word & 0xF8100000 == 0x70100000:
        return Operation.SENDPIC.value
    if word & 0xF0000000 == 0xF0000000:
        return Operation.SENDPICP.value
    if word & 0xFF000000 == 0x19000000:
        return Operation.SETZI.value
    if word & 0xFF0FFF00 == 0x43008000:
        return Operation.PUT.value
    if word == 0x43A00000:
        return Operation.RETURN.value
    return -1


@compiled
def _length(words: WordArray) -> int:
    """Words up to and including the final branch, or all when there is none."""
    at = 0
    while at < words.size:
        operation = _operation(int(words[at]))
        if operation == Operation.RETURN:
            return at + 1
        at += 2 if operation == Operation.SENDPICP else 1
    return words.size


WORDS_FOLLOW: Final = -1
"""In place of a reason: the row is well, but does not end the words."""

RESULTS: Final = 5
"""Numbers that ``decode_into`` returns beside its tables."""


@compiled
def decode_into(
    words: WordArray, instructions: Int64Array, sends: Int64Array, controls: Int64Array, result: Int64Array
) -> int:
    """Decode a row into tables; 0, or the reason of a refusal.

    Args:
        words: of the row.
        instructions: [at least as many as words, 4] columns as in ``Instructions``.
        sends: [at least as many, 6] columns as in ``SendColumn``.
        controls: [at least as many, 5] columns as in ``ControlColumn``.
        result: receives the numbers of instructions, sends and controls, the horizon, and the index of the
            word that was looked at last.
    """
    time = 0
    instruction_count = 0
    send_count = 0
    control_count = 0
    # The stream: whether there is one, whether the previous slot belonged to it and reached the fabric, its
    # send control, its next item, and whether the base of its addresses has been written since it started.
    has_stream = False
    is_running = False
    stream = 0
    cursor = 0
    base_written = False
    registers = np.full(_MAIN_REGISTERS, UNKNOWN, dtype=np.int64)
    registers[_ZERO_REGISTER] = 0
    at = 0
    while at < words.size:
        word = int(words[at])
        operation = _operation(word)
        result[4] = at
        size = 1
        events = 0
        # What the instruction sends, if send_control is not negative.
        send_control = -1
        send_kind = SendKind.CONTINUE.value
        item = cursor
        # Its controls, those whose kind is not negative, and how long after its start they act.
        kind = -1
        value = 0
        register = NO_REGISTER
        second_kind = -1
        second_value = 0
        after = _CONTROL_AFTER
        if operation == Operation.SYNC:
            if at != 0:
                return RefusalReason.LATE_SYNC.value
            if word & 15 != _INTERNAL_ZONE:
                return RefusalReason.OTHER_ZONE.value
        elif operation == Operation.DELAY:
            events = (word & 0x7FFFF) + 1
        elif operation == Operation.DELAYPIC:
            events = (word >> 19 & 0x7F) + 1
            after = events
            kind = ControlKind.PIC0.value + (word >> 18 & 1)
            value = word & 0x3FFFF
        elif operation == Operation.DELAYXPIC:
            events = (word >> 14 & 0xFFF) + 1
            after = events
            kind = ControlKind.XPIC0.value + (word >> 13 & 1)
            value = word & 0x1FFF
        elif operation == Operation.SEND:
            events = (word >> 21 & 0x3F) + 1
            item = word >> 3 & 0x3FFFF
            send_control = word & 7
            send_kind = SendKind.START.value
            base_written = False
        elif operation == Operation.SENDOFF:
            if not has_stream:
                return RefusalReason.NO_STREAM.value
            events = ((word >> 21 & 0x3F) | (word >> 14 & 0x3F) << 6) + 1
            item = cursor + (word >> 3 & 0x7FF)
            send_control = word & 7
            if (send_control ^ stream) & _PAIRED:
                return RefusalReason.OTHER_SIZE.value
        elif operation == Operation.SENDPIC:
            if not has_stream:
                return RefusalReason.NO_STREAM.value
            if not is_running:
                return RefusalReason.STARTS_STREAM.value
            events = (word >> 21 & 0x3F) + 1
            send_control = stream
            kind = word >> 18 & 3  # the selectors are numbered like the kinds
            value = word & 0x3FFFF
            if kind < ControlKind.PIC0.value and value > 0x1FFF:
                return RefusalReason.WIDE_MUX.value
        elif operation == Operation.SENDPICP:
            if at & 1:
                return RefusalReason.MISALIGNED.value
            if at + 1 == words.size:
                return RefusalReason.NO_SECOND_WORD.value
            size = 2
            events = (word >> 21 & 0x3F) + 1
            second_word = int(words[at + 1])
            kind = ControlKind.XPIC0.value + (second_word >> 31 & 1)
            value = second_word >> 18 & 0x1FFF
            second_kind = ControlKind.PIC0.value + (word >> 27 & 1)
            second_value = second_word & 0x3FFFF
            if word & 7:
                if not is_running:
                    return RefusalReason.STARTS_STREAM.value
                if word & 7 != stream:
                    return RefusalReason.OTHER_STREAM.value
                if word >> 3 & 0x3FFFF != cursor:
                    return RefusalReason.OTHER_ITEM.value
                send_control = stream
        elif operation == Operation.SETZI:
            events = _SETZI_EVENTS
            if word >> 20 & 15 != _ZERO_REGISTER:
                registers[word >> 20 & 15] = word & 0xFFFFF
        elif operation == Operation.PUT:
            events = _PUT_EVENTS
            after = events
            register = word >> 20 & 15
            value = registers[register]
            if word & 0xFF == _OUTGOING_BASE:
                kind = ControlKind.OUTGOING_BASE.value
                base_written = True
            elif word & 0xFF == _INCOMING_BASE:
                kind = ControlKind.INCOMING_BASE.value
            else:
                return RefusalReason.OTHER_REGISTER.value
        elif operation != Operation.RETURN:
            return RefusalReason.NOT_A_ROW_INSTRUCTION.value

        instructions[instruction_count, 0] = at
        instructions[instruction_count, 1] = time
        instructions[instruction_count, 2] = events
        instructions[instruction_count, 3] = operation
        instruction_count += 1
        if operation == Operation.RETURN:
            result[0] = instruction_count
            result[1] = send_count
            result[2] = control_count
            result[3] = time
            return 0
        is_running = send_control > 0 and send_control & _DIRECTIONS != 0
        if send_control >= 0:
            if base_written:
                return RefusalReason.BASE_CHANGED.value
            has_stream = True
            stream = send_control
            cursor = item + events
            sends[send_count, 0] = at
            sends[send_count, 1] = time
            sends[send_count, 2] = events
            sends[send_count, 3] = item
            sends[send_count, 4] = send_control
            sends[send_count, 5] = send_kind
            send_count += 1
        for _ in range(2):
            if kind >= 0:
                controls[control_count, 0] = at
                controls[control_count, 1] = time + after
                controls[control_count, 2] = kind
                controls[control_count, 3] = value
                controls[control_count, 4] = register
                control_count += 1
            kind = second_kind
            value = second_value
            second_kind = -1
        time += events
        at += size
    result[4] = words.size
    return RefusalReason.NO_END.value


def decode_row(words: WordArray) -> Row | RowRefusal:
    """Decode the row that starts with the first of ``words`` (shape [words], uint32)."""
    own = words[: _length(words)]
    instructions = np.empty((own.size, 4), dtype=np.int64)
    sends = np.empty((own.size, 6), dtype=np.int64)
    controls = np.empty((own.size, 5), dtype=np.int64)
    result = np.zeros(RESULTS, dtype=np.int64)
    reason = decode_into(own, instructions, sends, controls, result)
    if reason:
        index = int(result[4])
        value = int(own[index]) if index < own.size else 0
        return RowRefusal(word=index, value=value, reason=RefusalReason(reason))
    instructions, sends, controls = (
        np.ascontiguousarray(table[: int(count)].T)
        for table, count in zip((instructions, sends, controls), result[:3], strict=True)
    )
    kept = own.copy()
    kept.flags.writeable = False
    return Row(
        words=kept,
        horizon=Events(int(result[3])),
        instructions=Instructions(
            **{column.name: row for column, row in zip(fields(Instructions), instructions, strict=True)}
        ),
        sends=Sends(**{column.name: row for column, row in zip(fields(Sends), sends, strict=True)}),
        controls=Controls(
            **{column.name: row for column, row in zip(fields(Controls), controls, strict=True)}
        ),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRow:
    """Which of many rows is none, and why.

    Args:
        row: its index.
        refusal: what is wrong with it; None when words follow its end.
    """

    row: int
    refusal: RowRefusal | None


@compiled
def decode_whole(
    words: WordArray, instructions: Int64Array, sends: Int64Array, controls: Int64Array, result: Int64Array
) -> int:
    """``decode_into`` of a row that all words belong to; ``WORDS_FOLLOW`` where some come behind its end."""
    reason = decode_into(words, instructions, sends, controls, result)
    if reason == 0 and instructions[result[0] - 1, 0] + 1 != words.size:
        return WORDS_FOLLOW
    return reason


def refused_row(words: WordArray, row: int, reason: int, word: int) -> RefusedRow:
    """What is wrong with one of many rows.

    Args:
        words: those of the row.
        row: its index.
        reason: what ``decode_whole`` returned, not 0.
        word: index of the word that it looked at last.
    """
    if reason == WORDS_FOLLOW:
        return RefusedRow(row=row, refusal=None)
    value = int(words[word]) if word < words.size else 0
    return RefusedRow(row=row, refusal=RowRefusal(word=word, value=value, reason=RefusalReason(reason)))


def planned_row(
    *,
    horizon: Events,
    sends: Sequence[tuple[int, int, int, int]] = (),
    controls: Sequence[tuple[int, ControlKind, int]] = (),
) -> Row:
    """A row from intentions, with no words: what an encoder is asked for, and what checks are written in.

    Args:
        horizon: events that it takes.
        sends: (slot, items, first item, send control) of each stream, in order of slots.
        controls: (event, kind, value) in any order.

    Raises:
        ValueError: sends overlap, or something lies outside the row.
    """
    send = np.array(sends, dtype=np.int64).reshape(-1, 4).T
    control = np.array(sorted(controls), dtype=np.int64).reshape(-1, 3).T
    none = np.full(send.shape[1], -1, dtype=np.int64)
    no_word = np.full(control.shape[1], -1, dtype=np.int64)
    empty = np.empty(0, dtype=np.int64)
    return Row(
        words=np.empty(0, dtype=np.uint32),
        horizon=horizon,
        instructions=Instructions(word=empty, start=empty, events=empty, operation=empty),
        sends=Sends(
            word=none, slot=send[0], count=send[1], item=send[2], control=send[3], kind=np.zeros_like(none)
        ),
        controls=Controls(
            word=no_word, event=control[0], kind=control[1], value=control[2], register=no_word
        ),
    )


def row_listing(row: Row) -> tuple[str, ...]:
    """One line for each instruction: the slots it takes, its mnemonic and operands, its controls' event."""
    lines: list[str] = []
    columns = row.instructions
    for index, start, events, operation in zip(
        columns.word.tolist(),
        columns.start.tolist(),
        columns.events.tolist(),
        columns.operation.tolist(),
        strict=True,
    ):
        text = _text(row, index, events, Operation(operation))
        event = row.controls.event[row.controls.word == index]
        is_base = operation == Operation.PUT
        suffix = f" -> control at {int(event[0])}" if event.size and not is_base else ""
        lines.append(f"[{start},{start + events}) {text}{suffix}")
    return tuple(lines)


def _text(row: Row, index: int, events: int, operation: Operation) -> str:
    word = int(row.words[index])
    name = operation.name.lower()
    match operation:
        case Operation.SYNC:
            return f"sync {word & 15}"
        case Operation.DELAY:
            return f"delay {events}"
        case Operation.DELAYPIC:
            return f"{name} adv={events} sel={word >> 18 & 1} value={word & 0x3FFFF:#x}"
        case Operation.DELAYXPIC:
            return f"{name} adv={events} sel={word >> 13 & 1} value={word & 0x1FFF:#x}"
        case Operation.SEND:
            return f"{name} words={events} item_addr={word >> 3 & 0x3FFFF:#x} sctl={word & 7}"
        case Operation.SENDOFF:
            return f"{name} words={events} delta={word >> 3 & 0x7FF:#x} sctl={word & 7}"
        case Operation.SENDPIC:
            return f"{name} words={events} sel={word >> 18 & 3} value={word & 0x3FFFF:#x}"
        case Operation.SENDPICP:
            second = int(row.words[index + 1])
            return (
                f"{name} words={events} item_addr={word >> 3 & 0x3FFFF:#x} sctl={word & 7}"
                f" xpic_sel={second >> 31 & 1} xpic={second >> 18 & 0x1FFF:#x}"
                f" pic_sel={word >> 27 & 1} pic={second & 0x3FFFF:#x}"
            )
        case Operation.SETZI:
            return f"setzi m{word >> 20 & 15},{word & 0xFFFFF:#x}"
        case Operation.PUT:
            base = "OUTGOING_BASE" if word & 0xFF == _OUTGOING_BASE else "INCOMING_BASE"
            return f"put {base},m{word >> 20 & 15}"
        case Operation.RETURN:
            return "br $m10"
