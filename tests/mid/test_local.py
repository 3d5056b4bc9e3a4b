"""Local calls of computations: what each owner reads, owner by owner, and how much padding goes with it."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings

from compiler.geometry.distribution import Distribution
from compiler.geometry.layout import TensorFormat
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16
from compiler.geometry.product import matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import (
    Broadcast,
    Follow,
    Identity,
    ProductOperand,
    Relation,
    SelectedWindow,
    Side,
    broadcast_relation,
)
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.kernels.contract import Alias, Binding, Operand, Request, Result
from compiler.kernels.pointwise.binding import Operation
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import Block, Compute, MidProgram, StorageAlias, Value
from compiler.mid.local import LocalCalls, bind_all, local_calls
from compiler.mid.work import Cast, Elementwise, Product, Sum, Work, needed_region
from tests.geometry.interpreter import coordinates_of, shard_storage
from tests.mid.products import cut, grid_format, parallel_product, reduced, replicated
from tests.mid.strategies import programs

Coordinates = set[tuple[int, ...]]


def one_call(
    work: Work,
    operands: tuple[tuple[tuple[int, ...], TensorFormat], ...],
    relations: tuple[Relation, ...],
    result: tuple[tuple[int, ...], TensorFormat],
    *,
    tiles: int = 4,
    aliases: tuple[StorageAlias, ...] = (),
) -> LocalCalls:
    """The calls of a computation on arguments."""
    owners = OwnerMap(tile_count=tiles)
    builder = BlockBuilder()
    arguments = [
        builder.argument(Value(name=f"a{number}", shape=shape, format=tensor_format, owners=owners))
        for number, (shape, tensor_format) in enumerate(operands)
    ]
    builder.compute(
        work,
        arguments,
        relations,
        shape=result[0],
        tensor_format=result[1],
        owners=owners,
        aliases=aliases,
    )
    block = builder.finish(())
    (compute,) = block.operations
    assert isinstance(compute, Compute)
    return local_calls(block, compute)


def held(distribution: Distribution, shard: int, view: LocalOperand, *, logical: bool) -> Coordinates:
    """The tensor coordinates of a view's elements that its shard holds; a vector is the storage sequence."""
    region = view.logical_region if logical else view.region
    layout = distribution.format.layout
    stored = shard_storage(distribution.shape, distribution.format)[shard]
    if isinstance(layout.tiling, LinearTiling):
        (start, stop), *none = region.bounds
        assert not none
        return {coordinate for coordinate, place in stored.items() if start <= place < stop}
    dropped = len(distribution.shape) - region.rank
    origin = distribution.origins[shard].tolist()
    found: Coordinates = set()
    for local in coordinates_of(region.extents):
        place = [0] * dropped + [start + at for start, at in zip(region.starts, local, strict=True)]
        coordinate = tuple(base + at for base, at in zip(origin, place, strict=True))
        if coordinate in stored:
            found.add(coordinate)
    return found


def shard_on(value: Value, tile: int) -> int:
    """The shard that a tile holds of a value."""
    distribution = value.distribution
    (owner,) = (owner for owner in range(distribution.owner_count) if int(value.owners.tile(owner)) == tile)
    return int(distribution.shard_of_owner[owner])


def check_calls(block: Block, compute: Compute) -> None:
    """Every owner computes its shard, once, from exactly what the relations say."""
    calls = local_calls(block, compute)
    result = block.value(compute.results[0])
    done: dict[int, list[Coordinates]] = {}
    for owner, number in zip(map(int, calls.owner), map(int, calls.request), strict=True):
        request = calls.requests[number]
        tile = result.owners.tile(owner)
        assert int(calls.tiles[owner]) == tile
        shard = int(result.distribution.shard_of_owner[owner])
        made = held(result.distribution, shard, request.operands[0], logical=True)
        done.setdefault(owner, []).append(made)
        if isinstance(compute.work, Sum):
            continue
        for operand, relation, view in zip(
            compute.operands, compute.relations, request.operands[1:], strict=False
        ):
            value = block.value(operand)
            there = shard_on(value, tile)
            needed: Coordinates = set()
            for coordinate in made:
                one = Region(bounds=tuple((at, at + 1) for at in coordinate))
                region = needed_region(compute.work, relation, value.shape, one)
                needed |= {
                    tuple(start + at for start, at in zip(region.starts, local, strict=True))
                    for local in coordinates_of(region.extents)
                }
            assert held(value.distribution, there, view, logical=True) == needed
            # Padding is no element that the shard holds.
            assert held(value.distribution, there, view, logical=False) == needed
    for shard, stored in enumerate(shard_storage(result.shape, result.format)):
        for owner in result.distribution.owners[shard].tolist():
            pieces = done.get(owner, [])
            if isinstance(compute.work, Sum):
                pieces = pieces[:1]
            assert sum(map(len, pieces)) == len(stored)
            assert set().union(*pieces) == set(stored)


