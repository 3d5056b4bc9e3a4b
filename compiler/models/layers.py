"""Pieces that the models share: linear layers, heads of attention, the MLP, and random values of weights.

Each function adds nodes to the builder that it is given, which may be that of a Repeat's body, and names them
behind ``prefix``. Parameters are passed by the names that :class:`Weight` gives them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.geometry.mapping import Shape
from compiler.geometry.precision import F8, F16, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Fill, Normal

ACTIVATION: Final = Normal(sigma=0.5)
"""Random activations and inputs."""
BIAS: Final = Normal(sigma=1e-6)
"""Random biases, those of normalizations too."""
HALF: Final = F16()
"""What is not said to be otherwise."""
BRING_UP: Final = F8(scale_exponent=-4)
"""The F8 of products whose range nobody has measured."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Weight:
    """A parameter that a model needs, by itself or once for each layer."""

    name: str
    shape: Shape
    fill: Fill
    precision: Precision = HALF

    def declare(self, build: GraphBuilder, prefix: str) -> Tensor:
        """Adds it to a graph."""
        return build.parameter(prefix + self.name, self.shape, self.precision, fill=self.fill)


def declared(build: GraphBuilder, weights: Sequence[Weight], prefix: str) -> dict[str, Tensor]:
    """Adds weights to a graph; by name, without the prefix."""
    return {weight.name: weight.declare(build, prefix) for weight in weights}


def by_fan_in(inputs: int) -> Fill:
    """Random weights of products in general."""
    return Normal(sigma=1 / math.sqrt(inputs))


def by_fans(inputs: int, outputs: int) -> Fill:
    """Random weights of products in vision transformers; of fused projections the outputs of one."""
    return Normal(sigma=math.sqrt(2 / (inputs + outputs)))


def product(
    build: BlockBuilder, left: Tensor, weight: Tensor, precision: Precision, name: str | None = None
) -> Tensor:
    """The product of left [..., k] and weight [k, n], multiplied in ``precision``, the weight's own."""
    declared_precision = precision if isinstance(precision, F8) else None
    return build.gemm(left, weight, precision=declared_precision, name=name)


def linear(
    build: BlockBuilder,
    operand: Tensor,
    tensors: Mapping[str, Tensor],
    layer: str,
    precision: Precision,
    prefix: str,
) -> Tensor:
    """The operand times ``layer.weight``, plus ``layer.bias``."""
    multiplied = product(
        build, operand, tensors[f"{layer}.weight"], precision, name=f"{prefix}{layer}.product"
    )
    return build.add(multiplied, tensors[f"{layer}.bias"], name=f"{prefix}{layer}")


def layer_norm(
    build: BlockBuilder,
    operand: Tensor,
    tensors: Mapping[str, Tensor],
    layer: str,
    epsilon: float,
    prefix: str,
) -> Tensor:
    """Normalization with ``layer.scale`` and ``layer.bias``."""
    affine = (tensors[f"{layer}.scale"], tensors[f"{layer}.bias"])
    return build.layer_norm(operand, affine, epsilon=epsilon, name=prefix + layer)


def split_heads(build: BlockBuilder, operand: Tensor, heads: int, name: str) -> Tensor:
    """[batch, rows, heads * depth] to [batch, heads, rows, depth]."""
    width = operand.shape[-1]
    parts = build.split_axis(operand, 2, (heads, width // heads), name=f"{name}.parts")
    return build.transpose(parts, (0, 2, 1, 3), name=name)


def join_heads(build: BlockBuilder, operand: Tensor, name: str) -> Tensor:
    """[batch, heads, rows, depth] to [batch, rows, heads * depth]."""
    rows = build.transpose(operand, (0, 2, 1, 3), name=f"{name}.rows")
    return build.merge_axes(rows, 2, 2, name=name)


def multi_head_attention(
    build: BlockBuilder,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    heads: int,
    prefix: str,
    value_precision: Precision | None = None,
) -> Tensor:
    """Attention in ``heads`` equal parts of the width, scores over the root of their depth; no mask."""
    parts = [
        split_heads(build, operand, heads, f"{prefix}{name}.heads")
        for name, operand in (("query", query), ("key", key), ("value", value))
    ]
    attended = build.attention(
        *parts,
        scale=1 / math.sqrt(query.shape[-1] // heads),
        value_precision=value_precision,
        name=f"{prefix}attention",
    )
    return join_heads(build, attended, f"{prefix}joined")


def column_slices(
    build: BlockBuilder, operand: Tensor, names: Sequence[str], prefix: str
) -> tuple[Tensor, ...]:
    """Equal parts of the last axis, such as the projections of a fused product."""
    axis, width = len(operand.shape) - 1, operand.shape[-1] // len(names)
    return tuple(
        build.slice(operand, axis, number * width, (number + 1) * width, name=prefix + name)
        for number, name in enumerate(names)
    )
