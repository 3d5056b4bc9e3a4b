"""Candidates of products: what is priced is what is built, and nothing worth building is lost."""

import dataclasses
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compiler.estimate.mid import estimate
from compiler.geometry.layout import MemoryClass
from compiler.geometry.precision import F16
from compiler.geometry.relation import Side
from compiler.kernels.contract import Binding, Refusal
from compiler.kernels.gemm.binding import Mode, Orientation
from compiler.mid.ir import Compute, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.work import Product, Sum
from compiler.planner.front import pareto
from compiler.planner.gemm_candidates import ClassFront, candidates
from compiler.planner.gemm_choice import Algorithm, GemmChoice, Residency
from compiler.planner.gemm_grids import Column, Grids, grids
from compiler.planner.gemm_layout import fault
from compiler.planner.gemm_prices import partial_bytes, product_cycles, sum_partials
from compiler.planner.gemm_problem import GemmProblem
from compiler.planner.gemm_variants import Pricing, Variants, grids_of, joined
from compiler.target.costs import KERNEL_LAUNCH
from tests.planner.products import Built, build, choices, faults, problem_of, problems

UP = problem_of(729, 1152, 4304, tile_count=1472)
"""First product of the MLP of one image, and the second: W-MLP, B1, F16."""
DOWN = problem_of(729, 4304, 1152, tile_count=1472)


