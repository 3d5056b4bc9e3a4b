"""Which logical tile holds which owner of a value. Independent of the value's layout, and cheap to vary."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NewType, final

import numpy as np
import numpy.typing as npt

TileId = NewType("TileId", int)
"""A logical tile, 0 .. tiles of the build - 1."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerMap:
    """tile(owner) = permutation[embedding[(owner + rotation) % n]], injective: one owner per tile at most.

    Args:
        tile_count: tiles of the build.
        rotation: added to the owner number, 0 <= rotation < n.
        embedding: the distinct tiles to use; n is their number, and tile_count without an embedding.
        permutation: renames all tiles of the build.

    Raises:
        ValueError: an embedding repeats or leaves the build, the permutation is none, or the rotation is too
            large.
    """

    tile_count: int
    rotation: int = 0
    embedding: tuple[TileId, ...] | None = None
    permutation: tuple[TileId, ...] | None = None

    def __post_init__(self) -> None:
        if self.tile_count < 1:
            raise ValueError(f"a build has at least one tile, not {self.tile_count}")
        if self.embedding is not None:
            _check_distinct("embedding", self.embedding, self.tile_count)
        if self.permutation is not None:
            _check_distinct("permutation", self.permutation, self.tile_count)
            if len(self.permutation) != self.tile_count:
                raise ValueError(f"a permutation of {self.tile_count} tiles lists {len(self.permutation)}")
        if not 0 <= self.rotation < self.domain:
            raise ValueError(f"rotation {self.rotation} is outside 0 .. {self.domain - 1}")

    @property
    def domain(self) -> int:
        """The largest number of owners that can be mapped (n above)."""
        return self.tile_count if self.embedding is None else len(self.embedding)

    def tile(self, owner: int) -> TileId:
        """The tile of one owner.

        Raises:
            ValueError: the owner is outside 0 .. domain - 1.
        """
        if not 0 <= owner < self.domain:
            raise ValueError(f"owner {owner} is outside 0 .. {self.domain - 1}")
        place = (owner + self.rotation) % self.domain
        tile = TileId(place) if self.embedding is None else self.embedding[place]
        return tile if self.permutation is None else self.permutation[tile]

    def tiles(self, owner_count: int) -> npt.NDArray[np.int32]:
        """The tiles [owner_count] of all owners.

        Raises:
            ValueError: there are more owners than places.
        """
        if not 0 <= owner_count <= self.domain:
            raise ValueError(f"{owner_count} owners do not fit {self.domain} tiles")
        tiles = (np.arange(owner_count, dtype=np.int32) + self.rotation) % self.domain
        for renaming in (self.embedding, self.permutation):
            if renaming is not None:
                tiles = np.array(renaming, dtype=np.int32)[tiles]
        return tiles.astype(np.int32)

    def owners(self, owner_count: int) -> npt.NDArray[np.int32]:
        """The inverse [tile_count]: each tile's owner, -1 where there is none; errors as :meth:`tiles`."""
        owners = np.full(self.tile_count, -1, dtype=np.int32)
        owners[self.tiles(owner_count)] = np.arange(owner_count, dtype=np.int32)
        return owners


def _check_distinct(name: str, tiles: Sequence[TileId], tile_count: int) -> None:
    if not tiles:
        raise ValueError(f"an {name} lists at least one tile")
    if len(set(tiles)) != len(tiles):
        raise ValueError(f"the {name} lists a tile twice")
    if min(tiles) < 0 or max(tiles) >= tile_count:
        raise ValueError(f"the {name} leaves the {tile_count} tiles of the build")
