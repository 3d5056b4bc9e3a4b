"""Candidates of a product: every grid in every variant, priced, and the front of those worth building.

Inputs are a problem and how its operands arrive. The result is, for each *compatibility class*, the Pareto
front of (cycles, standard bytes, interleaved bytes, exchange row words). A class is what neighbours can tell:
orientation, and whether the parameter stays with its consumers. Within a class nothing is dropped unless
another candidate is as good in all four, or the tile cannot hold it, its data or its exchange rows; every
dropped candidate is counted under the name of its reason.

The order of the work saves time and changes nothing. Scatterings of one grid differ in their sum alone, so
those that another one beats in cycles, words and bytes of the sum go first. What a tile cannot hold while the
product runs is dropped before its product is priced. Sums in batches are priced for survivors alone.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.geometry.layout import MemoryClass
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import PANEL_BYTES, ROW_BYTES, Mode, Orientation
from compiler.planner.front import pareto, unbeaten
from compiler.planner.gemm_choice import Algorithm, GemmChoice, GridOrder, Residency
from compiler.planner.gemm_grids import Column, Grids, grids
from compiler.planner.gemm_prices import Summing, partial_bytes, product_cycles, sum_partials
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.gemm_variants import (
    ALL,
    CYCLES,
    INTERLEAVED,
    ROW_WORDS,
    STANDARD,
    Pricing,
    Variants,
    grids_of,
    in_batches,
    joined,
)
from compiler.target.costs import RECEIVE_ROW_WORDS, ROW_BUDGET, SEND_ROW_WORDS
from compiler.target.units import WORD_BYTES

DOMINATED: Final = "dominated"


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

    @property
    def tile_bytes(self) -> int:
        """All that it takes of a tile."""
        return self.standard_bytes + self.interleaved_bytes + WORD_BYTES * self.row_words


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassFront:
    """The front of one compatibility class, by cycles.

    Args:
        micro: elements of a panel of K.
        residency: whether the parameter stays.
        grids: of the variants, each its own.
        variants: the front.

    Raises:
        ValueError: variants are not those of the grids, one of each in the same order.
    """

    micro: int
    residency: Residency
    grids: Grids
    variants: Variants

    def __post_init__(self) -> None:
        if not np.array_equal(self.variants.grid, np.arange(len(self.grids))):
            raise ValueError("a front has one grid for each variant, in the same order")

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.variants)

    def candidate(self, row: int) -> GemmCandidate:
        """One of them as a value."""
        every, variants = self.grids, self.variants
        is_normal = every.orientation is Orientation.NORMAL
        parts = (int(every.row_parts[row]), int(every.column_parts[row]))
        pieces = (int(every.scatter_rows[row]), int(every.scatter_columns[row]))
        row_parts, column_parts = parts if is_normal else parts[::-1]
        scatter_rows, scatter_columns = pieces if is_normal else pieces[::-1]
        is_by_rows = scatter_rows > 1 and scatter_columns == 1
        inner_parts = int(every.inner_parts[row])
        batch, panels = int(variants.reduction_batch[row]), int(variants.inner_panels[row])
        costs = variants.costs[row]
        return GemmCandidate(
            choice=GemmChoice(
                algorithm=Algorithm.OUTPUT_STATIONARY if inner_parts == 1 else Algorithm.PARALLEL_REDUCTION,
                batch_parts=int(every.batch_parts[row]),
                row_parts=row_parts,
                column_parts=column_parts,
                inner_parts=inner_parts,
                scatter_rows=scatter_rows,
                scatter_columns=scatter_columns,
                orientation=every.orientation,
                weight_memory=MemoryClass.INTERLEAVED if variants.is_wide[row] else MemoryClass.STANDARD,
                parameter_residency=self.residency,
                reduction_batch=None if batch == ALL else batch,
                grid_order=GridOrder.ROWS_FAST if is_by_rows else GridOrder.COLUMNS_FAST,
                inner_block=None if panels == ALL else panels * self.micro,
            ),
            cycles=int(costs[CYCLES]),
            standard_bytes=int(costs[STANDARD]),
            interleaved_bytes=int(costs[INTERLEAVED]),
            row_words=int(costs[ROW_WORDS]),
        )

    def shortlist(self, limit: int) -> tuple[GemmCandidate, ...]:
        """The fastest, by cycles; with them that with least memory, rows included, and that with fewest rows.

        Args:
            limit: how many at most; the two extremes may come on top.
        """
        costs = self.variants.costs
        if not len(costs):
            return ()
        rows = {*range(min(limit, len(costs)))}
        memory = costs[:, STANDARD] + costs[:, INTERLEAVED] + WORD_BYTES * costs[:, ROW_WORDS]
        rows.add(int(np.argmin(memory)))
        rows.add(int(np.argmin(costs[:, ROW_WORDS])))
        return tuple(self.candidate(row) for row in sorted(rows))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmCandidates:
    """What became of all ways of computing a product.

    Args:
        fronts: of each class.
        dropped: how many ways are in no front, by reason.
    """

    fronts: tuple[ClassFront, ...]
    dropped: Mapping[str, int]

    @property
    def count(self) -> int:
        """Ways of computing the product that were considered."""
        return sum(map(len, self.fronts)) + sum(self.dropped.values())


def candidates(
    problem: GemmProblem,
    *,
    cast_before_copies: bool,
    arrivals: Mapping[Side, Arrival] | None = None,
) -> GemmCandidates:
    """The fronts of a product, and what was dropped.

    Args:
        problem: the product.
        cast_before_copies: whether operands in another precision are cast before they are brought.
        arrivals: how operands lie that are no arguments with a home of their own.
    """
    arrivals = {} if arrivals is None else arrivals
    residencies = [Residency.STREAMED]
    if problem.parameter is not None and not problem.is_cast(problem.parameter):
        residencies.append(Residency.RESIDENT)
    fronts: list[ClassFront] = []
    dropped: dict[str, int] = {}
    for orientation in Orientation:
        every, left_out = grids(problem, orientation)
        for reason, count in left_out.items():
            _count(dropped, reason, count * len(MemoryClass) * len(residencies))
        every, summing, worse = _without_worse_sums(every)
        _count(dropped, DOMINATED, worse * len(MemoryClass) * len(residencies))
        rounds: dict[Residency, list[Variants]] = {residency: [] for residency in residencies}
        pricings = {
            residency: Pricing(
                problem=problem,
                resident=problem.parameter if residency is Residency.RESIDENT else None,
                arrivals=arrivals,
                cast_before_copies=cast_before_copies,
            )
            for residency in residencies
        }
        for memory in MemoryClass:
            grid = _holdable(every, memory, dropped, len(residencies))
            product = product_cycles(
                problem,
                grids_of(every, grid),
                every.panels[grid],
                mode=Mode.INITIALIZE,
                memory=memory,
            )
            single = np.flatnonzero(every.inner_parts == 1).astype(np.int64)
            for residency, pricing in pricings.items():
                rounds[residency].append(
                    pricing.reductions(every, grid, product, _sums_of(summing, grid), memory)
                )
                rounds[residency].append(pricing.stationary(every, single, memory))
        for residency, parts in rounds.items():
            front = _front(every, joined(parts), summing, dropped)
            own = np.arange(len(front), dtype=np.int64)
            fronts.append(
                ClassFront(
                    micro=problem.micro,
                    residency=residency,
                    grids=grids_of(every, front.grid),
                    variants=replace(front, grid=own),
                )
            )
    return GemmCandidates(fronts=tuple(fronts), dropped=dropped)


def _count(dropped: dict[str, int], reason: str, count: int) -> None:
    if count:
        dropped[reason] = dropped.get(reason, 0) + count


def _front(every: Grids, variants: Variants, summing: Summing, dropped: dict[str, int]) -> Variants:
    """The front of a class: first without sums in batches, then with those that could be better."""
    considered = variants.of(_fitting(variants.costs, dropped))
    front = considered.of(pareto(considered.costs))
    bounds = variants.costs.copy()
    bounds[:, STANDARD] = variants.product_bytes
    others = every.inner_parts[variants.grid] - 1
    could_gain = np.flatnonzero((others > 1) & (variants.costs[:, STANDARD] > variants.product_bytes))
    promising = could_gain[unbeaten(bounds[could_gain], front.costs)].astype(np.int64)
    chosen = variants.of(promising)
    batches = in_batches(every, chosen, _sums_of(summing, chosen.grid))
    fitting = joined([front, batches.of(_fitting(batches.costs, dropped))])
    result = fitting.of(pareto(fitting.costs))
    possible = int(_batch_counts(int(others.max(initial=0)))[others].sum())
    _count(dropped, DOMINATED, len(considered) - len(front) + len(fitting) - len(result))
    _count(dropped, DOMINATED, possible - len(batches))
    return result


@functools.lru_cache(maxsize=16)
def _batch_counts(most: int) -> Column:
    """In how many batches below all of them 0 .. ``most`` partials can be brought, one for each stack."""
    counts = [len({-(-others // phases) for phases in range(2, others + 1)}) for others in range(most + 1)]
    return np.array(counts, dtype=np.int64)


def _holdable(every: Grids, memory: MemoryClass, dropped: dict[str, int], classes: int) -> Column:
    """Reductions that a tile can hold while the product runs."""
    summed = np.flatnonzero(every.inner_parts > 1).astype(np.int64)
    chosen = grids_of(every, summed)
    weights = chosen.batch * chosen.column_groups * chosen.panels * PANEL_BYTES
    streamed = chosen.batch * chosen.rows * chosen.panels * ROW_BYTES
    partial = partial_bytes(chosen)
    interleaved = np.where(chosen.panels > 1, partial, 0)
    if memory is MemoryClass.INTERLEAVED:
        interleaved += weights
    costs = np.zeros((len(summed), 4), dtype=np.int64)
    costs[:, INTERLEAVED] = interleaved
    costs[:, STANDARD] = weights + streamed + partial - interleaved
    return summed[_fitting(costs, dropped, classes)]


def _fitting(costs: npt.NDArray[np.int64], dropped: dict[str, int], classes: int = 1) -> Column:
    """Rows that a tile can hold; each of the others is counted once for each class."""
    interleaved, data = costs[:, INTERLEAVED], costs[:, STANDARD] + costs[:, INTERLEAVED]
    # Prices of rows take the longest encoding of each fragment; any encoding has a word of each.
    rows = WORD_BYTES * (costs[:, ROW_WORDS] // max(SEND_ROW_WORDS, RECEIVE_ROW_WORDS))
    fits = np.ones(len(costs), dtype=np.bool_)
    for what, needed, budget in (
        ("interleaved memory", interleaved, INTERLEAVED_BUDGET),
        ("data memory", data, DATA_BUDGET),
        ("exchange rows", rows, ROW_BUDGET),
    ):
        excess = fits & (needed > budget)
        fits &= ~excess
        _count(
            dropped, f"does not fit: more than {budget // 1024} KiB of {what}", int(excess.sum()) * classes
        )
    return np.flatnonzero(fits).astype(np.int64)


def _sums_of(summing: Summing, rows: Column) -> Summing:
    return Summing(cycles=summing.cycles[rows], words=summing.words[rows], bytes=summing.bytes[rows])


def _without_worse_sums(every: Grids) -> tuple[Grids, Summing, int]:
    """Grids without scatterings that another one of the same product beats; their sums; how many were beaten.

    Output-stationary grids have a sum that costs nothing.
    """
    several = np.flatnonzero(every.inner_parts > 1).astype(np.int64)
    summed = grids_of(every, several)
    sums = sum_partials(summed, None)
    # At most as many tiles as there are, and fewer rows than a call takes: both fit 64 bits.
    parts = (summed.batch_parts << 42) + (summed.row_parts << 28) + (summed.column_parts << 14)
    shape = np.stack([parts + summed.inner_parts, (summed.rows << 32) + summed.column_groups])
    order = np.lexsort(shape[::-1]).astype(np.int64)
    shape = shape[:, order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (shape[:, 1:] != shape[:, :-1]).any(axis=0)
    starts = np.append(np.flatnonzero(is_first), len(order)).astype(np.int64)
    table = np.stack([sums.cycles, sums.words, sums.bytes], axis=1)
    costs = np.zeros((len(every), 3), dtype=np.int64)
    costs[several] = table
    kept = every.inner_parts == 1
    kept[several[order[_best_of_groups(table[order], starts)]]] = True
    rows = np.flatnonzero(kept).astype(np.int64)
    cycles, words, sizes = costs[rows].T
    return grids_of(every, rows), Summing(cycles=cycles, words=words, bytes=sizes), int((~kept).sum())


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
