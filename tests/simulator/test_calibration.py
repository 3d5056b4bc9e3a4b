"""Cycles against what was measured on hardware: add, reduction, copy call and patch loop.

**What is fitted.** The reference's workers are compiled code that is not published; how long they prepare
before their loop is known only as the constant term of a measured formula. Each of the add, reduction and
copy programs idles for a number of instructions that makes its constant term right (``loops``): one free
number for each of three kernels. The patch loop and the matrix kernels have none.

**What is verified.** Everything that the fit cannot touch: the cycles that one more wave of elements, one
more remote partial or one more word costs, exactly as the formulas measured on hardware have it, which rests
on the barrel of six workers, the share of each worker and the length of the steady loop; and that one
constant for each kernel serves all its points. Of call, launch and rendezvous the constants (504, 282 and 246
cycles) show only that they are no longer than that: the fit needs a positive number of instructions.
"""

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


def cycles_of_add(elements: int) -> int:
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
    return run.cycles


@pytest.mark.parametrize(("elements", "measured"), [(1152, 1368), (2152, 2124)])
def test_measured_adds(elements: int, measured: int) -> None:
    """The constant term is fitted; two points, 42 waves apart, do not both fit by it."""
    assert near(cycles_of_add(elements), measured)


def test_a_wave_of_an_add_takes_18_cycles() -> None:
    """No fit: three bundles of each worker for 24 elements."""
    assert {cycles_of_add(24 * waves + 24) - cycles_of_add(24 * waves) for waves in (1, 2, 30)} == {18}


def cycles_of_reduction(elements: int, partials: int) -> int:
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
    return run.cycles


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
    """The constant term is fitted, once for the seven points; it is 1.5 % of the last one."""
    assert near(cycles_of_reduction(elements, partials), measured)


def test_a_wave_of_a_reduction_takes_11_instructions_and_2_for_each_partial() -> None:
    """No fit: what one more wave of 48 elements and one more remote partial cost, as measured."""
    for partials in (2, 5):
        wave = cycles_of_reduction(240, partials) - cycles_of_reduction(192, partials)
        assert wave == 6 * (11 + 2 * (partials - 1))
    assert cycles_of_reduction(240, 6) - cycles_of_reduction(240, 5) == 6 * 5 * 2


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
    """Fitted. Two loads of the caller stand for constants; its own return is not part of the call."""
    overhead = copied(0).cycles - 2 * 5 - 6
    assert near(overhead, 288)


def test_each_word_of_a_copy_takes_two_instructions() -> None:
    """No fit: twelve cycles for one word of each worker."""
    assert copied(600).cycles - copied(0).cycles == 12 * 100
    assert copied(606).cycles - copied(600).cycles == 12


def test_serial_patch_loop() -> None:
    """87 words took 2,491 cycles, 28.6 each. No fit: nine instructions at the costs of the decisions."""
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
