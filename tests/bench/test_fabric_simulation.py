"""Speed of the exchange fabric: delivered words a second on one core; the target is 50 million."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar, cast

import numpy as np
import pytest

from compiler.isa.rows import ControlKind, Row, decode_row, planned_row
from compiler.simulator.fabric import MEMORY_WORDS, Phase, PhaseResult, run_phase
from compiler.target import fabric, tiles
from compiler.target.units import Events, PhysicalTile

Result = TypeVar("Result")


class Benchmark(Protocol):
    """What is used of the fixture, which declares no types."""

    stats: Mapping[str, float]
    extra_info: dict[str, float]

    def pedantic(self, target: Callable[[], Result], *, warmup_rounds: int, rounds: int) -> Result:
        """Time calls; the result of the last."""
        ...


def all_tiles(words: int, messages: int) -> Phase:
    """Every tile sends and receives so many messages, each from another tile."""
    everyone = np.arange(tiles.TILE_COUNT)
    sends: list[list[tuple[int, int, int, int]]] = [[] for _ in everyone]
    controls: list[list[tuple[int, ControlKind, int]]] = [[] for _ in everyone]
    for message in range(messages):
        receivers = np.roll(everyone, 1 + 37 * message)
        slot, offset = 100 + message * (words + 220), message * words * 4
        selects = slot + fabric.times_to_mux(everyone, receivers) + fabric.SELECT_AFTER_PASSING
        writes = selects + fabric.select_to_writes(receivers)
        directions = fabric.directions(everyone, receivers).tolist()
        for source, receiver, select, write, direction in zip(
            everyone.tolist(), receivers.tolist(), selects.tolist(), writes.tolist(), directions, strict=True
        ):
            sends[source].append((slot, words, (0x60000 + offset) // 4, direction))
            controls[receiver] += [
                (select, ControlKind.XPIC0, source),
                (select + words, ControlKind.XPIC0, 0x640),
                (write, ControlKind.PIC0, (0xA0000 + offset) // 4),
            ]
    horizon = Events(100 + messages * (words + 220) + 300)
    return Phase.of(
        {
            PhysicalTile(tile): planned_row(horizon=horizon, sends=sends[tile], controls=controls[tile])
            for tile in everyone.tolist()
        }
    )


@pytest.mark.parametrize(("words", "messages"), [(100, 40), (1000, 10)])
def test_delivered_words(benchmark: Benchmark, words: int, messages: int) -> None:
    phase = all_tiles(words, messages)
    memory = np.ones((tiles.TILE_COUNT, MEMORY_WORDS), dtype=np.uint32)
    shadow = np.full(memory.shape, 15, dtype=np.uint8)

    def run() -> PhaseResult:
        return run_phase(phase, memory, shadow)

    result = benchmark.pedantic(run, warmup_rounds=1, rounds=5)
    assert result.faults == ()
    assert result.delivered_words == words * messages * tiles.TILE_COUNT
    rate = result.delivered_words / benchmark.stats["min"] / 1e6
    benchmark.extra_info["million words a second"] = round(rate, 1)


def test_decoded_rows(benchmark: Benchmark) -> None:
    """All rows of a phase: 1,472 of 400 words."""
    row = np.array([0x40A00003, 0x64000040, 0x61D9C000, 0x6400C640] * 100 + [0x43A00000], dtype=np.uint32)

    def decode_all() -> list[Row]:
        return [cast("Row", decode_row(row)) for _ in range(tiles.TILE_COUNT)]

    rows = benchmark.pedantic(decode_all, warmup_rounds=1, rounds=3)
    assert all(len(decoded.controls.event) == 300 for decoded in rows)
