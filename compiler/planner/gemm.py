"""Constructor of products: from a choice to copies, casts, products and sums.

*Parallel reduction*: both operands are brought to the tiles that multiply, every tile makes a partial over
its part of K, and the partials are summed in pieces (ML-08). *Output-stationary*: operands are brought and
multiplied whole, or block of K by block, each product starting from the sums of the one before in the same
storage (ML-09). An operand that lies where it is multiplied is used as it is.

Nothing is chosen here, and no price is known (PR-21).
"""

from typing import Final, assert_never

from compiler.geometry.distribution import distribute
from compiler.geometry.mapping import NotRepresentable, identity
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16, F32, Precision
from compiler.geometry.recast import recast
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, ProductOperand, Side
from compiler.geometry.restrict import restrict
from compiler.kernels.contract import Refusal
from compiler.kernels.gemm.binding import Mode
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import Compute, CopyPart, MidValueId, StorageAlias
from compiler.mid.local import bind_all, local_calls
from compiler.mid.work import Cast, Product, Sum
from compiler.planner import gemm_layout
from compiler.planner.bound import BoundValue, Home, flat_format, read_through
from compiler.planner.gemm_choice import Algorithm, GemmChoice, Residency
from compiler.planner.gemm_layout import Placement
from compiler.planner.gemm_problem import GemmProblem, conversions

PARTIAL_SUMS: Final = 2
"""Operand of an accumulating product that holds what it starts from."""


def construct(
    builder: BlockBuilder,
    choice: GemmChoice,
    problem: GemmProblem,
    left: BoundValue,
    right: BoundValue,
    *,
    cast_before_copies: bool,
    spreads_preparation: bool = False,
    node: str,
) -> BoundValue:
    """Appends a product as it was chosen.

    Args:
        builder: of the block.
        choice: how it is computed.
        problem: the product; its operands have the shapes and precisions of ``left`` and ``right``.
        left: the left operand.
        right: the right operand.
        cast_before_copies: whether an operand in another precision is cast where it is, and else where it is
            multiplied. Weights always are where they are: casts know no weights. What lies where it is
            multiplied is cast there.
        spreads_preparation: whether an operand that has to be cast, or lies in rows, is first cut among all
            tiles where fewer hold it, and prepared there.
        node: the graph node.

    Returns:
        The product, in F16.

    Raises:
        ValueError: the choice does not suit the problem, or the operands are not those of the problem.
    """
    reason = gemm_layout.fault(problem, choice)
    if reason is not None:
        raise ValueError(f"{node}: {reason}")
    sources = {
        side: _source(
            builder,
            choice,
            problem,
            side,
            bound,
            cast_before_copies=cast_before_copies,
            spreads_preparation=spreads_preparation,
            node=node,
        )
        for side, bound in ((Side.LEFT, left), (Side.RIGHT, right))
    }
    relations = tuple(ProductOperand(axes=problem.axes, side=side) for side in Side)
    made = gemm_layout.product(problem, choice)
    match choice.algorithm:
        case Algorithm.PARALLEL_REDUCTION:
            operands = [_bring(builder, choice, problem, side, sources[side], node=node) for side in Side]
            partials = builder.compute(
                Product(
                    axes=problem.axes,
                    orientation=choice.orientation,
                    rounding=problem.rounding,
                    parts=gemm_layout.parts_of_inner(problem, choice),
                ),
                operands,
                relations,
                shape=made.shape,
                tensor_format=made.format,
                owners=made.owners,
                node=node,
            )
            scattered = gemm_layout.total(problem, choice)
            result = builder.compute(
                Sum(batch=choice.reduction_batch),
                (partials,),
                (Identity(rank=len(scattered.shape)),),
                shape=scattered.shape,
                tensor_format=scattered.format,
                owners=scattered.owners,
                node=node,
            )
        case Algorithm.OUTPUT_STATIONARY:
            blocks = gemm_layout.blocks_of_inner(problem, choice)
            sums: MidValueId | None = None
            for block in blocks:
                part = None if len(blocks) == 1 else block
                operands = [
                    _bring(builder, choice, problem, side, sources[side], part=part, node=node)
                    for side in Side
                ]
                sums = builder.compute(
                    Product(
                        axes=problem.axes,
                        mode=Mode.INITIALIZE if sums is None else Mode.ACCUMULATE,
                        orientation=choice.orientation,
                        rounding=problem.rounding,
                    ),
                    operands if sums is None else [*operands, sums],
                    relations if sums is None else (*relations, Identity(rank=len(made.shape))),
                    shape=made.shape,
                    tensor_format=made.format,
                    owners=made.owners,
                    aliases=() if sums is None else (StorageAlias(result=0, operand=PARTIAL_SUMS),),
                    node=node,
                )
            if sums is None:
                raise AssertionError("K has at least one block")
            result = sums
        case _:
            assert_never(choice.algorithm)
    return BoundValue(value=result, mapping=problem.result_mapping)


