"""Constructors of element-wise work: sums, GELU and casts, where their operands are or in rows.

An element-wise result takes the storage of its operand when nothing else reads the value that the operand is
in.
"""

import dataclasses
from collections.abc import Callable, Sequence

from compiler.errors import Unsupported
from compiler.geometry.mapping import CoordinateMapping, Shape, identity
from compiler.geometry.precision import F16, Precision
from compiler.geometry.relation import Identity, Relation, broadcast_relation
from compiler.geometry.views import broadcast
from compiler.graph.ir import Node, ValueId
from compiler.kernels.pointwise.binding import Operation as Elementary
from compiler.mid.ir import MidValueId, StorageAlias, Value
from compiler.mid.work import Cast as CastWork
from compiler.mid.work import Elementwise
from compiler.planner.bound import BoundValue, Home, read_through
from compiler.planner.bounds import STAGE
from compiler.planner.layouts import beside
from compiler.planner.scope import Scope


def gelu(scope: Scope, operand: ValueId, name: str) -> BoundValue:
    """Where the operand is."""
    bound = scope.read(operand)
    return _elementwise(scope, Elementary.GELU, bound, (), operand, name)


def add(scope: Scope, node: Node, name: str, *, is_other: bool) -> BoundValue:
    """An operand with the result's shape stays where it is; the other comes to it.

    What has been computed is better left in place than an argument, and of two such the first.

    Args:
        scope: of the block.
        node: the sum.
        name: its path.
        is_other: whether the other one stays, where either could.

    Raises:
        Unsupported: both operands are repeated, or no kernel adds them in any layout that is tried.
    """
    shape = scope.block.values[node.results[0]].type.shape
    whole = [operand for operand in node.operands if scope.block.values[operand].type.shape == shape]
    whole.sort(key=lambda operand: operand in scope.block.arguments)
    if is_other:
        whole.reverse()
    if whole:
        base = whole[0]
        bound = scope.read(base)
    else:
        # Both are repeated: one of them is carried out.
        base = node.operands[0]
        bound = scope.in_rows(_repeated(scope, base, shape, name), name)
    other = node.operands[1] if base == node.operands[0] else node.operands[0]
    return _elementwise(scope, Elementary.ADD, bound, (other,), base, name)


def _repeated(scope: Scope, operand: ValueId, shape: Shape, name: str) -> BoundValue:
    """An operand seen in the shape that it is repeated to."""
    mapping = broadcast(scope.block.values[operand].type.shape, shape)
    return read_through(
        scope.builder, scope.read(operand), mapping, tile_count=scope.setting.tile_count, node=name
    )


def _elementwise(
    scope: Scope,
    operation: Elementary,
    base: BoundValue,
    others: Sequence[ValueId],
    operand: ValueId,
    name: str,
) -> BoundValue:
    """Element-wise work in the layout of its first operand, or in rows where no kernel works in that.

    Other operands are repeated by the kernel, or where no kernel does that, by a copy.
    """
    precision = scope.builder.value(base.value).format.precision
    if not isinstance(precision, F16):
        raise Unsupported(
            f"{operation.value} of {type(precision).__name__}: element-wise work is in F16",
            stage=STAGE,
            subject=name,
            next_step="cast its operands to F16, and its result back",
            nodes=(name,),
        )
    if not base.mapping.is_bijective:
        base = scope.in_rows(base, name)

    def attempt(bound: BoundValue, *, is_repeated: bool = False) -> BoundValue | str:
        value = scope.builder.value(bound.value)
        operands = [bound.value]
        relations: list[Relation] = [Identity(rank=len(value.shape))]
        for other in others:
            brought = _beside(scope, other, bound, value, name, is_repeated=is_repeated)
            if brought is None:
                return "the layout has no place for the other operand"
            operands.append(brought)
            relations.append(broadcast_relation(scope.builder.value(brought).shape, value.shape))
        refusal = scope.refusal(Elementwise(operation=operation), operands, relations, value)
        if refusal is not None:
            return refusal
        is_own = bound is not base or scope.is_last_reader(operand, bound.value)
        result = scope.builder.compute(
            Elementwise(operation=operation),
            operands,
            relations,
            shape=value.shape,
            tensor_format=value.format,
            owners=value.owners,
            aliases=(StorageAlias(result=0, operand=0),) if is_own else (),
            node=name,
        )
        return BoundValue(value=result, mapping=bound.mapping)

    attempts: list[Callable[[BoundValue], BoundValue | str]] = [attempt]
    if any(scope.block.values[other].type.shape != base.shape for other in others):
        attempts.append(lambda bound: attempt(bound, is_repeated=True))
    return _there_or_in_rows(scope, base, name, f"computes {operation.value} of", *attempts)


