"""The rules about what kernel calls do to memory; ``verify`` states them.

Local copies are kernel calls too. ``_Accesses`` lists the operands of both as columns, one row for each
access of each call, and most rules are a comparison of such columns. Arrangements of operands that recur are
examined once.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import ORIGIN_MODULUS
from compiler.kernels.contract import Binding
from compiler.kernels.registry import FAMILIES, bind
from compiler.low.accesses import AccessSpans, Spans, merged, spans_of
from compiler.low.address import AddressOperands, Members, destinations_of, operands_of_calls, sources_of
from compiler.low.faults import Fault, Rule, faults_at
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram, Role
from compiler.low.steps import StepTable, table_of

Mask: TypeAlias = npt.NDArray[np.bool_]


def call_faults(program: LowProgram) -> tuple[Fault, ...]:
    """Faults of calls and copies whose references are right."""
    accesses = _accesses_of(program)
    return (
        *_binding_faults(program),
        *_separation_faults(program, table_of(program.steps), accesses, Members(program)),
        *_access_faults(program, accesses),
        *_form_faults(program, accesses),
        *_overlap_faults(program, accesses),
        *_copy_faults(program),
        *_resident_faults(program, accesses),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Accesses:
    """Operands of calls, then of copies; all columns have one row for each.

    Args:
        of_copy: whether the row belongs to a copy.
        row: row of ``Calls`` or ``Copies``.
        step: its step.
        tile: its tile.
        binding: row of ``bindings``.
        position: which access of the binding.
        operands: what memory it names.
        view: row of ``Views``; NO_ROW for copies.
        low: first byte touched, from the buffer's start.
        high: one past the last.
        tail: bytes that may be read behind that.
        start: the byte that is aligned.
        alignment: to how many bytes.
        interleaved: 1 where interleaved memory is needed.
        written: 1 where the call writes.
    """

    of_copy: Mask
    row: Column
    step: Column
    tile: Column
    binding: Column
    position: Column
    operands: AddressOperands
    view: Column
    low: Column
    high: Column
    tail: Column
    start: Column
    alignment: Column
    interleaved: Column
    written: Column

    def faults(self, rule: Rule, wrong: Mask, message: Callable[[int], str]) -> Iterator[Fault]:
        """A fault for each access in ``wrong``."""
        for access in np.flatnonzero(wrong).tolist():
            table = "copies" if self.of_copy[access] else "calls"
            text = f"access {int(self.position[access])}: {message(access)}"
            yield Fault(table=table, row=int(self.row[access]), rule=rule, message=text)


def _accesses_of(program: LowProgram) -> _Accesses:
    calls, copies = program.calls, program.copies
    facts = np.array(
        [
            (
                *access.extent,
                access.tail,
                access.start,
                access.alignment,
                access.memory_class is MemoryClass.INTERLEAVED,
                access.is_written,
            )
            for binding in program.bindings
            for access in binding.accesses
        ],
        dtype=np.int64,
    ).reshape(-1, 7)
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    first = np.cumsum(counts) - counts
    call = np.repeat(np.arange(len(calls.step)), counts[calls.binding])
    position = np.arange(len(call)) - np.repeat(
        np.cumsum(counts[calls.binding]) - counts[calls.binding], counts[calls.binding]
    )
    copy = np.repeat(np.arange(len(copies.step)), 2)
    is_source = np.arange(len(copy)) % 2
    operands = AddressOperands.concatenated(
        [
            operands_of_calls(calls, program.views).take(calls.first_view[call] + position),
            AddressOperands.concatenated([destinations_of(copies), sources_of(copies)]).take(
                copy + is_source * len(copies.step)
            ),
        ]
    )
    binding = np.concatenate([calls.binding[call], copies.binding[copy]])
    position = np.concatenate([position, is_source])
    low, high, tail, start, alignment, interleaved, written = facts[first[binding] + position].T
    return _Accesses(
        of_copy=np.arange(len(binding)) >= len(call),
        row=np.concatenate([call, copy]),
        step=np.concatenate([calls.step[call], copies.step[copy]]),
        tile=np.concatenate([calls.tile[call], copies.tile[copy]]),
        binding=binding,
        position=position,
        operands=operands,
        view=np.concatenate(
            [calls.operand_views[calls.first_view[call] + position[: len(call)]], np.full(len(copy), NO_ROW)]
        ),
        low=operands.displacement + low,
        high=operands.displacement + high,
        tail=tail,
        start=operands.displacement + start,
        alignment=alignment,
        interleaved=interleaved,
        written=written,
    )


def _separation_faults(
    program: LowProgram, steps: StepTable, accesses: _Accesses, members: Members
) -> Iterator[Fault]:
    buffers, pairs = program.buffers, program.separations
    yield from faults_at(
        "separations",
        Rule.SEPARATION,
        (buffers.root[pairs.first] == buffers.root[pairs.second])
        | (buffers.tile[pairs.first] != buffers.tile[pairs.second]),
        lambda row: f"buffers {pairs.first[row]} and {pairs.second[row]} are not two of one tile, apart",
    )
    listed = {frozenset(pair) for pair in zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)}
    yield from _loopback_faults(program, steps, members, listed)
    first_access = np.flatnonzero(accesses.position == 0)
    for access in first_access.tolist():
        binding = program.bindings[int(accesses.binding[access])]
        for one, other in binding.separate:
            named = [accesses.operands.row(access + binding.position(r)) for r in (one, other)]
            iterations = int(steps.iterations[accesses.step[access]])
            if any(
                operand.sequence != NO_ROW and len(members.of(operand.sequence)) < iterations
                for operand in named
            ):
                continue  # a fault of its own, of iteration or sequence
            for iteration in range(iterations):
                meant = [members.at(operand, iteration) for operand in named]
                if frozenset(map(int, meant)) not in listed:
                    yield Fault(
                        table="copies" if accesses.of_copy[access] else "calls",
                        row=int(accesses.row[access]),
                        rule=Rule.SEPARATION,
                        message=f"buffers {meant[0]} and {meant[1]} ({one}, {other}) may share an element",
                    )


def _loopback_faults(
    program: LowProgram, steps: StepTable, members: Members, listed: Container[frozenset[int]]
) -> Iterator[Fault]:
    """A tile that receives what it sends reads and writes at the same time: in different elements."""
    tile, of = program.buffers.tile, program.recipients.transfer
    sources, destinations = sources_of(program.transfers).take(of), destinations_of(program.recipients)
    for row in np.flatnonzero(tile[sources.buffer] == tile[destinations.buffer]).tolist():
        iterations = int(steps.iterations[program.transfers.step[of[row]]])
        named = sources.row(row), destinations.row(row)
        if any(o.sequence != NO_ROW and len(members.of(o.sequence)) < iterations for o in named):
            continue  # a fault of its own, of iteration or sequence
        for iteration in range(iterations if any(o.sequence != NO_ROW for o in named) else 1):
            meant = [int(members.at(operand, iteration)) for operand in named]
            if frozenset(meant) not in listed:
                message = f"buffers {meant[0]} and {meant[1]} (sent, received) may share an element"
                yield Fault(table="recipients", row=row, rule=Rule.SEPARATION, message=message)


def _binding_faults(program: LowProgram) -> Iterator[Fault]:
    for row, binding in enumerate(program.bindings):
        operands = tuple(access.operand for access in binding.accesses if access.operand is not None)
        relations = tuple(access.relation for access in binding.accesses if access.operand is not None)
        if binding.family not in FAMILIES:
            message = f"there is no family {binding.family}"
        elif bind(binding.family, binding.parameters, operands, relations, binding.aliases) != binding:
            message = f"{binding.symbol} is not what its family binds"
        else:
            continue
        yield Fault(table="bindings", row=row, rule=Rule.BINDING, message=message)


def _access_faults(program: LowProgram, accesses: _Accesses) -> Iterator[Fault]:
    buffers, buffer = program.buffers, accesses.operands.buffer
    size, tail = buffers.byte_count[buffer], buffers.tail[buffer]
    alignment = buffers.alignment[buffer]
    yield from accesses.faults(
        Rule.TILE,
        buffers.tile[buffer] != accesses.tile,
        lambda a: f"buffer {buffer[a]} is on tile {buffers.tile[buffer[a]]}, not {accesses.tile[a]}",
    )
    yield from accesses.faults(
        Rule.RANGE,
        (accesses.low < 0) | (accesses.high > size) | (accesses.high + accesses.tail > size + tail),
        lambda a: (
            f"bytes {accesses.low[a]} to {accesses.high[a]} and {accesses.tail[a]} more leave buffer "
            f"{buffer[a]} of {size[a]} bytes and a tail of {tail[a]}"
        ),
    )
    yield from accesses.faults(
        Rule.ALIGNMENT,
        (accesses.start % accesses.alignment != 0) | (alignment % accesses.alignment != 0),
        lambda a: (
            f"byte {accesses.start[a]} of buffer {buffer[a]}, aligned to {alignment[a]}, is not aligned to "
            f"{accesses.alignment[a]}"
        ),
    )
    yield from accesses.faults(
        Rule.MEMORY_CLASS,
        accesses.interleaved > buffers.interleaved[buffer],
        lambda a: f"buffer {buffer[a]} need not be interleaved",
    )


def _form_faults(program: LowProgram, accesses: _Accesses) -> Iterator[Fault]:
    views, buffers = program.views, program.buffers
    rows = {form: row for row, form in enumerate(program.forms)}
    bound = [
        [NO_ROW if access.operand is None else rows.get(access.operand) for access in binding.accesses]
        for binding in program.bindings
    ]
    first_byte = [form.traversal().extent[0] for form in program.forms]
    of_call = np.flatnonzero(~accesses.of_copy)
    wrong = np.zeros(len(accesses.row), dtype=np.bool_)
    for access in of_call.tolist():
        view = accesses.view[access]
        form = int(views.form[view])
        if bound[accesses.binding[access]][accesses.position[access]] != form:
            wrong[access] = True
        elif form != NO_ROW:
            known = min(ORIGIN_MODULUS, max(int(buffers.alignment[views.buffer[view]]), 1))
            wrong[access] = (views.origin[view] + first_byte[form] - program.forms[form].origin) % known != 0
    yield from accesses.faults(
        Rule.FORM, wrong, lambda a: f"view {accesses.view[a]} is not what the call was bound to"
    )


def _overlap_faults(program: LowProgram, accesses: _Accesses) -> Iterator[Fault]:
    """Checks each distinct arrangement of a call's operands once."""
    buffers = program.buffers
    buffer, sequence = accesses.operands.buffer, accesses.operands.sequence
    # Buffers that may be the same storage in some iteration: of one root, or members of one sequence.
    members = buffers.sequence[buffer]
    group = np.where(members != NO_ROW, len(buffers.root) + members, buffers.root[buffer])
    place = buffers.displacement[buffer] + accesses.operands.displacement
    spans = [spans_of(binding) for binding in program.bindings]
    seen: dict[tuple[int, ...], str | None] = {}
    for first in np.flatnonzero(accesses.position == 0).tolist():
        number = int(accesses.binding[first])
        last = first + len(program.bindings[number].accesses)
        groups, places = group[first:last].tolist(), place[first:last].tolist()
        fixed = [
            b if s == NO_ROW and g >= len(buffers.root) else NO_ROW
            for b, s, g in zip(
                buffer[first:last].tolist(), sequence[first:last].tolist(), groups, strict=True
            )
        ]
        numbers = {g: n for n, g in enumerate(dict.fromkeys(groups))}
        key = (number, *(numbers[g] for g in groups), *places, *fixed)
        if key not in seen:
            seen[key] = _overlap(program.bindings[number], spans[number], groups, places, fixed)
        message = seen[key]
        if message is not None:
            table = "copies" if accesses.of_copy[first] else "calls"
            yield Fault(table=table, row=int(accesses.row[first]), rule=Rule.OVERLAP, message=message)


