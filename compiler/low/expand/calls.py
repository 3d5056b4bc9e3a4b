"""Work of tiles on their own: one or more calls on each, as the families bind them.

Products, element-wise work and casts are alike here (OI-07): the views of each call come from
``mid.local``, the binding from the family, and what is known of neither is known here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.errors import Unsupported
from compiler.kernels.contract import Binding, Refusal
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.expand.values import BlockStorage
from compiler.low.ids import NodeId
from compiler.low.ir import Column
from compiler.low.limits import STAGE
from compiler.low.padding import clear_after
from compiler.low.storage import Stored
from compiler.mid.ir import Block, Compute
from compiler.mid.local import LocalCalls, bind_all, local_calls


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CallGroup:
    """Calls of one binding, at most one on each tile.

    Args:
        binding: what is called.
        owners: [calls] owners of the result on whose tiles it is called.
        stage: which call of its owner each is.
    """

    binding: Binding
    owners: Column
    stage: int


def bound_calls(block: Block, compute: Compute) -> tuple[LocalCalls, tuple[CallGroup, ...]]:
    """The calls of a computation by stage, then by binding.

    Raises:
        Unsupported: no kernel makes one of the calls.
    """
    calls = local_calls(block, compute)
    bindings: list[Binding] = []
    for bound in bind_all(calls):
        if isinstance(bound, Refusal):
            work = type(compute.work).__name__.lower()
            raise Unsupported(
                f"no kernel does a {work} of {compute.node or block.value(compute.results[0]).name}: "
                f"{bound.reason}",
                stage=STAGE,
                subject=compute.node,
                next_step="choose another layout for its operands",
                nodes=(compute.node,),
            )
        bindings.append(bound)
    # The calls of an owner follow one another: the first of each run of equal owners is stage 0.
    first = np.searchsorted(calls.owner, calls.owner)
    stage = np.arange(len(calls.owner), dtype=np.int64) - first
    groups: list[CallGroup] = []
    for number in range(int(stage.max(initial=-1)) + 1):
        for request, binding in enumerate(bindings):
            rows = np.flatnonzero((stage == number) & (calls.request == request))
            if len(rows):
                groups.append(CallGroup(binding=binding, owners=calls.owner[rows], stage=number))
    return calls, tuple(groups)


def append_local(
    build: LowBuilder, block: Block, storage: BlockStorage, compute: Compute, node: NodeId
) -> None:
    """Appends the calls of a computation that reads nothing but its own tile."""
    _, groups = bound_calls(block, compute)
    results = [storage.make_result(compute, index, node) for index in range(len(compute.results))]
    operands = [storage[operand] for operand in compute.operands]
    step = build.compute_step()
    for group in groups:
        # An accumulating product has its partial sums as its result alone.
        reads = operands[: len(group.binding.operands)]
        tiles = results[0].tile[group.owners]
        build.calls(step, group.binding, views_on(tiles, [*results, *reads]), node)
    for index, result in enumerate(results):
        accesses = [(group.binding.results[index], group.owners) for group in groups]
        clear_after(build, result, accesses, node)


def views_on(tiles: Column, values: Sequence[Stored]) -> list[AddressColumns]:
    """The shards of values on tiles, each [tiles]."""
    tile_count = int(max(int(value.tile.max()) for value in values)) + 1
    return [value.at(value.owner_on_tile(tile_count)[tiles]) for value in values]
