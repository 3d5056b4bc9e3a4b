"""What must be placed on a tile: the part of a low program that the solvers see.

**Requests.** A request is placed as one: a root with what shares its storage, or a whole sequence. It is a
rigid set of *spans*, each with an offset from the request's base, so that choosing the base places all of
them. Members of a sequence lie at one stride (RP-02): the tightest that their alignment admits, at first, and
``with_strides`` is the same problem with others. Spans of one
request may share bytes; spans of different requests may when their lifetimes do not meet. A tail only has to
be memory: it may lie over anything.

**Lifetimes** are intervals of steps, ends included: from the first step that touches the buffer to the last.
Whatever a Repeat's body touches lives for the whole Repeat. Parameters, inputs, outputs and what is cleared
when the program is loaded live for the whole program. A buffer that nothing touches never lives.

**Domains.** Buffers that must be interleaved lie in that region; others lie anywhere in SRAM, across the
border of the regions if need be, since no access of theirs is wider than one memory array. Ranges that are
reserved on a tile hold nothing at any time, or nothing that lives for the whole program: what the host uses
between runs is free for temporaries, which live in steps only.

**Canonical form.** Tiles fall into few classes. A problem is told in numbers of its own, lifetimes by rank,
and ``digest`` is equal exactly for equal problems, which are then solved once.

The executable limit concerns code, which is not placed here.
"""

import dataclasses
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.owners import TileId
from compiler.low.address import (
    AddressOperands,
    Members,
    destinations_of,
    operands_of_calls,
    sources_of,
)
from compiler.low.ids import NO_ROW, SequenceId
from compiler.low.ir import Column, LowProgram, Role
from compiler.low.steps import table_of
from compiler.target.memory import SRAM_BASE
from compiler.target.runtime_layout import RuntimeLayout

