"""The importer of ONNX models, against ONNX's own reference evaluator."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from compiler.errors import InvalidModel, TilewrightError, Unsupported
from compiler.frontend.onnx_file import Imported, import_onnx
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import Gelu, Gemm, Graph
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph

F32 = onnx.TensorProto.FLOAT
Array = npt.NDArray[np.float32]


def numbers(*shape: int, seed: int = 0) -> Array:
    """Numbers that F16 holds exactly, so that both sides compute with the same."""
    drawn = np.random.default_rng(seed).standard_normal(shape) / math.sqrt(shape[-1])
    return drawn.astype(np.float16).astype(np.float32)


def integers(*values: int) -> npt.NDArray[np.int64]:
    """Of shapes, axes and places."""
    return np.array(values, dtype=np.int64)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int | str, ...]],
    constants: dict[str, npt.NDArray[np.generic]],
    outputs: Sequence[str] = ("y",),
    version: int = 20,
) -> onnx.ModelProto:
    """A model whose outputs have no declared shape."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, F32, list(shape)) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, F32, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)


def imported(model: onnx.ModelProto) -> Imported:
    """What the importer makes of it."""
    return import_onnx(model.SerializeToString(), "m.onnx")


def check(model: onnx.ModelProto, *, within: float = 2e-3) -> Graph:
    """The graph computes what ONNX says; it is the same again, and survives its text."""
    found = imported(model)
    graph = found.graph
    given = {
        graph.block.values[row].name: numbers(*graph.block.values[row].type.shape, seed=9 + row)
        for row in graph.inputs
    }
    wanted: list[Array] = ReferenceEvaluator(model).run(None, dict(given))  # pyright: ignore[reportAssignmentType, reportUnknownMemberType]  # ONNX's own types
    halves = {name: array.astype(np.float16) for name, array in given.items()}
    results = evaluate(graph, {**halves, **found.values}, Numerics.F32)
    names = [output.name for output in model.graph.output]
    assert list(results) == names
    for name, reference in zip(names, wanted, strict=True):
        assert results[name].shape == np.shape(reference)
        np.testing.assert_allclose(results[name], reference, atol=within, rtol=within)
    again = imported(model)
    assert again.graph == graph
    text = text_of_graph(graph, with_provenance=True)
    assert text_of_graph(parse_graph(text, "m"), with_provenance=True) == text
    return graph


EXACT = [
    ("Div", ["h", "root2"], "a"),
    ("Erf", ["a"], "b"),
    ("Add", ["b", "one"], "c"),
    ("Mul", ["h", "c"], "d"),
    ("Mul", ["d", "half"], "y"),
]
"""As one exporter writes a GELU."""
EXACT_OTHERWISE = [
    ("Mul", ["half", "h"], "a"),
    ("Mul", ["h", "root_half"], "b"),
    ("Erf", ["b"], "c"),
    ("Add", ["one", "c"], "d"),
    ("Mul", ["d", "a"], "y"),
]
"""As another does."""
TANH = [
    ("Pow", ["h", "three"], "a"),
    ("Mul", ["a", "cubic"], "b"),
    ("Add", ["h", "b"], "c"),
    ("Mul", ["c", "linear"], "d"),
    ("Tanh", ["d"], "e"),
    ("Add", ["e", "one"], "f"),
    ("Mul", ["h", "f"], "g"),
    ("Mul", ["g", "half"], "y"),
]
SCALARS: dict[str, npt.NDArray[np.generic]] = {
    name: np.array(value, dtype=np.float32)
    for name, value in {
        "root2": math.sqrt(2),
        "root_half": math.sqrt(0.5),
        "one": 1.0,
        "half": 0.5,
        "three": 3.0,
        "cubic": 0.044715,
        "linear": math.sqrt(2 / math.pi),
    }.items()
}


@pytest.mark.parametrize("gelu", [EXACT, EXACT_OTHERWISE, TANH])
def test_a_gelu_is_recognized_however_it_is_written(gelu: list[tuple[str, list[str], str]]) -> None:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "bias"], ["h"]),
        *(helper.make_node(kind, operands, [result]) for kind, operands, result in gelu),
    ]
    graph = check(model_of(nodes, {"x": (5, 24)}, {"w": numbers(24, 40), "bias": numbers(40), **SCALARS}))
    assert [type(node.operation).__name__ for node in graph.block.nodes] == ["Gemm", "Add", "Gelu"]
    assert [graph.block.values[row].name for row in graph.parameters] == ["w", "bias"]


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_operation_of_later_sets(approximate: str) -> None:
    node = helper.make_node("Gelu", ["x"], ["y"], approximate=approximate)
    graph = check(model_of([node], {"x": (3, 7)}, {}))
    assert isinstance(graph.block.nodes[0].operation, Gelu)


def test_what_is_almost_a_gelu_is_none() -> None:
    """With 0.0447 for 0.044715, and 1.7 for the root: nothing is taken for what it is not."""
    for name, value, gelu in (("cubic", 0.0447, TANH), ("root2", 1.4, EXACT)):
        nodes = [helper.make_node(kind, operands, [result]) for kind, operands, result in gelu]
        constants = {**SCALARS, name: np.array(value, dtype=np.float32)}
        with pytest.raises(Unsupported) as refused:
            imported(model_of(nodes, {"h": (2, 3)}, constants))
        assert f"there are {len(gelu)} nodes that cannot be taken" in str(refused.value)


