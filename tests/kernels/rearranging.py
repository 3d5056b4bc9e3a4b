"""Changes of element order in the simulator: asking for one, and holding the result to the elements."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
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
    axis_multiples,
)
from compiler.geometry.precision import F16, Precision
from compiler.geometry.relation import Identity
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, Refusal
from compiler.kernels.rearrange.binding import RearrangeParameters
from tests.kernels.machine import run
from tests.kernels.tensors import operand
from tests.kernels.typed import dtype_of, loaded_values, stored_values

RESULT, SOURCE = 0x60008, 0x70018
"""Multiples of 8 and of nothing more."""
RESULT_ORIGIN, SOURCE_ORIGIN = RESULT % 32, SOURCE % 32

BLOCKS = tuple((rows, columns) for rows in (16, 32, 48) for columns in (8, 16))
ALONG_COLUMNS: tuple[ElementOrder, ...] = (
    AmpLeft(),
    AmpTransposedRight(),
    *(BlockMajorTransposed(row_block=rows, column_block=columns) for rows, columns in BLOCKS),
)
"""Panel rows hold neighbours of a row."""
ALONG_ROWS: tuple[ElementOrder, ...] = (
    AmpTransposedLeft(),
    AmpRight(),
    *(BlockMajor(row_block=rows, column_block=columns) for rows, columns in BLOCKS),
)
"""Panel rows hold neighbours of a column."""
DRAINED: tuple[ElementOrder, ...] = (AmpOutput(), AmpTransposedOutput())


def rearrange(result: LocalOperand, source: LocalOperand, *aliases: Alias) -> Binding | Refusal:
    """The call from ``source`` to ``result``."""
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


def held(
    order: ElementOrder,
    logical: Sequence[int],
    *,
    extra: tuple[int, int] = (0, 0),
    precision: Precision | None = None,
    is_result: bool = False,
) -> LocalOperand:
    """An operand with the padding that its order needs, behind so many further rows and columns."""
    precision = F16() if precision is None else precision
    multiples = axis_multiples(order, precision, len(logical))
    extents = (*logical[:-2], logical[-2] + extra[0], logical[-1] + extra[1])
    physical = [
        -(-extent // multiple) * multiple for extent, multiple in zip(extents, multiples, strict=True)
    ]
    return operand(
        order,
        physical,
        logical=logical,
        precision=precision,
        origin=RESULT_ORIGIN if is_result else SOURCE_ORIGIN,
    )


def call(
    result_order: ElementOrder,
    source_order: ElementOrder,
    logical: Sequence[int],
    *,
    result_extra: tuple[int, int] = (0, 0),
    source_extra: tuple[int, int] = (0, 0),
    precision: Precision | None = None,
) -> Binding | Refusal:
    """The call between whole tensors."""
    return rearrange(
        held(result_order, logical, extra=result_extra, precision=precision, is_result=True),
        held(source_order, logical, extra=source_extra, precision=precision),
    )


extents = st.one_of(st.integers(1, 20), st.integers(1, 50))
"""Rows and columns: often small, at times several blocks."""

few_matrices = st.sampled_from(((), (), (), (1,), (2,), (3,)))
"""Extents of the axes before rows and columns."""


def orders_with_rows(order: ElementOrder, *, is_packing: bool) -> tuple[ElementOrder, ElementOrder]:
    """Result and source: this order, and row-major."""
    return (order, RowMajor()) if is_packing else (RowMajor(), order)
