"""Rows of variable length in flat columns (CSR form)."""

import numpy as np

from compiler.target.units import Int64Array


def bounds_of(counts: Int64Array) -> Int64Array:
    """[groups + 1] where each group begins, and at the end the number of all entries."""
    bounds = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=bounds[1:])
    return bounds


def expanded(first: Int64Array, counts: Int64Array) -> Int64Array:
    """first[0], first[0] + 1, ... counts[0] of them, then the same of the next group, in one array."""
    bounds = bounds_of(counts)
    result = np.arange(bounds[-1], dtype=np.int64)
    result += np.repeat(first - bounds[:-1], counts)
    return result
