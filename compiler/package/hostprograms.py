"""What a tile does in host batches: packets, the program that sends them, and their descriptors.

Packets and programs follow what ran on hardware. A tile's packets lie at the start of the window, behind the
request of the tiles that one tile of row 0 announces for its group; data from the host arrive in staging and
are copied from there, data to the host are sent from where they are.

Consecutive batches of a tile that run the same program are a *group*, one call of ``runtime.host_run``.
Full slices from the host differ only in where they belong in the end, so that parameters take a group or two.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from compiler.package.hostplan import HostPlan, Slices
from compiler.package.runtime import DESCRIPTOR_WORDS, KEEP_REQUEST_BIT, PACKET_COUNT_SHIFT, REQUEST_BYTES
from compiler.target import words as isa
from compiler.target.control_registers import SupervisorRegister
from compiler.target.fabric import MULTICAST
from compiler.target.host import (
    HOST_PAGE,
    PACKET_WORDS,
    WRITE_SPACING,
    HostDirection,
    chunks,
    close_packet,
    host_mux,
    read_request,
    request_bitmap,
    requester,
    write_header,
)
from compiler.target.registers import NEUTRAL_MUX, SyncZone
from compiler.target.runtime_layout import DEFAULT_LAYOUT, KERNEL_RETURN, SCRATCH
from compiler.target.units import WORD_BYTES, Address, Bytes, Events, Items, PhysicalTile, Word

WordTuple: TypeAlias = tuple[Word, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostBatch:
    """A tile's part in a batch.

    Args:
        program: the words that it runs.
        request: whether the packets begin with the request of its group.
        packets: words for the start of the window.
        destination: where the words that arrive in staging belong.
        words: their number; 0 when the tile sends or only requests.
    """

    program: WordTuple
    request: bool
    packets: WordTuple
    destination: Address
    words: int


def batches_by_tile(
    plan: HostPlan, slices: Slices, direction: HostDirection
) -> Mapping[PhysicalTile, Sequence[HostBatch | None]]:
    """What each tile does in each batch, None where it stays away; tiles that always do are left out."""
    work: dict[PhysicalTile, list[HostBatch | None]] = {}
    bounds = (0, *slices.batch_ends)
    for batch in range(slices.batches):
        rows = range(bounds[batch], bounds[batch + 1])
        groups: dict[PhysicalTile, list[PhysicalTile]] = {}
        moved: dict[PhysicalTile, tuple[Address, Bytes]] = {}
        for row in rows:
            tile = PhysicalTile(int(slices.tile[row]))
            moved[tile] = (Address(int(slices.address[row])), Bytes(int(slices.size[row])))
            groups.setdefault(requester(tile), []).append(tile)
        for tile in sorted(moved.keys() | groups.keys()):
            request = request_bitmap(groups[tile]) if tile in groups else ()
            parts = work.setdefault(tile, [None] * slices.batches)
            if tile in moved:
                parts[batch] = _moving(direction, tile, plan.host_offset(tile), *moved[tile], request)
            else:
                parts[batch] = HostBatch(
                    program=requesting_program(tile),
                    request=True,
                    packets=request,
                    destination=DEFAULT_LAYOUT.staging,
                    words=0,
                )
    return work


def _moving(
    direction: HostDirection,
    tile: PhysicalTile,
    host_offset: Bytes,
    address: Address,
    size: Bytes,
    request: WordTuple,
) -> HostBatch:
    mux, requests = host_mux(tile), bool(request)
    if direction is HostDirection.HOST_TO_TILE:
        return HostBatch(
            program=reading_program(mux, size, requests=requests),
            request=requests,
            packets=request + reading_packets(tile, host_offset, size),
            destination=address,
            words=size // WORD_BYTES,
        )
    return HostBatch(
        program=writing_program(mux, address, size, requests=requests),
        request=requests,
        packets=request + writing_packets(tile, host_offset, size),
        destination=address,
        words=0,
    )


@functools.cache
def reading_packets(tile: PhysicalTile, host_offset: Bytes, size: Bytes) -> WordTuple:
    """Requests for a slice, whose data arrive in staging."""
    lengths = chunks(HostDirection.HOST_TO_TILE, host_offset, size)
    packets: list[Word] = []
    done = 0
    for number, length in enumerate(lengths):
        packets += read_request(
            tile,
            Address(DEFAULT_LAYOUT.staging + done),
            Bytes(host_offset + done),
            length,
            final=number == len(lengths) - 1,
        )
        done += length
    return tuple(packets)


@functools.cache
def writing_packets(tile: PhysicalTile, host_offset: Bytes, size: Bytes) -> WordTuple:
    """Headers of the packets of a slice, then the one that ends them."""
    packets: list[Word] = []
    done = 0
    for length in chunks(HostDirection.TILE_TO_HOST, host_offset, size):
        packets += write_header(tile, Bytes(host_offset + done), length)
        done += length
    return (*packets, *close_packet(tile, DEFAULT_LAYOUT.staging))


@functools.cache
def reading_program(mux: int, size: Bytes, *, requests: bool) -> WordTuple:
    """Ask for a slice and wait until all of it has arrived.

    Args:
        mux: the tile's ``host_mux``.
        size: bytes of the slice.
        requests: whether this tile announces its group.
    """
    packets = len(chunks(HostDirection.HOST_TO_TILE, HOST_PAGE, size))
    return (
        *_opening(mux, requests=requests),
        *_expect(size // WORD_BYTES),
        *_announce(requests=requests),
        *reading_body(_packets_address(requests=requests), packets),
        *_closing(),
    )


def reading_body(packets_address: Address, packets: int) -> WordTuple:
    """Send requests that lie one behind the other, wait for what they ask."""
    return (
        _send(packets_address, PACKET_WORDS),
        *(isa.sendoff(Events(PACKET_WORDS), Items(0), MULTICAST) for _ in range(packets - 1)),
        isa.sync(SyncZone.RECEIVE),
    )


@functools.cache
def writing_program(mux: int, address: Address, size: Bytes, *, requests: bool) -> WordTuple:
    """Send a slice from where it is.

    Args:
        mux: the tile's ``host_mux``.
        address: byte address of the slice.
        size: its bytes.
        requests: whether this tile announces its group.
    """
    return (
        *_opening(mux, requests=requests),
        *_expect(1),
        *_announce(requests=requests),
        *writing_body(
            _packets_address(requests=requests),
            address,
            chunks(HostDirection.TILE_TO_HOST, HOST_PAGE, size),
        ),
        *_closing(),
    )


def writing_body(packets_address: Address, address: Address, lengths: Sequence[Bytes]) -> WordTuple:
    """Send headers, each with its data, then the closing packet, and wait for its answer."""
    words: list[Word] = []
    header, data = packets_address, address
    for length in lengths:
        count = length // WORD_BYTES
        words += [_send(header, PACKET_WORDS), _send(data, count)]
        if count < WRITE_SPACING:
            words.append(isa.delay(Events(WRITE_SPACING - count)))
        header, data = Address(header + PACKET_WORDS * WORD_BYTES), Address(data + length)
    return (*words, _send(header, PACKET_WORDS), isa.sync(SyncZone.RECEIVE))


@functools.cache
def requesting_program(tile: PhysicalTile) -> WordTuple:
    """Announce a group without taking part in it."""
    return (*_opening(host_mux(tile), requests=True), *_announce(requests=True), *_closing())


def _opening(mux: int, *, requests: bool) -> WordTuple:
    """Listen to the host and meet it."""
    zone = SyncZone.EXTERNAL_2_HOST_MASTER if requests else SyncZone.EXTERNAL_2_HOST
    return (*_put(SupervisorRegister.INCOMING_MUX, mux), isa.sync(zone))


def _closing() -> WordTuple:
    return (
        isa.sync(SyncZone.EXTERNAL_2_HOST),
        *_put(SupervisorRegister.INCOMING_MUX, NEUTRAL_MUX),
        isa.br(KERNEL_RETURN),
    )


def _expect(words: int) -> WordTuple:
    return _put(SupervisorRegister.INCOMING_DCOUNT, words)


def _announce(*, requests: bool) -> WordTuple:
    return (_send(DEFAULT_LAYOUT.window.start, REQUEST_BYTES // WORD_BYTES),) if requests else ()


def _packets_address(*, requests: bool) -> Address:
    return Address(DEFAULT_LAYOUT.window.start + (REQUEST_BYTES if requests else 0))


def _put(register: SupervisorRegister, value: int) -> WordTuple:
    return (isa.setzi(SCRATCH, value), isa.put(register, SCRATCH))


def _send(address: Address, words: int) -> Word:
    return isa.send(Events(words), isa.item_position(Bytes(address), paired=False), MULTICAST)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostGroup:
    """Consecutive batches of a tile with one program, or from all of which it stays away."""

    parts: tuple[HostBatch | None, ...]

    @property
    def present(self) -> tuple[HostBatch, ...]:
        """The batches, of a tile that takes part."""
        return tuple(part for part in self.parts if part is not None)

    @property
    def program(self) -> tuple[int, ...]:
        """What it runs in each."""
        return self.present[0].program

    def table(self, address: int) -> list[int]:
        """Descriptors for ``runtime.host_run``, then packets, without those that are in the window already.

        Args:
            address: where the table will be.
        """
        descriptors: list[int] = []
        packets: list[int] = []
        after = address + len(self.present) * DESCRIPTOR_WORDS * WORD_BYTES
        request_words = REQUEST_BYTES // WORD_BYTES
        in_window: tuple[int, ...] = ()
        for part in self.present:
            copied: tuple[int, ...] = part.packets
            kept = 0
            if part.packets == in_window:
                copied = ()
            elif part.request and part.packets[:request_words] == in_window[:request_words]:
                copied, kept = part.packets[request_words:], 1 << KEEP_REQUEST_BIT
            in_window = part.packets
            descriptors += [
                int(part.destination),
                len(copied) << PACKET_COUNT_SHIFT | kept | part.words,
                after + WORD_BYTES * len(packets),
            ]
            packets += copied
        return descriptors + packets


def grouped(parts: Sequence[HostBatch | None]) -> list[HostGroup]:
    """Cut batches into groups of equal programs."""
    groups: list[list[HostBatch | None]] = []
    for part in parts:
        program = None if part is None else part.program
        if groups:
            last = groups[-1][-1]
            if (None if last is None else last.program) == program:
                groups[-1].append(part)
                continue
        groups.append([part])
    return [HostGroup(parts=tuple(group)) for group in groups]
