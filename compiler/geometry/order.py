"""Element orders: in which sequence a local tensor's elements lie in memory.

Every order is one list of *factors*. A factor takes one digit out of one coordinate, ``(coordinate // weight)
% radix``, and the list, read from the slowest to the fastest, gives the storage index as a mixed-radix number
of those digits. The factors of an axis together take the whole coordinate, so the index map is a bijection
onto ``range(size)`` by construction, its inverse reads the same digits back, and it is a sum of one function
per axis. Traversals, run structure and matching all derive from this list; no order is special anywhere else.

Matrix orders apply to the last two axes, rows and columns. Left and Output flatten all outer axes into rows;
the others pack each matrix separately, one after another. With u the elements of a panel row
(``precision.micro``):

====================  =================================================================================
order                 index of (r, c) in [R, C]
====================  =================================================================================
RowMajor              r*C + c, for any rank
AmpLeft               (c//u)*R*u + r*u + c%u
AmpTransposedLeft     AmpLeft of the transpose
AmpRight              p*u*16 + (c%16)*u + r%u, p = (c//16)*(R/u) + r//u   (rows are K, columns are N)
AmpTransposedRight    AmpRight of the transpose
AmpOutput             (c//16)*R*16 + r*16 + lane(c%16), lane = 0 1 4 5 8 9 12 13 2 3 6 7 10 11 14 15
AmpTransposedOutput   AmpOutput of the transpose
BlockMajor            p*u*cb + (c%cb)*u + r%u, p = ((r//rb)*(C/cb) + c//cb)*(rb/u) + (r%rb)//u
BlockMajorTransposed  BlockMajor with rows and columns exchanged
====================  =================================================================================

(Source: the operand layouts of the AMP unit and of the vendor-compatible kernels; worked figures in the
tests.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, TypeAlias, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import Precision

AMP_COLUMNS: Final = 16
"""Output channels of one AMP pass, in every precision: the width of coefficient panels and output groups."""


@final
@dataclass(frozen=True, slots=True)
class RowMajor:
    """Last axis fastest."""


@final
@dataclass(frozen=True, slots=True)
class AmpLeft:
    """Column panels of one panel row each: the activations of a product, read row after row."""


@final
@dataclass(frozen=True, slots=True)
class AmpTransposedLeft:
    """AmpLeft of the transposed matrix."""


@final
@dataclass(frozen=True, slots=True)
class AmpRight:
    """Coefficient panels of a [K, N] matrix: for each 16 columns all K panels consecutively."""


@final
@dataclass(frozen=True, slots=True)
class AmpTransposedRight:
    """Coefficient panels of the transpose: rows are N (attention keys), columns are K (channels)."""


@final
@dataclass(frozen=True, slots=True)
class AmpOutput:
    """Column groups of 16 in the drain sequence of a monotonic coefficient load."""


@final
@dataclass(frozen=True, slots=True)
class AmpTransposedOutput:
    """AmpOutput of the transposed matrix."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMajor:
    """Blocks of ``row_block`` x ``column_block``, each in coefficient panels over its rows.

    Raises:
        ValueError: a block extent is not positive.
    """

    row_block: int
    column_block: int

    def __post_init__(self) -> None:
        _check_blocks(self.row_block, self.column_block)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMajorTransposed:
    """BlockMajor with the roles of rows and columns exchanged: panels run over the columns of a block.

    ``row_block`` blocks the columns and ``column_block`` the rows, as they do in the transposed matrix.

    Raises:
        ValueError: a block extent is not positive.
    """

    row_block: int
    column_block: int

    def __post_init__(self) -> None:
        _check_blocks(self.row_block, self.column_block)


