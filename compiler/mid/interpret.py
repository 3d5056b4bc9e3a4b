"""Executes whole-device programs on distributed shards: the oracle for everything below.

Numbers are those of the kernel families, bit for bit (pinned): products round to F16 after each panel of K,
sums fold from the left in F16 in their recorded order, element-wise operations and casts are the functions
that the families' semantics call. What is not here is storage: orders, padding, memory classes and addresses
have no influence on numbers, and tiles compute on arrays of logical elements.

Values are kept in shards. A computation gives each shard of its result only what the tile of that shard holds
of the operands, so that a program that reads what it does not have fails here too. Replicas of a shard are
one array: they are equal, because their owners compute the same from the same (``verify``, clause 14).

Products whose sums are rounded at random have no one result; they are computed as if rounded to nearest even.

Programs must be well formed. Cost: products at about 4 * 10^9 multiplications a second, and some ten
microseconds for each shard of each operation. A value is dropped after its last use.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, assert_never, cast, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import CoordinateMapping, Shape, text_of_shape
from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143
from compiler.geometry.product import ProductAxes
from compiler.geometry.relation import Follow, ProductOperand, Relation, Side, Span, operand_axes
from compiler.kernels.cast.conversions import conversion_of, converted, scale_arguments
from compiler.kernels.eight_bit import codes_of, quantizing
from compiler.kernels.gemm.arithmetic import multiply
from compiler.kernels.gemm.binding import Mode
from compiler.kernels.halves import add_halves
from compiler.kernels.pointwise.binding import Operation
from compiler.kernels.pointwise.gelu import gelu
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    MidProgram,
    MidValueId,
    Repeat,
    Value,
    operands_of,
    results_of,
)
from compiler.mid.shards import is_flat, own_partials, shard_boxes, shards_on
from compiler.mid.work import Cast, Elementwise, Product, Sum

Elements: TypeAlias = npt.NDArray[np.generic]
"""Elements as they are stored: F8 as codes."""

Halves: TypeAlias = npt.NDArray[np.float16]


def interpret(program: MidProgram, tensors: Mapping[str, Elements]) -> dict[str, Elements]:
    """Outputs of a well-formed program, by the names that the host knows.

    Args:
        program: the program.
        tensors: inputs and parameters by name, in the element type of their precision.

    Raises:
        ValueError: an input or parameter is missing, or has another shape or element type; or a tile does not
            hold what it reads.
    """
    block = program.block
    arguments = [_given(block.value(argument), tensors) for argument in block.arguments]
    results = _run(block, arguments)
    return {name: result.gather() for name, result in zip(program.outputs, results, strict=True)}


def _given(value: Value, tensors: Mapping[str, Elements]) -> "_Shards":
    array = tensors.get(value.name)
    if array is None:
        raise ValueError(f"{value.name} has no values")
    dtype = value.format.precision.dtype
    if array.shape != value.shape or array.dtype != dtype:
        raise ValueError(
            f"{value.name} is {dtype}{text_of_shape(value.shape)}, the values are "
            f"{array.dtype}{text_of_shape(array.shape)}"
        )
    return _Shards.of(value, array)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Shards:
    """A value in pieces, one for each box of its distribution's cover."""

    value: Value
    pieces: tuple[Elements, ...]

    @staticmethod
    def of(value: Value, array: Elements) -> "_Shards":
        """A whole tensor, cut."""
        return _Shards(value, tuple(array[box] for box in _cover(value.shape, value.format)))

    def gather(self) -> Elements:
        """The whole tensor."""
        array = np.empty(self.value.shape, dtype=self.value.format.precision.dtype)
        for box, piece in zip(_cover(self.value.shape, self.value.format), self.pieces, strict=True):
            array[box] = piece
        return array

    def by_shard(self, *, flat: bool) -> list[Elements | None]:
        """What each shard holds, as the box or, flat, the vector that it is; None where that is nothing."""
        distribution = self.value.distribution
        found: list[Elements | None] = [None] * distribution.shard_count
        for shard, piece in zip(map(int, distribution.cover_shard), self.pieces, strict=True):
            if not flat:
                found[shard] = piece
                continue
            # The boxes of a run are listed in its sequence, and rows are last.
            found[shard] = _joined(found[shard], piece)
        return found

    @staticmethod
    def of_shards(value: Value, shards: Sequence[Elements | None], *, flat: bool) -> "_Shards":
        """The inverse of :meth:`by_shard`."""
        pieces: list[Elements] = []
        done = [0] * len(shards)
        cover = value.distribution.cover
        for row, shard in enumerate(map(int, value.distribution.cover_shard)):
            array = shards[shard]
            if array is None:
                raise ValueError(f"shard {shard} of {value.name} was not computed")
            if flat:
                extents = cover.region(row).extents
                first = done[shard]
                done[shard] += prod(extents)
                array = array[first : done[shard]].reshape(extents)
            pieces.append(array)
        return _Shards(value, tuple(pieces))