def grid_of(problem: GemmProblem, choice: GemmChoice) -> Grids:
    """The grid of a choice, worked out from its fields alone."""
    is_normal = choice.orientation is Orientation.NORMAL
    extents = (problem.rows, problem.columns)
    parts = (choice.row_parts, choice.column_parts)
    pieces = (choice.scatter_rows, choice.scatter_columns)
    if not is_normal:
        extents, parts, pieces = extents[::-1], parts[::-1], pieces[::-1]
    rows = -(-extents[0] // (parts[0] * pieces[0])) * pieces[0]
    groups = -(-extents[1] // (16 * parts[1] * pieces[1])) * pieces[1]
    panels = -(-problem.inner // problem.micro)
    columns = {
        "batch_parts": choice.batch_parts,
        "row_parts": parts[0],
        "column_parts": parts[1],
        "inner_parts": choice.inner_parts,
        "scatter_rows": pieces[0],
        "scatter_columns": pieces[1],
        "batch": -(-problem.batch // choice.batch_parts),
        "rows": rows,
        "column_groups": groups,
        "panels": -(-panels // choice.inner_parts),
    }
    return Grids(
        orientation=choice.orientation,
        **{name: np.array([number], dtype=np.int64) for name, number in columns.items()},
    )


def busiest(built: Built, kind: type[Product] | type[Sum]) -> int:
    """Cycles of the tile that calls the kernels of one kind of work for longest, launches included."""
    block = built.program.block
    longest = 0
    for operation in block.operations:
        if isinstance(operation, Compute) and isinstance(operation.work, kind):
            calls = local_calls(block, operation)
            cycles = np.array([cycles_of(binding) for binding in bind_all(calls)], dtype=np.int64)
            times = np.zeros(len(calls.tiles), dtype=np.int64)
            np.add.at(times, calls.owner, cycles[calls.request])
            longest += int(times.max())
    return longest


def cycles_of(binding: Binding | Refusal) -> int:
    """Of a call with its launch."""
    assert isinstance(binding, Binding)
    return binding.cycles + KERNEL_LAUNCH


def made(built: Built, kind: type[Product] | type[Sum]) -> Value:
    """What the last work of a kind makes."""
    block = built.program.block
    return [
        block.value(operation.results[0])
        for operation in block.operations
        if isinstance(operation, Compute) and isinstance(operation.work, kind)
    ][-1]


@given(data=st.data(), problem=problems())
def test_prices_are_those_of_what_is_built(data: st.DataObject, problem: GemmProblem) -> None:
    """PR-23, PR-32: products, sums and partials cost what the built program's worst tile pays for them."""
    choice = data.draw(choices(problem))
    assume(fault(problem, choice) is None)
    built = build(problem, choice)
    grid = grid_of(problem, choice)
    partial = made(built, Product)
    assert int(partial_bytes(grid)[0]) == int(partial.distribution.storage_bytes.max())
    if choice.inner_block is None:
        priced = product_cycles(problem, grid, grid.panels, mode=Mode.INITIALIZE, memory=choice.weight_memory)
        assert int(priced[0]) == busiest(built, Product)
    if choice.algorithm is Algorithm.PARALLEL_REDUCTION:
        total = made(built, Sum)
        piece = int(total.distribution.storage_bytes.max())
        batch = choice.reduction_batch
        others = choice.inner_parts - 1
        staged = others if batch is None else batch
        summing = sum_partials(grid, batch)
        assert int(summing.bytes[0]) == (staged + 1) * piece
        assert int(summing.cycles[0]) > busiest(built, Sum)


def every_choice(front: ClassFront, limit: int) -> Iterator[GemmChoice]:
    """Some candidates of a front, from all over it."""
    for row in sorted({*np.linspace(0, len(front) - 1, min(limit, len(front)), dtype=int).tolist()}):
        yield front.candidate(row).choice


@settings(max_examples=20)
@given(problem=problems())
def test_every_candidate_can_be_built(problem: GemmProblem) -> None:
    """What is in a front suits the problem, is well formed and binds."""
    found = candidates(problem, cast_before_copies=False)
    assert sum(map(len, found.fronts)) > 0
    for front in found.fronts:
        for choice in every_choice(front, 2):
            assert fault(problem, choice) is None
            assert faults(build(problem, choice)) == []


def one_batch(every: Grids, reductions: Variants, at_once: Column, batch: int) -> Variants:
    """The same reductions with sums in batches of one size, whether it is worth anything or not."""
    summing = sum_partials(grids_of(every, reductions.grid), batch)
    costs = reductions.costs.copy()
    costs[:, 0] += summing.cycles - at_once
    costs[:, 1] = np.maximum(reductions.product_bytes, reductions.staying_bytes + summing.bytes)
    return dataclasses.replace(
        reductions, reduction_batch=np.full(len(reductions), batch, dtype=np.int64), costs=costs
    )


def all_variants(problem: GemmProblem, every: Grids, residency: Residency) -> Variants:
    """Every variant of every grid, without any screening."""
    pricing = Pricing(
        problem=problem,
        resident=problem.parameter if residency is Residency.RESIDENT else None,
        arrivals={},
        cast_before_copies=False,
    )
    several = np.flatnonzero(every.inner_parts > 1).astype(np.int64)
    single = np.flatnonzero(every.inner_parts == 1).astype(np.int64)
    chosen = grids_of(every, several)
    sums = sum_partials(chosen, None)
    parts: list[Variants] = []
    for memory in MemoryClass:
        product = product_cycles(problem, chosen, chosen.panels, mode=Mode.INITIALIZE, memory=memory)
        reductions = pricing.reductions(every, several, product, sums, memory)
        parts += [reductions, pricing.stationary(every, single, memory)]
        others = every.inner_parts[reductions.grid] - 1
        for batch in range(1, int(others.max(initial=1))):
            here = np.flatnonzero(others > batch).astype(np.int64)
            parts.append(one_batch(every, reductions.of(here), sums.cycles[here], batch))
    return joined(parts)


@settings(max_examples=20)
@given(problem=problems())
def test_screening_loses_nothing(problem: GemmProblem) -> None:
    """The front is that of all variants: rounds and early drops save time alone."""
    found = candidates(problem, cast_before_copies=False)
    for front in found.fronts:
        every, _ = grids(problem, front.grids.orientation)
        costs = all_variants(problem, every, front.residency).costs
        wanted = costs[pareto(costs)]
        assert front.variants.costs.tolist() == wanted.tolist()


@given(problem=problems(), orientation=st.sampled_from(Orientation))
def test_grids_left_out_have_the_worst_shard_of_a_smaller_one(
    problem: GemmProblem, orientation: Orientation
) -> None:
    """Every grid that fits the tiles is there, or one with fewer tiles and no larger a shard is."""
    problem = dataclasses.replace(problem, tile_count=min(problem.tile_count, 16))
    every, _ = grids(problem, orientation)
    shards = ("batch", "rows", "column_groups", "panels")
    sums = ("inner_parts", "scatter_rows", "scatter_columns")
    there = np.stack([getattr(every, name) for name in (*shards, *sums)], axis=1)
    tiles = every.batch_parts * every.row_parts * every.column_parts * every.inner_parts
    for choice in grids_by_force(problem, orientation):
        grid = grid_of(problem, choice)
        shard = np.concatenate([getattr(grid, name) for name in (*shards, *sums)])
        smaller = (there[:, :4] <= shard[:4]).all(axis=1) & (there[:, 4:] == shard[4:]).all(axis=1)
        assert (smaller & (tiles <= choice.tiles)).any()


def grids_by_force(problem: GemmProblem, orientation: Orientation) -> Iterator[GemmChoice]:
    """Every choice of parts that suits the problem, by trying them all."""
    tiles = problem.tile_count
    for rows in range(1, tiles + 1):
        for columns in range(1, tiles // rows + 1):
            for inner in range(1, tiles // (rows * columns) + 1):
                choice = GemmChoice(
                    algorithm=Algorithm.OUTPUT_STATIONARY if inner == 1 else Algorithm.PARALLEL_REDUCTION,
                    row_parts=rows,
                    column_parts=columns,
                    inner_parts=inner,
                    orientation=orientation,
                )
                if fault(problem, choice) is None:
                    yield choice


@pytest.mark.parametrize(
    ("problem", "known"),
    [(UP, [(2, 92, 8), (4, 92, 4)]), (DOWN, [(3, 18, 27), (4, 24, 15)])],
    ids=["up", "down"],
)
def test_known_grids_are_in_the_front_or_beaten(
    problem: GemmProblem, known: list[tuple[int, int, int]]
) -> None:
    """No grid that was best on hardware is lost to anything but a candidate that is no worse in all costs.

    Each is priced by itself, in all scatterings and variants.
    """
    found = candidates(problem, cast_before_copies=False)
    for rows, columns, inner in known:
        priced = 0
        for front in found.fronts:
            if front.grids.orientation is not Orientation.NORMAL:
                continue
            for scatter_rows in range(1, inner + 1):
                for scatter_columns in range(1, inner + 1):
                    if inner % (scatter_rows * scatter_columns):
                        continue
                    choice = GemmChoice(
                        algorithm=Algorithm.PARALLEL_REDUCTION,
                        row_parts=rows,
                        column_parts=columns,
                        inner_parts=inner,
                        scatter_rows=scatter_rows,
                        scatter_columns=scatter_columns,
                        parameter_residency=front.residency,
                    )
                    if fault(problem, choice) is not None:
                        continue
                    priced += 1
                    costs = all_variants(problem, grid_of(problem, choice), front.residency).costs
                    for cost in costs:
                        assert (front.variants.costs <= cost).all(axis=1).any()
        assert priced > 0


def test_reasons_are_named_and_counted() -> None:
    """Every way that is in no front is counted under a reason, with the budget where it does not fit."""
    found = candidates(DOWN, cast_before_copies=False)
    assert set(found.dropped) == {
        "empty K shard",
        "same worst shard as a smaller grid",
        "dominated",
        "does not fit: more than 414 KiB of interleaved memory",
        "does not fit: more than 573 KiB of data memory",
        "does not fit: more than 80 KiB of exchange rows",
    }
    assert found.count > 1_000_000
    assert all(0 < len(front) < 5000 for front in found.fronts)
    # Three words are priced for a fragment that takes one at least.
    assert all(4 * front.variants.costs[:, 3].max() <= 3 * (80 * 1024 + 4) for front in found.fronts)


def test_shortlists_keep_the_extremes() -> None:
    """The fastest, the smallest and the one with fewest row words, whatever the limit."""
    found = candidates(problem_of(40, 130, 70, tile_count=64), cast_before_copies=False)
    for front in found.fronts:
        everything = [front.candidate(row) for row in range(len(front))]
        listed = front.shortlist(3)
        assert listed[:3] == tuple(everything[:3])
        memory = [
            one.standard_bytes + one.interleaved_bytes + 4 * one.row_words for one in (*everything, *listed)
        ]
        assert min(memory[len(everything) :]) == min(memory)
        assert min(one.row_words for one in listed) == min(one.row_words for one in everything)


def test_one_row_uses_many_tiles() -> None:
    """A matrix of one row is a product like any other, in both precisions."""
    for precision in (F16(), None):
        problem = problem_of(1, 1152, 1152, tile_count=1472, precision=precision)
        found = candidates(problem, cast_before_copies=False)
        best = min(
            (front.candidate(0) for front in found.fronts if front.residency is Residency.RESIDENT),
            key=lambda one: one.cycles,
        )
        assert best.choice.tiles > 100
        assert problem.parameter is Side.RIGHT


@pytest.mark.parametrize("problem", [UP, DOWN], ids=["up", "down"])
def test_prices_agree_with_estimates_of_the_built_program(problem: GemmProblem) -> None:
    """PR-24: shortcuts price what is built. The best of each class costs within 2 % of its estimate."""
    for front in candidates(problem, cast_before_copies=False).fronts:
        best = front.candidate(0)
        cost = estimate(build(problem, best.choice).program)
        assert abs(best.cycles - cost.cycles) <= 0.02 * cost.cycles
