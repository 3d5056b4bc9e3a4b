"""Casts between F32, F16 and F143: contract.

``conversions`` says what happens to a value, ``linear`` casts tensors whose elements keep their sequence (any
order whose panels are as wide in both precisions), ``panels`` those whose panels change their width. Between
F16 and F143 all of these bind:

* one order to the same: AMP left, AMP right, blocks, their transposes, row-major; the last axis of an AMP
  left result goes on to the next whole panel with zeros;
* rows of F16 to AMP left F143 and back; the rows may be a part of longer ones.

Panels of F32 are made and read by no kernel; F32 is cast in sequence.

A narrowing cast can leave its result in the storage of its operand, some bytes before it: see ``linear``.
Scales are arguments of the call.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from compiler.geometry.operand import LocalOperand
from compiler.geometry.precision import F8, F16
from compiler.geometry.region import Region
from compiler.geometry.relation import Broadcast, Identity
from compiler.geometry.traversal import Traversal, traverse
from compiler.kernels.cast import linear, panels
from compiler.kernels.cast.conversions import NAMES, Conversion, conversion_of, scale_arguments
from compiler.kernels.cast.linear import DISTANCES, ELEMENT, Linear
from compiler.kernels.cast.panels import Extents
from compiler.kernels.contract import (
    NO_BYTES,
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
from compiler.kernels.packed import pack, repetition, span, whole_words
from compiler.kernels.symbols import SymbolKey
from compiler.target.units import Cycles

NAME: Final = "cast"
ALIGNMENT: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CastParameters(Parameters):
    """A cast; the precisions of its operands say which.

    Args:
        is_separate: result and operand are to lie in separate memory elements where that is faster. A result
            that shares the storage of its operand does so from a whole element before it on.
    """

    family: ClassVar[str] = NAME
    is_separate: bool = False


def bind(request: Request) -> Binding | Refusal:
    """The call for one cast."""
    parameters = request.parameters
    if not isinstance(parameters, CastParameters):
        raise ValueError(f"{type(parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 2:
        return Refusal(reason=f"a cast has one result and one operand, not {len(request.operands)} in all")
    result, operand = request.operands
    conversion = conversion_of(operand.precision, result.precision)
    if conversion is None:
        names = [NAMES[type(one.precision)] for one in (operand, result)]
        return Refusal(reason=f"operand 0 in {names[0]} cannot become {names[1]} in one cast")
    for name, one in (("result 0", result), ("operand 0", operand)):
        if one.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {one.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
    # Axes of a broadcast operand are the last ones of the result.
    pairs = zip(reversed(operand.logical), reversed(result.logical), strict=False)
    if any(has < needs for has, needs in pairs):
        return Refusal(reason="operand 0 has fewer elements than the result needs")
    scales = scale_arguments(operand.precision, result.precision)
    if scales is None:
        return Refusal(reason="result 0 has a scale exponent whose inverse does not fit six bits")
    starts = result.traversal().extent[0], operand.traversal().extent[0]
    if _is_linear(request):
        return _bind_linear(request, conversion, starts, scales, parameters.is_separate)
    extents = _extents_of(request)
    if isinstance(extents, Refusal):
        return extents
    return _bind_panels(request, extents, starts, scales, parameters.is_separate)


def _is_linear(request: Request) -> bool:
    """Whether the operand has its elements in the sequence of the result's, both without gaps."""
    result, operand = request.operands
    ends, source, relation = pack(result), pack(operand), request.relations[1]
    if ends is None or source is None or not isinstance(relation, Identity | Broadcast):
        return False
    pattern = repetition(ends, source, relation, len(result.backing))
    return pattern is not None and pattern.repeat == 1


def _extents_of(request: Request) -> Extents | Refusal:
    """Half panels of a cast whose panels change."""
    result, operand = request.operands
    is_packing = isinstance(operand.precision, F16) and isinstance(result.precision, F8)
    is_unpacking = isinstance(operand.precision, F8) and isinstance(result.precision, F16)
    if not isinstance(request.relations[1], Identity) or not (is_packing or is_unpacking):
        return _refusal_of_sequence(request)
    of_halves, of_codes = (operand, result) if is_packing else (result, operand)
    halves, codes = pack(of_halves), pack(of_codes)
    extents = None
    if codes is not None:
        extents = panels.merge_of(halves, codes) if halves is not None else None
        extents = panels.pack_of(of_halves, of_codes) if extents is None else extents
    if extents is None:
        return _refusal_of_sequence(request)
    if is_unpacking and extents.moved_rows * extents.columns != np.prod(result.physical):
        return Refusal(reason="operand 0 has fewer rows or columns, padding included, than the result")
    return panels.refusal_of(extents) or extents


def _refusal_of_sequence(request: Request) -> Refusal:
    """What is wrong with operands that no kernel takes."""
    for name, one in zip(("result 0", "operand 0"), request.operands, strict=True):
        if pack(one) is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
    return Refusal(reason="operand 0 does not have its elements in the sequence of the result's")


