"""From a graph and a recipe to a whole-device program: one walk over the nodes in their order (PR-20).

For each node the walk looks up what its operands are in mid, takes the family's choice (from the recipe, else
the best of the family's front), lets the family construct it, and binds the results. Views bind, and move
nothing (``planner.bound``).

**Arguments** are declared when something reads them first, in the layout that this reader wants: the
parameter of a product where it is multiplied, a bias where it is added, an input once, in pieces that travel
as runs. So no copy is needed for the first reader; others copy. With ``replicate_inputs`` an input, too, is
declared on every tile that reads it first, and the host writes it there.

**Repeat.** A body is walked like any block. What it carries is first walked with whatever layout its first
reader wants, to see what the body makes of it; it is then walked again with that layout carried, so that as a
rule nothing has to be moved at the end of an iteration. Invariants have the layout that they have outside.

**In place.** An element-wise result takes the storage of its operand when nothing else reads the value that
the operand is in.

Bounds come first: what no layout can hold is refused before anything is built (``planner.bounds``).
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, final

from compiler.errors import InvalidInput, Unsupported, few_of
from compiler.estimate.mid import MidCost
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.geometry import views as geometry_views
from compiler.geometry.compose import compose
from compiler.geometry.mapping import CoordinateMapping, NotRepresentable, identity
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F32
from compiler.geometry.relation import Identity, Relation, Side, broadcast_relation
from compiler.graph.ir import (
    Add,
    Attention,
    Block,
    Cast,
    Concat,
    Gelu,
    Gemm,
    Graph,
    LayerNorm,
    MergeAxes,
    Node,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    SplitAxis,
    TensorType,
    Transpose,
    ValueId,
)
from compiler.graph.rules import product_precision
from compiler.graph.views import pieces
from compiler.kernels.contract import Refusal
from compiler.kernels.gemm.binding import Orientation, Rounding
from compiler.kernels.pointwise.binding import Operation as Elementary
from compiler.mid.build import BlockBuilder, program
from compiler.mid.ir import Block as MidBlock
from compiler.mid.ir import Compute, CopyPart, MidProgram, MidValueId, StorageAlias, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.work import Cast as CastWork
from compiler.mid.work import Elementwise, Work
from compiler.planner import gemm, gemm_layout
from compiler.planner.bound import BoundValue, Home, read_through
from compiler.planner.bounds import check_bounds
from compiler.planner.gemm_arrival import Arrival, arrival_of
from compiler.planner.gemm_candidates import GemmCandidate, GemmCandidates, candidates
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.gemm_problem import GemmProblem
from compiler.planner.layouts import beside, row_format
from compiler.planner.recipe import Options, Recipe
from compiler.planner.rewriting import Tried, improve
from compiler.planner.supported import unplanned_nodes, unplanned_operations

STAGE: Final = "planner"
SHORTLIST: Final = 16
"""Candidates of each class of a product that are looked at."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every candidate of a build has in common.

    Args:
        tile_count: tiles of the build.
        rounding: how sums of products become F16.
        replicate_inputs: inputs are written by the host to every tile that reads them first.
    """

    tile_count: int
    rounding: Rounding = Rounding.NEAREST
    replicate_inputs: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A program and how it was chosen (PR-14).

    Args:
        program: the program.
        recipe: all choices that lead to it.
        cost: what it costs, estimated.
        tried: rewrites that would change the program, in order, and which of them did.
        alternatives: by path of a product's node, other choices for it, by class and cycles.
        dropped: by path of a product's node, how many ways of computing it were dropped, by reason.
    """

    program: MidProgram
    recipe: Recipe
    cost: MidCost
    tried: tuple[Tried, ...]
    alternatives: Mapping[str, tuple[GemmCandidate, ...]]
    dropped: Mapping[str, Mapping[str, int]]


