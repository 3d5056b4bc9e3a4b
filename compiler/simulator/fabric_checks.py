"""The rules of a phase: what hardware would stop for, or has never been seen to do.

Input: the course of a phase. Output: of each kind of fault the first on each tile. ``timing_faults`` looks at
times alone; where it finds nothing, ``address_faults`` looks at where in memory things happen. After both are
empty the following holds, which moving the data relies on: on one tile, items are written one at a time, and
whenever a stream is read while a message is written, the two touch different memory elements.

Rules and their sources:

* at one event only a pointer and the tile's own multiplexer may change together (vendor rows; every other
  pair faulted on hardware or was never seen);
* a paired stream uses the transmit lane of the partner (ran on hardware); the partner may receive meanwhile;
* the multiplexer of a pair is selected by one member at a time, the early one (runtime of the vendor);
* a stream that reaches only its sender, or paired only its sender's pair, is not delivered (ran on hardware);
* the format of an item is that set two events before its write, and a change to a paired format waits until
  all ordinary words before it are written (vendor rows; hardware faults with MODI);
* a row lasts five events beyond each payload (vendor rows);
* what is read to be sent, what is written and what is executed at the same time lie in different elements
  (ran on hardware); the row counts with its look-ahead and for the whole phase.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.compiled import compiled
from compiler.isa.rows import ControlKind
from compiler.simulator.exchange_faults import ExchangeFault, ExchangeFaultKind
from compiler.simulator.fabric_timeline import (
    BEFORE,
    NO_POINTER,
    NO_TILE,
    Arrivals,
    Course,
    row_offsets,
    time_key,
)
from compiler.target import fabric, memory
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_BASE, SRAM_END
from compiler.target.registers import NEUTRAL_MUX, IncomingFormat
from compiler.target.tiles import PARTNER_LANE
from compiler.target.units import Address, BoolArray, Events, Int64Array, PhysicalTile

NO_ADDRESS = -1
"""The place of a row that is not in memory."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """Faults of one kind, shape [faults]; columns as in ``ExchangeFault``, tiles as indices, -1 for None."""

    kind: ExchangeFaultKind
    tile: Int64Array
    event: Int64Array
    word: Int64Array | None = None
    other: Int64Array | None = None
    address: Int64Array | None = None
    other_address: Int64Array | None = None
    horizon: Int64Array | None = None


def timing_faults(course: Course, workers_active: BoolArray) -> tuple[ExchangeFault, ...]:
    """Everything that is wrong with the times of a phase, by event and tile.

    Args:
        course: the phase.
        workers_active: of each tile, whether workers run in it, shape [tiles].
    """
    checks = (
        _workers(workers_active),
        _control_pairs(course),
        _lanes(course, paired_partner=True),
        _lanes(course, paired_partner=False),
        *_pair_multiplexers(course),
        _isolated_loopbacks(course),
        _formats(course),
        _format_changes(course),
        _overlapping_receives(course),
        _unset_pointers(course),
        _cut_payloads(course),
    )
    return _faults(course, *checks)


def address_faults(
    course: Course, row_address: Int64Array, row_size: Int64Array
) -> tuple[ExchangeFault, ...]:
    """Everything that is wrong with the addresses of a phase without timing faults, by event and tile.

    Args:
        course: the phase.
        row_address: byte address of each tile's row, or ``NO_ADDRESS``, shape [tiles].
        row_size: its bytes.
    """
    outside = _faults(course, _send_addresses(course), _receive_addresses(course))
    if outside:
        return outside
    return _faults(course, _shared_elements(course), *_row_elements(course, row_address, row_size))


def _faults(course: Course, *checks: _Found) -> tuple[ExchangeFault, ...]:
    faults = [fault for found in checks for fault in _first_on_each_tile(course, found)]
    return tuple(sorted(faults, key=lambda fault: (fault.event, fault.tile, fault.kind.value)))


def _first_on_each_tile(course: Course, found: _Found) -> Iterator[ExchangeFault]:
    absent = np.full(len(found.tile), -1, dtype=np.int64)
    other = absent if found.other is None else found.other
    address = absent if found.address is None else found.address
    other_address = absent if found.other_address is None else found.other_address
    word = absent if found.word is None else found.word
    order = np.lexsort((other_address, address, word, other, found.event, found.tile))
    tile = found.tile[order]
    is_first = np.ones(len(tile), dtype=np.bool_)
    is_first[1:] = tile[1:] != tile[:-1]
    for index in order[is_first].tolist():
        yield ExchangeFault(
            kind=found.kind,
            tile=PhysicalTile(int(course.tiles[found.tile[index]])),
            event=Events(max(int(found.event[index]), 0)),
            word=None if word[index] < 0 else int(word[index]),
            other=None if found.other is None else PhysicalTile(int(course.tiles[other[index]])),
            address=None if found.address is None else Address(int(address[index])),
            other_address=None if found.other_address is None else Address(int(other_address[index])),
            horizon=None if found.horizon is None else Events(int(found.horizon[index])),
        )


def _workers(workers_active: BoolArray) -> _Found:
    tile = np.flatnonzero(workers_active)
    return _Found(kind=ExchangeFaultKind.WORKERS_ACTIVE, tile=tile, event=np.zeros_like(tile))


def _control_pairs(course: Course) -> _Found:
    """A pair comes from one instruction, so that its two controls are neighbours."""
    key = time_key(course.control_tile, course.control_event)
    kind = course.control_kind
    is_pair = key[1:] == key[:-1]
    low, high = np.minimum(kind[1:], kind[:-1]), np.maximum(kind[1:], kind[:-1])
    is_allowed = (low == ControlKind.XPIC0) & (high == ControlKind.PIC0)
    second = np.flatnonzero(is_pair & ~is_allowed) + 1
    return _Found(
        kind=ExchangeFaultKind.CONTROL_PAIR,
        tile=course.control_tile[second],
        event=course.control_event[second],
        word=course.control_word[second],
    )


def _lanes(course: Course, *, paired_partner: bool) -> _Found:
    """Streams of a tile that meet a paired stream of its partner."""
    streams, count = course.streams, len(course.tiles)
    lender = streams.is_paired if paired_partner else ~streams.is_paired
    left, right = np.flatnonzero(lender), np.flatnonzero(streams.is_paired)
    partner = course.partner
    if paired_partner:  # the two would be reported twice
        partner = np.where(course.tiles & PARTNER_LANE, NO_TILE, partner)
    tile, mine, theirs = _first_overlaps(
        row_offsets(streams.tile[left], count),
        streams.slot[left],
        streams.slot[left] + streams.count[left],
        row_offsets(streams.tile[right], count),
        streams.slot[right],
        streams.slot[right] + streams.count[right],
        partner,
    )
    kind = ExchangeFaultKind.OVERLAPPING_SENDS if paired_partner else ExchangeFaultKind.BORROWED_LANE
    mine, theirs = left[mine], right[theirs]
    return _Found(
        kind=kind,
        tile=tile,
        event=np.maximum(streams.slot[mine], streams.slot[theirs]),
        word=streams.word[mine],
        other=streams.tile[theirs],
    )


@compiled
def _first_overlaps(
    left_offsets: Int64Array,
    left_begin: Int64Array,
    left_end: Int64Array,
    right_offsets: Int64Array,
    right_begin: Int64Array,
    right_end: Int64Array,
    right_tile: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Of each tile the first intersection of its left intervals with the right ones of another tile.

    Intervals of one tile are disjoint, not empty and in order. Result: tiles that have one, and the indices
    of the two intervals.
    """
    tile_count = left_offsets.size - 1
    tiles = np.empty(tile_count, dtype=np.int64)
    lefts = np.empty(tile_count, dtype=np.int64)
    rights = np.empty(tile_count, dtype=np.int64)
    found = 0
    for tile in range(tile_count):
        other = right_tile[tile]
        if other < 0:
            continue
        left = left_offsets[tile]
        right = right_offsets[other]
        while left < left_offsets[tile + 1] and right < right_offsets[other + 1]:
            if left_end[left] <= right_begin[right]:
                left += 1
            elif right_end[right] <= left_begin[left]:
                right += 1
            else:
                tiles[found] = tile
                lefts[found] = left
                rights[found] = right
                found += 1
                break
    return tiles[:found], lefts[:found], rights[:found]


