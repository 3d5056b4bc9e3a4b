"""A tensor of known shape laid over its owners: shards, their extents, storage and the coordinates they hold.

Everything is a column over shards; shards with equal physical extents share one index map. Two covers
describe what shards hold: a shard of a grid is one box of coordinates, a shard of a linear tiling is a run of
the storage sequence and thus a few boxes. Questions about ownership are joins of such boxes, never loops over
elements.

Replicas appear as owners of one shard. Which replica serves a reader is the caller's choice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import Boxes, distinct_rows, intersect, join
from compiler.geometry.iteration import LinearForm, boxes_within
from compiler.geometry.layout import TensorFormat
from compiler.geometry.order import (
    Factor,
    IndexMap,
    axis_multiples,
    factors,
    index_map,
    lane_elements,
)
from compiler.geometry.precision import Precision
from compiler.geometry.tiling import (
    LARGEST_STORAGE,
    AxisTiling,
    GridTiling,
    LinearTiling,
    TensorTiling,
    round_up,
)
from compiler.geometry.traversal import Traversal, traverse


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlaps:
    """Where queried boxes meet shards, as columns ordered by query, then shard.

    Args:
        query: [count] row of the query.
        shard: [count] shard that holds the box.
        boxes: common coordinates, in those of the tensor.
    """

    query: npt.NDArray[np.int64]
    shard: npt.NDArray[np.int64]
    boxes: Boxes


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """A shape under a format. Made by :func:`distribute`.

    Args:
        shape: logical extents of the tensor.
        format: what was applied.
        factors: digits of the element order, slowest first.
        index_maps: one per distinct physical extents of shards.
        shard_map: [shards] which index map addresses the shard.
        origins: [shards, rank] tensor coordinate of the index map's coordinate 0.
        displacements: [shards] storage index, in elements, at which the shard's own bytes begin; 0 in a grid.
        storage_elements: [shards] elements stored, padding included.
        cover: boxes of tensor coordinates that shards hold, disjoint, none empty.
        cover_shard: [boxes of the cover] their shard.
        owners: [shards, replicas] owner numbers, ascending along a row.
        shard_of_owner: [owners].
    """

    shape: tuple[int, ...]
    format: TensorFormat
    factors: tuple[Factor, ...]
    index_maps: tuple[IndexMap, ...]
    shard_map: npt.NDArray[np.int64]
    origins: npt.NDArray[np.int64]
    displacements: npt.NDArray[np.int64]
    storage_elements: npt.NDArray[np.int64]
    cover: Boxes
    cover_shard: npt.NDArray[np.int64]
    owners: npt.NDArray[np.int64]
    shard_of_owner: npt.NDArray[np.int64]

    @property
    def shard_count(self) -> int:
        """Shards, empty ones included."""
        return len(self.origins)

    @property
    def owner_count(self) -> int:
        """Owners: shards times replicas."""
        return self.owners.size

    @property
    def replicas(self) -> int:
        """Owners of each shard."""
        return self.owners.shape[1]

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return self.format.precision.element_bytes

    @property
    def storage_bytes(self) -> npt.NDArray[np.int64]:
        """Bytes stored for each shard [shards], padding included."""
        return self.storage_elements * self.element_bytes

    @property
    def logical_elements(self) -> npt.NDArray[np.int64]:
        """Elements of the tensor that each shard holds [shards]."""
        volumes = np.prod(self.cover.stops - self.cover.starts, axis=1, dtype=np.int64)
        held = np.zeros(self.shard_count, dtype=np.int64)
        np.add.at(held, self.cover_shard, volumes)
        return held

    @property
    def empty_shards(self) -> npt.NDArray[np.int64]:
        """Shards that hold no element of the tensor: their owners would idle or compute on padding."""
        return np.flatnonzero(self.logical_elements == 0).astype(np.int64)

    def require_no_empty_shards(self) -> None:
        """Refuse a tiling that leaves owners without elements.

        Block sizes follow the precision, so a grid that fills every shard in F16 can leave one empty in FP8.

        Raises:
            ValueError: a shard is empty.
        """
        empty = self.empty_shards
        if len(empty):
            raise ValueError(
                f"{len(empty)} of {self.shard_count} shards of {list(self.shape)} in "
                f"{type(self.format.precision).__name__} hold no element; the first is shard {empty[0]}"
            )

    def storage_index(
        self, shards: npt.NDArray[np.int64], coordinates: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Element offset [...] in each shard's storage of tensor coordinates [..., rank] that it holds."""
        local = coordinates - self.origins[shards]
        maps = self.shard_map[shards]
        strides = np.array([[d.stride for d in m.digits] for m in self.index_maps], dtype=np.int64)
        index = -self.displacements[shards]
        for number, factor in enumerate(self.factors):
            digit = local[..., factor.axis] // factor.weight
            if factor.radix is not None:
                digit = digit % factor.radix
            index = index + digit * strides[maps, number]
        return index

    def held_bytes(self, shard: int) -> Traversal:
        """The bytes of one shard's storage that hold elements of the tensor; the others are padding."""
        origin = [-int(start) for start in self.origins[shard]]
        storage = self.index_maps[int(self.shard_map[shard])]
        displacement = int(self.displacements[shard]) * self.element_bytes
        return Traversal(
            pieces=tuple(
                piece.moved(-displacement)
                for row in np.flatnonzero(self.cover_shard == shard)
                for piece in traverse(
                    storage, self.cover.region(int(row)).shift(origin), self.element_bytes
                ).pieces
            )
        )

    def overlaps(self, queries: Boxes) -> Overlaps:
        """The shards that hold coordinates of each query, and which."""
        query, held = join(queries, self.cover)
        common = intersect(
            Boxes(starts=queries.starts[query], stops=queries.stops[query]),
            Boxes(starts=self.cover.starts[held], stops=self.cover.stops[held]),
        )
        return Overlaps(query=query, shard=self.cover_shard[held], boxes=common)


