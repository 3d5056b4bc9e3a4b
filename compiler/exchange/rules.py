"""The rules of the fabric, applied to what rows do. For the checker alone.

Input: the ``Course`` of a phase (``arrivals``), and where rows lie if that is known. Output: of each rule the
first place where it is broken. Each rule is one walk over columns that are in order of tile and time.

Sources are those that ``check.CheckKind`` names for each rule.
"""

from enum import IntEnum
from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.arrivals import (
    NO_POINTER,
    NO_TILE,
    NOBODY,
    Course,
    Move,
    Setting,
    Stream,
    Window,
)
from compiler.target import fabric
from compiler.target.fabric import MULTICAST, PAIRED_ITEM_BYTES, SendControl
from compiler.target.memory import ARRAY_SIZE, SRAM_BASE, SRAM_END, element_keys
from compiler.target.registers import IncomingFormat
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import Int64Array


class Rule(IntEnum):
    """Rows of what is found; columns are the tile's index, an event or slot, and two addresses or numbers."""

    BORROWED_LANE = 0
    PAIR_MUX = 1
    LATE_MEMBER = 2
    LONE_MEMBER = 3
    WRONG_MUX = 4
    OVERLAPPING_RECEIVES = 5
    NO_POINTER = 6
    CUT_SHORT = 7
    FORMAT = 8
    FORMAT_CHANGE = 9
    ISOLATED_LOOPBACK = 10
    SEND_CONTROL = 11
    OUTSIDE_READ = 12
    OUTSIDE_WRITE = 13
    MISALIGNED = 14
    SHARED_ELEMENT = 15
    ROW_ELEMENT = 16


_RULES: Final = len(Rule)
_PAIRED: Final = int(SendControl.PAIRED)
_MULTICAST: Final = int(MULTICAST)
_ORDINARY: Final = int(IncomingFormat.ORDINARY)
_PAIRED_EAST: Final = int(IncomingFormat.PAIRED_EAST)
_PAIRED_WEST: Final = int(IncomingFormat.PAIRED_WEST)
_EAST: Final = int(fabric.Direction.EAST)
_FORMAT_BEFORE_WRITE: Final = int(fabric.FORMAT_BEFORE_WRITE)
_ROW_AFTER_LAST_WRITE: Final = int(fabric.ROW_AFTER_LAST_WRITE)
_PAIRED_ITEM_BYTES: Final = int(PAIRED_ITEM_BYTES)
_SRAM_BASE: Final = int(SRAM_BASE)
_SRAM_END: Final = int(SRAM_END)
_ARRAY_SIZE: Final = int(ARRAY_SIZE)
_LANE: Final = int(PARTNER_LANE)
_FAR: Final = 1 << 60


def broken_rules(course: Course, row_begin: Int64Array, row_end: Int64Array) -> Int64Array:
    """[rules, 4] the first place where each rule is broken; its first column is ``NOBODY`` where none is.

    Addresses are looked at only when times are right.

    Args:
        course: the phase; one without faults.
        row_begin: [tiles] byte address from which each row is fetched; not less than ``row_end`` if unknown.
        row_end: [tiles] first byte behind what is fetched.
    """
    found = np.full((_RULES, 4), NOBODY, dtype=np.int64)
    index_of = np.full(TILE_COUNT, NO_TILE, dtype=np.int64)
    index_of[course.tiles] = np.arange(len(course.tiles))
    partner = index_of[course.tiles ^ PARTNER_LANE]
    streams, moves = course.streams, course.arrivals
    direction = np.zeros(len(moves), dtype=np.int64)
    if len(course.pair) or (streams[:, Stream.CONTROL] >= _PAIRED).any():
        sender = course.tiles[streams[moves[:, Move.STREAM], Stream.TILE]]
        direction = fabric.directions(sender, course.tiles[moves[:, Move.TILE]])
        source, receiver = course.pair[:, Window.SOURCE], course.tiles[course.pair[:, Window.TILE]]
        time = fabric.times_to_mux(source, receiver)
        is_early = (time < fabric.times_to_mux(source, receiver ^ PARTNER_LANE)).astype(np.int64)
        _pairs(
            course.tiles,
            partner,
            streams,
            course.first_stream,
            course.own,
            index_of[course.own[:, Window.SOURCE]],
            fabric.times_to_mux(course.own[:, Window.SOURCE], course.tiles[course.own[:, Window.TILE]]),
            course.pair,
            index_of[source],
            time,
            is_early,
            course.first_pair,
            found,
        )
    _times(
        course.tiles,
        course.horizon,
        streams,
        moves,
        direction,
        course.formats,
        course.first_format,
        partner,
        found,
    )
    _addresses(streams, course.moves, found)
    if (found[:, 0] == NOBODY).all():
        element = element_keys(np.arange(_SRAM_BASE, _SRAM_END, _ARRAY_SIZE))
        _elements(
            len(course.tiles), streams, course.first_stream, course.moves, element, row_begin, row_end, found
        )
    return found


