"""The graph as text, a line for each value; ``parser`` reads it back.

::

    graph mlp
    input x: F16[64,256] = normal(0.5)
    parameter up: F8(-4)[256,1024]
    h: F16[64,1024] = gemm(x, up, precision=F8(-4))  ; mlp.py:12 "first layer"
    z: F16[64,1024] = repeat 3 {
      carried y: F16[64,1024] = h
      y1: F16[64,1024] = gelu(y)
      yield y1
    }
    output z

Stable: it depends on the graph alone. A name that is not plain is quoted as in JSON. Attributes that have
their default are left out. Behind ``;`` stands the provenance, which a reader may leave out too.
"""

import dataclasses
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from compiler.geometry.mapping import text_of_shape
from compiler.geometry.precision import F8, F16, F32
from compiler.graph.ir import (
    Block,
    Constant,
    Fill,
    Graph,
    Node,
    Normal,
    Operation,
    Provenance,
    Repeat,
    Value,
    ValueId,
    text_of_precision,
)
from compiler.graph.rules import name_of

PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*", re.ASCII)
"""Names that need no quotes."""

_INDENT: Final = "  "


def text_of_graph(graph: Graph, *, with_provenance: bool = True) -> str:
    """The text of a well-formed graph."""
    values = graph.block.values
    lines = [f"graph {text_of_name(graph.name)}"]
    for number, (argument, fill) in enumerate(zip(graph.block.arguments, graph.fills, strict=True)):
        kind = "input" if number < graph.input_count else "parameter"
        filled = "" if fill is None else f" = {text_of_fill(fill)}"
        lines.append(
            f"{kind} {_declared(values[argument])}{filled}{_origin(values[argument], with_provenance)}"
        )
    lines += _node_lines(graph.block, "", with_provenance)
    lines.append(f"output {_names(graph.block, graph.outputs)}")
    return "\n".join(lines) + "\n"


def text_of_name(name: str) -> str:
    """The name, in quotes if it is not plain."""
    return name if PLAIN_NAME.fullmatch(name) else json.dumps(name)


def text_of_fill(fill: Fill) -> str:
    """``normal(0.5)``, ``constant(1.0)``."""
    match fill:
        case Normal(sigma=sigma):
            return f"normal({sigma!r})"
        case Constant(value=value):
            return f"constant({value!r})"
        case _:
            assert_never(fill)


def _names(block: Block, values: Sequence[ValueId]) -> str:
    return ", ".join(text_of_name(block.values[value].name) for value in values)


def _declared(value: Value) -> str:
    return f"{text_of_name(value.name)}: {value.type}"


def _origin(value: Value, with_provenance: bool) -> str:
    provenance: Provenance | None = value.provenance
    if provenance is None or not with_provenance:
        return ""
    note = f" {json.dumps(provenance.note)}" if provenance.note else ""
    return f"  ; {text_of_name(provenance.file)}:{provenance.line}{note}"


def _node_lines(block: Block, indent: str, with_provenance: bool) -> Iterator[str]:
    for node in block.nodes:
        results = [block.values[result] for result in node.results]
        declared = ", ".join(map(_declared, results))
        origin = _origin(results[0], with_provenance)
        operation = node.operation
        if isinstance(operation, Repeat):
            yield f"{indent}{declared} = repeat {operation.count} {{{origin}"
            yield from _body_lines(block, node, operation, indent + _INDENT, with_provenance)
            yield f"{indent}}}"
        else:
            terms = [text_of_name(block.values[operand].name) for operand in node.operands]
            terms += _attributes(operation)
            yield f"{indent}{declared} = {name_of(operation)}({', '.join(terms)}){origin}"


def _body_lines(
    block: Block,
    node: Node,
    operation: Repeat,
    indent: str,
    with_provenance: bool,
) -> Iterator[str]:
    body = operation.body
    bound = operation.bindings(node.operands)
    kinds = [
        *(("carried", (operand,)) for operand in bound.carried),
        *(("invariant", (operand,)) for operand in bound.invariants),
        *(("sequence", members) for members in bound.sequences),
    ]
    for argument, (kind, operands) in zip(body.arguments, kinds, strict=True):
        value = body.values[argument]
        origin = _origin(value, with_provenance)
        yield f"{indent}{kind} {_declared(value)} = {_names(block, operands)}{origin}"
    yield from _node_lines(body, indent, with_provenance)
    yield f"{indent}yield {_names(body, body.results)}"


def _attributes(operation: Operation) -> Iterator[str]:
    for field in dataclasses.fields(operation):
        value: object = getattr(operation, field.name)
        if value != field.default:
            yield f"{field.name}={_attribute(value)}"


def _attribute(value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case F32() | F16() | F8():
            return text_of_precision(value)
        case tuple():
            return text_of_shape(value)  # pyright: ignore[reportUnknownArgumentType]  # every such field is a Shape
        case _:
            raise TypeError(f"{value!r} is no attribute of an operation")
