"""The exchange fabric once more, slot by slot and item by item: slow and obvious.

Everything is a dictionary from slots or events to what happens then. It shares the decoded row and the
target's route formulas with the engine, and nothing else.
"""

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from compiler.isa.rows import ControlKind, SendKind
from compiler.simulator.exchange_faults import ExchangeFault
from compiler.simulator.exchange_faults import ExchangeFaultKind as Kind
from compiler.simulator.fabric import Phase
from compiler.target import fabric
from compiler.target.memory import SRAM_BASE, SRAM_END, element_key
from compiler.target.units import Address, Events, PhysicalTile

NEUTRAL = 0x640
LONG_BEFORE = -1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One item on the fabric."""

    source: int
    stream: int
    slot: int
    address: int
    size: int
    control: int
    word: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One item to be written on a tile."""

    event: int
    item: Item
    message: tuple[object, ...]
    """Equal for items that passed in one stretch."""


@cache
def route(source: int, tile: int) -> tuple[int, int]:
    """Time to mux and direction."""
    pair = PhysicalTile(source), PhysicalTile(tile)
    return int(fabric.time_to_mux(*pair)), int(fabric.direction(*pair))


class Reference:
    """Runs a phase on construction: ``faults``, and memory and shadow in place."""

    def __init__(self, phase: Phase, memory: npt.NDArray[np.uint32], shadow: npt.NDArray[np.uint8]) -> None:
        self.phase = phase
        self.tiles: list[int] = phase.tiles.tolist()
        self.index = {tile: index for index, tile in enumerate(self.tiles)}
        self.memory, self.shadow = memory, shadow
        self.found: dict[tuple[Kind, int], list[tuple[int, ...]]] = defaultdict(list)
        self.end = max(row.horizon for row in phase.rows) + 300
        self.settings = {
            (tile, kind): self._settings(tile, kind) for tile in self.tiles for kind in ControlKind
        }
        self.items = {tile: self._items(tile) for tile in self.tiles}
        self.writes = self._writes()
        self._check_times()
        self.places: dict[int, list[tuple[Write, int]]] = {}
        if not self.found:
            self.places = {tile: self._places(tile) for tile in self.tiles}
            self._check_addresses()
        if not self.found:
            self._check_elements()
        if not self.found:
            self._move()
        self.faults = self._first_of_each()

    def held(self, tile: int, kind: ControlKind, event: int) -> int:
        """What a control has set at an event."""
        return self.setting(tile, kind, event)[1]

    def setting(self, tile: int, kind: ControlKind, event: int) -> tuple[int, int]:
        """Event and value of the last control up to an event."""
        events, values = self.settings[tile, kind]
        last = bisect_right(events, event) - 1
        return events[last], values[last]

    def _settings(self, tile: int, kind: ControlKind) -> tuple[list[int], list[int]]:
        index = self.index[tile]
        controls = self.phase.rows[index].controls
        events, values = [LONG_BEFORE], [int(self.phase.entry.by_control()[kind][index])]
        for at, which, value, register in zip(
            controls.event.tolist(),
            controls.kind.tolist(),
            controls.value.tolist(),
            controls.register.tolist(),
            strict=True,
        ):
            if which == kind:
                from_register = register >= 0 and value < 0
                events.append(at)
                values.append(int(self.phase.registers[index, register]) if from_register else value)
        return events, values

    def fault(self, kind: Kind, tile: int, event: int, **facts: int) -> None:
        """Note a fault."""
        key = ("other", "word", "address", "other_address", "horizon")
        values = tuple(facts.get(name, -1) for name in key)
        self.found[kind, tile].append((max(event, 0), *values))

    def _first_of_each(self) -> tuple[ExchangeFault, ...]:
        faults: list[ExchangeFault] = []
        for (kind, tile), found in self.found.items():
            event, other, word, address, other_address, horizon = min(found)
            faults.append(
                ExchangeFault(
                    kind=kind,
                    tile=PhysicalTile(tile),
                    event=Events(event),
                    word=None if word < 0 else word,
                    other=None if other < 0 else PhysicalTile(other),
                    address=None if address < 0 else Address(address),
                    other_address=None if other_address < 0 else Address(other_address),
                    horizon=None if horizon < 0 else Events(horizon),
                )
            )
        return tuple(sorted(faults, key=lambda fault: (fault.event, fault.tile, fault.kind.value)))

    def _items(self, tile: int) -> dict[int, Item]:
        sends = self.phase.rows[self.index[tile]].sends
        items: dict[int, Item] = {}
        stream = word = -1
        for index, slot, count, first, control, kind in zip(
            sends.word.tolist(),
            sends.slot.tolist(),
            sends.count.tolist(),
            sends.item.tolist(),
            sends.control.tolist(),
            sends.kind.tolist(),
            strict=True,
        ):
            if control & 3 == 0:
                continue
            size = 8 if control & 4 else 4
            address = first * size + self.held(tile, ControlKind.OUTGOING_BASE, slot)
            before = items.get(slot - 1)
            continues = (
                kind == SendKind.CONTINUE
                and before is not None
                and before.control == control
                and before.address + size == address
            )
            if not continues:
                stream, word = stream + 1, index
            for step in range(count):
                items[slot + step] = Item(
                    source=tile,
                    stream=stream,
                    slot=slot + step,
                    address=address + size * step,
                    size=size,
                    control=control,
                    word=word,
                )
        return items

    def _passing(self, tile: int, source: int, slot: int) -> Item | None:
        """The item of ``source`` that passes ``tile`` in its slot, if any."""
        if source not in self.index:
            return None
        time, way = route(source, tile)
        item = self.items[source].get(slot - time)
        return item if item is not None and item.control & way else None

    def _writes(self) -> dict[int, list[Write]]:
        writes: dict[int, list[Write]] = {tile: [] for tile in self.tiles}
        for tile in self.tiles:
            after = 1 + fabric.select_to_write(PhysicalTile(tile))
            partner = tile ^ 2
            for slot in range(-150, self.end):
                since, source = self.setting(tile, ControlKind.XPIC0, slot + 1)
                item = self._passing(tile, source, slot)
                if item is not None:
                    if item.size == 8:
                        self.fault(Kind.FORMAT_MISMATCH, tile, slot + after, other=source)
                    else:
                        message = (tile, since, source, item.stream)
                        writes[tile].append(Write(event=slot + after, item=item, message=message))
                since, value = self.setting(tile, ControlKind.XPIC1, slot + 1)
                source = value ^ (tile & 2)
                item = self._passing(tile, source, slot)
                if item is None:
                    continue
                if route(source, tile)[0] > route(source, partner)[0]:
                    self.fault(Kind.LATE_PAIR_MUX, tile, slot + 1, other=source)
                elif item.size == 4:
                    self.fault(Kind.FORMAT_MISMATCH, tile, slot + after + 1, other=source)
                else:
                    if partner not in self.index:
                        self.fault(Kind.INCOMPLETE_PAIR, tile, slot + 1, other=source)
                    for member in (tile, partner):
                        if member in self.index:
                            message = (tile, since, source, item.stream, "pair")
                            writes[member].append(Write(event=slot + after + 1, item=item, message=message))
        for found in writes.values():
            found.sort(key=lambda write: write.event)
        return writes

    def _check_times(self) -> None:
        receivers: dict[tuple[int, int], set[int]] = defaultdict(set)
        for index, tile in enumerate(self.tiles):
            if self.phase.workers_active[index]:
                self.fault(Kind.WORKERS_ACTIVE, tile, 0)
            row = self.phase.rows[index]
            self._check_controls(tile)
            self._check_pair(tile)
            at_event: dict[int, int] = defaultdict(int)
            for write in self.writes[tile]:
                at_event[write.event] += 1
                item = write.item
                receivers[item.source, item.stream].add(tile)
                if at_event[write.event] == 2:
                    self.fault(Kind.OVERLAPPING_RECEIVES, tile, write.event)
                if self.held(tile, ControlKind.PIC1, write.event - 2) != self._format(tile, item):
                    self.fault(Kind.FORMAT_MISMATCH, tile, write.event, other=item.source)
                if self.held(tile, ControlKind.PIC0, write.event) == -1:
                    self.fault(Kind.POINTER_UNSET, tile, write.event, other=item.source)
                if write.event + 1 + 5 > row.horizon:
                    self.fault(
                        Kind.PAYLOAD_CUT, tile, write.event, other=item.source, horizon=int(row.horizon)
                    )
        for tile in self.tiles:
            for item in self.items[tile].values():
                reached = receivers[tile, item.stream]
                home = {tile, tile ^ 2} if item.size == 8 else {tile}
                if reached and reached <= home:
                    self.fault(Kind.ISOLATED_LOOPBACK, tile, item.slot, word=item.word)

    def _format(self, tile: int, item: Item) -> int:
        if item.size == 4:
            return 0
        return route(item.source, tile)[1]

    def _check_controls(self, tile: int) -> None:
        controls = self.phase.rows[self.index[tile]].controls
        by_event: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for event, kind, word in zip(
            controls.event.tolist(), controls.kind.tolist(), controls.word.tolist(), strict=True
        ):
            by_event[event].append((kind, word))
            if kind == ControlKind.PIC1:
                now = self.held(tile, ControlKind.PIC1, event)
                if now != 0 and now != self.held(tile, ControlKind.PIC1, event - 1):
                    for write in self.writes[tile]:
                        if write.item.size == 4 and write.event in (event, event + 1):
                            self.fault(Kind.FORMAT_CHANGE, tile, event, other=write.item.source, word=word)
                            break
        for event, found in by_event.items():
            if len(found) > 1 and sorted(kind for kind, _ in found) != [ControlKind.XPIC0, ControlKind.PIC0]:
                self.fault(Kind.CONTROL_PAIR, tile, event, word=found[1][1])

    def _check_pair(self, tile: int) -> None:
        partner = tile ^ 2
        if partner not in self.index:
            return
        for slot, item in self.items[tile].items():
            other = self.items[partner].get(slot)
            if other is not None and other.size == 8:
                if item.size == 4:
                    self.fault(Kind.BORROWED_LANE, tile, slot, other=partner, word=item.word)
                elif not tile & 2:
                    self.fault(Kind.OVERLAPPING_SENDS, tile, slot, other=partner, word=item.word)
        if tile & 2:
            return
        written = [self._written(member) for member in (tile, partner)]
        for event in range(LONG_BEFORE, self.end):
            values = [self.held(member, ControlKind.XPIC1, event) for member in (tile, partner)]
            if NEUTRAL not in values or (event in written[0] and event in written[1]):
                self.fault(Kind.PAIR_MUX_CONFLICT, tile, event, other=partner)
                break

    def _written(self, tile: int) -> set[int]:
        controls = self.phase.rows[self.index[tile]].controls
        return set(controls.event[controls.kind == ControlKind.XPIC1].tolist())

    def _places(self, tile: int) -> list[tuple[Write, int]]:
        """Writes of a tile with their addresses, in order of events."""
        result: list[tuple[Write, int]] = []
        pointer, known_since = -1, LONG_BEFORE - 1
        for write in self.writes[tile]:
            since, value = self.setting(tile, ControlKind.PIC0, write.event)
            if since != known_since:
                known_since = since
                pointer = value
                if since != LONG_BEFORE:
                    pointer = 4 * value + self.held(tile, ControlKind.INCOMING_BASE, since)
            result.append((write, pointer))
            pointer += write.item.size
        return result

    def _check_addresses(self) -> None:
        def is_bad(address: int, size: int) -> bool:
            return address < SRAM_BASE or address + size > SRAM_END or address % size != 0

        for tile in self.tiles:
            for item in self.items[tile].values():
                if is_bad(item.address, item.size):
                    self.fault(Kind.SEND_ADDRESS, tile, item.slot, word=item.word, address=item.address)
            for write, address in self.places[tile]:
                if is_bad(address, write.item.size):
                    self.fault(
                        Kind.RECEIVE_ADDRESS, tile, write.event, other=write.item.source, address=address
                    )

    def _check_elements(self) -> None:
        """Streams and payloads as wholes: their time and their elements."""
        for index, tile in enumerate(self.tiles):
            streams: dict[int, list[Item]] = defaultdict(list)
            for item in self.items[tile].values():
                streams[item.stream].append(item)
            payloads: dict[object, list[tuple[Write, int]]] = defaultdict(list)
            for write, address in self.places[tile]:
                pointer_since = self.setting(tile, ControlKind.PIC0, write.event)[0]
                payloads[write.message, pointer_since].append((write, address))
            row = self.phase.rows[index]
            row_address = int(self.phase.row_address[index])
            row_elements: set[int] = set()
            if row_address >= 0:
                end = min(row_address + 4 * len(row.words) + 64, SRAM_END)
                row_elements = _elements(row_address, end)
            for stream in streams.values():
                begin, end = stream[0].address, stream[-1].address + stream[-1].size
                elements = _elements(begin, end)
                if elements & row_elements:
                    self.fault(
                        Kind.SEND_ROW_ELEMENT,
                        tile,
                        stream[0].slot,
                        word=stream[0].word,
                        address=begin,
                        other_address=row_address,
                    )
                for payload in payloads.values():
                    first, last = payload[0][0].event, payload[-1][0].event
                    at = payload[0][1]
                    in_time = first <= stream[-1].slot and stream[0].slot <= last
                    if in_time and elements & _elements(at, payload[-1][1] + payload[-1][0].item.size):
                        self.fault(
                            Kind.SEND_RECEIVE_ELEMENT,
                            tile,
                            max(first, stream[0].slot),
                            word=stream[0].word,
                            address=begin,
                            other_address=at,
                        )
            for payload in payloads.values():
                begin, end = payload[0][1], payload[-1][1] + payload[-1][0].item.size
                if _elements(begin, end) & row_elements:
                    self.fault(
                        Kind.RECEIVE_ROW_ELEMENT,
                        tile,
                        payload[0][0].event,
                        other=payload[0][0].item.source,
                        address=begin,
                        other_address=row_address,
                    )

    def _move(self) -> None:
        """One slot after the other: writes at an event come before reads in the slot of that number."""
        sent: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
        writes: dict[int, list[tuple[int, Write, int]]] = defaultdict(list)
        for tile in self.tiles:
            for write, address in self.places[tile]:
                writes[write.event].append((tile, write, address))
        for time in range(self.end + 300):
            for tile, write, address in writes[time]:
                words, flags = sent[write.item.source, write.item.slot]
                at = (address - SRAM_BASE) // 4
                self.memory[self.index[tile], at : at + len(words)] = words
                self.shadow[self.index[tile], at : at + len(words)] = flags
            for tile in self.tiles:
                item = self.items[tile].get(time)
                if item is None:
                    continue
                at = (item.address - SRAM_BASE) // 4
                place = self.index[tile]
                flags: list[int] = self.shadow[place, at : at + item.size // 4].tolist()
                sent[tile, time] = self.memory[place, at : at + item.size // 4].tolist(), flags
                for step, flag in enumerate(flags):
                    if flag != 15:
                        self.fault(
                            Kind.UNINITIALISED_SEND,
                            tile,
                            time,
                            word=item.word,
                            address=item.address + 4 * step,
                        )


def _elements(begin: int, end: int) -> set[int]:
    return {int(element_key(Address(address))) for address in range(begin & ~3, end, 4)}
