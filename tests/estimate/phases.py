"""A program with exchanges in a Repeat, and times that its phases may take."""

import numpy as np
from hypothesis import strategies as st

from compiler.estimate.low import PhaseTime
from compiler.low.ids import StepId
from compiler.low.ir import ExchangeStep
from compiler.low.steps import executions
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.target.costs import PHASE_OVERHEAD, PHASE_RESIDUAL

PROGRAM = skeleton(SkeletonOptions(rows=7, panels=2))
"""A Repeat of two over products, exchanges and sums."""


EXCHANGES = sorted({step.step for step, _ in executions(PROGRAM.steps) if isinstance(step, ExchangeStep)})


@st.composite
def phase_times_of_steps(draw: st.DrawFn) -> dict[StepId, PhaseTime]:
    """Rows on some tiles of each exchange step, on all of them or on none."""
    found: dict[StepId, PhaseTime] = {}
    for step in EXCHANGES:
        rows = draw(
            st.lists(
                st.none() | st.integers(0, 9000), min_size=PROGRAM.tile_count, max_size=PROGRAM.tile_count
            )
        )
        found[step] = PhaseTime(
            takes_part=np.array([row is not None for row in rows]),
            row=np.array([row or 0 for row in rows]),
            overhead=draw(st.sampled_from([PHASE_RESIDUAL, PHASE_OVERHEAD])),
        )
    return found
