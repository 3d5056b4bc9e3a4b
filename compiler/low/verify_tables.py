"""The rules about buffers, tensors of the host, steps and transfers; ``verify`` states them."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from compiler.low.address import Members, destinations_of, operands_of_calls, sources_of
from compiler.low.faults import Fault, Rule, faults_at
from compiler.low.ids import NO_ROW, SequenceId
from compiler.low.ir import LowProgram, Role
from compiler.low.steps import StepKind, StepTable, table_of
from compiler.low.values import distribution_of

_WORD_BYTES = 4
_ROLES = tuple(int(role) for role in Role)


def table_faults(program: LowProgram) -> tuple[Fault, ...]:
    """Faults of rows whose references are right."""
    steps = table_of(program.steps)
    return (
        *_buffer_faults(program),
        *_sharing_faults(program),
        *_sequence_faults(program, Members(program)),
        *_value_faults(program),
        *_kind_faults(program, steps),
        *_iteration_faults(program, steps),
        *_transfer_faults(program),
    )


def _buffer_faults(program: LowProgram) -> Iterator[Fault]:
    buffers = program.buffers
    for wrong, what in (
        (buffers.byte_count < 1, buffers.byte_count),
        ((buffers.alignment < 1) | (buffers.alignment & (buffers.alignment - 1) != 0), buffers.alignment),
        (buffers.tail < 0, buffers.tail),
        ((buffers.interleaved < 0) | (buffers.interleaved > 1), buffers.interleaved),
        ((buffers.cleared < 0) | (buffers.cleared > 1), buffers.cleared),
        (~np.isin(buffers.role, _ROLES), buffers.role),
    ):
        name = next(f.name for f in dataclasses.fields(buffers) if getattr(buffers, f.name) is what)
        yield from faults_at(
            "buffers", Rule.BUFFER, wrong, lambda row, name=name, what=what: f"{name} is {what[row]}"
        )


def _sharing_faults(program: LowProgram) -> Iterator[Fault]:
    buffers = program.buffers
    root, start = buffers.root, buffers.displacement
    is_root = root == np.arange(len(root))
    for wrong, message in (
        (~is_root[root], "its root is not a root"),
        (is_root & (start != 0), "a root has a displacement"),
        (buffers.tile[root] != buffers.tile, "its root is on another tile"),
        (
            (start >= buffers.byte_count[root]) | (start + buffers.byte_count <= 0),
            "it has no byte in common with its root",
        ),
        (
            (np.maximum(buffers.alignment, 1) > buffers.alignment[root])
            | (start % np.maximum(buffers.alignment, 1) != 0),
            "its root's alignment and its displacement do not align it",
        ),
        (buffers.interleaved > buffers.interleaved[root], "its root need not be interleaved"),
        ((buffers.cleared == 1) & ~is_root, "it is cleared and no root"),
        ((buffers.cleared[root] == 1) & ~is_root, "its root is cleared"),
        ((buffers.cleared == 1) & (buffers.sequence != NO_ROW), "it is cleared and in a sequence"),
        ((buffers.cleared == 1) & (buffers.role != Role.TEMPORARY), "it is cleared and the host's"),
    ):
        yield from faults_at("buffers", Rule.SHARING, wrong, lambda _, message=message: message)


def _sequence_faults(program: LowProgram, members: Members) -> Iterator[Fault]:
    buffers, sequences = program.buffers, program.sequences
    yield from faults_at(
        "buffers",
        Rule.SEQUENCE,
        (buffers.sequence == NO_ROW) & (buffers.member != 0),
        lambda row: f"member {buffers.member[row]} of no sequence",
    )
    shared = np.bincount(buffers.root, minlength=len(buffers.root)) > 1
    for row, (first, count) in enumerate(
        zip(sequences.first.tolist(), sequences.count.tolist(), strict=True)
    ):
        rows = members.of(SequenceId(row))
        problems = [
            name
            for name in ("tile", "byte_count", "alignment", "interleaved", "tail")
            if len(set(getattr(buffers, name)[rows].tolist())) > 1
        ]
        message = None
        if buffers.member[rows].tolist() != list(range(count)):
            message = f"members {buffers.member[rows].tolist()} are not 0 to {count - 1}"
        elif count < 1 or rows[0] != first:
            message = f"buffer {first} is not its member 0"
        elif problems:
            message = f"members differ in {', '.join(problems)}"
        elif shared[rows].any() or (buffers.root[rows] != rows).any():
            message = "a member shares storage"
        if message is not None:
            yield Fault(table="sequences", row=row, rule=Rule.SEQUENCE, message=message)


def _value_faults(program: LowProgram) -> Iterator[Fault]:
    buffers = program.buffers
    names: set[tuple[Role, str]] = set()
    for number, value in enumerate(program.values):
        if (value.role, value.name) in names:
            message = f"there is another {value.role.name.lower()} {value.name}"
            yield Fault(table="values", row=number, rule=Rule.HOST_VALUE, message=message)
        names.add((value.role, value.name))
    yield from faults_at(
        "buffers",
        Rule.HOST_VALUE,
        (buffers.value == NO_ROW) & (buffers.shard != 0),
        lambda row: f"shard {buffers.shard[row]} of no value",
    )
    named = buffers.value != NO_ROW
    yield from faults_at(
        "buffers",
        Rule.HOST_VALUE,
        named == (buffers.role == Role.TEMPORARY),
        lambda row: f"value {buffers.value[row]} does not go with role {buffers.role[row]}",
    )
    for number, value in enumerate(program.values):
        distribution = distribution_of(value)
        if value.owners.tile_count != program.tile_count or value.owners.domain < distribution.owner_count:
            message = f"{distribution.owner_count} owners of {value.name} do not fit their map"
            yield Fault(table="values", row=number, rule=Rule.HOST_VALUE, message=message)
            continue
        shards = distribution.shard_of_owner.tolist()
        tiles = value.owners.tiles(distribution.owner_count).tolist()
        expected = sorted(
            (tile, shard)
            for tile, shard in zip(tiles, shards, strict=True)
            if distribution.storage_bytes[shard] > 0
        )
        rows = np.flatnonzero(buffers.value == number)
        found = sorted(zip(buffers.tile[rows].tolist(), buffers.shard[rows].tolist(), strict=True))
        if found != expected:
            message = f"(tile, shard) of {value.name} are {found}, not {expected}"
            yield Fault(table="values", row=number, rule=Rule.HOST_VALUE, message=message)
            continue
        # Kernels and exchanges write whole words: a shard that ends inside one may have the rest of it.
        spare = buffers.byte_count[rows] - distribution.storage_bytes[buffers.shard[rows]]
        wrong = (spare < 0) | (spare >= _WORD_BYTES) | (buffers.role[rows] != value.role)
        for row in rows[wrong].tolist():
            message = (
                f"{buffers.byte_count[row]} bytes or role {buffers.role[row]} are not those of {value.name}"
            )
            yield Fault(table="buffers", row=row, rule=Rule.HOST_VALUE, message=message)


def _kind_faults(program: LowProgram, steps: StepTable) -> Iterator[Fault]:
    for table, rows, kind in (
        ("calls", program.calls.step, StepKind.COMPUTE),
        ("copies", program.copies.step, StepKind.COMPUTE),
        ("transfers", program.transfers.step, StepKind.EXCHANGE),
    ):
        yield from faults_at(
            table,
            Rule.STEP_KIND,
            steps.kind[rows] != kind,
            lambda row, rows=rows, kind=kind: f"step {rows[row]} is no {kind.name.lower()} step",
        )


def _transfer_faults(program: LowProgram) -> Iterator[Fault]:
    buffers, transfers, recipients = program.buffers, program.transfers, program.recipients
    yield from faults_at(
        "transfers",
        Rule.WORDS,
        (transfers.byte_count < _WORD_BYTES) | (transfers.byte_count % _WORD_BYTES != 0),
        lambda row: f"{transfers.byte_count[row]} bytes are not whole words",
    )
    counts = transfers.byte_count[recipients.transfer]
    for table, operands, size in (
        ("transfers", sources_of(transfers), transfers.byte_count),
        ("recipients", destinations_of(recipients), counts),
    ):
        start, buffer = operands.displacement, operands.buffer
        yield from faults_at(
            table,
            Rule.RANGE,
            (start < 0) | (start + size > buffers.byte_count[buffer]),
            lambda row, start=start, size=size, buffer=buffer: (
                f"bytes {start[row]} to {start[row] + size[row]} leave buffer {buffer[row]} of "
                f"{buffers.byte_count[buffer[row]]} bytes"
            ),
        )
        yield from faults_at(
            table,
            Rule.ALIGNMENT,
            (start % _WORD_BYTES != 0) | (buffers.alignment[buffer] % _WORD_BYTES != 0),
            lambda row, start=start, buffer=buffer: (
                f"byte {start[row]} of buffer {buffer[row]}, aligned to {buffers.alignment[buffer[row]]}, "
                "is not at a word"
            ),
        )
    tile = buffers.tile[recipients.destination]
    unordered = np.zeros(len(tile), dtype=np.bool_)
    unordered[1:] = (recipients.transfer[1:] == recipients.transfer[:-1]) & (tile[1:] <= tile[:-1])
    yield from faults_at(
        "recipients",
        Rule.RECIPIENTS,
        unordered,
        lambda row: f"tile {tile[row]} does not follow tile {tile[row - 1]}",
    )
    taken = np.bincount(recipients.transfer, minlength=len(transfers.step))
    yield from faults_at("transfers", Rule.RECIPIENTS, taken == 0, lambda _: "nobody receives it")
    home = tile == buffers.tile[transfers.source[recipients.transfer]]
    alone = (taken == 1) & (np.bincount(recipients.transfer[home], minlength=len(taken)) == 1)
    yield from faults_at("transfers", Rule.RECIPIENTS, alone, lambda _: "only its sender's tile receives it")


def _iteration_faults(program: LowProgram, steps: StepTable) -> Iterator[Fault]:
    calls, sequences = program.calls, program.sequences
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    call = np.repeat(np.arange(len(calls.step)), counts[calls.binding])
    offset = np.cumsum(counts[calls.binding]) - counts[calls.binding]
    named = calls.first_view[call] + np.arange(len(call)) - offset[call]
    copies, transfers, recipients = program.copies, program.transfers, program.recipients
    copy, transfer = np.arange(len(copies.step)), np.arange(len(transfers.step))
    recipient = np.arange(len(recipients.transfer))
    for table, rows, step, operands in (
        ("calls", call, calls.step[call], operands_of_calls(calls, program.views).take(named)),
        ("copies", copy, copies.step, sources_of(copies)),
        ("copies", copy, copies.step, destinations_of(copies)),
        ("transfers", transfer, transfers.step, sources_of(transfers)),
        ("recipients", recipient, transfers.step[recipients.transfer], destinations_of(recipients)),
    ):
        iterated = np.flatnonzero(operands.sequence != NO_ROW)
        sequence = operands.sequence[iterated]
        outside = steps.repeat[step[iterated]] == NO_ROW
        short = steps.iterations[step[iterated]] != sequences.count[sequence]
        other = operands.buffer[iterated] != sequences.first[sequence]
        for number in np.flatnonzero(outside | short | other).tolist():
            yield Fault(
                table=table,
                row=int(rows[iterated[number]]),
                rule=Rule.ITERATION,
                message=(
                    f"buffer {operands.buffer[iterated[number]]} along sequence {sequence[number]} of "
                    f"{sequences.count[sequence[number]]} in step {step[iterated[number]]}, which runs "
                    f"{steps.iterations[step[iterated[number]]]} times"
                ),
            )
