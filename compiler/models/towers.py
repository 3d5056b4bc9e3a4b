"""Vision towers: patch embedding, encoder layers in a Repeat, attention pooling.

Patches come from the host as rows (the unfolding of the image is the host's). An encoder layer is

    x = x + out(attention(heads of query, key, value of norm(x)))
    x = x + down(GELU(up(norm(x))))

and pooling attends with one learned query, the probe, over the normalized result:

    o = out(attention(query(probe), key(x), value(x)))
    y = o + down(GELU(up(norm(o))))

without a residual from the probe. The probe is a parameter row for each image, as published packages hold it.
Activations, biases and normalizations are F16; products are in the precisions of :class:`Precisions`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.geometry.precision import F8, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Constant, Graph
from compiler.models.layers import (
    ACTIVATION,
    BIAS,
    BRING_UP,
    HALF,
    Weight,
    by_fan_in,
    by_fans,
    column_slices,
    declared,
    layer_norm,
    linear,
    multi_head_attention,
    product,
)

EPSILON: Final = 1e-6


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Precisions:
    """Precision of each kind of product; of F8 with its scale. The patch embedding is always F16."""

    projections: Precision
    attention_out: Precision
    up: Precision
    down: Precision
    pool_query: Precision
    pool_key_value: Precision
    pool_out: Precision
    pool_up: Precision
    pool_down: Precision
    final_projection: Precision = HALF
    attended_values: Precision | None = None
    """Of probabilities times values in encoder layers; None for that of the values."""


def uniform(precision: Precision) -> Precisions:
    """The same precision everywhere."""
    return Precisions(
        projections=precision,
        attention_out=precision,
        up=precision,
        down=precision,
        pool_query=precision,
        pool_key_value=precision,
        pool_out=precision,
        pool_up=precision,
        pool_down=precision,
        final_projection=precision,
    )


SIGLIP_F8: Final = Precisions(
    projections=F8(scale_exponent=-2),
    attention_out=F8(scale_exponent=-4),
    up=F8(scale_exponent=1),
    down=F8(scale_exponent=-1),
    pool_query=F8(scale_exponent=-12),
    pool_key_value=F8(scale_exponent=-1),
    pool_out=F8(scale_exponent=-5),
    pool_up=F8(scale_exponent=-5),
    pool_down=F8(scale_exponent=-6),
)
"""Scales calibrated on the published SigLIP So400m checkpoint, one for each kind of product."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TowerOptions:
    """Sizes and variants of a tower.

    Args:
        name: of the graph.
        batch: images.
        tokens: rows of an image.
        patch: numbers in a row of patches.
        width: columns of activations.
        hidden: columns inside the MLPs.
        heads: of the encoder's attention.
        layers: encoder layers; more than one are a Repeat.
        pool_heads: of the pooling attention.
        precisions: of the products.
        fused: query, key and value of the encoder, and key and value of the pooling, are one product each.
        embedding_bias: the patch embedding has a bias.
        first_norm: a normalization before the encoder.
        final_projection: a product behind the pooling, width to width, without bias.
    """

    name: str
    batch: int = 1
    tokens: int
    patch: int = 588
    width: int
    hidden: int
    heads: int
    layers: int
    pool_heads: int
    precisions: Precisions
    fused: bool = False
    embedding_bias: bool = True
    first_norm: bool = False
    final_projection: bool = False


def siglip(layers: int, batch: int = 1, precisions: Precisions = SIGLIP_F8, *, fused: bool = False) -> Graph:
    """SigLIP So400m/14 at 378 x 378: 729 patches of 14 x 14 x 3; the whole tower has 27 layers."""
    return tower(
        TowerOptions(
            name="siglip-vit",
            batch=batch,
            tokens=729,
            width=1152,
            hidden=4304,
            heads=16,
            layers=layers,
            pool_heads=16,
            precisions=precisions,
            fused=fused,
        )
    )


def vit_small(precision: Precision = HALF) -> Graph:
    """One layer at 28 x 28: 4 patches, width 144, 2 heads; fits 64 tiles."""
    return tower(
        TowerOptions(
            name="vit-small",
            tokens=4,
            width=144,
            hidden=288,
            heads=2,
            layers=1,
            pool_heads=2,
            precisions=uniform(precision),
        )
    )


