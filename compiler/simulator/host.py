"""The host's side of an application: pages, calls, and answering what tiles ask in a batch.

A session attaches its pages at the first meeting of tiles and host; the pages follow each other in the order
of attachment, and packets give positions in the whole. A call goes through its batches, first those of its
inputs, then those of its outputs. For each:

1. tiles wait for the host, or stay away from the batch;
2. the host puts an input batch into its pages, and lets the tiles go on (an even phase of the call);
3. tiles send packets; the requesters (``sync 15``) name the tiles that do. Reads are answered from the pages,
   writes go into them, and tiles that wait for data go on when exactly the expected words have come;
4. all tiles meet the host once more (an odd phase), those that stayed away go on as well, and an output
   batch is collected.

The loader does not count the last of these meetings of a call with outputs: its release is the end of the
call. Data take no time: what the host does is not modelled.

Everything that tiles ask is checked, beside what ``packets`` checks: positions lie in one page and cross no
4,096 bytes; a tile's last packet, and no other, ends its packets; writes are closed, and spaced; every byte
of an input is read, and every byte of an output written, in its batch. Bytes of pages that neither host nor
tiles gave a value are unknown to whoever reads them.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.package.records import HostCall, HostExchange, HostSlice
from compiler.simulator.application_faults import ApplicationFault, ApplicationFaultKind, DeviceStopped
from compiler.simulator.barrier import Device, Sent, Wait
from compiler.simulator.packets import (
    HEADER_WORDS,
    Packet,
    PacketKind,
    can_request,
    read_packet,
    requested_tiles,
)
from compiler.simulator.timeline import MeetingKind
from compiler.target.control_registers import SupervisorRegister
from compiler.target.host import HOST_PAGE, WRITE_SPACING, host_mux
from compiler.target.registers import SyncZone
from compiler.target.units import WORD_BYTES, BoolArray, Bytes, Cycles, Int64Array, PhysicalTile

PHASES_PER_BATCH: Final = 2

_Kind = ApplicationFaultKind


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """What a call gave.

    Args:
        file: its output file.
        start: cycle of the release after the last input batch; of the last meeting before, without inputs.
        end: cycle at which the last tile reached the first output batch; None without outputs.
    """

    file: bytes
    start: Cycles
    end: Cycles | None


@final
class Host:
    """The host of a device.

    Args:
        exchange: the protocol, verified by the reader of packages.
        device: the tiles.
    """

    def __init__(self, exchange: HostExchange, device: Device) -> None:
        self._device: Final = device
        sizes = {page.index: int(page.size) for page in exchange.pages}
        self._starts: Final[dict[int, int]] = {}
        total = 0
        for index in exchange.attach_order:
            self._starts[index] = total
            total += sizes[index]
        self._ends: Final = {index: start + sizes[index] for index, start in self._starts.items()}
        self._memory: Final[npt.NDArray[np.uint8]] = np.zeros(total, np.uint8)
        self._known: Final[BoolArray] = np.zeros(total, np.bool_)
        self._read: Final[BoolArray] = np.zeros(total, np.bool_)
        self._command_page: Final = exchange.command_page
        self._command_offset: Final = int(exchange.command_offset)
        self._released = Cycles(0)

    def attach(self) -> None:
        """The first meeting: tiles have started.

        Raises:
            DeviceStopped: something is wrong before it, or it cannot take place.
            Unsupported: an instruction is not simulated.
        """
        self._gather("the host cannot attach its pages")
        self._released = self._device.meet_host(MeetingKind.ATTACH, with_absent=True)

    def call(self, call: HostCall, file: bytes) -> CallOutcome:
        """Make a call.

        Args:
            call: which.
            file: its input file.

        Raises:
            DeviceStopped: something is wrong, at any tile.
            Unsupported: an instruction is not simulated.
        """
        inputs, outputs = len(call.input_batch_ends), len(call.output_batch_ends)
        needed = PHASES_PER_BATCH * (inputs + outputs)
        if call.phases not in (needed, max(0, needed - 1)):
            text = (
                f"call {call.name} has {call.phases} host phases,"
                f" but its {inputs} input and {outputs} output batches take {needed} meetings"
            )
            raise DeviceStopped(ApplicationFault(kind=_Kind.PHASE_COUNT, text=text))
        if call.phases and self._command_page in self._starts:
            word = np.array([call.command], dtype="<u4").tobytes()
            self._put(self._starts[self._command_page] + self._command_offset, word)
        gathered = np.zeros(_file_size(call.outputs), np.uint8)
        start, end = self._released, None
        for batch in range(inputs + outputs):
            is_input = batch < inputs
            phase = PHASES_PER_BATCH * batch
            self._gather(f"host phase {phase} of call {call.name} cannot begin")
            if batch == inputs:
                end = Cycles(int(self._device.reached.max()))
            if is_input:
                parts = _batch(call.inputs, call.input_batch_ends, batch)
                self._fill(parts, file)
            else:
                parts = _batch(call.outputs, call.output_batch_ends, batch - inputs)
                for part in parts:
                    at = self._offset(part)
                    self._known[at : at + part.size] = False
            self._transfer()
            self._gather(f"host phase {phase + 1} of call {call.name} cannot begin")
            if is_input:
                self._check_read(call.name, batch, parts)
            else:
                self._collect(call.name, batch - inputs, parts, gathered)
            self._released = self._device.meet_host(MeetingKind.BATCH_END, with_absent=True)
            self._device.in_batch[:] = False
            if is_input:
                start = self._released
        return CallOutcome(file=gathered.tobytes(), start=start, end=end)

    # Meetings.

    def _gather(self, what: str) -> None:
        """Run tiles until all wait for the host or stay away."""
        device = self._device
        device.settle()
        if (
            not device.is_waiting(Wait.HOST, Wait.AWAY_FROM_HOST).all()
            or not device.is_waiting(Wait.HOST).any()
        ):
            raise DeviceStopped(device.deadlock(what))

    def _transfer(self) -> None:
        """Begin a batch and answer what tiles ask."""
        device = self._device
        device.sent.clear()
        present = device.places_waiting(Wait.HOST)
        requesters = present[device.zone[present] == int(SyncZone.EXTERNAL_2_HOST_MASTER)]
        device.meet_host(MeetingKind.BATCH_BEGIN, with_absent=False)
        device.in_batch[present] = True
        device.run()
        faults: list[ApplicationFault] = []
        requested = self._requests(requesters, faults)
        packets: dict[int, tuple[Packet, ...]] = {}
        for place in present.tolist():
            first = HEADER_WORDS if place in requesters else 0
            sent = device.sent.get(place, Sent())
            packets[place] = self._packets(place, sent, first, faults)
        asking = {place for place in packets if packets[place]}
        # With damaged requests or packets, what follows from them would be reported as well.
        if not faults:
            for place in sorted(asking - requested.keys()):
                text = "it exchanges data with the host, but no tile requested that"
                faults.append(device.fault_at(_Kind.REQUEST, place, text))
            for place in sorted(requested.keys() - asking):
                text = (
                    f"tile {requested[place]} requests an exchange for it, but it asks the host for nothing"
                )
                faults.append(device.fault_at(_Kind.REQUEST, place, text))
            for place in present.tolist():
                self._check_waiting(place, packets[place], faults)
        if faults:
            raise DeviceStopped(*sorted(faults, key=lambda fault: -1 if fault.tile is None else fault.tile))
        # What is read is what was there before the batch.
        for kind in (PacketKind.READ, PacketKind.CLOSE, PacketKind.WRITE):
            for place in sorted(asking):
                for packet in packets[place]:
                    if packet.kind is kind:
                        self._answer(place, packet)
        device.release_data()

    def _requests(self, requesters: Int64Array, faults: list[ApplicationFault]) -> dict[int, PhysicalTile]:
        """Places of requested tiles, with the tile that requests."""
        device = self._device
        requested: dict[int, PhysicalTile] = {}
        for place in requesters.tolist():
            tile = self._tile(place)
            words = device.sent.get(place, Sent()).words
            if not can_request(tile):
                text = (
                    "it meets the host as requester (sync 15), which only tiles of row 0 with lane 0 or 1 do"
                )
                faults.append(device.fault_at(_Kind.REQUEST, place, text))
                continue
            if len(words) < HEADER_WORDS:
                text = "it meets the host as requester (sync 15), but sends no request"
                faults.append(device.fault_at(_Kind.REQUEST, place, text))
                continue
            tiles = requested_tiles(tile, np.array(words[:HEADER_WORDS], dtype=np.int64))
            if isinstance(tiles, str):
                faults.append(device.fault_at(_Kind.REQUEST, place, tiles))
                continue
            for target in tiles:
                found = device.machine.place_of(target)
                if found is None:
                    text = f"it requests an exchange for tile {target}, which the package does not hold"
                    faults.append(device.fault_at(_Kind.REQUEST, place, text))
                else:
                    requested[found] = tile
        return requested

    # Packets.

    def _packets(
        self, place: int, sent: Sent, first: int, faults: list[ApplicationFault]
    ) -> tuple[Packet, ...]:
        """The packets of a tile, or faults."""
        words = np.array(sent.words, dtype=np.int64)
        packets: list[Packet] = []
        at = first
        while at < len(words):
            packet = read_packet(self._tile(place), words, at)
            if isinstance(packet, str):
                faults.append(self._device.fault_at(_Kind.PACKET, place, packet))
                return tuple(packets)
            problem = self._outside(packet)
            if problem is not None:
                faults.append(self._device.fault_at(_Kind.HOST_RANGE, place, problem))
            packets.append(packet)
            at += packet.words
        self._check_order(place, packets, sent, faults)
        return tuple(packets)

    def _outside(self, packet: Packet) -> str | None:
        """Why the host memory of a packet cannot be reached, or None."""
        if packet.kind is PacketKind.CLOSE:
            return None
        start, end = packet.host_offset, packet.host_offset + packet.size
        name = f"a {packet.kind.value} of {packet.size} bytes at {start:#x} of host memory"
        if not any(self._starts[page] <= start and end <= self._ends[page] for page in self._starts):
            return f"{name} is outside of every page"
        if start // HOST_PAGE != (end - 1) // HOST_PAGE:
            return f"{name} crosses a multiple of {HOST_PAGE} bytes"
        return None

    def _check_order(
        self, place: int, packets: Sequence[Packet], sent: Sent, faults: list[ApplicationFault]
    ) -> None:
        device = self._device
        has_writes = any(packet.kind is PacketKind.WRITE for packet in packets)
        for packet, following in itertools.pairwise(packets):
            if packet.is_final:
                text = "a packet that ends the packets of its program is followed by another"
                faults.append(device.fault_at(_Kind.PACKET, place, text))
            if packet.kind is PacketKind.WRITE:
                passed = sent.cycles[following.at] - sent.cycles[packet.at + HEADER_WORDS]
                if passed < WRITE_SPACING:
                    text = (
                        f"a packet follows {passed} cycles after the start of a write's data,"
                        f" which needs {WRITE_SPACING}"
                    )
                    faults.append(device.fault_at(_Kind.WRITE_SPACING, place, text))
        if not packets:
            return
        last = packets[-1]
        if has_writes and last.kind is not PacketKind.CLOSE:
            text = "it writes to the host and does not close: a read of no bytes is missing"
            faults.append(device.fault_at(_Kind.CLOSE, place, text))
        elif not has_writes and last.kind is PacketKind.CLOSE:
            faults.append(device.fault_at(_Kind.CLOSE, place, "it closes, but has written nothing"))
        elif not last.is_final:
            text = "its last packet does not end the packets of its program"
            faults.append(device.fault_at(_Kind.PACKET, place, text))

    def _check_waiting(self, place: int, packets: Sequence[Packet], faults: list[ApplicationFault]) -> None:
        """A tile that asked waits for exactly what comes, and listens to the host."""
        device = self._device
        coming = sum(
            max(1, packet.size // WORD_BYTES) for packet in packets if packet.kind is not PacketKind.WRITE
        )
        waits = device.wait[place] == Wait.DATA
        here = np.array([place])
        expected = int(device.machine.control_registers(here, SupervisorRegister.INCOMING_DCOUNT)[0])
        if waits and expected != coming:
            text = f"it waits for {expected} words from the host, but has asked for {coming}"
            faults.append(device.fault_at(_Kind.WORDS_EXPECTED, place, text))
        elif coming and not waits:
            text = f"it has asked the host for {coming} words and does not wait for them"
            faults.append(device.fault_at(_Kind.WORDS_EXPECTED, place, text))
        mux = int(device.machine.control_registers(here, SupervisorRegister.INCOMING_MUX)[0])
        wanted = host_mux(self._tile(place))
        if coming and mux != wanted:
            text = f"the host answers through multiplexer value {wanted:#x}, but it listens to {mux:#x}"
            faults.append(device.fault_at(_Kind.MULTIPLEXER, place, text))

    def _answer(self, place: int, packet: Packet) -> None:
        device = self._device
        at, size = int(packet.host_offset), int(packet.size)
        match packet.kind:
            case PacketKind.READ:
                data = self._memory[at : at + size].tobytes()
                device.machine.write(place, packet.arrival, data, self._known[at : at + size])
                self._read[at : at + size] = True
            case PacketKind.CLOSE:
                # What the answer leaves in the word where it arrives is not known.
                unknown = np.zeros(WORD_BYTES, np.bool_)
                device.machine.write(place, packet.arrival, bytes(WORD_BYTES), unknown)
            case PacketKind.WRITE:
                first = packet.at + HEADER_WORDS
                words = device.sent[place].words[first : first + size // WORD_BYTES]
                self._put(at, np.array(words, dtype="<u4").tobytes())

    # Pages.

    def _put(self, at: int, data: bytes) -> None:
        self._memory[at : at + len(data)] = np.frombuffer(data, np.uint8)
        self._known[at : at + len(data)] = True

    def _fill(self, parts: Sequence[HostSlice], file: bytes) -> None:
        for part in parts:
            at = self._offset(part)
            self._put(at, file[part.file_offset : part.file_offset + part.size])
            self._read[at : at + part.size] = False

    def _check_read(self, name: str, batch: int, parts: Sequence[HostSlice]) -> None:
        for part in parts:
            at = self._offset(part)
            if not self._read[at : at + part.size].all():
                missing = at + int(np.argmin(self._read[at : at + part.size]))
                text = (
                    f"input batch {batch} of call {name}: no tile has read the byte at {missing:#x} of host"
                    f" memory, from its slice of {part.size} bytes at {at:#x}"
                )
                raise DeviceStopped(ApplicationFault(kind=_Kind.INPUT_UNREAD, text=text))

    def _collect(
        self, name: str, batch: int, parts: Sequence[HostSlice], file: npt.NDArray[np.uint8]
    ) -> None:
        for part in parts:
            at = self._offset(part)
            if not self._known[at : at + part.size].all():
                missing = at + int(np.argmin(self._known[at : at + part.size]))
                text = (
                    f"output batch {batch} of call {name}: no tile has written the byte at {missing:#x} of"
                    f" host memory, from its slice of {part.size} bytes at {at:#x}"
                )
                raise DeviceStopped(ApplicationFault(kind=_Kind.OUTPUT_UNWRITTEN, text=text))
            file[part.file_offset : part.file_offset + part.size] = self._memory[at : at + part.size]

    def _offset(self, part: HostSlice) -> int:
        """Where a slice is in host memory."""
        return self._starts[part.page] + int(part.page_offset)

    def _tile(self, place: int) -> PhysicalTile:
        return PhysicalTile(int(self._device.machine.physical[place]))


def _file_size(parts: Sequence[HostSlice]) -> Bytes:
    return Bytes(max((part.file_offset + part.size for part in parts), default=0))


def call_file_sizes(call: HostCall) -> tuple[Bytes, Bytes]:
    """Bytes of the input and the output file of a call."""
    return _file_size(call.inputs), _file_size(call.outputs)


def _batch(parts: Sequence[HostSlice], ends: Sequence[int], batch: int) -> Sequence[HostSlice]:
    return parts[ends[batch - 1] if batch else 0 : ends[batch]]
