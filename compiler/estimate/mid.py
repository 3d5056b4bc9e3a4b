"""What a whole-device program costs, estimated: cycles and memory together, from one walk.

Cycles. Every tile has a time of its own. Work of tiles moves their times by the cycles that their calls have
by the formulas of their families (PR-32); an exchange is a barrier: it begins when the last tile arrives and
takes what its busiest end does, by words or by fragments, and the phase itself. Copies cost what the movement
selector would choose, by the same prices. A Repeat is walked twice; every further iteration costs what the
second added.

Memory. A value occupies its shards from the operation that makes it to its last reader, arguments of the
program and members of sequences always, what lies in an operand's storage nothing more. While a copy is
packed, or a sum is staged, what it needs in between is added. The peak is taken per tile; whether it can be
placed without gaps is not asked: this is no proof of anything (PR-31).

Nothing is built (AR-04).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.errors import Unsupported
from compiler.geometry.layout import MemoryClass
from compiler.kernels.contract import Refusal
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.low.expand.reduce import fetch_cycles
from compiler.low.expand.values import tiles_of
from compiler.low.movement import Impossible, Source, price, unallocated
from compiler.low.storage import Stored
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    MidProgram,
    MidValueId,
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
        operations: in order, bodies in their places.
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
        self._block(program.block, is_reported=True)
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
        shared = _shared_storage(block)
        for position, operation in enumerate(block.operations):
            before, phases = int(self._time.max()), self._phases
            results = [result for result in results_of(operation) if result not in shared]
            for result in results:
                self._hold(block.value(result), 1)
            match operation:
                case Copy():
                    self._copy(block, operation)
                case Compute():
                    self._compute(block, operation)
                case Repeat():
                    self._repeat(operation, is_reported=is_reported)
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
            for value in last.get(position, ()):
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
        sources = [
            Source(stored=_stored(block.value(part.source)), mapping=part.mapping, start=part.region.starts)
            for part in copy.parts
        ]
        destination = _stored(block.value(copy.result))
        found = price(sources, destination, copy.policy, self._program.tile_count)
        if isinstance(found, Impossible):
            raise _unsupported(
                copy.node, f"no movement makes {block.value(copy.result).name}: {found.reason}"
            )
        if found.phases:
            self._phase(found.cycles, found.phases)
        else:
            self._time[destination.tile] += found.cycles
        self._hold_briefly(np.unique(destination.tile), found.staging_bytes)

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
            stages = fetch_cycles(
                _stored(partials), _stored(value), calls, max(stacked), self._program.tile_count
            )
            if isinstance(stages, Impossible):
                raise _unsupported(compute.node, f"nothing brings the partials of a sum: {stages.reason}")
            for stage in stages:
                self._phase(stage)
            piece = value.distribution.storage_bytes[value.distribution.shard_of_owner]
            self._hold_briefly(tiles_of(value), piece * max(stacked))
        np.add.at(self._time, tiles, of_call)

    def _repeat(self, repeat: Repeat, *, is_reported: bool) -> None:
        body = repeat.body
        carried = [body.value(argument) for argument in body.arguments[: len(repeat.carried)]]
        after: list[int] = []
        phases: list[int] = []
        for iteration in range(min(2, repeat.count)):
            kept = self._phases
            # The next values of what is carried may have to be made beside the present ones.
            self._block(body, is_reported=is_reported and iteration == 0)
            after.append(int(self._time.max()))
            phases.append(self._phases - kept)
        if repeat.count > 2:
            self._time += (repeat.count - 2) * (after[1] - after[0])
            self._phases += (repeat.count - 2) * phases[1]
        for value in carried:
            self._peak = np.maximum(self._peak, self._live + _bytes_of(value, self._program.tile_count))


def _last_readers(block: Block) -> Mapping[int, list[MidValueId]]:
    """By position of an operation: values of the block that nothing reads later, arguments left out.

    What lies in another value's storage keeps that alive, and is not listed itself.
    """
    shared = _shared_storage(block)
    last: dict[MidValueId, int] = {}
    for position, operation in enumerate(block.operations):
        for value in (*operands_of(operation), *results_of(operation)):
            last[_root(shared, value)] = position
    for result in block.results:
        last[_root(shared, result)] = len(block.operations)
    found: dict[int, list[MidValueId]] = {}
    for value, position in last.items():
        if value not in block.arguments:
            found.setdefault(position, []).append(value)
    return found


def _shared_storage(block: Block) -> Mapping[MidValueId, MidValueId]:
    """Values that lie in the storage of another, and which."""
    shared: dict[MidValueId, MidValueId] = {}
    for operation in block.operations:
        if isinstance(operation, Compute):
            for alias in operation.aliases:
                shared[operation.results[alias.result]] = operation.operands[alias.operand]
    return shared


def _root(shared: Mapping[MidValueId, MidValueId], value: MidValueId) -> MidValueId:
    while value in shared:
        value = shared[value]
    return value


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
