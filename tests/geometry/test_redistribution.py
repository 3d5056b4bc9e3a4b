"""Redistributions executed on bytes, against the interpreter's shards (MG-01, MG-02)."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.boxes import Boxes
from compiler.geometry.compose import compose
from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import CoordinateMapping, NotRepresentable, identity
from compiler.geometry.order import AmpLeft, RowMajor
from compiler.geometry.precision import F8, F16, Precision
from compiler.geometry.redistribution import redistribute
from compiler.geometry.region import Region
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.geometry.views import broadcast, merge, split, transpose, window
from tests.geometry.cases import distributed
from tests.geometry.interpreter import Coordinate, coordinates_of, shard_storage
from tests.geometry.strategies import formats, precisions, regions
from tests.geometry.test_traversal import bytes_of


def elements(held: dict[Coordinate, int], size: int) -> Iterator[tuple[Coordinate, slice]]:
    """Coordinates with the bytes that hold them."""
    for coordinate, offset in held.items():
        yield coordinate, slice(offset * size, offset * size + size)


def check_executed(
    source: Distribution, destination: Distribution, mapping: CoordinateMapping | None
) -> None:
    """Copy marked bytes by the runs and find the right mark, written once, at each destination element."""
    size = source.element_bytes
    source_held = shard_storage(source.shape, source.format)
    destination_held = shard_storage(destination.shape, destination.format)
    # A mark is the element's number and the byte's number in it; bytes that hold no element have none.
    marks: list[npt.NDArray[np.int64]] = []
    for shard, held in enumerate(source_held):
        memory = np.full(int(source.storage_bytes[shard]), -1, dtype=np.int64)
        for coordinate, place in elements(held, size):
            number = int(np.ravel_multi_index(coordinate, source.shape))
            memory[place] = number * size + np.arange(size)
        marks.append(memory)
    written = [np.full(int(count), -2, dtype=np.int64) for count in destination.storage_bytes]
    times = [np.zeros(int(count), dtype=np.int64) for count in destination.storage_bytes]
    found = redistribute(source, destination, mapping)
    pair, runs = found.runs()
    assert np.all(np.diff(found.destination_shard) >= 0)
    for number, to, at, count in zip(pair, runs.destination, runs.source, runs.byte_counts, strict=True):
        reader, sender = found.destination_shard[number], found.source_shard[number]
        assert to >= 0
        assert at >= 0
        written[reader][to : to + count] = marks[sender][at : at + count]
        times[reader][to : to + count] += 1
    for shard, held in enumerate(destination_held):
        expected = np.full(len(written[shard]), -2, dtype=np.int64)
        for coordinate, place in elements(held, size):
            read = coordinate if mapping is None else mapping.source_of(coordinate)
            expected[place] = int(np.ravel_multi_index(read, source.shape)) * size + np.arange(size)
        assert np.array_equal(written[shard], expected)
        assert np.array_equal(times[shard], expected != -2)
    assert found.run_count == len(pair) == found.run_counts.sum()
    assert found.received_bytes == int(runs.byte_counts.sum()) * destination.replicas
    assert np.array_equal(np.bincount(pair, minlength=len(found.run_counts)), found.run_counts)
    assert np.array_equal(np.bincount(pair, runs.byte_counts, len(found.byte_counts)), found.byte_counts)
    assert found.destination_run_counts().sum() == found.source_run_counts().sum() == found.run_count
    sizes, size_counts = found.run_sizes()
    every_size, every_count = np.unique(runs.byte_counts, return_counts=True)
    assert sizes.tolist() == every_size.tolist()
    assert size_counts.tolist() == every_count.tolist()
    for number in range(min(3, len(found.run_counts))):
        single = found.pair_match(number).runs()
        mine = pair == number
        assert np.array_equal(single.destination, runs.destination[mine])
        assert np.array_equal(single.source, runs.source[mine])
        every = np.concatenate([single.destination, single.source, single.byte_counts])
        assert np.gcd.reduce(every) % found.alignments[number] == 0


shapes = st.sampled_from([(7,), (30,), (5, 9), (18, 6), (33, 34), (3, 6, 20), (2, 3, 4, 6)])


@given(st.data(), shapes)
def test_shards_hold_what_the_interpreter_says(data: st.DataObject, shape: tuple[int, ...]) -> None:
    found = distribute(shape, data.draw(precisions.flatmap(lambda precision: formats(shape, precision))))
    held = shard_storage(shape, found.format)
    assert found.shard_count == len(held)
    assert found.owner_count == found.shard_count * found.replicas == len(found.shard_of_owner)
    assert found.logical_elements.tolist() == [len(each) for each in held]
    assert found.empty_shards.tolist() == [shard for shard, each in enumerate(held) if not each]
    for shard, each in enumerate(held):
        if each:
            coordinates = np.array(list(each), dtype=np.int64)
            offsets = found.storage_index(np.full(len(each), shard, dtype=np.int64), coordinates)
            assert offsets.tolist() == list(each.values())
            assert max(each.values()) < found.storage_elements[shard]
        size = found.element_bytes
        bytes_held = {offset * size + byte for offset in each.values() for byte in range(size)}
        traversal = found.held_bytes(shard)
        assert sorted(bytes_of(traversal)) == sorted(bytes_held)
        gaps = [
            byte
            for start, stop in zip(*traversal.gaps(int(found.storage_bytes[shard])), strict=True)
            for byte in range(start, stop)
        ]
        assert gaps == [byte for byte in range(int(found.storage_bytes[shard])) if byte not in bytes_held]
    everywhere = Boxes(
        starts=np.zeros((1, len(shape)), dtype=np.int64), stops=np.array([shape], dtype=np.int64)
    )
    overlaps = found.overlaps(everywhere)
    covered = [
        (int(shard), tuple(coordinate))
        for row, shard in enumerate(overlaps.shard)
        for coordinate in np.add(
            list(coordinates_of(overlaps.boxes.region(row).extents)), overlaps.boxes.starts[row]
        ).tolist()
    ]
    assert sorted(covered) == sorted(
        (shard, coordinate) for shard, each in enumerate(held) for coordinate in each
    )


@given(st.data(), shapes)
def test_overlaps_are_the_common_coordinates(data: st.DataObject, shape: tuple[int, ...]) -> None:
    found = distribute(shape, data.draw(precisions.flatmap(lambda precision: formats(shape, precision))))
    asked = data.draw(st.lists(regions(shape), min_size=1, max_size=4))
    queries = Boxes(
        starts=np.array([region.starts for region in asked], dtype=np.int64),
        stops=np.array([region.stops for region in asked], dtype=np.int64),
    )
    overlaps = found.overlaps(queries)
    covered: list[tuple[int, int, Coordinate]] = []
    for row in range(len(overlaps.query)):
        box = overlaps.boxes.region(row)
        for local in coordinates_of(box.extents):
            at = tuple(a + b for a, b in zip(local, box.starts, strict=True))
            covered.append((int(overlaps.query[row]), int(overlaps.shard[row]), at))
    expected = [
        (query, shard, coordinate)
        for query, region in enumerate(asked)
        for shard, each in enumerate(shard_storage(shape, found.format))
        for coordinate in each
        if all(start <= c < stop for c, (start, stop) in zip(coordinate, region.bounds, strict=True))
    ]
    assert sorted(covered) == sorted(expected)


@given(st.data(), precisions, shapes)
def test_values_move_between_any_two_distributions(
    data: st.DataObject, precision: Precision, shape: tuple[int, ...]
) -> None:
    source = distribute(shape, data.draw(formats(shape, precision)))
    destination = distribute(shape, data.draw(formats(shape, precision)))
    check_executed(source, destination, None)


def views() -> st.SearchStrategy[CoordinateMapping]:
    """Views of ranks 1 to 5, heads that are ragged against panels among them."""
    return st.sampled_from(
        [
            broadcast((6, 1), (3, 6, 20)),
            broadcast((20,), (3, 20)),
            transpose((5, 34), (1, 0)),
            transpose((2, 3, 17), (2, 0, 1)),
            split((2, 5, 36), 2, (3, 12)),
            merge((2, 5, 3, 12), 2, 2),
            merge((3, 4, 5), 0, 3),
            split((2, 40), 1, (2, 4, 5)),
            transpose((2, 5, 3, 12), (0, 2, 1, 3)),
            window((9, 40), Region(bounds=((2, 7), (9, 38)))),
            split((2, 2, 2, 12), 3, (3, 4)),
        ]
    )


@given(st.data(), precisions, views())
def test_values_move_through_views(
    data: st.DataObject, precision: Precision, mapping: CoordinateMapping
) -> None:
    source = distribute(mapping.source_shape, data.draw(formats(mapping.source_shape, precision)))
    destination = distribute(
        mapping.destination_shape, data.draw(formats(mapping.destination_shape, precision))
    )
    check_executed(source, destination, mapping)


@given(st.data(), st.sampled_from([(12,), (30, 40), (3, 6, 20)]), precisions)
def test_a_concatenation_is_moved_box_by_box(
    data: st.DataObject, shape: tuple[int, ...], precision: Precision
) -> None:
    """Two sources fill two boxes of one destination: every byte once, each from the right place."""
    axis = data.draw(st.integers(0, len(shape) - 1))
    cut = data.draw(st.integers(1, shape[axis] - 1))
    destination = distribute(shape, data.draw(formats(shape, precision)))
    size = destination.element_bytes
    times = [np.zeros(int(count), dtype=np.int64) for count in destination.storage_bytes]
    for first, last in ((0, cut), (cut, shape[axis])):
        part = (*shape[:axis], last - first, *shape[axis + 1 :])
        start = tuple(first if number == axis else 0 for number in range(len(shape)))
        source = distribute(part, data.draw(formats(part, precision)))
        held = shard_storage(part, source.format)
        ends = shard_storage(shape, destination.format)
        pair, runs = (found := redistribute(source, destination, identity(part), start)).runs()
        for number, to, at, count in zip(pair, runs.destination, runs.source, runs.byte_counts, strict=True):
            reader, sender = found.destination_shard[number], found.source_shard[number]
            times[reader][to : to + count] += 1
            read = {offset: coordinate for coordinate, offset in held[sender].items()}
            written = {offset: coordinate for coordinate, offset in ends[reader].items()}
            for element in range(0, count, size):
                coordinate = written[(to + element) // size]
                moved = tuple(c - s for c, s in zip(coordinate, start, strict=True))
                assert read[(at + element) // size] == moved
    for shard, each in enumerate(shard_storage(shape, destination.format)):
        expected = np.zeros(len(times[shard]), dtype=np.int64)
        for _, place in elements(each, size):
            expected[place] = 1
        assert np.array_equal(times[shard], expected)
    with pytest.raises(ValueError, match="does not read"):
        redistribute(source, destination, identity(part), tuple(s + 1 for s in start))


def test_a_composed_view_moves_heads() -> None:
    mapping = compose(transpose((2, 5, 3, 12), (0, 2, 1, 3)), split((2, 5, 36), 2, (3, 12)))
    assert not isinstance(mapping, NotRepresentable)
    rows = GridTiling(axes=(AxisTiling(axis=1, partitions=5),))
    heads = GridTiling(axes=(AxisTiling(axis=1, partitions=3), AxisTiling(axis=2, partitions=2)))
    check_executed(
        distributed((2, 5, 36), F16(), RowMajor(), rows),
        distributed((2, 3, 5, 12), F16(), RowMajor(), heads),
        mapping,
    )


def test_several_shards_of_one_extent_stay_apart() -> None:
    # Shards of equal extents share a match and must still be told apart by their bases.
    rows = GridTiling(axes=(AxisTiling(axis=0, partitions=4),))
    columns = GridTiling(axes=(AxisTiling(axis=1, partitions=4, block_size=4),))
    found = redistribute(
        distributed((8, 16), F16(), RowMajor(), rows), distributed((8, 16), F16(), RowMajor(), columns)
    )
    assert len(found.matches) == 1
    pairs = list(zip(found.destination_shard.tolist(), found.source_shard.tolist(), strict=True))
    assert pairs == [(column, row) for column in range(4) for row in range(4)]
    assert found.source_base.tolist() == [8 * column for column in range(4) for _ in range(4)]
    assert found.destination_base.tolist() == [16 * row for _ in range(4) for row in range(4)]


def test_what_cannot_be_copied_is_refused() -> None:
    whole = GridTiling()
    halves = distributed((4, 32), F16(), AmpLeft(), whole)
    with pytest.raises(ValueError, match="a redistribution copies bytes"):
        redistribute(halves, distributed((4, 32), F8(), AmpLeft(), whole))
    with pytest.raises(ValueError, match="a redistribution copies bytes"):
        redistribute(
            distributed((4, 32), F8(scale_exponent=1), AmpLeft(), whole),
            distributed((4, 32), F8(), AmpLeft(), whole),
        )
    with pytest.raises(ValueError, match=r"does not read \[4, 32\] into \[4, 64\]"):
        redistribute(halves, distributed((4, 64), F16(), AmpLeft(), whole))


def test_formats_are_values() -> None:
    one = distributed((4, 32), F16(), AmpLeft(), GridTiling()).format
    assert one == TensorFormat(precision=F16(), layout=one.layout)
    assert hash(one) == hash(TensorFormat(precision=F16(), layout=one.layout))
