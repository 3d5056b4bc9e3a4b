"""Cast storage donation: a cast to F8 puts its result into the storage of its operand (KB-15).

Changes aliases of casts alone. The result begins some bytes before the operand, how many the cast family
says: its kernels run through both towards the same end, and need that distance to stay behind what they
still have to read. So the storage grows by the distance, and the result needs nothing else.

Safe where nothing reads the operand later, it is made in its block and in storage of its own kind of SRAM,
no Repeat reads it, and every tile's call permits the same distance. Arguments keep their storage: the host
or a Repeat owns it (RP-06). Donation happens only where it saves memory: the distance must be less than what
each tile's result takes.
"""

import dataclasses
from collections.abc import Sequence

from compiler.geometry.precision import F8, F16
from compiler.kernels.contract import Binding, Operand, Result
from compiler.mid.ir import Block, Compute, MidProgram, Operation, StorageAlias, Value
from compiler.mid.rewrites.blocks import BlockEdit, Uses, bindings_of, everywhere, uses_of
from compiler.mid.work import Cast


def donate_storage(program: MidProgram) -> MidProgram:
    """A well-formed program whose casts to F8 use the storage of what they cast where that is possible."""
    return everywhere(program, _donate)


def _donate(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not isinstance(operation, Compute) or not _may_take(block, uses, operation, position):
            continue
        operand, result = block.value(operation.operands[0]), block.value(operation.results[0])
        for displacement in _displacements(bindings_of(operation, [operand], result) or ()):
            if not _saves(result, -displacement):
                continue
            alias = StorageAlias(result=0, operand=0, displacement=displacement)
            donated = dataclasses.replace(operation, aliases=(alias,))
            if bindings_of(donated, [operand], result) is not None:
                edit.put(position, donated)
                break
    return edit.finish()


def _may_take(block: Block, uses: Uses, operation: Operation, position: int) -> bool:
    """Whether an operation is a cast from F16 to F8 whose operand nobody needs after it."""
    match operation:
        case Compute(work=Cast(), operands=(operand,), results=(result,), aliases=()):
            source, made = block.value(operand), block.value(result)
        case _:
            return False
    return (
        isinstance(source.format.precision, F16)
        and isinstance(made.format.precision, F8)
        and source.format.layout.memory_class is made.format.layout.memory_class
        and operand in uses.makers
        and operand not in uses.bound
        and max(uses.readers[operand]) == position
    )


def _displacements(bindings: Sequence[Binding]) -> list[int]:
    """Distances that all calls permit, the one that costs least memory first."""
    permitted = [
        {
            alias.displacement
            for alias in binding.permitted
            if (alias.result, alias.operand) == (Result(0), Operand(0))
        }
        for binding in bindings
    ]
    return sorted(set[int].intersection(*permitted), reverse=True) if permitted else []


def _saves(result: Value, distance: int) -> bool:
    """Whether every tile's result takes more than the distance."""
    sizes = result.distribution.storage_bytes
    return bool((sizes[sizes > 0] > distance).all())
