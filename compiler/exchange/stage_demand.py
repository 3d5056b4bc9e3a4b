"""Stage ``exchange.demand``: what every phase of a placed program has to move."""

from typing import Final

import numpy as np

from compiler.exchange.artifacts import DemandInputs
from compiler.exchange.codec import DEMANDS
from compiler.exchange.demand import demand_of_step, exchange_steps
from compiler.exchange.ir import Demand
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage
from compiler.target.tiles import physical_tiles


def demands(inputs: DemandInputs, _options: object) -> tuple[Demand, ...]:
    """The demand of each exchange step, in program order.

    Raises:
        ScheduleInfeasible: a transfer reaches nobody but its sender.
    """
    program, placement = inputs.program.value(), inputs.placement.value()
    physical = physical_tiles(np.arange(program.tile_count))
    return tuple(demand_of_step(program, placement, step, physical) for step in exchange_steps(program))


EXCHANGE_DEMAND: Final = Stage(
    name="exchange.demand",
    module=__name__,
    format=1,
    inputs=DemandInputs,
    outputs=Single(codec=DEMANDS),
    tables=("target",),
    namespace=Namespace.SCHEDULE,
    function=demands,
)
