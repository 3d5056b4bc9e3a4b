"""Variants of the grids of a product, priced.

A variant says in which memory the weights of a grid are, whether the parameter stays with its consumers, how
many partials a sum brings at a time, and how much of K an output-stationary product takes at a time. The
memory of the worst tile is what lives while the product runs or, if that is more, during the sum.

Sums in batches change the memory of the sum, its cycles and nothing else. So they are made in a second round,
for those variants alone of which the stack of partials is what needs most memory and that would be worth
having if it needed none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Mode, Orientation
from compiler.planner.gemm_grids import Column, Grids
from compiler.planner.gemm_prices import (
    Bringing,
    Summing,
    bring_rows,
    bring_weights,
    partial_bytes,
    product_cycles,
    sum_partials,
)
from compiler.planner.gemm_problem import Arrival, GemmProblem

ALL: Final = 0
"""In a column of batches or blocks: all at once."""

CYCLES: Final = 0
STANDARD: Final = 1
INTERLEAVED: Final = 2
ROW_WORDS: Final = 3
"""Columns of costs."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variants:
    """Variants as columns.

    Args:
        grid: of which grid.
        is_wide: whether weights are interleaved.
        reduction_batch: partials at a time, or ALL.
        inner_panels: panels of K at a time, or ALL.
        costs: [count, 4] cycles, standard bytes, interleaved bytes, row words.
        product_bytes: standard bytes while the product runs.
        staying_bytes: standard bytes that live during the sum, its own left out.
    """

    grid: Column
    is_wide: npt.NDArray[np.bool_]
    reduction_batch: Column
    inner_panels: Column
    costs: npt.NDArray[np.int64]
    product_bytes: Column
    staying_bytes: Column

    def __len__(self) -> int:
        """How many there are."""
        return len(self.grid)

    def of(self, rows: Column) -> "Variants":
        """Some of them, in this order."""
        return Variants(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def joined(parts: Sequence[Variants]) -> Variants:
    """All of several tables, one after the other."""
    return Variants(
        **{
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(Variants)
        }
    )


def grids_of(every: Grids, rows: Column) -> Grids:
    """Some of the grids, in this order."""
    columns = {field.name: getattr(every, field.name) for field in fields(every)}
    return replace(
        every,
        **{name: column[rows] for name, column in columns.items() if isinstance(column, np.ndarray)},
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
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

    def reductions(
        self, every: Grids, grid: Column, product: Column, summing: Summing, memory: MemoryClass
    ) -> Variants:
        """Parallel reductions that sum all partials at once.

        Args:
            every: all grids.
            grid: those with several parts of K.
            product: [grids] cycles of their products.
            summing: [grids] their sums.
            memory: of the weights.
        """
        chosen = grids_of(every, grid)
        rows, weights = self._brought(chosen, chosen.panels)
        standard, interleaved = operand_bytes(rows, weights, memory)
        partial = partial_bytes(chosen)
        is_accumulated = chosen.panels > 1
        product_bytes = standard + np.where(is_accumulated, 0, partial)
        staying = self._staying_bytes(chosen, rows, weights, memory) + np.where(is_accumulated, 0, partial)
        return Variants(
            grid=grid,
            is_wide=np.full(len(grid), memory is MemoryClass.INTERLEAVED),
            reduction_batch=np.full(len(grid), ALL, dtype=np.int64),
            inner_panels=np.full(len(grid), ALL, dtype=np.int64),
            costs=np.stack(
                [
                    rows.cycles + weights.cycles + (rows.once + weights.once) + product + summing.cycles,
                    np.maximum(product_bytes, staying + summing.bytes),
                    interleaved + np.where(is_accumulated, partial, 0),
                    rows.words + weights.words + summing.words,
                ],
                axis=1,
            ),
            product_bytes=product_bytes,
            staying_bytes=staying,
        )

    def stationary(self, every: Grids, single: Column, memory: MemoryClass) -> Variants:
        """Output-stationary products, whole and in blocks of K."""
        total = -(-self.problem.inner // self.problem.micro)
        blocks = [total]
        if self.resident is None:
            blocks = sorted({-(-total // count) for count in range(1, total + 1)})
        block = np.tile(np.array(blocks, dtype=np.int64), len(single))
        grid = np.repeat(single, len(blocks))
        chosen = grids_of(every, grid)
        whole, rest = total // block, np.maximum(total % block, 1)
        has_rest = total % block > 0
        rows, weights = self._brought(chosen, block)
        first = product_cycles(self.problem, chosen, block, mode=Mode.INITIALIZE, memory=memory)
        other = product_cycles(self.problem, chosen, block, mode=Mode.ACCUMULATE, memory=memory)
        last_rows, last_weights = self._brought(chosen, rest)
        last = product_cycles(self.problem, chosen, rest, mode=Mode.ACCUMULATE, memory=memory)
        partial = partial_bytes(chosen)
        standard, interleaved = operand_bytes(rows, weights, memory)
        cycles = first + (whole - 1) * other + whole * (rows.cycles + weights.cycles)
        cycles += rows.once + weights.once
        cycles += np.where(has_rest, last + last_rows.cycles + last_weights.cycles, 0)
        words = whole * (rows.words + weights.words)
        words += np.where(has_rest, last_rows.words + last_weights.words, 0)
        if total > 1:
            interleaved += partial
        else:
            standard += partial
        return Variants(
            grid=grid,
            is_wide=np.full(len(grid), memory is MemoryClass.INTERLEAVED),
            reduction_batch=np.full(len(grid), ALL, dtype=np.int64),
            inner_panels=np.where(block == total, ALL, block),
            costs=np.stack([cycles, standard, interleaved, words], axis=1),
            product_bytes=standard,
            staying_bytes=np.zeros_like(standard),
        )

    def _brought(self, chosen: Grids, panels: Column) -> tuple[Bringing, Bringing]:
        """What the unit streams, and its weights, over so many panels."""
        row_side, weight_side = sides_of(chosen.orientation)
        rows = bring_rows(
            self.problem,
            chosen,
            panels,
            self.arrivals.get(row_side),
            is_resident=self.resident is row_side,
            cast_before_copies=self.cast_before_copies,
        )
        weights = bring_weights(
            self.problem,
            chosen,
            panels,
            self.arrivals.get(weight_side),
            is_resident=self.resident is weight_side,
        )
        return rows, weights

    def _staying_bytes(self, chosen: Grids, rows: Bringing, weights: Bringing, memory: MemoryClass) -> Column:
        """Standard bytes of the resident operand, which is there during the sum as well."""
        row_side, _ = sides_of(chosen.orientation)
        if self.resident is row_side:
            return rows.resident_bytes
        if self.resident is not None and memory is MemoryClass.STANDARD:
            return weights.resident_bytes
        return np.zeros_like(rows.resident_bytes)


def in_batches(every: Grids, variants: Variants, at_once: Summing) -> Variants:
    """The same reductions with sums in batches, for as many smaller stacks as matter.

    For each number of phases there is one batch, the smallest that needs no more of them: phases of one size
    are the fastest, and a larger batch needs a larger stack.

    Args:
        every: all grids.
        variants: reductions that sum all at once.
        at_once: [variants] their sums.
    """
    others = every.inner_parts[variants.grid] - 1
    made: list[Variants] = [variants.of(np.zeros(0, dtype=np.int64))]
    is_stack_largest = variants.staying_bytes + at_once.bytes > variants.product_bytes
    here = np.flatnonzero(is_stack_largest & (others > 1)).astype(np.int64)
    phases = np.full(len(here), 2, dtype=np.int64)
    while len(here):
        batch = -(-others[here] // phases)
        chosen = variants.of(here)
        summing = sum_partials(grids_of(every, chosen.grid), batch)
        during_sum = chosen.staying_bytes + summing.bytes
        costs = chosen.costs.copy()
        costs[:, CYCLES] += summing.cycles - at_once.cycles[here]
        costs[:, STANDARD] = np.maximum(chosen.product_bytes, during_sum)
        made.append(replace(chosen, reduction_batch=batch, costs=costs))
        matters = (batch > 1) & (during_sum > chosen.product_bytes)
        here = here[matters]
        phases = -(-others[here] // (batch[matters] - 1))
    return joined(made)


def sides_of(orientation: Orientation) -> tuple[Side, Side]:
    """The operand that the matrix unit streams and the one that is its weights."""
    return (Side.LEFT, Side.RIGHT) if orientation is Orientation.NORMAL else (Side.RIGHT, Side.LEFT)


def operand_bytes(rows: Bringing, weights: Bringing, memory: MemoryClass) -> tuple[Column, Column]:
    """Standard and interleaved bytes of both operands while the product runs or they are cast for it."""
    if memory is MemoryClass.INTERLEAVED:
        return rows.peak_bytes.copy(), weights.resident_bytes.copy()
    return rows.peak_bytes + weights.resident_bytes, np.zeros_like(rows.peak_bytes)