def parameter_home(choice: GemmChoice, problem: GemmProblem) -> Home:
    """How the parameter of a product is best declared when nothing else reads it.

    A resident one lies where it is multiplied, on every tile that multiplies it; another is stored once.

    Raises:
        ValueError: the product has no parameter.
    """
    side = problem.parameter
    if side is None:
        raise ValueError("no operand of this product is a parameter")
    if choice.parameter_residency is Residency.RESIDENT:
        return _home(problem, side, gemm_layout.resident(problem, choice, side))
    return input_home(choice, problem, side)


def input_home(choice: GemmChoice, problem: GemmProblem, side: Side) -> Home:
    """How an argument that a product reads first is best declared: once, in pieces that travel as runs."""
    return _home(problem, side, _stored_once(problem, choice, side, problem.form(side).precision))


def consumer_home(choice: GemmChoice, problem: GemmProblem, side: Side) -> Home:
    """How an argument lies where a product reads it: on every tile that multiplies it, or casts it there."""
    return _home(
        problem, side, gemm_layout.resident(problem, choice, side, precision=problem.form(side).precision)
    )


def _home(problem: GemmProblem, side: Side, placement: Placement) -> Home:
    mapping = problem.form(side).mapping.inverse()
    if isinstance(mapping, NotRepresentable):
        raise AssertionError("axes of an operand are merged, none is left out or repeated")
    return Home(shape=placement.shape, format=placement.format, owners=placement.owners, mapping=mapping)


def _stored_once(problem: GemmProblem, choice: GemmChoice, side: Side, precision: Precision) -> Placement:
    """Pieces; words lie row-major instead, since they are cast first and have panels of another width."""
    if isinstance(precision, F32):
        shape = problem.form(side).shape
        return Placement(
            shape=shape,
            format=flat_format(shape, precision, problem.tile_count),
            owners=OwnerMap(tile_count=problem.tile_count),
        )
    return gemm_layout.pieces(problem, choice, side, precision=precision)


def _source(
    builder: BlockBuilder,
    choice: GemmChoice,
    problem: GemmProblem,
    side: Side,
    bound: BoundValue,
    *,
    cast_before_copies: bool,
    spreads_preparation: bool,
    node: str,
) -> BoundValue:
    """An operand in terms of its form, in the precision in which it is brought to where it is multiplied."""
    form = problem.form(side)
    precision = builder.value(bound.value).format.precision
    if bound.shape != form.mapping.source_shape or precision != form.precision:
        raise ValueError(f"{node}: the {side.value} operand is not the one that the choice was made for")
    seen = read_through(builder, bound, form.mapping, tile_count=problem.tile_count, node=node)
    if spreads_preparation:
        seen = _spread(builder, choice, problem, side, seen, node=node)
    if not problem.is_cast(side):
        return seen
    is_weights = side is gemm_layout.weights_side(choice)
    is_there = _is_there(builder, seen, gemm_layout.resident(problem, choice, side, precision=precision))
    if (cast_before_copies and not is_there) or is_weights or isinstance(precision, F32):
        target = problem.precision if cast_before_copies or is_weights else F16()
        return _cast_where_it_is(builder, choice, problem, side, seen, target, node=node)
    return seen


def _spread(
    builder: BlockBuilder,
    choice: GemmChoice,
    problem: GemmProblem,
    side: Side,
    seen: BoundValue,
    *,
    node: str,
) -> BoundValue:
    """An operand in pieces that are prepared one on each tile; itself where that helps nobody."""
    value = builder.value(seen.value)
    if not problem.is_cast(side) and not isinstance(value.format.layout.order, RowMajor):
        return seen
    staged = _stored_once(problem, choice, side, value.format.precision)
    distribution = value.distribution
    is_wider = distribute(staged.shape, staged.format).shard_count > distribution.shard_count
    if not is_wider and distribution.owner_count == distribution.shard_count:
        return seen
    copied = builder.copy(
        seen.value, tensor_format=staged.format, owners=staged.owners, mapping=seen.mapping, node=node
    )
    return BoundValue(value=copied, mapping=identity(staged.shape))


