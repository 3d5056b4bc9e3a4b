"""A small program with one of everything, and how to change it."""

import dataclasses
from collections.abc import Callable

from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import identity
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8
from compiler.geometry.product import matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, ProductOperand, Side, broadcast_relation
from compiler.kernels.gemm.binding import Mode
from compiler.kernels.pointwise.binding import Operation
from compiler.mid.build import BlockBuilder, program
from compiler.mid.ir import Block, CopyPart, MidProgram, MidValueId, StorageAlias, Value
from compiler.mid.work import Cast, Elementwise, Product
from tests.mid.products import cut, grid_format, parallel_product, reduced, replicated

TILES = 4
OWNERS = OwnerMap(tile_count=TILES)
ROWS = grid_format(AmpLeft(), (cut(0, TILES),))
"""Two rows on each tile."""
SUMS = grid_format(AmpLeft(), (cut(0, TILES),), is_interleaved=True)


def small_program() -> MidProgram:
    """Half of a perceptron on four tiles, a loop, and a cast.

    ====================  ==========================================================================
    value                 what
    ====================  ==========================================================================
    x [8,32], b [32]      inputs; x by rows, b on every tile
    w, w2 [32,32]         parameters, on every tile
    start, sums           product of x and w, and that of x and w2 on top of it
    up.product, up.sum    the same product in two parts of K on two tiles for each half of the rows
    bias                  sums + b
    h                     three times gelu(h + m), m being sums each time
    joined [8,64]         h beside bias
    small                 h in F8
    ====================  ==========================================================================
    """
    builder = BlockBuilder()

    def argument(name: str, shape: tuple[int, ...], tensor_format: TensorFormat) -> MidValueId:
        return builder.argument(Value(name=name, shape=shape, format=tensor_format, owners=OWNERS))

    weights = grid_format(AmpRight(), replicas=TILES, is_interleaved=True)
    x = argument("x", (8, 32), ROWS)
    b = argument("b", (32,), replicated(TILES))
    w = argument("w", (32, 32), weights)
    w2 = argument("w2", (32, 32), weights)
    axes = matrix_product((8, 32), (32, 32))
    sides = (ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT))
    start = builder.compute(
        Product(axes=axes), (x, w), sides, tensor_format=SUMS, node="start", shape=(8, 32), owners=OWNERS
    )
    sums = builder.compute(
        Product(axes=axes, mode=Mode.ACCUMULATE),
        (x, w2, start),
        (*sides, Identity(rank=2)),
        tensor_format=SUMS,
        aliases=(StorageAlias(result=0, operand=2),),
        node="sums",
        shape=(8, 32),
        owners=OWNERS,
    )
    partials = parallel_product(builder, x, w, owners=OWNERS, rows=2, columns=1, parts=2, node="up")
    up = reduced(builder, partials, tensor_format=ROWS, owners=OWNERS, node="up")
    bias = builder.compute(
        Elementwise(operation=Operation.ADD),
        (sums, b),
        (Identity(rank=2), broadcast_relation((32,), (8, 32))),
        tensor_format=SUMS,
        node="bias",
        shape=(8, 32),
        owners=OWNERS,
    )
    body = BlockBuilder()
    carried = body.argument(Value(name="h", format=SUMS, shape=(8, 32), owners=OWNERS))
    member = body.argument(Value(name="m", format=SUMS, shape=(8, 32), owners=OWNERS))
    stepped = body.compute(
        Elementwise(operation=Operation.BIAS_GELU),
        (carried, member),
        (Identity(rank=2), Identity(rank=2)),
        tensor_format=SUMS,
        aliases=(StorageAlias(result=0, operand=0),),
        node="step",
        shape=(8, 32),
        owners=OWNERS,
    )
    (h,) = builder.repeat(
        3,
        carried=(bias,),
        invariants=(),
        sequences=((sums, sums, sums),),
        body=body.finish((stepped,)),
        node="loop",
    )
    joined = builder.copy_parts(
        [
            CopyPart(
                source=source,
                region=Region(bounds=((0, 8), (32 * number, 32 * number + 32))),
                mapping=identity((8, 32)),
            )
            for number, source in enumerate((h, bias))
        ],
        shape=(8, 64),
        tensor_format=ROWS,
        owners=OWNERS,
        node="joined",
    )
    row_major = grid_format(RowMajor(), (cut(0, TILES),))
    near = builder.copy(h, tensor_format=row_major, owners=OWNERS, node="small")
    small = builder.compute(
        Cast(),
        (near,),
        (Identity(rank=2),),
        tensor_format=grid_format(RowMajor(), (cut(0, TILES),), precision=F8(scale_exponent=-4)),
        node="small",
        shape=(8, 32),
        owners=OWNERS,
    )
    return program(
        builder.finish((joined, small, up)),
        name="small",
        tile_count=TILES,
        input_count=2,
        outputs=("joined", "small", "up"),
    )


def number_of(block: Block, name: str) -> MidValueId:
    """The value of a name."""
    (found,) = (number for number, value in enumerate(block.values) if value.name == name)
    return MidValueId(found)


def with_value(block: Block, name: str, change: Callable[[Value], Value]) -> Block:
    """A block whose value of this name is another one."""
    number = number_of(block, name)
    changed = change(block.values[number])
    return dataclasses.replace(block, values=(*block.values[:number], changed, *block.values[number + 1 :]))
