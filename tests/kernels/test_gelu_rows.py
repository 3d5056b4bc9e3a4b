"""GELU with a bias, and GELU that makes F143 or panels, in the simulator."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F8, F16, decode_f143, encode_f143
from compiler.geometry.relation import Identity, broadcast_relation
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, Reference, Refusal, Result
from compiler.kernels.pointwise.binding import Operation, PointwiseParameters
from tests.kernels.machine import MANY, Bytes, bound, refused, run
from tests.kernels.tensors import normal_halves, operand, stored
from tests.kernels.test_gelu import LARGEST_ERROR, exact
from tests.kernels.typed import loaded_values, stored_values

ADDRESSES = (0x60000, 0x70000, 0x80000)


def call(
    result: LocalOperand, source: LocalOperand, bias: LocalOperand | None, *aliases: Alias
) -> Binding | Refusal:
    """GELU of an operand, or of its sum with a row."""
    operation = Operation.GELU if bias is None else Operation.BIAS_GELU
    identity = Identity(rank=len(source.backing))
    parameters = PointwiseParameters(operation=operation)
    if bias is None:
        return registry.bind("pointwise", parameters, (result, source), (None, identity), aliases)
    row = broadcast_relation(bias.physical, (*source.physical[:-1], bias.physical[-1]))
    return registry.bind("pointwise", parameters, (result, source, bias), (None, identity, row), aliases)


def check(binding: Binding, seed: int = 0, exponent: int = 0) -> None:
    """Run a call on random numbers, hold it to the formulas of its results and its cycles.

    Args:
        binding: the call.
        seed: of the numbers.
        exponent: scale exponent of an F143 result.
    """
    random = np.random.default_rng(seed)
    result, source = (access.operand for access in binding.accesses[:2])
    assert result is not None
    assert source is not None
    values = normal_halves(random, source.logical, 3.0)
    contents: dict[Reference, Bytes] = {Operand(0): stored(source, values)}
    total = values
    if len(binding.operands) == 2:
        row = binding.operands[1].operand
        assert row is not None
        bias = normal_halves(random, row.logical)
        contents[Operand(1)] = stored(row, bias)
        total = values + bias
    addresses = list(ADDRESSES[: len(binding.accesses)])
    if binding.aliases:
        addresses[0] = addresses[1]
    outcome = run(binding, addresses, contents, seed=seed)
    found = loaded_values(result, outcome.memory, addresses[0])
    wanted = exact(total)
    if found.dtype == np.uint8:
        assert _codes_between(found.view(np.uint8), wanted, exponent)
    else:
        assert np.abs(found.astype(np.float64) - wanted).max() <= LARGEST_ERROR
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


def _codes_between(codes: npt.NDArray[np.uint8], wanted: npt.NDArray[np.float64], exponent: int) -> bool:
    """Whether codes lie between those of the wanted numbers moved by the error of GELU."""
    found = decode_f143(codes, exponent)
    low = decode_f143(encode_f143(wanted - LARGEST_ERROR, exponent), exponent)
    high = decode_f143(encode_f143(wanted + LARGEST_ERROR, exponent), exponent)
    return bool(((low <= found) & (found <= high)).all())


@MANY
@given(
    rows=st.integers(1, 12),
    width=st.integers(1, 40).filter(lambda width: width % 4 > 0),
    is_in_place=st.booleans(),
    seed=st.integers(0, 1 << 16),
)
def test_bias_of_any_width(rows: int, width: int, is_in_place: bool, seed: int) -> None:
    whole = operand(RowMajor(), (rows, width))
    aliases = (Alias(result=Result(0), operand=Operand(0)),) if is_in_place else ()
    check(bound(call(whole, whole, operand(RowMajor(), (width,)), *aliases)), seed)


@pytest.mark.parametrize("is_f8", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
@MANY
@given(
    rows=st.integers(1, 9),
    quads=st.integers(1, 14),
    to_panels=st.booleans(),
    from_panels=st.booleans(),
    is_row_over=st.booleans(),
    exponent=st.integers(-8, 3),
    seed=st.integers(0, 1 << 16),
)
def test_rows_and_panels_of_both_precisions(
    rows: int,
    quads: int,
    to_panels: bool,
    from_panels: bool,
    is_f8: bool,
    has_bias: bool,
    is_row_over: bool,
    exponent: int,
    seed: int,
) -> None:
    """Columns that a panel has and the operand has not become zero; padding of the operand stays zero."""
    # Without bias what stays as it is stored needs no rows.
    to_panels = to_panels if is_f8 or has_bias else not from_panels
    width = 4 * quads
    physical_rows = rows + is_row_over
    precision = F8(scale_exponent=exponent) if is_f8 else F16()
    stored_width = -(-width // 16) * 16 if from_panels else width
    panel = precision.micro
    made_width = -(-stored_width // panel) * panel if to_panels else stored_width
    source = operand(
        AmpLeft() if from_panels else RowMajor(), (physical_rows, stored_width), logical=(rows, width)
    )
    result = operand(
        AmpLeft() if to_panels else RowMajor(),
        (physical_rows, made_width),
        logical=(rows, width),
        precision=precision,
    )
    bias = operand(RowMajor(), (stored_width,), logical=(width,)) if has_bias else None
    binding = bound(call(result, source, bias))
    assume(binding.symbol.variant == "gelu_rows")
    check(binding, seed, exponent)


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_f8", [False, True])
@pytest.mark.parametrize("to_panels", [False, True])
def test_every_finite_half(to_panels: bool, is_f8: bool, has_bias: bool) -> None:
    """All 63,488 of them, overflow trapped; a bias of zero."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)].reshape(248, 256)
    source = operand(RowMajor(), values.shape)
    order = AmpLeft() if to_panels else RowMajor()
    result = operand(order, values.shape, precision=F8(scale_exponent=-3) if is_f8 else F16())
    bias = operand(RowMajor(), (256,)) if has_bias else None
    contents: dict[Reference, Bytes] = {Operand(0): stored_values(source, values)}
    if has_bias:
        contents[Operand(1)] = np.zeros(512, dtype=np.uint8)
    binding = bound(call(result, source, bias))
    addresses = (0x60000, 0x90000, 0xC0000)[: len(binding.accesses)]
    outcome = run(binding, addresses, contents)
    found = loaded_values(result, outcome.memory, addresses[0])
    if is_f8:
        assert _codes_between(found.view(np.uint8), exact(values), -3)
    else:
        assert np.abs(found.astype(np.float64) - exact(values)).max() <= LARGEST_ERROR