def _joined(before: Elements | None, piece: Elements) -> Elements:
    vector = piece.reshape(-1)
    return vector if before is None else np.concatenate([before, vector])


@functools.lru_cache(maxsize=256)
def _cover(shape: Shape, tensor_format: TensorFormat) -> tuple[tuple[slice, ...], ...]:
    """The boxes of a cover as indices."""
    cover = distribute(shape, tensor_format).cover
    return tuple(
        tuple(slice(first, last) for first, last in zip(starts, stops, strict=True))
        for starts, stops in zip(cover.starts.tolist(), cover.stops.tolist(), strict=True)
    )


def _run(block: Block, arguments: Sequence[_Shards]) -> list[_Shards]:
    """Results of a block; arguments are not written to."""
    uses: Counter[MidValueId] = Counter(block.results)
    for operation in block.operations:
        uses.update(operands_of(operation))
    known: dict[MidValueId, _Shards] = dict(zip(block.arguments, arguments, strict=True))
    for operation in block.operations:
        read = operands_of(operation)
        match operation:
            case Copy():
                made = [_copy(block, operation, known)]
            case Compute():
                made = [_compute(block, operation, [known[operand] for operand in read])]
            case Repeat():
                made = _repeat(operation, known)
            case _:
                assert_never(operation)
        known.update(zip(results_of(operation), made, strict=True))
        uses.subtract(read)
        for operand in read:
            if not uses[operand]:
                known.pop(operand, None)
    return [known[result] for result in block.results]


def _repeat(repeat: Repeat, known: Mapping[MidValueId, _Shards]) -> list[_Shards]:
    carried = [known[value] for value in repeat.carried]
    invariants = [known[value] for value in repeat.invariants]
    for iteration in range(repeat.count):
        members = [known[sequence[iteration]] for sequence in repeat.sequences]
        carried = _run(repeat.body, [*carried, *invariants, *members])
    return carried


def _copy(block: Block, copy: Copy, known: Mapping[MidValueId, _Shards]) -> _Shards:
    result = block.value(copy.result)
    array = np.empty(result.shape, dtype=result.format.precision.dtype)
    for part in copy.parts:
        box = tuple(slice(start, stop) for start, stop in part.region.bounds)
        array[box] = _read(known[part.source].gather(), part.mapping)
    return _Shards.of(result, array)


def _read(source: Elements, mapping: CoordinateMapping) -> Elements:
    """The elements that a mapping reads, in its destination's shape: an array over its digits, reshaped."""
    digits = [digit for axis in mapping.digits for digit in axis]
    first = source[tuple(slice(offset, None) for offset in mapping.offsets)]
    view = np.lib.stride_tricks.as_strided(
        first,
        shape=[digit.extent for digit in digits],
        strides=[0 if digit.axis is None else digit.stride * source.strides[digit.axis] for digit in digits],
        writeable=False,
    )
    return view.reshape(mapping.destination_shape)


