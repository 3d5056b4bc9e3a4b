"""The loader's interface: how an image reaches a tile, and the marks that host and device exchange.

Everything here is fixed by the loader that exists; packages that obey it load. A tile image is one string
of bytes from ``LOAD_BASE`` upwards. It travels in frames of 1,024 bytes: index of the frame, physical tile,
flags and a zero word (32 bits each, little-endian), 992 bytes of image, 16 bytes ``FRAME_TRAILER_BYTE``.
Frames of one batch of tiles lie in the transport area behind a table of (offset, frame count) descriptors.

A mark is written by one side and returned to 0 by the other. Loading writes mark 1 once per batch, once
more to execute, and finally ``STARTUP_MARK``. A call alternates the other mark between device (0) and host
(1) for each phase.
"""

from typing import Annotated

from compiler.target.memory import SRAM_BASE, ByteRange
from compiler.target.standing import VENDOR, VERIFIED
from compiler.target.tiles import TILE_COUNT, check_tile
from compiler.target.units import Address, Bytes, PhysicalTile

LOAD_BASE: Annotated[Address, VERIFIED] = Address(SRAM_BASE + 0x10)
"""First byte address of an image, and where each supervisor starts. Fact, ran on hardware."""

FRAME_SIZE: Annotated[Bytes, VERIFIED] = Bytes(1024)
"""Bytes of a frame. Fact, ran on hardware."""

FRAME_HEADER_SIZE: Annotated[Bytes, VERIFIED] = Bytes(16)
"""Bytes before the image's part of a frame. Fact, ran on hardware."""

FRAME_TRAILER_SIZE: Annotated[Bytes, VERIFIED] = Bytes(16)
"""Bytes behind it. Fact, ran on hardware."""

FRAME_PAYLOAD: Annotated[Bytes, VERIFIED] = Bytes(FRAME_SIZE - FRAME_HEADER_SIZE - FRAME_TRAILER_SIZE)
"""Bytes of the image in a frame, 992. Fact, ran on hardware."""

FRAME_TRAILER_BYTE: Annotated[int, VERIFIED] = 0xFF
"""Value of each trailer byte. Fact, ran on hardware."""

LAST_FRAME_FLAG: Annotated[int, VERIFIED] = 8 << 24
"""Flags word of a tile's last frame; others have 0. Fact, ran on hardware."""

FRAME_LIMIT: Annotated[int, VERIFIED] = 643
"""Most frames of a tile. Fact, ran on hardware."""

LOAD_LIMIT: Annotated[Address, VERIFIED] = Address(LOAD_BASE + FRAME_LIMIT * FRAME_PAYLOAD)
"""First byte address that no image reaches; what lies behind starts with undefined content. Fact, ran on
hardware."""

SMALLEST_IMAGE: Annotated[Bytes, VERIFIED] = Bytes(0x4134)
"""Shorter images are padded to so many bytes. Fact, ran on hardware."""

BATCH_TILES: Annotated[int, VERIFIED] = 64
"""Tiles loaded together. Fact, ran on hardware."""

BATCHES: Annotated[int, VERIFIED] = TILE_COUNT // BATCH_TILES
"""Batches of a device; all tiles are loaded, those without work too. Fact, ran on hardware."""

STARTUP_MARK: Annotated[int, VERIFIED] = BATCHES
"""Last mark of loading: the programs start. Fact, ran on hardware."""

BATCH_MARK: Annotated[int, VERIFIED] = 1
"""Mark that hands over a batch, starts execution, or acknowledges a phase. Fact, ran on hardware."""

TRANSPORT_SIZE: Annotated[Bytes, VERIFIED] = Bytes(0x2842000)
"""Bytes of the transport area. Fact, ran on hardware."""

TRANSPORT_DESCRIPTORS: Annotated[Bytes, VERIFIED] = Bytes(4096)
"""Bytes of its table of descriptors, at its start. Fact, ran on hardware."""

LOADING_MARK_REGISTER: Annotated[int, VERIFIED] = 0x302C
"""Offset of the mark for loading and session start (synchronization 1). Fact, ran on hardware."""

CALL_MARK_REGISTER: Annotated[int, VERIFIED] = 0x3030
"""Offset of the mark for the phases of calls (synchronization 2). Fact, ran on hardware."""

CONFIGURATION_MAGIC: Annotated[bytes, VERIFIED] = b"IPUCFG1\0"
"""First bytes of a device configuration: then a count and (offset, value) pairs, 32 bits each; the two mark
registers are skipped. Fact, ran on hardware."""

SECONDARY_LOADER_LIMIT: Annotated[Bytes, VERIFIED] = Bytes(4096)
"""Largest secondary loader. Fact, ran on hardware."""

SECONDARY_LOADER_REGISTERS: Annotated[tuple[int, int, int], VERIFIED] = (0x2068, 0x206C, 0x2070)
"""Offsets of the registers through which it is handed over. Fact, ran on hardware."""

DEBUG_WINDOW: Annotated[int, VENDOR] = 0x30000
"""Host offset of the debug registers of physical tile 0. Fact, vendor tools."""

DEBUG_WINDOW_PER_TILE: Annotated[int, VENDOR] = 0x40
"""Distance to the next tile's. Fact, vendor tools."""


def frames_of(image_size: Bytes) -> int:
    """Frames of an image of so many bytes, padding to ``SMALLEST_IMAGE`` included."""
    frames = -(-max(image_size, SMALLEST_IMAGE) // FRAME_PAYLOAD)
    if frames > FRAME_LIMIT:
        raise ValueError(
            f"an image of {image_size} bytes needs {frames} frames, the loader takes at most {FRAME_LIMIT}"
        )
    return frames


def is_loadable(content: ByteRange) -> bool:
    """Whether an image can give every byte of the range a value."""
    return content.start >= LOAD_BASE and content.end <= LOAD_LIMIT


def debug_register(tile: PhysicalTile, register: int) -> int:
    """Host offset of a debug register of a tile."""
    if not 0 <= register < DEBUG_WINDOW_PER_TILE // 4:
        raise ValueError(f"debug register {register} is outside 0..{DEBUG_WINDOW_PER_TILE // 4 - 1}")
    return DEBUG_WINDOW + DEBUG_WINDOW_PER_TILE * check_tile(tile) + 4 * register
