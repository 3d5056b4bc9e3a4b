"""The reference: what a graph computes, in NumPy, on the host.

Three kinds of numbers. In all of them inputs and parameters are what is stored, rounded once to their own
precision, and sums, statistics and functions are binary32.

=================  ==========================================================================================
``F32``            nothing else is rounded: the mathematical meaning, which tolerances are about
``ROUNDED``        every value is rounded to its precision, and operands of products to that of the product
``ROUNDED_PANELS`` as before, and sums of products are rounded to F16 after each panel of K (16 elements of
                   F16, 32 of F8), in the order of panels: what the matrix unit does with one tile's whole K
=================  ==========================================================================================

It is a reference within tolerances, not the bit-exact definition of any kernel: the order of additions inside
a product without panels is that of the host's matrix library, and functions are the host's. Both can differ
between machines in the last bit of binary32, so nothing that is built depends on it.

Scores and probabilities of attention are values in this sense, with the precision of the result. A key that a
causal query does not see has probability 0: its value does not matter unless it is infinite or no number.

Cost: products at the speed of the host's matrix library; with panels about 4 * 10^9 multiplications a second.
A value is dropped after its last use.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from compiler.errors import InvalidInput
from compiler.geometry.mapping import text_of_shape
from compiler.geometry.precision import F32, Precision
from compiler.graph.ir import (
    Add,
    Attention,
    Block,
    Cast,
    Concat,
    Gelu,
    Gemm,
    Graph,
    LayerNorm,
    MergeAxes,
    Operation,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    SplitAxis,
    TensorType,
    Transpose,
    Value,
    ValueId,
    text_of_precision,
)
from compiler.graph.panels import panel_product
from compiler.graph.rounding import loaded, rounded
from compiler.graph.rules import attention_precision, broadcast_shape, product_precision

Array: TypeAlias = npt.NDArray[np.float32]

_GELU_LINEAR: Final = np.float32(0.7978845608028654)
"""sqrt(2/pi)."""
_GELU_CUBIC: Final = np.float32(0.044715)


class Numerics(Enum):
    """How the reference rounds."""

    F32 = "F32"
    ROUNDED = "operands and results rounded"
    ROUNDED_PANELS = "operands, results and partial sums rounded"


def evaluate(
    graph: Graph, tensors: Mapping[str, npt.NDArray[np.generic]], numerics: Numerics
) -> dict[str, Array]:
    """Outputs of a well-formed graph by name, in binary32 whatever their precision.

    Args:
        graph: the graph.
        tensors: inputs and parameters by name, in the element type of their precision: F8 as codes.
        numerics: how to round.

    Raises:
        InvalidInput: an input or parameter is missing, or has another shape or element type.
    """
    values = graph.block.values
    arguments = [_given(values[argument], tensors) for argument in graph.block.arguments]
    # Too large for binary32 is infinite, and no warning of NumPy's: bad numbers show in the result.
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        results = _block(graph.block, arguments, numerics)
    return {values[output].name: result for output, result in zip(graph.outputs, results, strict=True)}


def _given(value: Value, tensors: Mapping[str, npt.NDArray[np.generic]]) -> Array:
    array = tensors.get(value.name)
    wanted = value.type
    reason = None
    if array is None:
        reason = "it has no values"
    elif array.shape != wanted.shape:
        reason = f"the values have shape {text_of_shape(array.shape)}, not {text_of_shape(wanted.shape)}"
    elif array.dtype != wanted.precision.dtype:
        reason = (
            f"the values are {array.dtype}; {text_of_precision(wanted.precision)} is {wanted.precision.dtype}"
        )
    if array is None or reason is not None:
        raise InvalidInput(
            f"{reason}",
            stage="evaluate",
            subject=value.name,
            nodes=(value.name,),
            next_step=f"bring {wanted} for it",
        )
    return loaded(array, wanted.precision)


def _block(block: Block, arguments: Sequence[Array], numerics: Numerics) -> list[Array]:
    """Results of a block; arguments are not written to."""
    uses = Counter(operand for node in block.nodes for operand in node.operands)
    uses.update(block.results)
    known: dict[ValueId, Array] = dict(zip(block.arguments, arguments, strict=True))
    for node in block.nodes:
        operands = [known[operand] for operand in node.operands]
        types = [block.values[operand].type for operand in node.operands]
        results = _operation(node.operation, operands, types, numerics)
        for result, array in zip(node.results, results, strict=True):
            known[result] = _as(array, block.values[result].type.precision, numerics)
        for operand in node.operands:
            uses[operand] -= 1
            if not uses[operand]:
                del known[operand]
    return [known[result] for result in block.results]


def _as(array: Array, precision: Precision, numerics: Numerics) -> Array:
    return array if numerics is Numerics.F32 else rounded(array, precision)


def _operation(
    operation: Operation, operands: Sequence[Array], types: Sequence[TensorType], numerics: Numerics
) -> Sequence[Array]:
    match operation:
        case Gemm():
            return (_gemm(operation, operands, types, numerics),)
        case Add():
            return (operands[0] + operands[1],)
        case Gelu():
            return (_gelu(operands[0]),)
        case LayerNorm(epsilon=epsilon):
            normal = _normalized(operands[0], epsilon)
            return (normal * operands[1] + operands[2] if operation.affine else normal,)
        case Softmax():
            return (_softmax(operands[0]),)
        case Attention():
            return (_attention(operation, operands, types, numerics),)
        case Reshape(shape=shape):
            return (operands[0].reshape(shape),)
        case SplitAxis(axis=axis, extents=extents):
            shape = operands[0].shape
            return (operands[0].reshape(*shape[:axis], *extents, *shape[axis + 1 :]),)
        case MergeAxes(axis=axis, count=count):
            shape = operands[0].shape
            merged = np.prod(shape[axis : axis + count], dtype=int)
            return (operands[0].reshape(*shape[:axis], merged, *shape[axis + count :]),)
        case Transpose(order=order):
            return (operands[0].transpose(order),)
        case Slice(axis=axis, start=start, stop=stop):
            return (operands[0][(slice(None),) * axis + (slice(start, stop),)],)
        case Concat(axis=axis):
            return (np.concatenate(operands, axis=axis),)
        case Cast():
            return (operands[0],)
        case Repeat():
            return _repeat(operation, operands, numerics)
        case _:
            assert_never(operation)


def _repeat(operation: Repeat, operands: Sequence[Array], numerics: Numerics) -> Sequence[Array]:
    bound = operation.bindings(operands)
    carried: Sequence[Array] = bound.carried
    for iteration in range(operation.count):
        members = (sequence[iteration] for sequence in bound.sequences)
        carried = _block(operation.body, (*carried, *bound.invariants, *members), numerics)
    return carried


def _gemm(
    operation: Gemm, operands: Sequence[Array], types: Sequence[TensorType], numerics: Numerics
) -> Array:
    left, right = operands
    if operation.transpose_left:
        left = left.swapaxes(-1, -2)
    if operation.transpose_right:
        right = right.swapaxes(-1, -2)
    precision = product_precision(operation.precision, types[0], types[1])
    return _product(left, right, (types[0].precision, types[1].precision), precision, numerics)


def _product(
    left: Array,
    right: Array,
    known: tuple[Precision, Precision],
    precision: Precision,
    numerics: Numerics,
) -> Array:
    """Left [..., m, k] times right [..., k, n]: sums in binary32, or F16 after each panel.

    Operands are rounded to ``precision``, unless that is the one that they are ``known`` to have.
    """
    if known[0] != precision:
        left = _as(left, precision, numerics)
    if known[1] != precision:
        right = _as(right, precision, numerics)
    if numerics is not Numerics.ROUNDED_PANELS or isinstance(precision, F32):
        return np.matmul(left, right)
    batch = broadcast_shape(left.shape[:-2], right.shape[:-2])
    lefts = np.broadcast_to(left, (*batch, *left.shape[-2:]))
    rights = np.broadcast_to(right, (*batch, *right.shape[-2:]))
    total = np.empty((*batch, left.shape[-2], right.shape[-1]), dtype=np.float32)
    for index in np.ndindex(batch):
        total[index] = panel_product(lefts[index], rights[index], precision.micro)
    return total


def _gelu(operand: Array) -> Array:
    inner = operand * operand
    inner *= _GELU_CUBIC
    inner += np.float32(1)
    inner *= operand
    inner *= _GELU_LINEAR
    np.tanh(inner, out=inner)
    inner += np.float32(1)
    inner *= np.float32(0.5)  # before the operand, whose double may be too large
    inner *= operand
    return inner


def _normalized(operand: Array, epsilon: float) -> Array:
    centred = operand - operand.mean(axis=-1, keepdims=True, dtype=np.float32)
    variance = np.square(centred).mean(axis=-1, keepdims=True, dtype=np.float32)
    return centred / np.sqrt(variance + np.float32(epsilon))


def _softmax(operand: Array) -> Array:
    powers = np.exp(operand - operand.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True, dtype=np.float32)


def _attention(
    operation: Attention, operands: Sequence[Array], types: Sequence[TensorType], numerics: Numerics
) -> Array:
    query, key, value = operands
    between = attention_precision(types[0], types[1], types[2])
    precision = product_precision(operation.score_precision, types[0], types[1])
    known = (types[0].precision, types[1].precision)
    scores = _as(_product(query, key.swapaxes(-1, -2), known, precision, numerics), between, numerics)
    scores = scores * np.float32(operation.scale)
    if operation.causal:
        queries, keys = scores.shape[-2:]
        future: npt.NDArray[np.bool_] = np.triu(np.ones((queries, keys), dtype=np.bool_), 1)
        scores = np.where(future, np.float32(-np.inf), scores)
    probabilities = _as(_softmax(scores), between, numerics)
    last = types[2].precision if operation.value_precision is None else operation.value_precision
    return _product(probabilities, value, (between, types[2].precision), last, numerics)
