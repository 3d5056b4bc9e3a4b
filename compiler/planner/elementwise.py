"""Constructors of element-wise work: sums, GELU and casts, where their operands are or in rows.

An element-wise result takes the storage of its operand when nothing else reads the value that the operand is
in.
"""

import dataclasses
from collections.abc import Callable, Sequence

from compiler.errors import Unsupported
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.relation import Identity, Relation, broadcast_relation
from compiler.graph.ir import Node, ValueId
from compiler.kernels.pointwise.binding import Operation as Elementary
from compiler.mid.ir import MidValueId, StorageAlias, Value
from compiler.mid.work import Cast as CastWork
from compiler.mid.work import Elementwise
from compiler.planner.bound import BoundValue, Home
from compiler.planner.bounds import STAGE
from compiler.planner.layouts import beside
from compiler.planner.scope import Scope


def gelu(scope: Scope, operand: ValueId, name: str) -> BoundValue:
    """Where the operand is."""
    bound = scope.read(operand)
    return _elementwise(scope, Elementary.GELU, bound, (), operand, name)


def add(scope: Scope, node: Node, name: str) -> BoundValue:
    """The operand with the result's shape stays where it is; the other comes to it."""
    shape = scope.block.values[node.results[0]].type.shape
    whole = [operand for operand in node.operands if scope.block.values[operand].type.shape == shape]
    # What has been computed is better left in place than what has yet to be declared.
    whole.sort(key=scope.pending.__contains__)
    if not whole:
        raise Unsupported(
            "both operands of an addition are repeated",
            stage=STAGE,
            subject=name,
            next_step="add one of them to a value of the result's shape first",
            nodes=(name,),
        )
    base = whole[0]
    other = node.operands[1] if base == node.operands[0] else node.operands[0]
    bound = scope.read(base)
    if not bound.mapping.is_bijective:
        bound = scope.in_rows(bound, name)
    return _elementwise(scope, Elementary.ADD, bound, (other,), base, name)


def _elementwise(
    scope: Scope,
    operation: Elementary,
    base: BoundValue,
    others: Sequence[ValueId],
    operand: ValueId,
    name: str,
) -> BoundValue:
    """Element-wise work in the layout of its first operand, or in rows where no kernel works in that."""
    if not base.mapping.is_bijective:
        base = scope.in_rows(base, name)

    def attempt(bound: BoundValue) -> BoundValue | str:
        value = scope.builder.value(bound.value)
        operands = [bound.value]
        relations: list[Relation] = [Identity(rank=len(value.shape))]
        for other in others:
            brought = _beside(scope, other, bound, value, name)
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

    return _there_or_in_rows(scope, base, name, f"computes {operation.value} of", attempt)


def _there_or_in_rows(
    scope: Scope, bound: BoundValue, name: str, what: str, attempt: Callable[[BoundValue], BoundValue | str]
) -> BoundValue:
    """Work where its operand is, or in rows where no kernel does it there.

    Args:
        scope: of the block.
        bound: the operand.
        name: of the node.
        what: would be done with it.
        attempt: appends the work where its operand is; or appends no computation and says why not.

    Raises:
        Unsupported: neither is possible.
    """
    made = attempt(bound)
    if isinstance(made, str):
        made = attempt(scope.in_rows(bound, name))
    if isinstance(made, str):
        raise Unsupported(
            f"no kernel {what} {list(bound.shape)} in any layout that is tried: {made}",
            stage=STAGE,
            subject=name,
            next_step="give this operation extents or a broadcast that a kernel takes",
            nodes=(name,),
        )
    return made


def _beside(scope: Scope, other: ValueId, base: BoundValue, value: Value, name: str) -> MidValueId | None:
    """An operand on the tiles of another's value, in that value's coordinates; None if it cannot be."""
    type_ = scope.block.values[other].type
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
    if other in scope.pending and wanted.is_in_sequence:
        pending = scope.pending[other]
        if not pending.is_input or scope.setting.replicate_inputs:
            return scope.declare(other, wanted).value
    return scope.convert(scope.read(other), wanted, name)


def cast(scope: Scope, node: Node, name: str) -> BoundValue:
    """Where the operand is, or in rows where no kernel casts it there."""
    target = scope.block.values[node.results[0]].type.precision
    bound = scope.read(node.operands[0])
    source = scope.builder.value(bound.value).format.precision
    if source == target:
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
