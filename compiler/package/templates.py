"""The constructs of tile programs as prepared words, and how numbers get into their slots.

Slots are named after what fills them. Every template has one length, whatever the values.
"""

import functools
from enum import Enum
from typing import Final, TypeAlias, assert_never

import numpy as np

from compiler.isa.builder import Builder
from compiler.isa.expressions import Slot, Value
from compiler.isa.program import SectionKind
from compiler.isa.registers import ZERO, Register, m
from compiler.isa.template import Column, Template, prepare
from compiler.target.control_registers import SupervisorRegister
from compiler.target.instructions import Mode
from compiler.target.registers import Absence, SyncZone
from compiler.target.runtime_layout import (
    BARRIER_RETURN,
    COMPLETED,
    DEFAULT_LAYOUT,
    FIRST_ARGUMENT,
    HELPER_RETURN,
    KERNEL_RETURN,
    SCRATCH,
    STACK_POINTER,
)
from compiler.target.units import Int64Array

ITERATIONS_WORD: Final = 0
"""Word of a loop's frame that counts down."""

FIRST_POINTER_WORD: Final = 1
"""Word of a Repeat's frame that holds the first pointer."""

_STACK: Final = m(STACK_POINTER)
_SCRATCH: Final = m(SCRATCH)
_RETURN: Final = m(KERNEL_RETURN)
_HELPER_RETURN: Final = m(HELPER_RETURN)

Line: TypeAlias = tuple[str | Register | Value, ...]
"""An instruction of a template: mnemonic, then operands."""


class ArgumentForm(Enum):
    """How an argument of a call gets its value; the number is its instructions."""

    SHORT = 1
    """A constant below 2^20, as every address is."""
    LONG = 3
    """Any other constant."""
    MOVING = 2
    """A pointer of the Repeat plus a distance of 16 bits."""
    MOVING_FAR = 5
    """A pointer of the Repeat plus any distance."""

    @staticmethod
    def of_constant(word: int) -> "ArgumentForm":
        """The form of a number."""
        return ArgumentForm.SHORT if word < 1 << _SHORT_BITS else ArgumentForm.LONG


_SHORT_BITS: Final = 20
_LOW_BITS: Final = 12
LARGEST_OFFSET: Final = (1 << 15) - 1
BUNDLE_WORDS: Final = 2


def halves(name: str, values: Int64Array) -> dict[str, Column]:
    """The two parts of a number modulo 2^32, as ``_long`` takes them."""
    wrapped = values % (1 << 32)
    return {f"{name}_high": wrapped >> _LOW_BITS, f"{name}_low": wrapped % (1 << _LOW_BITS)}


def constant(name: str, word: int) -> dict[str, Column]:
    """The slots of an argument that is a number."""
    if ArgumentForm.of_constant(word) is ArgumentForm.SHORT:
        return {name: word}
    return halves(name, np.array(word, dtype=np.int64))


def _long(register: Register, name: str) -> tuple[Line, ...]:
    """Set a register to a number of 32 bits; the instructions do not depend on the number."""
    return (
        ("setzi", register, Slot(f"{name}_high")),
        ("shl", register, register, _LOW_BITS),
        ("adds", register, register, Slot(f"{name}_low")),
    )


def _template(*lines: Line) -> Template:
    code = Builder("tile program")
    code.section(".text", SectionKind.CODE, Mode.SUPERVISOR)
    for mnemonic, *operands in lines:
        if not isinstance(mnemonic, str):
            raise TypeError("a line begins with a mnemonic")
        code.emit(mnemonic, *(operand for operand in operands if not isinstance(operand, str)))
    return prepare(code.finish())


def _put(register: SupervisorRegister, source: Register) -> Line:
    return ("put", int(register), source)


@functools.cache
def call(forms: tuple[ArgumentForm, ...]) -> Template:
    """Arguments into the registers from $m2 on, and the call.

    Slots: ``kernel``; for argument k ``argumentk`` or its ``_high`` and ``_low``, and ``_word`` of its
    pointer.
    """
    lines: list[Line] = []
    for index, form in enumerate(forms):
        register, name = m(FIRST_ARGUMENT + index), f"argument{index}"
        match form:
            case ArgumentForm.SHORT:
                lines.append(("setzi", register, Slot(name)))
            case ArgumentForm.LONG:
                lines += _long(register, name)
            case ArgumentForm.MOVING:
                lines.append(("ld32", register, _STACK, ZERO, Slot(f"{name}_word")))
                lines.append(("adds", register, register, Slot(name)))
            case ArgumentForm.MOVING_FAR:
                lines.append(("ld32", register, _STACK, ZERO, Slot(f"{name}_word")))
                lines += _long(m(0), name)
                lines.append(("add", register, register, m(0)))
            case _:
                assert_never(form)
    return _template(*lines, ("call", _RETURN, Slot("kernel")))


