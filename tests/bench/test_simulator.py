"""Speed of the tile machine on one core: instructions a second over six workers."""

import time
from typing import cast

from pytest_benchmark.fixture import BenchmarkFixture

from compiler.simulator.harness import load, run_workers
from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.programs import DATA, INTERLEAVED, worker_program

MIX = f"""
    setzi $m2, {DATA:#x}
    setzi $m3, 0
    setzi $m4, 20000
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


def amp_text(mnemonic: str, flags: str) -> str:
    """A loop of loads, stores and matrix instructions, as in a product of one panel."""
    phases = "".join(
        f"    {{ ldst64pace $a0:1, $a2:3, $m8:9+=, $m7, 5 ;"
        f" {mnemonic} $a2:3, $a0:1, $azeros, {flags}_E4_P{phase} }}\n"
        for phase in range(4)
    )
    return f"""
    setzi $m2, {DATA:#x}
    setzi $m3, {INTERLEAVED:#x}
    setzi $m7, 0
    st64 $azeros, $m2, 0
    setzi $a7, 8
    uput $FP_CLR, $a7
    or64 $a0:1, $azeros, $azeros
    or64 $a2:3, $azeros, $azeros
    tapack $m8:9, $m2, $m15, $m3
    setzi $m4, 8000
    .align 8
    nop
    rpt $m4, 3
{phases}
"""


def measure(benchmark: BenchmarkFixture, text: str) -> None:
    """Time runs of a text on six workers; the rates are of the fastest, in processor time."""
    program = worker_program(text)
    tile = Tile(default_options())
    load(tile, program)
    entry = program.address_of("main")
    runs: list[tuple[float, int, int, int]] = []

    def once() -> None:
        before = (tile.instructions, tile.matrix_instructions, tile.cycle)
        start = time.process_time()
        assert run_workers(tile, entry, 0).stop is Stop.IDLE
        seconds = time.process_time() - start
        runs.append(
            (
                seconds,
                tile.instructions - before[0],
                tile.matrix_instructions - before[1],
                tile.cycle - before[2],
            )
        )

    benchmark.pedantic(  # pyright: ignore[reportUnknownMemberType]  # it declares no types
        once, rounds=20, iterations=1, warmup_rounds=1
    )
    seconds, instructions, matrix, cycles = min(runs)
    extra = cast("dict[str, float]", benchmark.extra_info)
    for name, count in (("instructions", instructions), ("matrix instructions", matrix), ("issues", cycles)):
        extra[f"million {name} a second"] = round(count / seconds / 1e6, 1)


def test_mixed_integer_and_float_instructions(benchmark: BenchmarkFixture) -> None:
    """Target: 30 million instructions a second."""
    measure(benchmark, MIX)


def test_products_of_halves(benchmark: BenchmarkFixture) -> None:
    """Target: 8 million matrix instructions a second."""
    measure(benchmark, amp_text("f16v4hihov4amp", "TAMP_F16V4"))


def test_products_of_bytes(benchmark: BenchmarkFixture) -> None:
    """Target: 8 million matrix instructions a second."""
    measure(benchmark, amp_text("f8v8hihov4amp", "TAMP_F8V8"))
