"""What scheduled phases take, for the estimates of whole programs.

A row ends with what its own tile has to do, so that each tile goes on at another time; one that neither sends
nor receives has no row and does not wait for those of others.
"""

from collections.abc import Mapping

import numpy as np

from compiler.estimate.low import PhaseTime
from compiler.exchange.ir import Schedule
from compiler.low.ids import StepId
from compiler.target.costs import PHASE_RESIDUAL
from compiler.target.tiles import logical_tiles


def phase_times(schedules: Mapping[StepId, Schedule], tile_count: int) -> dict[StepId, PhaseTime]:
    """What each exchange step takes.

    Args:
        schedules: of the steps.
        tile_count: of the program.
    """
    return {step: _time_of(schedule, tile_count) for step, schedule in schedules.items()}


def _time_of(schedule: Schedule, tile_count: int) -> PhaseTime:
    tiles = logical_tiles(schedule.tiles)
    takes_part = np.zeros(tile_count, dtype=np.bool_)
    takes_part[tiles] = True
    row = np.zeros(tile_count, dtype=np.int64)
    row[tiles] = schedule.horizon
    return PhaseTime(takes_part=takes_part, row=row, overhead=PHASE_RESIDUAL)
