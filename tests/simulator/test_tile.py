"""Tiles side by side, perturbed functions, and what a tile costs in memory."""

import numpy as np
import pytest

from compiler.simulator.tile import Perturbation, TileOptions, default_options, make_tiles
from compiler.target.isa_decisions import our_decisions
from compiler.target.tiles import TILE_COUNT
from tests.simulator.streams import Words, stream_arithmetic

GIBIBYTE = 1 << 30
FUNCTIONS = [
    f"f32{name}" for name in ("exp", "exp2", "ln", "log2", "sigm", "tanh", "oox", "oorx", "sqrt")
] + [f"f16v2{name}" for name in ("exp", "exp2", "ln", "log2", "sigm", "tanh")]


def results(name: str, words: Words, perturbation: Perturbation) -> Words:
    options = TileOptions(decisions=our_decisions(), perturbation=perturbation)
    return stream_arithmetic(f"{name} $a4, $a0", words, options=options)[:, :1].copy()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_perturbed_functions_are_off_by_one_place(name: str) -> None:
    random = np.random.default_rng(2)
    halves = name.startswith("f16")
    numbers = random.uniform(0.1, 3.0, (500, 8 if halves else 4))
    words = numbers.astype(np.float16 if halves else np.float32).view(np.uint32)
    exact, up, down, mixed = (
        results(name, words, mode).view(np.int16 if halves else np.int32) & (0x7FFF if halves else 0x7FFFFFFF)
        for mode in Perturbation
    )
    moves = exact != 0  # a zero stays
    assert (up - exact == moves).all()
    assert (exact - down == moves).all()
    assert (np.abs(mixed - exact) == moves).all()
    assert len(np.unique(np.sign(mixed - exact))) == 2 + (not moves.all())


@pytest.mark.parametrize("mode", [Perturbation.UP, Perturbation.DOWN, Perturbation.MIXED])
def test_special_results_are_not_perturbed(mode: Perturbation) -> None:
    """Zeros, infinities, NaN and the largest finite result stay what they are."""
    words = np.zeros((4, 4), np.uint32)
    words[:, 0] = np.array([-np.inf, np.inf, np.nan, 1000.0], np.float32).view(np.uint32)
    exact = results("f32exp", words, Perturbation.NONE)
    assert np.array_equal(exact, results("f32exp", words, mode))
    words[:, 0] = np.array([0x4C004C00, 0xFC00FC00, 0x7C007C00, 0x7E007E00], np.uint32)
    exact = results("f16v2exp", words, Perturbation.NONE)
    assert exact[0, 0] == 0x7BFF7BFF
    assert np.array_equal(exact, results("f16v2exp", words, mode))


def test_perturbation_leaves_arithmetic_alone() -> None:
    words = np.random.default_rng(0).integers(0, 1 << 32, (200, 4), dtype=np.uint32)
    options = TileOptions(decisions=our_decisions(), perturbation=Perturbation.UP)
    for body in ("f16v4add $a4:5, $a0:1, $a2:3", "f32v2mul $a4:5, $a0:1, $a2:3"):
        assert np.array_equal(stream_arithmetic(body, words), stream_arithmetic(body, words, options=options))


def test_all_tiles_of_the_chip_fit_three_gigabytes() -> None:
    """Even if every word of every array of every tile were used."""
    (tile,) = make_tiles(1, TileOptions(decisions=our_decisions(), track=True))
    assert tile.bytes_held * TILE_COUNT <= 3 * GIBIBYTE


def test_tiles_do_not_share_memory() -> None:
    first, second = make_tiles(2, default_options())
    first.place(0x60000, b"\x01\x02\x03\x04")
    first.set_main_register(0, 1, 5)
    assert not second.written(0x60000, 4).any()
    assert second.main_register(0, 1) == 0
