"""Composition of coordinate mappings against the slow interpreter (ML-21, ML-23, MG-01, OI-04; lesson 12)."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry import views
from compiler.geometry.compose import compose
from compiler.geometry.mapping import Composition, CoordinateMapping, Digit, NotRepresentable, identity
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
from tests.geometry.view_sequences import (
    compose_sequence,
    form_of,
    mapping_of_operation,
    mappings,
    view_sequences,
)


def assert_reads(mapping: Composition, view: Array, source_shape: tuple[int, ...]) -> None:
    assert isinstance(mapping, CoordinateMapping), mapping
    assert mapping.source_shape == source_shape
    assert mapping.destination_shape == view.shape
    read = mapping.sources_of(destination_coordinates(view.shape))
    assert np.array_equal(read, source_coordinates(view, source_shape))


@given(view_sequences())
def test_a_sequence_composes_to_the_interpreted_coordinates_or_has_no_form_over_digits(
    sequence: tuple[tuple[int, ...], tuple[Operation, ...]],
) -> None:
    source_shape, chosen = sequence
    view, mapping = source(source_shape), identity(source_shape)
    for operation in chosen:
        composed = compose(mapping_of_operation(view.shape, operation), mapping)
        view = interpret(view, operation)
        if isinstance(composed, NotRepresentable):
            assert digit_form(view, source_shape) is None, composed
            return
        assert_reads(composed, view, source_shape)
        assert form_of(composed) == digit_form(view, source_shape)
        mapping = composed


@st.composite
def aligned_sequences(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[Operation, ...]]:
    """Splits, merges and permutations; axes are only ever split between the factors of source axes."""
    axes: list[list[int]] = []
    budget = 512
    for _ in range(draw(st.integers(2, 5))):
        factors = draw(st.lists(st.sampled_from([2, 3, 5]), max_size=3))
        while factors and math.prod(factors) > budget:
            factors.pop()
        budget //= math.prod(factors)
        axes.append(factors)
    source_shape = tuple(math.prod(factors) for factors in axes)
    chosen: list[Operation] = []
    for _ in range(draw(st.integers(1, 5))):
        splittable = [axis for axis, factors in enumerate(axes) if len(factors) > 1]
        kind = draw(st.sampled_from(["merge", "transpose", *(["split"] if splittable else [])]))
        if kind == "split":
            axis = draw(st.sampled_from(splittable))
            cut = draw(st.integers(1, len(axes[axis]) - 1))
            parts = [axes[axis][:cut], axes[axis][cut:]]
            chosen.append(Split(axis, tuple(math.prod(part) for part in parts)))
            axes[axis : axis + 1] = parts
        elif kind == "merge":
            count = draw(st.integers(1, len(axes)))
            axis = draw(st.integers(0, len(axes) - count))
            chosen.append(Merge(axis, count))
            axes[axis : axis + count] = [list(itertools.chain.from_iterable(axes[axis : axis + count]))]
        else:
            order = tuple(draw(st.permutations(range(len(axes)))))
            chosen.append(Transpose(order))
            axes = [axes[axis] for axis in order]
    return source_shape, tuple(chosen)


@given(aligned_sequences())
def test_aligned_splits_merges_and_permutations_always_compose(
    sequence: tuple[tuple[int, ...], tuple[Operation, ...]],
) -> None:
    source_shape, chosen = sequence
    mapping, view = compose_sequence(source_shape, chosen)
    assert_reads(mapping, view, source_shape)
    assert isinstance(mapping, CoordinateMapping)
    assert isinstance(mapping.inverse(), CoordinateMapping)


def _factor_moves(rank: int) -> Iterator[tuple[tuple[int, ...], int, int]]:
    shape = (4, 2, 6, 2, 4)[:rank]
    return ((shape, giving, taking) for giving in range(rank) for taking in range(rank) if giving != taking)


@pytest.mark.parametrize("rank", [2, 3, 4, 5])
@pytest.mark.parametrize("cropped", [False, True])
def test_a_factor_moved_between_any_two_axes_and_back(rank: int, cropped: bool) -> None:
    """Lesson 12: the way back is not the way there with the axes exchanged.

    The outer half of one axis becomes the outer part of another. Cropped windows keep whole factors.
    """
    for shape, giving, taking in _factor_moves(rank):
        halves = (2, shape[giving] // 2)
        kept = [
            axis if axis < giving else axis + 1 for axis in range(rank)
        ]  # axes after the split, the half left out
        order: list[int] = []
        for axis in range(rank):
            order += [giving, kept[axis]] if axis == taking else [kept[axis]]
        there: list[Operation] = [Split(giving, halves), Transpose(tuple(order)), Merge(taking, 2)]
        if cropped:
            moved = [extent // 2 if axis == giving else extent for axis, extent in enumerate(shape)]
            moved[taking] *= 2
            there.append(
                Window(
                    tuple(
                        (extent // 2, extent) if axis == taking else (0, max(1, extent - 1))
                        for axis, extent in enumerate(moved)
                    )
                )
            )
        mapping, view = compose_sequence(shape, there)
        assert_reads(mapping, view, shape)
        if not cropped:
            assert isinstance(mapping, CoordinateMapping)
            back = mapping.inverse()
            assert compose(mapping, identity(shape)) == mapping
            assert compose(back, mapping) == identity(shape)
            assert compose(mapping, back) == identity(mapping.destination_shape)


@given(mappings())
def test_identity_is_neutral(mapping_and_view: tuple[CoordinateMapping, Array]) -> None:
    mapping, _ = mapping_and_view
    assert compose(identity(mapping.destination_shape), mapping) == mapping
    assert compose(mapping, identity(mapping.source_shape)) == mapping


@given(view_sequences(), st.data())
def test_composition_is_associative_where_it_is_defined(
    sequence: tuple[tuple[int, ...], tuple[Operation, ...]], data: st.DataObject
) -> None:
    source_shape, chosen = sequence
    view = source(source_shape)
    steps: list[CoordinateMapping] = []
    for operation in chosen:
        steps.append(mapping_of_operation(view.shape, operation))
        view = interpret(view, operation)
    from_source = steps[0]
    composed: Composition = from_source
    for following in steps[1:]:
        composed = compose(following, composed)
    # Any other bracketing: neighbours are composed in a drawn sequence.
    parts: list[Composition] = list(steps)
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        parts[at : at + 2] = [compose(parts[at + 1], parts[at])]
    if isinstance(composed, CoordinateMapping) and isinstance(parts[0], CoordinateMapping):
        assert composed == parts[0]


def _small_operations(shape: tuple[int, ...]) -> Iterator[Operation]:
    """Every operation on a small shape but broadcasts to more than one new axis of two."""
    rank = len(shape)
    yield from (Merge(axis, count) for axis in range(rank) for count in range(2, rank - axis + 1))
    for axis, extent in enumerate(shape):
        yield from (Split(axis, (f, extent // f)) for f in range(2, extent) if extent % f == 0)
        for start, stop in itertools.combinations(range(extent + 1), 2):
            if stop - start < extent:
                yield Window(tuple((start, stop) if a == axis else (0, e) for a, e in enumerate(shape)))
    yield from (Transpose(order) for order in itertools.permutations(range(rank)))
    if math.prod(shape) <= 6:
        yield Broadcast((2, *shape))


@pytest.mark.parametrize("source_shape", [(4,), (6,), (2, 2), (2, 3), (3, 2), (2, 1, 2)])
def test_mappings_are_equal_exactly_when_their_coordinates_are(source_shape: tuple[int, ...]) -> None:
    """Every sequence of up to three operations: one key for each coordinate function, and no two for one."""
    level: dict[tuple[tuple[int, ...], bytes], tuple[Array, Composition]] = {}
    found: defaultdict[tuple[tuple[int, ...], bytes], set[CoordinateMapping]] = defaultdict(set)

    def record(view: Array, mapping: Composition) -> None:
        if isinstance(mapping, CoordinateMapping):
            found[view.shape, np.ascontiguousarray(view).tobytes()].add(mapping)
        level.setdefault((view.shape, np.ascontiguousarray(view).tobytes()), (view, mapping))

    record(source(source_shape), identity(source_shape))
    for _ in range(3):
        previous, level = level, {}
        for view, mapping in previous.values():
            for operation in _small_operations(view.shape):
                composed = compose(mapping_of_operation(view.shape, operation), mapping)
                record(interpret(view, operation), composed)
    assert len(found) > 20
    assert all(len(keys) == 1 for keys in found.values())
    assert len({key for keys in found.values() for key in keys}) == len(found)


@given(
    st.sampled_from([(2, 5), (3, 4), (4, 6), (2, 2, 3), (3, 3, 2)]),
    st.data(),
)
def test_windows_of_merged_axes_compose_inside_a_block_and_over_whole_blocks(
    source_shape: tuple[int, ...], data: st.DataObject
) -> None:
    elements = math.prod(source_shape)
    start = data.draw(st.integers(0, elements - 1))
    stop = data.draw(st.integers(start + 1, elements))
    merged = views.merge(source_shape, 0, len(source_shape))
    composed = compose(views.window((elements,), Region(bounds=((start, stop),))), merged)
    view = source(source_shape).reshape(-1)[start:stop]
    row = source_shape[-1]
    if start // row == (stop - 1) // row or (start % row == 0 and stop % row == 0 and len(source_shape) == 2):
        assert_reads(composed, view, source_shape)
    elif isinstance(composed, NotRepresentable):
        assert digit_form(view, source_shape) is None


def _digit(extent: int, axis: int | None, stride: int) -> Digit:
    return Digit(extent=extent, axis=axis, stride=stride)


def _line(extent: int, offset: int, *digits: Digit) -> CoordinateMapping:
    """A source of one axis, with one destination axis per digit."""
    return CoordinateMapping(source_shape=(extent,), offsets=(offset,), digits=tuple((d,) for d in digits))


def _reading(source_shape: tuple[int, ...], *digits: Digit) -> CoordinateMapping:
    """A destination of one axis with these digits."""
    return CoordinateMapping(source_shape=source_shape, offsets=(0,) * len(source_shape), digits=(digits,))


@pytest.mark.parametrize(
    ("outer", "inner", "reason"),
    [
        pytest.param(
            views.split((36,), 0, (4, 9)),
            views.merge((6, 6), 0, 2),
            "destination axis 1 (extent 9): 9 steps of 1 along axis 0 (extent 36) of the value between "
            "leave its blocks of 6 after 6 of 9 steps, and 6 does not divide 9",
            id="split across blocks",
        ),
        pytest.param(
            views.window((10,), Region(bounds=((4, 6),))),
            views.merge((2, 5), 0, 2),
            "destination axis 0 (extent 2): 2 steps of 1 along axis 0 (extent 10) of the value between "
            "would move +1 along source axis 0 and -4 along source axis 1",
            id="window across an edge",
        ),
        pytest.param(
            _line(10, 0, _digit(2, 0, 4), _digit(2, 0, 1)),
            views.merge((2, 5), 0, 2),
            "destination axis 0 and 1: 2 steps of 4, 2 steps of 1 from 0 along axis 0 (extent 10) of the "
            "value between together leave its blocks of 5",
            id="only together",
        ),
        pytest.param(
            _line(15, 1, _digit(2, 0, 9), _digit(2, 0, 4)),
            _reading((4,), _digit(3, 0, 1), _digit(5, None, 0)),
            "destination axis 0 and 1: 2 steps of 9, 2 steps of 4 from 1 along axis 0 (extent 15) of the "
            "value between together leave its blocks of 5",
            id="only together, downwards",
        ),
        pytest.param(
            _line(12, 5, _digit(6, 0, 1)),
            _reading((9,), _digit(3, None, 0), _digit(2, 0, 3), _digit(2, None, 0)),
            "destination axis 0 (extent 6): 6 steps of 1 along axis 0 (extent 12) of the value between "
            "must be cut after 2 and after 3, and 2 does not divide 3",
            id="cuts without a common one",
        ),
        pytest.param(
            _line(10, 3, _digit(2, 0, 1)),
            _reading((2,), _digit(5, None, 0), _digit(2, 0, 1)),
            "destination axis 0 (extent 2): 2 steps of 1 along axis 0 (extent 10) of the value between "
            "would move -1 along source axis 0",
            id="backwards",
        ),
        pytest.param(
            _line(8, 0, _digit(2, 0, 5), _digit(3, 0, 1)),
            _reading((32,), _digit(2, 0, 1), _digit(4, 0, 10)),
            "source axis 0: 2 steps of 11 overlap finer steps, which together reach 20",
            id="overlap",
        ),
    ],
)
def test_a_refusal_names_axis_and_extents_and_brute_force_agrees(
    outer: CoordinateMapping, inner: CoordinateMapping, reason: str
) -> None:
    assert compose(outer, inner) == NotRepresentable(reason=reason)
    middle = outer.sources_of(destination_coordinates(outer.destination_shape))
    read = np.moveaxis(inner.sources_of(middle), -1, 0)
    view: Array = np.asarray(np.ravel_multi_index(tuple(read), inner.source_shape), dtype=np.int64)
    assert digit_form(view, inner.source_shape) is None


@st.composite
def digit_pairs(draw: st.DrawFn) -> tuple[CoordinateMapping, CoordinateMapping]:
    """Two mappings that meet in one axis, with strides that no sequence of views would give."""

    def digits(most: int) -> list[Digit]:
        drawn: list[Digit] = []
        reach = 0
        for _ in range(draw(st.integers(1, most))):
            extent = draw(st.integers(2, 4))
            if draw(st.integers(0, 3)) == 0:
                drawn.append(_digit(extent, None, 0))
            else:
                drawn.append(_digit(extent, 0, reach + draw(st.integers(1, 4))))
                reach += drawn[-1].reach
        return draw(st.permutations(drawn))

    inner_digits = digits(3)
    inner = _reading((1 + sum(digit.reach for digit in inner_digits),), *inner_digits)
    (middle,) = inner.destination_shape
    outer_digits = digits(3)
    while sum(digit.reach for digit in outer_digits) >= middle:
        outer_digits.remove(max(outer_digits, key=lambda digit: digit.reach))
    offset = draw(st.integers(0, middle - 1 - sum(digit.reach for digit in outer_digits)))
    return _line(middle, offset, *outer_digits), inner


@given(digit_pairs())
def test_whatever_is_composed_reads_what_the_two_read(
    pair: tuple[CoordinateMapping, CoordinateMapping],
) -> None:
    outer, inner = pair
    composed = compose(outer, inner)
    if isinstance(composed, CoordinateMapping):
        coordinates = destination_coordinates(outer.destination_shape)
        assert np.array_equal(
            composed.sources_of(coordinates), inner.sources_of(outer.sources_of(coordinates))
        )


def test_a_refusal_passes_through_a_chain() -> None:
    refused = compose(views.split((36,), 0, (4, 9)), views.merge((6, 6), 0, 2))
    assert isinstance(refused, NotRepresentable)
    assert compose(identity((4, 9)), refused) == refused
    assert compose(refused, identity((6, 6))) == refused


def test_shapes_that_do_not_meet_are_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match=r"reads a value of shape \[2,3\], the inner one provides \[3,2\]"):
        compose(identity((2, 3)), identity((3, 2)))
