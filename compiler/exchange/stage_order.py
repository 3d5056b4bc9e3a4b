"""Stage ``exchange.order``: in which order the transfers of each phase are given their times."""

from typing import Final

from compiler.exchange.artifacts import OrderInputs
from compiler.exchange.codec import ORDERS
from compiler.exchange.order import chosen_order
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage
from compiler.target.units import Int64Array


def orders(inputs: OrderInputs, _options: object) -> tuple[Int64Array, ...]:
    """[transfers] for each phase, who chooses first.

    Raises:
        ScheduleInfeasible: addresses are such that no start is legal.
    """
    return tuple(chosen_order(demand).order for demand in inputs.demands.value())


EXCHANGE_ORDER: Final = Stage(
    name="exchange.order",
    module=__name__,
    format=1,
    inputs=OrderInputs,
    outputs=Single(codec=ORDERS),
    tables=("target",),
    namespace=Namespace.SCHEDULE,
    function=orders,
)