@compiled
def _note(found: Int64Array, rule: int, tile: int, event: int, first: int, second: int) -> None:
    """Keep the first of a rule."""
    if found[rule, 0] == NOBODY:
        found[rule, 0] = tile
        found[rule, 1] = event
        found[rule, 2] = first
        found[rule, 3] = second


@compiled
def _pairs(
    tiles: Int64Array,
    partner: Int64Array,
    streams: Int64Array,
    first_stream: Int64Array,
    own: Int64Array,
    own_source: Int64Array,
    own_time: Int64Array,
    pair: Int64Array,
    pair_source: Int64Array,
    pair_time: Int64Array,
    is_early: Int64Array,
    first_pair: Int64Array,
    found: Int64Array,
) -> None:
    """What paired transfers need besides: the partner's lane, and who selects with which multiplexer.

    ``time`` is that to the multiplexer of the tile whose window it is, ``source`` an index.
    """
    for tile in range(tiles.size):
        other = int(partner[tile])
        if other == NO_TILE or tiles[tile] & _LANE:
            continue
        # Streams of partners, at least one paired, are disjoint in time.
        mine = first_stream[tile]
        theirs = first_stream[other]
        while mine < first_stream[tile + 1] and theirs < first_stream[other + 1]:
            my_slot = streams[mine, Stream.SLOT.value]
            their_slot = streams[theirs, Stream.SLOT.value]
            my_end = my_slot + streams[mine, Stream.COUNT.value]
            their_end = their_slot + streams[theirs, Stream.COUNT.value]
            either = streams[mine, Stream.CONTROL.value] | streams[theirs, Stream.CONTROL.value]
            if either & _PAIRED and my_slot < their_end and their_slot < my_end:
                _note(found, Rule.BORROWED_LANE.value, tile, max(my_slot, their_slot), tiles[other], 0)
            if my_end <= their_end:
                mine += 1
            else:
                theirs += 1
        # Windows of the pair's multiplexer are disjoint, and no event ends one's and begins the other's.
        mine = first_pair[tile]
        theirs = first_pair[other]
        while mine < first_pair[tile + 1] and theirs < first_pair[other + 1]:
            begin = max(pair[mine, Window.BEGIN.value], pair[theirs, Window.BEGIN.value])
            if begin <= min(pair[mine, Window.END.value], pair[theirs, Window.END.value]):
                _note(found, Rule.PAIR_MUX.value, tile, begin, tiles[other], 0)
            if pair[mine, Window.END.value] <= pair[theirs, Window.END.value]:
                mine += 1
            else:
                theirs += 1
    for window in range(pair.shape[0]):
        tile = int(pair[window, Window.TILE.value])
        begin = int(pair[window, Window.BEGIN.value])
        index = int(pair_source[window])
        source = int(tiles[index])
        time = int(pair_time[window])
        if _met(streams, first_stream, index, pair, window, time, 0):
            _note(found, Rule.WRONG_MUX.value, tile, begin, source, 0)
        if _met(streams, first_stream, index, pair, window, time, _PAIRED):
            if is_early[window] == 0:
                _note(found, Rule.LATE_MEMBER.value, tile, begin, source, 0)
            if partner[tile] == NO_TILE:
                _note(found, Rule.LONE_MEMBER.value, tile, begin, source, 0)
    for window in range(own.shape[0]):
        index = int(own_source[window])
        if _met(streams, first_stream, index, own, window, int(own_time[window]), _PAIRED):
            tile = int(own[window, Window.TILE.value])
            begin = int(own[window, Window.BEGIN.value])
            _note(found, Rule.WRONG_MUX.value, tile, begin, int(tiles[index]), 0)


@compiled
def _met(
    streams: Int64Array,
    first_stream: Int64Array,
    source: int,
    windows: Int64Array,
    window: int,
    time: int,
    kind: int,
) -> bool:
    """Whether a window meets a stream with this bit of ``PAIRED``, in whatever direction it is sent."""
    begin = windows[window, Window.BEGIN.value] - time - 1
    end = windows[window, Window.END.value] - time - 1
    stream = first_stream[source]
    high = first_stream[source + 1]
    behind = high
    while stream < high:
        middle = (stream + high) // 2
        if streams[middle, Stream.SLOT.value] + streams[middle, Stream.COUNT.value] <= begin:
            stream = middle + 1
        else:
            high = middle
    while stream < behind and streams[stream, Stream.SLOT.value] < end:
        if streams[stream, Stream.CONTROL.value] & _PAIRED == kind:
            return True
        stream += 1
    return False


