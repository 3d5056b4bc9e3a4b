"""Rewrites that a built program goes through: which, in what order, and which are kept.

Every rewrite gives a well-formed program, which the verifier looks at (ML-26); it is kept when the refreshed
estimate says that it is better: it exceeds the memory of a tile less, or as little and is faster, or as fast
in fewer bytes. The order:

1. copies are composed, so that what follows sees one copy where there were two;
2. casts go to the side of copies that the options name;
3. equal copies and casts are shared, which the first two make;
4. biases are added by GELU, and GELU writes F8: both need a sum, a GELU and a cast next to each other;
5. row-major values are packed on more tiles, and sums grouped, as the options say;
6. casts take the storage of what they cast: last, because it forbids whatever would read that later.

First of all, copies of codes that nothing carries out become copies of halves: without that there is nothing
to estimate.

Behind them, tiles are mapped as the options say. Estimates cannot judge that (``planner.mappings``): it is
done when it is asked for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from compiler.errors import Unsupported
from compiler.estimate.mid import MidCost, estimate, price_of_copy
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.low.movement import Impossible
from compiler.mid.ir import Copy, MidProgram, Value
from compiler.mid.rewrites.compose_copies import compose_copies
from compiler.mid.rewrites.donate_storage import donate_storage
from compiler.mid.rewrites.fuse_bias_gelu import fuse_bias_gelu
from compiler.mid.rewrites.group_reductions import group_reductions
from compiler.mid.rewrites.map_tiles import map_tiles
from compiler.mid.rewrites.move_casts import move_casts
from compiler.mid.rewrites.pack_rows import pack_rows
from compiler.mid.rewrites.produce_f8 import produce_f8
from compiler.mid.rewrites.share_equal import share_equal
from compiler.mid.rewrites.widen_copies import widen_copies
from compiler.mid.verify import check
from compiler.planner.mappings import permutation_of
from compiler.planner.recipe import Options


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """What became of a rewrite that changed the program.

    Args:
        name: of the rewrite.
        before: cycles of a run before it, estimated; None where something has no kernel or movement.
        after: and after it.
        is_kept: whether the program is the rewritten one.
    """

    name: str
    before: int | None
    after: int | None
    is_kept: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Improved:
    """A program after its rewrites.

    Args:
        program: the program.
        cost: what it costs, estimated.
        tried: rewrites that changed anything, in order.
    """

    program: MidProgram
    cost: MidCost
    tried: tuple[Tried, ...]


def improve(program: MidProgram, options: Options) -> Improved:
    """A well-formed program after the rewrites that make it better.

    Args:
        program: as it was constructed.
        options: of the recipe.

    Raises:
        Unsupported: something of the program has no kernel or movement, after all rewrites.
    """
    cost = _cost_of(program)
    tried: list[Tried] = []
    if cost is None:
        widened = widen_copies(program, _cycles_of_copy)
        if widened is not program:
            program, cost = widened, _cost_of(check(widened))
            tried.append(Tried(name="codes copied as halves", before=None, after=_cycles(cost), is_kept=True))
    for name, rewrite in _rewrites(options):
        rewritten = rewrite(program)
        if rewritten is program:
            continue
        after = _cost_of(check(rewritten))
        is_kept = after is not None and (cost is None or _badness(after) < _badness(cost))
        tried.append(Tried(name=name, before=_cycles(cost), after=_cycles(after), is_kept=is_kept))
        if is_kept:
            program, cost = rewritten, after
    permutation = permutation_of(options.tile_mapping, program.tile_count)
    if permutation is not None:
        program = check(map_tiles(program, permutation))
    # Where something is impossible still, the estimate says what.
    return Improved(program=program, cost=estimate(program) if cost is None else cost, tried=tuple(tried))


def _rewrites(options: Options) -> Sequence[tuple[str, Callable[[MidProgram], MidProgram]]]:
    """The rewrites that the options ask for, in order."""
    chosen: list[tuple[str, Callable[[MidProgram], MidProgram]]] = [
        ("copies composed", lambda program: compose_copies(program, _cycles_of_copy)),
        (
            "casts before copies" if options.cast_before_copies else "casts behind copies",
            lambda program: move_casts(program, before=options.cast_before_copies),
        ),
        ("equal work shared", share_equal),
        ("bias added by GELU", fuse_bias_gelu),
        ("F8 written by GELU", produce_f8),
    ]
    if options.packing_rows:
        chosen.append(
            ("rows packed apart", lambda program: pack_rows(program, options.packing_rows, _cycles_of_copy))
        )
    if options.parallel_reductions:
        chosen.append(
            ("sums grouped", lambda program: group_reductions(program, options.parallel_reductions))
        )
    if options.reuse_cast_inputs:
        chosen.append(("cast storage donated", donate_storage))
    return chosen


def _cycles_of_copy(copy: Copy, sources: Sequence[Value], result: Value) -> int | None:
    price = price_of_copy(copy, sources, result)
    return None if isinstance(price, Impossible) else price.cycles


def _cost_of(program: MidProgram) -> MidCost | None:
    try:
        return estimate(program)
    except Unsupported:
        return None


def _cycles(cost: MidCost | None) -> int | None:
    return None if cost is None else cost.cycles


def _badness(cost: MidCost) -> tuple[int, int, int]:
    """Bytes of a tile too many, cycles, bytes."""
    excess = max(0, cost.bytes - DATA_BUDGET) + max(0, cost.interleaved_bytes - INTERLEAVED_BUDGET)
    return (excess, cost.cycles, cost.bytes)
