"""Random products and random ways of computing them, built, checked and interpreted."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from compiler.geometry.layout import MemoryClass
from compiler.geometry.mapping import Shape
from compiler.geometry.order import AMP_COLUMNS
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16, F32, Precision, encode_f143
from compiler.geometry.relation import Side
from compiler.geometry.views import transpose
from compiler.graph.build import GraphBuilder
from compiler.graph.evaluate import Numerics, evaluate
from compiler.kernels.contract import Refusal
from compiler.kernels.gemm.binding import Orientation
from compiler.mid.build import BlockBuilder, program
from compiler.mid.interpret import interpret
from compiler.mid.ir import Compute, MidProgram, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.verify import verify
from compiler.planner.bound import BoundValue, Home, flat_format
from compiler.planner.gemm import construct, input_home, parameter_home
from compiler.planner.gemm_choice import Algorithm, GemmChoice, GridOrder, Residency
from compiler.planner.gemm_problem import GemmProblem

SIDES = (Side.LEFT, Side.RIGHT)
NAMES = {Side.LEFT: "left", Side.RIGHT: "right"}
Arrays = dict[Side, npt.NDArray[np.generic]]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A product as a program of its own.

    Args:
        program: the program.
        result: what the constructor gave.
        homes: how its arguments are declared.
    """

    program: MidProgram
    result: BoundValue
    homes: dict[Side, Home]


def problem_of(
    rows: int,
    inner: int,
    columns: int,
    *,
    tile_count: int,
    batch: Shape = (),
    left_batch: Shape | None = None,
    right_batch: Shape | None = None,
    transpose_left: bool = False,
    transpose_right: bool = False,
    precision: F16 | F8 | None = None,
    left_precision: Precision | None = None,
    right_precision: Precision | None = None,
    parameter: Side | None = Side.RIGHT,
) -> GemmProblem:
    """A problem by its extents; both operands have ``batch`` unless told otherwise."""
    precision = F16() if precision is None else precision
    left = (inner, rows) if transpose_left else (rows, inner)
    right = (columns, inner) if transpose_right else (inner, columns)
    return GemmProblem(
        left_shape=(*(batch if left_batch is None else left_batch), *left),
        right_shape=(*(batch if right_batch is None else right_batch), *right),
        transpose_left=transpose_left,
        transpose_right=transpose_right,
        precision=precision,
        left_precision=precision if left_precision is None else left_precision,
        right_precision=precision if right_precision is None else right_precision,
        parameter=parameter,
        tile_count=tile_count,
    )


@st.composite
def problems(draw: st.DrawFn) -> GemmProblem:
    """Small products: one-row ones, extents that divide nothing, batches that both or one operand has."""
    both, only = draw(
        st.sampled_from([((), ()), ((), ()), ((2,), ()), ((3,), ()), ((2, 2), ()), ((), (3,)), ((2,), (2,))])
    )
    wide = draw(st.booleans())
    left_batch, right_batch = (*only, *both), both
    if not wide:
        # NumPy aligns at the last axis: an axis that the left operand lacks has extent 1 there.
        left_batch, right_batch = (*([1] * len(only)), *both), (*only, *both)
    precision: F16 | F8 = draw(st.sampled_from([F16(), F16(), F8(scale_exponent=-3)]))
    if isinstance(precision, F8):
        left: Precision = draw(st.sampled_from([precision, F16(), F32()]))
        right: Precision = draw(st.sampled_from([precision, precision, F16()]))
    else:
        left, right = draw(st.sampled_from([F16(), F16(), F32()])), F16()
    return problem_of(
        draw(st.integers(1, 40)),
        draw(st.integers(1, 130)),
        draw(st.integers(1, 70)),
        tile_count=draw(st.sampled_from([1, 2, 3, 5, 8, 16, 40, 64])),
        left_batch=left_batch,
        right_batch=right_batch,
        transpose_left=draw(st.booleans()),
        transpose_right=draw(st.booleans()),
        precision=precision,
        left_precision=left,
        right_precision=right,
        parameter=draw(st.sampled_from([Side.RIGHT, Side.RIGHT, Side.LEFT, None])),
    )


