"""The smallest models: each shows that one thing works."""

from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Constant, Graph, Normal
from compiler.models.layers import ACTIVATION, by_fan_in


def gemm_smoke(tiles: int, batch: int = 1) -> Graph:
    """[batch, tiles, 64] times [batch, 64, 64 * tiles]: one product that needs every tile."""
    build = GraphBuilder("gemm-smoke" if batch == 1 else "batched-gemm-smoke")
    left = build.input("left", (batch, tiles, 64), fill=ACTIVATION)
    right = build.parameter("right", (batch, 64, 64 * tiles), fill=by_fan_in(64))
    build.output(build.gemm(left, right, name="product"))
    return build.finish()


def gemm_benchmark(rows: int = 131_072, inner: int = 64, columns: int = 64) -> Graph:
    """Ones times quarters: every element is inner / 4.

    Raises:
        ValueError: ``inner`` is no multiple of 64, or ``columns`` none of 16.
    """
    if inner % 64 or columns % 16:
        raise ValueError(f"{inner} x {columns} is no multiple of 64 x 16")
    build = GraphBuilder("gemm-benchmark")
    left = build.input("left", (rows, inner), fill=Constant(value=1.0))
    right = build.parameter("right", (inner, columns), fill=Constant(value=0.25))
    build.output(build.gemm(left, right, name="product"))
    return build.finish()


def mlp_smoke(tiles: int) -> Graph:
    """Two products of 64 columns, each with a GELU behind it."""
    build = GraphBuilder("mlp-smoke")
    x = build.input("x", (tiles, 64), fill=ACTIVATION)
    for layer in ("first", "second"):
        weight = build.parameter(f"{layer}.weight", (64, 64), fill=Normal(sigma=0.125))
        x = build.gelu(build.gemm(x, weight, name=f"{layer}.product"), name=layer)
    build.output(x)
    return build.finish()


def attention_smoke() -> Graph:
    """Attention of sizes that divide nothing: 4 heads, 17 queries, 19 keys, depth 72."""
    build = GraphBuilder("attention-smoke")
    query = build.input("query", (4, 17, 72), fill=ACTIVATION)
    key = build.input("key", (4, 19, 72), fill=ACTIVATION)
    value = build.input("value", (4, 19, 72), fill=ACTIVATION)
    build.output(build.attention(query, key, value, scale=72**-0.5, name="attention"))
    return build.finish()
