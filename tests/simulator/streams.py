"""One instruction over many operands: a loop that loads, executes and stores, run on one worker."""

import numpy as np
import numpy.typing as npt

from compiler.simulator.harness import load, run_workers
from compiler.simulator.tile import Stop, Tile, TileOptions, default_options
from tests.simulator.programs import DATA, worker_program

Words = npt.NDArray[np.uint32]

CHUNK = 8192
OUTPUT = 0xA8000


def _run(text: str, inputs: Words, outputs: int, options: TileOptions | None) -> Words:
    program = worker_program(text)
    tile = Tile(default_options() if options is None else options)
    load(tile, program)
    parts: list[Words] = []
    for first in range(0, len(inputs), CHUNK):
        part = inputs[first : first + CHUNK]
        tile.place(DATA, np.ascontiguousarray(part))
        tile.set_main_register(0, 2, DATA)
        tile.set_main_register(0, 3, OUTPUT)
        tile.set_main_register(0, 4, len(part) - 1)
        run = run_workers(tile, program.address_of("main"), 0, workers=(0,))
        assert run.stop is Stop.IDLE, run.fault
        words = np.frombuffer(tile.read(OUTPUT, 4 * outputs * len(part)), np.uint32)
        parts.append(words.reshape(len(part), outputs))
    return np.concatenate(parts)


def stream_main(body: str, inputs: Words, *, setup: str = "", options: TileOptions | None = None) -> Words:
    """Run ``body`` with $m5, $m6 and $m7 loaded from the columns of ``inputs`` [n, 3]; the result is $m7."""
    assert inputs.shape[1] == 3
    text = f"""
    {setup}
.Lloop:
    ld32step $m5, $m15, $m2+=, 1
    ld32step $m6, $m15, $m2+=, 1
    ld32step $m7, $m15, $m2+=, 1
    {body}
    st32step $m7, $m15, $m3+=, 1
    brnzdec $m4, .Lloop
    """
    return _run(text, inputs, 1, options)[:, 0]


def stream_arithmetic(
    body: str, inputs: Words, *, setup: str = "", options: TileOptions | None = None
) -> Words:
    """Run ``body`` with $a0:3 loaded from ``inputs`` [n, 4]; the result is $a4:5, zeroed before: [n, 2]."""
    assert inputs.shape[1] == 4
    text = f"""
    {setup}
.Lloop:
    ld64step $a0:1, $m15, $m2+=, 1
    ld64step $a2:3, $m15, $m2+=, 1
    or64 $a4:5, $azeros, $azeros
    {body}
    st64step $a4:5, $m15, $m3+=, 1
    brnzdec $m4, .Lloop
    """
    return _run(text, inputs, 2, options)


def set_float_control(value: int) -> str:
    """Text that writes FP_CTL."""
    return f"ldconst $a7, {value:#x}\nuput $FP_CTL, $a7\n"
