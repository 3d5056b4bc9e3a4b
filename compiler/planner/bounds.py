"""What no layout can beat, per tile: models that exceed it are refused before anything is built.

Floors, each a bound: parameters stored once; at every node, parameters and the values that it reads and
makes, stored once. Some tile holds at least the average of all tiles. What planning keeps free of data for
code, rows and descriptors is a policy, and part of the limit that the message names.
"""

from typing import Final

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.estimate.prices import DATA_BUDGET
from compiler.graph.ir import Block, Graph, Repeat, ValueId

STAGE: Final = "planner"


def check_bounds(graph: Graph, tile_count: int) -> None:
    """Refuse what cannot fit whatever the layout.

    Raises:
        DoesNotFit: a floor exceeds the memory that tiles have for data.
    """
    resident = sum(_bytes_of(graph.block, parameter) for parameter in graph.parameters)
    _check("parameters, each stored once", resident, tile_count, graph.name, ())
    largest, nodes = _largest_node(graph.block, "")
    inputs = {*graph.inputs}
    outside = [value for value in graph.parameters if value not in inputs]
    resident = sum(_bytes_of(graph.block, parameter) for parameter in outside)
    _check("parameters and the values of one node", resident + largest, tile_count, graph.name, nodes)


def _check(what: str, size: int, tile_count: int, subject: str, nodes: tuple[str, ...]) -> None:
    floor = -(-size // tile_count)
    if floor > DATA_BUDGET:
        enough = -(-size // DATA_BUDGET)
        raise DoesNotFit(
            f"{what} need more than the {tile_count:,} tiles have",
            stage=STAGE,
            subject=subject,
            next_step=f"use at least {enough:,} tiles, a narrower precision or a smaller batch",
            numbers=(
                Measure(
                    name="floor of a tile's data",
                    value=floor,
                    unit="bytes",
                    kind=NumberKind.BOUND,
                    limit=DATA_BUDGET,
                ),
            ),
            nodes=nodes,
        )


def _bytes_of(block: Block, value: ValueId) -> int:
    type_ = block.values[value].type
    size = type_.precision.element_bytes
    for extent in type_.shape:
        size *= extent
    return size


def _largest_node(block: Block, prefix: str) -> tuple[int, tuple[str, ...]]:
    """The most bytes that a node reads and makes beside parameters, and its path."""
    arguments = set(block.arguments)
    largest: tuple[int, tuple[str, ...]] = (0, ())
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        if isinstance(node.operation, Repeat):
            found = _largest_node(node.operation.body, f"{path}/")
        else:
            read = {value for value in node.operands if value not in arguments}
            found = (sum(_bytes_of(block, value) for value in {*read, *node.results}), (path,))
        largest = max(largest, found, key=lambda entry: entry[0])
    return largest
