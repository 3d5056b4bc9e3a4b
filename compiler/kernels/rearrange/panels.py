"""Rows that stay rows, in units of 64 or 32 bits: contract, cost and semantics of ``panels``.

Row-major tensors, AMP left and AMP transposed right all keep the columns of a row behind one another, in
pieces of 32 bytes at least: the first two panels of a row are ``step`` bytes apart, sixteen rows ``block``
bytes, and rows in between ``row`` bytes.

====================  ==============  ====  ============================
order                 step            row   block
====================  ==============  ====  ============================
row-major             32              W     16 W, W the bytes of a row
AMP left              32 R, R rows    32    512
AMP transposed right  512             32    512 P, P the panels of a row
====================  ==============  ====  ============================

One kernel moves panels between any two of them, for every precision. Rows and columns that the result has
and the operand has not become zero; those that the operand alone has are not read. Workers share panels and
rows by lanes.

The inner loop goes along a row, panel after panel; where rows are evenly apart on both sides it can as well
go down a panel, row after row, which is the same call with rows and panels exchanged. What is no whole panel
at the end of the rows is then a last, narrow panel, done row after row. The shorter way is taken.

AMP output is AMP left but for the sequence inside of a panel row, which four 64-bit permutations undo in the
bundles of the loads and stores.
"""

from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpOutput
from compiler.geometry.precision import F16
from compiler.geometry.region import Region
from compiler.kernels.contract import Binding, Operand, Pointer, Request, Result, Scalar, TileMemory, Work
from compiler.kernels.grid import grid
from compiler.kernels.packed import PackedDigit, join, pack
from compiler.kernels.rearrange.sides import (
    ATOM,
    HALF,
    MOST,
    NAME,
    PANEL_ROW,
    WORD,
    WORKERS,
    drain_places,
    operand_access,
    result_access,
)
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, call_cycles, lane_share
from compiler.target.units import Cycles

BLOCK_ROWS: Final = 16
MOST_OF_LANE: Final = 1 << 13
"""Panels of a lane are fewer."""
MOST_FILL: Final = 1 << 7
"""Units to clear behind those that are moved are fewer."""


def panels_symbol(source: int, result: int, *, is_drained: bool = False) -> SymbolKey:
    """The kernel that loads and stores panel rows in units of so many bytes."""
    return SymbolKey(
        family=NAME,
        variant="panels",
        choices=(
            ("source", f"u{8 * source}"),
            ("result", f"u{8 * result}"),
            ("lanes", "drained" if is_drained else "plain"),
        ),
    )


