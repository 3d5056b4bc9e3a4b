"""Recipes: every choice that a whole-device program is built from, as data that can be kept (PR-01, PR-02).

A recipe names one choice for each product that has one, and holds the options of the whole program. Products
that it does not name are chosen by the planner; the recipe of a built candidate names all (is *normalized*),
so that building from it again needs no search. It knows no values, edges or prices.

Recipes are written as JSON with a version. Another version and an unknown field are refused: choices whose
meaning changed must not be taken for others (PR-11).
"""

import json
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from compiler.errors import InvalidInput
from compiler.planner.gemm_choice import GemmChoice

VERSION: Final = 1

PackingRows = Literal[0, 32, 64, 128, 256]
PACKING_ROWS: Final[tuple[PackingRows, ...]] = (0, 32, 64, 128, 256)
"""All of them."""

GroupSize = Literal[0, 2, 3, 4, 5, 6, 7, 8]
GROUP_SIZES: Final[tuple[GroupSize, ...]] = (0, 2, 3, 4, 5, 6, 7, 8)
"""All of them."""

_STRICT = ConfigDict(strict=True, frozen=True, extra="forbid")


class Options(BaseModel):
    """Options of a whole program (PR-04). Rewrites decide themselves where one is safe (PR-07).

    Args:
        cast_before_copies: operands are cast where they are made, so that fewer bytes travel, and else where
            they are multiplied.
        reuse_cast_inputs: casts to F8 put their result into the storage of their operand.
        packing_rows: rows of a row-major value that one tile brings into panels before they are sent; 0 packs
            where movement finds it cheapest.
        parallel_reductions: independent sums that are put on disjoint tiles at a time; 0 for none.
    """

    model_config = _STRICT

    cast_before_copies: bool = True
    reuse_cast_inputs: bool = False
    packing_rows: PackingRows = 0
    parallel_reductions: GroupSize = 0


class Recipe(BaseModel):
    """All choices of a program.

    Args:
        version: form of the recipe.
        gemms: choice of each product, by the path of its node: its name, in a body behind the name of the
            Repeat and a slash.
        options: of the whole program.
    """

    model_config = _STRICT

    version: Literal[1] = VERSION
    gemms: dict[str, GemmChoice] = Field(default_factory=dict[str, GemmChoice])
    options: Options = Options()

    def to_json(self) -> str:
        """As text, the same for equal recipes."""
        ordered = Recipe(gemms=dict(sorted(self.gemms.items())), options=self.options)
        return ordered.model_dump_json(indent=2) + "\n"


def recipe_of_json(text: str, subject: str) -> Recipe:
    """The recipe of a text.

    Args:
        text: JSON.
        subject: where it is from, for messages.

    Raises:
        InvalidInput: it is no recipe of this version; the message names the first field that is wrong.
    """
    try:
        recipe = Recipe.model_validate_json(text)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        raise _no_recipe(subject, f"{place}: {first['msg']}") from fault
    # The model has a default version and takes 1.0 and true for 1, and the last of equal keys.
    try:
        document = json.loads(text, object_pairs_hook=_distinct)
    except ValueError as fault:
        raise _no_recipe(subject, f"the text: {fault}") from fault
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise _no_recipe(subject, f"version: it should say {VERSION}, and does not")
    return recipe


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of the text.

    Raises:
        ValueError: two of its fields have one name.
    """
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two fields are named {twice!r}")
    return fields


def _no_recipe(subject: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"it is no recipe of version {VERSION}: {reason}",
        stage="planner",
        subject=subject,
        next_step="build without it, and keep the recipe that the build writes",
    )
