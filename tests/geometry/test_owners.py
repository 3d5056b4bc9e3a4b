"""Owner maps: tile(owner) = permutation[embedding[(owner + rotation) mod n]], injective."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.owners import OwnerMap, TileId


@given(st.data(), st.integers(1, 12))
def test_owner_maps_follow_the_formula_and_are_injective(data: st.DataObject, tile_count: int) -> None:
    every = [TileId(tile) for tile in range(tile_count)]
    embedding = data.draw(
        st.none()
        | st.permutations(every).flatmap(lambda p: st.integers(1, len(p)).map(lambda n: tuple(p[:n])))
    )
    permutation = data.draw(st.none() | st.permutations(every).map(tuple))
    domain = tile_count if embedding is None else len(embedding)
    rotation = data.draw(st.integers(0, domain - 1))
    owner_count = data.draw(st.integers(0, domain))
    owners = OwnerMap(tile_count=tile_count, rotation=rotation, embedding=embedding, permutation=permutation)
    tiles = owners.tiles(owner_count).tolist()
    for owner in range(owner_count):
        tile = (owner + rotation) % domain
        tile = tile if embedding is None else embedding[tile]
        tile = tile if permutation is None else permutation[tile]
        assert tiles[owner] == owners.tile(owner) == tile
    assert len(set(tiles)) == owner_count
    inverse = owners.owners(owner_count).tolist()
    assert [tile for tile in range(tile_count) if inverse[tile] >= 0] == sorted(tiles)
    assert all(inverse[tile] == owner for owner, tile in enumerate(tiles))


def test_maps_that_are_not_injective_are_refused() -> None:
    with pytest.raises(ValueError, match="the embedding lists a tile twice"):
        OwnerMap(tile_count=4, embedding=(TileId(1), TileId(1)))
    with pytest.raises(ValueError, match="the embedding leaves the 4 tiles of the build"):
        OwnerMap(tile_count=4, embedding=(TileId(4),))
    with pytest.raises(ValueError, match="embedding lists at least one tile"):
        OwnerMap(tile_count=4, embedding=())
    with pytest.raises(ValueError, match="a permutation of 3 tiles lists 2"):
        OwnerMap(tile_count=3, permutation=(TileId(1), TileId(0)))
    with pytest.raises(ValueError, match=r"rotation 2 is outside 0 \.\. 1"):
        OwnerMap(tile_count=4, embedding=(TileId(1), TileId(2)), rotation=2)
    with pytest.raises(ValueError, match="at least one tile, not 0"):
        OwnerMap(tile_count=0)


def test_owners_that_have_no_place_are_refused() -> None:
    owners = OwnerMap(tile_count=4)
    with pytest.raises(ValueError, match="5 owners do not fit 4 tiles"):
        owners.tiles(5)
    with pytest.raises(ValueError, match=r"owner 4 is outside 0 \.\. 3"):
        owners.tile(4)
