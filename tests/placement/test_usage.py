"""Bytes in use: against sets of bytes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.placement.usage import covered_bytes

RANGES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 40), st.integers(0, 12)), max_size=12
)  # tile, start, size


@given(RANGES)
def test_covered_bytes_are_the_size_of_the_union(ranges: list[tuple[int, int, int]]) -> None:
    held: list[set[int]] = [set() for _ in range(4)]
    for tile, start, size in ranges:
        held[tile].update(range(start, start + size))
    columns = np.array(ranges, dtype=np.int64).reshape(-1, 3).T
    found = covered_bytes(columns[0], columns[1], columns[1] + columns[2], 4)
    assert found.tolist() == [len(each) for each in held]
