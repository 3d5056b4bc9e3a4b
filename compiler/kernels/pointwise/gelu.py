"""GELU of F16 tensors, in its tanh form: contract, cost and semantics.

    gelu(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))

**Arithmetic.** Halves round to about three decimal digits, and ``1 + tanh`` loses one of them near 1. So the
kernel works with the complement, which is exact there: with h = x / 2 and c = min(abs(h), 4),

    gelu(x) = (h + abs(h)) - c * max(1 - tanh(c * (A + B * c * c)), 0)

where A = 2 * sqrt(2 / pi) and B = 8 * 0.044715 * sqrt(2 / pi). Every operation rounds to F16. The limit of 4
(x within 8) keeps the cube from overflowing and makes the second term vanish for large x, whose result is
then x or 0 exactly; the maximum with 0 is for a tanh unit whose results are one unit in the last place too
large. Over all finite x the error is at most 0.0013, and 0.0021 with such a unit. NaN gives NaN.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Broadcast, Identity
from compiler.geometry.traversal import Traversal
from compiler.kernels.contract import (
    NO_BYTES,
    Access,
    Alias,
    Binding,
    Operand,
    PaddingState,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.eight_bit import SETUP, codes_of, quantizing
from compiler.kernels.grid import grid
from compiler.kernels.halves import add_halves, halves, multiply_halves, to_bytes
from compiler.kernels.packed import PackedDigit, join, pack, repetition, span, whole_words
from compiler.kernels.pointwise.common import (
    ALIGNMENT,
    MOST,
    NAME,
    QUAD,
    WORKERS,
    logical_in_result,
    parts,
    result_padding,
)
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, call_cycles, lane_share, shares
from compiler.target.units import Cycles

FLAT: Final = SymbolKey(family=NAME, variant="gelu_flat", choices=(("precision", "f16"),))
"""Any gapless tensor: 64 bits at a time, six workers in turn."""

NARROW: Final = SymbolKey(family=NAME, variant="gelu_narrow", choices=(("precision", "f16"), ("bias", "row")))
"""Rows of any width with a bias, row-major: 64 bits at a time, with no regard to where rows begin."""

HALF: Final = np.float16(0.5)
ONE: Final = np.float16(1)
LIMIT: Final = np.float16(4)
"""Of half an argument in the polynomial."""
LINEAR: Final = np.float16(2 * np.sqrt(2 / np.pi))
CUBIC: Final = np.float16(8 * 0.044715 * np.sqrt(2 / np.pi))

FLOPS: Final = 9
"""Useful operations of an element: the formula above as it stands, tanh counted as one."""

OPERATIONS: Final = 14
"""Instructions of the arithmetic unit for four elements."""


def gelu(values: npt.NDArray[np.float16]) -> npt.NDArray[np.float16]:
    """GELU of halves as the kernels compute it, same shape."""
    half = multiply_halves(values, HALF)
    magnitude = np.abs(half)
    limited = np.fmin(magnitude, LIMIT)
    square = multiply_halves(limited, limited)
    argument = multiply_halves(add_halves(multiply_halves(square, CUBIC), LINEAR), limited)
    tanh = np.tanh(argument.astype(np.float64)).astype(np.float16)
    rest = np.maximum(add_halves(-tanh, ONE), np.float16(0))
    return add_halves(add_halves(half, magnitude), -multiply_halves(limited, rest))


def rows_symbol(*, has_bias: bool, is_f8: bool) -> SymbolKey:
    """The kernel for grids whose rows are whole quads."""
    return SymbolKey(
        family=NAME,
        variant="gelu_rows",
        choices=(("precision", "f8" if is_f8 else "f16"), ("bias", "row" if has_bias else "none")),
    )


ROWS: Final = {
    rows_symbol(has_bias=has_bias, is_f8=is_f8): (has_bias, is_f8)
    for has_bias in (False, True)
    for is_f8 in (False, True)
}
"""Symbols of the kernels for grids: whether there is a bias, whether results are F143."""


def bind_gelu(request: Request, *, has_bias: bool) -> Binding | Refusal:
    """The call for the GELU of one operand, or of its sum with one row."""
    needed = 3 if has_bias else 2
    if len(request.operands) != needed:
        return Refusal(
            reason=f"this takes one result and {needed - 1} operands, not {len(request.operands)} in all"
        )
    names = ("result 0", "operand 0", "operand 1")
    for position, (name, operand) in enumerate(zip(names, request.operands, strict=False)):
        allowed = F16 | F8 if position == 0 else F16
        if not isinstance(operand.precision, allowed):
            return Refusal(
                reason=f"{name} is {type(operand.precision).__name__}, which gelu does not take there"
            )
        if pack(operand) is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
        if operand.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {operand.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
        if position > 0:
            relation = request.relations[position]
            if not isinstance(relation, Identity | Broadcast):
                return Refusal(reason=f"{name} does not have the rows of the result, nor is it one of them")
            if not logical_in_result(request.operands[0], operand, relation).contains(
                request.operands[0].logical_region
            ):
                return Refusal(reason=f"{name} has fewer elements than the result needs")
    simple = _bind_narrow(request) if has_bias else _bind_flat(request)
    return _bind_rows(request, has_bias=has_bias) if simple is None else simple


def _bind_narrow(request: Request) -> Binding | Refusal | None:
    """The call for rows that are no whole quads; None when they are, or are not row-major F16."""
    result, operand, row = request.operands
    if not isinstance(result.precision, F16):
        return None
    ends, source, bias = pack(result), pack(operand), pack(row)
    relation, row_relation = request.relations[1:]
    if ends is None or source is None or bias is None or relation is None or row_relation is None:
        return None
    rank = len(result.backing)
    same = repetition(ends, source, relation, rank)
    repeated = repetition(ends, bias, row_relation, rank)
    if same is None or same.repeat > 1 or repeated is None:
        return None
    count = ends.elements
    width = count if repeated.repeat == 1 else repeated.inner
    if repeated.repeat > 1 and repeated.outer > 1:
        return None
    if width % QUAD == 0:
        return None
    quads = count // QUAD
    return _call(
        request,
        starts=(ends.start, source.start, bias.start),
        bytes_read=(2 * count, 2 * width),
        bytes_written=whole_words(2 * count),
        kept=span(ends.start + 2 * count, 2) if count % 2 else NO_BYTES,
        is_in_place=True,
        scalars=(
            Scalar(name="quads_per_worker", value=quads // WORKERS),
            Scalar(name="quads_left", value=quads % WORKERS),
            Scalar(name="tail", value=count % QUAD),
            Scalar(name="width_bytes", value=2 * width),
            Scalar(name="advance_bytes", value=2 * (QUAD * WORKERS % width)),
        ),
        symbol=NARROW,
        cycles=narrow_cycles(count, width),
    )


def _bind_flat(request: Request) -> Binding | Refusal | None:
    """The call that needs no rows; None when result and operand are not stored alike."""
    result, operand = request.operands
    if not isinstance(result.precision, F16):
        return None
    ends, source = pack(result), pack(operand)
    relation = request.relations[1]
    if ends is None or source is None or relation is None:
        return None
    pattern = repetition(ends, source, relation, len(result.backing))
    if pattern is None or pattern.repeat > 1:
        return None
    count = ends.elements
    quads = count // QUAD
    return _call(
        request,
        starts=(ends.start, source.start),
        bytes_read=(2 * count,),
        bytes_written=whole_words(2 * count),
        kept=span(ends.start + 2 * count, 2) if count % 2 else NO_BYTES,
        is_in_place=True,
        scalars=(
            Scalar(name="quads_per_worker", value=quads // WORKERS),
            Scalar(name="quads_left", value=quads % WORKERS),
            Scalar(name="tail", value=count % QUAD),
        ),
        symbol=FLAT,
        cycles=flat_cycles(count),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Extents of ``gelu_rows``.

    Args:
        rows: of the grid.
        quads: of a row, four elements each.
        surplus: quads of a result's row behind those, which become zero.
    """

    rows: int
    quads: int
    surplus: int


