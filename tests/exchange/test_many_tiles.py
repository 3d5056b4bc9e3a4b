"""Phases of up to 64 tiles with every kind of transfer, and the same bytes whatever the hash seed."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.exchange.check import check_phase
from compiler.exchange.phase import schedule_phase
from compiler.target.tiles import TILE_COUNT
from tests.exchange.memory import carry_out, random_memory, run
from tests.exchange.phases import Transfer, demand, placed

REPOSITORY = Path(__file__).parent.parent.parent

SPAN = 0x200
"""Bytes from one destination to the next."""


def many_tiles(seed: int, tile_count: int, count: int) -> list[Transfer]:
    """Unicasts, multicasts, loopbacks, whole pairs, receive-then-forward; few lengths, so that lanes fill."""
    random = np.random.default_rng(seed)
    bases: list[int] = (4 * random.permutation(TILE_COUNT // 4)[: tile_count // 4]).tolist()
    tiles = [tile for base in bases for tile in range(base, base + 4)]
    lengths: list[int] = random.choice([2, 8, 12, 27, 28, 54, 64], 3).tolist()
    transfers: list[Transfer] = []
    for number in range(count):
        source = int(random.choice(tiles))
        words = int(random.choice(lengths))
        others = [tile for tile in tiles if tile != source]
        kind = random.random()
        if kind < 0.4:
            chosen = [int(random.choice(others))]
        elif kind < 0.7:
            chosen = random.permutation(others)[: int(random.integers(2, 12))].tolist()
        else:
            away = [tile for tile in others if tile != source ^ 2]
            chosen = [tile for one in random.permutation(away)[:3].tolist() for tile in (one, one ^ 2)]
        recipients = dict.fromkeys(chosen, 655360 + SPAN * number)
        if kind < 0.1 or kind > 0.9:
            recipients[source] = 0xC0000 + SPAN * number
            if kind > 0.9:
                recipients[source ^ 2] = 0xC0000 + SPAN * number
        if all(tile == source for tile in recipients):
            continue
        read = 0x60000 + 8 * int(random.integers(0, 512))
        if transfers and random.random() < 0.1:  # forward what an earlier one brought
            earlier = transfers[int(random.integers(0, len(transfers)))]
            source, read, _ = earlier.recipients[0]
            words = min(words, earlier.words)
            recipients.pop(source, None)
            if not recipients:
                continue
        transfers.append(
            Transfer(
                source=source,
                address=read,
                words=words,
                recipients=tuple((tile, address, 0) for tile, address in recipients.items()),
            )
        )
    return transfers


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from((4, 16, 64)), st.integers(1, 60))
def test_phases_of_many_tiles_deliver_exactly(seed: int, tile_count: int, count: int) -> None:
    """XR-06: no fault in the simulator's fabric, every byte where it belongs, and the checker agrees."""
    transfers = many_tiles(seed, tile_count, count)
    result = schedule_phase(demand(transfers))
    found = check_phase(placed(transfers), 1, result.rows, result.patches)
    assert not found, [str(finding) for finding in found]
    memory = random_memory(result.rows.tiles)
    expected = memory.copy()
    carry_out(expected, result.rows.tiles, transfers, 0)
    run(result, memory, 0)
    assert (memory == expected).all()


def digest_of_rows() -> str:
    """Of a phase in which every order has its part."""
    rows = schedule_phase(demand(many_tiles(7, 64, 300))).rows
    return hashlib.sha256(rows.words.tobytes()).hexdigest()


def test_rows_are_the_same_for_any_hash_seed() -> None:
    here = digest_of_rows()
    code = "from tests.exchange.test_many_tiles import digest_of_rows; print(digest_of_rows())"
    for seed in ("0", "17"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.strip() == here
