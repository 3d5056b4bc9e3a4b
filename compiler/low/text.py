"""The low program as text: a line for each step, what each costs whom, and what one tile holds and does.

All are stable: they depend on the tables alone, and a golden of them changes only when the program does.
``b3`` is buffer 3, ``s0`` sequence 0, ``b3+64`` a displacement in bytes, ``b3@s0`` a buffer that the
iteration chooses along a sequence.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from compiler.low.address import AddressOperand, destinations_of, operands_of_calls, sources_of
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, ComputeStep, ExchangeStep, LowProgram, RepeatStep, Role, Step
from compiler.low.prices import PhaseLoads, loads_of, work_of_steps
from compiler.low.project import TileWork, WorkKind
from compiler.low.steps import StepKind, rows_by_step, table_of


def text_of_program(program: LowProgram) -> str:
    """Counts, then a line for each step."""
    buffers = program.buffers
    roots = buffers.root == np.arange(len(buffers.root))
    allocated = int((buffers.byte_count * roots).sum())
    counts = (
        f"low program of {program.tile_count:,} tiles: {len(buffers.root):,} buffers, {allocated:,} bytes, "
        f"{len(program.sequences.first):,} sequences, {len(program.bindings):,} bindings"
    )
    lines = [counts]
    for value in program.values:
        extents = ", ".join(map(str, value.shape))
        lines.append(
            f"{value.role.name.lower()} {value.name} [{extents}] {type(value.format.precision).__name__}"
        )
    for step in program.steps:
        lines.extend(_step_lines(program, step, indent=""))
    return "\n".join(lines) + "\n"


def text_of_steps(program: LowProgram) -> str:
    """A line for each compute and exchange step: how often it runs, the tile that it costs most, for whom.

    Cycles are estimated, of one run; those of an exchange are of the phase.
    """
    table = table_of(program.steps)
    work = work_of_steps(program, len(table.kind))
    sent, first_sent = rows_by_step(program.transfers.step, len(table.kind))
    step_of_recipient = program.transfers.step[program.recipients.transfer]
    received, first_received = rows_by_step(step_of_recipient, len(table.kind))
    lines = [("step", "runs", "kind", "cycles (estimated)", "busiest", "for")]
    for number, kind in enumerate(table.kind.tolist()):
        if kind == StepKind.REPEAT:
            continue
        if kind == StepKind.COMPUTE:
            tile = int(np.argmax(work[number]))
            cycles, busiest = int(work[number, tile]), f"tile {tile} of {int((work[number] > 0).sum()):,}"
        else:
            loads = loads_of(
                program,
                sent[first_sent[number] : first_sent[number + 1]],
                received[first_received[number] : first_received[number + 1]],
            )
            cycles, busiest = loads.cycles, _busiest_end(loads)
        runs, name = int(table.iterations[number]), StepKind(kind).name.lower()
        nodes = ", ".join(_nodes_of_step(program, number))
        lines.append((str(number), f"{runs:,}", name, f"{cycles:,}", busiest, nodes))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    is_number = (True, True, False, True, False, False)
    return "".join(
        "  ".join(
            word.rjust(width) if right else word.ljust(width)
            for word, width, right in zip(line, widths, is_number, strict=True)
        ).rstrip()
        + "\n"
        for line in lines
    )


def _nodes_of_step(program: LowProgram, step: int) -> tuple[str, ...]:
    """Graph nodes that a step works for, as they first occur in the program."""
    is_named = np.zeros(len(program.nodes), dtype=np.bool_)
    for table in (program.copies, program.calls, program.transfers):
        is_named[table.node[table.step == step]] = True
    return tuple(name for name, named in zip(program.nodes, is_named.tolist(), strict=True) if named)


def _busiest_end(loads: PhaseLoads) -> str:
    """The tile that sends most words, or the one that receives most where that is more."""
    sender, receiver = int(np.argmax(loads.sent)), int(np.argmax(loads.received))
    if loads.sent[sender] > loads.received[receiver]:
        tile, verb, words, spans = sender, "sends", loads.sent, loads.sends
    else:
        tile, verb, words, spans = receiver, "receives", loads.received, loads.receives
    return f"tile {tile} {verb} {int(words[tile]):,} words in {int(spans[tile]):,} spans"


def _step_lines(program: LowProgram, step: Step, indent: str) -> Iterator[str]:
    match step:
        case ComputeStep():
            yield f"{indent}step {step.step} compute: {_compute_text(program, step.step)}"
        case ExchangeStep():
            yield f"{indent}step {step.step} exchange: {_exchange_text(program, step.step)}"
        case RepeatStep():
            yield f"{indent}step {step.step} repeat {step.count}"
            for inner in step.body:
                yield from _step_lines(program, inner, indent + "  ")


def _compute_text(program: LowProgram, step: int) -> str:
    parts: list[str] = []
    tiles: set[int] = set()
    for table in (program.copies, program.calls):
        rows = np.flatnonzero(table.step == step)
        tiles.update(table.tile[rows].tolist())
        symbols = Counter(str(program.bindings[int(row)].symbol) for row in table.binding[rows])
        parts += [f"{symbol} x {count:,}" for symbol, count in sorted(symbols.items())]
    return f"{len(tiles):,} tiles: {', '.join(parts) or 'nothing'}"


def _exchange_text(program: LowProgram, step: int) -> str:
    transfers, recipients = program.transfers, program.recipients
    rows = np.flatnonzero(transfers.step == step)
    taken = transfers.step[recipients.transfer] == step
    sent = int(transfers.byte_count[rows].sum())
    received = int(transfers.byte_count[recipients.transfer[taken]].sum())
    return (
        f"{len(rows):,} transfers to {int(taken.sum()):,} recipients, {sent:,} bytes sent, "
        f"{received:,} received"
    )


def text_of_tile(program: LowProgram, work: TileWork, tile: int) -> str:
    """Buffers of a tile, then its work in order."""
    lines = [f"tile {tile}"]
    lines += [
        f"  b{row} {_buffer_text(program, row)}"
        for row in np.flatnonzero(program.buffers.tile == tile).tolist()
    ]
    steps = table_of(program.steps)
    described = -1
    for step, kind, row in zip(*(column.tolist() for column in work.rows_of(tile)), strict=True):
        if step != described:
            count = int(steps.iterations[step])
            around = (
                "" if steps.repeat[step] == NO_ROW else f", {count} times in step {int(steps.repeat[step])}"
            )
            lines.append(f"  step {step}{around}")
            described = step
        lines.append(f"    {_work_text(program, WorkKind(kind), row)}")
    return "\n".join(lines) + "\n"


def _buffer_text(program: LowProgram, row: int) -> str:
    buffers = program.buffers

    def number(column: Column) -> int:
        return int(column[row])

    parts = [f"{number(buffers.byte_count):,} bytes", f"aligned {number(buffers.alignment)}"]
    if number(buffers.interleaved):
        parts.append("interleaved")
    if number(buffers.cleared):
        parts.append("cleared")
    if number(buffers.tail):
        parts.append(f"tail {number(buffers.tail)}")
    if number(buffers.root) != row:
        parts.append(f"at b{number(buffers.root)}{number(buffers.displacement):+d}")
    if number(buffers.sequence) != NO_ROW:
        parts.append(f"s{number(buffers.sequence)}[{number(buffers.member)}]")
    if number(buffers.value) != NO_ROW:
        name = program.values[number(buffers.value)].name
        parts.append(f"{Role(number(buffers.role)).name.lower()} {name} shard {number(buffers.shard)}")
    parts.append(f"for {program.nodes[number(buffers.node)]}")
    return ", ".join(parts)


def _work_text(program: LowProgram, kind: WorkKind, row: int) -> str:
    calls, copies, transfers = program.calls, program.copies, program.transfers
    match kind:
        case WorkKind.COPY:
            shape = f"{int(copies.rows[row]):,} x {int(copies.row_bytes[row]):,} bytes"
            source, destination = sources_of(copies).row(row), destinations_of(copies).row(row)
            return f"copy {_operand_text(source)} -> {_operand_text(destination)}, {shape}"
        case WorkKind.CALL:
            binding = program.bindings[int(calls.binding[row])]
            operands = operands_of_calls(calls, program.views)
            first = int(calls.first_view[row])
            named = [_operand_text(operands.row(first + n)) for n in range(len(binding.accesses))]
            results = len(binding.results)
            return f"{binding.symbol} {', '.join(named[results:])} -> {', '.join(named[:results])}"
        case WorkKind.SEND:
            return (
                f"send t{row} {_operand_text(sources_of(transfers).row(row))}, "
                f"{int(transfers.byte_count[row]):,} bytes"
            )
        case WorkKind.RECEIVE:
            transfer = int(program.recipients.transfer[row])
            return f"receive t{transfer} {_operand_text(destinations_of(program.recipients).row(row))}"


def _operand_text(operand: AddressOperand) -> str:
    displacement = f"{operand.displacement:+d}" if operand.displacement else ""
    sequence = "" if operand.sequence == NO_ROW else f"@s{operand.sequence}"
    return f"b{operand.buffer}{displacement}{sequence}"
