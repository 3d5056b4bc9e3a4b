"""Where values cross from what makes them to what reads them, and in which forms they can wait there.

A boundary is a value of the graph that a node makes and another one of its block reads, views included. What
a recipe can say of it depends on the graph alone.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from compiler.graph.ir import Add, Block, Gemm, Graph, Node, Repeat
from compiler.planner.recipe import Boundary


def boundaries_of(graph: Graph) -> Mapping[str, tuple[Boundary, ...]]:
    """By path of a value, the forms in which it can wait, ``as made`` first; in order of nodes."""
    return dict(_boundaries(graph.block, ""))


def _boundaries(block: Block, prefix: str) -> Iterator[tuple[str, tuple[Boundary, ...]]]:
    read = {operand for node in block.nodes for operand in node.operands}
    multiplied = {
        operand for node in block.nodes if isinstance(node.operation, Gemm) for operand in node.operands
    }
    for node in block.nodes:
        if isinstance(node.operation, Repeat):
            path = prefix + block.values[node.results[0]].name
            yield from _boundaries(node.operation.body, f"{path}/")
        for result in node.results:
            if result in read:
                forms: list[Boundary] = ["as made"]
                if has_two_places(block, node):
                    forms.append("other operand")
                if result in multiplied:
                    forms.append("first product")
                yield prefix + block.values[result].name, (*forms, "rows")


def has_two_places(block: Block, node: Node) -> bool:
    """Whether a node is a sum of two values of its result's shape, either of which can stay where it is."""
    shape = block.values[node.results[0]].type.shape
    return (
        isinstance(node.operation, Add)
        and len(set(node.operands)) == len(node.operands)
        and all(block.values[operand].type.shape == shape for operand in node.operands)
    )


def shared_values(graph: Graph) -> frozenset[str]:
    """Paths of values that several operands are."""
    return frozenset(_shared(graph.block, ""))


def _shared(block: Block, prefix: str) -> Iterator[str]:
    readers = Counter(operand for node in block.nodes for operand in node.operands)
    for node in block.nodes:
        if isinstance(node.operation, Repeat):
            path = prefix + block.values[node.results[0]].name
            yield from _shared(node.operation.body, f"{path}/")
        for result in node.results:
            if readers[result] > 1:
                yield prefix + block.values[result].name