@functools.cache
def exchange() -> Template:
    """Neutral bases, workers idle, then the barrier of the chip and the row. Slots: ``barrier``, ``row``."""
    return _template(
        ("setzi", _SCRATCH, 0),
        _put(SupervisorRegister.INCOMING_BASE, _SCRATCH),
        _put(SupervisorRegister.OUTGOING_BASE, ZERO),
        ("call", m(BARRIER_RETURN), Slot("barrier")),
        ("setzi", _SCRATCH, 1),
        _put(SupervisorRegister.INCOMING_DCOUNT, _SCRATCH),
        ("sync", int(SyncZone.INTERNAL)),
        ("call", _RETURN, Slot("row")),
    )


@functools.cache
def absence() -> Template:
    """Stay away from an exchange step."""
    return _template(("sans", int(Absence.INTERNAL)), ("sync", int(SyncZone.ABSENCE)))


@functools.cache
def iteration() -> Template:
    """What patches count iterations with: those left, and all. Slots: ``word``, ``total``."""
    return _template(("ld32", m(4), _STACK, ZERO, Slot("word")), ("setzi", m(5), Slot("total")))


@functools.cache
def patch() -> Template:
    """One list of patches. Slots: ``descriptors``, ``count``, ``routine``."""
    return _template(
        ("setzi", m(2), Slot("descriptors")),
        ("setzi", m(3), Slot("count")),
        ("call", _HELPER_RETURN, Slot("routine")),
    )


@functools.cache
def open_frame() -> Template:
    """Begin a loop: a frame whose first word counts down. Slots: ``frame`` (negative bytes), ``count``."""
    return _template(
        ("adds", _STACK, _STACK, Slot("frame")),
        ("setzi", m(0), Slot("count")),
        ("st32", m(0), _STACK, ZERO, ITERATIONS_WORD),
    )


@functools.cache
def set_pointer() -> Template:
    """Point to the first member of a sequence. Slots: ``start``, ``word``."""
    return _template(("setzi", m(0), Slot("start")), ("st32", m(0), _STACK, ZERO, Slot("word")))


@functools.cache
def advance() -> Template:
    """Move a pointer to the next member of its sequence. Slots: ``word``, ``stride_high``, ``stride_low``."""
    return _template(
        *_long(m(1), "stride"),
        ("ld32", m(0), _STACK, ZERO, Slot("word")),
        ("add", m(0), m(0), m(1)),
        ("st32", m(0), _STACK, ZERO, Slot("word")),
    )


@functools.cache
def close_frame() -> Template:
    """Count down; run the loop again, or go on without its frame. Slots: ``again``, ``frame`` (bytes)."""
    return _template(
        ("ld32", m(0), _STACK, ZERO, ITERATIONS_WORD),
        ("add", m(0), m(0), -1),
        ("st32", m(0), _STACK, ZERO, ITERATIONS_WORD),
        ("brnz", m(0), Slot("again")),
        ("adds", _STACK, _STACK, Slot("frame")),
    )


@functools.cache
def host_run() -> Template:
    """A group of host batches. Slots: ``count``, ``descriptors``, ``program``, ``routine``."""
    return _template(
        ("setzi", m(2), Slot("count")),
        ("setzi", m(3), Slot("descriptors")),
        ("setzi", m(4), Slot("program")),
        ("call", _HELPER_RETURN, Slot("routine")),
    )


@functools.cache
def follow() -> Template:
    """Host batches without this tile. Slots: ``count``, ``follower``, ``routine``."""
    return _template(
        ("setzi", m(2), Slot("count")),
        ("setzi", m(3), Slot("follower")),
        ("call", _HELPER_RETURN, Slot("routine")),
    )


@functools.cache
def sample() -> Template:
    """Store the cycle counter. Slots: ``address``, ``routine``."""
    return _template(("setzi", m(2), Slot("address")), ("call", _RETURN, Slot("routine")))


@functools.cache
def sample_first() -> Template:
    """The same, in the first iteration of a Repeat only.

    Slots: ``word`` and ``total`` of the iterations, ``over`` (the instruction behind), ``address``,
    ``routine``.
    """
    return _template(
        ("ld32", m(0), _STACK, ZERO, Slot("word")),
        ("setzi", m(1), Slot("total")),
        ("sub", m(0), m(0), m(1)),
        ("brnz", m(0), Slot("over")),
        ("setzi", m(2), Slot("address")),
        ("call", _RETURN, Slot("routine")),
    )


@functools.cache
def complete() -> Template:
    """The end of the program. Slot: ``routine``."""
    return _template(("bri", Slot("routine")))


@functools.cache
def serve_again() -> Template:
    """Say that a run is complete and serve the next. Slot: ``again``."""
    return _template(
        ("setzi", m(0), COMPLETED),
        ("setzi", m(1), int(DEFAULT_LAYOUT.completion)),
        ("st32", m(0), m(1), ZERO, 0),
        ("bri", Slot("again")),
    )


@functools.cache
def nop_word() -> int:
    """The word between rows."""
    return int(_template(("nop",)).words[0])
