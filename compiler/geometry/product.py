"""The axes of a product of two operands: batch, row, column and contraction.

Input is either the roles themselves or, for a matrix product, two shapes. The value is checked to give every
axis of both operands and of the result exactly one role, and is what a product's index relation
(``relation.ProductOperand``), its binding and its expansion into local products read.
"""

from dataclasses import dataclass
from typing import final

from compiler.geometry.mapping import Shape, check_shape, text_of_shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAxis:
    """An axis of both operands and the result."""

    left: int
    right: int
    result: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OuterAxis:
    """A row axis (left operand and result) or a column axis (right operand and result)."""

    operand: int
    result: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ContractionAxis:
    """An axis of both operands that is summed over."""

    left: int
    right: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProductAxes:
    """The axes of a product: result = sum over contraction of left * right.

    An axis of the result that only one operand has is a row or a column axis, even where it stems from a
    batch. Every list is ascending, by result axis or, for the contraction, by left axis, so that equal
    products compare equal. Singleton axes of an operand that the result does not follow are ``single``.

    Args:
        batch: axes of left, right and result.
        rows: axes of left and result.
        columns: axes of right and result.
        contraction: axes of left and right; at least one.
        left_single: axes of left with extent 1, read at coordinate 0.
        right_single: axes of right with extent 1, read at coordinate 0.

    Raises:
        ValueError: an axis of an operand or of the result is missing or has two roles, or a list is not
            ascending.
    """

    batch: tuple[BatchAxis, ...]
    rows: tuple[OuterAxis, ...]
    columns: tuple[OuterAxis, ...]
    contraction: tuple[ContractionAxis, ...]
    left_single: tuple[int, ...] = ()
    right_single: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.contraction:
            raise ValueError("a product has at least one contraction axis")
        for name, axes in (
            ("left", self._left_axes),
            ("right", self._right_axes),
            ("result", [axis.result for axis in (*self.batch, *self.rows, *self.columns)]),
        ):
            if sorted(axes) != list(range(len(axes))):
                raise ValueError(
                    f"{name} axes {sorted(axes)} are not 0 to {len(axes) - 1}, each with one role"
                )
        for name, ordered in (
            ("batch", [axis.result for axis in self.batch]),
            ("row", [axis.result for axis in self.rows]),
            ("column", [axis.result for axis in self.columns]),
            ("contraction", [axis.left for axis in self.contraction]),
            ("single left", list(self.left_single)),
            ("single right", list(self.right_single)),
        ):
            if ordered != sorted(ordered):
                raise ValueError(f"{name} axes {tuple(ordered)} are not ascending")

    @property
    def _left_axes(self) -> list[int]:
        return [
            *(axis.left for axis in self.batch),
            *(axis.operand for axis in self.rows),
            *(axis.left for axis in self.contraction),
            *self.left_single,
        ]

    @property
    def _right_axes(self) -> list[int]:
        return [
            *(axis.right for axis in self.batch),
            *(axis.operand for axis in self.columns),
            *(axis.right for axis in self.contraction),
            *self.right_single,
        ]

    @property
    def left_rank(self) -> int:
        """Axes of the left operand."""
        return len(self._left_axes)

    @property
    def right_rank(self) -> int:
        """Axes of the right operand."""
        return len(self._right_axes)

    @property
    def result_rank(self) -> int:
        """Axes of the result."""
        return len(self.batch) + len(self.rows) + len(self.columns)

    def result_shape(self, left: Shape, right: Shape) -> Shape:
        """The shape of the result of two operands.

        Raises:
            ValueError: another rank, or extents that do not agree on a batch or contraction axis or are not 1
                on a single axis.
        """
        for name, shape, rank, single in (
            ("left", left, self.left_rank, self.left_single),
            ("right", right, self.right_rank, self.right_single),
        ):
            check_shape(shape, name)
            if len(shape) != rank:
                raise ValueError(
                    f"the {name} operand has shape {text_of_shape(shape)}, the product needs rank {rank}"
                )
            for axis in single:
                if shape[axis] != 1:
                    raise ValueError(
                        f"{name} axis {axis} is read at coordinate 0 but has extent {shape[axis]}"
                    )
        for pair in (*self.batch, *self.contraction):
            if left[pair.left] != right[pair.right]:
                role = "batch" if isinstance(pair, BatchAxis) else "contraction"
                raise ValueError(
                    f"{role}: left axis {pair.left} has extent {left[pair.left]}, "
                    f"right axis {pair.right} has extent {right[pair.right]}"
                )
        extents = {axis.result: left[axis.left] for axis in self.batch}
        extents.update((axis.result, left[axis.operand]) for axis in self.rows)
        extents.update((axis.result, right[axis.operand]) for axis in self.columns)
        return tuple(extents[axis] for axis in range(self.result_rank))

    def __str__(self) -> str:
        """Axes as letters, as in einsum: ``abd,dc->abc``; ``1`` for a single axis."""
        letters: dict[int, str] = {axis: _letter(axis) for axis in range(self.result_rank)}
        left: dict[int, str] = dict.fromkeys(self.left_single, "1")
        right: dict[int, str] = dict.fromkeys(self.right_single, "1")
        for batch in self.batch:
            left[batch.left] = right[batch.right] = letters[batch.result]
        left.update((axis.operand, letters[axis.result]) for axis in self.rows)
        right.update((axis.operand, letters[axis.result]) for axis in self.columns)
        for number, contraction in enumerate(self.contraction):
            left[contraction.left] = right[contraction.right] = _letter(self.result_rank + number)
        operands = ("".join(side[axis] for axis in range(len(side))) for side in (left, right))
        return f"{','.join(operands)}->{''.join(letters.values())}"


