"""From instruction words to packed micro-operations.

The decoder is compiled and driven by two tables made from the instruction table's data: ``forms``, one row
for each form, and ``lookup``, which lists for each value of word bits 24 to 30 the forms that may match. It
shares no code with the assembler or with the table's own decoder, and tests compare all three.

A micro-operation is one 64-bit integer, so that the cache of a tile is one vector:

==========  ================================================================================
bits        content
==========  ================================================================================
0-8         operation (``operations``)
9-24        four register numbers: destination, first source, second source, third source
25-26       broadcast of the first source: none, low half, upper half, word
27          the co-issue bit was set
28          decoded for the supervisor
29          the bundle that starts here was checked
30-31       arithmetic registers written from the destination on: 0, 1, 2, or 3 for four
32-63       immediate, signed; offsets and strides are in bytes, branch targets are byte addresses
==========  ================================================================================

What makes a word illegal: no form matches in this mode; a register group is not aligned; an arithmetic
register without storage ($a8 to $a13; ``setzi $a13, 0`` is the idle instruction of that lane and allowed);
a worker writing a read-only mirror ($m12, $m13); two results for one register (decisions
``register-storage``, ``base-mirrors`` and ``two-results``). Two loads of one instruction into one register
have an exception of their own, the operation ``SAME``.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

import numpy as np

from compiler.simulator.borrowing import borrowing
from compiler.simulator.operations import (
    ILLEGAL,
    SAME,
    UNSUPPORTED,
    operation_of,
)
from compiler.simulator.state import Table
from compiler.target.instructions import (
    Access,
    InstructionForm,
    Lane,
    Mode,
    OperandKind,
    instruction_table,
)
from compiler.target.isa_decisions import Decisions

OPERATION_MASK: Final = 511
R0: Final = 9
R1: Final = 13
R2: Final = 17
R3: Final = 21
BROADCAST: Final = 25
PAIRED: Final = 1 << 27
SUPERVISOR_MODE: Final = 1 << 28
CHECKED: Final = 1 << 29
RESULT_WORDS: Final = 30
IMMEDIATE: Final = 32

BROADCAST_LOW: Final = 1
BROADCAST_UPPER: Final = 2
BROADCAST_WORD: Final = 3

# Columns of ``forms``.
_MASK = 0
_BITS = 1
_OPERATION = 2
_MODES = 3
_COISSUE = 4
_RESULT = 5
_BROADCAST = 6
_DEFAULTS = 7
_SIGNED = 11
_FACTOR = 12
_CHECKS = 13
_FLAGS = 17
_PIECES = 18
_FIRST_PIECE = 19
_COLUMNS = 27

_SECOND_SLOT = 3
"""Slot of the second destination of a load of two values."""
_IMMEDIATE_SLOT = 4

ZERO_REGISTERS: Final = 1 << 15 | 1 << 30 | 1 << 31
"""Registers that drop what is written to them: $m15, and from bit 16 $a14 and $a15."""

# Checks of a register operand.
_ALIGNMENT = 3
"""Mask: low bits that must be zero."""
_ARITHMETIC = 4
_WRITTEN = 8

_BUCKET_SHIFT = 24
_BUCKETS = 128
_FLAG_FAMILIES: Final = ("TAMP_F16V4", "TAMP_F8V8", "TAMP_F32")
_FLAG_VALUES = 64
_FLAG: Final = re.compile(r"_E([421])_P([0-7])", re.ASCII)
ENGINES_SHIFT: Final = 3
"""In the immediate of a matrix instruction: its phase below, the binary logarithm of idle halves above."""
_LARGEST_GROUP: Final[Mapping[str, int]] = MappingProxyType({"TAMP_F16V4": 4, "TAMP_F8V8": 4, "TAMP_F32": 8})

_SLOTS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "destination": 0, "destination0": 0, "link": 0,
        "source": 1, "source0": 1, "subtrahend": 1, "condition": 1, "count": 1, "counter": 1, "base": 1,
        "addresses": 1, "address": 1, "address0": 1, "entry": 1,
        "source1": 2, "minuend": 2, "delta": 2, "address1": 2, "vertex_base": 2,
        "offset": 3, "stride": 3, "address2": 3, "destination1": 3, "increments": 3,
    }
)  # fmt: skip
"""Register slot of each operand name; :func:`_slot` has the exceptions."""

_EXCEPTIONS: Final[Mapping[tuple[str, str], int]] = MappingProxyType(
    {
        ("movz", "source"): 2,
        ("ld2x64pace", "stride"): 2,
        ("ldst64pace", "stride"): 2,
        ("ldst64pace", "source"): 3,
        ("ld2xst64pace", "stride"): 2,
        ("ld2xst64pace", "source"): 3,
        ("st64pace", "stride"): 2,
        ("st64pace", "source"): 3,
        ("ld64a32pace", "stride"): 2,
        ("ld64b16pace", "stride"): 2,
        ("ld64a32", "base"): 2,
        ("ld64a32", "delta"): 3,
    }
)


def _slot(form: InstructionForm, name: str) -> int:
    """Which of the four register numbers of a micro-operation holds an operand."""
    mnemonic = form.mnemonic
    if (mnemonic, name) in _EXCEPTIONS:
        return _EXCEPTIONS[mnemonic, name]
    if mnemonic.startswith("ldd16"):
        return {"destination": 0, "address": 1, "base": 2, "delta": 3}[name]
    if mnemonic.startswith("st") and name == "source":
        return 0
    return _SLOTS[name]


_AMP_FAMILY: Final[Mapping[str, int]] = MappingProxyType(
    {
        "f16v4sisoamp": 0, "f16v4hihoamp": 0, "f16v4sihoamp": 0, "f16v4hihov4amp": 0, "f8v8hihov4amp": 1,
        "f32sisoamp": 2, "f32sisov2amp": 2,
    }
)  # fmt: skip


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeTables:
    """What compiled code decodes with.

    Args:
        forms: int64 [forms + 1, columns]; the last row is unused.
        lookup: the phases that flag values stand for, the starts of the 128 lists, their ends, the lists.
        digest: of the instruction table and the decisions that made them.
    """

    forms: Table
    lookup: Table
    digest: str


@functools.cache
def decode_tables(decisions: Decisions) -> DecodeTables:
    """Tables for the instruction table of this package and the given answers to open questions."""
    table = instruction_table()
    rows = [_row(form) for form in table.rows]
    lists: list[list[int]] = [[] for _ in range(_BUCKETS)]
    for index, row in enumerate(rows):
        mask = int(row[_MASK]) >> _BUCKET_SHIFT & _BUCKETS - 1
        bits = int(row[_BITS]) >> _BUCKET_SHIFT & _BUCKETS - 1
        for bucket in range(_BUCKETS):
            if (bucket ^ bits) & mask == 0:
                lists[bucket].append(index)
    starts = [0]
    for members in lists:
        starts.append(starts[-1] + len(members))
    flat = [index for members in lists for index in members]
    phases = [_phases(decisions, family) for family in _FLAG_FAMILIES]
    lookup = np.concatenate([np.array(part, dtype=np.int64) for part in (*phases, starts, flat)])
    return DecodeTables(
        forms=np.array(rows, dtype=np.int64), lookup=lookup, digest=f"{table.digest} {decisions.digest}"
    )


def _phases(decisions: Decisions, family: str) -> list[int]:
    """For each flag value: the phase and engines it stands for, or -1.

    Half the engines have half the channels and groups of half the phases. A phase that lies outside such a
    group has a name but no stated meaning.
    """
    phases = [-1] * _FLAG_VALUES
    for name, value in decisions.constants.items():
        match = _FLAG.fullmatch(name.removeprefix(family))
        if match is None or not name.startswith(family):
            continue
        idle = {"4": 0, "2": 1, "1": 2}[match[1]]
        phase = int(match[2])
        if phase < _LARGEST_GROUP[family] >> idle:
            phases[value] = phase | idle << ENGINES_SHIFT
    return phases


def _row(form: InstructionForm) -> list[int]:
    row = [0] * _COLUMNS
    row[_MASK] = form.fixed_mask
    row[_BITS] = form.fixed_bits
    row[_OPERATION] = operation_of(form)
    row[_MODES] = sum({Mode.WORKER: 1, Mode.SUPERVISOR: 2}[mode] for mode in form.modes)
    row[_COISSUE] = int(form.can_coissue)
    is_aux = form.lane is Lane.AUX
    # A missing operand reads the zero register; of the arithmetic file, the zero pair.
    row[_DEFAULTS : _DEFAULTS + 4] = [14 if is_aux else 15] * 4
    row[_FACTOR] = 1
    row[_FLAGS] = _AMP_FAMILY.get(form.mnemonic, -1)
    slots: list[int] = []
    shifts: list[int] = []
    for operand in form.operands:
        if operand.is_register:
            slot = _slot(form, operand.name)
            check = operand.count - 1
            check |= _ARITHMETIC if operand.kind is OperandKind.ARF else 0
            check |= 0 if operand.access is Access.READ else _WRITTEN
            row[_CHECKS + slot] |= check
            if operand.suffix.startswith(":"):
                row[_BROADCAST] = {":BL": BROADCAST_LOW, ":BU": BROADCAST_UPPER, ":B": BROADCAST_WORD}[
                    operand.suffix
                ]
            if slot == 0 and operand.kind is OperandKind.ARF and operand.access is Access.WRITE:
                row[_RESULT] = min(operand.count, 3)
            slots.append(slot)
            shifts.append(0)
            continue
        # A repeat has two immediates: the body in bits 0-7 and the count above it.
        slots.append(_IMMEDIATE_SLOT)
        shifts.append(8 if form.mnemonic == "rpt" and operand.name == "count" else 0)
        if operand.kind is OperandKind.SIGNED:
            row[_SIGNED] = operand.width
        row[_FACTOR] = 1 << operand.shift
        if form.scale is not None:
            row[_FACTOR] = form.scale
    row[_PIECES] = len(form.fields)
    for number, field in enumerate(form.fields):
        row[_FIRST_PIECE + number] = (
            slots[field.operand]
            | field.low << 3
            | field.width << 8
            | (field.operand_low + shifts[field.operand]) << 14
        )
    return row


@borrowing
def decode_word(word: int, supervisor: int, forms: Table, lookup: Table) -> int:
    """Micro-operation of a word.

    Args:
        word: 32 bits.
        supervisor: 1 when the supervisor fetches it, else 0.
        forms: see :class:`DecodeTables`.
        lookup: see :class:`DecodeTables`.

    Returns:
        The micro-operation, never 0. Its immediate is the row in ``forms`` when the instruction is
        unsupported.
    """
    mode = SUPERVISOR_MODE if supervisor else 0
    pair = PAIRED if word >> 31 else 0
    illegal = ILLEGAL | mode | pair
    bucket = (word >> _BUCKET_SHIFT) & (_BUCKETS - 1)
    first = 3 * _FLAG_VALUES
    lists = first + _BUCKETS + 1
    for position in range(lookup[first + bucket], lookup[first + bucket + 1]):
        index = lookup[lists + position]
        if (word ^ forms[index, _BITS]) & forms[index, _MASK] == 0 and (
            forms[index, _MODES] >> supervisor
        ) & 1 == 1:
            # The one form without a co-issue bit that is one has it in its fixed bits.
            if pair and forms[index, _COISSUE] == 0 and (forms[index, _MASK] >> 31) == 0:
                return illegal
            return _fill(word, index, mode | pair, forms, lookup)
    return illegal


@borrowing
def _fill(word: int, index: int, marks: int, forms: Table, lookup: Table) -> int:
    operation = forms[index, _OPERATION]
    unsupported = UNSUPPORTED | marks | (index << IMMEDIATE)
    registers = 0
    immediate = 0
    used = 0
    written = 0
    for number in range(forms[index, _PIECES]):
        piece = forms[index, _FIRST_PIECE + number]
        slot = piece & 7
        bits = (word >> ((piece >> 3) & 31)) & ((1 << ((piece >> 8) & 63)) - 1)
        if slot == _IMMEDIATE_SLOT:
            immediate |= bits << (piece >> 14)
        else:
            registers |= bits << (4 * slot + (piece >> 14))
            used |= 1 << slot
    result = operation | marks
    for slot in range(4):
        register = (registers >> (4 * slot)) & 15
        if used >> slot & 1:
            check = forms[index, _CHECKS + slot]
            if register & check & _ALIGNMENT:
                return ILLEGAL | marks
            if check & _ARITHMETIC:
                if 8 <= register < 14 and not (register == 13 and word & 0x7FFFFFFF == IDLE_AUX):
                    return ILLEGAL | marks
            elif (
                check & _WRITTEN
                and (register | (check & _ALIGNMENT)) in (12, 13)
                and marks & SUPERVISOR_MODE == 0
            ):
                return ILLEGAL | marks
            if check & _WRITTEN:
                group = (1 << ((check & _ALIGNMENT) + 1)) - 1
                bits = group << (register + (16 if check & _ARITHMETIC else 0))
                if written & bits and slot == _SECOND_SLOT and check & _ARITHMETIC:
                    result = SAME | marks
                elif written & bits & ~ZERO_REGISTERS:
                    return ILLEGAL | marks
                written |= bits
        else:
            register = forms[index, _DEFAULTS + slot]
        result |= register << (R0 + 4 * slot)
    if operation == UNSUPPORTED:
        return unsupported
    if result & OPERATION_MASK == SAME:
        return SAME | marks
    width = forms[index, _SIGNED]
    if width > 0 and immediate >> (width - 1):
        immediate -= 1 << width
    immediate *= forms[index, _FACTOR]
    family = forms[index, _FLAGS]
    if family >= 0:
        immediate = lookup[family * _FLAG_VALUES + immediate]
        if immediate < 0:
            return unsupported
    result |= forms[index, _BROADCAST] << BROADCAST
    result |= forms[index, _RESULT] << RESULT_WORDS
    return result | (immediate << IMMEDIATE)


IDLE_AUX: Final = 0x1AD00000
"""``setzi $a13, 0``: what fills the auxiliary half of a bundle."""
