"""Rewrites of whole-device programs: well formed, bindable, the same bits, and done where they can be."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from compiler.estimate.mid import estimate
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16
from compiler.geometry.views import broadcast, merge, transpose
from compiler.kernels.pointwise.binding import Operation
from compiler.mid.build import BlockBuilder
from compiler.mid.interpret import interpret
from compiler.mid.ir import Compute, MidProgram, Value
from compiler.mid.parser import parse_program
from compiler.mid.rewrites.compose_copies import compose_copies
from compiler.mid.rewrites.donate_storage import donate_storage
from compiler.mid.rewrites.fuse_bias_gelu import fuse_bias_gelu
from compiler.mid.rewrites.group_reductions import group_reductions
from compiler.mid.rewrites.move_casts import move_casts
from compiler.mid.rewrites.pack_rows import pack_rows
from compiler.mid.rewrites.produce_f8 import produce_f8
from compiler.mid.rewrites.share_equal import share_equal
from compiler.mid.rewrites.widen_copies import widen_copies
from compiler.mid.text import text_of_program
from compiler.mid.verify import verify
from compiler.mid.work import Cast, Elementwise
from compiler.planner.layouts import row_format
from tests.mid.dense import evaluate
from tests.mid.products import grid_format
from tests.mid.rewriting import (
    CODES,
    cast,
    cast_far_away,
    chains,
    cheap_packing,
    check_on_tiles,
    check_rewritten,
    copied_twice,
    copies_of,
    cycles_of_copy,
    donors,
    finished,
    free_copy,
    groups_of,
    impossible_copy,
    one_chain,
    only_halves,
    precisions_of_copies,
    refusals,
    row_copies,
    seeds,
    tiles_of_result,
    two_reductions,
    views_of_views,
    with_fewer_outputs,
    works_of,
)
from tests.mid.strategies import tensors_of

Rewrite = Callable[[MidProgram], MidProgram]

EXACT: dict[str, Rewrite] = {
    "compose": partial(compose_copies, price=free_copy),
    "casts before": partial(move_casts, before=True),
    "casts behind": partial(move_casts, before=False),
    "share": share_equal,
    "bias": fuse_bias_gelu,
    "F8": produce_f8,
    "pack": partial(pack_rows, rows=32, price=cheap_packing),
    "donate": donate_storage,
    "widen": partial(widen_copies, price=only_halves),
}
"""Rewrites that change no bit."""


@given(
    made=st.one_of(with_fewer_outputs(), chains(), copied_twice(), views_of_views()),
    names=st.lists(st.sampled_from(sorted(EXACT)), min_size=1, max_size=4, unique=True),
    seed=seeds(),
)
def test_rewrites_change_no_bit(made: MidProgram, names: list[str], seed: int) -> None:
    """ML-23, ML-26, PR-07, RP-06: in any order, on any program, bodies included."""
    for name in names:
        after = check_rewritten(made, EXACT[name], seed)
        event(f"{name}: {'changed' if after is not made else 'nothing to do'}")
        made = after


@given(made=st.one_of(views_of_views(), with_fewer_outputs()), seed=seeds())
def test_copies_are_composed_where_that_costs_no_more(made: MidProgram, seed: int) -> None:
    """ML-21, ML-22, ML-23: there are never more copies, and prices decide."""
    after = check_rewritten(made, partial(compose_copies, price=cycles_of_copy), seed)
    assert copies_of(after) <= copies_of(made)
    assert compose_copies(made, impossible_copy) is made


@given(made=chains(), seed=seeds())
def test_biases_and_f8_become_one_operation(made: MidProgram, seed: int) -> None:
    """KB-11, KB-14: where families bind it and nobody else reads what is between."""
    fused = check_rewritten(made, fuse_bias_gelu, seed)
    after = check_rewritten(fused, produce_f8, seed)
    event(f"{len(works_of(made))} computations become {len(works_of(fused))}, then {len(works_of(after))}")
    for works in (works_of(fused), works_of(after)):
        assert len(works) <= len(works_of(made))


def test_a_bias_a_gelu_and_a_cast_are_one_kernel() -> None:
    """All three in one call where the layouts allow it, as products leave their sums."""
    after = produce_f8(fuse_bias_gelu(one_chain()))
    assert works_of(after) == [Elementwise(operation=Operation.BIAS_GELU)]
    (result,) = after.block.results
    assert after.block.value(result).format.precision == CODES


@given(made=st.one_of(chains(), with_fewer_outputs(), copied_twice()), seed=seeds(), before=st.booleans())
def test_casts_move_past_copies(made: MidProgram, seed: int, before: bool) -> None:
    """ML-14, ML-16, OI-03: to the other side and back, the same numbers."""
    there = check_rewritten(made, partial(move_casts, before=before), seed)
    event(f"{'before' if before else 'behind'}: {'moved' if there is not made else 'nothing to do'}")
    check_rewritten(there, partial(move_casts, before=not before), seed)


def test_a_cast_moves_to_the_producer_and_back() -> None:
    """The copy between moves F8 in one case and F16 in the other."""
    far = cast_far_away()
    assert precisions_of_copies(far) == [F16()]
    near = move_casts(far, before=True)
    assert precisions_of_copies(near) == [CODES]
    back = move_casts(near, before=False)
    assert precisions_of_copies(back) == [F16()]


def test_a_cast_moves_past_a_copy_to_fewer_axes() -> None:
    """ML-14: the cast before the copy has the axes of what is copied."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=4)
    tensor_format = grid_format(RowMajor())
    x = builder.argument(Value(name="x", shape=(2, 8, 32), format=tensor_format, owners=owners))
    flat = builder.copy(x, tensor_format=tensor_format, owners=owners, mapping=merge((2, 8, 32), 0, 2))
    made = finished(builder, [cast(builder, flat)], 4)
    moved = check_rewritten(made, partial(move_casts, before=True), 3)
    assert precisions_of_copies(moved) == [CODES]


