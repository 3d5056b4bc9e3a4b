"""What a built package has of each part, tile by tile, against what planning says that it has at least."""

from collections.abc import Mapping

import numpy as np

from compiler.compile import Results
from compiler.evaluation.artifacts import PlacedProgram
from compiler.graph.ir import Graph
from compiler.low.ir import LowProgram
from compiler.package.format import read_package
from compiler.package.records import SegmentFlags
from compiler.planner.floors import Floor, Floors, floors_of
from compiler.target.memory import SRAM_SIZE
from compiler.target.tiles import physical_to_logical
from compiler.target.units import Int64Array

CODE = SegmentFlags.READABLE | SegmentFlags.EXECUTABLE
KINDS = {
    "code": CODE,
    "rows": CODE | SegmentFlags.WRITABLE,
    "descriptors": SegmentFlags.READABLE,
}
"""Parts of a package, and as what its segments are loaded."""


def sizes_of(results: Results) -> Mapping[str, Int64Array]:
    """Bytes [tiles of the build] of each part: of data from the addresses of tensors, else of the package."""
    program: LowProgram = results["expansion"].value().program
    placed: PlacedProgram = results["final_placement"].value()
    found = {name: np.zeros(program.tile_count, dtype=np.int64) for name in (*KINDS, "data")}
    for image in read_package(results["emission"].value().package, name="package").tiles:
        tile = int(physical_to_logical(image.physical_tile))
        if tile < program.tile_count:
            for name, flags in KINDS.items():
                sizes = (part.memory_size for part in image.segments if part.flags == flags)
                found[name][tile] = sum(sizes)
    spans = np.stack([program.buffers.tile, placed.placement.address, program.buffers.byte_count], axis=1)
    behind = dict.fromkeys(range(program.tile_count), 0)
    # Buffers share addresses when they live at different times, or in one storage.
    for tile, address, size in sorted(spans.tolist()):
        end = max(behind[tile], address + size)
        found["data"][tile] += end - max(behind[tile], address)
        behind[tile] = end
    return found


def assert_floors_hold(graph: Graph, results: Results) -> Floors:
    """No floor, and no sum of them, is above what the fullest tile of a package has."""
    floors = floors_of(graph, SRAM_SIZE)
    sizes = sizes_of(results)
    parts: Mapping[str, Floor] = {
        "data": floors.parameters + floors.product,
        "code": floors.code,
        "rows": floors.rows,
        "descriptors": floors.descriptors,
    }
    tiles = len(sizes["data"])
    for name, floor in parts.items():
        assert floor.of_a_tile(tiles) <= sizes[name].max(), name
    together = floors.parameters + floors.product + floors.code + floors.rows + floors.descriptors
    assert together.of_a_tile(tiles) <= np.stack(list(sizes.values())).sum(axis=0).max()
    # What is on every tile is on the emptiest one.
    assert floors.code.each <= sizes["code"].min()
    return floors