def _overlap(
    binding: Binding,
    spans: tuple[AccessSpans, ...],
    groups: list[int],
    places: list[int],
    fixed: list[int],
) -> str | None:
    """What is wrong with where the accesses of a call lie to each other; ``fixed`` names a single member."""
    allowed: set[tuple[int, int]] = set()
    for alias in binding.aliases:
        result, operand = binding.position(alias.result), binding.position(alias.operand)
        allowed.add((result, operand))
        same = (groups[result], fixed[result]) == (groups[operand], fixed[operand])
        if not same or places[result] - places[operand] != alias.displacement:
            return f"{alias.result} is not at {alias.operand} {alias.displacement:+d}"
    for written, access in enumerate(spans):
        for other, touched in enumerate(spans):
            if written == other or (written, other) in allowed or groups[written] != groups[other]:
                continue
            if NO_ROW not in (fixed[written], fixed[other]) and fixed[written] != fixed[other]:
                continue
            distance = places[other] - places[written]
            moved = [
                (start + distance, stop + distance) for start, stop in merged(touched.needs + touched.writes)
            ]
            if _meet(access.writes, moved):
                return f"{binding.reference(written)} is written over {binding.reference(other)}"
    return None


def _meet(left: Spans, right: list[tuple[int, int]]) -> bool:
    return any(max(a, c) < min(b, d) for a, b in left for c, d in right)


