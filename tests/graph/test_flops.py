"""Counts of floating-point operations, against counting loops."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.graph.build import GraphBuilder
from compiler.graph.flops import graph_flops, node_flops
from compiler.graph.ir import Attention, Gemm, Graph
from compiler.graph.parser import parse_graph
from tests.graph.strategies import KINDS, single


@given(single("gemm"))
def test_products_count_each_pair_twice(graph: Graph) -> None:
    node = graph.block.nodes[-1]
    assert isinstance(node.operation, Gemm)
    left = graph.block.values[node.operands[0]].type.shape
    inner = left[-2] if node.operation.transpose_left else left[-1]
    result = graph.block.values[node.results[0]].type.shape
    pairs = sum(1 for _ in itertools.product(*map(range, result), range(inner)))
    assert node_flops(graph.block, node) == 2 * pairs


@given(single("attention"))
def test_attention_counts_the_pairs_that_the_mask_leaves(graph: Graph) -> None:
    node = graph.block.nodes[-1]
    assert isinstance(node.operation, Attention)
    query, key, value = (graph.block.values[operand].type.shape for operand in node.operands)
    pairs = [(i, j) for i in range(query[-2]) for j in range(key[-2]) if j <= i or not node.operation.causal]
    assert graph_flops(graph) == 2 * math.prod(query[:-2]) * len(pairs) * (query[-1] + value[-1])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in {"gemm", "attention"}])
@given(data=st.data())
def test_only_products_count(kind: str, data: st.DataObject) -> None:
    assert graph_flops(data.draw(single(kind))) == 0


def test_a_repeat_counts_its_body_each_time() -> None:
    build = GraphBuilder("layers")
    x = build.input("x", (3, 8))
    weights = [build.parameter(f"w{number}", (8, 8)) for number in range(5)]
    made = build.repeat(
        5,
        lambda build, tensors: {"x": build.gemm(tensors["x"], tensors["w"])},
        carried={"x": x},
        sequences={"w": weights},
    )
    build.output(made["x"])
    assert graph_flops(build.finish()) == 5 * 2 * 3 * 8 * 8


@pytest.mark.parametrize(("queries", "keys"), [(10**8, 10**9), (10**9, 10**8), (10**8, 10**8)])
def test_the_pairs_of_long_causal_attention_are_not_counted_one_by_one(queries: int, keys: int) -> None:
    text = f"""graph g
input q: F16[{queries},1]
input k: F16[{keys},1]
y: F16[{queries},1] = attention(q, k, k, scale=1.0, causal=true)
output y
"""
    pairs = queries * (queries + 1) // 2 - max(queries - keys, 0) * (max(queries - keys, 0) + 1) // 2
    assert graph_flops(parse_graph(text, "f")) == 4 * pairs


def test_nothing_counts_in_an_empty_graph() -> None:
    assert graph_flops(parse_graph("graph g\ninput x: F16[1]\noutput x", "f")) == 0