def test_every_finite_half_in_rows_of_any_width() -> None:
    """The kernel for rows that are no whole quads, 2 elements wide."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)].reshape(-1, 2)
    whole = operand(RowMajor(), values.shape)
    binding = bound(call(whole, whole, operand(RowMajor(), (2,))))
    contents = {Operand(0): values.reshape(-1).view(np.uint8), Operand(1): np.zeros(4, dtype=np.uint8)}
    outcome = run(binding, (0x60000, 0x90000, 0xC0000), contents)
    found = outcome.memory.read(0x60000, 2 * values.size).view(np.float16).reshape(values.shape)
    assert np.abs(found.astype(np.float64) - exact(values)).max() <= LARGEST_ERROR


@pytest.mark.parametrize(
    ("rows", "width", "measured"), [(1, 1408, 5760), (1, 2152, 8550), (3, 2152, 25206), (1, 94, 1458)]
)
def test_cycles_at_known_points(rows: int, width: int, measured: int) -> None:
    """Cycles of kernels known to be good, measured on hardware, are not exceeded."""
    whole = operand(RowMajor(), (rows, width))
    binding = bound(call(whole, whole, operand(RowMajor(), (width,))))
    check(binding)
    assert binding.cycles <= measured


def test_extents_and_scales_never_make_another_kernel() -> None:
    def symbol(rows: int, width: int, exponent: int) -> str:
        made = operand(RowMajor(), (rows, width), precision=F8(scale_exponent=exponent))
        return str(bound(call(made, operand(RowMajor(), (rows, width)), None)).symbol)

    assert len({symbol(*shape) for shape in ((2, 8, 0), (9, 64, -3), (100, 4, 5))}) == 1


WIDE = operand(RowMajor(), (4, 8))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: call(WIDE, WIDE, operand(RowMajor(), (4, 8))),
            "operand 1 is not one row of the result",
        ),
        (
            lambda: call(operand(AmpRight(), (32, 32)), operand(RowMajor(), (32, 32)), None),
            "result 0 is neither in rows nor in panels of rows",
        ),
        (
            lambda: call(operand(RowMajor(), (4, 6), precision=F8()), operand(RowMajor(), (4, 6)), None),
            "rows of 6 elements are not a multiple of 4",
        ),
        (
            lambda: call(operand(RowMajor(), (4, 8), precision=F8(scale_exponent=-32)), WIDE, None),
            "result 0 has scale exponent -32, whose inverse does not fit six bits",
        ),
        (
            lambda: call(
                operand(RowMajor(), (4, 8), precision=F8()),
                WIDE,
                None,
                Alias(result=Result(0), operand=Operand(0)),
            ),
            "result 0 at operand 0 +0 is not a storage that gelu may take",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
