"""Transfers between tiles and the host: packets, routes, requests, and how a range is cut.

A tile talks to the host by sending packets over the exchange. A packet starts with two words. The first
says what it is, the route back to the tile and, for reads, where in the tile's window the data shall
arrive; the second holds position and length in host memory, in units of 4 bytes (*short*, below 64 bytes)
or 64 bytes (*long*). A write header is followed by its data; a read request by nothing. A read of no bytes
closes a write.

Before tiles transfer, one tile of row 0 per group of lanes requests the exchange with a bitmap of the tiles
taking part.

Layouts and rules are facts that ran on hardware. Everything is checked; ``ValueError`` names the operand.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from compiler.target.memory import SRAM_BASE, ByteRange
from compiler.target.registers import HOST_MUX
from compiler.target.standing import POLICY, VERIFIED, stands
from compiler.target.tiles import PARTNER_LANE, TILES_PER_ROW, check_tile
from compiler.target.units import WORD_BYTES, Address, Bytes, Events, PhysicalTile, Word

HOST_WINDOW: Annotated[ByteRange, VERIFIED] = ByteRange(start=Address(0x50000), size=Bytes(0x4000))
"""Where data from the host can arrive in a tile. Fact, ran on hardware."""

ARRIVAL_ALIGNMENT: Annotated[Bytes, VERIFIED] = Bytes(32)
"""Bytes that the destination of a read is a multiple of. Fact, ran on hardware."""

LONG_UNIT: Annotated[Bytes, VERIFIED] = Bytes(64)
"""Bytes in a unit of long packets, and their least length. Fact, ran on hardware."""

LONGEST_PACKET: Annotated[Bytes, VERIFIED] = Bytes(1024)
"""Most bytes that a packet can ask for. Fact, ran on hardware."""

LONGEST_WRITE: Annotated[Bytes, VERIFIED] = Bytes(256)
"""Most bytes in one write to the host. Fact, ran on hardware."""

UNALIGNED_PIECE: Annotated[Bytes, VERIFIED] = Bytes(32)
"""Bytes of each packet of a long range that does not start on a long unit. Fact, ran on hardware."""

HOST_PAGE: Annotated[Bytes, VERIFIED] = Bytes(4096)
"""No packet crosses a multiple of so many bytes of host memory. Fact, ran on hardware."""

WRITE_SPACING: Annotated[Events, VERIFIED] = Events(18)
"""Events from the first word of a write's data to the packet behind it, at least. Fact, ran on hardware."""

PACKET_WORDS: Annotated[int, VERIFIED] = 2
"""Words of a packet without its data. Fact, ran on hardware."""

COMMAND_PAGE: Annotated[int, POLICY] = 0
"""Index of the host page that holds the command word. Policy."""

DATA_PAGE: Annotated[int, POLICY] = 1
"""Index of the host page with one slot of ``HOST_PAGE`` bytes for each participating tile. Policy."""

ATTACH_ORDER: Annotated[tuple[int, int], POLICY] = (COMMAND_PAGE, DATA_PAGE)
"""Order in which the loader attaches them. Policy."""

RUN_COMMAND: Annotated[int, POLICY] = 0
"""The only command: programs never branch on it. Policy."""

_READ = 0xC0000000
_WRITE = 0x80000000
_LONG = 0x20000000
_FINAL = 0x0C000000
"""Set in the last read request of a program and in closing packets."""
_UNIT_COUNT_BITS = 4
_HALF_ROUTE_BIT = 31
_REQUESTER_LANES = 0x3D
"""Bits of a tile's number that its requesting tile, in row 0, shares."""
_BITMAP_SPLIT = 24
"""Bits of the request's first word; the others go to the second."""


@stands(VERIFIED)
class HostDirection(Enum):
    """Which way data go; the value is the word of reports."""

    HOST_TO_TILE = "h2d"
    TILE_TO_HOST = "d2h"


def host_mux(tile: PhysicalTile) -> int:
    """Multiplexer value with which a tile listens to the host."""
    return HOST_MUX + (check_tile(tile) % TILES_PER_ROW & ~PARTNER_LANE)


def route(tile: PhysicalTile) -> int:
    """The route back to a tile, in place in the first word of a packet."""
    pair, half = divmod(check_tile(tile), 2)
    return pair << 16 | half << 15


def read_request(
    tile: PhysicalTile, destination: Address, host_offset: Bytes, size: Bytes, *, final: bool = True
) -> tuple[Word, Word]:
    """Ask the host for bytes.

    Args:
        tile: who asks.
        destination: byte address in ``HOST_WINDOW``, a multiple of ``ARRIVAL_ALIGNMENT``.
        host_offset: where in the attached host memory.
        size: 4 .. 60 in steps of 4, or 64 .. 1024 in steps of 64 from a multiple of 64.
        final: whether it is the last request of its program.
    """
    first = _READ | route(tile) | _arrival(destination) | (_FINAL if final else 0)
    return _packet(first, tile, host_offset, size, LONGEST_PACKET)


