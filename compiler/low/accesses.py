"""Which bytes a kernel call needs and writes, as spans: what its binding says, in the form checks want.

Both the executor and the verifier ask here, for whole bindings once, since a binding serves many calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from compiler.geometry.traversal import Traversal
from compiler.kernels.contract import Access, Binding, PaddingState

Spans: TypeAlias = tuple[tuple[int, int], ...]
"""Disjoint (start, stop) in bytes, ascending, no two adjacent."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSpans:
    """What a call does to one result or operand, in bytes from its backing storage.

    Args:
        needs: bytes that something must have written before: what the call uses, without the padding that may
            hold anything.
        writes: bytes that it writes.
        defines: those of them that it gives a value.
        keeps: the others, which it reads and writes back: a kernel that stores whole words rewrites what it
            does not own at the ends. The device cannot tell the halves of a word in a register apart: one
            that nothing wrote makes the whole word one that nothing wrote.
        finite: padding whose elements must be finite.
        zero: padding that must be zero bytes.
    """

    needs: Spans
    writes: Spans
    defines: Spans
    keeps: Spans
    finite: Spans
    zero: Spans


def spans_of(binding: Binding) -> tuple[AccessSpans, ...]:
    """The spans of each result, then of each operand."""
    return tuple(_spans_of_access(access) for access in binding.accesses)


def merged(spans: Iterable[tuple[int, int]]) -> Spans:
    """The union of spans that come in any order and may overlap."""
    union: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(union[-1][1], stop))
        else:
            union.append((start, stop))
    return tuple(union)


def _spans_of_access(access: Access) -> AccessSpans:
    def padding(state: PaddingState) -> Traversal:
        return Traversal(
            pieces=tuple(
                piece for part in access.padding if part.before is state for piece in part.part.pieces
            )
        )

    reads, writes = traversal_spans(access.reads), traversal_spans(access.writes)
    both = subtract(writes, subtract(writes, reads))
    elements = () if access.operand is None else traversal_spans(access.operand.traversal())
    written_back = subtract(both, elements)
    return AccessSpans(
        needs=subtract(subtract(reads, written_back), traversal_spans(padding(PaddingState.ANY))),
        writes=writes,
        defines=subtract(writes, written_back),
        keeps=written_back,
        finite=traversal_spans(padding(PaddingState.FINITE)),
        zero=traversal_spans(padding(PaddingState.ZERO)),
    )


def traversal_spans(traversal: Traversal) -> Spans:
    """The bytes of a traversal."""
    return merged(zip(*(bounds.tolist() for bounds in traversal.spans()), strict=True))


def subtract(spans: Spans, holes: Spans) -> Spans:
    """The bytes of ``spans`` that are not in ``holes``."""
    left: list[tuple[int, int]] = []
    for start, stop in spans:
        position = start
        for hole_start, hole_stop in holes:
            if hole_stop <= position or hole_start >= stop:
                continue
            if hole_start > position:
                left.append((position, hole_start))
            position = max(position, hole_stop)
        if position < stop:
            left.append((position, stop))
    return tuple(left)
