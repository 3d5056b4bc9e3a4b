"""Rewrites of constructed programs: which are kept, and that none changes what is computed."""

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.estimate.mid import estimate
from compiler.kernels.pointwise.binding import Operation
from compiler.mid.rewrites.compose_copies import compose_copies
from compiler.mid.rewrites.donate_storage import donate_storage
from compiler.mid.rewrites.fuse_bias_gelu import fuse_bias_gelu
from compiler.mid.rewrites.group_reductions import group_reductions
from compiler.mid.rewrites.move_casts import move_casts
from compiler.mid.rewrites.pack_rows import pack_rows
from compiler.mid.rewrites.produce_f8 import produce_f8
from compiler.mid.rewrites.share_equal import share_equal
from compiler.mid.verify import verify
from compiler.mid.work import Cast, Elementwise
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import GROUP_SIZES, PACKING_ROWS, PREPARATIONS, TILE_MAPPINGS, Options, Recipe
from tests.mid.rewriting import check_rewritten, cycles_of_copy, refusals, works_of
from tests.planner.graphs import GRAPHS, assert_right

EXACT = {
    "compose": partial(compose_copies, price=cycles_of_copy),
    "casts before": partial(move_casts, before=True),
    "casts behind": partial(move_casts, before=False),
    "share": share_equal,
    "bias": fuse_bias_gelu,
    "F8": produce_f8,
    "pack": partial(pack_rows, rows=32, price=cycles_of_copy),
    "donate": donate_storage,
}


def built(name: str, tiles: int, options: Options | None = None) -> Candidate:
    """A candidate by the planner's own choices."""
    recipe = Recipe(options=Options() if options is None else options)
    return build_candidate(GRAPHS[name](), Setting(tile_count=tiles), recipe)


@st.composite
def all_options(draw: st.DrawFn) -> Options:
    """Options in any values."""
    return Options(
        cast_before_copies=draw(st.booleans()),
        reuse_cast_inputs=draw(st.booleans()),
        packing_rows=draw(st.sampled_from(PACKING_ROWS)),
        parallel_reductions=draw(st.sampled_from(GROUP_SIZES)),
        preparation=draw(st.sampled_from(PREPARATIONS)),
        tile_mapping=draw(st.sampled_from(TILE_MAPPINGS)),
    )


@settings(max_examples=20)
@given(
    name=st.sampled_from(sorted(GRAPHS)),
    tiles=st.integers(1, 40),
    options=all_options(),
    seed=st.integers(0, 1 << 32),
)
def test_candidates_are_right_with_any_options(name: str, tiles: int, options: Options, seed: int) -> None:
    """PR-04, PR-07, PR-09, PR-22: what is kept costs less, by the estimate of the program that is given."""
    candidate = built(name, tiles, options)
    assert verify(candidate.program) == ()
    assert refusals(candidate.program) == []
    assert candidate.recipe.options == options
    assert candidate.cost == estimate(candidate.program)
    for tried in candidate.tried:
        if tried.is_kept and tried.before is not None:
            assert tried.after is not None
            assert tried.after <= tried.before
    assert_right(GRAPHS[name](), candidate.program, seed)


@settings(max_examples=20)
@given(
    name=st.sampled_from(sorted(GRAPHS)),
    tiles=st.sampled_from([4, 16, 33]),
    behind=st.booleans(),
    rewrites=st.lists(st.sampled_from(sorted(EXACT)), min_size=1, max_size=3, unique=True),
    seed=st.integers(0, 1 << 32),
)
def test_rewrites_change_no_bit_of_planned_programs(
    name: str, tiles: int, behind: bool, rewrites: list[str], seed: int
) -> None:
    """ML-26, RP-06: kept or not."""
    made = built(name, tiles, Options(cast_before_copies=not behind)).program
    for rewrite in rewrites:
        made = check_rewritten(made, EXACT[rewrite], seed)
    grouped = group_reductions(made, 2)
    assert verify(grouped) == ()
    assert refusals(grouped) == []
    assert_right(GRAPHS[name](), grouped, seed)


def test_products_of_one_input_share_its_copies() -> None:
    """Three projections that read their operand alike bring it once."""
    candidate = built("projections", 16)
    assert ("equal work shared", True) in [(tried.name, tried.is_kept) for tried in candidate.tried]


def test_f8_models_have_no_cast_behind_gelu() -> None:
    """KB-11: the GELU between two F8 products writes the second one's operand; the input is still cast."""
    works = works_of(built("mlp in F8", 16).program)
    assert sum(isinstance(work, Cast) for work in works) == 1


def test_biases_and_gelu_are_one_kernel() -> None:
    """KB-14: where a sum, a bias and a GELU follow each other, one computation can do the last two."""
    fused = fuse_bias_gelu(built("mlp with biases", 16).program)
    assert Elementwise(operation=Operation.BIAS_GELU) in works_of(fused)
    assert Elementwise(operation=Operation.GELU) not in works_of(fused)


def test_a_rewrite_that_costs_more_is_not_kept() -> None:
    """KB-11: prices decide, and the candidate says so."""
    tried = {each.name: each for each in built("mlp with biases", 16).tried}
    bias = tried["bias added by GELU"]
    assert bias.before is not None
    assert bias.after is not None
    assert bias.is_kept is (bias.after < bias.before)


@pytest.mark.parametrize("name", ["mlp in F8", "casts"])
def test_donation_is_tried_when_asked_for(name: str) -> None:
    """PR-04: an option is a request; the estimate answers it."""
    assert "cast storage donated" not in [each.name for each in built(name, 4).tried]
    candidate = built(name, 4, Options(reuse_cast_inputs=True))
    assert verify(candidate.program) == ()
