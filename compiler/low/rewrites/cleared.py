"""Lets zeros that a kernel needs be there from the start, instead of filling them in every run (AL-02).

Padding of K that an exchange does not bring is finite, or the product is NaN; rows behind the last one are
zero. If nothing but fills ever writes those bytes, they need to be filled once: when the program is loaded.
The buffer is then *cleared*, which the program's tables record and whose meaning ``low.ir`` has: whoever
places, verifies, executes or packages the program does their part, and the fills are gone.

A cleared buffer cannot lend its memory to others while it is not used. So a group of buffers, those that are
filled by the same steps for the same graph node, is cleared when that makes the program faster, with the most
that any tile has to hold at a time no more than before. Faster means that the tile which works longest
between two barriers works less. Groups are tried in the order of their first fill until none is left that
pays, each on top of those before: a trial costs what counting memory does, linear in the program.

Not for buffers that others share, for members of sequences, and for what the host reads or writes; nor where
something overwrites filled bytes that are needed again as zeros.

Rejected: scratch that is merely finite, in memory that is shared with other F16 values. It would need no
memory of its own; but the first NaN that an input brings would stay in the padding, and every later run would
be wrong.
"""

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from compiler.low.accesses import subtract
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, ComputeStep, LowProgram, RepeatStep, Role, Step
from compiler.low.prices import PerTile, cycles_of_bindings, work_of_steps
from compiler.low.rewrites.clears import filled_views, fills_of
from compiler.low.rewrites.hazards import touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.tables import without_calls
from compiler.low.rewrites.uses import Uses
from compiler.low.steps import in_order


def with_cleared_scratch(program: LowProgram) -> LowProgram:
    """The program with buffers cleared at load, and without their fills, where that makes it faster."""
    groups = _groups(program)
    if not groups:
        return program
    work = work_of_steps(program, sum(1 for _ in in_order(program.steps)))
    held = most_held(program, touches_of(program))
    cleared, dropped = program.buffers.cleared.copy(), np.zeros(len(program.calls.step), dtype=np.bool_)
    place = 0
    while place < len(groups):
        buffers, fills = groups[place]
        place += 1
        less = _without(program, work, fills)
        if _busiest(program.steps, less) >= _busiest(program.steps, work):
            continue
        tried = cleared.copy()
        tried[buffers] = 1
        tried.flags.writeable = False
        trial = dataclasses.replace(program, buffers=dataclasses.replace(program.buffers, cleared=tried))
        if most_held(trial, touches_of(trial)) <= held:
            cleared, work = tried, less
            dropped[fills] = True
            # Another tile works longest now: what did not pay before may.
            del groups[place - 1]
            place = 0
    if not dropped.any():
        return program
    buffers = dataclasses.replace(program.buffers, cleared=cleared)
    return without_calls(dataclasses.replace(program, buffers=buffers), dropped)


def _groups(program: LowProgram) -> list[tuple[Column, Column]]:
    """Buffers that can be cleared, and their fills: a group for each node and each choice of steps."""
    fills = fills_of(program)
    buffers = program.buffers
    filled = program.views.buffer[filled_views(program)]
    is_shared = np.bincount(buffers.root, minlength=len(buffers.root)) > 1
    is_apart = ~is_shared & (buffers.role == Role.TEMPORARY) & (buffers.sequence == NO_ROW)
    fills = fills[is_apart[filled[fills]]]
    if not len(fills):
        return []
    uses, own = Uses(program), frozenset(fills.tolist())
    of_buffer: dict[int, list[int]] = {}
    refused: set[int] = set()
    stored: dict[int, tuple[tuple[int, int], ...]] = {}
    for place, call in uses.of_calls(fills):
        buffer = int(filled[call])
        of_buffer.setdefault(buffer, []).append(call)
        if buffer not in stored:
            stored[buffer] = uses.stored(uses.storage(place), own)
        written = uses.written(place)
        overwritten = subtract(written, subtract(written, stored[buffer]))
        if overwritten and not uses.is_idle(place, overwritten):
            refused.add(buffer)
    groups: dict[tuple[int, ...], tuple[list[int], list[int]]] = {}
    for buffer, calls in of_buffer.items():
        if buffer not in refused:
            steps = sorted(set(program.calls.step[calls].tolist()))
            chosen = groups.setdefault((*steps, -1, int(buffers.node[buffer])), ([], []))
            chosen[0].append(buffer)
            chosen[1].extend(calls)
    return [
        (np.array(chosen, dtype=np.int64), np.array(calls, dtype=np.int64))
        for _, (chosen, calls) in sorted(groups.items())
    ]


def _without(program: LowProgram, work: PerTile, calls: Column) -> PerTile:
    """Work [steps, tiles] without some calls."""
    left, table = work.copy(), program.calls
    cycles = cycles_of_bindings(program)[table.binding[calls]]
    np.subtract.at(left, (table.step[calls], table.tile[calls]), cycles)
    return left


def _busiest(steps: Sequence[Step], work: PerTile) -> int:
    """Cycles of the tiles that work longest between barriers, in all; the ends of a Repeat count as such."""
    return sum(times * int(work[list(run)].sum(axis=0).max()) for times, run in _runs(steps))


def _runs(steps: Sequence[Step], times: int = 1) -> Iterator[tuple[int, list[int]]]:
    """Compute steps that follow one another, and how often they run."""
    run: list[int] = []
    for step in steps:
        if isinstance(step, ComputeStep):
            run.append(step.step)
            continue
        if run:
            yield times, run
        run = []
        if isinstance(step, RepeatStep):
            yield from _runs(step.body, times * step.count)
    if run:
        yield times, run
