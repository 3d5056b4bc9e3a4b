"""Matched runs against copying one element at a time."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.iteration import IterationSpace, LinearForm, space_of_mapping, space_of_regions
from compiler.geometry.match import Match, match
from compiler.geometry.order import AmpLeft, AmpOutput, ElementOrder, RowMajor, index_map
from compiler.geometry.precision import F8, F16, Precision
from compiler.geometry.region import Region
from compiler.geometry.views import merge, split
from tests.geometry.interpreter import BYTES, index_of, multiples_of
from tests.geometry.strategies import orders_of, precisions


def copied(found: Match) -> list[tuple[int, int]]:
    """(destination byte, source byte) of every byte, in sequence."""
    runs = found.runs()
    return [
        (destination + byte, source + byte)
        for destination, source, count in zip(runs.destination, runs.source, runs.byte_counts, strict=True)
        for byte in range(count)
    ]


def expected_bytes(
    space: IterationSpace,
    precision: Precision,
    destination: tuple[ElementOrder, Sequence[int]],
    source: tuple[ElementOrder, Sequence[int]],
) -> list[tuple[int, int]]:
    """The same, by the written definition of the orders."""
    size = BYTES[type(precision)]
    pairs: list[tuple[int, int]] = []
    for point in itertools.product(*map(range, space.extents)):
        to = index_of(
            destination[0], precision, destination[1], tuple(f.at(point) for f in space.destination)
        )
        at = index_of(source[0], precision, source[1], tuple(f.at(point) for f in space.source))
        pairs.extend((to * size + byte, at * size + byte) for byte in range(size))
    return sorted(pairs)


def check(found: Match, expected: list[tuple[int, int]]) -> None:
    """Exact bytes, exact counts, runs that no loop of their piece continues, a true alignment."""
    assert sorted(copied(found)) == expected
    assert found.byte_count == len(expected)
    runs = found.runs()
    assert found.run_count == len(runs.byte_counts)
    every = np.concatenate([runs.destination, runs.source, runs.byte_counts])
    assert not len(every) or np.gcd.reduce(every) % found.alignment == 0
    for piece in found.pieces:
        assert all(count > 1 for count in piece.counts)
        assert (piece.run_bytes, piece.run_bytes) not in piece.strides


@st.composite
def windows(
    draw: st.DrawFn, precision: Precision, extents: Sequence[int]
) -> tuple[ElementOrder, tuple[int, ...], tuple[int, ...]]:
    """An order, extents, and where a box of ``extents`` begins in them."""
    order = draw(st.sampled_from(orders_of(precision)))
    multiples = (*(1,) * (len(extents) - 2), *multiples_of(order, precision))
    starts = tuple(draw(st.integers(0, 3) | st.sampled_from([0, m, m // 2])) for m in multiples)
    storage = tuple(
        -(-(start + extent + draw(st.integers(0, 2))) // multiple) * multiple
        for start, extent, multiple in zip(starts, extents, multiples, strict=True)
    )
    return order, storage, starts


@given(st.data(), precisions, st.integers(1, 3), st.integers(1, 5), st.integers(1, 70))
def test_windows_of_any_two_orders_match(
    data: st.DataObject, precision: Precision, batch: int, rows: int, columns: int
) -> None:
    extents = data.draw(st.permutations([batch, rows, columns]))
    to, to_extents, to_starts = data.draw(windows(precision, extents))
    at, at_extents, at_starts = data.draw(windows(precision, extents))
    box = Region.of_extents(extents)
    space = space_of_regions(destination=box.shift(to_starts), source=box.shift(at_starts))
    found = match(
        space=space,
        destination=index_map(to, precision, to_extents),
        source=index_map(at, precision, at_extents),
        element_bytes=precision.element_bytes,
    )
    check(found, expected_bytes(space, precision, (to, to_extents), (at, at_extents)))
    moved = found.rebased(destination=64, source=-32)
    assert copied(moved) == [(a + 64, b - 32) for a, b in copied(found)]


def moved(forms: Sequence[LinearForm], starts: Sequence[int]) -> tuple[LinearForm, ...]:
    """The coordinates inside a storage in which the tensor begins at ``starts``."""
    return tuple(
        LinearForm(base=form.base + start, steps=form.steps)
        for form, start in zip(forms, starts, strict=True)
    )


@given(st.data(), precisions, st.integers(1, 6), st.sampled_from([4, 6, 8, 12, 24, 72]), st.integers(1, 3))
def test_split_and_merged_axes_match(
    data: st.DataObject, precision: Precision, heads: int, width: int, rows: int
) -> None:
    # [rows, heads * width] seen as [rows, heads, width] and back, heads ragged or shifted against panels.
    splitting = data.draw(st.booleans())
    mapping = (
        split((rows, heads * width), 1, (heads, width)) if splitting else merge((rows, heads, width), 1, 2)
    )
    to, to_extents, to_starts = data.draw(windows(precision, mapping.destination_shape))
    at, at_extents, at_starts = data.draw(windows(precision, mapping.source_shape))
    whole = space_of_mapping(mapping)
    space = IterationSpace(
        extents=whole.extents,
        destination=moved(whole.destination, to_starts),
        source=moved(whole.source, at_starts),
    )
    found = match(
        space=space,
        destination=index_map(to, precision, to_extents),
        source=index_map(at, precision, at_extents),
        element_bytes=precision.element_bytes,
    )
    check(found, expected_bytes(space, precision, (to, to_extents), (at, at_extents)))


def test_equal_storages_are_one_run() -> None:
    storage = index_map(AmpLeft(), F8(), (2, 74, 192))
    whole = Region.of_extents((2, 74, 192))
    found = match(
        space=space_of_regions(destination=whole, source=whole),
        destination=storage,
        source=storage,
        element_bytes=1,
    )
    assert [(piece.run_bytes, piece.run_count) for piece in found.pieces] == [(28_416, 1)]


def test_a_broadcast_source_repeats() -> None:
    space = IterationSpace(
        extents=(3, 8),
        destination=(LinearForm(base=0, steps=(1, 0)), LinearForm(base=0, steps=(0, 1))),
        source=(LinearForm(base=2, steps=(0, 0)), LinearForm(base=0, steps=(0, 1))),
    )
    found = match(
        space=space,
        destination=index_map(RowMajor(), F16(), (3, 8)),
        source=index_map(RowMajor(), F16(), (4, 8)),
        element_bytes=2,
    )
    assert found.runs().destination.tolist() == [0, 16, 32]
    assert found.runs().source.tolist() == [32, 32, 32]


def test_heads_across_panels_fall_into_few_pieces_whatever_their_number() -> None:
    # Heads of 72 in panels of 16 meet panels in two phases: an even and an odd head.
    mapping = split((1, 1 << 14, 1024 * 72), 2, (1024, 72))
    found = match(
        space=space_of_mapping(mapping),
        destination=index_map(RowMajor(), F16(), mapping.destination_shape),
        source=index_map(AmpLeft(), F16(), mapping.source_shape),
        element_bytes=2,
    )
    assert len(found.pieces) <= 6
    assert found.byte_count == 2 * 1024 * 72 << 14


def test_coordinates_outside_their_storage_are_refused() -> None:
    with pytest.raises(ValueError, match=r"source coordinates 1 \.\. 3 leave extents \(3,\)"):
        match(
            space=space_of_regions(destination=Region(bounds=((0, 3),)), source=Region(bounds=((1, 4),))),
            destination=index_map(RowMajor(), F16(), (3,)),
            source=index_map(RowMajor(), F16(), (3,)),
            element_bytes=2,
        )
    with pytest.raises(ValueError, match=r"regions of extents \(2,\) and \(3,\) do not correspond"):
        space_of_regions(destination=Region(bounds=((0, 3),)), source=Region(bounds=((0, 2),)))


def test_a_drain_sequence_that_wraps_into_the_next_group() -> None:
    """One row of 32 columns out of AMP output: 16 pairs, although the middle two touch on both sides."""
    space = space_of_regions(destination=Region.of_extents((1, 32)), source=Region.of_extents((1, 32)))
    found = match(
        space=space,
        destination=index_map(RowMajor(), F16(), (1, 32)),
        source=index_map(AmpOutput(), F16(), (1, 32)),
        element_bytes=2,
    )
    check(found, expected_bytes(space, F16(), (RowMajor(), (1, 32)), (AmpOutput(), (1, 32))))
    assert (found.run_count, len(found.pieces)) == (16, 1)
