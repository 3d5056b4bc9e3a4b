"""What every rewrite needs: blocks looked at, taken apart and put together again.

A rewrite takes a well-formed program and gives a well-formed program with the same arguments and outputs. It
works block by block, bodies of Repeats before what surrounds them, and never across a Repeat's boundary: the
values that a block is given and gives keep their types. Where nothing applies, the block that comes out is
the one that went in, so that callers can tell by identity.

Operations have no effects beside their results. Two things limit what may be moved or left out:

* a value is not read after another has taken its storage (:attr:`Uses.takers`);
* what is bound to a Repeat lies in storage that the Repeat decides about.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard, final

from compiler.kernels.contract import Binding, Refusal
from compiler.mid.build import renumbered
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    MidProgram,
    MidValueId,
    MovementPolicy,
    Operation,
    Repeat,
    Value,
    operands_of,
    results_of,
)
from compiler.mid.local import bind_all, local_calls
from compiler.mid.order import in_definition_order


class CopyPrice(Protocol):
    """What a caller knows about copies that mid does not: how they would be carried out."""

    def __call__(self, copy: Copy, sources: Sequence[Value], result: Value, /) -> int | None:
        """Cycles of a copy, estimated, or None where nothing carries it out.

        Args:
            copy: the copy.
            sources: what each of its parts reads.
            result: what it makes.
        """
        ...


def everywhere(program: MidProgram, rewrite: Callable[[Block], Block]) -> MidProgram:
    """A program with every block rewritten, bodies first; the same object where nothing changed."""
    block = _inside_out(program.block, rewrite)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _inside_out(block: Block, rewrite: Callable[[Block], Block]) -> Block:
    return rewrite(with_bodies(block, lambda body: _inside_out(body, rewrite)))


def with_bodies(block: Block, rewrite: Callable[[Block], Block]) -> Block:
    """A block with the bodies of its Repeats rewritten; the same object where nothing changed."""
    operations: list[Operation] = []
    for operation in block.operations:
        if isinstance(operation, Repeat):
            body = rewrite(operation.body)
            if body is not operation.body:
                operation = dataclasses.replace(operation, body=body)
        operations.append(operation)
    if all(new is old for new, old in zip(operations, block.operations, strict=True)):
        return block
    return dataclasses.replace(block, operations=tuple(operations))


def without_unread(block: Block) -> Block:
    """A block without operations that nothing reads; the same object where everything is read."""
    swept = BlockEdit(block).finish(range(len(block.operations)))
    return block if len(swept.operations) == len(block.operations) else swept


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """Who makes and reads the values of a block, by positions of operations.

    Args:
        makers: what makes a value; arguments are made by none.
        readers: what reads a value, ascending, once for each operand; one past the operations for each time
            that it is a result of the block. Every value has an entry.
        takers: the computation whose result takes a value's storage.
        bound: values that a Repeat reads.
    """

    makers: Mapping[MidValueId, int]
    readers: Mapping[MidValueId, tuple[int, ...]]
    takers: Mapping[MidValueId, int]
    bound: frozenset[MidValueId]

    def can_be_read(self, value: MidValueId, position: int) -> bool:
        """Whether a value that exists at a position still has its storage there."""
        taker = self.takers.get(value)
        return taker is None or taker > position

    def only_reader(self, value: MidValueId) -> int | None:
        """The position of the only operand that a value is; None when there are more, or none."""
        readers = self.readers[value]
        return readers[0] if len(readers) == 1 else None


def uses_of(block: Block) -> Uses:
    """The uses of a block's values."""
    makers: dict[MidValueId, int] = {}
    readers: dict[MidValueId, list[int]] = {MidValueId(number): [] for number in range(len(block.values))}
    takers: dict[MidValueId, int] = {}
    bound: set[MidValueId] = set()
    for position, operation in enumerate(block.operations):
        for value in operands_of(operation):
            readers[value].append(position)
        makers.update((value, position) for value in results_of(operation))
        if isinstance(operation, Compute):
            takers.update((operation.operands[alias.operand], position) for alias in operation.aliases)
        if isinstance(operation, Repeat):
            bound.update(operands_of(operation))
    for value in block.results:
        readers[value].append(len(block.operations))
    return Uses(
        makers=makers,
        readers={value: tuple(positions) for value, positions in readers.items()},
        takers=takers,
        bound=frozenset(bound),
    )


