"""Register files, their names in assembly text, and the codes that registers hold.

Input: nothing. Guarantees: every name of assembly text that denotes a register is a key of
``REGISTER_NAMES``; ``register_text`` prints a name that reads back as the same register. Control registers,
which are reached with ``get`` and ``put`` and have bit fields, are in ``control_registers``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Annotated, final

from compiler.target.standing import EARLIER, VENDOR, VERIFIED, stands


@stands(VENDOR)
class RegisterFile(Enum):
    """The two files of general registers; the value is the letter of their names."""

    MAIN = "m"
    """Addresses and integers, 32 bits each, in both kinds of context."""
    ARITHMETIC = "a"
    """Floating point, 32 bits each, workers only."""


REGISTERS_PER_FILE: Annotated[int, VENDOR] = 16
"""Numbers in each file. Fact, vendor tools."""

GENERAL_ARITHMETIC_REGISTERS: Annotated[int, VENDOR] = 8
"""Arithmetic registers that store: 0 .. 7. Numbers 8 .. 13 have encodings but no stated storage. Fact, vendor
tools."""

ARITHMETIC_ZEROS: Annotated[tuple[int, int], VENDOR] = (14, 15)
"""Arithmetic registers that read as zero and discard writes. Fact, vendor tools."""


@stands(VENDOR)
class MainRegister(IntEnum):
    """The main file. Workers see 12 and 13 as read-only mirrors of their two bases."""

    M0 = 0
    M1 = 1
    M2 = 2
    M3 = 3
    M4 = 4
    M5 = 5
    M6 = 6
    M7 = 7
    M8 = 8
    M9 = 9
    M10 = 10
    M11 = 11
    M12 = 12
    M13 = 13
    M14 = 14
    M15 = 15
    WORKER_BASE = 12
    VERTEX_BASE = 13
    ZERO = 15
    """Reads as zero, writes are discarded."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterGroup:
    """One register, or an aligned pair or quad of neighbours.

    Args:
        file: where it is.
        number: its lowest register, a multiple of ``count``.
        count: 1, 2 or 4 (4 only in the arithmetic file).
    """

    file: RegisterFile
    number: int
    count: int = 1

    def __post_init__(self) -> None:
        """The group exists."""
        counts = (1, 2) if self.file is RegisterFile.MAIN else (1, 2, 4)
        if self.count not in counts or self.number % self.count:
            raise ValueError(f"{self.count} registers from ${self.file.value}{self.number} are no group")
        if not 0 <= self.number < REGISTERS_PER_FILE:
            raise ValueError(f"there is no register ${self.file.value}{self.number}")

    def __str__(self) -> str:
        """The name in assembly text: ``$m4``, ``$m4:5``, ``$a4:7``."""
        last = f":{self.number + self.count - 1}" if self.count > 1 else ""
        return f"${self.file.value}{self.number}{last}"


def _register_names() -> dict[str, RegisterGroup]:
    names: dict[str, RegisterGroup] = {}
    for file in RegisterFile:
        for count in (1, 2) if file is RegisterFile.MAIN else (1, 2, 4):
            for number in range(0, REGISTERS_PER_FILE, count):
                group = RegisterGroup(file=file, number=number, count=count)
                names[str(group)] = group
    main = {"bp": 8, "fp": 9, "lr": 10, "sp": 11, "mworker_base": 12, "mvertex_base": 13, "mzero": 15}
    for alias, number in main.items():
        names[f"${alias}"] = RegisterGroup(file=RegisterFile.MAIN, number=number)
    last_pair, last_quad = REGISTERS_PER_FILE - 2, REGISTERS_PER_FILE - 4
    for index in range(REGISTERS_PER_FILE):
        # Numbered names of pairs and quads beyond the file all mean its last, the one that reads as zero.
        pair, quad = min(2 * index, last_pair), min(4 * index, last_quad)
        names[f"$ap{index}"] = RegisterGroup(file=RegisterFile.ARITHMETIC, number=pair, count=2)
        names[f"$aq{index}"] = RegisterGroup(file=RegisterFile.ARITHMETIC, number=quad, count=4)
    names["$azero"] = RegisterGroup(file=RegisterFile.ARITHMETIC, number=ARITHMETIC_ZEROS[1])
    names["$azeros"] = RegisterGroup(file=RegisterFile.ARITHMETIC, number=ARITHMETIC_ZEROS[0], count=2)
    return names


REGISTER_NAMES: Annotated[Mapping[str, RegisterGroup], VENDOR] = MappingProxyType(_register_names())
"""Every name of a register or group, aliases included, each with its ``$``. Fact, vendor tools."""

COMMON_WEIGHT_UNITS: Annotated[int, VENDOR] = 16
"""Matrix units, one per output channel, that share the common weights. Fact, vendor tools."""

