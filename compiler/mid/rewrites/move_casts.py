"""Cast motion: a narrowing cast before a copy, so that fewer bytes travel, or behind it.

*Before*: a cast of a copy's result becomes casts of what the copy reads, on the tiles where that is, and a
copy of their results. *Behind*: a copy of results of casts becomes a copy of what they cast, and one cast
where the copy arrives. Changes where casts work, the precision of copies, and the padding of values between;
types of values that others read stay. The original copy or cast stays if anything else reads it.

Safe because casts are element-wise and copies change no number: both orders make the same bits. A cast is
moved only where a kernel makes it in its new place on every tile, and what is read there still has its
storage. Copies with a policy, and casts that take storage, stay where they are.
"""

import dataclasses
from typing import TypeGuard

from compiler.geometry.precision import Precision
from compiler.geometry.recast import recast
from compiler.geometry.relation import Identity
from compiler.mid.ir import Block, Compute, MidProgram, MidValueId, Operation, Value
from compiler.mid.rewrites.blocks import BlockEdit, Uses, bindings_of, everywhere, is_open_copy, uses_of
from compiler.mid.work import Cast


def move_casts(program: MidProgram, *, before: bool) -> MidProgram:
    """A program with narrowing casts on the other side of copies.

    Args:
        program: well formed.
        before: whether casts are done before copies, else behind them.
    """
    return everywhere(program, _before if before else _behind)


def _before(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not _is_plain_narrowing(operation, block):
            continue
        maker = uses.makers.get(operation.operands[0])
        copy = None if maker is None else block.operations[maker]
        if maker is None or copy is None or not is_open_copy(copy):
            continue
        result = block.value(operation.results[0])
        sources = dict.fromkeys(part.source for part in copy.parts)
        casts = {
            source: _cast_of(block.value(source), result.format.precision, operation) for source in sources
        }
        if any(cast is None for cast in casts.values()):
            continue
        appended: list[Operation] = []
        moved: dict[MidValueId, MidValueId] = {}
        for source, cast in casts.items():
            if cast is not None:
                moved[source] = edit.add(cast)
                appended.append(
                    dataclasses.replace(
                        _cast(operation, source),
                        # The copy may change the number of axes.
                        relations=(Identity(rank=len(cast.shape)),),
                        results=(moved[source],),
                    )
                )
        appended.append(
            dataclasses.replace(
                copy,
                parts=tuple(dataclasses.replace(part, source=moved[part.source]) for part in copy.parts),
                result=operation.results[0],
            )
        )
        edit.put(maker, *edit.at(maker), *appended)
        edit.put(position)
    return edit.finish()


def _behind(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not is_open_copy(operation):
            continue
        casts = {part.source: _narrowing_maker(block, uses, part.source) for part in operation.parts}
        found = [cast for cast in casts.values() if cast is not None]
        if len(found) < len(casts):
            continue
        precisions = {block.value(cast.operands[0]).format.precision for cast in found}
        if len(precisions) > 1 or not all(uses.can_be_read(cast.operands[0], position) for cast in found):
            continue
        result = block.value(operation.result)
        wide = _recast(result, precisions.pop())
        if wide is None or bindings_of(_cast(found[0], operation.result), [wide], result) is None:
            continue
        brought = edit.add(wide)
        operands = {cast.results[0]: cast.operands[0] for cast in found}
        edit.put(
            position,
            dataclasses.replace(
                operation,
                parts=tuple(
                    dataclasses.replace(part, source=operands[part.source]) for part in operation.parts
                ),
                result=brought,
            ),
            dataclasses.replace(
                _cast(found[0], brought),
                relations=(Identity(rank=len(wide.shape)),),
                results=(operation.result,),
                node=operation.node,
            ),
        )
    return edit.finish()


def _is_plain_narrowing(operation: Operation, block: Block) -> TypeGuard[Compute]:
    """Whether an operation is a cast to fewer bytes, coordinate by coordinate, in storage of its own."""
    if not isinstance(operation, Compute) or not isinstance(operation.work, Cast) or operation.aliases:
        return False
    source, result = block.value(operation.operands[0]), block.value(operation.results[0])
    is_narrowing = source.format.precision.element_bytes > result.format.precision.element_bytes
    return is_narrowing and isinstance(operation.relations[0], Identity)


def _narrowing_maker(block: Block, uses: Uses, value: MidValueId) -> Compute | None:
    maker = uses.makers.get(value)
    if maker is None:
        return None
    operation = block.operations[maker]
    return operation if _is_plain_narrowing(operation, block) else None


def _cast(cast: Compute, operand: MidValueId) -> Compute:
    """A cast of another value; its result is still to be said."""
    return dataclasses.replace(cast, operands=(operand,))


def _cast_of(source: Value, precision: Precision, cast: Compute) -> Value | None:
    """The result of a cast of a value where it is; None when no kernel makes it."""
    result = _recast(source, precision)
    if result is None:
        return None
    alone = dataclasses.replace(cast, relations=(Identity(rank=len(source.shape)),))
    return None if bindings_of(alone, [source], result) is None else result


def _recast(value: Value, precision: Precision) -> Value | None:
    """A value in another precision on the same tiles; None when its order does not allow that."""
    try:
        tensor_format = recast(value.format, len(value.shape), precision)
        recasted = Value(
            name=f"{value.name}.cast",
            shape=value.shape,
            format=tensor_format,
            owners=value.owners,
            node=value.node,
        )
        _ = recasted.distribution
    except ValueError:
        return None
    return recasted
