"""Names in recipes: those of the graph, and of nothing that planning makes."""

from collections.abc import Mapping

from compiler.geometry.precision import F8, F16
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe

ONE = {name: name for name in ("x", "w", "v", "b", "up", "down", "sum", "loop", "h", "inner", "curved")}
OTHER = {name: f"renamed {number}" for number, name in enumerate(ONE)}


def graph(names: Mapping[str, str]) -> Graph:
    """Products with casts, partials to sum, a sum of two values and a loop."""
    build = GraphBuilder("names")
    x = build.input(names["x"], (6, 160), F16())
    w = build.parameter(names["w"], (160, 96), F16())
    up = build.gemm(x, w, precision=F8(scale_exponent=-2), name=names["up"])
    v = build.parameter(names["v"], (96, 32), F16())
    down = build.gemm(build.gelu(up, name=names["curved"]), v, name=names["down"])
    b = build.parameter(names["b"], (32, 32), F16())

    def body(inner: BlockBuilder, arguments: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"h": inner.gemm(arguments["h"], arguments["b"], name=names["inner"])}

    after = build.repeat(2, body, carried={"h": down}, invariants={"b": b}, name=names["loop"])["h"]
    build.output(build.add(after, down, name=names["sum"]))
    return build.finish()


def test_a_recipe_names_nothing_but_the_graph() -> None:
    """PR-05, PR-06: with other names in the graph it is the same recipe with those names."""
    recipes = [
        build_candidate(graph(names), Setting(tile_count=16), Recipe()).recipe for names in (ONE, OTHER)
    ]
    one, other = recipes

    def renamed(path: str) -> str:
        return "/".join(OTHER[name] for name in path.split("/"))

    assert set(one.gemms) == {"up", "down", "loop/inner"}
    assert {renamed(path): choice for path, choice in one.gemms.items()} == other.gemms
    assert {renamed(path): form for path, form in one.boundaries.items()} == other.boundaries
    assert {renamed(name): home for name, home in one.inputs.items()} == other.inputs
    assert one.options == other.options