def _pair_multiplexers(course: Course) -> tuple[_Found, _Found, _Found]:
    """Who selects with the multiplexer of a pair, and what it lets through."""
    settings, pair, streams = course.settings[ControlKind.XPIC1], course.pair, course.streams
    count = len(course.tiles)
    is_selecting = (settings.value != NEUTRAL_MUX) & (settings.begin < settings.end)
    selecting = settings.selected(is_selecting)
    offsets = row_offsets(selecting.tile, count)
    # One member of each pair stands for both, so that nothing is reported twice.
    partner = np.where(course.tiles & PARTNER_LANE, NO_TILE, course.partner)
    overlapping, mine, theirs = _first_overlaps(
        offsets, selecting.begin, selecting.end, offsets, selecting.begin, selecting.end, partner
    )
    # Two writes at one event collide as well, whatever they write.
    written = settings.selected(settings.begin != BEFORE)
    beside = partner[written.tile]
    both = (beside != NO_TILE) & np.isin(
        time_key(beside, written.begin), time_key(written.tile, written.begin)
    )
    tile = np.concatenate([overlapping, written.tile[both]])
    conflict = _Found(
        kind=ExchangeFaultKind.PAIR_MUX_CONFLICT,
        tile=tile,
        event=np.concatenate(
            [np.maximum(selecting.begin[mine], selecting.begin[theirs]), written.begin[both]]
        ),
        other=partner[tile],
    )
    is_paired = streams.is_paired[pair.stream]
    passing = pair.slot + fabric.SELECT_AFTER_PASSING
    late = np.flatnonzero(~pair.is_early)
    late_selection = _Found(
        kind=ExchangeFaultKind.LATE_PAIR_MUX,
        tile=pair.tile[late],
        event=passing[late],
        other=streams.tile[pair.stream[late]],
    )
    alone = np.flatnonzero(pair.is_early & is_paired & (course.partner[pair.tile] == NO_TILE))
    incomplete = _Found(
        kind=ExchangeFaultKind.INCOMPLETE_PAIR,
        tile=pair.tile[alone],
        event=passing[alone],
        other=streams.tile[pair.stream[alone]],
    )
    return conflict, late_selection, incomplete


