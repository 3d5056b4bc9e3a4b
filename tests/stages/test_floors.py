"""Floors of planning are below what packages hold, on any number of tiles."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.chain import chain_of
from compiler.compile import Results, run_stage
from compiler.config import BuildOptions, PlanningOptions
from compiler.geometry.precision import F16
from compiler.graph.build import GraphBuilder
from compiler.graph.codec import StoredGraph
from compiler.graph.ir import Graph, Normal
from compiler.graph.text import text_of_graph
from compiler.models.subjects import GraphModel
from compiler.store.result import StageResult
from compiler.target.memory import SRAM_SIZE
from tests.planner.grown import grown
from tests.stages.builds import MODEL, opened
from tests.stages.floors import assert_floors_hold


def emitted(root: Path, model: GraphModel, tiles: int) -> tuple[Graph, Results]:
    """A model up to its package, without a search."""
    options = BuildOptions(planning=PlanningOptions(tiles=tiles, attempts=0))
    done: dict[str, StageResult[object]] = {}
    with opened(root) as store:
        for stage in chain_of(model):
            done[stage.name] = run_stage(stage.name, store, model, options, done)
            if stage.name == "emission":
                break
        graph = done["model_graph"].value()
        assert isinstance(graph, StoredGraph)
        for result in done.values():
            result.value()
    return graph.graph, done


def wide() -> GraphModel:
    """Two products, of which the first has more weights than a tile can hold."""
    build = GraphBuilder("wide")
    fill = Normal(sigma=0.1)
    x = build.input("x", (2, 512), F16(), fill=fill)
    hidden = build.gemm(x, build.parameter("w", (512, 640), F16(), fill=fill))
    build.output(build.gemm(hidden, build.parameter("v", (640, 16), F16(), fill=fill)))
    return GraphModel(name="wide", text=text_of_graph(build.finish(), with_provenance=True))


@pytest.mark.parametrize("tiles", [1, 5])
def test_floors_of_a_small_model_hold(tiles: int, tmp_path: Path) -> None:
    """On one tile nothing travels; all of it is there."""
    floors = assert_floors_hold(*emitted(tmp_path / "store", MODEL, tiles))
    assert floors.rows.shared == 0


def test_floors_of_a_searched_model_hold(builds: tuple[Path, Mapping[str, Results]]) -> None:
    """On sixteen tiles, after a search."""
    results = builds[1]["model"]
    assert_floors_hold(results["model_graph"].value().graph, results)


def test_weights_of_more_than_a_tile_need_rows(tmp_path: Path) -> None:
    """Each output depends on all of them; two tiles at least have rows."""
    assert SRAM_SIZE < 2 * 512 * 640
    floors = assert_floors_hold(*emitted(tmp_path / "store", wide(), 3))
    assert floors.rows.shared > 0


@pytest.mark.parametrize("number", [1, 7])
def test_floors_of_odd_graphs_hold(number: int, tmp_path: Path) -> None:
    """Any operations, extents and precisions."""
    graph, tiles = grown(number)
    model = GraphModel(name="odd", text=text_of_graph(graph, with_provenance=True))
    assert_floors_hold(*emitted(tmp_path / "store", model, tiles))
