"""Elements from one order to another where 64 bits stay together: contract, cost and semantics.

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
"""

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity
from compiler.geometry.traversal import Traversal, traverse
from compiler.kernels.contract import (
    Access,
    Binding,
    Family,
    Operand,
    Padding,
    PaddingState,
    Parameters,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.grid import grid
from compiler.kernels.packed import PackedDigit, join, pack, span
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, call_cycles, lane_share
from compiler.target.units import Cycles

NAME: Final = "rearrange"
PANELS: Final = SymbolKey(family=NAME, variant="panels")
ALIGNMENT: Final = 8
WORKERS: Final = 6
ATOM: Final = 8
PANEL: Final = 32
"""Bytes that stay together in every order."""
ATOMS: Final = PANEL // ATOM
BLOCK_ROWS: Final = 16
MOST_ROWS: Final = 1 << 16
MOST_PANELS: Final = 1 << 15
MOST_STRIDE: Final = 1 << 16
"""Rows, panels of a lane, and atoms of a row or step are fewer: they share arguments."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RearrangeParameters(Parameters):
    """A change of element order; the operands say which."""

    family: ClassVar[str] = NAME


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Where the rows of an operand are.

    Args:
        start: first byte, relative to the backing storage.
        row_digits: which coordinates count rows.
        rows: how many.
        atoms: of a row, 8 bytes each.
        step: bytes from panel to panel.
        row: bytes from row to row inside a block.
        block: bytes from block to block.
    """

    start: int
    row_digits: tuple[PackedDigit, ...]
    rows: int
    atoms: int
    step: int
    row: int
    block: int


def side_of(operand: LocalOperand) -> Side | None:
    """The rows of an operand; None when it is in another order or a row is no whole number of atoms."""
    element = operand.precision.element_bytes
    micro = operand.precision.micro
    axis = len(operand.backing) - 1
    whole = grid(operand)
    if whole is not None:
        row_bytes = whole.columns * element
        if row_bytes % ATOM or (whole.is_panels and whole.panel != micro):
            return None
        row = PANEL if whole.is_panels else row_bytes
        return Side(
            start=whole.start,
            row_digits=whole.row_digits,
            rows=whole.rows,
            atoms=row_bytes // ATOM,
            step=PANEL * whole.rows if whole.is_panels else PANEL,
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
        atoms=ATOMS * panels.radix,
        step=BLOCK_ROWS * PANEL,
        row=PANEL,
        block=BLOCK_ROWS * PANEL * panels.radix,
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """What is moved and cleared.

    Args:
        rows: of the result.
        moved_rows: those that the operand has.
        panels: whole ones of a row that are moved.
        rest: atoms that are moved behind them.
        fill: atoms that are cleared behind those.
    """

    rows: int
    moved_rows: int
    panels: int
    rest: int
    fill: int


def bind(request: Request) -> Binding | Refusal:
    """The call for one change of order."""
    if not isinstance(request.parameters, RearrangeParameters):
        raise ValueError(f"{type(request.parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 2:
        return Refusal(reason=f"this takes one result and one operand, not {len(request.operands)} in all")
    result, operand = request.operands
    if result.precision != operand.precision:
        return Refusal(reason="result 0 and operand 0 differ in precision or scale")
    if not isinstance(request.relations[1], Identity):
        return Refusal(reason="operand 0 does not have the coordinates of the result")
    if request.aliases:
        return Refusal(reason=f"{request.aliases[0]}: elements that move cannot stay in one storage")
    ends, source = side_of(result), side_of(operand)
    for name, one, side in (("result 0", result, ends), ("operand 0", operand, source)):
        if side is None:
            return Refusal(reason=f"{name} is not in rows of whole 64 bits, gapless, in an order known here")
        if one.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {one.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
    assert ends is not None
    assert source is not None
    if any(has < needs for has, needs in zip(operand.logical, result.logical, strict=True)):
        return Refusal(reason="operand 0 has fewer elements than the result needs")
    if ends.row_digits != source.row_digits and len(result.backing) > 2:
        return Refusal(reason="operand 0 has other rows than the result, in several matrices")
    atoms = min(ends.atoms, source.atoms)
    extents = Extents(
        rows=ends.rows,
        moved_rows=min(ends.rows, source.rows),
        panels=atoms // ATOMS,
        rest=atoms % ATOMS,
        fill=ends.atoms - atoms,
    )
    if extents.rest + extents.fill > ATOMS:
        return Refusal(reason="result 0 has columns to clear in more than one panel")
    if extents.rows >= MOST_ROWS or extents.panels >= MOST_PANELS:
        return Refusal(reason=f"{extents.rows} rows or {extents.panels} panels are too many for one call")
    if max(side.row + side.step for side in (ends, source)) >= ATOM * MOST_STRIDE:
        return Refusal(reason="rows or panels are too far apart for one call")
    return _bind_panels(request, ends, source, extents)


def _bind_panels(request: Request, ends: Side, source: Side, extents: Extents) -> Binding:
    result, operand = request.operands
    columns, rows = min(LANES, key=lambda lanes: panels_cycles(extents, lanes))
    read = _moved_region(operand, extents)
    element = operand.precision.element_bytes
    holes = Traversal(
        pieces=tuple(
            piece
            for hole in read.subtract(operand.logical_region)
            for piece in traverse(operand.storage, hole, element).pieces
        )
    )
    padding = result.padding_traversal()
    after = PaddingState.ZERO if result.logical == operand.logical else PaddingState.FINITE
    return Binding(
        family=NAME,
        parameters=request.parameters,
        results=(
            Access(
                operand=result,
                start=ends.start,
                alignment=ALIGNMENT,
                writes=span(ends.start, ATOM * ends.rows * ends.atoms),
                padding=_padding(padding, PaddingState.ANY, after),
            ),
        ),
        operands=(
            Access(
                operand=operand,
                relation=request.relations[1],
                start=source.start,
                alignment=ALIGNMENT,
                reads=traverse(operand.storage, read, element),
                padding=_padding(holes, PaddingState.ZERO, None),
            ),
        ),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="rows", value=extents.rows | extents.moved_rows << 16),
            Scalar(
                name="shape",
                value=extents.panels // columns
                | extents.rest << 15
                | extents.fill << 17
                | columns << 20
                | rows << 23
                | extents.panels % columns << 26,
            ),
            Scalar(name="operand_strides", value=source.row // ATOM | source.step // ATOM << 16),
            Scalar(name="operand_block", value=source.block),
            Scalar(name="result_strides", value=ends.row // ATOM | ends.step // ATOM << 16),
            Scalar(name="result_block", value=ends.block),
        ),
        symbol=PANELS,
        work=Work(moved_bytes=int(np.prod(result.logical)) * element),
        cycles=panels_cycles(extents, (columns, rows)),
    )


def _moved_region(operand: LocalOperand, extents: Extents) -> Region:
    """Coordinates of the operand that are read."""
    columns = (PANEL * extents.panels + ATOM * extents.rest) // operand.precision.element_bytes
    bounds = list(operand.region.bounds)
    bounds[-1] = (bounds[-1][0], bounds[-1][0] + columns)
    if len(bounds) == 2:
        bounds[0] = (bounds[0][0], bounds[0][0] + extents.moved_rows)
    return Region(bounds=tuple(bounds))


def _padding(part: Traversal, before: PaddingState, after: PaddingState | None) -> tuple[Padding, ...]:
    return (Padding(part=part, before=before, after=after),) if part.pieces else ()


def panels_cycles(extents: Extents, lanes: tuple[int, int]) -> Cycles:
    """Of ``panels`` with (panels, rows) of lanes side by side: eight bundles move a panel."""
    issues: list[int] = []
    for worker in range(WORKERS):
        lane, row_lane = worker % lanes[0], worker // lanes[0]
        panels = max(0, lane_share(extents.panels, lane, lanes[0]))
        moved = max(0, lane_share(extents.moved_rows, row_lane, lanes[1]))
        cleared = max(0, lane_share(extents.rows, row_lane, lanes[1])) - moved
        is_last = lane == extents.panels % lanes[0]
        rest = 4 + 2 * extents.rest + extents.fill if is_last else 0
        clear = 5 + extents.rest + extents.fill if is_last else 0
        issues.append(33 + moved * (27 + 8 * panels + rest) + cleared * (19 + 4 * panels + clear))
    return call_cycles(48, issues)


def _extents_of_call(arguments: tuple[int, ...]) -> tuple[Extents, tuple[int, int]]:
    """What ``panels`` is asked to move, and its (panels, rows) of lanes, from its argument registers."""
    both_rows, shape = arguments[2:4]
    lanes = shape >> 20 & 7, shape >> 23 & 7
    extents = Extents(
        rows=both_rows & 0xFFFF,
        moved_rows=both_rows >> 16,
        panels=(shape & 0x7FFF) * lanes[0] + (shape >> 26),
        rest=shape >> 15 & 3,
        fill=shape >> 17 & 7,
    )
    return extents, lanes


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    if key != PANELS:
        raise ValueError(f"family {NAME} has no kernel {key}")
    return panels_cycles(*_extents_of_call(arguments))


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``panels`` does, given its argument registers."""
    if key != PANELS:
        raise ValueError(f"family {NAME} has no kernel {key}")
    result, operand, _, _, source_strides, source_block, strides, block = arguments[:8]
    extents, _ = _extents_of_call(arguments)
    rows, moved_rows = extents.rows, extents.moved_rows
    moved = ATOMS * extents.panels + extents.rest
    atoms = moved + extents.fill
    made = np.zeros((rows * atoms, ATOM), dtype=np.uint8)
    places = _atoms(moved_rows, moved, source_strides, source_block)
    data = memory.read(operand, ATOM * (int(places.max()) + 1)).reshape(-1, ATOM)
    made[_atoms(moved_rows, moved, strides, block)] = data[places]
    memory.write(result, made.reshape(-1))


def _atoms(rows: int, atoms: int, strides: int, block: int) -> npt.NDArray[np.int64]:
    """Places [rows, atoms] of the atoms of rows, from arguments of the kernel."""
    row, atom = np.arange(rows, dtype=np.int64)[:, None], np.arange(atoms, dtype=np.int64)[None, :]
    in_row = (row // BLOCK_ROWS) * (block // ATOM) + (row % BLOCK_ROWS) * (strides & 0xFFFF)
    return in_row + (atom // ATOMS) * (strides >> 16) + atom % ATOMS


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
