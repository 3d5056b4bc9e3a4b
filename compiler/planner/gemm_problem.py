"""A product of the graph in the axes in which it is distributed: batch, rows, columns, K.

Graph operands have any rank; the grid of a choice has one axis of each kind. An operand with one batch axis
at most and one axis of rows or columns keeps the shape that it has in the graph, so that an argument of the
program can lie where it is multiplied as it is. Any other is seen as [batch, rows or columns, K], its axes of
a kind merged into one; so is one whose precision has to change, because casts work on panels along the last
axis. The result is [batch, rows, columns] without batch axis where there is none. All of these are mappings:
nothing is moved for them.

How operands lie that another node has made is an ``Arrival`` each (``gemm_arrival``).
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never, final

from compiler.geometry.mapping import CoordinateMapping, Digit, Shape, identity, place_values
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.product import (
    BatchAxis,
    ContractionAxis,
    OuterAxis,
    ProductAxes,
    matrix_product,
)
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Factor, Rounding


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OperandForm:
    """An operand as it is distributed.

    Args:
        shape: its extents.
        mapping: from its coordinates to those of the graph operand; a bijection.
        batch: its batch axis, if any.
        outer: its axis of rows or columns.
        inner: its axis of K.
        precision: what it arrives in.
    """

    shape: Shape
    mapping: CoordinateMapping
    batch: int | None
    outer: int
    inner: int
    precision: Precision

    @property
    def is_inner_last(self) -> bool:
        """Whether K is its last axis."""
        return self.inner == len(self.shape) - 1

    def window(self, start: int, stop: int) -> Shape:
        """Its shape when only this part of K is taken."""
        shape = list(self.shape)
        shape[self.inner] = stop - start
        return tuple(shape)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The pieces in which an operand lies.

    Args:
        outer: rows or columns of a piece, whichever the operand has.
        inner: elements of K of a piece.
        is_in_panels: whether rows of 32 bytes along K follow one another, as the matrix unit stores them.
    """

    outer: int
    inner: int
    is_in_panels: bool = True


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmProblem:
    """A product, without any choice.

    Args:
        left_shape: in the graph, [..., rows, K], the two last exchanged when ``transpose_left``.
        right_shape: in the graph, [..., K, columns], the two last exchanged when ``transpose_right``.
        transpose_left: whether left stores K before rows.
        transpose_right: whether right stores columns before K.
        precision: what is multiplied; F16 or F8.
        left_precision: what left arrives in.
        right_precision: what right arrives in.
        parameter: which operand is a parameter that nothing else reads; None when neither is.
        tile_count: tiles of the build.
        rounding: how sums become F16; of the whole build.

    Raises:
        ValueError: shapes that cannot be multiplied.
    """

    left_shape: Shape
    right_shape: Shape
    transpose_left: bool = False
    transpose_right: bool = False
    precision: F16 | F8
    left_precision: Precision
    right_precision: Precision
    parameter: Side | None = None
    tile_count: int
    rounding: Rounding = Rounding.NEAREST

    def __post_init__(self) -> None:
        _forms(self)

    @property
    def factor(self) -> Factor:
        """What the matrix unit multiplies."""
        return Factor.F8 if isinstance(self.precision, F8) else Factor.F16

    @property
    def micro(self) -> int:
        """Elements of K in a panel."""
        return self.precision.micro

    def form(self, side: Side) -> OperandForm:
        """An operand as it is distributed."""
        forms = _forms(self)
        match side:
            case Side.LEFT:
                return forms.left
            case Side.RIGHT:
                return forms.right
            case _:
                assert_never(side)

    @property
    def axes(self) -> ProductAxes:
        """Roles of the axes of both forms and of the result."""
        return _forms(self).axes

    @property
    def result_mapping(self) -> CoordinateMapping:
        """From coordinates of the graph result to those of the distributed one."""
        return _forms(self).result_mapping

    @property
    def result_shape(self) -> Shape:
        """Of the distributed result."""
        return self.result_mapping.source_shape

    @property
    def batch(self) -> int:
        """Matrices of the batch."""
        return prod(self.result_shape[:-2])

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return self.result_shape[-2]

    @property
    def columns(self) -> int:
        """Columns of the result."""
        return self.result_shape[-1]

    @property
    def inner(self) -> int:
        """Extent of K."""
        left = self.form(Side.LEFT)
        return left.shape[left.inner]

    def is_cast(self, side: Side) -> bool:
        """Whether an operand arrives in another precision than it is multiplied in."""
        return self.form(side).precision != self.precision


