"""Casts between F16 and F143 where panels change, packing in the same kernel (ML-15), in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import (
    AmpLeft,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision, encode_f143
from compiler.kernels.contract import Binding, Operand, Refusal
from tests.kernels.casts import RESULT, cast, check, random_values, shared
from tests.kernels.machine import MANY, bound, refused, run
from tests.kernels.tensors import operand
from tests.kernels.typed import loaded_values, stored_values


def up(count: int, multiple: int) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


def checked(binding: Binding | Refusal, seed: int = 0, addresses: tuple[int, int] | None = None) -> Binding:
    """Run a cast on random values."""
    call = bound(binding)
    source = call.operands[0].operand
    assert source is not None
    check(call, random_values(np.random.default_rng(seed), source), seed, addresses)
    return call


def left(rows: int, columns: int, precision: Precision, physical_rows: int | None = None) -> LocalOperand:
    """A matrix in AMP left, its columns up to the next whole panel."""
    physical = (rows if physical_rows is None else physical_rows, up(columns, precision.micro))
    return operand(AmpLeft(), physical, logical=(rows, columns), precision=precision)


@pytest.mark.parametrize("is_packing", [True, False])
@pytest.mark.parametrize("is_separate", [False, True])
@MANY
@given(
    rows=st.integers(1, 40),
    columns=st.integers(1, 100),
    is_row_over=st.booleans(),
    exponent=st.integers(-12, 7),
    seed=st.integers(0, 1 << 16),
)
def test_two_panels_of_halves_are_one_of_codes(
    is_packing: bool,
    is_separate: bool,
    rows: int,
    columns: int,
    is_row_over: bool,
    exponent: int,
    seed: int,
) -> None:
    """Where the second of two panels is missing, its place becomes zero, or is not read."""
    halves = left(rows, columns, F16(), rows + is_row_over)
    codes = left(rows, columns, F8(scale_exponent=exponent), rows + is_row_over)
    result, source = (codes, halves) if is_packing else (halves, codes)
    checked(cast(result, source, is_separate=is_separate), seed)


@pytest.mark.parametrize("is_separate", [False, True])
@MANY
@given(
    rows=st.integers(1, 40),
    quads=st.integers(1, 26),
    padding=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    exponent=st.integers(-12, 12),
    seed=st.integers(0, 1 << 16),
)
def test_rows_of_halves_become_panels_of_codes(
    is_separate: bool, rows: int, quads: int, padding: tuple[int, int, int], exponent: int, seed: int
) -> None:
    """Columns are any multiple of 4; rows and columns that only the result has become zero.

    Rows that only the operand has are not read, nor are those that are no rows of the result.
    """
    columns = 4 * quads
    source = operand(RowMajor(), (rows + padding[0], columns), logical=(rows, columns - padding[1]), origin=8)
    result = operand(
        AmpLeft(),
        (rows + padding[2], up(columns, 32)),
        logical=(rows, columns - padding[1]),
        precision=F8(scale_exponent=exponent),
        origin=8,
    )
    checked(cast(result, source, is_separate=is_separate), seed, (RESULT + 8, 0x70000 + 8))


@pytest.mark.parametrize("is_separate", [False, True])
@MANY
@given(
    rows=st.integers(1, 40),
    quads=st.integers(1, 26),
    rows_over=st.integers(0, 3),
    exponent=st.integers(-12, 7),
    seed=st.integers(0, 1 << 16),
)
def test_panels_of_codes_become_rows_of_halves(
    is_separate: bool, rows: int, quads: int, rows_over: int, exponent: int, seed: int
) -> None:
    """What the codes have beyond the rows and columns of the halves is not read."""
    source = left(rows, 4 * quads, F8(scale_exponent=exponent), rows + rows_over)
    result = operand(RowMajor(), (rows, 4 * quads), origin=8)
    checked(cast(result, source, is_separate=is_separate), seed, (RESULT + 8, 0x70000))


@pytest.mark.parametrize("is_packing", [True, False])
@pytest.mark.parametrize("is_separate", [False, True])
@MANY
@given(
    order=st.sampled_from(
        (
            AmpTransposedLeft(),
            AmpRight(),
            AmpTransposedRight(),
            BlockMajor(row_block=32, column_block=16),
            BlockMajor(row_block=64, column_block=8),
            BlockMajorTransposed(row_block=32, column_block=16),
        )
    ),
    blocks=st.tuples(st.integers(1, 2), st.integers(1, 2)),
    batch=st.integers(1, 2),
    padding=st.sampled_from(((0, 0), (3, 5))),
    seed=st.integers(0, 1 << 16),
)
def test_every_order_keeps_its_elements(
    is_packing: bool,
    is_separate: bool,
    order: ElementOrder,
    blocks: tuple[int, int],
    batch: int,
    padding: tuple[int, int],
    seed: int,
) -> None:
    """Coefficients, keys, values in blocks, and what is stored transposed; several matrices of each."""
    unit = 64 if order == BlockMajor(row_block=64, column_block=8) else 32
    extents = (unit * blocks[0], 32 * blocks[1])
    physical = (batch, *extents)
    logical = (batch, extents[0] - padding[0], extents[1] - padding[1])
    halves = operand(order, physical, logical=logical)
    codes = operand(order, physical, logical=logical, precision=F8(scale_exponent=-3))
    result, source = (codes, halves) if is_packing else (halves, codes)
    binding = checked(cast(result, source, is_separate=is_separate), seed)
    assert binding.symbol.variant == "panels"


@pytest.mark.parametrize("is_separate", [False, True])
@pytest.mark.parametrize("is_from_rows", [False, True])
def test_every_half_becomes_a_code(is_from_rows: bool, is_separate: bool) -> None:
    """All 65,536, infinities and NaN among them, packed and merged, through one port and two."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(256, 256)
    source = operand(RowMajor() if is_from_rows else AmpLeft(), values.shape)
    result = operand(AmpLeft(), values.shape, precision=F8(scale_exponent=-1))
    binding = bound(cast(result, source, is_separate=is_separate))
    assert binding.symbol.choice("ports") == ("two" if is_separate else "one")
    contents = {Operand(0): stored_values(source, values)}
    outcome = run(binding, (RESULT, 0x90000), contents, exceptions=4)
    found = loaded_values(result, outcome.memory, RESULT)
    assert np.array_equal(found, encode_f143(values.astype(np.float64), -1))