def _copy_faults(program: LowProgram) -> Iterator[Fault]:
    copies = program.copies
    seen: dict[tuple[int, int, int, int, int], bool] = {}
    for row in range(len(copies.step)):
        binding, rows, row_bytes = (
            int(column[row]) for column in (copies.binding, copies.rows, copies.row_bytes)
        )
        source_stride, destination_stride = (
            int(copies.source_stride[row]),
            int(copies.destination_stride[row]),
        )
        key = (binding, rows, row_bytes, source_stride, destination_stride)
        if key not in seen:
            result, operand = spans_of(program.bindings[binding])
            seen[key] = (
                rows > 0
                and row_bytes > 0
                and result.defines == _runs(rows, row_bytes, destination_stride)
                and operand.needs == _runs(rows, row_bytes, source_stride)
            )
        if not seen[key]:
            message = (
                f"{program.bindings[binding].symbol} does not move {rows} runs of {row_bytes} bytes, "
                f"{source_stride} and {destination_stride} apart"
            )
            yield Fault(table="copies", row=row, rule=Rule.COPY, message=message)


def _runs(rows: int, row_bytes: int, stride: int) -> Spans:
    return merged((row * stride, row * stride + row_bytes) for row in range(rows))


def _resident_faults(program: LowProgram, accesses: _Accesses) -> Iterator[Fault]:
    buffers = program.buffers
    resident = np.zeros(len(buffers.root), dtype=np.bool_)
    resident[buffers.root[buffers.role == Role.PARAMETER]] = True
    holds_resident = np.zeros(len(program.sequences.first), dtype=np.bool_)
    in_sequence = np.flatnonzero(buffers.sequence != NO_ROW)
    np.logical_or.at(holds_resident, buffers.sequence[in_sequence], resident[buffers.root[in_sequence]])

    def writes_resident(operands: AddressOperands) -> Mask:
        wrong = resident[buffers.root[operands.buffer]]
        iterated = np.flatnonzero(operands.sequence != NO_ROW)
        wrong[iterated] |= holds_resident[operands.sequence[iterated]]
        return wrong

    yield from accesses.faults(
        Rule.RESIDENT,
        writes_resident(accesses.operands) & (accesses.written == 1),
        lambda a: f"a parameter lies in buffer {accesses.operands.buffer[a]}",
    )
    deliveries = destinations_of(program.recipients)
    yield from faults_at(
        "recipients",
        Rule.RESIDENT,
        writes_resident(deliveries),
        lambda row: f"a parameter lies in buffer {deliveries.buffer[row]}",
    )
