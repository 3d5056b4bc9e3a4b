"""The values of a block while it is walked: what each is in mid, and how it gets elsewhere."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

from compiler.geometry import views as geometry_views
from compiler.geometry.compose import compose
from compiler.geometry.mapping import CoordinateMapping, NotRepresentable, identity
from compiler.geometry.owners import OwnerMap
from compiler.geometry.relation import Relation
from compiler.graph.ir import Block, TensorType, ValueId
from compiler.kernels.contract import Refusal
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import Compute, MidValueId, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.work import Work
from compiler.planner.bound import BoundValue, Home, is_in_words
from compiler.planner.choices import Setting
from compiler.planner.layouts import row_format


@final
@dataclass(slots=True)
class Pending:
    """An argument that nothing has read yet.

    Args:
        type: its type in the graph.
        name: its name.
        is_input: whether each run brings it.
        home: an input that lies as its first reader wants it, whatever has to be done with it there.
    """

    type: TensorType
    name: str
    is_input: bool
    home: Literal["first reader"] | None = None


@final
class Scope:
    """What the values of a block are by now.

    Args:
        block: of the graph.
        setting: of the build.

    Attributes:
        builder: of the block in mid.
        position: of the node that is constructed.
        pending: arguments that nothing has read yet.
        moving: values that move once a product reads them.
    """

    def __init__(self, block: Block, setting: Setting) -> None:
        self.builder = BlockBuilder(block.values[argument].name for argument in block.arguments)
        self.block = block
        self.setting = setting
        self.position = 0
        self.pending: dict[ValueId, Pending] = {}
        self.moving: set[ValueId] = set()
        self._bound: dict[ValueId, BoundValue] = {}

    def pend(self, argument: ValueId, *, is_input: bool, home: Literal["first reader"] | None = None) -> None:
        """Leaves an argument to its first reader."""
        value = self.block.values[argument]
        self.pending[argument] = Pending(value.type, value.name, is_input, home)

    def declare(self, argument: ValueId, home: Home) -> BoundValue:
        """Declares an argument in a layout."""
        value = self.block.values[argument]
        self.pending.pop(argument, None)
        number = self.builder.argument(
            Value(name=value.name, shape=home.shape, format=home.format, owners=home.owners, node=value.name)
        )
        self._bound[argument] = BoundValue(value=number, mapping=home.mapping)
        return self._bound[argument]

    def declared(self, argument: ValueId) -> MidValueId:
        """The value of an argument; rows over tiles when nothing reads it."""
        return self.read(argument).value

    def home_of(self, value: ValueId) -> Home:
        """The layout that a value has; rows where it is no whole value, but a view of a part of one."""
        bound = self.read(value)
        if not bound.mapping.is_bijective:
            return self.rows(self.block.values[value].type)
        made = self.builder.value(bound.value)
        return Home(shape=made.shape, format=made.format, owners=made.owners, mapping=bound.mapping)

    def bind(self, value: ValueId, bound: BoundValue) -> None:
        """Says what a value of a node is."""
        self._bound[value] = bound

    def rows(self, type_: TensorType) -> Home:
        """Row-major, rows over tiles."""
        return Home(
            shape=type_.shape,
            format=row_format(type_.shape, type_.precision, self.setting.tile_count),
            owners=OwnerMap(tile_count=self.setting.tile_count),
            mapping=identity(type_.shape),
        )

    def read(self, value: ValueId) -> BoundValue:
        """What a value is; an argument that is read first, by a reader without wishes, lies in rows."""
        if value in self.pending:
            return self.declare(value, self.rows(self.block.values[value].type))
        return self._bound[value]

    def result(self, value: ValueId) -> MidValueId:
        """A result of the block, as a value with the elements in the sequence that the graph has them in."""
        bound = self.read(value)
        shape = self.block.values[value].type.shape
        is_in_sequence = bound.mapping.is_bijective and (
            bound.mapping.is_identity
            or geometry_views.reshape(self.builder.value(bound.value).shape, shape) == bound.mapping
        )
        made = self.builder.value(bound.value)
        if (
            is_in_sequence
            and is_in_words(made.shape, made.format)
            and bound.value
            not in [
                self._bound[argument].value for argument in self.block.arguments if argument in self._bound
            ]
        ):
            return bound.value
        return self.in_rows(bound, self.block.values[value].name).value

    def in_rows(self, bound: BoundValue, name: str) -> BoundValue:
        """A value carried out: row-major, rows over tiles."""
        precision = self.builder.value(bound.value).format.precision
        made = self.builder.copy(
            bound.value,
            tensor_format=row_format(bound.shape, precision, self.setting.tile_count),
            owners=OwnerMap(tile_count=self.setting.tile_count),
            mapping=bound.mapping,
            node=name,
        )
        return BoundValue(value=made, mapping=identity(bound.shape))

    def convert(self, bound: BoundValue, wanted: Home, name: str) -> MidValueId:
        """A value in a layout: itself where it is in it, else a copy."""
        value = self.builder.value(bound.value)
        mapping = compose(_inverse(wanted.mapping), bound.mapping)
        if isinstance(mapping, NotRepresentable):
            return self.convert(self.in_rows(bound, name), wanted, name)
        is_there = (value.shape, value.format, value.owners) == (wanted.shape, wanted.format, wanted.owners)
        if is_there and mapping.is_identity:
            return bound.value
        return self.builder.copy(
            bound.value, tensor_format=wanted.format, owners=wanted.owners, mapping=mapping, node=name
        )

    def as_declared(self, value: ValueId, argument: ValueId) -> MidValueId:
        """A value in the layout in which an argument was declared."""
        return self.convert(self.read(value), self.home_of(argument), self.block.values[value].name)

    def natural_home(self, value: ValueId) -> Home:
        """The layout in which a value was made; rows where the host could not write it there."""
        home = self.home_of(value)
        return home if home.is_for_host else self.rows(self.block.values[value].type)

    def readers(self, value: ValueId) -> int:
        """Operands and results of the block that are a value."""
        return sum(node.operands.count(value) for node in self.block.nodes) + self.block.results.count(value)

    def is_last_reader(self, operand: ValueId, number: MidValueId) -> bool:
        """Whether nothing but the present node reads what lies in a value, which is no argument."""
        seen = {value for value, bound in self._bound.items() if bound.value == number}
        if seen & set(self.block.arguments) or operand not in seen:
            return False
        later = [value for node in self.block.nodes[self.position + 1 :] for value in node.operands]
        present = self.block.nodes[self.position].operands.count(operand)
        return present == 1 and not seen & {*later, *self.block.results}

    def refusal(
        self, work: Work, operands: Sequence[MidValueId], relations: Sequence[Relation], result: Value
    ) -> str | None:
        """Why no kernel computes something on every tile, tried on a block of its own; None when they do."""
        trial = BlockBuilder()
        arguments = [
            trial.argument(dataclasses.replace(self.builder.value(operand), name=f"operand {number}"))
            for number, operand in enumerate(operands)
        ]
        trial.compute(
            work,
            arguments,
            relations,
            shape=result.shape,
            tensor_format=result.format,
            owners=result.owners,
        )
        block = trial.finish(())
        (operation,) = block.operations
        if not isinstance(operation, Compute):
            raise AssertionError("a computation was appended")
        try:
            bindings = bind_all(local_calls(block, operation))
        except ValueError as fault:
            return str(fault)
        return next((binding.reason for binding in bindings if isinstance(binding, Refusal)), None)


def _inverse(mapping: CoordinateMapping) -> CoordinateMapping:
    inverse = mapping.inverse()
    if isinstance(inverse, NotRepresentable):
        raise AssertionError(f"{mapping} is one to one")
    return inverse
