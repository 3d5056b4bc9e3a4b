"""Element-wise sums in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F32
from compiler.geometry.relation import Broadcast, SelectedWindow, Span, broadcast_relation
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, PaddingState, Refusal, Result
from compiler.kernels.pointwise.binding import PointwiseParameters
from tests.kernels.machine import MANY, STANDARD, bound, refused, run
from tests.kernels.tensors import loaded, normal_halves, operand, stored

RESULT, LEFT, RIGHT = STANDARD + 8, 0x68000 + 8, 0x70000 + 8


def add(result: LocalOperand, left: LocalOperand, right: LocalOperand, *aliases: Alias) -> Binding | Refusal:
    """A sum by the NumPy rule."""
    relations = (
        None,
        broadcast_relation(left.physical, result.physical),
        broadcast_relation(right.physical, result.physical),
    )
    return registry.bind("pointwise", PointwiseParameters(), (result, left, right), relations, aliases)


def check(binding: Binding, addresses: tuple[int, int, int], seed: int = 0) -> None:
    """Run a sum on random numbers, hold it to NumPy and to its formula."""
    random = np.random.default_rng(seed)
    result, left, right = (access.operand for access in binding.accesses)
    assert result is not None
    assert left is not None
    assert right is not None
    left_values, right_values = normal_halves(random, left.logical), normal_halves(random, right.logical)
    contents = {Operand(0): stored(left, left_values), Operand(1): stored(right, right_values)}
    outcome = run(binding, addresses, contents, seed=seed)
    found = loaded(result, outcome.memory, addresses[0])
    assert np.array_equal(found.view(np.uint16), (left_values + right_values).view(np.uint16))
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.flops == found.size


@MANY
@given(count=st.integers(1, 140), seed=st.integers(0, 1 << 16), in_place=st.sampled_from([None, 0, 1]))
def test_equal_shapes_of_any_length(count: int, seed: int, in_place: int | None) -> None:
    """Odd ends share a word with other bytes, which survive."""
    vector = operand(RowMajor(), (count,), origin=8)
    addresses = [RESULT, LEFT, RIGHT]
    aliases: list[Alias] = []
    if in_place is not None:
        aliases.append(Alias(result=Result(0), operand=Operand(in_place)))
        addresses[0] = addresses[1 + in_place]
    binding = bound(add(vector, vector, vector, *aliases))
    check(binding, (addresses[0], addresses[1], addresses[2]), seed)


@pytest.mark.parametrize("unit", [4, 2, 1])
@MANY
@given(
    rows=st.integers(2, 30),
    units=st.integers(0, 17),
    is_left=st.booleans(),
    is_in_place=st.booleans(),
    seed=st.integers(0, 1 << 16),
)
def test_a_suffix_repeats_along_rows(
    rows: int, units: int, unit: int, is_left: bool, is_in_place: bool, seed: int
) -> None:
    """KB-12: the relation says which operand repeats; any width, on either side."""
    # Whole quads, whole pairs and odd widths have kernels of their own.
    width = 4 * units + unit
    whole = operand(RowMajor(), (rows, width), origin=8)
    bias = operand(RowMajor(), (width,), origin=8)
    addresses = [RESULT, LEFT, RIGHT]
    aliases: list[Alias] = []
    if is_in_place:
        aliases.append(Alias(result=Result(0), operand=Operand(int(is_left))))
        addresses[0] = addresses[1 + int(is_left)]
    pair = (bias, whole) if is_left else (whole, bias)
    binding = bound(add(whole, *pair, *aliases))
    check(binding, (addresses[0], addresses[1], addresses[2]), seed)


@MANY
@given(
    rows=st.integers(2, 20),
    panels=st.integers(1, 4),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 15)),
    seed=st.integers(0, 1 << 16),
)
def test_a_bias_repeats_along_the_rows_of_panels(
    rows: int, panels: int, padding: tuple[int, int], seed: int
) -> None:
    """Padding rows take the bias and stay finite; padding columns stay zero."""
    logical = (rows - padding[0], 16 * panels - padding[1])
    whole = operand(AmpLeft(), (rows, 16 * panels), logical=logical)
    bias = operand(AmpLeft(), (1, 16 * panels), logical=(1, logical[1]))
    binding = bound(add(whole, whole, bias))
    check(binding, (STANDARD, 0x68000, 0x70000), seed)
    after = {part.after for part in binding.results[0].padding}
    assert after == {
        state
        for state, is_there in (
            (PaddingState.FINITE, padding[0] > 0),
            (PaddingState.ZERO, padding[1] > 0),
        )
        if is_there
    }


def test_outer_axes_repeat_too() -> None:
    """Three matrices in weight order plus one of them: the repeated run is a whole matrix."""
    binding = bound(
        add(
            operand(AmpRight(), (3, 32, 32)),
            operand(AmpRight(), (3, 32, 32)),
            operand(AmpRight(), (1, 32, 32)),
        )
    )
    check(binding, (STANDARD, 0x68000, 0x70000))


def test_a_contiguous_slice_of_rows_is_an_operand() -> None:
    rows = operand(RowMajor(), (9, 24), region=((3, 7), (0, 24)))
    binding = bound(add(rows, rows, operand(RowMajor(), (4, 24))))
    assert binding.results[0].start == 3 * 48
    check(binding, (STANDARD, 0x68000, 0x70000))


def test_every_half_is_added() -> None:
    """All 65,536 halves at once, infinities and NaN among them, to the same in another sequence."""
    count = 1 << 16
    vector = operand(RowMajor(), (count,))
    binding = bound(add(vector, vector, vector, Alias(result=Result(0), operand=Operand(0))))
    left = np.arange(count, dtype=np.uint16)
    right = np.random.default_rng(0).permutation(left)
    contents = {Operand(0): left.view(np.uint8), Operand(1): right.view(np.uint8)}
    outcome = run(binding, (0x60000, 0x60000, 0xA0000), contents, exceptions=0)
    found = outcome.memory.read(0x60000, 2 * count).view(np.float16).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        exact = left.view(np.float16).astype(np.float64) + right.view(np.float16).astype(np.float64)
    finite = np.isfinite(exact)
    assert np.array_equal(np.isnan(found), np.isnan(exact))
    assert np.array_equal(found[np.isinf(exact)], exact[np.isinf(exact)])
    limited = np.clip(exact[finite], -65504, 65504).astype(np.float16)
    assert np.array_equal(found[finite], limited.astype(np.float64))


def test_overflow_is_an_exception_when_enabled() -> None:
    vector = operand(RowMajor(), (4,))
    large = np.full(4, 60000, dtype=np.float16).view(np.uint8)
    with pytest.raises(AssertionError, match="overflow"):
        run(
            bound(add(vector, vector, vector)),
            (0x60000, 0x68000, 0x70000),
            {Operand(0): large, Operand(1): large},
        )


POINTS = [(1152, 1368), (2152, 2124)]


@pytest.mark.parametrize(("count", "measured"), POINTS)
def test_cycles_at_known_points(count: int, measured: int) -> None:
    """Cycles of kernels known to be good, measured on hardware, are not exceeded."""
    vector = operand(RowMajor(), (count,))
    binding = bound(add(vector, vector, vector))
    check(binding, (0x60000, 0x68000, 0x70000))
    assert binding.cycles <= measured


@pytest.mark.parametrize("width", [1153, 1154])
def test_narrow_runs_are_no_slower_than_pairs_one_by_one(width: int) -> None:
    """54 cycles for twelve halves is what kernels known to be good take."""
    whole = operand(RowMajor(), (4, width))
    binding = bound(add(whole, whole, operand(RowMajor(), (width,))))
    check(binding, (0x60000, 0x68000, 0x70000))
    assert binding.cycles <= 450 + 54 * -(-4 * width // 12)


def test_extents_never_make_another_kernel() -> None:
    def symbol(rows: int, width: int) -> str:
        whole = operand(RowMajor(), (rows, width))
        return str(bound(add(whole, whole, operand(RowMajor(), (width,)))).symbol)

    assert {symbol(rows, width) for rows in (2, 9, 100) for width in (4, 8, 96)} == {
        "pointwise.add_rows.precision=f16"
    }
    assert {symbol(rows, width) for rows in (2, 9) for width in (3, 5)} == {
        "pointwise.add_narrow.precision=f16.pairs=split"
    }


VECTOR = operand(RowMajor(), (12,))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: add(VECTOR, VECTOR, operand(RowMajor(), (12,), origin=4)),
            "operand 1 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: add(VECTOR, operand(RowMajor(), (12,), precision=F32()), VECTOR),
            "operand 0 is F32; sums are of F16",
        ),
        (
            lambda: add(
                operand(RowMajor(), (4, 8), region=((0, 4), (0, 4))),
                operand(RowMajor(), (4, 4)),
                operand(RowMajor(), (4, 4)),
            ),
            "result 0 is not one gapless run of bytes",
        ),
        (
            lambda: add(
                operand(AmpLeft(), (4, 32)), operand(RowMajor(), (4, 32)), operand(AmpLeft(), (4, 32))
            ),
            "operand 0 does not repeat evenly along the result as it is stored",
        ),
        (
            lambda: add(
                operand(RowMajor(), (4, 6)), operand(RowMajor(), (4, 1)), operand(RowMajor(), (4, 6))
            ),
            (
                "operand 0 repeats runs of 1 elements 4 times; "
                "only one run, or runs of a multiple of 4, can repeat"
            ),
        ),
        (
            lambda: add(operand(RowMajor(), (4, 8)), operand(RowMajor(), (8,)), operand(RowMajor(), (1, 8))),
            "both operands repeat along the result",
        ),
        (
            lambda: add(VECTOR, VECTOR, operand(RowMajor(), (12,), logical=(11,))),
            "operand 1 has fewer elements than the result needs",
        ),
        (
            lambda: add(VECTOR, VECTOR, VECTOR, Alias(result=Result(0), operand=Operand(0), displacement=8)),
            "result 0 at operand 0 +8 is not one of the storages that the sum may take",
        ),
        (
            lambda: registry.bind(
                "pointwise",
                PointwiseParameters(),
                (VECTOR, VECTOR, VECTOR),
                (
                    None,
                    Broadcast(operand_rank=0, result_rank=1, single_axes=()),
                    SelectedWindow(result_rank=1, axes=(Span(start=0, stop=12),)),
                ),
            ),
            "operand 0 does not repeat evenly along the result as it is stored",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
