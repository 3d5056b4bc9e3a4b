"""What a kernel family is told about one operand of one call: its geometry, never its identity or address.

Three facts stay apart: the storage that defines the strides (``backing``), the coordinates requested of it
(``region``) and how many of those hold elements of the tensor (``logical``). A slice borrowed from a larger
shard keeps the larger shard's strides; an operand at another origin is another operand. Equal operands
compare and hash equal, so that bindings are interned over them.
"""

from dataclasses import dataclass
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows
from compiler.geometry.distribution import Distribution
from compiler.geometry.layout import MemoryClass
from compiler.geometry.order import ElementOrder, IndexMap, RowMajor, index_map
from compiler.geometry.precision import Precision
from compiler.geometry.region import Region
from compiler.geometry.tiling import GridTiling, LinearTiling
from compiler.geometry.traversal import Traversal, traverse

ORIGIN_MODULUS: Final = 32
"""Bytes: the strictest alignment that a kernel asks of an operand."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOperand:
    """A view of one tile's storage, without address.

    Args:
        precision: how elements are stored.
        order: element order of the backing storage.
        backing: physical extents of the storage that defines strides.
        region: coordinates of it that the call may touch, padding included.
        logical: per axis, how many coordinates of the region, from its start, hold elements; the rest is
            padding.
        memory_class: the kind of SRAM the storage needs.
        origin: address of the region's lowest byte modulo ORIGIN_MODULUS.

    Raises:
        ValueError: the order does not fit the backing extents, the region leaves them, more is logical than
            there is, or the origin is outside 0 .. 31 or splits an element.
    """

    precision: Precision
    order: ElementOrder
    backing: tuple[int, ...]
    region: Region
    logical: tuple[int, ...]
    memory_class: MemoryClass = MemoryClass.STANDARD
    origin: int = 0

    def __post_init__(self) -> None:
        index_map(self.order, self.precision, self.backing)
        if self.region.rank != len(self.backing) or not Region.of_extents(self.backing).contains(self.region):
            raise ValueError(f"region {self.region.bounds} leaves the backing storage of {self.backing}")
        if len(self.logical) != len(self.backing) or not all(
            0 <= logical <= physical for logical, physical in zip(self.logical, self.physical, strict=True)
        ):
            raise ValueError(f"logical extents {self.logical} exceed the physical ones, {self.physical}")
        if not 0 <= self.origin < ORIGIN_MODULUS or self.origin % self.precision.element_bytes:
            raise ValueError(
                f"origin {self.origin} is not an element's place in 0 .. {ORIGIN_MODULUS - 1} "
                f"for {type(self.precision).__name__}"
            )

    @property
    def physical(self) -> tuple[int, ...]:
        """Extents of the region, padding included."""
        return self.region.extents

    @property
    def storage(self) -> IndexMap:
        """The index map of the backing storage."""
        return index_map(self.order, self.precision, self.backing)

    @property
    def strides(self) -> tuple[int | None, ...]:
        """Per axis, elements from one coordinate of the region to the next; None where it crosses blocks.

        An axis along which the region has one coordinate has stride 0.
        """
        storage = self.storage
        strides: list[int | None] = []
        for axis, (start, stop) in enumerate(self.region.bounds):
            if stop - start <= 1:
                strides.append(0)
                continue
            *blocks, (_, stride) = storage.axis_terms(axis)
            within = all(start // weight == (stop - 1) // weight for weight, _ in blocks)
            strides.append(stride if within else None)
        return tuple(strides)

    @property
    def logical_region(self) -> Region:
        """The coordinates of the backing storage that hold elements."""
        return Region(
            bounds=tuple(
                (start, start + logical)
                for start, logical in zip(self.region.starts, self.logical, strict=True)
            )
        )

    @property
    def is_padded(self) -> bool:
        """Whether the region holds anything but elements."""
        return self.logical != self.physical

    def traversal(self) -> Traversal:
        """Bytes of the whole region, relative to the backing storage."""
        return traverse(self.storage, self.region, self.precision.element_bytes)

    def logical_traversal(self) -> Traversal:
        """Bytes of the elements alone."""
        return traverse(self.storage, self.logical_region, self.precision.element_bytes)

    def padding_traversal(self) -> Traversal:
        """Bytes of the region that hold no element."""
        return Traversal(
            pieces=tuple(
                piece
                for hole in self.region.subtract(self.logical_region)
                for piece in traverse(self.storage, hole, self.precision.element_bytes).pieces
            )
        )


def shard_operands(
    distribution: Distribution,
) -> tuple[tuple[LocalOperand, ...], npt.NDArray[np.int64]]:
    """Whole shards as operands at origin 0: the distinct ones, and which of them each shard is [shards].

    A shard of a row-major linear tiling is a vector.

    Raises:
        ValueError: a linear tiling in another order than row-major; its shards are storage, not matrices.
    """
    layout = distribution.format.layout
    shards = distribution.shard_count
    match layout.tiling:
        case GridTiling():
            rank = len(distribution.shape)
            physical = np.array([m.extents for m in distribution.index_maps], dtype=np.int64)
            physical = physical.reshape(len(distribution.index_maps), rank)[distribution.shard_map]
            logical = np.zeros((shards, rank), dtype=np.int64)
            logical[distribution.cover_shard] = distribution.cover.stops - distribution.cover.starts
        case LinearTiling():
            if layout.order != RowMajor():
                raise ValueError(
                    f"a linear shard in {type(layout.order).__name__} is a run of storage, not an operand"
                )
            physical = distribution.storage_elements[:, None]
            logical = distribution.logical_elements[:, None]
        case _:
            assert_never(layout.tiling)
    rank = physical.shape[1]
    first, operand_of_shard = distinct_rows(np.concatenate([physical, logical], axis=1))
    operands = tuple(
        LocalOperand(
            precision=distribution.format.precision,
            order=layout.order,
            backing=tuple(map(int, physical[shard])),
            region=Region.of_extents(tuple(map(int, physical[shard]))),
            logical=tuple(map(int, logical[shard])),
            memory_class=layout.memory_class,
        )
        for shard in first
    )
    return operands, operand_of_shard
