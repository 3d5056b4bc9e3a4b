"""The exchange rows of a whole chip: read from SRAM, run on the fabric, and what they leave behind.

A tile that takes part in an exchange calls its row in the instruction behind the barrier. Rows are read from
the words in SRAM at that moment, patches included; a row whose words are unchanged is not decoded again.

A phase starts with no pointer set, whatever an earlier one left: every payload must be told where it belongs.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.isa.rows import Operation, Row, decode_row
from compiler.simulator import state as at
from compiler.simulator.application_faults import ApplicationFault, ApplicationFaultKind, DeviceStopped
from compiler.simulator.fabric import MAIN_REGISTERS, Phase, PhaseResult, ReceivingSide, run_phase
from compiler.simulator.fabric_timeline import NO_POINTER
from compiler.simulator.machine import SUPERVISOR_BASE, WRITTEN, Machine
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import SUPERVISOR_TAKEN_BRANCH
from compiler.target.memory import BUNDLE_ALIGNMENT
from compiler.target.units import WORD_BYTES, Cycles, Events, Int64Array, PhysicalTile, Words

LINK: Final = 10
"""The main register that rows return by."""

_CALL_MASK: Final = 0xFFF00000
_CALL_BY_LINK: Final = 0x18A00000
_TARGET_WORDS: Final = 0x7FFFF
_ZERO_REGISTER: Final = 15


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseOutcome:
    """What a phase was to those who only watch.

    Args:
        start: cycle of slot 0.
        horizon: events of the longest row.
        horizons: events of each tile's row, in order of its places.
        end: cycle at which the last row had returned.
        delivered: words written.
    """

    start: Cycles
    horizon: Events
    horizons: Int64Array
    end: Cycles
    delivered: Words


def called_rows(words: Int64Array) -> Int64Array:
    """For each instruction word the address that it calls by the link register, or -1."""
    return np.where(words & _CALL_MASK == _CALL_BY_LINK, (words & _TARGET_WORDS) * WORD_BYTES, -1)


@final
class RowRunner:
    """Runs phases of a machine, and remembers the rows that it has read."""

    def __init__(self, machine: Machine) -> None:
        self._machine: Final = machine
        self._known: Final[dict[tuple[int, int], Row]] = {}
        self._decoded: Final[dict[bytes, Row]] = {}
        self._phases = 0

    @property
    def phases(self) -> int:
        """Phases that ran."""
        return self._phases

    def run(
        self, places: Int64Array, addresses: Int64Array, returns: Int64Array, release: int
    ) -> PhaseOutcome:
        """Run the rows that some tiles call in the instruction behind the barrier.

        Args:
            places: tiles that take part, ascending.
            addresses: byte address of each row.
            returns: where each call returns to.
            release: cycle at which the calls issue.

        Raises:
            DeviceStopped: a row is none, or the phase has faults.
        """
        machine, number = self._machine, self._phases
        self._phases += 1
        start = release + int(SUPERVISOR_TAKEN_BRANCH)
        rows = self._rows(places, addresses, start)
        machine.state[places, SUPERVISOR_BASE + at.MRF + LINK] = returns
        result = run_phase(
            Phase(
                tiles=machine.physical[places],
                rows=rows,
                row_address=addresses,
                registers=machine.state[places, SUPERVISOR_BASE : SUPERVISOR_BASE + MAIN_REGISTERS],
                workers_active=machine.workers_active(places),
                entry=self._entry(places),
            ),
            machine.memory,
            machine.shadow,
            places,
        )
        if result.faults:
            raise DeviceStopped(*(ApplicationFault.of_exchange(number, fault) for fault in result.faults))
        self._leave(places, rows, result)
        self._forget_written_code(result)
        horizon = int(result.horizon.max())
        links = machine.state[places, SUPERVISOR_BASE + at.MRF + LINK]
        machine.resume(places, links, start + result.horizon + int(SUPERVISOR_TAKEN_BRANCH))
        return PhaseOutcome(
            start=Cycles(start),
            horizon=Events(horizon),
            horizons=result.horizon,
            end=Cycles(start + horizon + int(SUPERVISOR_TAKEN_BRANCH)),
            delivered=Words(result.delivered_words),
        )

    def _entry(self, places: Int64Array) -> ReceivingSide:
        registers = self._machine.control_registers
        return ReceivingSide(
            mux=registers(places, SupervisorRegister.INCOMING_MUX),
            pair_mux=registers(places, SupervisorRegister.INCOMING_MUXPAIR),
            pointer=np.full(len(places), NO_POINTER, dtype=np.int64),
            format=registers(places, SupervisorRegister.INCOMING_FORMAT),
            incoming_base=registers(places, SupervisorRegister.INCOMING_BASE),
            outgoing_base=registers(places, SupervisorRegister.OUTGOING_BASE),
        )

    def _leave(self, places: Int64Array, rows: tuple[Row, ...], result: PhaseResult) -> None:
        """Registers after the rows."""
        state, left = self._machine.state, result.exit
        for register, values in (
            (SupervisorRegister.INCOMING_MUX, left.mux),
            (SupervisorRegister.INCOMING_MUXPAIR, left.pair_mux),
            (SupervisorRegister.INCOMING_FORMAT, left.format),
            (SupervisorRegister.INCOMING_BASE, left.incoming_base),
            (SupervisorRegister.OUTGOING_BASE, left.outgoing_base),
        ):
            state[places, at.SUPERVISOR_CSR + int(register)] = values
        pointer = left.pointer
        state[places, at.SUPERVISOR_CSR + int(SupervisorRegister.INCOMING_DELTA)] = np.where(
            pointer == NO_POINTER, 0, pointer
        )
        for place, row in zip(places.tolist(), rows, strict=True):
            instructions = row.instructions
            for index in instructions.word[instructions.operation == Operation.SETZI].tolist():
                word = int(row.words[index])
                self._machine.set_register(place, word >> 20 & 15, word & 0xFFFFF)

    def _forget_written_code(self, result: PhaseResult) -> None:
        """What was written where instructions can be is decoded again."""
        written, machine = result.written, self._machine
        count = written.count * (result.sent.item_bytes[written.stream] // WORD_BYTES)
        below = written.address < at.BASE + WORD_BYTES * at.CODE_WORDS
        first = (written.address[below] - at.BASE) // WORD_BYTES
        places = np.searchsorted(machine.physical, written.tile[below])
        _forget(places, first, count[below], machine.decoded)

    def _rows(self, places: Int64Array, addresses: Int64Array, cycle: int) -> tuple[Row, ...]:
        rows: list[Row] = []
        faults: list[ApplicationFault] = []
        for place, address in zip(places.tolist(), addresses.tolist(), strict=True):
            found = self._row(place, address)
            if isinstance(found, Row):
                rows.append(found)
                continue
            faults.append(
                ApplicationFault(
                    kind=ApplicationFaultKind.ROW,
                    text=f"the row that it calls at {address:#x}: {found}",
                    tile=PhysicalTile(int(self._machine.physical[place])),
                    cycle=Cycles(cycle),
                )
            )
        if faults:
            raise DeviceStopped(*faults)
        return tuple(rows)

    def _row(self, place: int, address: int) -> Row | str:
        """The row at an address, or why there is none."""
        first = (address - at.BASE) // WORD_BYTES
        if address % BUNDLE_ALIGNMENT or not 0 <= first < at.CODE_WORDS:
            return f"it is not at a multiple of {BUNDLE_ALIGNMENT} bytes in executable memory"
        memory = self._machine.memory[place]
        known = self._known.get((place, address))
        if known is not None and np.array_equal(memory[first : first + len(known.words)], known.words):
            return known
        words = memory[first : at.CODE_WORDS]
        found = decode_row(words)
        if not isinstance(found, Row):
            return str(found)
        if found.instructions.operation[0] == Operation.SYNC:
            return "it starts with a barrier of its own"
        if (self._machine.shadow[place, first : first + len(found.words)] != WRITTEN).any():
            return "some of its words were never written"
        # Equal rows are shared: tiles without work, and loops, have few different ones.
        row = self._decoded.setdefault(found.words.tobytes(), found)
        self._known[place, address] = row
        return row


@compiled(nogil=True)
def _forget(places: Int64Array, first: Int64Array, count: Int64Array, decoded: npt.NDArray[np.int64]) -> None:
    """Clear what was decoded from so many words from ``first`` on, whole bundles at a time."""
    for index in range(places.size):
        end = min(int(first[index] + count[index] + 1) & ~1, decoded.shape[1])
        for word in range(int(first[index]) & ~1, end):
            decoded[places[index], word] = 0
