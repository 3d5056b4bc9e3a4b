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

from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F16
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
from compiler.kernels.halves import add_halves, halves, multiply_halves, to_bytes
from compiler.kernels.packed import Packed, pack, repetition, span, whole_words
from compiler.kernels.pointwise.common import (
    ALIGNMENT,
    NAME,
    QUAD,
    WORKERS,
    logical_in_result,
    parts,
    result_padding,
)
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import call_cycles, shares
from compiler.target.units import Cycles

FLAT: Final = SymbolKey(family=NAME, variant="gelu_flat", choices=(("precision", "f16"),))
"""Any gapless tensor: 64 bits at a time, six workers in turn."""

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


def bind_gelu(request: Request) -> Binding | Refusal:
    """The call for the GELU of one operand."""
    if len(request.operands) != 2:
        return Refusal(reason=f"gelu has one result and one operand, not {len(request.operands)} in all")
    result, operand = request.operands
    packed: list[Packed] = []
    for name, one in (("result 0", result), ("operand 0", operand)):
        if not isinstance(one.precision, F16):
            return Refusal(reason=f"{name} is {type(one.precision).__name__}; gelu is of F16")
        run = pack(one)
        if run is None:
            return Refusal(reason=f"{name} is not one gapless run of bytes")
        if one.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {one.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
        packed.append(run)
    relation = request.relations[1]
    pattern = None if relation is None else repetition(packed[0], packed[1], relation, len(result.backing))
    if pattern is None or pattern.repeat > 1:
        return Refusal(reason="operand 0 is not stored as the result is")
    if not logical_in_result(result, operand, relation).contains(result.logical_region):
        return Refusal(reason="operand 0 has fewer elements than the result needs")
    count = packed[0].elements
    quads = count // QUAD
    permitted = (Alias(result=Result(0), operand=Operand(0), displacement=packed[1].start - packed[0].start),)
    for alias in request.aliases:
        if alias not in permitted:
            return Refusal(reason=f"{alias} is not the storage that gelu may take")
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=result,
                start=packed[0].start,
                alignment=ALIGNMENT,
                reads=span(packed[0].start + 2 * count, 2) if count % 2 else NO_BYTES,
                writes=span(packed[0].start, whole_words(2 * count)),
                padding=result_padding(request),
            ),
        ),
        operands=(
            Access(
                operand=operand,
                relation=relation,
                start=packed[1].start,
                alignment=ALIGNMENT,
                reads=span(packed[1].start, 2 * count),
                padding=parts((operand.padding_traversal(), PaddingState.ZERO, None)),
            ),
        ),
        aliases=request.aliases,
        permitted=permitted,
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="quads_per_worker", value=quads // WORKERS),
            Scalar(name="quads_left", value=quads % WORKERS),
            Scalar(name="tail", value=count % QUAD),
        ),
        symbol=FLAT,
        work=Work(flops=FLOPS * int(np.prod(result.logical))),
        cycles=flat_cycles(count),
    )


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
    result, operand, per_worker, left, tail = arguments[:5]
    count = QUAD * (WORKERS * per_worker + left) + tail
    memory.write(result, to_bytes(gelu(halves(memory.read(operand, 2 * count)))))