def pe_core_l14(batch: int = 1, precision: Precision = BRING_UP) -> Graph:
    """Perception Encoder L/14 at 336 x 336: a class token and 576 patches, 24 layers.

    The class token is a row of zero patches whose value is folded into the position table; rotary positions
    are left out.
    """
    return tower(
        TowerOptions(
            name="pe-core-l14",
            batch=batch,
            tokens=577,
            width=1024,
            hidden=4096,
            heads=16,
            layers=24,
            pool_heads=8,
            precisions=uniform(precision),
            embedding_bias=False,
            first_norm=True,
            final_projection=True,
        )
    )


def tower(options: TowerOptions) -> Graph:
    """Patches [batch, tokens, patch] to one row for each image, [batch, 1, width]."""
    build = GraphBuilder(options.name)
    patches = build.input("patches", (options.batch, options.tokens, options.patch), fill=ACTIVATION)
    x = _encoder(build, _front(build, patches, options), options)
    build.output(_back(build, x, options))
    return build.finish()


def _front(build: GraphBuilder, patches: Tensor, options: TowerOptions) -> Tensor:
    """Embedding, positions, and the first normalization if there is one."""
    width = options.width
    weights = [Weight(name="weight", shape=(options.patch, width), fill=by_fans(options.patch, width))]
    if options.embedding_bias:
        weights.append(Weight(name="bias", shape=(width,), fill=BIAS))
    tensors = declared(build, weights, "embedding.")
    x = product(build, patches, tensors["weight"], HALF, "embedding.product")
    if options.embedding_bias:
        x = build.add(x, tensors["bias"], name="embedding")
    table = Weight(name="position", shape=(1, options.tokens, width), fill=by_fan_in(width))
    x = build.add(x, table.declare(build, ""), name="positioned")
    if options.first_norm:
        tensors = declared(build, _norm("first_norm", width), "")
        x = layer_norm(build, x, tensors, "first_norm", EPSILON, "")
    return x


def _encoder(build: GraphBuilder, x: Tensor, options: TowerOptions) -> Tensor:
    weights = _layer_weights(options)

    def layer(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"x": _layer(build, tensors["x"], tensors, options, "")}

    if options.layers == 1:
        tensors = declared(build, weights, "encoder.")
        return _layer(build, x, tensors, options, "encoder.")
    layers = [declared(build, weights, f"encoder.{number}.") for number in range(options.layers)]
    sequences = {weight.name: [tensors[weight.name] for tensors in layers] for weight in weights}
    return build.repeat(options.layers, layer, carried={"x": x}, sequences=sequences, name="encoder")["x"]


def _layer_weights(options: TowerOptions) -> Sequence[Weight]:
    width, hidden, precisions = options.width, options.hidden, options.precisions
    projections = _projections("qkv", ("query", "key", "value"), precisions.projections, options)
    return (
        *_norm("attention_norm", width),
        *projections,
        *_linear("out", width, width, precisions.attention_out),
        *_norm("mlp_norm", width),
        *_linear("up", width, hidden, precisions.up),
        *_linear("down", hidden, width, precisions.down),
    )


def _layer(
    build: BlockBuilder, x: Tensor, tensors: Mapping[str, Tensor], options: TowerOptions, prefix: str
) -> Tensor:
    """One encoder layer."""
    precisions = options.precisions
    h = layer_norm(build, x, tensors, "attention_norm", EPSILON, prefix)
    names = ("query", "key", "value")
    query, key, value = _projected(build, h, tensors, "qkv", names, precisions.projections, options, prefix)
    joined = multi_head_attention(build, query, key, value, options.heads, prefix, precisions.attended_values)
    out = linear(build, joined, tensors, "out", precisions.attention_out, prefix)
    x = build.add(x, out, name=f"{prefix}attended")
    h = layer_norm(build, x, tensors, "mlp_norm", EPSILON, prefix)
    return build.add(
        x, _mlp(build, h, tensors, precisions.up, precisions.down, prefix), name=f"{prefix}x_next"
    )


