"""The models: their sizes are the published ones, and they compute what their tests were published for."""

import math

import numpy as np
import pytest

from compiler.errors import InvalidInput
from compiler.geometry.precision import F8
from compiler.graph.digest import graph_digest
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.flops import graph_flops, node_flops
from compiler.graph.ir import (
    Attention,
    Block,
    Constant,
    Fill,
    Gemm,
    Graph,
    LayerNorm,
    Normal,
    Repeat,
)
from compiler.graph.parameters import RandomTensors
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from compiler.graph.verify import verify
from compiler.models.blocks import siglip_attention, siglip_mlp
from compiler.models.layers import BRING_UP
from compiler.models.programs import PROGRAMS
from compiler.models.registry import MODELS, Variation, model_named
from compiler.models.towers import siglip
from compiler.planner import supported
from compiler.planner.supported import obstacle, unplanned_operations

GRAPHS = {model.name: model.build() for model in MODELS}


def _parameters(graph: Graph) -> int:
    return sum(math.prod(graph.block.values[value].type.shape) for value in graph.parameters)


def _count(block: Block, kind: type) -> int:
    """Operations of a kind, those of bodies once."""
    bodies = [node.operation.body for node in block.nodes if isinstance(node.operation, Repeat)]
    return sum(isinstance(node.operation, kind) for node in block.nodes) + sum(
        _count(body, kind) for body in bodies
    )


@pytest.mark.parametrize("name", GRAPHS)
def test_each_is_well_formed_and_survives_its_text(name: str) -> None:
    graph = GRAPHS[name]
    assert verify(graph) == ()
    assert parse_graph(text_of_graph(graph), "f") == graph
    assert all(fill is not None for fill in graph.fills)


def test_names_differ_and_so_do_the_models() -> None:
    assert len(GRAPHS) == len(MODELS)
    digests = {graph_digest(graph) for graph in GRAPHS.values()}
    assert len(digests) == len(MODELS)


