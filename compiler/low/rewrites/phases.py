"""Merges exchange phases, moving local work out from between them (LC-02, LC-06, MG-07).

Each operation makes phases of its own. Two of one block, with nothing but compute steps between, can be one
when the later one can move to the place of the earlier one:

    work before | phase 1 | work between | phase 2 | work behind

The later phase may not be in conflict with the earlier. Of the work between, what the later phase is in
conflict with (it packs what is sent, or clears what is received) moves before the first phase, together with
whatever it shares bytes with; that must not be in conflict with the first phase. The rest stays behind the
merged phase. Nothing moves into or out of a Repeat, and the order of rows on a tile changes in no other way.

**Whether it pays** is the difference of what changes, as ``low.prices`` has it: the barrier before a phase
waits for the tile that works longest, so that work which moves counts where it leaves and where it goes. And
the most that any tile has to hold at a time may not become more: values live longer when phases are one. Nor
may the row of a tile become longer than rows may be. Pairs are tried in program order
until none is left that pays: quadratic in phases at worst, and n log n in rows for each trial.

Rejected: merging whenever it is legal. Rows get longer and tiles wait for each other at other times; a
program with a barrier less can be the slower one.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.low.limits import row_words_of
from compiler.low.prices import cycles_of_bindings, loads_of, work_of_steps
from compiler.low.project import WorkKind
from compiler.low.rewrites.hazards import Touches, conflicts, touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.tables import with_before, with_steps
from compiler.low.steps import in_order
from compiler.target.costs import ROW_BUDGET
from compiler.target.units import WORD_BYTES

Mask: TypeAlias = npt.NDArray[np.bool_]


def with_merged_phases(program: LowProgram) -> LowProgram:
    """The program with phases merged where that makes it faster."""
    declined: set[tuple[int, int]] = set()
    while True:
        touches = touches_of(program)
        for pair in _pairs(program.steps):
            key = _rows_of(program, pair)
            if key in declined:
                continue
            merged = _merged(program, touches, pair)
            if merged is not None:
                program = merged
                break
            declined.add(key)
        else:
            return program


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Pair:
    """Two phases of a block, and the compute steps before, between and behind them, up to the next others."""

    first: StepId
    second: StepId
    before: tuple[StepId, ...]
    between: tuple[StepId, ...]
    behind: tuple[StepId, ...]


def _pairs(steps: Sequence[Step]) -> Iterator[_Pair]:
    """Phases of one block with only compute steps between, in program order."""
    runs: list[list[Step]] = [[]]
    for step in steps:
        if isinstance(step, RepeatStep):
            yield from _pairs(step.body)
            runs.append([])
        else:
            runs[-1].append(step)
    for run in runs:
        phases = [place for place, step in enumerate(run) if isinstance(step, ExchangeStep)]
        ends = [-1, *phases, len(run)]
        for number in range(1, len(phases)):
            places = ends[number - 1 : number + 3]
            work = [
                tuple(step.step for step in run[start + 1 : stop])
                for start, stop in itertools.pairwise(places)
            ]
            yield _Pair(
                first=run[places[1]].step,
                second=run[places[2]].step,
                before=work[0],
                between=work[1],
                behind=work[2],
            )


def _rows_of(program: LowProgram, pair: _Pair) -> tuple[int, int]:
    """The first transfer of each phase: what tells pairs apart when steps have been numbered anew."""
    step = program.transfers.step
    return int(np.argmax(step == pair.first)), int(np.argmax(step == pair.second))


def _merged(program: LowProgram, touches: Touches, pair: _Pair) -> LowProgram | None:
    """The program with the two as one; None where that is not allowed or does not pay."""
    earlier = touches.take(touches.step == pair.first)
    later = touches.take(touches.step == pair.second)
    if conflicts(later, earlier).any():
        return None
    between = touches.take(np.isin(touches.step, pair.between))
    is_moved = _needed_first(between, later)
    if conflicts(between.take(is_moved), earlier).any():
        return None
    calls, copies = (
        np.unique(between.row[is_moved & (between.kind == kind)]) for kind in (WorkKind.CALL, WorkKind.COPY)
    )
    if not (_pays(program, pair, between.take(is_moved)) and _fits(program, pair)):
        return None
    # What moves is in steps of its own, numbered behind all others until they are numbered anew.
    count = sum(1 for _ in in_order(program.steps))
    of_call, of_copy = program.calls.step.copy(), program.copies.step.copy()
    of_call[calls] += count
    of_copy[copies] += count
    of_transfer = np.where(program.transfers.step == pair.second, pair.first, program.transfers.step)
    moved = tuple(ComputeStep(step=StepId(step + count)) for step in pair.between)
    merged = with_steps(
        program,
        with_before(program.steps, pair.first, moved),
        of_call=of_call,
        of_copy=of_copy,
        of_transfer=of_transfer,
    )
    if most_held(merged, touches_of(merged)) > most_held(program, touches):
        return None
    return merged


def _fits(program: LowProgram, pair: _Pair) -> bool:
    """Whether the rows of both phases in one are no longer than rows may be."""
    transfers, recipients = program.transfers, program.recipients
    steps = (pair.first, pair.second)
    sent = np.flatnonzero(np.isin(transfers.step, steps)).astype(np.int64)
    received = np.flatnonzero(np.isin(transfers.step[recipients.transfer], steps)).astype(np.int64)
    return WORD_BYTES * int(row_words_of(program, sent, received).max()) <= ROW_BUDGET


def _needed_first(between: Touches, later: Touches) -> Mask:
    """[between] rows that the later phase is in conflict with, and all that these share bytes with."""
    rows, of_touch = distinct_rows(np.stack([between.kind, between.row], axis=1))
    needed = np.zeros(len(rows), dtype=np.bool_)
    needed[of_touch[conflicts(between, later)]] = True
    while True:
        inside = needed[of_touch]
        added = of_touch[~inside][conflicts(between.take(~inside), between.take(inside))]
        if not len(added):
            return inside
        needed[added] = True


def _pays(program: LowProgram, pair: _Pair, moved: Touches) -> bool:
    """Whether the phases and the work around them take less time together when these rows move."""
    work = work_of_steps(program, sum(1 for _ in in_order(program.steps)))
    before, between, behind = (
        work[list(steps)].sum(axis=0) for steps in (pair.before, pair.between, pair.behind)
    )
    hoisted = np.zeros(program.tile_count, dtype=np.int64)
    cycles = cycles_of_bindings(program)
    for table, kind in ((program.calls, WorkKind.CALL), (program.copies, WorkKind.COPY)):
        rows = np.unique(moved.row[moved.kind == kind])
        np.add.at(hoisted, table.tile[rows], cycles[table.binding[rows]])
    first, second = (
        loads_of(
            program,
            np.flatnonzero(program.transfers.step == step),
            np.flatnonzero(program.transfers.step[program.recipients.transfer] == step),
        )
        for step in (pair.first, pair.second)
    )
    apart = before.max() + first.cycles + between.max() + second.cycles + behind.max()
    together = first.together(second).cycles
    together += (before + hoisted).max() + (between - hoisted + behind).max()
    return bool(together < apart)
