"""What each shard of a value holds, as boxes of coordinates.

Computations see the shards of their results and operands as boxes. A shard of a grid is one. A shard of a
linear tiling is a run of the storage sequence: a box where that sequence is the tensor's only axis, and
elsewhere only while the computation does not care which axes there are and everything it touches is cut
alike; then the tensor is looked at *flat*, as the vector that a row-major tensor is in storage.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.order import RowMajor
from compiler.geometry.tiling import GridTiling, LinearTiling
from compiler.mid.ir import Value


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ShardBoxes:
    """Boxes of coordinates as columns; the tensor's coordinates, also behind ``stops``.

    Args:
        starts: [shards, rank] the coordinate that a shard stores first.
        stops: [shards, rank] one past its last element; where a shard is empty, not behind ``starts`` on some
            axis.
        physical_stops: [shards, rank] the same with padding. What lies behind ``stops`` is no element, though
            the next shard's first element may have that coordinate.
    """

    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    physical_stops: npt.NDArray[np.int64]

    @property
    def rank(self) -> int:
        """Axes."""
        return self.starts.shape[1]

    @property
    def is_filled(self) -> npt.NDArray[np.bool_]:
        """Whether a shard holds an element [shards]."""
        return np.logical_and.reduce(self.starts < self.stops, axis=1)

    def of(self, shards: npt.NDArray[np.int64]) -> "ShardBoxes":
        """The boxes of some shards [n], in their order."""
        return ShardBoxes(
            starts=self.starts[shards], stops=self.stops[shards], physical_stops=self.physical_stops[shards]
        )


def is_flat(values: Sequence[Value]) -> bool:
    """Whether a computation with these results and operands looks at them flat: one is cut so."""
    return any(
        isinstance(value.format.layout.tiling, LinearTiling) and len(value.shape) != 1 for value in values
    )


def shard_boxes(value: Value, *, flat: bool = False) -> ShardBoxes:
    """The boxes of all shards of a value.

    Args:
        value: any value.
        flat: as a vector, in storage sequence.

    Raises:
        ValueError: its shards are not boxes of the tensor, or of the vector.
    """
    distribution = value.distribution
    tiling, order = value.format.layout.tiling, value.format.layout.order
    match tiling:
        case GridTiling():
            if flat:
                raise ValueError(f"{value.name} is cut along its axes, and not by its storage sequence")
            widths = np.array([m.extents for m in distribution.index_maps], dtype=np.int64)
            widths = widths.reshape(len(distribution.index_maps), len(value.shape))
            stops = distribution.origins.copy()
            stops[distribution.cover_shard] = distribution.cover.stops
            return ShardBoxes(
                starts=distribution.origins,
                stops=stops,
                physical_stops=distribution.origins + widths[distribution.shard_map],
            )
        case LinearTiling():
            if order != RowMajor() or (len(value.shape) != 1 and not flat):
                raise ValueError(
                    f"shards of {value.name} are runs of its storage sequence, and no boxes of elements"
                )
            starts = distribution.displacements[:, None]
            physical_stops = starts + distribution.storage_elements[:, None]
            return ShardBoxes(
                starts=starts,
                stops=np.maximum(starts, np.minimum(physical_stops, prod(value.shape))),
                physical_stops=physical_stops,
            )
        case _:
            assert_never(tiling)


NO_PARTIAL: Final = -1
"""Of an owner that sums: its tile holds no partial of all that it sums."""


def own_partials(result: Value, operand: Value) -> npt.NDArray[np.int64]:
    """The partial that each owner of a sum begins with [owners] as its own tile holds it, or NO_PARTIAL.

    It is the one that the tile's shard of the operand holds, if that shard is a box of one partial and has
    all elements of the owner's shard of the result. Of an owner without elements it is NO_PARTIAL.

    Args:
        result: of the sum.
        operand: the partials, along axis 0.
    """
    distribution = result.distribution
    own = np.full(distribution.owner_count, NO_PARTIAL, dtype=np.int64)
    try:
        every = shard_boxes(operand)
    except ValueError:
        return own
    # A box holds several boxes if it holds the smallest one around them.
    starts = np.full((distribution.shard_count, len(result.shape)), max(result.shape), dtype=np.int64)
    stops = np.full_like(starts, -1)
    np.minimum.at(starts, distribution.cover_shard, distribution.cover.starts)
    np.maximum.at(stops, distribution.cover_shard, distribution.cover.stops)
    starts, stops = starts[distribution.shard_of_owner], stops[distribution.shard_of_owner]
    shards = shards_on(operand, result.owners.tiles(distribution.owner_count))
    held = every.of(np.maximum(shards, 0))
    inside = (held.starts[:, 1:] <= starts) & (held.stops[:, 1:] >= stops) & (starts < stops)
    is_one = held.physical_stops[:, 0] == held.starts[:, 0] + 1
    found = (shards >= 0) & held.is_filled & is_one & np.logical_and.reduce(inside, axis=1)
    return np.where(found, held.starts[:, 0], NO_PARTIAL)


def shards_on(value: Value, tiles: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The shard of a value on each tile [n]; -1 where the tile holds none."""
    distribution = value.distribution
    owners = value.owners.owners(distribution.owner_count)[tiles]
    return np.where(owners < 0, -1, distribution.shard_of_owner[owners])
