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

import functools
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Final, final

import numpy as np

from compiler.estimate.prices import local_copy_cycles, phase_cycles, row_words
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AMP_COLUMNS, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, Side
from compiler.kernels.cast import binding as cast
from compiler.kernels.cast import panels as cast_panels
from compiler.kernels.contract import Refusal, Request
from compiler.kernels.gemm.binding import (
    PANEL_BYTES,
    ROW_BYTES,
    Factor,
    Kernel,
    Mode,
    Orientation,
    Weights,
)
from compiler.kernels.gemm.costs import many_cycles
from compiler.kernels.reduce import binding as reduce
from compiler.planner.gemm_grids import Column, Grids
from compiler.planner.gemm_problem import Arrival, GemmProblem, conversions
from compiler.target.costs import KERNEL_LAUNCH

HALF_BYTES: Final = F16.element_bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bringing:
    """What bringing an operand, or a block of it, to its consumers costs the worst tile.

    Args:
        cycles: exchange, and casts where the operand is multiplied.
        once: cycles of casts where it is, however many blocks of it are brought.
        words: of exchange rows.
        resident_bytes: of the operand where it is multiplied.
        peak_bytes: while it is cast there.
    """

    cycles: Column
    once: int
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
    )
    first, which = _distinct(grids.rows, panels, grids.column_groups)
    rows, groups = grids.rows[first], grids.column_groups[first]
    cycles = many_cycles(kernel, rows, panels[first], groups)
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
    if is_resident:
        return _nothing(size)
    source = problem.form(side).precision
    is_cast_there = problem.is_cast(side) and isinstance(problem.precision, F8) and not cast_before_copies
    if arrival is None and not isinstance(source, F32):
        units = grids.rows
        inner_pieces = np.minimum(panels, grids.column_parts)
        outer_pieces = np.minimum(units, grids.column_parts // inner_pieces)
        receives = _pieces(units, outer_pieces) * _pieces(panels, inner_pieces)
        receives *= np.where(outer_pieces > 1, grids.batch, 1)
    elif arrival is None or not arrival.is_in_panels:
        # Rows of panels are apart from each other.
        receives = grids.batch * grids.rows * panels
    elif problem.factor is Factor.F8 and not is_cast_there and arrival.inner % F8.micro:
        # Pieces end with half a panel of codes, so each row of a panel comes in two.
        receives = 2 * grids.batch * grids.rows * panels
    else:
        receives = grids.batch * _crossed(grids.rows, arrival.outer) * panels
    sends = np.minimum(receives, panels)
    cast = np.zeros_like(size)
    if is_cast_there:
        cast = _cast_rows(grids.batch * grids.rows, panels)
    return Bringing(
        cycles=phase_cycles(2 * size if is_cast_there else size, sends, receives) + cast,
        once=_casts_before(problem, side, arrival, problem.precision if not is_cast_there else F16()),
        words=row_words(sends, receives),
        resident_bytes=size,
        peak_bytes=3 * size if is_cast_there else size,
    )


def bring_weights(
    problem: GemmProblem, grids: Grids, panels: Column, arrival: Arrival | None, *, is_resident: bool
) -> Bringing:
    """Bringing the unit's weights, over so many panels of K; what has to be cast is cast before."""
    side = Side.RIGHT if grids.orientation is Orientation.NORMAL else Side.LEFT
    size = grids.batch * grids.column_groups * panels * PANEL_BYTES
    if is_resident:
        return _nothing(size)
    if arrival is None and not problem.is_cast(side):
        outer_pieces = np.minimum(grids.column_groups, grids.row_parts)
        inner_pieces = np.minimum(panels, grids.row_parts // outer_pieces)
        receives = grids.batch * _pieces(grids.column_groups, outer_pieces) * _pieces(panels, inner_pieces)
    else:
        receives = grids.batch * grids.column_groups * panels
        if arrival is not None and not arrival.is_in_panels:
            receives = receives * AMP_COLUMNS
    sends = np.minimum(receives, grids.column_groups * panels)
    return Bringing(
        cycles=phase_cycles(size, sends, receives),
        once=_casts_before(problem, side, arrival, problem.precision),
        words=row_words(sends, receives),
        resident_bytes=size,
        peak_bytes=size,
    )


def _nothing(size: Column) -> Bringing:
    """Of an operand that is there."""
    none = np.zeros_like(size)
    return Bringing(cycles=none, once=0, words=none, resident_bytes=size, peak_bytes=size)


def sum_partials(grids: Grids, batch: int | Column | None) -> Summing:
    """Sums that bring so many partials at a time, each or all of them; None for all at once."""
    groups = grids.column_groups // grids.scatter_columns
    piece = grids.batch * (grids.rows // grids.scatter_rows) * groups * ROW_BYTES
    # Matrices of a batch lie side by side in each column group, or one behind the other when swapped.
    alone = 1 if grids.orientation is Orientation.NORMAL else grids.batch
    runs = np.where(grids.scatter_rows > 1, grids.batch * groups, alone)
    others = grids.inner_parts - 1
    staged = others if batch is None else np.minimum(others, batch)
    whole, rest = others // staged, others % staged
    pieces = grids.scatter_rows * grids.scatter_columns
    # A tile sends its partial to all owners of the sum at once, but not to itself.
    sent = np.where(pieces == grids.inner_parts, pieces - 1, pieces)

    runs = np.broadcast_to(runs, piece.shape)

    def phases(partials: Column, rows: Column | slice) -> Column:
        """One phase with so many partials, and their sum."""
        size, count, away = piece[rows], runs[rows], sent[rows]
        moved = phase_cycles(np.maximum(partials, away) * size, count * away, count * partials)
        return moved + _sum_cycles(size, partials) + KERNEL_LAUNCH

    cycles = whole * phases(staged, slice(None))
    uneven = np.flatnonzero(rest)
    cycles[uneven] += phases(rest[uneven], uneven)
    cycles += np.where(runs > 1, local_copy_cycles(piece) + KERNEL_LAUNCH, 0)
    return Summing(cycles=cycles, words=row_words(runs * sent, runs * others), bytes=(staged + 1) * piece)


def _pieces(extent: Column, pieces: Column) -> Column:
    """How many pieces there are when each has as many units as the largest of ``pieces`` needs."""
    return -(-extent // -(-extent // pieces))


def _crossed(extent: Column, piece: int) -> Column:
    """Most pieces of one size that so many neighbours lie in; where both divide, none is cut."""
    aligned = (extent % piece == 0) | (piece % extent == 0)
    return np.where(aligned, -(-extent // piece), (extent - 2) // piece + 2)


def _sum_cycles(piece: Column, partials: Column) -> Column:
    return reduce.many_cycles(piece // HALF_BYTES, partials)


def _casts_before(problem: GemmProblem, side: Side, arrival: Arrival | None, target: Precision) -> int:
    """Casts of an operand where it is, each tile its part; a home of its own is spread over all tiles."""
    form = problem.form(side)
    elements = prod(form.shape)
    piece = (
        -(-elements // problem.tile_count)
        if arrival is None
        else min(elements, arrival.outer * arrival.inner)
    )
    count = -(-piece // F8.micro) * F8.micro
    total, source = 0, form.precision
    for precision in conversions(source, target):
        total += _cast_of_vector(source, precision, count) + KERNEL_LAUNCH
        source = precision
    return total


def _cast_rows(rows: Column, panels: Column) -> Column:
    """Casts of so many rows of so many panels of codes, where they are multiplied, with the launch."""
    return _of_distinct(_cast_of_panels, rows, panels) + KERNEL_LAUNCH


@functools.lru_cache(maxsize=1 << 16)
def _cast_of_panels(rows: int, panels: int) -> int:
    """Cycles of one call that merges panels of halves to so many of codes."""
    extents = cast_panels.Extents(
        rows=rows, moved_rows=rows, half_panels=2 * panels, rest=0, step=ROW_BYTES * rows, row=ROW_BYTES
    )
    kernel, lanes = cast_panels.choose(extents, None, is_packing=True, is_separate=False)
    return cast_panels.cycles(kernel, extents, lanes, None)


@functools.lru_cache(maxsize=1 << 10)
def _cast_of_vector(source: Precision, target: Precision, count: int) -> int:
    """Cycles of one call over so many elements."""
    operands = tuple(
        LocalOperand(
            precision=precision,
            order=RowMajor(),
            backing=(count,),
            region=Region.of_extents((count,)),
            logical=(count,),
        )
        for precision in (target, source)
    )
    bound = cast.FAMILY.bind(
        Request(parameters=cast.CastParameters(), operands=operands, relations=(None, Identity(rank=1)))
    )
    if isinstance(bound, Refusal):
        raise AssertionError(f"{source} becomes {target}: {bound.reason}")
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
