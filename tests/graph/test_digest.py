"""The digest: blind for names and notes, and for nothing else."""

import dataclasses
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, F32
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.digest import graph_digest
from compiler.graph.ir import (
    Block,
    Constant,
    Graph,
    Node,
    Normal,
    Operation,
    Provenance,
    Repeat,
    TensorType,
    ValueId,
)
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from tests.graph.strategies import graphs


def _renamed(block: Block, suffix: str) -> Block:
    """Other names, files, lines and notes everywhere."""
    values = [
        replace(
            value, name=f"{value.name}{suffix}", provenance=Provenance(file="other", line=number, note=suffix)
        )
        for number, value in enumerate(block.values)
    ]
    nodes = [
        replace(node, operation=replace(node.operation, body=_renamed(node.operation.body, suffix)))
        if isinstance(node.operation, Repeat)
        else node
        for node in block.nodes
    ]
    return replace(block, values=tuple(values), nodes=tuple(nodes))


def _shuffled(block: Block, order: list[int]) -> Block:
    """The same block with the rows of its table in another order."""
    row = {ValueId(old): ValueId(new) for new, old in enumerate(order)}

    def moved(values: tuple[ValueId, ...]) -> tuple[ValueId, ...]:
        return tuple(row[value] for value in values)

    return Block(
        values=tuple(block.values[old] for old in order),
        arguments=moved(block.arguments),
        nodes=tuple(
            replace(node, operands=moved(node.operands), results=moved(node.results)) for node in block.nodes
        ),
        results=moved(block.results),
    )


@given(data=st.data())
def test_names_notes_and_rows_do_not_matter(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    digest = graph_digest(graph)
    renamed = replace(graph, name="other", block=_renamed(graph.block, "!"))
    assert graph_digest(renamed) == digest
    order = data.draw(st.permutations(range(len(graph.block.values))))
    assert graph_digest(replace(graph, block=_shuffled(graph.block, order))) == digest
    assert graph_digest(parse_graph(text_of_graph(graph, with_provenance=False), "f")) == digest


def example() -> Graph:
    """One of everything."""
    build = GraphBuilder("everything")
    x = build.input("x", (4, 16, 16), fill=Normal(sigma=0.5))
    y = build.input("y", (4, 16, 16), fill=Constant(value=1))
    w = build.parameter("w", (16, 16), fill=Normal(sigma=1))
    v = build.parameter("v", (16,))
    h = build.gemm(x, w, transpose_right=True, precision=F8(scale_exponent=-1))
    h = build.layer_norm(build.gelu(build.add(h, y)), (v, v), epsilon=1e-6)
    h = build.softmax(build.attention(h, x, y, scale=0.25, score_precision=F8()))
    h = build.merge_axes(build.split_axis(h, 1, (4, 4)), 1, 2)
    h = build.concat([build.slice(build.transpose(h, (0, 2, 1)), 1, 0, 8), x], 1)
    h = build.reshape(h, (4, 24, 4, 4))

    def body(build: BlockBuilder, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"a": tensors["b"], "b": build.add(build.add(tensors["a"], tensors["c"]), tensors["m"])}

    made = build.repeat(
        2,
        lambda build, tensors: body(build, dict(tensors)),
        carried={"a": x, "b": y},
        invariants={"m": x},
        sequences={"c": [x, y]},
    )
    build.output(h)
    build.output(build.cast(made["a"], F32()))
    build.output(made["b"])
    return build.finish()


def _other(value: object) -> object:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * (1 + 2**-52)
        case tuple():
            return (*value, 1)  # pyright: ignore[reportUnknownVariableType]  # shapes
        case F8():
            return F8(scale_exponent=value.scale_exponent + 1)
        case _:
            return F8(scale_exponent=7)


def _changed_operations(operation: Operation) -> Iterator[Operation]:
    for field in dataclasses.fields(operation):
        value: object = getattr(operation, field.name)
        if not isinstance(value, Block):
            yield dataclasses.replace(operation, **{field.name: _other(value)})


def _changed_blocks(block: Block) -> Iterator[Block]:
    for number, value in enumerate(block.values):
        for type_ in (
            TensorType(precision=value.type.precision, shape=(*value.type.shape, 1)),
            TensorType(precision=F32() if value.type.precision == F16() else F16(), shape=value.type.shape),
        ):
            values = (*block.values[:number], replace(value, type=type_), *block.values[number + 1 :])
            yield replace(block, values=values)
    for number, node in enumerate(block.nodes):
        changed: list[Node] = [
            replace(node, operation=other) for other in _changed_operations(node.operation)
        ]
        for position, operand in enumerate(node.operands):
            other = block.arguments[0] if operand != block.arguments[0] else block.arguments[1]
            operands = (*node.operands[:position], other, *node.operands[position + 1 :])
            changed.append(replace(node, operands=operands))
        changed.append(replace(node, operands=(*node.operands, block.arguments[0])))
        if isinstance(node.operation, Repeat):
            bodies = _changed_blocks(node.operation.body)
            changed += [replace(node, operation=replace(node.operation, body=body)) for body in bodies]
        for each in changed:
            yield replace(block, nodes=(*block.nodes[:number], each, *block.nodes[number + 1 :]))
        yield replace(
            block, nodes=(*block.nodes[:number], *block.nodes[number:][1:2], node, *block.nodes[number + 2 :])
        )
    if len(block.results) > 1:
        yield replace(block, results=block.results[::-1])
    yield replace(block, results=block.results[:-1])
    yield replace(block, arguments=(block.arguments[1], block.arguments[0], *block.arguments[2:]))


def test_everything_else_matters() -> None:
    """Each attribute by its least bit, each type, operand, binding, order, fill and kind of argument."""
    graph = example()
    changed = [replace(graph, block=block) for block in _changed_blocks(graph.block)]
    changed.append(replace(graph, input_count=1))
    for number, fill in enumerate(graph.fills):
        others = (Normal(sigma=0.75), Constant(value=0.5), None)
        changed += [
            replace(graph, fills=(*graph.fills[:number], other, *graph.fills[number + 1 :]))
            for other in others
            if other != fill
        ]
    digests = [graph_digest(each) for each in changed if each != graph]
    assert len(digests) >= 150
    assert graph_digest(graph) not in digests


def test_integers_and_floats_of_one_value_are_one() -> None:
    whole, real = ([Normal(sigma=number), Constant(value=number)] for number in (2, 2.0))
    assert [repr(fill) for fill in whole] == [repr(fill) for fill in real]


def test_digest_is_the_same_in_every_process() -> None:
    program = (
        "from tests.graph.test_digest import example\n"
        "from compiler.graph.digest import graph_digest\n"
        "print(graph_digest(example()))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert found.stdout.strip() == graph_digest(example())
