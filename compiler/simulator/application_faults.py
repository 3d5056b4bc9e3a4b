"""What can go wrong while a whole application runs: one value for each fault, with its text.

Faults of single instructions are those of ``faults``, faults of exchange phases those of ``exchange_faults``;
both appear here with the tile, and the time or phase, at which they stop the device. The other kinds concern
what only an application has: barriers, the host's packets and calls, and how programs end.

A fault stops the device. Everything that is wrong at that moment is reported, by tile.
"""

from dataclasses import dataclass
from enum import Enum
from typing import final

from compiler.simulator.exchange_faults import ExchangeFault
from compiler.simulator.faults import Fault
from compiler.target.units import Cycles, PhysicalTile


@final
class ApplicationFaultKind(Enum):
    """The kinds; the value is the word of reports."""

    INSTRUCTION = "instruction"
    """A tile stopped: ``ApplicationFault.instruction`` says why."""
    EXCHANGE = "exchange"
    """A phase broke a rule of the fabric: ``ApplicationFault.exchange`` says which."""
    ROW = "row"
    """What was called behind the barrier of the chip is no exchange row."""
    RUNAWAY = "runaway"
    DEADLOCK = "deadlock"
    WORKERS_ACTIVE = "workers active"
    ABSENCE = "absence"
    ZONE = "zone"
    OUTSIDE_ROW = "exchange instruction outside of a row"
    UNINITIALISED = "uninitialised"
    COMPLETION = "completion"
    SEND = "send to the host"
    MULTIPLEXER = "host multiplexer"
    REQUEST = "exchange request"
    PACKET = "packet"
    HOST_RANGE = "host range"
    CLOSE = "close"
    WRITE_SPACING = "write spacing"
    WORDS_EXPECTED = "words expected"
    INPUT_UNREAD = "input not read"
    OUTPUT_UNWRITTEN = "output not written"
    PHASE_COUNT = "phase count"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationFault:
    """One fault.

    Args:
        kind: what is wrong.
        text: one sentence without a full stop.
        tile: on which tile; None when it concerns several or the host.
        cycle: when, on the clock that all tiles share; None when it belongs to no moment.
        instruction: the fault of an instruction, for its kind.
        exchange: the fault of a phase, for its kind.
    """

    kind: ApplicationFaultKind
    text: str
    tile: PhysicalTile | None = None
    cycle: Cycles | None = None
    instruction: Fault | None = None
    exchange: ExchangeFault | None = None

    def __str__(self) -> str:
        """One line for people."""
        where = [] if self.tile is None else [f"tile {self.tile}"]
        if self.cycle is not None:
            where.append(f"cycle {self.cycle:,}")
        return f"{', '.join(where)}: {self.text}" if where else self.text

    @staticmethod
    def of_instruction(tile: PhysicalTile, fault: Fault) -> "ApplicationFault":
        """A tile stopped."""
        return ApplicationFault(
            kind=ApplicationFaultKind.INSTRUCTION, text=str(fault), tile=tile, instruction=fault
        )

    @staticmethod
    def of_exchange(phase: int, fault: ExchangeFault) -> "ApplicationFault":
        """A phase broke a rule; the tile is in the text of the rule."""
        return ApplicationFault(
            kind=ApplicationFaultKind.EXCHANGE, text=f"exchange phase {phase}, {fault}", exchange=fault
        )


class DeviceStopped(Exception):  # not an error of ours: the outcome of a run
    """Faults found; raised and caught inside the simulator, never seen by its callers."""

    def __init__(self, *faults: ApplicationFault) -> None:
        super().__init__(faults)
        self.faults = faults