@settings(max_examples=settings().max_examples // 2)
@given(programs(has_repeats=False))
def test_each_owner_reads_what_its_shard_needs(made: MidProgram) -> None:
    """Owner by owner, coordinate by coordinate (OI-03, OI-05)."""
    for operation in made.block.operations:
        if isinstance(operation, Compute):
            check_calls(made.block, operation)


def test_padding_follows_that_of_the_result_in_whole_panels() -> None:
    """Equal layouts are walked whole; an operand without padding has none to walk (OI-05)."""
    shape = (5, 20)
    panels = grid_format(AmpLeft(), (cut(0, 4), cut(1, 1, block=16)))
    plain = grid_format(RowMajor(), (cut(0, 4),))
    calls = one_call(
        Elementwise(operation=Operation.GELU), ((shape, panels),), (Identity(rank=2),), (shape, panels)
    )
    assert [request.operands[0].physical for request in calls.requests] == [(1, 32), (2, 32)]
    assert all(request.operands[0] == request.operands[1] for request in calls.requests)
    assert {request.operands[1].logical for request in calls.requests} == {(1, 20), (2, 20)}
    calls = one_call(
        Elementwise(operation=Operation.GELU), ((shape, panels),), (Identity(rank=2),), (shape, plain)
    )
    assert {request.operands[1].physical for request in calls.requests} == {(1, 32), (2, 32)}
    assert {request.operands[0].physical for request in calls.requests} == {(1, 20), (2, 20)}


def test_a_bias_is_the_slice_that_the_shard_has() -> None:
    """By (b,r,c)->(0,r,c), and of a whole bias on each tile (OI-02)."""
    result, bias = (3, 4, 8), (1, 4, 8)
    tensor_format = grid_format(RowMajor(), (cut(1, 2), cut(2, 2)))
    calls = one_call(
        Elementwise(operation=Operation.ADD),
        ((result, tensor_format), (bias, replicated(4))),
        (Identity(rank=3), broadcast_relation(bias, result)),
        (result, tensor_format),
    )
    assert calls.request.tolist() == [0, 1, 2, 3]
    assert [request.operands[2].region.bounds for request in calls.requests] == [
        ((0, 1), (2 * row, 2 * row + 2), (4 * column, 4 * column + 4))
        for row in range(2)
        for column in range(2)
    ]
    assert all(request.operands[2].backing == bias for request in calls.requests)
    assert all(isinstance(request.relations[2], Broadcast) for request in calls.requests)
    # Bytes from where storage is aligned to the first that is read.
    assert [request.operands[2].origin for request in calls.requests] == [0, 8, 0, 8]


def test_a_repeated_axis_has_one_coordinate_whatever_its_padding() -> None:
    """Singleton broadcasts refer to one coordinate (OI-05)."""
    wide = TensorFormat(
        precision=F16(),
        layout=grid_format(RowMajor()).layout,
    )
    padded = AxisTiling(axis=0, partitions=1, padding_multiple=4, padding=Padding.ZERO)
    tall = grid_format(RowMajor(), (padded,))
    calls = one_call(
        Elementwise(operation=Operation.ADD),
        (((4, 8), wide), ((1, 8), tall)),
        (Identity(rank=2), broadcast_relation((1, 8), (4, 8))),
        ((4, 8), wide),
        tiles=1,
    )
    ((_, _, row),) = (request.operands for request in calls.requests)
    assert (row.backing, row.physical, row.logical) == ((4, 8), (1, 8), (1, 8))


@pytest.mark.parametrize(("precision", "panels"), [(F16(), 48), (F8(), 64)])
def test_the_last_panel_of_a_contraction_is_completed(precision: F16 | F8, panels: int) -> None:
    """Whole panels of K, and not more of what is padded; also of a part that ends inside one."""
    shapes = ((4, 40), (40, 16))
    axes = matrix_product(*shapes)
    padding = AxisTiling(axis=1, partitions=1, padding_multiple=96, padding=Padding.ZERO)
    left = grid_format(AmpLeft(), (padding,), precision=precision)
    right = grid_format(
        AmpRight(),
        (AxisTiling(axis=0, partitions=1, padding_multiple=96, padding=Padding.ZERO), cut(1, 1, block=16)),
        precision=precision,
    )
    sides = (ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT))
    result = grid_format(AmpLeft(), is_interleaved=True)
    operands = ((shapes[0], left), (shapes[1], right))
    (request,) = one_call(Product(axes=axes), operands, sides, ((4, 16), result), tiles=1).requests
    assert (request.operands[1].physical, request.operands[1].logical) == ((4, panels), (4, 40))
    assert (request.operands[2].physical, request.operands[2].logical) == ((panels, 16), (40, 16))
    parted = Product(axes=axes, parts=((0, 32), (32, 40)))
    first = grid_format(AmpLeft(), (cut(0, 2),), is_interleaved=True)
    everywhere = tuple(
        (shape, grid_format(each.layout.order, _cuts(each), replicas=2, precision=precision))
        for shape, each in operands
    )
    calls = one_call(parted, everywhere, sides, ((2, 4, 16), first), tiles=2)
    assert [request.operands[1].region.bounds[1] for request in calls.requests] == [
        (0, 32),
        (32, 32 + precision.micro),
    ]
    assert [request.operands[0].backing for request in calls.requests] == [(4, 16), (4, 16)]