def conversions(source: Precision, target: Precision) -> tuple[Precision, ...]:
    """The casts that lead from one precision to another: words and codes meet in halves."""
    if source == target:
        return ()
    match source, target:
        case F32(), F8():
            return (F16(), target)
        case _:
            return (target,)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Forms:
    """What a problem derives from its shapes."""

    left: OperandForm
    right: OperandForm
    axes: ProductAxes
    result_mapping: CoordinateMapping


@functools.lru_cache(maxsize=1024)
def _forms(problem: GemmProblem) -> _Forms:
    axes = matrix_product(
        problem.left_shape,
        problem.right_shape,
        transpose_left=problem.transpose_left,
        transpose_right=problem.transpose_right,
    )
    batch = bool(axes.batch)
    left = _form(
        problem.left_shape,
        problem.left_precision,
        batch=[axis.left for axis in axes.batch],
        outer=[axis.operand for axis in axes.rows],
        inner=axes.contraction[0].left,
        keeps_shape=problem.left_precision == problem.precision,
    )
    right = _form(
        problem.right_shape,
        problem.right_precision,
        batch=[axis.right for axis in axes.batch],
        outer=[axis.operand for axis in axes.columns],
        inner=axes.contraction[0].right,
        keeps_shape=problem.right_precision == problem.precision,
    )
    first = 1 if batch else 0
    merged = ProductAxes(
        batch=(BatchAxis(left=_present(left.batch), right=_present(right.batch), result=0),) if batch else (),
        rows=(OuterAxis(operand=left.outer, result=first),),
        columns=(OuterAxis(operand=right.outer, result=first + 1),),
        contraction=(ContractionAxis(left=left.inner, right=right.inner),),
        left_single=_single(left),
        right_single=_single(right),
    )
    shape = axes.result_shape(problem.left_shape, problem.right_shape)
    kinds = [
        [axis.result for axis in axes.batch],
        [axis.result for axis in axes.rows],
        [axis.result for axis in axes.columns],
    ]
    if not batch:
        kinds = kinds[1:]
    digits: list[tuple[Digit, ...]] = [() for _ in shape]
    for merged_axis, kind in enumerate(kinds):
        own = [Digit(extent=shape[axis], axis=merged_axis, stride=1) for axis in kind]
        for axis, stride in zip(kind, place_values(own), strict=True):
            digits[axis] = (Digit(extent=shape[axis], axis=merged_axis, stride=stride),)
    return _Forms(
        left=left,
        right=right,
        axes=merged,
        result_mapping=CoordinateMapping(
            source_shape=tuple(prod(shape[axis] for axis in kind) for kind in kinds),
            offsets=(0,) * len(kinds),
            digits=tuple(digits),
        ),
    )


def _form(
    shape: Shape,
    precision: Precision,
    *,
    batch: Sequence[int],
    outer: Sequence[int],
    inner: int,
    keeps_shape: bool,
) -> OperandForm:
    if keeps_shape and len(batch) <= 1 and len(outer) == 1:
        return OperandForm(
            shape=shape,
            mapping=identity(shape),
            batch=batch[0] if batch else None,
            outer=outer[0],
            inner=inner,
            precision=precision,
        )
    kinds = [batch, outer, [inner]] if batch else [outer, [inner]]
    merged = CoordinateMapping(
        source_shape=shape,
        offsets=(0,) * len(shape),
        digits=tuple(
            tuple(Digit(extent=shape[axis], axis=axis, stride=1) for axis in kind) for kind in kinds
        ),
    )
    return OperandForm(
        shape=merged.destination_shape,
        mapping=merged,
        batch=0 if batch else None,
        outer=len(kinds) - 2,
        inner=len(kinds) - 1,
        precision=precision,
    )


def _single(form: OperandForm) -> tuple[int, ...]:
    """Axes of an operand that keeps its shape and that the product reads at coordinate 0."""
    return tuple(axis for axis in range(len(form.shape)) if axis not in (form.batch, form.outer, form.inner))


def _present(axis: int | None) -> int:
    if axis is None:
        raise AssertionError("operands of a batch have a batch axis")
    return axis
