"""What callers of the stages of the planner need, and how recipes are kept in the store."""

from dataclasses import dataclass
from typing import Any, Final, final

from compiler.figures import Figures
from compiler.graph.codec import Labels
from compiler.graph.ir import Graph
from compiler.mid.ir import MidProgram
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.store.codec import JsonCodec
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateInputs:
    """Of stage ``baseline_candidate``.

    Args:
        structure: the graph without names.
        labels: its names, which messages and provenance are about.
        recipe: choices that are given, as JSON; the others are the planner's.
    """

    structure: Artifact[Graph]
    labels: Artifact[Labels]
    recipe: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedProgram:
    """A whole-device program that its verifier accepts.

    Args:
        program: the program.
        recipe: all choices that lead to it.
        figures: what it costs, estimated.
    """

    program: MidProgram
    recipe: Recipe
    figures: Figures


def plain_recipe(recipe: Recipe) -> object:
    """A recipe as a plain value: its text."""
    return recipe.to_json()


def recipe_of_plain(plain: Any) -> Recipe:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: it is no text.
        InvalidInput: it is the text of no recipe of this version.
    """
    if not isinstance(plain, str):
        raise ValueError("a recipe is kept as text")
    return recipe_of_json(plain, "stored recipe")


RECIPE: Final = JsonCodec(plain=plain_recipe, value=recipe_of_plain)
