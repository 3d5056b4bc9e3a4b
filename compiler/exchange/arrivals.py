"""What rows do to words: who writes which word where, and when. For the checker alone.

Input: the rows of all tiles that take part. Output: a ``Course``: the streams that are sent, the windows
in which sources are selected, and the moves that follow. In order:

1. every row is decoded; sending instructions that go on become streams, selections windows, pointers and
   formats columns;
2. every window, seen from its source, meets streams there: each intersection is an *arrival*, written a fixed
   number of events later. An ordinary window brings words to its own tile, a window of a pair's multiplexer
   items to both members, an event later than it would to the one that selects;
3. arrivals are cut where pointers are set, and get addresses.

Nothing of timing, encoder or simulator runs here (XR-06). Believed are the decoder and the facts of the
fabric. Tables have one row for each thing and named columns; tiles are indices into the tiles that take part.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import ascending
from compiler.exchange.ir import Rows, WordArray
from compiler.isa.rows import (
    NO_REGISTER,
    RESULTS,
    UNKNOWN,
    ControlColumn,
    ControlKind,
    RefusedRow,
    SendColumn,
    SendKind,
    decode_whole,
    refused_row,
)
from compiler.target import fabric
from compiler.target.fabric import ITEM_BYTES, MULTICAST, PAIRED_ITEM_BYTES, SendControl
from compiler.target.registers import NEUTRAL_MUX, IncomingFormat
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import WORD_BYTES, Int64Array

NO_TILE: Final = -1
NO_POINTER: Final = -1
NOBODY: Final = -1
"""A finding that was not made."""


class Fault(IntEnum):
    """What is wrong with controls and sends alone, rows of ``Course.faults``."""

    FOREIGN_CONTROL = 0
    FOREIGN_SEND = 1
    UNKNOWN_SOURCE = 2
    STAYS_SELECTED = 3
    CONTROL_PAIR = 4


class Stream(IntEnum):
    """Columns of streams, in order of tile and slot."""

    TILE = 0
    SLOT = 1
    COUNT = 2
    """Items."""
    ADDRESS = 3
    """Bytes."""
    SIZE = 4
    """Bytes of an item."""
    CONTROL = 5


class Window(IntEnum):
    """Columns of windows in which a source is selected, in order of tile and event."""

    TILE = 0
    SOURCE = 1
    BEGIN = 2
    END = 3


class Setting(IntEnum):
    """Columns of pointers (byte addresses) and formats, in order of tile and event."""

    EVENT = 0
    VALUE = 1


class Move(IntEnum):
    """Columns of moves and arrivals, in order of tile and event."""

    TILE = 0
    EVENT = 1
    COUNT = 2
    """Items."""
    ADDRESS = 3
    """Bytes; ``NO_POINTER`` where no pointer is set."""
    STREAM = 4
    ITEM = 5
    """First item, counted in the stream."""


_STREAM_COLUMNS: Final = len(Stream)
_WINDOW_COLUMNS: Final = len(Window)
_SETTING_COLUMNS: Final = len(Setting)
_MOVE_COLUMNS: Final = len(Move)
_FAULTS: Final = len(Fault)
_SEND_COLUMNS: Final = len(SendColumn)
_CONTROL_COLUMNS: Final = len(ControlColumn)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Registers:
    """What rows find in registers.

    Args:
        main: [tiles, 16] main registers, ``UNKNOWN`` where nothing is known.
        outgoing_base: [tiles] byte address that sends count from.
        incoming_base: [tiles] byte address that pointers count from.
    """

    main: Int64Array
    outgoing_base: Int64Array
    incoming_base: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """Everything that happens in a phase.

    Args:
        tiles: physical tiles that take part, ascending.
        horizon: [tiles] events of each row.
        faults: [kinds of ``Fault``, 3] tile, event and value of the first of each, or ``NOBODY``; with any,
            streams and windows are incomplete and there are no moves.
        streams: table with columns as in ``Stream``.
        first_stream: [tiles + 1] where those of each tile begin.
        own: windows of the tiles' own multiplexers.
        pair: windows of the multiplexers of pairs, of the members that select.
        first_pair: [tiles + 1] where those of each tile begin.
        formats: table with columns as in ``Setting``.
        first_format: [tiles + 1] where those of each tile begin.
        arrivals: what is written; addresses are those where each begins.
        moves: the same, cut where pointers are set, with addresses.
    """

    tiles: Int64Array
    horizon: Int64Array
    faults: Int64Array
    streams: Int64Array
    first_stream: Int64Array
    own: Int64Array
    pair: Int64Array
    first_pair: Int64Array
    formats: Int64Array
    first_format: Int64Array
    arrivals: Int64Array
    moves: Int64Array


def course_of(rows: Rows, registers: Registers) -> Course | RefusedRow:
    """Work out a phase, or say which row cannot be decoded.

    Args:
        rows: the rows of the tiles that take part.
        registers: what they find.
    """
    tiles = rows.tiles
    index_of = np.full(TILE_COUNT, NO_TILE, dtype=np.int64)
    index_of[tiles] = np.arange(len(tiles))
    refused, horizon, faults, streams, first_stream, own, pair, first_pair, *settings = _read(
        tiles,
        index_of,
        rows.words,
        rows.first_word,
        registers.main,
        registers.outgoing_base,
        registers.incoming_base,
    )
    if refused[1] != 0:
        row, reason, word = refused.tolist()
        return refused_row(rows.words[rows.first_word[row] : rows.first_word[row + 1]], row, reason, word)
    pointers, first_pointer, formats, first_format = settings
    nothing = np.empty((0, _MOVE_COLUMNS), dtype=np.int64)
    arrivals = moves = nothing
    if (faults[:, 0] == NOBODY).all():
        arrivals = _arrivals(tiles, index_of, streams, first_stream, own, pair)
        where = (arrivals, streams, len(tiles), pointers, first_pointer)
        moves = _placed(*where) if _are_cut(*where) else arrivals
    return Course(
        tiles=tiles,
        horizon=horizon,
        faults=faults,
        streams=streams,
        first_stream=first_stream,
        own=own,
        pair=pair,
        first_pair=first_pair,
        formats=formats,
        first_format=first_format,
        arrivals=arrivals,
        moves=moves,
    )


_NEUTRAL: Final = int(NEUTRAL_MUX)
_ORDINARY: Final = int(IncomingFormat.ORDINARY)
_LAST_FORMAT: Final = int(max(IncomingFormat))
_DIRECTIONS: Final = int(MULTICAST)
_PAIRED: Final = int(SendControl.PAIRED)
_ITEM_BYTES: Final = int(ITEM_BYTES)
_PAIRED_ITEM_BYTES: Final = int(PAIRED_ITEM_BYTES)
_LANE: Final = int(PARTNER_LANE)


@compiled
def _read(
    tiles: Int64Array,
    index_of: Int64Array,
    words: WordArray,
    first_word: Int64Array,
    main: Int64Array,
    outgoing_base: Int64Array,
    incoming_base: Int64Array,
) -> tuple[
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
    Int64Array,
]:
    """Streams, windows and settings of all tiles, as ``Course`` and ``_placed`` take them.

    Before them the row, the reason and the word of a refusal, the reason 0 if there is none, and [tiles]
    events of each row. Each row is decoded in tables that stay in the processor's cache.
    """
    refused = np.zeros(3, dtype=np.int64)
    horizon = np.zeros(tiles.size, dtype=np.int64)
    faults = np.full((_FAULTS, 3), NOBODY, dtype=np.int64)
    longest = 0
    for index in range(tiles.size):
        longest = max(longest, first_word[index + 1] - first_word[index])
    instructions = np.empty((longest, 4), dtype=np.int64)
    sends = np.empty((longest, _SEND_COLUMNS), dtype=np.int64)
    controls = np.empty((longest, _CONTROL_COLUMNS), dtype=np.int64)
    result = np.zeros(RESULTS, dtype=np.int64)
    # A word carries at most one control, two words of one instruction two.
    streams = np.empty((words.size, _STREAM_COLUMNS), dtype=np.int64)
    own = np.empty((words.size, _WINDOW_COLUMNS), dtype=np.int64)
    pair = np.empty((words.size, _WINDOW_COLUMNS), dtype=np.int64)
    pointers = np.empty((words.size, _SETTING_COLUMNS), dtype=np.int64)
    formats = np.empty((words.size, _SETTING_COLUMNS), dtype=np.int64)
    first_stream, first_pair, first_pointer, first_format = (
        np.zeros(tiles.size + 1, dtype=np.int64),
        np.zeros(tiles.size + 1, dtype=np.int64),
        np.zeros(tiles.size + 1, dtype=np.int64),
        np.zeros(tiles.size + 1, dtype=np.int64),
    )
    stream_count = 0
    own_count = 0
    pair_count = 0
    pointer_count = 0
    format_count = 0
    for index in range(tiles.size):
        tile = int(tiles[index])
        row = words[first_word[index] : first_word[index + 1]]
        reason = decode_whole(row, instructions, sends, controls, result)
        if reason != 0:
            refused[0], refused[1], refused[2] = index, reason, result[4]
            break
        send_count, control_count = int(result[1]), int(result[2])
        horizon[index] = result[3]
        # What the two multiplexers select, and since when.
        source = _NEUTRAL
        since = 0
        pair_source = _NEUTRAL
        pair_since = 0
        incoming = _ORDINARY
        base = int(incoming_base[index])
        for control in range(control_count):
            at = int(controls[control, ControlColumn.EVENT.value])
            what = int(controls[control, ControlColumn.KIND.value])
            new = int(controls[control, ControlColumn.VALUE.value])
            register = int(controls[control, ControlColumn.REGISTER.value])
            if register != NO_REGISTER and new == UNKNOWN:
                new = int(main[index, register])
                if new == UNKNOWN:
                    _note(faults, Fault.FOREIGN_CONTROL.value, index, at, what)
            if control > 0 and controls[control - 1, ControlColumn.EVENT.value] == at:
                other = int(controls[control - 1, ControlColumn.KIND.value])
                if min(what, other) != ControlKind.XPIC0.value or max(what, other) != ControlKind.PIC0.value:
                    _note(faults, Fault.CONTROL_PAIR.value, index, at, what)
            if what == ControlKind.XPIC0.value or what == ControlKind.XPIC1.value:
                if new != _NEUTRAL:
                    if what == ControlKind.XPIC1.value:
                        # It names the source as seen from the lane of the member that selects.
                        new ^= tile & _LANE
                    if new < 0 or new >= index_of.size or index_of[new] == NO_TILE:
                        _note(faults, Fault.UNKNOWN_SOURCE.value, index, at, new)
                        new = _NEUTRAL
                if what == ControlKind.XPIC0.value:
                    own_count = _close(own, own_count, index, source, since, at)
                    source = new
                    since = at
                else:
                    pair_count = _close(pair, pair_count, index, pair_source, pair_since, at)
                    pair_source = new
                    pair_since = at
            elif what == ControlKind.PIC0.value:
                pointers[pointer_count, Setting.EVENT.value] = at
                pointers[pointer_count, Setting.VALUE.value] = base + WORD_BYTES * new
                pointer_count += 1
            elif what == ControlKind.PIC1.value:
                if new > _LAST_FORMAT:
                    _note(faults, Fault.FOREIGN_CONTROL.value, index, at, what)
                formats[format_count, Setting.EVENT.value] = at
                formats[format_count, Setting.VALUE.value] = new
                format_count += 1
                incoming = new
            elif what == ControlKind.INCOMING_BASE.value:
                base = new
        if source != _NEUTRAL or pair_source != _NEUTRAL or incoming != _ORDINARY:
            selected = source if source != _NEUTRAL else pair_source
            _note(faults, Fault.STAYS_SELECTED.value, index, since, selected)
        first_pair[index + 1] = pair_count
        first_pointer[index + 1] = pointer_count
        first_format[index + 1] = format_count

        base = int(outgoing_base[index])
        change = 0
        for send in range(send_count):
            control = int(sends[send, SendColumn.CONTROL.value])
            slot = int(sends[send, SendColumn.SLOT.value])
            count = int(sends[send, SendColumn.COUNT.value])
            while change < control_count and controls[change, ControlColumn.EVENT.value] <= slot:
                if controls[change, ControlColumn.KIND.value] == ControlKind.OUTGOING_BASE.value:
                    base = int(controls[change, ControlColumn.VALUE.value])
                    if base == UNKNOWN:
                        base = int(main[index, controls[change, ControlColumn.REGISTER.value]])
                change += 1
            if control & _DIRECTIONS == 0:
                _note(faults, Fault.FOREIGN_SEND.value, index, slot, control)
            size = _PAIRED_ITEM_BYTES if control & _PAIRED else _ITEM_BYTES
            address = base + size * int(sends[send, SendColumn.ITEM.value])
            last = stream_count - 1
            if (
                sends[send, SendColumn.KIND.value] == SendKind.CONTINUE.value
                and last >= first_stream[index]
                and streams[last, Stream.SLOT.value] + streams[last, Stream.COUNT.value] == slot
                and streams[last, Stream.ADDRESS.value] + size * streams[last, Stream.COUNT.value] == address
                and streams[last, Stream.CONTROL.value] == control
            ):
                streams[last, Stream.COUNT.value] += count
                continue
            streams[stream_count, Stream.TILE.value] = index
            streams[stream_count, Stream.SLOT.value] = slot
            streams[stream_count, Stream.COUNT.value] = count
            streams[stream_count, Stream.ADDRESS.value] = address
            streams[stream_count, Stream.SIZE.value] = size
            streams[stream_count, Stream.CONTROL.value] = control
            stream_count += 1
        first_stream[index + 1] = stream_count
    return (
        refused,
        horizon,
        faults,
        streams[:stream_count],
        first_stream,
        own[:own_count],
        pair[:pair_count],
        first_pair,
        pointers[:pointer_count],
        first_pointer,
        formats[:format_count],
        first_format,
    )


@compiled
def _note(faults: Int64Array, kind: int, index: int, event: int, value: int) -> None:
    """Keep the first of a kind."""
    if faults[kind, 0] == NOBODY:
        faults[kind, 0] = index
        faults[kind, 1] = event
        faults[kind, 2] = value


@compiled
def _close(windows: Int64Array, at: int, index: int, source: int, begin: int, end: int) -> int:
    """End a window, if a source is selected; the place of the next."""
    if source == _NEUTRAL or begin == end:
        return at
    windows[at, Window.TILE.value] = index
    windows[at, Window.SOURCE.value] = source
    windows[at, Window.BEGIN.value] = begin
    windows[at, Window.END.value] = end
    return at + 1


def _arrivals(
    tiles: Int64Array,
    index_of: Int64Array,
    streams: Int64Array,
    first_stream: Int64Array,
    own: Int64Array,
    pair: Int64Array,
) -> Int64Array:
    """What multiplexers let through to be written, in order of tile and event."""
    to_write = fabric.select_to_writes(tiles)

    def met(windows: Int64Array, added: int) -> Int64Array:
        source, receiver = windows[:, Window.SOURCE], tiles[windows[:, Window.TILE]]
        to_select = fabric.times_to_mux(source, receiver) + fabric.SELECT_AFTER_PASSING
        direction = fabric.directions(source, receiver)
        return _meet(windows, index_of[source], to_select, direction, to_write + added, streams, first_stream)

    ordinary = met(own, 0)
    if not len(pair):
        return ordinary
    here = met(pair, fabric.SELECT_AFTER_PASSING)
    there = here.copy()
    there[:, Move.TILE] = index_of[tiles[here[:, Move.TILE]] ^ PARTNER_LANE]
    every = np.concatenate([ordinary, here, there[there[:, Move.TILE] != NO_TILE]])
    bits = int(every[:, Move.EVENT].max(initial=0)).bit_length()
    return every[ascending((every[:, Move.TILE] << bits) + every[:, Move.EVENT])]


@compiled
def _meet(
    windows: Int64Array,
    source: Int64Array,
    to_select: Int64Array,
    direction: Int64Array,
    to_write: Int64Array,
    streams: Int64Array,
    first_stream: Int64Array,
) -> Int64Array:
    """Arrivals from windows; ``source`` is an index, ``to_write`` is by tile."""
    found = np.empty((windows.shape[0] + 16, _MOVE_COLUMNS), dtype=np.int64)
    count = 0
    for window in range(windows.shape[0]):
        tile = windows[window, Window.TILE.value]
        begin = windows[window, Window.BEGIN.value] - to_select[window]
        end = windows[window, Window.END.value] - to_select[window]
        stream = first_stream[source[window]]
        high = first_stream[source[window] + 1]
        behind = high
        while stream < high:  # the first stream that ends behind the beginning of the window
            middle = (stream + high) // 2
            if streams[middle, Stream.SLOT.value] + streams[middle, Stream.COUNT.value] <= begin:
                stream = middle + 1
            else:
                high = middle
        while stream < behind and streams[stream, Stream.SLOT.value] < end:
            slot = streams[stream, Stream.SLOT.value]
            first = max(begin - slot, 0)
            last = min(end - slot, streams[stream, Stream.COUNT.value])
            if streams[stream, Stream.CONTROL.value] & direction[window] != 0 and first < last:
                if count == found.shape[0]:
                    found = np.concatenate((found, np.empty_like(found)))
                found[count, Move.TILE.value] = tile
                found[count, Move.EVENT.value] = slot + first + to_select[window] + to_write[tile]
                found[count, Move.COUNT.value] = last - first
                found[count, Move.ADDRESS.value] = NO_POINTER
                found[count, Move.STREAM.value] = stream
                found[count, Move.ITEM.value] = first
                count += 1
            stream += 1
    return found[:count]


@compiled
def _are_cut(
    arrivals: Int64Array,
    streams: Int64Array,
    tile_count: int,
    pointers: Int64Array,
    first_pointer: Int64Array,
) -> bool:
    """Whether a pointer is set within an arrival. Where not, arrivals have their addresses now."""
    arrival = 0
    for tile in range(tile_count):
        setting = first_pointer[tile]
        pointer = NO_POINTER
        while arrival < arrivals.shape[0] and arrivals[arrival, Move.TILE.value] == tile:
            event = arrivals[arrival, Move.EVENT.value]
            count = arrivals[arrival, Move.COUNT.value]
            while setting < first_pointer[tile + 1] and pointers[setting, Setting.EVENT.value] <= event:
                pointer = pointers[setting, Setting.VALUE.value]
                setting += 1
            if setting < first_pointer[tile + 1] and pointers[setting, Setting.EVENT.value] < event + count:
                return True
            arrivals[arrival, Move.ADDRESS.value] = pointer
            if pointer != NO_POINTER:
                pointer += streams[arrivals[arrival, Move.STREAM.value], Stream.SIZE.value] * count
            arrival += 1
    return False


@compiled
def _placed(
    arrivals: Int64Array,
    streams: Int64Array,
    tile_count: int,
    pointers: Int64Array,
    first_pointer: Int64Array,
) -> Int64Array:
    """Follow each tile's pointer through its arrivals."""
    found = np.empty((arrivals.shape[0] + pointers.shape[0], _MOVE_COLUMNS), dtype=np.int64)
    count = 0
    arrival = 0
    for tile in range(tile_count):
        setting = first_pointer[tile]
        pointer = NO_POINTER
        while arrival < arrivals.shape[0] and arrivals[arrival, Move.TILE.value] == tile:
            event = arrivals[arrival, Move.EVENT.value]
            end = event + arrivals[arrival, Move.COUNT.value]
            stream = arrivals[arrival, Move.STREAM.value]
            item = arrivals[arrival, Move.ITEM.value]
            while event < end:
                while setting < first_pointer[tile + 1] and pointers[setting, Setting.EVENT.value] <= event:
                    pointer = pointers[setting, Setting.VALUE.value]
                    setting += 1
                stop = end
                if setting < first_pointer[tile + 1]:
                    stop = min(stop, pointers[setting, Setting.EVENT.value])
                found[count, Move.TILE.value] = tile
                found[count, Move.EVENT.value] = event
                found[count, Move.COUNT.value] = stop - event
                found[count, Move.ADDRESS.value] = pointer
                found[count, Move.STREAM.value] = stream
                found[count, Move.ITEM.value] = item
                count += 1
                if pointer != NO_POINTER:
                    pointer += streams[stream, Stream.SIZE.value] * (stop - event)
                item += stop - event
                event = stop
            arrival += 1
    return found[:count]
