"""The exact text of what is refused in graphs, in models of users, and in values for them."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from compiler.errors import InvalidInput, InvalidModel
from compiler.graph.build import GraphBuilder
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.parameters import RandomTensors
from compiler.graph.parser import parse_graph
from compiler.models.registry import model_named
from pipeline.model_files import load_model


def _refused(text: str) -> str:
    with pytest.raises(InvalidModel) as caught:
        parse_graph(text, "m.graph")
    return str(caught.value)


def test_all_faults_of_a_text_are_told_in_one_run() -> None:
    """Rank 0, zero extent, shape mismatch, unknown operation, dangling value, NaN epsilon, and so on.

    Further: a wrong declaration, use before definition, a cyclic binding of a repeat as carried value and as
    member, a fault inside a body, a dangling output, a name clash at a line from elsewhere.
    """
    text = """graph m
input x: F16[4,16]
input s: F16[]
input z: F16[0,2]
parameter w: F16[32,8]
h: F16[4,8] = gemm(x, w)
g: F16[4,16] = gelo(x)
k: F16[4,16] = gelu(g)
d: F16[4,16] = add(k, missing)
n: F16[4,16] = layer_norm(x, epsilon=nan, affine=false)
x: F16[4,16] = gelu(x)  ; model.py:42 "from elsewhere"
e: F16[4,8] = gelu(x)
early: F16[4,16] = gelu(late)
late: F16[4,16] = softmax(x)
r: F16[4,16] = repeat 2 {
  carried a: F16[4,16] = r
  sequence c: F16[4,16] = x, r
  b: F16[4,16] = add(a, c)
  q: F16[16] = transpose(b, order=[1,0])
  yield b
}
output r, nowhere
"""
    assert _refused(text) == (
        "invalid model (graph): m: 13 faults\n"
        "    m.graph:3: s: F16[] has no axis: a value has at least one\n"
        "    m.graph:4: z: F16[0,2]: axis 0 has extent 0, not at least 1\n"
        "    m.graph:6: h: gemm: left F16[4,16] has 16 columns, right F16[32,8] has 32 rows\n"
        "    m.graph:7: g: gelo is no operation, perhaps gelu\n"
        "    m.graph:9: d: add: nothing defines missing\n"
        "    m.graph:10: n: layer_norm: epsilon is nan, not a positive finite number\n"
        "    m.graph:12: e: gelu: it is declared F16[4,8] and is F16[4,16]\n"
        "    m.graph:13: early: gelu: late is used before it is defined\n"
        "    m.graph:15: r: repeat: r depends on itself: "
        "it is bound to argument a of the repeat that gives it\n"
        "    m.graph:15: r: repeat: r depends on itself: "
        "it is bound to argument c of the repeat that gives it in iteration 1\n"
        "    m.graph:19: r/q: transpose: it is declared F16[16] and is F16[16,4]\n"
        "    m.graph:22: nowhere: nothing defines it\n"
        "    model.py:42: x: another value has this name, at m.graph:2.\n"
        "  graph nodes: s, z, h, g, d, n, e, early, r, r/q, nowhere, x\n"
        "  next: correct the model where it says so"
    )


def test_all_lines_that_cannot_be_read_are_told_in_one_run() -> None:
    text = """graph m
