"""From a graph and a recipe to a whole-device program (PR-12).

``planner.walk`` constructs every node (PR-20), ``planner.rewriting`` improves what was constructed. Bounds
come first: what no layout can hold is refused before anything is built (``planner.bounds``).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InvalidInput, Unsupported, few_of
from compiler.estimate.mid import MidCost
from compiler.estimate.prices import DATA_BUDGET, INTERLEAVED_BUDGET
from compiler.graph.ir import Block, Gemm, Graph, Repeat, ValueId
from compiler.mid.build import program
from compiler.mid.ir import MidProgram
from compiler.mid.order import in_definition_order
from compiler.mid.rewrites.blocks import everywhere, without_unread
from compiler.planner.bound import Home
from compiler.planner.boundaries import boundaries_of
from compiler.planner.bounds import STAGE, check_bounds
from compiler.planner.choices import Setting
from compiler.planner.fronts import Fronts, fronts_of
from compiler.planner.gemm_candidates import GemmCandidate
from compiler.planner.homes import home_of, stored_once
from compiler.planner.recipe import InputHome, Recipe, StoredOnce
from compiler.planner.rewriting import Tried, improve
from compiler.planner.selection import Selection
from compiler.planner.supported import (
    nested_repeats,
    unmade_outputs,
    unplanned_nodes,
    unplanned_operations,
)
from compiler.planner.walk import Walk

MOST_WALKS: Final = 4
"""Walks after which what was chosen last is taken, should it change with each."""


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


def build_candidate(graph: Graph, setting: Setting, recipe: Recipe, fronts: Fronts = fronts_of) -> Candidate:
    """The program of a well-formed graph by a recipe.

    What is constructed goes through the rewrites of ``planner.rewriting``. Where the best choices together
    need more memory than a tile has, the choices that the recipe leaves open are taken again, smallest first.

    Args:
        graph: the graph.
        setting: of the build.
        recipe: choices that are made; the others are the planner's.
        fronts: gives the fronts of a product.

    Raises:
        Unsupported: operations without constructor, all of them named; outputs that no node makes; or a
            choice that does not suit its product, or a home its input.
        InvalidInput: the recipe is one for another graph.
        DoesNotFit: no layout could hold the model.
    """
    check_supported(graph)
    check_recipe(graph, recipe)
    check_bounds(graph, setting.tile_count)
    candidate = _built(graph, setting, recipe, fronts, prefers_small=False)
    cost = candidate.cost
    is_open = not candidate.recipe.gemms.keys() <= recipe.gemms.keys()
    if is_open and (cost.bytes > DATA_BUDGET or cost.interleaved_bytes > INTERLEAVED_BUDGET):
        smaller = _built(graph, setting, recipe, fronts, prefers_small=True)
        if smaller.cost.bytes < cost.bytes:
            return smaller
    return candidate


def check_supported(graph: Graph) -> None:
    """Refuse operations without constructor, Repeats inside of others, and outputs that no node makes.

    Raises:
        Unsupported: there are some; all nodes, or all outputs, are named.
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
    nested = nested_repeats(graph)
    if nested:
        raise Unsupported(
            f"a Repeat inside of another one: {few_of(nested)}",
            stage=STAGE,
            subject=graph.name,
            next_step="write out the iterations of the inner one",
            nodes=nested,
        )
    unmade = unmade_outputs(graph)
    if unmade:
        raise Unsupported(
            f"an input or parameter is itself an output: {few_of(unmade)}",
            stage=STAGE,
            subject=graph.name,
            next_step="make the output a reshape of it to its own shape, which has a name of its own",
            nodes=unmade,
        )


def check_recipe(graph: Graph, recipe: Recipe) -> None:
    """Refuse a recipe for another graph.

    Raises:
        InvalidInput: it names products, values or inputs that are none of the graph's, or a form in which a
            value cannot wait.
    """
    boundaries = boundaries_of(graph)
    inputs = {graph.block.values[argument].name for argument in graph.inputs}
    for what, named, known in (
        ("products", recipe.gemms, set(_products(graph.block, ""))),
        ("values between nodes", recipe.boundaries, boundaries.keys()),
        ("inputs", recipe.inputs, inputs),
    ):
        unknown = _printable(path for path in sorted(named) if path not in known)
        if unknown:
            raise _other_graph(
                graph, f"makes choices for {what} that the graph does not have: {few_of(unknown)}", unknown
            )
    wrong = _printable(
        path for path, form in sorted(recipe.boundaries.items()) if form not in boundaries[path]
    )
    if wrong:
        raise _other_graph(graph, f"lets values wait in forms that they do not have: {few_of(wrong)}", wrong)


