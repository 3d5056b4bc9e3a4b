"""Exact texts of what the planner says about recipes."""

import pytest

from compiler.errors import TilewrightError
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from compiler.planner.recipe import Recipe, recipe_of_json
from tests.planner.graphs import GRAPHS

CHOICE = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=40)


def message_of(recipe: Recipe) -> str:
    """What building from a recipe says."""
    with pytest.raises(TilewrightError) as refusal:
        build_candidate(GRAPHS["mlp"](), Setting(tile_count=16), recipe)
    return str(refusal.value)


def test_another_version() -> None:
    with pytest.raises(TilewrightError) as refusal:
        recipe_of_json('{"version": 1}', "best.json")
    assert str(refusal.value) == (
        "invalid input (planner): best.json: it is no recipe of version 2: version: Input should be 2.\n"
        "  next: build without it, and keep the recipe that the build writes"
    )


def test_unknown_products() -> None:
    assert message_of(Recipe(gemms={"up": CHOICE, "down": CHOICE})) == (
        "invalid input (planner): mlp: the recipe makes choices for products that the graph does not have: "
        "down; up.\n"
        "  graph nodes: down, up\n"
        "  next: build without the recipe, and keep the one that the build writes"
    )


def test_a_choice_that_does_not_suit() -> None:
    assert message_of(Recipe(gemms={"hidden": CHOICE})) == (
        "unsupported (planner): hidden: the recipe's choice does not suit this product: 40 tiles are needed, "
        "16 are there.\n"
        "  graph nodes: hidden\n"
        "  next: leave this product out of the recipe, or change the choice"
    )
