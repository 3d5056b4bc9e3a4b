"""Copies of codes that nothing carries out, carried out in halves: cast, copied, and cast back.

No kernel moves single bytes, and an exchange moves words: codes at odd places cannot be moved where halves
can. Changes only copies of F8 that have no movement, and whose source and result a kernel casts.
Types of values that others read stay.

Safe because the detour makes the same bits: every code of a scale that halves have room for is a half, and
that half becomes the code again; other scales are left. The casts read their operand where the copy did, so
its storage is still there.
"""

import dataclasses
import functools
from typing import Final

import numpy as np

from compiler.geometry.precision import F8, F16, decode_f143, encode_f143
from compiler.geometry.recast import recast
from compiler.geometry.relation import Identity
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Operation, Value
from compiler.mid.rewrites.blocks import BlockEdit, CopyPrice, bindings_of, everywhere, is_open_copy
from compiler.mid.work import Cast

_CODES: Final = 256


def widen_copies(program: MidProgram, price: CopyPrice) -> MidProgram:
    """A program whose copies of codes are carried out in halves where they cannot be otherwise.

    Args:
        program: well formed.
        price: of a copy.
    """
    return everywhere(program, lambda block: _widen(block, price))


def _widen(block: Block, price: CopyPrice) -> Block:
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not is_open_copy(operation):
            continue
        result = block.value(operation.result)
        precision = result.format.precision
        if not isinstance(precision, F8) or not _is_kept_by_halves(precision.scale_exponent):
            continue
        sources = [block.value(part.source) for part in operation.parts]
        if price(operation, sources, result) is None:
            instead = _in_halves(block, edit, operation, price)
            if instead is not None:
                edit.put(position, *instead)
    return edit.finish()


def _in_halves(block: Block, edit: BlockEdit, copy: Copy, price: CopyPrice) -> tuple[Operation, ...] | None:
    """Casts of what a copy reads, the copy of their results, and the cast back; None where one is none."""
    result = block.value(copy.result)
    wide = {part.source: _halves_of(block.value(part.source)) for part in copy.parts}
    brought = _halves_of(result)
    if brought is None or bindings_of(_cast(copy, brought), [brought], result) is None:
        return None
    found = {source: value for source, value in wide.items() if value is not None}
    if len(found) < len(wide) or any(
        bindings_of(_cast(copy, value), [block.value(source)], value) is None
        for source, value in found.items()
    ):
        return None
    if price(copy, [found[part.source] for part in copy.parts], brought) is None:
        return None
    numbers = {source: edit.add(value) for source, value in found.items()}
    arrived = edit.add(brought)
    return (
        *(
            dataclasses.replace(_cast(copy, found[source]), operands=(source,), results=(number,))
            for source, number in numbers.items()
        ),
        dataclasses.replace(
            copy,
            parts=tuple(dataclasses.replace(part, source=numbers[part.source]) for part in copy.parts),
            result=arrived,
        ),
        dataclasses.replace(_cast(copy, brought), operands=(arrived,), results=(copy.result,)),
    )


def _cast(copy: Copy, value: Value) -> Compute:
    """A cast to or from halves; its operand and result are still to be said."""
    return Compute(
        work=Cast(),
        operands=(MidValueId(0),),
        relations=(Identity(rank=len(value.shape)),),
        results=(MidValueId(0),),
        node=copy.node,
    )


def _halves_of(value: Value) -> Value | None:
    """A value in halves on the same tiles; None when its order does not allow that."""
    try:
        halves = Value(
            name=f"{value.name}.halves",
            shape=value.shape,
            format=recast(value.format, len(value.shape), F16()),
            owners=value.owners,
            node=value.node,
        )
        _ = halves.distribution
    except ValueError:
        return None
    return halves


@functools.cache
def _is_kept_by_halves(scale_exponent: int) -> bool:
    """Whether every code of a scale becomes a half and that half the code again."""
    codes = np.arange(_CODES, dtype=np.uint8)
    numbers = decode_f143(codes, scale_exponent)
    with np.errstate(over="ignore"):
        halves = numbers.astype(np.float16)
    again = encode_f143(halves.astype(np.float32), scale_exponent)
    return bool((again == codes).all())
