"""Recipes: every choice that a whole-device program is built from, as data that can be kept (PR-01, PR-02).

A recipe names one choice for each product, says in which form values wait for their readers (*boundaries*)
and where inputs lie (*homes*), and holds the options of the whole program. What it does not name is chosen by
the planner; the recipe of a built candidate names all (is *normalized*), so that building from it again needs
no search. It knows no edges, tiles or prices.

Recipes are written as JSON with a version. Another version and an unknown field are refused: choices whose
meaning changed must not be taken for others (PR-11).
"""

import json
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from compiler.errors import InvalidInput
from compiler.planner.gemm_choice import GemmChoice, Positive

VERSION: Final = 2


def _integer(value: object) -> object:
    """Refuse what is equal to an integer and is none, 2.0 and false: literals take it."""
    if type(value) is not int:
        raise ValueError("it should be an integer")
    return value


PackingRows = Annotated[Literal[0, 32, 64, 128, 256], BeforeValidator(_integer)]
PACKING_ROWS: Final[tuple[PackingRows, ...]] = (0, 32, 64, 128, 256)
"""All of them."""

GroupSize = Annotated[Literal[0, 2, 3, 4, 5, 6, 7, 8], BeforeValidator(_integer)]
GROUP_SIZES: Final[tuple[GroupSize, ...]] = (0, 2, 3, 4, 5, 6, 7, 8)
"""All of them."""

Boundary = Literal["as made", "other operand", "first product", "rows"]
"""In which form a value waits for its readers.

``as made``: as whatever makes it leaves it, and each reader brings it to itself. ``other operand``, of a sum
of two values of one shape: where the other one of the two is. ``first product``: moved once, when a product
reads it first, into the form in which that product reads it (into pieces, where it has to be cast); later
readers read that. ``rows``: moved once, when it is made, row-major with whole rows on each tile.
"""

Preparation = Literal["holders", "spread"]
PREPARATIONS: Final[tuple[Preparation, ...]] = ("holders", "spread")
"""All of them."""

TileMapping = Literal["identity", "strided", "blocks transposed"]
TILE_MAPPINGS: Final[tuple[TileMapping, ...]] = ("identity", "strided", "blocks transposed")
"""All of them."""

Order = Literal["rows", "left", "transposed left", "weights", "transposed weights"]
"""A sequence of elements: row-major, or panels as the matrix unit takes an operand."""

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
        preparation: who casts operands of products and brings them from rows into panels: the tiles that hold
            them, each what it holds; or all tiles, each a piece of the same size, where that is more of them.
        tile_mapping: which tiles stand for which in all owner maps at once (``planner.mappings``).
    """

    model_config = _STRICT

    cast_before_copies: bool = True
    reuse_cast_inputs: bool = False
    packing_rows: PackingRows = 0
    parallel_reductions: GroupSize = 0
    preparation: Preparation = "holders"
    tile_mapping: TileMapping = "identity"


class Cut(BaseModel):
    """How one axis of an input is cut.

    Args:
        axis: the axis.
        parts: how many shards there are along it.
        block: its shards are multiples of so many elements.
    """

    model_config = _STRICT

    axis: Annotated[int, Field(ge=0)]
    parts: Positive
    block: Positive


class StoredOnce(BaseModel):
    """An input of which the device has one copy of each element.

    Args:
        shape: its extents there; its elements are in the sequence that the graph has them in.
        order: of its elements in a shard.
        cuts: of its axes, those whose shards follow one another on neighbouring tiles last; None for runs.
        runs: equal runs of the whole sequence, in place of cuts.
    """

    model_config = _STRICT

    shape: tuple[Positive, ...]
    order: Order = "rows"
    cuts: tuple[Cut, ...] | None = None
    runs: Positive | None = None

    @model_validator(mode="after")
    def _is_cut_in_one_way(self) -> Self:
        if (self.cuts is None) == (self.runs is None):
            raise ValueError("an input is cut along axes, or into runs")
        return self


InputHome = StoredOnce | Literal["first reader"]
"""Where an input lies: in one layout, whatever reads it; or as what reads it first wants it, on every tile
that does if the build writes inputs to several tiles. An input that a Repeat carries lies as that carries
it."""


class Recipe(BaseModel):
    """All choices of a program.

    Args:
        version: form of the recipe.
        gemms: choice of each product, by the path of its node: its name, in a body behind the name of the
            Repeat and a slash.
        boundaries: of each value that other nodes of its block read, by the path of its node.
        inputs: home of each input, by name.
        options: of the whole program.
    """

    model_config = _STRICT

    version: Annotated[Literal[2], BeforeValidator(_integer)] = VERSION
    gemms: dict[str, GemmChoice] = Field(default_factory=dict[str, GemmChoice])
    boundaries: dict[str, Boundary] = Field(default_factory=dict[str, Boundary])
    inputs: dict[str, InputHome] = Field(default_factory=dict[str, InputHome])
    options: Options = Options()

    def to_json(self) -> str:
        """As text, the same for equal recipes."""
        ordered = Recipe(
            gemms=dict(sorted(self.gemms.items())),
            boundaries=dict(sorted(self.boundaries.items())),
            inputs=dict(sorted(self.inputs.items())),
            options=self.options,
        )
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
        # A form of a home that is checked as a whole stands there by the name of its check.
        loc = [str(part) for part in first["loc"]]
        place = ".".join(part for part in loc if not part.startswith("function-after[")) or "the text"
        reason = first["msg"].removeprefix("Value error, ")
        raise _no_recipe(subject, f"{place}: {reason}") from fault
    # The model has a default version, and takes the last of equal keys.
    try:
        document = json.loads(text, object_pairs_hook=_distinct)
    except ValueError as fault:
        raise _no_recipe(subject, f"the text: {fault}") from fault
    if "version" not in document:
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