def _compute(block: Block, compute: Compute, operands: Sequence[_Shards]) -> _Shards:
    result = block.value(compute.results[0])
    work = compute.work
    if isinstance(work, Sum):
        return _sum(result, operands[0])
    flat = is_flat([result, *(operand.value for operand in operands)])
    made = shard_boxes(result, flat=flat)
    filled = np.flatnonzero(made.is_filled).astype(np.int64)
    tiles = np.array(
        [result.owners.tile(owner) for owner in result.distribution.owners[filled, 0].tolist()],
        dtype=np.int32,
    )
    boxes = made.of(filled)
    blocks: list[Iterable[Elements]] = []
    parts = work.parts if isinstance(work, Product) else ()
    for operand, relation in zip(operands, compute.relations, strict=True):
        bounds = _bounds(relation, operand.value, parts, flat, boxes.starts, boxes.stops)
        blocks.append(_blocks(operand, shards_on(operand.value, tiles), bounds, flat=flat))
    shards: list[Elements | None] = [None] * len(made.starts)
    precisions = [operand.value.format.precision for operand in operands]
    rank = made.rank
    for shard, *read in zip(filled.tolist(), *blocks, strict=True):
        match work:
            case Product():
                shards[shard] = _product(work, read, precisions)
            case Elementwise(operation=operation):
                arranged = [
                    _arranged(each, relation, rank, flat=flat)
                    for each, relation in zip(read, compute.relations, strict=True)
                ]
                shape = tuple((made.stops[shard] - made.starts[shard]).tolist())
                shards[shard] = _elementwise(operation, arranged, shape, result.format.precision)
            case Cast():
                shape = tuple((made.stops[shard] - made.starts[shard]).tolist())
                array = np.broadcast_to(_arranged(read[0], compute.relations[0], rank, flat=flat), shape)
                shards[shard] = cast_elements(array, precisions[0], result.format.precision)
            case _:
                assert_never(work)
    return _Shards.of_shards(result, shards, flat=flat)


def _bounds(
    relation: Relation,
    operand: Value,
    parts: Sequence[tuple[int, int]],
    flat: bool,
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
) -> npt.NDArray[np.int64]:
    """What the shards of a result read of an operand: [shards, axes, 2]."""
    if flat:
        return np.stack([starts, stops], axis=2)
    partial = starts[:, 0] if parts else None
    if parts:
        starts, stops = starts[:, 1:], stops[:, 1:]
    readings = operand_axes(relation, operand.shape)
    bounds = np.empty((len(starts), len(readings), 2), dtype=np.int64)
    for axis, reading in enumerate(readings):
        match reading:
            case Follow(axis=followed, start=start):
                bounds[:, axis, 0] = starts[:, followed] + start
                bounds[:, axis, 1] = stops[:, followed] + start
            case Span(start=start, stop=stop):
                bounds[:, axis] = start, stop
            case _:
                assert_never(reading)
    if partial is not None and isinstance(relation, ProductOperand):
        pair = relation.axes.contraction[0]
        summed = pair.left if relation.side is Side.LEFT else pair.right
        bounds[:, summed] = np.array(parts, dtype=np.int64)[partial]
    return bounds


def _blocks(
    operand: _Shards, shards: npt.NDArray[np.int64], bounds: npt.NDArray[np.int64], *, flat: bool
) -> Iterable[Elements]:
    """Boxes of an operand, each from the shard that is on the tile that reads it.

    Raises:
        ValueError: the shard does not hold the box.
    """
    every = shard_boxes(operand.value, flat=flat)
    held = operand.by_shard(flat=flat)
    there = every.of(np.maximum(shards, 0))
    missing = (bounds[:, :, 0] < there.starts) | (bounds[:, :, 1] > there.stops)
    if (shards < 0).any() or missing.any():
        raise ValueError(f"a tile does not hold what it reads of {operand.value.name}")
    local = bounds - there.starts[:, :, None]
    for shard, box in zip(map(int, shards), local.tolist(), strict=True):
        array = held[shard]
        if array is None:
            raise ValueError(f"a tile reads {operand.value.name} of an empty shard")
        yield array[tuple(slice(start, stop) for start, stop in box)]


def _arranged(block: Elements, relation: Relation, rank: int, *, flat: bool) -> Elements:
    """What a box of the result reads, with the axes of the result; repeated ones have one coordinate."""
    if flat:
        return block
    followed = {
        reading.axis: axis
        for axis, reading in enumerate(operand_axes(relation, block.shape))
        if isinstance(reading, Follow)
    }
    kept = [followed[axis] for axis in sorted(followed)]
    others = [axis for axis in range(block.ndim) if axis not in kept]
    moved = block.transpose([*others, *kept]).reshape([block.shape[axis] for axis in kept])
    return moved.reshape([block.shape[followed[axis]] if axis in followed else 1 for axis in range(rank)])