input x: F16[2]
input y F16[2]
z: F17[2] = gelu(x)
w: F16[2] = gelu(x
v: F8(99)[2] = gelu(x)
u: F16[2] = gelu(x) x
%
}
i: F16[1234567890123456789] = gelu(x)
parameter p: F16[2]
output x
t: F16[2] = gelu(x)
"""
    assert _refused(text) == (
        "invalid model (graph): m: 9 faults\n"
        "    m.graph:3: input: ':' is missing before 'F16'\n"
        "    m.graph:4: z: 'F17' is no precision: F32, F16 or F8(scale exponent)\n"
        "    m.graph:5: w: ',' is missing before the end of the line\n"
        "    m.graph:6: v: scale exponent 99 is not in -32 .. 31\n"
        "    m.graph:7: u: 'x' is too much\n"
        "    m.graph:8: the text: '%' cannot be read\n"
        "    m.graph:9: }: no repeat is open\n"
        "    m.graph:10: i: an integer of 19 digits is more than 18\n"
        "    m.graph:13: t: nothing follows output in its block.\n"
        "  next: correct the model where it says so"
    )


def test_a_long_list_of_faults_is_cut() -> None:
    lines = [f"y{number}: F16[1] = gelu(x)" for number in range(25)]
    text = "\n".join(["graph m", "input x: F16[2]", *lines, "output x"])
    shown = _refused(text).splitlines()
    assert shown[0] == "invalid model (graph): m: 25 faults"
    assert shown[20] == "    m.graph:22: y19: gelu: it is declared F16[1] and is F16[2]"
    assert shown[21] == "    and 5 more."
    assert shown[22].endswith("y18, y19")


def test_attributes_are_checked_one_by_one() -> None:
    text = """graph m
