"""How long and how much memory describing a large gather takes. Figures, no assertions.

The gather: activations [2,729,1152] in FP8 AMP left, from 729 owners of whole rows to a grid of 9 rows x 3 K
x 54 columns, described for all 1,458 destination owners: every run with its offsets, and every recipient of
each run.
"""

import sys
import tracemalloc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.geometry.match import Runs
from compiler.geometry.order import AmpLeft, BlockMajor, RowMajor
from compiler.geometry.precision import F8, F16
from compiler.geometry.redistribution import redistribute
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.geometry.views import split
from tests.geometry.cases import distributed


def gather() -> tuple[Runs, npt.NDArray[np.int64]]:
    """All runs, and the owners that receive each [runs, replicas]."""
    source = distributed(
        (2, 729, 1152), F8(), AmpLeft(), GridTiling(axes=(AxisTiling(axis=1, partitions=729),))
    )
    axes = (AxisTiling(axis=1, partitions=9), AxisTiling(axis=2, partitions=3, block_size=32))
    destination = distributed((2, 729, 1152), F8(), AmpLeft(), GridTiling(replicas=54, axes=axes))
    found = redistribute(source, destination)
    pair, runs = found.runs()
    return runs, destination.owners[found.destination_shard[pair]]


def heads() -> Runs:
    """Projected queries [2,729,1152] from their product grid to attention heads of 72, padded to 80."""
    axes = (AxisTiling(axis=1, partitions=9), AxisTiling(axis=2, partitions=72, block_size=16))
    source = distributed((2, 729, 1152), F16(), AmpLeft(), GridTiling(axes=axes))
    padded = AxisTiling(axis=3, partitions=1, padding_multiple=16, padding=Padding.ZERO)
    by_head = GridTiling(axes=(AxisTiling(axis=2, partitions=16), AxisTiling(axis=1, partitions=81), padded))
    destination = distributed((2, 729, 16, 72), F16(), RowMajor(), by_head)
    return redistribute(source, destination, split((2, 729, 1152), 2, (16, 72))).runs()[1]


def weights() -> Runs:
    """A weight [1152,4304] from linear row-major homes on 1,472 tiles to coefficient blocks, in 5 M runs."""
    source = distributed((1152, 4304), F16(), RowMajor(), LinearTiling(partitions=1472, grain=4))
    axes = (
        AxisTiling(axis=0, partitions=3, block_size=16),
        AxisTiling(axis=1, partitions=269, block_size=16),
    )
    order = BlockMajor(row_block=16, column_block=16)
    return redistribute(source, distributed((1152, 4304), F16(), order, GridTiling(axes=axes))).runs()[1]


@pytest.mark.parametrize("describe", [gather, heads, weights])
def test_describe(
    benchmark: BenchmarkFixture, capsys: pytest.CaptureFixture[str], describe: Callable[[], object]
) -> None:
    tracemalloc.start()
    describe()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    with capsys.disabled():
        sys.stdout.write(f"\n{describe.__name__}: peak memory {peak / 2**20:.1f} MiB (measured)\n")
    benchmark(describe)
