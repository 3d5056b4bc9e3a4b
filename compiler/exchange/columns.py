"""Rows of variable length in flat columns (CSR form)."""

import numpy as np

from compiler.compiled import compiled
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


_DIGIT = 11
_MASK = (1 << _DIGIT) - 1
"""Bits by which ``ascending`` sorts at a time; the counts of a digit fit the processor's first cache."""


@compiled
def ascending(keys: Int64Array) -> Int64Array:
    """[keys] a permutation that puts keys in order; equal keys keep theirs. Keys are not negative.

    A radix sort, lowest digits first: the work is a few passes over the keys, and none for a digit in which
    all agree.
    """
    count = keys.size
    order = np.arange(count)
    if count == 0:
        return order
    highest = keys.max()
    sorted_keys = keys.copy()
    order_before = np.empty(count, dtype=np.int64)
    keys_before = np.empty(count, dtype=np.int64)
    begin = np.empty((1 << _DIGIT) + 1, dtype=np.int64)
    for shift in range(0, 63, _DIGIT):
        if highest >> shift == 0:
            break
        begin[:] = 0
        for key in keys:
            begin[(key >> shift & _MASK) + 1] += 1
        if begin[(keys[0] >> shift & _MASK) + 1] == count:
            continue
        for digit in range(_MASK):
            begin[digit + 1] += begin[digit]
        order, order_before = order_before, order
        sorted_keys, keys_before = keys_before, sorted_keys
        for index in range(count):
            key = keys_before[index]
            place = begin[key >> shift & _MASK]
            begin[key >> shift & _MASK] = place + 1
            order[place] = order_before[index]
            sorted_keys[place] = key
    return order