NEVER: Final = (np.iinfo(np.int64).max, -1)
"""First and last step of what never lives: it meets nothing."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """Bytes of a tile that no buffer may have.

    Args:
        tile: logical tile.
        start: byte address.
        size: bytes.
        between_runs: only before the first step and after the last: temporaries may lie there.
    """

    tile: TileId
    start: int
    size: int
    between_runs: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileProblem:
    """One tile's requests.

    Args:
        tile: logical tile.
        alignment: [requests] the base is a multiple of it.
        request: [spans] whose request it is part of; ascending.
        offset: [spans] bytes from the request's base.
        member: [spans] how many strides of the sequence the offset has in it; 0 without one.
        size: [spans] bytes.
        tail: [spans] bytes behind it that must be memory.
        interleaved: [spans] 1 where it must be in the interleaved region.
        first, last: [spans] lifetime, in ranks of ``steps``; NEVER without one.
        resident: [spans] 1 where it lives for the whole program and something is reserved between runs.
        apart: [pairs, 2] spans that must not share a memory element while both live.
        blocked: [ranges, 2] reserved addresses (start, stop), ascending, disjoint.
        between: [ranges, 2] the same, of those that only residents may not have.
        buffer: [spans] the buffer. Not part of the canonical form, like the following.
        sequence: [requests] the sequence placed by the request, or NO_ROW.
        stride: [requests] its stride in bytes; 0 without one.
        steps: [ranks] steps of the program.
    """

    tile: TileId
    alignment: Column
    request: Column
    offset: Column
    member: Column
    size: Column
    tail: Column
    interleaved: Column
    first: Column
    last: Column
    resident: Column
    apart: Column
    blocked: Column
    between: Column
    buffer: Column
    sequence: Column
    stride: Column
    steps: Column

    def digest(self) -> bytes:
        """SHA-256 of the canonical form."""
        canonical = hashlib.sha256()
        for column in (
            self.alignment,
            self.request,
            self.offset,
            self.member,
            self.size,
            self.tail,
            self.interleaved,
            self.first,
            self.last,
            self.resident,
            self.apart,
            self.blocked,
            self.between,
        ):
            canonical.update(len(column).to_bytes(8, "little"))
            canonical.update(np.ascontiguousarray(column).tobytes())
        return canonical.digest()

    def spans_of(self, request: int) -> slice:
        """The spans of a request."""
        first, last = np.searchsorted(self.request, [request, request + 1]).tolist()
        return slice(first, last)


def with_strides(problem: TileProblem, stride: Column) -> TileProblem:
    """The same problem with other strides [requests]."""
    change = (stride - problem.stride)[problem.request]
    return dataclasses.replace(problem, stride=stride, offset=problem.offset + problem.member * change)


def members_of(problem: TileProblem) -> Column:
    """[requests] members of each sequence that ever lives; 1 for what is none."""
    members = np.ones(len(problem.alignment), dtype=np.int64)
    lives = problem.last != NEVER[1]
    np.maximum.at(members, problem.request[lives], problem.member[lives] + 1)
    return members


def only(problem: TileProblem, requests: Sequence[int]) -> TileProblem:
    """The problem with some of its requests, ascending, and no others."""
    chosen = np.array(requests, dtype=np.int64)
    spans = np.isin(problem.request, chosen)
    position = np.cumsum(spans) - 1
    both = spans[problem.apart].all(axis=1)
    return dataclasses.replace(
        problem,
        alignment=problem.alignment[chosen],
        request=np.searchsorted(chosen, problem.request[spans]),
        offset=problem.offset[spans],
        member=problem.member[spans],
        size=problem.size[spans],
        tail=problem.tail[spans],
        interleaved=problem.interleaved[spans],
        first=problem.first[spans],
        last=problem.last[spans],
        resident=problem.resident[spans],
        apart=position[problem.apart[both]],
        buffer=problem.buffer[spans],
        sequence=problem.sequence[chosen],
        stride=problem.stride[chosen],
    )


def runtime_ranges(layout: RuntimeLayout, tile_count: int) -> tuple[Reserved, ...]:
    """What the runtime has on each tile: entry, lower code, the host's window and the state (TA-06)."""
    window = layout.window
    ranges = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=window.start - SRAM_BASE),
        Reserved(tile=TileId(0), start=window.start, size=window.size, between_runs=True),
        Reserved(tile=TileId(0), start=window.end, size=layout.data_start - window.end),
    )
    return tuple(
        dataclasses.replace(range_, tile=TileId(tile)) for tile in range(tile_count) for range_ in ranges
    )


def problems_of(program: LowProgram, reserved: Sequence[Reserved]) -> tuple[TileProblem, ...]:
    """The problem of each tile that has buffers, by tile.

    Raises:
        ValueError: a reserved range is negative or of no tile of the build.
    """
    for range_ in reserved:
        if range_.size < 0 or not 0 <= range_.tile < program.tile_count:
            raise ValueError(f"{range_} is no range of a tile of the build")
    buffers, pairs = program.buffers, program.separations
    first, last = lifetimes(program)
    order = np.argsort(buffers.tile, kind="stable")
    bounds = np.searchsorted(buffers.tile[order], np.arange(program.tile_count + 1))
    pair_order = np.argsort(buffers.tile[pairs.first], kind="stable")
    pair_bounds = np.searchsorted(buffers.tile[pairs.first][pair_order], np.arange(program.tile_count + 1))
    blocked: list[list[tuple[int, int]]] = [[] for _ in range(program.tile_count)]
    between: list[list[tuple[int, int]]] = [[] for _ in range(program.tile_count)]
    for range_ in reserved:
        if range_.size:
            kind = between if range_.between_runs else blocked
            kind[range_.tile].append((range_.start, range_.start + range_.size))
    return tuple(
        _problem(
            program,
            TileId(tile),
            order[bounds[tile] : bounds[tile + 1]],
            pair_order[pair_bounds[tile] : pair_bounds[tile + 1]],
            (first, last),
            (blocked[tile], between[tile]),
        )
        for tile in range(program.tile_count)
        if bounds[tile] < bounds[tile + 1]
    )


