"""Row-major in whole words to panel rows of its columns and back, in the simulator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import AmpRight, AmpTransposedLeft, AmpTransposedOutput, BlockMajor, ElementOrder
from compiler.kernels.rearrange.transpose import transpose_symbol
from tests.kernels.machine import MANY, bound
from tests.kernels.rearranging import (
    ALONG_ROWS,
    call,
    check,
    extents,
    few_matrices,
    orders_with_rows,
)

pairs = st.one_of(st.integers(1, 10), st.integers(1, 26))


@MANY
@given(
    order=st.sampled_from(ALONG_ROWS),
    matrices=few_matrices,
    rows=extents,
    columns=pairs.map(lambda count: 2 * count),
    extra_columns=st.sampled_from((0, 0, 2, 18)),
    seed=st.integers(0, 1 << 16),
)
def test_packing(
    order: ElementOrder, matrices: tuple[int, ...], rows: int, columns: int, extra_columns: int, seed: int
) -> None:
    """Rows and columns that the panels have beyond the elements become zero."""
    result, source = orders_with_rows(order, is_packing=True)
    binding = bound(call(result, source, (*matrices, rows, columns), result_extra=(0, extra_columns)))
    assert binding.symbol == transpose_symbol(is_packing=True)
    check(binding, seed)


@MANY
@given(
    order=st.sampled_from(ALONG_ROWS),
    matrices=few_matrices,
    rows=extents,
    columns=pairs.map(lambda count: 2 * count),
    extra_columns=st.sampled_from((0, 0, 2, 18)),
    seed=st.integers(0, 1 << 16),
)
def test_unpacking(
    order: ElementOrder, matrices: tuple[int, ...], rows: int, columns: int, extra_columns: int, seed: int
) -> None:
    """What the panels have beyond the rows is not used."""
    result, source = orders_with_rows(order, is_packing=False)
    binding = bound(call(result, source, (*matrices, rows, columns), source_extra=(0, extra_columns)))
    assert binding.symbol == transpose_symbol(is_packing=False)
    check(binding, seed)


@MANY
@given(
    matrices=few_matrices,
    rows=extents,
    columns=pairs.map(lambda count: 2 * count),
    seed=st.integers(0, 1 << 16),
)
def test_unpacking_what_was_drained(matrices: tuple[int, ...], rows: int, columns: int, seed: int) -> None:
    result, source = orders_with_rows(AmpTransposedOutput(), is_packing=False)
    binding = bound(call(result, source, (*matrices, rows, columns)))
    assert binding.symbol == transpose_symbol(is_packing=False, is_drained=True)
    check(binding, seed)


@pytest.mark.parametrize(
    ("order", "shape", "known"),
    [
        # Formulas of kernels that are known to be good, in cycles.
        (BlockMajor(row_block=64, column_block=16), (64, 16), 300 + 6 * 6 * 60),
        (BlockMajor(row_block=64, column_block=16), (64, 64), 300 + 6 * 6 * (12 + 140 * 4)),
        (AmpRight(), (256, 80), 300 + 22 * 6 * (12 + 140 * 5)),
    ],
)
def test_packing_is_faster_than_known_kernels(
    order: ElementOrder, shape: tuple[int, int], known: int
) -> None:
    assert bound(call(*orders_with_rows(order, is_packing=True), shape)).cycles < known


@pytest.mark.parametrize("shape", [(16, 2), (16, 64), (64, 16), (64, 64), (256, 72)])
def test_unpacking_is_faster_than_known_kernels(shape: tuple[int, int]) -> None:
    """Known: 100 cycles and 90 for each pair of columns, for each twelve rows."""
    binding = bound(call(*orders_with_rows(AmpTransposedLeft(), is_packing=False), shape))
    assert binding.cycles < 300 + -(-shape[0] // 12) * (100 + 90 * (shape[1] // 2))
