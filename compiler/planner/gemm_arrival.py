"""How an operand lies before a product brings it: in pieces of what size, in panels or not.

A summary for prices: the largest shard of the value that holds it, seen through the mapping by which the
product reads it. The copy itself is built from the value and its mapping, never from this.
"""

from collections.abc import Sequence
from math import prod
from typing import assert_never

import numpy as np

from compiler.geometry.compose import compose
from compiler.geometry.mapping import CoordinateMapping, Digit, NotRepresentable, Shape
from compiler.geometry.order import RowMajor
from compiler.geometry.relation import Side
from compiler.geometry.tiling import GridTiling, LinearTiling
from compiler.mid.ir import Value
from compiler.planner.gemm_problem import Arrival, GemmProblem


def arrival_of(problem: GemmProblem, side: Side, value: Value, mapping: CoordinateMapping) -> Arrival:
    """How an operand lies in a value.

    Args:
        problem: the product.
        side: which operand.
        value: what holds it.
        mapping: from coordinates of the graph operand to those of the value.
    """
    form = problem.form(side)
    extents = _largest_shard(value)
    seen = compose(form.mapping, mapping)
    is_in_panels = not isinstance(value.format.layout.order, RowMajor)
    if isinstance(seen, NotRepresentable):
        # The view is carried out first: a flat row-major tensor over all tiles.
        extents = _flat_extents(
            mapping.destination_shape, -(-prod(mapping.destination_shape) // problem.tile_count)
        )
        seen = form.mapping
        is_in_panels = False
    return Arrival(
        outer=_covered(seen.digits[form.outer], extents),
        inner=_covered(seen.digits[form.inner], extents),
        is_in_panels=is_in_panels,
    )


def _covered(digits: Sequence[Digit], extents: Shape) -> int:
    """Coordinates of one axis that lie in a shard with these extents: whole steps of each digit."""
    return prod(
        min(digit.extent, max(1, extents[digit.axis] // digit.stride))
        for digit in digits
        if digit.axis is not None
    )


def _largest_shard(value: Value) -> Shape:
    """Extents of the largest shard along each axis, none beyond the tensor."""
    distribution = value.distribution
    match value.format.layout.tiling:
        case GridTiling():
            widths = np.array([storage.extents for storage in distribution.index_maps], dtype=np.int64)
            most = widths.reshape(-1, len(value.shape)).max(axis=0).tolist()
            return tuple(min(extent, width) for extent, width in zip(value.shape, most, strict=True))
        case LinearTiling():
            return _flat_extents(value.shape, int(distribution.storage_elements.max()))
        case _:
            assert_never(value.format.layout.tiling)


def _flat_extents(shape: Shape, elements: int) -> Shape:
    """How far a run of so many elements of a row-major tensor reaches along each axis."""
    extents: list[int] = []
    for extent in reversed(shape):
        extents.append(min(extent, max(1, elements)))
        elements //= extent
    return tuple(reversed(extents))
