"""Pareto fronts against the definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.planner.front import pareto, unbeaten

_TABLES = st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=40)


def no_worse(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """In any column."""
    return all(a <= b for a, b in zip(one, other, strict=True))


@given(rows=_TABLES)
def test_the_front_is_what_nothing_dominates(rows: list[tuple[int, int, int]]) -> None:
    """Of equal rows the first; in lexicographic order."""
    kept = [
        number
        for number, row in enumerate(rows)
        if not any(
            no_worse(other, row) and (other != row or earlier < number)
            for earlier, other in enumerate(rows)
            if earlier != number
        )
    ]
    table = np.array(rows, dtype=np.int64).reshape(len(rows), 3)
    assert pareto(table).tolist() == sorted(kept, key=lambda number: rows[number])


@given(rows=_TABLES, against=_TABLES)
def test_unbeaten_rows_have_no_row_of_the_front_below(
    rows: list[tuple[int, int, int]], against: list[tuple[int, int, int]]
) -> None:
    """Equal counts as beaten."""
    front = sorted(against)
    found = unbeaten(
        np.array(rows, dtype=np.int64).reshape(len(rows), 3),
        np.array(front, dtype=np.int64).reshape(len(front), 3),
    )
    assert found.tolist() == [
        number for number, row in enumerate(rows) if not any(no_worse(other, row) for other in front)
    ]
