"""How a graph is kept in the store: its structure, and its labels beside it.

A stage that gives a graph gives two outputs. The **structure** is the graph with its values numbered and
nothing else said about them; its digest is that of the graph (``digest``). The **labels** are the names,
files, lines and notes. A stage that takes only the structure is not run again when a model's source moves by
a line; one that speaks to users takes both.

Reading back verifies: what is no well-formed graph in the one form that is written raises ``ValueError``.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast, final

from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.digest import FORMAT, plain_structure
from compiler.graph.form import fits
from compiler.graph.ir import (
    Block,
    Constant,
    Fill,
    Graph,
    Node,
    Normal,
    Operation,
    Provenance,
    Repeat,
    TensorType,
    Value,
    ValueId,
)
from compiler.graph.order import in_definition_order
from compiler.graph.rules import NAMES
from compiler.graph.verify import verify
from compiler.store.codec import Fields, JsonCodec

_CLASSES: Final = {name: made for made, name in NAMES.items()}
_STRUCTURE_NAME: Final = "structure"
"""What graphs are called that have no labels."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a value is called, and where it was written."""

    name: str
    provenance: Provenance | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Everything about a graph that its structure does not say.

    Args:
        name: of the graph.
        blocks: for each block a label for each value, in the order of definition. The outermost block comes
            first; bodies follow in the order of nodes, those inside of a body directly behind it.
    """

    name: str
    blocks: tuple[tuple[Label, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGraph:
    """A graph as two outputs of a stage.

    Args:
        structure: the graph with its values numbered in each block and without provenance.
        labels: the rest.
    """

    structure: Graph
    labels: Labels

    @property
    def graph(self) -> Graph:
        """The graph, its tables in the order of definition.

        Raises:
            ValueError: these are the labels of another structure.
        """
        blocks = iter(self.labels.blocks)
        block = _labelled(self.structure.block, blocks)
        if next(blocks, None) is not None:
            raise ValueError("there are labels of more blocks than the structure has")
        return replace(self.structure, name=self.labels.name, block=block)


def stored(graph: Graph) -> StoredGraph:
    """A well-formed graph as outputs."""
    structure = replace(graph, name=_STRUCTURE_NAME, block=_numbered(graph.block))
    return StoredGraph(
        structure=structure, labels=Labels(name=graph.name, blocks=tuple(_labels(graph.block)))
    )


def structure_of_plain(plain: Any) -> Graph:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse of ``plain_structure``, with values numbered.

    Raises:
        ValueError: it is not the structure of a well-formed graph.
    """
    try:
        found, input_count, fills, block = plain
        if found != FORMAT:
            raise ValueError(f"{found!r} is not the format {FORMAT!r}")
        graph = Graph(
            name=_STRUCTURE_NAME,
            block=_block(block),
            input_count=input_count,
            fills=tuple(map(_fill, fills)),
        )
    except (ArithmeticError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"no structure of a graph: {type(error).__name__}: {error}") from error
    faults = verify(graph)
    if faults:
        raise ValueError(f"no structure of a graph: {faults[0]}")
    if plain_structure(graph) != plain:
        raise ValueError("no structure of a graph: values are not in the order of definition")
    return graph


def plain_labels(labels: Labels) -> object:
    """Labels as plain values."""
    return labels.name, tuple(tuple(map(_plain_label, block)) for block in labels.blocks)


