"""The order of steps, as tables and as a walk.

Steps are a small tree; what lies under them are millions of rows with step numbers. Whoever asks something of
all rows at once ("is it in an exchange step?", "how often does it run?") indexes these columns by step
number.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never, final

import numpy as np

from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, ComputeStep, ExchangeStep, RepeatStep, Step


class StepKind(IntEnum):
    """Which of the three a step is."""

    COMPUTE = 0
    EXCHANGE = 1
    REPEAT = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTable:
    """Facts of each step, as columns [steps].

    Args:
        kind: ``StepKind``.
        repeat: step of the innermost Repeat around it, or NO_ROW.
        iterations: how often that Repeat runs its body; 1 without one.
        first: first step of what must be seen as one interval of time: the step itself or, inside a Repeat,
            the outermost Repeat around it.
        last: last step of it: the step itself, or the last one in the body of that Repeat.
    """

    kind: Column
    repeat: Column
    iterations: Column
    first: Column
    last: Column


def table_of(steps: Sequence[Step]) -> StepTable:
    """The columns of correctly numbered steps."""
    count = sum(1 for _ in in_order(steps))
    numbers = np.arange(count, dtype=np.int64)
    table = StepTable(
        kind=np.zeros(count, dtype=np.int64),
        repeat=np.full(count, NO_ROW, dtype=np.int64),
        iterations=np.ones(count, dtype=np.int64),
        first=numbers.copy(),
        last=numbers.copy(),
    )
    for step, around in in_order(steps):
        match step:
            case ComputeStep():
                table.kind[step.step] = StepKind.COMPUTE
            case ExchangeStep():
                table.kind[step.step] = StepKind.EXCHANGE
            case RepeatStep():
                table.kind[step.step] = StepKind.REPEAT
                end = step.step + sum(1 for _ in in_order(step.body))
                if around is None:
                    table.first[step.step : end + 1] = step.step
                    table.last[step.step : end + 1] = end
            case _:
                assert_never(step)
        if around is not None:
            table.repeat[step.step] = around.step
            table.iterations[step.step] = around.count
    for column in (table.kind, table.repeat, table.iterations, table.first, table.last):
        column.flags.writeable = False
    return table


def in_order(
    steps: Sequence[Step], around: RepeatStep | None = None
) -> Iterator[tuple[Step, RepeatStep | None]]:
    """Every step once, in the order of its number, with the innermost Repeat around it."""
    for step in steps:
        yield step, around
        if isinstance(step, RepeatStep):
            yield from in_order(step.body, step)


def executions(steps: Sequence[Step], iteration: int = 0) -> Iterator[tuple[ComputeStep | ExchangeStep, int]]:
    """Every run of a compute or exchange step, in time, with the iteration of the innermost Repeat around it.

    Outside of any Repeat the iteration is 0.
    """
    for step in steps:
        match step:
            case ComputeStep() | ExchangeStep():
                yield step, iteration
            case RepeatStep():
                for number in range(step.count):
                    yield from executions(step.body, number)
            case _:
                assert_never(step)


def rows_by_step(step: Column, step_count: int) -> tuple[Column, Column]:
    """Rows sorted by step, and where each step begins among them [steps + 1]; row order within a step."""
    order = np.argsort(step, kind="stable").astype(np.int64)
    return order, np.searchsorted(step[order], np.arange(step_count + 1)).astype(np.int64)
