"""Restriction to a region and images of regions against brute force (MG-01, MG-02, OI-02)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry import views
from compiler.geometry.compose import compose
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.region import Region
from compiler.geometry.restrict import Image, Piece, Progression, images, restrict
from tests.geometry.coordinates import Array, destination_coordinates, source_coordinates
from tests.geometry.view_sequences import mappings, regions


def cells(region: Region) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(start, stop) for start, stop in region.bounds)))


@given(mappings(), st.data())
def test_pieces_cover_a_region_exactly_and_read_what_the_mapping_reads(
    mapping_and_view: tuple[CoordinateMapping, Array], data: st.DataObject
) -> None:
    mapping, view = mapping_and_view
    region = data.draw(regions(view.shape))
    pieces = restrict(mapping, region)
    expected = source_coordinates(view, mapping.source_shape)
    covered: list[tuple[int, ...]] = []
    for piece in pieces:
        part = cells(piece.destination)
        covered += part
        local = destination_coordinates(piece.destination.extents)
        whole = tuple(slice(start, stop) for start, stop in piece.destination.bounds)
        assert np.array_equal(piece.mapping.sources_of(local), expected[whole])
        assert piece.source_of(part[-1]) == tuple(expected[part[-1]])
    assert sorted(covered) == cells(region)
    most = math.prod(max(1, 2 * len(digits) - 1) for digits in mapping.digits)
    assert len(pieces) <= most


@given(mappings(), st.data())
def test_a_restriction_of_one_piece_is_the_composition_with_the_window(
    mapping_and_view: tuple[CoordinateMapping, Array], data: st.DataObject
) -> None:
    mapping, view = mapping_and_view
    region = data.draw(regions(view.shape))
    composed = compose(views.window(view.shape, region), mapping)
    pieces = restrict(mapping, region)
    if len(pieces) == 1:
        assert composed == pieces[0].mapping
    if isinstance(composed, CoordinateMapping):
        for piece in pieces:
            inside = piece.destination.shift([-start for start in region.starts])
            assert compose(views.window(region.extents, inside), composed) == piece.mapping


@given(mappings(), st.data())
def test_images_are_what_brute_force_reads(
    mapping_and_view: tuple[CoordinateMapping, Array], data: st.DataObject
) -> None:
    mapping, view = mapping_and_view
    region = data.draw(regions(view.shape))
    part = view[tuple(slice(start, stop) for start, stop in region.bounds)]
    rank = len(mapping.source_shape)
    expected = {
        tuple(map(int, row)) for row in source_coordinates(part, mapping.source_shape).reshape(-1, rank)
    }
    read: list[tuple[int, ...]] = []
    found = images(mapping, region)
    assert len(set(found)) == len(found)
    for image in found:
        coordinates = list(itertools.product(*(axis.coordinates() for axis in image.axes)))
        assert len(coordinates) == image.count
        assert image.hull == Region(
            bounds=tuple((min(axis), max(axis) + 1) for axis in zip(*coordinates, strict=True))
        )
        assert image.is_box == (sorted(coordinates) == cells(image.hull))
        read += coordinates
    assert set(read) == expected
    if mapping.is_injective:
        assert len(read) == len(expected)


def test_a_shard_across_heads_is_cut_at_the_head() -> None:
    """Columns 40 to 200 of four merged heads of 64: the end of one, two whole, the start of another."""
    merged = views.merge((4, 64, 5), 0, 2)
    assert [str(piece) for piece in restrict(merged, Region(bounds=((40, 200), (1, 3))))] == [
        "[40:64,1:3] <- [24,2]->[4,64,5] (0, 40+d0, 1+d1)",
        "[64:192,1:3] <- [2*64,2]->[4,64,5] (1+d0.0, d0.1, 1+d1)",
        "[192:200,1:3] <- [8,2]->[4,64,5] (3, d0, 1+d1)",
    ]
    assert [str(image) for image in images(merged, Region(bounds=((40, 200), (1, 3))))] == [
        "[0,40:64,1:3]",
        "[1:3,0:64,1:3]",
        "[3,0:8,1:3]",
    ]


def test_strides_and_repetitions_show_in_images() -> None:
    interleaved = compose(views.transpose((3, 8), (1, 0)), views.split((24,), 0, (3, 8)))
    assert isinstance(interleaved, CoordinateMapping)
    assert images(interleaved, Region(bounds=((2, 4), (0, 3)))) == (
        Image(axes=(Progression(start=2, terms=((3, 8), (2, 1))),)),
    )
    assert str(images(interleaved, Region(bounds=((2, 4), (0, 3))))[0]) == "[2+3x8+2x1]"
    whole = views.split((24,), 0, (3, 8))
    assert images(whole, Region.of_extents((3, 8))) == (
        Image(axes=(Progression(start=0, terms=((24, 1),)),)),
    )
    repeated = views.broadcast((1, 4), (6, 4))
    assert [str(image) for image in images(repeated, Region(bounds=((2, 5), (1, 3))))] == ["[0,1:3]"]
    tiled = compose(views.merge((2, 4), 0, 2), views.broadcast((4,), (2, 4)))
    assert isinstance(tiled, CoordinateMapping)
    assert [str(image) for image in images(tiled, Region(bounds=((2, 8),)))] == ["[2:4]", "[0:4]"]
    # 0 0 1 1 2 2 0 0 1 1 2 2: coordinate 0 is read at both ends of the region and named once.
    doubled = compose(views.merge((2, 3, 2), 0, 3), views.broadcast((3, 1), (2, 3, 2)))
    assert isinstance(doubled, CoordinateMapping)
    assert [str(image) for image in images(doubled, Region(bounds=((1, 7),)))] == ["[0,0]", "[1:3,0]"]


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(0, 2),
    st.data(),
)
def test_a_concatenation_fills_its_destination_once(
    extents: list[int], axis: int, data: st.DataObject
) -> None:
    shape = (2, 3, 4)
    sources = [(*shape[:axis], extent, *shape[axis + 1 :]) for extent in extents]
    joined = np.concatenate(
        [
            np.arange(math.prod(source), dtype=np.int64).reshape(source) + 1000 * number
            for number, source in enumerate(sources)
        ],
        axis=axis,
    )
    pieces = views.concatenation(sources, axis)
    region = data.draw(regions(joined.shape))
    filled: list[tuple[int, ...]] = []
    for number, (piece, source) in enumerate(zip(pieces, sources, strict=True)):
        assert piece.mapping == identity(source)
        for part in piece.restrict(region):
            for coordinate in cells(part.destination):
                filled.append(coordinate)
                read = int(np.ravel_multi_index(part.source_of(coordinate), source)) + 1000 * number
                assert read == joined[coordinate]
    assert sorted(filled) == cells(region)


def test_what_cannot_be_restricted_or_joined_is_refused_precisely() -> None:
    mapping = identity((4, 6))
    with pytest.raises(ValueError, match=r"^axis 1: 2:7 is empty or leaves its extent of 6$"):
        restrict(mapping, Region(bounds=((0, 4), (2, 7))))
    with pytest.raises(ValueError, match=r"^axis 0: 3:3 is empty or leaves its extent of 4$"):
        images(mapping, Region(bounds=((3, 3), (0, 6))))
    with pytest.raises(ValueError, match=r"^a part of extents \[2,6\] defined by a mapping of \[4,6\]$"):
        Piece(destination=Region(bounds=((0, 2), (0, 6))), mapping=mapping)
    with pytest.raises(ValueError, match=r"^terms \(\(3, 8\), \(8, 1\)\): 3 steps of 8 after a reach of 7$"):
        Progression(start=0, terms=((3, 8), (8, 1)))
    with pytest.raises(ValueError, match=r"^a coordinate cannot be negative: -1$"):
        Progression(start=-1, terms=())
    with pytest.raises(ValueError, match=r"^source 1 of shape \[2,5\] cannot follow \[2,6\] along axis 0$"):
        views.concatenation([(2, 6), (2, 5)], 0)
    with pytest.raises(ValueError, match=r"^a concatenation needs at least one source$"):
        views.concatenation([], 0)
    with pytest.raises(ValueError, match=r"^\[2,6\] has no axis 2$"):
        views.concatenation([(2, 6)], 2)
