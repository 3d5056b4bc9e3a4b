"""Products whose sums are rounded to F16 after each panel of K.

The host's matrix library is of no use here: panels are too thin for it, and its threads wait for one another
hundreds of times. The loops below are as fast on one core, whatever else the machine does, and their order of
additions is theirs: the result is the same on every machine.
"""

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.graph.rounding import round_to_halves

_COLUMNS = 512
"""Columns at a time: they and four rows of the right operand stay in the nearest cache."""


def panel_product(
    left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], panel: int
) -> npt.NDArray[np.float32]:
    """Left [m, k] times right [k, n]: [m, n].

    Inside a panel of ``panel`` elements of K products are summed in K order in binary32; the sum is added to
    that of the panels before it and rounded to F16.
    """
    total = np.zeros((left.shape[0], right.shape[1]), dtype=np.float32)
    for first in range(0, right.shape[1], _COLUMNS):
        columns = np.zeros((len(left), min(_COLUMNS, right.shape[1] - first)), dtype=np.float32)
        chosen = np.ascontiguousarray(right[:, first : first + _COLUMNS])
        add_panels(np.ascontiguousarray(left), chosen, columns, columns.view(np.uint32), panel)
        total[:, first : first + _COLUMNS] = columns
    return total


@compiled
def add_panels(
    left: npt.NDArray[np.float32],
    right: npt.NDArray[np.float32],
    total: npt.NDArray[np.float32],
    bits: npt.NDArray[np.uint32],
    panel: int,
) -> None:
    """Add the panels of a product to ``total`` one by one, each time rounded to F16.

    Panels come first and rows inside, so that a panel of the right operand is read from memory once.

    Args:
        left: [m, k].
        right: [k, n].
        total: [m, n], read and written.
        bits: the same memory as integers.
        panel: elements of K.
    """
    rows, inner = left.shape
    columns = right.shape[1]
    part = np.zeros(columns, dtype=np.float32)
    for start in range(0, inner, panel):
        stop = min(start + panel, inner)
        for row in range(rows):
            part[:] = np.float32(0)
            k = start
            while k + 4 <= stop:
                a, b, c, d = left[row, k], left[row, k + 1], left[row, k + 2], left[row, k + 3]
                for column in range(columns):
                    part[column] = (
                        ((part[column] + a * right[k, column]) + b * right[k + 1, column])
                        + c * right[k + 2, column]
                    ) + d * right[k + 3, column]
                k += 4
            while k < stop:
                for column in range(columns):
                    part[column] += left[row, k] * right[k, column]
                k += 1
            for column in range(columns):
                total[row, column] += part[column]
            round_to_halves(total[row], bits[row])
