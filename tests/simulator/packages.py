"""Small packages by hand: a program text for each tile, words for its memory, slices for the host."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.package.records import (
    Application,
    Binding,
    DebugSymbol,
    HostCall,
    HostExchange,
    HostPage,
    HostSlice,
    RegionSlice,
    Segment,
    TileImage,
)
from compiler.simulator.application import RunResult, Simulator
from compiler.target.host import (
    HostDirection,
    chunks,
    close_packet,
    host_mux,
    read_request,
    request_bitmap,
    requester,
    write_header,
)
from compiler.target.units import Address, Bytes, PhysicalTile
from tests.simulator.programs import program_of

ENTRY = 0x4C010
ROW = 0x5D000
DATA = 0x90000
PACKETS = 0x50000
STAGING = 0x50180
PAGE = 4096

END = """
    setzi $m0, 1
    setzi $m1, 0x58000
    st32 $m0, $m1, $m15, 0
    bri 0
"""
"""Completion word and halt."""

ATTACH = """
    sync 7
"""
STEP = f"""
    setzi $m8, 0
    put $INCOMING_BASE, $m8
    put $OUTGOING_BASE, $m15
    call $m7, barrier
    setzi $m8, 1
    put $INCOMING_DCOUNT, $m8
    sync 3
    call $m10, {ROW >> 2:#x}
"""
"""The exchange step of reference programs."""

BARRIER = """
barrier:
    setzi $m0, idle
    runall $m0, $m15, 0
    sync 2
    br $m7
.worker
idle:
    exitz $m15
"""
AWAY = """
    sans 0
    sync 1
"""
FOLLOW = """
    sans 1
    sync 1
"""

Words = Sequence[int] | npt.NDArray[Any]


def word_bytes(words: Words) -> bytes:
    """Words as they lie in memory."""
    return np.array(words, dtype=np.int64).astype("<u4").tobytes()


def linked(text: str) -> tuple[bytes, tuple[DebugSymbol, ...]]:
    """A program from the entry on, and its labels."""
    program = program_of("nop\nnop\nnop\nnop\n" + text)
    (segment,) = program.segments
    symbols = tuple(
        DebugSymbol(name=symbol.name, address=Address(symbol.start)) for symbol in program.symbols
    )
    return segment.data[ENTRY - segment.address :], symbols


def image(tile: int, text: str, memory: Mapping[int, Words] | None = None) -> TileImage:
    """A tile with a program, and words at addresses."""
    parts = [(ENTRY, linked(text)[0])]
    parts += [(address, word_bytes(words)) for address, words in (memory or {}).items()]
    return TileImage(
        physical_tile=PhysicalTile(tile),
        entry_point=Address(ENTRY),
        segments=tuple(
            Segment(address=Address(address), memory_size=Bytes(len(data)), data=data, flags=7)
            for address, data in sorted(parts)
        ),
        command_address=Address(0),
        diagnostic_address=Address(0x58000),
    )


def application(
    images: Sequence[TileImage],
    *,
    inputs: Sequence[Binding] = (),
    outputs: Sequence[Binding] = (),
    weights: Sequence[Binding] = (),
    calls: Sequence[HostCall] = (),
    slots: int = 1,
    symbols: Sequence[DebugSymbol] = (),
) -> Application:
    """A package with a command page and a data page."""
    return Application(
        compiler_version="test",
        tiles=tuple(images),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        weights=tuple(weights),
        host_exchange=HostExchange(
            startup_mark=23,
            pages=(HostPage(index=0, size=Bytes(PAGE)), HostPage(index=1, size=Bytes(PAGE * slots))),
            attach_order=(0, 1),
            calls=tuple(calls),
        ),
        debug_symbols=tuple(symbols),
    )


def binding(name: str, tile: int, address: int, size: int) -> Binding:
    """A tensor on one tile."""
    part = RegionSlice(
        tile=PhysicalTile(tile), tile_address=Address(address), file_offset=Bytes(0), size=Bytes(size)
    )
    return Binding(name=name, dtype="f32", shape=(size // 4,), slices=(part,))


def host_slice(slot: int, size: int, file_offset: int = 0) -> HostSlice:
    """A slice at the start of a tile's slot."""
    return HostSlice(page=1, page_offset=Bytes(PAGE * slot), file_offset=Bytes(file_offset), size=Bytes(size))


# Host programs. In text, exchange instructions hold their count of words less one.


def receiving(tile: int, size: int, slot: int = 0, *, announce: Sequence[int] = ()) -> tuple[str, list[int]]:
    """Text that reads a slice into staging, and the words for PACKETS.

    Args:
        tile: who reads.
        size: bytes.
        slot: of the data page.
        announce: tiles that it requests the exchange for; empty when it is no requester.
    """
    number = PhysicalTile(tile)
    packets = [int(word) for word in request_bitmap([PhysicalTile(t) for t in announce])] if announce else []
    offset = PAGE * (slot + 1)
    lengths = chunks(HostDirection.HOST_TO_TILE, Bytes(offset), Bytes(size))
    body = f"send 1, {PACKETS >> 2:#x}, 3\n" if announce else ""
    done = 0
    for index, length in enumerate(lengths):
        body += f"send 1, {(PACKETS >> 2) + len(packets):#x}, 3\n" if index == 0 else "sendoff 1, 0, 3\n"
        packets += read_request(
            number,
            Address(STAGING + done),
            Bytes(offset + done),
            length,
            final=index == len(lengths) - 1,
        )
        done += length
    return wrapped(
        tile, f"setzi $m8, {size // 4}\nput $INCOMING_DCOUNT, $m8\n{body}sync 0\n", announce
    ), packets


def writing(
    tile: int, address: int, size: int, slot: int = 0, *, announce: Sequence[int] = ()
) -> tuple[str, list[int]]:
    """Text that writes a slice from memory and closes, and the words for PACKETS."""
    number = PhysicalTile(tile)
    packets = [int(word) for word in request_bitmap([PhysicalTile(t) for t in announce])] if announce else []
    body = f"send 1, {PACKETS >> 2:#x}, 3\n" if announce else ""
    done = 0
    for length in chunks(HostDirection.TILE_TO_HOST, Bytes(PAGE * (slot + 1)), Bytes(size)):
        body += f"send 1, {(PACKETS >> 2) + len(packets):#x}, 3\n"
        body += f"send {length // 4 - 1}, {(address + done) >> 2:#x}, 3\n"
        if length // 4 < 18:
            body += f"delay {17 - length // 4}\n"
        packets += write_header(number, Bytes(PAGE * (slot + 1) + done), length)
        done += length
    body += f"send 1, {(PACKETS >> 2) + len(packets):#x}, 3\n"
    packets += close_packet(number, Address(STAGING))
    return wrapped(tile, f"setzi $m8, 1\nput $INCOMING_DCOUNT, $m8\n{body}sync 0\n", announce), packets


def wrapped(tile: int, body: str, announce: Sequence[int] = ()) -> str:
    """A host program around its body."""
    return (
        f"setzi $m8, {host_mux(PhysicalTile(tile)):#x}\nput $INCOMING_MUX, $m8\n"
        f"sync {15 if announce else 7}\n{body}sync 7\nsetzi $m8, 0x640\nput $INCOMING_MUX, $m8\n"
    )


def stored(words: Sequence[int], address: int) -> str:
    """Text that stores words, with the values in the instructions."""
    text = f"setzi $m1, {address:#x}\n"
    for index, word in enumerate(words):
        text += f"setzi $m0, {word >> 12:#x}\nshl $m0, $m0, 12\nor $m0, $m0, {word & 0xFFF:#x}\n"
        text += f"st32 $m0, $m1, $m15, {index}\n"
    return text


def copied(source: int, destination: int, words: int, label: str) -> str:
    """Text that copies words, one after the other."""
    return f"""
    setzi $m2, {source:#x}
    setzi $m3, {destination:#x}
    setzi $m4, {words}
{label}:
    ld32 $m0, $m2, $m15, 0
    st32 $m0, $m3, $m15, 0
    add $m2, $m2, 4
    add $m3, $m3, 4
    add $m4, $m4, -1
    brnz $m4, {label}
"""


REQUESTER = int(requester(PhysicalTile(260)))


def echo(size: int = 64, runs: int = 1, *, middle: str = "") -> Application:
    """Tile 260 reads an input, copies it, and writes it back; tile 4 requests, tile 500 stays away."""
    bitmap = [int(word) for word in request_bitmap([PhysicalTile(260)])]
    ask = wrapped(REQUESTER, f"send 1, {PACKETS >> 2:#x}, 3\n", [260])
    read, read_packets = receiving(260, size)
    write, write_packets = writing(260, DATA, size)
    moving = ATTACH
    asking = ATTACH + stored(bitmap, PACKETS)
    away = ATTACH
    for run in range(runs):
        moving += stored(read_packets, PACKETS) + read + copied(STAGING, DATA, size // 4, f"run{run}")
        moving += middle + stored(write_packets, PACKETS) + write
        asking += ask + ask
        away += FOLLOW + FOLLOW
    return application(
        [image(260, moving + END), image(REQUESTER, asking + END), image(500, away + END)],
        inputs=[binding("x", 260, DATA, size)],
        outputs=[binding("y", 260, DATA, size)],
        calls=[
            HostCall(
                name="run",
                command=0,
                phases=3,
                inputs=(host_slice(0, size),),
                outputs=(host_slice(0, size),),
                input_batch_ends=(1,),
                output_batch_ends=(1,),
            )
        ],
    )


def finished(simulator: Simulator, inputs: Mapping[str, bytes] | None = None) -> RunResult:
    """A run that must be complete."""
    result = simulator.run(inputs or {})
    assert result.is_complete, [str(fault) for fault in result.faults]
    return result
