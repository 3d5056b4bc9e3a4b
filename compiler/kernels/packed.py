"""Operands that are one gapless run of bytes, and how one of them repeats along another.

Element-wise kernels walk bytes and know no axes. Whether two operands hold the same coordinates at the same
places, or one holds each of its elements once for several of the other's, follows from their digits: the
mixed-radix numerals by which element orders state storage indices (``geometry.order``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import axis_multiples, index_map
from compiler.geometry.relation import Broadcast, Identity, Relation
from compiler.geometry.traversal import Loops, Traversal


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackedDigit:
    """``(coordinate of axis // weight) % radix``, radix more than one."""

    axis: int
    weight: int
    radix: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A gapless operand.

    Args:
        start: first byte, relative to the backing storage.
        elements: in all.
        digits: of the storage index within the operand, slowest first, neighbours joined where they can be.
    """

    start: int
    elements: int
    digits: tuple[PackedDigit, ...]


def pack(operand: LocalOperand) -> Packed | None:
    """The digits of an operand's region; None when its bytes have gaps or cut a block of its order."""
    traversal = operand.traversal()
    if not traversal.pieces or not traversal.is_contiguous:
        return None
    multiples = axis_multiples(operand.order, operand.precision, len(operand.backing))
    if any(
        bound % multiple
        for bounds, multiple in zip(operand.region.bounds, multiples, strict=True)
        for bound in bounds
    ):
        return None
    digits = [
        PackedDigit(axis=digit.axis, weight=digit.weight, radix=digit.radix)
        for digit in index_map(operand.order, operand.precision, operand.physical).digits
    ]
    return Packed(start=traversal.extent[0], elements=prod(operand.physical), digits=join(digits))


def join(digits: Sequence[PackedDigit]) -> tuple[PackedDigit, ...]:
    """The same numeral with as few digits as possible, so that equal numerals are equal tuples."""
    joined: list[PackedDigit] = []
    for digit in digits:
        if digit.radix == 1:
            continue
        last = joined[-1] if joined else None
        if last is not None and last.axis == digit.axis and last.weight == digit.weight * digit.radix:
            digit = PackedDigit(axis=digit.axis, weight=digit.weight, radix=last.radix * digit.radix)
            joined.pop()
        joined.append(digit)
    return tuple(joined)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """How an operand repeats along a result.

    Element ``(o * repeat + r) * inner + i`` of the result goes with element ``o * inner + i`` of the operand.
    An operand that repeats nothing has ``repeat`` 1.
    """

    outer: int
    repeat: int
    inner: int


def repetition(result: Packed, operand: Packed, relation: Relation, rank: int) -> Repetition | None:
    """How a packed operand repeats along a packed result of ``rank``; None when it does not do so evenly."""
    match relation:
        case Identity():
            shift, single = 0, frozenset[int]()
        case Broadcast(operand_rank=operand_rank, single_axes=single_axes):
            shift, single = rank - operand_rank, frozenset(single_axes)
        case _:
            return None
    followed = {axis + shift for axis in range(rank - shift) if axis not in single}
    kept = [digit.axis in followed for digit in result.digits]
    repeated = [place for place, is_kept in enumerate(kept) if not is_kept]
    first, stop = (repeated[0], repeated[-1] + 1) if repeated else (len(kept), len(kept))
    if any(kept[first:stop]):
        return None
    moved = [
        PackedDigit(axis=digit.axis + shift, weight=digit.weight, radix=digit.radix)
        for digit in operand.digits
    ]
    remaining = [digit for digit, is_kept in zip(result.digits, kept, strict=True) if is_kept]
    if join(remaining) != tuple(moved):
        return None
    radices = [digit.radix for digit in result.digits]
    return Repetition(
        outer=prod(radices[:first]), repeat=prod(radices[first:stop]), inner=prod(radices[stop:])
    )


def span(start: int, count: int) -> Traversal:
    """``count`` bytes from ``start`` on."""
    return Traversal(pieces=(Loops(run_bytes=count, bases=(start,), counts=(), strides=()),))


def whole_words(count: int) -> int:
    """Bytes of the 32-bit words that hold ``count`` bytes from a word boundary on."""
    return -(-count // 4) * 4
