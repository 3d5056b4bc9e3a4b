"""The walk over the nodes of a block in their order (PR-20).

For each node: look up what its operands are in mid, take the family's choice, let the family construct it,
bind the results. Views bind, and move nothing (``planner.bound``).

**Arguments** are declared when something reads them first, in the layout that this reader wants: the
parameter of a product where it is multiplied, a bias where it is added, an input once, in pieces that travel
as runs. So no copy is needed for the first reader; others copy. With ``replicate_inputs`` an input, too, is
declared on every tile that reads it first, and the host writes it there.

**Repeat.** A body is walked like any block. What it carries is first walked with whatever layout its first
reader wants, to see what the body makes of it; it is then walked again with that layout carried, so that as a
rule nothing has to be moved at the end of an iteration. Invariants have the layout that they have outside,
unless they are views of a part of something, which are carried out before the Repeat.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never, final

from compiler.errors import Unsupported
from compiler.geometry.compose import compose
from compiler.geometry.mapping import NotRepresentable, identity
from compiler.geometry.precision import F32
from compiler.geometry.relation import Side
from compiler.graph.ir import (
    Add,
    Attention,
    Block,
    Cast,
    Concat,
    Gelu,
    Gemm,
    LayerNorm,
    MergeAxes,
    Node,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    SplitAxis,
    Transpose,
    ValueId,
)
from compiler.graph.rules import product_precision
from compiler.graph.views import pieces
from compiler.mid.ir import Block as MidBlock
from compiler.mid.ir import CopyPart, MidValueId
from compiler.planner import elementwise, gemm
from compiler.planner.bound import BoundValue, Home, read_through
from compiler.planner.bounds import STAGE
from compiler.planner.choices import Setting
from compiler.planner.gemm_arrival import arrival_of
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.scope import Pending, Scope
from compiler.planner.selection import Selection


@final
class Walk:
    """The walk over one block.

    Args:
        block: of the graph.
        setting: of the build.
        selection: chooses for products.
        prefix: of the paths of its nodes.
    """

    def __init__(self, block: Block, setting: Setting, selection: Selection, *, prefix: str) -> None:
        self.scope = Scope(block, setting)
        self._setting = setting
        self._selection = selection
        self._block = block
        self._read = {operand for node in block.nodes for operand in node.operands}
        self._prefix = prefix

    def nodes(self) -> None:
        """Constructs every node of the block."""
        for position, node in enumerate(self._block.nodes):
            self.scope.position = position
            self._construct(node)

    def _construct(self, node: Node) -> None:
        name = self._prefix + self._block.values[node.results[0]].name
        match node.operation:
            case Gemm():
                made = (self._gemm(node, node.operation, name),)
            case Gelu():
                made = (elementwise.gelu(self.scope, node.operands[0], name),)
            case Add():
                is_other = (
                    self._selection.boundary(name) == "other operand"
                    if node.results[0] in self._read
                    else False
                )
                made = (elementwise.add(self.scope, node, name, is_other=is_other),)
            case Cast():
                made = (elementwise.cast(self.scope, node, name),)
            case Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice():
                operand = self.scope.read(node.operands[0])
                (piece,) = pieces(node.operation, [operand.shape])
                made = (
                    read_through(
                        self.scope.builder,
                        operand,
                        piece.mapping,
                        tile_count=self._setting.tile_count,
                        node=name,
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
            self._wait(result, bound)

    def _wait(self, result: ValueId, bound: BoundValue) -> None:
        """Binds a value in the form in which it waits for its readers (PR-20)."""
        self.scope.bind(result, bound)
        if result not in self._read:
            return
        path = self._prefix + self._block.values[result].name
        match self._selection.boundary(path):
            case "as made" | "other operand":
                pass
            case "first product":
                self.scope.moving.add(result)
            case "rows":
                self.scope.bind(result, self.scope.in_rows(bound, path))

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
                if operand in self.scope.pending
                and not self.scope.pending[operand].is_input
                and self.scope.readers(operand) == 1
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
            tile_count=self._setting.tile_count,
            rounding=self._setting.rounding,
        )
        choice = self._selection.of(name, problem, self._arrivals(problem, sides))
        for side, operand in sides.items():
            if operand in self.scope.pending:
                self.scope.declare(
                    operand, self._product_home(problem, choice, side, self.scope.pending[operand])
                )
        for side, operand in sides.items():
            if operand in self.scope.moving:
                self.scope.moving.remove(operand)
                self._move(problem, choice, side, operand, name)
        made = gemm.construct(
            self.scope.builder,
            choice,
            problem,
            self.scope.read(left),
            self.scope.read(right),
            cast_before_copies=self._selection.options.cast_before_copies,
            spreads_preparation=self._selection.options.preparation == "spread",
            node=name,
        )
        # Products are made in halves; that of words is declared in words.
        declared = self._block.values[node.results[0]].type.precision
        return elementwise.in_precision(self.scope, made, declared, name)

    def _move(
        self, problem: GemmProblem, choice: GemmChoice, side: Side, operand: ValueId, name: str
    ) -> None:
        """Moves a value into the form in which a product reads it, for later readers too."""
        home = (gemm.input_home if problem.is_cast(side) else gemm.consumer_home)(choice, problem, side)
        moved = self.scope.convert(self.scope.read(operand), home, name)
        self.scope.bind(operand, BoundValue(value=moved, mapping=home.mapping))

    def _product_home(self, problem: GemmProblem, choice: GemmChoice, side: Side, argument: Pending) -> Home:
        """Where an argument is declared that this product reads first.

        What has to be cast is stored once, though the host may write it to every reader: each element is cast
        by one tile, and the codes are sent.
        """
        is_with_readers = self._setting.replicate_inputs and (
            argument.home is not None or not problem.is_cast(side)
        )
        if problem.parameter is side:
            home = gemm.parameter_home(choice, problem)
        elif argument.is_input and is_with_readers:
            home = gemm.consumer_home(choice, problem, side)
        else:
            home = gemm.input_home(choice, problem, side)
        return home if home.is_for_host else self.scope.rows(argument.type)

    def _arrivals(self, problem: GemmProblem, sides: Mapping[Side, ValueId]) -> dict[Side, Arrival]:
        """In which pieces the operands lie that are no arguments any more."""
        return {
            side: arrival_of(
                problem,
                side,
                self.scope.builder.value(self.scope.read(operand).value),
                self.scope.read(operand).mapping,
            )
            for side, operand in sides.items()
            if operand not in self.scope.pending
        }

    def _concatenation(self, node: Node, operation: Concat, name: str) -> BoundValue:
        type_ = self._block.values[node.results[0]].type
        bounds = [self.scope.read(operand) for operand in node.operands]
        parts: list[CopyPart] = []
        for piece, bound in zip(pieces(operation, [bound.shape for bound in bounds]), bounds, strict=True):
            mapping = compose(piece.mapping, bound.mapping)
            if isinstance(mapping, NotRepresentable):
                bound = self.scope.in_rows(bound, name)
                mapping = piece.mapping
            parts.append(CopyPart(source=bound.value, region=piece.destination, mapping=mapping))
        home = self.scope.rows(type_)
        made = self.scope.builder.copy_parts(
            parts, shape=type_.shape, tensor_format=home.format, owners=home.owners, node=name
        )
        return BoundValue(value=made, mapping=identity(type_.shape))

    # Repeat

    def _repeat(self, node: Node, repeat: Repeat, name: str) -> tuple[BoundValue, ...]:
        bindings = repeat.bindings(node.operands)
        carried = repeat.body.arguments[: repeat.carried]
        first, _ = self._body(repeat, bindings.invariants, name, homes=None)
        homes = [first.scope.natural_home(value) for value in repeat.body.results]
        walk, body = self._body(repeat, bindings.invariants, name, homes=homes)
        inner = [walk.scope.home_of(argument) for argument in repeat.body.arguments]
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
        results = self.scope.builder.repeat(
            repeat.count,
            carried=outer_carried,
            invariants=outer_invariants,
            sequences=sequences,
            body=body,
            node=name,
        )
        return tuple(
            BoundValue(value=result, mapping=walk.scope.read(argument).mapping)
            for result, argument in zip(results, carried, strict=True)
        )

    def _body(
        self, repeat: Repeat, invariants: Sequence[ValueId], name: str, *, homes: Sequence[Home] | None
    ) -> tuple["Walk", MidBlock]:
        """The body, with what it carries in these layouts, or in whatever its readers want first."""
        body = repeat.body
        walk = Walk(body, self._setting, self._selection, prefix=f"{name}/")
        for number, argument in enumerate(body.arguments):
            if number < repeat.carried:
                if homes is None:
                    walk.scope.pend(argument, is_input=True)
                else:
                    walk.scope.declare(argument, homes[number])
            elif number < repeat.carried + repeat.invariants:
                outside = invariants[number - repeat.carried]
                if outside in self.scope.pending:
                    pending = self.scope.pending[outside]
                    walk.scope.pend(argument, is_input=pending.is_input, home=pending.home)
                else:
                    walk.scope.declare(argument, self.scope.home_of(outside))
            else:
                walk.scope.pend(argument, is_input=False)
        walk.nodes()
        results = [
            walk.scope.as_declared(value, argument)
            for value, argument in zip(body.results, body.arguments, strict=False)
        ]
        arguments = [walk.scope.declared(argument) for argument in body.arguments]
        return walk, walk.scope.builder.finish(results, arguments)

    def _outside(self, value: ValueId, home: Home, name: str) -> MidValueId:
        """What is bound to an argument of a body: declared so, or brought into its layout."""
        if value in self.scope.pending:
            return self.scope.declare(value, home).value
        return self.scope.convert(self.scope.read(value), home, name)
