"""The rules about bytes over time: what they hold when they are needed, and what meets in an exchange.

Every root and every member of a sequence has a list of spans of equal state: undefined, zero, or elements of
a precision. Cleared buffers begin as zero where no row ever stores, as that is so in every run. The program
is followed as it runs: steps in order, every iteration of a Repeat, rows in row order. That is exact, and
tiles need not be looked at together, since only transfers reach from one to another and they are visited in
their order.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from math import inf
from typing import Final, assert_never, final

import numpy as np

from compiler.geometry.precision import Precision
from compiler.kernels.contract import Access, Binding, PaddingState
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.low.accesses import AccessSpans, merged, spans_of, subtract, traversal_spans
from compiler.low.address import (
    AddressOperands,
    Members,
    destinations_of,
    operands_of_calls,
    sources_of,
)
from compiler.low.faults import Fault, Rule
from compiler.low.ids import NO_ROW, SequenceId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, Role
from compiler.low.steps import executions, rows_by_step, table_of
from compiler.low.values import distribution_of


def flow_faults(program: LowProgram) -> tuple[Fault, ...]:
    """Faults of a program whose rows are right; each row is reported once, whatever the iterations."""
    found = dict.fromkeys(_Flow(program).faults())
    return tuple(found)


UNDEFINED: Final = -1
"""State of a byte that nothing has written."""
ZERO: Final = 0
"""State of a zero byte, which is zero in every precision; larger states are precisions."""


@final
class ByteStates:
    """The states of the bytes of one storage, as spans: span n begins at ``_starts[n]`` and ends at the next.

    Spans cover everything; neighbours differ. Before the first written byte and behind the last, bytes are
    undefined.
    """

    def __init__(self) -> None:
        self._starts: list[float] = [-inf]
        self._states: list[int] = [UNDEFINED]

    def put(self, start: int, stop: int, state: int) -> None:
        """Says what bytes ``start`` to ``stop`` hold."""
        if start >= stop:
            return
        # What is replaced: from the span of the byte before to the span of the byte behind.
        first = bisect_left(self._starts, start) - 1
        last = bisect_right(self._starts, stop) - 1
        before, behind = self._states[first], self._states[last]
        starts: list[float] = [self._starts[first]]
        states = [before]
        for place, held in ((start, state), (stop, behind)):
            if held != states[-1]:
                starts.append(place)
                states.append(held)
        self._starts[first : last + 1] = starts
        self._states[first : last + 1] = states

    def within(self, start: int, stop: int) -> list[tuple[int, int, int]]:
        """The spans (start, stop, state) between ``start`` and ``stop``, relative to ``start``."""
        if start >= stop:
            return []
        first = bisect_right(self._starts, start) - 1
        last = bisect_left(self._starts, stop)
        ends = [*self._starts[first + 1 : last], stop]
        return [
            (int(max(low, start)) - start, int(high) - start, state)
            for low, high, state in zip(self._starts[first:last], ends, self._states[first:last], strict=True)
        ]


@final
class _Places:
    """Where operands are: the root, and bytes from its start."""

    def __init__(self, program: LowProgram, members: Members, operands: AddressOperands) -> None:
        buffers = program.buffers
        self._root: list[int] = buffers.root[operands.buffer].tolist()
        start = buffers.displacement[operands.buffer] + operands.displacement
        self._start: list[int] = start.tolist()
        self._sequence: list[int] = operands.sequence.tolist()
        self._displacement: list[int] = operands.displacement.tolist()
        self._members = members

    def at(self, row: int, iteration: int) -> tuple[int, int]:
        """The place that an operand means in an iteration; members of sequences are their own roots."""
        sequence = self._sequence[row]
        if sequence == NO_ROW:
            return self._root[row], self._start[row]
        return int(self._members.of(SequenceId(sequence))[iteration]), self._displacement[row]


@final
class _Flow:
    """One run of a program with states of bytes instead of memory."""

    def __init__(self, program: LowProgram) -> None:
        self._program = program
        self._spans: list[tuple[AccessSpans, ...]] = [spans_of(binding) for binding in program.bindings]
        self._roots = program.buffers.root.tolist()
        self._displacements = program.buffers.displacement.tolist()
        self._held = {root: ByteStates() for root in sorted(set(self._roots))}
        self._precisions: dict[Precision | None, int] = {}
        self._states = [[self._state_of(access) for access in b.accesses] for b in program.bindings]
        self._results = [
            [_left_by(b, access, spans) for access, spans in zip(b.accesses, all_spans, strict=True)]
            for b, all_spans in zip(program.bindings, self._spans, strict=True)
        ]
        members = Members(program)
        self._call_places = _Places(program, members, operands_of_calls(program.calls, program.views))
        self._copy_places = tuple(
            _Places(program, members, operands)
            for operands in (destinations_of(program.copies), sources_of(program.copies))
        )
        self._sources = _Places(program, members, sources_of(program.transfers))
        self._destinations = _Places(program, members, destinations_of(program.recipients))

    def faults(self) -> Iterator[Fault]:
        program = self._program
        for number, value in enumerate(program.values):
            if value.role in (Role.PARAMETER, Role.INPUT):
                self._upload(number, self._number_of(value.format.precision))
        self._load()
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
                        yield from self._copy(row, iteration)
                    for row in calls[0][calls[1][number] : calls[1][number + 1]].tolist():
                        yield from self._call(row, iteration)
                case ExchangeStep():
                    rows = transfers[0][transfers[1][number] : transfers[1][number + 1]].tolist()
                    yield from self._exchange(rows, iteration)
                case _:
                    assert_never(step)
        yield from self._outputs()

    def _call(self, row: int, iteration: int) -> Iterator[Fault]:
        calls = self._program.calls
        number, first = int(calls.binding[row]), int(calls.first_view[row])
        binding = self._program.bindings[number]
        places = [
            self._call_places.at(first + position, iteration) for position in range(len(binding.accesses))
        ]
        for position, (access, (root, start)) in enumerate(zip(self._spans[number], places, strict=True)):
            fault = self._wrong(access, self._states[number][position], root, start)
            if fault is not None:
                rule, message = fault
                reference = binding.reference(position)
                yield Fault(table="calls", row=row, rule=rule, message=f"{reference} {message}")
        for left, own, (root, start) in zip(self._results[number], self._states[number], places, strict=True):
            for low, high, is_zero in left:
                self._held[root].put(start + low, start + high, ZERO if is_zero else own)

    def _wrong(self, access: AccessSpans, own: int, root: int, start: int) -> tuple[Rule, str] | None:
        """What keeps an access from being made; ``own`` is the state of elements of its precision."""
        held = self._held[root]
        for low, high in access.needs:
            for first, _, state in held.within(start + low, start + high):
                if state == UNDEFINED:
                    return Rule.UNDEFINED, f"needs byte {low + first}, which nothing wrote before"
                if state not in (ZERO, own):
                    return Rule.PRECISION, f"needs byte {low + first}, which was written in another precision"
        for low, high in access.zero:
            for first, _, state in held.within(start + low, start + high):
                if state != ZERO:
                    return Rule.PADDING, f"needs byte {low + first} to be zero, and it may be something else"
        return None

    def _upload(self, number: int, own: int) -> None:
        """What the host writes before a run: elements, and zeros between them."""
        buffers = self._program.buffers
        distribution = distribution_of(self._program.values[number])
        for buffer in np.flatnonzero(buffers.value == number).tolist():
            held, start = self._held[self._roots[buffer]], self._displacements[buffer]
            held.put(start, start + int(buffers.byte_count[buffer]), ZERO)
            for low, high in traversal_spans(distribution.held_bytes(int(buffers.shard[buffer]))):
                held.put(start + low, start + high, own)

    def _load(self) -> None:
        """What cleared buffers hold in every run: zero, except where some row stores to them."""
        program, buffers = self._program, self._program.buffers
        cleared = {row: list[tuple[int, int]]() for row in np.flatnonzero(buffers.cleared == 1).tolist()}
        if not cleared:
            return
        calls, copies, recipients = program.calls, program.copies, program.recipients
        for call in range(len(calls.step)):
            number, first = int(calls.binding[call]), int(calls.first_view[call])
            for position, spans in enumerate(self._spans[number]):
                view = calls.operand_views[first + position]
                stored = cleared.get(int(program.views.buffer[view]))
                if stored is not None:
                    origin = int(program.views.origin[view])
                    stored.extend((origin + low, origin + high) for low, high in spans.writes)
        for row in np.flatnonzero(buffers.cleared[copies.destination]).tolist():
            start, stride = int(copies.destination_displacement[row]), int(copies.destination_stride[row])
            cleared[int(copies.destination[row])].extend(
                (start + run * stride, start + run * stride + int(copies.row_bytes[row]))
                for run in range(int(copies.rows[row]))
            )
        for row in np.flatnonzero(buffers.cleared[recipients.destination]).tolist():
            start = int(recipients.destination_displacement[row])
            stop = start + int(program.transfers.byte_count[recipients.transfer[row]])
            cleared[int(recipients.destination[row])].append((start, stop))
        for buffer, stored in cleared.items():
            whole = ((0, int(buffers.byte_count[buffer])),)
            for low, high in subtract(whole, merged(stored)):
                self._held[buffer].put(low, high, ZERO)

    def _number_of(self, precision: Precision | None) -> int:
        return self._precisions.setdefault(precision, len(self._precisions) + 1)

    def _state_of(self, access: Access) -> int:
        return self._number_of(None if access.operand is None else access.operand.precision)

    def _copy(self, row: int, iteration: int) -> Iterator[Fault]:
        copies = self._program.copies
        destination, source = (places.at(row, iteration) for places in self._copy_places)
        for low, high in self._spans[int(copies.binding[row])][0].keeps:
            for first, _, state in self._held[destination[0]].within(
                destination[1] + low, destination[1] + high
            ):
                if state == UNDEFINED:
                    message = f"writes back byte {low + first}, which nothing wrote before"
                    yield Fault(table="copies", row=row, rule=Rule.UNDEFINED, message=message)
        count = int(copies.row_bytes[row])
        for run in range(int(copies.rows[row])):
            root, start = source[0], source[1] + run * int(copies.source_stride[row])
            held = self._held[root].within(start, start + count)
            start = destination[1] + run * int(copies.destination_stride[row])
            self._put(held, (destination[0], start))

    def _put(self, held: Iterable[tuple[int, int, int]], destination: tuple[int, int]) -> None:
        root, start = destination
        for low, high, state in held:
            self._held[root].put(start + low, start + high, state)

    def _exchange(self, rows: list[int], iteration: int) -> Iterator[Fault]:
        transfers, recipients = self._program.transfers, self._program.recipients
        listed = np.append(transfers.first_recipient, len(recipients.transfer))
        first, last = listed[rows].tolist(), listed[np.array(rows, dtype=np.int64) + 1].tolist()
        delivered: list[tuple[int, int, int, int, int]] = []
        for number, (row, count) in enumerate(zip(rows, transfers.byte_count[rows].tolist(), strict=True)):
            root, start = self._sources.at(row, iteration)
            held = self._held[root].within(start, start + count)
            for low, _, state in held:
                if state == UNDEFINED:
                    message = f"sends byte {low}, which nothing wrote before"
                    yield Fault(table="transfers", row=row, rule=Rule.UNDEFINED, message=message)
            for recipient in range(first[number], last[number]):
                to_root, to_start = self._destinations.at(recipient, iteration)
                if root == to_root and max(start, to_start) < min(start, to_start) + count:
                    message = f"transfer {row} is delivered over the bytes that it sends"
                    yield Fault(table="recipients", row=recipient, rule=Rule.DELIVERY, message=message)
                delivered.append((to_root, to_start, to_start + count, recipient, row))
                self._put(held, (to_root, to_start))
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
            own = self._number_of(value.format.precision)
            distribution = distribution_of(value)
            for buffer in np.flatnonzero(buffers.value == number).tolist():
                held = traversal_spans(distribution.held_bytes(int(buffers.shard[buffer])))
                access = AccessSpans(needs=held, writes=(), defines=(), keeps=(), finite=(), zero=())
                fault = self._wrong(access, own, self._roots[buffer], self._displacements[buffer])
                if fault is not None:
                    rule, message = fault
                    yield Fault(
                        table="buffers", row=buffer, rule=rule, message=f"output {value.name} {message}"
                    )


def _left_by(binding: Binding, access: Access, spans: AccessSpans) -> list[tuple[int, int, bool]]:
    """Spans that a call gives a value, and whether that is zero."""
    parameters = binding.parameters
    if isinstance(parameters, CopyParameters) and parameters.kind is Kind.FILL:
        return [(low, high, True) for low, high in spans.defines]
    zero = merged(
        span
        for padding in access.padding
        if padding.after is PaddingState.ZERO
        for span in traversal_spans(padding.part)
    )
    values = subtract(spans.defines, zero)
    zeros = subtract(spans.defines, values)
    return [(low, high, False) for low, high in values] + [(low, high, True) for low, high in zeros]
