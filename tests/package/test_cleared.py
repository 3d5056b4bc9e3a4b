"""Scratch that is cleared at load, from the graph to the device: zeros are in the package, and are needed."""

import dataclasses

import numpy as np
import pytest

from compiler.compile import build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph, Normal
from compiler.graph.text import text_of_graph
from compiler.models.subjects import GraphModel
from compiler.package.format import read_package
from compiler.simulator.application import Simulator
from compiler.store.store import Store
from compiler.tables import table_digests
from compiler.target.tiles import logical_to_physical
from compiler.target.units import LogicalTile

RUNS = 2


def _products() -> Graph:
    """Three products in a batch, whose K fills no panel."""
    build_graph, fill = GraphBuilder("products"), Normal(sigma=0.25)
    left = build_graph.input("x", (3, 47, 12), fill=fill)
    build_graph.output(build_graph.gemm(left, build_graph.parameter("w", (3, 12, 160), fill=fill)))
    return build_graph.finish()


@pytest.mark.slow
def test_padding_is_zero_when_a_package_is_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """AL-02: two runs give what the graph says; without the zeros the device reads what nobody wrote."""
    model = GraphModel(name="products", text=text_of_graph(_products(), with_provenance=True))
    options = BuildOptions(
        planning=PlanningOptions(tiles=5, attempts=1), simulation=SimulationOptions(runs=RUNS, seed=7)
    )
    with Store.open(tmp_path_factory.mktemp("store"), tables=table_digests(), strict=True) as store:
        results = build(store, model, options)
    program = results["expansion"].value().program
    simulated = results["simulation"].value()
    assert simulated.differences == ()
    assert len(simulated.cycles) == RUNS
    placement = results["final_placement"].value().placement
    application = read_package(results["emission"].value().package, name="products")
    cleared = np.flatnonzero(program.buffers.cleared).tolist()
    assert cleared
    zeros: set[tuple[int, int]] = set()
    for row in cleared:
        tile = logical_to_physical(LogicalTile(int(program.buffers.tile[row])))
        address, count = int(placement.address[row]), int(program.buffers.byte_count[row])
        image = application.tiles[tile]
        assert [(s.memory_size, s.data) for s in image.segments if s.address == address] == [(count, b"")]
        zeros.add((tile, address))
    poisoned = dataclasses.replace(
        application,
        tiles=tuple(
            dataclasses.replace(
                image,
                segments=tuple(
                    segment
                    for segment in image.segments
                    if (image.physical_tile, segment.address) not in zeros
                ),
            )
            for image in application.tiles
        ),
    )
    given = {
        name: {
            binding.name: bytes(max(piece.file_offset + piece.size for piece in binding.slices))
            for binding in bindings
        }
        for name, bindings in (("weights", application.weights), ("inputs", application.inputs))
    }
    simulator = Simulator(poisoned)
    simulator.initialize(given["weights"])
    outcome = simulator.run(given["inputs"])
    assert not outcome.is_complete
    assert "a value descends from SRAM that nothing wrote" in str(outcome.faults[0])
