"""Tensors in storage: building operands, and moving values in and out one element at a time."""

import functools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import ElementOrder
from compiler.geometry.precision import F16, F143_NAN, Precision
from compiler.geometry.region import Region
from tests.geometry.interpreter import coordinates_of, index_of
from tests.kernels.machine import Bytes, Sram

Halves = npt.NDArray[np.float16]


def operand(
    order: ElementOrder,
    extents: Sequence[int],
    *,
    logical: Sequence[int] | None = None,
    region: Sequence[tuple[int, int]] | None = None,
    is_interleaved: bool = False,
    origin: int = 0,
    precision: Precision | None = None,
) -> LocalOperand:
    """An F16 operand, the whole of its storage unless a region is given."""
    bounds = Region.of_extents(extents) if region is None else Region(bounds=tuple(region))
    return LocalOperand(
        precision=F16() if precision is None else precision,
        order=order,
        backing=tuple(extents),
        region=bounds,
        logical=bounds.extents if logical is None else tuple(logical),
        memory_class=MemoryClass.INTERLEAVED if is_interleaved else MemoryClass.STANDARD,
        origin=origin,
    )


@functools.lru_cache(maxsize=1024)
def places(where: LocalOperand) -> npt.NDArray[np.int64]:
    """Storage index [logical elements] of each logical coordinate of the region, last axis fastest."""
    indices = [
        index_of(
            where.order,
            where.precision,
            where.backing,
            tuple(start + c for start, c in zip(where.region.starts, coordinate, strict=True)),
        )
        for coordinate in coordinates_of(where.logical)
    ]
    return np.array(indices, dtype=np.int64)


def stored(where: LocalOperand, values: Halves | Bytes) -> Bytes:
    """The bytes of a storage that holds ``values`` at the logical coordinates of its region, else zero.

    Args:
        where: the storage.
        values: [logical extents]; codes where it is F8.
    """
    elements = np.zeros(int(np.prod(where.backing)), dtype=values.dtype)
    elements[places(where)] = values.reshape(-1)
    return elements.view(np.uint8)


def loaded(where: LocalOperand, memory: Sram, address: int) -> Halves:
    """The values at the logical coordinates of a region in memory."""
    elements = memory.read(address, 2 * int(np.prod(where.backing))).view(np.float16)
    return elements[places(where)].reshape(where.logical)


def normal_halves(random: np.random.Generator, shape: Sequence[int], scale: float = 2.0) -> Halves:
    """Normally distributed halves with some zeros of both signs and some subnormals."""
    values = (random.standard_normal(tuple(shape)) * scale).astype(np.float16)
    values[random.random(tuple(shape)) < 0.03] = -0.0
    values[random.random(tuple(shape)) < 0.03] = np.float16(-3e-7)
    return values


def random_codes(random: np.random.Generator, shape: Sequence[int]) -> Bytes:
    """F143 codes of numbers: all of them likewise, so that most are small; zeros are added."""
    codes = random.integers(0, 256, tuple(shape), dtype=np.uint8)
    codes[(codes == F143_NAN) | (random.random(tuple(shape)) < 0.03)] = 0
    return codes
