"""Plain instances: buffers with a life and a size, one memory of a capacity, nothing else.

The form in which placement problems are published, as a table with the columns ``id``, ``lower``, ``upper``
and ``size``: a buffer lives in the moments from ``lower`` up to, not including, ``upper``. Solved by the same
portfolio and search as tiles, part by part in time, within a minute for a thousand buffers.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.errors import InvalidInput
from compiler.low.ir import Column
from compiler.placement.firstfit import ORDERS, Bases, first_fit
from compiler.placement.model import plain_model
from compiler.placement.search import Verdict, search
from compiler.placement.solve import parts_in_time

_MOST_NODES: Final = 1_000_000
"""Decisions for an instance. Policy, as is the next: below a minute."""

_MOST_WORK: Final = 80_000_000
"""Decisions times buffers of their part, for an instance: a decision takes 0.25 to 0.5 microseconds for each
buffer. Measured."""

_COLUMNS: Final = ("id", "lower", "upper", "size")
_LARGEST: Final = 1 << 48
"""Numbers up to here can be added up without overflow."""

_FILTER_NODES: Final = 2_000

_MANY: Final = 2_000
"""Buffers of a part up to which it is searched; a table of all pairs would be too large for more."""

_STAGE: Final = "placement"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainProblem:
    """An instance.

    Args:
        names: [buffers] what the file calls them.
        lower: [buffers] first moment of life.
        upper: [buffers] the moment after the last, above ``lower``.
        size: [buffers] bytes, 1 or more.
    """

    names: tuple[str, ...]
    lower: Column
    upper: Column
    size: Column

    def __post_init__(self) -> None:
        """Lives and sizes are not empty, and names differ."""
        if (self.lower >= self.upper).any() or (self.size < 1).any():
            raise ValueError("a buffer without life or bytes")
        if len(set(self.names)) != len(self.names):
            raise ValueError("two buffers of one name")

    def bound(self) -> tuple[int, Column]:
        """The most bytes that live at once, and the buffers that do, first such moment."""
        begins, ends = np.argsort(self.lower, kind="stable"), np.argsort(self.upper, kind="stable")
        born = np.concatenate([[0], np.cumsum(self.size[begins])])
        dead = np.concatenate([[0], np.cumsum(self.size[ends])])
        moments = np.unique(self.lower)
        live = born[np.searchsorted(self.lower[begins], moments, side="right")]
        live = live - dead[np.searchsorted(self.upper[ends], moments, side="right")]
        fullest = int(moments[np.argmax(live)])
        return int(live.max()), np.flatnonzero((self.lower <= fullest) & (fullest < self.upper))

    def only(self, rows: list[int]) -> "PlainProblem":
        """The instance with some of its buffers and no others."""
        return PlainProblem(
            names=tuple(self.names[row] for row in rows),
            lower=self.lower[rows],
            upper=self.upper[rows],
            size=self.size[rows],
        )


class PlainOutcome(Enum):
    """The three outcomes, never mixed."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    """Proven."""
    UNKNOWN = "unknown"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlainAnswer:
    """What is known of an instance.

    Args:
        outcome: which of the three.
        offsets: [buffers] when placed.
        nodes: decisions that the search made.
        conflict: when infeasible, buffers that cannot coexist; the proof needs each of them.
    """

    outcome: PlainOutcome
    offsets: Column
    nodes: int
    conflict: tuple[int, ...]


def parse_plain(text: str, *, subject: str) -> PlainProblem:
    """An instance from a table of comma-separated values with a line of column names, in any order.

    Raises:
        InvalidInput: it is none.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    header = [name.strip() for name in lines[0].split(",")] if lines else []
    if sorted(header) != sorted(_COLUMNS):
        raise _invalid(
            subject, f"the columns are {', '.join(header) or 'missing'}, not {', '.join(_COLUMNS)}"
        )
    names: list[str] = []
    numbers: list[list[int]] = []
    for number, line in enumerate(lines[1:], start=1):
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(header):
            raise _invalid(subject, f"row {number} has {len(fields)} fields, not {len(header)}")
        row = dict(zip(header, fields, strict=True))
        values: list[int] = []
        for column in _COLUMNS[1:]:
            value = row[column]
            if not value.isascii() or not value.isdecimal() or len(value) > 15 or int(value) > _LARGEST:
                raise _invalid(subject, f"row {number}: {column} is no number from 0 to {_LARGEST:,}")
            values.append(int(value))
        lower, upper, size = values
        if lower >= upper or size < 1:
            raise _invalid(subject, f"row {number}: a buffer lives for a moment and has a byte, at least")
        names.append(row["id"])
        numbers.append(values)
    if not names:
        raise _invalid(subject, "there is no buffer in it")
    if len(set(names)) != len(names):
        twice = next(name for name, times in Counter(names).items() if times > 1)
        raise _invalid(subject, f"two buffers have the id {twice}")
    lower, upper, size = np.array(numbers, dtype=np.int64).T
    return PlainProblem(names=tuple(names), lower=lower, upper=upper, size=size)


def _invalid(subject: str, reason: str) -> InvalidInput:
    return InvalidInput(
        reason, stage=_STAGE, subject=subject, next_step="give a table of buffers: id,lower,upper,size"
    )