def lifetimes(program: LowProgram) -> tuple[Column, Column]:
    """First and last step [buffers] of each buffer's life; NEVER where it has none."""
    buffers, steps, members = program.buffers, table_of(program.steps), Members(program)
    first = np.full(len(buffers.tile), NEVER[0], dtype=np.int64)
    last = np.full(len(buffers.tile), NEVER[1], dtype=np.int64)
    for operands, step in _touched(program):
        np.minimum.at(first, operands.buffer, steps.first[step])
        np.maximum.at(last, operands.buffer, steps.last[step])
    for sequence in range(len(program.sequences.first)):
        rows = members.of(SequenceId(sequence))
        # An operand along a sequence names the first member and touches all.
        first[rows], last[rows] = first[rows].min(), last[rows].max()
    resident = _residents(program)
    first[resident], last[resident] = 0, max(len(steps.kind) - 1, 0)
    return first, last


def _residents(program: LowProgram) -> npt.NDArray[np.bool_]:
    """[buffers] which of them runs find as it was, or the host reads or writes between them."""
    return (program.buffers.role != Role.TEMPORARY) | (program.buffers.cleared == 1)


def _touched(program: LowProgram) -> list[tuple[AddressOperands, Column]]:
    """Every address operand of the program with its step."""
    calls, copies = program.calls, program.copies
    transfers, recipients = program.transfers, program.recipients
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    call = np.repeat(np.arange(len(calls.step)), counts[calls.binding])
    offset = np.cumsum(counts[calls.binding]) - counts[calls.binding]
    named = calls.first_view[call] + np.arange(len(call)) - offset[call]
    return [
        (operands_of_calls(calls, program.views).take(named), calls.step[call]),
        (sources_of(copies), copies.step),
        (destinations_of(copies), copies.step),
        (sources_of(transfers), transfers.step),
        (destinations_of(recipients), transfers.step[recipients.transfer]),
    ]


def _problem(
    program: LowProgram,
    tile: TileId,
    rows: Column,
    pairs: Column,
    lives: tuple[Column, Column],
    reserved: tuple[list[tuple[int, int]], list[tuple[int, int]]],
) -> TileProblem:
    buffers = program.buffers
    root = buffers.root[rows]
    sequence = buffers.sequence[root]
    leader = root.copy()
    leader[sequence != NO_ROW] = program.sequences.first[sequence[sequence != NO_ROW]]
    leaders, request = np.unique(leader, return_inverse=True)
    sequences = buffers.sequence[leaders]
    alignment = buffers.alignment[leaders]
    stride = np.where(sequences == NO_ROW, 0, -(-buffers.byte_count[leaders] // alignment) * alignment)
    order = np.argsort(request, kind="stable")
    rows, request = rows[order], request[order]
    live = lives[1][rows] != NEVER[1]
    steps = np.unique(np.concatenate([lives[0][rows][live], lives[1][rows][live]]))
    first = np.where(live, np.searchsorted(steps, lives[0][rows]), NEVER[0])
    last = np.where(live, np.searchsorted(steps, lives[1][rows]), NEVER[1])
    by_buffer = np.argsort(rows)
    ends = np.stack([program.separations.first[pairs], program.separations.second[pairs]], axis=1)
    apart = np.sort(by_buffer[np.searchsorted(rows[by_buffer], ends)], axis=1)
    return TileProblem(
        tile=tile,
        alignment=alignment,
        request=request.astype(np.int64),
        offset=buffers.displacement[rows] + buffers.member[rows] * stride[request],
        member=buffers.member[rows],
        size=buffers.byte_count[rows],
        tail=buffers.tail[rows],
        interleaved=buffers.interleaved[rows],
        first=first,
        last=last,
        resident=_residents(program)[rows].astype(np.int64) * bool(reserved[1]),
        apart=np.unique(apart, axis=0),
        blocked=_union(reserved[0]),
        between=_union(reserved[1]),
        buffer=rows,
        sequence=sequences,
        stride=stride,
        steps=steps,
    )


def _union(ranges: list[tuple[int, int]]) -> Column:
    union: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], stop))
        else:
            union.append((start, stop))
    return np.array(union, dtype=np.int64).reshape(-1, 2)