def _bind_rows(request: Request, *, has_bias: bool) -> Binding | Refusal:
    """The call for grids."""
    result, operand = request.operands[:2]
    ends, source = grid(result), grid(operand)
    if ends is None:
        return Refusal(reason="result 0 is neither in rows nor in panels of rows")
    if source is None or source.row_digits != ends.row_digits:
        return Refusal(reason="operand 0 does not have the rows of the result")
    for name, one, owner in (("result 0", ends, result), ("operand 0", source, operand)):
        if one.is_panels and one.panel != owner.precision.micro:
            return Refusal(reason=f"{name} has panels of {one.panel} columns")
    if source.columns % QUAD:
        return Refusal(reason=f"rows of {source.columns} elements are not a multiple of {QUAD}")
    surplus = ends.columns - source.columns
    if not 0 <= surplus < result.precision.micro or surplus % QUAD:
        return Refusal(reason=f"a result of {ends.columns} columns cannot have {source.columns} of elements")
    starts = [ends.start, source.start]
    bytes_read = [2 * source.rows * source.columns]
    if has_bias:
        bias = pack(request.operands[2])
        axis = len(request.operands[2].backing) - 1
        if bias is None or bias.digits != join([PackedDigit(axis=axis, weight=1, radix=source.columns)]):
            return Refusal(reason="operand 1 is not one row of the result")
        starts.append(bias.start)
        bytes_read.append(2 * source.columns)
    is_f8 = isinstance(result.precision, F8)
    if not has_bias and source.row_digits and not (source.is_panels or ends.is_panels) and not surplus:
        extents = Rows(rows=1, quads=source.rows * source.columns // QUAD, surplus=0)
    else:
        extents = Rows(rows=source.rows, quads=source.columns // QUAD, surplus=surplus // QUAD)
    if max(extents.rows, extents.quads) >= MOST:
        return Refusal(reason=f"{max(extents.rows, extents.quads)} rows or quads are not fewer than {MOST}")
    columns, rows = min(LANES, key=lambda lanes: rows_cycles(extents, lanes, has_bias=has_bias, is_f8=is_f8))
    shape = columns | rows << 8 | source.is_panels << 16 | ends.is_panels << 17 | extents.surplus << 18
    scalars = [
        Scalar(name="rows", value=extents.rows),
        Scalar(name="quads", value=extents.quads),
        Scalar(name="lanes", value=shape),
        Scalar(name="per_lane", value=extents.rows // rows | extents.quads // columns << 16),
    ]
    if isinstance(result.precision, F8):
        conversion = quantizing(result.precision.scale_exponent)
        if conversion is None:
            return Refusal(
                reason=f"result 0 has scale exponent {result.precision.scale_exponent}, "
                "whose inverse does not fit six bits"
            )
        scalars.append(conversion)
    return _call(
        request,
        starts=tuple(starts),
        bytes_read=tuple(bytes_read),
        bytes_written=ends.rows * ends.columns * result.precision.element_bytes,
        kept=NO_BYTES,
        is_in_place=not is_f8 and not surplus and ends.is_panels == source.is_panels,
        scalars=tuple(scalars),
        symbol=rows_symbol(has_bias=has_bias, is_f8=is_f8),
        cycles=rows_cycles(extents, (columns, rows), has_bias=has_bias, is_f8=is_f8),
    )


def _call(
    request: Request,
    *,
    starts: tuple[int, ...],
    bytes_read: tuple[int, ...],
    bytes_written: int,
    kept: Traversal,
    is_in_place: bool,
    scalars: tuple[Scalar, ...],
    symbol: SymbolKey,
    cycles: Cycles,
) -> Binding | Refusal:
    """The binding of a chosen kernel; ``kept`` are bytes of the result's last word that are not its own."""
    operands = request.operands[1:]
    permitted = (
        (Alias(result=Result(0), operand=Operand(0), displacement=starts[1] - starts[0]),)
        if is_in_place
        else ()
    )
    for alias in request.aliases:
        if alias not in permitted:
            return Refusal(reason=f"{alias} is not a storage that gelu may take")
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=request.operands[0],
                start=starts[0],
                alignment=ALIGNMENT,
                reads=kept,
                writes=span(starts[0], bytes_written),
                padding=result_padding(request),
            ),
        ),
        operands=tuple(
            Access(
                operand=operand,
                relation=relation,
                start=start,
                alignment=ALIGNMENT,
                reads=span(start, count),
                padding=parts((operand.padding_traversal(), PaddingState.ZERO, None)),
            )
            for operand, relation, start, count in zip(
                operands, request.relations[1:], starts[1:], bytes_read, strict=True
            )
        ),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(
            Pointer(reference=Result(0)),
            *(Pointer(reference=Operand(index)) for index in range(len(operands))),
            *scalars,
        ),
        symbol=symbol,
        work=Work(flops=(FLOPS + len(operands) - 1) * int(np.prod(request.operands[0].logical))),
        cycles=cycles,
    )


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles | None:
    """The formula, given the argument registers; None when no kernel here has this symbol."""
    if key == FLAT:
        return flat_cycles(_count_of_call(arguments[2:]))
    if key == NARROW:
        return narrow_cycles(_count_of_call(arguments[3:]), arguments[6] // 2)
    if key not in ROWS:
        return None
    has_bias, is_f8 = ROWS[key]
    rows, quads, shape = arguments[2 + has_bias : 5 + has_bias]
    extents = Rows(rows=rows, quads=quads, surplus=shape >> 18)
    return rows_cycles(extents, (shape & 0xFF, shape >> 8 & 0xFF), has_bias=has_bias, is_f8=is_f8)


def _count_of_call(scalars: tuple[int, ...]) -> int:
    """Halves of a call of ``gelu_flat`` or ``gelu_narrow``, from its arguments behind the pointers."""
    per_worker, left, tail = scalars[:3]
    return QUAD * (WORKERS * per_worker + left) + tail


def flat_cycles(count: int) -> Cycles:
    """Of ``gelu_flat`` on so many halves."""
    quads = count // QUAD
    tail = count % QUAD
    issues: list[int] = []
    for worker, share in enumerate(shares(quads)):
        total = 17 + (5 + OPERATIONS * share if share else 0)
        if worker == quads % WORKERS:
            total += 2 + (0, 31, 27, 33)[tail]
        issues.append(total)
    return call_cycles(16, issues)


def execute_flat(arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``gelu_flat`` does, given its argument registers."""
    result, operand = arguments[:2]
    count = _count_of_call(arguments[2:])
    memory.write(result, to_bytes(gelu(halves(memory.read(operand, 2 * count)))))


def narrow_cycles(count: int, width: int) -> Cycles:
    """Of ``gelu_narrow`` on so many halves in rows of ``width``: 21 bundles for four elements."""
    quads = count // QUAD
    issues: list[int] = []
    for worker, share in enumerate(shares(quads)):
        total = 25 + 4 * (QUAD * worker // width) + (19 + 21 * share if share else 0)
        if worker == quads % WORKERS:
            total += 3 + (0, 49, 48, 56)[count % QUAD]
        issues.append(total)
    return call_cycles(19, issues)


def execute_narrow(arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``gelu_narrow`` does, given its argument registers."""
    result, operand, bias = arguments[:3]
    count, width_bytes = _count_of_call(arguments[3:]), arguments[6]
    values = halves(memory.read(operand, 2 * count)).reshape(-1, width_bytes // 2)
    row = halves(memory.read(bias, width_bytes))
    memory.write(result, to_bytes(gelu(add_halves(values, row))))


def rows_cycles(extents: Rows, lanes: tuple[int, int], *, has_bias: bool, is_f8: bool) -> Cycles:
    """Of ``gelu_rows`` with (columns, rows) of lanes side by side."""
    per_quad = OPERATIONS + has_bias + is_f8
    issues: list[int] = []
    for worker in range(WORKERS):
        rows = lane_share(extents.rows, worker // lanes[0], lanes[1])
        columns = lane_share(extents.quads, worker % lanes[0], lanes[0])
        if rows <= 0:
            issues.append(16)
            continue
        if columns <= 0:
            issues.append(22)
            continue
        # The first lane of columns also clears the surplus.
        surplus = 0 if worker % lanes[0] else 4 + extents.surplus
        row = 13 + has_bias + per_quad * columns + surplus
        issues.append(36 + has_bias + SETUP * is_f8 + rows * row)
    return call_cycles(61 + has_bias + is_f8, issues)


def execute_rows(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``gelu_rows`` does, given its argument registers."""
    has_bias, is_f8 = ROWS[key]
    result, operand = arguments[:2]
    rows, quads, shape = arguments[2 + has_bias : 5 + has_bias]
    is_panels, to_panels, surplus = shape >> 16 & 1, shape >> 17 & 1, shape >> 18
    columns = QUAD * quads
    values = halves(memory.read(operand, 2 * rows * columns))
    values = _from_panels(values, rows, F16.micro) if is_panels else values.reshape(rows, columns)
    if has_bias:
        values = add_halves(values, halves(memory.read(arguments[2], 2 * columns)))
    results = np.zeros((rows, columns + QUAD * surplus), dtype=np.uint8 if is_f8 else np.float16)
    results[:, :columns] = codes_of(gelu(values), arguments[6 + has_bias]) if is_f8 else gelu(values)
    if to_panels:
        panel = F8.micro if is_f8 else F16.micro
        results = results.reshape(rows, -1, panel).transpose(1, 0, 2)
    memory.write(result, np.ascontiguousarray(results).view(np.uint8).reshape(-1))


def _from_panels(values: npt.NDArray[np.float16], rows: int, panel: int) -> npt.NDArray[np.float16]:
    """Rows [rows, columns] of elements in panels."""
    return values.reshape(-1, rows, panel).transpose(1, 0, 2).reshape(rows, -1)
