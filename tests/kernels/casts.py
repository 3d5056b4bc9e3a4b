"""Casts to ask for, what they should make, and runs of them."""

import numpy as np
import numpy.typing as npt
import pytest

from compiler.geometry.operand import LocalOperand
from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.geometry.relation import Identity
from compiler.kernels import registry
from compiler.kernels.cast.binding import CastParameters
from compiler.kernels.contract import Alias, Binding, Operand, Refusal, Result
from tests.kernels.machine import run
from tests.kernels.typed import dtype_of, loaded_values, stored_values

RESULT, SOURCE = 0x60000, 0x70000
"""Each in standard memory elements of its own, while both are short."""


def cast(
    result: LocalOperand, source: LocalOperand, *aliases: Alias, is_separate: bool = False
) -> Binding | Refusal:
    """The cast of one operand."""
    relations = (None, Identity(rank=len(result.backing)))
    parameters = CastParameters(is_separate=is_separate)
    return registry.bind("cast", parameters, (result, source), relations, aliases)


def shared(displacement: int) -> Alias:
    """The result in the storage of the operand."""
    return Alias(result=Result(0), operand=Operand(0), displacement=displacement)


def precision_of(kind: type[Precision], exponent: int) -> Precision:
    """A precision; only F143 has a scale exponent."""
    return F8(scale_exponent=exponent) if kind is F8 else kind()


def reference(
    values: npt.NDArray[np.generic], source: Precision, result: Precision
) -> npt.NDArray[np.generic]:
    """The cast by way of binary64, in which every value of the three precisions is exact."""
    exact = (
        decode_f143(values.astype(np.uint8), source.scale_exponent).astype(np.float64)
        if isinstance(source, F8)
        else values.astype(np.float64)
    )
    match source, result:
        case F32(), F8():
            # The one cast with two roundings: there is no conversion from words to codes.
            with np.errstate(over="ignore"):
                scaled = np.clip(np.ldexp(exact, -result.scale_exponent), -65504, 65504).astype(np.float16)
            return encode_f143(scaled.astype(np.float64))
        case _, F8():
            return encode_f143(exact, result.scale_exponent)
        case _, F16():
            with np.errstate(over="ignore"):
                return np.clip(exact, -65504, 65504).astype(np.float16)
        case _, F32():
            return exact.astype(np.float32)


def random_values(random: np.random.Generator, where: LocalOperand) -> npt.NDArray[np.generic]:
    """Numbers of very different sizes, or any codes."""
    if isinstance(where.precision, F8):
        return random.integers(0, 256, where.logical).astype(np.uint8)
    spread = np.exp2(random.integers(-20, 9, where.logical))
    return (random.standard_normal(where.logical) * spread).astype(dtype_of(where))


def check(
    binding: Binding,
    values: npt.NDArray[np.generic],
    seed: int = 0,
    addresses: tuple[int, int] | None = None,
) -> None:
    """Run a cast of these values [logical extents]; hold it to the reference and to its formula."""
    result, source = (access.operand for access in binding.accesses)
    assert result is not None
    assert source is not None
    places = addresses
    if places is None:
        places = RESULT, SOURCE
        for alias in binding.aliases:
            places = SOURCE + alias.displacement, SOURCE
    outcome = run(binding, places, {Operand(0): stored_values(source, values)}, seed=seed)
    found = loaded_values(result, outcome.memory, places[0])
    moved = values[tuple(slice(0, extent) for extent in result.logical)]
    wanted = reference(moved, source.precision, result.precision)
    assert np.array_equal(found, wanted, equal_nan=found.dtype != np.uint8)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.flops == found.size
