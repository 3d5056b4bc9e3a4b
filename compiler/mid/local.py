"""From a distributed computation to what its tiles call: the one place where this is worked out.

Costs, estimates and expansion all ask here, so that what is priced is what is built. Each owner of the result
reads, on its own tile, what its shard of the result needs: the recorded relation restricted to the shard. An
operand of a call is a view within the shard that the tile holds:

==========  ==================================================================================
backing     physical extents of the shard
logical     the elements that are needed, exactly
region      those, and the padding behind them that kernels walk over
==========  ==================================================================================

**Padding.** Kernels work on whole panels. Behind the last element of an operand's axis there is padding, and
the region takes in as much of it as

* the result has behind its own last element on the axis that this one follows, in whole panels of the
  operand's order (elements of equal layouts are walked panel by panel);
* completes a panel of K, where the axis is the only contraction axis of a product;
* nothing, on any other axis: a repeated axis has one coordinate.

Where elements of the tensor follow in the shard, the region ends with what is needed: these are no padding,
and a family that needs whole panels refuses.

**Partials.** The partials axis of products with parts is the tiles' business: a call makes one partial, and
its result has no such axis.

**Batches.** A call multiplies one matrix of a batch; owners of several call once for each, ascending.

**Sums.** The kernel folds a stack of partials, each stored like the result, onto a seed: the partial that the
owner's tile holds, if it holds all that is summed, else partial 0. Where the tile's partial is stored like
the result, it is the seed where it lies. Elsewhere the seed is brought into the result, and the sum is in
place. Layouts decide what is brought, never the order of the sum. A sum in batches makes one call for each
batch, the second and later ones in place.

Equal calls are one request. Cost: columns over owners, and Python for distinct requests alone.
"""

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows, ranges
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import ORIGIN_MODULUS, LocalOperand
from compiler.geometry.order import RowMajor, axis_multiples
from compiler.geometry.precision import F16
from compiler.geometry.region import Region
from compiler.geometry.relation import (
    Follow,
    Identity,
    ProductOperand,
    Relation,
    Side,
    Span,
    localize,
    operand_axes,
)
from compiler.geometry.tiling import round_up_all
from compiler.kernels import registry
from compiler.kernels.cast.binding import CastParameters
from compiler.kernels.contract import Alias, Binding, Operand, Parameters, Refusal, Request, Result
from compiler.kernels.gemm.binding import GemmParameters
from compiler.kernels.packed import pack
from compiler.kernels.pointwise.binding import PointwiseParameters
from compiler.kernels.reduce.binding import ALIGNMENT, ReduceParameters
from compiler.mid.ir import Block, Compute, Value
from compiler.mid.shards import NO_PARTIAL, ShardBoxes, is_flat, own_partials, shard_boxes, shards_on
from compiler.mid.work import Cast, Elementwise, Product, Sum


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalCalls:
    """The calls of a computation. Owners whose shard holds no element make none.

    Args:
        requests: the distinct ones.
        owner: [calls] owner of result 0 on whose tile the call is made, ascending; calls of one owner in the
            order in which they are made.
        request: [calls] which request.
        tiles: [owners] the tiles of all owners of result 0.
        own_partial: [owners] for a sum, the partial that the owner's tile holds and that the sum begins with,
            or NO_PARTIAL; None for other work.
        is_in_place: [owners] for a sum, whether that partial is the seed where it lies; None for other work.
    """

    requests: tuple[Request, ...]
    owner: npt.NDArray[np.int64]
    request: npt.NDArray[np.int64]
    tiles: npt.NDArray[np.int32]
    own_partial: npt.NDArray[np.int64] | None = None
    is_in_place: npt.NDArray[np.bool_] | None = None


def local_calls(block: Block, compute: Compute) -> LocalCalls:
    """The calls of one computation of a well-formed block.

    Raises:
        ValueError: shards are not boxes, or a tile does not hold what its call reads; ``verify`` refuses such
            programs.
    """
    work = compute.work
    match work:
        case Sum():
            return _sum_calls(block, compute, work)
        case Product() | Elementwise() | Cast():
            return _plain_calls(block, compute)
        case _:
            assert_never(work)


