"""The exact text of what placement refuses: proven and not proven are told apart."""

import pytest

from compiler.errors import DoesNotFit
from compiler.geometry.owners import TileId
from compiler.placement.place import place
from compiler.placement.problem import Reserved, runtime_ranges
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.placement.programs import Life, Lives, program_of


def test_proven_infeasible() -> None:
    lives = (
        Life(byte_count=300_000, first=0, last=1, node="encoder.0.qkv"),
        Life(byte_count=250_000, first=1, last=2, node="encoder.0.softmax"),
        Life(byte_count=60_000, first=1, last=1, tile=0, node="encoder.0.qkv"),
        Life(byte_count=8, first=2, last=2, node="encoder.0.out"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), runtime_ranges(DEFAULT_LAYOUT, 2))
    assert str(caught.value) == (
        "does not fit (placement): tile 0: what lives at step 1 needs more than is free in SRAM, "
        "however it is placed.\n"
        "  SRAM at step 1: 610,000 bytes (bound), limit 588,064, 21,936 too many\n"
        "  graph nodes: encoder.0.qkv, encoder.0.softmax\n"
        "  next: split the operations named above over more tiles, or lower their precision"
    )


def test_proven_infeasible_in_interleaved_memory_on_several_tiles() -> None:
    lives = tuple(Life(byte_count=430_000, tile=tile, interleaved=True, node="mlp.up") for tile in (0, 1, 2))
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives), tile_count=4), ())
    assert str(caught.value) == (
        "does not fit (placement): tile 0 (and 2 more tiles alike): what lives at step 0 needs more than "
        "is free in interleaved memory, however it is placed.\n"
        "  interleaved memory at step 0: 430,000 bytes (bound), limit 425,984, 4,016 too many\n"
        "  graph nodes: mlp.up\n"
        "  next: split the operations named above over more tiles, or lower their precision"
    )


def test_unknown_is_not_called_infeasible() -> None:
    """Two buffers of the bytes that are left, but the space between reserved ranges is cut unevenly."""
    middle = INTERLEAVED.base + 1000
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=INTERLEAVED.base - SRAM_BASE),
        Reserved(tile=TileId(0), start=middle, size=1000),
        Reserved(tile=TileId(0), start=middle + 2000, size=SRAM_END - middle - 2000),
    )
    lives = (
        Life(byte_count=800, node="a"),
        Life(byte_count=600, node="b"),
        Life(byte_count=600, node="c"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), reserved)
    assert str(caught.value) == (
        "does not fit (placement): tile 0: none of 6 orders of placing 3 requests fits; "
        "that none can is not proven.\n"
        "  SRAM at step 0: 2,000 bytes (bound), limit 2,000\n"
        "  the longest gap of SRAM at step 0: 800 bytes (bound), limit 1,000\n"
        "  graph nodes: c\n"
        "  next: leave more room: split the operations named above, or reserve less"
    )