def _is_there(builder: BlockBuilder, source: BoundValue, placement: Placement) -> bool:
    """Whether something lies so already."""
    value = builder.value(source.value)
    return source.mapping.is_identity and (value.shape, value.format, value.owners) == (
        placement.shape,
        placement.format,
        placement.owners,
    )


def _cast_where_it_is(
    builder: BlockBuilder,
    choice: GemmChoice,
    problem: GemmProblem,
    side: Side,
    seen: BoundValue,
    target: Precision,
    *,
    node: str,
) -> BoundValue:
    """A cast before anything is brought; by way of pieces where the operand is stored as no cast takes it."""
    for precision in conversions(builder.value(seen.value).format.precision, target):
        placement = _cast_placement(builder, seen.value, precision)
        if placement is None:
            arrives = builder.value(seen.value).format.precision
            staged = _stored_once(problem, choice, side, arrives)
            copied = builder.copy(
                seen.value, tensor_format=staged.format, owners=staged.owners, mapping=seen.mapping, node=node
            )
            placement = _cast_placement(builder, copied, precision)
            if placement is None:
                raise AssertionError("what is stored once is stored as casts take it")
            seen = BoundValue(value=copied, mapping=identity(staged.shape))
        seen = BoundValue(value=_cast(builder, seen.value, placement, node=node), mapping=seen.mapping)
    return seen


def _cast_placement(builder: BlockBuilder, number: MidValueId, precision: Precision) -> Placement | None:
    """Where the result of a cast of a value lies, on the same tiles; None when no kernel casts it there."""
    value = builder.value(number)
    placement = Placement(
        shape=value.shape,
        format=recast(value.format, len(value.shape), precision),
        owners=value.owners,
    )
    trial = BlockBuilder()
    try:
        _cast(trial, trial.argument(value), placement, node="")
        block = trial.finish(())
        (operation,) = block.operations
        if not isinstance(operation, Compute):
            raise AssertionError("a cast is a computation")
        bindings = bind_all(local_calls(block, operation))
    except ValueError:
        # Its shards do not hold whole panels in the other precision, or are no boxes.
        return None
    return None if any(isinstance(binding, Refusal) for binding in bindings) else placement


def _cast(builder: BlockBuilder, value: MidValueId, placement: Placement, *, node: str) -> MidValueId:
    return builder.compute(
        Cast(),
        (value,),
        (Identity(rank=len(placement.shape)),),
        shape=placement.shape,
        tensor_format=placement.format,
        owners=placement.owners,
        node=node,
    )


def _bring(
    builder: BlockBuilder,
    choice: GemmChoice,
    problem: GemmProblem,
    side: Side,
    source: BoundValue,
    *,
    part: tuple[int, int] | None = None,
    node: str,
) -> MidValueId:
    """An operand, or a part of K of it, where it is multiplied."""
    value = builder.value(source.value)
    arrives = value.format.precision
    placement = gemm_layout.resident(problem, choice, side, window=part, precision=arrives)
    if _is_there(builder, source, placement):
        brought = source.value
    else:
        brought = builder.copy_parts(
            _parts(problem, side, part, source),
            shape=placement.shape,
            tensor_format=placement.format,
            owners=placement.owners,
            node=node,
        )
    if arrives == problem.precision:
        return brought
    return _cast(builder, brought, gemm_layout.resident(problem, choice, side, window=part), node=node)


def _parts(
    problem: GemmProblem, side: Side, part: tuple[int, int] | None, source: BoundValue
) -> tuple[CopyPart, ...]:
    """A copy of a part of K: several boxes where its bounds cut a block of a coarser axis of the source."""
    form = problem.form(side)
    bounds = [(0, extent) for extent in form.shape]
    if part is not None:
        bounds[form.inner] = part
    taken = Region(bounds=tuple(bounds))
    return tuple(
        CopyPart(
            source=source.value,
            region=piece.destination.shift([-start for start in taken.starts]),
            mapping=piece.mapping,
        )
        for piece in restrict(source.mapping, taken)
    )
