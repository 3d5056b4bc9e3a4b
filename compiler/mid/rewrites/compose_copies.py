"""Composition of consecutive copies: what a copy reads from another copy, it reads from its source (ML-21).

Changes which values copies read, and leaves out copies that nothing reads any more. A copy that is read by
others, or is a result, stays for them (ML-22). Owners, formats and every value that stays are as they were.

Safe because a copy changes no number: the composed mapping reads the elements that the two read in turn. The
source must still have its storage where the outer copy stands. Where the composition of two mappings is no
mapping, where either copy has a policy, or where the composed copy costs more than what it replaces, both
stay (ML-23).
"""

import dataclasses

from compiler.geometry.compose import compose
from compiler.geometry.mapping import NotRepresentable
from compiler.mid.ir import Block, Copy, CopyPart, MidProgram, MidValueId
from compiler.mid.rewrites.blocks import BlockEdit, CopyPrice, Uses, everywhere, is_open_copy, uses_of


def compose_copies(program: MidProgram, price: CopyPrice) -> MidProgram:
    """A program whose copies read through other copies where that costs no more.

    Args:
        program: well formed.
        price: of a copy.
    """
    return everywhere(program, lambda block: _compose(block, price))


def _compose(block: Block, price: CopyPrice) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not is_open_copy(operation):
            continue
        composed = operation
        for source in dict.fromkeys(part.source for part in operation.parts):
            inner = _open_maker(edit, uses, source)
            if inner is None or not all(uses.can_be_read(part.source, position) for part in inner.parts):
                continue
            parts = _through(composed, inner)
            if parts is None:
                continue
            candidate = dataclasses.replace(composed, parts=parts)
            if _pays(block, price, candidate, composed, inner, is_last=_is_last(uses, inner, composed)):
                composed = candidate
        if composed is not operation:
            edit.put(position, composed)
    return edit.finish()


def _open_maker(edit: BlockEdit, uses: Uses, source: MidValueId) -> Copy | None:
    """The copy that makes a source, as it reads by now."""
    maker = uses.makers.get(source)
    if maker is None:
        return None
    (operation,) = edit.at(maker)
    return operation if is_open_copy(operation) else None


def _through(outer: Copy, inner: Copy) -> tuple[CopyPart, ...] | None:
    """The parts of the outer copy, read through the inner one; None where they cannot be."""
    found: list[CopyPart] = []
    for part in outer.parts:
        if part.source != inner.result:
            found.append(part)
        elif len(inner.parts) == 1:
            mapping = compose(part.mapping, inner.parts[0].mapping)
            if isinstance(mapping, NotRepresentable):
                return None
            found.append(CopyPart(source=inner.parts[0].source, region=part.region, mapping=mapping))
        elif len(outer.parts) == 1 and part.mapping.is_identity:
            found.extend(inner.parts)
        else:
            return None
    return tuple(found)


def _is_last(uses: Uses, inner: Copy, outer: Copy) -> bool:
    """Whether the outer copy alone reads the inner one."""
    return len(uses.readers[inner.result]) == sum(part.source == inner.result for part in outer.parts)


def _pays(block: Block, price: CopyPrice, composed: Copy, outer: Copy, inner: Copy, *, is_last: bool) -> bool:
    """Whether a composed copy exists and costs no more than what it makes superfluous."""
    cycles, before = _price(block, price, composed), _price(block, price, outer)
    if cycles is None:
        return False
    if before is None:
        return True
    saved = _price(block, price, inner) if is_last else 0
    return cycles <= before + (0 if saved is None else saved)


def _price(block: Block, price: CopyPrice, copy: Copy) -> int | None:
    return price(copy, [block.value(part.source) for part in copy.parts], block.value(copy.result))