def _isolated_loopbacks(course: Course) -> _Found:
    """Streams that somebody takes, but nobody other than the sender (paired: than the sender's pair)."""
    streams, messages = course.streams, course.messages
    sender = streams.tile[messages.stream]
    is_home = messages.tile == sender
    is_home |= streams.is_paired[messages.stream] & (messages.tile == course.partner[sender])
    reached = np.zeros(len(streams.tile), dtype=np.bool_)
    reached[messages.stream] = True
    reached[messages.stream[~is_home]] = False
    stream = np.flatnonzero(reached)
    return _Found(
        kind=ExchangeFaultKind.ISOLATED_LOOPBACK,
        tile=streams.tile[stream],
        event=streams.slot[stream],
        word=streams.word[stream],
    )


def _formats(course: Course) -> _Found:
    """Items that arrive in another format than the one set, or through the multiplexer of the other kind."""
    streams, own, pair, messages = course.streams, course.own, course.pair, course.messages
    after = fabric.SELECT_AFTER_PASSING + fabric.select_to_writes(course.tiles)
    is_paired = streams.is_paired
    wide = np.flatnonzero(is_paired[own.stream])
    narrow = np.flatnonzero(pair.is_early & ~is_paired[pair.stream])
    tile = [own.tile[wide], pair.tile[narrow]]
    event = [own.slot[wide] + after[own.tile[wide]], pair.slot[narrow] + after[pair.tile[narrow]] + 1]
    stream = [own.stream[wide], pair.stream[narrow]]

    sender = course.tiles[streams.tile[messages.stream]]
    direction = fabric.directions(sender, course.tiles[messages.tile])
    paired_format = np.where(
        direction == fabric.Direction.EAST, np.int64(IncomingFormat.PAIRED_EAST), IncomingFormat.PAIRED_WEST
    )
    needed = np.where(is_paired[messages.stream], paired_format, IncomingFormat.ORDINARY)
    settings = course.settings[ControlKind.PIC1]
    for incoming in IncomingFormat:
        chosen = np.flatnonzero(needed == incoming)
        wrong = settings.selected((settings.value != incoming) & (settings.begin < settings.end))
        if not len(wrong.tile):
            continue
        # The format of an item is sampled before its write; the first wrong setting that ends later counts.
        sampled = messages.event[chosen] - fabric.FORMAT_BEFORE_WRITE
        candidate = np.searchsorted(
            time_key(wrong.tile, wrong.end), time_key(messages.tile[chosen], sampled), "right"
        )
        known = np.minimum(candidate, len(wrong.tile) - 1)
        met = (
            (candidate < len(wrong.tile))
            & (wrong.tile[known] == messages.tile[chosen])
            & (wrong.begin[known] < sampled + messages.count[chosen])
        )
        first = np.maximum(sampled, wrong.begin[known]) + fabric.FORMAT_BEFORE_WRITE
        tile.append(messages.tile[chosen][met])
        event.append(first[met])
        stream.append(messages.stream[chosen][met])
    return _Found(
        kind=ExchangeFaultKind.FORMAT_MISMATCH,
        tile=np.concatenate(tile),
        event=np.concatenate(event),
        other=streams.tile[np.concatenate(stream)],
    )


