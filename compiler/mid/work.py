"""What a distributed computation computes: products, sums of partials, element-wise work, casts.

Each kind records the choices that its meaning and its expansion need and nothing that is still open (ML-05,
ML-10). What a computation reads of its operands is its recorded index relations, which
:func:`needed_region` restricts to a region of a result. Numbers are defined by the kernel families; this
module only names their work.
"""

from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

from compiler.geometry.mapping import Shape
from compiler.geometry.product import ProductAxes
from compiler.geometry.region import Region
from compiler.geometry.relation import ProductOperand, Relation, project
from compiler.kernels.gemm.binding import Mode, Orientation, Rounding
from compiler.kernels.pointwise.binding import Operation


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product of two operands; with ``parts``, one independent product for each part of the contraction.

    Without parts the result has the axes of ``axes``. With parts it has one more axis in front, the partials
    axis, and partial p sums over coordinates ``parts[p]`` of the only contraction axis (ML-38). Within what
    it sums over, a product is a chain over panels of K from its first coordinate on, as the matrix unit
    computes it.

    An accumulating product has a third operand, the partial sums it starts from, with the coordinates of its
    result; the result lies in its storage.

    Args:
        axes: the axes of the product, partials axis left out.
        mode: start from zero, or from the third operand.
        orientation: which operand is the left one of the matrix unit; the other is its weights.
        rounding: how sums become F16.
        parts: bounds of the parts of the contraction, ascending and contiguous; none for no partials axis.

    Raises:
        ValueError: parts of several contraction axes, parts that leave a gap or are empty, or an
            accumulating product with parts.
    """

    axes: ProductAxes
    mode: Mode = Mode.INITIALIZE
    orientation: Orientation = Orientation.NORMAL
    rounding: Rounding = Rounding.NEAREST
    parts: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.parts:
            return
        if len(self.axes.contraction) != 1:
            raise ValueError(f"{len(self.axes.contraction)} contraction axes cannot be cut into parts")
        if self.mode is Mode.ACCUMULATE:
            raise ValueError("a product that accumulates has no independent parts")
        stops = (0, *(stop for _, stop in self.parts[:-1]))
        for (start, stop), before in zip(self.parts, stops, strict=True):
            if start != before or stop <= start:
                raise ValueError(f"parts {self.parts} of the contraction leave a gap, overlap or are empty")

    @property
    def result_rank(self) -> int:
        """Axes of the result, partials axis included."""
        return self.axes.result_rank + (1 if self.parts else 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """The sum over axis 0 of one operand, the partials axis, in F16 (RD-01).

    Each owner of the result adds from the left: first the partial that its own tile holds, if it holds all
    that the owner sums (``shards.own_partials``), then the others in ascending order (pinned). The operand is
    distributed; fetching the partials is part of the work. Layouts and staging change scratch and phases,
    never the order.

    Args:
        batch: how many partials are brought to an owner at a time; None for all of them at once.

    Raises:
        ValueError: a batch that is not positive.
    """

    batch: int | None = None

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise ValueError(f"partials are brought {self.batch} at a time")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """An operation on each element of the result; further operands may repeat along axes of the result.

    Args:
        operation: what is done.
    """

    operation: Operation


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The same numbers in the precision of the result, rounded to nearest even; the order may change too.

    Args:
        is_separate: result and operand are to lie in separate memory elements, where that is faster.
    """

    is_separate: bool = False


Work: TypeAlias = Product | Sum | Elementwise | Cast
"""What a distributed computation computes."""


def needed_region(
    work: Work, relation: Relation, operand: Shape, region: Region, partials: int | None = None
) -> Region:
    """The operand coordinates that a region of the result needs.

    Args:
        work: the computation.
        relation: how its result reads this operand, partials axes left out.
        operand: shape of the operand.
        region: of the result; at least one coordinate. A product with parts needs one partial at a time.
        partials: for a sum, how many partials there are: all are needed.

    Raises:
        ValueError: the relation does not describe such an operand or result, or the region spans several
            partials.
    """
    match work:
        case Product(parts=parts) if parts and isinstance(relation, ProductOperand):
            (first, last), *rest = region.bounds
            if last != first + 1:
                raise ValueError(f"partials {first} .. {last - 1} are made from different operands")
            return project(
                relation, operand, Region(bounds=tuple(rest)), contraction=Region(bounds=(parts[first],))
            )
        case Sum():
            if partials is None:
                raise ValueError("a sum needs all partials; their number is not given")
            return Region(bounds=((0, partials), *region.bounds))
        case Product() | Elementwise() | Cast():
            return project(relation, operand, region)
        case _:
            assert_never(work)