@compiled
def _times(
    tiles: Int64Array,
    horizon: Int64Array,
    streams: Int64Array,
    arrivals: Int64Array,
    direction: Int64Array,
    formats: Int64Array,
    first_format: Int64Array,
    partner: Int64Array,
    found: Int64Array,
) -> None:
    """Payloads one at a time, in the format set, within the row; send controls that fit who receives.

    ``direction`` of arrivals counts for paired ones alone.
    """
    receivers = np.zeros(streams.shape[0], dtype=np.int64)
    others = np.zeros(streams.shape[0], dtype=np.int64)
    latest = np.full(streams.shape[0], NO_TILE, dtype=np.int64)
    arrival = 0
    for tile in range(tiles.size):
        reach = 0
        ordinary_reach = 0
        form = first_format[tile]
        incoming = _ORDINARY
        while arrival < arrivals.shape[0] and arrivals[arrival, Move.TILE.value] == tile:
            event = int(arrivals[arrival, Move.EVENT.value])
            end = event + int(arrivals[arrival, Move.COUNT.value])
            stream = int(arrivals[arrival, Move.STREAM.value])
            is_paired = streams[stream, Stream.CONTROL.value] & _PAIRED != 0
            if event < reach:
                _note(found, Rule.OVERLAPPING_RECEIVES.value, tile, event, 0, 0)
            reach = max(reach, end)
            if end + _ROW_AFTER_LAST_WRITE > horizon[tile]:
                _note(found, Rule.CUT_SHORT.value, tile, event, horizon[tile], 0)
            # The format of an item is that set two events before its write.
            wanted = _ORDINARY
            if is_paired:
                wanted = _PAIRED_EAST if direction[arrival] == _EAST else _PAIRED_WEST
            sampled = event - _FORMAT_BEFORE_WRITE
            while form < first_format[tile + 1] and formats[form, Setting.EVENT.value] <= sampled:
                incoming, form = _set_format(formats, form, incoming, ordinary_reach, tile, found)
            if incoming != wanted:
                _note(found, Rule.FORMAT.value, tile, event, incoming, wanted)
            if not is_paired:
                ordinary_reach = max(ordinary_reach, end)
            while (
                form < first_format[tile + 1]
                and formats[form, Setting.EVENT.value] < end - _FORMAT_BEFORE_WRITE
            ):
                incoming, form = _set_format(formats, form, incoming, ordinary_reach, tile, found)
                if incoming != wanted:
                    _note(found, Rule.FORMAT.value, tile, event, incoming, wanted)
            if latest[stream] != tile:
                latest[stream] = tile
                receivers[stream] += 1
                sender = int(streams[stream, Stream.TILE.value])
                is_home = tile == sender or (is_paired and tile == partner[sender])
                others[stream] += 0 if is_home else 1
            arrival += 1
        while form < first_format[tile + 1]:
            incoming, form = _set_format(formats, form, incoming, ordinary_reach, tile, found)
    for stream in range(streams.shape[0]):
        if receivers[stream] == 0:
            continue
        sender = int(streams[stream, Stream.TILE.value])
        slot = int(streams[stream, Stream.SLOT.value])
        control = int(streams[stream, Stream.CONTROL.value])
        if others[stream] == 0:
            _note(found, Rule.ISOLATED_LOOPBACK.value, sender, slot, 0, 0)
        alone = receivers[stream] == 1
        if control & _PAIRED:
            alone = receivers[stream] == 2 and others[stream] == 2
        if alone == (control & _MULTICAST == _MULTICAST):
            _note(found, Rule.SEND_CONTROL.value, sender, slot, control, receivers[stream])


@compiled
def _set_format(
    formats: Int64Array, form: int, incoming: int, ordinary_reach: int, tile: int, found: Int64Array
) -> tuple[int, int]:
    """Take a format; a paired one needs all ordinary words before it written. The format, and the next."""
    new = int(formats[form, Setting.VALUE.value])
    event = int(formats[form, Setting.EVENT.value])
    if new != incoming and new != _ORDINARY and event < ordinary_reach:
        _note(found, Rule.FORMAT_CHANGE.value, tile, event, ordinary_reach, 0)
    return new, form + 1


