"""Casts between F16 and F143 where panels change: kernels, geometry, cost and semantics.

A row of a panel has 32 bytes in both precisions, so 32 columns are one panel of codes and two of halves. The
kernels work on *half panels*, 16 columns of all rows: half panel ``h`` is panel ``h`` of the halves and side
``h % 2`` of panel ``h // 2`` of the codes. What holds codes is in panels; what holds halves is in one of two
forms, told apart by two distances alone:

============  ===========================  ====================
halves        from half panel to the next  from row to the next
============  ===========================  ====================
panels        32 bytes times the rows      32 bytes
rows          32 bytes                     any
============  ===========================  ====================

``panels`` from F16 to F8 packs rows, or merges panels; from F8 to F16 it unpacks or splits. A row that is no
whole number of half panels ends in one of 4, 8 or 12 columns. Codes beyond the columns and rows of the halves
become zero; halves are only made where the result has them.

Panels are recognized by their digits, not by the name of an order: AMP left, AMP right, blocks and their
transposes all have 32-byte rows of one axis, and differ in what counts as a row of a panel and in which
sequence panels follow. Where several sets of rows follow each other, as in coefficient panels, two panels of
halves may not belong to different sets.

Workers share half panels and rows by lanes. The result of a merge can share the storage of its operand, as
that of linear casts does, in chunks of whole panels.
"""

from dataclasses import dataclass
from math import prod
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F8, F16
from compiler.kernels.contract import Refusal, Scalar, TileMemory
from compiler.kernels.eight_bit import SETUP, codes_of, halves_of
from compiler.kernels.grid import grid
from compiler.kernels.halves import halves
from compiler.kernels.packed import Packed, PackedDigit, join
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, SIMPLE, TAKEN, Clock, call_cycles, lane_share
from compiler.target.units import Cycles

WORKERS: Final = 6
ATOM: Final = 8
PANEL_ROW: Final = 32
"""Bytes of a row of a panel."""
QUADS: Final = F16.micro * F16.element_bytes // ATOM
"""Quads of a row of a half panel: what a 64-bit load takes of halves."""
MOST: Final = 0x8000
"""Rows and half panels are fewer."""
MOST_STRIDE: Final = 0x10000
"""Atoms from row to row, and panel rows from half panel to half panel, are fewer: they share an argument."""
MOST_PACE: Final = 0x200
"""Atoms of a stride in a packed address are fewer."""


