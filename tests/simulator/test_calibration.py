"""Cycles against what was measured on hardware: add, reduction, copy call and patch loop."""

import numpy as np
import pytest

from compiler.simulator.harness import Run, call, load
from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.loops import add_program, copy_program, patch_program, reduce_program

LEFT = 0x60000
RIGHT = 0x90000
OUT = 0xC0000
TOLERANCE = 0.03


def near(cycles: int, measured: float) -> bool:
    return abs(cycles - measured) <= TOLERANCE * measured


@pytest.mark.parametrize(("elements", "measured"), [(1152, 1368), (2152, 2124)])
def test_measured_adds(elements: int, measured: int) -> None:
    random = np.random.default_rng(elements)
    left, right = (random.normal(size=elements).astype(np.float16) for _ in range(2))
    tile = Tile(default_options())
    program = add_program()
    load(tile, program)
    tile.place(LEFT, left)
    tile.place(RIGHT, right)
    registers = {2: OUT, 3: LEFT, 4: RIGHT, 5: elements, 6: elements, 7: elements}
    run = call(tile, program.address_of("add_f16"), registers)
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.read(OUT, 2 * elements) == (left + right).tobytes()
    assert near(run.cycles, measured)


@pytest.mark.parametrize(
    ("elements", "partials", "measured"),
    [
        (8, 2, 360),
        (56, 2, 438),
        (1472, 4, 3444),
        (1472, 2, 2700),
        (2208, 4, 4974),
        (576, 15, 3090),
        (2208, 28, 18_222),
    ],
)
def test_measured_reductions(elements: int, partials: int, measured: int) -> None:
    rows = np.random.default_rng(elements).normal(size=(partials, elements)).astype(np.float16)
    tile = Tile(default_options())
    program = reduce_program()
    load(tile, program)
    tile.place(LEFT, rows[0])
    tile.place(RIGHT, rows[1:])
    registers = {2: OUT, 3: LEFT, 4: RIGHT, 5: partials - 1, 6: elements}
    run = call(tile, program.address_of("reduce_sum_f16"), registers)
    assert run.stop is Stop.RETURNED, run.fault
    expected = rows[0]
    for row in rows[1:]:
        expected = expected + row
    out = np.frombuffer(tile.read(OUT, 2 * elements), np.float16)
    assert np.array_equal(out, expected)
    assert near(run.cycles, measured)


def copied(words: int) -> Run:
    tile = Tile(default_options())
    program = copy_program()
    load(tile, program)
    data = np.random.default_rng(0).bytes(8 * words)
    tile.place(0x70000, data)
    tile.place(0x5C000, np.array([words // 6, words % 6], np.uint32))
    run = call(tile, program.address_of("caller"), {6: 0x5C000})
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.read(0x60000, 8 * words) == data
    return run


def test_copy_call_without_data() -> None:
    """Two loads of the caller stand for constants, and its own return is not part of the call."""
    overhead = copied(0).cycles - 2 * 5 - 6
    assert near(overhead, 288)
    assert copied(600).cycles - copied(0).cycles == 12 * 100


def test_serial_patch_loop() -> None:
    """87 words took 2,491 cycles, 28.6 each."""
    words = 87
    descriptors = np.zeros((words, 3), np.uint32)
    descriptors[:, 0] = OUT + 4 * np.arange(words)
    descriptors[:, 1] = 7 * np.arange(words)
    descriptors[:, 2] = 3
    tile = Tile(default_options())
    program = patch_program()
    load(tile, program)
    tile.place(LEFT, descriptors)
    run = call(tile, program.address_of("patch"), {1: 5, 2: LEFT, 3: words})
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.read(OUT, 4 * words) == (descriptors[:, 1] + 15).astype(np.uint32).tobytes()
    assert near(run.cycles, 2491)
