"""Examples with rows or events: rows are decoded and executed by the fabric with random data.

Each function checks one object of its kind, in four ways as far as the object allows: events against the
formulas, words against controls and sends by decoding, payloads by running the phase, and the rule of the
fabric that an example of something illegal is about by running into its fault. Tiles are logical unless a key
says ``phys``; inside, all are physical.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np

from compiler.isa.rows import ControlKind, Row, RowRefusal, decode_row, planned_row, row_listing
from compiler.simulator.exchange_faults import ExchangeFaultKind
from compiler.simulator.fabric import MEMORY_WORDS, Phase, PhaseResult, ReceivingSide, run_phase
from compiler.target import fabric, tiles
from compiler.target.fabric import ITEM_BYTES, PAIRED_ITEM_BYTES, SendControl
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.registers import NEUTRAL_MUX
from compiler.target.units import Events, PhysicalTile
from pipeline.exchange_fixtures.facts import physical
from pipeline.exchange_fixtures.fields import Fields, Findings, Malformed, number_of
from pipeline.exchange_fixtures.plans import (
    Delivery,
    Plan,
    earliest_slot,
    ordinary_events,
    paired_events,
    send_control,
)

_POINT_TO_POINT_SELECT: Final = 113
"""Where the vendor's transfer of one message selects its source."""

_SHORT: Final = 51
"""Longest message after which the vendor's single transfers return to neutral at once."""

_LONG_TAIL: Final = 57
"""Events of their rows after neutral otherwise."""

_SEED: Final = 20_260_913
"""Of the random data."""

