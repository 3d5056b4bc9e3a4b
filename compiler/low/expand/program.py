"""A whole-device program as a low one: a walk over its operations, each expanded by its owner.

===============  =====================================================================
copy             ``low.movement``, which alone knows how values move
product, element-wise work, cast  ``calls``: the same calls on every tile, nothing moves
sum              ``reduce``: contributors are brought, stage by stage
Repeat           here: its body is expanded once
===============  =====================================================================

**Repeat.** What is carried lies in buffers that every iteration begins and ends with. The body's result is
made in them right away if nothing reads the present value any more by then, else it is copied at the end of
the body. Members of a sequence become a low sequence on each tile, along which operands walk.
"""

from collections.abc import Sequence
from typing import assert_never

import numpy as np

from compiler.errors import Unsupported
from compiler.geometry.mapping import identity
from compiler.low.build import LowBuilder
from compiler.low.expand.calls import append_local
from compiler.low.expand.reduce import append_sum
from compiler.low.expand.values import BlockStorage, store_host_value
from compiler.low.ids import NO_ROW, NodeId
from compiler.low.ir import LowProgram, Role
from compiler.low.limits import STAGE, refuse_program
from compiler.low.movement import Source, realize
from compiler.low.rewrites.cleared import with_cleared_scratch
from compiler.low.rewrites.clears import without_idle_clears
from compiler.low.rewrites.computes import with_joined_computes
from compiler.low.rewrites.phases import with_merged_phases
from compiler.low.rewrites.relays import with_relays
from compiler.low.storage import Stored, allocate, stored_in
from compiler.mid.carrying import is_free, outputs_in_place, returns_of
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    MidProgram,
    MidValueId,
    MovementPolicy,
    Repeat,
    results_of,
)
from compiler.mid.work import Sum


def expand(program: MidProgram) -> LowProgram:
    """The low program of a well-formed whole-device program.

    Construction appends what each operation needs on its own; rewrites then see all of it (AL-08). Each gives
    a program with the same results, and is described where it is.

    Raises:
        Unsupported: a movement, a kernel or a nested Repeat that does not exist; nodes are named.
        DoesNotFit: too many transfers for a tile; nodes, tile and number are named.
    """
    low = construct(program)
    refuse_program(low)
    # Clears first: what nobody needs is in the way of nothing. Relays before phases are merged: theirs may be
    # part of an earlier one. Compute steps last: merged phases leave some.
    low = with_cleared_scratch(without_idle_clears(low))
    low = with_merged_phases(with_relays(low))
    return with_joined_computes(low)


def construct(program: MidProgram) -> LowProgram:
    """The low program before any rewrite, operation by operation; raises as :func:`expand`."""
    build = LowBuilder(program.tile_count)
    block = program.block
    stored: dict[MidValueId, Stored] = {}
    for number, argument in enumerate(block.arguments):
        value = block.value(argument)
        role = Role.INPUT if number < program.input_count else Role.PARAMETER
        node = build.node(value.node or value.name)
        stored[argument] = store_host_value(build, value, value.name, role, node)
    in_place = outputs_in_place(block)
    outputs = {
        result: name
        for result, name in zip(block.results, program.outputs, strict=True)
        if result in in_place
    }
    storage = BlockStorage(build, block, stored, outputs=outputs)
    _expand_block(build, block, storage, program.tile_count)
    for result, name in zip(block.results, program.outputs, strict=True):
        if result not in outputs:
            value = block.value(result)
            node = build.node(value.node or value.name)
            end = store_host_value(build, value, name, Role.OUTPUT, node)
            _copy(build, storage[result], end, program.tile_count, value.node or value.name)
    build.require_tails()
    return build.finish()


