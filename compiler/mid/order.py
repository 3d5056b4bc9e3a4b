"""Blocks whose table of values is in the order in which values are made."""

import dataclasses

from compiler.mid.build import renumbered
from compiler.mid.ir import Block, MidValueId, Operation, Repeat, results_of


def in_definition_order(block: Block) -> Block:
    """The same well-formed block with values numbered as they are made, in bodies too."""
    made = [*block.arguments, *(result for operation in block.operations for result in results_of(operation))]
    numbers = {old: MidValueId(new) for new, old in enumerate(made)}
    return Block(
        values=tuple(block.values[old] for old in made),
        arguments=tuple(numbers[old] for old in block.arguments),
        operations=tuple(renumbered(_ordered(operation), numbers) for operation in block.operations),
        results=tuple(numbers[old] for old in block.results),
    )


def _ordered(operation: Operation) -> Operation:
    if isinstance(operation, Repeat):
        return dataclasses.replace(operation, body=in_definition_order(operation.body))
    return operation
