"""Row-major of any even width to panel rows and back, in the simulator."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.kernels.contract import Operand, Result
from compiler.kernels.rearrange.halves import halves_symbol
from tests.kernels.machine import MANY, bound
from tests.kernels.rearranging import (
    ALONG_COLUMNS,
    ALONG_ROWS,
    call,
    check,
    extents,
    few_matrices,
    orders_with_rows,
)

odd = st.one_of(st.integers(0, 9), st.integers(0, 25)).map(lambda count: 2 * count + 1)


@MANY
@given(
    order=st.sampled_from((*ALONG_COLUMNS, *ALONG_ROWS)),
    matrices=few_matrices,
    rows=extents,
    columns=odd,
    seed=st.integers(0, 1 << 16),
)
def test_packing(order: ElementOrder, matrices: tuple[int, ...], rows: int, columns: int, seed: int) -> None:
    result, source = orders_with_rows(order, is_packing=True)
    binding = bound(call(result, source, (*matrices, rows, columns)))
    assert binding.symbol == halves_symbol(is_packing=True)
    check(binding, seed)


@MANY
@given(
    order=st.sampled_from((*ALONG_COLUMNS, *ALONG_ROWS)),
    matrices=few_matrices,
    rows=extents,
    columns=odd,
    seed=st.integers(0, 1 << 16),
)
def test_unpacking(
    order: ElementOrder, matrices: tuple[int, ...], rows: int, columns: int, seed: int
) -> None:
    """Rows and matrices meet inside words."""
    result, source = orders_with_rows(order, is_packing=False)
    binding = bound(call(result, source, (*matrices, rows, columns)))
    assert binding.symbol == halves_symbol(is_packing=False)
    check(binding, seed)


@MANY
@given(matrices=few_matrices, rows=extents, columns=odd, seed=st.integers(0, 1 << 16))
def test_unpacking_what_was_drained_by_columns(
    matrices: tuple[int, ...], rows: int, columns: int, seed: int
) -> None:
    result, source = orders_with_rows(AmpOutput(), is_packing=False)
    binding = bound(call(result, source, (*matrices, rows, columns)))
    assert binding.symbol == halves_symbol(is_packing=False, drained="columns")
    check(binding, seed)


@MANY
@given(matrices=few_matrices, rows=extents, columns=odd, seed=st.integers(0, 1 << 16))
def test_unpacking_what_was_drained_by_rows(
    matrices: tuple[int, ...], rows: int, columns: int, seed: int
) -> None:
    result, source = orders_with_rows(AmpTransposedOutput(), is_packing=False)
    binding = bound(call(result, source, (*matrices, rows, columns)))
    assert binding.symbol == halves_symbol(is_packing=False, drained="rows")
    check(binding, seed)


@pytest.mark.parametrize("precision", [F8(scale_exponent=2), F16(), F32()])
@pytest.mark.parametrize("is_packing", [True, False])
@pytest.mark.parametrize(
    "order",
    [BlockMajorTransposed(row_block=64, column_block=16), BlockMajorTransposed(row_block=64, column_block=8)],
)
def test_blocks_of_several_panels(
    order: BlockMajorTransposed, precision: Precision, *, is_packing: bool
) -> None:
    """Of every precision where panel rows hold neighbours of a row."""
    for shape in ((19, 70), (3, 16, 130)):
        check(bound(call(*orders_with_rows(order, is_packing=is_packing), shape, precision=precision)))


@pytest.mark.parametrize("order", [AmpLeft(), AmpTransposedRight()])
def test_codes_in_twos(order: ElementOrder) -> None:
    for is_packing in (True, False):
        check(bound(call(*orders_with_rows(order, is_packing=is_packing), (21, 38), precision=F8())), seed=3)


@pytest.mark.parametrize("order", [AmpLeft(), AmpRight(), AmpTransposedLeft(), AmpTransposedRight()])
def test_the_word_behind_the_last_half_keeps_its_other_half(order: ElementOrder) -> None:
    binding = bound(call(RowMajor(), order, (3, 5)))
    access = binding.access(Result(0))
    assert access.extent == (0, 32)
    assert [(int(start), int(stop)) for start, stop in zip(*access.reads.spans(), strict=True)] == [(30, 32)]
    check(binding)


@pytest.mark.parametrize("shape", [(32, 17), (64, 33), (33, 65)])
@pytest.mark.parametrize("order", [AmpLeft(), AmpTransposedRight(), AmpRight(), AmpTransposedLeft()])
@pytest.mark.parametrize("is_packing", [True, False])
def test_generic_kernels_take_ten_cycles_for_an_element(
    order: ElementOrder, shape: tuple[int, int], *, is_packing: bool
) -> None:
    """Kernels known to be good take as much for each element, padding included, of what is no fast path."""
    binding = bound(call(*orders_with_rows(order, is_packing=is_packing), shape))
    panels = binding.access(Result(0) if is_packing else Operand(0)).operand
    assert panels is not None
    assert binding.cycles < 10 * panels.physical[0] * panels.physical[1]
