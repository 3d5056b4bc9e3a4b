"""The exact text of what placement refuses: proven by a bound, proven by a search, and not proven."""

import pytest

from compiler.errors import DoesNotFit
from compiler.geometry.owners import TileId
from compiler.low.ir import Role
from compiler.placement.place import place
from compiler.placement.problem import Reserved, runtime_ranges
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.placement.programs import Life, Lives, program_of


def _only(start: int, size: int) -> tuple[Reserved, Reserved]:
    """Nothing but these bytes of tile 0 is free."""
    return (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=start - SRAM_BASE),
        Reserved(tile=TileId(0), start=start + size, size=SRAM_END - start - size),
    )


def test_proven_infeasible() -> None:
    lives = (
        Life(byte_count=340_000, first=0, last=1, node="encoder.0.qkv"),
        Life(byte_count=250_000, first=1, last=2, node="encoder.0.softmax"),
        Life(byte_count=60_000, first=1, last=1, tile=0, node="encoder.0.qkv"),
        Life(byte_count=16, first=1, last=1, tile=0, node="encoder.0.scale"),
        Life(byte_count=8, first=2, last=2, node="encoder.0.out"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), runtime_ranges(DEFAULT_LAYOUT, 2))
    assert str(caught.value) == (
        "does not fit (placement): tile 0: what lives at step 1 needs more than is free in SRAM, "
        "however it is placed; these cannot coexist, and the proof needs each of them: "
        "buffer 0 (340,000 bytes, steps 0 to 1, encoder.0.qkv), "
        "buffer 1 (250,000 bytes, steps 1 to 2, encoder.0.softmax); live at step 1, the fullest: "
        "buffer 0 (340,000 bytes, steps 0 to 1, encoder.0.qkv), "
        "buffer 1 (250,000 bytes, steps 1 to 2, encoder.0.softmax), "
        "buffer 2 (60,000 bytes, step 1, encoder.0.qkv), buffer 3 (16 bytes, step 1, encoder.0.scale).\n"
        "  SRAM at step 1: 650,016 bytes (bound), limit 620,832, 29,184 too many\n"
        "  graph nodes: encoder.0.qkv, encoder.0.softmax\n"
        "  next: make what lives at that step 29,184 bytes smaller: split the operations named above over "
        "more tiles, or lower their precision"
    )


def test_what_runs_keep_is_proven_infeasible_by_itself() -> None:
    """Temporaries may lie where the host puts its packets between runs; parameters may not."""
    lives = (
        Life(byte_count=560_000, role=Role.PARAMETER, node="encoder.weights"),
        Life(byte_count=32_000, role=Role.INPUT, node="encoder.input"),
        Life(byte_count=8_000, first=0, last=0, node="encoder.cast"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), runtime_ranges(DEFAULT_LAYOUT, 2))
    assert str(caught.value) == (
        "does not fit (placement): tile 0: what lives at step 0 needs more than is free in memory that is "
        "kept between runs, however it is placed; these cannot coexist, and the proof needs each of them: "
        "buffer 0 (560,000 bytes, step 0, encoder.weights), buffer 1 (32,000 bytes, step 0, encoder.input).\n"
        "  memory that is kept between runs at step 0: 592,000 bytes (bound), limit 588,064, 3,936 too many\n"
        "  graph nodes: encoder.weights, encoder.input\n"
        "  next: keep 3,936 bytes less between runs: split the parameters, inputs and outputs named above "
        "over more tiles, or lower their precision"
    )


def test_proven_infeasible_in_interleaved_memory_on_several_tiles() -> None:
    lives = tuple(Life(byte_count=430_000, tile=tile, interleaved=True, node="mlp.up") for tile in (0, 1, 2))
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives), tile_count=4), ())
    assert str(caught.value) == (
        "does not fit (placement): tile 0 (and 2 more tiles alike): what lives at step 0 needs more than "
        "is free in interleaved memory, however it is placed; alone it cannot be placed: "
        "buffer 0 (430,000 bytes, step 0, mlp.up).\n"
        "  interleaved memory at step 0: 430,000 bytes (bound), limit 425,984, 4,016 too many\n"
        "  graph nodes: mlp.up\n"
        "  next: keep 4,016 bytes out of interleaved memory: split the operations named above over more "
        "tiles, lower their precision, or choose kernels that take standard memory"
    )


def test_a_sequence_that_is_too_large_is_named_as_one() -> None:
    lives = (
        Life(byte_count=30_000, members=27, first=0, last=1, node="encoder.weights"),
        Life(byte_count=40, first=0, last=0, aliases=((8, 8, 1, 1),), node="encoder.cast"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), ())
    assert str(caught.value) == (
        "does not fit (placement): tile 0: what lives at step 0 needs more than is free in SRAM, however it "
        "is placed; alone it cannot be placed: 27 members of a sequence from buffer 0 on (810,000 bytes, "
        "steps 0 to 1, encoder.weights); live at step 0, the fullest: 27 members of a sequence from buffer 0 "
        "on (810,000 bytes, steps 0 to 1, encoder.weights), buffer 27 and 1 in its storage (40 bytes, steps "
        "0 to 1, encoder.cast).\n"
        "  SRAM at step 0: 810,040 bytes (bound), limit 638,976, 171,064 too many\n"
        "  graph nodes: encoder.weights\n"
        "  next: make what lives at that step 171,064 bytes smaller: split the operations named above over "
        "more tiles, or lower their precision"
    )


