"""Floating-point operations of products: a multiplication and an addition for each pair that meets.

The convention of the published rates and of the matrix unit's peak: only products count, so everything that
is not one has 0. Of causal attention only the pairs that the mask leaves.
"""

import math
from typing import assert_never

from compiler.graph.ir import (
    Add,
    Attention,
    Block,
    Cast,
    Concat,
    Gelu,
    Gemm,
    Graph,
    LayerNorm,
    MergeAxes,
    Node,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    SplitAxis,
    Transpose,
)


def graph_flops(graph: Graph) -> int:
    """Operations of one run."""
    return block_flops(graph.block)


def block_flops(block: Block) -> int:
    """Operations of a block, run once."""
    return sum(node_flops(block, node) for node in block.nodes)


def node_flops(block: Block, node: Node) -> int:
    """Operations of one node of ``block``; of a Repeat those of all iterations."""
    shapes = [block.values[operand].type.shape for operand in node.operands]
    operation = node.operation
    match operation:
        case Gemm(transpose_left=transposed):
            inner = shapes[0][-2] if transposed else shapes[0][-1]
            return 2 * inner * math.prod(block.values[node.results[0]].type.shape)
        case Attention(causal=causal):
            *batch, queries, depth = shapes[0]
            keys, width = shapes[2][-2:]
            pairs = _causal_pairs(queries, keys) if causal else queries * keys
            return 2 * math.prod(batch) * pairs * (depth + width)
        case Repeat(count=count, body=body):
            return count * block_flops(body)
        case Add() | Gelu() | LayerNorm() | Softmax() | Cast():
            return 0
        case Reshape() | SplitAxis() | MergeAxes() | Transpose() | Slice() | Concat():
            return 0
        case _:
            assert_never(operation)


def _causal_pairs(queries: int, keys: int) -> int:
    """Pairs of which query i sees the keys 0 to i: a triangle, below it full rows."""
    corner = min(queries, keys)
    return corner * (corner + 1) // 2 + (queries - corner) * keys
