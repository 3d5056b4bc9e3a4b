"""Many rectangular regions as columns, and the join of two sets of them.

A distribution covers a tensor with boxes; which shards must talk to which is the join of two covers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.region import Region

_CANDIDATES_AT_ONCE: Final = 1 << 21
"""Candidate pairs examined together in a join: bounds its memory to a few hundred bytes times this."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Boxes:
    """Many regions of one rank as columns.

    Args:
        starts: [count, rank].
        stops: [count, rank]; where a stop does not exceed its start the box is empty.
    """

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of boxes."""
        return len(self.starts)

    def region(self, row: int) -> Region:
        """Box ``row`` as a value."""
        starts, stops = self.starts[row], np.maximum(self.starts[row], self.stops[row])
        return Region(bounds=tuple(zip(map(int, starts), map(int, stops), strict=True)))


def intersect(left: Boxes, right: Boxes) -> Boxes:
    """Row-wise intersection of two equally long tables."""
    return Boxes(starts=np.maximum(left.starts, right.starts), stops=np.minimum(left.stops, right.stops))


def join(left: Boxes, right: Boxes) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows (l, r) of all pairs whose boxes have a common coordinate, ordered by l, then r.

    Along one axis, with the right boxes sorted by start, the boxes that start before a left box stops are a
    prefix, and those before the first that reaches past its start can be skipped. What remains is exact when
    the boxes tile the axis and a superset otherwise. The axis that leaves the fewest candidates is taken, and
    the candidates are compared on all axes. Cost: the candidates plus a sort per axis; never all pairs of a
    tiling.
    """
    rank = left.starts.shape[1]
    if rank == 0 or len(left) == 0 or len(right) == 0:
        pairs = np.indices((len(left), len(right)), dtype=np.int64).reshape(2, -1)
        return pairs[0], pairs[1]
    sort, first, count = min(
        (_candidates(left, right, axis) for axis in range(rank)), key=lambda found: int(found[2].sum())
    )
    lefts: list[npt.NDArray[np.int64]] = []
    rights: list[npt.NDArray[np.int64]] = []
    for rows in _chunks(count):
        pair_left = np.repeat(rows, count[rows])
        pair_right = sort[np.repeat(first[rows], count[rows]) + ranges(count[rows])]
        starts = np.maximum(left.starts[pair_left], right.starts[pair_right])
        stops = np.minimum(left.stops[pair_left], right.stops[pair_right])
        meet = (starts < stops).all(axis=1)
        lefts.append(pair_left[meet])
        rights.append(pair_right[meet])
    pair_left, pair_right = np.concatenate(lefts), np.concatenate(rights)
    ordered = np.lexsort((pair_right, pair_left))
    return pair_left[ordered], pair_right[ordered]


def ranges(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """0 .. counts[0] - 1, then 0 .. counts[1] - 1, and so on, in one array."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


def distinct_rows(rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(first row of each distinct value, value number of each row), values in lexicographic order.

    Folds one column at a time into dense codes: a sort per varying column instead of a sort of records.
    """
    codes = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        values, digit = np.unique(column, return_inverse=True)
        if len(values) > 1:
            _, codes = np.unique(codes * len(values) + digit, return_inverse=True)
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first.astype(np.int64), inverse.reshape(-1).astype(np.int64)


def _candidates(
    left: Boxes, right: Boxes, axis: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Right rows sorted by start on ``axis``; per left row the first of its candidates and their number."""
    sort = np.argsort(right.starts[:, axis], kind="stable").astype(np.int64)
    reach = np.maximum.accumulate(right.stops[sort, axis])
    first = np.searchsorted(reach, left.starts[:, axis], side="right").astype(np.int64)
    last = np.searchsorted(right.starts[sort, axis], left.stops[:, axis], side="left").astype(np.int64)
    return sort, first, np.maximum(last - first, 0)


def _chunks(counts: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Consecutive rows whose counts add up to about _CANDIDATES_AT_ONCE."""
    before = np.cumsum(counts) - counts
    edges = np.flatnonzero(np.diff(before // _CANDIDATES_AT_ONCE)) + 1
    yield from np.split(np.arange(len(counts), dtype=np.int64), edges)
