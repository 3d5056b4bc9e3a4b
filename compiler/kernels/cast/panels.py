"""F16 in panels of rows to F143 in panels of rows: contract, cost and semantics.

A panel row has 32 bytes in both precisions, so two panels of 16 halves become one of 32 codes: panel ``p`` of
the source fills half ``p % 2`` of each row of panel ``p // 2`` of the result. Where the source has an odd
number of panels the other half of the last becomes zero. Workers share panels and rows by lanes.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.geometry.operand import LocalOperand
from compiler.geometry.precision import F8, F16
from compiler.kernels.contract import TileMemory
from compiler.kernels.eight_bit import SETUP, codes_of
from compiler.kernels.grid import Grid, grid
from compiler.kernels.halves import halves
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import call_cycles, lane_share
from compiler.target.units import Cycles

MERGE: Final = SymbolKey(family="cast", variant="panels", choices=(("source", "f16"), ("result", "f8")))

WORKERS: Final = 6
PANEL_ROW: Final = 32
"""Bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What is merged.

    Args:
        start: first byte of the source, relative to its storage.
        result_start: the same of the result.
        rows: of every panel.
        panels: of the source.
    """

    start: int
    result_start: int
    rows: int
    panels: int

    @property
    def halves_of_panels(self) -> int:
        """Of the result; one more than ``panels`` when the last is cleared."""
        return self.panels + self.panels % 2


def merge_of(result: LocalOperand, operand: LocalOperand) -> Merge | None:
    """The panels to merge; None when the operands are not F16 and F143 in panels of the same rows."""
    if not (isinstance(result.precision, F8) and isinstance(operand.precision, F16)):
        return None
    ends, source = grid(result), grid(operand)
    if ends is None or source is None or ends.row_digits != source.row_digits:
        return None
    if not (_has_panels(ends, F8.micro) and _has_panels(source, F16.micro)):
        return None
    if ends.columns != -(-source.columns // F8.micro) * F8.micro:
        return None
    return Merge(
        start=source.start,
        result_start=ends.start,
        rows=source.rows,
        panels=source.columns // F16.micro,
    )


def _has_panels(one: Grid, width: int) -> bool:
    """Whether it is stored in panels of this width; of a single row every width does."""
    return one.columns % width == 0 and (one.panel == width or one.rows == 1)


def merge_cycles(merge: Merge, lanes: tuple[int, int]) -> Cycles:
    """Of ``panels`` with (panels, rows) of lanes side by side."""
    issues: list[int] = []
    for worker in range(WORKERS):
        rows = lane_share(merge.rows, worker // lanes[0], lanes[1])
        if rows <= 0:
            issues.append(15)
            continue
        total = 18
        first = worker % lanes[0]
        if first < merge.halves_of_panels:
            total += 9 + SETUP
            for panel in range(first, merge.halves_of_panels, lanes[0]):
                total += 16 + 6 * rows if panel < merge.panels else 15 + 2 * rows
        issues.append(total)
    return call_cycles(21, issues)


def cycles_of_call(arguments: tuple[int, ...]) -> Cycles:
    """The formula of ``panels``, given its argument registers."""
    rows, panels, lanes = arguments[2:5]
    merge = Merge(start=0, result_start=0, rows=rows, panels=panels)
    return merge_cycles(merge, (lanes & 0xFF, lanes >> 8))


def execute_merge(arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What ``panels`` does, given its argument registers."""
    result, operand, rows, panels = arguments[:4]
    values = halves(memory.read(operand, PANEL_ROW * rows * panels)).reshape(panels, rows, F16.micro)
    codes = np.zeros((panels + panels % 2, rows, F16.micro), dtype=np.uint8)
    codes[:panels] = codes_of(values, arguments[6])
    merged = codes.reshape(-1, 2, rows, F16.micro).transpose(0, 2, 1, 3)
    memory.write(result, np.ascontiguousarray(merged).reshape(-1))
