"""How much of its memory each tile uses, whoever uses it."""

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def covered_bytes(tile: Numbers, start: Numbers, stop: Numbers, tile_count: int) -> Numbers:
    """Bytes that lie in any of some ranges; what several of them share in turn counts once.

    A sweep over the ranges of a tile in ascending order: each adds what lies beyond the furthest stop before
    it. Ranges of later tiles are moved behind those of all earlier ones, so that one sweep does for all.
    O(n log n).

    Args:
        tile: [n] logical tile of each range.
        start: [n] its first byte.
        stop: [n] the byte behind its last.
        tile_count: of the program.

    Returns:
        [tile_count] bytes.
    """
    order = np.lexsort((stop, start, tile))
    offset = tile[order] * (int(stop.max(initial=0)) + 1)
    begin, end = start[order] + offset, stop[order] + offset
    reach = np.maximum.accumulate(end)
    begin[1:] = np.maximum(begin[1:], reach[:-1])
    covered = np.zeros(tile_count, dtype=np.int64)
    np.add.at(covered, tile[order], np.maximum(end - begin, 0))
    return covered
