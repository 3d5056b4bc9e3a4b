"""Cycles of many products at once: the formula of ``binding``, tabulated.

A planner compares tens of thousands of local shapes, and the formula walks a clock panel by panel. All that
one panel leaves to the next is the slot in which the supervisor continues: after it has waited for its
workers none is active. So a step from wait to wait is a function of six slots, one for each kind of launch
and of what the supervisor does behind it, and the walk of a whole product is a chain of look-ups. The steps
are walked with the very clock of the formula, once for each number of rows; results are equal to
``binding.cycles``.
"""

import functools
from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.kernels.gemm.binding import (
    LAST_COLUMNS,
    NEXT_COLUMNS,
    NEXT_PANEL,
    Kernel,
    begin,
    end,
    launches,
    weight_load,
)
from compiler.kernels.timing import Clock, issued, launched, waited
from compiler.target.costs import WORKER_ISSUE

SLOTS: Final = int(WORKER_ISSUE)
_BEHIND: Final = tuple(
    np.array(instructions, dtype=np.int64) for instructions in (NEXT_PANEL, NEXT_COLUMNS, LAST_COLUMNS)
)


def many_cycles(
    kernel: Kernel,
    rows: npt.NDArray[np.int64],
    k_groups: npt.NDArray[np.int64],
    column_groups: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Cycles [n] of calls of one kernel with such shapes [n], all of at least 1."""
    distinct, which = np.unique(rows, return_inverse=True)
    issues = np.array([_issues(kernel, int(count)) for count in distinct], dtype=np.int64)
    tables = _steps(issues.reshape(len(distinct), 3, SLOTS), *_BEHIND)
    clock = Clock()
    begin(kernel, clock)
    clock.wait()
    before, slot = clock.elapsed, clock.slot
    totals = _walk(tables, which.astype(np.int64), k_groups, column_groups, weight_load(kernel), slot)
    last = np.empty(SLOTS, dtype=np.int64)
    for number in range(SLOTS):
        ending = Clock(slot=number)
        end(kernel, ending)
        last[number] = ending.elapsed
    totals += before
    return totals + last[totals % SLOTS]


@functools.lru_cache(maxsize=1 << 14)
def _issues(kernel: Kernel, rows: int) -> tuple[tuple[int, ...], ...]:
    """What workers issue in each kind of launch."""
    issues = launches(kernel, rows)
    return issues.first, issues.starting, issues.accumulating


@compiled
def _steps(
    issues: npt.NDArray[np.int64],
    next_panel: npt.NDArray[np.int64],
    next_columns: npt.NDArray[np.int64],
    last_columns: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """Cycles [rows, launch, what follows, slot] from a launch to the end of the wait behind it.

    Args:
        issues: [rows, launch, workers].
        next_panel: cycles of the instructions that follow.
        next_columns: the same.
        last_columns: the same.
    """
    slots = issues.shape[2]
    steps = np.empty((len(issues), 3, 3, slots), dtype=np.int64)
    for row in range(len(issues)):
        for launch in range(3):
            for behind, instructions in enumerate((next_panel, next_columns, last_columns)):
                for slot in range(slots):
                    exits = np.full(slots, -1, dtype=np.int64)
                    now = launched(slot, exits, issues[row, launch])
                    for duration in instructions:
                        now = issued(now, exits) + duration
                    steps[row, launch, behind, slot] = waited(now, exits) - slot
    return steps


@compiled
def _walk(
    tables: npt.NDArray[np.int64],
    which: npt.NDArray[np.int64],
    k_groups: npt.NDArray[np.int64],
    column_groups: npt.NDArray[np.int64],
    load: int,
    first_slot: int,
) -> npt.NDArray[np.int64]:
    """Cycles [n] from the first panel on."""
    slots = tables.shape[3]
    totals = np.zeros(len(which), dtype=np.int64)
    columns = np.empty((3, slots), dtype=np.int64)
    for number in range(len(which)):
        table, panels, groups = tables[which[number]], k_groups[number], column_groups[number]
        # Cycles of a column group by the slot in which it begins: the first, others, the last; 0 is unknown.
        columns[:] = 0
        now = first_slot
        for column in range(groups):
            launch = 0 if column == 0 else 1
            last_behind = 1 if column + 1 < groups else 2
            kind = 0 if column == 0 else last_behind
            slot = now % slots
            if columns[kind, slot] == 0:
                columns[kind, slot] = _column(table, launch, last_behind, panels, load, slot)
            now += columns[kind, slot]
        totals[number] = now - first_slot
    return totals


@compiled
def _column(
    table: npt.NDArray[np.int64], launch: int, last_behind: int, panels: int, load: int, first_slot: int
) -> int:
    """Cycles of all panels of K for one group of columns."""
    slots = table.shape[2]
    now = first_slot
    panel = 0
    while panel < panels:
        behind = 0 if panel + 1 < panels else last_behind
        step = load + table[launch, behind, (now + load) % slots]
        now += step
        panel += 1
        if launch == 2 and behind == 0 and step % slots == 0:
            # Panels to come begin in the same slot, and all but the last take as long.
            now += step * (panels - 1 - panel)
            panel = panels - 1
        launch = 2
    return now - first_slot
