"""Fields that hold something else than they are declared to hold are told, wherever they are."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import cast

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, Precision
from compiler.graph.digest import graph_digest
from compiler.graph.form import MOST_DIGITS, MOST_NESTED, fits, misfits
from compiler.graph.ir import Block, Gelu, Graph, Node, Provenance, Repeat, TensorType, Value, ValueId
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from compiler.graph.verify import verify
from tests.graph.strategies import graphs

JUNK: tuple[object, ...] = (
    None,
    "x",
    b"x",
    1.5,
    float("nan"),
    True,
    -1,
    10**MOST_DIGITS,
    10**5000,
    (),
    (None,),
    [1, 2],
    {"x": 1},
    np.int64(1),
    np.True_,
    F16,
    F8(scale_exponent=3),
    Gelu(),
    object(),
)

Change = Callable[[object], object]


def _places(value: object) -> Iterator[Change]:
    """For each part of a value, a function from something else to the value with that in the part's place."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            part: object = getattr(value, field.name)
            yield _exchange(value, field.name)
            for change in _places(part):
                yield _inside(_exchange(value, field.name), change)
    elif isinstance(value, tuple):
        items = cast("tuple[object, ...]", value)
        for number, item in enumerate(items):
            yield _item(items, number)
            for change in _places(item):
                yield _inside(_item(items, number), change)


def _exchange(value: object, name: str) -> Change:
    def changed(part: object) -> object:
        copy = object.__new__(type(value))  # past what constructors convert or refuse
        for field in dataclasses.fields(cast("Value", value)):
            object.__setattr__(copy, field.name, getattr(value, field.name))
        object.__setattr__(copy, name, part)
        return copy

    return changed


def _item(items: tuple[object, ...], number: int) -> Change:
    return lambda part: (*items[:number], part, *items[number + 1 :])


def _inside(outer: Change, inner: Change) -> Change:
    return lambda part: outer(inner(part))


@given(graph=graphs(), data=st.data())
def test_anything_anywhere_is_told_or_makes_no_difference(graph: Graph, data: st.DataObject) -> None:
    """What is accepted in spite of it is sound: it has a text that is read back to the same graph."""
    places = list(_places(graph))
    change = places[data.draw(st.integers(min_value=0, max_value=len(places) - 1))]
    changed = cast("Graph", change(data.draw(st.sampled_from(JUNK))))
    faults = verify(changed)
    assert all(str(fault) for fault in faults)
    if not faults:
        back = parse_graph(text_of_graph(changed), "f")  # what had no provenance has one now
        assert graph_digest(back) == graph_digest(changed)


@given(graphs())
def test_what_builders_make_fits(graph: Graph) -> None:
    assert fits(graph, Graph)
    assert not list(misfits(graph, Graph))


def test_each_misfit_is_named_with_its_place() -> None:
    value = Value(
        name="x",
        type=TensorType(precision=cast("Precision", F16), shape=(cast("int", np.int64(2)), 10**18, True)),
        provenance=Provenance(file="f", line=cast("int", 1.0), note=cast("str", None)),
    )
    block = Block(
        values=(value,),
        arguments=cast("tuple[ValueId, ...]", [0]),
        nodes=(Node(operation=cast("Gelu", Gelu), operands=(), results=()),),
        results=(),
    )
    graph = Graph(name=cast("str", b"g"), block=block, input_count=1, fills=(None,))
    assert list(misfits(graph, Graph)) == [
        "name is a bytes, not a text",
        "block.values[0].type.precision is the class F16, not a precision",
        "block.values[0].type.shape[0] is a numpy.int64, not an integer",
        "block.values[0].type.shape[1] is an integer of more than 18 digits",
        "block.values[0].type.shape[2] is a bool, not an integer",
        "block.values[0].provenance.line is a float, not an integer",
        "block.values[0].provenance.note is none, not a text",
        "block.arguments is a list, not a tuple",
        "block.nodes[0].operation is the class Gelu, not an operation",
    ]


def test_any_nesting_has_an_answer() -> None:
    """A body of twenty thousand levels, damaged at the bottom, costs no stack."""
    block = Block(values=cast("tuple[Value, ...]", 3), arguments=(), nodes=(), results=())
    for _ in range(20_000):
        value = Value(name="x", type=TensorType(precision=F16(), shape=(1,)))
        result = dataclasses.replace(value, name="y")
        repeat = Repeat(count=1, carried=1, invariants=0, body=block)
        block = Block(
            values=(value, result),
            arguments=(ValueId(0),),
            nodes=(Node(operation=repeat, operands=(ValueId(0),), results=(ValueId(1),)),),
            results=(ValueId(1),),
        )
    found = verify(Graph(name="deep", block=block, input_count=1, fills=(None,)))
    assert [fault.reason for fault in found] == [
        f"repeat: more than {MOST_NESTED} repeats inside one another"
    ]
    while block.nodes:  # taken apart level by level: so deep a chain is freed by no recursion
        (node,) = block.nodes
        block = cast("Repeat", node.operation).body
