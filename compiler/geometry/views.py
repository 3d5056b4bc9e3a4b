"""The view operations of tensors as coordinate mappings from the result's coordinates to the operand's.

Inputs are shapes and the operation's attributes; a mapping is returned, or a refusal where a reshape is not a
sequence of splits and merges. Bad attributes raise ``ValueError``. Chains of views are compositions:
``compose(second, first)`` for ``second`` applied to the result of ``first``.
"""

import math
from collections.abc import Sequence

from compiler.geometry.compose import compose
from compiler.geometry.mapping import (
    Composition,
    CoordinateMapping,
    Digit,
    Shape,
    check_shape,
    identity,
    text_of_shape,
)
from compiler.geometry.region import Region
from compiler.geometry.restrict import Piece, check_region


def broadcast(source_shape: Shape, destination_shape: Shape) -> CoordinateMapping:
    """The NumPy rule: axes are aligned at the last, new and singleton axes repeat.

    Raises:
        ValueError: a source axis is neither 1 nor as long as its destination axis.
    """
    check_shape(source_shape, "source")
    check_shape(destination_shape, "destination")
    new = len(destination_shape) - len(source_shape)
    shapes = f"source {text_of_shape(source_shape)}, destination {text_of_shape(destination_shape)}"
    if new < 0:
        raise ValueError(f"{shapes}: a broadcast does not remove axes")
    digits: list[tuple[Digit, ...]] = []
    for axis, extent in enumerate(destination_shape):
        if axis < new or source_shape[axis - new] == 1:
            digits.append((Digit(extent=extent, axis=None, stride=0),))
        elif source_shape[axis - new] == extent:
            digits.append((Digit(extent=extent, axis=axis - new, stride=1),))
        else:
            raise ValueError(
                f"{shapes}: source axis {axis - new} has extent {source_shape[axis - new]}, "
                f"neither 1 nor the {extent} of destination axis {axis}"
            )
    return CoordinateMapping(
        source_shape=source_shape, offsets=(0,) * len(source_shape), digits=tuple(digits)
    )


def transpose(source_shape: Shape, order: Sequence[int]) -> CoordinateMapping:
    """Destination axis i is source axis ``order[i]``.

    Raises:
        ValueError: ``order`` is not a permutation of the source axes.
    """
    check_shape(source_shape, "source")
    if sorted(order) != list(range(len(source_shape))):
        raise ValueError(f"{tuple(order)} does not permute the axes of {text_of_shape(source_shape)}")
    return CoordinateMapping(
        source_shape=source_shape,
        offsets=(0,) * len(source_shape),
        digits=tuple((Digit(extent=source_shape[axis], axis=axis, stride=1),) for axis in order),
    )


def split(source_shape: Shape, axis: int, extents: Sequence[int]) -> CoordinateMapping:
    """Source axis ``axis`` becomes several, most significant first.

    Raises:
        ValueError: no such axis, or the extents do not multiply to its extent.
    """
    _check_axis(source_shape, axis)
    check_shape(extents, "split")
    if math.prod(extents) != source_shape[axis]:
        raise ValueError(
            f"axis {axis} of {text_of_shape(source_shape)} cannot be split to {text_of_shape(extents)}: "
            f"the product is {math.prod(extents)}, not {source_shape[axis]}"
        )
    digits = list(identity(source_shape).digits)
    digits[axis : axis + 1] = [
        (Digit(extent=extent, axis=axis, stride=math.prod(extents[position + 1 :])),)
        for position, extent in enumerate(extents)
    ]
    return CoordinateMapping(
        source_shape=source_shape, offsets=(0,) * len(source_shape), digits=tuple(digits)
    )


def merge(source_shape: Shape, axis: int, count: int) -> CoordinateMapping:
    """Source axes ``axis`` to ``axis + count - 1`` become one, the first most significant.

    Raises:
        ValueError: fewer than one axis, or axes that do not exist.
    """
    _check_axis(source_shape, axis)
    if count < 1 or axis + count > len(source_shape):
        raise ValueError(f"{text_of_shape(source_shape)} has no {count} axes from axis {axis} to merge")
    digits = list(identity(source_shape).digits)
    digits[axis : axis + count] = [
        tuple(digit for axis_digits in digits[axis : axis + count] for digit in axis_digits)
    ]
    return CoordinateMapping(
        source_shape=source_shape, offsets=(0,) * len(source_shape), digits=tuple(digits)
    )


def reshape(source_shape: Shape, destination_shape: Shape) -> Composition:
    """The same elements in row-major sequence under another shape.

    Returns:
        The mapping, or a refusal where an axis of one shape straddles axes of the other: [6,6] to [4,9] reads
        no source axis at a constant step.

    Raises:
        ValueError: the numbers of elements differ.
    """
    check_shape(source_shape, "source")
    check_shape(destination_shape, "destination")
    elements = math.prod(source_shape)
    if math.prod(destination_shape) != elements:
        raise ValueError(
            f"{text_of_shape(source_shape)} has {elements} elements, "
            f"{text_of_shape(destination_shape)} has {math.prod(destination_shape)}"
        )
    flat = CoordinateMapping(
        source_shape=source_shape,
        offsets=(0,) * len(source_shape),
        digits=(
            tuple(Digit(extent=extent, axis=axis, stride=1) for axis, extent in enumerate(source_shape)),
        ),
    )
    return compose(split((elements,), 0, destination_shape), flat)


def window(source_shape: Shape, region: Region) -> CoordinateMapping:
    """The coordinates of ``region``, numbered from 0, read out of the larger source.

    Raises:
        ValueError: the region is empty or leaves the source.
    """
    check_shape(source_shape, "source")
    check_region(region, source_shape)
    return CoordinateMapping(
        source_shape=source_shape,
        offsets=region.starts,
        digits=tuple(
            (Digit(extent=extent, axis=axis, stride=1),) for axis, extent in enumerate(region.extents)
        ),
    )


def concatenation(source_shapes: Sequence[Shape], axis: int) -> tuple[Piece, ...]:
    """Sources one behind the other along an axis: for each, the window of the destination that it fills.

    Raises:
        ValueError: no sources, no such axis, or shapes that differ on another axis.
    """
    if not source_shapes:
        raise ValueError("a concatenation needs at least one source")
    first = source_shapes[0]
    _check_axis(first, axis)
    pieces: list[Piece] = []
    start = 0
    for number, shape in enumerate(source_shapes):
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            raise ValueError(
                f"source {number} of shape {text_of_shape(shape)} cannot follow {text_of_shape(first)} "
                f"along axis {axis}"
            )
        offsets = tuple(start if other == axis else 0 for other in range(len(first)))
        pieces.append(Piece(destination=Region.of_extents(shape).shift(offsets), mapping=identity(shape)))
        start += shape[axis]
    return tuple(pieces)


def _check_axis(shape: Shape, axis: int) -> None:
    if not 0 <= axis < len(shape):
        raise ValueError(f"{text_of_shape(shape)} has no axis {axis}")