def _bind_linear(
    request: Request,
    conversion: Conversion,
    starts: tuple[int, int],
    scales: tuple[Scalar, ...],
    is_separate: bool,
) -> Binding | Refusal:
    distances: tuple[int, ...] = ()
    if conversion.source_bytes == conversion.result_bytes:
        distances = (0,)
    elif conversion.is_narrowing:
        distances = DISTANCES
    permitted = _aliases(starts, distances)
    for alias in request.aliases:
        if alias not in permitted:
            return _refusal_of_alias(alias)
    distance = _distance(request, starts) if conversion.is_narrowing else None
    is_separate = is_separate and linear.has_ports(conversion) and distance in (None, ELEMENT)
    kernel = Linear(conversion=conversion, has_two_ports=is_separate, is_shared=distance is not None)
    count = int(np.prod(request.operands[0].physical))
    made = count * conversion.result_bytes
    return _call(
        request,
        starts=starts,
        read=request.operands[1].region,
        kept=whole_words(made) - made,
        permitted=permitted,
        # Where storage is shared, chunks keep loads and stores apart if they begin at an element.
        is_separate=is_separate and distance is None,
        alignment=ELEMENT if is_separate and distance is not None else ALIGNMENT,
        scalars=linear.scalars(kernel, count, scales, distance),
        symbol=kernel.symbol,
    )


def _bind_panels(
    request: Request,
    extents: Extents,
    starts: tuple[int, int],
    scales: tuple[Scalar, ...],
    is_separate: bool,
) -> Binding | Refusal:
    result, operand = request.operands
    is_packing = isinstance(operand.precision, F16)
    panel_bytes = panels.PANEL_ROW * extents.rows
    distances: tuple[int, ...] = ()
    if is_packing and extents.is_panels:
        distances = tuple(distance for distance in DISTANCES if distance >= panel_bytes)
    permitted = _aliases(starts, distances)
    for alias in request.aliases:
        if alias not in permitted:
            return _refusal_of_alias(alias)
    distance = _distance(request, starts)
    first = None if distance is None else distance // panel_bytes
    kernel, lanes = panels.choose(extents, first, is_packing=is_packing, is_separate=is_separate)
    read = Region(
        bounds=tuple(
            (start, min(stop, start + extent))
            for (start, stop), extent in zip(operand.region.bounds, result.physical, strict=True)
        )
    )
    return _call(
        request,
        starts=starts,
        read=read,
        kept=0,
        permitted=permitted,
        is_separate=kernel.has_two_ports,
        alignment=ALIGNMENT,
        scalars=panels.scalars(extents, lanes, scales, first),
        symbol=kernel.symbol,
    )


def _aliases(starts: tuple[int, int], distances: tuple[int, ...]) -> tuple[Alias, ...]:
    """The result in the storage of the operand, from so many bytes before it on."""
    return tuple(
        Alias(result=Result(0), operand=Operand(0), displacement=starts[1] - starts[0] - distance)
        for distance in distances
    )


def _distance(request: Request, starts: tuple[int, int]) -> int | None:
    """Bytes from the result to the operand in the storage that they share; None when they share none."""
    return next((starts[1] - starts[0] - alias.displacement for alias in request.aliases), None)


def _refusal_of_alias(alias: Alias) -> Refusal:
    return Refusal(reason=f"{alias} is not a storage that the cast may take")


def _call(
    request: Request,
    *,
    starts: tuple[int, int],
    read: Region,
    kept: int,
    permitted: tuple[Alias, ...],
    is_separate: bool,
    alignment: int,
    scalars: tuple[Scalar, ...],
    symbol: SymbolKey,
) -> Binding:
    """The binding of a chosen kernel.

    Args:
        request: what is asked.
        starts: first bytes of result and operand.
        read: coordinates of the operand that are read.
        kept: bytes behind the result that share its last word.
        permitted: storages that the result may take.
        is_separate: whether both must lie in separate memory elements.
        alignment: of both.
        scalars: arguments behind the pointers.
        symbol: the kernel.
    """
    result, operand = request.operands
    written = result.traversal()
    if written.is_contiguous:
        written = span(starts[0], written.byte_count + kept)
    after = PaddingState.ZERO if result.logical == operand.logical else PaddingState.FINITE
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=result,
                start=starts[0],
                alignment=alignment,
                reads=span(written.extent[1] - kept, kept) if kept else NO_BYTES,
                writes=written,
                padding=_padding(result.padding_traversal(), PaddingState.ANY, after),
            ),
        ),
        operands=(
            Access(
                operand=operand,
                relation=request.relations[1],
                start=starts[1],
                alignment=alignment,
                reads=_part(operand, (read,)),
                padding=_padding(
                    _part(operand, read.subtract(operand.logical_region)), PaddingState.ZERO, None
                ),
            ),
        ),
        separate=((Result(0), Operand(0)),) if is_separate else (),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(Pointer(reference=Result(0)), Pointer(reference=Operand(0)), *scalars),
        symbol=symbol,
        work=Work(flops=int(np.prod(result.logical))),
        # Wherever the operands lie.
        cycles=cycles_of_call(symbol, (0, 0, *(scalar.word for scalar in scalars))),
    )


def _part(operand: LocalOperand, regions: Iterable[Region]) -> Traversal:
    """Bytes of some disjoint regions of an operand."""
    element = operand.precision.element_bytes
    return Traversal(
        pieces=tuple(
            piece for region in regions for piece in traverse(operand.storage, region, element).pieces
        )
    )


def _padding(part: Traversal, before: PaddingState, after: PaddingState | None) -> tuple[Padding, ...]:
    return (Padding(part=part, before=before, after=after),) if part.pieces else ()


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers.

    Raises:
        ValueError: the family has no such kernel.
    """
    if key in panels.KERNELS:
        return panels.cycles_of_call(panels.KERNELS[key], arguments)
    return linear.cycles_of_call(linear.kernel_of(key), arguments)


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers.

    Raises:
        ValueError: the family has no such kernel.
    """
    if key in panels.KERNELS:
        panels.execute(panels.KERNELS[key], arguments, memory)
        return
    linear.execute(linear.kernel_of(key), arguments, memory)


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
