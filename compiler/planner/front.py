"""The candidates that nothing else beats in every respect: a Pareto front of columns.

A candidate is dominated when another is no worse in any column. Of equal ones the first is kept, so that the
front does not depend on anything but the table. Candidates are looked at in lexicographic order: a later one
never dominates an earlier one, so each is compared with the front so far alone. What dominates is moved
forward, since it tends to dominate again; the worst case stays count x front.
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
    order = np.lexsort(costs.T[::-1]).astype(np.int64)
    return order[np.sort(_front(np.ascontiguousarray(costs[order])))]


@compiled
def _front(costs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows of a table in lexicographic order that are not dominated, in no order."""
    count, columns = costs.shape
    front = np.empty(count, dtype=np.int64)
    size = 0
    for row in range(count):
        dominated = False
        for place in range(size):
            other = front[place]
            dominated = True
            for column in range(columns):
                if costs[other, column] > costs[row, column]:
                    dominated = False
                    break
            if dominated:
                if place > 0:
                    front[place] = front[place // 2]
                    front[place // 2] = other
                break
        if not dominated:
            front[size] = row
            size += 1
    return front[:size]