def write_header(tile: PhysicalTile, host_offset: Bytes, size: Bytes) -> tuple[Word, Word]:
    """Announce bytes for the host; arguments as for ``read_request``, at most ``LONGEST_WRITE`` bytes."""
    return _packet(_WRITE | route(tile), tile, host_offset, size, LONGEST_WRITE)


def close_packet(tile: PhysicalTile, destination: Address) -> tuple[Word, Word]:
    """End writes: a read of no bytes, whose answer would arrive at ``destination``."""
    first = _READ | route(tile) | _arrival(destination) | _FINAL
    return Word(first), Word(_half_route(tile))


def requester(tile: PhysicalTile) -> PhysicalTile:
    """The tile that requests the exchange when this tile takes part."""
    return PhysicalTile(check_tile(tile) & _REQUESTER_LANES)


def request_bitmap(targets: Sequence[PhysicalTile]) -> tuple[Word, Word]:
    """The two words that a requester sends for tiles of its group.

    Raises:
        ValueError: no tile, or tiles of different requesters.
    """
    if len({requester(tile) for tile in targets}) != 1:
        raise ValueError(f"tiles {', '.join(map(str, targets))} do not have one requester")
    first = second = 0
    for tile in targets:
        tile_row, place = divmod(tile, TILES_PER_ROW)
        bit = 2 * tile_row + (place & PARTNER_LANE) // PARTNER_LANE
        if bit < _BITMAP_SPLIT:
            first |= 1 << bit
        else:
            second |= 1 << (bit - _BITMAP_SPLIT)
    return Word(first), Word(second)


def chunks(direction: HostDirection, host_offset: Bytes, size: Bytes) -> tuple[Bytes, ...]:
    """Lengths of the packets that move a range of host memory, in order.

    From a multiple of ``LONG_UNIT`` on, a packet is as long as page, rest and direction allow; elsewhere
    the rest goes at once when a short packet can hold it, and in pieces otherwise.
    """
    if host_offset % WORD_BYTES or size % WORD_BYTES or host_offset < 0 or size < 0:
        raise ValueError(f"host range of {size} bytes at {host_offset} is not made of whole words")
    longest = LONGEST_PACKET if direction is HostDirection.HOST_TO_TILE else LONGEST_WRITE
    lengths: list[Bytes] = []
    end = host_offset + size
    position = int(host_offset)
    while position < end:
        rest = min(end, position + HOST_PAGE - position % HOST_PAGE) - position
        if position % LONG_UNIT == 0 and rest >= LONG_UNIT:
            length = min(rest, longest) // LONG_UNIT * LONG_UNIT
        else:
            length = rest if rest < LONG_UNIT else UNALIGNED_PIECE
        lengths.append(Bytes(length))
        position += length
    return tuple(lengths)


def _packet(
    first: int, tile: PhysicalTile, host_offset: Bytes, size: Bytes, longest: Bytes
) -> tuple[Word, Word]:
    is_long = size >= LONG_UNIT
    unit = LONG_UNIT if is_long else WORD_BYTES
    if size % unit or not WORD_BYTES <= size <= longest:
        raise ValueError(
            f"packet size {size} must be 4..60 in steps of 4 or 64..{longest} in steps of {LONG_UNIT}"
        )
    if host_offset % unit or not 0 <= host_offset // unit < 1 << (_HALF_ROUTE_BIT - _UNIT_COUNT_BITS):
        raise ValueError(f"host offset {host_offset:#x} is not a multiple of {unit} that fits a packet")
    count = size // unit % (1 << _UNIT_COUNT_BITS)  # the longest packet is stored as 0
    second = _half_route(tile) | host_offset // unit << _UNIT_COUNT_BITS | count
    return Word(first | (_LONG if is_long else 0)), Word(second)


def _arrival(destination: Address) -> int:
    offset = destination - HOST_WINDOW.start
    if offset % ARRIVAL_ALIGNMENT or not 0 <= offset < HOST_WINDOW.size:
        raise ValueError(
            f"destination {destination:#x} is not a multiple of {ARRIVAL_ALIGNMENT}"
            f" in {HOST_WINDOW.start:#x}..{HOST_WINDOW.end:#x}"
        )
    # Known words hold 0x200 at the window's start: inferred, the count is from the start of SRAM.
    return (destination - SRAM_BASE) // ARRIVAL_ALIGNMENT


def _half_route(tile: PhysicalTile) -> int:
    return (check_tile(tile) & 1) << _HALF_ROUTE_BIT
