"""Graphs of odd shapes: a right program, and where no kernel computes it a refusal that names nodes."""

from collections.abc import Mapping

import pytest
from hypothesis import event, given, reject, settings
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, Unsupported
from compiler.geometry.precision import F16, F32
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph
from compiler.low.expand.program import expand
from compiler.low.verify import verify as verify_low
from compiler.mid.interpret import interpret
from compiler.mid.parser import parse_program
from compiler.mid.text import text_of_program
from compiler.mid.verify import verify
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.propose import propose
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.planner.supported import obstacle
from compiler.target.tiles import TILE_COUNT
from tests.low import planned
from tests.low.planned import assert_same_bits, executed
from tests.planner.graphs import CODES, assert_right
from tests.planner.grown import grown
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


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_grown_graphs_are_computed(first: int) -> None:
    """PR-12, ML-20, ML-23: whatever the extents, precisions and views, some layout does it."""
    for number in range(first, first + 10):
        graph, tiles = grown(number)
        found = build_candidate(graph, Setting(tile_count=tiles), Recipe())
        assert_right(graph, found.program, seed=3, blocks=8)


@pytest.mark.parametrize("number", range(60, 72))
def test_grown_graphs_are_expanded(number: int) -> None:
    """MG-01, MG-08: on bytes, the same bits as the interpreter's, and no rule of low programs is broken."""
    graph, tiles = grown(number)
    found = build_candidate(graph, Setting(tile_count=tiles), Recipe())
    low = expand(found.program)
    assert verify_low(low) == ()
    values = planned.tensors(found.program, seed=1)
    assert_same_bits(executed(low, values), interpret(found.program, values))


def test_additions_of_two_repeated_operands() -> None:
    """A column and a row make a matrix; a column is added where no kernel repeats it."""
    build = GraphBuilder("outer")
    column, row = build.input("x", (7, 1), F16()), build.parameter("b", (5,), F16())
    both = build.add(column, row, name="both")
    build.output(build.add(both, column, name="again"))
    graph = build.finish()
    for tiles in (1, 3):
        assert_right(graph, build_candidate(graph, Setting(tile_count=tiles), Recipe()).program, seed=1)


def test_products_of_words_are_words() -> None:
    """A result that the graph declares in F32 is an output in F32, and what reads it reads F32."""
    build = GraphBuilder("words")
    x, w = build.input("x", (5, 9), F32()), build.parameter("w", (9, 7), F16())
    y = build.gemm(x, w, precision=F16(), name="y")
    build.output(y)
    build.output(build.gemm(y, build.parameter("v", (7, 3), F16()), precision=F16(), name="z"))
    graph = build.finish()
    made = build_candidate(graph, Setting(tile_count=3), Recipe()).program
    assert [made.block.value(result).format.precision for result in made.block.results] == [F32(), F32()]
    assert_right(graph, made, seed=1)


def test_a_slice_is_an_output() -> None:
    """What is not all of a value is carried out of it."""
    build = GraphBuilder("slice")
    build.output(build.slice(build.input("x", (7, 13), F16()), 0, 2, 5, name="y"))
    graph = build.finish()
    assert_right(graph, build_candidate(graph, Setting(tile_count=3), Recipe()).program, seed=1)


@pytest.mark.parametrize("operation", ["gelu", "add"])
def test_elementwise_work_on_words_is_refused_by_name(operation: str) -> None:
    """The kernels are for halves: the message says to cast, not to change extents."""
    build = GraphBuilder("words")
    x = build.input("x", (5, 9), F32())
    build.output(build.gelu(x, name="y") if operation == "gelu" else build.add(x, x, name="y"))
    with pytest.raises(Unsupported, match=f"{operation} of F32: element-wise work is in F16") as refusal:
        build_candidate(build.finish(), Setting(tile_count=3), Recipe())
    assert refusal.value.nodes == ("y",)
    assert "cast its operands to F16" in refusal.value.next_step


def test_a_repeat_inside_of_another_is_refused_before_it_is_planned() -> None:
    """By its path, before anything is built."""
    build = GraphBuilder("nested")

    def inner(block: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"x": block.gelu(tensors["x"], name="c")}

    def outer(block: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"x": block.repeat(2, inner, carried={"x": tensors["x"]}, name="inner")["x"]}

    x = build.input("x", (4, 8), F16())
    build.output(build.repeat(2, outer, carried={"x": x}, name="outer")["x"])
    graph = build.finish()
    assert obstacle(graph) == "a Repeat is inside of another one"
    with pytest.raises(Unsupported, match="a Repeat inside of another one: outer/inner") as refusal:
        build_candidate(graph, Setting(tile_count=2), Recipe())
    assert (refusal.value.stage, refusal.value.nodes) == ("planner", ("outer/inner",))


