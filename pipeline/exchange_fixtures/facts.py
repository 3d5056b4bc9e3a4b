"""Examples without rows: tiles, routes, single words, host packets, number formats, constants.

Each function checks one object of its kind. Tiles are logical unless a key says ``phys``.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Final

import numpy as np

from compiler.errors import InvalidInput
from compiler.geometry.precision import decode_f143, encode_f143, scale_for_max
from compiler.isa.assembler import assemble
from compiler.isa.text import parse
from compiler.package.records import SCHEMA_VERSION, TARGET
from compiler.target import fabric, host, tiles, words
from compiler.target.control_registers import SupervisorRegister
from compiler.target.fabric import SendControl
from compiler.target.host import HostDirection
from compiler.target.instructions import Mode
from compiler.target.memory import SRAM_BASE, SRAM_SIZE
from compiler.target.registers import MainRegister, SyncZone
from compiler.target.units import (
    WORD_BYTES,
    Address,
    Bytes,
    Events,
    Int64Array,
    Items,
    LogicalTile,
    PhysicalTile,
)
from compiler.target.words import Control
from pipeline.exchange_fixtures.fields import Fields, Malformed, Nested, number_of


def physical(tile: int, place: str) -> PhysicalTile:
    """Physical number of a logical tile of a file.

    Raises:
        Malformed: there is no such tile.
    """
    try:
        return tiles.logical_to_physical(LogicalTile(tile))
    except ValueError as error:
        raise Malformed(f"{place}: {error}") from error


def logical_to_physical(fields: Fields) -> None:
    """Pairs of logical and physical numbers."""
    for logical, stated in fields.pairs("pairs"):
        tile = number_of(logical, fields.at("pairs"))
        fields.findings.fact(f"pairs: tile {tile}", stated, physical(tile, fields.at("pairs")))


def routes(fields: Fields) -> None:
    """Single routes."""
    for route in fields.children("routes"):
        source = physical(route.number("src"), route.at("src"))
        destination = physical(route.number("dst"), route.at("dst"))
        route.check("src_phys", source)
        route.check("dst_phys", destination)
        route.check("D", fabric.displacement(source, destination))
        route.check("dir", int(fabric.direction(source, destination)))
        route.check("T", fabric.time_to_mux(source, destination))
        route.check("T2", fabric.paired_time_to_mux(source, destination))
        route.check("latency", fabric.send_to_write(source, destination))


_COUNTS: Final = frozenset({"ordered_pairs", "pairs", "count", "routes", "route_count", "n"})
_QUANTITIES: Final[Mapping[str, Callable[[Int64Array, Int64Array], Int64Array]]] = {
    "D": fabric.displacements,
    "T": fabric.times_to_mux,
    "T2": fabric.paired_times_to_mux,
    "dir": fabric.directions,
    "latency": fabric.send_to_writes,
}
_AGGREGATES: Final[Mapping[str, Callable[[Int64Array], int]]] = {
    "min": lambda values: int(values.min()),
    "max": lambda values: int(values.max()),
    "sum": lambda values: int(values.sum()),
    "abs_sum": lambda values: int(np.abs(values).sum()),
    "sum_abs": lambda values: int(np.abs(values).sum()),
    "sum_squares": lambda values: int((values * values).sum()),
    "square_sum": lambda values: int((values * values).sum()),
    "xor": lambda values: int(np.bitwise_xor.reduce(values)),
    "distinct": lambda values: len(np.unique(values)),
}
_SOURCES: Final = ("sources", "srcs", "src", "source")
_DESTINATIONS: Final = ("destinations", "dsts", "dst", "destination")


def route_aggregates(fields: Fields) -> None:
    """Totals over many routes.

    Without further keys they are all ordered pairs of different tiles. ``src`` and ``dst`` (or their
    plurals) restrict them to a tile, a list of tiles or an object of ``start``, ``stop`` and ``step``;
    ``stride`` takes every so many tiles on both sides; ``pairs`` as a list states the routes. ``phys`` in a
    key's name means physical numbers. Objects inside narrow further. Routes from a tile to itself count if
    ``include_self`` says so, or if the stated number of routes is the one with them.
    """
    everything = np.arange(tiles.TILE_COUNT)
    _digest(fields, everything, everything)


route_digest = route_aggregates
"""The same over stated routes."""


def _digest(fields: Fields, sources: Int64Array, destinations: Int64Array) -> None:
    if "stride" in fields:
        stride = fields.number("stride")
        if stride < 1:
            raise Malformed(f"{fields.at('stride')}: must be at least 1")
        sources, destinations = sources[::stride], destinations[::stride]
    sources = _chosen(fields, _SOURCES, sources)
    destinations = _chosen(fields, _DESTINATIONS, destinations)
    if fields.is_list("pairs") and not fields.is_object("pairs"):
        place = fields.at("pairs")
        pairs = [(number_of(a, place), number_of(b, place)) for a, b in fields.pairs("pairs")]
        from_tiles = np.array([physical(a, place) for a, _ in pairs], dtype=np.int64)
        to_tiles = np.array([physical(b, place) for _, b in pairs], dtype=np.int64)
    else:
        if not len(sources) or not len(destinations):
            raise Malformed(f"{fields.place or 'object'}: no routes are chosen")
        from_tiles = np.repeat(tiles.physical_tiles(sources), len(destinations))
        to_tiles = np.tile(tiles.physical_tiles(destinations), len(sources))
        includes_self = "include_self" in fields and fields.nested("include_self") is True
        includes_self = includes_self or ("self" in fields and fields.nested("self") is True)
        counts = (key for key in fields if key in _COUNTS and not fields.is_object(key))
        stated_count = next((fields.nested(key) for key in counts), None)
        if not includes_self and stated_count != len(from_tiles):
            kept = from_tiles != to_tiles
            from_tiles, to_tiles = from_tiles[kept], to_tiles[kept]
    if not len(from_tiles):
        raise Malformed(f"{fields.place or 'object'}: no routes are chosen")
    for key in fields:
        ours = None if fields.is_object(key) else _aggregate(key, from_tiles, to_tiles)
        if ours is not None and not (key == "pairs" and fields.is_list(key)):
            fields.check(key, ours)
    for key in fields:
        if fields.is_object(key) and key not in (*_SOURCES, *_DESTINATIONS):
            inner = fields.children(key) if fields.is_list(key) else [fields.child(key)]
            for child in inner:
                _digest(child, sources, destinations)


def _chosen(fields: Fields, keys: Sequence[str], default: Int64Array) -> Int64Array:
    """Logical tiles that a key chooses: one, a list, or a range."""
    for key, is_physical in product(keys, (False, True)):
        name = f"{key}_phys" if is_physical else key
        if name not in fields:
            continue
        if fields.is_object(name):
            span = fields.child(name)
            stop = span.number("stop") if "stop" in span else tiles.TILE_COUNT
            step = span.number("step") if "step" in span else 1
            start = span.number("start") if "start" in span else 0
            if step < 1:
                raise Malformed(f"{span.at('step')}: must be at least 1")
            chosen = np.arange(start, stop, step)
        else:
            numbers = fields.numbers(name) if fields.is_list(name) else [fields.number(name)]
            chosen = np.array(numbers, dtype=np.int64)
        try:
            return tiles.logical_tiles(chosen) if is_physical else tiles.check_tiles(chosen)
        except ValueError as error:
            raise Malformed(f"{fields.at(name)}: {error}") from error
    return default


def _aggregate(key: str, sources: Int64Array, destinations: Int64Array) -> int | None:
    """The value of a key, or None when its name says nothing that is known."""
    if key in _COUNTS:
        return len(sources)
    direction = re.fullmatch(r"(?:direction|dir)_?([12])(?:_count)?", key)
    if direction:
        return int((fabric.directions(sources, destinations) == int(direction[1])).sum())
    for quantity, kind in product(_QUANTITIES, _AGGREGATES):
        if key in (f"{quantity}_{kind}", f"{kind}_{quantity}"):
            return _AGGREGATES[kind](_QUANTITIES[quantity](sources, destinations))
    return None


def encode(fields: Fields) -> None:
    """Single words of rows."""
    for entry in fields.children("words"):
        op = entry.text("op")
        key = "words" if "words" in entry and not entry.is_list("words") else "n"
        try:
            ours = _encoded(entry, op, key)
        except ValueError as error:
            entry.findings.wrong.append(f"{entry.place}: cannot be encoded: {error}")
            continue
        if ours is None:
            entry.findings.unknown.append(f"{entry.at('op')} {op}")
            continue
        stated = entry.words("word")
        if "inline" in entry:
            stated += entry.words("inline")
        entry.findings.fact(f"{entry.place} ({op})", _hexadecimal(stated), _hexadecimal(ours))


def _encoded(entry: Fields, op: str, count_key: str) -> list[int] | None:
    match op:
        case "delay":
            return [words.delay(Events(entry.number(count_key)))]
        case "delaypic" | "delayxpic":
            events = Events(entry.number(count_key))
            if op == "delaypic":
                return [words.delaypic(events, Control(2 + entry.number("sel")), entry.number("value"))]
            return [words.delayxpic(events, Control(entry.number("sel")), entry.number("value"))]
        case "send":
            item, control = Items(entry.number("item_addr")), SendControl(entry.number("sctl"))
            return [words.send(Events(entry.number(count_key)), item, control)]
        case "sendoff":
            delta, control = Items(entry.number("delta")), SendControl(entry.number("sctl"))
            return [words.sendoff(Events(entry.number(count_key)), delta, control)]
        case "sendpic":
            control = Control(entry.number("sel"))
            return [words.sendpic(Events(entry.number(count_key)), control, entry.number("value"))]
        case "sendpicp":
            item = Items(entry.number("item_addr")) if "item_addr" in entry else Items(0)
            pic, mux = _one_of(entry, "psel", "pic_sel"), _one_of(entry, "xsel", "xpic_sel")
            return list(
                words.sendpicp(
                    Events(entry.number(count_key)),
                    item,
                    SendControl(entry.number("sctl")),
                    store=(Control(2 + pic), _one_of(entry, "pic", "pvalue")),
                    mux=(Control(mux), _one_of(entry, "xpic", "xvalue")),
                )
            )
        case _:
            return None


def _one_of(entry: Fields, *keys: str) -> int:
    return entry.number(next((key for key in keys if key in entry), keys[0]))


def encode_asm(fields: Fields) -> None:
    """Single supervisor instructions as text."""
    for entry in fields.children("words"):
        text = entry.text("asm")
        # Examples name registers without the sign that assembly text puts before them.
        source = re.sub(r"(?<![$\w])(m\d+|a\d+|[A-Z][A-Z0-9_]+)\b", r"$\1", text)
        try:
            program = parse(source, mode=Mode.SUPERVISOR, byte_branches=True)
            content = b"".join(section.content for section in assemble(program, "example").sections)
        except InvalidInput as error:
            entry.findings.wrong.append(f"{entry.place} ({text}): cannot be assembled: {error.message}")
            continue
        ours = [
            int.from_bytes(content[at : at + WORD_BYTES], "little")
            for at in range(0, len(content), WORD_BYTES)
        ]
        stated = entry.words("word")
        entry.findings.fact(
            f"{entry.place} ({text})", _hexadecimal(stated), _hexadecimal(ours[: len(stated)])
        )


def host_programs(fields: Fields) -> None:
    """Packets and programs of one transfer in each direction."""
    if "d2h_example" in fields:
        _writing_program(fields.child("d2h_example"))
    if "h2d_example" in fields:
        _reading_program(fields.child("h2d_example"))


def _writing_program(entry: Fields) -> None:
    tile = PhysicalTile(entry.number("phys"))
    data, packets = entry.number("data_addr"), entry.number("packet_addr")
    offset, size = entry.number("host_offset"), entry.number("bytes")
    program = [
        words.setzi(MainRegister.M8, 1),
        words.put(SupervisorRegister.INCOMING_DCOUNT, MainRegister.M8),
    ]
    headers: list[int] = []
    for length in host.chunks(HostDirection.TILE_TO_HOST, Bytes(offset), Bytes(size)):
        program += _sent(packets + WORD_BYTES * len(headers), host.PACKET_WORDS)
        headers += host.write_header(tile, Bytes(offset), length)
        program += _sent(data, length // WORD_BYTES)
        if length // WORD_BYTES < host.WRITE_SPACING:
            program.append(words.delay(Events(host.WRITE_SPACING - length // WORD_BYTES)))
        data, offset = data + length, offset + length
    program += _sent(packets + WORD_BYTES * len(headers), host.PACKET_WORDS)
    headers += host.close_packet(tile, Address(entry.number("staging")))
    program += [words.sync(SyncZone.RECEIVE), words.br(MainRegister.M10)]
    _compare_words(entry, "packet_words", headers)
    _compare_words(entry, "program", program)


def _reading_program(entry: Fields) -> None:
    """Destination, offset and sizes are read back from the stated packets and encoded again."""
    tile = PhysicalTile(entry.number("phys"))
    stated = entry.words("packet_words")
    if len(stated) % host.PACKET_WORDS:
        raise Malformed(f"{entry.at('packet_words')}: must be pairs of words")
    ours: list[int] = []
    total = 0
    for at in range(0, len(stated), host.PACKET_WORDS):
        first, second = stated[at : at + host.PACKET_WORDS]
        unit = host.LONG_UNIT if first >> 29 & 1 else Bytes(WORD_BYTES)
        size = Bytes(unit * (second & 15 or 16))
        destination = Address(SRAM_BASE + host.ARRIVAL_ALIGNMENT * (first & 0x7FFF))
        offset = Bytes(unit * (second >> 4 & 0x7FFFFFF))
        is_last = at + host.PACKET_WORDS == len(stated)
        ours += host.read_request(tile, destination, offset, size, final=is_last)
        total += size
    entry.findings.fact(entry.at("packet_words"), _hexadecimal(stated), _hexadecimal(ours))
    program = [
        words.setzi(MainRegister.M8, total // WORD_BYTES),
        words.put(SupervisorRegister.INCOMING_DCOUNT, MainRegister.M8),
        *_sent(entry.number("packet_addr"), len(stated)),
        words.sync(SyncZone.RECEIVE),
        words.br(MainRegister.M10),
    ]
    _compare_words(entry, "program", program)


def _sent(address: int, count: int) -> list[int]:
    """Instructions that send words to the host."""
    first = min(count, words.SEND_LIMIT)
    position = words.item_position(Bytes(address), paired=False)
    sent: list[int] = [words.send(Events(first), position, fabric.MULTICAST)]
    if count > first:
        sent.append(words.sendoff(Events(count - first), Items(0), fabric.MULTICAST))
    return sent


def host_packets(fields: Fields) -> None:
    """Single packets."""
    for packet in fields.children("packets") if "packets" in fields else []:
        op = packet.text("op")
        tile = PhysicalTile(packet.number("phys"))
        match op:
            case "tile_to_host":
                offset, size = Bytes(packet.number("host_offset")), Bytes(packet.number("bytes"))
                ours = host.write_header(tile, offset, size)
            case "host_to_tile":
                ours = _request(packet, tile, "addr")
            case "close":
                ours = host.close_packet(tile, Address(packet.number("addr")))
            case _:
                packet.findings.unknown.append(f"{packet.at('op')} {op}")
                continue
        _compare_words(packet, "words", list(ours))
    if "command_read" in fields:
        command = fields.child("command_read")
        ours = _request(command, PhysicalTile(command.number("phys")), "dst")
        _compare_words(command, "words", list(ours))


def _request(packet: Fields, tile: PhysicalTile, destination: str) -> tuple[int, int]:
    is_final = packet.nested("final") is not False if "final" in packet else True
    offset, size = Bytes(packet.number("host_offset")), Bytes(packet.number("bytes"))
    return host.read_request(tile, Address(packet.number(destination)), offset, size, final=is_final)


def host_mux(fields: Fields) -> None:
    """Multiplexer values for listening to the host."""
    for tile, stated in fields.pairs("pairs"):
        number = number_of(tile, fields.at("pairs"))
        fields.findings.fact(f"pairs: tile {number}", stated, host.host_mux(PhysicalTile(number)))


def xreq(fields: Fields) -> None:
    """Requests of an exchange with the host."""
    for case in fields.children("cases"):
        targets = case.numbers("phys", 1) if case.is_list("phys") else [case.number("phys")]
        requested = [PhysicalTile(tile) for tile in targets]
        case.check("xreq_tile", host.requester(requested[0]))
        case.check("bitmap", list(host.request_bitmap(requested)))
        if "send_word" in case:
            _compare_words(case, "send_word", _sent(case.number("packet_addr"), host.PACKET_WORDS))
    for key in fields:
        prefix = re.fullmatch(r"wrapped_prefix_xreq_tile_for_(\d+)", key)
        if prefix:
            mux = host.host_mux(PhysicalTile(int(prefix[1])))
            begin = [
                words.setzi(MainRegister.M8, mux),
                words.put(SupervisorRegister.INCOMING_MUX, MainRegister.M8),
                words.sync(SyncZone.EXTERNAL_2_HOST_MASTER),
            ]
            _compare_words(fields, key, begin)


def chunks(fields: Fields) -> None:
    """How ranges of host memory are cut."""
    for case in fields.children("cases"):
        offset, size = Bytes(case.number("host_offset")), Bytes(case.number("bytes"))
        ours = host.chunks(HostDirection(case.text("dir")), offset, size)
        case.check("chunks", [int(length) for length in ours])


def f143(fields: Fields) -> None:
    """Conversions of 8-bit floating point."""
    for value, code in fields.pairs("encode") if "encode" in fields else ():
        fields.findings.fact(f"encode {value}", code, int(encode_f143(_float(value, fields))))
    for code, value in fields.pairs("decode") if "decode" in fields else ():
        ours = float(decode_f143(number_of(code, fields.at("decode"))))
        stated = _float(value, fields)
        same_nan = np.isnan(ours) and np.isnan(stated)
        fields.findings.fact(f"decode {code}", stated, stated if same_nan else ours)
    for largest, scale in fields.pairs("scale_for_max") if "scale_for_max" in fields else ():
        fields.findings.fact(f"scale for {largest}", scale, scale_for_max(_float(largest, fields)))


def _float(value: Nested, fields: Fields) -> float:
    if isinstance(value, str):
        named = {"nan": np.nan, "inf": np.inf, "-inf": -np.inf}
        if value.lower() in named:
            return named[value.lower()]
    elif isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise Malformed(f"{fields.place or 'object'}: {value} is not a number")


def package_constants(fields: Fields) -> None:
    """Constants of packages."""
    fields.check("schemaVersion", SCHEMA_VERSION)
    fields.check("profile_schemaVersion", SCHEMA_VERSION)
    fields.check("target", TARGET)
    fields.check("tileMemoryBase", SRAM_BASE)
    fields.check("tileMemorySize", SRAM_SIZE)


def _compare_words(fields: Fields, key: str, ours: Sequence[int]) -> None:
    if key in fields:
        stated = fields.words(key)
        fields.findings.fact(fields.at(key), _hexadecimal(stated), _hexadecimal(ours))


def _hexadecimal(values: Sequence[int]) -> list[str]:
    return [f"{value:08x}" for value in values]
