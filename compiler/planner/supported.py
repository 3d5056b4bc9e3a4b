"""What this version can build, in one place: the operations that the planner has a constructor for.

A model can be built when everything in it can be, no Repeat is inside of another (tile programs count the
iterations of one loop at a time), and no input or parameter is itself an output: a package has one binding of
each name, and theirs is that of what the host writes.
"""

from collections.abc import Iterator
from typing import Final

from compiler.graph.ir import (
    Add,
    Block,
    Cast,
    Concat,
    Gelu,
    Gemm,
    Graph,
    MergeAxes,
    Operation,
    Repeat,
    Reshape,
    Slice,
    SplitAxis,
    Transpose,
)
from compiler.graph.rules import name_of

PLANNED: Final[frozenset[type[Operation]]] = frozenset(
    {
        Add,
        Cast,
        Concat,
        Gelu,
        Gemm,
        MergeAxes,
        Repeat,
        Reshape,
        Slice,
        SplitAxis,
        Transpose,
    }
)
"""Operations that the planner turns into executable work."""


def unplanned_nodes(graph: Graph) -> tuple[tuple[str, str], ...]:
    """(path of the node, name of its operation) of each node without constructor, in order.

    A node of a body is named behind the name of its Repeat and a slash.
    """
    return tuple(
        (path, name_of(operation))
        for path, operation in _operations(graph.block, "")
        if type(operation) not in PLANNED
    )


def unplanned_operations(graph: Graph) -> tuple[str, ...]:
    """Names of the graph's operations that have no constructor, by first use."""
    return tuple(dict.fromkeys(name for _, name in unplanned_nodes(graph)))


def nested_repeats(graph: Graph) -> tuple[str, ...]:
    """Paths of the Repeats that are inside of another one, in order."""
    return tuple(
        path
        for name, outer in _operations(graph.block, "", is_deep=False)
        if isinstance(outer, Repeat)
        for path, operation in _operations(outer.body, f"{name}/")
        if isinstance(operation, Repeat)
    )


def unmade_outputs(graph: Graph) -> tuple[str, ...]:
    """Names of the outputs that no node makes, as they are inputs or parameters themselves, in order."""
    arguments = frozenset(graph.block.arguments)
    return tuple(graph.block.values[output].name for output in graph.outputs if output in arguments)


def obstacle(graph: Graph) -> str | None:
    """Why this version cannot build a graph, a clause; None when it can."""
    missing = unplanned_operations(graph)
    if missing:
        return f"the planner has no constructor for {', '.join(missing)}"
    if nested_repeats(graph):
        return "a Repeat is inside of another one"
    return "an input or parameter is itself an output" if unmade_outputs(graph) else None


def _operations(block: Block, prefix: str, *, is_deep: bool = True) -> Iterator[tuple[str, Operation]]:
    """(path, operation) of the nodes of a block, those of bodies behind their Repeat where asked for."""
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        yield path, node.operation
        if is_deep and isinstance(node.operation, Repeat):
            yield from _operations(node.operation.body, f"{path}/")
