"""Element orders: worked examples, formulas, bijections."""

import numpy as np
import pytest
from hypothesis import given

from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
    axis_multiples,
    index_map,
    lane_elements,
)
from compiler.geometry.precision import F8, F16, F32, Precision
from tests.geometry.interpreter import coordinates_of, index_of, multiples_of
from tests.geometry.strategies import PRECISIONS, orders_of, storages


@pytest.mark.parametrize(
    ("order", "precision", "extents", "coordinate", "index", "byte"),
    [
        (AmpLeft(), F16(), (4, 32), (2, 17), 97, 194),
        (AmpLeft(), F8(), (5, 64), (3, 40), 264, 264),
        (AmpLeft(), F16(), (82, 96), (81, 95), 7871, 15_742),
        (AmpTransposedLeft(), F16(), (32, 3), (17, 2), 81, 162),
        (AmpRight(), F16(), (32, 32), (20, 18), 804, 1608),
        (AmpRight(), F8(), (64, 32), (40, 18), 1608, 1608),
        (AmpTransposedRight(), F16(), (48, 80), (20, 37), 1861, 3722),
        (AmpOutput(), F16(), (3, 32), (2, 25), 83, 166),
        (BlockMajor(row_block=64, column_block=16), F16(), (128, 32), (70, 17), 3094, 6188),
        (BlockMajor(row_block=64, column_block=16), F8(), (64, 32), (40, 18), 1608, 1608),
        (BlockMajorTransposed(row_block=64, column_block=16), F16(), (32, 128), (17, 70), 3094, 6188),
    ],
)
def test_worked_examples(
    order: ElementOrder,
    precision: Precision,
    extents: tuple[int, ...],
    coordinate: tuple[int, ...],
    index: int,
    byte: int,
) -> None:
    storage = index_map(order, precision, extents)
    assert storage.index(coordinate) == index
    assert storage.index(coordinate) * precision.element_bytes == byte
    assert storage.coordinate(index) == coordinate


def test_the_left_buffer_of_82_by_96_halves_is_15744_bytes() -> None:
    assert index_map(AmpLeft(), F16(), (82, 96)).size * 2 == 15_744


def test_output_lanes() -> None:
    storage = index_map(AmpOutput(), F16(), (1, 16))
    slots = [storage.index((0, column)) for column in range(16)]
    assert slots == [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]


def test_a_block_of_all_rows_and_16_columns_is_the_weight_format() -> None:
    for precision in PRECISIONS:
        k = 3 * precision.micro
        weights = index_map(AmpRight(), precision, (k, 48))
        blocks = index_map(BlockMajor(row_block=k, column_block=16), precision, (k, 48))
        assert all(weights.index(c) == blocks.index(c) for c in coordinates_of((k, 48)))


def test_a_left_half_panel_has_the_bytes_of_a_drained_output_group() -> None:
    # An F16 product stored in natural column order feeds the next one: 16 columns by R rows on both sides.
    storage = index_map(AmpLeft(), F16(), (5, 48))
    assert [storage.index((r, 16 + c)) for r in range(5) for c in range(16)] == list(range(80, 160))


def test_outer_axes_are_rows_for_left_and_matrices_for_transposed_orders() -> None:
    assert index_map(AmpLeft(), F16(), (2, 3, 32)).index((1, 0, 16)) == 6 * 16 + 3 * 16
    assert index_map(AmpTransposedLeft(), F16(), (2, 16, 3)).index((1, 0, 0)) == 48


@given(storages())
def test_index_maps_are_the_formulas_and_bijections(
    storage: tuple[Precision, ElementOrder, tuple[int, ...]],
) -> None:
    precision, order, extents = storage
    found = index_map(order, precision, extents)
    everywhere = np.array(list(coordinates_of(extents)), dtype=np.int64)
    indices = found.indices(everywhere)
    assert indices.tolist() == [index_of(order, precision, extents, tuple(c)) for c in everywhere.tolist()]
    assert sorted(indices.tolist()) == list(range(found.size))
    assert np.array_equal(found.coordinates(indices), everywhere)
    for row in (0, len(everywhere) // 2, len(everywhere) - 1):
        coordinate = tuple(everywhere[row].tolist())
        assert found.index(coordinate) == indices[row]
        assert found.coordinate(int(indices[row])) == coordinate


def test_multiples_and_lanes_follow_the_precision() -> None:
    for precision in PRECISIONS:
        for order in orders_of(precision):
            assert axis_multiples(order, precision, 3) == (1, *multiples_of(order, precision))
    assert [lane_elements(AmpLeft(), precision) for precision in PRECISIONS] == [8, 16, 32]
    assert [lane_elements(AmpOutput(), precision) for precision in PRECISIONS] == [16, 16, 16]
    assert [lane_elements(RowMajor(), precision) for precision in PRECISIONS] == [1, 1, 1]


def test_extents_that_cut_panels_are_refused() -> None:
    with pytest.raises(
        ValueError, match=r"AmpLeft in F8 needs a multiple of 32 on axis 1; the extents are \(4, 48\)"
    ):
        index_map(AmpLeft(), F8(), (4, 48))
    with pytest.raises(ValueError, match="a block of 16 does not hold whole panel rows of 32 elements"):
        index_map(BlockMajor(row_block=16, column_block=16), F8(), (32, 32))
    with pytest.raises(ValueError, match="AmpLeft orders a matrix; a tensor of rank 1 has none"):
        index_map(AmpLeft(), F32(), (8,))
    with pytest.raises(ValueError, match="blocks of 0 x 16 elements are empty"):
        BlockMajor(row_block=0, column_block=16)
    with pytest.raises(ValueError, match="not all positive or zero"):
        index_map(RowMajor(), F32(), (-1,))


def test_coordinates_and_indices_outside_are_refused() -> None:
    storage = index_map(AmpLeft(), F16(), (4, 32))
    with pytest.raises(ValueError, match=r"coordinate \(4, 0\) is outside extents \(4, 32\)"):
        storage.index((4, 0))
    with pytest.raises(ValueError, match="index 128 is outside the 128 elements"):
        storage.coordinate(128)


def test_an_empty_tensor_has_no_index() -> None:
    storage = index_map(AmpLeft(), F16(), (0, 32))
    assert storage.size == 0
    assert storage.indices(np.empty((0, 2), dtype=np.int64)).shape == (0,)
