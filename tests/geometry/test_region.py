"""Regions and joins of boxes against sets of coordinates."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.boxes import Boxes, distinct_rows, join, ranges
from compiler.geometry.iteration import LinearForm, boxes_within
from compiler.geometry.region import Region

intervals = st.tuples(st.integers(-4, 4), st.integers(0, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))
cubes = st.lists(intervals, min_size=3, max_size=3).map(lambda bounds: Region(bounds=tuple(bounds)))


def points(region: Region) -> set[tuple[int, ...]]:
    """Every coordinate inside."""
    return set(itertools.product(*(range(start, stop) for start, stop in region.bounds)))


@given(cubes, cubes)
def test_regions_are_sets_of_coordinates(left: Region, right: Region) -> None:
    assert left.volume == len(points(left))
    assert left.is_empty == (not points(left))
    assert points(left.intersect(right)) == points(left) & points(right)
    assert left.contains(right) == (points(right) <= points(left))
    assert points(left.shift((1, -2, 3))) == {(a + 1, b - 2, c + 3) for a, b, c in points(left)}


@given(cubes, cubes)
def test_what_is_left_of_a_region_is_cut_into_disjoint_parts(left: Region, right: Region) -> None:
    parts = left.subtract(right)
    assert set().union(*(points(part) for part in parts)) == points(left) - points(right)
    assert sum(part.volume for part in parts) == len(points(left) - points(right))
    assert len(parts) <= 2 * left.rank


def test_a_region_knows_its_ends() -> None:
    region = Region(bounds=((1, 4), (2, 2)))
    assert (region.rank, region.starts, region.stops, region.extents) == (2, (1, 2), (4, 2), (3, 0))
    assert Region.of_extents((3, 4)) == Region(bounds=((0, 3), (0, 4)))
    assert Region(bounds=()).volume == 1
    with pytest.raises(ValueError, match="axis 1: a region from 3 cannot stop before it, at 2"):
        Region(bounds=((0, 1), (3, 2)))


def boxes_of(found: list[Region]) -> Boxes:
    """As columns."""
    return Boxes(
        starts=np.array([region.starts for region in found], dtype=np.int64).reshape(-1, 3),
        stops=np.array([region.stops for region in found], dtype=np.int64).reshape(-1, 3),
    )


@given(st.lists(cubes, max_size=8), st.lists(cubes, max_size=8))
def test_a_join_finds_every_pair_that_meets(left: list[Region], right: list[Region]) -> None:
    rows, columns = join(boxes_of(left), boxes_of(right))
    expected = [
        (a, b)
        for a, b in itertools.product(range(len(left)), range(len(right)))
        if not left[a].intersect(right[b]).is_empty
    ]
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


def test_a_join_of_many_candidates_is_complete_and_ordered() -> None:
    # 1,600 by 1,600 strips that all meet: many pairs, of which each is a candidate.
    count = 1600
    strips = Boxes(
        starts=np.zeros((count, 1), dtype=np.int64),
        stops=np.arange(1, count + 1, dtype=np.int64).reshape(-1, 1),
    )
    rows, columns = join(strips, strips)
    assert len(rows) == count * count
    assert np.all(np.diff(rows * count + columns) == 1)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 1)), max_size=12))
def test_distinct_rows_are_numbered_in_order(rows: list[tuple[int, int]]) -> None:
    first, inverse = distinct_rows(np.array(rows, dtype=np.int64).reshape(-1, 2))
    values = sorted(set(rows))
    assert inverse.tolist() == [values.index(row) for row in rows]
    assert first.tolist() == [rows.index(value) for value in values]


def test_ranges_count_from_zero() -> None:
    assert ranges(np.array([2, 0, 3], dtype=np.int64)).tolist() == [0, 1, 0, 1, 2]
    assert ranges(np.array([], dtype=np.int64)).tolist() == []


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=3), st.data())
def test_values_in_an_interval_are_few_boxes(loops: list[tuple[int, int]], data: st.DataObject) -> None:
    # Steps with gaps: each exceeds what the finer loops reach by a bit. One more loop does not step at all.
    steps: list[int] = []
    reach = 0
    for extent, gap in loops:
        steps.append(reach + 1 + gap)
        reach += steps[-1] * (extent - 1)
    order = data.draw(st.permutations(range(len(loops))))
    extents = [*(loops[k][0] for k in order), 2]
    form = LinearForm(base=data.draw(st.integers(-3, 3)), steps=(*(steps[k] for k in order), 0))
    low = data.draw(st.integers(-5, form.base + reach + 2))
    high = data.draw(st.integers(low, form.base + reach + 5))
    found = boxes_within(low=low, high=high, form=form, extents=extents)
    inside = [p for p in itertools.product(*map(range, extents)) if low <= form.at(p) < high]
    covered = [p for bounds in found for p in itertools.product(*(range(a, b) for a, b in bounds))]
    assert sorted(covered) == inside
    assert len(found) <= 2 * len(loops) - 1
