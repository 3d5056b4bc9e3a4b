"""Row-major in whole 32-bit words to panel rows of its columns and back: contract and cost of ``transpose``.

The unit is a block of four rows and two columns: four words of the row-major side, two atoms of the panels.
A worker loads six of them, sorts their halves four times in the bundles of the loads and stores, and stores:
six bundles for eight elements, one for every load and store. (Blocks of four by four would need eight for
sixteen, but not within the eight arithmetic registers that a worker has.)

Four rows are a *quad*. Workers share quads and blocks of columns by lanes; within a block the inner loop goes
from one pair of columns to the next, which are evenly apart on both sides. Where all columns are evenly
apart, blocks are cut so that every lane has one. The last quad of a stripe can have fewer rows. Packing then
takes zeros for the others, and unpacking does not store them.

In the order in which products drain, an atom holds rows 2 q, 2 q + 1, 2 q + 8 and 2 q + 9 of its panel: the
kernel of that order steps seven rows in the middle of a block.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.geometry.precision import F16
from compiler.geometry.region import Region
from compiler.kernels.contract import Binding, Operand, Pointer, Request, Result, Scalar, TileMemory, Work
from compiler.kernels.rearrange.sides import (
    HALF,
    MOST,
    NAME,
    PANEL_ROW,
    RUN,
    WORD,
    WORKERS,
    operand_access,
    part_of,
    result_access,
)
from compiler.kernels.rearrange.stripes import Facing, Stripes, stripes_cycles
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, SIMPLE
from compiler.target.units import Cycles

QUAD: Final = 4
"""Rows of a block."""
PAIR: Final = 2
"""Columns of a block."""
ATOMS_OF_PANEL_ROW: Final = 4

SETUP: Final = {"pack": 55, "unpack": 48, "drained": 50}
"""Instructions of the supervisor before its loops; ``drained`` only unpacks."""


def transpose_symbol(*, is_packing: bool, is_drained: bool = False) -> SymbolKey:
    """The kernel of a direction and an order inside of panel rows."""
    return SymbolKey(
        family=NAME,
        variant="transpose",
        choices=(
            ("direction", "pack" if is_packing else "unpack"),
            ("lanes", "drained" if is_drained else "plain"),
        ),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transposition:
    """A call.

    Args:
        stripes: what is moved.
        is_packing: whether the panels are the result.
        pairs: of columns, in a block of the inner loop.
        block_bytes: from block to block of the panels.
        lanes: (columns, rows) side by side.
    """

    stripes: Stripes
    is_packing: bool
    pairs: int
    block_bytes: int
    lanes: tuple[int, int]

    @property
    def moved_pairs(self) -> int:
        """Pairs of columns that are moved."""
        return self.stripes.across // PAIR

    @property
    def all_pairs(self) -> int:
        """Pairs of columns that the loops go over: those to clear as well."""
        return self.stripes.across_panels // PAIR if self.is_packing else self.moved_pairs

    def quads(self, fill: int) -> int:
        """Quads of a stripe of so many rows that the loops go over."""
        if self.is_packing:
            return self.stripes.along_block // QUAD
        panels = -(-fill // RUN)
        return panels * ATOMS_OF_PANEL_ROW if self.stripes.is_drained else -(-fill // QUAD)

    def rows_of_quad(self, quad: int, fill: int) -> int:
        """Rows of a quad that are moved, 0 to 4."""
        if not self.stripes.is_drained:
            return max(0, min(QUAD, fill - QUAD * quad))
        left = fill - quad // ATOMS_OF_PANEL_ROW * RUN - quad % ATOMS_OF_PANEL_ROW * 2
        return max(0, min(2, left)) + max(0, min(2, left - RUN // 2))


def bind_transpose(request: Request, faced: Facing) -> Binding | None:
    """The call of ``transpose``; None when it cannot do this."""
    result, operand = request.operands
    rows, panels = faced.rows, faced.panels
    row_bytes = HALF * rows.columns
    if not (panels.rows_are_along and result.precision == F16()):
        return None
    if row_bytes % WORD or faced.across % PAIR or panels.across % PAIR or panels.across_block % PAIR:
        return None
    if rows.matrices > 1 and faced.along < rows.rows:
        return None
    stripes = Stripes(
        matrices=rows.matrices,
        along=faced.along,
        across=faced.across,
        along_block=panels.along_block,
        across_panels=panels.across,
        block=panels.across_block,
        block_bytes=HALF * panels.along_block * panels.across_block,
        panel_bytes=PANEL_ROW * panels.across_block,
        along_bytes=row_bytes,
        across_bytes=HALF,
        matrix_bytes=row_bytes * faced.along,
        is_drained=panels.is_drained,
    )
    call = min(_ways(stripes, is_packing=faced.is_packing), key=transpose_cycles)
    if row_bytes // WORD >= MOST:
        return None
    result_size = HALF * int(np.prod(result.physical))
    moved = part_of(operand, (0, faced.moved_rows), faced.moved_columns)
    read = (moved,) if faced.is_packing else _read(request, faced, moved)
    starts = (panels.start, rows.start) if faced.is_packing else (rows.start, panels.start)
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(result_access(result, operand, starts[0], result_size),),
        operands=(operand_access(operand, request.relations[1], starts[1], moved, read),),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="moved", value=stripes.along | call.moved_pairs << 16),
            Scalar(name="panels", value=stripes.along_block | stripes.across_panels // PAIR << 16),
            Scalar(name="shares", value=stripes.matrices | call.lanes[0] << 16 | call.lanes[1] << 19),
            Scalar(name="row", value=row_bytes // WORD | call.pairs << 16),
            Scalar(name="block_bytes", value=call.block_bytes),
            Scalar(name="panel_bytes", value=stripes.panel_bytes),
        ),
        symbol=transpose_symbol(is_packing=faced.is_packing, is_drained=panels.is_drained),
        work=Work(moved_bytes=int(np.prod(result.logical)) * HALF),
        cycles=transpose_cycles(call),
    )


def _ways(stripes: Stripes, *, is_packing: bool) -> list[Transposition]:
    """Lanes, and cuts of a single block of columns, to choose from."""
    ways: list[Transposition] = []
    for lanes in LANES:
        cuts = {stripes.block // PAIR}
        is_whole = stripes.across == stripes.across_panels
        if stripes.block == stripes.across_panels and (is_whole or not is_packing):
            cuts.add(-(-stripes.across // PAIR // lanes[0]))
        for pairs in sorted(cuts):
            is_cut = pairs != stripes.block // PAIR
            block_bytes = PAIR * PANEL_ROW * pairs if is_cut else stripes.block_bytes
            ways.append(
                Transposition(
                    stripes=stripes,
                    is_packing=is_packing,
                    pairs=pairs,
                    block_bytes=block_bytes,
                    lanes=lanes,
                )
            )
    return ways


def _read(request: Request, faced: Facing, moved: Region) -> tuple[Region, ...]:
    """What unpacking loads: all rows of the atoms of the last panel of which one is moved."""
    operand = request.operands[1]
    whole, rest = faced.along // RUN * RUN, faced.along % RUN
    columns = faced.moved_columns
    if rest == 0:
        return (moved,)
    if not faced.panels.is_drained:
        return (part_of(operand, (0, whole + -(-rest // QUAD) * QUAD), columns),)
    pairs = min(RUN // 2, -(-rest // 2) * 2)
    spans = [(0, whole + pairs), (whole + RUN // 2, whole + RUN // 2 + pairs)]
    if pairs == RUN // 2:
        spans = [(0, whole + RUN)]
    return tuple(part_of(operand, span, columns) for span in spans)


def transpose_cycles(call: Transposition) -> Cycles:
    """What a call takes: a bundle for every word or atom that is loaded or stored, and its loops."""
    is_drained = call.stripes.is_drained
    setup = SETUP["pack" if call.is_packing else "drained" if is_drained else "unpack"]
    stores = 3 if call.is_packing else 7 if is_drained else 6

    def issues(fill: int, _behind: int) -> list[int]:
        return [_issues(call, worker, fill) for worker in range(WORKERS)]

    return stripes_cycles(call.stripes, [SIMPLE] * setup, stores, issues)


def _issues(call: Transposition, worker: int, fill: int) -> int:
    """Issues of a worker in a stripe of so many rows."""
    lane, row_lane = worker % call.lanes[0], worker // call.lanes[0]
    if lane * call.pairs >= call.all_pairs:
        return 25
    quads = range(row_lane, call.quads(fill), call.lanes[1])
    counts = [0] * (QUAD + 1)
    if not call.stripes.is_drained:
        # Whole quads come first, then at most one of fewer rows.
        counts[QUAD] = len(range(row_lane, fill // QUAD, call.lanes[1]))
        quads = quads[counts[QUAD] :]
    for quad in quads:
        counts[call.rows_of_quad(quad, fill)] += 1
    each = 28 if call.stripes.is_drained else 19 if call.is_packing else 18
    issues = 24 + 4
    for rows, count in enumerate(counts):
        if count and rows == 0 and not call.is_packing:
            issues += count * (17 + 3)
        elif count:
            issues += count * (each + _blocks(call, lane, rows) + 3)
    return issues


def _blocks(call: Transposition, lane: int, rows: int) -> int:
    """Issues for all blocks of a lane in a quad of so many rows."""
    fill = call.all_pairs - call.moved_pairs
    issues = 0
    for first in range(lane * call.pairs, call.all_pairs, call.lanes[0] * call.pairs):
        left = call.all_pairs - first
        pairs = min(call.pairs, left)
        moved = min(call.pairs, left - fill)
        issues += 4 + 5 * (first + call.lanes[0] * call.pairs < call.all_pairs)
        if rows == 0 or moved <= 0:
            issues += 5 + 2 * (rows > 0) + 3 + 2 + 2 * pairs
            continue
        issues += 9 if call.is_packing else 4
        issues += _run(call, rows, moved)
        if call.is_packing:
            issues += 2 + (7 + 2 * (pairs - moved) if fill else 0)
    return issues


def _run(call: Transposition, rows: int, pairs: int) -> int:
    """Issues for so many pairs of columns of a quad."""
    is_drained = call.stripes.is_drained
    if rows == QUAD:
        return 6 + 6 * pairs + is_drained
    look = (0, 2, 4, 4)[rows]
    strides = (1 + is_drained) * (rows == QUAD - 1)
    if call.is_packing:
        return look + strides + 1 + QUAD - rows + pairs * (8 + rows) + 1
    return look + strides + 1 + pairs * (4 + 2 * rows) + 1


def _call_of(key: SymbolKey, arguments: tuple[int, ...]) -> Transposition:
    """The call, from symbol and argument registers."""
    moved, panels, shares, row, block_bytes, panel_bytes = arguments[2:8]
    row_bytes, pairs = WORD * (row & 0xFFFF), row >> 16
    along = moved & 0xFFFF
    stripes = Stripes(
        matrices=shares & 0xFFFF,
        along=along,
        across=PAIR * (moved >> 16),
        along_block=panels & 0xFFFF,
        across_panels=PAIR * (panels >> 16),
        block=PAIR * pairs,
        block_bytes=block_bytes,
        panel_bytes=panel_bytes,
        along_bytes=row_bytes,
        across_bytes=HALF,
        matrix_bytes=row_bytes * along,
        is_drained=key.choice("lanes") == "drained",
    )
    return Transposition(
        stripes=stripes,
        is_packing=key.choice("direction") == "pack",
        pairs=pairs,
        block_bytes=block_bytes,
        lanes=(shares >> 16 & 7, shares >> 19 & 7),
    )


def cycles_of_transpose(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    return transpose_cycles(_call_of(key, arguments))


def execute_transpose(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``transpose`` does, given its argument registers."""
    call = _call_of(key, arguments)
    call.stripes.execute(arguments[0], arguments[1], memory, is_packing=call.is_packing)