COMMON_WEIGHTS_PER_UNIT: Annotated[int, VENDOR] = 4
"""64-bit common-weight registers of each unit. Fact, vendor tools."""


def common_weight(unit: int, phase: int) -> int:
    """Number of a common-weight register, as ``ld64putcs`` and ``ld128putcs`` take it (vendor tools)."""
    if not (0 <= unit < COMMON_WEIGHT_UNITS and 0 <= phase < COMMON_WEIGHTS_PER_UNIT):
        raise ValueError(f"there is no common weight of unit {unit}, phase {phase}")
    return unit * COMMON_WEIGHTS_PER_UNIT + phase


COMMON_WEIGHT_NAMES: Annotated[Mapping[str, int], VENDOR] = MappingProxyType(
    {
        f"$CWEI_{unit}_{phase}": common_weight(unit, phase)
        for unit in range(COMMON_WEIGHT_UNITS)
        for phase in range(COMMON_WEIGHTS_PER_UNIT)
    }
)
"""Numbers of the common weights by name. Fact, vendor tools."""


@stands(VERIFIED)
class SyncZone(IntEnum):
    """Operand of ``sync``: who must have arrived before the supervisor goes on."""

    RECEIVE = 0
    """The expected words, counted in INCOMING_DCOUNT, have been received."""
    ABSENCE = 1
    """The others have finished; follows ``sans``."""
    LOCAL = 2
    """The six workers of this tile have exited."""
    INTERNAL = 3
    """Every tile of the chip; defines slot 0 of an exchange row."""
    EXTERNAL_1 = 4
    EXTERNAL_1_HOST = 5
    EXTERNAL_2 = 6
    EXTERNAL_2_HOST = 7
    """The host, on every tile but the one that requests the exchange."""
    EXTERNAL_1_MASTER = 12
    EXTERNAL_1_HOST_MASTER = 13
    EXTERNAL_2_MASTER = 14
    EXTERNAL_2_HOST_MASTER = 15
    """The host, on the tile that requests the exchange."""


@stands(VERIFIED)
class Absence(IntEnum):
    """Operand of ``sans``: from which kind of barrier this tile stays away."""

    INTERNAL = 0
    EXTERNAL = 1


@stands(EARLIER)
class ExceptionType(IntEnum):
    """Why a context stopped: field ETYPE of its status register."""

    NONE = 0
    RBRK = 1
    """A break; what the first letter stands for is not stated."""
    PATCHED_BREAK_0 = 2
    PATCHED_BREAK_1 = 3
    BREAK_ON_SYNC = 4
    FLOATING_POINT = 5
    MEMORY_CONFLICT = 6
    EXCHANGE_CONFLICT = 7
    INVALID_ADDRESS = 8
    INVALID_OPERAND = 9
    INVALID_PROGRAM_COUNTER = 10
    """Also the normal halt: a finished program branches to address 0."""
    DATA_BREAK = 11
    INVALID_INSTRUCTION = 12
    EXCHANGE_ERROR = 13
    MEMORY_ERROR = 14
    INSTRUCTION_BREAK = 15


@stands(EARLIER)
class ContextStatus(IntEnum):
    """The two bits of a context in CTXT_STS."""

    INACTIVE = 0
    """For the supervisor: waiting for workers."""
    ACTIVE = 1
    STOPPED_FOR_DEBUGGER = 2
    EXCEPTED = 3


@stands(VENDOR)
class IncomingFormat(IntEnum):
    """How a tile takes incoming words: INCOMING_FORMAT, and the pointer control with selector 1."""

    ORDINARY = 0
    PAIRED_EAST = 1
    PAIRED_WEST = 2


@stands(EARLIER)
class ReceiveError(IntEnum):
    """Why an exchange receive failed: field ERERR of CTXT_STS."""

    NONE = 0
    CLASH_INSTRUCTION = 1
    CLASH_FETCH = 2
    ADDRESS = 3
    WORKERS = 4
    """A worker was active during the exchange."""
    DATA_BREAK = 5
    CONFLICT = 6
    FORMAT_CHANGE = 7
    """The incoming format changed while an earlier payload was being written."""


@stands(VENDOR)
class EightBitFormat(IntEnum):
    """A bit of FP_INFMT and FP_NFMT: exponent and mantissa bits of 8-bit floating point."""

    F152 = 0
    F143 = 1


NEUTRAL_MUX: Annotated[int, VERIFIED] = 0x640
"""Multiplexer value that selects no source. Fact, ran on hardware."""

HOST_MUX: Annotated[int, VERIFIED] = 0x600
"""Multiplexer value that selects the host; ``host.host_mux`` refines it for a tile. Fact, ran on hardware."""
