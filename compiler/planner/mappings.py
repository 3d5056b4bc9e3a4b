"""Permutations of all tiles, by name: what a recipe can say of which tile stands for which (PR-30).

Owners are numbered so that tiles of a cell of a product are neighbours. Where neighbours lie on the device
decides how far bytes travel, and how many cycles after its instruction a word arrives. Neither estimates of
whole-device programs nor bounds of phases know distances: a mapping changes nothing that they see, by
construction, and only scheduled cycles tell one from another.
"""

from typing import Final, assert_never

from compiler.geometry.owners import TileId
from compiler.planner.recipe import TileMapping

STRIDE: Final = 8
"""Tiles between neighbours when they are dealt out, and edge of a block that is transposed. Policy."""


def permutation_of(mapping: TileMapping, tile_count: int) -> tuple[TileId, ...] | None:
    """The tile [tile_count] that stands for each; None for the identity.

    ``strided``: neighbours are dealt out over the whole device, ``STRIDE`` tiles apart. ``blocks
    transposed``: they are within blocks of ``STRIDE`` rows of ``STRIDE`` tiles, and blocks stay where they
    are. Every eighth tile comes first, whether or not the tiles divide.
    """
    match mapping:
        case "identity":
            return None
        case "strided":
            block = tile_count
        case "blocks transposed":
            block = STRIDE * STRIDE
        case _:
            assert_never(mapping)
    return tuple(
        TileId(tile)
        for start in range(0, tile_count, block)
        for first in range(start, min(start + STRIDE, tile_count))
        for tile in range(first, min(start + block, tile_count), STRIDE)
    )