def _back(build: GraphBuilder, x: Tensor, options: TowerOptions) -> Tensor:
    """Last normalization, attention pooling, and the last product if there is one."""
    width, hidden, precisions = options.width, options.hidden, options.precisions
    weights = (
        *_norm("last_norm", width),
        Weight(name="pool.probe", shape=(options.batch, 1, width), fill=by_fan_in(width)),
        *_prefixed("pool.", _linear("query", width, width, precisions.pool_query)),
        *_prefixed("pool.", _projections("kv", ("key", "value"), precisions.pool_key_value, options)),
        *_prefixed("pool.", _linear("out", width, width, precisions.pool_out)),
        *_prefixed("pool.", _norm("norm", width)),
        *_prefixed("pool.", _linear("up", width, hidden, precisions.pool_up)),
        *_prefixed("pool.", _linear("down", hidden, width, precisions.pool_down)),
    )
    tensors = declared(build, weights, "")
    pool = {name.removeprefix("pool."): tensor for name, tensor in tensors.items()}
    x = layer_norm(build, x, tensors, "last_norm", EPSILON, "")
    query = linear(build, pool["probe"], pool, "query", precisions.pool_query, "pool.")
    key, value = _projected(
        build, x, pool, "kv", ("key", "value"), precisions.pool_key_value, options, "pool."
    )
    joined = multi_head_attention(build, query, key, value, options.pool_heads, "pool.")
    out = linear(build, joined, pool, "out", precisions.pool_out, "pool.")
    h = layer_norm(build, out, pool, "norm", EPSILON, "pool.")
    mlp = _mlp(build, h, pool, precisions.pool_up, precisions.pool_down, "pool.")
    pooled = build.add(out, mlp, name="pooled")
    if not options.final_projection:
        return pooled
    precision = precisions.final_projection
    weight = Weight(
        name="projection.weight", shape=(width, width), fill=by_fans(width, width), precision=precision
    )
    return product(build, pooled, weight.declare(build, ""), precision, "projection")


def _mlp(
    build: BlockBuilder,
    operand: Tensor,
    tensors: Mapping[str, Tensor],
    up: Precision,
    down: Precision,
    prefix: str,
) -> Tensor:
    hidden = build.gelu(linear(build, operand, tensors, "up", up, prefix), name=f"{prefix}gelu")
    return linear(build, hidden, tensors, "down", down, prefix)


def _projected(
    build: BlockBuilder,
    operand: Tensor,
    tensors: Mapping[str, Tensor],
    fused_name: str,
    names: Sequence[str],
    precision: Precision,
    options: TowerOptions,
    prefix: str,
) -> Sequence[Tensor]:
    """Projections of one operand: slices of one product, or a product each."""
    if options.fused:
        return column_slices(
            build, linear(build, operand, tensors, fused_name, precision, prefix), names, prefix
        )
    return [linear(build, operand, tensors, name, precision, prefix) for name in names]


def _projections(
    fused_name: str, names: Sequence[str], precision: Precision, options: TowerOptions
) -> Sequence[Weight]:
    """Weights of what :func:`_projected` computes."""
    width = options.width
    if options.fused:
        return _linear(fused_name, width, width, precision, count=len(names))
    return [weight for name in names for weight in _linear(name, width, width, precision)]


def _linear(
    name: str, inputs: int, outputs: int, precision: Precision, count: int = 1
) -> tuple[Weight, Weight]:
    """Weight and bias of ``count`` layers side by side."""
    columns = count * outputs
    return (
        Weight(
            name=f"{name}.weight",
            shape=(inputs, columns),
            fill=by_fans(inputs, outputs),
            precision=precision,
        ),
        Weight(name=f"{name}.bias", shape=(columns,), fill=BIAS),
    )


def _norm(name: str, width: int) -> tuple[Weight, Weight]:
    return (
        Weight(name=f"{name}.scale", shape=(width,), fill=Constant(value=1.0)),
        Weight(name=f"{name}.bias", shape=(width,), fill=BIAS),
    )


def _prefixed(prefix: str, weights: Sequence[Weight]) -> Sequence[Weight]:
    return [
        Weight(name=prefix + weight.name, shape=weight.shape, fill=weight.fill, precision=weight.precision)
        for weight in weights
    ]
