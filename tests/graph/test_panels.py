"""Products with sums rounded after each panel, against loops and the interpreted form."""

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from compiler.graph.panels import add_panels, panel_product


def _loops(
    left: npt.NDArray[np.float32], right: npt.NDArray[np.float32], panel: int
) -> npt.NDArray[np.float32]:
    """The definition, one product at a time; NumPy's binary32 scalars and halves round."""
    result = np.zeros((left.shape[0], right.shape[1]), np.float32)
    for row, column in np.ndindex(result.shape):
        total = np.float32(0)
        for start in range(0, left.shape[1], panel):
            part = np.float32(0)
            for k in range(start, min(start + panel, left.shape[1])):
                part = np.float32(part + np.float32(left[row, k] * right[k, column]))
            total = np.float32(np.float16(total + part))
        result[row, column] = total
    return result


@given(
    sizes=st.tuples(*[st.integers(min_value=1, max_value=size) for size in (3, 70, 5)]),
    panel=st.sampled_from([16, 32]),
    seed=st.integers(min_value=0, max_value=1 << 32),
)
def test_products_are_those_of_loops_bit_for_bit(sizes: tuple[int, ...], panel: int, seed: int) -> None:
    rows, inner, columns = sizes
    random = np.random.default_rng(seed)
    left = random.normal(size=(rows, inner)).astype(np.float32)
    right = random.normal(size=(inner, columns)).astype(np.float32)
    wanted = _loops(left, right, panel)
    np.testing.assert_array_equal(panel_product(left, right, panel), wanted)
    np.testing.assert_array_equal(
        panel_product(left[:, ::-1], right[::-1], panel), _loops(left[:, ::-1], right[::-1], panel)
    )
    total = np.zeros_like(wanted)
    add_panels.py_func(left, right, total, total.view(np.uint32), panel)
    np.testing.assert_array_equal(total, wanted)


def test_many_columns_are_cut_and_put_together() -> None:
    random = np.random.default_rng(0)
    left, right = random.normal(size=(2, 20)).astype(np.float32), np.eye(20, 1300, dtype=np.float32)
    right[:, 20:] = random.normal(size=(20, 1280))
    found = panel_product(left, right, 16)
    np.testing.assert_array_equal(found[:, :20], left.astype(np.float16))
    for column in (511, 512, 1023, 1024, 1299):
        np.testing.assert_array_equal(
            found[:, column : column + 1], _loops(left, right[:, column : column + 1], 16)
        )
