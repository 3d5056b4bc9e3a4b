"""The structure of a graph and its digest: what it computes, not what things are called and where written.

In: a well-formed graph. Out: plain values (numbers, texts and tuples of such), and the SHA-256 of their
canonical encoding. Names of graph and values, files, lines and notes are factored out (style of Cranelift's
stencils): two models that differ in nothing else are built once. Everything else counts: order of inputs,
outputs and nodes, types, attributes to the last bit, bodies, bindings, and the fills, since they decide what
a run without a user's values computes. Rows of the table of values do not, only the order in which values are
defined.

The store keeps structures in the same encoding (``codec``), so that the digest of a stored structure is that
of its graph.
"""

import dataclasses
from typing import Final, TypeAlias, assert_never, cast

from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.ir import Block, Constant, Fill, Graph, Node, Normal, Operation, Repeat, TensorType
from compiler.graph.order import in_definition_order
from compiler.graph.rules import name_of
from compiler.store.canonical import digest_value
from compiler.store.digest import Digest

Plain: TypeAlias = "bool | int | float | str | tuple[Plain, ...] | None"

FORMAT: Final = ("graph", 2)
"""First in what is hashed; raise the number to disown all earlier digests."""


def graph_digest(graph: Graph) -> Digest:
    """The digest."""
    return digest_value(plain_structure(graph))


def plain_structure(graph: Graph) -> Plain:
    """The structure: ``codec.structure_of_plain`` makes a graph of it again."""
    return (FORMAT, graph.input_count, tuple(map(_fill, graph.fills)), _block(graph.block))


def _block(block: Block) -> Plain:
    ordered = in_definition_order(block)
    return (
        tuple(_type(value.type) for value in ordered.values),
        ordered.arguments,
        tuple(map(_node, ordered.nodes)),
        ordered.results,
    )


def _node(node: Node) -> Plain:
    return (name_of(node.operation), _attributes(node.operation), node.operands, node.results)


def _attributes(operation: Operation) -> Plain:
    if isinstance(operation, Repeat):
        return (operation.count, operation.carried, operation.invariants, _block(operation.body))
    return tuple(_attribute(getattr(operation, field.name)) for field in dataclasses.fields(operation))


def _attribute(value: object) -> Plain:
    if isinstance(value, F32 | F16 | F8):
        return _precision(value)
    return cast("Plain", value)


def _type(tensor: TensorType) -> Plain:
    return (_precision(tensor.precision), tensor.shape)


def _precision(precision: Precision) -> Plain:
    """Starts with a text, which no other attribute does."""
    match precision:
        case F32():
            return ("F32",)
        case F16():
            return ("F16",)
        case F8(scale_exponent=scale):
            return ("F8", scale)


def _fill(fill: Fill | None) -> Plain:
    match fill:
        case None:
            return None
        case Normal(sigma=sigma):
            return ("normal", sigma)
        case Constant(value=value):
            return ("constant", value)
        case _:
            assert_never(fill)
