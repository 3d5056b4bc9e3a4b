"""The numbers of products, as the AMP unit computes them (decision ``amp-arithmetic``).

One instruction multiplies 8 bytes of a row with as many of each of 16 columns. Its products, 4 of halves or 8
of codes, are summed in index order in binary64, multiplied by two to the scale, and added to the accumulator,
which is rounded to binary32. After each panel of K the accumulator is rounded to a half, to nearest even, and
starts the next panel.

Kernels' semantics, the interpreter of whole-device programs and functional simulation all compute here. Rows
and columns do not influence each other. Panels come first and rows inside, so that a panel of the weights
stays in the nearest cache; the innermost loops are over columns, which is what the host's vectors are for.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.geometry.precision import PANEL_ROW_BYTES
from compiler.kernels.halves import round_halves

QUAD_BYTES: Final = 8
"""Bytes that one AMP instruction multiplies of a row."""
STEPS: Final = PANEL_ROW_BYTES // QUAD_BYTES
"""AMP instructions for each row of a panel."""


def multiply(
    left: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    sums: npt.NDArray[np.float16],
    micro: int,
    scale: int | None = None,
) -> npt.NDArray[np.float16]:
    """The product of two matrices, added to what there is: [rows, columns].

    Args:
        left: [rows, K], halves or values of codes; where K does not fill its last panel, zeros do.
        weights: [K, columns].
        sums: [rows, columns] what the first panel starts from; zeros for a product alone.
        micro: elements of K in a panel.
        scale: sums of products count times two to this; None for halves, which have none.
    """
    missing = -left.shape[1] % micro
    if missing:
        left = np.pad(left, ((0, 0), (0, missing)))
        weights = np.pad(weights, ((0, missing), (0, 0)))
    total = sums.astype(np.float32)
    _add_panels(
        np.ascontiguousarray(left),
        np.ascontiguousarray(weights),
        total,
        total.view(np.uint32),
        micro,
        micro // STEPS,
        1.0 if scale is None else float(np.ldexp(1.0, scale)),
    )
    return round_halves(total)


@compiled
def _add_panels(
    left: npt.NDArray[np.float64],
    weights: npt.NDArray[np.float64],
    total: npt.NDArray[np.float32],
    bits: npt.NDArray[np.uint32],
    micro: int,
    step: int,
    factor: float,
) -> None:
    """Add the panels of a product to ``total`` one by one, each time rounded to F16.

    Normal halves keep 10 of the 23 bits of a mantissa: the half of what is dropped is added, less one bit
    unless the last kept bit is odd. Below 2^-14 halves are multiples of 2^-24, which is the spacing of
    binary32 from 1/2 to 1: adding 1/2 rounds, and subtracting it is exact.

    Args:
        left: [rows, K], K a multiple of ``micro``.
        weights: [K, columns].
        total: [rows, columns], halves; read and written.
        bits: the same memory as integers.
        micro: elements of K in a panel.
        step: elements of K in an instruction, 4 or 8.
        factor: two to the scale.
    """
    rows, inner = left.shape
    columns = weights.shape[1]
    products = np.empty(columns, dtype=np.float64)
    small = np.empty(columns, dtype=np.float32)
    small_bits = small.view(np.uint32)
    for start in range(0, inner, micro):
        for row in range(rows):
            for k in range(start, start + micro, step):
                a, b, c, d = left[row, k], left[row, k + 1], left[row, k + 2], left[row, k + 3]
                for column in range(columns):
                    products[column] = (
                        (a * weights[k, column] + b * weights[k + 1, column]) + c * weights[k + 2, column]
                    ) + d * weights[k + 3, column]
                if step == 8:
                    a, b, c, d = left[row, k + 4], left[row, k + 5], left[row, k + 6], left[row, k + 7]
                    for column in range(columns):
                        products[column] = (
                            ((products[column] + a * weights[k + 4, column]) + b * weights[k + 5, column])
                            + c * weights[k + 6, column]
                        ) + d * weights[k + 7, column]
                for column in range(columns):
                    total[row, column] = np.float32(
                        np.float64(total[row, column]) + products[column] * factor
                    )
            for column in range(columns):
                small[column] = (abs(total[row, column]) + np.float32(0.5)) - np.float32(0.5)
            for column in range(columns):
                sign = bits[row, column] & np.uint32(0x80000000)
                magnitude = bits[row, column] & np.uint32(0x7FFFFFFF)
                odd = (magnitude >> np.uint32(13)) & np.uint32(1)
                rounded = (magnitude + np.uint32(0xFFF) + odd) & np.uint32(0xFFFFE000)
                rounded = min(rounded, np.uint32(0x477FE000))  # 65504
                if magnitude < np.uint32(0x38800000):  # 2^-14
                    rounded = small_bits[column]
                if magnitude >= np.uint32(0x7F800000):  # infinity and NaN
                    rounded = magnitude
                bits[row, column] = rounded | sign
