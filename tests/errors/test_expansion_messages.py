"""The exact text of what expansion refuses: too many transfers for a tile, rows too long, no movement."""

import numpy as np
import pytest

from compiler.errors import DoesNotFit, Unsupported
from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import identity
from compiler.geometry.order import AmpLeft, AmpRight, ElementOrder, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.limits import MOST_FRAGMENTS, refuse_program
from compiler.low.movement import Source, realize
from compiler.low.storage import Stored, allocate
from compiler.mid.ir import MovementPolicy

TILES = 4


def _stored(build: LowBuilder, shape: tuple[int, int], order: ElementOrder, rotation: int = 0) -> Stored:
    """Rows on two tiles."""
    layout = TensorLayout(order=order, tiling=GridTiling(axes=(AxisTiling(axis=0, partitions=2),)))
    distribution = distribute(shape, TensorFormat(precision=F16(), layout=layout))
    owners = OwnerMap(tile_count=TILES, rotation=rotation)
    tiles = owners.tiles(distribution.owner_count).astype(np.int64)
    return allocate(build, distribution, tiles, build.node("encoder.0.qkv"))


def _move(build: LowBuilder, source: Stored, destination: Stored) -> None:
    realize(
        build,
        [Source(stored=source, mapping=identity(source.distribution.shape))],
        destination,
        policy=MovementPolicy.DIRECT,
        tile_count=TILES,
        node=build.node("encoder.0.qkv"),
        node_name="encoder.0.qkv",
    )


def test_a_movement_of_too_many_spans() -> None:
    """Refused by its runs: no transfer was made."""
    build, shape = LowBuilder(TILES), (2048, 512)
    moved = _stored(build, shape, RowMajor()), _stored(build, shape, AmpLeft(), rotation=2)
    with pytest.raises(DoesNotFit) as caught:
        _move(build, *moved)
    assert str(caught.value) == (
        "does not fit (expansion): encoder.0.qkv: logical tile 0 would send and receive too many spans for "
        "encoder.0.qkv.\n"
        "  spans of the tile: 32,768 spans (bound), limit 16,384, 16,384 too many\n"
        "  graph nodes: encoder.0.qkv\n"
        "  next: move fewer and longer spans: layouts whose tiles cut less across each other"
    )
    assert not len(build.finish().transfers.step)


def test_a_program_of_too_many_spans() -> None:
    """Each movement would do; a Repeat counts once."""
    build, shape = LowBuilder(TILES), (1024, 256)
    for _ in range(2):
        _move(build, _stored(build, shape, RowMajor()), _stored(build, shape, AmpLeft(), rotation=2))
    with build.repeat(100):
        _move(build, _stored(build, (16, 64), RowMajor()), _stored(build, (16, 64), AmpLeft(), rotation=2))
    with pytest.raises(DoesNotFit) as caught:
        refuse_program(build.finish())
    assert str(caught.value) == (
        "does not fit (expansion): encoder.0.qkv: logical tile 0 would send and receive too many spans in "
        "all.\n"
        "  spans of the tile: 16,416 spans (bound), limit 16,384, 32 too many\n"
        "  graph nodes: encoder.0.qkv\n"
        "  next: move fewer and longer spans: layouts whose tiles cut less across each other"
    )


def test_tiles_at_the_limit_are_no_tiles_beyond_it() -> None:
    """Every tile takes part in exactly as many transfers as it may; one more and one is named."""
    build, shape = LowBuilder(TILES), (1024, 256)
    for _ in range(2):
        _move(build, _stored(build, shape, RowMajor()), _stored(build, shape, AmpLeft(), rotation=2))
    full = build.finish()
    refuse_program(full)
    tile = full.buffers.tile
    taken = np.bincount(tile[full.transfers.source], minlength=TILES)
    taken += np.bincount(tile[full.recipients.destination], minlength=TILES)
    assert taken.tolist() == [MOST_FRAGMENTS] * TILES
    ends = [
        build.buffer(tile=tile, byte_count=4, alignment=4, node=build.node("one.more")) for tile in (2, 3)
    ]
    build.transfer(
        build.exchange_step(),
        source=AddressOperand(buffer=ends[1]),
        byte_count=4,
        recipients=[AddressOperand(buffer=ends[0])],
        node=build.node("one.more"),
    )
    with pytest.raises(DoesNotFit) as caught:
        refuse_program(build.finish())
    assert "logical tile 2 would send and receive too many spans" in str(caught.value)
    assert caught.value.numbers[0].value == MOST_FRAGMENTS + 1
    assert caught.value.nodes == ("encoder.0.qkv", "one.more")


def test_a_row_that_cannot_be_short_enough() -> None:
    """Fewer spans than a tile may have, but each needs a pointer of its own."""
    build = LowBuilder(2)
    node = build.node("mlp.down")
    spans = 12_000
    source = build.buffer(tile=0, byte_count=4 * spans, alignment=4, node=node)
    destination = build.buffer(tile=1, byte_count=8 * spans, alignment=4, node=node)
    step = build.exchange_step()
    for span in range(spans):
        build.transfer(
            step,
            source=AddressOperand(buffer=source, displacement=4 * span),
            byte_count=4,
            recipients=[AddressOperand(buffer=destination, displacement=8 * span)],
            node=node,
        )
    with pytest.raises(DoesNotFit) as caught:
        refuse_program(build.finish())
    assert str(caught.value) == (
        "does not fit (expansion): step 0: logical tile 1 has more spans to send and receive in one exchange "
        "step than its row may control.\n"
        "  bytes of the row at least: 96,000 bytes (bound), limit 81,920, 14,080 too many\n"
        "  graph nodes: mlp.down\n"
        "  next: move fewer and longer spans: layouts whose tiles cut less across each other"
    )


def test_a_movement_that_does_not_exist() -> None:
    """Orders differ, and the policy leaves no kernel to change them where runs are no words."""
    build, shape = LowBuilder(TILES), (32, 64)
    with pytest.raises(Unsupported) as caught:
        _move(build, _stored(build, shape, AmpRight()), _stored(build, shape, AmpLeft(), rotation=2))
    assert str(caught.value) == (
        "unsupported (expansion): encoder.0.qkv: no movement takes [32, 64] in AmpRight on 2 owners to "
        "[32, 64] in AmpLeft on 2 owners: direct: runs are not whole words; with padding: runs are not whole "
        "words.\n"
        "  graph nodes: encoder.0.qkv\n"
        "  next: make the extents multiples of 4, or choose another layout for one of the two"
    )
