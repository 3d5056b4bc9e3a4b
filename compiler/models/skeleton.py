"""A program of four tiles, written by hand in the low tables: everything that a tile program can do, once.

    h = x                       x [rows, width] over K on two tiles
    twice: h = h @ w_i + bias_i w_i [width, width] there, bias_i [width] on a third tile: parameters of their
                                own in each iteration of a Repeat
    y = h                       on a fourth

It needs no planner, and every later stage can be run on it alone. What is in it:

===================  =====================================================================================
local copy           ``x`` into ``h``, which the Repeat carries
GEMM                 contraction split over two tiles: each multiplies its half of K into a full partial
exchange             each of the two sends the other the half of the partial that the other sums
sum                  own partial first, then the received one; the result is the next half of ``h``
sequences            the weights of both iterations are members of one sequence on each tile, and so are the
                     biases on theirs; all are resident
multicast            in each iteration ``bias_i`` goes from the tile that owns it to both that add it: what
                     that tile sends moves, so a word of its row is patched
broadcast add        in place: the result takes the storage of ``h``
gather               ``y`` is collected on the fourth tile, which computes nothing
===================  =====================================================================================

``SkeletonOptions`` varies what must not matter to the result: which tiles, where operands lie in their
buffers, and in which order buffers are listed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never, final

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.operand import ORIGIN_MODULUS, LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight, ElementOrder, RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F16
from compiler.geometry.product import matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import (
    Follow,
    Identity,
    ProductOperand,
    Relation,
    SelectedWindow,
    Side,
    Span,
    broadcast_relation,
)
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.kernels.contract import Alias, Binding, Operand, Parameters, Refusal, Result
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.gemm.binding import GemmParameters, Mode
from compiler.kernels.pointwise.binding import PointwiseParameters
from compiler.kernels.reduce.binding import ReduceParameters
from compiler.kernels.registry import bind
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.ids import BufferId, NodeId, SequenceId, StepId
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.low.values import distribution_of

HALVES: Final = 2
"""Tiles that multiply."""
ITERATIONS: Final = 2
"""Iterations of the Repeat, each with weights of its own."""
ALIGNMENT: Final = 32
"""Bytes: every buffer of the program starts at a multiple."""
TEMPORARIES: Final = tuple(
    f"{kind}{half}" for half in range(HALVES) for kind in ("h", "partial", "received", "addend")
)
"""Names of the temporaries: what each tile that multiplies keeps, by the number of its half."""
SHARDS: Final = (
    *(f"{value}_shard{half}" for half in range(HALVES) for value in ("x", "w0", "w1")),
    *(f"bias{iteration}_shard0" for iteration in range(2)),
    "y_shard0",
)
"""Names of the buffers of the host's values."""
BUFFERS: Final = (*SHARDS, *TEMPORARIES)
"""Names of all buffers, in the order in which they are listed by default."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SkeletonOptions:
    """What can be varied.

    Args:
        rows: rows of x and y.
        panels: panels of 16 columns in each half of the width.
        tile_count: tiles of the build.
        tiles: the two that multiply, the owner of the biases, the owner of y; distinct.
        displacements: (one of TEMPORARIES, bytes from the buffer's start to what is kept in it), multiples
            of 8.
        buffer_order: the order of BUFFERS in which they are listed; None for that order.

    Raises:
        ValueError: sizes that are not positive, tiles that repeat or leave the build, a displacement of
            something else or by something else, or an order that is none.
    """

    rows: int = 6
    panels: int = 2
    tile_count: int = 4
    tiles: tuple[TileId, TileId, TileId, TileId] = (TileId(0), TileId(1), TileId(2), TileId(3))
    displacements: tuple[tuple[str, int], ...] = ()
    buffer_order: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.rows < 1 or self.panels < 1:
            raise ValueError(f"{self.rows} rows and {self.panels} panels are not positive")
        OwnerMap(tile_count=self.tile_count, embedding=self.tiles)
        for name, displacement in self.displacements:
            if name not in TEMPORARIES or displacement < 0 or displacement % 8:
                raise ValueError(f"{name} cannot lie {displacement} bytes from the start of its buffer")
        if self.buffer_order is not None and sorted(self.buffer_order) != list(range(len(BUFFERS))):
            raise ValueError(f"{self.buffer_order} does not order {len(BUFFERS)} buffers")

    @property
    def half(self) -> int:
        """Columns of h that one tile keeps."""
        return F16.micro * self.panels

    @property
    def width(self) -> int:
        """Columns of h."""
        return HALVES * self.half

    @property
    def half_bytes(self) -> int:
        """Bytes of one tile's columns of h."""
        return self.rows * self.half * F16.element_bytes

    @property
    def bias_bytes(self) -> int:
        """Bytes of one bias."""
        return self.width * F16.element_bytes


def skeleton(options: SkeletonOptions) -> LowProgram:
    """The program. The host knows x, w0, w1, bias0, bias1 and y, all of them F16."""
    build = LowBuilder(options.tile_count)
    node = build.node("skeleton")
    parts = _Parts(build=build, node=node, options=options, buffers=_all_buffers(build, node, options))
    _copy_x(parts)
    weights = [
        build.sequence([parts.buffers[f"w{number}_shard{half}"] for number in range(ITERATIONS)])
        for half in range(HALVES)
    ]
    biases = build.sequence([parts.buffers[f"bias{number}_shard0"] for number in range(ITERATIONS)])
    with build.repeat(ITERATIONS):
        _multiply(parts, weights)
        _exchange_bias_and_halves(parts, biases)
        _sum(parts)
        _add_bias(parts)
    _gather(parts)
    return build.finish()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What every part of the program is built with."""

    build: LowBuilder
    node: NodeId
    options: SkeletonOptions
    buffers: Mapping[str, BufferId]

    def at(self, name: str, byte: int = 0) -> AddressOperand:
        """A byte of what is kept in a buffer."""
        displacement = dict(self.options.displacements).get(name, 0)
        return AddressOperand(buffer=self.buffers[name], displacement=displacement + byte)

    def view(
        self,
        name: str,
        order: ElementOrder,
        backing: Sequence[int],
        *,
        columns: int | None = None,
        memory_class: MemoryClass = MemoryClass.STANDARD,
    ) -> tuple[LocalOperand, AddressOperand]:
        """What is kept in a buffer as a tensor, and where; ``columns`` selects that half of the last axis."""
        region = Region.of_extents(backing)
        if columns is not None:
            half = backing[-1] // HALVES
            region = Region(bounds=(*region.bounds[:-1], (columns * half, (columns + 1) * half)))
        operand = LocalOperand(
            precision=F16(),
            order=order,
            backing=tuple(backing),
            region=region,
            logical=region.extents,
            memory_class=memory_class,
        )
        place = self.at(name)
        origin = (place.displacement + operand.traversal().extent[0]) % ORIGIN_MODULUS
        return replace(operand, origin=origin), place

    def call(
        self,
        step: StepId,
        parameters: Parameters,
        operands: Sequence[tuple[LocalOperand, AddressOperand]],
        relations: Sequence[Relation | None],
        aliases: tuple[Alias, ...] = (),
    ) -> None:
        """Binds and appends one call."""
        binding = _bound(parameters, tuple(form for form, _ in operands), tuple(relations), aliases)
        views = [
            self.build.view(place.buffer, form, origin=place.displacement, sequence=place.sequence)
            for form, place in operands
        ]
        self.build.call(step, binding, views, self.node)


def _bound(
    parameters: Parameters,
    operands: tuple[LocalOperand, ...],
    relations: tuple[Relation | None, ...],
    aliases: tuple[Alias, ...],
) -> Binding:
    binding = bind(parameters.family, parameters, operands, relations, aliases)
    match binding:
        case Binding():
            return binding
        case Refusal(reason=reason):
            raise ValueError(f"the program does not exist in this size: {reason}")
        case _:
            assert_never(binding)


def _all_buffers(build: LowBuilder, node: NodeId, options: SkeletonOptions) -> dict[str, BufferId]:
    """Adds the host's values, and all buffers in the order that the options want."""
    values = {value.name: (build.value(value), value) for value in _values(options)}
    displacements = dict(options.displacements)
    temporary_bytes = {
        "h": options.half_bytes,
        "partial": HALVES * options.half_bytes,
        "received": options.half_bytes,
        "addend": options.bias_bytes,
    }
    buffers: dict[str, BufferId] = {}
    for number in range(len(BUFFERS)) if options.buffer_order is None else options.buffer_order:
        name = BUFFERS[number]
        if name in TEMPORARIES:
            kind, half = name[:-1], int(name[-1])
            interleaved = kind == "partial"
            buffers[name] = build.buffer(
                tile=options.tiles[half],
                byte_count=displacements.get(name, 0) + temporary_bytes[kind],
                alignment=ALIGNMENT,
                memory_class=MemoryClass.INTERLEAVED if interleaved else MemoryClass.STANDARD,
                node=node,
            )
        else:
            value_name, _, shard = name.partition("_shard")
            row, value = values[value_name]
            distribution = distribution_of(value)
            buffers[name] = build.buffer(
                tile=value.owners.tile(int(distribution.owners[int(shard), 0])),
                byte_count=int(distribution.storage_bytes[int(shard)]),
                alignment=ALIGNMENT,
                memory_class=value.format.layout.memory_class,
                role=value.role,
                value=row,
                shard=int(shard),
                node=node,
            )
    return buffers


def _values(options: SkeletonOptions) -> tuple[HostValue, ...]:
    rows, width = options.rows, options.width
    both, owner_of_biases, owner_of_y = options.tiles[:2], options.tiles[2:3], options.tiles[3:]
    by_rows, by_columns = (
        GridTiling(axes=(AxisTiling(axis=axis, partitions=HALVES, block_size=F16.micro),)) for axis in (0, 1)
    )
    whole = GridTiling()
    vector = TensorLayout(order=RowMajor(), tiling=whole)
    activations = TensorLayout(order=AmpLeft(), tiling=by_columns)
    weights = TensorLayout(order=AmpRight(), tiling=by_rows, memory_class=MemoryClass.INTERLEAVED)
    values: tuple[tuple[str, Role, tuple[int, ...], TensorLayout, tuple[TileId, ...]], ...] = (
        ("x", Role.INPUT, (rows, width), activations, both),
        ("w0", Role.PARAMETER, (width, width), weights, both),
        ("w1", Role.PARAMETER, (width, width), weights, both),
        ("bias0", Role.PARAMETER, (width,), vector, owner_of_biases),
        ("bias1", Role.PARAMETER, (width,), vector, owner_of_biases),
        ("y", Role.OUTPUT, (rows, width), TensorLayout(order=AmpLeft(), tiling=whole), owner_of_y),
    )
    return tuple(
        HostValue(
            name=name,
            role=role,
            shape=shape,
            format=TensorFormat(precision=F16(), layout=layout),
            owners=OwnerMap(tile_count=options.tile_count, embedding=tiles),
        )
        for name, role, shape, layout, tiles in values
    )


def _copy_x(parts: _Parts) -> None:
    """Each tile its columns of x, which stay as they are, into h."""
    step, count = parts.build.compute_step(), parts.options.half_bytes
    for half in range(HALVES):
        source, destination = parts.at(f"x_shard{half}"), parts.at(f"h{half}")
        parameters = CopyParameters(
            kind=Kind.MOVE,
            rows=1,
            row_bytes=count,
            source_stride=count,
            source_origin=source.displacement % ORIGIN_MODULUS,
            destination_stride=count,
            destination_origin=destination.displacement % ORIGIN_MODULUS,
        )
        parts.build.copy(
            step,
            _bound(parameters, (), (), ()),
            source=source,
            destination=destination,
            rows=1,
            row_bytes=count,
            source_stride=count,
            destination_stride=count,
            node=parts.node,
        )


def _multiply(parts: _Parts, weights: Sequence[SequenceId]) -> None:
    """Each tile multiplies its columns of h by its rows of this iteration's weights, into a full partial."""
    options, step = parts.options, parts.build.compute_step()
    axes = matrix_product((options.rows, options.half), (options.half, options.width))
    for half in range(HALVES):
        right, place = parts.view(
            f"w0_shard{half}",
            AmpRight(),
            (options.half, options.width),
            memory_class=MemoryClass.INTERLEAVED,
        )
        parts.call(
            step,
            GemmParameters(mode=Mode.INITIALIZE),
            (
                parts.view(
                    f"partial{half}",
                    AmpLeft(),
                    (options.rows, options.width),
                    memory_class=MemoryClass.INTERLEAVED,
                ),
                parts.view(f"h{half}", AmpLeft(), (options.rows, options.half)),
                (right, replace(place, sequence=weights[half])),
            ),
            (None, ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT)),
        )


