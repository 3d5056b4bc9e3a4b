"""The canonical numbering of values: arguments first, then results, in the order of nodes."""

from dataclasses import replace

from compiler.graph.ir import Block, Node, ValueId


def in_definition_order(block: Block) -> Block:
    """The same block with its table of values in the order in which they are defined.

    Bodies of repeats stay as they are. The block is well formed.
    """
    order = [*block.arguments, *(result for node in block.nodes for result in node.results)]
    row = {value: ValueId(number) for number, value in enumerate(order)}

    def moved(values: tuple[ValueId, ...]) -> tuple[ValueId, ...]:
        return tuple(row[value] for value in values)

    nodes = tuple(
        Node(operation=node.operation, operands=moved(node.operands), results=moved(node.results))
        for node in block.nodes
    )
    return replace(
        block,
        values=tuple(block.values[value] for value in order),
        arguments=moved(block.arguments),
        nodes=nodes,
        results=moved(block.results),
    )
