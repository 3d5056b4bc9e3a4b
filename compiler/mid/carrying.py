"""What is copied because of where it has to be: into and at the end of Repeats, and out of the program.

Blocks say what is computed. Storage has rules beside that: what a Repeat carries lies in buffers that every
iteration begins and ends with, and an output in buffers that the host reads. Whatever makes a value makes it
there right away where the block allows that; where it does not, the value is copied as a whole. Expansion
does so and estimates price it, both by what is decided here, from the block alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never, final

from compiler.mid.ir import Block, Compute, Copy, MidValueId, Repeat, operands_of, results_of


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Returns:
    """How the results of a body get to where the next iteration reads them, by the arguments that carry them.

    An argument that is its own result is in none of them.

    Args:
        in_place: made there.
        copied: copied there at the end of the body.
        aside: those among the copied that are arguments themselves, which may be replaced before they are
            read: all of them are set aside first.
    """

    in_place: Mapping[MidValueId, MidValueId]
    copied: Mapping[MidValueId, MidValueId]
    aside: Mapping[MidValueId, MidValueId]


def made_directly(block: Block) -> Mapping[MidValueId, int]:
    """Values that an operation makes in storage of their own, and which operation."""
    made: dict[MidValueId, int] = {}
    for position, operation in enumerate(block.operations):
        match operation:
            case Copy(result=result):
                made[result] = position
            case Compute(results=results, aliases=aliases):
                shared = {alias.result for alias in aliases}
                made.update((result, position) for index, result in enumerate(results) if index not in shared)
            case Repeat():
                pass
            case _:
                assert_never(operation)
    return made


def outputs_in_place(block: Block) -> frozenset[MidValueId]:
    """Results of a program's block that are made where the host reads them; the others are copied there."""
    made = made_directly(block)
    return frozenset(
        result for result in block.results if result in made and block.results.count(result) == 1
    )


def is_free(block: Block, value: MidValueId, position: int) -> bool:
    """Whether a Repeat at ``position`` may carry a value in the value's own storage.

    It may when the value was made in storage of its own, the Repeat reads it once, and neither it nor what
    was put into its storage before is read afterwards.
    """
    before = {result for operation in block.operations[:position] for result in results_of(operation)}
    sharing = _sharing(block, value) & before
    read = {operand for operation in block.operations[position + 1 :] for operand in operands_of(operation)}
    return (
        value in made_directly(block)
        and operands_of(block.operations[position]).count(value) == 1
        and sharing == {value}
        and not sharing & (read | set(block.results))
    )


def returns_of(body: Block, carried: Sequence[MidValueId]) -> Returns:
    """How the results of a body get back.

    Args:
        body: of a Repeat.
        carried: its first arguments, which the results replace.
    """
    made = made_directly(body)
    given = {
        argument: result for argument, result in zip(carried, body.results, strict=True) if result != argument
    }
    in_place = {
        argument: result
        for argument, result in given.items()
        if result in made and body.results.count(result) == 1 and _is_dead(body, argument, made[result])
    }
    copied = {argument: result for argument, result in given.items() if argument not in in_place}
    aside = {argument: result for argument, result in copied.items() if result in carried}
    return Returns(in_place=in_place, copied=copied, aside=aside)


def _sharing(block: Block, value: MidValueId) -> set[MidValueId]:
    """A value and whatever lies in its storage."""
    sharing = {value}
    for operation in block.operations:
        if isinstance(operation, Compute):
            sharing.update(
                operation.results[alias.result]
                for alias in operation.aliases
                if operation.operands[alias.operand] in sharing
            )
        elif isinstance(operation, Repeat):
            sharing.update(
                result
                for initial, result in zip(operation.carried, operation.results, strict=True)
                if initial in sharing
            )
    return sharing


def _is_dead(block: Block, value: MidValueId, position: int) -> bool:
    """Whether nothing reads a value, or what lies in its storage, from an operation on."""
    sharing = _sharing(block, value)
    read = {operand for operation in block.operations[position:] for operand in operands_of(operation)}
    return not sharing & (read | set(block.results))