def build_candidate(graph: Graph, setting: Setting, recipe: Recipe) -> Candidate:
    """The program of a well-formed graph by a recipe.

    What is constructed goes through the rewrites of ``planner.rewriting``. Where the best choices together
    need more memory than a tile has, the choices that the recipe leaves open are taken again, smallest first.

    Raises:
        Unsupported: operations without constructor, all of them named; or a choice that does not suit its
            product.
        InvalidInput: the recipe makes choices for products that the graph does not have.
        DoesNotFit: no layout could hold the model.
    """
    check_supported(graph)
    check_recipe(graph, recipe)
    check_bounds(graph, setting.tile_count)
    candidate = _built(graph, setting, recipe, prefers_small=False)
    cost = candidate.cost
    if cost.bytes > DATA_BUDGET or cost.interleaved_bytes > INTERLEAVED_BUDGET:
        smaller = _built(graph, setting, recipe, prefers_small=True)
        if smaller.cost.bytes < cost.bytes:
            return smaller
    return candidate


def check_supported(graph: Graph) -> None:
    """Refuse operations without constructor.

    Raises:
        Unsupported: there are some; all nodes are named.
    """
    missing = unplanned_nodes(graph)
    if missing:
        raise Unsupported(
            f"the planner has no constructor for {', '.join(unplanned_operations(graph))}",
            stage=STAGE,
            subject=graph.name,
            next_step="build a part of the model without these nodes",
            nodes=tuple(path for path, _ in missing),
        )


def check_recipe(graph: Graph, recipe: Recipe) -> None:
    """Refuse a recipe for another graph.

    Raises:
        InvalidInput: it names products that are none of the graph's.
    """
    known = set(_products(graph.block, ""))
    unknown = tuple(
        path if path.isprintable() else ascii(path) for path in sorted(recipe.gemms) if path not in known
    )
    if unknown:
        raise InvalidInput(
            f"the recipe makes choices for products that the graph does not have: {few_of(unknown)}",
            stage=STAGE,
            subject=graph.name,
            next_step="build without the recipe, and keep the one that the build writes",
            nodes=unknown,
        )


def _products(block: Block, prefix: str) -> Iterator[str]:
    """Paths of the products of a block, bodies included."""
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        if isinstance(node.operation, Gemm):
            yield path
        elif isinstance(node.operation, Repeat):
            yield from _products(node.operation.body, f"{path}/")


def _built(graph: Graph, setting: Setting, recipe: Recipe, *, prefers_small: bool) -> Candidate:
    choices = _Choices(setting=setting, recipe=recipe, prefers_small=prefers_small)
    walk = _Walk(graph.block, choices, prefix="")
    for number, argument in enumerate(graph.block.arguments):
        walk.pend(argument, is_input=number < graph.input_count)
    walk.nodes()
    results = [walk.result(value) for value in graph.outputs]
    arguments = [walk.declared(argument) for argument in graph.block.arguments]
    made = program(
        walk.builder.finish(results, arguments),
        name=graph.name,
        tile_count=setting.tile_count,
        input_count=graph.input_count,
        outputs=[graph.block.values[value].name for value in graph.outputs],
    )
    improved = improve(made, recipe.options)
    return Candidate(
        program=improved.program,
        recipe=Recipe(gemms=dict(sorted(choices.chosen.items())), options=recipe.options),
        cost=improved.cost,
        tried=improved.tried,
        alternatives=choices.alternatives,
        dropped=choices.dropped,
    )


@final
class _Choices:
    """The choices of all products: from the recipe, or from their fronts."""

    def __init__(self, *, setting: Setting, recipe: Recipe, prefers_small: bool) -> None:
        self.setting = setting
        self.options: Options = recipe.options
        self.chosen: dict[str, GemmChoice] = {}
        self.alternatives: dict[str, tuple[GemmCandidate, ...]] = {}
        self.dropped: dict[str, Mapping[str, int]] = {}
        self._recipe = recipe
        self._prefers_small = prefers_small

    def of(self, path: str, problem: GemmProblem, arrivals: Mapping[Side, Arrival]) -> GemmChoice:
        """The choice of one product.

        Raises:
            Unsupported: nothing computes it, or the recipe's choice does not suit it.
        """
        found = _candidates(
            problem, self.options.cast_before_copies, tuple(sorted(arrivals.items(), key=_side_of))
        )
        shortlist = tuple(candidate for front in found.fronts for candidate in front.shortlist(SHORTLIST))
        self.alternatives[path], self.dropped[path] = shortlist, found.dropped
        choice = self._recipe.gemms.get(path)
        if choice is None:
            if not shortlist:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in found.dropped.items())
                raise Unsupported(
                    f"nothing computes this product on {problem.tile_count} tiles: {reasons}",
                    stage=STAGE,
                    subject=path,
                    next_step="use more tiles, or smaller extents",
                    nodes=(path,),
                )
            choice = min(shortlist, key=self._rank).choice
        reason = gemm_layout.fault(problem, choice)
        if reason is not None:
            raise Unsupported(
                f"the recipe's choice does not suit this product: {reason}",
                stage=STAGE,
                subject=path,
                next_step="leave this product out of the recipe, or change the choice",
                nodes=(path,),
            )
        self.chosen[path] = choice
        return choice

    def _rank(self, candidate: GemmCandidate) -> tuple[int, ...]:
        size = candidate.tile_bytes
        # A swapped product is stored transposed, which its readers pay for: that is for the search to weigh.
        is_swapped = candidate.choice.orientation is Orientation.SWAPPED
        if self._prefers_small:
            return (is_swapped, size, candidate.cycles, candidate.row_words)
        return (is_swapped, candidate.cycles, size, candidate.row_words)


