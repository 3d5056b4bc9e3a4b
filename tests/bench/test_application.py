"""An application of all tiles: time and memory to load it and reach the first barrier, and time of a run."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from compiler.package.records import Application
from compiler.simulator.application import SimulationOptions, Simulator
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import PhysicalTile
from tests.simulator.packages import ATTACH, AWAY, BARRIER, END, ROW, STEP, application, image
from tests.simulator.test_application import rows

Benchmark = Any

FULL = 630_000
"""Bytes of each image in the largest case: nearly all that a loader can fill."""


def full_application() -> Application:
    """Every tile has its own content in nearly all of its memory."""
    text = ATTACH + AWAY + END
    random = np.random.default_rng(1)
    words = random.integers(0, 1 << 32, FULL // 4, dtype=np.int64)
    return application(
        [image(tile, text, {0x4E000: words[: (FULL - 0x2000) // 4]}) for tile in range(TILE_COUNT)]
    )


def exchanging_application(steps: int) -> Application:
    """Many phases in which three tiles exchange and the others stay away."""
    idle = ATTACH + steps * AWAY + END
    busy = ATTACH + steps * STEP + END + BARRIER
    data = {0: {0x60000: range(10)}, 128: {0x61000: range(20)}}
    own = rows()
    return application(
        [
            image(tile, busy, {ROW: own[tile]} | data.get(tile, {})) if tile in own else image(tile, idle)
            for tile in range(TILE_COUNT)
        ]
    )


def measured() -> tuple[float, int]:
    """Seconds, and most bytes resident beyond the package, of loading and starting a full application."""
    import time

    package = full_application()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    simulator = Simulator(package)
    simulator.start()
    seconds = time.perf_counter() - start
    return seconds, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def test_loading_full_images_and_reaching_the_first_barrier(benchmark: Benchmark) -> None:
    """Targets: 10 seconds and 3 GB for SRAM and its marks, in a process of its own."""
    root = Path(__file__).parents[2]
    program = "from tests.bench.test_application import measured; print(*measured())"

    def once() -> tuple[float, int]:
        run = subprocess.run(
            [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=root
        )
        seconds, size = run.stdout.split()
        return float(seconds), int(size)

    seconds, size = benchmark.pedantic(once, rounds=1)
    benchmark.extra_info |= {"seconds": seconds, "bytes": size}
    assert size < 3_000_000_000


def test_phases_of_a_chip_in_which_few_tiles_exchange(benchmark: Benchmark) -> None:
    """Time is that of 50 barriers with 1,472 tiles."""
    package = exchanging_application(50)

    def setup() -> tuple[tuple[Simulator], dict[str, object]]:
        simulator = Simulator(package, SimulationOptions(threads=2))
        simulator.initialize()
        return (simulator,), {}

    def run(simulator: Simulator) -> None:
        assert simulator.run().is_complete
        assert simulator.tile(PhysicalTile(64)).written(0x70000, 120).all()

    benchmark.pedantic(run, setup=setup, rounds=2)
    benchmark.extra_info["barriers"] = 50