@pytest.mark.parametrize("is_separate", [False, True])
@pytest.mark.parametrize("is_to_rows", [False, True])
def test_every_code_becomes_a_half(is_to_rows: bool, is_separate: bool) -> None:
    """In every place of a panel: each row begins with another code."""
    codes = (np.arange(64)[:, None] * 4 + np.arange(256)).astype(np.uint8)
    source = operand(AmpLeft(), codes.shape, precision=F8(scale_exponent=-7))
    result = operand(RowMajor() if is_to_rows else AmpLeft(), codes.shape)
    binding = bound(cast(result, source, is_separate=is_separate))
    assert binding.symbol.choice("ports") == ("two" if is_separate else "one")
    check(binding, codes)


def test_an_odd_panel_of_keys_is_the_last_of_all() -> None:
    """One set of 16 rows can end in half a panel; of several each would."""

    def to_codes(keys: int) -> Binding | Refusal:
        logical = (keys, 72)
        codes = operand(AmpTransposedRight(), (keys, 96), logical=logical, precision=F8())
        return cast(codes, operand(AmpTransposedRight(), (keys, 80), logical=logical))

    checked(to_codes(16))
    assert refused(to_codes(32)) == SEQUENCE


def test_rows_can_be_a_part_of_longer_rows() -> None:
    """What lies between them is not read: it is NaN. Nor is it written."""
    source = operand(RowMajor(), (9, 120), region=((1, 8), (36, 108)))
    result = operand(AmpLeft(), (7, 96), logical=(7, 72), precision=F8(scale_exponent=-2))
    for is_separate in (False, True):
        binding = checked(cast(result, source, is_separate=is_separate), 0, (RESULT, 0x70000))
        assert binding.operands[0].start == 2 * (120 + 36)
        assert binding.operands[0].reads.byte_count == 7 * 72 * 2
        back = checked(cast(source, result, is_separate=is_separate), 0, (RESULT, 0x70000))
        assert back.results[0].writes.byte_count == 7 * 72 * 2


