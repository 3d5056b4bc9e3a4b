"""Mapping of tiles: other tiles hold and compute what these did, by one permutation for the whole program.

Changes every owner map and nothing else; maps that have a permutation are permuted further.

Safe because owners stay: what is on one tile together is so afterwards, and what was on two tiles is on two.
"""

import dataclasses
from collections.abc import Sequence

from compiler.geometry.owners import OwnerMap, TileId
from compiler.mid.ir import Block, MidProgram
from compiler.mid.rewrites.blocks import with_bodies


def map_tiles(program: MidProgram, permutation: Sequence[TileId]) -> MidProgram:
    """A program on other tiles.

    Args:
        program: well formed.
        permutation: the tile that stands for each.

    Raises:
        ValueError: it is no permutation of the program's tiles.
    """
    mapped: dict[OwnerMap, OwnerMap] = {}

    def of(owners: OwnerMap) -> OwnerMap:
        if owners not in mapped:
            before = range(owners.tile_count) if owners.permutation is None else owners.permutation
            mapped[owners] = dataclasses.replace(
                owners, permutation=tuple(permutation[tile] for tile in before)
            )
        return mapped[owners]

    def everywhere(block: Block) -> Block:
        inner = with_bodies(block, everywhere)
        return dataclasses.replace(
            inner,
            values=tuple(dataclasses.replace(value, owners=of(value.owners)) for value in inner.values),
        )

    if sorted(permutation) != list(range(program.tile_count)):
        raise ValueError(f"this is no permutation of {program.tile_count} tiles")
    return dataclasses.replace(program, block=everywhere(program.block))
