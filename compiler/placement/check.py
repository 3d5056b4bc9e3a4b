"""Whether a placement is right, found out independently of what made it.

No code is shared with the solvers or with the extraction of their problem: lifetimes are read from the
program again and every pair of buffers of a tile is compared. All violations are reported. A placement is
right when

- *count*: there is an address for each buffer and a stride for each sequence,
- *range*: each buffer and its tail lie in SRAM,
- *alignment*: each address is a multiple of the buffer's alignment,
- *class*: what must be interleaved is,
- *sharing*: what shares the storage of a root lies at its displacement from it,
- *sequence*: member i lies i strides from member 0 (RP-02),
- *reserved*: no buffer has a reserved byte, but for temporaries in what is reserved between runs,
- *overlap*: buffers of different roots that live at once share no byte,
- *separation*: separated buffers that live at once share no memory element, tails included,
- *access*: every call and copy finds its operands as its binding wants them, in every iteration (RP-03).

A life is the steps from the first that touches a buffer to the last, a Repeat being one step; what the host
reads or writes, or what is cleared when the program is loaded, lives always.

Cost: for each tile the square of its buffers, as columns; for accesses, each distinct arrangement once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.kernels.contract import check_addresses
from compiler.low.address import destinations_of, operands_of_calls, resolve_all, sources_of
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram, RepeatStep, Role, Step
from compiler.placement.ir import Placement
from compiler.placement.problem import Reserved
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, ranges_share_an_element


class Rule(Enum):
    """The rules above."""

    COUNT = "count"
    RANGE = "range"
    ALIGNMENT = "alignment"
    CLASS = "class"
    SHARING = "sharing"
    SEQUENCE = "sequence"
    RESERVED = "reserved"
    OVERLAP = "overlap"
    SEPARATION = "separation"
    ACCESS = "access"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One breach.

    Args:
        rule: what was broken.
        tile: where; -1 for *count*.
        buffers: the buffers concerned.
        message: how.
    """

    rule: Rule
    tile: int
    buffers: tuple[int, ...]
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"tile {self.tile}: {self.rule.value}: {self.message}"


def check(program: LowProgram, placement: Placement, reserved: Sequence[Reserved]) -> tuple[Violation, ...]:
    """All violations; none when the placement is right."""
    buffers = program.buffers
    if (
        placement.address.shape != buffers.tile.shape
        or placement.stride.shape != program.sequences.first.shape
    ):
        message = (
            f"{placement.address.shape} addresses and {placement.stride.shape} strides for "
            f"{buffers.tile.shape} buffers and {program.sequences.first.shape} sequences"
        )
        return (Violation(rule=Rule.COUNT, tile=-1, buffers=(), message=message),)
    return (
        *_buffer_violations(program, placement),
        *_reserved_violations(program, placement, reserved),
        *_pair_violations(program, placement),
        *_access_violations(program, placement),
    )


def _buffer_violations(program: LowProgram, placement: Placement) -> Iterator[Violation]:
    buffers, address = program.buffers, placement.address
    end = address + buffers.byte_count + buffers.tail
    in_sequence = buffers.sequence != NO_ROW
    first, stride = np.zeros_like(address), np.zeros_like(address)
    first[in_sequence] = address[program.sequences.first[buffers.sequence[in_sequence]]]
    stride[in_sequence] = placement.stride[buffers.sequence[in_sequence]]
    wrong: tuple[tuple[Rule, npt.NDArray[np.bool_]], ...] = (
        (Rule.RANGE, (address < SRAM_BASE) | (end > SRAM_END)),
        (Rule.ALIGNMENT, address % buffers.alignment != 0),
        (Rule.CLASS, (buffers.interleaved == 1) & (address < INTERLEAVED.base)),
        (Rule.SHARING, address != address[buffers.root] + buffers.displacement),
        (Rule.SEQUENCE, in_sequence & (address != first + stride * buffers.member)),
    )
    for rule, mask in wrong:
        for row in np.flatnonzero(mask).tolist():
            yield Violation(
                rule=rule,
                tile=int(buffers.tile[row]),
                buffers=(row,),
                message=f"buffer {row} is at {int(address[row]):#x}",
            )


