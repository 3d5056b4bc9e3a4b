"""The rules of types: what an operation may be applied to, and the types of its results.

One definition for the builder, which infers types, and for the verifier, which compares them with declared
ones. A refusal is a ``ValueError`` whose sentence is shown to the user behind the node's name and line.

What is computed with is F16 or F32; F8 is for operands of products, for views and for casts. Precisions are
never converted silently: where two operands meet outside a product, they are equal.
"""

import math
from collections.abc import Sequence
from typing import Final, assert_never

from compiler.geometry.mapping import Shape, text_of_shape
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.ir import (
    Add,
    Attention,
    Cast,
    Concat,
    Gelu,
    Gemm,
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
    View,
    text_of_precision,
)
from compiler.graph.views import shape_of_view

PRODUCT_SCALES: Final = range(-16, 16)
"""Scale exponents of F8 products: the unit is given the sum of both operands' exponents in six bits.
(Source: vendor instruction documentation.)"""

MOST_AXES: Final = 64
"""Axes of a value: as many as NumPy's arrays may have, in which it is evaluated."""
MOST_ELEMENTS: Final = 10**18 - 1
"""Elements of a value: their bytes are counted, and random ones numbered, in 64 bits."""
MOST_ITERATIONS: Final = (1 << 31) - 1
"""Iterations of a Repeat: the device counts in 32 bits."""

_LEAST_F32: Final = math.ldexp(1, -149)
_LARGEST_F32: Final = (2 - math.ldexp(1, -23)) * math.ldexp(1, 127)

NAMES: Final[dict[type[Operation], str]] = {
    Gemm: "gemm",
    Add: "add",
    Gelu: "gelu",
    LayerNorm: "layer_norm",
    Softmax: "softmax",
    Attention: "attention",
    Reshape: "reshape",
    SplitAxis: "split_axis",
    MergeAxes: "merge_axes",
    Transpose: "transpose",
    Slice: "slice",
    Concat: "concat",
    Cast: "cast",
    Repeat: "repeat",
}
"""What operations are called, in text and in messages."""


def name_of(operation: Operation) -> str:
    """What the operation is called."""
    return NAMES[type(operation)]


def type_fault(tensor: TensorType) -> str | None:
    """What is wrong with a type; None when nothing is."""
    if not tensor.shape:
        return f"{tensor} has no axis: a value has at least one"
    if len(tensor.shape) > MOST_AXES:
        return _too_many_axes(len(tensor.shape))
    for axis, extent in enumerate(tensor.shape):
        if extent < 1:
            return f"{tensor}: axis {axis} has extent {extent}, not at least 1"
    if math.prod(tensor.shape) > MOST_ELEMENTS:
        return f"{tensor} has more than {MOST_ELEMENTS:,} elements"
    return None


def result_types(operation: Operation, operands: Sequence[TensorType]) -> tuple[TensorType, ...]:
    """Types of the results. The operand types themselves are sound (:func:`type_fault`).

    Raises:
        ValueError: the operation cannot be applied; the sentence says which operand or attribute is why.
    """
    _check_count(operation, len(operands))
    match operation:
        case Gemm():
            return (_gemm(operation, operands[0], operands[1]),)
        case Add():
            return (_add(operands[0], operands[1]),)
        case LayerNorm():
            return (_layer_norm(operation, operands),)
        case Gelu() | Softmax():
            _check_computed("operand", operands[0])
            return (operands[0],)
        case Attention():
            return (_attention(operation, operands[0], operands[1], operands[2]),)
        case Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice() | Concat():
            for operand in operands[1:]:
                _check_equal("operands", operands[0], operand)
            _check_axes(operation)
            shape = shape_of_view(operation, [operand.shape for operand in operands])
            return (TensorType(precision=operands[0].precision, shape=shape),)
        case Cast(precision=precision):
            return (TensorType(precision=precision, shape=operands[0].shape),)
        case Repeat():
            return _repeat(operation, operands)
        case _:
            assert_never(operation)


def wider(left: Precision, right: Precision) -> Precision:
    """The wider of two precisions; of two that are equally wide, the left."""
    return right if right.element_bytes > left.element_bytes else left


def computed(precision: Precision) -> F16 | F32:
    """What results of operands of a precision are: the same, but F16 for F8."""
    return F16() if isinstance(precision, F8) else precision


