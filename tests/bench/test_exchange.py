"""Time of one exchange phase: 9,900 transfers, every one of 100 tiles to every other."""

from typing import Any

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.exchange.check import check_phase
from compiler.exchange.demand import demand_of
from compiler.exchange.ir import PlacedTransfers
from compiler.exchange.order import chosen_order
from compiler.exchange.phase import schedule_phase
from compiler.exchange.rows import encode_rows
from compiler.exchange.timing import schedule
from compiler.low.ids import StepId

TILES = 100
SPAN = 0x400


@pytest.fixture(scope="module")
def asked() -> PlacedTransfers:
    """256 words from every tile to every other; sources and destinations in different elements."""
    source, receiver = (axis.reshape(-1) for axis in np.mgrid[0:TILES, 0:TILES])
    source, receiver = source[source != receiver], receiver[source != receiver]
    count = len(source)
    nothing = np.zeros(count, dtype=np.int64)
    return PlacedTransfers(
        row=np.arange(count),
        node=nothing,
        source=4 * source,
        address=0x60000 + SPAN * receiver,
        stride=nothing,
        words=np.full(count, SPAN // 4),
        first_recipient=np.arange(count + 1),
        receiver=4 * receiver,
        receiver_address=0xA0000 + SPAN * source,
        receiver_stride=nothing,
    )


@pytest.mark.parametrize("part", ["demand", "order", "timing", "rows", "check"])
def test_parts_of_a_phase(benchmark: BenchmarkFixture, asked: PlacedTransfers, part: str) -> None:
    wanted = demand_of(asked, step=StepId(0), iterations=1, nodes=("node",))
    order = chosen_order(wanted).order
    times = schedule(wanted, order)
    phase = schedule_phase(wanted)
    calls: dict[str, Any] = {
        "demand": lambda: demand_of(asked, step=StepId(0), iterations=1, nodes=("node",)),
        "order": lambda: chosen_order(wanted),
        "timing": lambda: schedule(wanted, order),
        "rows": lambda: encode_rows(wanted, times),
        "check": lambda: check_phase(asked, 1, phase.rows, phase.patches),
    }
    benchmark(calls[part])