def _reserved_violations(
    program: LowProgram, placement: Placement, reserved: Sequence[Reserved]
) -> Iterator[Violation]:
    buffers, address = program.buffers, placement.address
    for range_ in reserved:
        meets = (
            (buffers.tile == range_.tile)
            & (address < range_.start + range_.size)
            & (range_.start < address + buffers.byte_count)
            & (range_.size > 0)
            & ((buffers.role != Role.TEMPORARY) | (buffers.cleared != 0) | (not range_.between_runs))
        )
        for row in np.flatnonzero(meets).tolist():
            yield Violation(
                rule=Rule.RESERVED,
                tile=int(range_.tile),
                buffers=(row,),
                message=(
                    f"buffer {row} at {int(address[row]):#x} meets {range_.start:#x}.."
                    f"{range_.start + range_.size:#x}"
                ),
            )


def _pair_violations(program: LowProgram, placement: Placement) -> Iterator[Violation]:
    buffers, address = program.buffers, placement.address
    begin, end = _lives(program)
    for tile in np.unique(buffers.tile).tolist():
        rows = np.flatnonzero(buffers.tile == tile)
        start, stop = address[rows], address[rows] + buffers.byte_count[rows]
        wrong = (
            (start[:, None] < stop)
            & (start < stop[:, None])
            & (begin[rows][:, None] <= end[rows])
            & (begin[rows] <= end[rows][:, None])
            & (buffers.root[rows][:, None] != buffers.root[rows])
        )
        for one, other in np.argwhere(np.triu(wrong)).tolist():
            yield Violation(
                rule=Rule.OVERLAP,
                tile=tile,
                buffers=(int(rows[one]), int(rows[other])),
                message=(
                    f"buffers {rows[one]} at {int(start[one]):#x} and {rows[other]} at "
                    f"{int(start[other]):#x} share bytes and live at once"
                ),
            )
    first, second = program.separations.first, program.separations.second
    size = buffers.byte_count + buffers.tail
    # Outside of SRAM there are no elements; that is a violation of its own.
    inside = (address >= SRAM_BASE) & (address + size <= SRAM_END)
    both = np.flatnonzero(
        (begin[first] <= end[second]) & (begin[second] <= end[first]) & inside[first] & inside[second]
    )
    if len(both):
        one, other = first[both], second[both]
        meets = ranges_share_an_element(address[one], size[one], address[other], size[other])
        for pair in both[meets].tolist():
            one, other = int(first[pair]), int(second[pair])
            yield Violation(
                rule=Rule.SEPARATION,
                tile=int(buffers.tile[one]),
                buffers=(one, other),
                message=(
                    f"buffers {one} at {int(address[one]):#x} and {other} at {int(address[other]):#x} "
                    "share a memory element"
                ),
            )


