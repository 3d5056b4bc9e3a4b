"""Sums of F16 partials on one tile: contract, cost and semantics.

The seed is the tile's own partial, the others lie one after another in a stack. Each element is a left fold
in F16: seed plus partial 0, plus partial 1, ... (pinned: staging never changes the order). The kernel walks
storage, so all partials are stored alike. Element orders of matrices cannot say "a stack of such storages";
a stack is therefore described in one of two ways:

* with a relation, by a leading axis: axis 0 in full, the others following those of the result, in an order
  that stores them like the result;
* without one, as row-major [partials, elements]: row p is the storage of partial p.

Padding is zero before and after.
"""

import functools
from dataclasses import dataclass
from math import prod
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F16
from compiler.geometry.relation import Follow, Identity, Relation, SelectedWindow, Span
from compiler.geometry.traversal import Loops, Traversal
from compiler.kernels.contract import (
    Access,
    Alias,
    Binding,
    Family,
    Operand,
    Padding,
    PaddingState,
    Parameters,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.halves import add_halves, halves, to_bytes
from compiler.kernels.packed import Packed, PackedDigit, join, pack, span
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import AFTER_LAST_ISSUE, first_issues
from compiler.target.units import Cycles

NAME: Final = "reduce"
VARIANT: Final = "sum"
ALIGNMENT: Final = 8
QUAD: Final = 4
"""Halves in 64 bits."""
GROUP: Final = 8
"""Halves that a worker sums at a time."""
WORKERS: Final = 6
MOST_PARTIALS: Final = 0x1000
"""Partials in a stack are fewer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceParameters(Parameters):
    """A sum.

    Args:
        partials: how many are in the stack; the seed is not counted.
    """

    family: ClassVar[str] = NAME
    partials: int


SYMBOL: Final = SymbolKey(family=NAME, variant=VARIANT, choices=(("precision", "f16"),))


def bind(request: Request) -> Binding | Refusal:
    """The call for one sum; operands are result, seed and stack."""
    parameters = request.parameters
    if not isinstance(parameters, ReduceParameters):
        raise ValueError(f"{type(parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 3:
        return Refusal(reason=f"a sum has a result, a seed and a stack, not {len(request.operands)} operands")
    if not 0 < parameters.partials < MOST_PARTIALS:
        return Refusal(reason=f"{parameters.partials} partials in a stack are not 1 .. {MOST_PARTIALS - 1}")
    packed: list[Packed] = []
    for name, operand in zip(("result 0", "operand 0", "operand 1"), request.operands, strict=True):
        run = pack(operand)
        if not isinstance(operand.precision, F16):
            return Refusal(reason=f"{name} is {type(operand.precision).__name__}; partials are F16")
        if run is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
        if operand.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {operand.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
        packed.append(run)
    result, seed, stack = packed
    geometry = request.operands[0]
    if request.relations[1] != Identity(rank=len(geometry.backing)) or seed.digits != result.digits:
        return Refusal(reason="the seed, operand 0, is not stored like the result")
    if not _is_stack(parameters.partials, request.operands[2], request.relations[2], stack, result):
        return Refusal(
            reason=f"operand 1 is not a stack of {parameters.partials} partials stored like the result"
        )
    if result.elements % QUAD:
        return Refusal(reason=f"partials of {result.elements} elements are no multiple of {QUAD}")
    return _bind_packed(request, parameters.partials, result, seed, stack)


def _is_stack(
    partials: int, operand: LocalOperand, relation: Relation | None, stack: Packed, result: Packed
) -> bool:
    match relation:
        case None:
            return isinstance(operand.order, RowMajor) and operand.physical == (partials, result.elements)
        case SelectedWindow(axes=(Span(start=0, stop=stop), *others)):
            follows = [Follow(axis=axis) for axis in range(len(others))]
            leading = [PackedDigit(axis=0, weight=1, radix=partials)]
            moved = [
                PackedDigit(axis=digit.axis + 1, weight=digit.weight, radix=digit.radix)
                for digit in result.digits
            ]
            return stop == partials and others == follows and stack.digits == join([*leading, *moved])
        case _:
            return False


def _bind_packed(
    request: Request, partials: int, result: Packed, seed: Packed, stack: Packed
) -> Binding | Refusal:
    count = result.elements
    geometry = request.operands[0]
    permitted = (Alias(result=Result(0), operand=Operand(0), displacement=seed.start - result.start),)
    for alias in request.aliases:
        if alias not in permitted:
            return Refusal(reason=f"{alias} is not one of the storages that the sum may take")
    holes = geometry.padding_traversal()
    groups = count // GROUP
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=geometry,
                start=result.start,
                alignment=ALIGNMENT,
                writes=span(result.start, 2 * count),
                padding=_padding(holes, PaddingState.ANY, PaddingState.ZERO),
            ),
        ),
        operands=(
            Access(
                operand=request.operands[1],
                relation=request.relations[1],
                start=seed.start,
                alignment=ALIGNMENT,
                reads=span(seed.start, 2 * count),
                padding=_padding(_moved(holes, seed.start - result.start), PaddingState.ZERO, None),
            ),
            Access(
                operand=request.operands[2],
                relation=request.relations[2],
                start=stack.start,
                alignment=ALIGNMENT,
                reads=span(stack.start, 2 * count * partials),
                padding=_padding(
                    _stacked(_moved(holes, stack.start - result.start), partials, 2 * count),
                    PaddingState.ZERO,
                    None,
                ),
            ),
        ),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Pointer(reference=Operand(1)),
            Scalar(name="partials", value=partials),
            Scalar(name="groups_per_worker", value=groups // WORKERS),
            Scalar(name="groups_left", value=groups % WORKERS),
            Scalar(name="tail", value=count % GROUP),
            Scalar(name="quads", value=count // QUAD),
        ),
        symbol=SYMBOL,
        work=Work(flops=partials * prod(geometry.logical)),
        cycles=cycles(count, partials),
    )


def _padding(part: Traversal, before: PaddingState, after: PaddingState | None) -> tuple[Padding, ...]:
    return (Padding(part=part, before=before, after=after),) if part.pieces else ()


def _moved(part: Traversal, distance: int) -> Traversal:
    """The same bytes of another storage."""
    return Traversal(pieces=tuple(piece.moved(distance) for piece in part.pieces))


def _stacked(part: Traversal, copies: int, stride: int) -> Traversal:
    """The same bytes of storages one after another."""
    if copies == 1:
        return part
    return Traversal(
        pieces=tuple(
            Loops(
                run_bytes=piece.run_bytes,
                bases=piece.bases,
                counts=(copies, *piece.counts),
                strides=((stride,), *piece.strides),
            )
            for piece in part.pieces
        )
    )


@functools.lru_cache(maxsize=1 << 12)
def cycles(count: int, partials: int) -> Cycles:
    """Of a sum over so many halves: two bundles for each partial of eight."""
    return Cycles(int(many_cycles(np.array([count]), np.array([partials]))[0]))


def many_cycles(count: npt.NDArray[np.int64], partials: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same of many sums [n].

    Of the workers with one group more than others the one that begins last is the last; of the others, the
    one that has the rest, which issues two more at least than those behind it.
    """
    groups = count // GROUP
    share = groups // WORKERS
    taker = groups - WORKERS * share
    each = 7 + 2 * partials
    first = first_issues(10)
    latest = np.concatenate([first[:1], np.maximum.accumulate(first)])
    longer = latest[taker] + WORKERS * (19 + (share + 1) * each)
    issues = 20 + share * each + np.where(share > 0, 2, 0) + np.where(count > GROUP * groups, 5 + partials, 0)
    resting = first[taker] + WORKERS * (issues - 1)
    return np.where(taker > 0, np.maximum(longer, resting), resting) + AFTER_LAST_ISSUE


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    count, partials = _extents_of_call(key, arguments)
    return cycles(count, partials)


def _extents_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> tuple[int, int]:
    """Halves of a partial, and partials in the stack, from the argument registers."""
    if key != SYMBOL:
        raise ValueError(f"family {NAME} has no kernel {key}")
    partials, per_worker, left, tail = arguments[3:7]
    return GROUP * (WORKERS * per_worker + left) + tail, partials


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What the kernel does, given its argument registers."""
    result, seed, stack = arguments[:3]
    count, partials = _extents_of_call(key, arguments)
    total = halves(memory.read(seed, 2 * count))
    rest = halves(memory.read(stack, 2 * count * partials)).reshape(partials, count)
    for partial in rest:
        total = add_halves(total, partial)
    memory.write(result, to_bytes(total))


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
