"""A stage that gives a graph."""

from dataclasses import dataclass
from typing import Final, final

from compiler.graph.codec import STORED_GRAPH, StoredGraph, stored
from compiler.graph.parser import parse_graph
from compiler.store.stage import Stage


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The text of a graph."""

    text: str


def parsed(inputs: Source, _options: object) -> StoredGraph:
    """The graph."""
    return stored(parse_graph(inputs.text, "sample"))


SAMPLE: Final = Stage(
    name="sample_graph",
    module=__name__,
    format=1,
    inputs=Source,
    outputs=STORED_GRAPH,
    function=parsed,
)
