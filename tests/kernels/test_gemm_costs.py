"""Tabulated cycles of products: equal to the formula, which walks the clock panel by panel."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.kernels.gemm.binding import Factor, GemmShape, Kernel, Mode, Rounding, Weights, cycles
from compiler.kernels.gemm.costs import many_cycles

_KERNELS = [
    Kernel(mode=mode, factor=factor, weights=weights, rounding=rounding, has_blocks=has_blocks)
    for mode in Mode
    for factor in Factor
    for weights in Weights
    for rounding in Rounding
    for has_blocks in (False, True)
    if factor is Factor.F16 or not has_blocks
]


@given(
    kernel=st.sampled_from(_KERNELS),
    shapes=st.lists(
        st.tuples(st.integers(1, 40), st.integers(1, 12), st.integers(1, 8)), min_size=1, max_size=4
    ),
)
def test_many_shapes_cost_what_each_costs(kernel: Kernel, shapes: list[tuple[int, int, int]]) -> None:
    """PR-32: one price of a kernel, however many shapes are asked for at once."""
    if kernel.has_blocks:
        shapes = [(16 * rows, k_groups, column_groups) for rows, k_groups, column_groups in shapes]
    columns = np.array(shapes, dtype=np.int64).T
    expected = [
        cycles(
            kernel,
            GemmShape(
                rows=rows,
                k_groups=k_groups,
                column_groups=column_groups,
                left_panel_rows=rows,
                result_panel_rows=rows,
                weight_stride=512 * k_groups,
            ),
        )
        for rows, k_groups, column_groups in shapes
    ]
    assert many_cycles(kernel, *columns).tolist() == expected
