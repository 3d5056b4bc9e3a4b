"""Graphs of odd shapes: a right program, or a refusal that names nodes; never anything else."""

from collections.abc import Mapping

from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, Unsupported
from compiler.geometry.precision import F16
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph
from compiler.low.expand.program import expand
from compiler.mid.interpret import interpret
from compiler.mid.parser import parse_program
from compiler.mid.text import text_of_program
from compiler.mid.verify import verify
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.propose import propose
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.target.tiles import TILE_COUNT
from tests.low import planned
from tests.low.planned import assert_same_bits, executed
from tests.planner.graphs import assert_right
from tests.planner.odd import odd_graphs

TILES = st.sampled_from((1, 2, 3, 7, 16, 61, TILE_COUNT))


def _built(graph: Graph, setting: Setting, recipe: Recipe) -> Candidate | None:
    """The candidate; None when it is refused, with nodes named."""
    try:
        return build_candidate(graph, setting, recipe)
    except (Unsupported, DoesNotFit) as refusal:
        event(f"refused by {refusal.stage}")
        if not refusal.nodes:
            raise AssertionError("a refusal names nodes") from refusal
        return None


@settings(max_examples=50)
@given(data=st.data(), graph=odd_graphs(), tiles=TILES, replicated=st.booleans())
def test_odd_graphs_are_computed_or_refused(
    data: st.DataObject, graph: Graph, tiles: int, replicated: bool
) -> None:
    """PR-12, PR-20, ML-34: with all its recipe and text kept, and proposals of proposals."""
    setting = Setting(tile_count=tiles, replicate_inputs=replicated)
    found = _built(graph, setting, Recipe())
    for _ in range(2):
        if found is None:
            return
        assert verify(found.program) == ()
        text = text_of_program(found.program)
        assert text_of_program(parse_program(text)) == text
        assert recipe_of_json(found.recipe.to_json(), "kept") == found.recipe
        assert_right(graph, found.program, seed=3, blocks=4)
        recipes = propose(graph, found)
        if not recipes:
            return
        found = _built(graph, setting, data.draw(st.sampled_from(recipes)))


@settings(max_examples=15)
@given(graph=odd_graphs(), tiles=st.integers(1, 24))
def test_odd_graphs_are_expanded(graph: Graph, tiles: int) -> None:
    """What the planner makes is made on tiles too: shared members of sequences among it."""
    found = _built(graph, Setting(tile_count=tiles), Recipe())
    if found is None:
        reject()
    values = planned.tensors(found.program, seed=1)
    assert_same_bits(executed(expand(found.program), values), interpret(found.program, values))


def test_two_loops_share_their_weights() -> None:
    """A value stands at several places of several sequences; each has it in its own place (ML-34)."""
    build = GraphBuilder("shared")
    x = build.input("x", (8, 32), F16())
    weights = [build.parameter(f"w{number}", (32, 32), F16()) for number in range(2)]

    def body(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"x": inner.gelu(inner.gemm(tensors["x"], tensors["w"], name="h"), name="c")}

    for number, members in enumerate((weights, weights[::-1], [weights[0]] * 2)):
        x = build.repeat(2, body, carried={"x": x}, sequences={"w": members}, name=f"loop{number}")["x"]
    build.output(x)
    graph = build.finish()
    found = build_candidate(graph, Setting(tile_count=4), Recipe())
    assert_right(graph, found.program, seed=2, blocks=4)
    values = planned.tensors(found.program, seed=2)
    assert_same_bits(executed(expand(found.program), values), interpret(found.program, values))


def test_arguments_may_have_the_names_of_what_is_made() -> None:
    """The host's names are kept; what the planner makes is named around them."""
    build = GraphBuilder("names")
    x = build.input("x", (8, 32), F16())
    y = build.gemm(x, build.parameter("w", (32, 32), F16()), name="h")
    for name in ("h.product", "h.copy", "h.sum"):
        y = build.gemm(y, build.parameter(name, (32, 32), F16()), name=f"after {name}")
    build.output(y)
    graph = build.finish()
    found = build_candidate(graph, Setting(tile_count=4), Recipe())
    block = found.program.block
    assert {block.value(argument).name for argument in block.arguments} == {
        "x",
        "w",
        "h.product",
        "h.copy",
        "h.sum",
    }
    assert_right(graph, found.program, seed=2)
