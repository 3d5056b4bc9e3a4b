"""The host's side of a program: which bytes travel when, through which page, and which words ask for them.

Input: a low program and its placement. A tensor of the host has a *file*: its shards one after the other,
each as it lies in memory, padding included. The host and the tiles exchange it in *batches*; in a batch every
tile moves at most one slice of at most a page, so a tile's n-th slice is in batch n (round robin).

* Page 0 holds the command word, which no program reads. Page 1 has a slot of a page for each tile that takes
  part, by rank of its physical number; every slice of a tile passes through its slot.
* Call ``initialize`` writes all parameters, once. Call ``run`` writes the inputs and collects the outputs,
  any number of times. A call's file is its tensors' files one after the other, in the order of the package.
* A tile meets the host twice for each batch, before and after the transfer. ``run`` counts all of these but
  the last: when the tiles wait there the outputs have left them, the host collects, and releasing them is the
  end of the call.
* A copy of a shard on several tiles is written to all of them, and read from the first.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from compiler.errors import Unsupported
from compiler.geometry.distribution import distribute
from compiler.low.address import Addresses
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.package.host import precision_name
from compiler.package.records import Binding, HostCall, HostExchange, HostPage, HostSlice, RegionSlice
from compiler.target.host import (
    ATTACH_ORDER,
    COMMAND_PAGE,
    DATA_PAGE,
    HOST_PAGE,
    RUN_COMMAND,
)
from compiler.target.loader import STARTUP_MARK
from compiler.target.tiles import physical_tiles
from compiler.target.units import WORD_BYTES, Address, Bytes, Int64Array, PhysicalTile, Word

STAGE: Final = "host plan"

INITIALIZE: Final = "initialize"
RUN: Final = "run"

RENDEZVOUS_PER_BATCH: Final = 2
"""Meetings of tiles and host for each batch: before the transfer and after it."""

WordTuple: TypeAlias = tuple[Word, ...]

_COMMAND_OFFSET: Final = Bytes(0)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Slices:
    """What moves in one part of a call, as columns in the order of batch, then physical tile.

    Args:
        batch: number of the batch.
        tile: physical tile.
        address: byte address on the tile.
        size: bytes, a multiple of 4, at most a page.
        file_offset: bytes from the start of the call's file.
    """

    batch: Int64Array
    tile: Int64Array
    address: Int64Array
    size: Int64Array
    file_offset: Int64Array

    @property
    def batches(self) -> int:
        """Number of batches."""
        return int(self.batch[-1]) + 1 if len(self.batch) else 0

    @property
    def batch_ends(self) -> tuple[int, ...]:
        """For each batch, the number of slices in it and all before it."""
        return tuple(np.searchsorted(self.batch, np.arange(1, self.batches + 1)).tolist())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HostPlan:
    """Everything that the host knows of a program.

    Args:
        tiles: physical tiles that take part in any transfer, ascending; the place of each is its slot.
        parameters, inputs, outputs: what moves.
        input_bindings, output_bindings, weight_bindings: tensors and where their shards are.
    """

    tiles: Int64Array
    parameters: Slices
    inputs: Slices
    outputs: Slices
    input_bindings: tuple[Binding, ...]
    output_bindings: tuple[Binding, ...]
    weight_bindings: tuple[Binding, ...]

    @property
    def rendezvous_per_run(self) -> int:
        """Meetings of tiles and host in one run of the program."""
        return RENDEZVOUS_PER_BATCH * (self.inputs.batches + self.outputs.batches)

    def slot_of(self, tile: PhysicalTile) -> int:
        """The slot of a tile that takes part."""
        return int(np.searchsorted(self.tiles, tile))

    def host_offset(self, tile: PhysicalTile) -> Bytes:
        """Where the tile's slot begins in the attached host memory: the pages follow each other."""
        return Bytes(HOST_PAGE + self.slot_of(tile) * HOST_PAGE)

    def host_exchange(self) -> HostExchange:
        """The protocol as packages state it."""
        return HostExchange(
            startup_mark=STARTUP_MARK,
            command_page=COMMAND_PAGE,
            command_offset=_COMMAND_OFFSET,
            pages=(
                HostPage(index=COMMAND_PAGE, size=HOST_PAGE),
                HostPage(index=DATA_PAGE, size=Bytes(HOST_PAGE * len(self.tiles))),
            ),
            attach_order=ATTACH_ORDER,
            calls=(
                HostCall(
                    name=INITIALIZE,
                    command=RUN_COMMAND,
                    phases=RENDEZVOUS_PER_BATCH * self.parameters.batches,
                    inputs=self._host_slices(self.parameters),
                    input_batch_ends=self.parameters.batch_ends,
                ),
                HostCall(
                    name=RUN,
                    command=RUN_COMMAND,
                    phases=max(0, self.rendezvous_per_run - 1),
                    inputs=self._host_slices(self.inputs),
                    outputs=self._host_slices(self.outputs),
                    input_batch_ends=self.inputs.batch_ends,
                    output_batch_ends=self.outputs.batch_ends,
                ),
            ),
        )

    def _host_slices(self, slices: Slices) -> tuple[HostSlice, ...]:
        slots = np.searchsorted(self.tiles, slices.tile) * HOST_PAGE
        return tuple(
            HostSlice(
                page=DATA_PAGE, page_offset=Bytes(slot), file_offset=Bytes(file_offset), size=Bytes(size)
            )
            for slot, file_offset, size in zip(
                slots.tolist(), slices.file_offset.tolist(), slices.size.tolist(), strict=True
            )
        )


