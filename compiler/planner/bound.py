"""Values of the graph in terms of values of the whole device.

A graph value is a distributed value read through a coordinate mapping. A view of the graph, whose elements
are somewhere already, moves nothing: its mapping composes into that of the copy by which a consumer brings
the elements to where it works (ML-20, ML-21). Where the composition of two views is no mapping, the first of
them is carried out, which is always valid (ML-23).
"""

from dataclasses import dataclass
from math import prod
from typing import Final, final

from compiler.geometry import views
from compiler.geometry.compose import compose
from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import CoordinateMapping, NotRepresentable, Shape
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16, Precision
from compiler.geometry.tiling import LinearTiling
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import MidValueId
from compiler.planner.layouts import row_format
from compiler.target.units import WORD_BYTES

GRAIN_BYTES: Final = 8
"""Bytes of a flattened tensor that stay together: what every kernel can move at a time. Policy."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BoundValue:
    """A graph value: which distributed value holds it, and where.

    Args:
        value: of the block that is being built.
        mapping: from coordinates of the graph value to those of the distributed one.
    """

    value: MidValueId
    mapping: CoordinateMapping

    @property
    def shape(self) -> Shape:
        """Of the graph value."""
        return self.mapping.destination_shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """How an argument of the program is best declared for its first consumer.

    Args:
        shape: of the distributed value.
        format: precision and layout.
        owners: which tile holds which owner.
        mapping: from coordinates of the graph value to those of the distributed one.
    """

    shape: Shape
    format: TensorFormat
    owners: OwnerMap
    mapping: CoordinateMapping

    @property
    def distribution(self) -> Distribution:
        """Its shards.

        Raises:
            ValueError: the shape does not fit the format.
        """
        return distribute(self.shape, self.format)

    @property
    def is_in_sequence(self) -> bool:
        """Whether both have their elements in the same row-major sequence, as the host stores them."""
        return views.reshape(self.shape, self.mapping.destination_shape) == self.mapping

    @property
    def is_for_host(self) -> bool:
        """Whether the host can write it: elements in sequence, and shards of whole words, which it moves."""
        return self.is_in_sequence and is_in_words(self.shape, self.format)


def is_in_words(shape: Shape, tensor_format: TensorFormat) -> bool:
    """Whether every shard is whole words."""
    return not (distribute(shape, tensor_format).storage_bytes % WORD_BYTES).any()


def read_through(
    builder: BlockBuilder, bound: BoundValue, mapping: CoordinateMapping, *, tile_count: int, node: str
) -> BoundValue:
    """A graph value seen through one more mapping, with nothing moved where that is possible.

    Args:
        builder: appends the copy of a view that cannot be composed.
        bound: what is read.
        mapping: from other coordinates to those of the graph value.
        tile_count: tiles of the build.
        node: the graph node that this is for.
    """
    composed = compose(mapping, bound.mapping)
    if isinstance(composed, NotRepresentable):
        precision = builder.value(bound.value).format.precision
        carried_out = builder.copy(
            bound.value,
            tensor_format=flat_format(bound.shape, precision, tile_count),
            owners=OwnerMap(tile_count=tile_count),
            mapping=bound.mapping,
            node=node,
        )
        return BoundValue(value=carried_out, mapping=mapping)
    return BoundValue(value=bound.value, mapping=composed)


def flat_format(shape: Shape, precision: Precision, tile_count: int) -> TensorFormat:
    """A row-major tensor cut into equal runs over all tiles, or as many as get one.

    Where the last run would end inside a grain, rows over tiles instead: rows can be padded, runs cannot.
    """
    grain = GRAIN_BYTES // precision.element_bytes
    if prod(shape) % (GRAIN_BYTES // min(precision.element_bytes, F16.element_bytes)):
        return row_format(shape, precision, tile_count)
    partitions = min(tile_count, -(-prod(shape) // grain))
    return TensorFormat(
        precision=precision,
        layout=TensorLayout(order=RowMajor(), tiling=LinearTiling(partitions=partitions, grain=grain)),
    )
