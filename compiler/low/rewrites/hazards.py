"""Which rows of work touch the same bytes: what a rewrite asks before it changes an order (LC-06).

Every call, copy, transfer and recipient is listed with the bytes that it reads or writes, as spans from the
start of the storage that is really meant: shared storage by its root and signed displacement, members of a
sequence by the sequence, since the iteration says which of them it is. A span is the hull of what a row
touches, so that rows are apart only if they certainly are.

Two rows are in conflict when their spans meet and one of them writes (read after write, write after read,
write after write). Rows without conflict can change places. Within a Repeat this is the same iteration:
nothing here moves work from one to another.

Spans are coded as ranges of one long line of bytes, a stretch for each storage. A set of spans sorted by
start, with the farthest stop so far, tells of any other span whether it meets one of them: a binary search
for each, so that cost is n log n.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import ranges
from compiler.low.address import (
    AddressOperands,
    destinations_of,
    operands_of_calls,
    sources_of,
)
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram
from compiler.low.project import WorkKind

Mask: TypeAlias = npt.NDArray[np.bool_]

_STRETCH: Final = 1 << 27
"""Bytes of the line for each storage: sizes and displacements are below 1 << 24, and a few of them add up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Touches:
    """What rows do to memory, as columns [touches].

    Args:
        kind: ``WorkKind`` of the row.
        row: row of the table that the kind names; for what is received, of ``Transfers``.
        access: which access of the binding of a call or copy; 0 for what is sent or received.
        step: its step.
        storage: root, or number of roots plus sequence.
        start: first byte on the line.
        stop: one past the last.
        writes: whether it writes.
    """

    kind: Column
    row: Column
    access: Column
    step: Column
    storage: Column
    start: Column
    stop: Column
    writes: Mask

    def take(self, rows: Column | Mask) -> "Touches":
        """Some of them."""
        return Touches(
            kind=self.kind[rows],
            row=self.row[rows],
            access=self.access[rows],
            step=self.step[rows],
            storage=self.storage[rows],
            start=self.start[rows],
            stop=self.stop[rows],
            writes=self.writes[rows],
        )


def touches_of(program: LowProgram) -> Touches:
    """Everything that a program does to memory."""
    calls, copies, transfers, recipients = (
        program.calls,
        program.copies,
        program.transfers,
        program.recipients,
    )
    hulls = [access.extent for binding in program.bindings for access in binding.accesses]
    written = [access.is_written for binding in program.bindings for access in binding.accesses]
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    of_call = counts[calls.binding]
    call, position = np.repeat(np.arange(len(calls.step)), of_call), ranges(of_call)
    access = np.repeat((np.cumsum(counts) - counts)[calls.binding], of_call) + position
    low, high = np.array(hulls, dtype=np.int64).reshape(-1, 2)[access].T
    named = operands_of_calls(calls, program.views).take(calls.first_view[call] + position)
    is_written = np.array(written, dtype=np.bool_)[access]
    parts = [
        _part(program, WorkKind.CALL, call, position, calls.step[call], named, low, high, is_written),
    ]
    copy = np.arange(len(copies.step))
    for number, (operands, stride) in enumerate(
        ((destinations_of(copies), copies.destination_stride), (sources_of(copies), copies.source_stride))
    ):
        end = (copies.rows - 1) * stride + copies.row_bytes
        parts.append(
            _part(program, WorkKind.COPY, copy, number, copies.step, operands, 0, end, writes=number == 0)
        )
    sent, taken = np.arange(len(transfers.step)), recipients.transfer
    for kind, row, operands in (
        (WorkKind.SEND, sent, sources_of(transfers)),
        (WorkKind.RECEIVE, taken, destinations_of(recipients)),
    ):
        end = transfers.byte_count[row]
        is_delivery = kind is WorkKind.RECEIVE
        parts.append(_part(program, kind, row, 0, transfers.step[row], operands, 0, end, writes=is_delivery))
    return Touches(
        kind=np.concatenate([part.kind for part in parts]),
        row=np.concatenate([part.row for part in parts]),
        access=np.concatenate([part.access for part in parts]),
        step=np.concatenate([part.step for part in parts]),
        storage=np.concatenate([part.storage for part in parts]),
        start=np.concatenate([part.start for part in parts]),
        stop=np.concatenate([part.stop for part in parts]),
        writes=np.concatenate([part.writes for part in parts]),
    )


def line_of(storage: Column) -> Column:
    """Where on the line storages begin."""
    return storage * _STRETCH + _STRETCH // 2


def conflicts(some: Touches, others: Touches) -> Mask:
    """[some] whether each is in conflict with any of the others."""
    met = _meet(some, others.take(others.writes))
    return met | (some.writes & _meet(some, others.take(~others.writes)))


def _meet(some: Touches, others: Touches) -> Mask:
    if len(others.start) == 0:
        return np.zeros(len(some.start), dtype=np.bool_)
    order = np.argsort(others.start, kind="stable")
    farthest = np.maximum.accumulate(others.stop[order])
    before = np.searchsorted(others.start[order], some.stop, side="left") - 1
    return (before >= 0) & (farthest[np.maximum(before, 0)] > some.start)


def _part(
    program: LowProgram,
    kind: WorkKind,
    row: Column,
    access: Column | int,
    step: Column,
    operands: AddressOperands,
    low: Column | int,
    high: Column,
    writes: Mask | bool,
) -> Touches:
    buffers = program.buffers
    root = buffers.root[operands.buffer]
    sequence = np.where(operands.sequence != NO_ROW, operands.sequence, buffers.sequence[operands.buffer])
    storage = np.where(sequence != NO_ROW, len(buffers.root) + sequence, root)
    start = line_of(storage) + buffers.displacement[operands.buffer] + operands.displacement
    return Touches(
        kind=np.full(len(row), kind, dtype=np.int64),
        row=row.astype(np.int64),
        access=np.broadcast_to(np.asarray(access, dtype=np.int64), len(row)),
        step=step,
        storage=storage,
        start=start + low,
        stop=start + high,
        writes=np.broadcast_to(np.asarray(writes), len(row)),
    )
