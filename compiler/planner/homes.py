"""Homes of inputs: from what a recipe says to a layout, and back (DS-06).

A home that is written down stays the same whatever reads the input, so that all candidates of a search have
one interface to the host, until a recipe says otherwise.
"""

from collections.abc import Mapping
from math import prod
from typing import Final

from compiler.estimate.prices import DATA_BUDGET
from compiler.geometry import views
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import NotRepresentable
from compiler.geometry.order import (
    AmpLeft,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.owners import OwnerMap
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.graph.ir import TensorType
from compiler.planner.bound import GRAIN_BYTES, Home
from compiler.planner.recipe import Cut, Order, StoredOnce

_ORDERS: Final[Mapping[Order, ElementOrder]] = {
    "rows": RowMajor(),
    "left": AmpLeft(),
    "transposed left": AmpTransposedLeft(),
    "weights": AmpRight(),
    "transposed weights": AmpTransposedRight(),
}


def home_of(stored: StoredOnce, type_: TensorType, tile_count: int) -> Home:
    """The layout.

    Args:
        stored: what the recipe says.
        type_: of the input in the graph.
        tile_count: tiles of the build.

    Raises:
        ValueError: the input cannot lie so: it has other elements, axes or precision, there are too few
            tiles, or a tile cannot hold a shard.
    """
    mapping = views.reshape(stored.shape, type_.shape)
    if isinstance(mapping, NotRepresentable):
        raise ValueError(mapping.reason)
    # Before there are tables of so many shards.
    owners = prod(cut.parts for cut in stored.cuts) if stored.cuts is not None else stored.runs or 1
    if owners > tile_count:
        raise ValueError(f"{owners} shards need as many tiles, {tile_count} are there")
    if stored.cuts is not None:
        tiling: GridTiling | LinearTiling = GridTiling(
            axes=tuple(
                AxisTiling(
                    axis=cut.axis,
                    partitions=cut.parts,
                    block_size=cut.block,
                    padding_multiple=cut.block,
                    padding=Padding.ZERO,
                )
                for cut in stored.cuts
            )
        )
    else:
        grain = GRAIN_BYTES // type_.precision.element_bytes
        tiling = LinearTiling(partitions=stored.runs or 1, grain=grain)
    home = Home(
        shape=stored.shape,
        format=TensorFormat(
            precision=type_.precision, layout=TensorLayout(order=_ORDERS[stored.order], tiling=tiling)
        ),
        owners=OwnerMap(tile_count=tile_count),
        mapping=mapping,
    )
    largest = int(home.distribution.storage_bytes.max())
    if largest > DATA_BUDGET:
        raise ValueError(
            f"a shard of {largest} bytes is more than the {DATA_BUDGET} that a tile has for data"
        )
    return home


def stored_once(home: Home, type_: TensorType) -> StoredOnce | None:
    """What a recipe says of a layout; None where it has no words for it."""
    layout = home.format.layout
    order: Order | None = next((name for name, order in _ORDERS.items() if order == layout.order), None)
    if order is None:
        return None
    match layout.tiling:
        case GridTiling(axes=axes):
            cuts = tuple(
                Cut(axis=cut.axis, parts=cut.partitions, block=cut.block_size)
                for cut in axes
                if cut.axis >= 0
            )
            stored = StoredOnce(shape=home.shape, order=order, cuts=cuts)
        case LinearTiling(partitions=partitions):
            stored = StoredOnce(shape=home.shape, order=order, runs=partitions)
    try:
        again = home_of(stored, type_, home.owners.tile_count)
    except ValueError:
        return None
    return stored if again == home else None