def _format_changes(course: Course) -> _Found:
    """Changes to a paired format that ordinary words before it have not left behind.

    A word whose format was sampled before the change and that is written at its event or later: its write is
    at the event of the change or the one after, since sampling is two events before.
    """
    settings, messages, streams = course.settings[ControlKind.PIC1], course.messages, course.streams
    changes = np.zeros(len(settings.tile), dtype=np.bool_)
    same_tile = settings.tile[1:] == settings.tile[:-1]
    changes[1:] = same_tile & (settings.value[1:] != settings.value[:-1])
    changes &= settings.value != IncomingFormat.ORDINARY
    change = settings.selected(changes)
    ordinary = np.flatnonzero(~streams.is_paired[messages.stream])
    key = time_key(messages.tile[ordinary], messages.event[ordinary])
    found = [np.empty((4, 0), dtype=np.int64)]
    for later in range(fabric.FORMAT_BEFORE_WRITE if len(ordinary) else 0):
        last = np.searchsorted(key, time_key(change.tile, change.begin + later), "right") - 1
        known = ordinary[np.maximum(last, 0)]
        pending = (
            (last >= 0)
            & (messages.tile[known] == change.tile)
            & (messages.event[known] + messages.count[known] > change.begin + later)
        )
        source = streams.tile[messages.stream[known]]
        found.append(np.stack([change.tile, change.begin, change.word, source])[:, pending])
    tile, event, word, other = np.concatenate(found, axis=1)
    return _Found(kind=ExchangeFaultKind.FORMAT_CHANGE, tile=tile, event=event, word=word, other=other)


def _overlapping_receives(course: Course) -> _Found:
    messages = course.messages
    reach = messages.event + messages.count
    # Messages are in order of tile and event, so the furthest end so far on a tile is a running maximum.
    furthest = np.maximum.accumulate(time_key(messages.tile, reach)) if len(reach) else reach
    clash = np.flatnonzero(time_key(messages.tile, messages.event)[1:] < furthest[:-1]) + 1
    return _Found(
        kind=ExchangeFaultKind.OVERLAPPING_RECEIVES, tile=messages.tile[clash], event=messages.event[clash]
    )


def _unset_pointers(course: Course) -> _Found:
    pointers, messages = course.settings[ControlKind.PIC0], course.messages
    setting = pointers.at(messages.tile, messages.event)
    unset = (pointers.begin[setting] == BEFORE) & (pointers.value[setting] == NO_POINTER)
    return _Found(
        kind=ExchangeFaultKind.POINTER_UNSET,
        tile=messages.tile[unset],
        event=messages.event[unset],
        other=course.streams.tile[messages.stream[unset]],
    )


def _cut_payloads(course: Course) -> _Found:
    messages = course.messages
    horizon = course.horizon[messages.tile]
    last_allowed = horizon - fabric.ROW_AFTER_LAST_WRITE - 1
    cut = np.flatnonzero(messages.event + messages.count - 1 > last_allowed)
    return _Found(
        kind=ExchangeFaultKind.PAYLOAD_CUT,
        tile=messages.tile[cut],
        event=np.maximum(messages.event, last_allowed + 1)[cut],
        other=course.streams.tile[messages.stream[cut]],
        horizon=horizon[cut],
    )


def _unusable(address: Int64Array, count: Int64Array, size: Int64Array) -> tuple[BoolArray, Int64Array]:
    """Which spans leave SRAM or are misaligned, and their first item that does."""
    is_bad_at_once = (address < SRAM_BASE) | (address + size > SRAM_END) | (address % size != 0)
    inside = np.maximum(SRAM_END - address, 0) // size
    return is_bad_at_once | (inside < count), np.where(is_bad_at_once, 0, inside)


def _send_addresses(course: Course) -> _Found:
    streams = course.streams
    is_bad, item = _unusable(streams.address, streams.count, streams.size)
    return _Found(
        kind=ExchangeFaultKind.SEND_ADDRESS,
        tile=streams.tile[is_bad],
        event=(streams.slot + item)[is_bad],
        word=streams.word[is_bad],
        address=(streams.address + item * streams.size)[is_bad],
    )