_SEND_AT: Final = 0x60000
_RECEIVE_AT: Final = 0x90000
"""Where data are put when an example does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bases:
    """Base registers of one tile before its row."""

    incoming: int = 0
    outgoing: int = 0


def _decoded(fields: Fields, key: str) -> Row | None:
    """The row of a key; None, and a finding, when its words are no row."""
    row = decode_row(np.array(fields.words(key), dtype=np.uint32))
    if isinstance(row, RowRefusal):
        fields.findings.wrong.append(f"{fields.at(key)}: {row}")
        return None
    if len(row.words) != len(fields.words(key)):
        fields.findings.wrong.append(f"{fields.at(key)}: words follow the end of the row")
    return row


def _controls(row: Row) -> list[tuple[int, str, int]]:
    """Event, kind and value, in the notation of files; base registers name the register."""
    names = {ControlKind.OUTGOING_BASE: "BASE"}
    columns = row.controls
    return sorted(
        (event, names.get(ControlKind(kind), ControlKind(kind).name), value if register < 0 else register)
        for event, kind, value, register in zip(
            columns.event.tolist(),
            columns.kind.tolist(),
            columns.value.tolist(),
            columns.register.tolist(),
            strict=True,
        )
    )


def _stated_controls(fields: Fields) -> list[tuple[int, str, int]]:
    place = fields.at("controls")
    stated: list[tuple[int, str, int]] = []
    for entry in fields.values("controls"):
        if not isinstance(entry, list) or len(entry) != 3:
            raise Malformed(f"{place}: must be lists of event, kind and value")
        event, kind, value = entry
        if not isinstance(kind, str):
            raise Malformed(f"{place}: a kind must be a text")
        if isinstance(value, str):
            register = re.fullmatch(r"\$?m(\d+)", value)
            value = int(register[1]) if register else value
        stated.append((number_of(event, place), kind, number_of(value, place)))
    return sorted(stated)


def _check_row(fields: Fields, row: Row) -> None:
    """Everything that the object of a row can state about it."""
    if "controls" in fields:
        fields.findings.fact(fields.at("controls"), _stated_controls(fields), _controls(row))
    fields.check("horizon", row.horizon)
    if "sends" in fields:
        _check_sends(fields, row)
    if "decoded" in fields:
        listing = row_listing(row)
        stated = fields.values("decoded")
        fields.findings.fact(f"{fields.at('decoded')}: lines", len(stated), len(listing))
        for text, line in zip(stated, listing, strict=False):
            # The event of a control may be left out.
            short = line.split(" -> ")[0]
            fields.findings.fact(fields.at("decoded"), text, short if text == short else line)


def _check_sends(fields: Fields, row: Row) -> None:
    """Streams as stated; a stream may have been encoded in several instructions."""
    ours: list[list[int]] = []
    columns = row.sends
    for slot, count, item, control, kind in zip(
        columns.slot.tolist(),
        columns.count.tolist(),
        columns.item.tolist(),
        columns.control.tolist(),
        columns.kind.tolist(),
        strict=True,
    ):
        if kind and ours and ours[-1][0] + ours[-1][1] == slot:
            ours[-1][1] += count
        else:
            ours.append([slot, count, control, item * (8 if control & SendControl.PAIRED else 4)])
    stated = fields.children("sends")
    fields.findings.fact(f"{fields.at('sends')}: number", len(stated), len(ours))
    for send, (slot, count, control, address) in zip(stated, ours, strict=False):
        send.check("S", slot)
        send.check("n", count)
        send.check("sctl", control)
        send.check("addr", address)


def _run(
    rows: Mapping[PhysicalTile, Row], bases: Mapping[PhysicalTile, _Bases], registers: Mapping[int, int]
) -> tuple[Phase, np.ndarray[tuple[int, int], np.dtype[np.uint32]], PhaseResult]:
    """Run rows over random data: the phase, memory before (first half of the rows) and after, the result."""
    phase = Phase.of(dict(rows))
    count = len(phase.tiles)
    at_entry = [bases.get(PhysicalTile(tile), _Bases()) for tile in phase.tiles.tolist()]
    main = np.zeros_like(phase.registers)
    for register, value in registers.items():
        main[:, register] = value
    phase = replace(
        phase,
        registers=main,
        entry=replace(
            ReceivingSide.neutral(count),
            incoming_base=np.array([base.incoming for base in at_entry], dtype=np.int64),
            outgoing_base=np.array([base.outgoing for base in at_entry], dtype=np.int64),
        ),
    )
    generator = np.random.default_rng(_SEED)
    before = generator.integers(0, 1 << 32, (count, MEMORY_WORDS), dtype=np.uint32)
    after = before.copy()
    result = run_phase(phase, after, np.full(after.shape, 15, dtype=np.uint8))
    return phase, np.concatenate([before, after]), result


def _execute(
    findings: Findings,
    rows: Mapping[PhysicalTile, Row],
    deliveries: Sequence[Delivery],
    bases: Mapping[PhysicalTile, _Bases] | None = None,
) -> None:
    """Every payload arrives, nothing else in memory changes, and nothing is at fault."""
    phase, both, result = _run(rows, bases or {}, {})
    if result.faults:
        findings.wrong += [f"execution: {fault}" for fault in result.faults]
        return
    count = len(phase.tiles)
    expected, after = both[:count], both[count:]
    place = {tile: index for index, tile in enumerate(phase.tiles.tolist())}
    # Reads and writes in order of time; at equal numbers a write comes first.
    steps = [(delivery.event, 0, index) for index, delivery in enumerate(deliveries)]
    steps += [(delivery.slot, 1, index) for index, delivery in enumerate(deliveries)]
    under_way: dict[int, np.ndarray[tuple[int], np.dtype[np.uint32]]] = {}
    for _, is_read, index in sorted(steps):
        delivery = deliveries[index]
        words = delivery.size // ITEM_BYTES
        if is_read:
            at = (delivery.source_address - SRAM_BASE) // ITEM_BYTES
            under_way[index] = expected[place[delivery.source], at : at + words].copy()
        else:
            at = (delivery.address - SRAM_BASE) // ITEM_BYTES
            expected[place[delivery.tile], at : at + words] = under_way[index]
    for index, tile in enumerate(phase.tiles.tolist()):
        different = np.flatnonzero(expected[index] != after[index])
        if len(different):
            address = SRAM_BASE + ITEM_BYTES * int(different[0])
            findings.wrong.append(f"execution: tile {tile}: wrong word at {address:#x}")
        else:
            findings.agreed += 1


def _check_fault(
    findings: Findings, place: str, rows: Mapping[PhysicalTile, Row], kinds: Iterable[ExchangeFaultKind]
) -> None:
    """Something illegal: running it has to end in one of some faults."""
    _, _, result = _run(rows, {}, {})
    found = {fault.kind for fault in result.faults}
    if found.isdisjoint(kinds):
        wanted = " or ".join(sorted(kind.value for kind in kinds))
        findings.wrong.append(f"{place}: should be at fault ({wanted}), but is not")
    else:
        findings.agreed += 1


def point_to_point(fields: Fields) -> None:
    """One message as the vendor's tools send it: both addresses are in base registers."""
    source = physical(fields.number("src"), fields.at("src"))
    tile = physical(fields.number("dst"), fields.at("dst"))
    count = fields.count("words")
    time = fabric.time_to_mux(source, tile)
    slot = _POINT_TO_POINT_SELECT - fabric.SELECT_AFTER_PASSING - time
    at = ordinary_events(source, tile, slot, count)
    neutral, horizon = _single_transfer_end(at.select, at.first_write, count)
    fields.check("S", slot)
    fields.check("T", time)
    fields.check("sctl", int(send_control(source, [tile], paired=False)))
    fields.check("R", at.select)
    fields.check("first_write", at.first_write)
    fields.check("N", neutral)
    fields.check("receiver_horizon", horizon)
    rows = {source: _decoded(fields, "sender"), tile: _decoded(fields, "receiver")}
    known = {tile: row for tile, row in rows.items() if row is not None}
    if len(known) < len(rows):
        return
    fields.findings.fact(f"{fields.at('receiver')}: events", int(known[tile].horizon), horizon)
    expected = _received(source, at.select, at.first_write, neutral, 0)
    fields.findings.fact(f"{fields.at('receiver')}: controls", _controls(known[tile]), expected)
    delivery = Delivery(
        source=source,
        source_address=_SEND_AT,
        slot=slot,
        size=count * ITEM_BYTES,
        tile=tile,
        address=_RECEIVE_AT,
        event=at.first_write,
    )
    bases = {source: _Bases(outgoing=_SEND_AT), tile: _Bases(incoming=_RECEIVE_AT)}
    _execute(fields.findings, known, [delivery], bases)