@given(width=st.integers(1, 40), rows=st.integers(1, 9), scale=st.integers(-20, 20), seed=seeds())
def test_codes_at_odd_places_are_copied_as_halves(width: int, rows: int, scale: int, seed: int) -> None:
    """ML-16, MG-08: to the same codes; a scale whose codes are no halves is left as it is."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=4)
    codes = F8(scale_exponent=scale)
    x = builder.argument(
        Value(name="x", shape=(rows, width), format=row_format((rows, width), codes, 4), owners=owners)
    )
    turned = builder.copy(
        x,
        tensor_format=row_format((width, rows), codes, 4),
        owners=owners,
        mapping=transpose((rows, width), (1, 0)),
    )
    made = finished(builder, [turned], 4)
    after = check_rewritten(made, partial(widen_copies, price=cycles_of_copy), seed)
    event("widened" if after is not made else "left")
    # Codes are multiples of 2^-10 up to 240; halves are multiples of 2^-24 up to 65,504.
    kept = -14 <= scale <= 8
    if not kept:
        assert after is made
    else:
        assert estimate(after).bytes > 0
        check_on_tiles(after, seed)


@given(made=copied_twice(), seed=seeds())
def test_equal_work_is_done_once(made: MidProgram, seed: int) -> None:
    """PR-07: no two copies that nobody holds apart are equal afterwards."""
    after = check_rewritten(made, share_equal, seed)
    assert copies_of(after) <= copies_of(made)
    event(f"{copies_of(made) - copies_of(after)} copies shared")
    assert share_equal(after) is after


@given(made=donors(), seed=seeds())
def test_casts_take_the_storage_of_what_they_cast(made: MidProgram, seed: int) -> None:
    """KB-15, RP-06: on bytes, kernels leave the same codes, and no argument's storage is taken."""
    after = check_rewritten(made, donate_storage, seed)
    taken = [
        operation.operands[0]
        for operation in after.block.operations
        if isinstance(operation, Compute) and isinstance(operation.work, Cast) and operation.aliases
    ]
    assert not set(taken) & set(after.block.arguments)
    event("donated" if taken else "nothing to do")
    if taken:
        assert estimate(after).bytes <= estimate(made).bytes
        check_on_tiles(after, seed)


@given(made=two_reductions(), most=st.integers(2, 4), seed=seeds())
def test_independent_sums_are_grouped_on_tiles_of_their_own(made: MidProgram, most: int, seed: int) -> None:
    """ML-33, RD-01, PR-07: adjacent, disjoint, and the sums that the program now says."""
    after = group_reductions(made, most)
    assert verify(after) == ()
    assert refusals(after) == refusals(made)
    tensors = tensors_of(made, seed)
    found, wanted, before = interpret(after, tensors), evaluate(after, tensors), interpret(made, tensors)
    for name, array in wanted.items():
        assert found[name].tobytes() == array.tobytes()
        assert np.allclose(
            found[name].astype(np.float64), before[name].astype(np.float64), rtol=2**-7, atol=2**-5
        )
    for group in groups_of(after):
        tiles = [tile for result in group[:most] for tile in tiles_of_result(after, result)]
        if len(group) == 1 or len(group) > most:
            continue
        event(f"a group of {len(group)}")
        assert len(set(tiles)) == len(tiles)


@given(made=row_copies(), rows=st.sampled_from([32, 64, 128, 256]), seed=seeds())
def test_rows_are_packed_on_more_tiles_where_that_pays(made: MidProgram, rows: int, seed: int) -> None:
    """PR-04: two copies instead of one, and the estimate drops."""
    after = check_rewritten(made, partial(pack_rows, rows=rows, price=cycles_of_copy), seed)
    event("packed" if after is not made else "nothing to do")
    if after is not made:
        assert estimate(after).cycles < estimate(made).cycles


def test_what_is_no_number_of_rows_or_sums_is_refused() -> None:
    with pytest.raises(ValueError, match="0 rows"):
        pack_rows(one_chain(), 0, free_copy)
    with pytest.raises(ValueError, match="1 sums"):
        group_reductions(one_chain(), 1)


def test_lent_storage_grows_by_the_distance() -> None:
    """PR-25: while codes are made, there are the operand and the distance, not operand and codes."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=1)
    tensor_format = grid_format(RowMajor())
    x = builder.argument(Value(name="x", shape=(1, 32), format=tensor_format, owners=owners))
    repeated = broadcast((1, 32), (128, 32))
    wide = builder.copy(x, tensor_format=tensor_format, owners=owners, mapping=repeated)
    made = finished(builder, [cast(builder, wide)], 1)
    donated = donate_storage(made)
    operand, codes, distance = 2 * 128 * 32, 128 * 32, 1024
    assert text_of_program(donated).count("alias 0 at 0+-1024") == 1
    assert parse_program(text_of_program(donated)) == donated
    assert estimate(made).bytes == 64 + operand + codes
    assert estimate(donated).bytes == 64 + operand + distance
