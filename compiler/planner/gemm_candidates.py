"""Candidates of a product: every grid in every variant, priced, and the front of those worth building.

Inputs are a problem and how its operands arrive. The result is, for each *compatibility class*, the Pareto
front of (cycles, standard bytes, interleaved bytes, exchange row words). A class is what neighbours can tell:
orientation and form of the result, and whether the parameter stays with its consumers. Within a class nothing
is dropped unless another candidate is as good in all four, or the tile cannot hold it; every dropped
candidate is counted under the name of its reason.

**Variants** of a grid: weights in interleaved or standard memory; the parameter resident or streamed; a sum
of all partials at once or in batches (powers of two, as long as the stack is what needs most memory); blocks
of K for an output-stationary product.

**Two steps.** Scatterings of one grid differ in their sum alone, and their products are alike; those that
another one beats in cycles, words and bytes of the sum go first. Then variants are priced.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.geometry.layout import MemoryClass
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Mode, Orientation
from compiler.planner.front import pareto
from compiler.planner.gemm_choice import Algorithm, GemmChoice, GridOrder, Residency, ResultForm
from compiler.planner.gemm_grids import Column, Grids, grids
from compiler.planner.gemm_prices import (
    Arrival,
    Bringing,
    bring_rows,
    bring_weights,
    partial_bytes,
    product_cycles,
    sum_partials,
)
from compiler.planner.gemm_problem import GemmProblem

DOMINATED: Final = "dominated"
NO_VALUE: Final = 0
"""In a column of batches or blocks: all at once."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCandidate:
    """A choice and what it costs the worst tile, estimated.

    Args:
        choice: the choice.
        cycles: from operands as they arrive to the result.
        standard_bytes: of values that can lie in either region.
        interleaved_bytes: of values that can only lie in the interleaved one.
        row_words: of exchange rows.
    """

    choice: GemmChoice
    cycles: int
    standard_bytes: int
    interleaved_bytes: int
    row_words: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCandidates:
    """What became of all ways of computing a product.

    Args:
        front: candidates that are kept, by class, then by cycles.
        dropped: how many others there were, by reason.
        count: of all ways.
    """

    front: tuple[GemmCandidate, ...]
    dropped: Mapping[str, int]
    count: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Variants:
    """Candidates of one class as columns; ``grid`` says of which grid each is."""

    grid: Column
    is_wide: npt.NDArray[np.bool_]
    reduction_batch: Column
    inner_panels: Column
    costs: npt.NDArray[np.int64]


def candidates(
    problem: GemmProblem,
    *,
    cast_before_copies: bool,
    arrivals: Mapping[Side, Arrival] | None = None,
    result_forms: tuple[ResultForm, ...] = (ResultForm.ROWS,),
) -> GemmCandidates:
    """The front of a product, and what was dropped.

    Args:
        problem: the product.
        cast_before_copies: whether operands in another precision are cast before they are brought.
        arrivals: how operands lie that are no arguments with a home of their own.
        result_forms: how the result may be stored.
    """
    arrivals = {} if arrivals is None else arrivals
    front: list[GemmCandidate] = []
    dropped: dict[str, int] = {}
    total = 0
    residencies = [Residency.STREAMED]
    if problem.parameter is not None and not problem.is_cast(problem.parameter):
        residencies.append(Residency.RESIDENT)
    for orientation in Orientation:
        for result_form in result_forms:
            every, left_out = grids(problem, orientation, result_form)
            every, worse = _without_worse_sums(every)
            for reason, count in (*left_out.items(), (DOMINATED, worse)):
                _count(dropped, reason, count)
                total += count
            for residency in residencies:
                variants = _priced(problem, every, residency, arrivals, cast_before_copies=cast_before_copies)
                total += len(variants.grid)
                kept = _fitting(variants.costs, dropped)
                chosen = kept[pareto(variants.costs[kept])]
                _count(dropped, DOMINATED, len(kept) - len(chosen))
                front.extend(_candidate(problem, every, variants, residency, int(row)) for row in chosen)
    return GemmCandidates(front=tuple(front), dropped=dropped, count=total)