def _exchange_bias_and_halves(parts: _Parts, biases: SequenceId) -> None:
    """Both tiles get this iteration's bias, and each sends the columns of its partial that the other sums."""
    step = parts.build.exchange_step()
    by_tile = sorted(range(HALVES), key=lambda half: parts.options.tiles[half])
    parts.build.transfer(
        step,
        source=replace(parts.at("bias0_shard0"), sequence=biases),
        byte_count=parts.options.bias_bytes,
        recipients=[parts.at(f"addend{half}") for half in by_tile],
        node=parts.node,
    )
    for half in range(HALVES):
        other = HALVES - 1 - half
        parts.build.transfer(
            step,
            source=parts.at(f"partial{half}", other * parts.options.half_bytes),
            byte_count=parts.options.half_bytes,
            recipients=[parts.at(f"received{other}")],
            node=parts.node,
        )


def _sum(parts: _Parts) -> None:
    """Each tile adds the received partial to its own: its columns of the next h."""
    options, step = parts.options, parts.build.compute_step()
    for half in range(HALVES):
        parts.call(
            step,
            ReduceParameters(partials=1),
            (
                parts.view(f"h{half}", AmpLeft(), (options.rows, options.half)),
                parts.view(
                    f"partial{half}",
                    AmpLeft(),
                    (options.rows, options.width),
                    columns=half,
                    memory_class=MemoryClass.INTERLEAVED,
                ),
                parts.view(f"received{half}", AmpLeft(), (1, options.rows, options.half)),
            ),
            (
                None,
                Identity(rank=2),
                SelectedWindow(result_rank=2, axes=(Span(start=0, stop=1), Follow(axis=0), Follow(axis=1))),
            ),
        )


def _add_bias(parts: _Parts) -> None:
    """In place, each tile its own columns of the bias."""
    options, step = parts.options, parts.build.compute_step()
    shape = (options.rows, options.half)
    for half in range(HALVES):
        h = parts.view(f"h{half}", AmpLeft(), shape)
        bias = parts.view(f"addend{half}", RowMajor(), (options.width,), columns=half)
        parts.call(
            step,
            PointwiseParameters(),
            (h, h, bias),
            (None, Identity(rank=2), broadcast_relation((options.half,), shape)),
            aliases=(Alias(result=Result(0), operand=Operand(0)),),
        )


def _gather(parts: _Parts) -> None:
    """Both halves of h, to the owner of y."""
    step = parts.build.exchange_step()
    for half in range(HALVES):
        parts.build.transfer(
            step,
            source=parts.at(f"h{half}"),
            byte_count=parts.options.half_bytes,
            recipients=[parts.at("y_shard0", half * parts.options.half_bytes)],
            node=parts.node,
        )
