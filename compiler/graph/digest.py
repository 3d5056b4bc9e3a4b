"""The digest of a graph: what it computes, without what things are called and where they were written.

In: a well-formed graph. Out: the SHA-256 of its canonical encoding. Names of graph and values, files, lines
and notes are factored out (style of Cranelift's stencils): two models that differ in nothing else are built
once. Everything else counts: order of inputs, outputs and nodes, types, attributes to the last bit, bodies,
bindings, and the fills, since they decide what a run without a user's values computes. Rows of the table of
values do not, only the order in which values are defined.
"""

from typing import Final

from compiler.graph.ir import Block, Graph, Node, Repeat
from compiler.graph.order import in_definition_order
from compiler.graph.rules import name_of
from compiler.store.canonical import digest_value
from compiler.store.digest import Digest

_FORMAT: Final = ("graph", 1)
"""First in what is hashed; raise the number to disown all earlier digests."""


def graph_digest(graph: Graph) -> Digest:
    """The digest."""
    return digest_value((_FORMAT, graph.input_count, graph.fills, _block(graph.block)))


def _block(block: Block) -> tuple[object, ...]:
    ordered = in_definition_order(block)
    return (
        tuple(value.type for value in ordered.values),
        ordered.arguments,
        tuple(map(_node, ordered.nodes)),
        ordered.results,
    )


def _node(node: Node) -> tuple[object, ...]:
    operation = node.operation
    attributes = (
        (operation.count, operation.carried, operation.invariants, _block(operation.body))
        if isinstance(operation, Repeat)
        else operation
    )
    return (name_of(operation), attributes, node.operands, node.results)
