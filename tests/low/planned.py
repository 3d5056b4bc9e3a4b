"""Whole-device programs as the planner makes them from small models and random recipes, and their results.

The models are those of the registry in shape: products with GELU, three of them in a Repeat, a block with
biases and a residual, one product alone, three in a batch.
"""

from collections.abc import Mapping

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, Unsupported
from compiler.geometry.precision import F8, F16, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph, Normal
from compiler.low.execute import Execution
from compiler.low.ir import LowProgram, Role
from compiler.low.values import Elements
from compiler.mid.ir import MidProgram
from compiler.models.blocks import mlp_block
from compiler.models.smoke import gemm_smoke
from compiler.planner.boundaries import boundaries_of
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import PREPARATIONS, TILE_MAPPINGS, Boundary, Options, Recipe

FILL = Normal(sigma=0.25)
EIGHT_BIT = F8(scale_exponent=-4)


def perceptron(rows: int, width: int, hidden: int, precision: Precision, blocks: int) -> Graph:
    """GELU(x up) down; several in a Repeat that carries x."""
    build = GraphBuilder("perceptron")
    x = build.input("x", (rows, width), fill=FILL)
    weights = {
        name: [build.parameter(f"{number}.{name}", shape, precision, fill=FILL) for number in range(blocks)]
        for name, shape in (("up", (width, hidden)), ("down", (hidden, width)))
    }
    declared = precision if isinstance(precision, F8) else None

    def block(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        up = build.gemm(tensors["x"], tensors["up"], precision=declared, name="hidden")
        return {"x": build.gemm(build.gelu(up, name="gelu"), tensors["down"], precision=declared, name="y")}

    if blocks == 1:
        build.output(block(build, {"x": x, "up": weights["up"][0], "down": weights["down"][0]})["x"])
    else:
        build.output(build.repeat(blocks, block, carried={"x": x}, sequences=weights, name="blocks")["x"])
    return build.finish()


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Models of all kinds, small."""
    precision: Precision = draw(st.sampled_from((F16(), EIGHT_BIT)))
    panel = precision.micro
    rows, width, hidden = (
        draw(st.integers(1, 60)),
        panel * draw(st.integers(1, 5)),
        panel * draw(st.integers(1, 8)),
    )
    kind = draw(st.sampled_from(("perceptron", "repeated", "block", "product", "batch")))
    match kind:
        case "block":
            return mlp_block(rows, width, hidden)
        case "product":
            return gemm_smoke(draw(st.sampled_from((4, 8, 16))))
        case "batch":
            return gemm_smoke(draw(st.sampled_from((4, 8))), batch=3)
        case _:
            return perceptron(rows, width, hidden, precision, 3 if kind == "repeated" else 1)


@st.composite
def programs(draw: st.DrawFn) -> MidProgram:
    """Planned for a random number of tiles by a random recipe: any shortlisted choice of each product."""
    graph = draw(graphs())
    setting = Setting(tile_count=draw(st.integers(4, 32)), replicate_inputs=draw(st.booleans()))
    options = Options(
        cast_before_copies=draw(st.booleans()),
        reuse_cast_inputs=draw(st.booleans()),
        packing_rows=draw(st.sampled_from((0, 32, 64))),
        preparation=draw(st.sampled_from(PREPARATIONS)),
        tile_mapping=draw(st.sampled_from(TILE_MAPPINGS)),
    )
    try:
        best = build_candidate(graph, setting, Recipe(options=options))
        chosen = {
            path: draw(st.sampled_from(alternatives)).choice
            for path, alternatives in best.alternatives.items()
        }
        boundaries: dict[str, Boundary] = {
            path: draw(st.sampled_from(forms)) for path, forms in boundaries_of(graph).items()
        }
        recipe = Recipe(gemms=chosen, boundaries=boundaries, options=options)
        return build_candidate(graph, setting, recipe).program
    except (Unsupported, DoesNotFit):
        # A choice whose layouts do not meet in whole words; nothing was expanded.
        reject()


def tensors(program: MidProgram, seed: int) -> dict[str, Elements]:
    """Inputs and parameters, of moderate size."""
    random = np.random.default_rng(seed)
    found: dict[str, Elements] = {}
    for value in map(program.block.value, program.block.arguments):
        precision = value.format.precision
        if isinstance(precision, F8):
            # Codes below 0x38 in magnitude are less than 1 before they are scaled; 0x80 is NaN.
            codes = random.integers(1, 0x38, value.shape) | random.integers(0, 2, value.shape) << 7
            found[value.name] = codes.astype(np.uint8)
        else:
            found[value.name] = (random.standard_normal(value.shape) / 4).astype(precision.dtype)
    return found


def executed(program: LowProgram, values: Mapping[str, Elements]) -> dict[str, Elements]:
    """Outputs of a low program on the byte executor."""
    execution = Execution(program)
    roles = {value.name: value.role for value in program.values}
    execution.upload({name: array for name, array in values.items() if roles[name] is Role.PARAMETER})
    return execution.run({name: array for name, array in values.items() if roles[name] is Role.INPUT})


def assert_same_bits(found: Mapping[str, Elements], expected: Mapping[str, Elements]) -> None:
    """Equal names, and equal bytes of every element."""
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert np.array_equal(found[name].view(np.uint8), array.view(np.uint8)), name