def _there_or_in_rows(
    scope: Scope, bound: BoundValue, name: str, what: str, *attempts: Callable[[BoundValue], BoundValue | str]
) -> BoundValue:
    """Work where its operand is, or in rows where no kernel does it there.

    Args:
        scope: of the block.
        bound: the operand.
        name: of the node.
        what: would be done with it.
        attempts: ways of doing it, the best first. Each appends the work where its operand is; or appends no
            computation and says why not.

    Raises:
        Unsupported: neither is possible.
    """
    made: BoundValue | str = ""
    in_rows: BoundValue | None = None
    for attempt in attempts:
        made = attempt(bound)
        if isinstance(made, str):
            in_rows = scope.in_rows(bound, name) if in_rows is None else in_rows
            made = attempt(in_rows)
        if isinstance(made, BoundValue):
            break
    if isinstance(made, str):
        raise Unsupported(
            f"no kernel {what} {list(bound.shape)} in any layout that is tried: {made}",
            stage=STAGE,
            subject=name,
            next_step="give this operation extents or a broadcast that a kernel takes",
            nodes=(name,),
        )
    return made


def _beside(
    scope: Scope, other: ValueId, base: BoundValue, value: Value, name: str, *, is_repeated: bool
) -> MidValueId | None:
    """An operand on the tiles of another's value, in that value's coordinates; None if it cannot be.

    Args:
        scope: of the block.
        other: the operand.
        base: the other one, whose value it lies beside.
        value: that value.
        name: of the node.
        is_repeated: whether it is repeated to the other's shape on the way, where it has another.
    """
    type_ = scope.block.values[other].type
    if is_repeated and type_.shape != base.shape:
        wanted = Home(shape=value.shape, format=value.format, owners=value.owners, mapping=base.mapping)
        return scope.convert(_repeated(scope, other, base.shape, name), wanted, name)
    if type_.shape == base.shape:
        wanted = Home(
            shape=value.shape,
            format=dataclasses.replace(value.format, precision=type_.precision),
            owners=value.owners,
            mapping=base.mapping,
        )
    else:
        if not base.mapping.is_identity and not _keeps_last_axis(base.mapping, type_.shape):
            return None
        tensor_format = beside(value.format, len(value.shape), type_.shape, type_.precision)
        if tensor_format is None:
            return None
        wanted = Home(
            shape=type_.shape,
            format=tensor_format,
            owners=value.owners,
            mapping=identity(type_.shape),
        )
    if other in scope.pending and wanted.is_for_host:
        pending = scope.pending[other]
        if not pending.is_input or scope.setting.replicate_inputs:
            return scope.declare(other, wanted).value
    return scope.convert(scope.read(other), wanted, name)


def cast(scope: Scope, node: Node, name: str) -> BoundValue:
    """Where the operand is, or in rows where no kernel casts it there."""
    target = scope.block.values[node.results[0]].type.precision
    return in_precision(scope, scope.read(node.operands[0]), target, name)


def in_precision(scope: Scope, bound: BoundValue, target: Precision, name: str) -> BoundValue:
    """A value in a precision: itself, or a cast of it where it is, or in rows."""
    if scope.builder.value(bound.value).format.precision == target:
        return bound

    def attempt(base: BoundValue) -> BoundValue | str:
        value = scope.builder.value(base.value)
        tensor_format = dataclasses.replace(value.format, precision=target)
        result = Value(name="result", shape=value.shape, format=tensor_format, owners=value.owners)
        relations: list[Relation] = [Identity(rank=len(value.shape))]
        refusal = scope.refusal(CastWork(), [base.value], relations, result)
        if refusal is not None:
            return refusal
        made = scope.builder.compute(
            CastWork(),
            [base.value],
            relations,
            shape=value.shape,
            tensor_format=tensor_format,
            owners=value.owners,
            node=name,
        )
        return BoundValue(value=made, mapping=base.mapping)

    return _there_or_in_rows(scope, bound, name, "casts", attempt)


def _keeps_last_axis(mapping: CoordinateMapping, shape: Sequence[int]) -> bool:
    """Whether a vector along the last axis of the graph value is one along that of the mid value too."""
    if len(shape) != 1:
        return False
    last = len(mapping.source_shape) - 1
    return (
        mapping.source_shape[last] == shape[0]
        and all(
            digit.axis != last or (digit.stride == 1 and digit.extent == shape[0])
            for digits in mapping.digits
            for digit in digits
        )
        and any(digit.axis == last for digit in mapping.digits[-1])
    )