def _printable(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path if path.isprintable() else ascii(path) for path in paths)


def _other_graph(graph: Graph, what: str, nodes: tuple[str, ...]) -> InvalidInput:
    return InvalidInput(
        f"the recipe {what}",
        stage=STAGE,
        subject=graph.name,
        next_step="build without the recipe, and keep the one that the build writes",
        nodes=nodes,
    )


def _products(block: Block, prefix: str) -> Iterator[str]:
    """Paths of the products of a block, bodies included."""
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        if isinstance(node.operation, Gemm):
            yield path
        elif isinstance(node.operation, Repeat):
            yield from _products(node.operation.body, f"{path}/")


def _built(
    graph: Graph, setting: Setting, recipe: Recipe, fronts: Fronts, *, prefers_small: bool
) -> Candidate:
    """The program of a recipe, and what it could have been.

    A choice may depend on others that are made later: a product on where a Repeat carries what it reads, a
    Repeat on where a product has an input. So once a walk has chosen, the block is walked again by what was
    chosen, until that is what it is walked by: then the recipe that is kept gives the same program.
    """
    choices = Selection(recipe=recipe, prefers_small=prefers_small, fronts=fronts)
    made, chosen = _walked(graph, setting, recipe, choices)
    for _ in range(MOST_WALKS - 1):
        if chosen == recipe:
            break
        recipe = chosen
        made, chosen = _walked(graph, setting, recipe, choices.settled(recipe))
    # Layouts that were tried in vain have left copies that nothing reads.
    improved = improve(everywhere(made, without_unread), recipe.options)
    return Candidate(
        program=improved.program,
        recipe=chosen,
        cost=improved.cost,
        tried=improved.tried,
        alternatives=choices.alternatives,
        dropped=choices.dropped,
    )


def _walked(graph: Graph, setting: Setting, recipe: Recipe, choices: Selection) -> tuple[MidProgram, Recipe]:
    """The program as one walk constructs it, and the recipe that names all choices of the walk."""
    walk = Walk(graph.block, setting, choices, prefix="")
    scope = walk.scope
    for number, argument in enumerate(graph.block.arguments):
        home = recipe.inputs.get(graph.block.values[argument].name)
        if number < graph.input_count and isinstance(home, StoredOnce):
            scope.declare(argument, _fixed(graph, argument, home, setting))
        else:
            wanted = None if home is None else "first reader"
            scope.pend(argument, is_input=number < graph.input_count, home=wanted)
    walk.nodes()
    results = [scope.result(value) for value in graph.outputs]
    arguments = [scope.declared(argument) for argument in graph.block.arguments]
    made = program(
        in_definition_order(scope.builder.finish(results, arguments)),
        name=graph.name,
        tile_count=setting.tile_count,
        input_count=graph.input_count,
        outputs=[graph.block.values[value].name for value in graph.outputs],
    )
    inputs: dict[str, InputHome] = {}
    for argument in graph.inputs:
        value = graph.block.values[argument]
        inputs[value.name] = stored_once(scope.home_of(argument), value.type) or "first reader"
    return made, Recipe(
        gemms=dict(sorted(choices.chosen.items())),
        boundaries=dict(sorted(choices.boundaries.items())),
        inputs=dict(sorted(inputs.items())),
        options=recipe.options,
    )


def _fixed(graph: Graph, argument: ValueId, stored: StoredOnce, setting: Setting) -> Home:
    """The layout in which a recipe stores an input.

    Raises:
        Unsupported: the input cannot lie so.
    """
    value = graph.block.values[argument]
    try:
        return home_of(stored, value.type, setting.tile_count)
    except ValueError as fault:
        raise Unsupported(
            f"the recipe's home does not suit this input: {fault}",
            stage=STAGE,
            subject=value.name,
            next_step="leave this input out of the recipe",
            nodes=(value.name,),
        ) from fault
