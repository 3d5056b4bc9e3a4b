"""Row-major tensors and coefficient panels: the two sides of a rearrangement, and what it does to them.

Every order but row-major keeps *panel rows* of 32 bytes: neighbours of one axis, which is called ``along``
here, at one place of the other, ``across``. All of them are blocks of panels as in ``BlockMajor``, with
``along`` in place of its rows and ``across`` in place of its columns:

=======================  =======  =================================
order                    along    block (along x across)
=======================  =======  =================================
AMP left, output         columns  columns x rows: one block
AMP transposed left,     rows     rows x columns: one block
transposed output
AMP right                rows     rows x 16
AMP transposed right     columns  columns x 16
block-major              rows     row block x column block
block-major transposed   columns  row block x column block
=======================  =======  =================================

The two output orders are *drained*: inside of a panel row they hold pairs of neighbours in the sequence 0, 4,
1, 5, 2, 6, 3, 7.
"""

from dataclasses import dataclass, replace
from math import prod
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import (
    AMP_COLUMNS,
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    RowMajor,
)
from compiler.geometry.region import Region
from compiler.geometry.relation import Relation
from compiler.geometry.traversal import Traversal, traverse
from compiler.kernels.contract import NO_BYTES, Access, Padding, PaddingState
from compiler.kernels.packed import pack, span

NAME: Final = "rearrange"
ALIGNMENT: Final = 8
WORKERS: Final = 6
ATOM: Final = 8
WORD: Final = 4
HALF: Final = 2
PANEL_ROW: Final = 32
"""Bytes that stay together in every order but row-major."""
RUN: Final = PANEL_ROW // HALF
"""Units of 16 bits in a panel row."""
MOST: Final = 1 << 16
"""Extents are below this: two of them share an argument."""
DRAIN: Final = (0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15)
"""Where in a drained panel row the neighbours are."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A gapless row-major operand.

    Args:
        start: first byte, relative to the backing storage.
        matrices: how many.
        rows: of each.
        columns: of each.
    """

    start: int
    matrices: int
    rows: int
    columns: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """A gapless operand in panel rows.

    Args:
        start: first byte, relative to the backing storage.
        matrices: how many.
        along: extent of each along panel rows, a multiple of ``along_block``.
        across: the other extent, a multiple of ``across_block``.
        along_block: extent of a block along panel rows, whole panel rows.
        across_block: the other extent of a block.
        rows_are_along: whether panel rows hold neighbours of a column; otherwise of a row.
        is_drained: whether they are in the sequence in which the AMP unit drains.
    """

    start: int
    matrices: int
    along: int
    across: int
    along_block: int
    across_block: int
    rows_are_along: bool
    is_drained: bool


def rows_of(operand: LocalOperand) -> Rows | None:
    """A row-major operand of whole matrices; None when it is in another order, or has gaps."""
    if operand.order != RowMajor() or len(operand.physical) < 2:
        return None
    packed = pack(operand)
    if packed is None:
        return None
    *outer, rows, columns = operand.physical
    return Rows(start=packed.start, matrices=prod(outer), rows=rows, columns=columns)


def panels_of(operand: LocalOperand) -> Panels | None:
    """An operand in panel rows; None when it is row-major, or has gaps.

    Matrices of AMP left and output are one: their rows follow one another in every panel.
    """
    packed = pack(operand)
    if packed is None or len(operand.physical) < 2:
        return None
    *outer, rows, columns = operand.physical
    matrices = prod(outer)
    rows_are_along = False
    match operand.order:
        case RowMajor():
            return None
        case AmpLeft() | AmpOutput():
            rows, matrices = matrices * rows, 1
            blocks = (columns, rows)
        case AmpTransposedLeft() | AmpTransposedOutput():
            rows_are_along = True
            blocks = (rows, columns)
        case AmpRight():
            rows_are_along = True
            blocks = (rows, AMP_COLUMNS)
        case AmpTransposedRight():
            blocks = (columns, AMP_COLUMNS)
        case BlockMajor(row_block=along_block, column_block=across_block):
            rows_are_along = True
            blocks = (along_block, across_block)
        case BlockMajorTransposed(row_block=along_block, column_block=across_block):
            blocks = (along_block, across_block)
        case _:
            assert_never(operand.order)
    along, across = (rows, columns) if rows_are_along else (columns, rows)
    return Panels(
        start=packed.start,
        matrices=matrices,
        along=along,
        across=across,
        along_block=blocks[0],
        across_block=blocks[1],
        rows_are_along=rows_are_along,
        is_drained=isinstance(operand.order, AmpOutput | AmpTransposedOutput),
    )


def facing(rows: Rows, panels: Panels) -> Rows | None:
    """Rows counted as the panels count them; None when they hold other matrices."""
    if rows.matrices == panels.matrices:
        return rows
    if panels.matrices == 1 and not panels.rows_are_along and rows.matrices * rows.rows == panels.across:
        return replace(rows, matrices=1, rows=panels.across)
    return None


def result_access(result: LocalOperand, operand: LocalOperand, start: int, size: int) -> Access:
    """All ``size`` bytes of a result are written; where they end inside of a word, its other half is kept."""
    after = PaddingState.ZERO if result.logical == operand.logical else PaddingState.FINITE
    kept = -size % WORD
    return Access(
        operand=result,
        start=start,
        alignment=ALIGNMENT,
        reads=span(start + size, kept) if kept else NO_BYTES,
        writes=span(start, size + kept),
        padding=_padding((result.padding_traversal(), PaddingState.ANY, after)),
    )


def operand_access(
    operand: LocalOperand,
    relation: Relation | None,
    start: int,
    moved: Region,
    read: tuple[Region, ...],
) -> Access:
    """What is moved must be zero where it is padding; what is only read, in the same units, can be anything.

    Args:
        operand: the operand.
        relation: of the operand.
        start: first byte.
        moved: coordinates that reach the result.
        read: disjoint regions that contain them.
    """
    only_read = [part for region in read for part in region.subtract(moved)]
    idle = [part for region in only_read for part in region.subtract(operand.logical_region)]
    return Access(
        operand=operand,
        relation=relation,
        start=start,
        alignment=ALIGNMENT,
        reads=_bytes_of(operand, read),
        padding=_padding(
            (_bytes_of(operand, moved.subtract(operand.logical_region)), PaddingState.ZERO, None),
            (_bytes_of(operand, idle), PaddingState.ANY, None),
        ),
    )


def part_of(operand: LocalOperand, rows: tuple[int, int], columns: int) -> Region:
    """These rows, as far as there are, and the first columns of every matrix of an operand."""
    *outer, (row, stop), (column, _) = operand.region.bounds
    return Region(bounds=(*outer, (row + rows[0], min(row + rows[1], stop)), (column, column + columns)))


def drain_places(count: int) -> npt.NDArray[np.int64]:
    """Where the first ``count`` neighbours are, in panel rows that follow one another, in elements."""
    index = np.arange(count, dtype=np.int64)
    return index // RUN * RUN + np.array(DRAIN, dtype=np.int64)[index % RUN]


def _padding(*entries: tuple[Traversal, PaddingState, PaddingState | None]) -> tuple[Padding, ...]:
    return tuple(
        Padding(part=part, before=before, after=after) for part, before, after in entries if part.pieces
    )


def _bytes_of(operand: LocalOperand, regions: tuple[Region, ...] | list[Region]) -> Traversal:
    return Traversal(
        pieces=tuple(
            piece
            for region in regions
            for piece in traverse(operand.storage, region, operand.precision.element_bytes).pieces
        )
    )
