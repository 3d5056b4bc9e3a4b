"""A device and its host for tests: some tiles of a package, run from its bytes, slowly and obviously.

Tiles run alone until each waits; what they wait for decides what happens next. A barrier of the chip needs
all of them, and the rows of those that take part then run on the simulated fabric. A host batch needs all of
them as well: packets are taken from the words that tiles send, decoded here, and served from host memory.
Calls follow the loader: a rendezvous per phase, inputs before the even ones, outputs of the batch before at
the even ones, the last outputs when all phases are over, and then the meeting that ends the call.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.isa.rows import Row, decode_row
from compiler.package.records import Application, Binding, HostCall, HostSlice
from compiler.simulator.fabric import Phase, ReceivingSide, run_phase
from compiler.simulator.fabric_checks import NO_ADDRESS
from compiler.simulator.fabric_timeline import NO_POINTER
from compiler.simulator.state import SUPERVISOR
from compiler.simulator.tile import Stop, Tile, TileBuffers, TileOptions, default_options
from compiler.target.control_registers import SupervisorRegister
from compiler.target.tiles import physical_to_logical
from compiler.target.units import PhysicalTile

_LIMIT: Final = 10_000_000
_BASE: Final = 0x4C000
_COMPLETED: Final = 0x58000


@final
@dataclass(slots=True)
class Placed:
    """A tile of the device."""

    physical: int
    tile: Tile
    waits: str = "start"
    outgoing: list[int] | None = None
    expected: int = 0
    received: int = 0


class Device:
    """The tiles of a package that take part in something, and one that does not.

    Args:
        application: the package.
        tiles: physical tiles to run.
    """

    def __init__(self, application: Application, tiles: Sequence[int]) -> None:
        self.application = application
        images = {image.physical_tile: image for image in application.tiles}
        self.buffers = TileBuffers(len(tiles), track=False)
        self.tiles: list[Placed] = []
        options: TileOptions = default_options()
        for row, physical in enumerate(sorted(tiles)):
            tile = Tile(options, self.buffers.row(row))
            image = images[PhysicalTile(physical)]
            for segment in image.segments:
                tile.place(segment.address, segment.data + bytes(segment.memory_size - len(segment.data)))
            tile.start_supervisor(image.entry_point)
            self.tiles.append(Placed(physical, tile))
        self.host = np.zeros(sum(page.size for page in application.host_exchange.pages), dtype=np.uint8)
        self.phases_run = 0
        self._advance_all()
        # The loader's barrier, then the one at which the host attaches its pages.
        assert {placed.waits for placed in self.tiles} == {"internal"}
        self._release("internal")
        assert {placed.waits for placed in self.tiles} == {"external"}
        self._release("external")

    # Calls.

    def call(self, name: str, inputs: bytes = b"") -> bytes:
        """Make a call with its input file; gives its output file."""
        call = next(call for call in self.application.host_exchange.calls if call.name == name)
        outputs = np.zeros(max([part.file_offset + part.size for part in call.outputs], default=0), np.uint8)
        batches = len(call.input_batch_ends)
        for phase in range(call.phases):
            if phase % 2 == 0:
                self._put(call, phase // 2, inputs)
                self._take(call, phase // 2 - 1 - batches, outputs)
            self._rendezvous()
        if call.outputs:
            self._take(call, len(call.output_batch_ends) - 1, outputs)
        if call.outputs or call.name == "run":
            self._rendezvous()
        return outputs.tobytes()

    def _put(self, call: HostCall, batch: int, file: bytes) -> None:
        for part in _batch(call.inputs, call.input_batch_ends, batch):
            at = self._offset(part)
            self.host[at : at + part.size] = np.frombuffer(file, np.uint8)[
                part.file_offset : part.file_offset + part.size
            ]

    def _take(self, call: HostCall, batch: int, file: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
        for part in _batch(call.outputs, call.output_batch_ends, batch):
            at = self._offset(part)
            file[part.file_offset : part.file_offset + part.size] = self.host[at : at + part.size]

    def _offset(self, part: HostSlice) -> int:
        """Where a slice is in the attached memory: pages in attach order."""
        pages = {page.index: page.size for page in self.application.host_exchange.pages}
        before = 0
        for index in self.application.host_exchange.attach_order:
            if index == part.page:
                return before + part.page_offset
            before += pages[index]
        raise AssertionError(f"page {part.page} is not attached")

    def read(self, binding: Binding) -> bytes:
        """A binding's file, read from the memory of the tiles that run; zero where others hold it."""
        file = bytearray(max(part.file_offset + part.size for part in binding.slices))
        by_number = {placed.physical: placed.tile for placed in self.tiles}
        for part in binding.slices:
            if part.tile in by_number:
                file[part.file_offset : part.file_offset + part.size] = by_number[part.tile].read(
                    part.tile_address, part.size
                )
        return bytes(file)

    @property
    def is_complete(self) -> bool:
        """Every tile has branched to address 0 with its completion word set."""
        return all(
            placed.waits == "end" and placed.tile.read(_COMPLETED, 4) == b"\1\0\0\0" for placed in self.tiles
        )

    # Waiting.

    def _rendezvous(self) -> None:
        """One meeting of host and tiles, after all exchanges that lead to it."""
        while {placed.waits for placed in self.tiles} <= {"internal", "no internal"}:
            self._exchange()
        waits = {placed.waits for placed in self.tiles}
        assert waits <= {"external", "no external"}, waits
        assert "external" in waits, "nobody meets the host"
        self.phases_run += 1
        if any(placed.outgoing is None for placed in self.tiles if placed.waits == "external"):
            for placed in self.tiles:
                if placed.waits == "external":
                    placed.outgoing = []
            self._release("external")
            self._serve()
            return
        # The second meeting of the batch: those that stayed away go on as well.
        for placed in self.tiles:
            placed.outgoing = None
        self._release("external", "no external")
        while {placed.waits for placed in self.tiles} <= {"internal", "no internal"}:
            self._exchange()

    def _release(self, *kinds: str) -> None:
        for placed in self.tiles:
            if placed.waits in kinds:
                self._step_over(placed)
        self._advance_all()

    def _step_over(self, placed: Placed) -> None:
        tile = placed.tile
        tile.start_supervisor(tile.program_counter(SUPERVISOR) + 4)
        placed.waits = "running"

    def _advance_all(self) -> None:
        for placed in self.tiles:
            if placed.waits in ("start", "running"):
                self._advance(placed)

    def _advance(self, placed: Placed) -> None:
        """Run a tile until it waits for others."""
        tile = placed.tile
        while True:
            stop = tile.advance(tile.cycle + _LIMIT)
            if stop is Stop.RETURNED:
                placed.waits = "end"
                return
            if stop is Stop.FAULT:
                raise AssertionError(f"tile {placed.physical}: {tile.fault()}")
            assert stop is Stop.EXCHANGE, stop
            word = self._word(tile, tile.program_counter(SUPERVISOR))
            kind = _waits_for(word)
            if kind == "send":
                self._send(placed, word)
            elif kind == "pass":
                pass
            elif kind == "absent":
                following = self._word(tile, tile.program_counter(SUPERVISOR) + 4)
                assert following == 0x41800001, "sans without sync 1"
                tile.start_supervisor(tile.program_counter(SUPERVISOR) + 4)
                placed.waits = "no internal" if word & 1 == 0 else "no external"
                return
            elif kind == "receive":
                placed.waits = "data"
                placed.expected = tile.control_register(SupervisorRegister.INCOMING_DCOUNT)
                return
            else:
                placed.waits = kind
                return
            tile.start_supervisor(tile.program_counter(SUPERVISOR) + 4)

    @staticmethod
    def _word(tile: Tile, address: int) -> int:
        return int.from_bytes(tile.read(address, 4), "little")

    # Exchanges.

    def _exchange(self) -> None:
        """A barrier of the chip, and the rows of those that take part."""
        active = [placed for placed in self.tiles if placed.waits == "internal"]
        for placed in active:
            tile = placed.tile
            assert not any(tile.is_active(worker) for worker in range(6))
            tile.start_supervisor(tile.program_counter(SUPERVISOR) + 4)
            assert tile.advance(tile.cycle + _LIMIT) is Stop.EXCHANGE
        if active:
            self._run_rows(active)
        for placed in active:
            placed.tile.start_supervisor(placed.tile.main_register(SUPERVISOR, 10))
            placed.waits = "running"
        for placed in self.tiles:
            if placed.waits == "no internal":
                self._step_over(placed)
        self._advance_all()

    def _run_rows(self, active: Sequence[Placed]) -> None:
        address = [placed.tile.program_counter(SUPERVISOR) for placed in active]
        rows: list[Row] = []
        for placed, start in zip(active, address, strict=True):
            words = np.frombuffer(placed.tile.read(start, 0x80000 - start), "<u4")
            row = decode_row(words)
            assert isinstance(row, Row), row
            rows.append(row)

        def registers(register: SupervisorRegister) -> list[int]:
            return [placed.tile.control_register(register) for placed in active]

        assert set(registers(SupervisorRegister.INCOMING_DCOUNT)) == {1}
        assert set(registers(SupervisorRegister.INCOMING_MUX)) == {0x640}
        neutral = ReceivingSide.neutral(len(active))
        result = run_phase(
            Phase(
                tiles=np.array([placed.physical for placed in active]),
                rows=tuple(rows),
                row_address=np.array(address),
                registers=np.array(
                    [[p.tile.main_register(SUPERVISOR, n) for n in range(16)] for p in active]
                ),
                workers_active=np.zeros(len(active), dtype=np.bool_),
                entry=ReceivingSide(
                    mux=neutral.mux,
                    pair_mux=neutral.pair_mux,
                    pointer=np.full(len(active), NO_POINTER),
                    format=neutral.format,
                    incoming_base=np.array(registers(SupervisorRegister.INCOMING_BASE)),
                    outgoing_base=np.array(registers(SupervisorRegister.OUTGOING_BASE)),
                ),
            ),
            self.buffers.memory,
            self.buffers.shadow,
            np.array([self.tiles.index(placed) for placed in active]),
        )
        assert NO_ADDRESS not in address
        assert not result.faults, [str(fault) for fault in result.faults]

    # Host batches.

    def _send(self, placed: Placed, word: int) -> None:
        """``send`` or ``sendoff``: words leave the tile toward the host."""
        tile = placed.tile
        assert placed.outgoing is not None, "a tile sends outside of rows and host batches"
        if word >> 27 == 0xF:
            count, item = (word >> 21 & 63) + 1, word >> 3 & 0x3FFFF
            self._cursor = 4 * item + tile.control_register(SupervisorRegister.OUTGOING_BASE)
        else:
            count = (word >> 21 & 63) + 1 + ((word >> 14 & 63) << 6)
        assert word & 7 == 3
        placed.outgoing += np.frombuffer(tile.read(self._cursor, 4 * count), "<u4").tolist()
        self._cursor += 4 * count

    def _serve(self) -> None:
        """Answer what tiles sent, and let them go on to the second meeting."""
        senders = {p.physical for p in self.tiles if p.waits == "data"}
        announced: set[int] = set()
        for placed in self.tiles:
            words = list(placed.outgoing or ())
            if words and words[0] >> 31 == 0:
                announced |= _announced(placed.physical, words[:2])
                words = words[2:]
            while words:
                words = self._packet(placed, words)
            if placed.waits == "data":
                assert placed.received == placed.expected, (placed.received, placed.expected)
                placed.received = 0
        assert announced == senders, "the tiles that transfer are those that were announced"
        self._release("data")

    def _packet(self, placed: Placed, words: list[int]) -> list[int]:
        """Carry out the first packet; gives what follows it."""
        first, second = words[:2]
        number = (first >> 16 & 0x3FF) << 1 | (first >> 15 & 1)
        assert number == placed.physical, "a packet names the tile that sends it"
        unit = 64 if first & 0x20000000 else 4
        count = second & 15
        size = unit * (count if count or unit == 4 else 16)
        at = unit * (second >> 4 & 0x7FFFFFF)
        if first & 0x40000000:
            # A read; of no bytes, it closes writes, and its answer counts as a word.
            destination = 32 * (first & 0x7FFF) + _BASE
            placed.tile.place(destination, self.host[at : at + size].tobytes())
            placed.received += size // 4 or 1
            return words[2:]
        data = np.array(words[2 : 2 + size // 4], dtype="<u4")
        self.host[at : at + size] = np.frombuffer(data.tobytes(), np.uint8)
        return words[2 + size // 4 :]


def _waits_for(word: int) -> str:
    """What an instruction of the exchange means outside of a row."""
    if word >> 27 == 0xF or word >> 27 == 0xE:
        return "send"
    if word >> 19 == 0x40A00000 >> 19:
        return "pass"
    if word >> 20 == 0x40C:
        return "absent"
    assert word & 0xFFFFFFF0 == 0x41800000, hex(word)
    return {0: "receive", 3: "internal", 7: "external", 15: "external"}[word & 15]


def _announced(requester: int, words: Sequence[int]) -> set[int]:
    """The tiles of a request."""
    bits = words[0] | words[1] << 24
    found: set[int] = set()
    for row in range(23):
        for lane in range(2):
            if bits >> (2 * row + lane) & 1:
                found.add(64 * row + (requester & 0x3F) + 2 * lane)
    return found


def _batch(parts: Sequence[HostSlice], ends: Sequence[int], batch: int) -> Sequence[HostSlice]:
    if not 0 <= batch < len(ends):
        return ()
    return parts[ends[batch - 1] if batch else 0 : ends[batch]]


def logical(physical: int) -> int:
    """Logical number of a tile."""
    return int(physical_to_logical(PhysicalTile(physical)))
