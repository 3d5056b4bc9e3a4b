"""The candidates that nothing else beats in every respect: a Pareto front of columns.

A candidate is dominated when another is no worse in any column. Of equal ones the first is kept, so that the
front depends on nothing but the table. Candidates are looked at by their first column: a later one never
dominates an earlier one with a smaller first number, so each is compared with the front so far, and only
among equal first numbers does the front lose members. What dominates is moved forward, since it tends to
dominate again; the worst case stays count x front.
"""

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled


def pareto(costs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows of a table that are not dominated, in lexicographic order of their costs.

    Args:
        costs: [count, columns], smaller is better.
    """
    if len(costs) == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.argsort(costs[:, 0], kind="stable").astype(np.int64)
    front = order[_front(np.ascontiguousarray(costs[order]))]
    return front[np.lexsort((front, *costs[front].T[::-1]))].astype(np.int64)


def unbeaten(costs: npt.NDArray[np.int64], front: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows of a table that no row of a front equals or dominates.

    Args:
        costs: [count, columns].
        front: [rows, columns], by its first column.
    """
    return np.flatnonzero(~_beaten(np.ascontiguousarray(costs), np.ascontiguousarray(front))).astype(np.int64)


@compiled
def _beaten(costs: npt.NDArray[np.int64], front: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Whether a row of the front is no worse [count]."""
    beaten = np.zeros(len(costs), dtype=np.bool_)
    for row in range(len(costs)):
        for other in range(len(front)):
            if front[other, 0] > costs[row, 0]:
                break
            no_worse = True
            for column in range(1, costs.shape[1]):
                if front[other, column] > costs[row, column]:
                    no_worse = False
                    break
            if no_worse:
                beaten[row] = True
                break
    return beaten


@compiled
def _front(costs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows of a table, sorted by its first column, that are not dominated, in no order."""
    count, columns = costs.shape
    front = np.empty(count, dtype=np.int64)
    size = 0
    for row in range(count):
        dominated = False
        for place in range(size):
            other = front[place]
            dominated = True
            for column in range(1, columns):
                if costs[other, column] > costs[row, column]:
                    dominated = False
                    break
            if dominated:
                front[place] = front[place // 2]
                front[place // 2] = other
                break
        if dominated:
            continue
        kept = 0
        for place in range(size):
            other = front[place]
            worse = costs[other, 0] == costs[row, 0]
            for column in range(1, columns):
                if costs[row, column] > costs[other, column]:
                    worse = False
                    break
            if not worse:
                front[kept] = other
                kept += 1
        front[kept] = row
        size = kept + 1
    return front[:size]
