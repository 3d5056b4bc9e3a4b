"""What a value's type says about its storage: order, tiling, memory class and, as a format, precision."""

from dataclasses import dataclass
from enum import Enum
from typing import final

from compiler.geometry.order import ElementOrder
from compiler.geometry.precision import Precision
from compiler.geometry.tiling import TensorTiling


class MemoryClass(Enum):
    """The kind of SRAM a buffer needs."""

    STANDARD = "standard"
    """Either region will do."""
    INTERLEAVED = "interleaved"
    """Only the region that 128-bit loads can read."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorLayout:
    """Where each element of a tensor is: its shard and its place in the shard."""

    order: ElementOrder
    tiling: TensorTiling
    memory_class: MemoryClass = MemoryClass.STANDARD


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorFormat:
    """Precision and layout. :func:`compiler.geometry.distribution.distribute` applies it to a shape."""

    precision: Precision
    layout: TensorLayout