input x: F16[4]
a: F16[4] = layer_norm(x)
b: F16[4] = slice(x, axis=true, start=0, stop=2)
c: F16[4] = gelu(x, axis=2)
d: F16[4] = slice(x, axis=0, axis=0, start=0, stop=1)
f: F16[4] = zzzz(x)
e: F16[4] = repeat 2 {
  carried y: F16[4] = x
  sequence s: F16[4] = x
  yield y
}
output a
"""
    assert _refused(text) == (
        "invalid model (graph): m: 6 faults\n"
        "    m.graph:3: a: layer_norm: attribute epsilon is missing\n"
        "    m.graph:4: b: slice: attribute axis is not an integer\n"
        "    m.graph:5: c: gelu: it has no attribute axis\n"
        "    m.graph:6: d: slice: an attribute is given twice\n"
        "    m.graph:7: f: zzzz is no operation; there are add, attention, cast, concat, gelu, gemm, "
        "layer_norm, merge_axes, reshape, slice, softmax, split_axis, transpose\n"
        "    m.graph:8: e: repeat: s has 1 members for 2 iterations.\n"
        "  graph nodes: a, b, c, d, f, e\n"
        "  next: correct the model where it says so"
    )


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("", "m.graph: the text: it is empty"),
        ("\n# only a comment\n", "m.graph: the text: it is empty"),
        ("model m", "m.graph: m.graph:1: model: 'graph' is missing before 'model'"),
        ("graph m\ninput x: F16[1]\nr: F16[1] = repeat 2 {", "m: the text: a '}' is missing at the end"),
        ("graph m\ninput x: F16[1]", "m: m: it has no output"),
    ],
)
def test_texts_that_are_no_graph(text: str, subject: str) -> None:
    assert _refused(text) == (
        f"invalid model (graph): {subject}.\n  next: correct the model where it says so"
    )


RULES = {
    "gemm(v, m)": "left F16[4] has no rows and columns: at least two axes are needed",
    "gemm(m, x32)": (
        "left and right differ in precision: F16[4,4] and F32[4,4]; declare the precision to multiply in"
    ),
    "gemm(m, x32, precision=F32)": "left F16[4,4] cannot be rounded to F32, which is not narrower; cast it",
    "gemm(f8, m, precision=F8(1))": (
        "left F8(-4)[4,4] cannot be rounded to F8(1), which is not narrower; cast it"
    ),
    "gemm(m, m, precision=F8(-17))": "products in F8(-17): the scale exponent is not in -16 .. 15",
    "gemm(t, b)": (
        "batch axes of left F16[3,4,4] and right F16[2,4,4]: [3] and [2] do not broadcast: "
        "extents 3 and 2 on axis -1"
    ),
    "gemm(m, r, transpose_right=true)": ("left F16[4,4] has 4 columns, right F16[4,5] transposed has 5 rows"),
    "gemm(m)": "operands: 2 needed (left, right), 1 given",
    "add(t, b)": "[3,4,4] and [2,4,4] do not broadcast: extents 3 and 2 on axis -3",
    "add(m, x32)": "left and right differ in precision: F16[4,4] and F32[4,4]; cast one of them",
    "add(f8, f8)": "left F8(-4)[4,4]: F8 is not computed with; cast it to F16",
    "gelu(f8)": "operand F8(-4)[4,4]: F8 is not computed with; cast it to F16",
    "softmax(m, m)": "operands: 1 needed, 2 given",
    "layer_norm(m, epsilon=0, affine=false)": "epsilon is 0.0, not a positive finite number",
    "layer_norm(m, v, epsilon=1.0)": "operands: 3 needed (operand, scale, bias), 2 given",
    "layer_norm(r, v, v, epsilon=1.0)": "scale F16[4] is not one number for each of the 5 columns",
    "layer_norm(x32, v, v, epsilon=1.0)": (
        "operand and scale differ in precision: F32[4,4] and F16[4]; cast one of them"
    ),
    "layer_norm(m, epsilon=1e-46, affine=false)": "epsilon is 1e-46, which binary32 takes for 0.0",
    "attention(m, m, m, scale=inf)": "scale is inf, not a positive finite number",
    "attention(m, m, m, scale=1e39)": "scale is 1e+39, which binary32 takes for inf",
    "attention(m, r, m, scale=1.0)": "depths of query F16[4,4] and key F16[4,5] differ: 4 and 5",
    "attention(m, m, s, scale=1.0)": "rows of key F16[4,4] and value F16[2,4] differ: 4 and 2",
    "attention(t, b, t, scale=1.0)": (
        "batch axes of query F16[3,4,4], key F16[2,4,4] and value F16[3,4,4] differ"
    ),
    "attention(m, m, f8, scale=1.0)": (
        "values: left and right differ in precision: F16[4,4] and F8(-4)[4,4]; "
        "declare the precision to multiply in"
    ),
    "attention(m, m, m, scale=1.0, score_precision=F32)": (
        "scores: left F16[4,4] cannot be rounded to F32, which is not narrower; cast it"
    ),
    "reshape(m, shape=[5])": "[4,4] has 16 elements, [5] has 5",
    "reshape(m, shape=[])": "a value has at least one axis",
    f"reshape(m, shape=[{','.join('1' * 65)}])": "65 axes are more than 64",
    f"split_axis(m, axis=1, extents=[{','.join('1' * 100)}])": "100 axes are more than 64",
    f"transpose(m, order=[{','.join('1' * 70)}])": "70 axes are more than 64",
    "split_axis(m, axis=2, extents=[4])": "[4,4] has no axis 2",
    "split_axis(m, axis=1, extents=[3,2])": (
        "axis 1 of [4,4] cannot be split to [3,2]: the product is 6, not 4"
    ),
    "split_axis(m, axis=1, extents=[])": "an axis is split into at least one",
    "merge_axes(m, axis=1, count=2)": "[4,4] has no 2 axes from axis 1 to merge",
    "transpose(m, order=[0,0])": "(0, 0) does not permute the axes of [4,4]",
    "slice(m, axis=0, start=2, stop=5)": ("2:5 is not a range of the 4 coordinates of axis 0 of [4,4]"),
    "slice(m, axis=-1, start=0, stop=1)": "[4,4] has no axis -1",
    "concat(m, v, axis=0)": "source 1 of shape [4] cannot follow [4,4] along axis 0",
    "concat(m, f8, axis=0)": "operands differ in precision: F16[4,4] and F8(-4)[4,4]; cast one of them",
    "concat(axis=0)": "operands: at least one needed, none given",
}


@pytest.mark.parametrize("application", RULES)
def test_each_rule_of_types(application: str) -> None:
    operation = application.partition("(")[0]
    text = f"""graph m
input v: F16[4]
input m: F16[4,4]
input r: F16[4,5]
input s: F16[2,4]
input t: F16[3,4,4]
input b: F16[2,4,4]
input x32: F32[4,4]
input f8: F8(-4)[4,4]
y: F16[1] = {application}
output y
"""
    assert _refused(text) == (
        f"invalid model (graph): m: m.graph:10: y: {operation}: {RULES[application]}.\n"
        "  graph nodes: y\n"
        "  next: correct the model where it says so"
    )


def test_sizes_have_limits() -> None:
    """Axes, elements, iterations, characters of a name, digits; messages show part of what is long."""
    text = f"""graph m
