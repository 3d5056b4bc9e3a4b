"""Numberings of tiles (TA-02)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import tiles
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import LogicalTile, PhysicalTile
from tests.fixtures.exchange.examples import load

ALL = range(TILE_COUNT)


def test_known_numbers() -> None:
    for logical, physical in load("tiles")["pairs"]:
        assert tiles.logical_to_physical(LogicalTile(logical)) == physical
        assert tiles.physical_to_logical(PhysicalTile(physical)) == logical


def test_the_mapping_is_a_permutation_and_its_inverse() -> None:
    physical = [tiles.logical_to_physical(LogicalTile(tile)) for tile in ALL]
    assert sorted(physical) == list(ALL)
    assert [tiles.physical_to_logical(tile) for tile in physical] == list(ALL)


def test_vectorized_mappings_equal_the_scalar_ones() -> None:
    every = np.arange(TILE_COUNT).reshape(23, 64)
    physical = tiles.physical_tiles(every)
    assert physical.ravel().tolist() == [tiles.logical_to_physical(LogicalTile(tile)) for tile in ALL]
    np.testing.assert_array_equal(tiles.logical_tiles(physical), every)
    assert tiles.rows(every).ravel().tolist() == [tiles.row(PhysicalTile(tile)) for tile in ALL]


def test_a_place_is_row_column_and_lane() -> None:
    assert TILE_COUNT == 1472
    for tile in map(PhysicalTile, ALL):
        row, column, lane = tiles.row(tile), tiles.column(tile), tiles.lane(tile)
        assert tile == row << 6 | column << 2 | lane
        assert (0 <= row < 23, 0 <= column < 16, 0 <= lane < 4) == (True, True, True)


def test_the_clock_agrees_with_the_stated_peak_rate() -> None:
    """128 F16 operations a cycle and tile: 282.6 TFLOP/s."""
    assert round(TILE_COUNT * 128 * tiles.CLOCK_HERTZ / 1e11) == 2826


def test_partners_agree_in_both_numberings() -> None:
    for logical in map(LogicalTile, ALL):
        partner = tiles.logical_partner(logical)
        assert tiles.logical_partner(partner) == logical != partner
        physical = tiles.logical_to_physical(logical)
        assert tiles.partner(physical) == tiles.logical_to_physical(partner) == physical ^ 2


def test_neighbouring_pairs_are_neighbours_on_the_chip() -> None:
    """Going from pair to pair moves by one row, or sideways at the ends of a half-column."""
    for logical in range(0, TILE_COUNT - 2, 2):
        here = tiles.logical_to_physical(LogicalTile(logical))
        there = tiles.logical_to_physical(LogicalTile(logical + 2))
        assert abs(tiles.row(here) - tiles.row(there)) == (0 if logical // 2 % 23 == 22 else 1)


@given(st.one_of(st.integers(max_value=-1), st.integers(min_value=TILE_COUNT)))
def test_numbers_that_are_no_tile_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match=f"^logical tile {number} is outside 0..1471$"):
        tiles.logical_to_physical(LogicalTile(number))
    for refuse in (tiles.physical_to_logical, tiles.row, tiles.column, tiles.lane, tiles.partner):
        with pytest.raises(ValueError, match=f"^physical tile {number} is outside 0..1471$"):
            refuse(PhysicalTile(number))


@pytest.mark.parametrize("number", [-1, TILE_COUNT])
def test_arrays_with_a_number_that_is_no_tile_are_refused(number: int) -> None:
    for refuse in (tiles.physical_tiles, tiles.logical_tiles, tiles.rows):
        with pytest.raises(ValueError, match=f"^tile {number} is outside 0..1471$"):
            refuse(np.array([[0, number]]))