ElementOrder: TypeAlias = (
    RowMajor
    | AmpLeft
    | AmpTransposedLeft
    | AmpRight
    | AmpTransposedRight
    | AmpOutput
    | AmpTransposedOutput
    | BlockMajor
    | BlockMajorTransposed
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """One digit of an index: ``(coordinate of axis // weight) % radix``; without radix, all that is left."""

    axis: int
    weight: int
    radix: int | None


def factors(order: ElementOrder, precision: Precision, rank: int) -> tuple[Factor, ...]:
    """The digits of ``order`` for tensors of ``rank``, slowest first.

    Weights and radices do not depend on the extents; a factor with radix None occurs once per axis and
    carries its highest weight, which divides the extent that the axis must have.

    Raises:
        ValueError: a matrix order on fewer than two axes, or a block that does not hold whole panel rows.
    """
    if rank < 2 and not isinstance(order, RowMajor):
        raise ValueError(f"{type(order).__name__} orders a matrix; a tensor of rank {rank} has none")
    row, column = rank - 2, rank - 1
    outer = tuple(_whole(axis) for axis in range(row))
    micro = precision.micro
    match order:
        case RowMajor():
            return tuple(_whole(axis) for axis in range(rank))
        case AmpLeft():
            return (_blocks(column, micro), *outer, _whole(row), _lanes(column, micro))
        case AmpTransposedLeft():
            return (*outer, _blocks(row, micro), _whole(column), _lanes(row, micro))
        case AmpRight():
            return (*outer, *_coefficients(k=row, n=column, micro=micro))
        case AmpTransposedRight():
            return (*outer, *_coefficients(k=column, n=row, micro=micro))
        case AmpOutput():
            return (_blocks(column, AMP_COLUMNS), *outer, _whole(row), *_drain_lanes(column))
        case AmpTransposedOutput():
            return (*outer, _blocks(row, AMP_COLUMNS), _whole(column), *_drain_lanes(row))
        case BlockMajor(row_block=row_block, column_block=column_block):
            return (*outer, *_block_panels(row, column, row_block, column_block, micro))
        case BlockMajorTransposed(row_block=row_block, column_block=column_block):
            return (*outer, *_block_panels(column, row, row_block, column_block, micro))
        case _:
            assert_never(order)


def axis_multiples(order: ElementOrder, precision: Precision, rank: int) -> tuple[int, ...]:
    """What each extent must be a multiple of; same errors as :func:`factors`."""
    multiples = [1] * rank
    for factor in factors(order, precision, rank):
        multiples[factor.axis] = max(multiples[factor.axis], factor.weight)
    return tuple(multiples)


def lane_elements(order: ElementOrder, precision: Precision) -> int:
    """Elements in the smallest piece of the storage sequence that keeps panel rows whole; 1 for RowMajor."""
    match order:
        case RowMajor():
            return 1
        case AmpOutput() | AmpTransposedOutput():
            return AMP_COLUMNS
        case (
            AmpLeft()
            | AmpTransposedLeft()
            | AmpRight()
            | AmpTransposedRight()
            | BlockMajor()
            | BlockMajorTransposed()
        ):
            return precision.micro
        case _:
            assert_never(order)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """A factor in a tensor of known extents: ``((coordinate // weight) % radix) * stride`` elements."""

    axis: int
    weight: int
    radix: int
    stride: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class IndexMap:
    """The bijection between the coordinates of a local tensor and ``range(size)``.

    Args:
        extents: physical extents; an extent may be zero.
        digits: slowest first; made by :func:`index_map`.
    """

    extents: tuple[int, ...]
    digits: tuple[Digit, ...]

    @property
    def size(self) -> int:
        """Elements stored, padding included."""
        return prod(self.extents)

    def index(self, coordinate: Sequence[int]) -> int:
        """Storage index of one coordinate.

        Raises:
            ValueError: the coordinate is outside the extents.
        """
        if len(coordinate) != len(self.extents) or not all(
            0 <= value < extent for value, extent in zip(coordinate, self.extents, strict=True)
        ):
            raise ValueError(f"coordinate {tuple(coordinate)} is outside extents {self.extents}")
        return sum(coordinate[d.axis] // d.weight % d.radix * d.stride for d in self.digits)

    def indices(self, coordinates: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Storage indices [...] of coordinates [..., rank], which must lie inside the extents."""
        result = np.zeros(coordinates.shape[:-1], dtype=np.int64)
        for d in self.digits:
            result += coordinates[..., d.axis] // d.weight % max(d.radix, 1) * d.stride
        return result

    def coordinate(self, index: int) -> tuple[int, ...]:
        """The coordinate stored at ``index``.

        Raises:
            ValueError: the index is outside ``range(size)``.
        """
        if not 0 <= index < self.size:
            raise ValueError(f"index {index} is outside the {self.size} elements of extents {self.extents}")
        coordinate = [0] * len(self.extents)
        for d in self.digits:
            coordinate[d.axis] += index // d.stride % d.radix * d.weight
        return tuple(coordinate)

    def coordinates(self, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Coordinates [..., rank] of storage indices [...], which must lie inside ``range(size)``."""
        result = np.zeros((*indices.shape, len(self.extents)), dtype=np.int64)
        for d in self.digits:
            result[..., d.axis] += indices // max(d.stride, 1) % max(d.radix, 1) * d.weight
        return result

    def axis_terms(self, axis: int) -> tuple[tuple[int, int], ...]:
        """(weight, stride) of the digits of ``axis``, heaviest first, where storage really is interrupted.

        The axis contributes the sum over its terms of stride * (what is left of the coordinate // weight),
        each term leaving the remainder to the next. Two digits whose strides continue one another are one
        term: a single row of panels is one line.
        """
        digits = sorted(
            (d for d in self.digits if d.axis == axis and d.radix > 1), key=lambda d: d.weight, reverse=True
        )
        terms: list[tuple[int, int]] = []
        for position, d in enumerate(digits):
            lighter = digits[position + 1] if position + 1 < len(digits) else None
            if (
                lighter is None
                or d.stride != lighter.stride * lighter.radix
                or d.weight != lighter.weight * lighter.radix
            ):
                terms.append((d.weight, d.stride))
            else:
                digits[position + 1] = Digit(
                    axis=axis, weight=lighter.weight, radix=lighter.radix * d.radix, stride=lighter.stride
                )
        return tuple(terms)


def index_map(order: ElementOrder, precision: Precision, extents: Sequence[int]) -> IndexMap:
    """The index map of ``order`` on a local tensor of physical ``extents``.

    Raises:
        ValueError: an extent is negative or does not hold whole panels or blocks, or see :func:`factors`.
    """
    rank = len(extents)
    order_factors = factors(order, precision, rank)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"extents {tuple(extents)} are not all positive or zero")
    for axis, multiple in enumerate(axis_multiples(order, precision, rank)):
        if extents[axis] % multiple:
            raise ValueError(
                f"{type(order).__name__} in {type(precision).__name__} needs a multiple of {multiple} "
                f"on axis {axis}; the extents are {tuple(extents)}"
            )
    digits: list[Digit] = []
    stride = 1
    for factor in reversed(order_factors):
        radix = extents[factor.axis] // factor.weight if factor.radix is None else factor.radix
        digits.append(Digit(axis=factor.axis, weight=factor.weight, radix=radix, stride=stride))
        stride *= radix
    return IndexMap(extents=tuple(extents), digits=tuple(reversed(digits)))


def _whole(axis: int) -> Factor:
    return Factor(axis=axis, weight=1, radix=None)


def _blocks(axis: int, extent: int) -> Factor:
    return Factor(axis=axis, weight=extent, radix=None)


def _lanes(axis: int, extent: int) -> Factor:
    return Factor(axis=axis, weight=1, radix=extent)


def _coefficients(*, k: int, n: int, micro: int) -> tuple[Factor, ...]:
    return (_blocks(n, AMP_COLUMNS), _blocks(k, micro), _lanes(n, AMP_COLUMNS), _lanes(k, micro))


def _drain_lanes(axis: int) -> tuple[Factor, ...]:
    """Pairs of columns (a, b), a the half of the group and b its quarter, drain with b slower than a."""
    return (
        Factor(axis=axis, weight=2, radix=4),
        Factor(axis=axis, weight=8, radix=2),
        Factor(axis=axis, weight=1, radix=2),
    )


def _block_panels(k: int, n: int, k_block: int, n_block: int, micro: int) -> tuple[Factor, ...]:
    if k_block % micro:
        raise ValueError(f"a block of {k_block} does not hold whole panel rows of {micro} elements")
    panels = Factor(axis=k, weight=micro, radix=k_block // micro)
    return (_blocks(k, k_block), _blocks(n, n_block), panels, _lanes(n, n_block), _lanes(k, micro))


def _check_blocks(row_block: int, column_block: int) -> None:
    if row_block < 1 or column_block < 1:
        raise ValueError(f"blocks of {row_block} x {column_block} elements are empty")
