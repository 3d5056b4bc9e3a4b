"""Stage ``model_graph``: a graph, from the list of models or as its user wrote it down.

What decides the graph of a listed model is code of this package, so that an edit of a model re-keys it and,
unless the graph changes, nothing behind. A user's file is no code that anybody can fingerprint: its graph
comes here as text, and is part of the key.
"""

from typing import Final

from compiler.graph.codec import STORED_GRAPH, StoredGraph, stored
from compiler.graph.parser import parse_graph
from compiler.models.artifacts import ModelGraphInputs
from compiler.models.registry import Variation, model_named
from compiler.store.stage import Stage


def graph(inputs: ModelGraphInputs, _options: object) -> StoredGraph:
    """The graph.

    Raises:
        InvalidInput: there is no such model, or it cannot be varied so.
        InvalidModel: the text is no well-formed graph.
    """
    if inputs.text:
        return stored(parse_graph(inputs.text, inputs.name))
    variation = Variation(tiles=inputs.tiles, batch=inputs.batch, precision=inputs.precision)
    return stored(model_named(inputs.name).graph(variation))


MODEL_GRAPH: Final = Stage(
    name="model_graph",
    module=__name__,
    format=1,
    inputs=ModelGraphInputs,
    outputs=STORED_GRAPH,
    function=graph,
)
