"""What a well-formed graph is. This docstring is the definition.

**Form.** Every field holds what its annotation says (``form``); integers have at most 18 digits. Where one
does not, nothing else is said.

**Values.** Every value of a block is defined exactly once: it is an argument, or a result of one node. A
name is not empty, can be printed, has at most 1,000 characters, and belongs to one value of its block. A
value has 1 to 64 axes, at least one element on each, and less than 10^18 elements.

**Nodes.** Every operand is defined before its node: by an argument or by a node further up; nothing defines
itself, directly or through the binding of a Repeat. The number of operands, their types and the attributes of
the operation obey ``rules``, and the declared types of results are those that the rules give: epsilons and
scales are positive finite numbers of binary32, axes exist, extents agree, precisions are never converted
silently.

**Repeat.** It runs 1 to 2^31 - 1 times and carries at least one value; it has an operand for every argument
of its body, and one for each iteration of a sequence. What is bound to an argument, and what replaces a
carried one, has its type. The body is a block like any other; names in it may repeat those outside. At most
50 repeats are inside one another.

**Graph.** Its name is like that of a value. At least one output, none listed twice. There is a fill or None
for each input and parameter; the numbers of a fill are finite, deviations not negative.

Not required: that every value is used. Cost: linear in values, nodes and operands.
"""

import math
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, assert_never, final

from compiler.graph.faults import Fault, refusal
from compiler.graph.form import MOST_NESTED, misfits
from compiler.graph.ir import (
    Block,
    Constant,
    Fill,
    Graph,
    Node,
    Normal,
    Repeat,
    Value,
    ValueId,
)
from compiler.graph.rules import name_of, result_types, type_fault

MOST_CHARACTERS: Final = 1000
"""Of a name; it is part of messages."""


def verify(graph: Graph, *, reported: AbstractSet[str] = frozenset()) -> tuple[Fault, ...]:
    """All faults of a graph; none when it is well formed.

    Args:
        graph: the graph.
        reported: values whose missing definition is reported already, by their names as in faults: a reader
            of text could not make a node of what it found.
    """
    malformed = tuple(
        Fault(subject="the graph", provenance=None, reason=reason, is_node=False)
        for reason in misfits(graph, Graph)
    )
    return malformed or (*_graph_faults(graph), *_block_faults(graph.block, "", 0, reported))


def check(graph: Graph) -> Graph:
    """The graph, if it is well formed.

    Raises:
        InvalidModel: it is not; the message lists all faults.
    """
    faults = verify(graph)
    if faults:
        raise refusal(str(graph.name), faults)
    return graph


def fill_fault(fill: Fill) -> str | None:
    """What is wrong with a fill; None when nothing is."""
    match fill:
        case Normal(sigma=sigma):
            fits = math.isfinite(sigma) and sigma >= 0
            return None if fits else f"a standard deviation of {sigma} does not exist"
        case Constant(value=value):
            return None if math.isfinite(value) else f"the constant {value} is not finite"
        case _:
            assert_never(fill)


def _graph_faults(graph: Graph) -> Iterator[Fault]:
    block = graph.block
    unnameable = _name_fault(graph.name)
    if unnameable is not None:
        yield _about_graph(graph, unnameable)
    if not 0 <= graph.input_count <= len(block.arguments):
        yield _about_graph(graph, f"{graph.input_count} inputs of {len(block.arguments)} arguments")
    if not graph.outputs:
        yield _about_graph(graph, "it has no output")
    if len(graph.fills) != len(block.arguments):
        yield _about_graph(
            graph, f"{len(graph.fills)} fills for {len(block.arguments)} inputs and parameters"
        )
    for argument, fill in zip(block.arguments, graph.fills, strict=False):
        reason = None if fill is None else fill_fault(fill)
        if reason is not None and 0 <= argument < len(block.values):
            value = block.values[argument]
            yield Fault(subject=value.name, provenance=value.provenance, reason=reason)
    seen: set[ValueId] = set()
    for output in graph.outputs:
        if output in seen and 0 <= output < len(block.values):
            value = block.values[output]
            yield Fault(
                subject=value.name, provenance=value.provenance, reason="it is listed twice as an output"
            )
        seen.add(output)


def _name_fault(name: str) -> str | None:
    """What is wrong with a name; None when nothing is."""
    if not name or not name.isprintable():
        return f"the name {name!r} cannot be printed"
    if len(name) > MOST_CHARACTERS:
        return f"a name of {len(name):,} characters is longer than {MOST_CHARACTERS:,}"
    return None