def test_an_argument_that_is_itself_an_output_is_refused_before_it_is_planned() -> None:
    """By its name: a package has one binding of each. A reshape of it has a name of its own."""
    build = GraphBuilder("unmade")
    x, w = build.input("x", (5, 8), F16()), build.parameter("w", (3, 8), F16())
    for output in (x, build.gelu(x, name="c"), w):
        build.output(output)
    graph = build.finish()
    assert obstacle(graph) == "an input or parameter is itself an output"
    with pytest.raises(Unsupported, match="an input or parameter is itself an output: x; w") as refusal:
        build_candidate(graph, Setting(tile_count=2), Recipe())
    assert (refusal.value.stage, refusal.value.nodes) == ("planner", ("x", "w"))


@pytest.mark.parametrize("tiles", [1, 5])
def test_what_a_loop_reads_may_be_a_part_of_something(tiles: int) -> None:
    """An invariant, a member of a sequence and what is carried, each a view of a part of a value."""
    build = GraphBuilder("parts")
    x = build.input("x", (8, 48), F16())
    first, second, third = (
        build.slice(x, 1, start, start + 16, name=f"part{start}") for start in (0, 16, 32)
    )
    weights = build.slice(build.parameter("w", (32, 16), F16()), 0, 5, 21, name="weights")

    def body(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        product = inner.gemm(tensors["x"], tensors["w"], name="h")
        return {"x": inner.add(inner.add(product, tensors["i"], name="a"), tensors["s"], name="b")}

    made = build.repeat(
        2,
        body,
        carried={"x": first},
        invariants={"i": second, "w": weights},
        sequences={"s": [third, second]},
        name="loop",
    )
    build.output(made["x"])
    graph = build.finish()
    found = build_candidate(graph, Setting(tile_count=tiles), Recipe())
    assert_right(graph, found.program, seed=2, blocks=2)


def test_an_input_is_carried_and_read_around_the_loop() -> None:
    """PR-12: its home is known when all of that is constructed, as if the recipe had said it before."""
    build = GraphBuilder("around")
    x = build.input("x", (34, 2), CODES)
    weights = [build.parameter(f"w{number}", (2,), CODES) for number in range(2)]

    def body(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        product = inner.gemm(tensors["x"], tensors["i"], transpose_right=True, precision=CODES, name="square")
        return {"x": inner.cast(inner.slice(product, 1, 0, 2, name="part"), CODES, name="codes")}

    made = build.repeat(2, body, carried={"x": x}, invariants={"i": x}, sequences={"s": weights}, name="loop")
    build.output(made["x"])
    build.output(build.gemm(x, x, transpose_right=True, precision=CODES, name="outside"))
    graph = build.finish()
    found = build_candidate(graph, Setting(tile_count=2), Recipe())
    again = build_candidate(graph, Setting(tile_count=2), found.recipe)
    assert (again.recipe, again.program) == (found.recipe, found.program)
    assert_right(graph, found.program, seed=2, blocks=2)


@pytest.mark.parametrize("tiles", [1, 2, 4])
def test_codes_of_odd_rows_are_copied_with_their_padding(tiles: int) -> None:
    """MG-10: what a loop carries, and what its sequence has twice, though seven bytes are no halves."""
    build = GraphBuilder("codes")
    x, w = build.input("x", (5, 7), CODES), build.parameter("w", (5, 7), CODES)

    def body(_: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"x": tensors["z"], "y": tensors["x"], "z": tensors["s"]}

    starts = {"x": x, "y": x, "z": w}
    made = build.repeat(3, body, carried=starts, sequences={"s": [w, x, w]}, name="loop")
    for tensor in made.values():
        build.output(tensor)
    graph = build.finish()
    found = build_candidate(graph, Setting(tile_count=tiles), Recipe())
    assert_right(graph, found.program, seed=2)
    low = expand(found.program)
    assert verify_low(low) == ()
    values = planned.tensors(found.program, seed=2)
    assert_same_bits(executed(low, values), interpret(found.program, values))


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
