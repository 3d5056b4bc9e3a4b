"""``tilewright exchange bench``: patterns are what they say, and every number says what kind it is."""

import re

import numpy as np
import pytest

from compiler.target.memory import ranges_share_an_element
from compiler.target.tiles import TILE_COUNT
from pipeline import cli
from pipeline.exchange_patterns import PATTERNS, phase_of


@pytest.mark.parametrize(
    ("pattern", "transfers", "recipients"),
    [
        ("balanced", 16 * 1472, 16 * 1472),
        ("groups", 46 * 32 * 31, 46 * 32 * 31),
        ("strided-groups", 46 * 32 * 31, 46 * 32 * 31),
        ("gemm", 2 * 1472, 1472 * (45 + 31)),
        ("mixed", 16 * 1472, 16 * 1472),
        ("hot", 9 * 1472, 9 * 1472),
        ("multicast", 5562, 118_812),
        ("scattered", 5562, 118_812),
    ],
)
def test_a_pattern_has_its_numbers(pattern: str, transfers: int, recipients: int) -> None:
    moves = phase_of(pattern, 3)
    assert (len(moves.source), len(moves.receiver)) == (transfers, recipients)
    assert not moves.is_loopback.any()


@pytest.mark.parametrize(("pattern", "words"), [("balanced", 64), ("groups", 12), ("strided-groups", 12)])
def test_balanced_patterns_load_every_tile_alike(pattern: str, words: int) -> None:
    moves = phase_of(pattern, 1)
    assert (moves.words == words).all()
    for end in (moves.source, moves.receiver):
        assert len(np.unique(np.bincount(end, minlength=TILE_COUNT))) == 1


def test_what_a_tile_sends_and_what_it_receives_share_no_element() -> None:
    moves = phase_of("mixed", 0)
    order = np.argsort(moves.receiver, kind="stable")
    some = order[:: len(order) // 500]
    for recipient in some.tolist():
        sends = np.flatnonzero(moves.source == moves.receiver[recipient])
        assert not ranges_share_an_element(
            moves.address[sends],
            4 * moves.words[sends],
            moves.receiver_address[recipient : recipient + 1],
            4 * moves.recipient_words[recipient : recipient + 1],
        ).any()


def test_a_seed_gives_the_same_phase_again_and_another_seed_another() -> None:
    first, again, other = (phase_of("mixed", seed) for seed in (5, 5, 6))
    assert first.words.tolist() == again.words.tolist()
    assert first.words.tolist() != other.words.tolist()


def test_bench_prints_numbers_with_their_kinds(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["exchange", "bench", "--pattern", "hot", "--seed", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("pattern hot, seed 2: 13,248 transfers asked for")
    for line in lines[1:]:
        if not line.startswith("limiting tile: "):
            assert re.search(r"\((bound|scheduled|measured)\)", line), line


def test_an_unknown_pattern_is_refused_with_all_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["exchange", "bench", "--pattern", "none"]) == 1
    assert capsys.readouterr().err == (
        "invalid input (exchange bench): --pattern: there is no pattern 'none'.\n"
        f"  next: choose one of {', '.join(PATTERNS)}\n"
    )


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "", "9" * 5000])
def test_a_seed_that_is_no_number_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["exchange", "bench", "--pattern", "hot", "--seed", text])
    assert f"invalid number from 0 on value: {text!r}" in capsys.readouterr().err