def units_of(key: SymbolKey) -> tuple[int, int]:
    """Bytes of the units in which a kernel loads and stores."""
    source, result = (int(key.choice(side).removeprefix("u")) // 8 for side in ("source", "result"))
    return source, result


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Where the rows of an operand are.

    Args:
        start: first byte, relative to the backing storage.
        row_digits: which coordinates count rows.
        rows: how many.
        row_bytes: of each.
        step: bytes from panel to panel.
        row: bytes from row to row inside a block.
        block: bytes from block to block.
    """

    start: int
    row_digits: tuple[PackedDigit, ...]
    rows: int
    row_bytes: int
    step: int
    row: int
    block: int

    @property
    def is_even(self) -> bool:
        """Whether all rows are equally far apart."""
        return self.rows <= BLOCK_ROWS or self.block == BLOCK_ROWS * self.row

    @property
    def unit(self) -> int:
        """Bytes in which its panel rows can be loaded and stored."""
        return WORD if self.row_bytes % ATOM else ATOM

    def turned(self) -> "Side":
        """Rows as panels and panels as rows."""
        return replace(self, step=self.row, row=self.step, block=BLOCK_ROWS * self.step)


def side_of(operand: LocalOperand) -> Side | None:
    """The rows of an operand; None when it is in another order."""
    element = operand.precision.element_bytes
    micro = operand.precision.micro
    axis = len(operand.backing) - 1
    whole = grid(operand)
    if whole is not None:
        if whole.is_panels and whole.panel != micro:
            return None
        row_bytes = whole.columns * element
        row = PANEL_ROW if whole.is_panels else row_bytes
        return Side(
            start=whole.start,
            row_digits=whole.row_digits,
            rows=whole.rows,
            row_bytes=row_bytes,
            step=PANEL_ROW * whole.rows if whole.is_panels else PANEL_ROW,
            row=row,
            block=BLOCK_ROWS * row,
        )
    packed = pack(operand)
    if packed is None or len(packed.digits) < 3:
        return None
    *outer, panels, rows, columns = packed.digits
    if (
        columns != PackedDigit(axis=axis, weight=1, radix=micro)
        or rows != PackedDigit(axis=axis - 1, weight=1, radix=BLOCK_ROWS)
        or panels.axis != axis
        or panels.weight != micro
        or any(digit.axis == axis for digit in outer)
    ):
        return None
    return Side(
        start=packed.start,
        row_digits=join([*outer, rows]),
        rows=packed.elements // (micro * panels.radix),
        row_bytes=PANEL_ROW * panels.radix,
        step=BLOCK_ROWS * PANEL_ROW,
        row=PANEL_ROW,
        block=BLOCK_ROWS * PANEL_ROW * panels.radix,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """What is moved and cleared.

    Args:
        units: bytes in which whole panel rows are loaded and stored; all else is in the smaller of them.
        is_drained: whether panel rows are put in sequence.
        rows: of the result.
        moved_rows: those that the operand has.
        panels: whole ones of a row that are moved.
        rest: units that are moved behind them.
        fill: units that are cleared behind those.
        narrow: (moved, cleared) units of each row of a last panel; (0, 0) when there is none.
    """

    units: tuple[int, int]
    is_drained: bool
    rows: int
    moved_rows: int
    panels: int
    rest: int
    fill: int
    narrow: tuple[int, int] = (0, 0)

    @property
    def unit(self) -> int:
        """The smaller unit."""
        return min(self.units)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """One way to do a call: which side has which strides, and how workers share it."""

    ends: Side
    source: Side
    extents: Extents
    lanes: tuple[int, int]

    @property
    def cycles(self) -> Cycles:
        return panels_cycles(self.extents, self.lanes)

    @property
    def fits(self) -> bool:
        """Whether the arguments hold it."""
        extents = self.extents
        return (
            extents.rows < MOST
            and extents.panels // self.lanes[0] < MOST_OF_LANE
            and extents.fill < MOST_FILL
            and self.source.row + self.source.step < extents.units[0] * MOST
            and self.ends.row + self.ends.step < extents.units[1] * MOST
        )


def bind_panels(request: Request) -> Binding | None:
    """The call of ``panels``; None when it cannot do this."""
    result, operand = request.operands
    is_drained = operand.order == AmpOutput() and result.order != AmpOutput()
    if result.order == AmpOutput() and operand.order != AmpOutput():
        return None
    ends, source = _side(result), _side(operand)
    if ends is None or source is None:
        return None
    # Of one matrix the rows may be others in number, if both sides have them in sequence.
    is_alike = ends.row_digits == source.row_digits
    if not is_alike and (len(result.backing) > 2 or max(len(ends.row_digits), len(source.row_digits)) > 1):
        return None
    units = (source.unit, ends.unit)
    unit = min(units)
    if (source.row_bytes | ends.row_bytes) % WORD or (is_drained and unit != ATOM):
        return None
    moved_bytes = min(ends.row_bytes, source.row_bytes)
    whole = Extents(
        units=units,
        is_drained=is_drained,
        rows=ends.rows,
        moved_rows=min(ends.rows, source.rows),
        panels=moved_bytes // PANEL_ROW,
        rest=moved_bytes % PANEL_ROW // unit,
        fill=(ends.row_bytes - moved_bytes) // unit,
    )
    plans = [
        _Plan(ends=one, source=other, extents=extents, lanes=lanes)
        for one, other, extents in _ways(ends, source, whole)
        for lanes in LANES
    ]
    fitting = [plan for plan in plans if plan.fits]
    if not fitting:
        return None
    return _binding(request, whole, min(fitting, key=lambda plan: plan.cycles))


def _side(operand: LocalOperand) -> Side | None:
    """The rows of an operand; drained panel rows are where those of AMP left are."""
    if operand.order != AmpOutput():
        return side_of(operand)
    return side_of(replace(operand, order=AmpLeft())) if operand.precision == F16() else None


def _ways(ends: Side, source: Side, whole: Extents) -> list[tuple[Side, Side, Extents]]:
    """Along the rows, and down the panels."""
    ways: list[tuple[Side, Side, Extents]] = []
    units = PANEL_ROW // whole.unit
    if whole.rest + whole.fill <= units:
        ways.append((ends, source, whole))
    cleared = whole.rows - whole.moved_rows
    narrow = (whole.rest, whole.fill)
    has_narrow = whole.rest + whole.fill > 0
    if whole.rest == 0 and ends.row_bytes % PANEL_ROW == 0:
        # Panels that are cleared are panels as well.
        narrow, has_narrow = (0, 0), False
    if (
        ends.is_even
        and source.is_even
        and sum(narrow) <= units
        and not (has_narrow and whole.is_drained)
        and (cleared == 0 or ends.row == PANEL_ROW)
    ):
        down = replace(
            whole,
            rows=whole.panels + 1 if has_narrow else ends.row_bytes // PANEL_ROW,
            moved_rows=whole.panels,
            panels=whole.moved_rows,
            rest=0,
            fill=units * cleared,
            narrow=narrow,
        )
        ways.append((ends.turned(), source.turned(), down))
    return ways


def _binding(request: Request, whole: Extents, plan: _Plan) -> Binding:
    result, operand = request.operands
    extents, unit, (columns, rows) = plan.extents, plan.extents.unit, plan.lanes
    source_unit, result_unit = extents.units
    moved_bytes = PANEL_ROW * whole.panels + unit * whole.rest
    read_bytes = -(-moved_bytes // PANEL_ROW) * PANEL_ROW if whole.is_drained else moved_bytes
    moved, read = (_region(operand, whole, count) for count in (moved_bytes, read_bytes))
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(result_access(result, operand, plan.ends.start, plan.ends.rows * plan.ends.row_bytes),),
        operands=(operand_access(operand, request.relations[1], plan.source.start, moved, (read,)),),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="rows", value=extents.rows | extents.moved_rows << 16),
            Scalar(
                name="shape",
                value=extents.panels // columns
                | extents.rest << 13
                | extents.fill << 16
                | columns << 23
                | rows << 26
                | extents.panels % columns << 29,
            ),
            Scalar(name="operand_strides", value=_strides(plan.source, source_unit)),
            Scalar(
                name="operand_block",
                value=_block(plan.source, extents) | extents.narrow[0] << 20 | extents.narrow[1] << 24,
            ),
            Scalar(name="result_strides", value=_strides(plan.ends, result_unit)),
            Scalar(name="result_block", value=_block(plan.ends, extents)),
        ),
        symbol=panels_symbol(source_unit, result_unit, is_drained=whole.is_drained),
        work=Work(moved_bytes=int(np.prod(result.logical)) * result.precision.element_bytes),
        cycles=plan.cycles,
    )


def _strides(side: Side, unit: int) -> int:
    """From row to row and from panel to panel, in units."""
    return side.row // unit | side.step // unit << 16


def _block(side: Side, extents: Extents) -> int:
    """Bytes from block to block; 0 when there is one, so that it is always fewer than a tile has."""
    return side.block if extents.rows > BLOCK_ROWS else 0


def _region(operand: LocalOperand, whole: Extents, row_bytes: int) -> Region:
    """Coordinates of the operand in the rows that are moved, up to a byte of each."""
    bounds = list(operand.region.bounds)
    bounds[-1] = (bounds[-1][0], bounds[-1][0] + row_bytes // operand.precision.element_bytes)
    if len(bounds) == 2:
        bounds[0] = (bounds[0][0], bounds[0][0] + whole.moved_rows)
    return Region(bounds=tuple(bounds))


def panels_cycles(extents: Extents, lanes: tuple[int, int]) -> Cycles:
    """Of ``panels`` with (panels, rows) of lanes side by side: a bundle loads or stores a unit."""
    loads, stores = (PANEL_ROW // unit for unit in extents.units)
    issues: list[int] = []
    for worker in range(WORKERS):
        lane, row_lane = worker % lanes[0], worker // lanes[0]
        panels = max(0, lane_share(extents.panels, lane, lanes[0]))
        moved = max(0, lane_share(extents.moved_rows, row_lane, lanes[1]))
        cleared = max(0, lane_share(extents.rows, row_lane, lanes[1])) - moved
        is_last = lane == extents.panels % lanes[0]
        rest = 2 + rest_issues(extents) + extents.fill if is_last else 0
        total = 32 + moved * (27 + (loads + stores) * panels + rest)
        if sum(extents.narrow) == 0:
            clear = 5 + extents.rest + extents.fill if is_last else 0
            total += cleared * (23 + stores * panels + clear)
        elif cleared:
            each = 5 + 2 * extents.narrow[0] + extents.narrow[1]
            total += 35 + (9 + panels * each if panels else 0) + (4 + extents.fill if is_last else 0)
        issues.append(total)
    return call_cycles(57, issues)


def rest_issues(extents: Extents) -> int:
    """Issues for the units of a row that are no whole panel."""
    if not extents.is_drained:
        return 2 + 2 * extents.rest
    # A look at the count; four loads, three permutations, and stores with further looks in between.
    return 2 if extents.rest == 0 else 9 + min(3 * extents.rest, 7)


def _extents_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> tuple[Extents, tuple[int, int]]:
    """What is moved, and the (panels, rows) of lanes, from symbol and argument registers."""
    both_rows, shape, _, block = arguments[2:6]
    lanes = shape >> 23 & 7, shape >> 26 & 7
    extents = Extents(
        units=units_of(key),
        is_drained=key.choice("lanes") == "drained",
        rows=both_rows & 0xFFFF,
        moved_rows=both_rows >> 16,
        panels=(shape & 0x1FFF) * lanes[0] + (shape >> 29),
        rest=shape >> 13 & 7,
        fill=shape >> 16 & 0x7F,
        narrow=(block >> 20 & 0xF, block >> 24),
    )
    return extents, lanes


def cycles_of_panels(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    return panels_cycles(*_extents_of_call(key, arguments))


def execute_panels(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``panels`` does, given its argument registers."""
    result, operand, _, _, source_strides, source_block, strides, block = arguments[:8]
    extents, _ = _extents_of_call(key, arguments)
    unit, is_drained, narrow = extents.unit, extents.is_drained, extents.narrow
    each = PANEL_ROW // unit
    moved = each * extents.panels + extents.rest
    count = moved + extents.fill
    size = extents.rows * count
    if sum(narrow):
        size = (extents.rows - 1) * count + sum(narrow) * (extents.panels + extents.fill // each)
    places = _places(extents, extents.units[0], source_strides, source_block & 0xF_FFFF)
    ends = _places(extents, extents.units[1], strides, block)
    whole = PANEL_ROW if is_drained else unit
    data = memory.read(operand, -(-(int(places.max()) + unit) // whole) * whole)
    if is_drained:
        data = data.reshape(-1, HALF)[drain_places(len(data) // HALF)].reshape(-1)
    lanes = np.arange(unit)
    made = np.zeros(size * unit, dtype=np.uint8)
    made[ends[:, None] + lanes] = data[places[:, None] + lanes]
    memory.write(result, made)


def _places(extents: Extents, side_unit: int, strides: int, block: int) -> npt.NDArray[np.int64]:
    """Bytes [units] at which the moved units of all rows are on a side, from arguments of the kernel."""
    unit = extents.unit
    each = PANEL_ROW // unit
    row = np.arange(extents.rows, dtype=np.int64)[:, None]
    number = np.arange(each * extents.panels + extents.rest, dtype=np.int64)[None, :]
    in_row = (row // BLOCK_ROWS) * block + (row % BLOCK_ROWS) * (strides & 0xFFFF) * side_unit
    places = in_row + (number // each) * (strides >> 16) * side_unit + number % each * unit
    whole = places[: extents.moved_rows].reshape(-1)
    last = places[-1].reshape(-1, each)[:, : extents.narrow[0]] if extents.narrow[0] else whole[:0]
    return np.append(whole, last)