def _count(dropped: dict[str, int], reason: str, count: int) -> None:
    if count:
        dropped[reason] = dropped.get(reason, 0) + count


def _fitting(costs: npt.NDArray[np.int64], dropped: dict[str, int]) -> Column:
    """Rows that a tile can hold."""
    interleaved, everything = costs[:, 2], costs[:, 1] + costs[:, 2]
    is_narrow = interleaved > INTERLEAVED_BUDGET
    is_large = ~is_narrow & (everything > DATA_BUDGET)
    for what, excess, size, budget in (
        ("interleaved", is_narrow, interleaved, INTERLEAVED_BUDGET),
        ("data", is_large, everything, DATA_BUDGET),
    ):
        if excess.any():
            least = int(size[excess].min())
            reason = f"does not fit: {what} {-(-least // 1024)} KiB or more of {budget // 1024} KiB"
            _count(dropped, reason, int(excess.sum()))
    return np.flatnonzero(~is_narrow & ~is_large).astype(np.int64)


def _of(every: Grids, rows: Column) -> Grids:
    """Some of the grids."""
    columns = {field.name: getattr(every, field.name) for field in fields(every)}
    return replace(
        every,
        **{name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)},
    )


def _without_worse_sums(every: Grids) -> tuple[Grids, int]:
    """Grids without scatterings that another one of the same product beats, and how many were beaten."""
    summed = _of(every, np.flatnonzero(every.inner_parts > 1).astype(np.int64))
    if not len(summed):
        return every, 0
    costs = sum_partials(summed, None)
    shape = np.stack(
        [
            summed.batch_parts,
            summed.row_parts,
            summed.column_parts,
            summed.inner_parts,
            summed.rows,
            summed.column_groups,
        ]
    )
    order = np.lexsort(shape[::-1]).astype(np.int64)
    shape = shape[:, order]
    is_first = np.concatenate([[True], (shape[:, 1:] != shape[:, :-1]).any(axis=0)])
    starts = np.append(np.flatnonzero(is_first), len(order)).astype(np.int64)
    table = np.stack([costs.cycles, costs.words, costs.bytes], axis=1)
    kept = np.zeros(len(every), dtype=np.bool_)
    kept[every.inner_parts == 1] = True
    kept[np.flatnonzero(every.inner_parts > 1)[order[_best_of_groups(table[order], starts)]]] = True
    return _of(every, np.flatnonzero(kept).astype(np.int64)), int((~kept).sum())