def place_plain(problem: PlainProblem, capacity: int, nodes: int | None = None) -> PlainAnswer:
    """Offsets for an instance; deterministic.

    Args:
        problem: the instance.
        capacity: bytes of the memory.
        nodes: decisions that the search may make; with 0 there is no search, with None as many as it makes
            within a minute, about.
    """
    most, who = problem.bound()
    if most > capacity:
        return _infeasible(problem, capacity, [int(row) for row in who], 0)
    offsets = np.zeros(len(problem.size), dtype=np.int64)
    unknown, spent, work = False, 0, _MOST_WORK
    for rows in parts_in_time(problem.lower, problem.upper):
        limit = min(_MOST_NODES - spent, work // len(rows)) if nodes is None else nodes - spent
        verdict, bases, used = _place_part(problem.only(rows), capacity, limit)
        spent += used
        work -= used * len(rows)
        match verdict:
            case Verdict.FOUND:
                offsets[rows] = bases
            case Verdict.GIVEN_UP:
                unknown = True
            case Verdict.NONE:
                return _infeasible(problem, capacity, rows, spent)
    return PlainAnswer(
        outcome=PlainOutcome.UNKNOWN if unknown else PlainOutcome.PLACED,
        offsets=offsets,
        nodes=spent,
        conflict=(),
    )


def _place_part(problem: PlainProblem, capacity: int, nodes: int) -> tuple[Verdict, Column, int]:
    if len(problem.size) > _MANY:
        bases = _many_placed(problem, capacity)
        return (Verdict.GIVEN_UP, problem.size, 0) if bases is None else (Verdict.FOUND, bases, 0)
    model = plain_model(problem.lower, problem.upper, problem.size, capacity)
    windows = np.stack([np.zeros_like(problem.size), capacity - problem.size], axis=1)[:, None, :]
    for order in ORDERS.values():
        fitted = first_fit(model, windows, order)
        if isinstance(fitted, Bases):
            return Verdict.FOUND, fitted.base, 0
    if nodes <= 0:
        return Verdict.GIVEN_UP, problem.size, 0
    found = search(model, nodes)
    return found.verdict, found.bases, found.nodes


def _many_placed(problem: PlainProblem, capacity: int) -> Column | None:
    """Offsets by first fit without a table of pairs, which would be too large; None if no order fits."""
    length = (problem.upper - problem.lower).astype(np.float64)
    for keys in (
        (problem.lower, -problem.size),
        (problem.lower, -problem.size * length),
        (-problem.size, -length),
    ):
        order = np.lexsort(keys)
        offsets = np.zeros_like(problem.size)
        if _first_fit_of_many(order, problem.lower, problem.upper, problem.size, capacity, offsets):
            return offsets
    return None


@compiled
def _first_fit_of_many(
    order: Column, lower: Column, upper: Column, size: Column, capacity: int, offsets: Column
) -> bool:
    """Gives each buffer, in order, the lowest offset that is free; whether all have one."""
    placed = np.empty(len(order), dtype=np.int64)  # by rising offset
    for count, buffer in enumerate(order):
        offset = 0
        for other in placed[:count]:
            if offsets[other] >= offset + size[buffer]:
                break
            if lower[other] < upper[buffer] and lower[buffer] < upper[other]:
                offset = max(offset, offsets[other] + size[other])
        if offset + size[buffer] > capacity:
            return False
        offsets[buffer] = offset
        place = count
        while place > 0 and offsets[placed[place - 1]] > offset:
            placed[place] = placed[place - 1]
            place -= 1
        placed[place] = buffer
    return True


def _infeasible(problem: PlainProblem, capacity: int, rows: list[int], nodes: int) -> PlainAnswer:
    """The answer, with the buffers that the proof cannot do without.

    Buffers that all live at one moment are refuted by their bytes or not at all, since they can be piled up.
    """
    smallest_first = sorted(rows, key=lambda row: (int(problem.size[row]), -row))
    kept = set(rows)
    if problem.lower[rows].max() < problem.upper[rows].min():
        spare = int(problem.size[rows].sum()) - capacity
        for row in smallest_first:
            if problem.size[row] < spare:
                spare -= int(problem.size[row])
                kept.remove(row)
    else:
        # Many at once first, since most are not needed, and at last one by one.
        left: list[int] = smallest_first
        length = len(left)
        while length:
            for start in range(0, len(left), length):
                fewer = sorted(kept.difference(left[start : start + length]))
                if fewer and _is_refuted(problem.only(fewer), capacity):
                    kept.intersection_update(fewer)
            left = [row for row in left if row in kept]
            length //= 2
    return PlainAnswer(
        outcome=PlainOutcome.INFEASIBLE,
        offsets=np.zeros_like(problem.size),
        nodes=nodes,
        conflict=tuple(sorted(kept)),
    )


def _is_refuted(problem: PlainProblem, capacity: int) -> bool:
    return problem.bound()[0] > capacity or any(
        _place_part(problem.only(rows), capacity, _FILTER_NODES)[0] is Verdict.NONE
        for rows in parts_in_time(problem.lower, problem.upper)
    )
