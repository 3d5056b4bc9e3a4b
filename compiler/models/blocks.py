"""Single blocks of transformers, at the sizes of SigLIP So400m and smaller.

SigLIP So400m has 729 tokens of width 1,152, 16 heads of depth 72, and MLPs of 4,304 hidden columns.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from compiler.geometry.precision import Precision
from compiler.graph.build import BlockBuilder, Body, GraphBuilder, Tensor
from compiler.graph.ir import Graph
from compiler.models.layers import (
    ACTIVATION,
    BIAS,
    HALF,
    Weight,
    by_fan_in,
    column_slices,
    declared,
    linear,
    multi_head_attention,
    product,
)

TOKENS: Final = 729
WIDTH: Final = 1152
HIDDEN: Final = 4304
HEADS: Final = 16


def siglip_mlp(batch: int = 1, precision: Precision = HALF, blocks: int = 1) -> Graph:
    """GELU(x up) down, without biases; several blocks in a Repeat that carries x.

    Args:
        batch: images; x is [batch * 729, 1152].
        precision: of both products; F8 weights are stored so.
        blocks: how many, each with weights of its own.
    """
    build = GraphBuilder("siglip-mlp")
    x = build.input("x", (batch * TOKENS, WIDTH), fill=ACTIVATION)
    weights = (
        Weight(name="up", shape=(WIDTH, HIDDEN), fill=by_fan_in(WIDTH), precision=precision),
        Weight(name="down", shape=(HIDDEN, WIDTH), fill=by_fan_in(HIDDEN), precision=precision),
    )

    def block(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        hidden = build.gelu(product(build, tensors["x"], tensors["up"], precision, "hidden"), name="gelu")
        return {"x": product(build, hidden, tensors["down"], precision, "y")}

    build.output(_repeated(build, x, weights, blocks, block))
    return build.finish()


def siglip_attention(
    batch: int = 1, precision: Precision = HALF, blocks: int = 1, *, fused: bool = False
) -> Graph:
    """Projections of query, key and value, attention in heads, heads joined; no output projection.

    Args:
        batch: images; x is [batch, 729, 1152].
        precision: of the projections.
        blocks: how many in a Repeat that carries x.
        fused: one product of three times the width and slices of it, instead of three products.
    """
    build = GraphBuilder("siglip-attention")
    x = build.input("x", (batch, TOKENS, WIDTH), fill=ACTIVATION)
    names = ("query", "key", "value")
    fill = by_fan_in(WIDTH)
    weights = (
        [Weight(name="qkv.weight", shape=(WIDTH, 3 * WIDTH), fill=fill, precision=precision)]
        if fused
        else [
            Weight(name=f"{name}.weight", shape=(WIDTH, WIDTH), fill=fill, precision=precision)
            for name in names
        ]
    )

    def block(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        x = tensors["x"]
        if fused:
            projected = product(build, x, tensors["qkv.weight"], precision, "qkv")
            query, key, value = column_slices(build, projected, names, "")
        else:
            query, key, value = (
                product(build, x, tensors[f"{name}.weight"], precision, name) for name in names
            )
        return {"x": multi_head_attention(build, query, key, value, HEADS, "")}

    build.output(_repeated(build, x, weights, blocks, block))
    return build.finish()


def mlp_block(rows: int, width: int, hidden: int) -> Graph:
    """The sum x + (GELU(x up + bias) down + bias): a residual, two readers of x, biases that broadcast."""
    build = GraphBuilder("mlp-block")
    x = build.input("x", (rows, width), fill=ACTIVATION)
    weights = (
        Weight(name="up.weight", shape=(width, hidden), fill=by_fan_in(width)),
        Weight(name="up.bias", shape=(hidden,), fill=BIAS),
        Weight(name="down.weight", shape=(hidden, width), fill=by_fan_in(hidden)),
        Weight(name="down.bias", shape=(width,), fill=BIAS),
    )
    tensors = declared(build, weights, "")
    inner = build.gelu(linear(build, x, tensors, "up", HALF, ""), name="gelu")
    build.output(build.add(x, linear(build, inner, tensors, "down", HALF, ""), name="y"))
    return build.finish()


def _repeated(
    build: GraphBuilder,
    x: Tensor,
    weights: Sequence[Weight],
    blocks: int,
    block: Body,
) -> Tensor:
    """``block`` once, or in a Repeat over its weights."""
    if blocks == 1:
        return block(build, {"x": x, **declared(build, weights, "")})["x"]
    layers = [declared(build, weights, f"block.{number}.") for number in range(blocks)]
    sequences = {weight.name: [layer[weight.name] for layer in layers] for weight in weights}
    return build.repeat(blocks, block, carried={"x": x}, sequences=sequences, name="blocks")["x"]
