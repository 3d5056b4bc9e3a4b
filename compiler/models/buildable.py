"""What this version can build, in one place: the operations that the planner has a constructor for.

A model can be built when everything in it can be. No operation has a constructor yet, so no graph can be
built; what can be are the ``programs`` that are written in the low tables directly.
"""

from collections.abc import Iterator
from typing import Final

from compiler.graph.ir import Block, Graph, Operation, Repeat
from compiler.graph.rules import name_of

PLANNED: Final[frozenset[type[Operation]]] = frozenset()
"""Operations that the planner turns into executable work."""


def unplanned_operations(graph: Graph) -> tuple[str, ...]:
    """Names of the graph's operations that have no constructor, by first use."""
    return tuple(
        dict.fromkeys(
            name_of(operation) for operation in _operations(graph.block) if type(operation) not in PLANNED
        )
    )


def obstacle(graph: Graph) -> str | None:
    """Why this version cannot build a graph, a clause; None when it can."""
    missing = unplanned_operations(graph)
    if missing:
        return f"the planner has no constructor for {', '.join(missing)}"
    return None if PLANNED else "there is no planner for graphs"


def _operations(block: Block) -> Iterator[Operation]:
    for node in block.nodes:
        yield node.operation
        if isinstance(node.operation, Repeat):
            yield from _operations(node.operation.body)
