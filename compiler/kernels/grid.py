"""Gapless operands as grids of rows and columns.

Kernels that treat the columns of a row alike (a bias, panels of another width) see an operand as rows of the
last axis: all other axes are rows. Columns lie behind one another (row-major), or in panels of one width,
each with all rows (AMP left).
"""

from dataclasses import dataclass
from math import prod
from typing import final

from compiler.geometry.operand import LocalOperand
from compiler.kernels.packed import PackedDigit, pack


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A gapless operand as rows.

    Args:
        start: first byte, relative to the backing storage.
        row_digits: which coordinates count rows; grids with equal ones have rows in the same order.
        columns: of a row.
        panel: columns of a panel; ``columns`` when there is one.
    """

    start: int
    row_digits: tuple[PackedDigit, ...]
    columns: int
    panel: int

    @property
    def rows(self) -> int:
        """How many there are."""
        return prod(digit.radix for digit in self.row_digits)

    @property
    def is_panels(self) -> bool:
        """Whether it has several panels."""
        return self.panel < self.columns


def grid(operand: LocalOperand) -> Grid | None:
    """An operand as rows of its last axis; None when its bytes have gaps or are in another order."""
    packed = pack(operand)
    if packed is None:
        return None
    axis = len(operand.backing) - 1
    digits = packed.digits
    panel = columns = 1
    if digits and digits[-1].axis == axis and digits[-1].weight == 1:
        panel = columns = digits[-1].radix
        digits = digits[:-1]
    if digits and digits[0].axis == axis and digits[0].weight == panel:
        columns *= digits[0].radix
        digits = digits[1:]
    if any(digit.axis == axis for digit in digits):
        return None
    return Grid(start=packed.start, row_digits=digits, columns=columns, panel=panel)
