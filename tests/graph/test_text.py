"""Text and parser: inverse of each other, and nothing but graphs and refusals comes of any text."""

import re

from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidModel
from compiler.geometry.precision import F8
from compiler.graph.build import GraphBuilder
from compiler.graph.form import MOST_NESTED
from compiler.graph.ir import Graph, Provenance
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from compiler.graph.verify import verify
from tests.graph.strategies import graphs

EXAMPLE = """\
graph mlp
input x: F16[64,256] = normal(0.5)
input "2nd input": F32[1] = constant(-1.5)  ; "my model.py":7
parameter up: F8(-4)[256,1024]
h: F16[64,1024] = gemm(x, up, precision=F8(-4))  ; mlp.py:12 "first layer; # 1"
n: F16[64,1024] = layer_norm(h, epsilon=1e-06, affine=false)
r: F16[64,32,32] = split_axis(n, axis=1, extents=[32,32])
z: F16[64,1024], w: F16[64,1024] = repeat 2 {  ; mlp.py:13
  carried y: F16[64,1024] = h
  carried v: F16[64,1024] = n
  invariant m: F16[64,1024] = h
  sequence s: F16[64,1024] = h, n
  t: F16[64,1024] = add(y, m)
  u: F16[64,1024] = add(t, s)
  yield v, u
}
output r, z, w
"""


def _outcome(text: str) -> Graph | InvalidModel:
    """The graph, or the refusal; any other exception is the test's."""
    try:
        return parse_graph(text, "f")
    except InvalidModel as error:
        return error


@given(graphs())
def test_text_is_a_fixed_point_and_the_graph_comes_back(graph: Graph) -> None:
    text = text_of_graph(graph)
    back = parse_graph(text, "other")
    assert back == graph
    assert text_of_graph(back) == text
    bare = text_of_graph(graph, with_provenance=False)
    assert text_of_graph(parse_graph(bare, "other"), with_provenance=False) == bare


def test_example_reads_as_it_is_written() -> None:
    graph = parse_graph(EXAMPLE, "mlp.graph")
    bare = text_of_graph(graph, with_provenance=False)
    assert parse_graph(bare, "mlp.graph").name == "mlp"
    kept = [line for line in EXAMPLE.splitlines() if "; " in line]
    assert [line for line in text_of_graph(graph).splitlines() if line in kept] == kept
    values = {value.name: value for value in graph.block.values}
    assert values["x"].provenance == Provenance(file="mlp.graph", line=2)
    assert values["h"].provenance == Provenance(file="mlp.py", line=12, note="first layer; # 1")
    assert values["up"].type.precision == F8(scale_exponent=-4)


def test_blanks_comments_and_line_ends_do_not_matter() -> None:
    spaced = EXAMPLE.replace("  carried", "carried").replace(", ", " ,  ").replace("\n", "   # a comment\r\n")
    assert text_of_graph(parse_graph(spaced, "f"), with_provenance=False) == text_of_graph(
        parse_graph(EXAMPLE, "f"), with_provenance=False
    )


JUNK = (
    "",
    "-1",
    "0",
    "-0",
    "nan",
    "NaN",
    "inf",
    "1e400",
    "1e-400",
    "9" * 18,
    "9" * 5000,
    "true",
    "none",
    "[",
    "[]",
    "[1,1]",
    "}",
    '"',
    '"\\n"',
    '"\\ud800"',
    "\0",
    "\x85",
    "größe",
    "F8(40)",
    "F8(-16)",
    "F32[999999999999999999,9]",
    "repeat 0 {",
    "repeat 999999999999999999 {",
    "carried",
    "yield",
    "output",
    "=",
    ":",
    ";",
)


@given(data=st.data())
def test_damaged_text_is_a_graph_or_a_refusal(data: st.DataObject) -> None:
    """Characters, tokens and lines of random graphs are lost, doubled, exchanged and replaced."""
    text = data.draw(st.one_of(st.just(EXAMPLE), graphs().map(text_of_graph)))
    for _ in range(data.draw(st.integers(min_value=1, max_value=4))):
        pieces = data.draw(
            st.sampled_from([list(text), re.split(r"(\W)", text), text.splitlines(keepends=True)])
        )
        at = data.draw(st.integers(min_value=0, max_value=len(pieces) - 1))
        other = st.one_of(st.sampled_from(pieces), st.sampled_from(JUNK), st.text(max_size=3))
        pieces[at] = data.draw(st.one_of(other, st.just(pieces[at] * 2)))
        text = "".join(pieces)
    outcome = _outcome(text)
    if isinstance(outcome, InvalidModel):
        assert all(line.isprintable() for line in str(outcome).splitlines())
        return
    assert not verify(outcome)
    again = text_of_graph(outcome)
    assert text_of_graph(parse_graph(again, "f")) == again


@given(st.text())
def test_any_text_is_a_graph_or_a_refusal(text: str) -> None:
    for whole in (text, f"graph g\n{text}"):
        outcome = _outcome(whole)
        assert isinstance(outcome, Graph) or outcome.message


def test_nesting_is_limited() -> None:
    def nested(depth: int) -> str:
        lines = ["graph deep", "input x: F16[1]"]
        for level in range(depth):
            lines += ["y: F16[1] = repeat 1 {", f"carried x: F16[1] = x  # {level}"]
        lines += ["y: F16[1] = gelu(x)", *(["yield y", "}"] * depth), "output y"]
        return "\n".join(lines)

    assert not verify(parse_graph(nested(MOST_NESTED), "f"))
    for depth in (MOST_NESTED + 1, 5000):
        assert "more than 50 repeats inside one another" in str(_outcome(nested(depth)))


def test_names_like_keywords_are_names() -> None:
    build = GraphBuilder("graph")
    x = build.input("input", (2,))
    y = build.gelu(x, name="output")
    inf = build.gelu(y, name="inf")
    build.output(build.gelu(inf, name="repeat"))
    build.output(y)
    build.output(build.gelu(y, name="parameter"))
    build.output(build.gelu(y, name="F16"))
    build.output(build.gelu(y, name="graph"))
    graph = build.finish()
    assert parse_graph(text_of_graph(graph), "f") == graph
