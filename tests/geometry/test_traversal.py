"""Traversals against the interpreter: exact bytes, disjoint pieces, holes, spans (MG-02, MG-04, CA-02)."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, BlockMajor, ElementOrder, IndexMap, RowMajor, index_map
from compiler.geometry.precision import F8, F16, Precision
from compiler.geometry.region import Region
from compiler.geometry.traversal import Traversal, traverse, traverse_outside
from tests.geometry.interpreter import BYTES, index_of
from tests.geometry.strategies import regions, storages


def region_bytes(
    precision: Precision, order: ElementOrder, extents: tuple[int, ...], region: Region
) -> set[int]:
    """Every byte of a region, one element at a time."""
    size = BYTES[type(precision)]
    return {
        index_of(order, precision, extents, coordinate) * size + byte
        for coordinate in itertools.product(*(range(start, stop) for start, stop in region.bounds))
        for byte in range(size)
    }


def bytes_of(traversal: Traversal) -> list[int]:
    """Every byte that a traversal visits, with repetitions."""
    offsets, lengths = traversal.runs()
    return [
        byte
        for offset, length in zip(offsets, lengths, strict=True)
        for byte in range(offset, offset + length)
    ]


@given(storages(), st.data())
def test_a_traversal_visits_each_byte_of_its_region_once(
    storage: tuple[Precision, ElementOrder, tuple[int, ...]], data: st.DataObject
) -> None:
    precision, order, extents = storage
    region = data.draw(regions(extents))
    found = traverse(index_map(order, precision, extents), region, precision.element_bytes)
    expected = sorted(region_bytes(precision, order, extents, region))
    visited = bytes_of(found)
    assert sorted(visited) == expected
    assert found.byte_count == len(expected)
    assert found.extent == ((expected[0], expected[-1] + 1) if expected else (0, 0))
    assert found.is_contiguous == (not expected or expected[-1] + 1 - expected[0] == len(expected))


@given(storages(), st.data())
def test_runs_and_spans_are_maximal(
    storage: tuple[Precision, ElementOrder, tuple[int, ...]], data: st.DataObject
) -> None:
    precision, order, extents = storage
    region = data.draw(regions(extents))
    found = traverse(index_map(order, precision, extents), region, precision.element_bytes)
    expected = region_bytes(precision, order, extents, region)
    starts, stops = found.spans()
    assert starts.tolist() == sorted(byte for byte in expected if byte - 1 not in expected)
    assert stops.tolist() == sorted(byte + 1 for byte in expected if byte + 1 not in expected)
    for piece in found.pieces:
        offsets = piece.offsets(0)
        assert len(offsets) == piece.run_count
        assert not np.isin(offsets + piece.run_bytes, offsets).any()
    offsets, lengths = found.runs()
    assert len(offsets) == found.run_count
    common = np.gcd.reduce(np.concatenate([offsets, lengths])) if len(offsets) else 0
    assert common == 0 or common % found.alignment == 0


@given(storages(), st.data())
def test_padding_holes_are_the_other_bytes(
    storage: tuple[Precision, ElementOrder, tuple[int, ...]], data: st.DataObject
) -> None:
    precision, order, extents = storage
    logical = data.draw(regions(extents))
    found = index_map(order, precision, extents)
    holes = bytes_of(traverse_outside(found, logical, precision.element_bytes))
    held = region_bytes(precision, order, extents, logical)
    assert sorted(holes) == [b for b in range(found.size * precision.element_bytes) if b not in held]


def left(rows: int, columns: int) -> IndexMap:
    return index_map(AmpLeft(), F16(), (rows, columns))


def test_a_region_inside_a_panel_is_one_piece() -> None:
    found = traverse(left(10, 64), Region(bounds=((2, 8), (20, 28))), 2)
    assert len(found.pieces) == 1
    piece = found.pieces[0]
    assert (piece.run_bytes, piece.bases, piece.counts, piece.strides) == (
        16,
        (10 * 32 + 2 * 32 + 8,),
        (6,),
        ((32,),),
    )
    assert found.alignment == 8


def test_a_region_that_cuts_panels_is_a_head_a_body_and_a_tail() -> None:
    found = traverse(left(10, 96), Region(bounds=((0, 10), (10, 70))), 2)
    assert [(piece.run_bytes, piece.run_count) for piece in found.pieces] == [
        (12, 10),
        (3 * 320, 1),
        (12, 10),
    ]


def test_a_whole_storage_is_one_run_in_every_order() -> None:
    for order in (RowMajor(), AmpLeft(), BlockMajor(row_block=32, column_block=16)):
        storage = index_map(order, F8(), (2, 64, 64))
        found = traverse(storage, Region.of_extents((2, 64, 64)), 1)
        assert [(piece.run_bytes, piece.counts) for piece in found.pieces] == [(8192, ())]


def test_one_row_of_panels_is_a_line() -> None:
    found = traverse(left(1, 4096), Region(bounds=((0, 1), (3, 4000))), 2)
    assert [(piece.run_bytes, piece.counts) for piece in found.pieces] == [(7994, ())]


def test_a_traversal_does_not_grow_with_the_tensor() -> None:
    storage = index_map(AmpLeft(), F8(), (1 << 20, 1 << 20))
    found = traverse(storage, Region(bounds=((5, 1 << 20), (7, (1 << 20) - 7))), 1)
    assert len(found.pieces) == 3
    assert found.byte_count == ((1 << 20) - 5) * ((1 << 20) - 14)


def test_a_region_outside_its_storage_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"region \(\(0, 11\), \(0, 16\)\) leaves storage of extents \(10, 64\)"
    ):
        traverse(left(10, 64), Region(bounds=((0, 11), (0, 16))), 2)
