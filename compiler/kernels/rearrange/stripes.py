"""What ``transpose`` and ``halves`` share: matrices between row-major and panel rows, stripe after stripe.

A *stripe* is what one row of blocks holds of a matrix: ``along_block`` coordinates of the axis along panel
rows, all coordinates of the other. The supervisor launches the workers once for each stripe, so that they see
strides alone: a step of one coordinate on the row-major side, and on the side of the panels

* panel rows of neighbouring coordinates across, 32 bytes apart;
* blocks of them, ``block_bytes`` apart;
* panels of neighbouring sixteen coordinates along, ``panel_bytes`` apart.

Stripes follow one another in storage, over all matrices. The last one of a matrix can hold fewer coordinates;
the other side is counted in 16-bit units, so that two codes of F8 can be one coordinate.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.kernels.contract import Request, TileMemory
from compiler.kernels.rearrange.sides import (
    HALF,
    MOST,
    PANEL_ROW,
    RUN,
    WORD,
    Panels,
    Rows,
    drain_places,
    facing,
    panels_of,
    rows_of,
)
from compiler.kernels.timing import LOAD, SIMPLE, TAKEN, Clock
from compiler.target.units import Cycles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stripes:
    """Matrices in 16-bit units.

    Args:
        matrices: how many.
        along: coordinates that are moved, along panel rows.
        across: the same of the other axis.
        along_block: coordinates of a stripe, a multiple of 16.
        across_panels: coordinates across that the panels have.
        block: panel rows that lie behind one another; ``across_panels`` when all do.
        block_bytes: from block to block.
        panel_bytes: from panel to panel.
        along_bytes: from coordinate to coordinate along, of the row-major side.
        across_bytes: the same across.
        matrix_bytes: from matrix to matrix of the row-major side.
        is_drained: whether panel rows are in the sequence in which the AMP unit drains.
    """

    matrices: int
    along: int
    across: int
    along_block: int
    across_panels: int
    block: int
    block_bytes: int
    panel_bytes: int
    along_bytes: int
    across_bytes: int
    matrix_bytes: int
    is_drained: bool

    @property
    def stripe_bytes(self) -> int:
        """From stripe to stripe of the panels."""
        return HALF * self.along_block * self.across_panels

    @property
    def stripes(self) -> int:
        """Of a matrix."""
        return -(-self.along // self.along_block)

    @property
    def fills(self) -> tuple[int, ...]:
        """Coordinates along that each stripe of a matrix holds."""
        return tuple(
            min(self.along_block, self.along - self.along_block * stripe) for stripe in range(self.stripes)
        )

    def panel_places(self) -> npt.NDArray[np.int64]:
        """Bytes [matrices, along, across] at which units are on the side of the panels."""
        along = np.arange(self.along, dtype=np.int64)
        across = np.arange(self.across, dtype=np.int64)
        inside = along % self.along_block
        lanes = drain_places(self.along_block)[inside] if self.is_drained else inside
        in_stripe = inside // RUN * self.panel_bytes + lanes % RUN * HALF
        of_along = along // self.along_block * self.stripe_bytes + in_stripe
        of_across = across // self.block * self.block_bytes + across % self.block * PANEL_ROW
        matrix = np.arange(self.matrices, dtype=np.int64) * self.stripes * self.stripe_bytes
        return matrix[:, None, None] + of_along[:, None] + of_across

    def row_places(self) -> npt.NDArray[np.int64]:
        """The same on the row-major side."""
        matrix = np.arange(self.matrices, dtype=np.int64) * self.matrix_bytes
        along = np.arange(self.along, dtype=np.int64) * self.along_bytes
        across = np.arange(self.across, dtype=np.int64) * self.across_bytes
        return matrix[:, None, None] + along[:, None] + across

    def execute(self, result: int, operand: int, memory: TileMemory, *, is_packing: bool) -> None:
        """Move the units. Packing clears what the panels have beyond them."""
        panels, rows = self.panel_places(), self.row_places()
        source, ends = (rows, panels) if is_packing else (panels, rows)
        units = memory.read(operand, int(source.max()) + HALF).reshape(-1, HALF)
        size = self.matrices * self.stripes * self.stripe_bytes if is_packing else int(ends.max()) + HALF
        made = np.zeros((size // HALF, HALF), dtype=np.uint8)
        made[ends // HALF] = units[source // HALF]
        memory.write(result, made.reshape(-1))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Facing:
    """A row-major operand and one in panel rows.

    Args:
        rows: the one, counted as the other counts.
        panels: the other.
        is_packing: whether the panels are the result.
    """

    rows: Rows
    panels: Panels
    is_packing: bool

    @property
    def along(self) -> int:
        """Elements along panel rows that are moved."""
        mine = self.rows.rows if self.panels.rows_are_along else self.rows.columns
        return min(mine, self.panels.along)

    @property
    def across(self) -> int:
        """The same across."""
        mine = self.rows.columns if self.panels.rows_are_along else self.rows.rows
        return min(mine, self.panels.across)

    @property
    def moved_rows(self) -> int:
        """Rows of a matrix that are moved."""
        return self.along if self.panels.rows_are_along else self.across

    @property
    def moved_columns(self) -> int:
        """Columns of them."""
        return self.across if self.panels.rows_are_along else self.along


def faces(request: Request) -> Facing | str:
    """The two sides of a call, or why they are not row-major and panel rows of the same matrices."""
    result, operand = request.operands
    sides = [rows_of(result) or panels_of(result), rows_of(operand) or panels_of(operand)]
    for name, side in zip(("result 0", "operand 0"), sides, strict=True):
        if side is None:
            return f"{name} is no matrix without gaps"
    rows = next((side for side in sides if isinstance(side, Rows)), None)
    panels = next((side for side in sides if isinstance(side, Panels)), None)
    if rows is None or panels is None:
        return "one of result 0 and operand 0 must be row-major and the other in panels"
    same = facing(rows, panels)
    if same is None:
        return "operand 0 has other rows than the result, in several matrices"
    found = Facing(rows=same, panels=panels, is_packing=isinstance(sides[0], Panels))
    if not found.is_packing and (found.moved_rows < same.rows or found.moved_columns < same.columns):
        return "result 0 has rows or columns to clear, which only panels can have"
    if panels.along // panels.along_block != -(-found.along // panels.along_block):
        return "a block of the panels holds nothing but padding"
    if found.is_packing and panels.is_drained:
        return "result 0 is in the order in which products drain, which only products make"
    if max(panels.along, panels.across, panels.matrices, same.rows, same.columns) >= MOST:
        return f"an extent is not below {MOST}"
    return found


def stripes_cycles(
    stripes: Stripes,
    setup: Sequence[int],
    stores: int,
    issues: Callable[[int, int], Sequence[int]],
) -> Cycles:
    """Of a kernel that launches its workers for each stripe.

    Args:
        stripes: what is moved.
        setup: cycles of each instruction of the supervisor before its loops.
        stores: words that it stores for a launch.
        issues: of each worker, in a stripe that holds so many coordinates along, of a matrix that begins so
            many bytes behind the beginning of a word of the row-major side.
    """
    of_stripe = functools.cache(issues)
    clock = Clock()
    clock.supervisor(*setup)
    for matrix in range(stripes.matrices):
        clock.supervisor(LOAD, SIMPLE)
        behind = matrix * stripes.matrix_bytes % WORD
        for stripe, fill in enumerate(stripes.fills):
            clock.supervisor(SIMPLE, *[SIMPLE] * stores, SIMPLE)
            clock.launch(of_stripe(fill, behind))
            clock.wait()
            is_last = stripe == stripes.stripes - 1
            clock.supervisor(SIMPLE, SIMPLE, SIMPLE, SIMPLE, SIMPLE if is_last else TAKEN)
        is_last = matrix == stripes.matrices - 1
        clock.supervisor(LOAD, LOAD, SIMPLE, SIMPLE, SIMPLE if is_last else TAKEN)
    clock.supervisor(SIMPLE, TAKEN)
    return clock.elapsed
