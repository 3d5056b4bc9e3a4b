"""Whole-device programs: exactly ``Copy``, ``Compute`` and ``Repeat`` over distributed values (ML-01).

A value has a shape, a precision, a layout and an owner map (ML-04); its storage is as many shards as its
tiling says, each on the tiles of its owners. Programs are static single assignment: an operation makes new
values from earlier ones. Views are copies with a coordinate mapping (ML-20); casts are computations (ML-14);
sums are computations beside products (ML-02). Nothing is deferred: every operation says completely what it
does (ML-05), and ``verify`` defines what a well-formed program is.

``Copy`` moves elements between distributions: other owners, other tiling, other order, other memory class,
other coordinates; never other numbers. Padding of its result is zero. How bytes get there is the business of
movement in low, within the copy's policy.

``Compute`` works where its first result is owned: each owner reads its operands on its own tile (sums
excepted, which bring their partials), and what it reads is its recorded index relations restricted to its
shard (OI-03).

``Repeat`` runs a body a fixed number of times. Carried values begin as its operands and are replaced by the
body's results after each iteration; invariants are the same in each; of a sequence, iteration i sees member
i. The members of a sequence have one format and one owner map, so that one advancing pointer addresses them.
"""

import functools
from dataclasses import dataclass
from enum import Enum
from typing import NewType, TypeAlias, final

from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import CoordinateMapping, Shape
from compiler.geometry.owners import OwnerMap
from compiler.geometry.region import Region
from compiler.geometry.relation import Relation
from compiler.mid.work import Work

MidValueId = NewType("MidValueId", int)
"""Number of a value in its block's table."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A distributed tensor.

    Args:
        name: unique in its block.
        shape: logical extents.
        format: precision and layout.
        owners: which tile holds which owner.
        node: the graph node that it belongs to; empty for inputs and parameters that no node made.
    """

    name: str
    shape: Shape
    format: TensorFormat
    owners: OwnerMap
    node: str = ""

    @property
    def distribution(self) -> Distribution:
        """Its shards.

        Raises:
            ValueError: the shape does not fit the format.
        """
        return _distribution(self.shape, self.format)


@functools.lru_cache(maxsize=4096)
def _distribution(shape: Shape, tensor_format: TensorFormat) -> Distribution:
    """Values of a program share few distributions, and each is asked for often."""
    return distribute(shape, tensor_format)


class MovementPolicy(Enum):
    """How a copy may be realized (ML-31)."""

    AUTOMATIC = "automatic"
    """As movement finds cheapest."""
    DIRECT = "direct"
    """Exchanged straight into the result's storage, without a kernel."""
    PACK_AT_SOURCE = "pack at source"
    """Rearranged before the exchange."""
    PACK_AT_DESTINATION = "pack at destination"
    """Exchanged as it is stored, and rearranged afterwards."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CopyPart:
    """What fills a box of a copy's result.

    Args:
        source: the value that is read.
        region: the box of the result.
        mapping: from the coordinates of the box, counted from its start, to coordinates of the source.
    """

    source: MidValueId
    region: Region
    mapping: CoordinateMapping


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """Movement of elements. One part for most copies; several for a concatenation.

    Args:
        parts: disjoint, together the whole result.
        result: the value that is made.
        policy: how it may be realized.
        node: the graph node that it works for.
    """

    parts: tuple[CopyPart, ...]
    result: MidValueId
    policy: MovementPolicy = MovementPolicy.AUTOMATIC
    node: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StorageAlias:
    """A result in the storage of an operand, shard for shard.

    Args:
        result: index of the result.
        operand: index of the operand, which nothing may read afterwards.
        displacement: bytes from the operand's storage to the result's; negative where the result begins
            before the operand, whose storage is then so much longer.
    """

    result: int
    operand: int
    displacement: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """Distributed computation.

    Args:
        work: what is computed.
        operands: the values that are read.
        relations: for each operand, how a coordinate of result 0 reads it, partials axes left out.
        results: the values that are made; all have the owners of the first.
        aliases: results in the storage of operands.
        node: the graph node that it works for.
    """

    work: Work
    operands: tuple[MidValueId, ...]
    relations: tuple[Relation, ...]
    results: tuple[MidValueId, ...]
    aliases: tuple[StorageAlias, ...] = ()
    node: str = ""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A body, ``count`` times.

    Args:
        count: iterations.
        carried: values that the first iteration begins with.
        invariants: values that every iteration sees.
        sequences: for each sequence its members, one for each iteration.
        body: its arguments are the carried values, the invariants and one member of each sequence; its
            results are the carried values of the next iteration.
        results: carried values after the last iteration.
        node: the graph node that it works for.
    """

    count: int
    carried: tuple[MidValueId, ...]
    invariants: tuple[MidValueId, ...]
    sequences: tuple[tuple[MidValueId, ...], ...]
    body: "Block"
    results: tuple[MidValueId, ...]
    node: str = ""


Operation: TypeAlias = Copy | Compute | Repeat
"""All that a program consists of."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Operations in order over one table of values.

    Args:
        values: the table.
        arguments: values that exist before the first operation.
        operations: in order of execution.
        results: what the block gives.
    """

    values: tuple[Value, ...]
    arguments: tuple[MidValueId, ...]
    operations: tuple[Operation, ...]
    results: tuple[MidValueId, ...]

    def value(self, number: MidValueId) -> Value:
        """Row ``number`` of the table."""
        return self.values[number]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MidProgram:
    """A whole-device program.

    Args:
        name: of the model.
        tile_count: tiles of the build.
        block: its arguments are the inputs, then the parameters; its results are the outputs.
        input_count: arguments that are inputs, new in each run; the others stay on the device.
        outputs: names of the results, as the host knows them.
    """

    name: str
    tile_count: int
    block: Block
    input_count: int
    outputs: tuple[str, ...]

    @property
    def inputs(self) -> tuple[MidValueId, ...]:
        """What each run brings."""
        return self.block.arguments[: self.input_count]

    @property
    def parameters(self) -> tuple[MidValueId, ...]:
        """What stays from run to run."""
        return self.block.arguments[self.input_count :]


def operands_of(operation: Operation) -> tuple[MidValueId, ...]:
    """The values that an operation reads, in its own order, repetitions included."""
    match operation:
        case Copy(parts=parts):
            return tuple(part.source for part in parts)
        case Compute(operands=operands):
            return operands
        case Repeat(carried=carried, invariants=invariants, sequences=sequences):
            return (*carried, *invariants, *(member for members in sequences for member in members))


def results_of(operation: Operation) -> tuple[MidValueId, ...]:
    """The values that an operation makes."""
    match operation:
        case Copy(result=result):
            return (result,)
        case Compute(results=results) | Repeat(results=results):
            return results
