"""Short ways to say what a test is about."""

from collections.abc import Sequence

from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import ElementOrder
from compiler.geometry.precision import Precision
from compiler.geometry.tiling import TensorTiling


def distributed(
    shape: Sequence[int], precision: Precision, order: ElementOrder, tiling: TensorTiling
) -> Distribution:
    """A shape under a format in standard memory."""
    layout = TensorLayout(order=order, tiling=tiling)
    return distribute(shape, TensorFormat(precision=precision, layout=layout))
