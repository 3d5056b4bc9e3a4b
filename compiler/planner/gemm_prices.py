"""What each grid of a product costs on its worst tile: cycles, bytes and exchange row words, as columns.

Kernels cost what their families say (PR-32): formulas are asked for distinct local shapes, once each. Copies
and sums cost what ``estimate.prices`` makes of bytes and fragments; fragments are counted from geometry:

* pieces of a home (see ``gemm_layout``) are one run each in the shard that they are copied to;
* from a value in other pieces, each panel of K is a run for each piece of rows that it meets, and each panel
  of weights is a run;
* a piece of a sum is one run of a partial, or one for each column group where it has a part of the rows; its
  own partial then is copied to where it can be summed.

What is multicast is sent once and received by each. A tile never sends more than the busiest receives: a
value that is stored once is spread over at least as many tiles as hold a shard of it.

Memory is the larger of what lives while the product runs and what lives during the sum; a home that is
stored once is not counted, since it is everyone's business.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.estimate.prices import local_copy_cycles, phase_cycles, row_words
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AMP_COLUMNS, AmpLeft
from compiler.geometry.precision import F8, F16
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, Side
from compiler.kernels import registry
from compiler.kernels.cast.binding import CastParameters
from compiler.kernels.contract import Refusal
from compiler.kernels.gemm.binding import PANEL_BYTES, ROW_BYTES, Kernel, Mode, Orientation, Weights
from compiler.kernels.gemm.costs import many_cycles
from compiler.kernels.reduce import binding as reduce
from compiler.planner.gemm_choice import ResultForm
from compiler.planner.gemm_grids import Column, Grids
from compiler.planner.gemm_problem import GemmProblem
from compiler.target.costs import KERNEL_LAUNCH

HALF_BYTES: Final = F16.element_bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """How an operand lies before it is brought: in panels, in pieces of one size.

    Args:
        outer: rows or columns of a piece, whichever the operand has.
        inner: elements of K of a piece.
    """

    outer: int
    inner: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bringing:
    """What bringing an operand, or a block of it, to its consumers costs the worst tile.

    Args:
        cycles: exchange and casts.
        words: of exchange rows.
        resident_bytes: of the operand where it is multiplied.
        peak_bytes: while it is cast there.
    """

    cycles: Column
    words: Column
    resident_bytes: Column
    peak_bytes: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summing:
    """What a sum of partials costs the worst tile.

    Args:
        cycles: exchange, copy of the own partial, and additions.
        words: of exchange rows.
        bytes: of the stack and of the result.
    """

    cycles: Column
    words: Column
    bytes: Column


def product_cycles(
    problem: GemmProblem, grids: Grids, panels: Column, *, mode: Mode, memory: MemoryClass
) -> Column:
    """Cycles of the products of the worst tile, over so many panels of K."""
    kernel = Kernel(
        mode=mode,
        factor=problem.factor,
        weights=Weights.WIDE if memory is MemoryClass.INTERLEAVED else Weights.NARROW,
        rounding=problem.rounding,
        has_blocks=grids.result_form is ResultForm.BLOCKS,
    )
    first, which = _distinct(grids.rows, panels, grids.column_groups)
    cycles = many_cycles(kernel, grids.rows[first], panels[first], grids.column_groups[first])
    return grids.batch * (cycles[which] + KERNEL_LAUNCH)


def partial_bytes(grids: Grids) -> Column:
    """Bytes of a tile's product."""
    return grids.batch * grids.rows * grids.column_groups * ROW_BYTES


