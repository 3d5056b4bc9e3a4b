"""The rules about bytes over time: what is defined when it is needed, and what meets in an exchange.

Every root and every member of a sequence has a list of the spans that are defined. The program is followed as
it runs: steps in order, every iteration of a Repeat, rows in row order. That is exact, and tiles need not be
looked at together, since only transfers reach from one to another and they are visited in their order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import assert_never, final

import numpy as np

from compiler.low.accesses import AccessSpans, spans_of, traversal_spans
from compiler.low.address import (
    AddressOperand,
    Members,
    destinations_of,
    operands_of_calls,
    sources_of,
)
from compiler.low.faults import Fault, Rule
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, Role
from compiler.low.steps import executions, rows_by_step, table_of
from compiler.low.values import distribution_of


def flow_faults(program: LowProgram) -> tuple[Fault, ...]:
    """Faults of a program whose rows are right; each row is reported once, whatever the iterations."""
    found = dict.fromkeys(_Flow(program).faults())
    return tuple(found)


@final
class DefinedSpans:
    """A set of bytes as ascending, disjoint spans that do not touch."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []

    def add(self, start: int, stop: int) -> None:
        """Adds bytes ``start`` to ``stop``."""
        if start >= stop:
            return
        first = bisect_left(self._stops, start)
        last = bisect_right(self._starts, stop)
        if first < last:
            start, stop = min(start, self._starts[first]), max(stop, self._stops[last - 1])
        self._starts[first:last] = [start]
        self._stops[first:last] = [stop]

    def remove(self, start: int, stop: int) -> None:
        """Takes bytes ``start`` to ``stop`` out."""
        first = bisect_right(self._stops, start)
        last = bisect_left(self._starts, stop)
        if first >= last:
            return
        left = [(a, b) for a, b in ((self._starts[first], start), (stop, self._stops[last - 1])) if a < b]
        self._starts[first:last] = [a for a, _ in left]
        self._stops[first:last] = [b for _, b in left]

    def within(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The spans of the set between ``start`` and ``stop``, relative to ``start``."""
        first = bisect_right(self._stops, start)
        last = bisect_left(self._starts, stop)
        return [
            (max(a, start) - start, min(b, stop) - start)
            for a, b in zip(self._starts[first:last], self._stops[first:last], strict=True)
        ]

    def missing(self, start: int, stop: int) -> int | None:
        """The first byte between ``start`` and ``stop`` that is not in the set."""
        held = self.within(start, stop)
        if start >= stop:
            return None
        if not held or held[0][0] > 0:
            return start
        return None if held[0][1] == stop - start else start + held[0][1]


@final
class _Flow:
    """One run of a program with sets of defined bytes instead of memory."""

    def __init__(self, program: LowProgram) -> None:
        self._program = program
        self._members = Members(program)
        self._spans: list[tuple[AccessSpans, ...]] = [spans_of(binding) for binding in program.bindings]
        self._roots = program.buffers.root.tolist()
        self._displacements = program.buffers.displacement.tolist()
        self._defined = {root: DefinedSpans() for root in sorted(set(self._roots))}
        self._call_operands = operands_of_calls(program.calls, program.views)
        self._copy_operands = (destinations_of(program.copies), sources_of(program.copies))
        self._transfer_operands = (destinations_of(program.recipients), sources_of(program.transfers))

    def faults(self) -> Iterator[Fault]:
        program = self._program
        buffers = program.buffers
        for buffer in np.flatnonzero(np.isin(buffers.role, [Role.PARAMETER, Role.INPUT])).tolist():
            root, start = self._roots[buffer], self._displacements[buffer]
            self._defined[root].add(start, start + int(buffers.byte_count[buffer]))
        steps = len(table_of(program.steps).kind)
        calls, copies, transfers = (
            rows_by_step(step, steps)
            for step in (program.calls.step, program.copies.step, program.transfers.step)
        )
        for step, iteration in executions(program.steps):
            number = step.step
            match step:
                case ComputeStep():
                    for row in copies[0][copies[1][number] : copies[1][number + 1]].tolist():
                        self._copy(row, iteration)
                    for row in calls[0][calls[1][number] : calls[1][number + 1]].tolist():
                        yield from self._call(row, iteration)
                case ExchangeStep():
                    rows = transfers[0][transfers[1][number] : transfers[1][number + 1]].tolist()
                    yield from self._exchange(rows, iteration)
                case _:
                    assert_never(step)
        yield from self._outputs()

    def _place(self, operand: AddressOperand, iteration: int) -> tuple[int, int]:
        """Root, and bytes from its start."""
        buffer = self._members.at(operand, iteration)
        return self._roots[buffer], self._displacements[buffer] + operand.displacement

    def _call(self, row: int, iteration: int) -> Iterator[Fault]:
        calls = self._program.calls
        number, first = int(calls.binding[row]), int(calls.first_view[row])
        binding = self._program.bindings[number]
        places = [
            self._place(self._call_operands.row(first + position), iteration)
            for position in range(len(binding.accesses))
        ]
        for position, (access, (root, start)) in enumerate(zip(self._spans[number], places, strict=True)):
            for low, high in access.needs:
                missing = self._defined[root].missing(start + low, start + high)
                if missing is not None:
                    message = (
                        f"{binding.reference(position)} needs byte {missing - start}, "
                        "which nothing wrote before"
                    )
                    yield Fault(table="calls", row=row, rule=Rule.UNDEFINED, message=message)
                    break
        for access, (root, start) in zip(self._spans[number], places, strict=True):
            for low, high in access.defines:
                self._defined[root].add(start + low, start + high)

    def _copy(self, row: int, iteration: int) -> None:
        copies = self._program.copies
        destination, source = (self._place(operands.row(row), iteration) for operands in self._copy_operands)
        count = int(copies.row_bytes[row])
        for run in range(int(copies.rows[row])):
            root, start = source[0], source[1] + run * int(copies.source_stride[row])
            held = self._defined[root].within(start, start + count)
            start = destination[1] + run * int(copies.destination_stride[row])
            self._put(held, (destination[0], start), count)

    def _put(self, held: Iterable[tuple[int, int]], destination: tuple[int, int], count: int) -> None:
        root, start = destination
        self._defined[root].remove(start, start + count)
        for low, high in held:
            self._defined[root].add(start + low, start + high)

    def _exchange(self, rows: list[int], iteration: int) -> Iterator[Fault]:
        transfers, recipients = self._program.transfers, self._program.recipients
        destinations, sources = self._transfer_operands
        ends = np.append(transfers.first_recipient, len(recipients.transfer))
        delivered: list[tuple[int, int, int, int, int]] = []
        for row in rows:
            count = int(transfers.byte_count[row])
            root, start = self._place(sources.row(row), iteration)
            held = self._defined[root].within(start, start + count)
            for recipient in range(int(ends[row]), int(ends[row + 1])):
                to_root, to_start = self._place(destinations.row(recipient), iteration)
                if root == to_root and max(start, to_start) < min(start, to_start) + count:
                    message = f"transfer {row} is delivered over the bytes that it sends"
                    yield Fault(table="recipients", row=recipient, rule=Rule.DELIVERY, message=message)
                delivered.append((to_root, to_start, to_start + count, recipient, row))
                self._put(held, (to_root, to_start), count)
        delivered.sort()
        reach: tuple[int, int, int] = (-1, 0, 0)
        for root, start, stop, recipient, row in delivered:
            if root == reach[0] and start < reach[1]:
                message = f"transfer {row} is delivered where transfer {reach[2]} is, byte {start}"
                yield Fault(table="recipients", row=recipient, rule=Rule.DELIVERY, message=message)
            if root != reach[0] or stop > reach[1]:
                reach = (root, stop, row)

    def _outputs(self) -> Iterator[Fault]:
        buffers = self._program.buffers
        for number, value in enumerate(self._program.values):
            if value.role is not Role.OUTPUT:
                continue
            distribution = distribution_of(value)
            for buffer in np.flatnonzero(buffers.value == number).tolist():
                root, start = self._roots[buffer], self._displacements[buffer]
                for low, high in traversal_spans(distribution.held_bytes(int(buffers.shard[buffer]))):
                    missing = self._defined[root].missing(start + low, start + high)
                    if missing is not None:
                        message = f"byte {missing - start} of output {value.name} is never written"
                        yield Fault(table="buffers", row=buffer, rule=Rule.UNDEFINED, message=message)
                        break
