"""Packages of graphs whose extents nothing divides: built, and run instruction by instruction."""

from pathlib import Path

import pytest

from compiler.compile import build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.geometry.precision import F16, F32
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph, Normal
from compiler.graph.text import text_of_graph
from compiler.models.subjects import GraphModel
from tests.planner.grown import grown
from tests.stages.builds import opened
from tests.stages.floors import assert_floors_hold


def _detours() -> Graph:
    """Words, halves and codes at odd places: turned, sliced, joined, and added to a column."""
    graph = GraphBuilder("detours")
    x = graph.input("x", (7, 13), F32(), fill=Normal(sigma=0.5))
    w = graph.parameter("w", (13, 9), F16(), fill=Normal(sigma=0.3))
    y = graph.cast(graph.gemm(x, w, precision=F16(), name="y"), F16(), name="halves")
    turned = graph.transpose(y, (1, 0), name="turned")
    column = graph.parameter("column", (9, 1), F16(), fill=Normal(sigma=0.3))
    added = graph.add(turned, column, name="added")
    graph.output(graph.concat([added, graph.slice(turned, 1, 2, 5, name="sliced")], axis=1, name="joined"))
    return graph.finish()


@pytest.mark.parametrize(
    "graph",
    [_detours(), *(grown(number)[0] for number in (3, 5))],
    ids=["detours", "grown 3", "grown 5"],
)
def test_odd_graphs_run_as_packages(graph: Graph, tmp_path: Path) -> None:
    """From the graph to instructions: outputs are those of the reference, in two runs."""
    options = BuildOptions(
        planning=PlanningOptions(tiles=5, attempts=0), simulation=SimulationOptions(runs=2)
    )
    with opened(tmp_path / "store") as store:
        results = build(
            store, GraphModel(name="odd", text=text_of_graph(graph, with_provenance=True)), options
        )
        assert results["simulation"].value().differences == ()
        assert_floors_hold(graph, results)
