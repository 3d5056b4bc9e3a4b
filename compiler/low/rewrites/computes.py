"""Puts compute steps that follow one another into one, where nothing gets longer by it.

A compute step is no barrier: tiles go from one to the next on their own, and each runs its copies of a step
before its calls. Two steps in a row are one step exactly when no copy of the second has to wait for a call of
the first, and rows of the second are behind those of the first in each table. That makes programs shorter to
read, to place and to emit, not faster; and since values live in steps, it must not raise what any tile has to
hold at a time.
"""

from collections.abc import Sequence

import numpy as np

from compiler.low.ir import Column, ComputeStep, LowProgram, RepeatStep, Step
from compiler.low.project import WorkKind
from compiler.low.rewrites.hazards import Touches, conflicts, touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.tables import with_steps


def with_joined_computes(program: LowProgram) -> LowProgram:
    """The program with as few compute steps as that allows."""
    held = most_held(program, touches_of(program))
    place = 0
    while True:
        pairs = _pairs(program.steps)
        if place >= len(pairs):
            return program
        first, second = pairs[place]
        joined = _joined(program, first, second)
        if joined is None or most_held(joined, touches_of(joined)) > held:
            place += 1
        else:
            program = joined


def _pairs(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Compute steps of one block with nothing between."""
    found: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        if isinstance(step, RepeatStep):
            found += _pairs(step.body)
        elif number and isinstance(step, ComputeStep) and isinstance(steps[number - 1], ComputeStep):
            found.append((steps[number - 1].step, step.step))
    return found


def _joined(program: LowProgram, first: int, second: int) -> LowProgram | None:
    """The program with the rows of both in the first; None where they must stay apart."""
    for table in (program.calls, program.copies):
        earlier, later = (np.flatnonzero(table.step == step) for step in (first, second))
        if len(earlier) and len(later) and earlier[-1] > later[0]:
            return None
    touches = touches_of(program)
    calls = _touches(touches, first, WorkKind.CALL)
    if conflicts(_touches(touches, second, WorkKind.COPY), calls).any():
        return None

    def moved(column: Column) -> Column:
        return np.where(column == second, first, column)

    return with_steps(
        program,
        program.steps,
        of_call=moved(program.calls.step),
        of_copy=moved(program.copies.step),
    )


def _touches(touches: Touches, step: int, kind: WorkKind) -> Touches:
    return touches.take((touches.step == step) & (touches.kind == kind))
