"""What a whole-device program costs, estimated: cycles and memory together, from one walk.

Cycles. Every tile has a time of its own. Work of tiles moves their times by the cycles that their calls have
by the formulas of their families (PR-32); an exchange is a barrier: it begins when the last tile arrives and
takes what its busiest end does, by words or by fragments, and the phase itself. Copies cost what the movement
selector would choose, by the same prices. A Repeat is walked twice; every further iteration costs what the
second added.

Memory. A value occupies its shards from the operation that makes it to its last reader, arguments of the
program and members of sequences always, and once more for each further place that one value has in
sequences. A result in the storage of an operand takes that over: while it is
made, it needs nothing more than the bytes by which it begins before the operand, and afterwards what it
occupies itself. While a copy is
packed, or a sum is staged, what it needs in between is added. The peak is taken per tile; whether it can be
placed without gaps is not asked: this is no proof of anything (PR-31).

Nothing is built (AR-04).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.errors import Unsupported
from compiler.geometry.layout import MemoryClass
from compiler.geometry.mapping import identity
from compiler.geometry.region import Region
from compiler.kernels.contract import Refusal
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.low.expand.reduce import price_of_fetch
from compiler.low.expand.values import tiles_of
from compiler.low.movement import Impossible, Price, Source, price, unallocated
from compiler.low.storage import Stored
from compiler.mid.carrying import is_free, outputs_in_place, returns_of
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
    Value,
    operands_of,
    results_of,
)
from compiler.mid.local import bind_all, local_calls
from compiler.mid.work import Sum
from compiler.target.costs import KERNEL_LAUNCH
from compiler.target.units import Bytes, Cycles

STAGE: Final = "estimate"
PerTile = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OperationCost:
    """What one operation adds, estimated; in a body, in one iteration.

    Args:
        node: graph node that it works for.
        what: kind of the operation, in a word.
        cycles: of its slowest tile, phases included.
        phases: exchange phases.
    """

    node: str
    what: str
    cycles: Cycles
    phases: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MidCost:
    """What a program costs, estimated.

    Args:
        cycles: of one run.
        phases: exchange phases of one run.
        bytes: the most that any tile holds at a time.
        interleaved_bytes: the most of it that must be interleaved.
        resident_bytes: the most that any tile holds from run to run.
        operations: in order, bodies in their places, and copies of outputs behind them.
    """

    cycles: Cycles
    phases: int
    bytes: Bytes
    interleaved_bytes: Bytes
    resident_bytes: Bytes
    operations: tuple[OperationCost, ...]


def estimate(program: MidProgram) -> MidCost:
    """What a well-formed program costs.

    Raises:
        Unsupported: a movement or a kernel that does not exist.
    """
    walk = _Walk(program)
    return walk.cost()


def price_of_copy(copy: Copy, sources: Sequence[Value], result: Value) -> Price | Impossible:
    """What a copy costs by itself.

    Args:
        copy: the copy.
        sources: what each of its parts reads.
        result: what it makes.
    """
    read = [
        Source(stored=_stored(value), mapping=part.mapping, start=part.region.starts)
        for part, value in zip(copy.parts, sources, strict=True)
    ]
    return price(read, _stored(result), copy.policy, result.owners.tile_count)


@final
class _Walk:
    """One walk over a program: times and memory of all tiles."""

    def __init__(self, program: MidProgram) -> None:
        self._program = program
        self._time = np.zeros(program.tile_count, dtype=np.int64)
        self._phases = 0
        self._operations: list[OperationCost] = []
        self._live = np.zeros((2, program.tile_count), dtype=np.int64)
        self._peak = np.zeros((2, program.tile_count), dtype=np.int64)

    def cost(self) -> MidCost:
        program = self._program
        for argument in program.block.arguments:
            self._hold(program.block.value(argument), 1)
        resident = np.zeros((2, program.tile_count), dtype=np.int64)
        for parameter in program.parameters:
            resident += _bytes_of(program.block.value(parameter), program.tile_count)
        block = program.block
        self._block(block, is_reported=True)
        in_place = outputs_in_place(block)
        for result in block.results:
            if result not in in_place:
                self._copy_output(block, result)
        return MidCost(
            cycles=Cycles(int(self._time.max())),
            phases=self._phases,
            bytes=Bytes(int(self._peak[0].max())),
            interleaved_bytes=Bytes(int(self._peak[1].max())),
            resident_bytes=Bytes(int(resident[0].max())),
            operations=tuple(self._operations),
        )

    def _block(self, block: Block, *, is_reported: bool) -> None:
        """Walks a block whose arguments are held by whoever runs it."""
        last = _last_readers(block)
        lasting = _in_arguments(block)
        in_sequences: set[MidValueId] = set()
        for position, operation in enumerate(block.operations):
            before, phases = int(self._time.max()), self._phases
            leads = _leads(operation)
            for result in results_of(operation):
                if result not in leads:
                    self._hold(block.value(result), 1)
            match operation:
                case Copy():
                    self._copy(block, operation)
                case Compute():
                    self._compute(block, operation)
                case Repeat():
                    self._walk_along(block, operation, in_sequences)
                    self._repeat(block, operation, position, is_reported=is_reported)
                case _:
                    assert_never(operation)
            self._peak = np.maximum(self._peak, self._live)
            if is_reported and not isinstance(operation, Repeat):
                self._operations.append(
                    OperationCost(
                        node=operation.node,
                        what=_word(operation),
                        cycles=Cycles(int(self._time.max()) - before),
                        phases=self._phases - phases,
                    )
                )
            for result, lead in leads.items():
                self._hold_briefly(tiles_of(block.value(result)), lead)
                if result not in lasting:
                    self._live += _bytes_of(block.value(result), self._program.tile_count)
            for value in last.get(position, ()):
                self._hold(block.value(value), -1)
        for value in last.get(len(block.operations), ()):
            self._hold(block.value(value), -1)

    def _hold(self, value: Value, sign: int) -> None:
        self._live += sign * _bytes_of(value, self._program.tile_count)
        if sign > 0:
            self._peak = np.maximum(self._peak, self._live)

    def _hold_briefly(self, tiles: PerTile, count: PerTile | int) -> None:
        """Standard memory that one operation needs and nothing else sees."""
        live = self._live.copy()
        np.add.at(live[0], tiles, count)
        self._peak = np.maximum(self._peak, live)

    def _phase(self, cycles: Cycles, phases: int = 1) -> None:
        self._time[:] = self._time.max() + cycles
        self._phases += phases

    def _copy(self, block: Block, copy: Copy) -> None:
        result = block.value(copy.result)
        found = price_of_copy(copy, [block.value(part.source) for part in copy.parts], result)
        if isinstance(found, Impossible):
            raise _unsupported(copy.node, f"no movement makes {result.name}: {found.reason}")
        tiles = tiles_of(result)
        if found.phases:
            self._phase(found.cycles, found.phases)
        else:
            self._time[tiles] += found.cycles
        self._hold_briefly(np.unique(tiles), found.staging_bytes)

    def _compute(self, block: Block, compute: Compute) -> None:
        calls = local_calls(block, compute)
        cycles: list[int] = []
        stacked: list[int] = []
        for bound in bind_all(calls):
            if isinstance(bound, Refusal):
                raise _unsupported(compute.node, f"no kernel does a {_word(compute)}: {bound.reason}")
            cycles.append(bound.cycles + KERNEL_LAUNCH)
            parameters = bound.parameters
            stacked.append(parameters.partials if isinstance(parameters, ReduceParameters) else 0)
        tiles = calls.tiles.astype(np.int64)[calls.owner]
        of_call = np.array(cycles, dtype=np.int64)[calls.request]
        if isinstance(compute.work, Sum):
            value = block.value(compute.results[0])
            partials = block.value(compute.operands[0])
            fetched = price_of_fetch(
                _stored(partials), _stored(value), calls, max(stacked), self._program.tile_count
            )
            if isinstance(fetched, Impossible):
                raise _unsupported(compute.node, f"nothing brings the partials of a sum: {fetched.reason}")
            self._time += fetched.copied
            for stage in fetched.stages:
                self._phase(stage)
            piece = value.distribution.storage_bytes[value.distribution.shard_of_owner]
            self._hold_briefly(tiles_of(value), piece * max(stacked))
        np.add.at(self._time, tiles, of_call)

    def _copy_output(self, block: Block, result: MidValueId) -> None:
        """A result of the program that is brought to where the host reads it."""
        before, phases, node = int(self._time.max()), self._phases, block.value(result).node
        self._copy_whole(block, result, node)
        self._operations.append(
            OperationCost(
                node=node,
                what="copy",
                cycles=Cycles(int(self._time.max()) - before),
                phases=self._phases - phases,
            )
        )

    def _copy_whole(self, block: Block, value: MidValueId, node: str) -> None:
        """A copy of a value into storage of the same kind."""
        shape = block.value(value).shape
        whole = CopyPart(source=value, region=Region.of_extents(shape), mapping=identity(shape))
        self._copy(block, Copy(parts=(whole,), result=value, policy=MovementPolicy.DIRECT, node=node))

    def _walk_along(self, block: Block, repeat: Repeat, in_sequences: set[MidValueId]) -> None:
        """What several iterations or sequences share is there again for each: copied, and held."""
        for member in (member for members in repeat.sequences for member in members):
            if member in in_sequences:
                self._hold(block.value(member), 1)
                self._copy_whole(block, member, repeat.node)
            in_sequences.add(member)

    def _repeat(self, block: Block, repeat: Repeat, position: int, *, is_reported: bool) -> None:
        body = repeat.body
        carried = body.arguments[: len(repeat.carried)]
        returns = returns_of(body, carried)
        for initial in repeat.carried:
            if not is_free(block, initial, position):
                self._copy_whole(block, initial, repeat.node)
        after: list[int] = []
        phases: list[int] = []
        for iteration in range(min(2, repeat.count)):
            kept = self._phases
            # The next values of what is carried may have to be made beside the present ones.
            self._block(body, is_reported=is_reported and iteration == 0)
            for result in (*returns.aside.values(), *returns.copied.values()):
                self._copy_whole(body, result, repeat.node)
            after.append(int(self._time.max()))
            phases.append(self._phases - kept)
        if repeat.count > 2:
            self._time += (repeat.count - 2) * (after[1] - after[0])
            self._phases += (repeat.count - 2) * phases[1]
        for argument in carried:
            beside = _bytes_of(body.value(argument), self._program.tile_count)
            self._peak = np.maximum(self._peak, self._live + beside)


def _last_readers(block: Block) -> Mapping[int, list[MidValueId]]:
    """By position of an operation: values of the block that nothing reads later.

    Those that lie in arguments are left out. One past the operations stand the results of the block.
    """
    last: dict[MidValueId, int] = {}
    for position, operation in enumerate(block.operations):
        for value in (*operands_of(operation), *results_of(operation)):
            last[value] = position
    for result in block.results:
        last[result] = len(block.operations)
    lasting = _in_arguments(block)
    found: dict[int, list[MidValueId]] = {}
    for value, position in last.items():
        if value not in lasting:
            found.setdefault(position, []).append(value)
    return found


def _in_arguments(block: Block) -> frozenset[MidValueId]:
    """Arguments of a block, and what lies in their storage: held for as long as they are."""
    lasting = set(block.arguments)
    for operation in block.operations:
        if isinstance(operation, Compute):
            lasting.update(
                operation.results[alias.result]
                for alias in operation.aliases
                if operation.operands[alias.operand] in lasting
            )
    return frozenset(lasting)


def _leads(operation: Operation) -> Mapping[MidValueId, int]:
    """Results that take the storage of an operand, and by how many bytes each begins before it."""
    if not isinstance(operation, Compute):
        return {}
    return {operation.results[alias.result]: max(0, -alias.displacement) for alias in operation.aliases}


def _bytes_of(value: Value, tile_count: int) -> PerTile:
    """[2, tiles] bytes of a value's shards: all, and those that must be interleaved."""
    distribution = value.distribution
    found = np.zeros((2, tile_count), dtype=np.int64)
    found[0, tiles_of(value)] = distribution.storage_bytes[distribution.shard_of_owner]
    if value.format.layout.memory_class is MemoryClass.INTERLEAVED:
        found[1] = found[0]
    return found


def _stored(value: Value) -> Stored:
    return unallocated(value.distribution, tiles_of(value))


def _word(operation: Copy | Compute | Repeat) -> str:
    match operation:
        case Copy():
            return "copy"
        case Compute(work=work):
            return type(work).__name__.lower()
        case Repeat():
            return "repeat"
        case _:
            assert_never(operation)


def _unsupported(node: str, message: str) -> Unsupported:
    return Unsupported(
        message,
        stage=STAGE,
        subject=node,
        next_step="choose another layout for its operands",
        nodes=(node,),
    )