def bind_all(calls: LocalCalls) -> tuple[Binding | Refusal, ...]:
    """What the families make of each request."""
    return tuple(
        registry.bind(
            request.parameters.family,
            request.parameters,
            request.operands,
            request.relations,
            request.aliases,
        )
        for request in calls.requests
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Views:
    """Views of one value as columns, in coordinates of the backing storage.

    Args:
        value: what is viewed.
        backing: [rows, rank].
        starts: [rows, rank] of the region.
        stops: [rows, rank] of the region.
        logical: [rows, rank].
    """

    value: Value
    backing: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    logical: npt.NDArray[np.int64]

    @property
    def columns(self) -> npt.NDArray[np.int64]:
        """All of it, [rows, 4 * rank]."""
        return np.concatenate([self.backing, self.starts, self.stops, self.logical], axis=1)

    def operand(self, row: int, displacement: int = 0) -> LocalOperand:
        """One row as a value, its backing storage ``displacement`` bytes behind where storage is aligned."""
        layout = self.value.format.layout
        view = LocalOperand(
            precision=self.value.format.precision,
            order=layout.order,
            backing=_extents(self.backing[row]),
            region=Region(
                bounds=tuple(zip(_extents(self.starts[row]), _extents(self.stops[row]), strict=True))
            ),
            logical=_extents(self.logical[row]),
            memory_class=layout.memory_class,
        )
        origin = (_first_byte(view) + displacement) % ORIGIN_MODULUS
        return dataclasses.replace(view, origin=origin) if origin else view


@functools.lru_cache(maxsize=1 << 14)
def _first_byte(view: LocalOperand) -> int:
    """Where its region begins in the backing storage. Candidates share most of their views."""
    return view.traversal().extent[0] if any(view.region.starts) else 0


def _extents(row: npt.NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(map(int, row))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Calls before they are made distinct.

    Args:
        owner: [rows] owner of the result.
        boxes: of the result that each makes, in coordinates of the tensor, partials axis left out.
        partial: [rows] the partial that each makes; zeros without parts.
        result: the views of the result.
    """

    owner: npt.NDArray[np.int64]
    boxes: ShardBoxes
    partial: npt.NDArray[np.int64]
    result: _Views


def _result_rows(value: Value, *, flat: bool, has_partials: bool, batch: Sequence[int]) -> _Rows:
    """One row for each owner with elements and each coordinate of its shard along the ``batch`` axes."""
    shard = value.distribution.shard_of_owner
    every = shard_boxes(value, flat=flat)
    owner = np.flatnonzero(every.is_filled[shard]).astype(np.int64)
    shards = every.of(shard[owner])
    partial = np.zeros(len(owner), dtype=np.int64)
    if has_partials:
        if (shards.physical_stops[:, 0] - shards.starts[:, 0] != 1).any():
            raise ValueError(f"a tile makes several partials of {value.name}")
        partial = shards.starts[:, 0]
        shards = ShardBoxes(
            starts=shards.starts[:, 1:],
            stops=shards.stops[:, 1:],
            physical_stops=shards.physical_stops[:, 1:],
        )
    counts = np.prod(shards.stops[:, list(batch)] - shards.starts[:, list(batch)], axis=1, dtype=np.int64)
    row = np.repeat(np.arange(len(owner), dtype=np.int64), counts)
    number = ranges(counts)
    held = shards.of(row)
    starts, stops, physical_stops = held.starts.copy(), held.stops.copy(), held.physical_stops.copy()
    for axis in reversed(batch):
        extent = held.stops[:, axis] - held.starts[:, axis]
        starts[:, axis] += number % extent
        stops[:, axis] = physical_stops[:, axis] = starts[:, axis] + 1
        number = number // extent
    return _Rows(
        owner=owner[row],
        boxes=ShardBoxes(starts=starts, stops=stops, physical_stops=physical_stops),
        partial=partial[row],
        result=_Views(
            value,
            backing=held.physical_stops - held.starts,
            starts=starts - held.starts,
            stops=physical_stops - held.starts,
            logical=stops - starts,
        ),
    )


def _operand_views(
    value: Value,
    held: ShardBoxes,
    rows: _Rows,
    relation: Relation,
    parts: tuple[tuple[int, int], ...],
) -> _Views:
    """What each row reads of an operand, given the boxes that the rows' tiles hold of it."""
    shape = value.shape if held.rank == len(value.shape) else (prod(value.shape),)
    readings = operand_axes(relation, shape)
    precision = value.format.precision
    multiples = axis_multiples(value.format.layout.order, precision, held.rank)
    summed = _contraction(relation)
    starts, stops, ends = (np.empty_like(held.starts) for _ in range(3))
    for axis, reading in enumerate(readings):
        first, last, end = held.starts[:, axis], held.stops[:, axis], held.physical_stops[:, axis]
        match reading:
            case Follow(axis=followed, start=start):
                starts[:, axis] = rows.boxes.starts[:, followed] + start
                stops[:, axis] = rows.boxes.stops[:, followed] + start
                reach = rows.boxes.physical_stops[:, followed] + start - first
                reach = round_up_all(reach, multiples[axis])
            case Span(start=start, stop=stop):
                starts[:, axis], stops[:, axis] = start, stop
                if axis in summed and parts:
                    bounds = np.array(parts, dtype=np.int64)[rows.partial]
                    starts[:, axis], stops[:, axis] = bounds[:, 0], bounds[:, 1]
                reach = stops[:, axis] - first
                if summed == (axis,):
                    reach = (
                        starts[:, axis]
                        - first
                        + round_up_all(stops[:, axis] - starts[:, axis], precision.micro)
                    )
            case _:
                assert_never(reading)
        if (starts[:, axis] < first).any() or (stops[:, axis] > last).any():
            raise ValueError(f"a tile does not hold what it needs of {value.name} along axis {axis}")
        padded = np.minimum(end, reach + first)
        ends[:, axis] = np.where(stops[:, axis] == last, padded, stops[:, axis])
    return _Views(
        value,
        backing=held.physical_stops - held.starts,
        starts=starts - held.starts,
        stops=ends - held.starts,
        logical=stops - starts,
    )


def _contraction(relation: Relation) -> tuple[int, ...]:
    """The operand axes that a product sums over."""
    if not isinstance(relation, ProductOperand):
        return ()
    axes = relation.axes.contraction
    return tuple(axis.left if relation.side is Side.LEFT else axis.right for axis in axes)


def _plain_calls(block: Block, compute: Compute) -> LocalCalls:
    """The calls of work that reads nothing but its own tile."""
    work = compute.work
    result = block.value(compute.results[0])
    operands = [block.value(operand) for operand in compute.operands]
    relations = compute.relations
    parts: tuple[tuple[int, int], ...] = ()
    batch: tuple[int, ...] = ()
    if isinstance(work, Product):
        # The partial sums that a product starts from are its result's storage, and no operand of the call.
        operands, relations = operands[:2], relations[:2]
        parts = work.parts
        batch = tuple(axis.result for axis in work.axes.batch)
    flat = is_flat([result, *operands])
    rows = _result_rows(result, flat=flat, has_partials=bool(parts), batch=batch)
    tiles = result.owners.tiles(result.distribution.owner_count)
    if flat:
        relations = (Identity(rank=1),) * len(operands)
    views = [rows.result]
    for operand, relation in zip(operands, relations, strict=True):
        shards = shards_on(operand, tiles[rows.owner])
        if (shards < 0).any():
            raise ValueError(f"a tile computes with {operand.name} and does not hold any of it")
        views.append(
            _operand_views(operand, shard_boxes(operand, flat=flat).of(shards), rows, relation, parts)
        )
    parameters, aliases = _parameters(compute), _aliases(compute)
    displacement = sum(alias.displacement for alias in aliases if alias.result == Result(0))
    first, request = distinct_rows(np.concatenate([view.columns for view in views], axis=1))
    return LocalCalls(
        requests=tuple(
            Request(
                parameters=parameters,
                operands=(
                    views[0].operand(row, displacement),
                    *(view.operand(row) for view in views[1:]),
                ),
                relations=(None, *map(localize, relations)),
                aliases=aliases,
            )
            for row in map(int, first)
        ),
        owner=rows.owner,
        request=request,
        tiles=tiles,
    )


def _parameters(compute: Compute) -> Parameters:
    """What is asked of the family."""
    work = compute.work
    match work:
        case Product(mode=mode, orientation=orientation, rounding=rounding):
            return GemmParameters(mode=mode, orientation=orientation, rounding=rounding)
        case Elementwise(operation=operation):
            return PointwiseParameters(operation=operation)
        case Cast(is_separate=is_separate):
            return CastParameters(is_separate=is_separate)
        case Sum():
            raise ValueError("a sum has as many calls, with as many partials, as it has batches")
        case _:
            assert_never(work)


def _aliases(compute: Compute) -> tuple[Alias, ...]:
    """As the family is asked for them. An accumulating product has its partial sums as a result alone."""
    if isinstance(compute.work, Product):
        return ()
    return tuple(
        Alias(result=Result(alias.result), operand=Operand(alias.operand), displacement=alias.displacement)
        for alias in compute.aliases
    )


def _sum_calls(block: Block, compute: Compute, work: Sum) -> LocalCalls:
    """The calls of a sum: batches of partials in a stack, the first of them onto the seed."""
    result, operand = block.value(compute.results[0]), block.value(compute.operands[0])
    flat = is_flat([result])
    rows = _result_rows(result, flat=flat, has_partials=False, batch=())
    tiles = result.owners.tiles(result.distribution.owner_count)
    own_partial = own_partials(result, operand)
    own = own_partial[rows.owner]
    seeds = None if flat or (own == NO_PARTIAL).all() else _seed_views(operand, rows, tiles)
    columns = [rows.result.columns]
    if seeds is not None:
        # Where there is no own partial nothing is read of the shard that happens to be there.
        columns.append(np.where((own == NO_PARTIAL)[:, None], -1, seeds.columns))
    first, kind = distinct_rows(np.concatenate(columns, axis=1))
    stacked = operand.shape[0] - 1
    batches = _batches(stacked, work.batch)
    requests: list[Request] = []
    numbers: dict[Request, int] = {}
    of_kind = np.empty((len(first), len(batches)), dtype=np.int64)
    is_seeded = np.zeros(len(first), dtype=np.bool_)
    for which, row in enumerate(map(int, first)):
        ends = rows.result.operand(row)
        seed = ends
        if seeds is not None and own[row] != NO_PARTIAL:
            view = seeds.operand(row)
            if _is_stored_alike(view, ends):
                seed, is_seeded[which] = view, True
        for stage, count in enumerate(batches):
            request = _sum_request(ends, seed if stage == 0 else ends, count)
            of_kind[which, stage] = numbers.setdefault(request, len(requests))
            if of_kind[which, stage] == len(requests):
                requests.append(request)
    is_in_place = np.zeros(len(tiles), dtype=np.bool_)
    is_in_place[rows.owner] = is_seeded[kind]
    return LocalCalls(
        requests=tuple(requests),
        owner=np.repeat(rows.owner, len(batches)),
        request=of_kind[kind].reshape(-1),
        tiles=tiles,
        own_partial=own_partial,
        is_in_place=is_in_place,
    )


def _batches(stacked: int, batch: int | None) -> list[int]:
    """How many partials each call adds to the seed."""
    most = stacked if batch is None else batch
    return [min(most, stacked - done) for done in range(0, stacked, most)]


def _seed_views(operand: Value, rows: _Rows, tiles: npt.NDArray[np.int32]) -> _Views:
    """What each row sums, in the partial on its tile; of no meaning where the tile has none of its own."""
    every = shard_boxes(operand)
    held = every.of(np.maximum(shards_on(operand, tiles[rows.owner]), 0))
    starts, stops, ends = held.starts[:, 1:], held.stops[:, 1:], held.physical_stops[:, 1:]
    multiples = axis_multiples(operand.format.layout.order, operand.format.precision, len(operand.shape))
    reach = starts + -(-(rows.boxes.physical_stops - starts) // multiples[1:]) * multiples[1:]
    return _Views(
        operand,
        backing=ends - starts,
        starts=rows.boxes.starts - starts,
        stops=np.where(rows.boxes.stops == stops, np.minimum(ends, reach), rows.boxes.stops) - starts,
        logical=rows.boxes.stops - rows.boxes.starts,
    )


@functools.lru_cache(maxsize=1 << 14)
def _is_stored_alike(seed: LocalOperand, result: LocalOperand) -> bool:
    """Whether a seed can be summed from where it lies."""
    one, other = pack(seed), pack(result)
    if one is None or other is None or seed.origin % ALIGNMENT:
        return False
    return one.digits == other.digits


def _sum_request(result: LocalOperand, seed: LocalOperand, partials: int) -> Request:
    elements = prod(result.physical)
    stack = LocalOperand(
        precision=F16(),
        order=RowMajor(),
        backing=(partials, elements),
        region=Region.of_extents((partials, elements)),
        logical=(partials, elements),
        memory_class=MemoryClass.STANDARD,
    )
    in_place = (Alias(result=Result(0), operand=Operand(0)),) if seed is result else ()
    return Request(
        parameters=ReduceParameters(partials=partials),
        operands=(result, seed, stack),
        relations=(None, Identity(rank=len(result.backing)), None),
        aliases=in_place,
    )
