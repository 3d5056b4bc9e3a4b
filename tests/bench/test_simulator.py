"""Speed of the tile machine on one core: instructions a second over six workers."""

from typing import Any

import pytest

from compiler.simulator.harness import load, run_workers
from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.programs import DATA, worker_program

Benchmark = Any

MIX = f"""
    setzi $m2, {DATA:#x}
    setzi $m3, 0
    setzi $m4, 3000
    setzi $a0, 0x3c00
    setzi $a1, 0x3c00
    setzi $a2, 0x4000
    setzi $a3, 0x4000
    st64 $a0:1, $m2, 0
.Lloop:
    add $m5, $m3, 3
    and $m5, $m5, 0xff8
    ld64 $a4:5, $m2, $m15, 0
    .align 8
    {{ add $m3, $m3, 1 ; f16v4add $a6:7, $a4:5, $a0:1 }}
    {{ shl $m6, $m3, 3 ; f32mul $a1, $a1, $a15 }}
    {{ nop ; f16v4mul $a2:3, $a6:7, $a0:1 }}
    {{ st64 $a2:3, $m2, $m15, 1 ; f32v2add $a4:5, $a6:7, $a0:1 }}
    or $m7, $m6, $m5
    brnzdec $m4, .Lloop
"""

AMP = f"""
    setzi $m2, {DATA:#x}
    setzi $a0, 0x3c00
    setzi $a1, 0
    setzi $m4, 500
.Lloop:
    .align 8
    nop
    rpt 4, 3
    {{ nop ; f16v4hihov4amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P0 }}
    {{ nop ; f16v4hihov4amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P1 }}
    {{ nop ; f16v4hihov4amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P2 }}
    {{ nop ; f16v4hihov4amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P3 }}
    brnzdec $m4, .Lloop
"""


def measure(benchmark: Benchmark, text: str) -> Tile:
    program = worker_program(text)
    tile = Tile(default_options())
    load(tile, program)
    entry = program.address_of("main")

    def once() -> None:
        assert run_workers(tile, entry, 0).stop is Stop.IDLE

    once()
    before = (tile.instructions, tile.matrix_instructions, tile.cycle)
    once()
    counts = (
        tile.instructions - before[0],
        tile.matrix_instructions - before[1],
        (tile.cycle - before[2]),
    )
    benchmark.pedantic(once, rounds=7, iterations=1, warmup_rounds=1)
    best = benchmark.stats.stats.min
    benchmark.extra_info["million instructions a second"] = round(counts[0] / best / 1e6, 1)
    benchmark.extra_info["million issues a second"] = round(counts[2] / best / 1e6, 1)
    benchmark.extra_info["million matrix instructions a second"] = round(counts[1] / best / 1e6, 1)
    return tile


def test_mixed_integer_and_float_instructions(benchmark: Benchmark) -> None:
    measure(benchmark, MIX)
    assert benchmark.extra_info["million instructions a second"] > 0


@pytest.mark.benchmark
def test_matrix_instructions(benchmark: Benchmark) -> None:
    measure(benchmark, AMP)
    assert benchmark.extra_info["million matrix instructions a second"] > 0
