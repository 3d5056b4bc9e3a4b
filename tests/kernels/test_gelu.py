"""GELU in the simulator."""

from collections.abc import Callable
from math import pi, sqrt

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.precision import F32
from compiler.geometry.relation import broadcast_relation
from compiler.kernels import registry
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from compiler.kernels.pointwise.binding import Operation, PointwiseParameters
from compiler.simulator.tile import Perturbation, Tile, TileOptions
from compiler.target.isa_decisions import our_decisions
from tests.kernels.machine import MANY, STANDARD, bound, refused, run
from tests.kernels.tensors import loaded, normal_halves, operand, stored

RESULT, SOURCE = STANDARD + 8, 0x70000 + 8
LARGEST_ERROR = 0.0021


def gelu(result: LocalOperand, source: LocalOperand, *aliases: Alias) -> Binding | Refusal:
    """GELU of one operand."""
    relations = (None, broadcast_relation(source.physical, result.physical))
    parameters = PointwiseParameters(operation=Operation.GELU)
    return registry.bind("pointwise", parameters, (result, source), relations, aliases)


def exact(values: npt.NDArray[np.float16]) -> npt.NDArray[np.float64]:
    """The tanh form in binary64."""
    x = values.astype(np.float64)
    return 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))


def check(binding: Binding, addresses: tuple[int, int], seed: int = 0) -> None:
    """Run a call on random numbers, hold it to the formulas of its results and its cycles."""
    result, source = (access.operand for access in binding.accesses)
    assert result is not None
    assert source is not None
    values = normal_halves(np.random.default_rng(seed), source.logical, 3.0)
    outcome = run(binding, addresses, {Operand(0): stored(source, values)}, seed=seed)
    found = loaded(result, outcome.memory, addresses[0]).astype(np.float64)
    assert np.abs(found - exact(values)).max() <= LARGEST_ERROR
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


@MANY
@given(count=st.integers(1, 200), seed=st.integers(0, 1 << 16), is_in_place=st.booleans())
def test_vectors_of_any_length(count: int, seed: int, is_in_place: bool) -> None:
    """Odd ends share a word with other bytes, which survive."""
    vector = operand(RowMajor(), (count,), origin=8)
    aliases = (Alias(result=Result(0), operand=Operand(0)),) if is_in_place else ()
    check(bound(gelu(vector, vector, *aliases)), (SOURCE if is_in_place else RESULT, SOURCE), seed)


@given(
    rows=st.integers(1, 5),
    panels=st.integers(1, 3),
    padding=st.tuples(st.integers(0, 1), st.integers(0, 15)),
    is_left=st.booleans(),
)
def test_padding_of_panels_stays_zero(
    rows: int, panels: int, padding: tuple[int, int], is_left: bool
) -> None:
    rows += padding[0]
    shape = (rows, 16 * panels) if is_left else (16 * panels, 16 * rows)
    order = AmpLeft() if is_left else AmpRight()
    whole = operand(order, shape, logical=(shape[0] - padding[0], shape[1] - padding[1]))
    check(bound(gelu(whole, whole)), (STANDARD, 0x70000))


@pytest.mark.parametrize("perturbation", list(Perturbation))
def test_every_finite_half(perturbation: Perturbation) -> None:
    """All 63,488 of them, overflow trapped, in place, with every accuracy of the tanh unit."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(np.float16)
    values = values[np.isfinite(values)]
    assert len(values) == 63488
    vector = operand(RowMajor(), (len(values),))
    tile = Tile(TileOptions(decisions=our_decisions(), track=True, perturbation=perturbation))
    binding = bound(gelu(vector, vector, Alias(result=Result(0), operand=Operand(0))))
    outcome = run(
        binding,
        (0x60000, 0x60000),
        {Operand(0): values.view(np.uint8)},
        tile=tile,
        check_numbers=perturbation is Perturbation.NONE,
    )
    found = outcome.memory.read(0x60000, 2 * len(values)).view(np.float16).astype(np.float64)
    assert np.isfinite(found).all()
    assert np.abs(found - exact(values)).max() <= LARGEST_ERROR


def test_nan_gives_nan() -> None:
    vector = operand(RowMajor(), (4,))
    values = np.array([np.nan, 1, -np.inf, np.inf], dtype=np.float16)
    outcome = run(
        bound(gelu(vector, vector)), (0x60000, 0x70000), {Operand(0): values.view(np.uint8)}, exceptions=0
    )
    found = loaded(vector, outcome.memory, 0x60000)
    assert np.isnan(found[[0, 2]]).all()
    assert found[3] == np.inf


@pytest.mark.parametrize(("count", "measured"), [(96, 792), (1408, 7260), (2208, 10956)])
def test_cycles_at_known_points(count: int, measured: int) -> None:
    """Cycles of kernels known to be good, measured on hardware, are not exceeded."""
    vector = operand(RowMajor(), (count,))
    binding = bound(gelu(vector, vector))
    check(binding, (0x60000, 0x70000))
    assert binding.cycles <= measured


VECTOR = operand(RowMajor(), (12,))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            lambda: gelu(VECTOR, operand(RowMajor(), (12,), origin=4)),
            "operand 0 begins at 4 modulo 32, not at a multiple of 8 bytes",
        ),
        (
            lambda: gelu(VECTOR, operand(RowMajor(), (12,), precision=F32())),
            "operand 0 is F32, which gelu does not take there",
        ),
        (
            lambda: gelu(operand(AmpRight(), (32, 32)), operand(RowMajor(), (32, 32))),
            "result 0 is neither in rows nor in panels of rows",
        ),
        (
            lambda: gelu(VECTOR, operand(RowMajor(), (12,), logical=(11,))),
            "operand 0 has fewer elements than the result needs",
        ),
        (
            lambda: gelu(VECTOR, VECTOR, Alias(result=Result(0), operand=Operand(0), displacement=8)),
            "result 0 at operand 0 +8 is not a storage that gelu may take",
        ),
        (
            lambda: gelu(operand(RowMajor(), (4, 8), region=((0, 4), (0, 4))), operand(RowMajor(), (4, 4))),
            "result 0 is not one gapless run of bytes",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Callable[[], Binding | Refusal], reason: str) -> None:
    """KB-07."""
    assert refused(answer()) == reason
