"""Where the owners of a distributed value keep their shards while a program is expanded.

The one link between whole-device values and buffers (LC-03): everything that reads or writes a value asks its
``Stored`` for buffers, displacements and sequences, by owner number.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.geometry.distribution import Distribution
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import ORIGIN_MODULUS
from compiler.geometry.tiling import round_up_all
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.ids import NO_ROW, NO_VALUE, NodeId, ValueId
from compiler.low.ir import Column, Role
from compiler.target.units import WORD_BYTES

ALIGNMENT: Final = ORIGIN_MODULUS
"""Bytes: shards begin at multiples, so that geometry decides where an operand begins modulo 32."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stored:
    """A distributed value in buffers.

    Args:
        distribution: its shards.
        tile: [owners] logical tile of each owner.
        buffer: [owners] buffer; NO_ROW for an owner whose shard is empty.
        displacement: [owners] bytes from the buffer's start to the shard's.
        sequence: [owners] sequence to walk along, or NO_ROW.
    """

    distribution: Distribution
    tile: Column
    buffer: Column
    displacement: Column
    sequence: Column

    def owner_on_tile(self, tile_count: int) -> Column:
        """[tiles] the owner on each tile, NO_ROW where there is none."""
        owner = np.full(tile_count, NO_ROW, dtype=np.int64)
        owner[self.tile] = np.arange(len(self.tile), dtype=np.int64)
        return owner

    def at(self, owners: Column, displacement: Column | int = 0) -> AddressColumns:
        """Places in the shards of owners, so many bytes from each shard's start."""
        return AddressColumns(
            buffer=self.buffer[owners],
            displacement=self.displacement[owners] + displacement,
            sequence=self.sequence[owners],
        )


def allocate(
    build: LowBuilder,
    distribution: Distribution,
    tiles: Column,
    node: NodeId,
    *,
    role: Role = Role.TEMPORARY,
    value: ValueId = NO_VALUE,
) -> Stored:
    """Adds a buffer for each owner of a shard that holds anything.

    Args:
        build: the program.
        distribution: shards of the value.
        tiles: [owners] where they are.
        node: graph node that the buffers exist for.
        role: what they are to the host.
        value: the tensor of the host that they are shards of.
    """
    shard = distribution.shard_of_owner
    byte_count = round_up_all(distribution.storage_bytes[shard], WORD_BYTES)
    holding = np.flatnonzero(byte_count > 0)
    buffer = np.full(len(tiles), NO_ROW, dtype=np.int64)
    buffer[holding] = build.buffers(
        tile=tiles[holding],
        byte_count=byte_count[holding],
        alignment=ALIGNMENT,
        node=node,
        memory_class=distribution.format.layout.memory_class,
        role=role,
        value=value,
        shard=shard[holding] if value != NO_VALUE else 0,
    )
    return stored_in(distribution, tiles, buffer)


def stored_in(
    distribution: Distribution, tiles: Column, buffer: Column, sequence: Column | None = None
) -> Stored:
    """A value whose shards fill buffers from their starts."""
    count = len(tiles)
    return Stored(
        distribution=distribution,
        tile=np.asarray(tiles, dtype=np.int64),
        buffer=buffer,
        displacement=np.zeros(count, dtype=np.int64),
        sequence=np.full(count, NO_ROW, dtype=np.int64) if sequence is None else sequence,
    )


def scratch(
    build: LowBuilder, tiles: Column, byte_count: Column, node: NodeId, memory_class: MemoryClass
) -> Column:
    """Adds a buffer of so many bytes on each tile; NO_ROW where there are none."""
    holding = np.flatnonzero(byte_count > 0)
    buffer = np.full(len(tiles), NO_ROW, dtype=np.int64)
    buffer[holding] = build.buffers(
        tile=tiles[holding],
        byte_count=round_up_all(byte_count[holding], WORD_BYTES),
        alignment=ALIGNMENT,
        node=node,
        memory_class=memory_class,
    )
    return buffer
