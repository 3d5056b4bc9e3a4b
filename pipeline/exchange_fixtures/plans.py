"""Rows of whole phases from transfers, timed by the formulas.

Not a scheduler: slots are given. What a vendor tool does when messages meet is done here too: where a
message begins at the event at which another ends, the next source replaces neutral, and a format that stays
is written once. The result is what an encoder would be asked for, so that examples without words can be
executed.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from compiler.isa.rows import ControlKind, Row, planned_row
from compiler.target import fabric, tiles
from compiler.target.fabric import MULTICAST, Direction, SendControl
from compiler.target.registers import NEUTRAL_MUX, IncomingFormat
from compiler.target.units import Events, PhysicalTile

Control: TypeAlias = tuple[int, ControlKind, int]
"""Event, kind and value."""

_REST = {ControlKind.XPIC0: NEUTRAL_MUX, ControlKind.XPIC1: NEUTRAL_MUX, ControlKind.PIC1: 0}
"""What is set while nothing is received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Bytes that must arrive.

    Args:
        source: sender.
        source_address: where it reads them.
        slot: when it begins to.
        size: bytes.
        tile: receiver.
        address: where they arrive.
        event: event of the first write.
    """

    source: PhysicalTile
    source_address: int
    slot: int
    size: int
    tile: PhysicalTile
    address: int
    event: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedEvents:
    """Events of one receiving pair.

    Args:
        early: the member that selects.
        late: its partner.
        select: when it does.
        format_on: when both set the format.
        first_write: when both set the pointer.
        neutral: when the early member stops selecting.
        format_off: when both return to the ordinary format.
        horizon: events that their rows need.
        direction: of the route, and the format.
    """

    early: PhysicalTile
    late: PhysicalTile
    select: int
    format_on: int
    first_write: int
    neutral: int
    format_off: int
    horizon: int
    direction: Direction


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdinaryEvents:
    """Events of one receiver: selection of the source, first write, neutral, events that its row needs."""

    select: int
    first_write: int
    neutral: int
    horizon: int


def ordinary_events(source: PhysicalTile, tile: PhysicalTile, slot: int, words: int) -> OrdinaryEvents:
    """Events at a receiver of words that are sent from a slot on."""
    select = slot + fabric.time_to_mux(source, tile) + fabric.SELECT_AFTER_PASSING
    first_write = select + fabric.select_to_write(tile)
    return OrdinaryEvents(
        select=select,
        first_write=first_write,
        neutral=select + words,
        horizon=first_write + words + fabric.ROW_AFTER_LAST_WRITE,
    )


def paired_events(source: PhysicalTile, member: PhysicalTile, slot: int, items: int) -> PairedEvents:
    """Events at a pair, given by either member, of items that are sent from a slot on."""
    partner = tiles.partner(member)
    early, late = sorted((member, partner), key=lambda tile: fabric.time_to_mux(source, tile))
    # The early member selects one event late, for both; from there on the late member's times hold.
    select = slot + fabric.paired_time_to_mux(source, member)
    first_write = select + fabric.SELECT_AFTER_PASSING + fabric.select_to_write(member)
    format_on = first_write - fabric.FORMAT_BEFORE_WRITE
    return PairedEvents(
        early=early,
        late=late,
        select=select,
        format_on=format_on,
        first_write=first_write,
        neutral=select + items,
        format_off=format_on + items,
        horizon=first_write + items + fabric.ROW_AFTER_LAST_WRITE,
        direction=fabric.direction(source, member),
    )


def earliest_slot(source: PhysicalTile, receivers: Iterable[PhysicalTile]) -> int:
    """First slot at which every receiver can select in time."""
    return max(0, -min(fabric.time_to_mux(source, tile) for tile in receivers))


def send_control(source: PhysicalTile, receivers: Sequence[PhysicalTile], *, paired: bool) -> SendControl:
    """The send control of a transfer.

    Args:
        source: sender.
        receivers: all of them; both members of each pair of a paired transfer.
        paired: whether items have 64 bits.
    """
    single = len(receivers) == (2 if paired else 1) and not (paired and source in receivers)
    way = SendControl(fabric.direction(source, receivers[0])) if single else MULTICAST
    return way | SendControl.PAIRED if paired else way


@dataclass(slots=True, kw_only=True)
class Plan:
    """A phase under construction."""

    deliveries: list[Delivery] = field(default_factory=lambda: list[Delivery]())
    _sends: dict[PhysicalTile, list[tuple[int, int, int, int]]] = field(
        default_factory=lambda: defaultdict[PhysicalTile, list[tuple[int, int, int, int]]](list)
    )
    _controls: dict[PhysicalTile, list[Control]] = field(
        default_factory=lambda: defaultdict[PhysicalTile, list[Control]](list)
    )
    _horizon: dict[PhysicalTile, int] = field(default_factory=lambda: defaultdict[PhysicalTile, int](int))

    def ordinary(
        self,
        source: PhysicalTile,
        receivers: Sequence[tuple[PhysicalTile, int]],
        *,
        slot: int,
        words: int,
        address: int,
    ) -> None:
        """Add a transfer to (tile, address) each."""
        self._send(source, [tile for tile, _ in receivers], slot, words, address, paired=False)
        for tile, to in receivers:
            at = ordinary_events(source, tile, slot, words)
            self._controls[tile] += [
                (at.select, ControlKind.XPIC0, source),
                (at.neutral, ControlKind.XPIC0, NEUTRAL_MUX),
            ]
            self._receive(source, tile, slot, words * fabric.ITEM_BYTES, address, to, at)

    def paired(
        self,
        source: PhysicalTile,
        receivers: Sequence[tuple[PhysicalTile, int]],
        *,
        slot: int,
        items: int,
        address: int,
    ) -> None:
        """Add a paired transfer to (tile, address) each, both members of each pair among them."""
        self._send(source, [tile for tile, _ in receivers], slot, items, address, paired=True)
        for tile, to in receivers:
            at = paired_events(source, tile, slot, items)
            if tile == at.early:
                value = source ^ (tile & tiles.PARTNER_LANE)
                self._controls[tile] += [
                    (at.select, ControlKind.XPIC1, value),
                    (at.neutral, ControlKind.XPIC1, NEUTRAL_MUX),
                ]
            self._controls[tile] += [
                (at.format_on, ControlKind.PIC1, at.direction),
                (at.format_off, ControlKind.PIC1, IncomingFormat.ORDINARY),
            ]
            self._receive(source, tile, slot, items * fabric.PAIRED_ITEM_BYTES, address, to, at)

    def rows(self) -> dict[PhysicalTile, Row]:
        """The row of every tile that does something.

        Raises:
            ValueError: a tile would send two things at once, or something before its row begins.
        """
        taking_part = sorted(self._horizon)
        return {
            tile: planned_row(
                horizon=Events(self._horizon[tile]),
                sends=sorted(self._sends[tile]),
                controls=_merged(self._controls[tile]),
            )
            for tile in taking_part
        }

    def _send(
        self,
        source: PhysicalTile,
        receivers: Sequence[PhysicalTile],
        slot: int,
        items: int,
        address: int,
        *,
        paired: bool,
    ) -> None:
        size = fabric.PAIRED_ITEM_BYTES if paired else fabric.ITEM_BYTES
        control = send_control(source, receivers, paired=paired)
        self._sends[source].append((slot, items, address // size, control))
        self._horizon[source] = max(self._horizon[source], slot + items)

    def _receive(
        self,
        source: PhysicalTile,
        tile: PhysicalTile,
        slot: int,
        size: int,
        source_address: int,
        address: int,
        at: OrdinaryEvents | PairedEvents,
    ) -> None:
        self._controls[tile].append((at.first_write, ControlKind.PIC0, address // fabric.ITEM_BYTES))
        self._horizon[tile] = max(self._horizon[tile], at.horizon)
        self.deliveries.append(
            Delivery(
                source=source,
                source_address=source_address,
                slot=slot,
                size=size,
                tile=tile,
                address=address,
                event=at.first_write,
            )
        )


def _merged(controls: Sequence[Control]) -> list[Control]:
    """Drop returns to rest where something else is set at once, and what is set already."""
    set_at = {(event, kind) for event, kind, value in controls if value != _REST.get(kind)}
    kept: list[Control] = []
    held = dict(_REST)
    for event, kind, value in sorted(controls):
        if kind in _REST:
            if (value == _REST[kind] and (event, kind) in set_at) or held[kind] == value:
                continue
            held[kind] = value
        kept.append((event, kind, value))
    return kept
