"""The course of an exchange phase: which items each tile puts on the fabric and which it takes, and when.

Input: the decoded rows of all tiles that take part and what their receiving side was set to before. Output:
columns of *streams* (consecutive items that one tile sends) and *arrivals* (consecutive items of one stream
that one tile takes), each with its times. Nothing here depends on what is in memory.

**The model** (vendor rows follow from it; ``compiler.target.fabric`` has the numbers). A tile sends one
item a slot. In its slot k a receiver looks at the tile M that its multiplexer selects, and takes what M
sent in slot k - T(M, receiver), if M sent it that way. It is written a fixed number of events later, at the
pointer that is set at that event. A control at event e acts in slot e - 1: a multiplexer control counts for
slots from e - 1 on, a pointer control for writes at events from e on. An ordinary word reaches one tile
through its own multiplexer. A paired item reaches both members of a pair through the multiplexer of the
pair, which only the *early* member may set: the one that the item passes first. Both write it at the same
event.

**Runs instead of slots.** What a multiplexer selects changes at controls only, and what a tile sends changes
with its instructions only. Each stretch of selecting M, moved back by T, meets the streams of M in intervals;
each intersection is one arrival. With streams in order of slots, a bisection finds the first for a stretch:
the work is one step for each arrival and one bisection for each control, however long the data are. Stepping
through slots was rejected: it costs tiles times slots, a hundred times more than moving the data.

**Time.** Slots of different tiles have different origins; T contains the difference. From the slot in which
an item is sent to the event at which it is written at least 19 pass in these numbers, whatever the tiles. So
numbers of slots can be compared as if all tiles had one clock: nothing arrives before it is sent.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.isa.rows import NO_REGISTER, UNKNOWN, ControlKind, Row, SendKind
from compiler.target import fabric
from compiler.target.fabric import ITEM_BYTES, MULTICAST, PAIRED_ITEM_BYTES, SendControl
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array

BEFORE: Final = -(1 << 40)
"""The event of what was set before the phase."""

AFTER: Final = 1 << 40
"""The end of what is still set after it. No row that fits memory is so long."""

NO_TILE: Final = -1
"""Index of a tile that takes no part."""

NO_POINTER: Final = -1
"""A pointer that nothing has set."""

_KEY_SHIFT = 44


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Settings:
    """What one register of each tile holds over time, shape [settings], in order of tile and event.

    Args:
        tile: index of the tile.
        begin: event of the control, or ``BEFORE``.
        end: event of the next one, or ``AFTER``.
        value: what it holds.
        word: index of the instruction in its row; -1 for what was set before.
    """

    tile: Int64Array
    begin: Int64Array
    end: Int64Array
    value: Int64Array
    word: Int64Array

    def at(self, tile: Int64Array, event: Int64Array) -> Int64Array:
        """Index of the setting that holds on tiles at events; every tile needs one from ``BEFORE`` on."""
        return np.searchsorted(time_key(self.tile, self.begin), time_key(tile, event), side="right") - 1

    def selected(self, mask: BoolArray) -> "Settings":
        """Some of them; ``end`` stays."""
        return Settings(
            tile=self.tile[mask],
            begin=self.begin[mask],
            end=self.end[mask],
            value=self.value[mask],
            word=self.word[mask],
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Streams:
    """Consecutive items that one tile sends, shape [streams], in order of tile and slot.

    A stream starts with an instruction that states an address, and goes on while slots, addresses and send
    control do.

    Args:
        tile: index of the sender.
        slot: slot of the first item.
        count: items.
        address: byte address of the first item.
        size: bytes of an item.
        control: bits of ``fabric.SendControl``, one of them a direction.
        word: index of the instruction in its row, or -1.
    """

    tile: Int64Array
    slot: Int64Array
    count: Int64Array
    address: Int64Array
    size: Int64Array
    control: Int64Array
    word: Int64Array

    @property
    def is_paired(self) -> BoolArray:
        """Which consist of paired items."""
        return self.control & SendControl.PAIRED != 0


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Captures:
    """What multiplexers let through, shape [captures].

    Args:
        tile: index of the tile whose multiplexer it is.
        stream: index of the stream.
        item: first item, counted in the stream.
        count: items.
        slot: slot of ``tile`` in which the first passes.
        is_early: in multiplexers of pairs, whether the first passes ``tile`` before its partner.
    """

    tile: Int64Array
    stream: Int64Array
    item: Int64Array
    count: Int64Array
    slot: Int64Array
    is_early: BoolArray


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrivals:
    """Consecutive items that one tile writes to consecutive addresses, shape [arrivals].

    In order of tile and event.

    Args:
        tile: index of the receiver.
        stream: index of the stream.
        item: first item, counted in the stream.
        count: items.
        event: event at which the first is written.
        address: its byte address, or negative when no pointer was set.
    """

    tile: Int64Array
    stream: Int64Array
    item: Int64Array
    count: Int64Array
    event: Int64Array
    address: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Course:
    """Everything that happens in a phase.

    Args:
        tiles: physical tiles, ascending; other columns hold indices into it.
        partner: index of each tile's partner, or ``NO_TILE``.
        horizon: events of each tile's row.
        control_tile: tile of every control of every row, in order.
        control_event: its event.
        control_kind: its ``ControlKind``.
        control_word: its instruction.
        settings: what each kind of control sets, over time.
        streams: what is sent.
        own: what passes the tiles' own multiplexers.
        pair: what passes the multiplexers of pairs.
        messages: arrivals, each as long as stream and multiplexer allow; their addresses are not filled in.
        arrivals: the same cut where pointers change, with addresses.
        pointer: pointer of each tile after the phase, in bytes, or ``NO_POINTER``.
    """

    tiles: Int64Array
    partner: Int64Array
    horizon: Int64Array
    control_tile: Int64Array
    control_event: Int64Array
    control_kind: Int64Array
    control_word: Int64Array
    settings: dict[ControlKind, Settings]
    streams: Streams
    own: Captures
    pair: Captures
    messages: Arrivals
    arrivals: Arrivals
    pointer: Int64Array


def time_key(tile: Int64Array, event: Int64Array) -> Int64Array:
    """One number that orders by tile, then by event."""
    return (tile << _KEY_SHIFT) + event


def row_offsets(tile: Int64Array, count: int) -> Int64Array:
    """Where the entries of each of ``count`` tiles begin in a column ordered by tile, and where all end."""
    return np.searchsorted(tile, np.arange(count + 1)).astype(np.int64)


def course_of(
    tiles: Int64Array, rows: Sequence[Row], registers: Int64Array, entry: dict[ControlKind, Int64Array]
) -> Course:
    """Work out a phase.

    Args:
        tiles: physical tiles, ascending, shape [tiles].
        rows: the row of each.
        registers: main registers of each before its row, shape [tiles, 16].
        entry: what each kind of control had set before the phase, shape [tiles]; pointers in bytes, or
            ``NO_POINTER``.
    """
    count = len(tiles)
    index_of = np.full(TILE_COUNT, NO_TILE, dtype=np.int64)
    index_of[tiles] = np.arange(count)
    partner = index_of[tiles ^ PARTNER_LANE]

    control_tile = np.repeat(np.arange(count), [len(row.controls.event) for row in rows])
    control_event = _joined(rows, lambda row: row.controls.event)
    control_kind = _joined(rows, lambda row: row.controls.kind)
    control_word = _joined(rows, lambda row: row.controls.word)
    control_value = _joined(rows, lambda row: row.controls.value)
    register = _joined(rows, lambda row: row.controls.register)
    is_entry = (register != NO_REGISTER) & (control_value == UNKNOWN)
    control_value = np.where(is_entry, registers[control_tile, np.maximum(register, 0)], control_value)

    def settings_of(kind: ControlKind) -> Settings:
        chosen = control_kind == kind
        tile = control_tile[chosen]
        place = np.searchsorted(tile, np.arange(count))
        tile = np.insert(tile, place, np.arange(count))
        begin = np.insert(control_event[chosen], place, BEFORE)
        end = np.full(len(begin), AFTER)
        end[:-1][tile[1:] == tile[:-1]] = begin[1:][tile[1:] == tile[:-1]]
        return Settings(
            tile=tile,
            begin=begin,
            end=end,
            value=np.insert(control_value[chosen], place, entry[kind]),
            word=np.insert(control_word[chosen], place, -1),
        )

    settings = {kind: settings_of(kind) for kind in ControlKind}
    streams = _streams(rows, count, settings[ControlKind.OUTGOING_BASE])
    own = _captures(tiles, index_of, settings[ControlKind.XPIC0], streams, of_pair=False)
    pair = _captures(tiles, index_of, settings[ControlKind.XPIC1], streams, of_pair=True)
    messages = _messages(tiles, partner, streams, own, pair)
    arrivals, pointer = _addressed(messages, streams, settings, count)
    return Course(
        tiles=tiles,
        partner=partner,
        horizon=np.array([row.horizon for row in rows], dtype=np.int64),
        control_tile=control_tile,
        control_event=control_event,
        control_kind=control_kind,
        control_word=control_word,
        settings=settings,
        streams=streams,
        own=own,
        pair=pair,
        messages=messages,
        arrivals=arrivals,
        pointer=pointer,
    )


def _joined(rows: Sequence[Row], column: Callable[[Row], Int64Array]) -> Int64Array:
    return np.concatenate([np.empty(0, dtype=np.int64), *(column(row) for row in rows)])


def _streams(rows: Sequence[Row], count: int, bases: Settings) -> Streams:
    """Join sending instructions, and add the base register to their addresses."""
    control = _joined(rows, lambda row: row.sends.control)
    reaches_fabric = control & MULTICAST != 0
    control = control[reaches_fabric]
    tile = np.repeat(np.arange(count), [len(row.sends.slot) for row in rows])[reaches_fabric]
    slot = _joined(rows, lambda row: row.sends.slot)[reaches_fabric]
    items = _joined(rows, lambda row: row.sends.count)[reaches_fabric]
    size = np.where(control & SendControl.PAIRED, PAIRED_ITEM_BYTES, np.int64(ITEM_BYTES))
    address = _joined(rows, lambda row: row.sends.item)[reaches_fabric] * size
    address += bases.value[bases.at(tile, slot)]
    starts = np.ones(len(tile), dtype=np.bool_)
    starts[1:] = (
        (_joined(rows, lambda row: row.sends.kind)[reaches_fabric][1:] == SendKind.START)
        | (tile[1:] != tile[:-1])
        | (slot[1:] != slot[:-1] + items[:-1])
        | (control[1:] != control[:-1])
        | (address[1:] != address[:-1] + items[:-1] * size[:-1])
    )
    first = np.flatnonzero(starts)
    return Streams(
        tile=tile[first],
        slot=slot[first],
        count=np.add.reduceat(items, first) if len(first) else items,
        address=address[first],
        size=size[first],
        control=control[first],
        word=_joined(rows, lambda row: row.sends.word)[reaches_fabric][first],
    )


def _captures(
    tiles: Int64Array, index_of: Int64Array, settings: Settings, streams: Streams, *, of_pair: bool
) -> Captures:
    """Intersect what multiplexers select with what the selected tiles send."""
    chosen = settings.selected((settings.value >= 0) & (settings.value < TILE_COUNT))
    receiver = tiles[chosen.tile]
    # The multiplexer of a pair names its source as seen from the lane of the member that selects.
    source = chosen.value ^ (receiver & PARTNER_LANE) if of_pair else chosen.value
    takes_part = index_of[source] != NO_TILE
    chosen, receiver, source = chosen.selected(takes_part), receiver[takes_part], source[takes_part]
    time = fabric.times_to_mux(source, receiver)
    window, stream, item, items = _intersections(
        chosen.begin - fabric.SELECT_AFTER_PASSING - time,
        chosen.end - fabric.SELECT_AFTER_PASSING - time,
        fabric.directions(source, receiver),
        index_of[source],
        row_offsets(streams.tile, len(tiles)),
        streams.slot,
        streams.count,
        streams.control,
    )
    is_early = np.ones(len(window), dtype=np.bool_)
    if of_pair:
        partner_time = fabric.times_to_mux(source, receiver ^ PARTNER_LANE)
        is_early = (time < partner_time)[window]
    return Captures(
        tile=chosen.tile[window],
        stream=stream,
        item=item,
        count=items,
        slot=streams.slot[stream] + item + time[window],
        is_early=is_early,
    )


@compiled
def _intersections(
    begin: Int64Array,
    end: Int64Array,
    direction: Int64Array,
    source: Int64Array,
    offsets: Int64Array,
    slot: Int64Array,
    count: Int64Array,
    control: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
    """Streams met by windows of slots of their senders: window, stream, first item in it, items."""
    first = np.empty(begin.size, dtype=np.int64)
    total = 0
    for window in range(begin.size):
        low = offsets[source[window]]
        high = offsets[source[window] + 1]
        stop = high
        while low < high:  # the first stream that ends behind the beginning of the window
            middle = (low + high) // 2
            if slot[middle] + count[middle] <= begin[window]:
                low = middle + 1
            else:
                high = middle
        first[window] = low
        while low < stop and slot[low] < end[window]:
            total += 1
            low += 1
    windows = np.empty(total, dtype=np.int64)
    streams = np.empty(total, dtype=np.int64)
    items = np.empty(total, dtype=np.int64)
    counts = np.empty(total, dtype=np.int64)
    found = 0
    for window in range(begin.size):
        stream = first[window]
        while stream < offsets[source[window] + 1] and slot[stream] < end[window]:
            item = max(begin[window] - slot[stream], 0)
            last = min(end[window] - slot[stream], count[stream])
            if control[stream] & direction[window] != 0 and item < last:
                windows[found] = window
                streams[found] = stream
                items[found] = item
                counts[found] = last - item
                found += 1
            stream += 1
    return windows[:found], streams[:found], items[:found], counts[:found]


def _messages(
    tiles: Int64Array, partner: Int64Array, streams: Streams, own: Captures, pair: Captures
) -> Arrivals:
    """Turn what passes multiplexers into what is written, without addresses."""
    is_paired = streams.is_paired
    single = np.flatnonzero(~is_paired[own.stream])
    double = np.flatnonzero(is_paired[pair.stream] & pair.is_early)
    complete = double[partner[pair.tile[double]] != NO_TILE]
    after = fabric.SELECT_AFTER_PASSING + fabric.select_to_writes(tiles)
    # The early member waits one event for the item to reach the other.
    tile = np.concatenate([own.tile[single], pair.tile[double], partner[pair.tile[complete]]])
    event = np.concatenate(
        [
            own.slot[single] + after[own.tile[single]],
            pair.slot[double] + after[pair.tile[double]] + 1,
            pair.slot[complete] + after[pair.tile[complete]] + 1,
        ]
    )
    order = np.lexsort((event, tile))

    def ordered(of_own: Int64Array, of_pair: Int64Array) -> Int64Array:
        return np.concatenate([of_own[single], of_pair[double], of_pair[complete]])[order]

    return Arrivals(
        tile=tile[order],
        stream=ordered(own.stream, pair.stream),
        item=ordered(own.item, pair.item),
        count=ordered(own.count, pair.count),
        event=event[order],
        address=np.full(len(order), NO_POINTER),
    )


def _addressed(
    messages: Arrivals, streams: Streams, settings: dict[ControlKind, Settings], count: int
) -> tuple[Arrivals, Int64Array]:
    """Cut messages where pointers change and give them addresses; also the pointers at the end."""
    pointers, bases = settings[ControlKind.PIC0], settings[ControlKind.INCOMING_BASE]
    base = bases.value[bases.at(pointers.tile, pointers.begin)]
    # What was set before the phase is absolute, what a control sets counts words from the base.
    absolute = np.where(pointers.begin == BEFORE, pointers.value, base + WORD_BYTES * pointers.value)
    message, item, items, event, address, pointer = _walk_pointers(
        row_offsets(messages.tile, count),
        messages.event,
        messages.count,
        streams.size[messages.stream],
        row_offsets(pointers.tile, count),
        pointers.begin,
        absolute,
    )
    return (
        Arrivals(
            tile=messages.tile[message],
            stream=messages.stream[message],
            item=messages.item[message] + item,
            count=items,
            event=event,
            address=address,
        ),
        pointer,
    )


@compiled
def _walk_pointers(
    offsets: Int64Array,
    first_event: Int64Array,
    count: Int64Array,
    size: Int64Array,
    pointer_offsets: Int64Array,
    pointer_event: Int64Array,
    pointer_value: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Follow each tile's pointer through its messages.

    Each piece that starts with a pointer control or a message is one entry of the result: message, first item
    in it, items, event, address. The last column is each tile's pointer at the end.
    """
    limit = first_event.size + pointer_event.size
    messages = np.empty(limit, dtype=np.int64)
    items = np.empty(limit, dtype=np.int64)
    counts = np.empty(limit, dtype=np.int64)
    events = np.empty(limit, dtype=np.int64)
    addresses = np.empty(limit, dtype=np.int64)
    tile_count = offsets.size - 1
    at_end = np.empty(tile_count, dtype=np.int64)
    found = 0
    for tile in range(tile_count):
        setting = pointer_offsets[tile]
        last_setting = pointer_offsets[tile + 1]
        pointer = pointer_value[setting]
        setting += 1
        for message in range(offsets[tile], offsets[tile + 1]):
            done = 0
            while done < count[message]:
                event = first_event[message] + done
                while setting < last_setting and pointer_event[setting] <= event:
                    pointer = pointer_value[setting]
                    setting += 1
                stop = count[message]
                if setting < last_setting:
                    stop = min(stop, pointer_event[setting] - first_event[message])
                messages[found] = message
                items[found] = done
                counts[found] = stop - done
                events[found] = event
                addresses[found] = pointer
                found += 1
                if pointer >= 0:
                    pointer += size[message] * (stop - done)
                done = stop
        if setting < last_setting:
            pointer = pointer_value[last_setting - 1]
        at_end[tile] = pointer
    return messages[:found], items[:found], counts[:found], events[:found], addresses[:found], at_end
