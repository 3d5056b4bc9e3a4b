"""How the axes of a tensor are cut into shards, and which owner holds which shard.

A tiling knows no shape: the same grid can be laid over every layer. ``GridTiling`` cuts some axes, each into
balanced runs of whole blocks; ``LinearTiling`` cuts the storage sequence of the whole tensor. Owners are
numbered from 0; a shard has as many owners as the tiling has replicas. Where owners live is the owner map's
business.

Bounds of shard i of p inside one padding group of E elements (E the group's extent rounded up to
``padding_multiple``), in blocks of b: with short, long = divmod(E / b, p), the shard starts at (i*short +
min(i, long)) * b and is (short + (i < long)) * b wide. Its logical end is clipped to the group, its physical
width rounded up to ``shard_padding_multiple``.
"""

from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

LARGEST_STORAGE: Final = 1 << 62
"""Bytes of a tensor with its padding, replicas not counted: offsets and their sums fit 64 bits."""


class Padding(Enum):
    """What becomes of elements that exist in storage but not in the tensor."""

    REJECT = "reject"
    """There are none: a shape that needs padding is refused."""
    ZERO = "zero"
    """They are stored as zero."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ShardExtent:
    """One shard's range on one axis, in coordinates of the whole tensor.

    Elements from ``logical_end`` to ``physical_end`` are padding: their positions may coincide with
    coordinates of the next shard, whose elements they do not hold.
    """

    axis: int
    start: int
    logical_end: int
    physical_end: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AxisShards:
    """All shards of one axis as columns [partitions]; the meaning of each column is that of ShardExtent."""

    axis: int
    starts: npt.NDArray[np.int64]
    logical_ends: npt.NDArray[np.int64]
    physical_ends: npt.NDArray[np.int64]

    def extent(self, partition: int) -> ShardExtent:
        """Shard ``partition`` as a value."""
        return ShardExtent(
            axis=self.axis,
            start=int(self.starts[partition]),
            logical_end=int(self.logical_ends[partition]),
            physical_end=int(self.physical_ends[partition]),
        )

    @property
    def empty(self) -> npt.NDArray[np.int64]:
        """Partitions that hold no element of the tensor, only padding or nothing."""
        return np.flatnonzero(self.logical_ends <= self.starts).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AxisTiling:
    """How one axis is cut.

    Args:
        axis: as in NumPy: from the start when not negative, else from the end.
        partitions: shards on this axis.
        padding_groups: equal groups (attention heads, say) into which the axis is divided first; each is
            padded on its own and cut into partitions / padding_groups shards.
        block_size: shard boundaries fall on multiples of this within a group.
        padding_multiple: a group's extent is rounded up to this.
        shard_padding_multiple: a shard's physical width is rounded up to this.
        padding: what padding is; REJECT refuses shapes that need any.
        owner_stride: distance in owner numbers between neighbouring shards; None packs the axes.

    Raises:
        ValueError: a number is not positive, or the groups do not divide the partitions.
    """

    axis: int
    partitions: int
    padding_groups: int = 1
    block_size: int = 1
    padding_multiple: int = 1
    shard_padding_multiple: int = 1
    padding: Padding = Padding.REJECT
    owner_stride: int | None = None

    def __post_init__(self) -> None:
        for name in (
            "partitions",
            "padding_groups",
            "block_size",
            "padding_multiple",
            "shard_padding_multiple",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} of axis {self.axis} is {getattr(self, name)}, not positive")
        if self.owner_stride is not None and self.owner_stride < 1:
            raise ValueError(f"owner_stride of axis {self.axis} is {self.owner_stride}, not positive")
        if self.partitions % self.padding_groups:
            raise ValueError(
                f"axis {self.axis}: {self.partitions} partitions do not divide among "
                f"{self.padding_groups} padding groups"
            )

    def shards(self, extent: int, axis: int | None = None) -> AxisShards:
        """The shards of an axis of ``extent`` elements, numbered ``axis`` (self.axis may count from the end).

        Raises:
            ValueError: the extent is negative, groups do not divide it, blocks do not divide the padded
                group, padding is needed and rejected, or the axis is too long for offsets of 64 bits.
        """
        number = self.axis if axis is None else axis
        if extent < 0:
            raise ValueError(f"axis {number} has extent {extent}, not at least 0")
        group, remainder = divmod(extent, self.padding_groups)
        if remainder:
            raise ValueError(
                f"axis {number} of {extent} does not divide into {self.padding_groups} padding groups"
            )
        padded = round_up(group, self.padding_multiple)
        blocks, remainder = divmod(padded, self.block_size)
        if remainder:
            raise ValueError(
                f"axis {number}: {padded} elements, padded to a multiple of {self.padding_multiple}, do not "
                f"divide into blocks of {self.block_size}"
            )
        if padded * self.padding_groups + self.partitions * self.shard_padding_multiple > LARGEST_STORAGE:
            raise ValueError(f"axis {number} of {extent}, with its padding, is beyond offsets of 64 bits")
        per_group = self.partitions // self.padding_groups
        bounds = balanced_bounds(blocks, per_group) * self.block_size
        starts, widths = bounds[:-1], np.diff(bounds)
        group_starts = np.repeat(np.arange(self.padding_groups, dtype=np.int64) * group, per_group)
        starts = group_starts + np.tile(starts, self.padding_groups)
        widths = np.tile(widths, self.padding_groups)
        logical_ends = np.maximum(starts, np.minimum(starts + widths, group_starts + group))
        physical_ends = starts + round_up_all(widths, self.shard_padding_multiple)
        if self.padding is Padding.REJECT and (physical_ends != logical_ends).any():
            raise ValueError(f"axis {number} of {extent} needs padding, which its tiling rejects")
        return AxisShards(axis=number, starts=starts, logical_ends=logical_ends, physical_ends=physical_ends)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GridTiling:
    """A grid of shards: the product of the partitions of some axes, every shard held by ``replicas`` owners.

    The coordinate of an owner on an axis is (owner // stride) % partitions. Packed strides let the replica
    number vary fastest, then the last axis listed. With given strides the digits that no axis uses number the
    replicas.

    Raises:
        ValueError: an axis is cut twice, replicas is not positive, or the strides do not give every shard the
            same number of owners.
    """

    replicas: int = 1
    axes: tuple[AxisTiling, ...] = ()

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ValueError(f"a shard has at least one owner, not {self.replicas}")
        if len({tiling.axis for tiling in self.axes}) != len(self.axes):
            raise ValueError("an axis is cut twice")
        reached = 1
        for stride, partitions in sorted(self._cut_digits()):
            if stride % reached:
                raise ValueError(
                    f"owner stride {stride} does not continue the faster axes, which repeat every {reached}"
                )
            reached = stride * partitions
        if self.owner_count % reached:
            raise ValueError(
                f"owner strides reach past the {self.owner_count} owners (replicas times partitions): "
                f"the slowest axis repeats every {reached}"
            )

    @property
    def shard_count(self) -> int:
        """Shards, empty ones included."""
        return prod(tiling.partitions for tiling in self.axes)

    @property
    def owner_count(self) -> int:
        """Owners: replicas times shards."""
        return self.replicas * self.shard_count

    @property
    def owner_strides(self) -> tuple[int, ...]:
        """Owner stride of each listed axis."""
        strides: list[int] = []
        packed = self.replicas
        for tiling in reversed(self.axes):
            strides.append(packed if tiling.owner_stride is None else tiling.owner_stride)
            packed *= tiling.partitions
        return tuple(reversed(strides))

    def owner_coordinates(self, owners: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Partition numbers [..., listed axes] of ``owners`` [...]."""
        strides = np.array(self.owner_strides, dtype=np.int64)
        partitions = np.array([tiling.partitions for tiling in self.axes], dtype=np.int64)
        return owners[..., None] // strides % partitions

    def tilings(self, rank: int) -> tuple[AxisTiling | None, ...]:
        """The tiling of each axis of a tensor of ``rank``; None where it is not cut.

        Raises:
            ValueError: an axis is outside the rank or is cut twice, from both ends.
        """
        by_axis: list[AxisTiling | None] = [None] * rank
        for tiling in self.axes:
            if not -rank <= tiling.axis < rank:
                raise ValueError(f"axis {tiling.axis} does not exist in rank {rank}")
            if by_axis[tiling.axis] is not None:
                raise ValueError(f"axis {tiling.axis % rank} of rank {rank} is cut twice")
            by_axis[tiling.axis] = tiling
        return tuple(by_axis)

    def _cut_digits(self) -> list[tuple[int, int]]:
        return [
            (stride, tiling.partitions)
            for stride, tiling in zip(self.owner_strides, self.axes, strict=True)
            if tiling.partitions > 1
        ]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinearTiling:
    """The storage sequence of the whole tensor, in its element order, cut into balanced runs of whole grains.

    For a row-major tensor this is the flattened tensor. Only the last shard that holds elements is padded, up
    to a whole grain. Replicas vary fastest over the owners.

    Args:
        partitions: shards.
        grain: elements that stay together (4 F16 elements = 8 bytes, or whole panel rows).
        replicas: owners of each shard.

    Raises:
        ValueError: a number is not positive.
    """

    partitions: int
    grain: int
    replicas: int = 1

    def __post_init__(self) -> None:
        if min(self.partitions, self.grain, self.replicas) < 1:
            raise ValueError(f"partitions, grain and replicas are positive, not {self}")

    @property
    def shard_count(self) -> int:
        """Shards, empty ones included."""
        return self.partitions

    @property
    def owner_count(self) -> int:
        """Owners: replicas times shards."""
        return self.replicas * self.partitions

    def bounds(self, size: int) -> npt.NDArray[np.int64]:
        """Bounds [partitions + 1] in a sequence of ``size`` elements; the last is padded to a whole grain."""
        return balanced_bounds(-(-size // self.grain), self.partitions) * self.grain


TensorTiling: TypeAlias = GridTiling | LinearTiling


def balanced_bounds(count: int, parts: int) -> npt.NDArray[np.int64]:
    """Bounds [parts + 1] of ``count`` things in ``parts`` runs, the first ``count % parts`` one longer."""
    short, long = divmod(count, parts)
    part = np.arange(parts + 1, dtype=np.int64)
    return part * short + np.minimum(part, long)


def round_up(value: int, multiple: int) -> int:
    """The next multiple of ``multiple`` that is not below ``value``."""
    return -(-value // multiple) * multiple


def round_up_all(values: npt.NDArray[np.int64], multiple: int) -> npt.NDArray[np.int64]:
    """:func:`round_up` of each value."""
    return -(-values // multiple) * multiple