def distribute(shape: Sequence[int], tensor_format: TensorFormat) -> Distribution:
    """Lay ``shape`` over the owners of a format.

    Raises:
        ValueError: an extent is negative, the tiling does not fit the shape, padding is needed and rejected,
            a shard's extents do not hold whole panels or blocks of the order, or the tensor is too large for
            offsets of 64 bits.
    """
    tiling = tensor_format.layout.tiling
    match tiling:
        case GridTiling():
            return _distribute_grid(tuple(shape), tensor_format, tiling)
        case LinearTiling():
            return _distribute_linear(tuple(shape), tensor_format, tiling)
        case _:
            assert_never(tiling)


def _distribute_grid(shape: tuple[int, ...], tensor_format: TensorFormat, tiling: GridTiling) -> Distribution:
    rank = len(shape)
    order, precision = tensor_format.layout.order, tensor_format.precision
    by_axis = tiling.tilings(rank)
    axes = [
        (cut if cut is not None else AxisTiling(axis=axis, partitions=1)).shards(shape[axis], axis)
        for axis, cut in enumerate(by_axis)
    ]
    _check_storage(shape, (int((axis.physical_ends - axis.starts).sum()) for axis in axes), precision)
    counts = tuple(len(axis.starts) for axis in axes)
    partition = np.indices(counts, dtype=np.int64).reshape(rank, prod(counts))
    columns = np.zeros((3, partition.shape[1], rank), dtype=np.int64)
    for number, axis in enumerate(axes):
        for column, values in enumerate((axis.starts, axis.logical_ends, axis.physical_ends)):
            columns[column, :, number] = values[partition[number]]
    starts, logical_ends, physical_ends = columns
    widths = physical_ends - starts
    first, shard_map = distinct_rows(widths)
    filled = np.flatnonzero((starts < logical_ends).all(axis=1)).astype(np.int64)
    owner_numbers = np.arange(tiling.owner_count, dtype=np.int64)
    partitions = {cut.axis % rank: tiling.axes.index(cut) for cut in by_axis if cut is not None}
    coordinates = tiling.owner_coordinates(owner_numbers)
    shard_of_owner = np.zeros(tiling.owner_count, dtype=np.int64)
    for axis, count in enumerate(counts):
        digit = coordinates[:, partitions[axis]] if axis in partitions else 0
        shard_of_owner = shard_of_owner * count + digit
    return Distribution(
        shape=shape,
        format=tensor_format,
        factors=factors(order, precision, rank),
        index_maps=tuple(index_map(order, precision, tuple(map(int, widths[shard]))) for shard in first),
        shard_map=shard_map,
        origins=starts,
        displacements=np.zeros(len(starts), dtype=np.int64),
        storage_elements=np.prod(widths, axis=1, dtype=np.int64),
        cover=Boxes(starts=starts[filled], stops=logical_ends[filled]),
        cover_shard=filled,
        owners=_owners_of(shard_of_owner, tiling),
        shard_of_owner=shard_of_owner,
    )