def test_no_gap_is_long_enough() -> None:
    reserved = tuple(
        Reserved(tile=TileId(0), start=start, size=0x1000) for start in range(SRAM_BASE, SRAM_END, 0x10000)
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=(Life(byte_count=0xF004, node="mlp.down"),))), reserved)
    assert str(caught.value) == (
        "does not fit (placement): tile 0: what lives at step 0 needs more than is free in the longest gap "
        "of SRAM, however it is placed; alone it cannot be placed: buffer 0 (61,444 bytes, step 0, mlp.down)"
        ".\n"
        "  the longest gap of SRAM at step 0: 61,444 bytes (bound), limit 61,440, 4 too many\n"
        "  graph nodes: mlp.down\n"
        "  next: make the longest range 4 bytes shorter: split the operation named above over more tiles, or "
        "reserve other ranges"
    )


def test_proven_by_search() -> None:
    """Three buffers have the bytes that are left, but the space between reserved ranges is cut unevenly."""
    middle = INTERLEAVED.base + 1000
    reserved = (*_only(INTERLEAVED.base, 3000), Reserved(tile=TileId(0), start=middle, size=1000))
    lives = (
        Life(byte_count=800, node="a"),
        Life(byte_count=600, node="b"),
        Life(byte_count=596, node="c"),
        Life(byte_count=4, node="d"),
    )
    with pytest.raises(DoesNotFit) as caught:
        place(program_of(Lives(lives=lives)), reserved)
    assert str(caught.value) == (
        "does not fit (placement): tile 0: no placement exists, though the bytes would suffice at every "
        "step: a search of all placements ended after 3 decisions; these cannot coexist, and the proof needs "
        "each of them: buffer 0 (800 bytes, step 0, a), buffer 1 (600 bytes, step 0, b), "
        "buffer 2 (596 bytes, step 0, c); live at step 0, the fullest: buffer 0 (800 bytes, step 0, a), "
        "buffer 1 (600 bytes, step 0, b), buffer 2 (596 bytes, step 0, c), buffer 3 (4 bytes, step 0, d).\n"
        "  SRAM at step 0: 2,000 bytes (bound), limit 2,000\n"
        "  the longest gap of SRAM at step 0: 800 bytes (bound), limit 1,000\n"
        "  graph nodes: a, b, c\n"
        "  next: shorten a life, drop a separation or an alignment, or split an operation among those named "
        "above; or reserve other ranges"
    )


def test_proven_by_search_among_separated_buffers() -> None:
    """Three buffers that must be in different elements, and two elements."""
    lives = tuple(Life(byte_count=64, node=name) for name in ("left", "right", "sum"))
    program = program_of(Lives(lives=lives, apart=((0, 1), (0, 2), (1, 2))))
    with pytest.raises(DoesNotFit) as caught:
        place(program, _only(INTERLEAVED.base, 0x10000))
    assert str(caught.value) == (
        "does not fit (placement): tile 0: no placement exists, though the bytes would suffice at every "
        "step: a search of all placements ended after 6 decisions; these cannot coexist, and the proof needs "
        "each of them: buffer 0 (64 bytes, step 0, left), buffer 1 (64 bytes, step 0, right), "
        "buffer 2 (64 bytes, step 0, sum).\n"
        "  SRAM at step 0: 192 bytes (bound), limit 65,536\n"
        "  the longest gap of SRAM at step 0: 64 bytes (bound), limit 65,536\n"
        "  graph nodes: left, right, sum\n"
        "  next: shorten a life, drop a separation or an alignment, or split an operation among those named "
        "above; or reserve other ranges"
    )


def test_unknown_is_not_called_infeasible() -> None:
    """The same as above without a search."""
    lives = tuple(Life(byte_count=64, node=name) for name in ("left", "right", "sum"))
    program = program_of(Lives(lives=lives, apart=((0, 1), (0, 2), (1, 2))))
    with pytest.raises(DoesNotFit) as caught:
        place(program, _only(INTERLEAVED.base, 0x10000), nodes=0)
    assert str(caught.value) == (
        "does not fit (placement): tile 0: none of 6 orders of placing 3 requests fits; that none can is not "
        "proven; live at the fullest step, 0: buffer 0 (64 bytes, step 0, left), "
        "buffer 1 (64 bytes, step 0, right), buffer 2 (64 bytes, step 0, sum).\n"
        "  SRAM at step 0: 192 bytes (bound), limit 65,536\n"
        "  the longest gap of SRAM at step 0: 64 bytes (bound), limit 65,536\n"
        "  graph nodes: sum\n"
        "  next: leave more room: split the operations named above, or reserve less"
    )