@final
class BlockEdit:
    """A block that is being changed: what stands at each position, and what is read instead of what.

    Positions are those of the block as it was.
    """

    def __init__(self, block: Block) -> None:
        self._block = block
        self._values = list(block.values)
        self._names = {value.name for value in block.values}
        self._at: list[tuple[Operation, ...]] = [(operation,) for operation in block.operations]
        self._instead: dict[MidValueId, MidValueId] = {}
        self._is_changed = False

    def value(self, number: MidValueId) -> Value:
        """A value, as it is by now."""
        return self._values[number]

    def add(self, value: Value) -> MidValueId:
        """A new value; its name gets a number where it is taken."""
        name, number = value.name, 2
        while name in self._names:
            name = f"{value.name}.{number}"
            number += 1
        self._names.add(name)
        self._values.append(dataclasses.replace(value, name=name))
        return MidValueId(len(self._values) - 1)

    def retype(self, number: MidValueId, value: Value) -> None:
        """A value with another type, which its maker and readers must suit."""
        self._values[number] = value
        self._is_changed = True

    def put(self, position: int, *operations: Operation) -> None:
        """What stands at a position from now on."""
        self._at[position] = operations
        self._is_changed = True

    def at(self, position: int) -> tuple[Operation, ...]:
        """What stands at a position by now, with operands as they were written."""
        return self._at[position]

    def substitute(self, old: MidValueId, new: MidValueId) -> None:
        """Everything that reads ``old`` reads ``new``."""
        self._instead[old] = new
        self._is_changed = True

    def current(self, number: MidValueId) -> MidValueId:
        """What is read by now where ``number`` was read."""
        while number in self._instead:
            number = self._instead[number]
        return number

    def finish(self, order: Sequence[int] | None = None) -> Block:
        """The block as it is by now, without operations that nothing reads any more.

        Args:
            order: positions in a new order; None for the one that they are in.
        """
        if not self._is_changed and order is None:
            return self._block
        order = range(len(self._at)) if order is None else order
        operations = [self._reading(operation) for position in order for operation in self._at[position]]
        results = tuple(self.current(result) for result in self._block.results)
        needed = set(results)
        kept: list[Operation] = []
        for operation in reversed(operations):
            if needed.isdisjoint(results_of(operation)):
                continue
            needed.update(operands_of(operation))
            kept.append(operation)
        return in_definition_order(
            Block(
                values=tuple(self._values),
                arguments=self._block.arguments,
                operations=tuple(reversed(kept)),
                results=results,
            )
        )

    def _reading(self, operation: Operation) -> Operation:
        """An operation that reads what is to be read instead; its results stay."""
        if self._instead.keys().isdisjoint(operands_of(operation)):
            return operation
        numbers = {MidValueId(number): MidValueId(number) for number in range(len(self._values))}
        numbers.update((value, self.current(value)) for value in operands_of(operation))
        changed = renumbered(operation, numbers)
        match changed:
            case Copy():
                return dataclasses.replace(changed, result=results_of(operation)[0])
            case Compute() | Repeat():
                return dataclasses.replace(changed, results=results_of(operation))


def is_open_copy(operation: Operation) -> TypeGuard[Copy]:
    """Whether an operation is a copy that may be carried out in any way: a policy is a choice that stays."""
    return isinstance(operation, Copy) and operation.policy is MovementPolicy.AUTOMATIC


def bindings_of(compute: Compute, operands: Sequence[Value], result: Value) -> tuple[Binding, ...] | None:
    """The calls of a computation on all tiles; None when some tile cannot make its call.

    Args:
        compute: the computation; its numbers of values do not matter.
        operands: what it reads.
        result: what it makes.
    """
    numbers = tuple(MidValueId(number) for number in range(len(operands) + 1))
    block = Block(values=(*operands, result), arguments=numbers[:-1], operations=(), results=())
    alone = dataclasses.replace(compute, operands=numbers[:-1], results=numbers[-1:])
    try:
        bound = bind_all(local_calls(block, alone))
    except ValueError:
        # Shards are no boxes, or a tile does not hold what it reads.
        return None
    found = tuple(binding for binding in bound if not isinstance(binding, Refusal))
    return found if len(found) == len(bound) else None
