"""The only way to make blocks: values and operations are appended in order.

A builder records and chooses nothing: formats, owners and policies come from its callers (ML-13, PR-29).
``insert`` splices a block into another, renumbering its values; the arguments must be what the block
declares, so that a fragment means the same wherever it is put (ML-28). Names of made values are the node and
what made them, numbered where that is not unique.
"""

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import final

from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import CoordinateMapping, Shape, identity
from compiler.geometry.owners import OwnerMap
from compiler.geometry.region import Region
from compiler.geometry.relation import Relation
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    CopyPart,
    MidProgram,
    MidValueId,
    MovementPolicy,
    Operation,
    Repeat,
    StorageAlias,
    Value,
)
from compiler.mid.work import Work


@final
class BlockBuilder:
    """A block under construction.

    Args:
        reserved: names of arguments that may be added later; nothing that is made gets one of them.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = frozenset(reserved)
        self._values: list[Value] = []
        self._arguments: list[MidValueId] = []
        self._operations: list[Operation] = []
        self._names: Counter[str] = Counter()

    def value(self, number: MidValueId) -> Value:
        """A value that was added before."""
        return self._values[number]

    def argument(self, value: Value) -> MidValueId:
        """Adds a value that exists before the first operation, whenever it is added.

        Raises:
            ValueError: the name is taken.
        """
        if self._names[value.name]:
            raise ValueError(f"there are two values {value.name}")
        added = self._add(value)
        self._arguments.append(added)
        return added

    def copy(
        self,
        source: MidValueId,
        *,
        tensor_format: TensorFormat,
        owners: OwnerMap,
        mapping: CoordinateMapping | None = None,
        policy: MovementPolicy = MovementPolicy.AUTOMATIC,
        node: str = "",
    ) -> MidValueId:
        """Appends a copy of one value.

        Args:
            source: what is read.
            tensor_format: of the result.
            owners: of the result.
            mapping: from coordinates of the result to those of the source; None for the same ones.
            policy: how it may be realized.
            node: the graph node that it works for.
        """
        mapping = identity(self.value(source).shape) if mapping is None else mapping
        shape = mapping.destination_shape
        part = CopyPart(source=source, region=Region.of_extents(shape), mapping=mapping)
        return self.copy_parts(
            (part,), shape=shape, tensor_format=tensor_format, owners=owners, policy=policy, node=node
        )

    def copy_parts(
        self,
        parts: Sequence[CopyPart],
        *,
        shape: Shape,
        tensor_format: TensorFormat,
        owners: OwnerMap,
        policy: MovementPolicy = MovementPolicy.AUTOMATIC,
        node: str = "",
    ) -> MidValueId:
        """Appends a copy whose result is filled by several parts."""
        result = self._add(
            Value(name=self._name(node, "copy"), shape=shape, format=tensor_format, owners=owners, node=node)
        )
        self._operations.append(Copy(parts=tuple(parts), result=result, policy=policy, node=node))
        return result

    def compute(
        self,
        work: Work,
        operands: Sequence[MidValueId],
        relations: Sequence[Relation],
        *,
        shape: Shape,
        tensor_format: TensorFormat,
        owners: OwnerMap,
        aliases: Sequence[StorageAlias] = (),
        node: str = "",
    ) -> MidValueId:
        """Appends a computation with one result."""
        result = self._add(
            Value(
                name=self._name(node, type(work).__name__.lower()),
                shape=shape,
                format=tensor_format,
                owners=owners,
                node=node,
            )
        )
        self._operations.append(
            Compute(
                work=work,
                operands=tuple(operands),
                relations=tuple(relations),
                results=(result,),
                aliases=tuple(aliases),
                node=node,
            )
        )
        return result

    def repeat(
        self,
        count: int,
        *,
        carried: Sequence[MidValueId],
        invariants: Sequence[MidValueId],
        sequences: Sequence[Sequence[MidValueId]],
        body: Block,
        node: str = "",
    ) -> tuple[MidValueId, ...]:
        """Appends a Repeat; its results have the types of the carried values."""
        results = tuple(
            self._add(dataclasses.replace(body.value(argument), name=self._name(node, "repeat"), node=node))
            for argument in body.arguments[: len(carried)]
        )
        self._operations.append(
            Repeat(
                count=count,
                carried=tuple(carried),
                invariants=tuple(invariants),
                sequences=tuple(tuple(members) for members in sequences),
                body=body,
                results=results,
                node=node,
            )
        )
        return results

    def insert(self, block: Block, arguments: Sequence[MidValueId]) -> tuple[MidValueId, ...]:
        """Appends the operations of a block.

        Args:
            block: what is inserted.
            arguments: the values that take the place of its arguments.

        Returns:
            What its results have become.

        Raises:
            ValueError: an argument differs from the declared one in shape, format or owners.
        """
        if len(arguments) != len(block.arguments):
            raise ValueError(f"{len(arguments)} values for {len(block.arguments)} arguments")
        numbers: dict[MidValueId, MidValueId] = {}
        for declared, actual in zip(block.arguments, arguments, strict=True):
            wanted, given = block.value(declared), self.value(actual)
            if (wanted.shape, wanted.format, wanted.owners) != (given.shape, given.format, given.owners):
                raise ValueError(f"{given.name} is not what argument {wanted.name} declares")
            numbers[declared] = actual
        for number, value in enumerate(block.values):
            if MidValueId(number) not in numbers:
                name = self._unique(value.name)
                numbers[MidValueId(number)] = self._add(dataclasses.replace(value, name=name))
        self._operations.extend(renumbered(operation, numbers) for operation in block.operations)
        return tuple(numbers[result] for result in block.results)

    def finish(self, results: Sequence[MidValueId], arguments: Sequence[MidValueId] | None = None) -> Block:
        """The block. The builder can be used further; what it appends later is not part of it.

        Args:
            results: what the block gives.
            arguments: its arguments in another order than that in which they were added.

        Raises:
            ValueError: these are not its arguments.
        """
        arguments = self._arguments if arguments is None else arguments
        if sorted(arguments) != sorted(self._arguments):
            raise ValueError(f"{list(arguments)} are not the arguments {self._arguments}")
        return Block(
            values=tuple(self._values),
            arguments=tuple(arguments),
            operations=tuple(self._operations),
            results=tuple(results),
        )

    def _add(self, value: Value) -> MidValueId:
        self._names[value.name] += 1
        self._values.append(value)
        return MidValueId(len(self._values) - 1)

    def _name(self, node: str, what: str) -> str:
        return self._unique(f"{node}.{what}" if node else what)

    def _unique(self, name: str) -> str:
        if self._is_free(name):
            return name
        number = 2
        while not self._is_free(f"{name}.{number}"):
            number += 1
        return f"{name}.{number}"

    def _is_free(self, name: str) -> bool:
        return not self._names[name] and name not in self._reserved


def renumbered(operation: Operation, numbers: dict[MidValueId, MidValueId]) -> Operation:
    """An operation over other values of a block; a body keeps its own."""
    match operation:
        case Copy(parts=parts, result=result):
            return dataclasses.replace(
                operation,
                parts=tuple(dataclasses.replace(part, source=numbers[part.source]) for part in parts),
                result=numbers[result],
            )
        case Compute(operands=operands, results=results):
            return dataclasses.replace(
                operation,
                operands=tuple(numbers[value] for value in operands),
                results=tuple(numbers[value] for value in results),
            )
        case Repeat(carried=carried, invariants=invariants, sequences=sequences, results=results):
            return dataclasses.replace(
                operation,
                carried=tuple(numbers[value] for value in carried),
                invariants=tuple(numbers[value] for value in invariants),
                sequences=tuple(tuple(numbers[value] for value in members) for members in sequences),
                results=tuple(numbers[value] for value in results),
            )


def program(
    block: Block, *, name: str, tile_count: int, input_count: int, outputs: Sequence[str]
) -> MidProgram:
    """A block as a whole program."""
    return MidProgram(
        name=name, tile_count=tile_count, block=block, input_count=input_count, outputs=tuple(outputs)
    )