def _about_graph(graph: Graph, reason: str) -> Fault:
    return Fault(subject=graph.name, provenance=None, reason=reason, is_node=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """A block while it is looked at."""

    block: Block
    path: str
    depth: int
    """Repeats around it."""
    definition: Mapping[ValueId, int]
    """Number of the node that defines a value first; -1 for arguments."""

    def exists(self, value: ValueId) -> bool:
        return 0 <= value < len(self.block.values)

    def fault(self, value: Value, reason: str) -> Fault:
        return Fault(subject=self.path + value.name, provenance=value.provenance, reason=reason)

    def node_fault(self, node: Node, reason: str) -> Fault:
        named = next((result for result in node.results if self.exists(result)), None)
        reason = f"{name_of(node.operation)}: {reason}"
        if named is None:
            subject = f"{self.path}a node without results"
            return Fault(subject=subject, provenance=None, reason=reason, is_node=False)
        return self.fault(self.block.values[named], reason)


def _block_faults(block: Block, path: str, depth: int, reported: AbstractSet[str]) -> Iterator[Fault]:
    definition: dict[ValueId, int] = {}
    twice: list[ValueId] = []
    for number, ids in enumerate([block.arguments, *(node.results for node in block.nodes)], start=-1):
        for value in ids:
            if value in definition:
                twice.append(value)
            definition.setdefault(value, number)
    scope = _Scope(block=block, path=path, depth=depth, definition=definition)
    yield from _value_faults(scope, twice, reported)
    for number, node in enumerate(block.nodes):
        yield from _node_faults(scope, number, node, reported)
    for what, ids in (("argument", block.arguments), ("result", block.results)):
        for value in ids:
            if not scope.exists(value):
                yield Fault(
                    subject=path.removesuffix("/") or "the graph",
                    provenance=None,
                    reason=f"{what} is value {value}, which does not exist",
                    is_node=bool(path),
                )


def _value_faults(scope: _Scope, twice: list[ValueId], reported: AbstractSet[str]) -> Iterator[Fault]:
    named: dict[str, Value] = {}
    for number, value in enumerate(scope.block.values):
        unnameable = _name_fault(value.name)
        if unnameable is not None:
            yield scope.fault(value, unnameable)
        earlier = named.setdefault(value.name, value)
        if earlier is not value:
            place = "" if earlier.provenance is None else f", at {earlier.provenance}"
            yield scope.fault(value, f"another value has this name{place}")
        reason = type_fault(value.type)
        if reason is not None:
            yield scope.fault(value, reason)
        if ValueId(number) not in scope.definition and scope.path + value.name not in reported:
            yield scope.fault(value, "nothing defines it")
    for value in twice:
        if scope.exists(value):
            yield scope.fault(scope.block.values[value], "it is defined twice")


def _node_faults(scope: _Scope, number: int, node: Node, reported: AbstractSet[str]) -> Iterator[Fault]:
    values = scope.block.values
    results = frozenset(node.results)
    for position, operand in enumerate(node.operands):
        if not scope.exists(operand):
            yield scope.node_fault(node, f"operand {position} is value {operand}, which does not exist")
        elif operand in results:
            yield scope.node_fault(node, f"{values[operand].name} depends on itself: {_role(node, position)}")
        elif scope.definition.get(operand, -1) > number:
            yield scope.node_fault(node, f"{values[operand].name} is used before it is defined")
    for result in node.results:
        if not scope.exists(result):
            yield scope.node_fault(node, f"a result is value {result}, which does not exist")
    body_is_whole = True
    if isinstance(node.operation, Repeat):
        name = next((values[result].name for result in node.results if scope.exists(result)), "")
        body = node.operation.body
        if scope.depth == MOST_NESTED:
            yield scope.node_fault(node, f"more than {MOST_NESTED} repeats inside one another")
            return
        yield from _block_faults(body, f"{scope.path}{name}/", scope.depth + 1, reported)
        body_is_whole = all(0 <= value < len(body.values) for value in (*body.arguments, *body.results))
    typed = [*node.operands, *node.results]
    if not (body_is_whole and all(map(scope.exists, typed))):
        return
    if any(type_fault(values[operand].type) is not None for operand in node.operands):
        return  # told already, where the operand is defined
    try:
        wanted = result_types(node.operation, [values[operand].type for operand in node.operands])
    except ValueError as error:
        yield scope.node_fault(node, str(error))
        return
    if len(wanted) != len(node.results):
        yield scope.node_fault(node, f"results: {len(wanted)} needed, {len(node.results)} declared")
        return
    for result, type_ in zip(node.results, wanted, strict=True):
        declared = values[result].type
        if type_ != declared and type_fault(declared) is None:
            yield scope.fault(
                values[result], f"{name_of(node.operation)}: it is declared {declared} and is {type_}"
            )


def _role(node: Node, position: int) -> str:
    """What an operand that is a result of its own node is used for."""
    operation = node.operation
    if isinstance(operation, Repeat):
        body, fixed = operation.body, operation.carried + operation.invariants
        sequence, iteration = divmod(position - fixed, max(operation.count, 1))
        argument = position if position < fixed else fixed + sequence
        if argument < len(body.arguments) and body.arguments[argument] in range(len(body.values)):
            name = body.values[body.arguments[argument]].name
            when = "" if position < fixed else f" in iteration {iteration}"
            return f"it is bound to argument {name} of the repeat that gives it{when}"
    return f"it is operand {position} of what gives it"
