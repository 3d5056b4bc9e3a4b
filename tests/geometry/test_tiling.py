"""Shard bounds and owners: worked figures, blocks dealt out one by one, refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.operand import shard_operands
from compiler.geometry.order import AmpLeft, RowMajor
from compiler.geometry.precision import F8, F16, F32
from compiler.geometry.redistribution import redistribute
from compiler.geometry.tiling import (
    AxisTiling,
    GridTiling,
    LinearTiling,
    Padding,
    ShardExtent,
    TensorTiling,
)
from tests.geometry.cases import distributed
from tests.geometry.interpreter import shards_of_axis
from tests.geometry.strategies import axis_tilings


def widths(tiling: AxisTiling, extent: int) -> list[int]:
    shards = tiling.shards(extent)
    return (shards.logical_ends - shards.starts).tolist()


def test_worked_shard_widths() -> None:
    assert widths(AxisTiling(axis=0, partitions=9), 729) == [81] * 9
    assert widths(AxisTiling(axis=1, partitions=27, block_size=16), 4304) == [160] * 26 + [144]
    by_k = AxisTiling(axis=0, partitions=27, block_size=32, padding_multiple=32, padding=Padding.ZERO)
    assert (by_k.shards(4304).physical_ends - by_k.shards(4304).starts).tolist() == [160] * 27
    assert widths(by_k, 4304)[-1] == 144
    assert by_k.shards(4304).extent(26) == ShardExtent(
        axis=0, start=4160, logical_end=4304, physical_end=4320
    )


def test_padding_groups_are_padded_one_by_one() -> None:
    # 16 heads of 72 columns, each padded to 80 and cut in two.
    heads = AxisTiling(
        axis=-1, partitions=32, padding_groups=16, block_size=16, padding_multiple=16, padding=Padding.ZERO
    )
    shards = heads.shards(1152)
    assert [(e.start, e.logical_end, e.physical_end) for e in map(shards.extent, range(4))] == [
        (0, 48, 48),
        (48, 72, 80),
        (72, 120, 120),
        (120, 144, 152),
    ]


@given(st.data(), st.integers(1, 24), st.sampled_from([1, 4, 16]))
def test_shards_are_blocks_dealt_out_in_order(data: st.DataObject, extent: int, multiple: int) -> None:
    tiling = data.draw(axis_tilings(0, extent, multiple))
    shards = tiling.shards(extent)
    for number, (inside, width) in enumerate(shards_of_axis(tiling, extent)):
        found = shards.extent(number)
        assert list(range(found.start, found.logical_end)) == inside
        assert found.physical_end - found.start == width
    assert shards.empty.tolist() == [
        number for number, (inside, _) in enumerate(shards_of_axis(tiling, extent)) if not inside
    ]


def test_rejected_padding_is_an_error() -> None:
    for tiling in (
        AxisTiling(axis=0, partitions=9, block_size=2, padding_multiple=2),
        AxisTiling(axis=0, partitions=9, shard_padding_multiple=2),
    ):
        with pytest.raises(ValueError, match="axis 0 of 729 needs padding, which its tiling rejects"):
            tiling.shards(729)
    assert AxisTiling(axis=0, partitions=9, shard_padding_multiple=27).shards(729).physical_ends[-1] == 729


def test_tilings_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="axis 0 of 729 does not divide into 2 padding groups"):
        AxisTiling(axis=0, partitions=2, padding_groups=2).shards(729)
    with pytest.raises(
        ValueError, match="729 elements, padded to a multiple of 1, do not divide into blocks of 2"
    ):
        AxisTiling(axis=0, partitions=2, block_size=2).shards(729)
    with pytest.raises(ValueError, match="4 partitions do not divide among 3 padding groups"):
        AxisTiling(axis=0, partitions=4, padding_groups=3)
    with pytest.raises(ValueError, match="block_size of axis 0 is 0"):
        AxisTiling(axis=0, partitions=4, block_size=0)
    with pytest.raises(ValueError, match="owner_stride of axis 0 is 0"):
        AxisTiling(axis=0, partitions=4, owner_stride=0)
    with pytest.raises(ValueError, match="at least one owner, not 0"):
        GridTiling(replicas=0)
    with pytest.raises(ValueError, match="an axis is cut twice"):
        GridTiling(axes=(AxisTiling(axis=0, partitions=2), AxisTiling(axis=0, partitions=2)))
    with pytest.raises(ValueError, match="axis 1 of rank 2 is cut twice"):
        GridTiling(axes=(AxisTiling(axis=1, partitions=2), AxisTiling(axis=-1, partitions=2))).tilings(2)
    with pytest.raises(ValueError, match="axis 2 does not exist in rank 2"):
        GridTiling(axes=(AxisTiling(axis=2, partitions=2),)).tilings(2)
    with pytest.raises(ValueError, match="partitions, grain and replicas are positive"):
        LinearTiling(partitions=4, grain=0)


def test_packed_owners_run_over_replicas_then_the_last_axis() -> None:
    grid = GridTiling(replicas=2, axes=(AxisTiling(axis=0, partitions=2), AxisTiling(axis=1, partitions=3)))
    assert grid.owner_count == 12
    coordinates = grid.owner_coordinates(np.arange(12, dtype=np.int64)).tolist()
    assert coordinates == [[r, c] for r in range(2) for c in range(3) for _ in range(2)]


def test_given_owner_strides_place_axes_and_leave_the_rest_to_replicas() -> None:
    # A weight grid of 3 K by 4 columns under 2 row replicas: columns fastest, replicas slowest.
    grid = GridTiling(
        replicas=2,
        axes=(
            AxisTiling(axis=0, partitions=3, owner_stride=4),
            AxisTiling(axis=1, partitions=4, owner_stride=1),
        ),
    )
    coordinates = grid.owner_coordinates(np.arange(24, dtype=np.int64)).tolist()
    assert coordinates == [[k, c] for _ in range(2) for k in range(3) for c in range(4)]
    # Attention queries: heads fastest, rows stride by the heads.
    heads = GridTiling(
        axes=(
            AxisTiling(axis=0, partitions=5, owner_stride=16),
            AxisTiling(axis=1, partitions=16, owner_stride=1),
        )
    )
    assert heads.owner_coordinates(np.array([16 * 3 + 7], dtype=np.int64)).tolist() == [[3, 7]]


def test_owner_strides_that_miss_shards_are_refused() -> None:
    with pytest.raises(
        ValueError, match="owner stride 3 does not continue the faster axes, which repeat every 2"
    ):
        GridTiling(
            axes=(
                AxisTiling(axis=0, partitions=3, owner_stride=3),
                AxisTiling(axis=1, partitions=2, owner_stride=1),
            )
        )
    with pytest.raises(ValueError, match="owner strides reach past the 6 owners"):
        GridTiling(
            axes=(
                AxisTiling(axis=0, partitions=3, owner_stride=4),
                AxisTiling(axis=1, partitions=2, owner_stride=1),
            )
        )


@given(st.permutations([(0, 2), (1, 3), (2, 2)]), st.sampled_from([1, 2, 3]), st.data())
def test_every_shard_has_each_of_its_replicas_once(
    axes: list[tuple[int, int]], replicas: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, 3))
    cuts: list[AxisTiling] = []
    stride = replicas if place == 0 else 1
    for number, (axis, partitions) in enumerate(axes, start=1):
        cuts.append(AxisTiling(axis=axis, partitions=partitions, owner_stride=stride))
        stride *= partitions * (replicas if number == place else 1)
    found = distributed((6, 6, 6), F16(), RowMajor(), GridTiling(replicas=replicas, axes=tuple(cuts)))
    assert found.owners.shape == (12, replicas)
    assert sorted(found.owners.reshape(-1).tolist()) == list(range(12 * replicas))
    for shard in range(12):
        assert (found.shard_of_owner[found.owners[shard]] == shard).all()
        by_axis = [shard // 6, shard // 2 % 3, shard % 2]
        for owner in found.owners[shard].tolist():
            for cut in cuts:
                assert cut.owner_stride is not None
                assert owner // cut.owner_stride % cut.partitions == by_axis[cut.axis]


def test_a_linear_tiling_pads_only_the_last_grain() -> None:
    assert LinearTiling(partitions=4, grain=4).bounds(30).tolist() == [0, 8, 16, 24, 32]
    assert LinearTiling(partitions=4, grain=4).bounds(17).tolist() == [0, 8, 12, 16, 20]
    found = distributed((5, 7), F16(), RowMajor(), LinearTiling(partitions=3, grain=4, replicas=2))
    assert found.storage_bytes.tolist() == [24, 24, 24]
    assert found.logical_elements.tolist() == [12, 12, 11]
    assert found.owners.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_linear_tiling_does_not_cut_panel_rows() -> None:
    with pytest.raises(ValueError, match="a grain of 16 elements cuts the panel rows of 32 of AmpLeft"):
        distributed((4, 64), F8(), AmpLeft(), LinearTiling(partitions=2, grain=16))


def test_a_grid_with_an_empty_shard_is_found_per_precision() -> None:
    # Seven key partitions of 729 are 112 wide in F16, 128 in FP8, and the seventh starts at 768.
    for precision, width, empty in ((F32(), 112, []), (F16(), 112, []), (F8(), 128, [6])):
        assert width == -(-105 // precision.micro) * precision.micro
        keys = AxisTiling(
            axis=1, partitions=7, block_size=width, padding_multiple=7 * width, padding=Padding.ZERO
        )
        found = distributed((64, 729), precision, AmpLeft(), GridTiling(axes=(keys,)))
        assert found.empty_shards.tolist() == empty
        if empty:
            with pytest.raises(
                ValueError, match=r"1 of 7 shards of \[64, 729\] in F8 hold no element; .* shard 6"
            ):
                found.require_no_empty_shards()
        else:
            found.require_no_empty_shards()


def test_extents_that_no_axis_has() -> None:
    for padding in Padding:
        cut = AxisTiling(axis=0, partitions=2, padding_multiple=4, padding=padding)
        with pytest.raises(ValueError, match="axis 0 has extent -4, not at least 0"):
            cut.shards(-4)
    with pytest.raises(ValueError, match="beyond offsets of 64 bits"):
        AxisTiling(axis=0, partitions=1).shards(1 << 63)
    with pytest.raises(ValueError, match="beyond offsets of 64 bits"):
        AxisTiling(axis=0, partitions=1, padding_multiple=1 << 70, padding=Padding.ZERO).shards(1)


@pytest.mark.parametrize(
    "tiling",
    [
        GridTiling(),
        GridTiling(axes=(AxisTiling(axis=1, partitions=64),)),
        LinearTiling(partitions=64, grain=4),
    ],
)
def test_tensors_larger_than_any_memory(tiling: TensorTiling) -> None:
    """Sizes are exact as far as 64 bits reach, and refused beyond instead of wrapping around."""
    tensor_format = TensorFormat(precision=F32(), layout=TensorLayout(order=RowMajor(), tiling=tiling))
    shape = (1 << 40, 1 << 20)
    assert int(distribute(shape, tensor_format).storage_bytes.sum()) == 1 << 62
    with pytest.raises(ValueError, match="beyond offsets of 64 bits"):
        distribute((1 << 40, (1 << 20) + 64), tensor_format)


def test_rank_0() -> None:
    """A scalar has one element, one shard of a grid, and as many owners as replicas."""
    layout = TensorLayout(order=RowMajor(), tiling=GridTiling(replicas=3))
    scalar = distribute((), TensorFormat(precision=F16(), layout=layout))
    assert (scalar.shard_count, scalar.owner_count, scalar.storage_bytes.tolist()) == (1, 3, [2])
    operands, numbers = shard_operands(scalar)
    assert [operand.physical for operand in operands] == [()]
    assert numbers.tolist() == [0]
    layout = TensorLayout(order=RowMajor(), tiling=LinearTiling(partitions=2, grain=4))
    linear = distribute((), TensorFormat(precision=F16(), layout=layout))
    assert linear.storage_bytes.tolist() == [8, 0]
    assert redistribute(scalar, linear).run_count == redistribute(linear, scalar).run_count == 1


def test_axes_without_elements() -> None:
    layout = TensorLayout(order=AmpLeft(), tiling=GridTiling(axes=(AxisTiling(axis=0, partitions=3),)))
    empty = distribute((0, 32), TensorFormat(precision=F16(), layout=layout))
    assert empty.empty_shards.tolist() == [0, 1, 2]
    assert empty.storage_bytes.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="3 of 3 shards"):
        empty.require_no_empty_shards()
