"""Sums of partials: contributors, stages, and the calls that fold them (RD-04, RD-11).

Every owner of the result gets the others' pieces of its shard into a stack, partials ascending, and folds the
stack onto the first partial (``mid.local`` says which that is and whether it can stay where it lies). With
``batch`` the stack holds that many partials at a time and is used again: an exchange and a call for each.

The pieces are a redistribution like any other, of the partials into a value whose shards are whole stacks:
the result's tiling with the partials axis in front, not cut. A piece's place in its stack leaves out the
first partial, which is not sent there.

**Padding travels.** What the kernel folds is storage, padding included, and it is zero on either side: where
both sides pad an axis at its end, that padding is sent as if it were elements. Whole panels are then whole
runs, where the elements alone would be a crumb of each panel row, and less is left to be cleared.
"""

import dataclasses
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.errors import Unsupported
from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import MemoryClass, TensorFormat
from compiler.geometry.mapping import identity
from compiler.geometry.redistribution import Redistribution, redistribute
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.deliveries import Mask, append_transfers, local_pairs, part_of, phase_loads
from compiler.low.expand.calls import CallGroup, bound_calls
from compiler.low.expand.values import BlockStorage
from compiler.low.ids import NO_ROW, NodeId, StepId
from compiler.low.ir import Column
from compiler.low.limits import STAGE, refuse_phase
from compiler.low.movement import Impossible, add_copies, append_kept, copy_pairs
from compiler.low.padding import clear_before, has_padding
from compiler.low.storage import Stored, scratch, stored_in
from compiler.mid.ir import Block, Compute
from compiler.mid.local import LocalCalls
from compiler.mid.shards import NO_PARTIAL
from compiler.target.units import WORD_BYTES, Cycles


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fetch:
    """What a sum brings, by piece: partial p of owner o of the result is piece p * owners + o.

    The first partial of an owner stays where it lies if it can be summed from there, is copied where its tile
    holds it in another form, and is brought where other tiles hold it.

    Args:
        pieces: the partials as pieces of the result's shards.
        facts: from the partials to the pieces.
        owner: [pieces] owner of the result.
        slot: [pieces] its place among the owner's partials without the first.
        is_seed: [pieces] whether it is the first.
        is_left: [pieces] whether it stays where it lies.
        is_copied: [pieces] whether it is copied on its tile.
        batch: pieces that are brought to an owner at a time.
    """

    pieces: Distribution
    facts: Redistribution
    owner: Column
    slot: Column
    is_seed: Mask
    is_left: Mask
    is_copied: Mask
    batch: int

    @property
    def receiver(self) -> Column:
        """[pairs] the piece that each pair fills."""
        return self.pieces.owners[self.facts.destination_shard][:, 0]

    def wanted(self, stage: int) -> Mask:
        """[pairs, 1] what is sent in a stage."""
        is_wanted = ~self.is_seed & (self.slot // self.batch == stage)
        if stage == 0:
            is_wanted |= self.is_seed & ~self.is_left & ~self.is_copied
        return is_wanted[self.receiver][:, None]

    @property
    def stages(self) -> int:
        """How many there are."""
        return int(self.slot.max()) // self.batch + 1


def _fetch(partials: Stored, result: Stored, calls: LocalCalls, batch: int) -> _Fetch | Impossible:
    """What a sum brings; or why it cannot: stacks hold boxes, and an exchange moves whole words."""
    if calls.own_partial is None or calls.is_in_place is None:
        raise ValueError("these are not the calls of a sum")
    if not isinstance(result.distribution.format.layout.tiling, GridTiling):
        return Impossible(reason="the shards of the result are runs of storage, not boxes")
    pieces = _pieces(result.distribution.format, partials.distribution)
    sent, pieces = _with_padding(partials.distribution, pieces)
    facts = redistribute(sent, pieces, identity(pieces.shape))
    partial, owner = np.divmod(np.arange(pieces.owner_count, dtype=np.int64), len(result.tile))
    first = np.maximum(calls.own_partial, 0)[owner]
    is_seed = partial == first
    is_left = is_seed & calls.is_in_place[owner]
    fetched = _Fetch(
        pieces=pieces,
        facts=facts,
        owner=owner,
        slot=partial - (partial >= first),
        is_seed=is_seed,
        is_left=is_left,
        is_copied=is_seed & ~is_left & (calls.own_partial[owner] != NO_PARTIAL),
        batch=batch,
    )
    is_brought = ~fetched.is_left & ~fetched.is_copied
    if (facts.alignments[is_brought[fetched.receiver]] % WORD_BYTES).any():
        return Impossible(reason="runs of partials are not whole words")
    return fetched


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FetchPrice:
    """What a sum takes before and between its calls, estimated.

    Args:
        copied: [tiles] cycles in which first partials are copied to where they are summed.
        stages: of the phases by which the others are brought.
    """

    copied: Column
    stages: tuple[Cycles, ...]


def price_of_fetch(
    partials: Stored, result: Stored, calls: LocalCalls, batch: int, tile_count: int
) -> FetchPrice | Impossible:
    """What bringing partials takes, without building it; or why it cannot be done.

    Args:
        partials: the operand.
        result: the result.
        calls: the calls of the sum.
        batch: partials that are brought at a time.
        tile_count: tiles of the build.
    """
    fetched = _fetch(partials, result, calls, batch)
    if isinstance(fetched, Impossible):
        return fetched
    places = stored_in(
        fetched.pieces, result.tile[fetched.owner], np.full(len(fetched.owner), NO_ROW, dtype=np.int64)
    )
    copied = np.zeros(tile_count, dtype=np.int64)
    pairs = _local(fetched.facts, partials, places, fetched.is_copied[fetched.receiver], tile_count)
    refusal = add_copies(copied, fetched.facts, pairs, places)
    if refusal is not None:
        return refusal
    return FetchPrice(
        copied=copied,
        stages=tuple(
            phase_loads(
                [part_of(fetched.facts, partials, places, tile_count, fetched.wanted(stage))],
                places,
                tile_count,
            ).cycles
            for stage in range(fetched.stages)
        ),
    )


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
        Unsupported: no kernel makes one of the calls, partials are cut inside of words, or the result is not
            cut by a grid.
        DoesNotFit: too many transfers for a tile.
    """
    partials = storage[compute.operands[0]]
    calls, groups = bound_calls(block, compute)
    result = storage.make(compute.results[0], node)
    batch = _batch(groups)
    fetched = _fetch(partials, result, calls, batch)
    if isinstance(fetched, Impossible):
        raise Unsupported(
            f"nothing brings the partials of the sum of {compute.node}: {fetched.reason}",
            stage=STAGE,
            subject=compute.node,
            next_step="choose another layout for its result",
            nodes=(compute.node,),
        )
    pieces, slot, owner = fetched.pieces, fetched.slot, fetched.owner
    piece_bytes = result.distribution.storage_bytes[result.distribution.shard_of_owner]
    stack = scratch(build, result.tile, piece_bytes * batch, node, MemoryClass.STANDARD)
    places = Stored(
        distribution=pieces,
        tile=result.tile[owner],
        buffer=np.where(fetched.is_seed, result.buffer[owner], stack[owner]),
        displacement=np.where(fetched.is_seed, result.displacement[owner], slot % batch * piece_bytes[owner]),
        sequence=np.where(fetched.is_seed, result.sequence[owner], NO_ROW),
    )
    if has_padding(pieces):
        is_used = ~fetched.is_left & (fetched.is_seed | (slot < batch))
        clear_before(build, build.compute_step(), places, node, is_used)
    receiver = fetched.receiver
    copied = _local(fetched.facts, partials, places, fetched.is_copied[receiver], tile_count)
    if len(copied):
        copy_pairs(build, build.compute_step(), fetched.facts, partials, places, tile_count, node, copied)
    for stage in range(max(group.stage for group in groups) + 1):
        part = part_of(fetched.facts, partials, places, tile_count, fetched.wanted(stage))
        refuse_phase(phase_loads([part], places, tile_count), compute.node)
        append_transfers(build, build.exchange_step(), part, places, node)
        append_kept(build, [part], places, tile_count, node)
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


def _with_padding(sent: Distribution, pieces: Distribution) -> tuple[Distribution, Distribution]:
    """Both sides with the padding at the end of an axis, as far as both have it, as elements.

    They are as they were where more elements would be cut differently.
    """
    ends = [
        tuple(
            int(end)
            for end in (
                one.origins + np.array([m.extents for m in one.index_maps], dtype=np.int64)[one.shard_map]
            ).max(axis=0)
        )
        for one in (sent, pieces)
    ]
    shape = tuple(map(min, *ends))
    wide = [distribute(shape, one.format) for one in (sent, pieces)]
    for one, narrow in zip(wide, (sent, pieces), strict=True):
        if one.index_maps != narrow.index_maps or any(
            not np.array_equal(getattr(one, column), getattr(narrow, column))
            for column in ("shard_map", "origins", "storage_elements")
        ):
            return sent, pieces
    return wide[0], wide[1]


def _local(
    facts: Redistribution, source: Stored, destination: Stored, is_wanted: Mask, tile_count: int
) -> Column:
    """Of the wanted pairs, those whose source shard is on the receiving tile."""
    return np.flatnonzero(local_pairs(facts, source, destination, tile_count)[:, 0] & is_wanted).astype(
        np.int64
    )
