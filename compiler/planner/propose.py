"""The neighbourhood of a candidate: recipes that differ from its own in one respect (PR-13).

* *Products, one at a time*: other choices for a product: the fastest of each *class* that neighbours can tell
  (orientation, residency), then the fastest of each other *kind* (class, parts of K,
  directions of scattering), then whatever is fastest.
* *Products in pairs*: where one product is computed from the result of another (through views, casts,
  element-wise work, or into, out of and around a Repeat), both at once: what suits the one layout between
  them may need both.
* *Grids turned round*: each product with its cells numbered the other way. Which tiles are neighbours changes
  little that estimates see, so that the whole program's decides, or its scheduled cycles.
* *Boundaries*: values that several nodes read, moved once for all of them; sums where their other operand is.
  And jointly with another choice of the product that makes a value: its result in rows too, since what comes
  transposed is turned once, and not by each reader.
* *Homes*: an input where its first reader now wants it. Other choices for a product that reads an input are
  proposed with the home as it is, and with the home that suits them.
* *Options*: every option of the whole program in each of its other values, and with it also donation the
  other way, where the graph or the program has anything that the option is about.

A recipe is proposed once. Estimates cannot tell recipes that differ in numbers of tiles alone
(``only_moves_tiles``): those are for scheduled cycles to judge. Nothing is built, priced or remembered here:
whether a proposal was visited before, and what it costs, is the business of whoever searches.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from compiler.geometry.order import RowMajor
from compiler.geometry.precision import Precision
from compiler.graph.ir import Block, Cast, Gemm, Graph, Repeat, ValueId
from compiler.graph.rules import product_precision
from compiler.mid.ir import Block as MidBlock
from compiler.mid.ir import Compute, Copy, MidProgram
from compiler.mid.ir import Repeat as MidRepeat
from compiler.mid.work import Cast as CastWork
from compiler.mid.work import Sum, Work
from compiler.planner.boundaries import boundaries_of, shared_values
from compiler.planner.gemm_candidates import GemmCandidate
from compiler.planner.gemm_choice import GemmChoice, GridOrder
from compiler.planner.mappings import STRIDE
from compiler.planner.recipe import (
    PACKING_ROWS,
    PREPARATIONS,
    TILE_MAPPINGS,
    Boundary,
    Options,
    Recipe,
)

ALTERNATIVES: Final = 4
"""Other choices of a product that are proposed by themselves."""
JOINT: Final = 2
"""Other choices of each of two products that are proposed together."""
CLEARLY: Final = 0.9
"""Of a choice's bytes: what another has to have fewer of to be smaller."""
LONGER: Final = (2, 4)
"""How many blocks of K become one where a program finds no place."""
GROUPS: Final = (0, 2, 3)
"""Sizes of groups of sums that are proposed."""


class Planned(Protocol):
    """What is read of a candidate, just built or as it is kept."""

    @property
    def program(self) -> MidProgram:
        """The program."""
        ...

    @property
    def recipe(self) -> Recipe:
        """All choices that lead to it."""
        ...

    @property
    def alternatives(self) -> Mapping[str, Sequence[GemmCandidate]]:
        """By path of a product's node, other choices for it."""
        ...


def propose(graph: Graph, candidate: Planned) -> tuple[Recipe, ...]:
    """Recipes near a candidate's own, none twice, in a fixed order.

    Args:
        graph: what the candidate was built from.
        candidate: the candidate; its recipe is normalized.
    """
    recipe = candidate.recipe
    others = {
        path: alternatives_of(recipe.gemms[path], found) for path, found in candidate.alternatives.items()
    }
    reads = inputs_of_products(graph)
    proposed = [
        _opened(_with(recipe, {path: choice}), reads[path])
        for path, choices in others.items()
        for choice in choices[:ALTERNATIVES]
    ]
    proposed += [
        _with(recipe, {path: choice})
        for path, choices in others.items()
        if reads[path]
        for choice in choices[:JOINT]
    ]
    proposed += [
        _opened(_with(recipe, {producer: one, consumer: other}), (*reads[producer], *reads[consumer]))
        for producer, consumer in products_in_turn(graph)
        for one in others[producer][:JOINT]
        for other in others[consumer][:JOINT]
    ]
    proposed += [
        _with(recipe, {path: turned_round(choice)})
        for path, choice in recipe.gemms.items()
        if choice.row_parts > 1 and choice.column_parts > 1
    ]
    proposed += _other_boundaries(recipe, graph, others)
    proposed += [
        recipe.model_copy(update={"inputs": {**recipe.inputs, name: "first reader"}})
        for name, home in recipe.inputs.items()
        if home != "first reader"
    ]
    proposed += [
        recipe.model_copy(update={"options": options})
        for options in _other_options(recipe.options, graph, candidate.program)
    ]
    distinct = {proposal.to_json(): proposal for proposal in proposed}
    return tuple(proposal for text, proposal in distinct.items() if text != recipe.to_json())