def test_several_matrices_of_rows() -> None:
    source = operand(RowMajor(), (3, 5, 40))
    checked(cast(operand(AmpLeft(), (3, 5, 64), logical=(3, 5, 40), precision=F8()), source))


def test_a_row_too_long_for_two_ports_goes_through_one() -> None:
    """A stride of a packed address has ten bits and a sign: rows of 4 KiB are the longest."""
    for columns, ports in ((2048, "two"), (2080, "one")):
        source = operand(RowMajor(), (12, columns))
        result = operand(AmpLeft(), (12, columns), precision=F8())
        assert bound(cast(result, source, is_separate=True)).symbol.choice("ports") == ports


@pytest.mark.parametrize("is_packing", [True, False])
@pytest.mark.parametrize("shape", [(6, 64), (64, 64), (81, 768), (182, 288)])
def test_cycles_of_kernels_known_to_be_good_are_not_exceeded(
    shape: tuple[int, int], is_packing: bool
) -> None:
    """Their formula for placement unknown: 12 bundles for each row of a panel of codes.

    Two ports take two thirds of that.
    """
    rows, columns = shape
    panels = up(columns, 32) // 32
    known = 330 + panels * (120 + 72 * up(rows, 6) // 6)
    if rows <= 32 and panels >= 6:
        known = 330 + up(panels, 6) // 6 * (120 + 72 * rows)
    halves, codes = left(rows, columns, F16()), left(rows, columns, F8())
    result, source = (codes, halves) if is_packing else (halves, codes)
    one, two = (bound(cast(result, source, is_separate=is_separate)) for is_separate in (False, True))
    assert one.cycles <= known
    assert two.cycles <= one.cycles
    if rows > 64:
        assert two.cycles < 0.8 * one.cycles


def test_extents_strides_and_scales_never_make_another_kernel() -> None:
    symbols = {
        str(bound(cast(result, source)).symbol)
        for result, source in (
            (left(5, 40, F8(scale_exponent=3)), left(5, 40, F16())),
            (left(70, 72, F8()), operand(RowMajor(), (70, 72))),
            (left(8, 64, F8()), operand(RowMajor(), (9, 128), region=((0, 8), (64, 128)))),
        )
    }
    assert symbols == {"cast.panels.source=f16.result=f8.ports=one"}


SEQUENCE = "operand 0 does not have its elements in the sequence of the result's"
GAPS = "operand 0 is not one gapless run of bytes"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (lambda: cast(left(4, 30, F8()), operand(RowMajor(), (4, 30))), SEQUENCE),
        (lambda: cast(left(4, 64, F8()), operand(RowMajor(), (4, 66), region=((0, 4), (0, 64)))), GAPS),
        (lambda: cast(left(4, 40, F8()), left(5, 40, F16())), SEQUENCE),
        (lambda: cast(left(4, 40, F16()), left(4, 40, F32())), SEQUENCE),
        (lambda: cast(operand(AmpTransposedLeft(), (32, 32), precision=F8()), left(32, 32, F16())), SEQUENCE),
        (
            lambda: cast(operand(RowMajor(), (6, 32)), left(4, 32, F8())),
            "operand 0 has fewer elements than the result needs",
        ),
        (
            lambda: cast(operand(RowMajor(), (6, 32), logical=(4, 32)), left(4, 32, F8())),
            "operand 0 has fewer rows or columns, padding included, than the result",
        ),
        (
            lambda: cast(left(4, 32, F8()), operand(RowMajor(), (4, 36), region=((0, 4), (2, 34)), origin=4)),
            "operand 0 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: cast(left(4, 40, F16()), left(4, 40, F8()), shared(0)),
            "result 0 at operand 0 +0 is not a storage that the cast may take",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
