"""Sharing of equal copies and casts: what is made twice in a block is made once.

Changes what the readers of the second result read, and leaves the second out. Two copies are equal when they
read the same boxes of the same values into results of one type by one policy; two casts when they cast one
value into results of one type. Owners and formats stay.

Safe because equal operations make equal values. The storage of the shared value must still hold it for all
readers: where one of them takes it, that one must be the last, and read it once. Results of a block, and what
is bound to a Repeat, keep values of their own: the host, the Repeat or a sequence has each in its own place.
"""

from collections.abc import Hashable, Sequence

from compiler.mid.ir import Block, Compute, Copy, CopyPart, MidProgram, MidValueId, Operation, Value
from compiler.mid.rewrites.blocks import BlockEdit, Uses, everywhere, uses_of
from compiler.mid.work import Cast


def share_equal(program: MidProgram) -> MidProgram:
    """A well-formed program that makes equal copies and casts once."""
    return everywhere(program, _share)


def _share(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    first: dict[Hashable, MidValueId] = {}
    shared: dict[MidValueId, list[MidValueId]] = {}
    for operation in block.operations:
        key = _key(edit, operation)
        if key is None:
            continue
        result = _result(operation)
        if result in uses.bound:
            continue
        kept = first.setdefault(key, result)
        if kept == result or result in block.results:
            continue
        group = [*shared.get(kept, [kept]), result]
        if _is_held(block, uses, group):
            edit.substitute(result, kept)
            shared[kept] = group
    return edit.finish()


def _key(edit: BlockEdit, operation: Operation) -> Hashable | None:
    """The same for operations that make the same; None for those that are not shared."""
    match operation:
        case Copy(parts=parts, result=result, policy=policy):
            read = tuple(
                CopyPart(source=edit.current(part.source), region=part.region, mapping=part.mapping)
                for part in parts
            )
            return (read, policy, _type(edit.value(result)))
        case Compute(work=Cast() as work, operands=(operand,), relations=relations, aliases=()):
            return (work, edit.current(operand), relations, _type(edit.value(_result(operation))))
        case _:
            return None


def _type(value: Value) -> Hashable:
    return (value.shape, value.format, value.owners)


def _result(operation: Operation) -> MidValueId:
    if isinstance(operation, Copy):
        return operation.result
    return operation.results[0]


def _is_held(block: Block, uses: Uses, group: Sequence[MidValueId]) -> bool:
    """Whether one storage serves all readers of a group."""
    takers = {uses.takers[value] for value in group if value in uses.takers}
    if not takers:
        return True
    readers = [position for value in group for position in uses.readers[value]]
    last = max(readers)
    return takers == {last} and readers.count(last) == 1 and last < len(block.operations)