def smaller(candidate: Planned) -> tuple[Recipe, ...]:
    """Recipes that need less memory than a candidate's own, for one that finds no place.

    For each product the fastest of its other choices with clearly fewer bytes, or as many of which clearly
    fewer have to be interleaved; then the smallest choice of every product at once. Where a product brings
    its operands in blocks of K, longer blocks too: fewer phases leave more room beside their code and rows.
    Whether a program is smaller as a whole is for whoever builds it to see.
    """
    recipe = candidate.recipe
    proposed: list[Recipe] = []
    smallest: dict[str, GemmChoice] = {}
    opened = recipe.model_copy(update={"inputs": {}})  # the host's interface is not fixed before one fits
    for path, found in candidate.alternatives.items():
        present = recipe.gemms[path]
        proposed += [_with(recipe, {path: choice}) for choice in _with_longer_blocks(present)]
        own = next((each for each in found if each.choice == present), None)
        if own is None:
            continue  # a recipe's choice that is on no front: nothing is known of it
        saving = [
            each
            for each in found
            if _bytes(each) < CLEARLY * _bytes(own)
            or (_bytes(each) <= _bytes(own) and each.interleaved_bytes < CLEARLY * own.interleaved_bytes)
        ]
        ranked = sorted(saving, key=lambda each: (each.cycles, _bytes(each), each.choice.model_dump_json()))
        proposed += [_with(opened, {path: each.choice}) for each in ranked[:ALTERNATIVES]]
        smallest[path] = min(found, key=lambda each: (_bytes(each), each.cycles)).choice
    proposed.append(_with(opened, smallest))
    distinct = {proposal.to_json(): proposal for proposal in proposed}
    return tuple(proposal for text, proposal in distinct.items() if text != recipe.to_json())


def _with_longer_blocks(choice: GemmChoice) -> tuple[GemmChoice, ...]:
    """A choice with blocks of K that are longer, if it has any."""
    if choice.inner_block is None:
        return ()
    return tuple(
        GemmChoice.model_validate(choice.model_dump() | {"inner_block": factor * choice.inner_block})
        for factor in LONGER
    )


def _bytes(choice: GemmCandidate) -> int:
    return choice.standard_bytes + choice.interleaved_bytes


def alternatives_of(present: GemmChoice, found: Sequence[GemmCandidate]) -> tuple[GemmChoice, ...]:
    """Other choices of a product, the most telling first.

    Args:
        present: the choice that is made.
        found: alternatives, with their prices.
    """
    ranked = sorted(
        found,
        key=lambda each: (
            each.cycles,
            each.standard_bytes + each.interleaved_bytes,
            each.row_words,
            each.choice.model_dump_json(),
        ),
    )
    left = [each.choice for each in ranked if each.choice != present]
    found_so_far: list[GemmChoice] = []
    for kind, seen in ((_class, set[Hashable]()), (_kind, {_kind(present)})):
        for choice in left:
            if choice not in found_so_far and kind(choice) not in seen:
                seen.add(kind(choice))
                found_so_far.append(choice)
    return tuple(dict.fromkeys([*found_so_far, *left]))


def _class(choice: GemmChoice) -> Hashable:
    """What neighbours can tell."""
    return (choice.orientation, choice.parameter_residency)


