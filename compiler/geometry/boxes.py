"""Many rectangular regions as columns, and the join of two sets of them.

A distribution covers a tensor with boxes; which shards must talk to which is the join of two covers.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.geometry.region import Region


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
    none = np.empty((2, 0), dtype=np.int64)
    pairs = _meeting(left.starts, left.stops, right.starts, right.stops, sort, first, count, none)
    found = np.empty((2, pairs), dtype=np.int64)
    _meeting(left.starts, left.stops, right.starts, right.stops, sort, first, count, found)
    return found[0], found[1]


@compiled
def _meeting(
    left_starts: npt.NDArray[np.int64],
    left_stops: npt.NDArray[np.int64],
    right_starts: npt.NDArray[np.int64],
    right_stops: npt.NDArray[np.int64],
    sort: npt.NDArray[np.int64],
    first: npt.NDArray[np.int64],
    count: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
) -> int:
    """How many candidates meet their left row on all axes; ``found`` takes them in order, if it has room.

    Args:
        left_starts: [left, rank].
        left_stops: [left, rank].
        right_starts: [right, rank].
        right_stops: [right, rank].
        sort: [right] rows of the right.
        first: [left] the first of a row's candidates in ``sort``.
        count: [left] how many there are.
        found: [2, room] to fill with left and right rows; without room they are only counted.
    """
    room = found.shape[1]
    pairs = 0
    for row in range(len(left_starts)):
        before = pairs
        for place in range(first[row], first[row] + count[row]):
            other = sort[place]
            meets = True
            for axis in range(left_starts.shape[1]):
                start = max(left_starts[row, axis], right_starts[other, axis])
                if start >= min(left_stops[row, axis], right_stops[other, axis]):
                    meets = False
                    break
            if meets:
                if pairs < room:
                    found[0, pairs] = row
                    found[1, pairs] = other
                pairs += 1
        if pairs <= room:
            found[1, before:pairs].sort()
    return pairs


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
        if (column == column[:1]).all():
            continue
        values, digit = np.unique(column, return_inverse=True)
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
