"""The rules that come first: step numbers, Repeats, that all a row refers to exists, possible sizes."""

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np

from compiler.kernels.contract import Binding
from compiler.low.faults import Fault, Rule, faults_at
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram, RepeatStep
from compiler.low.steps import in_order

MOST_BYTES: Final = 1 << 24
"""No tile has so much memory. Sizes and displacements below it can be added without a thought."""

_TABLES: Final = (
    "buffers",
    "sequences",
    "separations",
    "views",
    "calls",
    "copies",
    "transfers",
    "recipients",
)
_COUNTED: Final = (
    ("buffers", ("byte_count", "alignment", "tail", "displacement", "member")),
    ("sequences", ("count",)),
    ("views", ("origin",)),
    (
        "copies",
        (
            "source_displacement",
            "destination_displacement",
            "rows",
            "row_bytes",
            "source_stride",
            "destination_stride",
        ),
    ),
    ("transfers", ("source_displacement", "byte_count")),
    ("recipients", ("destination_displacement",)),
)
"""Columns of sizes, numbers and displacements."""


def structure_faults(program: LowProgram) -> tuple[Fault, ...]:
    """Faults that keep anything else from being asked."""
    return tuple(_step_faults(program)) or tuple(_reference_faults(program))


def _step_faults(program: LowProgram) -> Iterator[Fault]:
    for number, (step, around) in enumerate(in_order(program.steps)):
        if step.step != number:
            message = f"step {number} of the program is numbered {step.step}"
            yield Fault(table="steps", row=number, rule=Rule.STEP_NUMBER, message=message)
        if isinstance(step, RepeatStep):
            if step.count < 1 or not step.body:
                message = f"{len(step.body)} steps are repeated {step.count} times"
                yield Fault(table="steps", row=number, rule=Rule.REPEAT, message=message)
            if around is not None:
                message = "a Repeat inside a Repeat is not supported"
                yield Fault(table="steps", row=number, rule=Rule.REPEAT, message=message)


def _reference_faults(program: LowProgram) -> Iterator[Fault]:
    calls, copies, transfers, recipients = (
        program.calls,
        program.copies,
        program.transfers,
        program.recipients,
    )
    for table in _TABLES:
        for field in dataclasses.fields(getattr(program, table)):
            column: Column = getattr(getattr(program, table), field.name)
            if column.dtype != np.int64 or column.ndim != 1:
                message = f"{field.name} is no column of 64-bit integers"
                yield Fault(table=table, row=0, rule=Rule.REFERENCE, message=message)
                return
    lengths = _lengths(program)
    uneven = [name for name, counts in lengths.items() if len(set(counts)) > 1]
    for name in uneven:
        message = f"columns of {lengths[name]} rows"
        yield Fault(table=name, row=0, rule=Rule.REFERENCE, message=message)
    if uneven:
        return
    wrong = [*_row_number_faults(program), *_size_faults(program)]
    yield from wrong
    if wrong:
        return
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    last = calls.first_view + counts[calls.binding]
    yield from faults_at(
        "calls",
        Rule.REFERENCE,
        (calls.first_view < 0) | (calls.first_view > len(calls.operand_views) - counts[calls.binding]),
        lambda row: f"views {calls.first_view[row]} to {last[row]} of {len(calls.operand_views)}",
    )
    is_copy = np.array([_is_copy(binding) for binding in program.bindings], dtype=np.bool_)
    yield from faults_at(
        "copies",
        Rule.COPY,
        ~is_copy[copies.binding],
        lambda row: (
            f"{program.bindings[int(copies.binding[row])].symbol} does not take one operand to one result"
        ),
    )
    listed = np.append(transfers.first_recipient, len(recipients.transfer))
    first = np.searchsorted(recipients.transfer, np.arange(len(transfers.step)))
    out_of_order = bool((np.diff(recipients.transfer) < 0).any())
    yield from faults_at(
        "transfers",
        Rule.REFERENCE,
        (first != transfers.first_recipient) | out_of_order,
        lambda row: f"recipients {listed[row]} to {listed[row + 1]} are not those that name it",
    )


def _size_faults(program: LowProgram) -> Iterator[Fault]:
    for table, columns in _COUNTED:
        for column in columns:
            numbers: Column = getattr(getattr(program, table), column)
            yield from faults_at(
                table,
                Rule.RANGE,
                (numbers <= -MOST_BYTES) | (numbers >= MOST_BYTES),
                lambda row, numbers=numbers, column=column: f"{column} {numbers[row]} is beyond any memory",
            )


def _lengths(program: LowProgram) -> dict[str, list[int]]:
    """Lengths of the columns of each table."""
    return {
        table: [
            len(getattr(getattr(program, table), field.name))
            for field in dataclasses.fields(getattr(program, table))
            if field.name != "operand_views"
        ]
        for table in _TABLES
    }


def _is_copy(binding: Binding) -> bool:
    return (len(binding.results), len(binding.operands)) == (1, 1) and all(
        access.operand is None for access in binding.accesses
    )


def _row_number_faults(program: LowProgram) -> Iterator[Fault]:
    """Row numbers that are not those of a row. A table's name is also that of the kind of row it holds."""
    counts = {name: lengths[0] for name, lengths in _lengths(program).items()}
    counts |= {"steps": sum(1 for _ in in_order(program.steps)), "tiles": program.tile_count}
    counts |= {name: len(getattr(program, name)) for name in ("forms", "bindings", "values", "nodes")}
    required = (
        ("buffers", "tile", "tiles"),
        ("buffers", "root", "buffers"),
        ("buffers", "node", "nodes"),
        ("sequences", "first", "buffers"),
        ("separations", "first", "buffers"),
        ("separations", "second", "buffers"),
        ("views", "buffer", "buffers"),
        ("calls", "step", "steps"),
        ("calls", "tile", "tiles"),
        ("calls", "binding", "bindings"),
        ("calls", "operand_views", "views"),
        ("calls", "node", "nodes"),
        ("copies", "step", "steps"),
        ("copies", "tile", "tiles"),
        ("copies", "binding", "bindings"),
        ("copies", "source", "buffers"),
        ("copies", "destination", "buffers"),
        ("copies", "node", "nodes"),
        ("transfers", "step", "steps"),
        ("transfers", "source", "buffers"),
        ("transfers", "node", "nodes"),
        ("recipients", "transfer", "transfers"),
        ("recipients", "destination", "buffers"),
    )
    optional = (
        ("buffers", "sequence", "sequences"),
        ("buffers", "value", "values"),
        ("views", "sequence", "sequences"),
        ("views", "form", "forms"),
        ("copies", "source_sequence", "sequences"),
        ("copies", "destination_sequence", "sequences"),
        ("transfers", "source_sequence", "sequences"),
        ("recipients", "destination_sequence", "sequences"),
    )
    for references, least in ((required, 0), (optional, NO_ROW)):
        for table, column, target in references:
            numbers: Column = getattr(getattr(program, table), column)
            yield from faults_at(
                table,
                Rule.REFERENCE,
                (numbers < least) | (numbers >= counts[target]),
                lambda row, numbers=numbers, column=column, target=target: (
                    f"{column} {numbers[row]} is none of {counts[target]} {target}"
                ),
            )
