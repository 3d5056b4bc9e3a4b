"""Sums of partials: contributors, stages, and the calls that fold them (RD-04, RD-11).

Every owner of the result gets the others' pieces of its shard into a stack, partials ascending, and folds the
stack onto the first partial (``mid.local`` says which that is and whether it can stay where it lies). With
``batch`` the stack holds that many partials at a time and is used again: an exchange and a call for each.

The pieces are a redistribution like any other, of the partials into a value whose shards are whole stacks:
the result's tiling with the partials axis in front, not cut. A piece's place in its stack leaves out the
first partial, which is not sent there.
"""

import dataclasses

import numpy as np

from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import MemoryClass, TensorFormat
from compiler.geometry.mapping import identity
from compiler.geometry.redistribution import Redistribution, redistribute
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.deliveries import Mask, append_transfers, deliveries, local_pairs
from compiler.low.expand.calls import CallGroup, bound_calls
from compiler.low.expand.values import BlockStorage
from compiler.low.ids import NodeId, StepId
from compiler.low.ir import Column
from compiler.low.movement import clear_padding, copy_pairs, has_padding
from compiler.low.storage import Stored, scratch
from compiler.mid.ir import Block, Compute
from compiler.mid.local import NO_PARTIAL


def append_sum(
    build: LowBuilder,
    block: Block,
    storage: BlockStorage,
    compute: Compute,
    node: NodeId,
    tile_count: int,
) -> None:
    """Appends a sum: what is brought where, and the calls, stage by stage.

    Raises:
        Unsupported: no kernel makes one of the calls.
        ValueError: the result is not cut by a grid.
    """
    partials, value = storage[compute.operands[0]], block.value(compute.results[0])
    calls, groups = bound_calls(block, compute)
    if calls.own_partial is None or calls.is_in_place is None:
        raise ValueError("these are not the calls of a sum")
    result = storage.make(compute.results[0], node)
    pieces = _pieces(value.format, partials.distribution)
    facts = redistribute(partials.distribution, pieces, identity(pieces.shape))
    count = len(result.tile)
    partial, owner = np.divmod(np.arange(pieces.owner_count, dtype=np.int64), count)
    first = np.maximum(calls.own_partial, 0)[owner]
    is_seed = partial == first
    slot = partial - (partial > first)
    batch = _batch(groups)
    piece_bytes = result.distribution.storage_bytes[result.distribution.shard_of_owner]
    stack = scratch(build, result.tile, piece_bytes * batch, node, MemoryClass.STANDARD)
    places = Stored(
        distribution=pieces,
        tile=result.tile[owner],
        buffer=np.where(is_seed, result.buffer[owner], stack[owner]),
        displacement=np.where(is_seed, result.displacement[owner], slot % batch * piece_bytes[owner]),
        sequence=np.where(is_seed, result.sequence[owner], -1),
    )
    # What the first partial of an owner needs: nothing where it is summed from its place, a copy where its
    # tile holds it in another form, and delivery where other tiles hold it.
    is_left = is_seed & calls.is_in_place[owner]
    is_copied = is_seed & ~is_left & (calls.own_partial[owner] != NO_PARTIAL)
    if has_padding(pieces):
        clear_padding(build, build.compute_step(), places, node, ~is_left & (is_seed | (slot < batch)))
    receiver = pieces.owners[facts.destination_shard][:, 0]
    copied = _local(facts, partials, places, is_copied[receiver], tile_count)
    if len(copied):
        copy_pairs(build, build.compute_step(), facts, partials, places, tile_count, node, copied)
    for stage in range(max(group.stage for group in groups) + 1):
        is_wanted = ~is_seed & (slot // batch == stage)
        if stage == 0:
            is_wanted |= is_seed & ~is_left & ~is_copied
        sent = deliveries(facts, partials, places, wanted=is_wanted[receiver][:, None])
        append_transfers(build, build.exchange_step(), sent, partials, places, node)
        step = build.compute_step()
        for group in groups:
            if group.stage == stage:
                _append_calls(build, step, group, result, partials, stack, tile_count, node)


def _append_calls(
    build: LowBuilder,
    step: StepId,
    group: CallGroup,
    result: Stored,
    partials: Stored,
    stack: Column,
    tile_count: int,
    node: NodeId,
) -> None:
    """Result, seed and stack of each call; the seed is the result, or the partial of the owner's tile."""
    ends = result.at(group.owners)
    seed = ends
    if not group.binding.aliases:
        seed = partials.at(partials.owner_on_tile(tile_count)[result.tile[group.owners]])
    build.calls(step, group.binding, [ends, seed, AddressColumns(buffer=stack[group.owners])], node)


def _batch(groups: tuple[CallGroup, ...]) -> int:
    """Partials that a stack holds: what the first calls add, the most of any."""
    counts = [
        group.binding.parameters.partials
        for group in groups
        if isinstance(group.binding.parameters, ReduceParameters)
    ]
    return max(counts)


def _pieces(tensor_format: TensorFormat, partials: Distribution) -> Distribution:
    """The partials as pieces of the result's shards: owner p * owners + o is partial p of owner o.

    Raises:
        ValueError: the result is not cut by a grid, or has replicas.
    """
    tiling = tensor_format.layout.tiling
    rank = len(partials.shape)
    if not isinstance(tiling, GridTiling) or tiling.replicas != 1:
        raise ValueError("the result of a sum is cut by a grid without replicas")
    axes = (
        AxisTiling(axis=0, partitions=partials.shape[0]),
        *(dataclasses.replace(cut, axis=cut.axis % (rank - 1) + 1) for cut in tiling.axes),
    )
    layout = dataclasses.replace(tensor_format.layout, tiling=GridTiling(axes=axes))
    return distribute(partials.shape, TensorFormat(precision=tensor_format.precision, layout=layout))


def _local(
    facts: Redistribution, source: Stored, destination: Stored, is_wanted: Mask, tile_count: int
) -> Column:
    """Of the wanted pairs, those whose source shard is on the receiving tile."""
    return np.flatnonzero(local_pairs(facts, source, destination, tile_count)[:, 0] & is_wanted).astype(
        np.int64
    )