input x: F16[4]
input many: F16[{",".join("1" * 65)}]
input large: F16[999999999999999999,2]
input {"n" * 1001}: F16[4]
r: F16[4] = repeat 2147483648 {{
  carried y: F16[4] = x
  yield y
}}
output r
"""
    end = "n" * 120
    assert _refused(text) == (
        "invalid model (graph): m: 4 faults\n"
        "    m.graph:3: many: 65 axes are more than 64\n"
        "    m.graph:4: large: F16[999999999999999999,2] has more than 999,999,999,999,999,999 elements\n"
        f"    m.graph:5: ...{end}: a name of 1,001 characters is longer than 1,000\n"
        "    m.graph:6: r: repeat: 2147483648 iterations are more than 2,147,483,647.\n"
        f"  graph nodes: many, large, ...{end}, r\n"
        "  next: correct the model where it says so"
    )
    assert _refused(f"graph m\ninput x: F16[{'9' * 5000}]\noutput {'y' * 99} z") == (
        "invalid model (graph): m: 2 faults\n"
        "    m.graph:2: input: an integer of 5000 digits is more than 18\n"
        "    m.graph:3: output: 'z' is too much.\n"
        "  next: correct the model where it says so"
    )
    assert _refused(f"graph m\ninput x: {'y' * 99}[2]\noutput x") == (
        f"invalid model (graph): m: m.graph:2: input: '{'y' * 40}...' is no precision: "
        "F32, F16 or F8(scale exponent).\n"
        "  next: correct the model where it says so"
    )


def test_numbers_that_are_none() -> None:
    text = """graph m
input a: F16[1] = normal(1e400)
input b: F16[-0] = constant(-0)
input c: F16[1] = constant(NaN)
input d: F16[1] = normal(-1)
output a
"""
    assert _refused(text) == (
        "invalid model (graph): m: 4 faults\n"
        "    m.graph:2: a: a standard deviation of inf does not exist\n"
        "    m.graph:3: b: F16[0]: axis 0 has extent 0, not at least 1\n"
        "    m.graph:4: c: the constant nan is not finite\n"
        "    m.graph:5: d: a standard deviation of -1.0 does not exist.\n"
        "  graph nodes: a, b, c, d\n"
        "  next: correct the model where it says so"
    )


def test_names_and_files_are_shown_so_that_they_can_be_printed() -> None:
    """Line ends and control codes of terminals are escapes in messages, whoever wrote them."""
    text = 'graph m\ninput "a\\nb\\u001b[31m": F16[0]  ; "f\\r\\u202e.py":7\noutput "\\ud800"\n'
    assert _refused(text) == (
        "invalid model (graph): m: 3 faults\n"
        "    m.graph:3: \\ud800: nothing defines it\n"
        "    f\\r\\u202e.py:7: a\\nb\\x1b[31m: the name 'a\\nb\\x1b[31m' cannot be printed\n"
        "    f\\r\\u202e.py:7: a\\nb\\x1b[31m: F16[0]: axis 0 has extent 0, not at least 1.\n"
        "  graph nodes: \\ud800, a\\nb\\x1b[31m\n"
        "  next: correct the model where it says so"
    )


def test_a_reshape_that_is_no_view() -> None:
    assert _refused("graph m\ninput x: F16[6,6]\ny: F16[4,9] = reshape(x, shape=[4,9])\noutput y") == (
        "invalid model (graph): m: m.graph:3: y: reshape: [6,6] to [4,9] is not made of splits of axes "
        "and then merges.\n"
        "  graph nodes: y\n"
        "  next: correct the model where it says so"
    )


MODEL = """\
from compiler.geometry.precision import F16
from compiler.graph.build import GraphBuilder