def labels_of_plain(plain: Any) -> Labels:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: these are no labels.
    """
    try:
        name, blocks = plain
        labels = Labels(
            name=name,
            blocks=tuple(
                tuple(
                    Label(
                        name=name,
                        provenance=Provenance(file=rest[0], line=rest[1], note=rest[2]) if rest else None,
                    )
                    for name, *rest in block
                )
                for block in blocks
            ),
        )
    except (LookupError, TypeError) as error:
        raise ValueError(f"no labels: {type(error).__name__}: {error}") from error
    if not fits(labels, Labels):
        raise ValueError("no labels: a name, file, line or note is none")
    return labels


STRUCTURE: Final = JsonCodec(plain=plain_structure, value=structure_of_plain)
LABELS: Final = JsonCodec(plain=plain_labels, value=labels_of_plain)
STORED_GRAPH: Final = Fields(of=StoredGraph, codecs=(("structure", STRUCTURE), ("labels", LABELS)))
"""What stages that give graphs declare."""


def _numbered(block: Block) -> Block:
    ordered = in_definition_order(block)
    return replace(
        ordered,
        values=tuple(
            Value(name=_number_name(row), type=value.type) for row, value in enumerate(ordered.values)
        ),
        nodes=tuple(_with_body(node, _numbered) for node in ordered.nodes),
    )


def _number_name(row: int) -> str:
    return f"v{row}"


def _with_body(node: Node, change: Callable[[Block], Block]) -> Node:
    """The node with another body, if it has one."""
    operation = node.operation
    if not isinstance(operation, Repeat):
        return node
    return replace(node, operation=replace(operation, body=change(operation.body)))


def _labels(block: Block) -> Iterator[tuple[Label, ...]]:
    ordered = in_definition_order(block)
    yield tuple(Label(name=value.name, provenance=value.provenance) for value in ordered.values)
    for node in ordered.nodes:
        if isinstance(node.operation, Repeat):
            yield from _labels(node.operation.body)


def _labelled(block: Block, blocks: Iterator[tuple[Label, ...]]) -> Block:
    labels = next(blocks, ())
    if len(labels) != len(block.values):
        raise ValueError(f"there are {len(labels)} labels for {len(block.values)} values")
    values = tuple(
        replace(value, name=label.name, provenance=label.provenance)
        for value, label in zip(block.values, labels, strict=True)
    )
    nodes = tuple(_with_body(node, lambda body: _labelled(body, blocks)) for node in block.nodes)
    return replace(block, values=values, nodes=nodes)


def _plain_label(label: Label) -> object:
    place = label.provenance
    return (label.name,) if place is None else (label.name, place.file, place.line, place.note)


def _block(plain: Sequence[Any]) -> Block:
    types, arguments, nodes, results = plain
    return Block(
        values=tuple(
            Value(
                name=_number_name(row),
                type=TensorType(precision=_precision(precision), shape=shape),
            )
            for row, (precision, shape) in enumerate(types)
        ),
        arguments=_ids(arguments),
        nodes=tuple(
            Node(operation=_operation(name, attributes), operands=_ids(operands), results=_ids(given))
            for name, attributes, operands, given in nodes
        ),
        results=_ids(results),
    )


def _ids(plain: Sequence[int]) -> tuple[ValueId, ...]:
    return tuple(map(ValueId, plain))


def _operation(name: str, attributes: Sequence[Any]) -> Operation:
    made = _CLASSES[name]
    names = [field.name for field in dataclasses.fields(made)]
    values = [_attribute(value) for value in attributes]
    if made is Repeat:
        values[-1] = _block(attributes[-1])
    return cast("Callable[..., Operation]", made)(**dict(zip(names, values, strict=True)))


def _attribute(plain: object) -> object:
    if type(plain) is not tuple:
        return plain
    items = cast("tuple[object, ...]", plain)
    return _precision(items) if items and type(items[0]) is str else items


def _precision(plain: Sequence[Any]) -> Precision:
    match plain:
        case ("F32",):
            return F32()
        case ("F16",):
            return F16()
        case ("F8", scale):
            return F8(scale_exponent=scale)
        case _:
            raise ValueError(f"no structure of a graph: {plain!r} is no precision")


def _fill(plain: Any) -> Fill | None:  # noqa: ANN401  # what a decoder gets
    match plain:
        case None:
            return None
        case ("normal", float(sigma)):
            return Normal(sigma=sigma)
        case ("constant", float(value)):
            return Constant(value=value)
        case _:
            raise ValueError(f"no structure of a graph: {plain!r} is no fill")
