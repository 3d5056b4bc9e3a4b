"""Exact figures of real layers, known beforehand."""

from collections import Counter

import numpy as np
import pytest

from compiler.geometry.order import AmpLeft, ElementOrder, RowMajor
from compiler.geometry.precision import F8, F16
from compiler.geometry.redistribution import redistribute
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding
from tests.geometry.cases import distributed

ACTIVATIONS = (2, 729, 1152)


@pytest.mark.parametrize(("replicas", "received"), [(54, 90_699_264), (36, 60_466_176)])
def test_gather_of_rows_to_a_product_grid(replicas: int, received: int) -> None:
    source = distributed(ACTIVATIONS, F8(), AmpLeft(), GridTiling(axes=(AxisTiling(axis=1, partitions=729),)))
    grid = GridTiling(
        replicas=replicas,
        axes=(AxisTiling(axis=1, partitions=9), AxisTiling(axis=2, partitions=3, block_size=32)),
    )
    destination = distributed(ACTIVATIONS, F8(), AmpLeft(), grid)
    assert {storage.extents for storage in source.index_maps} == {(2, 1, 1152)}
    assert {storage.extents for storage in destination.index_maps} == {(2, 81, 384)}
    assert destination.owner_count == 27 * replicas
    found = redistribute(source, destination)
    assert found.run_count == 52_488
    sizes, counts = found.run_sizes()
    assert (sizes.tolist(), counts.tolist()) == ([32], [52_488])
    assert found.received_bytes == received
    assert set(found.source_run_counts().tolist()) == {72}
    assert set(found.alignments.tolist()) == {32}


@pytest.mark.parametrize("order", [RowMajor(), AmpLeft()])
def test_retile_of_shards_is_a_run_per_panel_row(order: ElementOrder) -> None:
    # To consumers of [2,74,192]: from row-major shards of the same grid, and from whole-row owners.
    shape = (2, 740, 1152)
    consumers = GridTiling(
        axes=(AxisTiling(axis=1, partitions=10), AxisTiling(axis=2, partitions=6, block_size=32))
    )
    producers = consumers if order == RowMajor() else GridTiling(axes=(AxisTiling(axis=1, partitions=740),))
    found = redistribute(
        distributed(shape, F8(), order, producers), distributed(shape, F8(), AmpLeft(), consumers)
    )
    assert set(found.destination_run_counts().tolist()) == {888}
    assert 888 == 2 * 74 * 6
    received = np.bincount(found.destination_shard, found.byte_counts)
    assert set(received.tolist()) == {28_416}
    assert found.run_sizes()[0].tolist() == [32]


def test_shards_of_a_wide_product() -> None:
    tiling = GridTiling(
        axes=(
            AxisTiling(axis=0, partitions=9, block_size=2, padding_multiple=2, padding=Padding.ZERO),
            AxisTiling(axis=1, partitions=162, block_size=16),
        )
    )
    found = distributed((729, 4304), F16(), RowMajor(), tiling)
    assert found.owner_count == 1458
    assert Counter(found.logical_elements.tolist()) == {
        2624: 535,
        2560: 321,
        2528: 107,
        1312: 275,
        1280: 165,
        1264: 55,
    }
    assert found.logical_elements.sum() == 3_137_616
    assert found.empty_shards.tolist() == []


def test_columns_in_blocks_of_16_over_27() -> None:
    tiling = GridTiling(axes=(AxisTiling(axis=1, partitions=27, block_size=16),))
    found = distributed((1, 4304), F16(), RowMajor(), tiling)
    assert found.logical_elements.tolist() == [160] * 26 + [144]


def test_four_column_strips_are_recognized_before_anything_is_scheduled() -> None:
    # The number of transfers is a fact of geometry, cheap to know.
    strips = GridTiling(
        axes=(AxisTiling(axis=0, partitions=5), AxisTiling(axis=1, partitions=288, block_size=4))
    )
    rows = GridTiling(axes=(AxisTiling(axis=0, partitions=729),))
    found = redistribute(
        distributed((729, 1152), F16(), RowMajor(), strips), distributed((729, 1152), F16(), RowMajor(), rows)
    )
    assert found.run_count == 729 * 288
    assert set(found.destination_run_counts().tolist()) == {288}
    assert set(found.alignments.tolist()) == {8}


def test_odd_tails_are_known_not_to_be_words() -> None:
    # Halves of an odd width cannot be sent as 32-bit words.
    rows = GridTiling(axes=(AxisTiling(axis=0, partitions=3),))
    columns = GridTiling(axes=(AxisTiling(axis=1, partitions=9),))
    found = redistribute(
        distributed((3, 81), F16(), RowMajor(), rows), distributed((3, 81), F16(), RowMajor(), columns)
    )
    assert set(found.alignments.tolist()) == {18}
    assert not (found.alignments % 4 == 0).any()


def test_short_packets_of_narrow_fp8_producers_are_visible() -> None:
    # Producers of 16 columns fill half of each 32-column panel row.
    narrow = GridTiling(axes=(AxisTiling(axis=1, partitions=72, block_size=16),))
    wide = GridTiling(axes=(AxisTiling(axis=1, partitions=36, block_size=32),))
    target = GridTiling(axes=(AxisTiling(axis=0, partitions=9),))
    packed = distributed((729, 1152), F8(), AmpLeft(), target)
    for tiling, order, sizes in (
        (narrow, RowMajor(), [16]),
        (wide, RowMajor(), [81 * 32]),
        (wide, AmpLeft(), [81 * 32]),
    ):
        found = redistribute(distributed((729, 1152), F8(), order, tiling), packed)
        assert found.run_sizes()[0].tolist() == sizes


def test_every_byte_of_a_panel_conversion_travels_in_panel_rows_in_every_precision() -> None:
    # The panel width follows the precision; a 16-wide panel in FP8 would double the runs.
    for precision, columns in ((F16(), 16), (F8(), 32)):
        source = distributed(
            (64, 768), precision, RowMajor(), GridTiling(axes=(AxisTiling(axis=0, partitions=8),))
        )
        blocks = GridTiling(axes=(AxisTiling(axis=1, partitions=8, block_size=columns),))
        found = redistribute(source, distributed((64, 768), precision, AmpLeft(), blocks))
        assert found.run_sizes()[0].tolist() == [32]
        assert found.run_count == 64 * 768 // columns
