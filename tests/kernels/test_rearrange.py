"""Changes of element order in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, AmpTransposedRight, ElementOrder, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.relation import Identity
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from compiler.kernels.rearrange.binding import RearrangeParameters
from tests.kernels.machine import MANY, bound, refused, run
from tests.kernels.tensors import operand
from tests.kernels.typed import dtype_of, loaded_values, stored_values

RESULT, SOURCE = 0x60000, 0x70000
ORDERS: tuple[ElementOrder, ...] = (RowMajor(), AmpLeft(), AmpTransposedRight())


def rearrange(result: LocalOperand, source: LocalOperand, *aliases: Alias) -> Binding | Refusal:
    relations = (None, Identity(rank=len(result.backing)))
    return registry.bind("rearrange", RearrangeParameters(), (result, source), relations, aliases)


def check(binding: Binding, seed: int = 0) -> None:
    """Move random bits; hold the result to them and the cycles to the formula."""
    result, source = (access.operand for access in binding.accesses)
    assert result is not None
    assert source is not None
    elements = int(np.prod(source.logical)) * source.precision.element_bytes
    bits = np.random.default_rng(seed).integers(0, 256, elements, dtype=np.uint8)
    values = bits.view(dtype_of(source)).reshape(source.logical)
    outcome = run(binding, (RESULT, SOURCE), {Operand(0): stored_values(source, values)}, seed=seed)
    found = loaded_values(result, outcome.memory, RESULT)
    wanted = values[tuple(slice(0, extent) for extent in result.logical)]
    assert found.tobytes() == wanted.tobytes()
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.moved_bytes == wanted.nbytes


def stored_in(
    order: ElementOrder, rows: int, columns: int, precision: Precision, extra_rows: int
) -> LocalOperand:
    """An operand with the padding that its order needs, and more rows."""
    micro = precision.micro
    physical_rows, physical_columns = rows + extra_rows, columns
    if order != RowMajor():
        physical_columns = -(-columns // micro) * micro
    if order == AmpTransposedRight():
        physical_rows = -(-physical_rows // 16) * 16
    return operand(order, (physical_rows, physical_columns), logical=(rows, columns), precision=precision)


@MANY
@given(
    orders=st.tuples(st.sampled_from(ORDERS), st.sampled_from(ORDERS)),
    rows=st.integers(1, 20),
    atoms=st.integers(1, 20),
    precision=st.sampled_from((F8(scale_exponent=-3), F16(), F32())),
    extra_rows=st.tuples(st.integers(0, 2), st.integers(0, 2)),
    seed=st.integers(0, 1 << 16),
)
def test_rows_keep_their_elements_in_every_order(
    orders: tuple[ElementOrder, ElementOrder],
    rows: int,
    atoms: int,
    precision: Precision,
    extra_rows: tuple[int, int],
    seed: int,
) -> None:
    """What the result has beyond the operand is cleared; what the operand has beyond it is not read."""
    columns = 8 * atoms // precision.element_bytes
    result = stored_in(orders[0], rows, columns, precision, extra_rows[0])
    source = stored_in(orders[1], rows, columns, precision, extra_rows[1])
    check(bound(rearrange(result, source)), seed)


@pytest.mark.parametrize("order", ORDERS)
def test_several_matrices(order: ElementOrder) -> None:
    source = operand(RowMajor(), (3, 32, 48))
    check(bound(rearrange(operand(order, (3, 32, 48)), source)))


@pytest.mark.parametrize("order", [AmpLeft(), AmpTransposedRight()])
@pytest.mark.parametrize("shape", [(48, 64), (64, 768), (16, 1152)])
def test_packing_takes_a_cycle_for_an_element_at_most(order: ElementOrder, shape: tuple[int, int]) -> None:
    """Kernels known to be good take one cycle for each element of AMP left, three of transposed right."""
    binding = bound(rearrange(operand(order, shape), operand(RowMajor(), shape)))
    assert binding.cycles <= shape[0] * shape[1] + 400


def test_there_is_one_kernel() -> None:
    symbols = {
        str(bound(rearrange(operand(order, (16, width)), operand(RowMajor(), (16, width)))).symbol)
        for order in ORDERS
        for width in (32, 64)
    }
    assert symbols == {"rearrange.panels"}


SMALL = operand(RowMajor(), (32, 32))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: rearrange(operand(AmpRight(), (32, 32)), SMALL),
            "result 0 is not in rows of whole 64 bits, gapless, in an order known here",
        ),
        (
            lambda: rearrange(operand(RowMajor(), (4, 6)), operand(RowMajor(), (4, 6))),
            "result 0 is not in rows of whole 64 bits, gapless, in an order known here",
        ),
        (
            lambda: rearrange(
                operand(AmpLeft(), (32, 32)), SMALL, Alias(result=Result(0), operand=Operand(0))
            ),
            "result 0 at operand 0 +0: elements that move cannot stay in one storage",
        ),
        (
            lambda: rearrange(operand(AmpLeft(), (32, 64), logical=(32, 32)), SMALL),
            "result 0 has columns to clear in more than one panel",
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
