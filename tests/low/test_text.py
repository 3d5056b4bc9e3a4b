"""Texts of low programs: every row is told once, and numbers are those of the tables."""

import re

import numpy as np

from compiler.low.project import project
from compiler.low.steps import table_of
from compiler.low.text import text_of_program, text_of_steps, text_of_tile
from compiler.models.skeleton import SkeletonOptions, skeleton

PROGRAM = skeleton(SkeletonOptions())


def test_what_each_step_costs_whom() -> None:
    assert text_of_steps(PROGRAM) == (
        "step  runs  kind      cycles (estimated)  busiest                               for\n"
        "   0     1  compute                  209  tile 0 of 2                           skeleton\n"
        "   2     2  compute                1,427  tile 0 of 2                           skeleton\n"
        "   3     2  exchange                 728  tile 0 receives 128 words in 2 spans  skeleton\n"
        "   4     2  compute                  384  tile 0 of 2                           skeleton\n"
        "   5     2  compute                  573  tile 0 of 2                           skeleton\n"
        "   6     1  exchange                 792  tile 3 receives 192 words in 2 spans  skeleton\n"
    )


def test_every_step_is_a_line() -> None:
    """Both lists of steps, and the bytes that each exchange moves."""
    steps = table_of(PROGRAM.steps)
    numbered = [int(found) for found in re.findall(r"^ *step (\d+)", text_of_program(PROGRAM), re.MULTILINE)]
    assert numbered == list(range(len(steps.kind)))
    costed = [int(line.split()[0]) for line in text_of_steps(PROGRAM).splitlines()[1:]]
    assert costed == np.flatnonzero(steps.kind != 2).tolist()


def test_a_tile_lists_its_buffers_and_its_work() -> None:
    """AL-03: as many lines as the projection has rows, and as there are buffers on the tile."""
    work = project(PROGRAM)
    for tile in range(PROGRAM.tile_count):
        lines = text_of_tile(PROGRAM, work, tile).splitlines()
        assert sum(line.startswith("    ") for line in lines) == len(work.rows_of(tile)[0])
        buffers = np.flatnonzero(PROGRAM.buffers.tile == tile).tolist()
        assert [int(line.split()[0][1:]) for line in lines if line.startswith("  b")] == buffers
