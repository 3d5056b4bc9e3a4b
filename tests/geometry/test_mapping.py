"""Coordinate mappings as values: canonical form, checks, queries, text, and the view constructors (ML-20)."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry import views
from compiler.geometry.mapping import CoordinateMapping, Digit, NotRepresentable, identity
from compiler.geometry.region import Region
from tests.geometry.coordinates import (
    Array,
    Broadcast,
    Merge,
    Operation,
    Split,
    Transpose,
    Window,
    destination_coordinates,
    digit_form,
    interpret,
    source,
    source_coordinates,
)
from tests.geometry.view_sequences import form_of, mapping_of_operation, mappings


def step(extent: int, axis: int, stride: int = 1) -> Digit:
    return Digit(extent=extent, axis=axis, stride=stride)


def repeat(extent: int) -> Digit:
    return Digit(extent=extent, axis=None, stride=0)


@given(mappings())
def test_queries_agree_with_the_interpreter(mapping_and_view: tuple[CoordinateMapping, Array]) -> None:
    mapping, view = mapping_and_view
    expected = source_coordinates(view, mapping.source_shape)
    coordinates = destination_coordinates(view.shape)
    assert mapping.destination_shape == view.shape
    assert np.array_equal(mapping.sources_of(coordinates), expected)
    for coordinate in (tuple(0 for _ in view.shape), tuple(extent - 1 for extent in view.shape)):
        assert mapping.source_of(coordinate) == tuple(expected[coordinate])
    assert mapping.is_injective == (len(np.unique(view)) == view.size)
    assert mapping.is_bijective == (
        sorted(view.ravel().tolist()) == list(range(int(np.prod(mapping.source_shape))))
    )
    assert mapping.is_identity == (
        view.shape == mapping.source_shape and np.array_equal(view, source(view.shape))
    )
    repeating = tuple(
        axis
        for axis in range(view.ndim)
        if view.shape[axis] > 1 and bool(np.all(np.diff(view, axis=axis) == 0))
    )
    assert mapping.broadcast_axes == repeating


@given(mappings())
def test_digits_are_the_shortest_form_that_brute_force_finds(
    mapping_and_view: tuple[CoordinateMapping, Array],
) -> None:
    mapping, view = mapping_and_view
    assert form_of(mapping) == digit_form(view, mapping.source_shape)


@given(mappings(), st.data())
def test_a_mapping_written_with_finer_digits_is_the_same_key(
    mapping_and_view: tuple[CoordinateMapping, Array], data: st.DataObject
) -> None:
    mapping, _ = mapping_and_view
    finer: list[tuple[Digit, ...]] = []
    for digits in mapping.digits:
        cut: list[Digit] = [repeat(1)]
        for digit in digits:
            inner = data.draw(
                st.sampled_from([f for f in range(1, digit.extent + 1) if digit.extent % f == 0])
            )
            cut.append(Digit(extent=digit.extent // inner, axis=digit.axis, stride=digit.stride * inner))
            cut.append(Digit(extent=inner, axis=digit.axis, stride=digit.stride))
        finer.append(tuple(cut))
    again = CoordinateMapping(source_shape=mapping.source_shape, offsets=mapping.offsets, digits=tuple(finer))
    assert again == mapping
    assert {mapping: "found"}[again] == "found"
    assert str(again) == str(mapping)


@given(mappings())
def test_the_inverse_of_a_bijection_leads_back(mapping_and_view: tuple[CoordinateMapping, Array]) -> None:
    mapping, view = mapping_and_view
    inverse = mapping.inverse()
    if sorted(view.ravel().tolist()) != list(range(int(np.prod(mapping.source_shape)))):
        assert isinstance(inverse, NotRepresentable)
        return
    assert isinstance(inverse, CoordinateMapping)
    assert inverse.source_shape == mapping.destination_shape
    assert inverse.destination_shape == mapping.source_shape
    coordinates = destination_coordinates(view.shape)
    assert np.array_equal(inverse.sources_of(mapping.sources_of(coordinates)), coordinates)
    assert inverse.inverse() == mapping


@pytest.mark.parametrize(
    ("mapping", "reason"),
    [
        (views.broadcast((1, 3), (4, 3)), "destination axis 0 (extent 4) repeats source coordinates"),
        (
            views.window((4, 6), Region(bounds=((0, 4), (2, 5)))),
            "only 12 of the 24 coordinates of the source [4,6] are read",
        ),
    ],
)
def test_only_a_bijection_has_an_inverse(mapping: CoordinateMapping, reason: str) -> None:
    assert mapping.inverse() == NotRepresentable(reason=reason)


@pytest.mark.parametrize("shape", [(7,), (2, 3), (1, 4, 1), (2, 3, 4, 5), (2, 1, 3, 2, 2)])
def test_single_operations_read_what_numpy_reads(shape: tuple[int, ...]) -> None:
    rank = len(shape)
    cases: list[Operation] = [
        *(Merge(axis, count) for axis in range(rank) for count in range(1, rank - axis + 1)),
        *(
            Split(axis, (factor, shape[axis] // factor))
            for axis in range(rank)
            for factor in range(1, shape[axis] + 1)
            if shape[axis] % factor == 0
        ),
        *(Transpose((*range(turn, rank), *range(turn))) for turn in range(rank)),
        *(
            Window(
                tuple(
                    (start, extent) if axis == cropped else (0, extent) for axis, extent in enumerate(shape)
                )
            )
            for cropped in range(rank)
            for start in range(shape[cropped])
        ),
        Broadcast((3, *(4 if extent == 1 else extent for extent in shape))),
    ]
    for case in cases:
        view = interpret(source(shape), case)
        mapping = mapping_of_operation(shape, case)
        assert mapping.source_shape == shape
        assert mapping.destination_shape == view.shape
        assert np.array_equal(
            mapping.sources_of(destination_coordinates(view.shape)), source_coordinates(view, shape)
        ), case


@pytest.mark.parametrize(
    ("source_shape", "destination_shape"),
    [
        ((6, 4), (2, 3, 4)),
        ((2, 3, 4), (6, 4)),
        ((2, 3, 4), (24,)),
        ((24,), (2, 1, 12)),
        ((6, 4), (3, 2, 2, 2)),
        ((6, 8), (3, 4, 4)),
        ((2, 9, 6), (18, 2, 3)),
        ((4, 6), (8, 3)),
        ((1, 1), ()),
        ((), (1,)),
    ],
)
def test_a_reshape_of_splits_and_merges_keeps_the_row_major_sequence(
    source_shape: tuple[int, ...], destination_shape: tuple[int, ...]
) -> None:
    mapping = views.reshape(source_shape, destination_shape)
    view = source(source_shape).reshape(destination_shape)
    if digit_form(view, source_shape) is None:
        assert isinstance(mapping, NotRepresentable)
        return
    assert isinstance(mapping, CoordinateMapping)
    assert np.array_equal(
        mapping.sources_of(destination_coordinates(destination_shape)), source_coordinates(view, source_shape)
    )


def test_a_reshape_across_axes_is_refused_with_axis_and_extents() -> None:
    assert str(views.reshape((6, 6), (4, 9))) == (
        "not representable: destination axis 1 (extent 9): 9 steps of 1 along axis 0 (extent 36) of the "
        "value between leave its blocks of 6 after 6 of 9 steps, and 6 does not divide 9"
    )


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        (identity((4, 6)), "[4,6]->[4,6] (d0, d1)"),
        (identity(()), "[]->[] ()"),
        (views.broadcast((1, 768), (2, 5, 768)), "[2,5,768]->[1,768] (0, d2)"),
        (views.split((4, 768), 1, (12, 64)), "[4,12,64]->[4,768] (d0, 64*d1+d2)"),
        (views.merge((12, 5, 64), 1, 2), "[12,5*64]->[12,5,64] (d0, d1.0, d1.1)"),
        (views.transpose((2, 3, 5), (2, 0, 1)), "[5,2,3]->[2,3,5] (d1, d2, d0)"),
        (views.window((4, 6), Region(bounds=((1, 2), (2, 6)))), "[1,4]->[4,6] (1, 2+d1)"),
    ],
)
def test_text_is_compact(mapping: CoordinateMapping, text: str) -> None:
    assert str(mapping) == text


def _mapping(
    source_shape: tuple[int, ...], offsets: tuple[int, ...], *digits: tuple[Digit, ...]
) -> CoordinateMapping:
    return CoordinateMapping(source_shape=source_shape, offsets=offsets, digits=digits)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: step(0, 0), "a digit needs an extent of at least 1, not 0"),
        (lambda: step(2, -1), "a source axis is numbered from 0, not -1"),
        (lambda: step(2, 1, 0), "a digit along source axis 1 needs a stride of at least 1, not 0"),
        (
            lambda: Digit(extent=2, axis=None, stride=1),
            "a digit without a source axis has stride 0, not 1",
        ),
        (lambda: identity((2, 0)), "source shape [2,0]: axis 1 has extent 0, not at least 1"),
        (lambda: _mapping((2, 3), (0,)), "1 offsets for a source of rank 2"),
        (
            lambda: _mapping((4,), (0,), (step(2, 1),)),
            "a digit steps along source axis 1 of a source of rank 1",
        ),
        (
            lambda: _mapping((4,), (2,), (step(3, 0),)),
            "source axis 0: coordinates 2 to 4 leave its extent of 4",
        ),
        (
            lambda: _mapping((4,), (-1,), (step(2, 0),)),
            "source axis 0: coordinates -1 to 0 leave its extent of 4",
        ),
        (
            lambda: _mapping((8,), (0,), (step(3, 0),), (step(3, 0, 2),)),
            "source axis 0: 3 steps of 2 overlap finer steps, which together reach 2",
        ),
        (lambda: identity((2, 3)).source_of((2, 0)), "coordinate (2, 0) is outside the destination [2,3]"),
        (lambda: identity((2, 3)).source_of((1,)), "coordinate (1,) is outside the destination [2,3]"),
        (
            lambda: identity((2, 3)).sources_of(np.array([[0, 0], [1, 3]])),
            "a coordinate is outside the destination [2,3]",
        ),
        (
            lambda: identity((2, 3)).sources_of(np.array([0, 0, 0])),
            "coordinates of shape (3,) for a destination of rank 2",
        ),
        (
            lambda: views.broadcast((2, 3), (3,)),
            "source [2,3], destination [3]: a broadcast does not remove axes",
        ),
        (
            lambda: views.broadcast((2, 3), (4, 2, 4)),
            (
                "source [2,3], destination [4,2,4]: source axis 1 has extent 3, "
                "neither 1 nor the 4 of destination axis 2"
            ),
        ),
        (lambda: views.transpose((2, 3), (0, 0)), "(0, 0) does not permute the axes of [2,3]"),
        (
            lambda: views.split((2, 6), 1, (2, 2)),
            "axis 1 of [2,6] cannot be split to [2,2]: the product is 4, not 6",
        ),
        (lambda: views.split((2, 6), 2, (2, 2)), "[2,6] has no axis 2"),
        (lambda: views.merge((2, 6), 1, 2), "[2,6] has no 2 axes from axis 1 to merge"),
        (lambda: views.reshape((2, 6), (5,)), "[2,6] has 12 elements, [5] has 5"),
        (
            lambda: views.window((2, 6), Region(bounds=((0, 2), (3, 7)))),
            "axis 1: 3:7 is empty or leaves its extent of 6",
        ),
        (
            lambda: views.window((2, 6), Region(bounds=((1, 1), (0, 6)))),
            "axis 0: 1:1 is empty or leaves its extent of 2",
        ),
        (
            lambda: views.window((2, 6), Region(bounds=((0, 2),))),
            "a region of rank 1 in a shape of rank 2",
        ),
    ],
)
def test_what_cannot_exist_is_refused_precisely(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        build()
    assert str(caught.value) == message