def bring_rows(
    problem: GemmProblem,
    grids: Grids,
    panels: Column,
    arrival: Arrival | None,
    *,
    is_resident: bool,
    cast_before_copies: bool,
) -> Bringing:
    """Bringing what the unit streams, over so many panels of K.

    Args:
        problem: the product.
        grids: its grids.
        panels: of K, that are brought at a time.
        arrival: how it lies; None for a home of its own.
        is_resident: whether it lies where it is multiplied.
        cast_before_copies: whether it is cast before it is brought, if at all.
    """
    side = Side.LEFT if grids.orientation is Orientation.NORMAL else Side.RIGHT
    size = grids.batch * grids.rows * panels * ROW_BYTES
    none = np.zeros_like(size)
    if is_resident:
        return Bringing(cycles=none, words=none, resident_bytes=size, peak_bytes=size)
    is_cast = problem.is_cast(side)
    if arrival is None:
        units = grids.rows // grids.row_unit
        inner_pieces = np.minimum(panels, grids.column_parts)
        outer_pieces = np.minimum(units, grids.column_parts // inner_pieces)
        receives = _pieces(units, outer_pieces) * _pieces(panels, inner_pieces)
        receives *= np.where(outer_pieces > 1, grids.batch, 1)
    else:
        receives = grids.batch * _crossed(grids.rows, arrival.outer) * panels
        if (
            isinstance(problem.precision, F8)
            and arrival.inner % F8.micro
            and (cast_before_copies or not is_cast)
        ):
            # Half a panel of each row comes from another piece than the other half.
            receives = np.where(panels > 0, 2 * grids.batch * grids.rows * panels, 0)
    moved = size
    peak = size
    cast = none
    if is_cast:
        halves = 2 * panels
        if cast_before_copies:
            # Each tile casts what it will send: its part of all that there is.
            held = -(-grids.rows // grids.column_parts)
            cast = _cast_cycles(problem, grids.batch * held, halves)
        else:
            moved = 2 * size
            peak = 3 * size
            cast = _cast_cycles(problem, grids.batch * grids.rows, halves)
    sends = np.minimum(receives, panels)
    return Bringing(
        cycles=phase_cycles(moved, sends, receives) + cast,
        words=row_words(sends, receives),
        resident_bytes=size,
        peak_bytes=peak,
    )


def bring_weights(
    problem: GemmProblem, grids: Grids, panels: Column, arrival: Arrival | None, *, is_resident: bool
) -> Bringing:
    """Bringing the unit's weights, over so many panels of K; what has to be cast is cast before."""
    side = Side.RIGHT if grids.orientation is Orientation.NORMAL else Side.LEFT
    size = grids.batch * grids.column_groups * panels * PANEL_BYTES
    none = np.zeros_like(size)
    if is_resident:
        return Bringing(cycles=none, words=none, resident_bytes=size, peak_bytes=size)
    is_cast = problem.is_cast(side)
    if arrival is None and not is_cast:
        outer_pieces = np.minimum(grids.column_groups, grids.row_parts)
        inner_pieces = np.minimum(panels, grids.row_parts // outer_pieces)
        receives = grids.batch * _pieces(grids.column_groups, outer_pieces) * _pieces(panels, inner_pieces)
    else:
        receives = grids.batch * grids.column_groups * panels
    cast = none
    if is_cast:
        held = -(-grids.column_groups * AMP_COLUMNS // grids.row_parts)
        cast = _cast_cycles(problem, grids.batch * held, 2 * panels)
    sends = np.minimum(receives, grids.column_groups * panels)
    return Bringing(
        cycles=phase_cycles(size, sends, receives) + cast,
        words=row_words(sends, receives),
        resident_bytes=size,
        peak_bytes=size,
    )


def sum_partials(grids: Grids, batch: int | None) -> Summing:
    """A sum that brings so many partials at a time; None for all."""
    groups = grids.column_groups // grids.scatter_columns
    piece = grids.batch * (grids.rows // grids.scatter_rows) * groups * ROW_BYTES
    runs = np.where(grids.scatter_rows > 1, grids.batch * groups, 1)
    if grids.orientation is Orientation.SWAPPED or grids.result_form is ResultForm.BLOCKS:
        # Matrices of a batch lie one behind the other, not side by side in each column group.
        runs = np.where(grids.scatter_rows > 1, runs, grids.batch)
        if grids.result_form is ResultForm.BLOCKS:
            runs = np.where(grids.scatter_columns > 1, grids.batch * grids.rows // grids.scatter_rows, runs)
    others = grids.inner_parts - 1
    staged = others if batch is None else np.minimum(others, batch)
    whole, rest = others // staged, others % staged
    pieces = grids.scatter_rows * grids.scatter_columns
    sends_of_all = runs * pieces

    def phases(partials: Column) -> Column:
        """One phase with so many partials, and their sum."""
        sends = -(-sends_of_all * partials // others)
        return (
            phase_cycles(partials * piece, sends, runs * partials)
            + KERNEL_LAUNCH
            + _sum_cycles(piece, partials)
        )

    cycles = whole * phases(staged)
    cycles += np.where(rest > 0, phases(np.maximum(rest, 1)), 0)
    cycles += np.where(runs > 1, local_copy_cycles(piece) + KERNEL_LAUNCH, 0)
    return Summing(
        cycles=cycles,
        words=row_words(sends_of_all, runs * others),
        bytes=(staged + 1) * piece,
    )


def _pieces(extent: Column, pieces: Column) -> Column:
    """How many pieces there are when each has as many units as the largest of ``pieces`` needs."""
    return -(-extent // -(-extent // pieces))


def _crossed(extent: Column, piece: int) -> Column:
    """Most pieces of one size that so many neighbours lie in; where both divide, none is cut."""
    aligned = (extent % piece == 0) | (piece % extent == 0)
    return np.where(aligned, -(-extent // piece), (extent - 2) // piece + 2)


def _sum_cycles(piece: Column, partials: Column) -> Column:
    return reduce.many_cycles(piece // HALF_BYTES, partials)


def _cast_cycles(problem: GemmProblem, rows: Column, halves: Column) -> Column:
    """Casts of so many rows of so many panels of halves, each 16 columns, with the launch."""
    return _of_distinct(lambda count, panels: _cast_of(problem, count, panels), rows, halves) + KERNEL_LAUNCH


def _cast_of(problem: GemmProblem, rows: int, panels: int) -> int:
    columns = -(-panels * F16.micro // F8.micro) * F8.micro
    operands = tuple(
        LocalOperand(
            precision=precision,
            order=AmpLeft(),
            backing=(rows, width),
            region=Region.of_extents((rows, width)),
            logical=(rows, panels * F16.micro),
        )
        for precision, width in ((problem.precision, columns), (F16(), panels * F16.micro))
    )
    bound = registry.bind("cast", CastParameters(), operands, (None, Identity(rank=2)))
    if isinstance(bound, Refusal):
        raise AssertionError(f"panels of halves become panels of codes: {bound.reason}")
    return bound.cycles


def _of_distinct(function: Callable[[int, int], int], one: Column, other: Column) -> Column:
    """A function of two numbers for each row, asked once for each pair."""
    first, which = _distinct(one, other)
    values = [function(int(one[row]), int(other[row])) for row in first]
    return np.array(values, dtype=np.int64)[which] if values else np.zeros(0, dtype=np.int64)


def _distinct(*columns: Column) -> tuple[Column, Column]:
    """(first row of each distinct combination of small numbers, combination of each row)."""
    key = np.zeros_like(columns[0])
    for column in columns:
        key = key * (int(column.max(initial=0)) + 1) + column
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return first.astype(np.int64), which.astype(np.int64)
