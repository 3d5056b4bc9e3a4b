"""Views as coordinate mappings: which operand element each element of a view's result is.

A view moves elements and changes none, so that it is a copy with a mapping wherever it is carried out. The
mappings are those of ``geometry.views``; a reshape that is not made of splits and then merges of axes has
none and is refused: of [6,6] to [4,9], which merges first, no axis of the result steps evenly.
"""

from collections.abc import Sequence
from typing import assert_never

from compiler.geometry import views
from compiler.geometry.mapping import (
    CoordinateMapping,
    NotRepresentable,
    Shape,
    check_shape,
    text_of_shape,
)
from compiler.geometry.region import Region
from compiler.geometry.restrict import Piece
from compiler.graph.ir import Concat, MergeAxes, Reshape, Slice, SplitAxis, Transpose, View


def pieces(view: View, shapes: Sequence[Shape]) -> tuple[Piece, ...]:
    """For each operand, the part of the result that it fills, and from where.

    Args:
        view: the operation.
        shapes: shapes of its operands; one, but for :class:`Concat`.

    Raises:
        ValueError: the view does not exist for these shapes, in a sentence for users.
    """
    match view:
        case Concat(axis=axis):
            return views.concatenation(shapes, axis)
        case Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice():
            (shape,) = shapes
            mapping = _mapping(view, shape)
            return (Piece(destination=Region.of_extents(mapping.destination_shape), mapping=mapping),)
        case _:
            assert_never(view)


def shape_of_view(view: View, shapes: Sequence[Shape]) -> Shape:
    """The shape of the result.

    Raises:
        ValueError: as :func:`pieces`.
    """
    return pieces(view, shapes)[-1].destination.stops


def _mapping(view: Reshape | SplitAxis | MergeAxes | Transpose | Slice, shape: Shape) -> CoordinateMapping:
    match view:
        case Reshape(shape=wanted):
            if not wanted:
                raise ValueError("a value has at least one axis")
            mapping = views.reshape(shape, wanted)
            if isinstance(mapping, NotRepresentable):
                raise ValueError(
                    f"{text_of_shape(shape)} to {text_of_shape(wanted)} is not made of splits of axes and "
                    "then merges"
                )
            return mapping
        case SplitAxis(axis=axis, extents=extents):
            if not extents:
                raise ValueError("an axis is split into at least one")
            return views.split(shape, axis, extents)
        case MergeAxes(axis=axis, count=count):
            return views.merge(shape, axis, count)
        case Transpose(order=order):
            return views.transpose(shape, order)
        case Slice(axis=axis, start=start, stop=stop):
            check_shape(shape, "operand")
            if not 0 <= axis < len(shape):
                raise ValueError(f"{text_of_shape(shape)} has no axis {axis}")
            if not 0 <= start < stop <= shape[axis]:
                raise ValueError(
                    f"{start}:{stop} is not a range of the {shape[axis]} coordinates of axis {axis} "
                    f"of {text_of_shape(shape)}"
                )
            bounds = [(0, extent) for extent in shape]
            bounds[axis] = (start, stop)
            return views.window(shape, Region(bounds=tuple(bounds)))
        case _:
            assert_never(view)