def product_precision(declared: Precision | None, left: TensorType, right: TensorType) -> Precision:
    """What both operands of a product are multiplied in.

    Raises:
        ValueError: they differ and nothing is declared, or one would have to be widened or scaled anew.
    """
    if declared is None:
        _check_equal("left and right", left, right, hint="; declare the precision to multiply in")
        chosen = left.precision
    else:
        chosen = declared
        for name, operand in (("left", left), ("right", right)):
            if operand.precision != chosen and operand.precision.element_bytes <= chosen.element_bytes:
                raise ValueError(
                    f"{name} {operand} cannot be rounded to {text_of_precision(chosen)}, "
                    f"which is not narrower; cast it"
                )
    if isinstance(chosen, F8) and chosen.scale_exponent not in PRODUCT_SCALES:
        raise ValueError(
            f"products in {text_of_precision(chosen)}: the scale exponent is not in "
            f"{PRODUCT_SCALES.start} .. {PRODUCT_SCALES.stop - 1}"
        )
    return chosen


def broadcast_shape(left: Shape, right: Shape) -> Shape:
    """The NumPy rule: aligned at the last axis, an extent of 1 or a missing axis repeats.

    Raises:
        ValueError: two extents differ and neither is 1.
    """
    rank = max(len(left), len(right))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in (left, right)]
    for axis, (one, other) in enumerate(zip(*padded, strict=True)):
        if one != other and 1 not in {one, other}:
            raise ValueError(
                f"{text_of_shape(left)} and {text_of_shape(right)} do not broadcast: "
                f"extents {one} and {other} on axis {axis - rank}"
            )
    return tuple(max(pair) for pair in zip(*padded, strict=True))


def _check_count(operation: Operation, count: int) -> None:
    names: tuple[str, ...]
    match operation:
        case Gemm() | Add():
            names = ("left", "right")
        case LayerNorm(affine=True):
            names = ("operand", "scale", "bias")
        case Attention():
            names = ("query", "key", "value")
        case Concat():
            if count < 1:
                raise ValueError("operands: at least one needed, none given")
            return
        case Repeat():
            _check_repeat_count(operation, count)
            return
        case LayerNorm() | Gelu() | Softmax() | Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice():
            names = ("operand",)
        case Cast():
            names = ("operand",)
        case _:
            assert_never(operation)
    if count != len(names):
        named = "" if len(names) == 1 else f" ({', '.join(names)})"
        raise ValueError(f"operands: {len(names)} needed{named}, {count} given")


def _check_axes(view: View) -> None:
    """Attributes that are shapes are no longer than shapes may be."""
    match view:
        case Reshape(shape=wanted) | SplitAxis(extents=wanted) | Transpose(order=wanted):
            if len(wanted) > MOST_AXES:
                raise ValueError(_too_many_axes(len(wanted)))
        case MergeAxes() | Slice() | Concat():
            pass
        case _:
            assert_never(view)


def _too_many_axes(count: int) -> str:
    return f"{count} axes are more than {MOST_AXES}"


def _check_positive(name: str, number: float) -> None:
    """Positive and finite in binary32, in which it is used."""
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} is {number}, not a positive finite number")
    if not _LEAST_F32 <= number <= _LARGEST_F32:
        raise ValueError(f"{name} is {number}, which binary32 takes for {0.0 if number < 1 else math.inf}")


def _check_computed(name: str, operand: TensorType) -> None:
    if isinstance(operand.precision, F8):
        raise ValueError(f"{name} {operand}: F8 is not computed with; cast it to F16")


def _check_equal(names: str, left: TensorType, right: TensorType, hint: str = "; cast one of them") -> None:
    if left.precision != right.precision:
        raise ValueError(f"{names} differ in precision: {left} and {right}{hint}")


def _check_matrix(name: str, operand: TensorType) -> None:
    if len(operand.shape) < 2:
        raise ValueError(f"{name} {operand} has no rows and columns: at least two axes are needed")


def matrix_shape(shape: Shape, *, transposed: bool) -> Shape:
    """A shape with its last two axes the other way round if ``transposed``."""
    return (*shape[:-2], shape[-1], shape[-2]) if transposed else shape


def _gemm(operation: Gemm, left: TensorType, right: TensorType) -> TensorType:
    _check_matrix("left", left)
    _check_matrix("right", right)
    product_precision(operation.precision, left, right)
    *left_batch, rows, inner = matrix_shape(left.shape, transposed=operation.transpose_left)
    *right_batch, right_inner, columns = matrix_shape(right.shape, transposed=operation.transpose_right)
    if inner != right_inner:
        raise ValueError(
            f"{_side('left', left, transposed=operation.transpose_left)} has {inner} columns, "
            f"{_side('right', right, transposed=operation.transpose_right)} has {right_inner} rows"
        )
    try:
        batch = broadcast_shape(tuple(left_batch), tuple(right_batch))
    except ValueError as error:
        raise ValueError(f"batch axes of left {left} and right {right}: {error}") from None
    return TensorType(
        precision=computed(wider(left.precision, right.precision)), shape=(*batch, rows, columns)
    )


