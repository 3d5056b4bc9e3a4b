"""Recipes: kept as text, strict, of one version, and refused where they do not suit the graph."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidInput, Unsupported
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from compiler.planner.recipe import (
    GROUP_SIZES,
    PACKING_ROWS,
    PREPARATIONS,
    TILE_MAPPINGS,
    Boundary,
    Cut,
    InputHome,
    Options,
    Recipe,
    StoredOnce,
    recipe_of_json,
)
from tests.planner.graphs import GRAPHS
from tests.planner.products import choices, problems

SETTING = Setting(tile_count=16)
BOUNDARIES: tuple[Boundary, ...] = ("as made", "other operand", "first product", "rows")
HOMES: tuple[InputHome, ...] = (
    "first reader",
    StoredOnce(shape=(3, 4), runs=2),
    StoredOnce(shape=(3, 4), order="weights", cuts=(Cut(axis=1, parts=2, block=16),)),
)
STATIONARY = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """Any recipe."""
    names = draw(st.lists(st.text(min_size=1, max_size=4), max_size=3, unique=True))
    return Recipe(
        gemms={name: draw(choices(draw(problems()))) for name in names},
        options=Options(
            cast_before_copies=draw(st.booleans()),
            reuse_cast_inputs=draw(st.booleans()),
            packing_rows=draw(st.sampled_from(PACKING_ROWS)),
            parallel_reductions=draw(st.sampled_from(GROUP_SIZES)),
            preparation=draw(st.sampled_from(PREPARATIONS)),
            tile_mapping=draw(st.sampled_from(TILE_MAPPINGS)),
        ),
        boundaries={name: draw(st.sampled_from(BOUNDARIES)) for name in names},
        inputs={name: draw(st.sampled_from(HOMES)) for name in names},
    )


@given(recipe=recipes())
def test_recipes_are_what_was_kept(recipe: Recipe) -> None:
    """PR-01, PR-11: the same recipe, and the same text however its products are listed."""
    text = recipe.to_json()
    assert recipe_of_json(text, "kept") == recipe
    turned = Recipe(
        gemms=dict(reversed(recipe.gemms.items())),
        boundaries=dict(reversed(recipe.boundaries.items())),
        inputs=dict(reversed(recipe.inputs.items())),
        options=recipe.options,
    )
    assert turned.to_json() == text


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"version": 1}, "version"),
        ({"version": "2"}, "version"),
        ({"edges": []}, "edges"),
        ({"gemms": {"up": {"algorithm": "output stationary", "rows": 3}}}, "gemms.up.rows"),
        ({"gemms": {"up": {"algorithm": "guessed"}}}, "gemms.up.algorithm"),
        ({"gemms": {"up": {"algorithm": "output stationary", "inner_parts": 2}}}, "gemms.up"),
        ({"options": {"packing_rows": 33}}, "options.packing_rows"),
        ({"options": {"parallel_reductions": 1}}, "options.parallel_reductions"),
        ({"options": {"packing_rows": False}}, "options.packing_rows"),
        ({"options": {"parallel_reductions": 2.0}}, "options.parallel_reductions"),
        ({"options": {"reuse_cast_inputs": 1}}, "options.reuse_cast_inputs"),
        ({"options": {"tile": 0}}, "options.tile"),
        ({"options": {"tile_mapping": "random"}}, "options.tile_mapping"),
        ({"boundaries": {"up": "elsewhere"}}, "boundaries.up"),
        ({"inputs": {"x": {"shape": [4], "runs": 0}}}, "inputs.x.runs"),
        ({"inputs": {"x": {"shape": [4]}}}, "inputs.x"),
        ({"inputs": {"x": {"shape": [4], "runs": 1, "cuts": []}}}, "inputs.x"),
    ],
)
def test_what_is_no_recipe_is_refused_by_its_place(change: dict[str, object], place: str) -> None:
    """PR-02, PR-11: another version is not migrated, an unknown field is not dropped."""
    text = json.dumps({**json.loads(Recipe().to_json()), **change})
    with pytest.raises(InvalidInput, match=rf"it is no recipe of version 2: {place}: "):
        recipe_of_json(text, "file")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "version: it should say 2, and does not"),
        ('{"version": true}', "version: it should be an integer"),
        ('{"version": 2.0}', "version: it should be an integer"),
        ('{"version": 1, "version": 2}', "the text: two fields are named 'version'"),
        (
            '{"version": 2, "options": {"packing_rows": 32, "packing_rows": 0}}',
            "two fields are named 'packing",
        ),
        (
            '{"version": 2, "gemms": {"y": {"algorithm": "none"}, "y": {"algorithm": "none"}}, "gemms": {}}',
            "the text: two fields are named 'y'",
        ),
        (
            '{"version": 2, "gemms": {"up": {"algorithm": "output stationary", "row_parts": NaN}}}',
            "row_parts",
        ),
        ("[" * 100_000, "recursion limit exceeded"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(text: str, reason: str) -> None:
    """PR-11: a recipe says its version, as a number, and every choice once."""
    with pytest.raises(InvalidInput, match=reason):
        recipe_of_json(text, "file")


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidInput, match="it is no recipe of version 2: the text: "):
        recipe_of_json("{", "file")


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_a_built_candidate_has_a_normalized_recipe(name: str) -> None:
    """PR-12: it names every product, and builds the same program again."""
    first = build_candidate(GRAPHS[name](), SETTING, Recipe())
    kept = recipe_of_json(first.recipe.to_json(), "kept")
    again = build_candidate(GRAPHS[name](), SETTING, kept)
    assert again.recipe == first.recipe
    assert again.program == first.program
    assert again.cost == first.cost
    assert again.tried == first.tried


def test_choices_for_products_that_are_not_there_are_refused() -> None:
    """The message names them; nothing is ignored."""
    recipe = Recipe(gemms={"hidden": STATIONARY, "up": STATIONARY, "blocks/y": STATIONARY})
    with pytest.raises(InvalidInput) as refusal:
        build_candidate(GRAPHS["mlp"](), SETTING, recipe)
    assert refusal.value.nodes == ("blocks/y", "up")
    with pytest.raises(InvalidInput) as refusal:
        build_candidate(GRAPHS["mlp"](), SETTING, Recipe(gemms={"a\n\x1b[31m": STATIONARY}))
    assert str(refusal.value).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (STATIONARY.model_copy(update={"row_parts": 17}), "17 tiles are needed, 16 are there"),
        (STATIONARY.model_copy(update={"column_parts": 7}), "empty column shard"),
        (STATIONARY.model_copy(update={"inner_block": 40}), "blocks of 40"),
    ],
)
def test_choices_that_do_not_suit_their_product_are_refused(choice: GemmChoice, reason: str) -> None:
    """The message names the node and says why."""
    with pytest.raises(Unsupported, match=reason) as refusal:
        build_candidate(GRAPHS["two mlps"](), SETTING, Recipe(gemms={"blocks/hidden": choice}))
    assert refusal.value.nodes == ("blocks/hidden",)