def _lives(program: LowProgram) -> tuple[Column, Column]:
    """First and last moment of each buffer's life; the first is after the last where it has none."""
    moment, _ = _moments(program.steps)
    buffers = program.buffers
    recipients, transfers = program.recipients, program.transfers
    views = program.views
    names: list[tuple[Column, Column, Column]] = []
    for position in range(max((len(binding.accesses) for binding in program.bindings), default=0)):
        has = np.array([position < len(binding.accesses) for binding in program.bindings])
        rows = np.flatnonzero(has[program.calls.binding])
        view = program.calls.operand_views[program.calls.first_view[rows] + position]
        names.append((views.buffer[view], views.sequence[view], program.calls.step[rows]))
    names += [
        (program.copies.source, program.copies.source_sequence, program.copies.step),
        (program.copies.destination, program.copies.destination_sequence, program.copies.step),
        (transfers.source, transfers.source_sequence, transfers.step),
        (
            recipients.destination,
            recipients.destination_sequence,
            transfers.step[recipients.transfer],
        ),
    ]
    begin = np.full(len(buffers.tile), len(moment) + 1, dtype=np.int64)
    end = np.full(len(buffers.tile), -1, dtype=np.int64)
    sequence_begin = np.full(len(program.sequences.first), len(moment) + 1, dtype=np.int64)
    sequence_end = np.full(len(program.sequences.first), -1, dtype=np.int64)
    for buffer, sequence, step in names:
        np.minimum.at(begin, buffer, moment[step])
        np.maximum.at(end, buffer, moment[step])
        iterated = sequence != NO_ROW
        np.minimum.at(sequence_begin, sequence[iterated], moment[step][iterated])
        np.maximum.at(sequence_end, sequence[iterated], moment[step][iterated])
    members = np.flatnonzero(buffers.sequence != NO_ROW)
    begin[members] = np.minimum(begin[members], sequence_begin[buffers.sequence[members]])
    end[members] = np.maximum(end[members], sequence_end[buffers.sequence[members]])
    always = (buffers.role != int(Role.TEMPORARY)) | (buffers.cleared != 0)
    begin[always], end[always] = 0, len(moment)
    return begin, end


def _moments(steps: Sequence[Step], now: int = 0) -> tuple[Column, int]:
    """A number for each step, ascending, the same for a Repeat and all of its body; and the next number."""
    numbers: list[int] = []
    for step in steps:
        numbers.append(now)
        if isinstance(step, RepeatStep):
            inner, _ = _moments(step.body)
            numbers += [now] * len(inner)
        now += 1
    return np.array(numbers, dtype=np.int64), now


def _access_violations(program: LowProgram, placement: Placement) -> Iterator[Violation]:
    counts = _iterations(program.steps)
    calls, copies = program.calls, program.copies
    operands = operands_of_calls(calls, program.views)
    seen: dict[tuple[int, ...], str | None] = {}
    for iteration in range(max(counts, default=0)):
        of_calls = resolve_all(placement, operands, iteration).tolist()
        destinations = resolve_all(placement, destinations_of(copies), iteration).tolist()
        sources = resolve_all(placement, sources_of(copies), iteration).tolist()
        rows: list[tuple[str, int, int, int, tuple[int, ...]]] = [
            (
                "call",
                row,
                int(calls.step[row]),
                int(calls.binding[row]),
                tuple(of_calls[first : first + len(program.bindings[int(calls.binding[row])].accesses)]),
            )
            for row, first in enumerate(calls.first_view.tolist())
        ]
        rows += [
            ("copy", row, int(copies.step[row]), int(copies.binding[row]), (destinations[row], sources[row]))
            for row in range(len(copies.step))
        ]
        for what, row, step, binding, addresses in rows:
            if iteration >= counts[step]:
                continue
            key = (binding, *addresses)
            if key not in seen:
                seen[key] = check_addresses(program.bindings[binding], addresses)
            message = seen[key]
            if message is not None:
                table = calls if what == "call" else copies
                named = (
                    operands.buffer[calls.first_view[row] : calls.first_view[row] + len(addresses)]
                    if what == "call"
                    else np.array([copies.destination[row], copies.source[row]])
                )
                yield Violation(
                    rule=Rule.ACCESS,
                    tile=int(table.tile[row]),
                    buffers=tuple(named.tolist()),
                    message=f"{what} {row}, iteration {iteration}: {message}",
                )


def _iterations(steps: Sequence[Step], count: int = 1) -> list[int]:
    """How often each step runs in a run of what is around it."""
    counts: list[int] = []
    for step in steps:
        counts.append(count)
        if isinstance(step, RepeatStep):
            counts += _iterations(step.body, step.count)
    return counts
