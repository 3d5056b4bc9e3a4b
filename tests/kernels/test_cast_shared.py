"""Casts whose result is left in the storage of their operand, in the simulator (KB-15)."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, AmpTransposedRight, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.kernels.cast.linear import DISTANCES
from compiler.kernels.contract import Alias, Binding, Scalar, check_addresses
from tests.kernels.casts import cast, check, precision_of, random_values, shared
from tests.kernels.machine import MANY, bound, refused
from tests.kernels.tensors import operand

NARROWING: tuple[tuple[type[Precision], type[Precision]], ...] = ((F16, F8), (F32, F16), (F32, F8))
SOURCE = 0x68000
KIB = 1 << 10


def vectors(pair: tuple[type[Precision], type[Precision]], count: int, *aliases: Alias) -> Binding:
    """The cast of a vector."""
    source = operand(RowMajor(), (count,), precision=precision_of(pair[0], 0))
    result = operand(RowMajor(), (count,), precision=precision_of(pair[1], -3))
    return bound(cast(result, source, *aliases))


def checked(binding: Binding, seed: int = 0, source: int = SOURCE) -> None:
    """Run a cast whose operand is at an address, on random values."""
    operand_of = binding.operands[0].operand
    assert operand_of is not None
    values = random_values(np.random.default_rng(seed), operand_of)
    check(binding, values, seed, (source + binding.aliases[0].displacement, source))


@pytest.mark.parametrize("pair", NARROWING)
@MANY
@given(count=st.integers(1, 6000), seed=st.integers(0, 1 << 16))
def test_no_result_overtakes_what_is_still_to_be_read(
    pair: tuple[type[Precision], type[Precision]], count: int, seed: int
) -> None:
    """At the shortest distance: up to three chunks, the last of any size, an end inside a unit."""
    checked(vectors(pair, count, shared(-KIB)), seed)


@pytest.mark.parametrize("pair", NARROWING)
@pytest.mark.parametrize("distance", DISTANCES)
def test_every_distance(pair: tuple[type[Precision], type[Precision]], distance: int) -> None:
    """A chunk that is full and one element more; a distance longer than the result."""
    results = distance // pair[1].element_bytes
    for count in {results, results + 1, 500}:
        checked(vectors(pair, count, shared(-distance)))


@pytest.mark.parametrize("pair", NARROWING[:2])
@MANY
@given(count=st.integers(1, 400), seed=st.integers(0, 1 << 16))
def test_vectors_of_any_length_through_two_ports(
    pair: tuple[type[Precision], type[Precision]], count: int, seed: int
) -> None:
    source = operand(RowMajor(), (count,), precision=precision_of(pair[0], 0))
    result = operand(RowMajor(), (count,), precision=precision_of(pair[1], -3))
    binding = bound(cast(result, source, shared(-32 * KIB), is_separate=True))
    assert binding.symbol.choice("ports") == "two"
    checked(binding, seed, 0x70000)


@pytest.mark.parametrize(
    ("pair", "count", "chunks"),
    [
        (NARROWING[0], 32_768, 1),
        (NARROWING[0], 98_304, 2),
        (NARROWING[0], 98_305, 3),
        (NARROWING[0], 170_001, 3),
        (NARROWING[1], 60_001, 3),
    ],
)
def test_a_distance_of_an_element_lets_loads_and_stores_meet(
    pair: tuple[type[Precision], type[Precision]], count: int, chunks: int
) -> None:
    """32 KiB before the operand, the lowest address a multiple of it: two ports, all the way."""
    source = operand(RowMajor(), (count,), precision=precision_of(pair[0], 0))
    result = operand(RowMajor(), (count,), precision=precision_of(pair[1], -3))
    binding = bound(cast(result, source, shared(-32 * KIB), is_separate=True))
    assert binding.symbol.choice("ports") == "two"
    assert {access.alignment for access in binding.accesses} == {32 * KIB}
    assert not binding.separate
    values = random_values(np.random.default_rng(count), source)
    check(binding, values, addresses=(0x68000, 0x70000))
    apart = bound(cast(result, source, is_separate=True)).cycles
    assert apart < binding.cycles < apart + 40 + 180 * chunks
    odd = check_addresses(binding, (0x6C000, 0x74000))
    assert odd is not None
    assert "is not aligned to 32768 bytes" in odd


def test_shorter_distances_go_through_one_port() -> None:
    source = operand(RowMajor(), (5000,))
    result = operand(RowMajor(), (5000,), precision=F8())
    binding = bound(cast(result, source, shared(-4 * KIB), is_separate=True))
    assert binding.symbol.choice("ports") == "one"
    checked(binding)


@MANY
@given(
    rows=st.integers(1, 32),
    panels=st.integers(1, 12),
    distance=st.sampled_from(DISTANCES[:3]),
    rows_over=st.integers(0, 2),
    seed=st.integers(0, 1 << 16),
)
def test_panels_are_merged_in_chunks(
    rows: int, panels: int, distance: int, rows_over: int, seed: int
) -> None:
    """The last panel of codes may be half zeros."""
    physical = min(rows + rows_over, 32)
    logical = (rows, 16 * panels - 3)
    source = operand(AmpLeft(), (physical, 16 * panels), logical=logical)
    result = operand(
        AmpLeft(), (physical, -(-panels // 2) * 32), logical=logical, precision=F8(scale_exponent=-3)
    )
    binding = bound(cast(result, source, shared(-distance)))
    assert binding.symbol.choice("storage") == "shared"
    assume(binding.symbol.variant == "panels")
    checked(binding, seed)


def test_large_activations_and_keys_share_their_storage() -> None:
    """Up to 1,024 rows of a panel fit the distance of 32 KiB."""
    source = operand(AmpLeft(), (500, 144))
    result = operand(AmpLeft(), (500, 160), logical=(500, 144), precision=F8(scale_exponent=-3))
    checked(bound(cast(result, source, shared(-32 * KIB))))
    keys = operand(AmpTransposedRight(), (128, 64))
    codes = operand(AmpTransposedRight(), (128, 64), precision=F8(scale_exponent=-3))
    checked(bound(cast(codes, keys, shared(-KIB))))
    rows = operand(AmpLeft(), (1040, 32)), operand(AmpLeft(), (1040, 32), precision=F8())
    assert not bound(cast(rows[1], rows[0])).permitted


def test_a_region_of_larger_storage_is_replaced_where_it_is() -> None:
    """The displacement is between storages, the distance between the regions in them."""
    source = operand(RowMajor(), (9, 512), region=((2, 8), (0, 512)))
    result = operand(RowMajor(), (7, 512), region=((1, 7), (0, 512)), precision=F8(scale_exponent=-3))
    binding = bound(cast(result, source, shared(2 * 1024 - 512 - 2 * KIB)))
    assert binding.arguments[-1] == Scalar(name="first_units", value=2 * KIB // 8)
    checked(binding)


def test_what_is_permitted_is_listed() -> None:
    binding = vectors((F16, F8), 100)
    assert [alias.displacement for alias in binding.permitted] == [-KIB << power for power in range(6)]
    assert not vectors((F8, F16), 100).permitted
    source, result = operand(RowMajor(), (100,)), operand(RowMajor(), (100,), precision=F8())
    for displacement in (0, 1024, -1000, -65536):
        assert refused(cast(result, source, shared(displacement))) == (
            f"result 0 at operand 0 {displacement:+d} is not a storage that the cast may take"
        )


def test_distances_never_make_another_kernel() -> None:
    symbols = {
        vectors((F16, F8), count, shared(-distance)).symbol for count in (9, 900) for distance in DISTANCES
    }
    assert {str(symbol) for symbol in symbols} == {
        "cast.linear.source=f16.result=f8.ports=one.storage=shared"
    }