def plan_host(program: LowProgram, placement: Addresses) -> HostPlan:
    """The host plan of a placed program.

    Raises:
        Unsupported: a shard is not made of whole words.
        ValueError: a shard has no buffer, or a buffer of another size.
    """
    weights, parameters = _section(program, placement, Role.PARAMETER)
    sources, inputs = _section(program, placement, Role.INPUT)
    results, outputs = _section(program, placement, Role.OUTPUT)
    return HostPlan(
        tiles=np.unique(np.concatenate([parameters.tile, inputs.tile, outputs.tile])),
        parameters=parameters,
        inputs=inputs,
        outputs=outputs,
        input_bindings=sources,
        output_bindings=results,
        weight_bindings=weights,
    )


def _section(program: LowProgram, placement: Addresses, role: Role) -> tuple[tuple[Binding, ...], Slices]:
    """Bindings of the tensors of a role, and their bytes cut into slices."""
    bindings: list[Binding] = []
    moved: list[Int64Array] = []
    start = 0
    for number, value in enumerate(program.values):
        if value.role is not role:
            continue
        shards, file_size = _shards(program, placement, number, value)
        bindings.append(
            Binding(
                name=value.name,
                dtype=precision_name(value.format.precision),
                shape=value.shape,
                slices=tuple(
                    RegionSlice(
                        tile=PhysicalTile(tile),
                        tile_address=Address(address),
                        file_offset=Bytes(offset),
                        size=Bytes(size),
                    )
                    for tile, address, offset, size in shards.tolist()
                ),
            )
        )
        if role is Role.OUTPUT:
            # Copies of a shard hold the same bytes.
            shards = shards[np.unique(shards[:, 2], return_index=True)[1]]
        moved.append(shards + np.array([0, 0, start, 0], dtype=np.int64))
        start += file_size
    return tuple(bindings), _cut(np.concatenate(moved) if moved else np.zeros((0, 4), dtype=np.int64))


def _shards(
    program: LowProgram, placement: Addresses, number: int, value: HostValue
) -> tuple[Int64Array, int]:
    """(physical tile, address, file offset, bytes) of each copy of each shard, and the bytes of the file."""
    sizes = distribute(value.shape, value.format).storage_bytes
    offsets = np.cumsum(sizes) - sizes
    rows = np.flatnonzero(program.buffers.value == number)
    shard = program.buffers.shard[rows]
    if missing := np.setdiff1d(np.flatnonzero(sizes), shard).tolist():
        raise ValueError(f"shard {missing[0]} of {value.name} has no buffer")
    address = placement.address[rows]
    if (sizes % WORD_BYTES).any() or (address % WORD_BYTES).any():
        raise Unsupported(
            f"a shard is not made of whole words of {WORD_BYTES} bytes, in which the host exchanges data",
            stage=STAGE,
            subject=value.name,
            next_step="pad its last axis, or cut it elsewhere",
        )
    if (program.buffers.byte_count[rows] != sizes[shard]).any():
        raise ValueError(f"a buffer of {value.name} has not the size of its shard")
    columns = (physical_tiles(program.buffers.tile[rows]), address, offsets[shard], sizes[shard])
    table = np.stack(columns, axis=1)
    # Shard by shard; empty shards have no bytes to move.
    ordered = table[np.lexsort((table[:, 0], shard))]
    return ordered[ordered[:, 3] > 0], int(sizes.sum())


def _cut(shards: Int64Array) -> Slices:
    """Slices of at most a page, and for each the batch in which its tile's turn comes."""
    pieces = -(-shards[:, 3] // HOST_PAGE)
    whole = np.repeat(shards, pieces, axis=0)
    ends = np.cumsum(pieces)
    skipped = (np.arange(len(whole)) - np.repeat(ends - pieces, pieces)) * HOST_PAGE
    order = np.argsort(whole[:, 0], kind="stable")
    tile = whole[order, 0]
    turn = np.zeros(len(whole), dtype=np.int64)
    turn[order] = np.arange(len(whole)) - np.searchsorted(tile, tile)
    by_batch = np.lexsort((whole[:, 0], turn))
    return Slices(
        batch=turn[by_batch],
        tile=whole[by_batch, 0],
        address=(whole[:, 1] + skipped)[by_batch],
        size=np.minimum(whole[:, 3] - skipped, HOST_PAGE)[by_batch],
        file_offset=(whole[:, 2] + skipped)[by_batch],
    )
