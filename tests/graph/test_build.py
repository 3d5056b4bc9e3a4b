"""The builder: inferred types, names, provenance, and that bodies are built once."""

import inspect
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from compiler.geometry.precision import F8, F16, F32
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Provenance, Repeat, SplitAxis


def test_results_are_as_wide_as_the_wider_operand_and_at_least_f16() -> None:
    build = GraphBuilder("precisions")
    narrow = build.input("narrow", (2, 4, 4), F8(scale_exponent=-3))
    half, single = build.input("half", (4, 4)), build.input("single", (4, 4), F32())
    eight = F8(scale_exponent=-3)
    assert build.gemm(narrow, narrow).type.precision == F16()
    assert build.gemm(narrow, half, precision=eight).type.precision == F16()
    assert build.gemm(half, single, precision=F16()).type.precision == F32()
    assert build.gemm(narrow, half, precision=eight).shape == (2, 4, 4)
    assert build.attention(half, half, half, scale=1).type.precision == F16()
    assert build.attention(single, single, single, scale=1, value_precision=eight).type.precision == F32()
    assert build.slice(narrow, 0, 1, 2).type.precision == eight


def test_every_value_knows_its_line_and_its_notes() -> None:
    build = GraphBuilder("lines")
    x = build.input("x", (4,))
    with build.noted("outer"), build.noted("inner"):
        build.output(build.gelu(x))
    frame = inspect.currentframe()
    assert frame is not None
    line = frame.f_lineno - 3
    values = build.finish().block.values
    assert values[1].provenance == Provenance(file=Path(__file__).name, line=line, note="outer, inner")
    assert values[0].provenance == Provenance(file=Path(__file__).name, line=line - 2)


def test_names_are_given_or_numbered_and_never_clash() -> None:
    build = GraphBuilder("names")
    x = build.input("gelu_1", (4,))
    y = build.gelu(x)
    z = build.gelu(y, name="named")
    build.output(build.gelu(z))
    names = [value.name for value in build.finish().block.values]
    assert len(set(names)) == 4
    assert names[2] == "named"


def test_a_body_is_built_once_whatever_the_count() -> None:
    calls: list[list[str]] = []

    def body(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        calls.append(list(tensors))
        return {"x": build.gemm(tensors["x"], tensors["w"])}

    sizes: list[int] = []
    for count in (1, 1000):
        build = GraphBuilder("repeat")
        weights = [build.parameter(f"w{number}", (4, 4)) for number in range(count)]
        made = build.repeat(
            count, body, carried={"x": build.input("x", (4, 4))}, sequences={"w": weights}, name="layers"
        )
        build.output(made["x"])
        (node,) = build.finish().block.nodes
        assert isinstance(node.operation, Repeat)
        assert node.operation.sequences == 1
        sizes.append(len(node.operation.body.nodes))
    assert calls == [["x", "w"]] * 2
    assert sizes == [1, 1]


def test_numbers_of_numpy_become_plain_ones() -> None:
    build = GraphBuilder("numpy")
    x = build.input("x", [np.int64(4), np.uint8(6)])
    build.output(build.split_axis(x, np.int8(1), [np.int64(2), np.int32(3)]))
    graph = build.finish()
    assert all(type(extent) is int for value in graph.block.values for extent in value.type.shape)
    assert graph.block.nodes[0].operation == SplitAxis(axis=1, extents=(2, 3))
