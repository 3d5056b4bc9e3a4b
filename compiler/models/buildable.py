"""What this version can build, in one place: the operations that the planner has a constructor for.

A model can be built when everything in it can be. No operation has a constructor yet, so no graph can be
built; the four-tile program of ``skeleton`` is written in the low tables directly and is no graph.
"""

from collections.abc import Iterator
from typing import Final

from compiler.graph.ir import Block, Graph, Operation, Repeat
from compiler.graph.rules import name_of

PLANNED: Final[frozenset[type[Operation]]] = frozenset()
"""Operations that the planner turns into executable work."""


def unplanned_operations(graph: Graph) -> tuple[str, ...]:
    """Names of the graph's operations that cannot be built, by first use; none when the graph can be."""
    return tuple(
        dict.fromkeys(
            name_of(operation) for operation in _operations(graph.block) if type(operation) not in PLANNED
        )
    )


def _operations(block: Block) -> Iterator[Operation]:
    for node in block.nodes:
        yield node.operation
        if isinstance(node.operation, Repeat):
            yield from _operations(node.operation.body)
