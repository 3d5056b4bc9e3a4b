"""Changes of element order in the simulator: rows that stay rows, and what is refused."""

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from compiler.kernels.rearrange.panels import panels_symbol
from tests.kernels.machine import MANY, bound, refused
from tests.kernels.rearranging import call, check, extents, rearrange
from tests.kernels.tensors import operand

ORDERS: tuple[ElementOrder, ...] = (RowMajor(), AmpLeft(), AmpTransposedRight())


@MANY
@given(
    orders=st.tuples(st.sampled_from(ORDERS), st.sampled_from(ORDERS)),
    rows=extents,
    atoms=st.integers(1, 20),
    precision=st.sampled_from((F8(scale_exponent=-3), F16(), F32())),
    extra_rows=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seed=st.integers(0, 1 << 16),
)
def test_rows_of_atoms_keep_their_elements_in_every_order(
    orders: tuple[ElementOrder, ElementOrder],
    rows: int,
    atoms: int,
    precision: Precision,
    extra_rows: tuple[int, int],
    seed: int,
) -> None:
    """What the result has beyond the operand is cleared; what the operand has beyond it is not read."""
    columns = 8 * atoms // precision.element_bytes
    binding = bound(
        call(
            *orders,
            (rows, columns),
            result_extra=(extra_rows[0], 0),
            source_extra=(extra_rows[1], 0),
            precision=precision,
        )
    )
    assert binding.symbol == panels_symbol(8, 8)
    check(binding, seed)


@pytest.mark.parametrize("is_packing", [True, False])
@MANY
@given(
    panels=st.sampled_from((AmpLeft(), AmpTransposedRight())),
    rows=extents,
    atoms=st.integers(0, 12),
    precision=st.sampled_from((F8(scale_exponent=-3), F16(), F32())),
    extra_rows=st.integers(0, 2),
    seed=st.integers(0, 1 << 16),
)
def test_rows_of_words_keep_their_elements_in_every_order(
    panels: ElementOrder,
    rows: int,
    atoms: int,
    precision: Precision,
    extra_rows: int,
    seed: int,
    *,
    is_packing: bool,
) -> None:
    """The panels are accessed 64 bits at a time."""
    columns = (8 * atoms + 4) // precision.element_bytes
    orders = (panels, RowMajor()) if is_packing else (RowMajor(), panels)
    result_extra, source_extra = ((extra_rows, 0), (0, 0)) if is_packing else ((0, 0), (extra_rows, 0))
    binding = bound(
        call(
            *orders,
            (rows, columns),
            result_extra=result_extra,
            source_extra=source_extra,
            precision=precision,
        )
    )
    assert binding.symbol == (panels_symbol(4, 8) if is_packing else panels_symbol(8, 4))
    check(binding, seed)


@MANY
@given(
    rows=extents,
    words=st.integers(0, 12).map(lambda count: 2 * count + 1),
    extra=st.tuples(st.sampled_from((0, 0, 2)), st.sampled_from((0, 0, 2))),
    extra_rows=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seed=st.integers(0, 1 << 16),
)
def test_rows_of_words_get_another_width(
    rows: int, words: int, extra: tuple[int, int], extra_rows: tuple[int, int], seed: int
) -> None:
    wide, narrow = (words + more for more in extra)
    assume(wide <= narrow or narrow % 8 + wide - narrow <= 8)
    binding = bound(
        call(
            RowMajor(),
            RowMajor(),
            (rows, 2 * words),
            result_extra=(extra_rows[0], 2 * extra[0]),
            source_extra=(extra_rows[1], 2 * extra[1]),
        )
    )
    assert binding.symbol == panels_symbol(4, 4)
    check(binding, seed)


@MANY
@given(
    order=st.sampled_from(ORDERS),
    rows=extents,
    atoms=st.integers(1, 20),
    extra_rows=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    extra_columns=st.sampled_from((0, 0, 4, 12)),
    seed=st.integers(0, 1 << 16),
)
def test_what_was_drained_is_put_in_sequence(
    order: ElementOrder,
    rows: int,
    atoms: int,
    extra_rows: tuple[int, int],
    extra_columns: int,
    seed: int,
) -> None:
    binding = bound(
        call(
            order,
            AmpOutput(),
            (rows, 4 * atoms),
            result_extra=(extra_rows[0], extra_columns if order == RowMajor() and atoms % 4 == 0 else 0),
            source_extra=(extra_rows[1], 0),
        )
    )
    assert binding.symbol == panels_symbol(8, 8, is_drained=True)
    check(binding, seed)


@pytest.mark.parametrize("shape", [(1, 34), (1, 46), (4, 2), (4, 8), (5, 20)])
def test_a_lane_without_rows_clears_those_behind_a_narrow_panel(shape: tuple[int, int]) -> None:
    """Where rows are fewer than lanes, the lane whose turn it is to clear has moved nothing."""
    check(bound(call(AmpLeft(), RowMajor(), shape, result_extra=(3, 0))))


@pytest.mark.parametrize("order", ORDERS)
def test_several_matrices(order: ElementOrder) -> None:
    check(bound(call(order, RowMajor(), (3, 32, 48))))


def test_several_matrices_of_padded_rows() -> None:
    """Where rows cannot be counted through, each matrix is done by itself."""
    check(bound(call(AmpTransposedRight(), AmpLeft(), (3, 32, 48))))
    check(bound(call(AmpTransposedRight(), RowMajor(), (3, 18, 48))))
    check(bound(call(RowMajor(), AmpTransposedRight(), (3, 18, 48))))