def _expand_block(build: LowBuilder, block: Block, storage: BlockStorage, tile_count: int) -> None:
    """Appends the operations of a block."""
    for position, operation in enumerate(block.operations):
        name = operation.node or block.value(results_of(operation)[0]).name
        node = build.node(name)
        match operation:
            case Copy(parts=parts, result=result, policy=policy):
                sources = [
                    Source(stored=storage[part.source], mapping=part.mapping, start=part.region.starts)
                    for part in parts
                ]
                realize(
                    build,
                    sources,
                    storage.make(result, node),
                    policy=policy,
                    tile_count=tile_count,
                    node=node,
                    node_name=name,
                )
            case Compute(work=Sum()):
                append_sum(build, block, storage, operation, node, tile_count)
            case Compute():
                append_local(build, block, storage, operation, node)
            case Repeat():
                _expand_repeat(build, block, storage, operation, position, tile_count)
            case _:
                assert_never(operation)


def _expand_repeat(
    build: LowBuilder,
    block: Block,
    storage: BlockStorage,
    repeat: Repeat,
    position: int,
    tile_count: int,
) -> None:
    """Appends a Repeat: what is carried into its buffers, the body once, and what the body gives back."""
    name = repeat.node or block.value(repeat.results[0]).name
    node = build.node(name)
    body = repeat.body
    if any(isinstance(operation, Repeat) for operation in body.operations):
        raise Unsupported(
            f"{name} holds another Repeat",
            stage=STAGE,
            subject=name,
            next_step="unroll one of the two",
            nodes=(name,),
        )
    kinds = (len(repeat.carried), len(repeat.carried) + len(repeat.invariants))
    carried, invariants, sequences = (
        body.arguments[: kinds[0]],
        body.arguments[kinds[0] : kinds[1]],
        body.arguments[kinds[1] :],
    )
    inside: dict[MidValueId, Stored] = {}
    for argument, initial, result in zip(carried, repeat.carried, repeat.results, strict=True):
        kept = storage[initial]
        if not is_free(block, initial, position):
            kept = allocate(build, kept.distribution, kept.tile, node)
            _copy(build, storage[initial], kept, tile_count, name)
        inside[argument] = kept
        storage.put(result, kept)
    for argument, value in zip(invariants, repeat.invariants, strict=True):
        inside[argument] = storage[value]
    for argument, members in zip(sequences, repeat.sequences, strict=True):
        inside[argument] = _sequence(build, [storage[member] for member in members], node, tile_count, name)
    returns = returns_of(body, carried)
    reserved = {result: inside[argument] for argument, result in returns.in_place.items()}
    with build.repeat(repeat.count):
        own = BlockStorage(build, body, inside, reserved=reserved)
        _expand_block(build, body, own, tile_count)
        given = {argument: own[result] for argument, result in returns.copied.items()}
        for argument in returns.aside:
            aside = allocate(build, given[argument].distribution, given[argument].tile, node)
            _copy(build, given[argument], aside, tile_count, name)
            given[argument] = aside
        for argument, stored in given.items():
            _copy(build, stored, inside[argument], tile_count, name)


def _sequence(
    build: LowBuilder, members: Sequence[Stored], node: NodeId, tile_count: int, name: str
) -> Stored:
    """The first member, to be walked along from.

    A member stands at one place of one sequence. What several iterations or sequences share is there again.
    """
    apart: list[Stored] = []
    for number, member in enumerate(members):
        kept = member
        if member in members[:number] or build.is_in_sequence(member.buffer[member.buffer != NO_ROW]):
            kept = allocate(build, member.distribution, member.tile, node)
            _copy(build, member, kept, tile_count, name)
        apart.append(kept)
    members, first = apart, apart[0]
    holding = np.flatnonzero(first.buffer != NO_ROW)
    sequence = np.full(len(first.tile), NO_ROW, dtype=np.int64)
    sequence[holding] = build.sequences(np.stack([member.buffer[holding] for member in members], axis=1))
    return stored_in(first.distribution, first.tile, first.buffer, sequence)


def _copy(build: LowBuilder, source: Stored, destination: Stored, tile_count: int, name: str) -> None:
    """Appends a copy of all of a value into storage of the same kind."""
    realize(
        build,
        [Source(stored=source, mapping=identity(source.distribution.shape))],
        destination,
        policy=MovementPolicy.DIRECT,
        tile_count=tile_count,
        node=build.node(name),
        node_name=name,
    )
