"""Grouping of reductions: independent sums one behind the other, on tiles of their own.

Sums that do not depend on one another are brought together where the last of them stands, and what they make
is put on disjoint tiles: an owner on a tile that an earlier sum of the group has goes to one that none has.
What follows locally on the same tiles (element-wise work, casts, the biases that are read beside) goes with
it. So the work behind the sums runs side by side, where the next exchange would have kept it apart.

Changes the order of operations and owner maps: of sums of a group, of what is computed from them where they
are, of copies and, outside of bodies, of arguments that nothing else reads. Formats stay.

Safe because values keep their shards, and everything that reads them on its own tile moves with them; copies
and sums fetch from wherever values are. Operations are reordered only where each value is still read before
its storage is taken. A sum begins with what its tile holds (RD-01): where an owner moves, its partials may be
added in another order, so the last bit of its elements may change. Types of what a body is given and gives
stay: there, such a sum stays where it is.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from compiler.geometry.owners import OwnerMap, TileId
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Value, operands_of, results_of
from compiler.mid.rewrites.blocks import BlockEdit, Uses, uses_of, with_bodies
from compiler.mid.work import Cast, Elementwise, Sum

Renaming = npt.NDArray[np.int64]
"""[tiles] the tile that takes the place of each."""


def group_reductions(program: MidProgram, most: int) -> MidProgram:
    """A program whose independent sums work side by side.

    Args:
        program: well formed.
        most: sums of a group.

    Raises:
        ValueError: a group has fewer than two.
    """
    if most < 2:
        raise ValueError(f"{most} sums are no group")
    block = with_bodies(program.block, lambda body: _in_body(body, most))
    block = _grouped(block, most, is_whole=True)
    return program if block is program.block else dataclasses.replace(program, block=block)


def _in_body(block: Block, most: int) -> Block:
    return _grouped(with_bodies(block, lambda body: _in_body(body, most)), most, is_whole=False)


def _grouped(block: Block, most: int, *, is_whole: bool) -> Block:
    """A block with its groups formed from the first sum on, each as large as it can be."""
    done: set[str] = set()
    while True:
        sums = [
            position
            for position, operation in enumerate(block.operations)
            if isinstance(operation, Compute)
            and isinstance(operation.work, Sum)
            and block.value(operation.results[0]).name not in done
        ]
        if not sums:
            return block
        members, arranged = [sums[0]], block
        for position in sums[1:]:
            if len(members) < most:
                larger = _arranged(block, [*members, position], is_whole=is_whole)
                if larger is not None:
                    members, arranged = [*members, position], larger
        done.update(_sum_result(block, position).name for position in members)
        block = arranged


def _sum_result(block: Block, position: int) -> Value:
    (result,) = results_of(block.operations[position])
    return block.value(result)


def _arranged(block: Block, members: Sequence[int], *, is_whole: bool) -> Block | None:
    """The block with some sums as a group; None where they cannot be one."""
    uses = uses_of(block)
    order = _together(block, uses, members)
    if order is None:
        return None
    edit = BlockEdit(block)
    tile_count = _sum_result(block, members[0]).owners.tile_count
    is_taken = np.zeros(tile_count, dtype=np.bool_)
    is_moved = False
    for position in members:
        result = _sum_result(block, position)
        tiles = result.owners.tiles(result.distribution.owner_count).astype(np.int64)
        renaming = _renaming(tiles, is_taken)
        if renaming is None:
            return None
        if is_taken[tiles].any():
            following = _following(block, uses, position, is_whole=is_whole)
            if following is None:
                return None
            for number in following:
                edit.retype(number, _moved(block.value(number), renaming))
            is_moved = True
        is_taken[renaming[tiles]] = True
    is_in_order = order == sorted(order)
    return block if is_in_order and not is_moved else edit.finish(order)


def _together(block: Block, uses: Uses, members: Sequence[int]) -> list[int] | None:
    """Positions in an order with the members adjacent; None where they depend on one another."""
    made = {result for position in members for result in results_of(block.operations[position])}
    last = max(members)
    before: list[int] = []
    behind: list[int] = []
    for position, operation in enumerate(block.operations[: last + 1]):
        depends = not made.isdisjoint(operands_of(operation))
        if position in members:
            if depends:
                return None
        elif depends:
            behind.append(position)
            made.update(results_of(operation))
        else:
            before.append(position)
    order = [*before, *members, *behind, *range(last + 1, len(block.operations))]
    place = {position: index for index, position in enumerate(order)}
    for value, taker in uses.takers.items():
        if any(place.get(reader, len(order)) > place[taker] for reader in uses.readers[value]):
            return None
    return order


def _renaming(tiles: npt.NDArray[np.int64], is_taken: npt.NDArray[np.bool_]) -> Renaming | None:
    """Which tiles change places so that a value on ``tiles`` is on none that is taken."""
    is_free = ~is_taken
    is_free[tiles] = False
    away, free = tiles[is_taken[tiles]], np.flatnonzero(is_free)
    if len(free) < len(away):
        return None
    renaming = np.arange(len(is_taken), dtype=np.int64)
    renaming[away], renaming[free[: len(away)]] = free[: len(away)], away
    return renaming


def _following(block: Block, uses: Uses, position: int, *, is_whole: bool) -> list[MidValueId] | None:
    """The values that must be where a sum is; None where one of them cannot be moved."""
    followers = list(results_of(block.operations[position]))
    beside: list[MidValueId] = []
    within: set[int] = set()
    for number in followers:
        for reader in uses.readers[number]:
            if reader == len(block.operations):
                if not is_whole:
                    return None
                continue
            operation = block.operations[reader]
            match operation:
                case Copy() | Compute(work=Sum()):
                    continue
                case Compute(work=Elementwise() | Cast(), operands=operands, results=results):
                    within.add(reader)
                    followers += [result for result in results if result not in followers]
                    beside += operands
                case _:
                    return None
    companions = [number for number in dict.fromkeys(beside) if number not in followers]
    for number in companions:
        maker = uses.makers.get(number)
        is_brought = is_whole if maker is None else isinstance(block.operations[maker], Copy)
        if not is_brought or not within.issuperset(uses.readers[number]):
            return None
    return [*followers, *companions]


def _moved(value: Value, renaming: Renaming) -> Value:
    """A value whose owners have new tiles."""
    tiles = renaming[value.owners.tiles(value.distribution.owner_count)]
    return dataclasses.replace(
        value,
        owners=OwnerMap(
            tile_count=value.owners.tile_count, embedding=tuple(TileId(int(tile)) for tile in tiles)
        ),
    )
