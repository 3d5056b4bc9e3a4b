"""Floors of memory: nothing that can be built is refused, and what cannot be is refused by name."""

import dataclasses

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, Unsupported
from compiler.estimate.prices import DATA_BUDGET
from compiler.geometry.precision import F16
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.planner.bounds import Limits, check_bounds
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from compiler.target.units import Bytes
from tests.low.planned import graphs
from tests.planner.odd import odd_graphs


def wide(rows: int, columns: int, *, is_view: bool) -> Graph:
    """A small input, a large value, something done to it that needs no second one, and a small output."""
    build = GraphBuilder("wide")
    x = build.input("x", (rows, 16), F16())
    y = build.gemm(x, build.parameter("w", (16, columns), F16()), name="y")
    seen = build.reshape(y, (2 * rows, columns // 2), name="seen") if is_view else build.gelu(y, name="seen")
    build.output(build.gemm(seen, build.parameter("v", (seen.shape[1], 16), F16()), name="z"))
    return build.finish()


@pytest.mark.parametrize(("columns", "is_view"), [(400, False), (512, True)])
def test_what_takes_the_storage_of_its_operand_is_not_counted_twice(columns: int, is_view: bool) -> None:
    """More than half of a tile is in the value; it fits one tile all the same."""
    graph = wide(400, columns, is_view=is_view)
    found = build_candidate(graph, Setting(tile_count=1), Recipe())
    assert 2 * 400 * columns > DATA_BUDGET // 2
    assert found.cost.bytes <= DATA_BUDGET


@settings(max_examples=40)
@given(graph=st.one_of(graphs(), odd_graphs()), tiles=st.sampled_from((1, 2, 5, 16, 64)))
def test_a_floor_is_below_every_program(graph: Graph, tiles: int) -> None:
    """A program whose busiest tile holds so many bytes is a counterexample to any higher floor."""
    try:
        found = build_candidate(graph, Setting(tile_count=tiles), Recipe())
    except (Unsupported, DoesNotFit):
        reject()
    check_bounds(graph, tiles, Limits(data=found.cost.bytes))


def test_a_model_that_is_too_large_is_refused_with_its_numbers() -> None:
    """What is kept free is a number beside the floor; the product that needs most is named."""
    with pytest.raises(DoesNotFit, match="parameters and the values of one product need more") as refusal:
        build_candidate(wide(4096, 4096, is_view=False), Setting(tile_count=16), Recipe())
    assert refusal.value.nodes == ("y",)
    floor, *_, kept_free = refusal.value.numbers
    size = 2 * (2 * 16 * 4096 + 4096 * 4096 + 4096 * 16)
    assert floor.value == -(-size // 16)
    assert floor.limit == DATA_BUDGET
    assert kept_free.value == 48 * 1024


def test_what_no_output_depends_on_has_no_floor() -> None:
    """A product that nothing reads is not computed, however large it would be; its parameters stay."""
    build = GraphBuilder("unread")
    x = build.input("x", (16, 16), F16())
    w = build.parameter("w", (16, 512), F16())
    y = build.gemm(x, w, name="y")
    build.gemm(y, y, transpose_left=True, name="unread")
    build.output(y)
    tight = Limits(data=Bytes(2 * (16 * 512 + 16 * 16 + 16 * 512)))
    check_bounds(build.finish(), 1, tight)
    with pytest.raises(DoesNotFit) as refusal:
        check_bounds(build.finish(), 1, dataclasses.replace(tight, data=Bytes(tight.data - 1)))
    assert refusal.value.nodes == ("y",)