def model():
    build = GraphBuilder("several")
    x = build.input("x", (4, 16))
    scalar = build.input("scalar", ())
    empty = build.parameter("empty", (4, 0), fill=None)
    w = build.parameter("w", (32, 8))
    h = build.gemm(x, w, name="h")
    build.output(build.gelu(h))
    build.layer_norm(x, epsilon=float("nan"), name="n")
    with build.noted("told once"):
        twice = build.gelu(x, name="x")
    build.output(build.gelu(scalar))

    def body(inner, tensors):
        return {"y": inner.add(tensors["y"], twice, name="sum"), "z": tensors["y"]}

    build.repeat(2, body, carried={"y": x}, sequences={"s": [x], "y": [x, x]}, name="again")
    build.repeat(1, lambda inner, tensors: {}, carried={}, name="nothing")
    build.repeat(1, lambda inner, tensors: {"y": x}, carried={"y": x}, name="outside")
    return build
"""


def test_all_faults_of_a_builder_are_told_with_the_lines_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "several.py").write_text(MODEL)
    with pytest.raises(InvalidModel) as caught:
        load_model(str(tmp_path / "several.py"))
    assert str(caught.value) == (
        "invalid model (graph): several: 11 faults\n"
        "    several.py:8: scalar: F16[] has no axis: a value has at least one\n"
        "    several.py:9: empty: F16[4,0]: axis 1 has extent 0, not at least 1\n"
        "    several.py:11: h: gemm: left F16[4,16] has 16 columns, right F16[32,8] has 32 rows\n"
        "    several.py:13: n: layer_norm: epsilon is nan, not a positive finite number\n"
        "    several.py:15: x: another value has this name, at several.py:7\n"
        "    several.py:19: again/sum: x belongs to another block; "
        "a repeat sees values from outside as arguments\n"
        "    several.py:21: again: repeat: s has 1 members for 2 iterations\n"
        "    several.py:21: again: repeat: two arguments are called y\n"
        "    several.py:21: again: repeat: the body gives y, z for the carried values y\n"
        "    several.py:22: nothing: repeat: it carries no value\n"
        "    several.py:23: outside/y: x belongs to another block; "
        "a repeat sees values from outside as arguments.\n"
        "  graph nodes: scalar, empty, h, n, x, again/sum, again, nothing, outside/y\n"
        "  next: correct the model where it says so"
    )


UNTYPED = """\
from compiler.geometry.precision import F16
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Normal


def model():
    build = GraphBuilder("untyped")
    x = build.input("x", (4, 4))
    build.input("class", (4,), F16)
    build.input("letters", (4,), "F16")
    build.input("fill", (4,), fill=0.5)
    build.input(3, (4,))
    build.parameter("long", (10**5000,))
    build.gemm(x, x, transpose_left=1, name="flag")
    build.cast(x, None, name="cast")
    build.add(x, 3, name="number")
    build.gelu(None, name="nothing")
    build.repeat(2, lambda inner, tensors: None, carried={"y": x}, name="empty")
    build.repeat(2, lambda inner, tensors: {"y": 3}, carried={"y": x}, name="odd")
    build.repeat(10**30, lambda inner, tensors: tensors, carried={"y": x}, name="often")
    build.repeat(2, lambda inner, tensors: tensors, carried={"y": None}, name="start")
    build.gelu(x, name=7)
    build.output(None)
    return build