def _elementwise(
    operation: Operation, operands: Sequence[Elements], shape: Shape, precision: Precision
) -> Elements:
    values = [cast("Halves", np.broadcast_to(operand, shape)) for operand in operands]
    match operation:
        case Operation.ADD:
            made = add_halves(values[0], values[1])
        case Operation.GELU:
            made = gelu(values[0])
        case Operation.BIAS_GELU:
            made = gelu(add_halves(values[0], values[1]))
        case _:
            assert_never(operation)
    match precision:
        case F8(scale_exponent=scale):
            conversion = quantizing(scale)
            if conversion is None:
                raise ValueError(f"no kernel makes codes of scale exponent {scale}")
            return codes_of(made, conversion.word)
        case F16():
            return made
        case F32():
            raise ValueError("no element-wise operation makes F32")
        case _:
            assert_never(precision)


def cast_elements(array: Elements, source: Precision, result: Precision) -> Elements:
    """Elements of one precision in another, same shape, as casts make them.

    Raises:
        ValueError: no kernel makes codes of the scale.
    """
    conversion, scales = conversion_of(source, result), scale_arguments(source, result)
    if conversion is None or scales is None:
        raise ValueError(f"no kernel turns {source} into {result}")
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return converted(conversion, data, tuple(scale.word for scale in scales)).reshape(array.shape)


def _product(work: Product, operands: Sequence[Elements], precisions: Sequence[Precision]) -> Elements:
    """One shard: a matrix product for each coordinate of the batch."""
    axes = work.axes
    left, right = operands[:2]
    scale = None
    if isinstance(precisions[0], F8) and isinstance(precisions[1], F8):
        scale = precisions[0].scale_exponent + precisions[1].scale_exponent
        left, right = decode_f143(left), decode_f143(right)
    batch = [left.shape[axis.left] for axis in axes.batch]
    rows = [left.shape[axis.operand] for axis in axes.rows]
    columns = [right.shape[axis.operand] for axis in axes.columns]
    lefts = left.transpose(
        [
            *(axis.left for axis in axes.batch),
            *(axis.operand for axis in axes.rows),
            *(axis.left for axis in axes.contraction),
            *axes.left_single,
        ]
    ).reshape(prod(batch), prod(rows), -1)
    rights = right.transpose(
        [
            *(axis.right for axis in axes.batch),
            *(axis.right for axis in axes.contraction),
            *(axis.operand for axis in axes.columns),
            *axes.right_single,
        ]
    ).reshape(prod(batch), -1, prod(columns))
    places = _result_places(axes)
    extents = [*batch, *rows, *columns]
    if work.mode is Mode.ACCUMULATE:
        sums = operands[2].transpose(places).reshape(prod(batch), prod(rows), prod(columns))
    else:
        sums = np.zeros((prod(batch), prod(rows), prod(columns)), dtype=np.float16)
    made = np.empty(sums.shape, dtype=np.float16)
    for matrix in range(prod(batch)):
        made[matrix] = multiply(
            lefts[matrix].astype(np.float64),
            rights[matrix].astype(np.float64),
            cast("Halves", sums[matrix]),
            precisions[0].micro,
            scale,
        )
    product = made.reshape(extents).transpose(np.argsort(places).tolist())
    return product[None] if work.parts else product


def _result_places(axes: ProductAxes) -> list[int]:
    """Axes of a result in the sequence batch, rows, columns."""
    return [axis.result for axis in (*axes.batch, *axes.rows, *axes.columns)]


def _sum(result: Value, operand: _Shards) -> _Shards:
    partials = cast("Halves", operand.gather())
    own = own_partials(result, operand.value)
    owner_of_shard = result.distribution.owners[:, 0]
    pieces: list[Elements] = []
    for shard, box in zip(
        result.distribution.cover_shard.tolist(), _cover(result.shape, result.format), strict=True
    ):
        first = max(int(own[owner_of_shard[shard]]), 0)
        total = partials[(first, *box)]
        for partial in range(len(partials)):
            if partial != first:
                total = add_halves(total, partials[(partial, *box)])
        pieces.append(total)
    return _Shards(result, tuple(pieces))