def _cuts(tensor_format: TensorFormat) -> tuple[AxisTiling, ...]:
    tiling = tensor_format.layout.tiling
    assert isinstance(tiling, GridTiling)
    return tiling.axes


def test_a_window_is_read_where_it_is() -> None:
    """Coordinates of the shard, not of the window (OI-04)."""
    relation = SelectedWindow(result_rank=1, axes=(Follow(axis=0, start=16),))
    calls = one_call(
        Cast(),
        (((64,), replicated(2)),),
        (relation,),
        ((32,), grid_format(RowMajor(), (cut(0, 2),), precision=F8())),
        tiles=2,
    )
    assert [request.operands[1].region.bounds for request in calls.requests] == [((16, 32),), ((32, 48),)]
    assert all(
        request.relations[1] == SelectedWindow(result_rank=1, axes=(Follow(axis=0),))
        for request in calls.requests
    )


def test_storage_that_is_taken_is_asked_for() -> None:
    """With the place of the result in it, and its alignment."""
    plain = grid_format(RowMajor())
    calls = one_call(
        Cast(),
        (((12,), plain),),
        (Identity(rank=1),),
        ((12,), grid_format(RowMajor(), precision=F8())),
        tiles=1,
        aliases=(StorageAlias(result=0, operand=0, displacement=8),),
    )
    (request,) = calls.requests
    assert request.aliases == (Alias(result=Result(0), operand=Operand(0), displacement=8),)
    assert request.operands[0].origin == 8


def test_partials_are_brought_in_batches() -> None:
    """The first call starts from the own partial or from what was brought, the others from the result."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=6)
    x = builder.argument(Value(name="x", shape=(4, 96), format=grid_format(RowMajor()), owners=owners))
    w = builder.argument(Value(name="w", shape=(96, 16), format=grid_format(RowMajor()), owners=owners))
    partials = parallel_product(builder, x, w, owners=owners, rows=1, columns=1, parts=6, node="p")
    scattered = grid_format(AmpLeft(), (cut(0, 4),))
    for batch, counts in ((None, [5]), (2, [2, 2, 1]), (5, [5]), (9, [5])):
        reduced(builder, partials, tensor_format=scattered, owners=owners, batch=batch, node=f"s{batch}")
        block = builder.finish(())
        compute = block.operations[-1]
        assert isinstance(compute, Compute)
        calls = local_calls(block, compute)
        assert calls.own_partial is not None
        assert calls.is_in_place is not None
        assert calls.own_partial.tolist() == [0, 1, 2, 3]
        assert calls.is_in_place.all()
        assert calls.owner.tolist() == [owner for owner in range(4) for _ in counts]
        for owner in range(4):
            requests = [calls.requests[number] for number in map(int, calls.request[calls.owner == owner])]
            assert [_stacked(request) for request in requests] == counts
            assert [bool(request.aliases) for request in requests] == [False] + [True] * (len(counts) - 1)
            assert requests[0].operands[1].region.bounds == ((owner, owner + 1), (0, 16))
        assert all(isinstance(binding, Binding) for binding in bind_all(calls))


def _stacked(request: Request) -> int:
    assert isinstance(request.parameters, ReduceParameters)
    return request.parameters.partials


def test_owners_without_elements_make_no_calls() -> None:
    """They hold nothing, or padding alone."""
    tensor_format = grid_format(RowMajor(), (AxisTiling(axis=0, partitions=4, padding=Padding.ZERO),))
    calls = one_call(
        Elementwise(operation=Operation.GELU),
        (((3,), tensor_format),),
        (Identity(rank=1),),
        ((3,), tensor_format),
    )
    assert calls.owner.tolist() == [0, 1, 2]
    assert calls.tiles.tolist() == [0, 1, 2, 3]


def test_a_product_of_a_whole_device_has_few_distinct_calls() -> None:
    """729 x 1152 x 4304 on 2 x 92 x 8 tiles: rows of two lengths, columns of two widths, one length of K."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=1472)
    x = builder.argument(
        Value(name="x", shape=(729, 1152), format=grid_format(RowMajor(), (cut(0, 729),)), owners=owners)
    )
    w = builder.argument(
        Value(name="w", shape=(1152, 4304), format=grid_format(RowMajor(), (cut(0, 1152),)), owners=owners)
    )
    parallel_product(builder, x, w, owners=owners, rows=2, columns=92, parts=8, node="up")
    block = builder.finish(())
    compute = block.operations[-1]
    assert isinstance(compute, Compute)
    calls = local_calls(block, compute)
    bindings = [binding for binding in bind_all(calls) if isinstance(binding, Binding)]
    assert len(bindings) == len(calls.requests) == 4
    assert len(calls.owner) == 1472
    flops: npt.NDArray[np.int64] = np.array([binding.work.flops for binding in bindings], dtype=np.int64)
    assert int(flops[calls.request].sum()) == 2 * math.prod((729, 1152, 4304))