def _side(name: str, operand: TensorType, *, transposed: bool) -> str:
    return f"{name} {operand}{' transposed' if transposed else ''}"


def _add(left: TensorType, right: TensorType) -> TensorType:
    _check_computed("left", left)
    _check_computed("right", right)
    _check_equal("left and right", left, right)
    return TensorType(precision=left.precision, shape=broadcast_shape(left.shape, right.shape))


def _layer_norm(operation: LayerNorm, operands: Sequence[TensorType]) -> TensorType:
    operand = operands[0]
    _check_positive("epsilon", operation.epsilon)
    _check_computed("operand", operand)
    for name, vector in zip(("scale", "bias"), operands[1:], strict=False):
        _check_equal(f"operand and {name}", operand, vector)
        if vector.shape != operand.shape[-1:]:
            raise ValueError(f"{name} {vector} is not one number for each of the {operand.shape[-1]} columns")
    return operand


def _attention(operation: Attention, query: TensorType, key: TensorType, value: TensorType) -> TensorType:
    _check_positive("scale", operation.scale)
    for name, operand in (("query", query), ("key", key), ("value", value)):
        _check_matrix(name, operand)
    if not query.shape[:-2] == key.shape[:-2] == value.shape[:-2]:
        raise ValueError(f"batch axes of query {query}, key {key} and value {value} differ")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"depths of query {query} and key {key} differ: {query.shape[-1]} and {key.shape[-1]}"
        )
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(f"rows of key {key} and value {value} differ: {key.shape[-2]} and {value.shape[-2]}")
    result = attention_precision(query, key, value)
    probabilities = TensorType(precision=result, shape=(*query.shape[:-1], key.shape[-2]))
    for what, declared, left, right in (
        ("scores", operation.score_precision, query, key),
        ("values", operation.value_precision, probabilities, value),
    ):
        try:
            product_precision(declared, left, right)
        except ValueError as error:
            raise ValueError(f"{what}: {error}") from None
    return TensorType(precision=result, shape=(*query.shape[:-1], value.shape[-1]))


def attention_precision(query: TensorType, key: TensorType, value: TensorType) -> F16 | F32:
    """Precision of scores, probabilities and result: as wide as the widest operand, and at least F16."""
    return computed(wider(wider(query.precision, key.precision), value.precision))


def _check_repeat_count(operation: Repeat, count: int) -> None:
    arguments = len(operation.body.arguments)
    if operation.count < 1:
        raise ValueError(f"{operation.count} iterations: at least one is needed")
    if operation.count > MOST_ITERATIONS:
        raise ValueError(f"{operation.count} iterations are more than {MOST_ITERATIONS:,}")
    if operation.carried < 1 or operation.invariants < 0 or operation.sequences < 0:
        raise ValueError(
            f"{operation.carried} carried values and {operation.invariants} invariants for a body of "
            f"{arguments} arguments: at least one value is carried, and the rest are sequences"
        )
    wanted = operation.carried + operation.invariants + operation.sequences * operation.count
    if count != wanted:
        raise ValueError(
            f"{operation.carried} carried, {operation.invariants} invariants and {operation.sequences} "
            f"sequences of {operation.count} take {wanted} operands, {count} given"
        )
    if len(operation.body.results) != operation.carried:
        raise ValueError(
            f"the body gives {len(operation.body.results)} results for {operation.carried} carried values"
        )


def _repeat(operation: Repeat, operands: Sequence[TensorType]) -> tuple[TensorType, ...]:
    body = operation.body
    arguments = [body.values[argument] for argument in body.arguments]
    results = [body.values[result] for result in body.results]
    bound = operation.bindings(operands)
    fixed = operation.carried + operation.invariants
    for argument, operand in zip(arguments, (*bound.carried, *bound.invariants), strict=False):
        if operand != argument.type:
            raise ValueError(f"argument {argument.name} is {argument.type}, what is bound to it {operand}")
    for argument, members in zip(arguments[fixed:], bound.sequences, strict=True):
        for iteration, member in enumerate(members):
            if member != argument.type:
                raise ValueError(
                    f"argument {argument.name} is {argument.type}, what iteration {iteration} sees {member}"
                )
    for argument, result in zip(arguments, results, strict=False):
        if result.type != argument.type:
            raise ValueError(
                f"argument {argument.name} is {argument.type}, but {result.name} replaces it, "
                f"which is {result.type}"
            )
    return tuple(result.type for result in results)
