"""What a program computes, on whole tensors with NumPy: the independent oracle of the interpreter.

Copies visit every coordinate, products every panel; where shards lie matters to one thing alone, the order of
sums, and is found by the coordinate interpreter of geometry's tests.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never, cast

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.geometry.relation import operand_axes
from compiler.kernels.gemm.binding import Mode
from compiler.kernels.halves import add_halves, round_halves
from compiler.kernels.pointwise.binding import Operation
from compiler.kernels.pointwise.gelu import gelu
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Repeat, Value
from compiler.mid.work import Cast, Elementwise, Product, Sum
from tests.geometry.interpreter import Coordinate, shard_storage
from tests.kernels.test_gemm_arithmetic import reference

Elements = npt.NDArray[np.generic]
Halves = npt.NDArray[np.float16]
Known = dict[MidValueId, Elements]


def evaluate(program: MidProgram, tensors: Mapping[str, Elements]) -> dict[str, Elements]:
    """Outputs by name."""
    block = program.block
    arguments = [tensors[block.value(argument).name] for argument in block.arguments]
    return dict(zip(program.outputs, evaluate_block(block, arguments), strict=True))


def evaluate_block(block: Block, arguments: Sequence[Elements]) -> list[Elements]:
    """Results of a block."""
    known: Known = dict(zip(block.arguments, arguments, strict=True))
    for operation in block.operations:
        match operation:
            case Copy():
                known[operation.result] = _copy(block, operation, known)
            case Compute():
                known[operation.results[0]] = _compute(block, operation, known)
            case Repeat():
                carried = [known[value] for value in operation.carried]
                fixed = [known[value] for value in operation.invariants]
                for iteration in range(operation.count):
                    members = [known[sequence[iteration]] for sequence in operation.sequences]
                    carried = evaluate_block(operation.body, [*carried, *fixed, *members])
                known.update(zip(operation.results, carried, strict=True))
            case _:
                assert_never(operation)
    return [known[result] for result in block.results]


def _copy(block: Block, copy: Copy, known: Known) -> Elements:
    result = block.value(copy.result)
    array = np.zeros(result.shape, dtype=result.format.precision.dtype)
    for part in copy.parts:
        grid = np.indices(part.region.extents, dtype=np.int64)
        sources = part.mapping.sources_of(np.moveaxis(grid, 0, -1))
        box = tuple(slice(start, stop) for start, stop in part.region.bounds)
        array[box] = known[part.source][tuple(np.moveaxis(sources, -1, 0))]
    return array


def _compute(block: Block, compute: Compute, known: Known) -> Elements:
    result = block.value(compute.results[0])
    operands = [known[operand] for operand in compute.operands]
    formats = [block.value(operand).format.precision for operand in compute.operands]
    work = compute.work
    match work:
        case Product():
            return _product(work, operands, formats)
        case Sum():
            return _sum(result, block.value(compute.operands[0]), cast("Halves", operands[0]))
        case Cast():
            return cast_dense(operands[0], formats[0], result.format.precision)
        case Elementwise(operation=operation):
            read = [
                cast("Halves", np.broadcast_to(operand, result.shape)) for operand in operands
            ]  # the strategies use NumPy's rule alone
            for relation, operand in zip(compute.relations, operands, strict=True):
                assert len(operand_axes(relation, operand.shape)) == operand.ndim
            made = read[0] if operation is Operation.GELU else add_halves(read[0], read[1])
            if operation is not Operation.ADD:
                made = gelu(made)
            return cast_dense(made, F16(), result.format.precision)
        case _:
            assert_never(work)


def cast_dense(array: Elements, source: Precision, result: Precision) -> Elements:
    """Elements of one precision in another, as written down with the kernels of casts."""
    if source == result:
        return array
    match source, result:
        case F32(), F16():
            return round_halves(array.astype(np.float32))
        case F16(), F32():
            return array.astype(np.float32)
        case F16(), F8(scale_exponent=scale):
            return encode_f143(array, scale)
        case F8(scale_exponent=scale), F16():
            return round_halves(decode_f143(array, scale))
        case F8(scale_exponent=scale), F32():
            return decode_f143(array, scale)
        case F8(scale_exponent=scale), F8(scale_exponent=other):
            return encode_f143(decode_f143(array, scale), other)
        case F32(), F8(scale_exponent=scale):
            # Through a half that is scaled already.
            scaled = np.ldexp(array.astype(np.float32), -scale).astype(np.float32)
            return encode_f143(round_halves(scaled))
        case _:
            raise AssertionError(f"{source} to {result}")


def _product(work: Product, operands: Sequence[Elements], formats: Sequence[Precision]) -> Elements:
    """Products of two matrices, which is all that the strategies make."""
    left, right = operands[:2]
    scale = None
    if isinstance(formats[0], F8) and isinstance(formats[1], F8):
        scale = formats[0].scale_exponent + formats[1].scale_exponent
        left, right = decode_f143(left), decode_f143(right)
    x, w = left.astype(np.float64), right.astype(np.float64)
    sums = np.zeros((x.shape[0], w.shape[1]), dtype=np.float16)
    if work.mode is Mode.ACCUMULATE:
        sums = cast("Halves", operands[2])
    if not work.parts:
        return chained(x, w, sums, formats[0].micro, scale)
    return np.stack(
        [
            chained(x[:, start:stop], w[start:stop], sums, formats[0].micro, scale)
            for start, stop in work.parts
        ]
    )


def chained(
    x: npt.NDArray[np.float64],
    w: npt.NDArray[np.float64],
    sums: Halves,
    micro: int,
    scale: int | None,
) -> Halves:
    """A product, its last panel filled with zeros."""
    missing = -x.shape[1] % micro
    x, w = np.pad(x, ((0, 0), (0, missing))), np.pad(w, ((0, missing), (0, 0)))
    return reference(x, w, sums, micro, scale)


def _sum(result: Value, operand: Value, partials: Halves) -> Halves:
    """Element by element, in the order that the tile of each one's shard wants."""
    held: dict[int, set[Coordinate]] = {}
    for shard, storage in enumerate(shard_storage(operand.shape, operand.format)):
        for owner in operand.distribution.owners[shard].tolist():
            held[operand.owners.tile(owner)] = set(storage)
    total = np.empty(result.shape, dtype=np.float16)
    for shard, storage in enumerate(shard_storage(result.shape, result.format)):
        tile = result.owners.tile(int(result.distribution.owners[shard, 0]))
        there = held.get(tile, set())
        numbers = {coordinate[0] for coordinate in there}
        own = 0
        if len(numbers) == 1:
            (number,) = numbers
            if all((number, *coordinate) in there for coordinate in storage):
                own = number
        order = [own, *(number for number in range(len(partials)) if number != own)]
        for coordinate in storage:
            element = partials[(order[0], *coordinate)]
            for number in order[1:]:
                element = add_halves(np.array([element]), np.array([partials[(number, *coordinate)]]))[0]
            total[coordinate] = element
    return total
