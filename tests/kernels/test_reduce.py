"""Sums of partials in the simulator."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F32
from compiler.geometry.relation import Follow, Identity, Relation, SelectedWindow, Span
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from compiler.kernels.reduce.binding import ReduceParameters, many_cycles
from compiler.kernels.timing import call_cycles, shares
from tests.kernels.machine import MANY, STANDARD, bound, refused, run
from tests.kernels.tensors import Halves, loaded, normal_halves, operand, stored

RESULT, SEED, STACK = STANDARD + 8, 0x68000 + 8, 0x80000 + 8
SEED_ALIAS = Alias(result=Result(0), operand=Operand(0))


def total(
    result: LocalOperand,
    stack: LocalOperand,
    partials: int,
    relation: Relation | None = None,
    *aliases: Alias,
) -> Binding | Refusal:
    """A sum of a seed stored like the result, and a stack."""
    relations = (None, Identity(rank=len(result.backing)), relation)
    return registry.bind(
        "reduce", ReduceParameters(partials=partials), (result, result, stack), relations, aliases
    )


def left_fold(seed: Halves, partials: list[Halves]) -> Halves:
    """One F16 rounding after each partial."""
    for partial in partials:
        seed = (seed.astype(np.float32) + partial.astype(np.float32)).astype(np.float16)
    return seed


@MANY
@given(
    quads=st.integers(1, 60),
    partials=st.integers(1, 9),
    is_in_place=st.booleans(),
    seed=st.integers(0, 1 << 16),
)
def test_partials_are_added_in_sequence(quads: int, partials: int, is_in_place: bool, seed: int) -> None:
    """RD-08, RD-09: the left fold, bit for bit, in and out of place."""
    vector = operand(RowMajor(), (4 * quads,), origin=8)
    stack = operand(RowMajor(), (partials, 4 * quads), origin=8)
    aliases = (SEED_ALIAS,) if is_in_place else ()
    binding = bound(total(vector, stack, partials, None, *aliases))
    random = np.random.default_rng(seed)
    first, rest = normal_halves(random, (4 * quads,)), normal_halves(random, (partials, 4 * quads))
    contents = {Operand(0): stored(vector, first), Operand(1): stored(stack, rest)}
    address = SEED if is_in_place else RESULT
    outcome = run(binding, (address, SEED, STACK), contents, seed=seed)
    found = loaded(vector, outcome.memory, address)
    assert np.array_equal(found.view(np.uint16), left_fold(first, list(rest)).view(np.uint16))
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.flops == partials * 4 * quads


def test_panels_are_stacked_as_rows_of_storage() -> None:
    """AMP panels cannot be stacked by an order; padding of each partial is where the result's is."""
    result = operand(AmpLeft(), (5, 32), logical=(4, 30))
    stack = operand(RowMajor(), (3, 160))
    binding = bound(total(result, stack, 3))
    random = np.random.default_rng(1)
    values = [normal_halves(random, (4, 30)) for _ in range(4)]
    contents = {
        Operand(0): stored(result, values[0]),
        Operand(1): np.concatenate([stored(result, partial) for partial in values[1:]]),
    }
    outcome = run(binding, (RESULT - 8, SEED - 8, STACK - 8), contents)
    found = loaded(result, outcome.memory, RESULT - 8)
    assert np.array_equal(found.view(np.uint16), left_fold(values[0], values[1:]).view(np.uint16))


def test_a_leading_axis_is_a_stack_where_the_order_packs_matrices() -> None:
    relation = SelectedWindow(result_rank=2, axes=(Span(start=0, stop=2), Follow(axis=0), Follow(axis=1)))
    binding = bound(total(operand(AmpRight(), (16, 32)), operand(AmpRight(), (2, 16, 32)), 2, relation))
    random = np.random.default_rng(2)
    contents = {
        Operand(0): normal_halves(random, (512,)).view(np.uint8),
        Operand(1): normal_halves(random, (1024,)).view(np.uint8),
    }
    run(binding, (RESULT - 8, SEED - 8, STACK - 8), contents)


POINTS = [(8, 2, 360), (56, 2, 438), (1472, 4, 3444), (1472, 2, 2700), (2208, 4, 4974), (576, 15, 3090)]


@pytest.mark.parametrize(("count", "contributions", "measured"), POINTS)
def test_cycles_at_known_points(count: int, contributions: int, measured: int) -> None:
    """Cycles of kernels known to be good, measured on hardware, are not exceeded."""
    partials = contributions - 1
    binding = bound(total(operand(RowMajor(), (count,)), operand(RowMajor(), (partials, count)), partials))
    random = np.random.default_rng(3)
    contents = {
        Operand(0): normal_halves(random, (count,)).view(np.uint8),
        Operand(1): normal_halves(random, (partials * count,)).view(np.uint8),
    }
    outcome = run(binding, (RESULT - 8, SEED - 8, STACK - 8), contents)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert outcome.cycles <= measured


@given(
    counts=st.lists(st.tuples(st.integers(1, 3000), st.integers(1, 60)), min_size=1, max_size=40),
)
def test_many_sums_take_what_each_takes(counts: list[tuple[int, int]]) -> None:
    """All six workers of each call, one by one: eight halves at a time in turn, and the rest behind them."""
    expected: list[int] = []
    for count, partials in counts:
        issues: list[int] = []
        for worker, share in enumerate(shares(count // 8)):
            issues.append(18 + (2 + share * (7 + 2 * partials) if share else 0))
            if worker == count // 8 % 6:
                issues[-1] += 2 + (5 + partials if count % 8 else 0)
        expected.append(call_cycles(10, issues))
    columns = np.array(counts, dtype=np.int64).T
    assert many_cycles(columns[0], columns[1]).tolist() == expected


def test_counts_never_make_another_kernel() -> None:
    symbols = {
        str(bound(total(operand(RowMajor(), (n,)), operand(RowMajor(), (p, n)), p)).symbol)
        for n in (4, 8, 100)
        for p in (1, 5)
    }
    assert symbols == {"reduce.sum.precision=f16"}


VECTOR = operand(RowMajor(), (16,))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: total(VECTOR, operand(RowMajor(), (2, 16)), 0),
            "0 partials in a stack are not 1 .. 4095",
        ),
        (
            lambda: total(VECTOR, operand(RowMajor(), (2, 16)), 3),
            "operand 1 is not a stack of 3 partials stored like the result",
        ),
        (
            lambda: total(
                operand(AmpLeft(), (4, 16)),
                operand(AmpLeft(), (2, 4, 32), region=((0, 2), (0, 4), (0, 32))),
                2,
                SelectedWindow(result_rank=2, axes=(Span(start=0, stop=2), Follow(axis=0), Follow(axis=1))),
            ),
            "operand 1 is not a stack of 2 partials stored like the result",
        ),
        (
            lambda: total(operand(RowMajor(), (18,)), operand(RowMajor(), (2, 18)), 2),
            "partials of 18 elements are no multiple of 4",
        ),
        (
            lambda: total(operand(RowMajor(), (16,), precision=F32()), operand(RowMajor(), (2, 16)), 2),
            "result 0 is F32; partials are F16",
        ),
        (
            lambda: total(VECTOR, operand(RowMajor(), (2, 16), origin=2), 2),
            "operand 1 begins at 2 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: total(
                VECTOR,
                operand(RowMajor(), (2, 16)),
                2,
                None,
                Alias(result=Result(0), operand=Operand(1)),
            ),
            "result 0 at operand 1 +0 is not one of the storages that the sum may take",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07, RD-09: restrictions of the kernel are stated where it is bound."""
    assert refused(answer()) == reason