@pytest.mark.parametrize("result", ORDERS)
def test_a_slice_of_rows_begins_where_it_lies(result: ElementOrder) -> None:
    source = operand(RowMajor(), (40, 36), region=((8, 24), (0, 36)), origin=24)
    if result == RowMajor():
        ends = operand(result, (32, 36), region=((16, 32), (0, 36)), origin=8)
    else:
        ends = operand(result, (16, 48), logical=(16, 36), origin=8)
    check(bound(rearrange(ends, source)))


@pytest.mark.parametrize("order", [*ORDERS, AmpTransposedLeft()])
@pytest.mark.parametrize("rows", [3, 4, 16])
def test_a_column_that_was_drained_is_no_column_of_rows(order: ElementOrder, rows: int) -> None:
    """Sixteen rows in the sequence of the AMP unit: of words, only a column of the same sequence moves."""
    drained = AmpTransposedOutput()
    for result, source in ((order, drained), (drained, order)):
        assert isinstance(call(result, source, (rows, 1), precision=F32()), Refusal)
    check(bound(call(drained, drained, (rows, 1), precision=F32())))


@pytest.mark.parametrize("order", [AmpLeft(), AmpTransposedRight()])
@pytest.mark.parametrize("shape", [(48, 64), (64, 768), (16, 1152)])
def test_packing_takes_a_cycle_for_an_element_at_most(order: ElementOrder, shape: tuple[int, int]) -> None:
    """Kernels known to be good take one cycle for each element of AMP left, three of transposed right."""
    binding = bound(rearrange(operand(order, shape), operand(RowMajor(), shape)))
    assert binding.cycles <= shape[0] * shape[1] + 400


@pytest.mark.parametrize("columns", [16, 18, 20, 30, 32, 34, 36])
def test_narrow_rows_take_about_a_cycle_for_an_element(columns: int) -> None:
    """Padding included, as those kernels count; their estimate leaves out what a call costs."""
    binding = bound(call(AmpLeft(), RowMajor(), (64, columns)))
    assert binding.cycles <= 1.1 * 64 * (-(-columns // 16) * 16) + 600


def test_shapes_share_kernels() -> None:
    """A kernel is specialized on units and directions, not on orders and extents."""
    orders = (AmpLeft(), AmpTransposedRight(), BlockMajorTransposed(row_block=64, column_block=16))
    symbols = {
        str(bound(rearrange(operand(order, (16, width)), operand(RowMajor(), (16, width)))).symbol)
        for order in orders
        for width in (64, 128)
        if order != orders[2] or width == 64
    }
    assert symbols == {"rearrange.panels.source=u64.result=u64.lanes=plain"}
    symbols = {
        str(bound(call(order, RowMajor(), (rows, columns))).symbol)
        for order in (AmpRight(), BlockMajor(row_block=64, column_block=16))
        for rows in (17, 64)
        for columns in (32, 64)
    }
    assert symbols == {"rearrange.transpose.direction=pack.lanes=plain"}


SMALL = operand(RowMajor(), (32, 32))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: rearrange(operand(AmpRight(), (32, 32)), operand(AmpLeft(), (32, 32))),
            "one of result 0 and operand 0 must be row-major and the other in panels",
        ),
        (
            lambda: rearrange(operand(RowMajor(), (4, 3)), operand(RowMajor(), (4, 3))),
            "one of result 0 and operand 0 must be row-major and the other in panels",
        ),
        (
            lambda: rearrange(
                operand(AmpRight(), (32, 32)), operand(RowMajor(), (32, 64), region=((0, 32), (0, 32)))
            ),
            "operand 0 is no matrix without gaps",
        ),
        (
            lambda: rearrange(
                operand(AmpLeft(), (32, 32)), SMALL, Alias(result=Result(0), operand=Operand(0))
            ),
            "result 0 at operand 0 +0: elements that move cannot stay in one storage",
        ),
        (
            lambda: rearrange(operand(RowMajor(), (32, 40), logical=(32, 32)), operand(AmpRight(), (32, 32))),
            "result 0 has rows or columns to clear, which only panels can have",
        ),
        (
            lambda: call(
                BlockMajor(row_block=16, column_block=16), RowMajor(), (16, 16), result_extra=(16, 0)
            ),
            "a block of the panels holds nothing but padding",
        ),
        (
            lambda: call(AmpOutput(), RowMajor(), (16, 16)),
            "result 0 is in the order in which products drain, which only products make",
        ),
        (
            lambda: call(AmpRight(), RowMajor(), (32, 16), precision=F8()),
            "only F16 is transposed",
        ),
        (
            lambda: call(AmpLeft(), RowMajor(), (32, 15), precision=F8()),
            "a row of 15 bytes is no whole number of 16-bit units",
        ),
        (
            lambda: call(BlockMajor(row_block=16, column_block=3), RowMajor(), (32, 15)),
            "blocks of 3 panel rows are no power of two",
        ),
        (
            lambda: rearrange(
                operand(AmpTransposedRight(), (2, 32, 16), logical=(2, 32, 16)),
                operand(AmpLeft(), (2, 48, 16), logical=(2, 32, 16)),
            ),
            "one of result 0 and operand 0 must be row-major and the other in panels",
        ),
        (
            lambda: rearrange(
                operand(AmpLeft(), (2, 18, 16), logical=(2, 16, 16)), operand(RowMajor(), (2, 16, 16))
            ),
            "operand 0 has other rows than the result, in several matrices",
        ),
        (
            lambda: rearrange(operand(AmpLeft(), (32, 32), precision=F8()), SMALL),
            "result 0 and operand 0 differ in precision or scale",
        ),
        (
            lambda: rearrange(operand(AmpLeft(), (32, 32)), operand(RowMajor(), (32, 32), origin=4)),
            "operand 0 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