"""


def test_what_belongs_nowhere_is_told_where_it_was_given(tmp_path: Path) -> None:
    """Python holds nobody to annotations; none of this is a traceback, or a graph."""
    (tmp_path / "untyped.py").write_text(UNTYPED)
    with pytest.raises(InvalidModel) as caught:
        load_model(str(tmp_path / "untyped.py"))
    assert str(caught.value) == (
        "invalid model (graph): untyped: 15 faults\n"
        "    untyped.py:9: class: precision is the class F16, not a precision\n"
        "    untyped.py:10: letters: precision is a str, not a precision\n"
        "    untyped.py:11: fill: the fill is a float, not a fill or none\n"
        "    untyped.py:12: 3: the name is an int, not a text\n"
        "    untyped.py:13: long: shape[0] is an integer of more than 18 digits\n"
        "    untyped.py:14: flag: gemm: transpose_left is an int, not true or false\n"
        "    untyped.py:15: cast: cast: precision is none, not a precision\n"
        "    untyped.py:16: number: operand 1 is an int, not a tensor of this graph\n"
        "    untyped.py:17: nothing: operand 0 is none, not a tensor of this graph\n"
        "    untyped.py:18: empty: repeat: the body gives no mapping for the carried values y\n"
        "    untyped.py:19: odd/y: operand 0 is an int, not a tensor of this graph\n"
        "    untyped.py:20: often: repeat: count is an integer of more than 18 digits\n"
        "    untyped.py:21: start: operand 0 is none, not a tensor of this graph\n"
        "    untyped.py:22: 7: the name is an int, not a text\n"
        "    untyped.py:23: output: it is none, not a tensor of this graph.\n"
        "  graph nodes: class, letters, fill, 3, long, flag, cast, number, nothing, empty, odd/y, often, "
        "start, 7, output\n"
        "  next: correct the model where it says so"
    )


def test_repeats_nest_fifty_deep(tmp_path: Path) -> None:
    source = """\
from compiler.graph.build import GraphBuilder


def nested(build, tensors):
    return build.repeat(1, nested, carried={"x": tensors["x"]}, name="r")


def model():
    build = GraphBuilder("nested")
    build.output(nested(build, {"x": build.input("x", (4,))})["x"])
    return build