def matrix_product(
    left: Shape, right: Shape, *, transpose_left: bool = False, transpose_right: bool = False
) -> ProductAxes:
    """The axes of a matrix product of the two last axes of each operand, with NumPy's rule for the others.

    A leading axis of both operands with equal extents is batch. Where one operand lacks it or has extent 1
    there, it belongs to the other operand alone: a row axis of the left one, a column axis of the right one.

    Args:
        left: [..., rows, contraction], the two last exchanged when ``transpose_left``.
        right: [..., contraction, columns], the two last exchanged when ``transpose_right``.
        transpose_left: whether left stores [..., contraction, rows].
        transpose_right: whether right stores [..., columns, contraction].

    Raises:
        ValueError: fewer than two axes, or extents that do not agree.
    """
    if len(left) < 2 or len(right) < 2:
        shapes = f"{text_of_shape(left)} and {text_of_shape(right)}"
        raise ValueError(f"a matrix product needs two axes of each operand, not {shapes}")
    leading = max(len(left), len(right)) - 2
    batch: list[BatchAxis] = []
    rows: list[OuterAxis] = []
    columns: list[OuterAxis] = []
    left_single: list[int] = []
    right_single: list[int] = []
    for result in range(leading):
        left_axis, right_axis = result - leading + len(left) - 2, result - leading + len(right) - 2
        if right_axis < 0:
            rows.append(OuterAxis(operand=left_axis, result=result))
        elif left_axis < 0:
            columns.append(OuterAxis(operand=right_axis, result=result))
        elif left[left_axis] == right[right_axis]:
            batch.append(BatchAxis(left=left_axis, right=right_axis, result=result))
        elif right[right_axis] == 1:
            rows.append(OuterAxis(operand=left_axis, result=result))
            right_single.append(right_axis)
        elif left[left_axis] == 1:
            columns.append(OuterAxis(operand=right_axis, result=result))
            left_single.append(left_axis)
        else:
            raise ValueError(
                f"batch: left axis {left_axis} has extent {left[left_axis]}, "
                f"right axis {right_axis} has extent {right[right_axis]}"
            )
    left_last, right_last = len(left) - 1, len(right) - 1
    rows.append(OuterAxis(operand=left_last if transpose_left else left_last - 1, result=leading))
    columns.append(OuterAxis(operand=right_last - 1 if transpose_right else right_last, result=leading + 1))
    contraction = ContractionAxis(
        left=left_last - 1 if transpose_left else left_last,
        right=right_last if transpose_right else right_last - 1,
    )
    axes = ProductAxes(
        batch=tuple(batch),
        rows=tuple(rows),
        columns=tuple(columns),
        contraction=(contraction,),
        left_single=tuple(left_single),
        right_single=tuple(right_single),
    )
    axes.result_shape(left, right)
    return axes


def _letter(number: int) -> str:
    """a, b, ... in the sequence of result axes, then of contraction axes."""
    return chr(ord("a") + number)
