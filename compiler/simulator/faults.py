"""Faults as values: what went wrong, in which context, at which instruction, and when."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from compiler.simulator import state as places
from compiler.simulator.state import SUPERVISOR
from compiler.target.instructions import (
    COISSUE_BIT,
    InstructionForm,
    Mode,
    Operand,
    OperandKind,
    instruction_table,
)
from compiler.target.memory import FETCH_LOOKAHEAD, SRAM_BASE, SRAM_END
from compiler.target.registers import ExceptionType


@final
class FaultKind(Enum):
    """Everything that stops a tile as an error of its program."""

    ILLEGAL_INSTRUCTION = places.ILLEGAL_INSTRUCTION
    ILLEGAL_BUNDLE = places.ILLEGAL_BUNDLE
    ILLEGAL_REPEAT = places.ILLEGAL_REPEAT
    INVALID_PC = places.INVALID_PC
    MISALIGNED = places.MISALIGNED
    OUT_OF_RANGE = places.OUT_OF_RANGE
    WIDE_OUTSIDE_INTERLEAVED = places.WIDE_OUTSIDE
    ELEMENT_CONFLICT = places.CONFLICT
    FLOAT_EXCEPTION = places.FLOAT_EXCEPTION
    WORKERS_ACTIVE = places.WORKERS_ACTIVE
    INVALID_LAUNCH = places.INVALID_LAUNCH
    UNINITIALISED = places.UNINITIALISED
    TRAP = places.TRAPPED
    NO_REGISTER = places.NO_REGISTER
    QUEUE_OVERFLOW = places.QUEUE_OVERFLOW
    UNDEFINED_REGISTER = places.UNDEFINED_REGISTER
    UNDEFINED_VALUE = places.UNDEFINED_VALUE
    WEIGHTS_CHANGED = places.WEIGHTS_CHANGED
    SAME_DESTINATIONS = places.SAME_DESTINATIONS


_WHAT: Final = {
    FaultKind.ILLEGAL_INSTRUCTION: "this word is no legal instruction here",
    FaultKind.ILLEGAL_BUNDLE: (
        "a bundle is a main and an auxiliary instruction, 8-byte aligned, with different destinations"
    ),
    FaultKind.ILLEGAL_REPEAT: (
        "a repeat body is 8-byte aligned and holds only bundles without control or system instructions"
    ),
    FaultKind.INVALID_PC: "instructions run only from aligned words of the executable region",
    FaultKind.MISALIGNED: "the address is not a multiple of the access size",
    FaultKind.OUT_OF_RANGE: "the access is outside SRAM",
    FaultKind.WIDE_OUTSIDE_INTERLEAVED: "128-bit accesses work only in the interleaved region",
    FaultKind.ELEMENT_CONFLICT: "two accesses of one instruction need the same memory element",
    FaultKind.FLOAT_EXCEPTION: "an enabled floating-point exception was raised",
    FaultKind.WORKERS_ACTIVE: "workers are running",
    FaultKind.INVALID_LAUNCH: "a worker's entry or vertex base is not an aligned, executable address",
    FaultKind.UNINITIALISED: "a value descends from SRAM that nothing wrote",
    FaultKind.TRAP: "trap",
    FaultKind.NO_REGISTER: "there is no such register, or it cannot be accessed like this",
    FaultKind.QUEUE_OVERFLOW: (
        "the matrix units hold more partials or results than one group; what happens then is not known"
    ),
    FaultKind.UNDEFINED_REGISTER: "a launch leaves this register undefined and nothing has written it since",
    FaultKind.UNDEFINED_VALUE: "no source states what this value means",
    FaultKind.WEIGHTS_CHANGED: "the common weights changed while this worker used them",
    FaultKind.SAME_DESTINATIONS: "the two destinations of a load must differ",
}

_EXCEPTION: Final = {
    FaultKind.ILLEGAL_INSTRUCTION: ExceptionType.INVALID_INSTRUCTION,
    FaultKind.ILLEGAL_BUNDLE: ExceptionType.INVALID_INSTRUCTION,
    FaultKind.ILLEGAL_REPEAT: ExceptionType.INVALID_INSTRUCTION,
    FaultKind.INVALID_PC: ExceptionType.INVALID_PROGRAM_COUNTER,
    FaultKind.MISALIGNED: ExceptionType.INVALID_ADDRESS,
    FaultKind.OUT_OF_RANGE: ExceptionType.INVALID_ADDRESS,
    FaultKind.WIDE_OUTSIDE_INTERLEAVED: ExceptionType.INVALID_ADDRESS,
    FaultKind.ELEMENT_CONFLICT: ExceptionType.MEMORY_CONFLICT,
    FaultKind.FLOAT_EXCEPTION: ExceptionType.FLOATING_POINT,
    FaultKind.WORKERS_ACTIVE: ExceptionType.INVALID_OPERAND,
    FaultKind.INVALID_LAUNCH: ExceptionType.INVALID_OPERAND,
    FaultKind.NO_REGISTER: ExceptionType.INVALID_OPERAND,
    FaultKind.SAME_DESTINATIONS: ExceptionType.INVALID_OPERAND,
    FaultKind.TRAP: ExceptionType.PATCHED_BREAK_0,
}
"""Hardware's exception of each kind; the kinds without one are found only by the simulator."""

