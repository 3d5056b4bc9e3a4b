"""Operands: what is requested, what backs it, what is padding (LC-09, LC-10, OI-05, CA-04)."""

import dataclasses
import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand, shard_operands
from compiler.geometry.order import AmpLeft, ElementOrder, RowMajor
from compiler.geometry.precision import F8, F16, Precision
from compiler.geometry.region import Region
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from tests.geometry.cases import distributed
from tests.geometry.interpreter import index_of
from tests.geometry.strategies import regions, storages
from tests.geometry.test_traversal import bytes_of


@given(storages(), st.data())
def test_strides_are_the_distance_of_neighbours_or_none(
    storage: tuple[Precision, ElementOrder, tuple[int, ...]], data: st.DataObject
) -> None:
    precision, order, extents = storage
    region = data.draw(regions(extents).filter(lambda region: not region.is_empty))
    logical = tuple(data.draw(st.integers(0, extent)) for extent in region.extents)
    operand = LocalOperand(precision=precision, order=order, backing=extents, region=region, logical=logical)
    corners = {region.starts, tuple(stop - 1 for stop in region.stops)}
    for axis, (start, stop) in enumerate(region.bounds):
        for corner in corners:
            line = [
                index_of(order, precision, extents, (*corner[:axis], value, *corner[axis + 1 :]))
                for value in range(extents[axis])
            ]
            steps = {after - before for before, after in itertools.pairwise(line[start:stop])}
            stride = operand.strides[axis]
            if stride is None:
                assert len({after - before for before, after in itertools.pairwise(line)}) > 1
            else:
                assert steps == ({stride} if stop - start > 1 else set())
                assert stop - start > 1 or stride == 0
    held = bytes_of(operand.logical_traversal())
    holes = bytes_of(operand.padding_traversal())
    assert sorted(held + holes) == sorted(bytes_of(operand.traversal()))
    assert operand.is_padded == bool(holes) or 0 in logical
    assert len(held) == math.prod(logical) * precision.element_bytes


def whole(rows: int, columns: int, order: ElementOrder | None = None) -> LocalOperand:
    """A row-major F16 matrix."""
    return LocalOperand(
        precision=F16(),
        order=RowMajor() if order is None else order,
        backing=(rows, columns),
        region=Region.of_extents((rows, columns)),
        logical=(rows, columns),
    )


def test_a_borrowed_slice_keeps_the_strides_of_its_storage() -> None:
    slice_of_large = dataclasses.replace(
        whole(8, 64), region=Region(bounds=((2, 6), (16, 32))), logical=(4, 16)
    )
    assert slice_of_large.strides == (64, 1)
    assert whole(4, 16).strides == (16, 1)
    assert slice_of_large.physical == whole(4, 16).physical
    assert slice_of_large != whole(4, 16)
    assert not slice_of_large.traversal().is_contiguous
    panel = dataclasses.replace(
        whole(8, 64, AmpLeft()), region=Region(bounds=((0, 8), (16, 32))), logical=(8, 16)
    )
    assert panel.strides == (16, 1)
    assert panel.traversal().is_contiguous


def test_operands_are_equal_exactly_when_their_geometry_is() -> None:
    operand = whole(8, 64)
    assert operand == whole(8, 64)
    assert hash(operand) == hash(whole(8, 64))
    others = [
        dataclasses.replace(operand, precision=F8()),
        dataclasses.replace(operand, order=AmpLeft()),
        dataclasses.replace(operand, backing=(16, 64)),
        dataclasses.replace(operand, region=Region(bounds=((0, 7), (0, 64))), logical=(7, 64)),
        dataclasses.replace(operand, logical=(7, 64)),
        dataclasses.replace(operand, memory_class=MemoryClass.INTERLEAVED),
        dataclasses.replace(operand, origin=16),
    ]
    assert len({operand, *others}) == 1 + len(others)


def test_operands_that_cannot_be_are_refused() -> None:
    operand = whole(8, 64)
    with pytest.raises(ValueError, match="leaves the backing storage"):
        dataclasses.replace(operand, region=Region(bounds=((0, 9), (0, 64))))
    with pytest.raises(ValueError, match="exceed the physical ones"):
        dataclasses.replace(operand, logical=(9, 64))
    with pytest.raises(ValueError, match="origin 3 is not an element's place"):
        dataclasses.replace(operand, origin=3)
    with pytest.raises(ValueError, match="origin 32 is not an element's place"):
        dataclasses.replace(operand, origin=32)
    with pytest.raises(ValueError, match="needs a multiple of 16 on axis 1"):
        dataclasses.replace(operand, order=AmpLeft(), backing=(8, 65))


def test_a_distribution_has_one_operand_per_distinct_shard() -> None:
    # 269 column blocks over 162 and 365 row pairs over 9: six kinds of shards.
    tiling = GridTiling(
        axes=(
            AxisTiling(axis=0, partitions=9, block_size=2, padding_multiple=2, padding=Padding.ZERO),
            AxisTiling(axis=1, partitions=162, block_size=16),
        )
    )
    found = distributed((729, 4304), F16(), AmpLeft(), tiling)
    operands, kind = shard_operands(found)
    assert sorted((operand.logical, operand.physical) for operand in operands) == [
        ((79, 16), (80, 16)),
        ((79, 32), (80, 32)),
        ((80, 16), (80, 16)),
        ((80, 32), (80, 32)),
        ((82, 16), (82, 16)),
        ((82, 32), (82, 32)),
    ]
    for shard in range(found.shard_count):
        operand = operands[int(kind[shard])]
        assert operand.logical[0] * operand.logical[1] == found.logical_elements[shard]
        assert operand.traversal().byte_count == found.storage_bytes[shard]


def test_a_linear_shard_is_a_vector_or_no_operand() -> None:
    found = distributed((5, 7), F16(), RowMajor(), LinearTiling(partitions=3, grain=4))
    operands, kind = shard_operands(found)
    assert [(operands[int(k)].logical, operands[int(k)].physical) for k in kind] == [
        ((12,), (12,)),
        ((12,), (12,)),
        ((11,), (12,)),
    ]
    with pytest.raises(ValueError, match="a linear shard in AmpLeft is a run of storage, not an operand"):
        shard_operands(distributed((5, 32), F16(), AmpLeft(), LinearTiling(partitions=3, grain=16)))
