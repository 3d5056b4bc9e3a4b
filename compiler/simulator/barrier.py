"""What tiles wait for, and what lets them go on.

Tiles run alone until each one waits. What it waits for is the instruction at which its supervisor stands:

====================  ==================================================================================
``sync 3``            the barrier of the chip; a call of an exchange row may follow
``sans 0``, ``sync 1``  it stays away from the barrier of the chip, and goes on when that is complete
``sync 7``, ``15``    the host; 15 on tiles that request the exchange
``sans 1``, ``sync 1``  it stays away from one batch of the host, and goes on when that has ended
``sync 0``            the words that the host sends
address 0             nothing: its program has ended
====================  ==================================================================================

**Time.** All clocks have one base. A barrier is complete when the last tile has arrived or declared its
absence, and releases all tiles in one cycle: ``INTERNAL_SYNC`` later for the barrier of the chip, one
instruction later for the host, whose own time is not modelled. A tile that stays away goes on then, or when
it gets to waiting, whichever is later.

Tiles that the package does not hold count as absent from everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import InternalError
from compiler.simulator import state as at
from compiler.simulator.application_faults import ApplicationFault, ApplicationFaultKind, DeviceStopped
from compiler.simulator.functional import Functional
from compiler.simulator.machine import WRITTEN, Machine
from compiler.simulator.recording import Recorder
from compiler.simulator.rows import RowRunner, called_rows
from compiler.simulator.tile import STAGE, Stop
from compiler.simulator.timeline import Meeting, MeetingKind
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import INTERNAL_SYNC, SUPERVISOR_SIMPLE
from compiler.target.fabric import MULTICAST
from compiler.target.memory import SRAM_BASE, SRAM_SIZE
from compiler.target.registers import Absence, SyncZone
from compiler.target.runtime_layout import COMPLETED
from compiler.target.units import (
    WORD_BYTES,
    BoolArray,
    Cycles,
    Events,
    Int64Array,
    PhysicalTile,
    Words,
)

_SYNC: Final = 0x41800000
_SANS: Final = 0x40C00000
_ZONE: Final = 0xF
_DELAY: Final = 0x40A00000
_DELAY_MASK: Final = 0xFFF80000
_SEND: Final = 0x78000000
_SEND_MASK: Final = 0xF8000000
_SENDOFF: Final = 0x70000000
_SENDOFF_MASK: Final = 0xF8100000
_SIMPLE: Final = int(SUPERVISOR_SIMPLE)
_NOT_ABSENT: Final = -1
_NO_STREAM: Final = -1
_HOST_ZONES: Final = (int(SyncZone.EXTERNAL_2_HOST), int(SyncZone.EXTERNAL_2_HOST_MASTER))


class Wait(IntEnum):
    """What a tile waits for."""

    RUNNING = 0
    """Nothing: it can go on."""
    BARRIER = 1
    AWAY_FROM_BARRIER = 2
    HOST = 3
    AWAY_FROM_HOST = 4
    DATA = 5
    ENDED = 6


_WAITING_TEXT: Final = {
    Wait.RUNNING: "can go on",
    Wait.BARRIER: "wait at the barrier of the chip",
    Wait.AWAY_FROM_BARRIER: "stay away from the barrier of the chip",
    Wait.HOST: "wait for the host",
    Wait.AWAY_FROM_HOST: "stay away from the host",
    Wait.DATA: "wait for data from the host",
    Wait.ENDED: "have ended",
}


@final
@dataclass(slots=True, kw_only=True)
class Sent:
    """What a tile has sent to the host in a batch.

    Args:
        words: all of it.
        cycles: when each word left the tile.
    """

    words: list[int] = field(default_factory=list[int])
    cycles: list[int] = field(default_factory=list[int])


@final
class Device:
    """The tiles of an application, as far as they meet.

    Args:
        machine: the tiles.
        functional: kernels that are not stepped through, or None.
        recorder: watches chosen tiles.
    """

    def __init__(self, machine: Machine, functional: Functional | None, recorder: Recorder) -> None:
        count = machine.count
        self.machine: Final = machine
        self.timeline: Final[list[Meeting]] = []
        self.wait: Final[npt.NDArray[np.int64]] = np.zeros(count, np.int64)
        """``Wait`` of each tile."""
        self.reached: Final[Int64Array] = np.zeros(count, np.int64)
        """Cycle at which each tile got to where it waits."""
        self.zone: Final[Int64Array] = np.zeros(count, np.int64)
        """Zone of the last wait for the host."""
        self.sent: Final[dict[int, Sent]] = {}
        """What tiles have sent to the host since the batch began, by place."""
        self.in_batch: Final[BoolArray] = np.zeros(count, np.bool_)
        """Which tiles take part in the batch that is under way."""
        self._arrival: Final[Int64Array] = np.zeros(count, np.int64)
        self._absent: Final[Int64Array] = np.full(count, _NOT_ABSENT, np.int64)
        self._cursor: Final[Int64Array] = np.full(count, _NO_STREAM, np.int64)
        self._functional: Final = functional
        self._recorder: Final = recorder
        self._rows: Final = RowRunner(machine)
        if functional is not None:
            functional.intercept(machine)

    # Going on.

    def run(self) -> None:
        """Run every tile that can until all wait.

        Raises:
            DeviceStopped: with the faults of all tiles that have one.
            Unsupported: an instruction is not simulated.
        """
        running = np.flatnonzero(self.wait == Wait.RUNNING)
        while len(running):
            stops = self._recorder.advance(self.machine, running)
            running = self._take_stops(running, stops)

    def settle(self) -> None:
        """Run, through barriers of the chip, until all tiles wait for the host or have ended.

        Raises:
            DeviceStopped: something is wrong, or tiles wait for each other.
            Unsupported: an instruction is not simulated.
        """
        while True:
            self.run()
            inside = (self.wait == Wait.BARRIER) | (self.wait == Wait.AWAY_FROM_BARRIER)
            if not inside.any():
                return
            if not inside.all():
                raise DeviceStopped(self.deadlock("the barrier of the chip cannot complete"))
            self.barrier()

    def barrier(self) -> None:
        """Complete the barrier of the chip, at which all tiles are, and run the rows behind it."""
        machine = self.machine
        present = np.flatnonzero(self.wait == Wait.BARRIER)
        release = int(self._arrival.max()) + int(INTERNAL_SYNC)
        after = machine.program_counters(present) + WORD_BYTES
        targets = called_rows(self._words_at(present, after))
        plain, calling = present[targets < 0], present[targets >= 0]
        machine.resume(plain, after[targets < 0], release)
        kind, horizon, end, delivered = MeetingKind.BARRIER, Events(0), Cycles(release), Words(0)
        if len(calling):
            self._recorder.check_rows(calling, targets[targets >= 0])
            number = self._rows.phases
            outcome = self._rows.run(
                calling, targets[targets >= 0], after[targets >= 0] + WORD_BYTES, release
            )
            kind, horizon, end = MeetingKind.EXCHANGE, outcome.horizon, outcome.end
            delivered = outcome.delivered
            self._recorder.note_rows(calling, number, int(outcome.start), outcome.horizons)
        self._meet(kind, present, release, horizon=horizon, end=end, delivered=delivered)
        self._release_absent(Wait.AWAY_FROM_BARRIER, release)
        self.wait[present] = Wait.RUNNING

    def meet_host(self, kind: MeetingKind, *, with_absent: bool) -> Cycles:
        """Release the tiles that wait for the host; returns when.

        Args:
            kind: of the meeting.
            with_absent: whether tiles that stay away go on as well.
        """
        present = np.flatnonzero(self.wait == Wait.HOST)
        release = int(self._arrival.max()) + _SIMPLE
        self._meet(kind, present, release, horizon=Events(0), end=Cycles(release), delivered=Words(0))
        self._go_on(present, np.full(len(present), release))
        if with_absent:
            self._release_absent(Wait.AWAY_FROM_HOST, release)
        return Cycles(release)

    def release_data(self) -> None:
        """Release the tiles that wait for data, which have arrived."""
        waiting = np.flatnonzero(self.wait == Wait.DATA)
        self._go_on(waiting, self.reached[waiting] + _SIMPLE)

    def _release_absent(self, wait: Wait, release: int) -> None:
        absent = np.flatnonzero(self.wait == wait)
        self._go_on(absent, np.maximum(release, self.reached[absent] + _SIMPLE))
        self._absent[absent] = _NOT_ABSENT

    def _go_on(self, places: Int64Array, cycles: Int64Array) -> None:
        """Let tiles go on behind the instruction at which they wait."""
        self.machine.resume(places, self.machine.program_counters(places) + WORD_BYTES, cycles)
        self.wait[places] = Wait.RUNNING

    def _meet(
        self,
        kind: MeetingKind,
        present: Int64Array,
        release: int,
        *,
        horizon: Events,
        end: Cycles,
        delivered: Words,
    ) -> None:
        last = int(self._arrival.argmax())
        self._recorder.note_waits(self.reached, release, kind)
        self.timeline.append(
            Meeting(
                number=len(self.timeline),
                kind=kind,
                taking_part=len(present),
                first_entry=Cycles(int(self._arrival.min())),
                last_entry=Cycles(int(self._arrival[last])),
                limiting_tile=self._tile(last),
                release=Cycles(release),
                horizon=horizon,
                end=end,
                delivered=delivered,
            )
        )

    # Why tiles stopped.

    def _take_stops(self, places: Int64Array, stops: Int64Array) -> Int64Array:
        """Note what tiles wait for; returns those that can go on."""
        faults: list[ApplicationFault] = []
        for index in np.flatnonzero(stops != Stop.EXCHANGE.value).tolist():
            faults += self._ended(int(places[index]), Stop(int(stops[index])))
        waiting = places[stops == Stop.EXCHANGE.value]
        if self._functional is not None:
            called = self._functional.is_entry(self.machine.program_counters(waiting))
            for place in waiting[called].tolist():
                faults += self._functional.apply(self.machine, place)
            intercepted, waiting = waiting[called], waiting[~called]
        else:
            intercepted = waiting[:0]
        cycles = self.machine.state[waiting, at.CYCLE]
        self.reached[waiting] = cycles
        words = self._words_at(waiting, self.machine.program_counters(waiting))
        is_sync, is_absence = words & ~_ZONE == _SYNC, words & ~_ZONE == _SANS
        faults += self._synchronize(waiting[is_sync], words[is_sync] & _ZONE)
        faults += self._stay_away(waiting[is_absence], words[is_absence] & _ZONE)
        others = ~is_sync & ~is_absence
        for place, word in zip(waiting[others].tolist(), words[others].tolist(), strict=True):
            faults += self._step(place, word)
        if faults:
            raise DeviceStopped(*sorted(faults, key=lambda fault: -1 if fault.tile is None else fault.tile))
        return np.sort(np.concatenate([intercepted, waiting[~is_sync]]))

    def _ended(self, place: int, stop: Stop) -> Sequence[ApplicationFault]:
        """A tile stopped for another reason than an instruction of the exchange."""
        machine = self.machine
        match stop:
            case Stop.FAULT:
                return [ApplicationFault.of_instruction(self._tile(place), machine.tile(place).fault())]
            case Stop.LIMIT:
                text = f"it ran {machine.cycle_limit:,} cycles without waiting for anything"
                return [self._fault(ApplicationFaultKind.RUNAWAY, place, text)]
            case Stop.RETURNED:
                self.wait[place] = Wait.ENDED
                self.reached[place] = self._arrival[place] = machine.cycle(place)
                address = int(machine.diagnostic[place])
                found = machine.word(place, address)
                if found == COMPLETED:
                    return []
                held = "was never written" if found is None else f"is {found:#x}"
                text = f"its program ended, but its completion word at {address:#x} {held}"
                return [self._fault(ApplicationFaultKind.COMPLETION, place, text)]
            case _:
                raise InternalError(
                    f"a tile stopped with {stop.name.lower()}",
                    stage=STAGE,
                    subject=f"tile {self._tile(place)}",
                    next_step="report it with the package",
                )

    def _synchronize(self, places: Int64Array, zones: Int64Array) -> list[ApplicationFault]:
        """Tiles stand at ``sync``."""
        faults: list[ApplicationFault] = []
        for place in places[self.machine.workers_active(places)].tolist():
            text = "its workers run while it waits for others"
            faults.append(self._fault(ApplicationFaultKind.WORKERS_ACTIVE, place, text))
        self.zone[places] = zones
        absent = self._absent[places]
        at_absence = zones == int(SyncZone.ABSENCE)
        # A tile that stays away has arrived since it said so.
        self._arrival[places[~at_absence]] = self.reached[places[~at_absence]]
        for chosen, wait in (
            ((zones == int(SyncZone.INTERNAL)) & (absent == _NOT_ABSENT), Wait.BARRIER),
            (np.isin(zones, _HOST_ZONES) & (absent == _NOT_ABSENT), Wait.HOST),
            (at_absence & (absent == int(Absence.INTERNAL)), Wait.AWAY_FROM_BARRIER),
            (at_absence & (absent == int(Absence.EXTERNAL)), Wait.AWAY_FROM_HOST),
            ((zones == int(SyncZone.RECEIVE)) & (absent == _NOT_ABSENT), Wait.DATA),
        ):
            self.wait[places[chosen]] = wait
        wrong = self.wait[places] == Wait.RUNNING
        faults += map(self._wrong_sync, places[wrong].tolist(), zones[wrong].tolist())
        for place in places[(self.wait[places] == Wait.DATA) & ~self.in_batch[places]].tolist():
            text = "it waits for data from the host outside of a host batch"
            faults.append(self._fault(ApplicationFaultKind.WORDS_EXPECTED, place, text))
        return faults

    def _wrong_sync(self, place: int, zone: int) -> ApplicationFault:
        if zone == int(SyncZone.ABSENCE):
            text = "sync 1 without sans: it waits for the end of what it did not stay away from"
            return self._fault(ApplicationFaultKind.ABSENCE, place, text)
        if self._absent[place] != _NOT_ABSENT:
            text = f"sync {zone} between sans {int(self._absent[place])} and its sync 1"
            return self._fault(ApplicationFaultKind.ABSENCE, place, text)
        text = f"sync {zone}: nothing is known of how this zone is used"
        return self._fault(ApplicationFaultKind.ZONE, place, text)

    def _step(self, place: int, word: int) -> Sequence[ApplicationFault]:
        """Run an instruction of the exchange that does not wait, outside of rows."""
        if word & _DELAY_MASK == _DELAY:
            self._pass(place, (word & ~_DELAY_MASK) + 1)
            return []
        if word & _SEND_MASK == _SEND:
            count, item = (word >> 21 & 0x3F) + 1, word >> 3 & 0x3FFFF
            base = self.machine.control_registers(np.array([place]), SupervisorRegister.OUTGOING_BASE)
            self._cursor[place] = WORD_BYTES * item + int(base[0])
            return self._send(place, word, count)
        if word & _SENDOFF_MASK == _SENDOFF:
            count = (word >> 21 & 0x3F) + 1 + ((word >> 14 & 0x3F) << 6)
            if self._cursor[place] == _NO_STREAM:
                text = "sendoff continues a stream, but none was started"
                return [self._fault(ApplicationFaultKind.SEND, place, text)]
            self._cursor[place] += WORD_BYTES * (word >> 3 & 0x7FF)
            return self._send(place, word, count)
        text = self.machine.tile(place).instruction_at(self.machine.program_counter(place), at.SUPERVISOR)
        text = f"{text}: this instruction has a meaning only in an exchange row"
        return [self._fault(ApplicationFaultKind.OUTSIDE_ROW, place, text)]

    def _stay_away(self, places: Int64Array, kinds: Int64Array) -> list[ApplicationFault]:
        """Tiles stand at ``sans``."""
        faults: list[ApplicationFault] = []
        is_known = np.isin(kinds, (int(Absence.INTERNAL), int(Absence.EXTERNAL)))
        may = is_known & (self._absent[places] == _NOT_ABSENT)
        for place, kind, known in zip(
            places[~may].tolist(), kinds[~may].tolist(), is_known[~may].tolist(), strict=True
        ):
            text = f"sans {kind}: there are only 0, the barrier of the chip, and 1, the host"
            if known:
                text = f"sans {kind}, but it stays away already, and has not waited with sync 1"
            faults.append(self._fault(ApplicationFaultKind.ABSENCE, place, text))
        away = places[may]
        self._absent[away] = kinds[may]
        self._arrival[away] = self.reached[away]
        self._go_on(away, self.reached[away] + _SIMPLE)
        return faults

    def _send(self, place: int, word: int, count: int) -> Sequence[ApplicationFault]:
        """Words leave the tile toward the host."""
        machine = self.machine
        if not self.in_batch[place]:
            text = "it sends outside of exchange rows and host batches"
            return [self._fault(ApplicationFaultKind.SEND, place, text)]
        if word & 7 != int(MULTICAST):
            text = f"it sends to the host with send control {word & 7}, not {int(MULTICAST)}"
            return [self._fault(ApplicationFaultKind.SEND, place, text)]
        address = int(self._cursor[place])
        if not SRAM_BASE <= address <= SRAM_BASE + SRAM_SIZE - WORD_BYTES * count or address % WORD_BYTES:
            text = f"it sends {count} words to the host from {address:#x}, outside of SRAM"
            return [self._fault(ApplicationFaultKind.SEND, place, text)]
        first = (address - SRAM_BASE) // WORD_BYTES
        missing = np.flatnonzero(machine.shadow[place, first : first + count] != WRITTEN)
        if len(missing):
            text = f"it sends the word at {address + WORD_BYTES * int(missing[0]):#x}, which nothing wrote"
            return [self._fault(ApplicationFaultKind.UNINITIALISED, place, text)]
        sent = self.sent.setdefault(place, Sent())
        sent.words += machine.memory[place, first : first + count].tolist()
        sent.cycles += range(machine.cycle(place), machine.cycle(place) + count)
        self._cursor[place] += WORD_BYTES * count
        self._pass(place, count)
        return []

    def _pass(self, place: int, cycles: int) -> None:
        machine = self.machine
        machine.resume(place, machine.program_counter(place) + WORD_BYTES, machine.cycle(place) + cycles)

    # Small parts.

    def deadlock(self, what: str) -> ApplicationFault:
        """Tiles wait for different things; says for which."""
        groups: list[str] = []
        for wait in Wait:
            members = np.flatnonzero(self.wait == wait)
            if len(members):
                first = self._tile(int(members[0]))
                groups.append(f"{len(members):,} {_WAITING_TEXT[wait]} (first: tile {first})")
        return ApplicationFault(
            kind=ApplicationFaultKind.DEADLOCK, text=f"{what}: of the tiles {', '.join(groups)}"
        )

    def places_waiting(self, wait: Wait) -> Int64Array:
        """Tiles that wait for something."""
        return np.flatnonzero(self.wait == wait)

    def is_waiting(self, *waits: Wait) -> BoolArray:
        """Whether each tile waits for one of some things."""
        return np.isin(self.wait, waits)

    def fault_at(self, kind: ApplicationFaultKind, place: int, text: str) -> ApplicationFault:
        """A fault of a tile at its present cycle."""
        return self._fault(kind, place, text)

    def _fault(self, kind: ApplicationFaultKind, place: int, text: str) -> ApplicationFault:
        return ApplicationFault(
            kind=kind, text=text, tile=self._tile(place), cycle=Cycles(self.machine.cycle(place))
        )

    def _tile(self, place: int) -> PhysicalTile:
        return PhysicalTile(int(self.machine.physical[place]))

    def _words_at(self, places: Int64Array, addresses: Int64Array) -> Int64Array:
        """The word at an address of each of some tiles; 0 outside of executable memory."""
        index = (addresses - SRAM_BASE) // WORD_BYTES
        inside = (index >= 0) & (index < at.CODE_WORDS)
        words = self.machine.memory[places, np.where(inside, index, 0)]
        return np.where(inside, words, 0).astype(np.int64)