@st.composite
def choices(draw: st.DrawFn, problem: GemmProblem) -> GemmChoice:
    """Any way of computing a product; some do not suit it."""
    orientation = draw(st.sampled_from(Orientation))
    row_unit, column_unit = (1, AMP_COLUMNS) if orientation is Orientation.NORMAL else (AMP_COLUMNS, 1)
    tiles = problem.tile_count
    batch_parts = draw(st.integers(1, min(problem.batch, tiles)))
    tiles //= batch_parts
    row_parts = draw(st.integers(1, min(-(-problem.rows // row_unit), tiles)))
    tiles //= row_parts
    column_parts = draw(st.integers(1, min(-(-problem.columns // column_unit), tiles)))
    tiles //= column_parts
    panels = -(-problem.inner // problem.micro)
    can_stay = problem.parameter is not None and not problem.is_cast(problem.parameter)
    residency = draw(st.sampled_from(Residency)) if can_stay else Residency.STREAMED
    memory = draw(st.sampled_from(MemoryClass))
    order = draw(st.sampled_from(GridOrder))
    most = min(panels, tiles)
    if most > 1 and draw(st.booleans()):
        inner_parts = draw(st.integers(2, most))
        scatterings = [
            (rows, columns)
            for rows in range(1, inner_parts + 1)
            for columns in range(1, inner_parts + 1)
            if inner_parts % (rows * columns) == 0
        ]
        scatter_rows, scatter_columns = draw(st.sampled_from(scatterings))
        batches = [None, *range(1, inner_parts - 1)]
        return GemmChoice(
            algorithm=Algorithm.PARALLEL_REDUCTION,
            batch_parts=batch_parts,
            row_parts=row_parts,
            column_parts=column_parts,
            inner_parts=inner_parts,
            scatter_rows=scatter_rows,
            scatter_columns=scatter_columns,
            orientation=orientation,
            weight_memory=memory,
            parameter_residency=residency,
            reduction_batch=draw(st.sampled_from(batches)),
            grid_order=order,
        )
    blocks = [None]
    if residency is Residency.STREAMED and panels > 1:
        blocks += [problem.micro * count for count in range(1, panels)]
    return GemmChoice(
        algorithm=Algorithm.OUTPUT_STATIONARY,
        batch_parts=batch_parts,
        row_parts=row_parts,
        column_parts=column_parts,
        orientation=orientation,
        weight_memory=memory,
        parameter_residency=residency,
        grid_order=order,
        inner_block=draw(st.sampled_from(blocks)),
    )


def shape_of(problem: GemmProblem, side: Side) -> Shape:
    """Of an operand in the graph."""
    return problem.left_shape if side is Side.LEFT else problem.right_shape


def precision_of(problem: GemmProblem, side: Side) -> Precision:
    """What an operand arrives in."""
    return problem.left_precision if side is Side.LEFT else problem.right_precision


def build(
    problem: GemmProblem,
    choice: GemmChoice,
    *,
    cast_before_copies: bool = False,
    elsewhere: frozenset[Side] = frozenset(),
) -> Built:
    """A product alone, its operands in their homes or, elsewhere, row-major and with axes turned round."""
    builder = BlockBuilder()
    homes: dict[Side, Home] = {}
    for side in SIDES:
        shape, precision = shape_of(problem, side), precision_of(problem, side)
        if side in elsewhere:
            turned = shape[::-1]
            homes[side] = Home(
                shape=turned,
                format=flat_format(turned, precision, problem.tile_count),
                owners=OwnerMap(tile_count=problem.tile_count),
                mapping=transpose(turned, range(len(shape))[::-1]),
            )
        elif side is problem.parameter:
            homes[side] = parameter_home(choice, problem)
        else:
            homes[side] = input_home(choice, problem, side)
    left, right = (
        BoundValue(
            value=builder.argument(
                Value(name=NAMES[side], shape=home.shape, format=home.format, owners=home.owners)
            ),
            mapping=home.mapping,
        )
        for side, home in homes.items()
    )
    result = construct(
        builder, choice, problem, left, right, cast_before_copies=cast_before_copies, node="product"
    )
    block = builder.finish((result.value,))
    return Built(
        program=program(
            block, name="alone", tile_count=problem.tile_count, input_count=2, outputs=("product",)
        ),
        result=result,
        homes=homes,
    )


def faults(built: Built) -> list[str]:
    """What the verifier finds and the families refuse."""
    found = [str(fault) for fault in verify(built.program)]
    if found:
        return found
    block = built.program.block
    for operation in block.operations:
        if isinstance(operation, Compute):
            bindings = bind_all(local_calls(block, operation))
            found += [binding.reason for binding in bindings if isinstance(binding, Refusal)]
    return found


def tensors(problem: GemmProblem, seed: int) -> Arrays:
    """Random operands, as they are stored.

    Words are halves already: a cast to codes by way of halves rounds twice, the reference once.
    """
    random = np.random.default_rng(seed)
    arrays: Arrays = {}
    for side in SIDES:
        precision = precision_of(problem, side)
        scale = 1.0 if side is Side.LEFT else problem.inner**-0.5
        values = random.normal(0, scale, shape_of(problem, side)).astype(np.float16).astype(np.float32)
        if isinstance(precision, F8):
            arrays[side] = encode_f143(values, precision.scale_exponent)
        else:
            arrays[side] = values.astype(precision.dtype)
    return arrays


def computed(built: Built, arrays: Arrays) -> npt.NDArray[np.float32]:
    """The product by the program, in coordinates of the graph."""
    given = {NAMES[side]: at_home(arrays[side], built.homes[side]) for side in SIDES}
    distributed = interpret(built.program, given)["product"]
    mapping = built.result.mapping
    assert mapping.source_shape == distributed.shape
    coordinates = np.moveaxis(np.indices(mapping.destination_shape), 0, -1).astype(np.int64)
    sources = mapping.sources_of(coordinates)
    return distributed[tuple(np.moveaxis(sources, -1, 0))].astype(np.float32)


def at_home(array: npt.NDArray[np.generic], home: Home) -> npt.NDArray[np.generic]:
    """A tensor of the graph in the coordinates of its home."""
    moved = np.empty(home.shape, dtype=array.dtype)
    coordinates = np.moveaxis(np.indices(array.shape), 0, -1).astype(np.int64)
    moved[tuple(np.moveaxis(home.mapping.sources_of(coordinates), -1, 0))] = array
    return moved


def expected(problem: GemmProblem, arrays: Arrays) -> npt.NDArray[np.float32]:
    """The product by the reference of the graph."""
    build_graph = GraphBuilder("reference")
    left = build_graph.input("left", problem.left_shape, problem.left_precision)
    right = build_graph.parameter("right", problem.right_shape, problem.right_precision)
    build_graph.output(
        build_graph.gemm(
            left,
            right,
            transpose_left=problem.transpose_left,
            transpose_right=problem.transpose_right,
            precision=problem.precision,
            name="product",
        )
    )
    given = {NAMES[side]: arrays[side] for side in SIDES}
    return evaluate(build_graph.finish(), given, Numerics.ROUNDED)["product"]
