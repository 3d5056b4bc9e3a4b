"""What operations compute, one element at a time in binary64: slow, obvious, and no code of the evaluator's.

``rounds`` rounds values, operands of products, scores and probabilities as the graph says; ``panels`` partial
sums of products too.
"""

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143
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
    ValueId,
)

Array: TypeAlias = npt.NDArray[np.float64]
Index: TypeAlias = tuple[int, ...]

CODES = sorted((float(value), code) for code, value in enumerate(decode_f143(range(256))) if code != 0x80)
"""Values of all F8 codes but NaN, with their codes, ascending."""


def nearest(value: float, precision: Precision) -> float:
    """The number of a precision nearest to ``value``, the even one of two, the largest if there is none."""
    match precision:
        case F32():
            return float(np.float32(value))
        case F16():
            return float(np.float16(min(max(value, -65504.0), 65504.0)))
        case F8(scale_exponent=scale):
            scaled = math.ldexp(value, -scale)
            at = bisect.bisect(CODES, (scaled, 0))
            near = CODES[max(at - 1, 0) : at + 1]
            _, _, found = min((abs(scaled - known), code & 1, known) for known, code in near)
            return math.ldexp(found, scale)


def number(array: npt.NDArray[np.generic], precision: Precision) -> Array:
    """Stored values as numbers."""
    if isinstance(precision, F8):
        return decode_f143(array, precision.scale_exponent).astype(np.float64)
    return array.astype(np.float64)


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """Computes graphs."""

    rounds: bool = False
    panels: bool = False

    def outputs(self, graph: Graph, tensors: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, Array]:
        """Outputs by name."""
        values = graph.block.values
        arguments = [
            number(tensors[values[argument].name], values[argument].type.precision)
            for argument in graph.block.arguments
        ]
        results = self.block(graph.block, arguments)
        return {values[output].name: array for output, array in zip(graph.outputs, results, strict=True)}

    def block(self, block: Block, arguments: Sequence[Array]) -> list[Array]:
        """Results of a block."""
        known: dict[ValueId, Array] = dict(zip(block.arguments, arguments, strict=True))
        for node in block.nodes:
            operands = [known[operand] for operand in node.operands]
            types = [block.values[operand].type for operand in node.operands]
            if isinstance(node.operation, Repeat):
                made = self.repeat(node.operation, operands)
            else:
                made = [self.operation(node.operation, operands, types, block.values[node.results[0]].type)]
            for result, array in zip(node.results, made, strict=True):
                known[result] = self.rounded(array, block.values[result].type.precision)
        return [known[result] for result in block.results]

    def repeat(self, operation: Repeat, operands: Sequence[Array]) -> list[Array]:
        """The body, again and again."""
        carried = list(operands[: operation.carried])
        fixed = operation.carried + operation.invariants
        for iteration in range(operation.count):
            members = operands[fixed + iteration :: operation.count]
            carried = self.block(operation.body, [*carried, *operands[operation.carried : fixed], *members])
        return carried

    def rounded(self, array: Array, precision: Precision) -> Array:
        """An array in a precision, if anything is rounded."""
        if not self.rounds:
            return array
        return np.array([nearest(value, precision) for value in array.flat]).reshape(array.shape)

    def dot(self, left: Sequence[float], right: Sequence[float], precision: Precision) -> float:
        """A sum of products of operands that are rounded already."""
        panel = len(left)
        if self.panels and not isinstance(precision, F32):
            panel = 16 if isinstance(precision, F16) else 32
        total = 0.0
        for start in range(0, len(left), panel):
            for a, b in zip(left[start : start + panel], right[start : start + panel], strict=True):
                total += a * b
            if self.panels and not isinstance(precision, F32):
                total = nearest(total, F16())
        return total

    def operation(
        self, operation: Operation, operands: Sequence[Array], types: Sequence[TensorType], result: TensorType
    ) -> Array:
        """The result, element by element."""
        match operation:
            case Gemm(precision=precision):
                chosen = [each.precision if precision is None else precision for each in types]
            case Attention(score_precision=score, value_precision=last):
                chosen = [each.precision if score is None else score for each in types[:2]]
                chosen.append(types[2].precision if last is None else last)
            case _:
                chosen = [each.precision for each in types]
        operands = [self.rounded(array, each) for array, each in zip(operands, chosen, strict=True)]
        made = np.zeros(result.shape)
        for index in np.ndindex(result.shape):
            made[index] = self.element(operation, operands, types, result, index)
        return made

    def element(
        self,
        operation: Operation,
        operands: Sequence[Array],
        types: Sequence[TensorType],
        result: TensorType,
        index: Index,
    ) -> float:
        """One element of the result."""
        x = operands[0]
        match operation:
            case Gemm():
                return self.gemm(operation, operands[0], operands[1], types, index)
            case Add():
                return sum(float(operand[repeated(index, operand)]) for operand in operands)
            case Gelu():
                value = float(x[index])
                cubic = value + 0.044715 * value**3
                return 0.5 * value * (1 + math.tanh(math.sqrt(2 / math.pi) * cubic))
            case LayerNorm(epsilon=epsilon, affine=affine):
                row = [float(value) for value in x[index[:-1]]]
                mean = sum(row) / len(row)
                variance = sum((value - mean) ** 2 for value in row) / len(row)
                normal = (float(x[index]) - mean) / math.sqrt(variance + epsilon)
                column = index[-1]
                return normal * float(operands[1][column]) + float(operands[2][column]) if affine else normal
            case Softmax():
                return softmax([float(value) for value in x[index[:-1]]])[index[-1]]
            case Attention():
                return self.attention(operation, operands, types, result, index)
            case Reshape() | SplitAxis() | MergeAxes():
                flat = 0
                for position, extent in zip(index, result.shape, strict=True):
                    flat = flat * extent + position
                source: list[int] = []
                for extent in reversed(x.shape):
                    source.insert(0, flat % extent)
                    flat //= extent
                return float(x[tuple(source)])
            case Transpose(order=order):
                return float(x[tuple(index[order.index(axis)] for axis in range(len(order)))])
            case Slice(axis=axis, start=start):
                return float(x[(*index[:axis], index[axis] + start, *index[axis + 1 :])])
            case Concat(axis=axis):
                position = index[axis]
                for operand in operands:
                    if position < operand.shape[axis]:
                        return float(operand[(*index[:axis], position, *index[axis + 1 :])])
                    position -= operand.shape[axis]
                raise AssertionError(index)
            case Cast():
                return float(x[index])
            case Repeat():
                raise AssertionError("repeats are no elements")
            case _:
                assert_never(operation)

    def gemm(
        self, operation: Gemm, left: Array, right: Array, types: Sequence[TensorType], index: Index
    ) -> float:
        """One element of a product."""
        *batch, row, column = index
        inner = left.shape[-2 if operation.transpose_left else -1]
        precision = types[0].precision if operation.precision is None else operation.precision
        lefts: list[float] = []
        rights: list[float] = []
        for k in range(inner):
            at_left = (k, row) if operation.transpose_left else (row, k)
            at_right = (column, k) if operation.transpose_right else (k, column)
            lefts.append(float(left[repeated((*batch, *at_left), left)]))
            rights.append(float(right[repeated((*batch, *at_right), right)]))
        return self.dot(lefts, rights, precision)

    def attention(
        self,
        operation: Attention,
        operands: Sequence[Array],
        types: Sequence[TensorType],
        result: TensorType,
        index: Index,
    ) -> float:
        """One element of what a query sees."""
        query, key, value = operands
        *batch, row, column = index
        here = tuple(batch)
        score = types[0].precision if operation.score_precision is None else operation.score_precision
        last = types[2].precision if operation.value_precision is None else operation.value_precision
        keys = key.shape[-2]
        seen = range(min(row + 1, keys)) if operation.causal else range(keys)
        scores = [self.dot(list(query[(*here, row)]), list(key[(*here, k)]), score) for k in seen]
        if self.rounds:
            scores = [nearest(each, result.precision) for each in scores]
        shares = softmax([each * operation.scale for each in scores])
        if self.rounds:
            shares = [nearest(each, result.precision) for each in shares]
            shares = [nearest(each, last) for each in shares]
        shares += [0.0] * (keys - len(shares))
        return self.dot(shares, [float(value[(*here, k, column)]) for k in range(keys)], last)


def softmax(row: Sequence[float]) -> list[float]:
    """Shares of exponentials."""
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


def repeated(index: Index, operand: Array) -> Index:
    """The element of a broadcast operand that an element of the result reads."""
    aligned = index[len(index) - operand.ndim :]
    return tuple(
        0 if extent == 1 else position for position, extent in zip(aligned, operand.shape, strict=True)
    )
