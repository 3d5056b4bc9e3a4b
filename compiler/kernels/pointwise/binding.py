"""Element-wise sums of F16 tensors: contract, cost and semantics. GELU is in ``gelu``.

One operand has the coordinates of the result. The other one has them too, or is repeated along axes of the
result (a bias along the rows). Kernels walk storage and know no order: an operand must be a gapless run of
bytes, and a repeated one must fit the pattern of ``packed.Repetition``, which holds for biases of row-major
tensors and of AMP panels alike.

==============  ======================================================================================
kernel          when
==============  ======================================================================================
``add_flat``    nothing repeats: 64 bits at a time, six workers in turn
``add_rows``    the repeated run is a multiple of 64 bits: workers share its columns, the rows, or both
``add_narrow``  any other width: 32 bits of the result at a time, each with its place in the repeated run
==============  ======================================================================================

**Ends.** There are no 16-bit stores. The last half of an odd number shares a word with bytes that are not
ours: they are read and written back, which the access says.

**Padding** is added like everything else. Zero plus zero stays zero; a bias makes padding rows finite.
"""

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, assert_never, final

import numpy as np

from compiler.geometry.precision import F16
from compiler.kernels.contract import (
    NO_BYTES,
    Access,
    Alias,
    Binding,
    Family,
    Operand,
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
from compiler.kernels.packed import Packed, Repetition, pack, repetition, span, whole_words
from compiler.kernels.pointwise import gelu
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


class Operation(Enum):
    """What is done with an element, or with two."""

    ADD = "add"
    GELU = "gelu"
    BIAS_GELU = "bias_gelu"


class Variant(Enum):
    """The kernels."""

    FLAT = "add_flat"
    ROWS = "add_rows"
    NARROW = "add_narrow"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How workers share the rows and columns of a repeated run.

    Args:
        columns: lanes of columns, 64 bits wide, side by side.
        rows: lanes of rows.
        by_rows: a worker does row after row of its lane, not column after column.
    """

    columns: int
    rows: int
    by_rows: bool


SHARINGS: Final = tuple(
    Sharing(columns=columns, rows=rows, by_rows=by_rows)
    for by_rows in (False, True)
    for columns, rows in LANES
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PointwiseParameters(Parameters):
    """Element-wise work on one operand or two.

    Args:
        operation: what is done.
    """

    family: ClassVar[str] = NAME
    operation: Operation = Operation.ADD


def symbol_of(variant: Variant, width: int = 0) -> SymbolKey:
    """The kernel of a variant; narrow runs of even width hold whole pairs."""
    pairs = (("pairs", "split" if width % 2 else "whole"),) if variant is Variant.NARROW else ()
    return SymbolKey(family=NAME, variant=variant.value, choices=(("precision", "f16"), *pairs))


def variant_of(key: SymbolKey) -> tuple[Variant, bool]:
    """The kernel that a symbol names, and whether its repeated run is of odd width.

    Raises:
        ValueError: the family has no such kernel.
    """
    variant = Variant(key.variant)
    for width in range(2):
        if key == symbol_of(variant, width):
            return variant, width == 1
    raise ValueError(f"family {NAME} has no kernel {key}")


def bind(request: Request) -> Binding | Refusal:
    """The call for one operation."""
    if not isinstance(request.parameters, PointwiseParameters):
        raise ValueError(f"{type(request.parameters).__name__} are not parameters of {NAME}")
    match request.parameters.operation:
        case Operation.ADD:
            return _bind_sum(request)
        case Operation.GELU:
            return gelu.bind_gelu(request, has_bias=False)
        case Operation.BIAS_GELU:
            return gelu.bind_gelu(request, has_bias=True)
        case _:
            assert_never(request.parameters.operation)


def _bind_sum(request: Request) -> Binding | Refusal:
    """The call for one sum of two operands."""
    if len(request.operands) != 3:
        return Refusal(reason=f"a sum has one result and two operands, not {len(request.operands)} in all")
    packed: list[Packed] = []
    for name, operand in zip(_NAMES, request.operands, strict=True):
        run = pack(operand)
        if not isinstance(operand.precision, F16):
            return Refusal(reason=f"{name} is {type(operand.precision).__name__}; sums are of F16")
        if run is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
        if operand.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {operand.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
        packed.append(run)
    patterns: list[Repetition] = []
    for position in (1, 2):
        relation = request.relations[position]
        pattern = None
        if relation is not None:
            pattern = repetition(packed[0], packed[position], relation, len(request.operands[0].backing))
        if pattern is None:
            return Refusal(
                reason=f"{_NAMES[position]} does not repeat evenly along the result as it is stored"
            )
        patterns.append(pattern)
    for position in (1, 2):
        touched = logical_in_result(
            request.operands[0], request.operands[position], request.relations[position]
        )
        if touched.intersect(request.operands[0].logical_region) != request.operands[0].logical_region:
            return Refusal(reason=f"{_NAMES[position]} has fewer elements than the result needs")
    repeats = [pattern.repeat for pattern in patterns]
    if min(repeats) > 1:
        return Refusal(reason="both operands repeat along the result")
    repeated = 0 if repeats[0] > 1 else 1
    return _bind_packed(request, packed, patterns[repeated], repeated)


_NAMES: Final = ("result 0", "operand 0", "operand 1")


def _bind_packed(
    request: Request, packed: list[Packed], pattern: Repetition, repeated: int
) -> Binding | Refusal:
    count = packed[0].elements
    whole = 1 - repeated
    if pattern.repeat == 1:
        variant = Variant.FLAT
        quads = count // QUAD
        scalars = (
            Scalar(name="quads_per_worker", value=quads // WORKERS),
            Scalar(name="quads_left", value=quads % WORKERS),
            Scalar(name="tail", value=count % QUAD),
        )
        estimate = flat_cycles(count)
    elif pattern.inner % QUAD == 0:
        variant = Variant.ROWS
        quads = pattern.inner // QUAD
        if max(quads, pattern.repeat, pattern.outer) >= MOST:
            return Refusal(reason=f"{max(quads, pattern.repeat)} columns or rows are not fewer than {MOST}")
        sharing = min(SHARINGS, key=lambda candidate: rows_cycles(pattern, candidate))
        scalars = (
            Scalar(name="outer", value=pattern.outer),
            Scalar(name="rows", value=pattern.repeat),
            Scalar(name="quads", value=quads),
            Scalar(name="lanes", value=sharing.columns | sharing.rows << 8 | sharing.by_rows << 16),
            Scalar(name="per_lane", value=pattern.repeat // sharing.rows | quads // sharing.columns << 16),
        )
        estimate = rows_cycles(pattern, sharing)
    elif pattern.outer == 1:
        variant = Variant.NARROW
        words = count // 2
        scalars = (
            Scalar(name="words_per_worker", value=words // WORKERS),
            Scalar(name="words_left", value=words % WORKERS),
            Scalar(name="tail", value=count % 2),
            Scalar(name="width_bytes", value=2 * pattern.inner),
            Scalar(name="advance_bytes", value=2 * (2 * WORKERS % pattern.inner)),
        )
        estimate = narrow_cycles(count, pattern.inner)
    else:
        return Refusal(
            reason=f"operand {repeated} repeats runs of {pattern.inner} elements {pattern.outer} times; "
            f"only one run, or runs of a multiple of {QUAD}, can repeat"
        )
    result = request.operands[0]
    written = span(packed[0].start, whole_words(2 * count))
    is_cut = count % 2 == 1
    accesses = [
        Access(
            operand=result,
            start=packed[0].start,
            alignment=ALIGNMENT,
            reads=span(packed[0].start + 2 * count, 2) if is_cut else NO_BYTES,
            writes=written,
            padding=result_padding(request),
        )
    ]
    for position in (1, 2):
        operand = request.operands[position]
        accesses.append(
            Access(
                operand=operand,
                relation=request.relations[position],
                start=packed[position].start,
                alignment=ALIGNMENT,
                reads=span(packed[position].start, 2 * packed[position].elements),
                padding=parts((operand.padding_traversal(), PaddingState.ZERO, None)),
            )
        )
    reusable = (0, 1) if variant is Variant.FLAT else (whole,)
    permitted = tuple(
        Alias(
            result=Result(0),
            operand=Operand(index),
            displacement=packed[1 + index].start - packed[0].start,
        )
        for index in reusable
    )
    for alias in request.aliases:
        if alias not in permitted:
            return Refusal(reason=f"{alias} is not one of the storages that the sum may take")
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(accesses[0],),
        operands=(accesses[1], accesses[2]),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(whole)),
            Pointer(reference=Operand(repeated)),
            *scalars,
        ),
        symbol=symbol_of(variant, pattern.inner),
        work=Work(flops=int(np.prod(result.logical))),
        cycles=estimate,
    )


def flat_cycles(count: int) -> Cycles:
    """Of ``add_flat`` on so many halves: three bundles for each quad of a worker."""
    quads = count // QUAD
    tails = {quads % WORKERS: 2 + (0, 11, 9, 16)[count % QUAD]}
    issues = [
        15 + (3 + 3 * share if share else 0) + tails.get(worker, 0)
        for worker, share in enumerate(shares(quads))
    ]
    return call_cycles(8, issues)


def rows_cycles(pattern: Repetition, sharing: Sharing) -> Cycles:
    """Of ``add_rows`` with the workers sharing so: a quad is two bundles by columns, three by rows."""
    quads = pattern.inner // QUAD
    issues: list[int] = []
    for worker in range(WORKERS):
        rows = lane_share(pattern.repeat, worker // sharing.columns, sharing.rows)
        columns = lane_share(quads, worker % sharing.columns, sharing.columns)
        if rows <= 0:
            issues.append(16)
        elif columns <= 0:
            issues.append(22)
        elif sharing.by_rows:
            issues.append(35 + pattern.outer * (10 + rows * (7 + 3 * columns)))
        else:
            issues.append(36 + pattern.outer * (6 + columns * (7 + 2 * rows)))
    return call_cycles(28, issues)


def narrow_cycles(count: int, width: int) -> Cycles:
    """Of ``add_narrow`` on so many halves with a repeated run of ``width``: seven or eight issues a word."""
    is_split, words = width % 2 == 1, count // 2
    issues: list[int] = []
    for worker, share in enumerate(shares(words)):
        first = 2 * worker
        total = 20 + 4 * (first // width)
        if share:
            at = (first + 2 * WORKERS * np.arange(share, dtype=np.int64)) % width
            wraps = int((at[:-1] + 2 * WORKERS % width >= width).sum())
            if is_split:
                ends = at == width - 1
                total += 4 + 8 * share + 6 * wraps + 2 * int(ends.sum()) + (0 if ends[-1] else 1)
            else:
                total += 6 + 7 * share + 4 * wraps
        if worker == words % WORKERS:
            total += 2 + (8 if count % 2 else 0)
        issues.append(total)
    return call_cycles(10, issues)


def _pattern_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> tuple[Variant, Repetition]:
    """How the second operand of a sum repeats, from the argument registers."""
    variant, _ = variant_of(key)
    match variant:
        case Variant.FLAT:
            per_worker, left, tail = arguments[3:6]
            return variant, Repetition(outer=1, repeat=1, inner=QUAD * (WORKERS * per_worker + left) + tail)
        case Variant.ROWS:
            outer, rows, quads = arguments[3:6]
            return variant, Repetition(outer=outer, repeat=rows, inner=QUAD * quads)
        case Variant.NARROW:
            per_worker, left, tail, width_bytes = arguments[3:7]
            count, width = 2 * (WORKERS * per_worker + left) + tail, width_bytes // 2
            return variant, Repetition(outer=1, repeat=count // width, inner=width)
        case _:
            assert_never(variant)


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    of_gelu = gelu.cycles_of_call(key, arguments)
    if of_gelu is not None:
        return of_gelu
    variant, pattern = _pattern_of_call(key, arguments)
    match variant:
        case Variant.FLAT:
            return flat_cycles(pattern.inner)
        case Variant.ROWS:
            lanes = arguments[6]
            sharing = Sharing(columns=lanes & 0xFF, rows=lanes >> 8 & 0xFF, by_rows=lanes >> 16 == 1)
            return rows_cycles(pattern, sharing)
        case Variant.NARROW:
            return narrow_cycles(pattern.repeat * pattern.inner, pattern.inner)
        case _:
            assert_never(variant)


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    if key == gelu.FLAT:
        gelu.execute_flat(arguments, memory)
        return
    if key == gelu.NARROW:
        gelu.execute_narrow(arguments, memory)
        return
    if key in gelu.ROWS:
        gelu.execute_rows(key, arguments, memory)
        return
    result, whole, repeated = arguments[:3]
    _, pattern = _pattern_of_call(key, arguments)
    shape = (pattern.outer, pattern.repeat, pattern.inner)
    count = pattern.outer * pattern.repeat * pattern.inner
    left_values = halves(memory.read(whole, 2 * count)).reshape(shape)
    right_values = halves(memory.read(repeated, 2 * pattern.outer * pattern.inner))
    sums = add_halves(left_values, right_values.reshape(pattern.outer, 1, pattern.inner))
    memory.write(result, to_bytes(sums))


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
