"""Who decides about order: the graph what depends on what, mid what is done when (PR-03)."""

import dataclasses

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.estimate.mid import estimate
from compiler.graph.ir import Graph, Node
from compiler.low.expand.program import expand
from compiler.mid.interpret import interpret
from compiler.mid.ir import Compute, MidProgram, Operation, operands_of, results_of
from compiler.mid.verify import verify
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from tests.planner.graphs import assert_right, projections, residual, tensors_of

SETTING = Setting(tile_count=16)


def reordered(graph: Graph, data: st.DataObject) -> Graph:
    """The same graph with its nodes in any other order that its edges permit."""
    left, made = list(graph.block.nodes), set(graph.block.arguments)
    nodes: list[Node] = []
    while left:
        node = data.draw(st.sampled_from([one for one in left if made.issuperset(one.operands)]))
        left.remove(node)
        nodes.append(node)
        made.update(node.results)
    return dataclasses.replace(graph, block=dataclasses.replace(graph.block, nodes=tuple(nodes)))


@settings(max_examples=20)
@given(data=st.data(), name=st.sampled_from(["projections", "residual"]), seed=st.integers(0, 1 << 32))
def test_dependencies_are_the_graphs(data: st.DataObject, name: str, seed: int) -> None:
    """PR-03: independent nodes in another order are the same choices, and the same computation."""
    graph = projections() if name == "projections" else residual()
    plain = build_candidate(graph, SETTING, Recipe())
    other = reordered(graph, data)
    made = build_candidate(other, SETTING, Recipe())
    assert made.recipe.gemms == plain.recipe.gemms
    assert verify(made.program) == ()
    assert_right(graph, made.program, seed)
    assert nodes_of(made.program) == [node for node in names(other) if node in nodes_of(made.program)]


def names(graph: Graph) -> list[str]:
    """Of the nodes, in their order."""
    return [graph.block.values[node.results[0]].name for node in graph.block.nodes]


def nodes_of(made: MidProgram) -> list[str]:
    """The nodes that computations and copies are for, in the order in which each comes last."""
    nodes = [operation.node for operation in made.block.operations]
    return list(reversed(dict.fromkeys(reversed(nodes))))


@given(data=st.data(), seed=st.integers(0, 1 << 32))
def test_execution_is_mids(data: st.DataObject, seed: int) -> None:
    """PR-03: whoever reorders operations of mid reorders what tiles do; the graph is not asked again."""
    made = build_candidate(projections(), SETTING, Recipe()).program
    left, known = list(made.block.operations), set(made.block.arguments)
    operations: list[Operation] = []
    while left:
        one = data.draw(st.sampled_from([each for each in left if known.issuperset(operands_of(each))]))
        left.remove(one)
        operations.append(one)
        known.update(results_of(one))
    block = dataclasses.replace(made.block, operations=tuple(operations))
    other = dataclasses.replace(made, block=block)
    assert verify(other) == ()
    assert estimate(other).bytes > 0
    arrays = tensors_of(projections(), seed)
    given_ = {
        other.block.value(argument).name: arrays[other.block.value(argument).name]
        for argument in other.block.arguments
    }
    before, after = interpret(made, given_), interpret(other, given_)
    for name, array in before.items():
        assert np.array_equal(after[name].view(np.uint8), array.view(np.uint8))
    low = expand(other)
    computed = [operation.node for operation in operations if isinstance(operation, Compute)]
    called = [low.nodes[int(node)] for node in low.calls.node]
    order = list(dict.fromkeys(name for name in called if name in computed))
    assert order == list(dict.fromkeys(name for name in computed if name in order))
