"""Bias-GELU fusion: GELU of a sum with a repeated operand becomes one element-wise operation.

Changes a sum and the GELU that alone reads it into one computation that stands where the sum stood and makes
the result of the GELU: same type, same owners. The value between goes. Where the sum had the storage of its
larger operand, the result has it if the kernel allows; it has storage of its own otherwise.

Safe because the fused kernel rounds the sum to F16 as the separate one does. Where no kernel makes the fused
call on every tile, nothing is changed.
"""

import dataclasses

from compiler.geometry.relation import Broadcast, Identity
from compiler.kernels.pointwise.binding import Operation as Pointwise
from compiler.mid.ir import Block, Compute, MidProgram, Operation, StorageAlias
from compiler.mid.rewrites.blocks import BlockEdit, Uses, bindings_of, everywhere, uses_of
from compiler.mid.work import Elementwise


def fuse_bias_gelu(program: MidProgram) -> MidProgram:
    """A well-formed program whose biases are added by the GELU that follows."""
    return everywhere(program, _fuse)


def _fuse(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        maker = _sum_before(uses, operation)
        if maker is None:
            continue
        fused = _fused(block, block.operations[maker], operation)
        if fused is not None:
            edit.put(maker, fused)
            edit.put(position)
    return edit.finish()


def _sum_before(uses: Uses, operation: Operation) -> int | None:
    """Where the sum is made that an operation, a GELU, is the only reader of."""
    match operation:
        case Compute(work=Elementwise(operation=Pointwise.GELU), operands=(total,), relations=(Identity(),)):
            return uses.makers.get(total) if uses.only_reader(total) is not None else None
        case _:
            return None


def _fused(block: Block, total: Operation, gelu: Operation) -> Compute | None:
    """The fused computation, in the best storage that a kernel takes; None when there is no such kernel."""
    if not isinstance(total, Compute) or not isinstance(gelu, Compute):
        return None
    if total.work != Elementwise(operation=Pointwise.ADD):
        return None
    whole = [isinstance(relation, Identity) for relation in total.relations]
    if sorted(whole) != [False, True] or not isinstance(total.relations[whole.index(False)], Broadcast):
        return None
    # The kernel takes the bias second; sums of F16 do not depend on the order.
    sides = (whole.index(True), whole.index(False))
    fused = Compute(
        work=Elementwise(operation=Pointwise.BIAS_GELU),
        operands=tuple(total.operands[side] for side in sides),
        relations=tuple(total.relations[side] for side in sides),
        results=gelu.results,
        node=gelu.node,
    )
    storages: list[tuple[StorageAlias, ...]] = [()]
    if StorageAlias(result=0, operand=sides[0]) in total.aliases:
        storages.insert(0, (StorageAlias(result=0, operand=0),))
    operands = [block.value(operand) for operand in fused.operands]
    for aliases in storages:
        candidate = dataclasses.replace(fused, aliases=aliases)
        if bindings_of(candidate, operands, block.value(gelu.results[0])) is not None:
            return candidate
    return None
