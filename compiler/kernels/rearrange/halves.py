"""Row-major and panel rows in units of 16 bits: contract and cost of ``halves``.

Rows of any even number of bytes, and every order. The other kernels are faster where they can be used.

**Packing.** A worker makes whole panel rows: it gathers sixteen units at one stride, two to a word, and
stores four atoms. A panel row of fewer units is filled up with zeros, and so are those that the row-major
side does not have. Workers share panel rows by lanes.

**Unpacking.** A worker makes *runs* of a row, one for each piece that the panels hold at one stride: sixteen
units of a panel row, or a block of columns. Runs of rows of an odd number of units begin and end inside of
words. There are no 16-bit stores: such a word is loaded and stored with its other half unchanged. Two workers
must never do so with one word, so each takes two rows that follow one another from a word's beginning on, and
matrices, whose rows may meet in a word likewise, are done one after the other.

The order in which products drain takes two strides in turn where it is in the columns, and another place of a
row in its panel where it is in the rows.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.geometry.precision import F16
from compiler.kernels.contract import (
    Binding,
    Operand,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.rearrange.sides import (
    HALF,
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
from compiler.kernels.timing import LANES, SIMPLE, TAKEN, lane_share
from compiler.target.units import Cycles

WHOLE: Final = 31
"""Logarithm of a block of panel rows when there is one block."""
MOST_ROW_BYTES: Final = 1 << 20
ROWS_TOGETHER: Final = 2
"""Rows that one worker unpacks after each other: they begin and end at words."""


def halves_symbol(*, is_packing: bool, drained: str | None = None) -> SymbolKey:
    """The kernel of a direction and an order inside of panel rows.

    Args:
        is_packing: the direction.
        drained: ``rows`` or ``columns``, where neighbours are in the sequence in which products drain.
    """
    return SymbolKey(
        family=NAME,
        variant="halves",
        choices=(
            ("direction", "pack" if is_packing else "unpack"),
            ("lanes", "plain" if drained is None else f"drained_{drained}"),
        ),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Halves:
    """A call.

    Args:
        stripes: what is moved.
        is_packing: whether the panels are the result.
        rows_are_along: whether panel rows hold neighbours of a column.
        lanes: (panels, panel rows of one) side by side, of packing.
    """

    stripes: Stripes
    is_packing: bool
    rows_are_along: bool
    lanes: tuple[int, int]

    @property
    def row_bytes(self) -> int:
        """From row to row of the row-major side."""
        stripes = self.stripes
        return stripes.along_bytes if self.rows_are_along else stripes.across_bytes

    @property
    def drained(self) -> str | None:
        """Where the order in which products drain is."""
        if not self.stripes.is_drained:
            return None
        return "rows" if self.rows_are_along else "columns"


def bind_halves(request: Request, faced: Facing) -> Binding | Refusal:
    """The call of ``halves``."""
    result, operand = request.operands
    rows, panels = faced.rows, faced.panels
    element = result.precision.element_bytes
    row_bytes = rows.columns * element
    if panels.rows_are_along and result.precision != F16():
        return Refusal(reason="only F16 is transposed")
    if panels.is_drained and result.precision != F16():
        return Refusal(reason="only F16 is put in sequence")
    if row_bytes % HALF:
        return Refusal(reason=f"a row of {row_bytes} bytes is no whole number of 16-bit units")
    if row_bytes >= MOST_ROW_BYTES:
        return Refusal(reason=f"a row of {row_bytes} bytes is too long")
    block = panels.across_block
    if block != panels.across and block & (block - 1):
        return Refusal(reason=f"blocks of {block} panel rows are no power of two")
    along_bytes, across_bytes = (row_bytes, HALF) if panels.rows_are_along else (HALF, row_bytes)
    stripes = Stripes(
        matrices=rows.matrices,
        along=faced.along * element // HALF,
        across=faced.across,
        along_block=panels.along_block * element // HALF,
        across_panels=panels.across,
        block=block,
        block_bytes=panels.along_block * block * element,
        panel_bytes=PANEL_ROW * block,
        along_bytes=along_bytes,
        across_bytes=across_bytes,
        matrix_bytes=row_bytes * rows.rows,
        is_drained=panels.is_drained,
    )
    calls = [
        Halves(
            stripes=stripes,
            is_packing=faced.is_packing,
            rows_are_along=panels.rows_are_along,
            lanes=lanes,
        )
        for lanes in (LANES if faced.is_packing else LANES[-1:])
    ]
    call = min(calls, key=halves_cycles)
    moved = part_of(operand, (0, faced.moved_rows), faced.moved_columns)
    starts = (panels.start, rows.start) if faced.is_packing else (rows.start, panels.start)
    shift = WHOLE if block == panels.across else block.bit_length() - 1
    flag = int(panels.rows_are_along)
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(result_access(result, operand, starts[0], int(np.prod(result.physical)) * element),),
        operands=(operand_access(operand, request.relations[1], starts[1], moved, (moved,)),),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="moved", value=stripes.along | stripes.across << 16),
            Scalar(name="panels", value=stripes.along_block | stripes.across_panels << 16),
            Scalar(
                name="shares",
                value=stripes.matrices | shift << 16 | flag << 21 | call.lanes[0] << 22 | call.lanes[1] << 25,
            ),
            Scalar(name="row_bytes", value=row_bytes),
            Scalar(name="matrix_bytes", value=stripes.matrix_bytes),
            Scalar(name="panel_bytes", value=stripes.panel_bytes),
        ),
        symbol=halves_symbol(is_packing=faced.is_packing, drained=call.drained),
        work=Work(moved_bytes=int(np.prod(result.logical)) * element),
        cycles=halves_cycles(call),
    )


def halves_cycles(call: Halves) -> Cycles:
    """What a call takes: 20 bundles for a whole panel row, three for two units of a run, and the loops."""
    if call.is_packing:
        setup = [SIMPLE] * 57
    elif call.rows_are_along:
        setup = [*[SIMPLE] * 45, TAKEN, SIMPLE]
    else:
        setup = [*[SIMPLE] * 34, TAKEN, *[SIMPLE] * 9]

    def issues(fill: int, behind: int) -> list[int]:
        if call.is_packing:
            return [_pack_issues(call, worker, fill) for worker in range(WORKERS)]
        return [_unpack_issues(call, worker, fill, behind) for worker in range(WORKERS)]

    return stripes_cycles(call.stripes, setup, 3, issues)


def _pack_issues(call: Halves, worker: int, fill: int) -> int:
    """Issues of a worker that packs a stripe of so many units along."""
    stripes, (lanes, line_lanes) = call.stripes, call.lanes
    lane, line_lane = worker % lanes, worker // lanes
    moved = max(0, lane_share(stripes.across, line_lane, line_lanes))
    lines = max(0, lane_share(stripes.across_panels, line_lane, line_lanes))
    issues = 12 + 3 + 1
    for units, count in ((fill, moved), (0, lines - moved)):
        whole, rest = units // RUN, units % RUN
        each = 3 + 13 + 7 + 4 + 1 + 9 + 1 + 20 * max(0, lane_share(whole, lane, lanes)) + 5 + 3
        if lane == whole % lanes:
            left = stripes.along_block // RUN - whole
            each += 4
            if left:
                each += 2 + 3
                if rest:
                    each += 4 + 1 + 4 * (rest // 2) + 1 + 3 * (rest % 2) + 1 + (RUN - rest) // 2 + 3
                    left -= 1
                each += 4 * left
        issues += count * each
    return issues


def _unpack_issues(call: Halves, worker: int, fill: int, behind: int) -> int:
    """Issues of a worker that unpacks a stripe of so many units along.

    Args:
        call: the call.
        worker: its number.
        fill: units along.
        behind: bytes of a word before the first row of the matrix.
    """
    lines, columns = (fill, call.stripes.across) if call.rows_are_along else (call.stripes.across, fill)
    offset = behind // HALF
    each = 3 + 11 + 4 + 1 + 6 + (8 if call.drained == "rows" else 1 if call.drained == "columns" else 0)
    issues = 10 + 3 + 1
    for number in range(ROWS_TOGETHER):
        first = ROWS_TOGETHER * worker - offset + number
        rows = range(first if first >= 0 else first + ROWS_TOGETHER * WORKERS, lines, ROWS_TOGETHER * WORKERS)
        if rows:
            is_inside = (behind + rows[0] * call.row_bytes) % WORD != 0
            issues += len(rows) * (each + _row_issues(call, columns, is_inside=is_inside))
    return issues


def _row_issues(call: Halves, columns: int, *, is_inside: bool) -> int:
    """Issues for the runs of a row that begins inside a word, or at its beginning."""
    is_alternating = call.drained == "columns"
    run = RUN // 2 if is_alternating else RUN
    if call.rows_are_along:
        run = call.stripes.panel_bytes // PANEL_ROW
    issues = 0
    for first in range(0, columns, run):
        units = min(run, columns - first)
        issues += 4 + 2 + 2 + 2 + 2 + 4 * is_alternating
        if is_inside:
            issues += 6 + 2 * is_alternating
            units -= 1
        if units > 1:
            issues += 6 + 3 * (units // 2 - 1)
        is_inside = units % 2 != 0
        issues += 5 * is_inside
    return issues


def _call_of(key: SymbolKey, arguments: tuple[int, ...]) -> Halves:
    """The call, from symbol and argument registers."""
    moved, panels, shares, row_bytes, matrix_bytes, panel_bytes = arguments[2:8]
    rows_are_along = bool(shares >> 21 & 1)
    along_block, across_panels = panels & 0xFFFF, panels >> 16
    along_bytes, across_bytes = (row_bytes, HALF) if rows_are_along else (HALF, row_bytes)
    stripes = Stripes(
        matrices=shares & 0xFFFF,
        along=moved & 0xFFFF,
        across=moved >> 16,
        along_block=along_block,
        across_panels=across_panels,
        block=panel_bytes // PANEL_ROW,
        block_bytes=along_block // RUN * panel_bytes,
        panel_bytes=panel_bytes,
        along_bytes=along_bytes,
        across_bytes=across_bytes,
        matrix_bytes=matrix_bytes,
        is_drained=key.choice("lanes") != "plain",
    )
    return Halves(
        stripes=stripes,
        is_packing=key.choice("direction") == "pack",
        rows_are_along=rows_are_along,
        lanes=(shares >> 22 & 7, shares >> 25 & 7),
    )


def cycles_of_halves(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    return halves_cycles(_call_of(key, arguments))


def execute_halves(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``halves`` does, given its argument registers."""
    call = _call_of(key, arguments)
    call.stripes.execute(arguments[0], arguments[1], memory, is_packing=call.is_packing)
