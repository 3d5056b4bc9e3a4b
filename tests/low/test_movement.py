"""A copy fills its result with what the mapping reads, whatever the layouts and however it is realized.

The oracle is NumPy fancy indexing through the mapping (MG-01, TE-05); programs run on the byte executor, so
that bytes nobody wrote, and padding that is not zero, are noticed.
"""

import dataclasses
from math import prod

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import event, given, reject
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.order import (
    AmpLeft,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedRight,
    ElementOrder,
    RowMajor,
    axis_multiples,
)
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.geometry.views import broadcast, merge, split, transpose
from compiler.low.build import LowBuilder
from compiler.low.execute import Execution
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.low.movement import Realization, Source, realize
from compiler.low.storage import Stored, allocate
from compiler.low.verify import verify
from compiler.mid.ir import MovementPolicy

TILES = 12


def _program(
    source: HostValue, destination: HostValue, mapping: CoordinateMapping, policy: MovementPolicy
) -> tuple[LowProgram, Realization]:
    build = LowBuilder(TILES)
    node = build.node("move")
    stored: list[Stored] = []
    for value in (source, destination):
        distribution = distribute(value.shape, value.format)
        tiles = value.owners.tiles(distribution.owner_count).astype(np.int64)
        stored.append(allocate(build, distribution, tiles, node, role=value.role, value=build.value(value)))
    how = realize(
        build,
        [Source(stored=stored[0], mapping=mapping)],
        stored[1],
        policy=policy,
        tile_count=TILES,
        node=node,
        node_name="move",
    )
    return build.finish(), how


