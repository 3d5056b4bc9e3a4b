"""How rewrites change tables: rows are left out or go to other steps, and what nothing names any more goes.

Steps are numbered anew in program order, so that a rewrite may give the steps that it makes any unused
numbers. A compute or exchange step without rows, and a Repeat without steps, do nothing and are left out.

Bindings and geometry are interned. What only rows that are gone used is dropped, so that whoever looks at the
program sees the work that is left and no other (AL-05).
"""

import dataclasses
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import ranges
from compiler.low.ids import NO_ROW, StepId
from compiler.low.ir import Column, ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step

Mask: TypeAlias = npt.NDArray[np.bool_]


def with_steps(
    program: LowProgram,
    steps: tuple[Step, ...],
    *,
    of_call: Column | None = None,
    of_copy: Column | None = None,
    of_transfer: Column | None = None,
) -> LowProgram:
    """The program with other steps, whose rows are in the steps that the columns say; None for the same."""
    calls, copies, transfers = (
        program.calls.step if of_call is None else of_call,
        program.copies.step if of_copy is None else of_copy,
        program.transfers.step if of_transfer is None else of_transfer,
    )
    numbers: dict[int, int] = {}
    used = set(np.unique(np.concatenate([calls, copies, transfers])).tolist())
    numbered = _numbered(steps, used, numbers)

    def renumbered(column: Column) -> Column:
        distinct, place = _distinct(column)
        return _frozen(np.array([numbers[step] for step in distinct.tolist()], dtype=np.int64)[place])

    return dataclasses.replace(
        program,
        steps=numbered,
        calls=dataclasses.replace(program.calls, step=renumbered(calls)),
        copies=dataclasses.replace(program.copies, step=renumbered(copies)),
        transfers=dataclasses.replace(program.transfers, step=renumbered(transfers)),
    )


def without_calls(program: LowProgram, dropped: Mask) -> LowProgram:
    """The program without some calls [calls]; their views, and bindings and forms of no other, go too."""
    calls, views = program.calls, program.views
    kept = np.flatnonzero(~dropped)
    counts = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    of_call = counts[calls.binding[kept]]
    view = calls.operand_views[np.repeat(calls.first_view[kept], of_call) + ranges(of_call)]
    used_views, view = _distinct(view)
    named = np.concatenate([calls.binding[kept], program.copies.binding])
    bindings, binding = _distinct(named)
    forms = np.unique(views.form[used_views])
    forms = forms[forms != NO_ROW]
    form = views.form[used_views]
    left = dataclasses.replace(
        program,
        bindings=tuple(map(program.bindings.__getitem__, bindings.tolist())),
        forms=tuple(map(program.forms.__getitem__, forms.tolist())),
        views=dataclasses.replace(
            views,
            buffer=_frozen(views.buffer[used_views]),
            origin=_frozen(views.origin[used_views]),
            sequence=_frozen(views.sequence[used_views]),
            form=_frozen(np.where(form == NO_ROW, NO_ROW, np.searchsorted(forms, form))),
        ),
        calls=dataclasses.replace(
            calls,
            step=_frozen(calls.step[kept]),
            tile=_frozen(calls.tile[kept]),
            binding=_frozen(binding[: len(kept)]),
            first_view=_frozen(np.cumsum(of_call) - of_call),
            operand_views=_frozen(view),
            node=_frozen(calls.node[kept]),
        ),
        copies=dataclasses.replace(program.copies, binding=_frozen(binding[len(kept) :])),
    )
    return with_steps(left, left.steps)


def with_before(steps: tuple[Step, ...], at: StepId, added: tuple[Step, ...]) -> tuple[Step, ...]:
    """Steps with others before one of them."""
    found: list[Step] = []
    for step in steps:
        match step:
            case RepeatStep(step=number, count=count, body=body):
                found.append(RepeatStep(step=number, count=count, body=with_before(body, at, added)))
            case ComputeStep(step=number) | ExchangeStep(step=number):
                found += [*added, step] if number == at else [step]
            case _:
                assert_never(step)
    return tuple(found)


def _numbered(steps: tuple[Step, ...], used: set[int], numbers: dict[int, int]) -> tuple[Step, ...]:
    """Steps with rows, in order; ``numbers`` takes their new numbers by the present ones."""
    found: list[Step] = []
    for step in steps:
        match step:
            case ComputeStep(step=number) | ExchangeStep(step=number):
                if number in used:
                    numbers[number] = len(numbers)
                    found.append(dataclasses.replace(step, step=StepId(numbers[number])))
            case RepeatStep(step=number, body=body):
                # A Repeat is numbered before its body, and is there only if the body is.
                numbers[number] = len(numbers)
                inside = _numbered(body, used, numbers)
                if inside:
                    found.append(dataclasses.replace(step, step=StepId(numbers[number]), body=inside))
                else:
                    del numbers[number]
            case _:
                assert_never(step)
    return tuple(found)


def _distinct(column: Column) -> tuple[Column, Column]:
    """The numbers of a column, ascending, and which of them is in each row."""
    numbers, place = np.unique(column, return_inverse=True)
    return numbers, place.astype(np.int64)


def _frozen(column: npt.NDArray[np.int64]) -> Column:
    frozen = column.astype(np.int64)
    frozen.flags.writeable = False
    return frozen
