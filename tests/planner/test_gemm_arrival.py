"""How operands lie, against the shards that hold them."""

import numpy as np
import pytest

from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import identity
from compiler.geometry.order import AmpLeft
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Side
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding
from compiler.geometry.views import merge, transpose
from compiler.mid.ir import Value
from compiler.planner.bound import flat_format
from compiler.planner.gemm_arrival import arrival_of
from compiler.planner.gemm_candidates import candidates
from compiler.planner.gemm_problem import Arrival
from tests.planner.products import problem_of


def in_panels(shape: tuple[int, ...], rows: int, columns: int, tile_count: int = 64) -> Value:
    """A value in AMP left pieces: its two last axes in so many parts."""
    axes = (
        AxisTiling(axis=-2, partitions=rows),
        AxisTiling(axis=-1, partitions=columns, block_size=16, padding_multiple=16, padding=Padding.ZERO),
    )
    layout = TensorLayout(order=AmpLeft(), tiling=GridTiling(axes=axes))
    return Value(
        name="value",
        shape=shape,
        format=TensorFormat(precision=F16(), layout=layout),
        owners=OwnerMap(tile_count=tile_count),
    )


def test_pieces_are_the_largest_shard() -> None:
    """Rows and K of a shard, in the coordinates of the product."""
    problem = problem_of(18, 130, 40, tile_count=64, parameter=None)
    value = in_panels((18, 130), 4, 3)
    assert arrival_of(problem, Side.LEFT, value, identity((18, 130))) == Arrival(outer=5, inner=48)
    turned = problem_of(18, 130, 40, tile_count=64, parameter=None, transpose_left=True)
    assert arrival_of(turned, Side.LEFT, value, transpose((18, 130), (1, 0))) == Arrival(outer=5, inner=48)


def test_merged_axes_take_the_product_of_their_pieces() -> None:
    """[3, 6, K] read as 18 rows: a piece has all of 3 and some of 6."""
    problem = problem_of(6, 130, 40, tile_count=64, left_batch=(3,), right_batch=())
    value = in_panels((3, 6, 130), 2, 1)
    assert arrival_of(problem, Side.LEFT, value, identity((3, 6, 130))) == Arrival(outer=9, inner=130)
    heads = problem_of(18, 128, 40, tile_count=64)
    split = in_panels((18, 4, 32), 4, 1)
    assert arrival_of(heads, Side.LEFT, split, merge((18, 4, 32), 1, 2)) == Arrival(outer=18, inner=32)


def test_flat_tensors_are_runs_of_rows() -> None:
    """Of a row-major tensor each tile has part of a row, or whole rows."""
    problem = problem_of(18, 64, 40, tile_count=64)
    value = Value(
        name="value", shape=(18, 64), format=flat_format((18, 64), F16(), 64), owners=OwnerMap(tile_count=64)
    )
    assert arrival_of(problem, Side.LEFT, value, identity((18, 64))) == Arrival(
        outer=1, inner=20, is_in_panels=False
    )


@pytest.mark.parametrize("is_before", [False, True])
@pytest.mark.parametrize("precision", [F16(), F8(scale_exponent=-3)])
def test_smaller_pieces_are_never_cheaper(precision: F16 | F8, is_before: bool) -> None:
    """The best candidate costs no less when its operand comes in more runs."""
    problem = problem_of(80, 160, 70, tile_count=64, precision=precision, left_precision=F16())
    best: list[int] = []
    for arrival in (
        Arrival(outer=80, inner=160),
        Arrival(outer=10, inner=160),
        Arrival(outer=3, inner=160),
        Arrival(outer=3, inner=160, is_in_panels=False),
    ):
        found = candidates(problem, cast_before_copies=is_before, arrivals={Side.LEFT: arrival})
        words = [int(front.variants.costs[:, 3].min()) for front in found.fronts]
        best.append(min(words))
    assert best == sorted(best)
    assert np.diff(best).any()