def _expected(mapping: CoordinateMapping, array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    shape = mapping.destination_shape
    grid = np.indices(shape, dtype=np.int64).reshape(len(shape), -1).T
    places = mapping.sources_of(grid)
    return array[tuple(places.T)].reshape(shape)


@st.composite
def formats(draw: st.DrawFn, shape: tuple[int, ...], precision: Precision) -> TensorFormat:
    rank = len(shape)
    orders: list[ElementOrder] = [RowMajor()]
    if rank >= 2 and not isinstance(precision, F32):
        orders += [AmpLeft(), AmpTransposedLeft(), AmpRight(), AmpTransposedRight()]
    order = draw(st.sampled_from(orders))
    if order == RowMajor() and draw(st.booleans()):
        grain = 4 // precision.element_bytes * draw(st.integers(1, 3))
        return TensorFormat(
            precision=precision,
            layout=TensorLayout(
                order=order,
                tiling=LinearTiling(
                    partitions=draw(st.integers(1, 4)), grain=grain, replicas=draw(st.integers(1, 2))
                ),
            ),
        )
    multiples = axis_multiples(order, precision, rank)
    axes: list[AxisTiling] = []
    budget = TILES
    for axis in range(rank):
        partitions = draw(st.integers(1, min(3, budget)))
        budget //= partitions
        block = draw(st.sampled_from((1, 2, 16)))
        axes.append(
            AxisTiling(
                axis=axis,
                partitions=partitions,
                block_size=block,
                padding_multiple=block,
                shard_padding_multiple=multiples[axis],
                padding=Padding.ZERO,
            )
        )
    replicas = draw(st.integers(1, min(3, budget)))
    return TensorFormat(
        precision=precision,
        layout=TensorLayout(order=order, tiling=GridTiling(replicas=replicas, axes=tuple(axes))),
    )


@st.composite
def mappings(draw: st.DrawFn) -> CoordinateMapping:
    kind = draw(st.sampled_from(("identity", "transpose", "merge", "split", "broadcast")))
    width = draw(st.sampled_from((4, 8, 16, 20, 32, 48)))
    rows = draw(st.integers(1, 20))
    match kind:
        case "transpose":
            return transpose((rows, 2, width), (1, 0, 2))
        case "merge":
            return merge((2, rows, width), 0, 2)
        case "split":
            return split((2 * rows, width), 0, (2, rows))
        case "broadcast":
            return broadcast((width,), (rows, width))
        case _:
            return identity((rows, width))


@st.composite
def copies(
    draw: st.DrawFn,
) -> tuple[HostValue, HostValue, CoordinateMapping, MovementPolicy]:
    mapping = draw(mappings())
    precision = draw(st.sampled_from((F16(), F8(scale_exponent=-2), F32())))
    values: list[HostValue] = []
    for name, role, shape in (
        ("x", Role.INPUT, mapping.source_shape),
        ("y", Role.OUTPUT, mapping.destination_shape),
    ):
        tensor_format = draw(formats(shape, precision))
        embedding = draw(st.permutations(range(TILES)))
        values.append(
            HostValue(
                name=name,
                role=role,
                shape=shape,
                format=tensor_format,
                owners=OwnerMap(tile_count=TILES, embedding=tuple(map(TileId, embedding))),
            )
        )
    return values[0], values[1], mapping, draw(st.sampled_from(MovementPolicy))


@given(copy=copies(), seed=st.integers(0, 1000))
def test_a_copy_delivers_what_its_mapping_reads(
    copy: tuple[HostValue, HostValue, CoordinateMapping, MovementPolicy], seed: int
) -> None:
    """MG-01, MG-06, MG-15: every realization, from any layout to any other."""
    source, destination, mapping, policy = copy
    try:
        program, _ = _program(source, destination, mapping, policy)
    except Unsupported:
        reject()
    assert verify(program) == ()
    random = np.random.default_rng(seed)
    dtype = source.format.precision.dtype
    data = random.integers(0, 100, prod(source.shape)).astype(dtype).reshape(source.shape)
    outputs = Execution(program).run({"x": data})
    assert np.array_equal(outputs["y"], _expected(mapping, data))


@given(
    data=st.data(),
    rows=st.integers(1, 13),
    width=st.sampled_from((1, 3, 5, 7, 13, 18, 33)),
    is_transposed=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_halves_at_odd_places_are_moved_from_any_layout_to_any_other(
    data: st.DataObject, rows: int, width: int, is_transposed: bool, seed: int
) -> None:
    """MG-01, MG-06, MG-08: where runs are no whole words, they are cut out of the words around them."""
    mapping = transpose((rows, width), (1, 0)) if is_transposed else identity((rows, width))
    values = [
        HostValue(
            name=name,
            role=role,
            shape=shape,
            format=data.draw(formats(shape, F16())),
            owners=OwnerMap(
                tile_count=TILES, embedding=tuple(map(TileId, data.draw(st.permutations(range(TILES)))))
            ),
        )
        for name, role, shape in (
            ("x", Role.INPUT, mapping.source_shape),
            ("y", Role.OUTPUT, mapping.destination_shape),
        )
    ]
    program, how = _program(values[0], values[1], mapping, MovementPolicy.AUTOMATIC)
    event(how.value)
    assert verify(program) == ()
    array = np.random.default_rng(seed).integers(0, 100, values[0].shape).astype(np.float16)
    assert np.array_equal(Execution(program).run({"x": array})["y"], _expected(mapping, array))


def _matrix(order: ElementOrder, rows: int, columns: int, replicas: int = 1) -> TensorFormat:
    axes = tuple(
        AxisTiling(axis=axis, partitions=partitions, block_size=block)
        for axis, partitions, block in ((0, rows, 1), (1, columns, 16))
    )
    tiling = GridTiling(replicas=replicas, axes=axes)
    return TensorFormat(precision=F16(), layout=TensorLayout(order=order, tiling=tiling))


def _values(source: TensorFormat, destination: TensorFormat, rotation: int) -> tuple[HostValue, HostValue]:
    shape = (24, 96)
    return (
        HostValue(name="x", role=Role.INPUT, shape=shape, format=source, owners=OwnerMap(tile_count=TILES)),
        HostValue(
            name="y",
            role=Role.OUTPUT,
            shape=shape,
            format=destination,
            owners=OwnerMap(tile_count=TILES, rotation=rotation),
        ),
    )


def test_replicas_are_reached_by_one_multicast() -> None:
    """MG-15: as many transfers as distinct runs, each to every replica, its sender's own tile included."""
    values = _values(_matrix(AmpLeft(), 2, 1), _matrix(AmpLeft(), 2, 1, replicas=6), 0)
    program, how = _program(*values, identity((24, 96)), MovementPolicy.DIRECT)
    assert how is Realization.DIRECT
    assert len(program.transfers.step) == 2
    assert np.diff(
        [*program.transfers.first_recipient.tolist(), len(program.recipients.transfer)]
    ).tolist() == [
        6,
        6,
    ]


def test_what_is_on_its_tile_stays_there() -> None:
    """A copy inside of tiles is no exchange, and a change of order there is one kernel call a tile."""
    same = _values(_matrix(AmpLeft(), 3, 2), _matrix(AmpLeft(), 3, 2), 0)
    program, how = _program(*same, identity((24, 96)), MovementPolicy.AUTOMATIC)
    assert (how, len(program.transfers.step), len(program.copies.step)) == (Realization.DIRECT, 0, 6)
    reordered = _values(_matrix(RowMajor(), 3, 2), _matrix(AmpLeft(), 3, 2), 0)
    program, how = _program(*reordered, identity((24, 96)), MovementPolicy.AUTOMATIC)
    assert (how, len(program.calls.step)) == (Realization.REARRANGED, 6)


@pytest.mark.parametrize(
    ("policy", "expected", "longest"),
    [
        (MovementPolicy.DIRECT, Realization.DIRECT, 32),
        (MovementPolicy.PACK_AT_SOURCE, Realization.PACKED_AT_SOURCE, 3 * 8 * 32),
        (MovementPolicy.PACK_AT_DESTINATION, Realization.PACKED_AT_DESTINATION, 96),
    ],
)
def test_policies_choose_where_panels_are_made(
    policy: MovementPolicy, expected: Realization, longest: int
) -> None:
    """ML-31, ML-32: each policy by its realization, seen in the length of what is sent."""
    values = _values(_matrix(RowMajor(), 3, 1), _matrix(AmpLeft(), 3, 2), 5)
    program, how = _program(*values, identity((24, 96)), policy)
    assert how is expected
    assert int(program.transfers.byte_count.max()) == longest


@pytest.mark.parametrize("rotation", [0, 5])
def test_panels_reach_other_panels_through_rows(rotation: int) -> None:
    """A product that is stored transposed reaches the next one by two kernels a tile, wherever that is."""
    rows = AxisTiling(axis=0, partitions=3, shard_padding_multiple=16, padding=Padding.ZERO)
    transposed = TensorFormat(
        precision=F16(), layout=TensorLayout(order=AmpTransposedLeft(), tiling=GridTiling(axes=(rows,)))
    )
    values = _values(transposed, _matrix(AmpLeft(), 3, 1), rotation)
    program, how = _program(*values, identity((24, 96)), MovementPolicy.AUTOMATIC)
    assert (how is Realization.REARRANGED) == (rotation == 0)
    is_kernel = np.array([binding.family == "rearrange" for binding in program.bindings])
    assert int(is_kernel[program.calls.binding].sum()) == 6
    data = np.arange(24 * 96, dtype=np.float16).reshape(24, 96)
    assert np.array_equal(Execution(program).run({"x": data})["y"], data)


def test_what_a_tile_would_send_to_itself_alone_is_copied() -> None:
    """MG-05: one third of the rows stays where it is, as whole rows of one copy; the rest is sent."""
    source = _matrix(AmpLeft(), 3, 1)
    destination = dataclasses.replace(
        source,
        layout=dataclasses.replace(
            source.layout, tiling=GridTiling(axes=(AxisTiling(axis=0, partitions=4),))
        ),
    )
    program, how = _program(*_values(source, destination, 0), identity((24, 96)), MovementPolicy.DIRECT)
    assert how is Realization.DIRECT
    tile = program.buffers.tile
    sender = tile[program.transfers.source[program.recipients.transfer]]
    assert (sender != tile[program.recipients.destination]).all()
    assert sorted(program.copies.tile.tolist()) == [0, 1, 2]
    data = np.arange(24 * 96, dtype=np.float16).reshape(24, 96)
    assert np.array_equal(Execution(program).run({"x": data})["y"], data)


def test_a_movement_that_does_not_exist_says_why() -> None:
    """The message names both sides and every realization's reason."""
    odd = TensorFormat(
        precision=F16(),
        layout=TensorLayout(order=RowMajor(), tiling=GridTiling(axes=(AxisTiling(axis=0, partitions=2),))),
    )
    values = tuple(
        HostValue(
            name=name,
            role=role,
            shape=(6, 3),
            format=odd,
            owners=OwnerMap(tile_count=TILES, rotation=rotation),
        )
        for name, role, rotation in (("x", Role.INPUT, 0), ("y", Role.OUTPUT, 1))
    )
    with pytest.raises(Unsupported) as caught:
        _program(values[0], values[1], transpose((6, 3), (0, 1)), MovementPolicy.DIRECT)
    assert caught.value.nodes == ("move",)
    assert "direct: runs are not whole words" in str(caught.value)
