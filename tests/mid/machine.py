"""Runs whole-device programs on bytes: each call that ``local`` makes, through the semantics of its kernel.

Tiles are private memories full of NaN; operands and results lie where the binding's own check of addresses
accepts them. Copies and fetched partials are packed by the host's packing of tensors. A computation with a
call that its family refuses is left out: what it makes comes from the interpreter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.kernels import registry
from compiler.kernels.contract import Binding, Refusal, arguments_at, check_addresses
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.low.values import pack, unpack
from compiler.mid.interpret import interpret
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Value
from compiler.mid.local import LocalCalls, bind_all, local_calls
from compiler.mid.shards import NO_PARTIAL
from compiler.mid.work import Product, Sum
from compiler.target.memory import SRAM_SIZE
from tests.kernels.machine import Bytes, Sram

Elements = npt.NDArray[np.generic]

_STANDARD = range(0x50000, 0x7C000, 0x8000)
_INTERLEAVED = range(0x90000, 0xE0000, 0x10000)
_NAN = np.tile(np.array([0xFF, 0x7E], dtype=np.uint8), SRAM_SIZE // 2)


@dataclass(slots=True)
class Machine:
    """Bytes of every owner's shard of the values so far."""

    block: Block
    bytes_of: dict[MidValueId, list[Bytes]] = field(default_factory=dict[MidValueId, "list[Bytes]"])
    done: list[str] = field(default_factory=list[str])
    """Kinds of work that ran on kernels."""

    def value(self, number: MidValueId) -> Value:
        """A value of the block."""
        return self.block.value(number)

    def place(self, number: MidValueId, array: Elements) -> None:
        """Gives a value its bytes, padding zero."""
        distribution = self.value(number).distribution
        shards = pack(distribution, array)
        self.bytes_of[number] = [shards[shard] for shard in distribution.shard_of_owner.tolist()]

    def tensor(self, number: MidValueId) -> Elements:
        """The value that the first owner of each shard holds."""
        distribution = self.value(number).distribution
        owners = map(int, distribution.owners[:, 0])
        return unpack(distribution, [self.bytes_of[number][owner] for owner in owners])

    def on_tile(self, number: MidValueId, tile: int) -> Bytes:
        """What a tile holds of a value."""
        value = self.value(number)
        owner = int(value.owners.owners(value.distribution.owner_count)[tile])
        assert owner >= 0
        return self.bytes_of[number][owner]

    def compute(self, compute: Compute) -> bool:
        """Runs all calls of a computation, if its families take them."""
        calls = local_calls(self.block, compute)
        bindings = bind_all(calls)
        refused = [binding for binding in bindings if isinstance(binding, Refusal)]
        if refused:
            # Products are in formats that the unit reads; the others are in any.
            assert not isinstance(compute.work, Product), refused[0].reason
            return False
        number = compute.results[0]
        distribution = self.value(number).distribution
        made = [
            _NAN[: int(distribution.storage_bytes[shard])].copy()
            for shard in distribution.shard_of_owner.tolist()
        ]
        bound = [cast("Binding", binding) for binding in bindings]
        if isinstance(compute.work, Sum):
            self._sum(compute, calls, bound, made)
        else:
            for alias in compute.aliases:
                for owner, tile in enumerate(calls.tiles.tolist()):
                    operand = self.on_tile(compute.operands[alias.operand], tile)
                    made[owner][:] = operand[alias.displacement : alias.displacement + len(made[owner])]
            accumulates = len(compute.operands) == 3
            operands = compute.operands[:2] if accumulates else compute.operands
            for owner, request in zip(map(int, calls.owner), map(int, calls.request), strict=True):
                tile = int(calls.tiles[owner])
                held = [self.on_tile(operand, tile) for operand in operands]
                made[owner] = _call(bound[request], made[owner], held)
        self.bytes_of[number] = made
        self.done.append(type(compute.work).__name__)
        return True

    def _sum(
        self, compute: Compute, calls: LocalCalls, bindings: Sequence[Binding], made: list[Bytes]
    ) -> None:
        result = self.value(compute.results[0])
        assert calls.own_partial is not None
        assert calls.is_in_place is not None
        partials = self.tensor(compute.operands[0])
        stored = [pack(result.distribution, partial) for partial in partials]
        by_owner: dict[int, list[int]] = {}
        for owner, request in zip(calls.owner.tolist(), calls.request.tolist(), strict=True):
            by_owner.setdefault(owner, []).append(request)
        for owner, requests in by_owner.items():
            shard = int(result.distribution.shard_of_owner[owner])
            own = int(calls.own_partial[owner])
            first = 0 if own == NO_PARTIAL else own
            waiting = [number for number in range(len(partials)) if number != first]
            for stage, request in enumerate(requests):
                binding = bindings[request]
                parameters = binding.parameters
                assert isinstance(parameters, ReduceParameters)
                rows = parameters.partials
                stack = np.concatenate([stored[number][shard] for number in waiting[:rows]])
                waiting = waiting[rows:]
                if stage == 0 and calls.is_in_place[owner]:
                    seed = self.on_tile(compute.operands[0], int(calls.tiles[owner]))
                    made[owner] = _call(binding, made[owner], [seed, stack])
                    continue
                if stage == 0:
                    made[owner] = stored[first][shard].copy()
                made[owner] = _call(binding, made[owner], [made[owner], stack])
            assert not waiting


def _call(binding: Binding, result: Bytes, operands: Sequence[Bytes]) -> Bytes:
    """The result's bytes after one call."""
    free = {MemoryClass.STANDARD: iter(_STANDARD), MemoryClass.INTERLEAVED: iter(_INTERLEAVED)}
    memory = Sram(_NAN.copy())
    addresses: list[int] = []
    for access, content in zip(binding.accesses, (result, *operands), strict=True):
        assert len(content) <= 0x8000
        assert access.operand is not None
        addresses.append(next(free[access.operand.memory_class]))
        memory.write(addresses[-1], content)
    for alias in binding.aliases:
        addresses[binding.position(alias.result)] = (
            addresses[binding.position(alias.operand)] + alias.displacement
        )
    assert check_addresses(binding, addresses) is None
    registry.execute(str(binding.symbol), arguments_at(binding, addresses), memory)
    return memory.read(addresses[0], len(result))


def check_on_bytes(made: MidProgram, tensors: Mapping[str, Elements]) -> list[str]:
    """Compares every value of a program without repeats with the interpreter's, bit for bit.

    Returns:
        The kinds of work that ran on kernels.
    """
    block = made.block
    # The interpreter knows no storage, so that values whose storage is taken can be outputs too.
    names = [value.name for value in block.values]
    every = replace(block, results=tuple(MidValueId(number) for number in range(len(names))))
    wanted = interpret(replace(made, block=every, outputs=tuple(names)), tensors)
    machine = Machine(block)
    for argument in block.arguments:
        machine.place(argument, tensors[block.value(argument).name])
    for operation in block.operations:
        if isinstance(operation, Copy):
            machine.place(operation.result, wanted[names[operation.result]])
            continue
        assert isinstance(operation, Compute)
        number = operation.results[0]
        expected = wanted[names[number]]
        if not machine.compute(operation):
            machine.place(number, expected)
            continue
        assert machine.tensor(number).tobytes() == expected.tobytes(), names[number]
    return machine.done
