"""Iteration spaces: loops over which the coordinates of several tensors move by constant steps.

A copy reads one tensor and writes another. Over the digits of its coordinate mapping both coordinates are
linear forms, ``base + sum of step * loop``; splits, merges, transposes and broadcasts differ only in the
steps. From here on there is no case distinction left: storage order is laid over the forms of each side, see
``traversal``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from compiler.geometry.mapping import CoordinateMapping, place_values
from compiler.geometry.region import Region


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearForm:
    """``base + sum of steps[k] * loop k``; steps are not negative."""

    base: int
    steps: tuple[int, ...]

    def at(self, loops: Sequence[int]) -> int:
        """The value at one point of the space."""
        return self.base + sum(step * loop for step, loop in zip(self.steps, loops, strict=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IterationSpace:
    """Loops 0 <= loop k < extents[k], and each tensor axis as a linear form of them.

    The destination forms are injective: distinct points write distinct coordinates.
    """

    extents: tuple[int, ...]
    destination: tuple[LinearForm, ...]
    source: tuple[LinearForm, ...]


def unit_forms(starts: Sequence[int]) -> tuple[LinearForm, ...]:
    """Coordinates of a region that begins at ``starts``, one loop per axis."""
    rank = len(starts)
    return tuple(
        LinearForm(base=start, steps=tuple(int(loop == axis) for loop in range(rank)))
        for axis, start in enumerate(starts)
    )


def space_of_regions(*, destination: Region, source: Region) -> IterationSpace:
    """The space of two equally shaped regions, each coordinate reading its counterpart.

    Raises:
        ValueError: the extents differ.
    """
    if destination.extents != source.extents:
        raise ValueError(f"regions of extents {source.extents} and {destination.extents} do not correspond")
    return IterationSpace(
        extents=destination.extents,
        destination=unit_forms(destination.starts),
        source=unit_forms(source.starts),
    )


def space_of_mapping(mapping: CoordinateMapping) -> IterationSpace:
    """The space of all coordinates of a mapping's destination: one loop per digit, in digit order."""
    digits = [
        (axis, place, digit)
        for axis, axis_digits in enumerate(mapping.digits)
        for place, digit in zip(place_values(axis_digits), axis_digits, strict=True)
    ]
    return IterationSpace(
        extents=tuple(digit.extent for _, _, digit in digits),
        destination=tuple(
            LinearForm(base=0, steps=tuple(place if at == axis else 0 for at, place, _ in digits))
            for axis in range(len(mapping.digits))
        ),
        source=tuple(
            LinearForm(
                base=offset, steps=tuple(digit.stride if digit.axis == axis else 0 for _, _, digit in digits)
            )
            for axis, offset in enumerate(mapping.offsets)
        ),
    )


def boxes_within(
    *, low: int, high: int, form: LinearForm, extents: Sequence[int]
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """The points of a nested form with ``low <= value < high``, as disjoint boxes of loop bounds.

    Loops that the form does not step along keep their full range. At each loop, coarsest first, the values
    whose finer loops fit whole are one box and at most the two at the ends recur: 2 * loops - 1 boxes at
    most. Each step must exceed the reach of all finer ones together, as digits of a mapping and of a storage
    index do.
    """
    stepping = sorted(
        (k for k, step in enumerate(form.steps) if step), key=lambda k: form.steps[k], reverse=True
    )
    reach = [0] * (len(stepping) + 1)
    for depth in reversed(range(len(stepping))):
        loop = stepping[depth]
        reach[depth] = reach[depth + 1] + form.steps[loop] * (extents[loop] - 1)
    found: list[tuple[tuple[int, int], ...]] = []

    def descend(depth: int, base: int, bounds: tuple[tuple[int, int], ...]) -> None:
        if low <= base and base + reach[depth] < high:
            found.append(bounds)
            return
        if base >= high or base + reach[depth] < low:
            return
        loop = stepping[depth]
        step, finer = form.steps[loop], reach[depth + 1]
        first = max(0, -(-(low - base - finer) // step))
        last = min(extents[loop] - 1, (high - 1 - base) // step)
        whole_first = max(first, -(-(low - base) // step))
        whole_last = min(last, (high - 1 - base - finer) // step)
        if whole_first > whole_last:
            parts = [(value, value + 1) for value in range(first, last + 1)]
        else:
            parts = [(value, value + 1) for value in range(first, whole_first)]
            parts.append((whole_first, whole_last + 1))
            parts.extend((value, value + 1) for value in range(whole_last + 1, last + 1))
        for start, stop in parts:
            narrowed = (*bounds[:loop], (start, stop), *bounds[loop + 1 :])
            descend(depth + 1, base + start * step, narrowed)

    if all(extents):
        descend(0, form.base, tuple((0, extent) for extent in extents))
    return tuple(found)
