"""Small graphs with the structure of the models, and what programs for them must compute."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, Precision, decode_f143, encode_f143
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import Graph
from compiler.mid.interpret import interpret
from compiler.mid.ir import MidProgram
from compiler.models.blocks import mlp_block

CODES: Final = F8(scale_exponent=-2)
Arrays = dict[str, npt.NDArray[np.generic]]


def mlp(precision: Precision, blocks: int = 1, rows: int = 20, width: int = 64, hidden: int = 96) -> Graph:
    """GELU(x up) down without biases, once or in a Repeat."""
    build = GraphBuilder("mlp")
    x = build.input("x", (rows, width), F16())

    def block(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        product = inner.gemm(tensors["x"], tensors["up"], precision=precision, name="hidden")
        curved = inner.gelu(product, name="gelu")
        return {"x": inner.gemm(curved, tensors["down"], precision=precision, name="y")}

    ups, downs = (
        [build.parameter(f"{name}{number}", shape, precision) for number in range(blocks)]
        for name, shape in (("up", (width, hidden)), ("down", (hidden, width)))
    )
    if blocks == 1:
        build.output(block(build, {"x": x, "up": ups[0], "down": downs[0]})["x"])
    else:
        made = build.repeat(
            blocks, block, carried={"x": x}, sequences={"up": ups, "down": downs}, name="blocks"
        )
        build.output(made["x"])
    return build.finish()


def projections() -> Graph:
    """Three products of one input and the sums of what comes of them: independent reductions."""
    build = GraphBuilder("projections")
    x = build.input("x", (12, 96), F16())
    parts = [
        build.gelu(build.gemm(x, build.parameter(f"w{number}", (96, 32), F16()), name=f"p{number}"))
        for number in range(3)
    ]
    build.output(build.concat(parts, axis=1, name="joined"))
    return build.finish()


def with_casts() -> Graph:
    """Casts by a node, of a product and of an input that is a product's operand too."""
    build = GraphBuilder("casts")
    x = build.input("x", (16, 64), F16())
    first = build.gemm(x, build.parameter("v", (64, 64), F16()), name="first")
    for number, tensor in enumerate((first, x)):
        codes = build.cast(tensor, CODES, name=f"codes{number}")
        weight = build.parameter(f"w{number}", (64, 32), CODES)
        build.output(build.gemm(codes, weight, name=f"product{number}"))
    return build.finish()


def residual() -> Graph:
    """A value that a product and a sum read, and a sum of two computed values that two products read."""
    build = GraphBuilder("residual")
    x = build.input("x", (12, 64), F16())
    first = build.gemm(x, build.parameter("v", (64, 64), F16()), name="first")
    second = build.gemm(
        build.gelu(first, name="curved"), build.parameter("u", (64, 64), F16()), name="second"
    )
    both = build.add(first, second, name="both")
    build.output(build.gemm(both, build.parameter("w0", (64, 32), F16()), name="product0"))
    build.output(build.gemm(both, build.parameter("w1", (64, 96), F16()), name="product1"))
    return build.finish()


def prepared() -> Graph:
    """Codes of what a product of one column of panels makes, and a product of something in rows."""
    build = GraphBuilder("prepared")
    x = build.input("x", (96, 32), F16())
    first = build.gemm(x, build.parameter("v", (32, 16), F16()), name="first")
    wide = build.reshape(first, (12, 128), name="wide")
    build.output(build.gemm(wide, build.parameter("w", (128, 64), CODES), precision=CODES, name="coded"))
    rows = build.concat([wide, wide], axis=0, name="rows")
    build.output(build.gemm(rows, build.parameter("u", (128, 64), F16()), name="plain"))
    return build.finish()


GRAPHS: Final[Mapping[str, Callable[[], Graph]]] = {
    "mlp": lambda: mlp(F16()),
    "mlp in F8": lambda: mlp(CODES),
    "two mlps": lambda: mlp(F16(), blocks=2),
    "two mlps in F8": lambda: mlp(CODES, blocks=2),
    "mlp with biases": lambda: mlp_block(20, 64, 128),
    "projections": projections,
    "casts": with_casts,
    "residual": residual,
    "prepared": prepared,
}


def tensors_of(graph: Graph, seed: int) -> Arrays:
    """Contents of all arguments, as they are stored."""
    random = np.random.default_rng(seed)
    arrays: Arrays = {}
    for number, argument in enumerate(graph.block.arguments):
        value = graph.block.values[argument]
        scale = 1.0 if number < graph.input_count else value.type.shape[0] ** -0.5
        numbers = random.normal(0, scale, value.type.shape).astype(np.float16)
        match value.type.precision:
            case F8(scale_exponent=exponent):
                arrays[value.name] = encode_f143(numbers.astype(np.float32), exponent)
            case precision:
                arrays[value.name] = numbers.astype(precision.dtype)
    return arrays


def outputs_of(made: MidProgram, arrays: Arrays) -> Arrays:
    """What a program computes; arguments are in the sequence of the graph's, whatever their axes."""
    given = {
        made.block.value(argument).name: arrays[made.block.value(argument).name].reshape(
            made.block.value(argument).shape
        )
        for argument in made.block.arguments
    }
    return interpret(made, given)


def assert_right(graph: Graph, made: MidProgram, seed: int, *, blocks: int = 1) -> None:
    """A program computes what the reference of the graph says, as closely as halves allow.

    A half that is another in the last place can become another code, an eighth away: what is small is the
    difference of all elements together. It grows with blocks, each of which works on the codes of the last.
    """
    has_codes = any(isinstance(value.type.precision, F8) for value in graph.block.values)
    tolerance = blocks * (0.05 if has_codes else 0.01)
    arrays = tensors_of(graph, seed)
    found, wanted = outputs_of(made, arrays), evaluate(graph, arrays, Numerics.ROUNDED)
    assert set(found) == set(wanted)
    precisions = {
        graph.block.values[output].name: graph.block.values[output].type.precision for output in graph.outputs
    }
    for name, array in wanted.items():
        expected = array.astype(np.float64)
        given = found[name].reshape(array.shape)
        precision = precisions[name]
        if isinstance(precision, F8):
            given = decode_f143(given, precision.scale_exponent)
        given = given.astype(np.float64)
        assert np.linalg.norm(given - expected) <= tolerance * np.linalg.norm(expected), name
