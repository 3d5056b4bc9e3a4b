"""Fronts of products as they are kept: read back as they were, and under a key of all that decides them."""

import dataclasses
from inspect import signature
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings

from compiler.config import BuildOptions
from compiler.fingerprint import REPOSITORY, fingerprint
from compiler.geometry.precision import F8, F16, F32
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Rounding
from compiler.planner.fronts import FRONTS, FrontInputs, columns_of_fronts, fronts_of, fronts_of_columns
from compiler.planner.gemm_candidates import GemmCandidates, candidates
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.stage_fronts import PRODUCT_FRONTS
from compiler.store.container import Columns
from compiler.store.digest import Digest
from compiler.store.key import key_document, key_of
from compiler.tables import table_digests
from tests.planner.products import problem_of, problems

ASKED = FrontInputs(problem=problem_of(8, 64, 48, tile_count=8), cast_before_copies=False)


def listed(found: GemmCandidates) -> list[object]:
    """All that is known of fronts, as values."""
    return [
        [(one.residency, one.micro, [one.candidate(row) for row in range(len(one))]) for one in found.fronts],
        list(found.dropped.items()),
    ]


@settings(max_examples=25)
@given(problem=problems())
def test_fronts_are_read_back_as_they_were(problem: GemmProblem) -> None:
    found = candidates(problem, cast_before_copies=False)
    data = FRONTS.encode(found)
    again = FRONTS.decode(data)
    assert listed(again) == listed(found)
    assert [one.shortlist(3) for one in again.fronts] == [one.shortlist(3) for one in found.fronts]
    assert FRONTS.encode(again) == data


def test_other_tables_are_no_fronts() -> None:
    table = columns_of_fronts(fronts_of(ASKED))
    arrays, meta = dict(table.arrays), cast("Any", table.meta)
    classes, dropped = meta
    (count, *facts), *others = classes
    wrong = [
        Columns(arrays=arrays),
        Columns(arrays=arrays, meta=(((count + 1, *facts), *others), dropped)),
        Columns(arrays=arrays, meta=(((-1, *facts), *others), dropped)),
        Columns(arrays=arrays, meta=(((count, 16, "elsewhere", facts[2]), *others), dropped)),
        Columns(arrays=arrays, meta=(classes, (("dominated", "many"),))),
        Columns(arrays={**arrays, "more": arrays["costs"]}, meta=meta),
        Columns(arrays={**arrays, "costs": arrays["costs"][:, :3]}, meta=meta),
        Columns(arrays={**arrays, "is_wide": arrays["is_wide"].astype(np.int64)}, meta=meta),
    ]
    for each in wrong:
        with pytest.raises(ValueError, match=r"front|column|count"):
            fronts_of_columns(each)


def key(inputs: FrontInputs) -> Digest:
    document = key_document(
        PRODUCT_FRONTS, inputs, BuildOptions(), tables=table_digests(), sources=REPOSITORY
    )
    return key_of(document)


def test_keys_hold_all_that_decides_a_front() -> None:
    """ML-29: what the enumeration is given is in the key, each fact of the product and of its operands."""
    plain = problem_of(8, 64, 64, tile_count=8)
    changed: dict[str, object] = {
        "left_shape": (16, 64),
        "right_shape": (64, 80),
        "transpose_left": True,
        "transpose_right": True,
        "precision": F8(scale_exponent=0),
        "left_precision": F32(),
        "right_precision": F32(),
        "parameter": None,
        "tile_count": 7,
        "rounding": Rounding.STOCHASTIC,
    }
    assert set(changed) == {field.name for field in dataclasses.fields(GemmProblem)}
    square = dataclasses.replace(plain, left_shape=(64, 64))  # of which either side can be transposed
    found = [
        dataclasses.replace(square if "transpose" in name else plain, **cast("Any", {name: value}))
        for name, value in changed.items()
    ]
    arrivals = [
        Arrival(outer=4, inner=16),
        Arrival(outer=8, inner=16),
        Arrival(outer=4, inner=32),
        Arrival(outer=4, inner=16, is_in_panels=False),
    ]
    asked = [FrontInputs(problem=problem, cast_before_copies=False) for problem in (plain, square, *found)]
    asked.append(FrontInputs(problem=plain, cast_before_copies=True))
    asked += [FrontInputs(problem=plain, cast_before_copies=False, left=one) for one in arrivals]
    asked += [FrontInputs(problem=plain, cast_before_copies=False, right=one) for one in arrivals]
    assert len({key(one) for one in asked}) == len(asked)
    # The enumeration knows nothing else, and the stage gives it all of this.
    assert set(signature(candidates).parameters) == {"problem", "cast_before_copies", "arrivals"}
    for one in (asked[0], asked[-1]):
        direct = candidates(
            one.problem,
            cast_before_copies=one.cast_before_copies,
            arrivals={
                side: arrival
                for side, arrival in ((Side.LEFT, one.left), (Side.RIGHT, one.right))
                if arrival is not None
            },
        )
        assert listed(fronts_of(one)) == listed(direct)
    assert isinstance(plain.precision, F16)


def test_fronts_are_facts_about_values_and_prices() -> None:
    """ML-39: how values are cut and what that costs; nothing is known that holds a tile's buffers."""
    columns = {name.removeprefix("grid.") for name in columns_of_fronts(fronts_of(ASKED)).arrays}
    parts = {"batch_parts", "row_parts", "column_parts", "inner_parts", "scatter_rows", "scatter_columns"}
    shard = {"batch", "rows", "column_groups", "panels"}
    choices = {"is_wide", "reduction_batch", "inner_panels"}
    prices = {"costs", "product_bytes", "staying_bytes"}
    assert columns == parts | shard | choices | prices
    modules = set(fingerprint(PRODUCT_FRONTS.module).modules)
    assert not {
        name for name in modules if name.startswith(("compiler.low", "compiler.mid", "compiler.graph"))
    }


def test_what_is_done_between_products_rekeys_no_front() -> None:
    """Editing the enumeration or its prices does; editing element-wise kernels or the walk does not."""
    paths = set(dict(fingerprint(PRODUCT_FRONTS.module).files))
    planner = "compiler/planner/"
    assert {
        f"{planner}{name}.py" for name in ("gemm_candidates", "gemm_grids", "gemm_prices", "front")
    } <= paths
    assert not {f"{planner}{name}.py" for name in ("walk", "elementwise", "candidate", "rewriting")} & paths
    assert not {path for path in paths if path.startswith("compiler/kernels/pointwise")}