@compiled
def _addresses(streams: Int64Array, moves: Int64Array, found: Int64Array) -> None:
    """What is read and written are items of SRAM, each at a multiple of its size, at pointers set."""
    for stream in range(streams.shape[0]):
        tile = streams[stream, Stream.TILE.value]
        slot = streams[stream, Stream.SLOT.value]
        address = streams[stream, Stream.ADDRESS.value]
        size = streams[stream, Stream.SIZE.value]
        if address < _SRAM_BASE or address + size * streams[stream, Stream.COUNT.value] > _SRAM_END:
            _note(found, Rule.OUTSIDE_READ.value, tile, slot, address, 0)
        if address % size != 0:
            _note(found, Rule.MISALIGNED.value, tile, slot, address, 0)
    for move in range(moves.shape[0]):
        tile = moves[move, Move.TILE.value]
        event = moves[move, Move.EVENT.value]
        address = moves[move, Move.ADDRESS.value]
        size = streams[moves[move, Move.STREAM.value], Stream.SIZE.value]
        if address == NO_POINTER:
            _note(found, Rule.NO_POINTER.value, tile, event, 0, 0)
            continue
        if address < _SRAM_BASE or address + size * moves[move, Move.COUNT.value] > _SRAM_END:
            _note(found, Rule.OUTSIDE_WRITE.value, tile, event, address, 0)
        if address % size != 0:
            _note(found, Rule.MISALIGNED.value, tile, event, address, 0)


@compiled
def _elements(
    tile_count: int,
    streams: Int64Array,
    first_stream: Int64Array,
    moves: Int64Array,
    element: Int64Array,
    row_begin: Int64Array,
    row_end: Int64Array,
    found: Int64Array,
) -> None:
    """What is read, written and executed at one time lies in different elements.

    ``element`` names the element of each array. A write counts until five events after its end.
    """
    move = 0
    for tile in range(tile_count):
        first_move = move
        row_low = _FAR
        row_high = -1
        if row_begin[tile] < row_end[tile]:
            row_low = element[(row_begin[tile] - _SRAM_BASE) // _ARRAY_SIZE]
            row_high = element[(row_end[tile] - 1 - _SRAM_BASE) // _ARRAY_SIZE]
        stream = first_stream[tile]
        while move < moves.shape[0] and moves[move, Move.TILE.value] == tile:
            low, high = _span(streams, moves, move, element)
            if low <= row_high and row_low <= high:
                _note(
                    found,
                    Rule.ROW_ELEMENT.value,
                    tile,
                    moves[move, Move.EVENT.value],
                    moves[move, Move.ADDRESS.value],
                    row_begin[tile],
                )
            move += 1
        behind = move
        writing = first_move
        while stream < first_stream[tile + 1]:
            slot = streams[stream, Stream.SLOT.value]
            end = slot + streams[stream, Stream.COUNT.value]
            begin = streams[stream, Stream.ADDRESS.value]
            size = streams[stream, Stream.SIZE.value] * streams[stream, Stream.COUNT.value]
            low = element[(begin - _SRAM_BASE) // _ARRAY_SIZE]
            high = element[(begin + size - 1 - _SRAM_BASE) // _ARRAY_SIZE]
            if low <= row_high and row_low <= high:
                _note(found, Rule.ROW_ELEMENT.value, tile, slot, begin, row_begin[tile])
            while writing < behind and _quiet(moves, writing) <= slot:
                writing += 1
            other = writing
            while other < behind and moves[other, Move.EVENT.value] < end:
                write_low, write_high = _span(streams, moves, other, element)
                if low <= write_high and write_low <= high:
                    _note(
                        found,
                        Rule.SHARED_ELEMENT.value,
                        tile,
                        slot,
                        begin,
                        moves[other, Move.ADDRESS.value],
                    )
                other += 1
            stream += 1


@compiled
def _quiet(moves: Int64Array, move: int) -> int:
    """Event from which a write no longer counts."""
    return int(moves[move, Move.EVENT.value] + moves[move, Move.COUNT.value] + _ROW_AFTER_LAST_WRITE)


@compiled
def _span(streams: Int64Array, moves: Int64Array, move: int, element: Int64Array) -> tuple[int, int]:
    """First and last element of a write."""
    begin = moves[move, Move.ADDRESS.value]
    size = streams[moves[move, Move.STREAM.value], Stream.SIZE.value] * moves[move, Move.COUNT.value]
    return (
        int(element[(begin - _SRAM_BASE) // _ARRAY_SIZE]),
        int(element[(begin + size - 1 - _SRAM_BASE) // _ARRAY_SIZE]),
    )