def _distribute_linear(
    shape: tuple[int, ...], tensor_format: TensorFormat, tiling: LinearTiling
) -> Distribution:
    rank = len(shape)
    order, precision = tensor_format.layout.order, tensor_format.precision
    lanes = lane_elements(order, precision)
    if tiling.grain % lanes:
        raise ValueError(
            f"a grain of {tiling.grain} elements cuts the panel rows of {lanes} of {type(order).__name__}"
        )
    multiples = axis_multiples(order, precision, rank)
    whole = index_map(
        order,
        precision,
        tuple(round_up(extent, multiple) for extent, multiple in zip(shape, multiples, strict=True)),
    )
    _check_storage(shape, (round_up(whole.size, tiling.grain),), precision)
    bounds = tiling.bounds(whole.size)
    starts: list[tuple[int, ...]] = []
    stops: list[tuple[int, ...]] = []
    shards: list[int] = []
    sequence = LinearForm(base=0, steps=tuple(d.stride for d in whole.digits))
    radices = tuple(d.radix for d in whole.digits)
    for shard in range(tiling.partitions):
        low, high = int(bounds[shard]), min(int(bounds[shard + 1]), whole.size)
        for digits in boxes_within(low=low, high=high, form=sequence, extents=radices):
            start = [0] * rank
            last = [0] * rank
            for digit, (first, stop) in zip(whole.digits, digits, strict=True):
                start[digit.axis] += digit.weight * first
                last[digit.axis] += digit.weight * (stop - 1)
            end = [min(value + 1, extent) for value, extent in zip(last, shape, strict=True)]
            if all(a < b for a, b in zip(start, end, strict=True)):
                starts.append(tuple(start))
                stops.append(tuple(end))
                shards.append(shard)
    shard_of_owner = np.arange(tiling.owner_count, dtype=np.int64) // tiling.replicas
    return Distribution(
        shape=shape,
        format=tensor_format,
        factors=factors(order, precision, rank),
        index_maps=(whole,),
        shard_map=np.zeros(tiling.partitions, dtype=np.int64),
        origins=np.zeros((tiling.partitions, rank), dtype=np.int64),
        displacements=bounds[:-1],
        storage_elements=np.diff(bounds),
        cover=Boxes(
            starts=np.array(starts, dtype=np.int64).reshape(len(shards), rank),
            stops=np.array(stops, dtype=np.int64).reshape(len(shards), rank),
        ),
        cover_shard=np.array(shards, dtype=np.int64),
        owners=_owners_of(shard_of_owner, tiling),
        shard_of_owner=shard_of_owner,
    )


def _check_storage(shape: tuple[int, ...], physical: Iterable[int], precision: Precision) -> None:
    if prod(max(1, extent) for extent in physical) * precision.element_bytes > LARGEST_STORAGE:
        raise ValueError(f"a tensor of shape {list(shape)}, with its padding, is beyond offsets of 64 bits")


def _owners_of(shard_of_owner: npt.NDArray[np.int64], tiling: TensorTiling) -> npt.NDArray[np.int64]:
    owners = np.argsort(shard_of_owner, kind="stable").astype(np.int64)
    return owners.reshape(tiling.shard_count, tiling.replicas)
