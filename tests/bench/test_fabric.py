"""Time of the whole-chip route tables: budget one second for all ordered pairs on one core."""

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.target import fabric
from compiler.target.tiles import TILE_COUNT


def test_all_routes_of_the_chip(benchmark: BenchmarkFixture) -> None:
    """Direction, time to mux and latency of 2,165,312 ordered pairs and the 1,472 self routes."""
    every = np.arange(TILE_COUNT)

    def routes() -> int:
        directions = fabric.directions(every[:, None], every)
        times = fabric.times_to_mux(every[:, None], every)
        latencies = fabric.send_to_writes(every[:, None], every)
        return int(directions.sum() + times.sum() + latencies.sum())

    benchmark(routes)
