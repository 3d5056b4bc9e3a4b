"""Stage ``exchange.order``: in which order the transfers of each phase are given their times."""

from typing import Final

from compiler.exchange.artifacts import OrderInputs
from compiler.exchange.codec import ORDERS
from compiler.exchange.order import list_order
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage
from compiler.target.units import Int64Array


def orders(inputs: OrderInputs, _options: object) -> tuple[Int64Array, ...]:
    """[transfers] for each phase, most urgent first."""
    return tuple(list_order(demand) for demand in inputs.demands.value())


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
