"""The values of a block while it is expanded: where each is stored, and where the next one will be.

A result gets buffers of its own, unless the program says more: a result in the storage of an operand shares
its buffers, an output of the program has buffers that the host reads, and the next value of what a Repeat
carries goes where the present one is, if nothing reads that any more.
"""

from collections.abc import Mapping
from typing import final

import numpy as np

from compiler.low.build import LowBuilder
from compiler.low.ids import NO_ROW, NodeId
from compiler.low.ir import Column, HostValue, Role
from compiler.low.storage import ALIGNMENT, Stored, allocate
from compiler.mid.ir import Block, Compute, MidValueId, StorageAlias, Value


@final
class BlockStorage:
    """Where the values of one block are.

    Args:
        build: the low program.
        block: the block.
        stored: its arguments.
        reserved: results of the block that are to be made in storage that exists.
        outputs: results of the block that the host reads, and their names.
    """

    def __init__(
        self,
        build: LowBuilder,
        block: Block,
        stored: Mapping[MidValueId, Stored],
        *,
        reserved: Mapping[MidValueId, Stored] | None = None,
        outputs: Mapping[MidValueId, str] | None = None,
    ) -> None:
        self._build = build
        self._block = block
        self._stored = dict(stored)
        self._reserved = {} if reserved is None else dict(reserved)
        self._outputs = {} if outputs is None else dict(outputs)

    def __getitem__(self, number: MidValueId) -> Stored:
        """Where a value is that exists already."""
        return self._stored[number]

    def put(self, number: MidValueId, stored: Stored) -> None:
        """Says where a value is."""
        self._stored[number] = stored

    def make(self, number: MidValueId, node: NodeId) -> Stored:
        """Storage for a result that shares none."""
        value = self._block.value(number)
        if number in self._reserved:
            stored = self._reserved[number]
        elif number in self._outputs:
            stored = store_host_value(self._build, value, self._outputs[number], Role.OUTPUT, node)
        else:
            stored = allocate(self._build, value.distribution, tiles_of(value), node)
        self._stored[number] = stored
        return stored

    def make_result(self, compute: Compute, index: int, node: NodeId) -> Stored:
        """Storage for a result of a computation, in that of an operand where the computation says so."""
        for alias in compute.aliases:
            if alias.result == index:
                stored = self._shared(compute, alias, node)
                self._stored[compute.results[index]] = stored
                return stored
        return self.make(compute.results[index], node)

    def _shared(self, compute: Compute, alias: StorageAlias, node: NodeId) -> Stored:
        operand = self._stored[compute.operands[alias.operand]]
        value = self._block.value(compute.results[alias.result])
        distribution, tiles = value.distribution, tiles_of(value)
        owners = operand.owner_on_tile(value.owners.tile_count)[tiles]
        byte_count = distribution.storage_bytes[distribution.shard_of_owner]
        holding = np.flatnonzero(byte_count > 0)
        root, base = self._build.roots(operand.buffer[owners[holding]])
        displacement = base + operand.displacement[owners[holding]] + alias.displacement
        buffer = np.full(len(tiles), NO_ROW, dtype=np.int64)
        buffer[holding] = self._build.aliases(
            root,
            displacement=displacement,
            byte_count=byte_count[holding],
            alignment=ALIGNMENT if not (displacement % ALIGNMENT).any() else 1,
            node=node,
        )
        return Stored(
            distribution=distribution,
            tile=tiles,
            buffer=buffer,
            displacement=np.zeros(len(tiles), dtype=np.int64),
            sequence=np.full(len(tiles), NO_ROW, dtype=np.int64),
        )


def tiles_of(value: Value) -> Column:
    """[owners] the logical tiles of a value's owners."""
    return value.owners.tiles(value.distribution.owner_count).astype(np.int64)


def store_host_value(build: LowBuilder, value: Value, name: str, role: Role, node: NodeId) -> Stored:
    """Adds a tensor of the host and the buffers of its shards."""
    number = build.value(
        HostValue(name=name, role=role, shape=value.shape, format=value.format, owners=value.owners)
    )
    return allocate(build, value.distribution, tiles_of(value), node, role=role, value=number)
