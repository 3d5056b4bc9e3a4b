"""Views of graph values: composed where they can be, carried out where not."""

import numpy as np

from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16, F32
from compiler.geometry.tiling import GridTiling, LinearTiling
from compiler.geometry.views import merge, split, transpose
from compiler.mid.build import BlockBuilder, program
from compiler.mid.interpret import interpret
from compiler.mid.ir import Value
from compiler.mid.verify import verify
from compiler.planner.bound import BoundValue, Home, flat_format, is_in_words, read_through

TILES = 4


def seen(outer: CoordinateMapping) -> tuple[BlockBuilder, BoundValue]:
    """[6,6] merged to 36, and that seen through one more mapping."""
    builder = BlockBuilder()
    value = builder.argument(
        Value(
            name="value",
            shape=(6, 6),
            format=flat_format((6, 6), F16(), TILES),
            owners=OwnerMap(tile_count=TILES),
        )
    )
    bound = BoundValue(value=value, mapping=merge((6, 6), 0, 2))
    return builder, read_through(builder, bound, outer, tile_count=TILES, node="view")


def test_views_that_compose_move_nothing() -> None:
    """ML-20, ML-21: 36 split to [3,12] is [6,6] read in another sequence of digits."""
    builder, bound = seen(split((36,), 0, (3, 12)))
    assert builder.finish(()).operations == ()
    assert bound.shape == (3, 12)
    assert bound.mapping.source_shape == (6, 6)


def test_views_that_do_not_compose_are_carried_out() -> None:
    """ML-23: [6,6] as [4,9] has no mapping, so 36 is made first; the elements stay in sequence."""
    builder, bound = seen(split((36,), 0, (4, 9)))
    block = builder.finish((bound.value,))
    assert len(block.operations) == 1
    assert bound.mapping == split((36,), 0, (4, 9))
    whole = program(block, name="view", tile_count=TILES, input_count=1, outputs=("made",))
    assert verify(whole) == ()
    array = np.arange(36, dtype=np.float16).reshape(6, 6)
    assert (interpret(whole, {"value": array})["made"] == array.reshape(36)).all()


def test_flat_values_are_cut_into_eight_bytes_at_least() -> None:
    """Over all tiles, or as many as get something, in every precision."""
    for precision, grain in ((F32(), 2), (F16(), 4), (F8(), 8)):
        tiling = flat_format((3, 8), precision, 64).layout.tiling
        assert isinstance(tiling, LinearTiling)
        assert tiling.grain == grain
        assert tiling.partitions == 24 // grain
        assert flat_format((300, 8), precision, 64).layout.tiling.shard_count == 64
        odd = flat_format((3, 5), precision, 64)
        assert isinstance(odd.layout.tiling, GridTiling)
        assert is_in_words((3, 5), odd)


def test_homes_know_whether_the_host_stores_them_as_they_are() -> None:
    """Merged neighbours keep the row-major sequence; transposed axes do not."""
    shape = (6, 6)
    for mapping, is_in_sequence in (
        (identity(shape), True),
        (merge(shape, 0, 2), True),
        (transpose(shape, (1, 0)), False),
    ):
        home = Home(
            shape=shape,
            format=flat_format(shape, F16(), TILES),
            owners=OwnerMap(tile_count=TILES),
            mapping=mapping,
        )
        assert home.is_in_sequence == is_in_sequence