def _kind(choice: GemmChoice) -> Hashable:
    """And where the time goes."""
    return (_class(choice), choice.inner_parts, choice.scatter_rows > 1, choice.scatter_columns > 1)


def _with(recipe: Recipe, changed: dict[str, GemmChoice]) -> Recipe:
    return recipe.model_copy(update={"gemms": {**recipe.gemms, **changed}})


def _opened(recipe: Recipe, inputs: Sequence[str]) -> Recipe:
    """A recipe that leaves it to the planner where some inputs lie."""
    kept = {name: home for name, home in recipe.inputs.items() if name not in inputs}
    return recipe.model_copy(update={"inputs": kept})


def turned_round(choice: GemmChoice) -> GemmChoice:
    """The same way of computing a product, its cells numbered the other way."""
    is_by_columns = choice.grid_order is GridOrder.COLUMNS_FAST
    return choice.model_copy(
        update={"grid_order": GridOrder.ROWS_FAST if is_by_columns else GridOrder.COLUMNS_FAST}
    )


def only_moves_tiles(before: Recipe, after: Recipe) -> bool:
    """Whether two recipes differ in nothing but which tile has which number."""

    def plain(recipe: Recipe) -> Recipe:
        return recipe.model_copy(
            update={
                "gemms": {
                    path: choice.model_copy(update={"grid_order": GridOrder.COLUMNS_FAST})
                    for path, choice in recipe.gemms.items()
                },
                "options": recipe.options.model_copy(update={"tile_mapping": "identity"}),
            }
        )

    return before != after and plain(before) == plain(after)