def test_products_of_every_form() -> None:
    """Transposed, with and without bias, batches broadcast, odd extents."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "c"], ["first"], transB=1),
        helper.make_node("Gemm", ["first", "v"], ["second"], transA=1),
        helper.make_node("MatMul", ["z", "u"], ["y"]),
    ]
    constants: dict[str, npt.NDArray[np.generic]] = {
        "w": numbers(13, 7),
        "c": numbers(13),
        "v": numbers(5, 3),
        "u": numbers(1, 9, 11),
    }
    graph = check(model_of(nodes, {"x": (5, 7), "z": (2, 3, 9)}, constants, ("second", "y")))
    assert sum(isinstance(node.operation, Gemm) for node in graph.block.nodes) == 3


def test_views() -> None:
    """Reshape with 0 and -1, transpose, slices from the end, split, concat, squeeze and flatten."""
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["a"]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1, 3]),
        helper.make_node("Slice", ["b", "starts", "stops", "axes"], ["c"]),
        helper.make_node("Split", ["c", "parts"], ["d", "e"], axis=-1),
        helper.make_node("Concat", ["e", "d"], ["f"], axis=3),
        helper.make_node("Unsqueeze", ["f", "front"], ["g"]),
        helper.make_node("Squeeze", ["g", "front"], ["h"]),
        helper.make_node("Flatten", ["h"], ["i"], axis=2),
        helper.make_node("Identity", ["i"], ["j"]),
        helper.make_node("Cast", ["j"], ["y"], to=F32),
    ]
    constants: dict[str, npt.NDArray[np.generic]] = {
        "shape": integers(0, 0, 3, -1),
        "starts": integers(-4, 0),
        "stops": integers(1000, -1),
        "axes": integers(2, 1),
        "parts": integers(2, 3),
        "front": integers(0),
    }
    check(model_of(nodes, {"x": (2, 6, 15)}, constants), within=0.0)


def test_constants_as_nodes_and_equal_parts() -> None:
    value = numpy_helper.from_array(numbers(4, 6), "k")
    nodes = [
        helper.make_node("Constant", [], ["k"], value=value),
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Add", ["a", "k"], ["y"]),
        helper.make_node("Add", ["b", "k"], ["z"]),
    ]
    graph = check(model_of(nodes, {"x": (4, 12)}, {}, ("y", "z")), within=1e-6)
    assert [graph.block.values[row].name for row in graph.parameters] == ["k"]


def test_rows_are_normalized() -> None:
    nodes = [
        helper.make_node("LayerNormalization", ["x", "s", "b"], ["n"], axis=-1, epsilon=1e-6),
        helper.make_node("Softmax", ["n"], ["y"], axis=-1),
    ]
    check(model_of(nodes, {"x": (3, 10)}, {"s": numbers(10), "b": numbers(10, seed=4)}))


def test_all_obstacles_are_told_at_once() -> None:
    """By their nodes; what only stands behind one is none."""
    nodes = [
        helper.make_node("LSTM", ["x"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="behind"),
        helper.make_node("Mul", ["x", "x2"], ["c"], name="product"),
        helper.make_node("Slice", ["x", "zero", "two", "zero", "two"], ["d"], name="sparse"),
        helper.make_node("Concat", ["b", "c", "d"], ["y"], axis=0, name="last"),
    ]
    constants: dict[str, npt.NDArray[np.generic]] = {"zero": integers(0), "two": integers(2)}
    with pytest.raises(Unsupported) as refused:
        imported(model_of(nodes, {"x": (4, 4), "x2": (4, 4)}, constants))
    assert str(refused.value) == (
        "unsupported (onnx): m.onnx: there are 3 nodes that cannot be taken: first: LSTM: no such operation; "
        "product: Mul: it is no part of a GELU; sparse: Slice: with steps other than 1.\n"
        "  graph nodes: first, product, sparse\n"
        "  next: export the model without them; docs/onnx.md lists what is supported"
    )


def _model() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], {"x": (2, 4)}, {"w": numbers(4, 4)})


def _open_axis() -> onnx.ModelProto:
    return model_of([helper.make_node("Gelu", ["x"], ["y"])], {"x": ("batch", 4)}, {})


def _elsewhere() -> onnx.ModelProto:
    model = _model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    return model


def _large() -> onnx.ModelProto:
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    return model_of([node], {"x": (2, 4)}, {"w": np.full((4, 4), 1e6, dtype=np.float32)})


@pytest.mark.parametrize(
    ("model", "kind", "said"),
    [
        (_open_axis(), Unsupported, "input x: its axes batch have no extent"),
        (_elsewhere(), Unsupported, "the values of w are in other files"),
        (_large(), Unsupported, "w holds numbers that F16 has not"),
        (
            model_of([helper.make_node("Gelu", ["x"], ["y"])], {"x": (2,)}, {}, version=12),
            Unsupported,
            "its operator set is 12",
        ),
        (
            model_of([helper.make_node("Gelu", ["q"], ["y"])], {"x": (2,)}, {}),
            InvalidModel,
            "takes q, which nothing before it gives",
        ),
        (
            model_of([helper.make_node("Gelu", ["x"], ["z"])], {"x": (2,)}, {}),
            InvalidModel,
            "nothing gives its output y",
        ),
        (
            model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (2, 5)}, {"w": numbers(4, 4)}),
            InvalidModel,
            "gemm",
        ),
    ],
)
def test_what_cannot_be_taken_is_told(model: onnx.ModelProto, kind: type[TilewrightError], said: str) -> None:
    with pytest.raises(kind) as refused:
        imported(model)
    assert said in str(refused.value)


def test_bytes_that_are_no_model() -> None:
    for content in (b"", b"\x00\x01nonsense", _model().SerializeToString()[:-7]):
        with pytest.raises(InvalidModel):
            import_onnx(content, "m.onnx")
