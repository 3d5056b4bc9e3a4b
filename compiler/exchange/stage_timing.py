"""Stage ``exchange.timing``: when every transfer of each phase starts."""

from typing import Final

from compiler.exchange.artifacts import TimingInputs
from compiler.exchange.codec import SCHEDULES
from compiler.exchange.ir import Schedule
from compiler.exchange.timing import schedule
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage


def schedules(inputs: TimingInputs, _options: object) -> tuple[Schedule, ...]:
    """The schedule of each phase.

    Raises:
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    reservations = None if inputs.reservations is None else inputs.reservations.value()
    return tuple(
        schedule(demand, order, reservations=reservations)
        for demand, order in zip(inputs.demands.value(), inputs.orders.value(), strict=True)
    )


EXCHANGE_TIMING: Final = Stage(
    name="exchange.timing",
    module=__name__,
    format=1,
    inputs=TimingInputs,
    outputs=Single(codec=SCHEDULES),
    tables=("target",),
    namespace=Namespace.SCHEDULE,
    function=schedules,
)
