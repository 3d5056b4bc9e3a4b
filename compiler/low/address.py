"""Address operands, and the one function that turns them into addresses.

Calls, local copies and exchanges name memory alike: a buffer, a displacement in bytes and, inside a Repeat, a
sequence to walk along. Whoever needs an address (the executor, kernel calls, exchange rows, checks) asks
here, so that a copy cannot forget the iteration that a kernel remembers::

    address = address of the buffer + displacement + iteration * stride of the sequence

with the last term only where there is a sequence. The functions at the end give the operands of each table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from compiler.low.ids import NO_ROW, NO_SEQUENCE, BufferId, SequenceId
from compiler.low.ir import Calls, Column, Copies, LowProgram, Recipients, Transfers, Views


class Addresses(Protocol):
    """What a placement says: an address for each buffer, a stride for each sequence, both in bytes."""

    @property
    def address(self) -> Column:
        """[buffers] address of the buffer's start."""
        ...

    @property
    def stride(self) -> Column:
        """[sequences] distance from a member to the next."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AddressOperand:
    """Memory that a row names.

    Args:
        buffer: the buffer; with a sequence, its first member.
        displacement: bytes from the buffer's start.
        sequence: sequence to walk along, or NO_ROW.
    """

    buffer: BufferId
    displacement: int = 0
    sequence: SequenceId = NO_SEQUENCE


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AddressOperands:
    """Address operands as columns, of equal lengths."""

    buffer: Column
    displacement: Column
    sequence: Column

    def __len__(self) -> int:
        """Number of operands."""
        return len(self.buffer)

    def row(self, row: int) -> AddressOperand:
        """One of them as a value."""
        return AddressOperand(
            buffer=BufferId(int(self.buffer[row])),
            displacement=int(self.displacement[row]),
            sequence=SequenceId(int(self.sequence[row])),
        )

    def take(self, rows: Column) -> "AddressOperands":
        """The operands of ``rows``, in that order."""
        return AddressOperands(
            buffer=self.buffer[rows], displacement=self.displacement[rows], sequence=self.sequence[rows]
        )

    @staticmethod
    def concatenated(parts: Sequence["AddressOperands"]) -> "AddressOperands":
        """The operands of all parts, one after another."""
        return AddressOperands(
            buffer=np.concatenate([part.buffer for part in parts]),
            displacement=np.concatenate([part.displacement for part in parts]),
            sequence=np.concatenate([part.sequence for part in parts]),
        )


def resolve(placement: Addresses, operand: AddressOperand, iteration: int = 0) -> int:
    """The byte address that an operand names in an iteration of the innermost Repeat.

    Args:
        placement: where buffers are.
        operand: the operand.
        iteration: number of the iteration; any number where the operand has no sequence.
    """
    address = int(placement.address[operand.buffer]) + operand.displacement
    if operand.sequence == NO_ROW:
        return address
    return address + iteration * int(placement.stride[operand.sequence])


def resolve_all(placement: Addresses, operands: AddressOperands, iterations: Column | int = 0) -> Column:
    """:func:`resolve` of every operand [operands], with one iteration for all or one for each."""
    address = placement.address[operands.buffer] + operands.displacement
    iterated = np.flatnonzero(operands.sequence != NO_ROW)
    strides = np.zeros(len(operands), dtype=np.int64)
    strides[iterated] = placement.stride[operands.sequence[iterated]]
    return address + strides * iterations


@final
class Members:
    """The buffers of each sequence, by member number: an index over a program's tables."""

    def __init__(self, program: LowProgram) -> None:
        sequence = program.buffers.sequence
        order = np.lexsort((program.buffers.member, sequence))
        self._buffers = order[sequence[order] != NO_ROW]
        self._first = np.cumsum(program.sequences.count) - program.sequences.count

    def of(self, sequence: SequenceId) -> Column:
        """Members [count] of one sequence."""
        first = int(self._first[sequence])
        following = int(self._first[sequence + 1]) if sequence + 1 < len(self._first) else len(self._buffers)
        return self._buffers[first:following]

    def at(self, operand: AddressOperand, iteration: int) -> BufferId:
        """The buffer that an operand means in an iteration."""
        if operand.sequence == NO_ROW:
            return operand.buffer
        return BufferId(int(self.of(operand.sequence)[iteration]))


def views_of(views: Views) -> AddressOperands:
    """What views name: the start of the backing storage of their forms."""
    return AddressOperands(buffer=views.buffer, displacement=views.origin, sequence=views.sequence)


def operands_of_calls(calls: Calls, views: Views) -> AddressOperands:
    """What calls name, one after another: results, then operands of each."""
    return views_of(views).take(calls.operand_views)


def sources_of(table: Copies | Transfers) -> AddressOperands:
    """What copies or transfers read."""
    return AddressOperands(
        buffer=table.source, displacement=table.source_displacement, sequence=table.source_sequence
    )


def destinations_of(table: Copies | Recipients) -> AddressOperands:
    """What copies or recipients write."""
    return AddressOperands(
        buffer=table.destination,
        displacement=table.destination_displacement,
        sequence=table.destination_sequence,
    )