def inputs_of_products(graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """By path of a product, the names of the inputs that are its operands, in bodies as invariants too."""
    found: dict[str, tuple[str, ...]] = {}
    names = {argument: graph.block.values[argument].name for argument in graph.inputs}
    _read_inputs(graph.block, "", names, found)
    return found


def _read_inputs(
    block: Block, prefix: str, names: Mapping[ValueId, str], found: dict[str, tuple[str, ...]]
) -> None:
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        match node.operation:
            case Gemm():
                found[path] = tuple(dict.fromkeys(names[one] for one in node.operands if one in names))
            case Repeat() as repeat:
                arguments = repeat.body.arguments[repeat.carried : repeat.carried + repeat.invariants]
                invariants = zip(arguments, repeat.bindings(node.operands).invariants, strict=True)
                inner = {argument: names[value] for argument, value in invariants if value in names}
                _read_inputs(repeat.body, f"{path}/", inner, found)
            case _:
                pass


def _other_boundaries(
    recipe: Recipe, graph: Graph, others: Mapping[str, Sequence[GemmChoice]]
) -> Iterator[Recipe]:
    """Values that wait in another form, by themselves and with another choice of what makes them."""

    def waiting(recipe: Recipe, path: str, form: Boundary) -> Recipe:
        return recipe.model_copy(update={"boundaries": {**recipe.boundaries, path: form}})

    shared = shared_values(graph)
    for path, forms in boundaries_of(graph).items():
        present = recipe.boundaries[path]
        for form in forms:
            if form != present and (form in ("as made", "other operand") or path in shared):
                yield waiting(recipe, path, form)
        for choice in others.get(path, ())[:JOINT]:
            for form in forms:
                if form != present and (form == "rows" or path in shared):
                    yield waiting(_with(recipe, {path: choice}), path, form)


def products_in_turn(graph: Graph) -> tuple[tuple[str, str], ...]:
    """Pairs of products (path, path), the second computed from the first with no other between, in order."""
    pairs: list[tuple[str, str]] = []
    _walk(graph.block, "", [()] * len(graph.block.arguments), pairs)
    return tuple(dict.fromkeys(pair for pair in pairs if pair[0] != pair[1]))


def _walk(
    block: Block, prefix: str, arguments: Sequence[tuple[str, ...]], pairs: list[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """Appends the pairs of a block; gives the products that each of its results comes from.

    Args:
        block: the block.
        prefix: of the paths of its nodes.
        arguments: the products that each of its arguments comes from.
        pairs: to append to.
    """
    origins: dict[ValueId, tuple[str, ...]] = dict(zip(block.arguments, arguments, strict=True))
    for node in block.nodes:
        path = prefix + block.values[node.results[0]].name
        read = [origins[operand] for operand in node.operands]
        every = tuple(dict.fromkeys(product for products in read for product in products))
        match node.operation:
            case Gemm():
                pairs += [(product, path) for product in every]
                made = [(path,)]
            case Repeat() as repeat:
                made = _through_repeat(repeat, path, read, pairs)
            case _:
                made = [every] * len(node.results)
        origins.update(zip(node.results, made, strict=True))
    return [origins[result] for result in block.results]


def _through_repeat(
    repeat: Repeat, path: str, read: Sequence[tuple[str, ...]], pairs: list[tuple[str, str]]
) -> list[tuple[str, ...]]:
    """What comes out of a Repeat: in the second iteration, the body reads what the first one carried on."""
    bindings = repeat.bindings(read)
    members = [
        tuple(dict.fromkeys(product for member in sequence for product in member))
        for sequence in bindings.sequences
    ]
    carried = list(bindings.carried)
    for _ in range(min(2, repeat.count)):
        carried = _walk(repeat.body, f"{path}/", [*carried, *bindings.invariants, *members], pairs)
    return carried


def _other_options(options: Options, graph: Graph, program: MidProgram) -> Iterator[Options]:
    """Options that differ in one value, and those with donation turned as well."""
    blocks = list(_blocks(program.block))
    has_casts = any(isinstance(work, CastWork) for block in blocks for work in _works(block))
    turned: list[Options] = []
    if _mixes_precisions(graph.block):
        turned.append(options.model_copy(update={"cast_before_copies": not options.cast_before_copies}))
    if any(map(_packs, blocks)):
        turned += [
            options.model_copy(update={"packing_rows": rows})
            for rows in PACKING_ROWS
            if rows != options.packing_rows
        ]
    if any(sum(isinstance(work, Sum) for work in _works(block)) > 1 for block in blocks):
        turned += [
            options.model_copy(update={"parallel_reductions": most})
            for most in GROUPS
            if most != options.parallel_reductions
        ]
    if has_casts or any(map(_packs, blocks)):
        turned += [
            options.model_copy(update={"preparation": who})
            for who in PREPARATIONS
            if who != options.preparation
        ]
    donation = {"reuse_cast_inputs": not options.reuse_cast_inputs}
    if has_casts:
        yield options.model_copy(update=donation)
    yield from turned
    if has_casts:
        for each in turned:
            yield each.model_copy(update=donation)
    for mapping in TILE_MAPPINGS:
        if mapping != options.tile_mapping and program.tile_count > STRIDE:
            yield options.model_copy(update={"tile_mapping": mapping})


def _blocks(block: MidBlock) -> Iterator[MidBlock]:
    yield block
    for operation in block.operations:
        if isinstance(operation, MidRepeat):
            yield from _blocks(operation.body)


def _works(block: MidBlock) -> Iterator[Work]:
    for operation in block.operations:
        if isinstance(operation, Compute):
            yield operation.work


def _packs(block: MidBlock) -> bool:
    """Whether a copy takes rows to panels."""
    orders = [
        (block.value(part.source).format.layout.order, block.value(operation.result).format.layout.order)
        for operation in block.operations
        if isinstance(operation, Copy)
        for part in operation.parts
    ]
    return any(source == RowMajor() != result for source, result in orders)


def _mixes_precisions(block: Block) -> bool:
    """Whether anything is cast: by a node, or by a product of operands in other precisions."""
    for node in block.nodes:
        match node.operation:
            case Cast():
                return True
            case Repeat(body=body):
                if _mixes_precisions(body):
                    return True
            case Gemm(precision=fixed):
                types: list[Precision] = [block.values[operand].type.precision for operand in node.operands]
                one, other = (block.values[operand].type for operand in node.operands)
                if any(each != product_precision(fixed, one, other) for each in types):
                    return True
            case _:
                pass
    return False