def _receive_addresses(course: Course) -> _Found:
    arrivals = course.arrivals
    size = course.streams.size[arrivals.stream]
    is_bad, item = _unusable(arrivals.address, arrivals.count, size)
    return _Found(
        kind=ExchangeFaultKind.RECEIVE_ADDRESS,
        tile=arrivals.tile[is_bad],
        event=(arrivals.event + item)[is_bad],
        other=course.streams.tile[arrivals.stream[is_bad]],
        address=(arrivals.address + item * size)[is_bad],
    )


def _element_span(address: Int64Array, size: Int64Array) -> tuple[Int64Array, Int64Array]:
    """First and last element of spans of at least one byte in SRAM."""
    return memory.element_keys(address), memory.element_keys(address + size - 1)


def _arrival_bytes(course: Course, arrivals: Arrivals) -> Int64Array:
    return arrivals.count * course.streams.size[arrivals.stream]


def _shared_elements(course: Course) -> _Found:
    streams, arrivals, count = course.streams, course.arrivals, len(course.tiles)
    read_low, read_high = _element_span(streams.address, streams.count * streams.size)
    write_low, write_high = _element_span(arrivals.address, _arrival_bytes(course, arrivals))
    stream, arrival = _first_shared_elements(
        row_offsets(streams.tile, count),
        streams.slot,
        streams.slot + streams.count,
        read_low,
        read_high,
        row_offsets(arrivals.tile, count),
        arrivals.event,
        arrivals.event + arrivals.count,
        write_low,
        write_high,
    )
    return _Found(
        kind=ExchangeFaultKind.SEND_RECEIVE_ELEMENT,
        tile=streams.tile[stream],
        event=np.maximum(streams.slot[stream], arrivals.event[arrival]),
        word=streams.word[stream],
        address=streams.address[stream],
        other_address=arrivals.address[arrival],
    )


@compiled
def _first_shared_elements(
    read_offsets: Int64Array,
    read_begin: Int64Array,
    read_end: Int64Array,
    read_low: Int64Array,
    read_high: Int64Array,
    write_offsets: Int64Array,
    write_begin: Int64Array,
    write_end: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
) -> tuple[Int64Array, Int64Array]:
    """Of each tile the first read and write that overlap in time and share an element."""
    tile_count = read_offsets.size - 1
    reads = np.empty(tile_count, dtype=np.int64)
    writes = np.empty(tile_count, dtype=np.int64)
    found = 0
    for tile in range(tile_count):
        read = read_offsets[tile]
        write = write_offsets[tile]
        while read < read_offsets[tile + 1] and write < write_offsets[tile + 1]:
            if (
                read_begin[read] < write_end[write]
                and write_begin[write] < read_end[read]
                and read_low[read] <= write_high[write]
                and write_low[write] <= read_high[read]
            ):
                reads[found] = read
                writes[found] = write
                found += 1
                break
            # Whichever ends first cannot overlap anything later of the other list.
            if read_end[read] <= write_end[write]:
                read += 1
            else:
                write += 1
    return reads[:found], writes[:found]


def _row_elements(course: Course, row_address: Int64Array, row_size: Int64Array) -> tuple[_Found, _Found]:
    """Data in an element of the executing row; the row's look-ahead counts."""
    in_memory = row_address != NO_ADDRESS
    start = np.where(in_memory, row_address, SRAM_BASE)
    end = np.minimum(start + row_size + FETCH_LOOKAHEAD, SRAM_END)
    row_low, row_high = _element_span(start, end - start)

    def shared(tile: Int64Array, address: Int64Array, size: Int64Array) -> Int64Array:
        low, high = _element_span(address, size)
        return np.flatnonzero(in_memory[tile] & (low <= row_high[tile]) & (row_low[tile] <= high))

    streams, arrivals = course.streams, course.arrivals
    read = shared(streams.tile, streams.address, streams.count * streams.size)
    written = shared(arrivals.tile, arrivals.address, _arrival_bytes(course, arrivals))
    return (
        _Found(
            kind=ExchangeFaultKind.SEND_ROW_ELEMENT,
            tile=streams.tile[read],
            event=streams.slot[read],
            word=streams.word[read],
            address=streams.address[read],
            other_address=row_address[streams.tile[read]],
        ),
        _Found(
            kind=ExchangeFaultKind.RECEIVE_ROW_ELEMENT,
            tile=arrivals.tile[written],
            event=arrivals.event[written],
            other=course.streams.tile[arrivals.stream[written]],
            address=arrivals.address[written],
            other_address=row_address[arrivals.tile[written]],
        ),
    )
