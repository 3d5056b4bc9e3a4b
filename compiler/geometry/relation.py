"""Which operand coordinates a coordinate of a result needs: the index relation of computations.

A relation is recorded when a distributed computation is built and is the only description of its operand
indexing: semantic validation, ownership projection and local binding all ask it. It speaks of logical
coordinates; which panels a kernel touches and what padding it reads are separate facts of the binding.

Every kind says the same thing about each operand axis, :class:`Follow` a result axis or :class:`Span` a fixed
range whatever the result coordinate, and validation, projection and conversion are written once over that:

========================  ====================================================================================
:class:`Identity`         operand and result have the same coordinates
:class:`Broadcast`        the NumPy rule; named operand axes are read at coordinate 0: (b,r,c) -> (0,r,c)
:class:`SelectedWindow`   per operand axis, a result axis from a start onwards or a fixed range, such as the
                          whole of a normalized axis: (b,r,c) -> (b,r,0:768)
:class:`ProductOperand`   one side of a product: batch and outer axes follow the result, contraction is whole
========================  ====================================================================================

No relation is inferred by comparing extents after construction: a shard can have one row by chance, and its
identity operand then still is not a broadcast one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, assert_never, final

from compiler.geometry.mapping import (
    Composition,
    CoordinateMapping,
    Digit,
    NotRepresentable,
    Shape,
    check_shape,
    text_of_shape,
)
from compiler.geometry.product import ProductAxes
from compiler.geometry.region import Region
from compiler.geometry.restrict import check_region


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Follow:
    """An operand axis that moves with a result axis.

    Args:
        axis: the result axis.
        start: operand coordinate at result coordinate 0.

    Raises:
        ValueError: a negative axis or start.
    """

    axis: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.axis < 0 or self.start < 0:
            raise ValueError(f"result axis {self.axis} from {self.start} onwards: neither can be negative")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """An operand axis that is read in [start, stop) for every result coordinate.

    Raises:
        ValueError: an empty or negative range.
    """

    start: int
    stop: int

    def __post_init__(self) -> None:
        if not (self.start >= 0 and self.start < self.stop):
            raise ValueError(f"{self.start}:{self.stop} is not a range of operand coordinates")


OperandAxis: TypeAlias = Follow | Span


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Operand and result have the same coordinates.

    Args:
        rank: axes of both.
    """

    rank: int

    def __str__(self) -> str:
        """``(d0,d1)``."""
        return _text([Follow(axis=axis) for axis in range(self.rank)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Broadcast:
    """The NumPy rule: axes aligned at the last; missing and singleton operand axes repeat.

    Args:
        operand_rank: axes of the operand, at most those of the result.
        result_rank: axes of the result.
        single_axes: operand axes of extent 1 that are read at coordinate 0, ascending.

    Raises:
        ValueError: ranks or axes that cannot be, or nothing repeated, which is :class:`Identity`.
    """

    operand_rank: int
    result_rank: int
    single_axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.operand_rank <= self.result_rank:
            raise ValueError(f"an operand of rank {self.operand_rank} in a result of rank {self.result_rank}")
        _check_axes(self.single_axes, self.operand_rank, "single")
        if self.operand_rank == self.result_rank and not self.single_axes:
            raise ValueError("a broadcast that repeats nothing is an identity")

    def __str__(self) -> str:
        """``(0,d1,d2)``."""
        return _text(_broadcast_axes(self))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedWindow:
    """A part of a larger operand.

    Args:
        result_rank: axes of the result.
        axes: per operand axis, the result axis that it follows or the range that it is read in.

    Raises:
        ValueError: a result axis that does not exist or is followed twice.
    """

    result_rank: int
    axes: tuple[OperandAxis, ...]

    def __post_init__(self) -> None:
        _check_axes(
            sorted(axis.axis for axis in self.axes if isinstance(axis, Follow)), self.result_rank, "result"
        )

    def __str__(self) -> str:
        """``(d0,d1+64,0:768)``."""
        return _text(self.axes)


@final
class Side(Enum):
    """One of the two operands of a product."""

    LEFT = "left"
    RIGHT = "right"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductOperand:
    """What a product's result needs of one operand.

    Args:
        axes: the axes of the whole product.
        side: which operand.
    """

    axes: ProductAxes
    side: Side

    def __str__(self) -> str:
        """``left of abd,dc->abc``."""
        return f"{self.side.value} of {self.axes}"


Relation: TypeAlias = Identity | Broadcast | SelectedWindow | ProductOperand


def broadcast_relation(operand: Shape, result: Shape) -> Identity | Broadcast:
    """The relation by which the NumPy rule reads an operand.

    Raises:
        ValueError: an operand axis is neither 1 nor as long as its result axis.
    """
    check_shape(operand, "operand")
    check_shape(result, "result")
    new = len(result) - len(operand)
    if new < 0:
        raise ValueError(
            f"operand {text_of_shape(operand)} has more axes than result {text_of_shape(result)}"
        )
    for axis, extent in enumerate(operand):
        if extent not in (1, result[axis + new]):
            raise ValueError(
                f"operand {text_of_shape(operand)}, result {text_of_shape(result)}: operand axis {axis} has "
                f"extent {extent}, neither 1 nor the {result[axis + new]} of result axis {axis + new}"
            )
    single = tuple(axis for axis, extent in enumerate(operand) if extent != result[axis + new])
    if not new and not single:
        return Identity(rank=len(result))
    return Broadcast(operand_rank=len(operand), result_rank=len(result), single_axes=single)


def operand_axes(relation: Relation, operand: Shape) -> tuple[OperandAxis, ...]:
    """What each operand axis does, the one description that everything else is derived from.

    Args:
        relation: any relation.
        operand: shape of the operand, which says how long a contraction is.

    Raises:
        ValueError: the operand has another rank than the relation describes.
    """
    match relation:
        case Identity(rank=rank):
            axes: list[OperandAxis] = [Follow(axis=axis) for axis in range(rank)]
        case Broadcast():
            axes = _broadcast_axes(relation)
        case SelectedWindow():
            axes = list(relation.axes)
        case ProductOperand():
            axes = _product_axes(relation, operand)
        case _:
            assert_never(relation)
    if len(axes) != len(operand):
        raise ValueError(
            f"the relation describes an operand of rank {len(axes)}, not {text_of_shape(operand)}"
        )
    return tuple(axes)


def validate(relation: Relation, operand: Shape, result: Shape) -> None:
    """Require that every result coordinate reads coordinates that the operand has, and that shapes agree.

    A followed axis is as long in the operand as in the result, except in a selected window, where the window
    must lie inside the operand.

    Raises:
        ValueError: a rank or an extent that does not agree; the axes and extents are named.
    """
    check_shape(operand, "operand")
    check_shape(result, "result")
    rank = _result_rank(relation)
    if len(result) != rank:
        raise ValueError(f"the relation describes a result of rank {rank}, not {text_of_shape(result)}")
    window = isinstance(relation, SelectedWindow)
    for axis, (reading, extent) in enumerate(zip(operand_axes(relation, operand), operand, strict=True)):
        match reading:
            case Follow(axis=followed, start=start):
                needed = start + result[followed]
                if needed > extent or (not window and needed < extent):
                    raise ValueError(
                        f"operand axis {axis} has extent {extent}, result axis {followed} of extent "
                        f"{result[followed]} reads {start}:{needed}"
                    )
            case Span(start=start, stop=stop):
                if stop > extent or (not window and (start, stop) != (0, extent)):
                    raise ValueError(f"operand axis {axis} has extent {extent} and is read in {start}:{stop}")
            case _:
                assert_never(reading)


def project(
    relation: Relation, operand: Shape, region: Region, *, contraction: Region | None = None
) -> Region:
    """The operand coordinates that a region of the result needs: exactly a box.

    Args:
        relation: how the result reads the operand.
        operand: shape of the operand.
        region: of the result; at least one coordinate.
        contraction: for a product, the part of the contraction in the sequence of its contraction axes; None
            for the whole.

    Raises:
        ValueError: an empty region, another rank, or a part of a contraction that does not exist.
    """
    rank = _result_rank(relation)
    if region.rank != rank:
        raise ValueError(
            f"the relation describes a result of rank {rank}, not a region of rank {region.rank}"
        )
    if region.is_empty:
        raise ValueError("an empty region needs nothing of an operand")
    bounds: list[tuple[int, int]] = []
    for axis in operand_axes(relation, operand):
        match axis:
            case Follow(axis=followed, start=start):
                first, last = region.bounds[followed]
                bounds.append((first + start, last + start))
            case Span(start=start, stop=stop):
                bounds.append((start, stop))
            case _:
                assert_never(axis)
    if contraction is not None:
        if not isinstance(relation, ProductOperand):
            raise ValueError("only a product has a contraction")
        summed = _contraction_axes(relation)
        check_region(contraction, tuple(operand[axis] for axis in summed))
        for axis, part in zip(summed, contraction.bounds, strict=True):
            bounds[axis] = part
    projected = Region(bounds=tuple(bounds))
    check_region(projected, operand)
    return projected


def localize(relation: Relation) -> Relation:
    """The same relation between a region of the result and its projection, both counted from their starts."""
    match relation:
        case Identity() | Broadcast() | ProductOperand():
            return relation
        case SelectedWindow(result_rank=rank, axes=axes):
            return SelectedWindow(
                result_rank=rank,
                axes=tuple(
                    Follow(axis=axis.axis)
                    if isinstance(axis, Follow)
                    else Span(start=0, stop=axis.stop - axis.start)
                    for axis in axes
                ),
            )
        case _:
            assert_never(relation)


def mapping_of(relation: Relation, operand: Shape, result: Shape) -> Composition:
    """The coordinate mapping from result to operand coordinates.

    Returns:
        The mapping, or a refusal when a result coordinate needs more than one operand coordinate.

    Raises:
        ValueError: the relation does not hold between these shapes.
    """
    validate(relation, operand, result)
    offsets: list[int] = []
    digits = [Digit(extent=extent, axis=None, stride=0) for extent in result]
    for axis, reading in enumerate(operand_axes(relation, operand)):
        match reading:
            case Follow(axis=followed, start=start):
                offsets.append(start)
                digits[followed] = Digit(extent=result[followed], axis=axis, stride=1)
            case Span(start=start, stop=stop):
                if stop - start > 1:
                    return NotRepresentable(
                        reason=f"operand axis {axis} (extent {operand[axis]}) is read in {start}:{stop} "
                        "by every result coordinate"
                    )
                offsets.append(start)
            case _:
                assert_never(reading)
    return CoordinateMapping(
        source_shape=operand, offsets=tuple(offsets), digits=tuple((digit,) for digit in digits)
    )


def _result_rank(relation: Relation) -> int:
    match relation:
        case Identity(rank=rank):
            return rank
        case Broadcast(result_rank=rank) | SelectedWindow(result_rank=rank):
            return rank
        case ProductOperand(axes=axes):
            return axes.result_rank
        case _:
            assert_never(relation)


def _broadcast_axes(relation: Broadcast) -> list[OperandAxis]:
    new = relation.result_rank - relation.operand_rank
    return [
        Span(start=0, stop=1) if axis in relation.single_axes else Follow(axis=axis + new)
        for axis in range(relation.operand_rank)
    ]


def _product_axes(relation: ProductOperand, operand: Shape) -> list[OperandAxis]:
    product = relation.axes
    match relation.side:
        case Side.LEFT:
            follow = {axis.left: axis.result for axis in product.batch}
            follow.update((axis.operand, axis.result) for axis in product.rows)
            rank, single = product.left_rank, product.left_single
        case Side.RIGHT:
            follow = {axis.right: axis.result for axis in product.batch}
            follow.update((axis.operand, axis.result) for axis in product.columns)
            rank, single = product.right_rank, product.right_single
        case _:
            assert_never(relation.side)
    if len(operand) != rank:
        raise ValueError(
            f"the {relation.side.value} operand has shape {text_of_shape(operand)}, not rank {rank}"
        )
    axes: list[OperandAxis] = []
    for axis in range(rank):
        if axis in follow:
            axes.append(Follow(axis=follow[axis]))
        else:
            axes.append(Span(start=0, stop=1 if axis in single else operand[axis]))
    return axes


def _contraction_axes(relation: ProductOperand) -> tuple[int, ...]:
    match relation.side:
        case Side.LEFT:
            return tuple(axis.left for axis in relation.axes.contraction)
        case Side.RIGHT:
            return tuple(axis.right for axis in relation.axes.contraction)
        case _:
            assert_never(relation.side)


def _check_axes(axes: Sequence[int], rank: int, name: str) -> None:
    """Require ascending, distinct axes of a rank."""
    for before, axis in zip((-1, *axes), axes, strict=False):
        if axis <= before or axis >= rank:
            raise ValueError(f"{name} axes {tuple(axes)} are not distinct ascending axes below {rank}")


def _text(axes: Sequence[OperandAxis]) -> str:
    terms: list[str] = []
    for axis in axes:
        match axis:
            case Follow(axis=followed, start=start):
                terms.append(f"d{followed}+{start}" if start else f"d{followed}")
            case Span(start=start, stop=stop):
                terms.append(str(start) if stop == start + 1 else f"{start}:{stop}")
            case _:
                assert_never(axis)
    return f"({','.join(terms)})"
