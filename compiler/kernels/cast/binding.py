"""Casts of gapless tensors: contract, cost and semantics.

The sequence of elements stays; panels of F16 that become panels of F143 are in ``panels``.

==========  ==========================================================
conversion  what happens to a value
==========  ==========================================================
F32 to F16  rounded; too large: the largest half
F16 to F32  nothing
F16 to F8   times 2**-scale, rounded to a code; too large: the largest
F8 to F16   code value times 2**scale; too large: the largest half
F8 to F8    value kept, rounded to a code of the other scale
==========  ==========================================================

Scales are arguments of the call. A unit is what fills 64 bits on the narrower side; workers take units in
turn and spend three bundles on each, for its three loads and stores (five for F8 to F8, which is bound by
arithmetic). Asked to keep source and result in separate memory elements, they load and store in one
instruction and spend two. What does not fill a unit is done element by element by one worker; a byte or half
that shares its word with others is put in place beside them, which the access says.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.geometry.relation import Broadcast, Identity
from compiler.geometry.traversal import Traversal
from compiler.kernels.cast import panels
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
from compiler.kernels.eight_bit import SETUP, codes_of, exponent_of, halves_of, quantizing, restoring
from compiler.kernels.halves import halves, round_halves
from compiler.kernels.packed import Packed, pack, repetition, span, whole_words
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, call_cycles, shares
from compiler.target.units import Cycles

NAME: Final = "cast"
ALIGNMENT: Final = 8
WORKERS: Final = 6
MOST: Final = 0x8000
"""Rows and panels are fewer."""


class Conversion(Enum):
    """From one precision to another; F143 has a scale."""

    F32_F16 = ("f32", "f16")
    F16_F32 = ("f16", "f32")
    F16_F8 = ("f16", "f8")
    F8_F16 = ("f8", "f16")
    F8_F8 = ("f8", "f8")

    @property
    def source_bytes(self) -> int:
        """Of an element."""
        return _BYTES[self.value[0]]

    @property
    def result_bytes(self) -> int:
        """Of an element."""
        return _BYTES[self.value[1]]

    @property
    def unit(self) -> int:
        """Elements in 64 bits of the narrower side."""
        return 8 // min(self.source_bytes, self.result_bytes)

    @property
    def is_eight_bit(self) -> bool:
        """Whether F143 takes part."""
        return "f8" in self.value


_BYTES: Final = {"f32": 4, "f16": 2, "f8": 1}
_NAMES: Final = {F32: "f32", F16: "f16", F8: "f8"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CastParameters(Parameters):
    """A cast; the precisions of its operands say which.

    Args:
        is_separate: result and operand are to lie in separate memory elements where that is faster: all but
            F8 to F8 and merged panels.
    """

    family: ClassVar[str] = NAME
    is_separate: bool = False


def symbol_of(conversion: Conversion, *, is_separate: bool) -> SymbolKey:
    """The kernel of a conversion."""
    source, result = conversion.value
    ports = (("ports", "two" if is_separate else "one"),) if conversion is not Conversion.F8_F8 else ()
    return SymbolKey(family=NAME, variant="linear", choices=(("source", source), ("result", result), *ports))


KERNELS: Final = {
    symbol_of(conversion, is_separate=is_separate): (conversion, is_separate)
    for conversion in Conversion
    for is_separate in (False, True)
    if conversion is not Conversion.F8_F8 or not is_separate
}
"""Symbols of the family: what they convert, and whether they load and store at once."""


def kernel_of(key: SymbolKey) -> tuple[Conversion, bool]:
    """What a symbol converts, and whether it loads and stores at once.

    Raises:
        ValueError: the family has no such kernel.
    """
    if key not in KERNELS:
        raise ValueError(f"family {NAME} has no kernel {key}")
    return KERNELS[key]


def bind(request: Request) -> Binding | Refusal:
    """The call for one cast."""
    parameters = request.parameters
    if not isinstance(parameters, CastParameters):
        raise ValueError(f"{type(parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 2:
        return Refusal(reason=f"a cast has one result and one operand, not {len(request.operands)} in all")
    result, operand = request.operands
    pair = (_NAMES[type(operand.precision)], _NAMES[type(result.precision)])
    conversion = next((each for each in Conversion if each.value == pair), None)
    if conversion is None:
        return Refusal(reason=f"operand 0 in {pair[0]} cannot become {pair[1]} in one cast")
    packed: list[Packed] = []
    for name, one in (("result 0", result), ("operand 0", operand)):
        run = pack(one)
        if run is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
        if one.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {one.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
        packed.append(run)
    relation = request.relations[1]
    merge = panels.merge_of(result, operand) if isinstance(relation, Identity) else None
    pattern = None
    if isinstance(relation, Identity | Broadcast):
        pattern = repetition(packed[0], packed[1], relation, len(result.backing))
    is_linear = pattern is not None and pattern.repeat == 1
    if not is_linear and merge is None:
        return Refusal(reason="operand 0 does not have its elements in the sequence of the result's")
    if any(has < needs for has, needs in zip(operand.logical, result.logical, strict=True)):
        return Refusal(reason="operand 0 has fewer elements than the result needs")
    scales = scale_arguments(operand.precision, result.precision)
    if scales is None:
        return Refusal(reason="result 0 has a scale exponent whose inverse does not fit six bits")
    if is_linear or merge is None:
        return _bind_linear(request, conversion, (packed[0], packed[1]), scales)
    return _bind_merge(request, merge, scales)


def _bind_merge(request: Request, merge: panels.Merge, scales: tuple[Scalar, ...]) -> Binding | Refusal:
    if max(merge.rows, merge.panels) >= MOST:
        return Refusal(reason=f"{max(merge.rows, merge.panels)} rows or panels are not fewer than {MOST}")
    columns, rows = min(LANES, key=lambda lanes: panels.merge_cycles(merge, lanes))
    return _call(
        request,
        starts=(merge.result_start, merge.start),
        spans=(
            panels.PANEL_ROW * merge.rows * merge.halves_of_panels // 2,
            panels.PANEL_ROW * merge.rows * merge.panels,
        ),
        kept=0,
        permitted=(),
        is_separate=False,
        scalars=(
            Scalar(name="rows", value=merge.rows),
            Scalar(name="panels", value=merge.panels),
            Scalar(name="lanes", value=columns | rows << 8),
            Scalar(name="rows_per_lane", value=merge.rows // rows),
            *scales,
        ),
        symbol=panels.MERGE,
        cycles=panels.merge_cycles(merge, (columns, rows)),
    )


def _bind_linear(
    request: Request,
    conversion: Conversion,
    packed: tuple[Packed, Packed],
    scales: tuple[Scalar, ...],
) -> Binding | Refusal:
    ends, source = packed
    count = ends.elements
    units = count // conversion.unit
    parameters = request.parameters
    is_separate = isinstance(parameters, CastParameters) and parameters.is_separate
    made = count * conversion.result_bytes
    kept = whole_words(made) - made
    permitted: tuple[Alias, ...] = ()
    if conversion is Conversion.F8_F8:
        is_separate = False
        permitted = (Alias(result=Result(0), operand=Operand(0), displacement=source.start - ends.start),)
    return _call(
        request,
        starts=(ends.start, source.start),
        spans=(made, count * conversion.source_bytes),
        kept=kept,
        permitted=permitted,
        is_separate=is_separate,
        scalars=(
            Scalar(name="units_per_worker", value=units // WORKERS),
            Scalar(name="units_left", value=units % WORKERS),
            Scalar(name="tail", value=count % conversion.unit),
            *scales,
        ),
        symbol=symbol_of(conversion, is_separate=is_separate),
        cycles=linear_cycles(conversion, count, is_separate=is_separate),
    )


def _call(
    request: Request,
    *,
    starts: tuple[int, int],
    spans: tuple[int, int],
    kept: int,
    permitted: tuple[Alias, ...],
    is_separate: bool,
    scalars: tuple[Scalar, ...],
    symbol: SymbolKey,
    cycles: Cycles,
) -> Binding | Refusal:
    """The binding of a chosen kernel.

    Args:
        request: what is asked.
        starts: first bytes of result and operand.
        spans: bytes of both.
        kept: bytes behind the result that share its last word.
        permitted: storages that the result may take.
        is_separate: whether both must lie in separate memory elements.
        scalars: arguments behind the pointers.
        symbol: the kernel.
        cycles: its estimate.
    """
    for alias in request.aliases:
        if alias not in permitted:
            return Refusal(reason=f"{alias} is not a storage that the cast may take")
    result, operand = request.operands
    after = PaddingState.ZERO if result.logical == operand.logical else PaddingState.FINITE
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=result,
                start=starts[0],
                alignment=ALIGNMENT,
                reads=span(starts[0] + spans[0], kept) if kept else NO_BYTES,
                writes=span(starts[0], spans[0] + kept),
                padding=_padding(result.padding_traversal(), PaddingState.ANY, after),
            ),
        ),
        operands=(
            Access(
                operand=operand,
                relation=request.relations[1],
                start=starts[1],
                alignment=ALIGNMENT,
                reads=span(starts[1], spans[1]),
                padding=_padding(operand.padding_traversal(), PaddingState.ZERO, None),
            ),
        ),
        separate=((Result(0), Operand(0)),) if is_separate else (),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(Pointer(reference=Result(0)), Pointer(reference=Operand(0)), *scalars),
        symbol=symbol,
        work=Work(flops=int(np.prod(result.logical))),
        cycles=cycles,
    )


def _padding(part: Traversal, before: PaddingState, after: PaddingState | None) -> tuple[Padding, ...]:
    return (Padding(part=part, before=before, after=after),) if part.pieces else ()


def scale_arguments(source: Precision, result: Precision) -> tuple[Scalar, ...] | None:
    """The arguments that scales make; None when one does not fit.

    The register with the power of two serves both conversions of F8 to F8: half of the exponent is applied by
    each, and what is odd by a multiplication between them. All but the last conversion are exact, or so far
    out of range that the result is zero, or the largest code, in any case.
    """
    match source, result:
        case F8(), F8():
            difference = source.scale_exponent - result.scale_exponent
            factor = np.float16(2 if difference % 2 else 1)
            return (
                restoring(difference // 2),
                Scalar(name="factor", value=int(factor.view(np.uint16))),
            )
        case _, F8():
            conversion = quantizing(result.scale_exponent)
            return None if conversion is None else (conversion,)
        case F8(), _:
            return (restoring(source.scale_exponent),)
        case _:
            return ()


def linear_cycles(conversion: Conversion, count: int, *, is_separate: bool) -> Cycles:
    """Of ``linear`` on so many elements."""
    units, tail = divmod(count, conversion.unit)
    per_unit, around = _LOOPS[
        conversion is Conversion.F8_F8, conversion.source_bytes > conversion.result_bytes, is_separate
    ]
    issues: list[int] = []
    for worker, share in enumerate(shares(units)):
        total = 16 + SETUP * conversion.is_eight_bit
        if share:
            total += around + per_unit * (share - 1)
        if worker == units % WORKERS:
            total += 2
            if tail:
                total += 2 + _TAIL[conversion] * tail
        issues.append(total)
    arguments = 5 + conversion.is_eight_bit + (conversion is Conversion.F8_F8)
    return call_cycles(10 + arguments, issues)


_LOOPS: Final = {
    (False, True, False): (3, 7),
    (False, True, True): (2, 9),
    (False, False, False): (3, 8),
    (False, False, True): (2, 10),
    (True, False, False): (5, 9),
    (True, False, True): (5, 9),
}
_TAIL: Final = {
    Conversion.F32_F16: 18,
    Conversion.F16_F32: 5,
    Conversion.F16_F8: 18,
    Conversion.F8_F16: 18,
    Conversion.F8_F8: 21,
}


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    if key == panels.MERGE:
        return panels.cycles_of_call(arguments)
    conversion, is_separate = kernel_of(key)
    per_worker, left, tail = arguments[2:5]
    count = conversion.unit * (WORKERS * per_worker + left) + tail
    return linear_cycles(conversion, count, is_separate=is_separate)


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    if key == panels.MERGE:
        panels.execute_merge(arguments, memory)
        return
    conversion, _ = kernel_of(key)
    result, operand, per_worker, left, tail = arguments[:5]
    count = conversion.unit * (WORKERS * per_worker + left) + tail
    made = converted(conversion, memory.read(operand, count * conversion.source_bytes), arguments[5:])
    memory.write(result, np.ascontiguousarray(made).view(np.uint8).reshape(-1))


def converted(
    conversion: Conversion, data: npt.NDArray[np.uint8], scales: tuple[int, ...]
) -> npt.NDArray[np.generic]:
    """Elements [n] of the result, from the bytes of the operand and the arguments for scales."""
    match conversion:
        case Conversion.F32_F16:
            return round_halves(data.view(np.dtype("<f4")))
        case Conversion.F16_F32:
            with np.errstate(invalid="ignore"):
                words = halves(data).astype(np.float32)
            # There is one NaN.
            return np.where(np.isnan(words), np.float32(np.nan), words)
        case Conversion.F16_F8:
            return codes_of(halves(data), scales[0])
        case Conversion.F8_F16:
            return halves_of(data, scales[0])
        case Conversion.F8_F8:
            exponent = 2 * exponent_of(scales[0]) + (scales[1] != int(np.float16(1).view(np.uint16)))
            values = np.ldexp(decode_f143(data).astype(np.float64), exponent)
            return encode_f143(values)
        case _:
            assert_never(conversion)


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