_WITH_ADDRESS: Final = frozenset(
    {
        FaultKind.MISALIGNED,
        FaultKind.OUT_OF_RANGE,
        FaultKind.WIDE_OUTSIDE_INTERLEAVED,
        FaultKind.ELEMENT_CONFLICT,
        FaultKind.INVALID_LAUNCH,
    }
)
_FLAG_NAMES: Final = ("invalid operation", "division by zero", "overflow")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NamedRange:
    """Bytes of SRAM with a name: a symbol of the program or an operand of a call."""

    name: str
    start: int
    size: int

    def __post_init__(self) -> None:
        """The range lies in SRAM."""
        if self.size < 0 or self.start < SRAM_BASE or self.start + self.size > SRAM_END:
            raise ValueError(
                f"{self.name}: bytes {self.start:#x}..{self.start + self.size:#x} are not in SRAM"
            )


def locate(address: int, ranges: Sequence[NamedRange]) -> str | None:
    """``name`` or ``name+offset`` of the innermost range around an address, or None.

    A range reaches as far past its end as an instruction fetch or an over-read may go.
    """
    inside = [
        candidate
        for candidate in ranges
        if candidate.start <= address < candidate.start + max(candidate.size, 1) + FETCH_LOOKAHEAD
    ]
    if not inside:
        return None
    best = max(inside, key=lambda candidate: (candidate.start, -candidate.size, candidate.name))
    offset = address - best.start
    return best.name if offset == 0 else f"{best.name}+{offset:#x}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Why a tile stopped.

    Args:
        kind: what went wrong.
        context: 0 to 5 for workers, 6 for the supervisor.
        address: byte address of the instruction.
        instruction: its text.
        cycle: tile cycle at which it issued.
        symbol: place in the program, or None where no symbol is known.
        data: number that belongs to the kind: data address, control register, flags, trap number.
        operand: named range around a data address, or None.
    """

    kind: FaultKind
    context: int
    address: int
    instruction: str
    cycle: int
    symbol: str | None
    data: int
    operand: str | None

    @property
    def exception(self) -> ExceptionType | None:
        """What hardware reports, None for faults that only the simulator finds."""
        if self.kind is FaultKind.TRAP and self.data & 1:
            return ExceptionType.PATCHED_BREAK_1
        return _EXCEPTION.get(self.kind)

    def __str__(self) -> str:
        """One line for people."""
        where = f"{self.symbol} ({self.address:#x})" if self.symbol is not None else f"{self.address:#x}"
        text = f"{context_name(self.context)}, cycle {self.cycle}, {where}: {self.instruction}: "
        text += f"{_WHAT[self.kind]}{self._data_text()}"
        exception = self.exception
        return text + (f" [{exception.name}]" if exception is not None else "")

    def _data_text(self) -> str:
        if self.kind in _WITH_ADDRESS:
            operand = f" ({self.operand})" if self.operand is not None else ""
            return f": address {self.data:#x}{operand}"
        if self.kind is FaultKind.FLOAT_EXCEPTION:
            names = [name for bit, name in enumerate(_FLAG_NAMES) if self.data >> bit & 1]
            return f": {', '.join(names)}"
        if self.kind in (FaultKind.NO_REGISTER, FaultKind.UNDEFINED_REGISTER):
            return f": register {self.data:#x}"
        if self.kind is FaultKind.UNDEFINED_VALUE:
            return f": {self.data}"
        if self.kind is FaultKind.TRAP:
            return f" {self.data}"
        return ""


def context_name(context: int) -> str:
    """``worker 3`` or ``supervisor``."""
    return "supervisor" if context == SUPERVISOR else f"worker {context}"


@functools.lru_cache(maxsize=4096)
def instruction_text(word: int, following: int, mode: Mode) -> str:
    """An instruction or bundle as assembly text.

    Args:
        word: the word at its address.
        following: the next word, the other half of a bundle.
        mode: kind of context.
    """
    if word & COISSUE_BIT and mode is Mode.WORKER:
        return f"{{ {_one(word, mode, coissue=True)} ; {_one(following, mode, coissue=True)} }}"
    return _one(word, mode, coissue=False)


def _one(word: int, mode: Mode, *, coissue: bool) -> str:
    found = instruction_table().decode(word, mode, coissue=coissue)
    if found is None:
        return f"word {word:#010x}"
    form, values = found
    return _form_text(form, values)


def _form_text(form: InstructionForm, values: Sequence[int]) -> str:
    operands = [_operand_text(operand, value) for operand, value in zip(form.operands, values, strict=True)]
    return f"{form.mnemonic} {', '.join(operands)}".rstrip()


def _operand_text(operand: Operand, value: int) -> str:
    match operand.kind:
        case OperandKind.MRF | OperandKind.ARF:
            group = f":{value + operand.count - 1}" if operand.count > 1 else ""
            return f"${operand.kind.value}{value}{group}{operand.suffix}"
        case OperandKind.TARGET | OperandKind.HIGH:
            return f"{value:#x}"
        case _:
            return str(value)
