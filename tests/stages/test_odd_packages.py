"""Packages of graphs whose extents nothing divides: built, and run instruction by instruction."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.compile import build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.geometry.precision import F8, F16, F32
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
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


def _joints() -> Graph:
    """Halves that meet inside of words: of two parts, and the last of a vector that a loop carries unread."""
    graph = GraphBuilder("joints")
    parts = [
        graph.gelu(graph.input(name, (4, columns), F16(), fill=Normal(sigma=0.5)), name=f"curved {name}")
        for name, columns in (("left", 5), ("right", 3))
    ]
    graph.output(graph.gelu(graph.concat(parts, axis=1, name="joined"), name="both"))
    codes = graph.input("codes", (65,), F8(scale_exponent=-2), fill=Normal(sigma=0.5))
    halves = graph.cast(codes, F16(), name="halves")

    def body(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        wide = inner.cast(tensors["s"], F32(), name="wide")
        return {"x": inner.gelu(inner.cast(wide, F16(), name="narrow"), name="curved")}

    graph.output(graph.repeat(1, body, carried={"x": halves}, sequences={"s": [halves]}, name="loop")["x"])
    return graph.finish()


@pytest.mark.parametrize(
    ("graph", "tiles"),
    [(_detours(), 5), (_joints(), 4), *((grown(number)[0], 5) for number in (3, 5))],
    ids=["detours", "joints", "grown 3", "grown 5"],
)
def test_odd_graphs_run_as_packages(graph: Graph, tiles: int, tmp_path: Path) -> None:
    """From the graph to instructions: outputs are those of the reference, in two runs."""
    options = BuildOptions(
        planning=PlanningOptions(tiles=tiles, attempts=0), simulation=SimulationOptions(runs=2)
    )
    with opened(tmp_path / "store") as store:
        results = build(
            store, GraphModel(name="odd", text=text_of_graph(graph, with_provenance=True)), options
        )
        assert results["simulation"].value().differences == ()
        assert_floors_hold(graph, results)
