"""The four-tile program with real kernels, placed, scheduled, emitted and run from its package.

Local copy, split GEMM, partial sums, multicast, broadcast add, a Repeat with its own weights in each
iteration, gather: every construct of a tile program, in bytes.
"""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.exchange.phase import schedule_program
from compiler.geometry.owners import TileId
from compiler.kernels.objects import kernel_objects
from compiler.low.project import project
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.package.emit import Emission, emit
from compiler.package.format import read_package, write_package
from compiler.package.host import HostRole, pack, unpack
from compiler.package.hostplan import plan_host
from compiler.package.programs import ProgramInputs
from compiler.package.runtime import link_tile_code
from compiler.package.support import Support, size_support
from compiler.placement.ir import Placement
from compiler.placement.place import place
from compiler.target.host import requester
from compiler.target.isa_decisions import our_decisions
from compiler.target.tiles import TILE_COUNT, logical_to_physical, physical_tiles
from compiler.target.units import LogicalTile
from tests.low.skeletons import expected, random_input, random_parameters, skeleton_options
from tests.package.device import Device
from tests.package.emitted import IDLE, VERSION

OPTIONS = (
    SkeletonOptions(),
    SkeletonOptions(rows=37, panels=3),
    SkeletonOptions(
        rows=9,
        tile_count=1472,
        tiles=(TileId(1470), TileId(44), TileId(737), TileId(91)),
        displacements=(("h0", 8), ("partial1", 24), ("received0", 40)),
    ),
)


def emit_skeleton(options: SkeletonOptions, runs: int) -> Emission:
    """The stages from the low program to the package, as a candidate's evaluation has them."""
    program = skeleton(options)
    physical = physical_tiles(np.arange(options.tile_count))
    symbols = {binding.symbol for binding in program.bindings}
    image = link_tile_code(kernel_objects(symbols, our_decisions()), [str(symbol) for symbol in symbols])
    addresses = {symbol.name: symbol.address for symbol in image.symbols if symbol.is_global}

    def inputs(placement: Placement, support: Support | None) -> ProgramInputs:
        reservations = None if support is None else support.row_reservations()
        return ProgramInputs(
            program=program,
            work=project(program),
            placement=placement,
            exchange=schedule_program(program, placement, physical, reservations),
            host=plan_host(program, placement),
            symbols=addresses,
            runs=runs,
        )

    support = size_support(image, inputs(place(program, ()), None))
    final = inputs(place(program, support.reservations.for_placement(options.tile_count)), support)
    return emit(final, image, support, compiler_version=VERSION)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_package_computes_what_numpy_computes(options: SkeletonOptions) -> None:
    """Bit for bit, for several inputs after one upload of the parameters."""
    assert_package_computes_what_numpy_computes(options, seed=11)


@pytest.mark.slow
@hypothesis.settings(max_examples=200)
@hypothesis.given(skeleton_options(TILE_COUNT, TILE_COUNT), st.integers(0, 1000))
def test_where_things_lie_never_changes_the_result(options: SkeletonOptions, seed: int) -> None:
    """Random physical tiles, displacements of operands inside their buffers, and order of buffers."""
    assert_package_computes_what_numpy_computes(options, seed)


def assert_package_computes_what_numpy_computes(options: SkeletonOptions, seed: int) -> None:
    """Emits and runs a program twice after one upload, on the tiles that work and one that does not."""
    emission = emit_skeleton(options, runs=2)
    application = read_package(write_package(emission.application), name="skeleton")
    layouts = {layout.name: layout for layout in emission.layouts}
    parameters = random_parameters(options, seed)
    working = [logical_to_physical(LogicalTile(tile)) for tile in options.tiles]
    device = Device(application, sorted({*working, *(requester(tile) for tile in working), IDLE}))
    device.call(
        "initialize",
        b"".join(pack(layouts[binding.name], parameters[binding.name]) for binding in application.weights),
    )
    for run in (1, 2):
        x = random_input(options, seed + run)
        y = unpack(layouts["y"], device.call("run", pack(layouts["x"], x)))
        assert np.array_equal(y.astype(np.float16), expected(options, parameters, x))
    assert device.is_complete
    assert {layout.role for layout in emission.layouts} == set(HostRole)


def test_the_stages_give_the_same_bytes_again() -> None:
    first, second = (emit_skeleton(OPTIONS[1], runs=1) for _ in range(2))
    assert write_package(first.application) == write_package(second.application)