REST_BIT: Final = 15
COLUMN_LANES_BIT: Final = 17
ROW_LANES_BIT: Final = 20
LANES_MASK: Final = 7
"""Where these are in the argument with the shape."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Panels:
    """What a kernel is specialized on.

    Args:
        is_packing: from halves to codes, not back.
        has_two_ports: whether it loads and stores at once.
        is_shared: whether the result takes the storage of the operand.
    """

    is_packing: bool
    has_two_ports: bool = False
    is_shared: bool = False

    @property
    def symbol(self) -> SymbolKey:
        """Its symbol."""
        source, result = ("f16", "f8") if self.is_packing else ("f8", "f16")
        storage = (("storage", "shared"),) if self.is_shared else ()
        return SymbolKey(
            family="cast",
            variant="panels",
            choices=(
                ("source", source),
                ("result", result),
                ("ports", "two" if self.has_two_ports else "one"),
                *storage,
            ),
        )


KERNELS: Final = {
    kernel.symbol: kernel
    for kernel in (
        *(
            Panels(is_packing=is_packing, has_two_ports=has_two_ports)
            for is_packing in (False, True)
            for has_two_ports in (False, True)
        ),
        Panels(is_packing=True, is_shared=True),
    )
}
"""By their symbols."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """What is cast, in half panels.

    Args:
        rows: of the panels of codes.
        moved_rows: those that the halves have.
        half_panels: whole ones of the halves.
        rest: quads of a row behind them.
        step: bytes from half panel to half panel of the halves.
        row: bytes from row to row of the halves.
    """

    rows: int
    moved_rows: int
    half_panels: int
    rest: int
    step: int
    row: int

    @property
    def code_panels(self) -> int:
        """Panels of codes."""
        return -(-(self.half_panels + (self.rest > 0)) // 2)

    @property
    def code_bytes(self) -> int:
        """Bytes of them."""
        return PANEL_ROW * self.rows * self.code_panels

    @property
    def columns(self) -> int:
        """Columns of the halves."""
        return F16.micro * self.half_panels + F16.micro // QUADS * self.rest

    @property
    def is_panels(self) -> bool:
        """Whether the halves are in panels."""
        return self.row == PANEL_ROW and self.rest == 0


def merge_of(of_halves: Packed, of_codes: Packed) -> Extents | None:
    """Panels of halves that are pairwise panels of codes, in any order; None when they are not."""
    digits = of_halves.digits
    if not digits or digits[-1].weight != 1 or digits[-1].radix % F16.micro:
        return None
    axis = digits[-1].axis
    count = digits[-1].radix // F16.micro
    outer: tuple[PackedDigit, ...] = ()
    inner = digits[:-1]
    if count > 1:
        # One row of all panels: what precedes it are several of them.
        outer, inner = inner, ()
    else:
        place = next((p for p, d in enumerate(inner) if d.axis == axis and d.weight == F16.micro), None)
        if place is not None:
            count = inner[place].radix
            outer, inner = inner[:place], inner[place + 1 :]
    sets = prod(digit.radix for digit in outer)
    if count % 2 and sets > 1:
        return None
    pairs = PackedDigit(axis=axis, weight=F8.micro, radix=-(-count // 2))
    of_a_row = PackedDigit(axis=axis, weight=1, radix=F8.micro)
    if of_codes.digits != join([*outer, pairs, *inner, of_a_row]):
        return None
    rows = prod(digit.radix for digit in inner)
    return Extents(
        rows=rows, moved_rows=rows, half_panels=sets * count, rest=0, step=PANEL_ROW * rows, row=PANEL_ROW
    )


def pack_of(of_halves: LocalOperand, of_codes: LocalOperand) -> Extents | None:
    """Rows of halves that are panels of codes; None when they are not."""
    ends = grid(of_codes)
    if ends is None or ends.columns % F8.micro or (ends.panel != F8.micro and ends.rows > 1):
        return None
    if not isinstance(of_halves.order, RowMajor):
        return None
    *outer, width = of_halves.physical
    rows = prod(outer)
    row = _row_stride(of_halves)
    if row is None or row % ATOM:
        return None
    if len(outer) > 1 and (tuple(outer) != of_codes.physical[:-1]):
        return None
    columns = min(width, ends.columns)
    if columns % (F16.micro // QUADS) or -(-columns // F8.micro) * F8.micro != ends.columns:
        return None
    if ends.rows > 1 and not _counts_rows(ends.row_digits, of_codes.physical[:-1]):
        return None
    return Extents(
        rows=ends.rows,
        moved_rows=min(rows, ends.rows),
        half_panels=columns // F16.micro,
        rest=columns % F16.micro // (F16.micro // QUADS),
        step=PANEL_ROW,
        row=row,
    )


def _counts_rows(digits: tuple[PackedDigit, ...], extents: tuple[int, ...]) -> bool:
    """Whether rows are counted as in a row-major tensor."""
    whole = [PackedDigit(axis=axis, weight=1, radix=extent) for axis, extent in enumerate(extents)]
    return digits == join(whole)


def _row_stride(operand: LocalOperand) -> int | None:
    """Bytes from row to row of a row-major operand; None when it differs."""
    row_bytes = operand.physical[-1] * operand.precision.element_bytes
    traversal = operand.traversal()
    if not traversal.pieces:
        return None
    if traversal.is_contiguous:
        return row_bytes
    starts, lengths = traversal.runs()
    strides = np.unique(np.diff(starts))
    if len(strides) != 1 or (lengths != row_bytes).any():
        return None
    return int(strides[0])


def refusal_of(extents: Extents) -> Refusal | None:
    """Why a kernel cannot do this much in one call, if it cannot."""
    most = max(extents.rows, extents.half_panels)
    if most >= MOST:
        return Refusal(reason=f"{most} rows or panels are not fewer than {MOST}")
    if max(extents.row // ATOM, extents.step // PANEL_ROW) >= MOST_STRIDE:
        return Refusal(reason="rows or panels are too far apart for one call")
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """How workers share the work.

    Args:
        columns: lanes of half panels.
        rows: lanes of rows.
    """

    columns: int
    rows: int


ALL_LANES: Final = tuple(Lanes(columns=columns, rows=rows) for columns, rows in LANES)


def choose(
    extents: Extents, first: int | None, *, is_packing: bool, is_separate: bool
) -> tuple[Panels, Lanes]:
    """The fastest way: through two ports where loads and stores may meet and strides are short.

    ``first`` is the panels of codes in the first chunk of shared storage, or None.
    """
    kernels = [Panels(is_packing=is_packing, is_shared=first is not None)]
    if is_separate and first is None:
        kernels.append(Panels(is_packing=is_packing, has_two_ports=True))
    ways = [
        (kernel, lanes)
        for kernel in kernels
        for lanes in ALL_LANES
        if not kernel.has_two_ports or extents.row // ATOM * lanes.rows <= MOST_PACE
    ]
    return min(ways, key=lambda way: cycles(way[0], extents, way[1], first))


def scalars(
    extents: Extents, lanes: Lanes, scales: tuple[Scalar, ...], first: int | None
) -> tuple[Scalar, ...]:
    """Arguments behind the pointers; ``first`` as in :func:`choose`."""
    return (
        Scalar(name="rows", value=extents.rows | extents.moved_rows << 16),
        Scalar(
            name="shape",
            value=extents.half_panels
            | extents.rest << REST_BIT
            | lanes.columns << COLUMN_LANES_BIT
            | lanes.rows << ROW_LANES_BIT,
        ),
        Scalar(
            name="rows_per_lane", value=extents.rows // lanes.rows | extents.moved_rows // lanes.rows << 16
        ),
        Scalar(name="strides", value=extents.row // ATOM | extents.step // PANEL_ROW << 16),
        *scales,
        *(() if first is None else (Scalar(name="first_panels", value=first),)),
    )


def _of_call(arguments: tuple[int, ...]) -> tuple[Extents, Lanes]:
    """What is asked, from the argument registers."""
    rows, shape, _, strides = arguments[2:6]
    extents = Extents(
        rows=rows & 0xFFFF,
        moved_rows=rows >> 16,
        half_panels=shape & MOST - 1,
        rest=shape >> REST_BIT & QUADS - 1,
        step=PANEL_ROW * (strides >> 16),
        row=ATOM * (strides & 0xFFFF),
    )
    lanes = Lanes(columns=shape >> COLUMN_LANES_BIT & LANES_MASK, rows=shape >> ROW_LANES_BIT)
    return extents, lanes


def cycles_of_call(kernel: Panels, arguments: tuple[int, ...]) -> Cycles:
    """Of a kernel with these argument registers."""
    extents, lanes = _of_call(arguments)
    return cycles(kernel, extents, lanes, arguments[7] if kernel.is_shared else None)


def cycles(kernel: Panels, extents: Extents, lanes: Lanes, first: int | None) -> Cycles:
    """Of a kernel with workers in these lanes; ``first`` as in :func:`scalars`."""
    before = 45 + 2 * kernel.is_packing + 9 * kernel.has_two_ports
    if first is None:
        issues = [_issues(kernel, extents, lanes, worker, extents.half_panels) for worker in range(WORKERS)]
        return call_cycles(before + 1, issues)
    clock = Clock()
    clock.supervisor(*[SIMPLE] * (before + 2))
    left, panels, chunk = 2 * extents.code_panels, extents.half_panels, 2 * first
    while left:
        now = min(chunk, left)
        whole = min(panels, now)
        clock.supervisor(*[SIMPLE] * 9)
        clock.launch([_issues(kernel, extents, lanes, worker, whole, now) for worker in range(WORKERS)])
        clock.supervisor(*[SIMPLE] * 5)
        clock.wait()
        left, panels, chunk = left - now, panels - whole, 2 * chunk
        clock.supervisor(TAKEN if left else SIMPLE)
    clock.supervisor(SIMPLE, TAKEN)
    return clock.elapsed


def _issues(
    kernel: Panels, extents: Extents, lanes: Lanes, worker: int, whole: int, count: int | None = None
) -> int:
    """Of a worker in a launch over so many half panels, of which so many are whole; None: all there are."""
    lane, row_lane = worker % lanes.columns, worker // lanes.columns
    rows = max(0, lane_share(extents.rows, row_lane, lanes.rows))
    moved = max(0, lane_share(extents.moved_rows, row_lane, lanes.rows))
    if count is None:
        count = 2 * extents.code_panels if kernel.is_packing else whole + (extents.rest > 0)
    without_rows, without_panels = (19, 23) if kernel.is_packing else (15, 18)
    if (rows if kernel.is_packing else moved) == 0:
        return without_rows
    if lane >= count:
        return without_panels
    total = without_panels + 10 + SETUP
    for half in range(lane, count, lanes.columns):
        total += 18
        if kernel.is_packing:
            total += 1 if rows == moved else 5 + 2 * (rows - moved)
        if half < whole:
            total += _whole_issues(kernel, moved)
        elif half == whole:
            total += _rest_issues(kernel, extents.rest, moved)
        else:
            total += 4 + 2 * moved
    return total


def _whole_issues(kernel: Panels, rows: int) -> int:
    """Of a worker for so many rows of a whole half panel."""
    if not kernel.has_two_ports:
        return 1 + 6 * rows
    if kernel.is_packing:
        return 16 + 4 * (rows - 1) if rows else 1
    return 14 + 4 * (rows - 1)


def _rest_issues(kernel: Panels, quads: int, rows: int) -> int:
    """The same where rows end in so many quads."""
    if kernel.is_packing:
        return (6, 10, 10, 12)[quads] + (2, 3, 4, 5)[quads] * rows
    return (0, 6, 7, 7)[quads] + (0, 3, 4, 5)[quads] * rows


def execute(kernel: Panels, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    extents, _ = _of_call(arguments)
    result, operand = arguments[:2]
    scale = arguments[6]
    places = _quads(extents)
    count = extents.moved_rows
    padded = F8.micro * extents.code_panels
    if kernel.is_packing:
        data = memory.read(operand, ATOM * (int(places.max()) + 1)).reshape(-1, ATOM)
        codes = np.zeros((extents.rows, padded), dtype=np.uint8)
        codes[:count, : extents.columns] = codes_of(halves(data[places].reshape(-1)), scale).reshape(
            count, -1
        )
        panels = codes.reshape(extents.rows, -1, F8.micro).transpose(1, 0, 2)
        memory.write(result, np.ascontiguousarray(panels).reshape(-1))
        return
    panels = memory.read(operand, extents.code_bytes).reshape(-1, extents.rows, F8.micro)
    codes = panels.transpose(1, 0, 2).reshape(extents.rows, padded)[:count, : extents.columns]
    made = np.ascontiguousarray(halves_of(codes, scale)).view(np.uint8).reshape(count, -1, ATOM)
    if extents.step == PANEL_ROW:
        # Between rows there may be something else.
        for row in range(count):
            memory.write(result + row * extents.row, made[row].reshape(-1))
        return
    data = np.empty((places.size, ATOM), dtype=np.uint8)
    data[places] = made
    memory.write(result, data.reshape(-1))


def _quads(extents: Extents) -> npt.NDArray[np.int64]:
    """Places [moved rows, quads of a row] of 64 bits of halves."""
    quad = np.arange(QUADS * extents.half_panels + extents.rest, dtype=np.int64)
    in_row = quad // QUADS * (extents.step // ATOM) + quad % QUADS
    return np.arange(extents.moved_rows, dtype=np.int64)[:, None] * (extents.row // ATOM) + in_row
