"""A slow interpreter of view operations, the oracle of the coordinate mappings.

It knows nothing of digits: a view is an array whose every element is the number of the source element that it
reads, and an operation is the NumPy function of the same meaning. :func:`digit_form` then decides by trying
every factorization whether such an array is an affine function over digits at all.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Split:
    """Replace one axis by several, most significant first."""

    axis: int
    extents: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Merge:
    """Replace ``count`` neighbouring axes by one."""

    axis: int
    count: int


@final
@dataclass(frozen=True, slots=True)
class Transpose:
    """Axis i of the result is axis ``order[i]``."""

    order: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True)
class Window:
    """Keep [start, stop) of every axis."""

    bounds: tuple[tuple[int, int], ...]


@final
@dataclass(frozen=True, slots=True)
class Broadcast:
    """The NumPy rule."""

    shape: tuple[int, ...]


Operation: TypeAlias = Split | Merge | Transpose | Window | Broadcast


def source(shape: Sequence[int]) -> Array:
    """A source tensor whose elements are their own numbers, row-major."""
    return np.arange(math.prod(shape), dtype=np.int64).reshape(tuple(shape))


def interpret(view: Array, operation: Operation) -> Array:
    """The view after one more operation."""
    match operation:
        case Split(axis, extents):
            return view.reshape((*view.shape[:axis], *extents, *view.shape[axis + 1 :]))
        case Merge(axis, count):
            merged = math.prod(view.shape[axis : axis + count])
            return view.reshape((*view.shape[:axis], merged, *view.shape[axis + count :]))
        case Transpose(order):
            return view.transpose(order)
        case Window(bounds):
            return view[tuple(slice(start, stop) for start, stop in bounds)]
        case Broadcast(shape):
            return np.broadcast_to(view, shape)
        case _:
            assert_never(operation)


def source_coordinates(view: Array, source_shape: Sequence[int]) -> Array:
    """Source coordinate of every destination coordinate: shape (*destination, source rank)."""
    if not source_shape:
        return np.zeros((*view.shape, 0), dtype=np.int64)
    axes: list[Array] = [
        np.asarray(axis, dtype=np.int64) for axis in np.unravel_index(view, tuple(source_shape))
    ]
    return np.stack(axes, axis=-1)


def destination_coordinates(shape: Sequence[int]) -> Array:
    """Every coordinate of a shape: shape (*shape, rank)."""
    indices: Array = np.indices(tuple(shape), dtype=np.int64)
    return np.moveaxis(indices, 0, -1)


DigitForm: TypeAlias = tuple[tuple[tuple[int, int | None, int], ...], ...]
"""Per destination axis, (extent, source axis or None, stride), most significant first."""


def _factorizations(extent: int) -> Iterator[tuple[int, ...]]:
    """Every ordered list of factors above 1 with this product, shortest lists first."""

    def of(rest: int) -> Iterator[tuple[int, ...]]:
        if rest == 1:
            yield ()
        for first in range(2, rest + 1):
            if rest % first == 0:
                for others in of(rest // first):
                    yield (first, *others)

    yield from sorted(of(extent), key=len)


def _axis_form(line: Array) -> tuple[tuple[int, int | None, int], ...] | None:
    """The shortest list of digits that gives the source coordinates (n, rank) along one axis, or None."""
    extent = len(line)
    steps = line - line[0]
    for factors in _factorizations(extent):
        values = np.indices(factors).reshape(len(factors), extent)
        places = [math.prod(factors[position + 1 :]) for position in range(len(factors))]
        strides = [steps[place] for place in places]
        total = np.zeros_like(steps)
        for value, stride in zip(values, strides, strict=True):
            total += value[:, None] * stride[None, :]
        if not np.array_equal(total, steps):
            continue
        form: list[tuple[int, int | None, int]] = []
        for factor, stride in zip(factors, strides, strict=True):
            moving = np.flatnonzero(stride)
            if len(moving) > 1 or bool(np.any(stride < 0)):
                break
            form.append(
                (factor, int(moving[0]), int(stride[moving[0]])) if len(moving) else (factor, None, 0)
            )
        else:
            return tuple(form)
    return None


def digit_form(view: Array, source_shape: Sequence[int]) -> DigitForm | None:
    """The function of a view as digits, each along one source axis without overlap; None if there is none."""
    coordinates = source_coordinates(view, source_shape)
    rank = view.ndim
    first = coordinates[(0,) * rank]
    forms: list[tuple[tuple[int, int | None, int], ...]] = []
    separate = np.zeros_like(coordinates) + first
    for axis in range(rank):
        line = coordinates[tuple(slice(None) if other == axis else 0 for other in range(rank))]
        separate = separate + (line - first).reshape(
            *(view.shape[axis] if other == axis else 1 for other in range(rank)), len(source_shape)
        )
        form = _axis_form(line)
        if form is None:
            return None
        forms.append(form)
    if not np.array_equal(separate, coordinates):
        return None
    for axis in range(len(source_shape)):
        reach = 0
        for extent, _, stride in sorted(
            (digit for digit in itertools.chain.from_iterable(forms) if digit[1] == axis),
            key=lambda digit: digit[2],
        ):
            if stride <= reach:
                return None
            reach += stride * (extent - 1)
    return tuple(forms)
