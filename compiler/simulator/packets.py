"""Packets between tiles and host, read back from the words that tiles send.

The layout of the words is restated here and shares nothing with what writes packets, so that an error in one
of the two is found by the other. First word, from the top: 1; 1 for a read; 1 for a long packet; 0; two bits
that end a program's packets; the pair of the tile (10 bits); which tile of the pair; for a read where its
data arrive, in units of 32 bytes from the start of SRAM (15 bits). Second word: which tile of the pair again;
place in host memory (27 bits) and length (4 bits), in units of 4 bytes, or of 64 in a long packet, where the
length 0 stands for 16. A write is followed by its data. A read of no bytes, which asks for nothing else
either, closes writes.

A request of the exchange has no top bit: bit 2 r + l of its two words, 24 bits in the first, stands for the
tile of row r with bit 1 of its lane equal to l, and otherwise with place bits of the requester.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, final

import numpy as np

from compiler.target.host import HOST_WINDOW, LONGEST_WRITE
from compiler.target.memory import SRAM_BASE
from compiler.target.tiles import LANES, ROWS, TILES_PER_ROW
from compiler.target.units import WORD_BYTES, Address, Bytes, Int64Array, PhysicalTile

HEADER_WORDS: Final = 2

_REQUEST_BITS: Final = 24
_ARRIVAL_UNIT: Final = 32
_LONG_UNIT: Final = 64
_TOP: Final = 1 << 31
_READ: Final = 1 << 30
_LONG: Final = 1 << 29
_RESERVED: Final = 1 << 28
_FINAL: Final = 3 << 26
_PARTNER: Final = 2


@final
class PacketKind(Enum):
    """What a packet asks for; the value is the word of reports."""

    READ = "read"
    WRITE = "write"
    CLOSE = "close"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """A packet.

    Args:
        kind: what it asks for.
        at: index of its first word among the words that the tile sent.
        host_offset: place in host memory.
        size: bytes.
        arrival: where data or answer arrive; of a write the start of SRAM.
        is_final: whether it ends the packets of its program.
    """

    kind: PacketKind
    at: int
    host_offset: Bytes
    size: Bytes
    arrival: Address
    is_final: bool

    @property
    def words(self) -> int:
        """Words of the packet, its data included."""
        return HEADER_WORDS + (self.size // WORD_BYTES if self.kind is PacketKind.WRITE else 0)


def read_packet(tile: PhysicalTile, words: Int64Array, at: int) -> Packet | str:
    """The packet at an index, or what is wrong with it: a sentence without a full stop.

    Args:
        tile: who sent the words.
        words: everything that it sent.
        at: where the packet begins.
    """
    if at + HEADER_WORDS > len(words):
        return f"packet word {at} ({int(words[at]):08x}) has no second word"
    first, second = int(words[at]), int(words[at + 1])
    name = f"packet {first:08x} {second:08x}"
    if not first & _TOP or first & _RESERVED:
        return f"{name} is none that the host knows"
    sender = (first >> 16 & 0x3FF) << 1 | (first >> 15 & 1)
    if sender != tile or second >> 31 != tile & 1:
        return f"{name} names tile {sender}, not the one that sends it"
    unit = _LONG_UNIT if first & _LONG else WORD_BYTES
    count = second & 15
    size = Bytes(unit * (count or (16 if first & _LONG else 0)))
    offset = Bytes(unit * (second >> 4 & 0x7FFFFFF))
    is_final = first & _FINAL == _FINAL
    if not is_final and first & _FINAL:
        return f"{name} sets one of the two bits that end a program's packets"
    if not first & _READ:
        return _write(name, words, at, offset, size, first)
    arrival = Address(SRAM_BASE + _ARRIVAL_UNIT * (first & 0x7FFF))
    kind = PacketKind.READ if size else PacketKind.CLOSE
    if kind is PacketKind.CLOSE and offset:
        return f"{name} reads no bytes, at a place in host memory"
    if arrival < HOST_WINDOW.start or arrival + max(size, WORD_BYTES) > HOST_WINDOW.end:
        return (
            f"{name} wants {size} bytes at {arrival:#x}, outside of the window"
            f" {HOST_WINDOW.start:#x}..{HOST_WINDOW.end:#x}"
        )
    return Packet(kind=kind, at=at, host_offset=offset, size=size, arrival=arrival, is_final=is_final)


def _write(name: str, words: Int64Array, at: int, offset: Bytes, size: Bytes, first: int) -> Packet | str:
    if first & (_FINAL | 0x7FFF):
        return f"{name} is a write with bits of a read"
    if not 0 < size <= LONGEST_WRITE:
        return f"{name} writes {size} bytes; 4 to {LONGEST_WRITE} can be written at once"
    missing = at + HEADER_WORDS + size // WORD_BYTES - len(words)
    if missing > 0:
        return f"{name} is followed by {missing} words less than it announces"
    return Packet(
        kind=PacketKind.WRITE, at=at, host_offset=offset, size=size, arrival=SRAM_BASE, is_final=False
    )


def can_request(tile: PhysicalTile) -> bool:
    """Whether a tile is one that requests exchanges: in row 0, bit 1 of its lane clear."""
    return tile < TILES_PER_ROW and not tile % LANES & _PARTNER


def requested_tiles(requester: PhysicalTile, words: Int64Array) -> tuple[PhysicalTile, ...] | str:
    """The tiles that a request names, ascending, or what is wrong with it.

    Args:
        requester: who sent it.
        words: its two words.
    """
    first, second = int(words[0]), int(words[1])
    bits = first | second << _REQUEST_BITS
    if first >> _REQUEST_BITS or bits >> 2 * ROWS:
        return f"request {first:08x} {second:08x} has bits that stand for no tile"
    tiles = [
        PhysicalTile(TILES_PER_ROW * (bit // 2) + requester + _PARTNER * (bit % 2))
        for bit in np.flatnonzero([bits >> bit & 1 for bit in range(2 * ROWS)]).tolist()
    ]
    return tuple(tiles)