@compiled
def _best_of_groups(costs: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Rows that no other row of their group dominates; of equal ones the first."""
    kept = np.ones(len(costs), dtype=np.bool_)
    for group in range(len(starts) - 1):
        for row in range(starts[group], starts[group + 1]):
            for other in range(starts[group], starts[group + 1]):
                if other == row or not kept[other]:
                    continue
                worse, equal = True, True
                for column in range(costs.shape[1]):
                    if costs[other, column] > costs[row, column]:
                        worse = False
                        break
                    if costs[other, column] < costs[row, column]:
                        equal = False
                if worse and (not equal or other < row):
                    kept[row] = False
                    break
    return kept


def _priced(
    problem: GemmProblem,
    every: Grids,
    residency: Residency,
    arrivals: Mapping[Side, Arrival],
    *,
    cast_before_copies: bool,
) -> _Variants:
    """All variants of one residency."""
    pricing = _Pricing(
        problem=problem,
        resident=problem.parameter if residency is Residency.RESIDENT else None,
        arrivals=arrivals,
        cast_before_copies=cast_before_copies,
    )
    summed = np.flatnonzero(every.inner_parts > 1).astype(np.int64)
    single = np.flatnonzero(every.inner_parts == 1).astype(np.int64)
    parts: list[_Variants] = []
    for memory in MemoryClass:
        parts.extend(pricing.reductions(every, summed, memory))
        parts.append(pricing.stationary(every, single, memory))
    return _Variants(
        grid=np.concatenate([part.grid for part in parts]),
        is_wide=np.concatenate([part.is_wide for part in parts]),
        reduction_batch=np.concatenate([part.reduction_batch for part in parts]),
        inner_panels=np.concatenate([part.inner_panels for part in parts]),
        costs=np.concatenate([part.costs for part in parts]),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Pricing:
    """What all variants of one residency share.

    Args:
        problem: the product.
        resident: the operand that is where it is multiplied; None when both are brought.
        arrivals: how operands lie that have no home of their own.
        cast_before_copies: when operands are cast.
    """

    problem: GemmProblem
    resident: Side | None
    arrivals: Mapping[Side, Arrival]
    cast_before_copies: bool

    def brought(self, every: Grids, panels: Column) -> tuple[Bringing, Bringing]:
        """What the unit streams, and its weights, over so many panels."""
        is_normal = every.orientation is Orientation.NORMAL
        row_side, weight_side = (Side.LEFT, Side.RIGHT) if is_normal else (Side.RIGHT, Side.LEFT)
        rows = bring_rows(
            self.problem,
            every,
            panels,
            self.arrivals.get(row_side),
            is_resident=self.resident is row_side,
            cast_before_copies=self.cast_before_copies,
        )
        weights = bring_weights(
            self.problem,
            every,
            panels,
            self.arrivals.get(weight_side),
            is_resident=self.resident is weight_side,
        )
        return rows, weights

    def reductions(self, every: Grids, summed: Column, memory: MemoryClass) -> Iterator[_Variants]:
        """Parallel reductions; sums in smaller and smaller batches where the stack is what needs most."""
        chosen = _of(every, summed)
        rows, weights = self.brought(chosen, chosen.panels)
        product = product_cycles(self.problem, chosen, chosen.panels, mode=Mode.INITIALIZE, memory=memory)
        partial = partial_bytes(chosen)
        standard, interleaved = _operand_bytes(rows, weights, memory)
        standard += np.where(chosen.panels == 1, partial, 0)
        interleaved += np.where(chosen.panels > 1, partial, 0)
        staying = self.staying_bytes(chosen, rows, weights, memory)
        staying += np.where(chosen.panels == 1, partial, 0)
        others = chosen.inner_parts - 1
        powers = [1 << power for power in reversed(range(int(others.max(initial=1)).bit_length()))]
        is_stack_largest = np.ones(len(chosen), dtype=np.bool_)
        for batch in (None, *powers):
            is_batch = others > (0 if batch is None else batch)
            here = np.flatnonzero(is_stack_largest & is_batch).astype(np.int64)
            summing = sum_partials(_of(chosen, here), batch)
            during_sum = staying[here] + summing.bytes
            is_stack_largest[here] = during_sum > standard[here]
            yield _Variants(
                grid=summed[here],
                is_wide=np.full(len(here), memory is MemoryClass.INTERLEAVED),
                reduction_batch=np.full(len(here), NO_VALUE if batch is None else batch, dtype=np.int64),
                inner_panels=np.full(len(here), NO_VALUE, dtype=np.int64),
                costs=np.stack(
                    [
                        rows.cycles[here] + weights.cycles[here] + product[here] + summing.cycles,
                        np.maximum(standard[here], during_sum),
                        interleaved[here],
                        rows.words[here] + weights.words[here] + summing.words,
                    ],
                    axis=1,
                ),
            )

    def stationary(self, every: Grids, single: Column, memory: MemoryClass) -> _Variants:
        """Output-stationary products, whole and in blocks of K."""
        total = -(-self.problem.inner // self.problem.micro)
        blocks = [total]
        if self.resident is None:
            blocks = sorted({-(-total // count) for count in range(1, total + 1)})
        block = np.tile(np.array(blocks, dtype=np.int64), len(single))
        grid = np.repeat(single, len(blocks))
        chosen = _of(every, grid)
        whole, rest = total // block, total % block
        rows, weights = self.brought(chosen, block)
        first = product_cycles(self.problem, chosen, block, mode=Mode.INITIALIZE, memory=memory)
        other = product_cycles(self.problem, chosen, block, mode=Mode.ACCUMULATE, memory=memory)
        last_rows, last_weights = self.brought(chosen, np.maximum(rest, 1))
        last = product_cycles(self.problem, chosen, np.maximum(rest, 1), mode=Mode.ACCUMULATE, memory=memory)
        partial = partial_bytes(chosen)
        standard, interleaved = _operand_bytes(rows, weights, memory)
        is_accumulated = total > 1
        cycles = first + (whole - 1) * other + whole * (rows.cycles + weights.cycles)
        cycles += np.where(rest > 0, last + last_rows.cycles + last_weights.cycles, 0)
        words = whole * (rows.words + weights.words)
        words += np.where(rest > 0, last_rows.words + last_weights.words, 0)
        return _Variants(
            grid=grid,
            is_wide=np.full(len(grid), memory is MemoryClass.INTERLEAVED),
            reduction_batch=np.full(len(grid), NO_VALUE, dtype=np.int64),
            inner_panels=np.where(block == total, NO_VALUE, block),
            costs=np.stack(
                [
                    cycles,
                    standard if is_accumulated else standard + partial,
                    interleaved + partial if is_accumulated else interleaved,
                    words,
                ],
                axis=1,
            ),
        )

    def staying_bytes(self, chosen: Grids, rows: Bringing, weights: Bringing, memory: MemoryClass) -> Column:
        """Standard bytes of the resident operand, which is there during the sum as well."""
        is_normal = chosen.orientation is Orientation.NORMAL
        row_side = Side.LEFT if is_normal else Side.RIGHT
        if self.resident is row_side:
            return rows.resident_bytes.copy()
        if self.resident is not None and memory is MemoryClass.STANDARD:
            return weights.resident_bytes.copy()
        return np.zeros_like(rows.resident_bytes)


def _operand_bytes(rows: Bringing, weights: Bringing, memory: MemoryClass) -> tuple[Column, Column]:
    """Standard and interleaved bytes of both operands while the product runs or they are cast for it."""
    streamed = np.maximum(rows.resident_bytes, rows.peak_bytes)
    if memory is MemoryClass.INTERLEAVED:
        return streamed.copy(), weights.resident_bytes.copy()
    return streamed + weights.resident_bytes, np.zeros_like(streamed)


def _candidate(
    problem: GemmProblem, every: Grids, variants: _Variants, residency: Residency, row: int
) -> GemmCandidate:
    """A row of the table as a value."""
    grid = int(variants.grid[row])
    is_normal = every.orientation is Orientation.NORMAL
    parts = (int(every.row_parts[grid]), int(every.column_parts[grid]))
    pieces = (int(every.scatter_rows[grid]), int(every.scatter_columns[grid]))
    row_parts, column_parts = parts if is_normal else parts[::-1]
    scatter_rows, scatter_columns = pieces if is_normal else pieces[::-1]
    inner_parts = int(every.inner_parts[grid])
    batch, panels = int(variants.reduction_batch[row]), int(variants.inner_panels[row])
    cycles, standard, interleaved, words = map(int, variants.costs[row])
    return GemmCandidate(
        choice=GemmChoice(
            algorithm=Algorithm.OUTPUT_STATIONARY if inner_parts == 1 else Algorithm.PARALLEL_REDUCTION,
            batch_parts=int(every.batch_parts[grid]),
            row_parts=row_parts,
            column_parts=column_parts,
            inner_parts=inner_parts,
            scatter_rows=scatter_rows,
            scatter_columns=scatter_columns,
            orientation=every.orientation,
            weight_memory=MemoryClass.INTERLEAVED if variants.is_wide[row] else MemoryClass.STANDARD,
            parameter_residency=residency,
            reduction_batch=None if batch == NO_VALUE else batch,
            grid_order=GridOrder.ROWS_FAST
            if scatter_rows > 1 and scatter_columns == 1
            else GridOrder.COLUMNS_FAST,
            inner_block=None if panels == NO_VALUE else panels * problem.micro,
            result_form=every.result_form,
        ),
        cycles=cycles,
        standard_bytes=standard,
        interleaved_bytes=interleaved,
        row_words=words,
    )