def _received(
    source: PhysicalTile, select: int, first_write: int, neutral: int, address: int
) -> list[tuple[int, str, int]]:
    """Controls of a row that receives one message and does nothing else."""
    return sorted(
        [
            (select, "XPIC0", int(source)),
            (first_write, "PIC0", address // ITEM_BYTES),
            (neutral, "XPIC0", NEUTRAL_MUX),
        ]
    )


def _single_transfer_end(select: int, first_write: int, count: int) -> tuple[int, int]:
    """Neutral and end of the row in single transfers of the vendor's tools."""
    if count <= _SHORT:
        return select + count, first_write + count + fabric.ROW_AFTER_LAST_WRITE
    neutral = first_write + max(count - (_SHORT + 2), 0) + 1
    return neutral, neutral + _LONG_TAIL


def multicast(fields: Fields) -> None:
    """One message to several tiles, perhaps the sender too, in rows of their own."""
    source = physical(fields.number("src"), fields.at("src"))
    fields.check("src_phys", source)
    count = fields.count(next((key for key in ("words", "n") if key in fields), "words"))
    entries = fields.children("receivers")
    receivers = [physical(entry.number("tile"), entry.at("tile")) for entry in entries]
    slot = fields.number("S")
    if "transfers" not in fields:
        fields.findings.fact(fields.at("S"), slot, earliest_slot(source, receivers))
    fields.check("sctl", int(send_control(source, receivers, paired=False)))
    rows: dict[PhysicalTile, Row] = {}
    sender = _decoded(fields, "sender")
    if sender is not None:
        rows[source] = sender
    deliveries: list[Delivery] = []
    address = fields.number("src_addr") if "src_addr" in fields else _sent_from(sender)
    for entry, tile in zip(entries, receivers, strict=True):
        at = ordinary_events(source, tile, slot, count)
        neutral, horizon = _single_transfer_end(at.select, at.first_write, count)
        entry.check("phys", tile)
        entry.check("T", fabric.time_to_mux(source, tile))
        entry.check("R", at.select)
        entry.check("first_write", at.first_write)
        # Where single transfers return to neutral late, composed rows do so at once.
        if "N" in entry and entry.number("N") == at.neutral:
            neutral = at.neutral
        entry.check("N", neutral)
        row = rows.get(tile)
        if "row" in entry:
            row = _decoded(entry, "row")
        if row is not None:
            rows[tile] = row
            _check_row(entry, row)
        else:
            entry.check("horizon", horizon)
        own = _stated_address(entry, fields)
        if own is None:
            own = _pointed_to(row, at.first_write)
        if row is not None:
            expected = _received(source, at.select, at.first_write, neutral, own)
            entry.findings.fact(f"{entry.place}: controls of the row", _controls(row), expected)
        deliveries.append(
            Delivery(
                source=source,
                source_address=address,
                slot=slot,
                size=count * ITEM_BYTES,
                tile=tile,
                address=own,
                event=at.first_write,
            )
        )
    if set(rows) == {source, *receivers}:
        is_relative = sender is not None and _item_address(sender) < SRAM_BASE
        bases = {source: _Bases(outgoing=address - _item_address(sender))} if sender and is_relative else {}
        _execute(fields.findings, rows, deliveries, bases)


def _stated_address(*places: Fields) -> int | None:
    """Where a message goes, if one of some objects says so."""
    for fields in places:
        for key in ("addr", "dst_addr"):
            if key in fields:
                return fields.number(key)
    return None


def _item_address(row: Row) -> int:
    """Byte address that a row's first stream states."""
    if not row.sends.item.size:
        raise Malformed("the sender's row sends nothing")
    size = PAIRED_ITEM_BYTES if row.sends.control[0] & SendControl.PAIRED else ITEM_BYTES
    return int(row.sends.item[0]) * size


def _sent_from(row: Row | None) -> int:
    """Where a row reads, or where its base register will point."""
    stated = 0 if row is None else _item_address(row)
    return stated if SRAM_BASE <= stated < SRAM_END else _SEND_AT


def _pointed_to(row: Row | None, event: int) -> int:
    """Where a row's pointer points at an event."""
    if row is not None:
        columns = row.controls
        chosen = (columns.kind == ControlKind.PIC0) & (columns.event == event)
        if chosen.any():
            return int(columns.value[chosen][0]) * ITEM_BYTES
    return _RECEIVE_AT


def paired(fields: Fields) -> None:
    """One paired message to one pair, in rows of their own, keyed ``tile`` and the number."""
    source = physical(fields.number("src"), fields.at("src"))
    stated = fields.numbers("dsts", 1)
    members = [physical(tile, fields.at("dsts")) for tile in stated]
    items, slot = fields.count("items"), fields.number("S")
    at = paired_events(source, members[0], slot, items)
    fields.findings.fact(fields.at("S"), slot, earliest_slot(source, members))
    fields.check("sctl", int(send_control(source, members, paired=True)))
    fields.check("X", at.select)
    fields.check("F", at.format_on)
    fields.check("first_write", at.first_write)
    fields.check("N", at.neutral)
    fields.check("format_off", at.format_off)
    fields.check("horizon", at.horizon)
    fields.check("early_member", tiles.physical_to_logical(at.early))
    rows: dict[PhysicalTile, Row] = {}
    sender = _decoded(fields, "sender")
    if sender is None:
        return
    rows[source] = sender
    for number, tile in zip(stated, members, strict=True):
        row = _decoded(fields, f"tile{number}")
        if row is None:
            return
        place = fields.at(f"tile{number}")
        fields.findings.fact(f"{place}: events", int(row.horizon), at.horizon)
        address = _pointed_to(row, at.first_write)
        selection = [
            (at.select, "XPIC1", source ^ (tile & tiles.PARTNER_LANE)),
            (at.neutral, "XPIC1", NEUTRAL_MUX),
        ]
        expected = [
            *(selection if tile == at.early else ()),
            (at.format_on, "PIC1", int(at.direction)),
            (at.first_write, "PIC0", address // ITEM_BYTES),
            (at.format_off, "PIC1", 0),
        ]
        fields.findings.fact(f"{place}: controls", _controls(row), sorted(expected))
        rows[tile] = row
    deliveries = [
        Delivery(
            source=source,
            source_address=_sent_from(sender),
            slot=slot,
            size=items * PAIRED_ITEM_BYTES,
            tile=tile,
            address=_pointed_to(rows[tile], at.first_write),
            event=at.first_write,
        )
        for tile in members
    ]
    _execute(fields.findings, rows, deliveries)


def paired_plans(fields: Fields) -> None:
    """Events of paired messages; each is executed from planned rows."""
    for plan in fields.children("plans"):
        source = physical(plan.number("src"), plan.at("src"))
        members = [physical(tile, plan.at("pair")) for tile in plan.numbers("pair", 2)]
        items, slot = plan.count("items"), earliest_slot(source, members)
        at = paired_events(source, members[0], slot, items)
        plan.check("S", slot)
        plan.check("sctl", int(send_control(source, members, paired=True)))
        plan.check("T", [int(fabric.time_to_mux(source, tile)) for tile in members])
        plan.check("early", tiles.physical_to_logical(at.early))
        plan.check("X", at.select)
        plan.check("F", at.format_on)
        plan.check("first_write", at.first_write)
        plan.check("N", at.neutral)
        plan.check("format_off", at.format_off)
        plan.check("horizon", at.horizon)
        to = [(tile, _RECEIVE_AT) for tile in members]
        planned = Plan()
        planned.paired(source, to, slot=slot, items=items, address=_SEND_AT)
        _execute(plan.findings, planned.rows(), planned.deliveries)


def decoded_row(fields: Fields) -> None:
    """One row; where it receives, messages that fit its selections are sent to it."""
    row = _decoded(fields, "words")
    if row is None:
        return
    _check_row(fields, row)
    columns = row.controls
    is_source = (columns.kind == ControlKind.XPIC0) & (columns.value < tiles.TILE_COUNT)
    sources = [PhysicalTile(tile) for tile in columns.value[is_source].tolist()]
    pointers = columns.value[columns.kind == ControlKind.PIC0].tolist()
    fields.check("destinations", [ITEM_BYTES * pointer for pointer in pointers])
    fields.check("sources_phys", [int(tile) for tile in sources])
    fields.check("sources_logical", [int(tiles.physical_to_logical(tile)) for tile in sources])
    if "tile" in fields:
        tile = physical(fields.number("tile"), fields.at("tile"))
        fields.check("phys", tile)
        _receive_what_is_selected(fields.findings, tile, row)
    elif row.sends.slot.size:
        _send_alone(fields, row)


def _receive_what_is_selected(findings: Findings, tile: PhysicalTile, row: Row) -> None:
    """Send to a row of ordinary messages exactly what it selects, and look where it goes."""
    columns = row.controls
    kinds = {ControlKind(kind) for kind in columns.kind.tolist()}
    if row.sends.slot.size or not kinds <= {ControlKind.XPIC0, ControlKind.PIC0}:
        return
    chosen = columns.kind == ControlKind.XPIC0
    selections = list(zip(columns.event[chosen].tolist(), columns.value[chosen].tolist(), strict=True))
    sends: dict[PhysicalTile, list[tuple[int, int, int, int]]] = {}
    deliveries: list[Delivery] = []
    for index, ((event, value), (end, _)) in enumerate(pairwise(selections)):
        if value == NEUTRAL_MUX:
            continue
        source = PhysicalTile(value)
        slot = event - fabric.SELECT_AFTER_PASSING - fabric.time_to_mux(source, tile)
        if slot < 0:
            return
        first_write = event + fabric.select_to_write(tile)
        address = _SEND_AT + index * 0x1000
        control = int(send_control(source, [tile], paired=False))
        sends.setdefault(source, []).append((slot, end - event, address // ITEM_BYTES, control))
        deliveries.append(
            Delivery(
                source=source,
                source_address=address,
                slot=slot,
                size=(end - event) * ITEM_BYTES,
                tile=tile,
                address=_pointed_to(row, first_write),
                event=first_write,
            )
        )
    rows = {tile: row}
    for source, streams in sends.items():
        horizon = max(slot + count for slot, count, _, _ in streams)
        rows[source] = planned_row(horizon=Events(horizon), sends=sorted(streams))
    _execute(findings, rows, deliveries)


def _send_alone(fields: Fields, row: Row) -> None:
    """Nobody listens: what the row sends must still be legal, with a base register that lies in SRAM."""
    registers = {register: _SEND_AT for register in row.controls.register.tolist() if register >= 0}
    _, _, result = _run({PhysicalTile(0): row}, {}, registers)
    if result.faults:
        fields.findings.wrong += [f"execution: {fault}" for fault in result.faults]
    else:
        fields.findings.agreed += 1


def event_table(fields: Fields) -> None:
    """Back-to-back paired messages to one pair; sources are found by their time to it."""
    tile = physical(fields.number("tile"), fields.at("tile"))
    slots, selects, writes = (fields.numbers(key) for key in ("S", "XPIC1", "PIC0"))
    if not len(slots) == len(selects) == len(writes) > 1:
        raise Malformed("S, XPIC1 and PIC0: must be equally long lists of at least two events")
    items = writes[1] - writes[0]
    plan = Plan()
    taken: set[int] = {tile, tiles.partner(tile)}
    for index, (slot, select) in enumerate(zip(slots, selects, strict=True)):
        source = _source_at(tile, select - slot, taken)
        if source is None:
            fields.findings.wrong.append(f"XPIC1[{index}]: no tile is {select - slot} slots from the pair")
            return
        taken |= {source, tiles.partner(source)}
        at = paired_events(source, tile, slot, items)
        fields.findings.fact(
            f"S[{index}]", slot, earliest_slot(source, [tile, tiles.partner(tile)]) + index * items
        )
        fields.findings.fact(f"PIC0[{index}]", writes[index], at.first_write)
        to = [(member, _RECEIVE_AT + index * 0x2000) for member in sorted((at.early, at.late))]
        plan.paired(source, to, slot=slot, items=items, address=_SEND_AT)
    rows = plan.rows()
    columns = rows[tile].controls
    formats = columns.event[columns.kind == ControlKind.PIC1].tolist()
    pair = columns.event[columns.kind == ControlKind.XPIC1].tolist()
    fields.findings.fact(fields.at("XPIC1"), [*selects, *pair[-1:]], pair)
    fields.check("format_on", formats[0])
    fields.check("format_off", formats[-1])
    fields.check("pair_neutral", pair[-1])
    fields.findings.fact("events of formats", 2, len(formats))
    _execute(fields.findings, rows, plan.deliveries)


def _source_at(tile: PhysicalTile, time: int, taken: set[int]) -> PhysicalTile | None:
    """The lowest tile with a paired time to mux and this tile as the early member, in the east direction."""
    for number in range(tiles.TILE_COUNT):
        source = PhysicalTile(number)
        if (
            number not in taken
            and fabric.paired_time_to_mux(source, tile) == time
            and fabric.time_to_mux(source, tile) == time - 1
            and fabric.direction(source, tile) is fabric.Direction.EAST
        ):
            return source
    return None


def must_split(fields: Fields) -> None:
    """A message to its own sender whose neutral falls on the event after its start, and its halves.

    The instruction that starts a stream carries no control, so nothing can change there. Halves that follow
    each other at once meet the same event again; with a slot or more between them they do not.
    """
    tile = physical(fields.number("tile"), fields.at("tile"))
    count = fields.count("words")
    fields.check("self_T", fabric.time_to_mux(tile, tile))
    # A loopback needs another receiver.
    listener = PhysicalTile(0 if tile else 64)
    slot = earliest_slot(tile, [tile, listener])
    at = ordinary_events(tile, tile, slot, count)
    fields.findings.fact("events from the start to neutral", 1, at.neutral - slot)
    halves = fields.numbers("halves") if "halves" in fields else [count // 2, count - count // 2]
    fields.findings.fact("words of the halves", sum(halves), count)
    for gap in range(count):
        plan = Plan()
        starts: list[int] = []
        for index, half in enumerate(halves):
            offset = sum(halves[:index]) * ITEM_BYTES
            starts.append(slot + sum(halves[:index]) + index * gap)
            to = [(tile, _RECEIVE_AT + offset), (listener, _RECEIVE_AT + offset)]
            plan.ordinary(tile, to, slot=starts[-1], words=half, address=_SEND_AT + offset)
        rows = plan.rows()
        if {start + 1 for start in starts}.isdisjoint(rows[tile].controls.event.tolist()):
            _execute(fields.findings, rows, plan.deliveries)
            return
    fields.findings.wrong.append("words: no distance between the halves avoids the event after a start")


def hw_probe(fields: Fields) -> None:
    """A tile receives while its partner's paired message has borrowed its transmit lane."""
    wide, narrow = fields.child("paired"), fields.child("ordinary")
    source = physical(wide.number("src"), wide.at("src"))
    members = [physical(tile, wide.at("pair")) for tile in wide.numbers("pair", 2)]
    items = wide.count("items")
    wide.check("words", items * (PAIRED_ITEM_BYTES // ITEM_BYTES))
    slot = earliest_slot(source, members)
    lender = tiles.partner(source)
    wide.check("borrow_lane_of", tiles.physical_to_logical(lender))
    wide.check("borrow", [slot, slot + items])
    sender = physical(narrow.number("src"), narrow.at("src"))
    receiver = physical(narrow.number("dst"), narrow.at("dst"))
    count, start = narrow.count("words"), narrow.number("S")
    at = ordinary_events(sender, receiver, start, count)
    narrow.check("receive", [at.first_write, at.first_write + count])

    def plan_of() -> Plan:
        plan = Plan()
        to = [(member, _RECEIVE_AT) for member in members]
        plan.paired(source, to, slot=slot, items=items, address=_SEND_AT)
        plan.ordinary(sender, [(receiver, _RECEIVE_AT)], slot=start, words=count, address=_SEND_AT)
        return plan

    plan = plan_of()
    _execute(fields.findings, plan.rows(), plan.deliveries)
    clash = plan_of()
    other = next(tile for tile in (1, 5, 9) if tile not in {source, lender, sender, receiver, *members})
    clash.ordinary(lender, [(PhysicalTile(other), _RECEIVE_AT)], slot=slot + 1, words=1, address=_SEND_AT)
    _check_fault(
        fields.findings, "a send in the borrowed lane", clash.rows(), [ExchangeFaultKind.BORROWED_LANE]
    )


def phase(fields: Fields) -> None:
    """Transfers, and the rows of all tiles that take part."""
    plan = Plan()
    sent: dict[PhysicalTile, list[tuple[int, int, int, int]]] = {}
    for transfer in fields.children("transfers"):
        _check_transfer(transfer, plan, sent)
    rows: dict[PhysicalTile, Row] = {}
    for entry in fields.children("tiles") if "tiles" in fields else []:
        tile = physical(entry.number("tile"), entry.at("tile"))
        entry.check("phys", tile)
        row = _decoded(entry, next((key for key in ("words", "row") if key in entry), "words"))
        if row is None:
            return
        rows[tile] = row
        _check_row(entry, row)
        entry.findings.fact(f"{entry.place}: items sent", _slots(sent.get(tile, ())), _row_slots(row))
    planned = {} if set(rows) >= _taking_part(plan) else plan.rows()
    everything = {**planned, **rows}
    kinds = _stated_fault(fields)
    if kinds is None:
        _execute(fields.findings, everything, plan.deliveries)
    else:
        _check_fault(fields.findings, fields.place or "phase", everything, kinds)


def _taking_part(plan: Plan) -> set[PhysicalTile]:
    return {tile for delivery in plan.deliveries for tile in (delivery.source, delivery.tile)}


_FAULTS: Final[Mapping[str, tuple[ExchangeFaultKind, ...]]] = {
    "MODI": (ExchangeFaultKind.FORMAT_CHANGE, ExchangeFaultKind.FORMAT_MISMATCH),
    "WORKERS": (ExchangeFaultKind.WORKERS_ACTIVE,),
    "CLASH_INSTR": (ExchangeFaultKind.SEND_RECEIVE_ELEMENT, ExchangeFaultKind.OVERLAPPING_RECEIVES),
    "CLASH_IFETCH": (ExchangeFaultKind.SEND_ROW_ELEMENT, ExchangeFaultKind.RECEIVE_ROW_ELEMENT),
    "ADDR": (ExchangeFaultKind.SEND_ADDRESS, ExchangeFaultKind.RECEIVE_ADDRESS),
    "CONF": (ExchangeFaultKind.OVERLAPPING_SENDS, ExchangeFaultKind.BORROWED_LANE),
    "EXCONF": (ExchangeFaultKind.PAIR_MUX_CONFLICT, ExchangeFaultKind.LATE_PAIR_MUX),
}


def _stated_fault(fields: Fields) -> tuple[ExchangeFaultKind, ...] | None:
    """The faults that a phase is stated to end in; None for a legal one."""
    legal = fields.nested("legal") if "legal" in fields else None
    illegal = fields.nested("illegal") if "illegal" in fields else None
    for key in ("fault", "error"):
        if key in fields and isinstance(name := fields.nested(key), str):
            by_name = {kind.name: (kind,) for kind in ExchangeFaultKind}
            by_value = {kind.value: (kind,) for kind in ExchangeFaultKind}
            known = {**_FAULTS, **by_name, **by_value}
            code = name.removeprefix("TEXCH_RERR_").removeprefix("TEXCPT_")
            if code not in known:
                fields.findings.unknown.append(f"{fields.at(key)} {name}")
            return known.get(code, tuple(ExchangeFaultKind))
    return tuple(ExchangeFaultKind) if legal is False or illegal is True else None


def _check_transfer(
    transfer: Fields, plan: Plan, sent: dict[PhysicalTile, list[tuple[int, int, int, int]]]
) -> None:
    """Compare a transfer's events with the formulas and add it to the plan."""
    source = physical(transfer.number("src"), transfer.at("src"))
    transfer.check("src_phys", source)
    address, slot, count = transfer.number("src_addr"), transfer.number("S"), transfer.count("n")
    is_paired = "paired" in transfer and transfer.nested("paired") is True
    receivers: list[tuple[PhysicalTile, int]] = []
    for entry in transfer.children("receivers"):
        tile = physical(entry.number("tile"), entry.at("tile"))
        receivers.append((tile, entry.number("addr")))
        entry.check("phys", tile)
        entry.check("T", fabric.time_to_mux(source, tile))
        if is_paired:
            at = paired_events(source, tile, slot, count)
            entry.check("early", tile == at.early)
            entry.check("X", at.select)
            entry.check("F", at.format_on)
            entry.check("format_off", at.format_off)
        else:
            at = ordinary_events(source, tile, slot, count)
            entry.check("R", at.select)
        entry.check("N", at.neutral)
        entry.check("pair_neutral", at.neutral)
        entry.check("first_write", at.first_write)
        entry.check("horizon", at.horizon)
    tiles_reached = [tile for tile, _ in receivers]
    control = int(send_control(source, tiles_reached, paired=is_paired))
    transfer.check("sctl", control)
    if slot < earliest_slot(source, tiles_reached):
        transfer.findings.wrong.append(f"{transfer.at('S')}: a receiver's row begins after it has to select")
    size = PAIRED_ITEM_BYTES if is_paired else ITEM_BYTES
    sent.setdefault(source, []).append((slot, count, address // size, control))
    if is_paired:
        plan.paired(source, receivers, slot=slot, items=count, address=address)
    else:
        plan.ordinary(source, receivers, slot=slot, words=count, address=address)


def _slots(streams: Iterable[tuple[int, int, int, int]]) -> list[tuple[int, int, int]]:
    """Slot, item and send control of every item."""
    return sorted(
        (slot + step, item + step, control) for slot, count, item, control in streams for step in range(count)
    )


def _row_slots(row: Row) -> list[tuple[int, int, int]]:
    columns = row.sends
    streams = zip(
        columns.slot.tolist(),
        columns.count.tolist(),
        columns.item.tolist(),
        columns.control.tolist(),
        strict=True,
    )
    return _slots(streams)


def loopback(fields: Fields) -> None:
    """A multicast that includes its sender; alone, the sender would not hear itself."""
    if "transfers" in fields:
        phase(fields)
        transfers = fields.children("transfers")
        sources = [
            source
            for transfer in transfers
            if (source := transfer.number("src"))
            in [entry.number("tile") for entry in transfer.children("receivers")]
        ]
    elif fields.is_object("receivers"):
        multicast(fields)
        sources = [fields.number("src")]
    else:
        _planned_loopback(fields)
        return
    if not sources:
        fields.findings.wrong.append("transfers: none includes its sender")
    for number in sources[:1]:
        _isolated(fields, physical(number, fields.at("src")))


def _planned_loopback(fields: Fields) -> None:
    """A loopback given by its events only."""
    key = next((key for key in ("src", "tile") if key in fields), "src")
    source = physical(fields.number(key), fields.at(key))
    count = fields.count(next((key for key in ("words", "n") if key in fields), "words"))
    key = next((key for key in ("dsts", "receivers") if key in fields), None)
    others = [] if key is None else fields.numbers(key)
    receivers = sorted({physical(tile, fields.at("dsts")) for tile in others} | {source})
    slot = fields.number("S") if "S" in fields else earliest_slot(source, receivers)
    at = ordinary_events(source, source, slot, count)
    fields.check("src_phys", source)
    fields.check("phys", source)
    for name in ("T", "self_T"):
        fields.check(name, fabric.time_to_mux(source, source))
    fields.check("sctl", int(send_control(source, receivers, paired=False)))
    fields.check("R", at.select)
    fields.check("first_write", at.first_write)
    fields.check("N", at.neutral)
    fields.check("horizon", at.horizon)
    if len(receivers) > 1:
        plan = Plan()
        to = [(tile, _RECEIVE_AT) for tile in receivers]
        plan.ordinary(source, to, slot=slot, words=count, address=_SEND_AT)
        _execute(fields.findings, plan.rows(), plan.deliveries)
    _isolated(fields, source)


def _isolated(fields: Fields, source: PhysicalTile) -> None:
    """Neither an ordinary message to the sender alone nor a paired one to its own pair alone is delivered."""
    narrow, wide = Plan(), Plan()
    slot = earliest_slot(source, [source, tiles.partner(source)])
    narrow.ordinary(source, [(source, _RECEIVE_AT)], slot=slot, words=10, address=_SEND_AT)
    own_pair = [(member, _RECEIVE_AT) for member in sorted((source, tiles.partner(source)))]
    wide.paired(source, own_pair, slot=slot, items=10, address=_SEND_AT)
    kinds = [ExchangeFaultKind.ISOLATED_LOOPBACK]
    _check_fault(fields.findings, "a message to its sender alone", narrow.rows(), kinds)
    _check_fault(fields.findings, "a paired message to its own pair alone", wide.rows(), kinds)


def mixed_boundary(fields: Fields) -> None:
    """Ordinary and paired messages back to back; one event earlier a format would change too soon."""
    if "transfers" in fields:
        phase(fields)
    else:
        raise Malformed("transfers: is missing")
