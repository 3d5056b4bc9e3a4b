"""Time of placing 1,472 tiles of some 40 buffers each, as an MLP block has them, in four kinds of tiles.

The programs are made up: same sizes of problems and number of classes as those of an MLP, no kernels.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.placement.place import Placed, attempt
from compiler.placement.problem import problems_of, runtime_ranges
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.placement.devices import TILES, mlp_like


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("part", ["extraction", "placement"])
def test_a_whole_device(benchmark: BenchmarkFixture, part: str, members: int) -> None:
    program = mlp_like(4, members)
    reserved = runtime_ranges(DEFAULT_LAYOUT, TILES)
    if part == "extraction":
        assert len(problems_of(program, reserved)) == TILES
        benchmark(lambda: problems_of(program, reserved))
    else:
        assert isinstance(attempt(program, reserved), Placed)
        benchmark(lambda: attempt(program, reserved))