PARAMETERS = {
    "siglip-vit-27": 428_225_600,
    "siglip-vit-27-fused": 428_225_600,
    "siglip-vit-27-b2": 428_225_600 + 1152,
    "pe-core-l14": 317_150_208,
    "pe-core-l14-b2": 317_151_232,
    "siglip-mlp": 2 * 1152 * 4304,
    "siglip-mlp-x3": 6 * 1152 * 4304,
    "siglip-attention": 3 * 1152 * 1152,
    "mlp-block": 2 * 1152 * 4304 + 4304 + 1152,
    "attention-smoke": 0,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameter_counts_are_the_published_ones(name: str) -> None:
    """Of the checkpoints where there are some; the probe is a row for each image."""
    assert _parameters(GRAPHS[name]) == PARAMETERS[name]


GFLOP = {
    "siglip-mlp": (14.458, 1),
    "siglip-mlp-b2": (14.458, 2),
    "siglip-mlp-b4": (14.458, 4),
    "siglip-mlp-f8": (14.458, 1),
    "siglip-mlp-f8-b2": (14.458, 2),
    "siglip-mlp-x3": (14.458, 3),
    "mlp-block": (14.458, 1),
    "siglip-attention": (8.254, 1),
    "siglip-attention-fused": (8.254, 1),
    "siglip-attention-f8": (8.254, 1),
    "siglip-attention-x3": (8.254, 3),
    "siglip-vit-1": (29.53, 1),
    "siglip-vit-1-b2": (29.53, 2),
    "siglip-vit-1-f16": (29.53, 1),
    "siglip-vit-27": (670.35, 1),
    "siglip-vit-27-b2": (670.35, 2),
    "siglip-vit-27-fused": (670.35, 1),
    "pe-core-l14": (384, 1),
    "pe-core-l14-b2": (384, 2),
}
"""The published figure as it is rounded, and how often the model does what it is about."""


@pytest.mark.parametrize("name", GFLOP)
def test_operations_are_the_published_ones(name: str) -> None:
    """To the last published digit."""
    published, times = GFLOP[name]
    digits = len(str(published).partition(".")[2])
    assert round(graph_flops(GRAPHS[name]) / times / 1e9, digits) == published


SMALL_FLOP = {
    "gemm-smoke": 2 * 64 * 64 * 64 * 64,
    "batched-gemm-smoke": 3 * 2 * 64 * 64 * 64 * 64,
    "gemm-benchmark": 2 * 131_072 * 64 * 64,
    "mlp-smoke": 2 * 2 * 64 * 64 * 64,
    "attention-smoke": 4 * 4 * 17 * 19 * 72,
    "mlp-block-small": 2 * 2 * 128 * 256 * 1024,
    "vit-small": (
        2 * 4 * 588 * 144  # embedding
        + 4 * 2 * 4 * 144 * 144  # query, key, value, out
        + 2 * 2 * 4 * 4 * 144  # attention
        + 2 * 2 * 4 * 144 * 288  # MLP
        + 2 * 2 * 4 * 144 * 144  # key and value of the pooling
        + 2 * 2 * 144 * 144  # its query and out
        + 2 * 2 * 4 * 144  # its attention
        + 2 * 2 * 144 * 288  # its MLP
    ),
}
SMALL_FLOP["vit-small-f8"] = SMALL_FLOP["vit-small"]


@pytest.mark.parametrize("name", SMALL_FLOP)
def test_operations_of_small_models(name: str) -> None:
    assert graph_flops(GRAPHS[name]) == SMALL_FLOP[name]


def test_every_model_has_its_operations_counted_somewhere() -> None:
    assert {*GFLOP, *SMALL_FLOP} == set(GRAPHS)


def test_parts_of_the_tower_count_as_published() -> None:
    block = GRAPHS["siglip-vit-27"].block
    (repeat,) = (node for node in block.nodes if isinstance(node.operation, Repeat))
    assert node_flops(block, repeat) / 27 / 1e9 == pytest.approx(24.647, rel=1e-4)
    assert node_flops(block, block.nodes[0]) / 1e9 == pytest.approx(0.988, rel=1e-3)
    pooling = [node for node in block.nodes[1:] if node is not repeat]
    assert sum(node_flops(block, node) for node in pooling) / 1e9 == pytest.approx(3.898, rel=1e-3)


def test_an_encoder_layer_is_resident_at_the_published_size() -> None:
    """279,798 bytes a tile for 27 layers in F8, over 1,472 tiles; 29,344 bytes of F16 vectors a layer."""
    block = GRAPHS["siglip-vit-27"].block
    (repeat,) = (node for node in block.nodes if isinstance(node.operation, Repeat))
    types = [block.values[operand].type for operand in repeat.operands[1:]]
    sizes = [math.prod(each.shape) * each.precision.element_bytes for each in types]
    assert sum(sizes) // 1472 == 279_798
    vectors = [size for size, each in zip(sizes, types, strict=True) if len(each.shape) == 1]
    assert sum(vectors) == 27 * 29_344


@pytest.mark.parametrize(
    ("name", "gemms", "sequences"), [("siglip-vit-27", 13, 16), ("siglip-vit-27-fused", 10, 12)]
)
def test_counts_of_operations_and_sequences(name: str, gemms: int, sequences: int) -> None:
    block = GRAPHS[name].block
    assert (_count(block, Gemm), _count(block, Attention), _count(block, LayerNorm)) == (gemms, 2, 4)
    (repeat,) = (node.operation for node in block.nodes if isinstance(node.operation, Repeat))
    assert (repeat.count, repeat.carried, repeat.sequences) == (27, 1, sequences)


def test_scales_are_those_calibrated_for_each_position() -> None:
    graph = siglip(1)
    scales: dict[str, int] = {}
    for node in graph.block.nodes:
        if isinstance(node.operation, Gemm):
            name = graph.block.values[node.results[0]].name.removesuffix(".product")
            precision = node.operation.precision
            if isinstance(precision, F8):
                scales[name] = precision.scale_exponent
                assert graph.block.values[node.operands[1]].type.precision == precision
    assert scales == {
        "encoder.query": -2,
        "encoder.key": -2,
        "encoder.value": -2,
        "encoder.out": -4,
        "encoder.up": 1,
        "encoder.down": -1,
        "pool.query": -12,
        "pool.key": -1,
        "pool.value": -1,
        "pool.out": -5,
        "pool.up": -5,
        "pool.down": -6,
    }  # and none for the embedding


@pytest.mark.parametrize(
    ("name", "value", "fill"),
    [
        ("siglip-mlp", "x", Normal(sigma=0.5)),
        ("siglip-mlp", "up", Normal(sigma=1152**-0.5)),
        ("siglip-vit-27", "encoder.3.up.weight", Normal(sigma=math.sqrt(2 / (1152 + 4304)))),
        ("siglip-vit-27-fused", "encoder.3.qkv.weight", Normal(sigma=math.sqrt(2 / (1152 + 1152)))),
        ("siglip-vit-27", "encoder.0.up.bias", Normal(sigma=1e-6)),
        ("siglip-vit-27", "encoder.0.mlp_norm.scale", Constant(value=1.0)),
        ("siglip-vit-27", "position", Normal(sigma=1152**-0.5)),
        ("siglip-vit-27", "pool.probe", Normal(sigma=1152**-0.5)),
        ("mlp-smoke", "first.weight", Normal(sigma=0.125)),
    ],
)
def test_random_values_have_the_published_deviations(name: str, value: str, fill: Fill) -> None:
    graph = GRAPHS[name]
    names = [graph.block.values[argument].name for argument in graph.block.arguments]
    found = graph.fills[names.index(value)]
    assert isinstance(found, type(fill))
    for field in ("sigma", "value"):
        assert getattr(found, field, None) == pytest.approx(getattr(fill, field, None))


def test_the_benchmark_of_products_is_sixteen_everywhere() -> None:
    graph = GRAPHS["gemm-benchmark"]
    for numerics in (Numerics.F32, Numerics.ROUNDED_PANELS):
        assert (evaluate(graph, RandomTensors(graph, 0), numerics)["product"] == 16).all()


def test_constant_projections_give_constant_attention() -> None:
    """Weights half(1/width) and inputs 1: every output is half(1/width) * width, within 0.02."""
    graph = siglip_attention()
    tensors = {
        "x": np.ones((1, 729, 1152), np.float16),
        **{
            f"{name}.weight": np.full((1152, 1152), 1 / 1152, np.float16)
            for name in ("query", "key", "value")
        },
    }
    (found,) = evaluate(graph, tensors, Numerics.ROUNDED).values()
    assert np.abs(found - float(np.float16(1 / 1152)) * 1152).max() <= 0.02


@pytest.mark.parametrize("name", ["mlp-smoke", "attention-smoke", "vit-small", "mlp-block-small"])
def test_rounding_stays_within_the_tolerances(name: str) -> None:
    """The default tolerance of random references: 0.03 + 0.05 of the reference."""
    graph = GRAPHS[name]
    tensors = RandomTensors(graph, 1)
    wanted = evaluate(graph, tensors, Numerics.F32)
    for numerics in (Numerics.ROUNDED, Numerics.ROUNDED_PANELS):
        for output, found in evaluate(graph, tensors, numerics).items():
            np.testing.assert_allclose(found, wanted[output], atol=0.03, rtol=0.05)


def test_names_of_models_and_programs_differ() -> None:
    assert not set(PROGRAMS) & set(GRAPHS)


def test_what_can_be_built_follows_from_the_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = model_named("siglip-mlp-x3").build()
    bare = parse_graph("graph bare\ninput x: F16[1, 1]\ny: F16[1, 1] = gemm(x, x)\noutput y", "f")
    monkeypatch.setattr(supported, "PLANNED", frozenset({Gemm}))
    assert unplanned_operations(graph) == ("repeat", "gelu")
    assert obstacle(graph) == "the planner has no constructor for repeat, gelu"
    assert obstacle(bare) is None
    kinds = frozenset(type(node.operation) for node in siglip_mlp().block.nodes)
    monkeypatch.setattr(supported, "PLANNED", kinds | {Repeat})
    assert unplanned_operations(graph) == ()
    assert obstacle(graph) is None


def test_models_of_products_can_be_built_and_those_with_attention_cannot() -> None:
    """Every node without constructor is named, in bodies too."""
    can = {model.name for model in MODELS if obstacle(GRAPHS[model.name]) is None}
    assert {"siglip-mlp", "siglip-mlp-x3", "mlp-block", "gemm-benchmark", "batched-gemm-smoke"} <= can
    assert "siglip-vit-27" not in can
    nodes = supported.unplanned_nodes(GRAPHS["siglip-attention-x3"])
    assert [name for _, name in nodes] == ["attention"]
    assert all("/" in path for path, _ in nodes)


def test_models_vary_by_what_they_take() -> None:
    """Another batch and precision; what a model does not take is refused; tiles matter to few."""
    varied = model_named("siglip-mlp").graph(Variation(batch=4, precision=BRING_UP))
    assert graph_digest(varied) == graph_digest(siglip_mlp(batch=4, precision=BRING_UP))
    assert graph_digest(model_named("siglip-mlp").graph(Variation(tiles=7))) == graph_digest(siglip_mlp())
    assert model_named("mlp-smoke").graph(Variation(tiles=16)).block.values[0].type.shape == (16, 64)
    with pytest.raises(InvalidInput, match="the model has no other batch"):
        model_named("attention-smoke").graph(Variation(batch=2))
