"""Placements are the same bytes whatever the hash seed, and whether one or two processes work."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

_PROGRAM = """
import hashlib
from compiler.placement.place import Placed, attempt
from compiler.placement.plain import place_plain
from tests.placement.constrained import constrained
from tests.placement.test_plain import cut
digest = hashlib.sha256()
for seed in (3, 4, 5, 6):
    outcome = attempt(*constrained(seed, 12, 0.04), 20_000)
    digest.update(type(outcome).__name__.encode())
    if isinstance(outcome, Placed):
        digest.update(outcome.placement.address.tobytes() + outcome.placement.stride.tobytes())
digest.update(place_plain(cut(4, 90, 150, 1024), 1024).offsets.tobytes())
print(digest.hexdigest())
"""


def _digest(hash_seed: int) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return finished.stdout


@pytest.mark.slow
def test_the_same_bytes_for_every_hash_seed_and_number_of_workers() -> None:
    alone = _digest(0)
    with ThreadPoolExecutor(2) as workers:
        together = list(workers.map(_digest, (1, 2)))
    assert together == [alone, alone]