@functools.lru_cache(maxsize=256)
def _candidates(
    problem: GemmProblem, cast_before_copies: bool, arrivals: tuple[tuple[Side, Arrival], ...]
) -> GemmCandidates:
    """The fronts of a product; candidates of one build have most of their products in common."""
    return candidates(problem, cast_before_copies=cast_before_copies, arrivals=dict(arrivals))


def _side_of(arrival: tuple[Side, Arrival]) -> str:
    return arrival[0].value


@final
@dataclass(slots=True)
class _Pending:
    """An argument that nothing has read yet.

    Args:
        type: its type in the graph.
        name: its name.
        is_input: whether each run brings it.
    """

    type: TensorType
    name: str
    is_input: bool


@final
class _Walk:
    """The walk over one block."""

    def __init__(self, block: Block, choices: _Choices, *, prefix: str) -> None:
        self.builder = BlockBuilder(block.values[argument].name for argument in block.arguments)
        self._block = block
        self._choices = choices
        self._prefix = prefix
        self._tile_count = choices.setting.tile_count
        self._bound: dict[ValueId, BoundValue] = {}
        self._pending: dict[ValueId, _Pending] = {}
        self._position = 0

    # Arguments

    def pend(self, argument: ValueId, *, is_input: bool) -> None:
        """Leaves an argument to its first reader."""
        value = self._block.values[argument]
        self._pending[argument] = _Pending(value.type, value.name, is_input)

    def declare(self, argument: ValueId, home: Home) -> BoundValue:
        """Declares an argument in a layout."""
        value = self._block.values[argument]
        self._pending.pop(argument, None)
        number = self.builder.argument(
            Value(name=value.name, shape=home.shape, format=home.format, owners=home.owners, node=value.name)
        )
        self._bound[argument] = BoundValue(value=number, mapping=home.mapping)
        return self._bound[argument]

    def declared(self, argument: ValueId) -> MidValueId:
        """The value of an argument; rows over tiles when nothing reads it."""
        return self._read(argument).value

    def home_of(self, argument: ValueId) -> Home:
        """How an argument was declared."""
        bound = self._read(argument)
        value = self.builder.value(bound.value)
        return Home(shape=value.shape, format=value.format, owners=value.owners, mapping=bound.mapping)

    def is_pending(self, value: ValueId) -> bool:
        """Whether a value is an argument that nothing has read yet."""
        return value in self._pending

    def _rows(self, type_: TensorType) -> Home:
        return Home(
            shape=type_.shape,
            format=row_format(type_.shape, type_.precision, self._tile_count),
            owners=OwnerMap(tile_count=self._tile_count),
            mapping=identity(type_.shape),
        )

    def _read(self, value: ValueId) -> BoundValue:
        """What a value is; an argument that is read first, by a reader without wishes, lies in rows."""
        if value in self._pending:
            return self.declare(value, self._rows(self._block.values[value].type))
        return self._bound[value]

    # Nodes

    def nodes(self) -> None:
        """Constructs every node of the block."""
        for position, node in enumerate(self._block.nodes):
            self._position = position
            self._construct(node)

    def result(self, value: ValueId) -> MidValueId:
        """A result of the block, as a value with the elements in the sequence that the graph has them in."""
        bound = self._read(value)
        shape = self._block.values[value].type.shape
        is_in_sequence = (
            geometry_views.reshape(self.builder.value(bound.value).shape, shape) == bound.mapping
            or bound.mapping.is_identity
        )
        if is_in_sequence and bound.value not in [
            self._bound[argument].value for argument in self._block.arguments if argument in self._bound
        ]:
            return bound.value
        return self._in_rows(bound, self._block.values[value].name).value

    def bound(self, value: ValueId) -> BoundValue:
        """What a value is."""
        return self._read(value)

    def _construct(self, node: Node) -> None:
        name = self._prefix + self._block.values[node.results[0]].name
        match node.operation:
            case Gemm():
                made = (self._gemm(node, node.operation, name),)
            case Gelu():
                made = (self._gelu(node.operands[0], name),)
            case Add():
                made = (self._add(node, name),)
            case Cast():
                made = (self._cast(node, name),)
            case Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice():
                operand = self._read(node.operands[0])
                (piece,) = pieces(node.operation, [operand.shape])
                made = (
                    read_through(
                        self.builder, operand, piece.mapping, tile_count=self._tile_count, node=name
                    ),
                )
            case Concat():
                made = (self._concatenation(node, node.operation, name),)
            case Repeat():
                made = self._repeat(node, node.operation, name)
            case LayerNorm() | Softmax() | Attention():
                raise AssertionError("operations without constructor are refused before the walk")
            case _:
                assert_never(node.operation)
        for result, bound in zip(node.results, made, strict=True):
            self._bound[result] = bound

    def _gemm(self, node: Node, operation: Gemm, name: str) -> BoundValue:
        left, right = node.operands
        types = [self._block.values[operand].type for operand in node.operands]
        precision = product_precision(operation.precision, types[0], types[1])
        if isinstance(precision, F32):
            raise Unsupported(
                "products are of F16 or F8, not of F32",
                stage=STAGE,
                subject=name,
                next_step="declare a precision for this product",
                nodes=(name,),
            )
        sides = {Side.LEFT: left, Side.RIGHT: right}
        parameter = next(
            (
                side
                for side, operand in ((Side.RIGHT, right), (Side.LEFT, left))
                if operand in self._pending
                and not self._pending[operand].is_input
                and self._readers(operand) == 1
            ),
            None,
        )
        problem = GemmProblem(
            left_shape=types[0].shape,
            right_shape=types[1].shape,
            transpose_left=operation.transpose_left,
            transpose_right=operation.transpose_right,
            precision=precision,
            left_precision=types[0].precision,
            right_precision=types[1].precision,
            parameter=parameter,
            tile_count=self._tile_count,
            rounding=self._choices.setting.rounding,
        )
        choice = self._choices.of(name, problem, self._arrivals(problem, sides))
        for side, operand in sides.items():
            if operand in self._pending:
                self.declare(operand, self._product_home(problem, choice, side, self._pending[operand]))
        return gemm.construct(
            self.builder,
            choice,
            problem,
            self._read(left),
            self._read(right),
            cast_before_copies=self._choices.options.cast_before_copies,
            node=name,
        )

    def _product_home(self, problem: GemmProblem, choice: GemmChoice, side: Side, argument: _Pending) -> Home:
        """Where an argument is declared that this product reads first."""
        if problem.parameter is side:
            home = gemm.parameter_home(choice, problem)
        elif argument.is_input and self._choices.setting.replicate_inputs:
            home = gemm.consumer_home(choice, problem, side)
        else:
            home = gemm.input_home(choice, problem, side)
        return home if home.is_in_sequence else self._rows(argument.type)

    def _arrivals(self, problem: GemmProblem, sides: Mapping[Side, ValueId]) -> dict[Side, Arrival]:
        """In which pieces the operands lie that are no arguments any more."""
        return {
            side: arrival_of(
                problem,
                side,
                self.builder.value(self._bound[operand].value),
                self._bound[operand].mapping,
            )
            for side, operand in sides.items()
            if operand not in self._pending
        }

    def _gelu(self, operand: ValueId, name: str) -> BoundValue:
        bound = self._read(operand)
        return self._elementwise(Elementary.GELU, bound, (), operand, name)

    def _add(self, node: Node, name: str) -> BoundValue:
        """The operand with the result's shape stays where it is; the other comes to it."""
        shape = self._block.values[node.results[0]].type.shape
        whole = [operand for operand in node.operands if self._block.values[operand].type.shape == shape]
        # What has been computed is better left in place than what has yet to be declared.
        whole.sort(key=self.is_pending)
        if not whole:
            raise Unsupported(
                "both operands of an addition are repeated",
                stage=STAGE,
                subject=name,
                next_step="add one of them to a value of the result's shape first",
                nodes=(name,),
            )
        base = whole[0]
        other = node.operands[1] if base == node.operands[0] else node.operands[0]
        bound = self._read(base)
        if not bound.mapping.is_bijective:
            bound = self._in_rows(bound, name)
        return self._elementwise(Elementary.ADD, bound, (other,), base, name)

    def _elementwise(
        self,
        operation: Elementary,
        base: BoundValue,
        others: Sequence[ValueId],
        operand: ValueId,
        name: str,
    ) -> BoundValue:
        """Element-wise work in the layout of its first operand, or in rows where no kernel works in that."""
        if not base.mapping.is_bijective:
            base = self._in_rows(base, name)

        def attempt(bound: BoundValue) -> BoundValue | str:
            value = self.builder.value(bound.value)
            operands = [bound.value]
            relations: list[Relation] = [Identity(rank=len(value.shape))]
            for other in others:
                brought = self._beside(other, bound, value, name)
                if brought is None:
                    return "the layout has no place for the other operand"
                operands.append(brought)
                relations.append(broadcast_relation(self.builder.value(brought).shape, value.shape))
            refusal = self._refusal(Elementwise(operation=operation), operands, relations, value)
            if refusal is not None:
                return refusal
            is_own = bound is not base or self._is_last_reader(operand, bound.value)
            result = self.builder.compute(
                Elementwise(operation=operation),
                operands,
                relations,
                shape=value.shape,
                tensor_format=value.format,
                owners=value.owners,
                aliases=(StorageAlias(result=0, operand=0),) if is_own else (),
                node=name,
            )
            return BoundValue(value=result, mapping=bound.mapping)

        return self._there_or_in_rows(base, name, f"computes {operation.value} of", attempt)

    def _there_or_in_rows(
        self, bound: BoundValue, name: str, what: str, attempt: Callable[[BoundValue], BoundValue | str]
    ) -> BoundValue:
        """Work where its operand is, or in rows where no kernel does it there.

        Args:
            bound: the operand.
            name: of the node.
            what: would be done with it.
            attempt: appends the work where its operand is; or appends no computation and says why not.

        Raises:
            Unsupported: neither is possible.
        """
        made = attempt(bound)
        if isinstance(made, str):
            made = attempt(self._in_rows(bound, name))
        if isinstance(made, str):
            raise Unsupported(
                f"no kernel {what} {list(bound.shape)} in any layout that is tried: {made}",
                stage=STAGE,
                subject=name,
                next_step="give this operation extents or a broadcast that a kernel takes",
                nodes=(name,),
            )
        return made

    def _beside(self, other: ValueId, base: BoundValue, value: Value, name: str) -> MidValueId | None:
        """An operand on the tiles of another's value, in that value's coordinates; None if it cannot be."""
        type_ = self._block.values[other].type
        if type_.shape == base.shape:
            wanted = Home(
                shape=value.shape,
                format=dataclasses.replace(value.format, precision=type_.precision),
                owners=value.owners,
                mapping=base.mapping,
            )
        else:
            if not base.mapping.is_identity and not _keeps_last_axis(base.mapping, type_.shape):
                return None
            tensor_format = beside(value.format, len(value.shape), type_.shape, type_.precision)
            if tensor_format is None:
                return None
            wanted = Home(
                shape=type_.shape,
                format=tensor_format,
                owners=value.owners,
                mapping=identity(type_.shape),
            )
        if other in self._pending and wanted.is_in_sequence:
            pending = self._pending[other]
            if not pending.is_input or self._choices.setting.replicate_inputs:
                return self.declare(other, wanted).value
        return self._convert(self._read(other), wanted, name)

    def _convert(self, bound: BoundValue, wanted: Home, name: str) -> MidValueId:
        """A value in a layout: itself where it is in it, else a copy."""
        value = self.builder.value(bound.value)
        mapping = compose(_inverse(wanted.mapping), bound.mapping)
        if isinstance(mapping, NotRepresentable):
            return self._convert(self._in_rows(bound, name), wanted, name)
        is_there = (value.shape, value.format, value.owners) == (wanted.shape, wanted.format, wanted.owners)
        if is_there and mapping.is_identity:
            return bound.value
        return self.builder.copy(
            bound.value, tensor_format=wanted.format, owners=wanted.owners, mapping=mapping, node=name
        )

    def _cast(self, node: Node, name: str) -> BoundValue:
        """Where the operand is, or in rows where no kernel casts it there."""
        target = self._block.values[node.results[0]].type.precision
        bound = self._read(node.operands[0])
        source = self.builder.value(bound.value).format.precision
        if source == target:
            return bound

        def attempt(base: BoundValue) -> BoundValue | str:
            value = self.builder.value(base.value)
            tensor_format = dataclasses.replace(value.format, precision=target)
            result = Value(name="result", shape=value.shape, format=tensor_format, owners=value.owners)
            relations: list[Relation] = [Identity(rank=len(value.shape))]
            refusal = self._refusal(CastWork(), [base.value], relations, result)
            if refusal is not None:
                return refusal
            made = self.builder.compute(
                CastWork(),
                [base.value],
                relations,
                shape=value.shape,
                tensor_format=tensor_format,
                owners=value.owners,
                node=name,
            )
            return BoundValue(value=made, mapping=base.mapping)

        return self._there_or_in_rows(bound, name, "casts", attempt)

    def _concatenation(self, node: Node, operation: Concat, name: str) -> BoundValue:
        type_ = self._block.values[node.results[0]].type
        bounds = [self._read(operand) for operand in node.operands]
        parts: list[CopyPart] = []
        for piece, bound in zip(pieces(operation, [bound.shape for bound in bounds]), bounds, strict=True):
            mapping = compose(piece.mapping, bound.mapping)
            if isinstance(mapping, NotRepresentable):
                bound = self._in_rows(bound, name)
                mapping = piece.mapping
            parts.append(CopyPart(source=bound.value, region=piece.destination, mapping=mapping))
        home = self._rows(type_)
        made = self.builder.copy_parts(
            parts, shape=type_.shape, tensor_format=home.format, owners=home.owners, node=name
        )
        return BoundValue(value=made, mapping=identity(type_.shape))

    def _in_rows(self, bound: BoundValue, name: str) -> BoundValue:
        """A value carried out: row-major, rows over tiles."""
        precision = self.builder.value(bound.value).format.precision
        made = self.builder.copy(
            bound.value,
            tensor_format=row_format(bound.shape, precision, self._tile_count),
            owners=OwnerMap(tile_count=self._tile_count),
            mapping=bound.mapping,
            node=name,
        )
        return BoundValue(value=made, mapping=identity(bound.shape))

    # Repeat

    def _repeat(self, node: Node, repeat: Repeat, name: str) -> tuple[BoundValue, ...]:
        bindings = repeat.bindings(node.operands)
        carried = repeat.body.arguments[: repeat.carried]
        first, _ = self._body(repeat, bindings.invariants, name, homes=None)
        homes = [first.natural_home(value) for value in repeat.body.results]
        walk, body = self._body(repeat, bindings.invariants, name, homes=homes)
        inner = [walk.home_of(argument) for argument in repeat.body.arguments]
        outer_carried = [
            self._outside(value, home, name)
            for value, home in zip(bindings.carried, inner[: repeat.carried], strict=True)
        ]
        kinds = repeat.carried + repeat.invariants
        outer_invariants = [
            self._outside(value, home, name)
            for value, home in zip(bindings.invariants, inner[repeat.carried : kinds], strict=True)
        ]
        sequences = [
            [self._outside(member, home, name) for member in members]
            for members, home in zip(bindings.sequences, inner[kinds:], strict=True)
        ]
        results = self.builder.repeat(
            repeat.count,
            carried=outer_carried,
            invariants=outer_invariants,
            sequences=sequences,
            body=body,
            node=name,
        )
        return tuple(
            BoundValue(value=result, mapping=walk.bound(argument).mapping)
            for result, argument in zip(results, carried, strict=True)
        )

    def _body(
        self, repeat: Repeat, invariants: Sequence[ValueId], name: str, *, homes: Sequence[Home] | None
    ) -> tuple["_Walk", MidBlock]:
        """The body, with what it carries in these layouts, or in whatever its readers want first."""
        body = repeat.body
        walk = _Walk(body, self._choices, prefix=f"{name}/")
        for number, argument in enumerate(body.arguments):
            if number < repeat.carried:
                if homes is None:
                    walk.pend(argument, is_input=True)
                else:
                    walk.declare(argument, homes[number])
            elif number < repeat.carried + repeat.invariants:
                outside = invariants[number - repeat.carried]
                if self.is_pending(outside):
                    walk.pend(argument, is_input=self._pending[outside].is_input)
                else:
                    walk.declare(argument, self.home_of(outside))
            else:
                walk.pend(argument, is_input=False)
        walk.nodes()
        results = [
            walk.as_declared(value, argument)
            for value, argument in zip(body.results, body.arguments, strict=False)
        ]
        arguments = [walk.declared(argument) for argument in body.arguments]
        return walk, walk.builder.finish(results, arguments)

    def as_declared(self, value: ValueId, argument: ValueId) -> MidValueId:
        """A value in the layout in which an argument was declared."""
        return self._convert(self._read(value), self.home_of(argument), self._block.values[value].name)

    def natural_home(self, value: ValueId) -> Home:
        """The layout in which a value was made; rows where its elements are not in sequence there."""
        bound = self._read(value)
        made = self.builder.value(bound.value)
        if bound.mapping.is_bijective:
            home = Home(shape=made.shape, format=made.format, owners=made.owners, mapping=bound.mapping)
            if home.is_in_sequence:
                return home
        return self._rows(self._block.values[value].type)

    def _outside(self, value: ValueId, home: Home, name: str) -> MidValueId:
        """What is bound to an argument of a body: declared so, or brought into its layout."""
        if value in self._pending:
            return self.declare(value, home).value
        return self._convert(self._read(value), home, name)

    # Who else reads what

    def _readers(self, value: ValueId) -> int:
        """Operands and results of the block that are a value."""
        return sum(node.operands.count(value) for node in self._block.nodes) + self._block.results.count(
            value
        )

    def _is_last_reader(self, operand: ValueId, number: MidValueId) -> bool:
        """Whether nothing but the present node reads what lies in a value, which is no argument."""
        seen = {value for value, bound in self._bound.items() if bound.value == number}
        if seen & set(self._block.arguments) or operand not in seen:
            return False
        later = [value for node in self._block.nodes[self._position + 1 :] for value in node.operands]
        present = self._block.nodes[self._position].operands.count(operand)
        return present == 1 and not seen & {*later, *self._block.results}

    def _refusal(
        self, work: Work, operands: Sequence[MidValueId], relations: Sequence[Relation], result: Value
    ) -> str | None:
        """Why no kernel computes something on every tile, tried on a block of its own; None when they do."""
        trial = BlockBuilder()
        arguments = [
            trial.argument(dataclasses.replace(self.builder.value(operand), name=f"operand {number}"))
            for number, operand in enumerate(operands)
        ]
        trial.compute(
            work,
            arguments,
            relations,
            shape=result.shape,
            tensor_format=result.format,
            owners=result.owners,
        )
        block = trial.finish(())
        (operation,) = block.operations
        if not isinstance(operation, Compute):
            raise AssertionError("a computation was appended")
        try:
            bindings = bind_all(local_calls(block, operation))
        except ValueError as fault:
            return str(fault)
        return next((binding.reason for binding in bindings if isinstance(binding, Refusal)), None)


def _inverse(mapping: CoordinateMapping) -> CoordinateMapping:
    inverse = mapping.inverse()
    if isinstance(inverse, NotRepresentable):
        raise AssertionError(f"{mapping} is one to one")
    return inverse


def _keeps_last_axis(mapping: CoordinateMapping, shape: Sequence[int]) -> bool:
    """Whether a vector along the last axis of the graph value is one along that of the mid value too."""
    if len(shape) != 1:
        return False
    last = len(mapping.source_shape) - 1
    return (
        mapping.source_shape[last] == shape[0]
        and all(
            digit.axis != last or (digit.stride == 1 and digit.extent == shape[0])
            for digits in mapping.digits
            for digit in digits
        )
        and any(digit.axis == last for digit in mapping.digits[-1])
    )
