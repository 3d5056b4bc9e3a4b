"""What no layout can beat, per tile: models that exceed it are refused before anything is built.

Floors, each a bound: parameters stored once; at every product, parameters, its result and the larger of its
other operands, stored once. Some tile holds at least the average of all tiles. Other nodes have no floor of
their own: element-wise work and casts may take the storage of what they read, views move nothing, and what
they make may never exist as a whole. So may be one operand of a product that is a view of the other.

What planning keeps free of data for code, rows and descriptors is a policy: it is no part of the limit, and
the message names it. What a way of computing a product needs of rows is looked at when it is priced.
"""

from math import prod
from typing import Final

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.estimate.prices import DATA_BUDGET
from compiler.graph.ir import Block, Gemm, Graph, Repeat, ValueId
from compiler.graph.rules import product_precision
from compiler.target.costs import SUPPORT_ELEMENTS
from compiler.target.memory import STANDARD
from compiler.target.units import Bytes

STAGE: Final = "planner"

_NAMED: Final = 3
"""Nodes that a message names."""


def check_bounds(graph: Graph, tile_count: int, budget: Bytes = DATA_BUDGET) -> None:
    """Refuse what cannot fit whatever the layout.

    Args:
        graph: the model.
        tile_count: tiles of the build.
        budget: bytes of a tile for data.

    Raises:
        DoesNotFit: a floor exceeds the memory that tiles have for data.
    """
    resident = sum(_bytes_of(graph.block, parameter) for parameter in graph.parameters)
    _check(
        "parameters, each stored once",
        resident,
        tile_count,
        budget,
        graph.name,
        _readers_of_parameters(graph),
    )
    largest, nodes = _largest_product(graph.block, "", frozenset(graph.parameters))
    _check(
        "parameters and the values of one product", resident + largest, tile_count, budget, graph.name, nodes
    )


def _readers_of_parameters(graph: Graph) -> tuple[str, ...]:
    """The nodes that read most bytes of parameters, in graph order."""
    block, parameters = graph.block, {*graph.parameters}
    read = {
        block.values[node.results[0]].name: sum(
            _bytes_of(block, value) for value in parameters & {*node.operands}
        )
        for node in block.nodes
    }
    most = sorted(read.values(), reverse=True)[:_NAMED]
    return tuple(name for name, size in read.items() if size and size >= most[-1])[:_NAMED]


def _check(
    what: str, size: int, tile_count: int, budget: Bytes, subject: str, nodes: tuple[str, ...]
) -> None:
    floor = -(-size // tile_count)
    if floor > budget:
        enough = -(-size // budget)
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
                    limit=budget,
                ),
                Measure(
                    name="kept free of it for code, exchange rows and descriptors",
                    value=SUPPORT_ELEMENTS * STANDARD.element_size,
                    unit="bytes",
                    kind=NumberKind.BOUND,
                ),
            ),
            nodes=nodes,
        )


def _bytes_of(block: Block, value: ValueId, element_bytes: int | None = None) -> int:
    """Of a value; of elements of at most so many bytes, if any are told."""
    type_ = block.values[value].type
    own = type_.precision.element_bytes
    return prod(type_.shape) * (own if element_bytes is None else min(own, element_bytes))


def _largest_product(block: Block, prefix: str, counted: frozenset[ValueId]) -> tuple[int, tuple[str, ...]]:
    """The fewest bytes that the product with most has to hold beside parameters, and its path.

    Args:
        block: the block.
        prefix: of the paths of its nodes.
        counted: values that are counted by themselves, or may be.
    """
    largest: tuple[int, tuple[str, ...]] = (0, ())
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        found: tuple[int, tuple[str, ...]] = (0, ())
        match node.operation:
            case Repeat(body=body):
                # Arguments of a body may be parameters.
                found = _largest_product(body, f"{path}/", frozenset(body.arguments))
            case Gemm(precision=fixed):
                one, other = (block.values[operand].type for operand in node.operands)
                # An operand in a wider precision may be gone when what it was cast to is multiplied.
                narrow = product_precision(fixed, one, other).element_bytes
                read = max(
                    (_bytes_of(block, value, narrow) for value in node.operands if value not in counted),
                    default=0,
                )
                found = (read + _bytes_of(block, node.results[0]), (path,))
            case _:
                pass
        largest = max(largest, found, key=lambda entry: entry[0])
    return largest
