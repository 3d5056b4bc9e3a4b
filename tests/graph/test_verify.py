"""The verifier on graphs that no builder makes, and its silence on those that builders make.

The exact messages are in tests/errors/test_graph_messages.py.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidModel
from compiler.geometry.precision import F16
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import (
    Add,
    Block,
    Constant,
    Gelu,
    Graph,
    Node,
    Normal,
    Operation,
    Repeat,
    TensorType,
    Value,
    ValueId,
)
from compiler.graph.verify import check, verify
from tests.graph.strategies import bound, graphs


def _ids(*numbers: int) -> tuple[ValueId, ...]:
    return tuple(map(ValueId, numbers))


def _value(name: str, *shape: int) -> Value:
    return Value(name=name, type=TensorType(precision=F16(), shape=shape))


def _node(operation: Operation, operands: tuple[ValueId, ...], *results: int) -> Node:
    return Node(operation=operation, operands=operands, results=_ids(*results))


BODY = Block(
    values=(_value("a", 2), _value("m", 2), _value("s", 2), _value("b", 2), _value("c", 2)),
    arguments=_ids(0, 1, 2),
    nodes=(_node(Add(), _ids(0, 1), 3), _node(Add(), _ids(3, 2), 4)),
    results=_ids(4),
)

GRAPH = Graph(
    name="g",
    block=Block(
        values=(_value("x", 2), _value("w", 2), _value("h", 2), _value("y", 2)),
        arguments=_ids(0, 1),
        nodes=(
            _node(Add(), _ids(0, 1), 2),
            _node(Repeat(count=2, carried=1, invariants=1, body=BODY), _ids(2, 1, 0, 1), 3),
        ),
        results=_ids(3),
    ),
    input_count=1,
    fills=(None, Normal(sigma=1)),
)


@given(graphs())
def test_what_builders_make_is_well_formed(graph: Graph) -> None:
    assert verify(graph) == ()
    assert check(graph) is graph


def test_the_example_is_well_formed() -> None:
    assert verify(GRAPH) == ()


def _block(**changes: object) -> Graph:
    return replace(GRAPH, block=dataclasses.replace(GRAPH.block, **changes))


def _nodes(first: Node | None = None, second: Node | None = None) -> Graph:
    add, repeat = GRAPH.block.nodes
    return _block(nodes=(first or add, second or repeat))


def _repeat(**changes: object) -> Graph:
    node = GRAPH.block.nodes[1]
    return _nodes(second=replace(node, operation=dataclasses.replace(node.operation, **changes)))


def _body(**changes: object) -> Graph:
    return _repeat(body=dataclasses.replace(BODY, **changes))


ADD, REPEAT = GRAPH.block.nodes
BROKEN: dict[str, tuple[Callable[[], Graph], str]] = {
    "no output": (lambda: _block(results=()), "g: it has no output"),
    "unprintable name of the graph": (
        lambda: replace(GRAPH, name="a\nb"),
        "'a\\nb' cannot be printed",
    ),
    "inputs": (lambda: replace(GRAPH, input_count=3), "g: 3 inputs of 2 arguments"),
    "fills": (lambda: replace(GRAPH, fills=()), "g: 0 fills for 2 inputs and parameters"),
    "deviation": (
        lambda: replace(GRAPH, fills=(Normal(sigma=-1), None)),
        "x: a standard deviation of -1.0 does not exist",
    ),
    "constant": (
        lambda: replace(GRAPH, fills=(Constant(value=float("inf")), None)),
        "x: the constant inf is not finite",
    ),
    "output twice": (lambda: _block(results=_ids(3, 3)), "y: it is listed twice as an output"),
    "output that does not exist": (
        lambda: _block(results=_ids(3, 9)),
        "the graph: result is value 9, which does not exist",
    ),
    "argument that does not exist": (
        lambda: replace(_block(arguments=_ids(0, 1, -1)), fills=(None,) * 3),
        "the graph: argument is value -1, which does not exist",
    ),
    "argument that is a result": (
        lambda: replace(_block(arguments=_ids(0, 1, 2)), fills=(None,) * 3),
        "h: it is defined twice",
    ),
    "defined by two nodes": (
        lambda: _block(nodes=(ADD, _node(Gelu(), _ids(1), 2), REPEAT)),
        "h: it is defined twice",
    ),
    "operand that does not exist": (
        lambda: _nodes(_node(Add(), _ids(0, 7), 2)),
        "h: add: operand 1 is value 7, which does not exist",
    ),
    "result that does not exist": (
        lambda: _block(nodes=(ADD, REPEAT, _node(Gelu(), _ids(0), 9))),
        "a node without results: gelu: a result is value 9, which does not exist",
    ),
    "nothing defines it": (lambda: _block(nodes=(ADD,)), "y: nothing defines it"),
    "used before": (lambda: _block(nodes=(REPEAT, ADD)), "y: repeat: h is used before it is defined"),
    "itself": (
        lambda: _nodes(_node(Add(), _ids(0, 2), 2)),
        "h: add: h depends on itself: it is operand 1 of what gives it",
    ),
    "carried from itself": (
        lambda: _nodes(second=replace(REPEAT, operands=_ids(3, 1, 0, 1))),
        "y: repeat: y depends on itself: it is bound to argument a of the repeat that gives it",
    ),
    "member from itself": (
        lambda: _nodes(second=replace(REPEAT, operands=_ids(2, 1, 0, 3))),
        "it is bound to argument s of the repeat that gives it in iteration 1",
    ),
    "count of operands": (
        lambda: _nodes(_node(Add(), _ids(0), 2)),
        "h: add: operands: 2 needed (left, right), 1 given",
    ),
    "count of results": (
        lambda: _block(
            values=(*GRAPH.block.values, _value("z", 2)),
            nodes=(replace(ADD, results=_ids(2, 4)), REPEAT),
        ),
        "h: add: results: 1 needed, 2 declared",
    ),
    "no results": (
        lambda: _nodes(_node(Add(), _ids(0, 1))),
        "a node without results: add: results: 1 needed, 0 declared",
    ),
    "no iterations": (lambda: _repeat(count=0), "y: repeat: 0 iterations: at least one is needed"),
    "nothing carried": (
        lambda: _repeat(carried=0),
        "y: repeat: 0 carried values and 1 invariants for a body of 3 arguments",
    ),
    "too many invariants": (
        lambda: _repeat(invariants=5),
        "y: repeat: 1 carried values and 5 invariants for a body of 3 arguments",
    ),
    "too few members": (
        lambda: _repeat(count=3),
        "1 carried, 1 invariants and 1 sequences of 3 take 5 operands, 4 given",
    ),
    "results of the body": (
        lambda: _body(results=_ids(4, 3)),
        "y: repeat: the body gives 2 results for 1 carried values",
    ),
    "result of the body that does not exist": (
        lambda: _body(results=_ids(8)),
        "y: result is value 8, which does not exist",
    ),
    "inside the body": (
        lambda: _body(nodes=(_node(Add(), _ids(0, 9), 3), BODY.nodes[1])),
        "y/b: add: operand 1 is value 9, which does not exist",
    ),
    "type of a carried value": (
        lambda: _body(values=(_value("a", 1), *BODY.values[1:])),
        "y: repeat: argument a is F16[1], what is bound to it F16[2]",
    ),
    "type of a member": (
        lambda: _body(values=(*BODY.values[:2], _value("s", 1), *BODY.values[3:])),
        "y: repeat: argument s is F16[1], what iteration 0 sees F16[2]",
    ),
    "type of what replaces": (
        lambda: _body(values=(*BODY.values[:4], _value("c", 1))),
        "y: repeat: argument a is F16[2], but c replaces it, which is F16[1]",
    ),
    "name in the body": (
        lambda: _body(values=(*BODY.values[:4], _value("a", 2))),
        "y/a: another value has this name",
    ),
    "no name": (
        lambda: _block(values=(_value("", 2), *GRAPH.block.values[1:])),
        "the name '' cannot be printed",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_is_checked(name: str) -> None:
    broken, message = BROKEN[name]
    with pytest.raises(InvalidModel) as caught:
        check(broken())
    assert message in str(caught.value)


@given(data=st.data())
def test_random_damage_is_told_and_never_an_exception(data: st.DataObject) -> None:
    """Ids, counts and types are exchanged for others anywhere; the verifier answers whatever it is given."""
    ids = st.integers(min_value=-1, max_value=6).map(ValueId)
    rows = st.lists(ids, max_size=4).map(tuple)
    values = st.lists(
        st.builds(_value, st.sampled_from("abxy"), st.integers(min_value=0, max_value=2)), max_size=5
    ).map(tuple)
    operations = st.one_of(
        st.just(Add()),
        st.builds(
            Repeat,
            count=st.integers(min_value=-1, max_value=2),
            carried=st.integers(min_value=-1, max_value=2),
            invariants=st.integers(min_value=-1, max_value=2),
            body=st.builds(
                Block,
                values=values,
                arguments=rows,
                nodes=st.just(()),
                results=rows,
            ),
        ),
    )
    nodes = st.lists(st.builds(Node, operation=operations, operands=rows, results=rows), max_size=3).map(
        tuple
    )
    block = data.draw(st.builds(Block, values=values, arguments=rows, nodes=nodes, results=rows))
    graph = Graph(name="g", block=block, input_count=0, fills=(None,) * len(block.arguments))
    faults = verify(graph)
    assert all(str(fault) for fault in faults)
    if not faults:
        assert evaluate(graph, bound(graph, 0), Numerics.ROUNDED)
