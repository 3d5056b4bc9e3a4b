"""Views as mappings move the elements that evaluation moves."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F32
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import Concat, MergeAxes, Reshape, Slice, SplitAxis, Transpose
from compiler.graph.views import pieces, shape_of_view
from tests.graph.strategies import bound, single

KINDS = ("reshape", "split_axis", "merge_axes", "transpose", "slice", "concat")


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_mappings_read_what_the_reference_reads(kind: str, data: st.DataObject) -> None:
    graph = data.draw(single(kind).filter(lambda graph: graph.block.values[0].type.precision == F32()))
    (node,) = graph.block.nodes
    assert isinstance(node.operation, Reshape | SplitAxis | MergeAxes | Transpose | Slice | Concat)
    tensors = bound(graph, 1)
    operands = [tensors[graph.block.values[operand].name] for operand in node.operands]
    (wanted,) = evaluate(graph, tensors, Numerics.F32).values()
    shapes = [operand.shape for operand in operands]
    found = np.full(shape_of_view(node.operation, shapes), np.nan, dtype=np.float32)
    for piece, operand in zip(pieces(node.operation, shapes), operands, strict=True):
        for index in np.ndindex(piece.destination.extents):
            at = tuple(start + step for start, step in zip(piece.destination.starts, index, strict=True))
            found[at] = operand[piece.source_of(at)]
    np.testing.assert_array_equal(found, wanted)