"""
    (tmp_path / "nested.py").write_text(source)
    with pytest.raises(InvalidModel) as caught:
        load_model(str(tmp_path / "nested.py"))
    shown = "r/" * 50 + "r"
    assert str(caught.value) == (
        f"invalid model (graph): nested: nested.py:5: {shown}: "
        "repeat: more than 50 repeats inside one another.\n"
        f"  graph nodes: {shown}\n"
        "  next: correct the model where it says so"
    )


def test_graphs_made_by_hand_hold_what_they_are_declared_to(tmp_path: Path) -> None:
    (tmp_path / "hand.py").write_text(
        "from compiler.graph.ir import Graph\n"
        "def model():\n"
        "    return Graph(name=3, block=None, input_count='a', fills=[])\n"
    )
    with pytest.raises(InvalidModel) as caught:
        load_model(str(tmp_path / "hand.py"))
    assert str(caught.value) == (
        "invalid model (graph): 3: 4 faults\n"
        "    the graph: name is an int, not a text\n"
        "    the graph: block is none, not a Block\n"
        "    the graph: input_count is a str, not an integer\n"
        "    the graph: fills is a list, not a tuple.\n"
        "  next: correct the model where it says so"
    )


def test_asking_a_faulty_value_tells_the_faults_so_far() -> None:
    build = GraphBuilder("early")
    x, w = build.input("x", (4, 16)), build.parameter("w", (8, 8))
    bad = build.gemm(x, w, name="bad")
    with pytest.raises(InvalidModel, match="bad: gemm: left") as caught:
        build.split_axis(x, 0, bad.shape)
    assert caught.value.nodes == ("bad",)


LOADED = {
    "model = 3": (
        "it has no function model.\n"
        "  next: define model(), or name another function behind the path: m.py:NAME"
    ),
    "def model():\n    return 3": (
        "model() gives an int, not a Graph.\n  next: return the graph that GraphBuilder.finish() gives"
    ),
    "def model(:\n": (
        "m.py:1: SyntaxError: invalid syntax (m.py, line 1).\n  next: correct the file; it must run by itself"
    ),
    "import sys\nsys.exit(3)": "m.py:2: SystemExit: 3.\n  next: correct the file; it must run by itself",
    "def helper():\n    return [][1]\n\n\ndef model():\n    return helper()": (
        "m.py:2: IndexError: list index out of range.\n  next: correct the file; it must run by itself"
    ),
    "def model(batch):\n    return batch": (
        "TypeError: model() missing 1 required positional argument: 'batch'.\n"
        "  next: correct the file; it must run by itself"
    ),
    "import sys\nsys.exit()": "m.py:2: SystemExit.\n  next: correct the file; it must run by itself",
    "class Stop(BaseException):\n    pass\n\n\ndef model():\n    raise Stop('x\\x1b[31m')": (
        "m.py:6: Stop: x\\x1b[31m.\n  next: correct the file; it must run by itself"
    ),
    "class Odd(Exception):\n    def __str__(self):\n        raise self\n\n\nraise Odd": (
        "m.py:6: Odd.\n  next: correct the file; it must run by itself"
    ),
    "def model():\n    return model()": (
        "m.py:2: RecursionError: maximum recursion depth exceeded.\n"
        "  next: correct the file; it must run by itself"
    ),
    "a = 1\0": (
        "SyntaxError: source code string cannot contain null bytes.\n"
        "  next: correct the file; it must run by itself"
    ),
    "import sys\ndel sys.modules[__name__]\n\n\ndef model():\n    return None": (
        "model() gives none, not a Graph.\n  next: return the graph that GraphBuilder.finish() gives"
    ),
    "import nowhere_at_all": (
        "m.py:1: ModuleNotFoundError: No module named 'nowhere_at_all'.\n"
        "  next: correct the file; it must run by itself"
    ),
}


@pytest.mark.parametrize("source", LOADED)
def test_python_files_that_give_no_model(source: str, tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text(source)
    with pytest.raises((InvalidModel, InvalidInput)) as caught:
        load_model(str(tmp_path / "m.py"))
    kind = "invalid input" if isinstance(caught.value, InvalidInput) else "invalid model"
    assert str(caught.value) == f"{kind} (load model): m.py: {LOADED[source]}"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bytes.graph").write_bytes(b"graph \xff")
    for name, reason in (
        ("none.py", "it cannot be read (No such file or directory)"),
        (".", "it cannot be read (Is a directory)"),
        ("bytes.graph", "it is no text: byte 6 is not UTF-8"),
        ("a\0b", "it cannot be read (embedded null byte)"),
    ):
        place = tmp_path / name
        with pytest.raises(InvalidInput) as caught:
            load_model(str(place))
        assert str(caught.value) == (
            f"invalid input (load model): {place}: {reason}.\n  next: give the path of a readable file"
        )


def test_unknown_names_of_models() -> None:
    with pytest.raises(InvalidInput) as caught:
        model_named("vit-smal")
    assert str(caught.value) == (
        "invalid input (models): vit-smal: there is no model of this name.\n"
        "  next: perhaps vit-small or vit-small-f8"
    )
    with pytest.raises(InvalidInput) as caught:
        model_named("nothing like it")
    assert str(caught.value) == (
        "invalid input (models): nothing like it: there is no model of this name.\n"
        "  next: list the names with: tilewright models"
    )


@pytest.mark.parametrize(
    ("tensors", "reason"),
    [
        ({}, "it has no values"),
        ({"x": np.zeros(3, np.float16)}, "the values have shape [3], not [4]"),
        ({"x": np.zeros(4, np.float32)}, "the values are float32; F16 is float16"),
    ],
)
def test_values_that_do_not_belong_to_a_graph(
    tensors: dict[str, npt.NDArray[np.generic]], reason: str
) -> None:
    graph = parse_graph("graph m\ninput x: F16[4]\noutput x", "m.graph")
    with pytest.raises(InvalidInput) as caught:
        evaluate(graph, tensors, Numerics.F32)
    assert str(caught.value) == (
        f"invalid input (evaluate): x: {reason}.\n  graph nodes: x\n  next: bring F16[4] for it"
    )


def test_random_values_without_a_fill() -> None:
    graph = parse_graph("graph m\ninput x: F16[4]\noutput x", "m.graph")
    with pytest.raises(InvalidInput) as caught:
        RandomTensors(graph, 0)
    assert str(caught.value) == (
        "invalid input (random values): x: the model says no fill for it, so there are no random values.\n"
        "  graph nodes: x\n"
        "  next: bring values, or give it a fill in the model"
    )
