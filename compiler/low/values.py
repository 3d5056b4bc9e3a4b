"""Tensors of the host as shards of bytes, and back.

Element for element, by the geometry of the value's distribution and nothing else. Padding is zero bytes. An
array holds elements as they are stored: an F8 value is an array of codes (``geometry.precision`` converts).
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.region import Region
from compiler.low.ir import HostValue

Elements: TypeAlias = npt.NDArray[np.generic]
"""Elements of a tensor as they are stored."""

ByteArray: TypeAlias = npt.NDArray[np.uint8]


def distribution_of(value: HostValue) -> Distribution:
    """The value's shape under its format."""
    return distribute(value.shape, value.format)


def pack(distribution: Distribution, array: Elements) -> tuple[ByteArray, ...]:
    """The bytes of every shard of a tensor.

    Raises:
        ValueError: the array has another shape or element type than the distribution.
    """
    dtype = distribution.format.precision.dtype
    if array.shape != distribution.shape or array.dtype != dtype:
        raise ValueError(
            f"a tensor of {list(distribution.shape)} {dtype} cannot be packed from {list(array.shape)} "
            f"{array.dtype}"
        )
    shards = [np.zeros(int(count), dtype=dtype) for count in distribution.storage_elements]
    for shard, box, index in _pieces(distribution):
        shards[shard][index] = array[_slices(box)].reshape(-1)
    return tuple(shard.view(np.uint8) for shard in shards)


def unpack(distribution: Distribution, shards: Sequence[ByteArray]) -> Elements:
    """The tensor whose shards have these bytes; padding is not looked at.

    Raises:
        ValueError: a shard is missing or has another number of bytes.
    """
    sizes = [len(shard) for shard in shards]
    if sizes != distribution.storage_bytes.tolist():
        raise ValueError(f"shards of {sizes} bytes are not of {distribution.storage_bytes.tolist()}")
    dtype = distribution.format.precision.dtype
    array = np.zeros(distribution.shape, dtype=dtype)
    elements = [np.ascontiguousarray(shard).view(dtype) for shard in shards]
    for shard, box, index in _pieces(distribution):
        array[_slices(box)] = elements[shard][index].reshape(box.extents)
    return array


def _pieces(distribution: Distribution) -> list[tuple[int, Region, npt.NDArray[np.int64]]]:
    """For each box of the cover: its shard, the coordinates, and their places in the shard, rows first."""
    pieces: list[tuple[int, Region, npt.NDArray[np.int64]]] = []
    for row, shard in enumerate(distribution.cover_shard.tolist()):
        box = distribution.cover.region(row)
        grid = np.indices(box.extents, dtype=np.int64).reshape(box.rank, -1).T
        coordinates = grid + np.array(box.starts, dtype=np.int64)
        shards = np.full(len(coordinates), shard, dtype=np.int64)
        pieces.append((shard, box, distribution.storage_index(shards, coordinates)))
    return pieces


def _slices(box: Region) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in box.bounds)
