"""Products whose result is in blocks of 16 rows, the form of weights for another product."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import AmpLeft, AmpRight, BlockMajorTransposed
from compiler.geometry.precision import F8
from compiler.geometry.product import matrix_product
from compiler.kernels.contract import Binding, Operand, Refusal, Result, Scalar
from compiler.kernels.gemm.binding import GemmParameters, Mode, Rounding
from tests.kernels.machine import INTERLEAVED, MANY, STANDARD, bound, refused, run
from tests.kernels.products import (
    LEFT,
    NARROW_WEIGHTS,
    RESULT,
    WIDE_WEIGHTS,
    is_close,
    plain,
    product,
    storages,
)
from tests.kernels.tensors import loaded, normal_halves, operand, stored


def in_blocks(
    rows: int,
    k: int,
    columns: int,
    *,
    group: int = 64,
    groups: int = 1,
    mode: Mode = Mode.INITIALIZE,
    is_wide: bool = True,
    rounding: Rounding = Rounding.NEAREST,
    precision: F8 | None = None,
) -> Binding | Refusal:
    """A product into the first columns of the last group of a result whose groups are ``group`` wide."""
    whole = group * groups
    first = whole - group
    return product(
        operand(
            BlockMajorTransposed(row_block=group, column_block=16),
            (rows, whole),
            region=((0, rows), (first, first + columns)),
            is_interleaved=True,
            origin=8,
        ),
        operand(AmpLeft(), (rows, k), origin=8, precision=precision),
        operand(
            AmpRight(),
            (k, columns),
            is_interleaved=is_wide,
            origin=16 if is_wide else 8,
            precision=precision,
        ),
        GemmParameters(mode=mode, rounding=rounding),
        matrix_product((rows, k), (k, columns)),
    )


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@MANY
@given(
    blocks=st.integers(2, 8),
    k_groups=st.integers(1, 3),
    column_groups=st.integers(1, 3),
    groups=st.integers(1, 2),
    seed=st.integers(0, 1 << 16),
)
def test_products_equal_their_semantics_in_any_shape(
    mode: Mode, is_wide: bool, blocks: int, k_groups: int, column_groups: int, groups: int, seed: int
) -> None:
    """KB-01 .. KB-05: rows of workers begin and end anywhere in blocks."""
    rows, k, columns = 16 * blocks, 16 * k_groups, 16 * column_groups
    binding = bound(in_blocks(rows, k, columns, groups=groups, mode=mode, is_wide=is_wide))
    assert binding.symbol.choice("result") == "blocks"
    random = np.random.default_rng(seed)
    left = normal_halves(random, (rows, k), 0.5)
    right = normal_halves(random, (k, columns), 0.5)
    start = normal_halves(random, (rows, columns), 0.5)
    result, left_storage, right_storage = storages(binding)
    addresses = (RESULT - binding.results[0].start, LEFT, WIDE_WEIGHTS if is_wide else NARROW_WEIGHTS)
    contents = {
        Operand(0): stored(left_storage, left),
        Operand(1): stored(right_storage, right),
        Result(0): stored(result, start),
    }
    outcome = run(binding, addresses, contents, seed=seed)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    found = loaded(result, outcome.memory, addresses[0]).astype(np.float64)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    assert is_close(found, exact + start if mode is Mode.ACCUMULATE else exact)


POINTS = [
    # rows, K, columns, cycles of the reference kernel (measured on hardware), narrow and wide weights
    (48, 240, 64, 35_022, False),
    (48, 240, 64, 33_102, True),
    (96, 64, 64, 12_108, True),
    (128, 64, 64, 19_872, True),
]


@pytest.mark.parametrize(("rows", "k", "columns", "measured", "is_wide"), POINTS)
def test_cycles_at_known_points(rows: int, k: int, columns: int, measured: int, is_wide: bool) -> None:
    binding = bound(in_blocks(rows, k, columns, is_wide=is_wide))
    random = np.random.default_rng(9)
    outcome = run(
        binding,
        (RESULT, LEFT, WIDE_WEIGHTS if is_wide else NARROW_WEIGHTS),
        {
            Operand(0): normal_halves(random, (rows * k,)).view(np.uint8),
            Operand(1): normal_halves(random, (k * columns,), 0.2).view(np.uint8),
        },
    )
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert outcome.cycles <= measured


def test_the_result_is_the_weights_of_another_product() -> None:
    """Scores from keys made on the spot: queries times the transpose of a product."""
    random = np.random.default_rng(3)
    keys, k, channels, queries = 48, 32, 32, 5
    made = bound(in_blocks(keys, k, channels, group=channels))
    left, right = normal_halves(random, (keys, k), 0.3), normal_halves(random, (k, channels), 0.3)
    _, left_storage, right_storage = storages(made)
    outcome = run(
        made,
        (RESULT, LEFT, WIDE_WEIGHTS),
        {Operand(0): stored(left_storage, left), Operand(1): stored(right_storage, right)},
    )
    between = outcome.memory.read(RESULT, 2 * keys * channels)
    weights = operand(
        BlockMajorTransposed(row_block=channels, column_block=16), (keys, channels), is_interleaved=True
    )
    asked = operand(AmpLeft(), (queries, channels))
    axes = matrix_product((queries, channels), (keys, channels), transpose_right=True)
    scores = operand(AmpLeft(), (queries, keys), is_interleaved=True)
    then = bound(product(scores, asked, weights, GemmParameters(mode=Mode.INITIALIZE), axes))
    query = normal_halves(random, (queries, channels), 0.3)
    outcome = run(
        then, (INTERLEAVED, STANDARD, 0xC0000), {Operand(0): stored(asked, query), Operand(1): between}
    )
    exact = query.astype(np.float64) @ (left.astype(np.float64) @ right.astype(np.float64)).T
    assert np.allclose(loaded(scores, outcome.memory, INTERLEAVED), exact, rtol=0.01, atol=0.02)


def test_the_distance_of_blocks_is_an_argument() -> None:
    wide, narrow = bound(in_blocks(32, 16, 16, group=64)), bound(in_blocks(32, 16, 16, group=32))
    assert wide.symbol == narrow.symbol
    assert wide.arguments[-1] == Scalar(name="block_stride", value=2048)
    assert narrow.arguments[-1] == Scalar(name="block_stride", value=1024)


def test_other_results_need_no_blocks() -> None:
    """One block, or blocks that follow one another, are rows at one stride."""
    plain_symbol = plain(16, 16, 16).symbol
    assert bound(in_blocks(16, 16, 32)).symbol == plain_symbol
    assert bound(in_blocks(48, 16, 16, group=16)).symbol == plain_symbol


@pytest.mark.parametrize("is_wide", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
@MANY
@given(
    blocks=st.integers(2, 5),
    k_groups=st.integers(1, 2),
    column_groups=st.integers(1, 2),
    group=st.sampled_from((32, 48, 80)),
    seed=st.integers(0, 1 << 16),
)
def test_stochastic_rounding_goes_to_a_neighbour_and_leaves_the_tile_as_it_was(
    mode: Mode, is_wide: bool, blocks: int, k_groups: int, column_groups: int, group: int, seed: int
) -> None:
    """Groups of any multiple of 16 columns."""
    rows, k, columns = 16 * blocks, 16 * k_groups, 16 * column_groups
    binding = bound(
        in_blocks(rows, k, columns, group=group, mode=mode, is_wide=is_wide, rounding=Rounding.STOCHASTIC)
    )
    result, *factors = storages(binding)
    random = np.random.default_rng(seed)
    values = [normal_halves(random, shape, 0.5) for shape in ((rows, k), (k, columns), (rows, columns))]
    contents = {
        Operand(0): stored(factors[0], values[0]),
        Operand(1): stored(factors[1], values[1]),
        Result(0): stored(result, values[2]),
    }
    address = RESULT - binding.results[0].start
    places = (address, LEFT, WIDE_WEIGHTS if is_wide else NARROW_WEIGHTS)
    outcome = run(binding, places, contents, check_numbers=False)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    left, right, start = (each.astype(np.float64) for each in values)
    found = loaded(result, outcome.memory, address).astype(np.float64)
    assert is_close(found, left @ right + (start if mode is Mode.ACCUMULATE else 0))


def test_columns_of_two_groups_and_f8_are_refused() -> None:
    assert refused(in_blocks(32, 32, 32, precision=F8())) == (
        "result 0 is in blocks of 16 rows; those of F8 products are not"
    )
    across = product(
        operand(BlockMajorTransposed(row_block=32, column_block=16), (32, 96), is_interleaved=True),
        operand(AmpLeft(), (32, 16)),
        operand(AmpRight(), (16, 96)),
        GemmParameters(mode=Mode.INITIALIZE),
    )
    assert refused(across) == "result 0 is not stored in panels as the AMP unit reads it"
