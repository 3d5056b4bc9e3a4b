"""How far outputs of a simulated package may be from the reference: by what its graph rounds."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from compiler.evaluation.stage_model_simulation import compared, has_f8
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor

CODES = F8(scale_exponent=-2)


def cast(graph: GraphBuilder, to: Precision, *, stored: Precision) -> Tensor:
    """One cast of an input."""
    return graph.cast(graph.input("x", (2, 16), stored), to)


def product(graph: GraphBuilder, declared: F16 | F8 | None, *, stored: Precision) -> Tensor:
    """One product of an input and a parameter, both stored in one precision."""
    x, w = graph.input("x", (2, 16), stored), graph.parameter("w", (16, 16), stored)
    return graph.gemm(x, w, precision=declared)


def repeated(graph: GraphBuilder, declared: F16 | F8 | None) -> Tensor:
    """A product in the body of a Repeat."""
    x, w = graph.input("x", (2, 16), F16()), graph.parameter("w", (16, 16), F16())

    def body(inner: BlockBuilder, arguments: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"h": inner.gemm(arguments["h"], arguments["w"], precision=declared)}

    return graph.repeat(2, body, carried={"h": x}, invariants={"w": w})["h"]


def sliced(graph: GraphBuilder) -> Tensor:
    """Codes that are moved and widened, which rounds nothing."""
    x = graph.input("x", (2, 16), CODES)
    return graph.cast(graph.slice(x, 0, 0, 1), F16())


CASES: dict[str, tuple[Callable[[GraphBuilder], Tensor], bool]] = {
    "F16 product": (lambda graph: product(graph, None, stored=F16()), False),
    "product rounded to F16": (lambda graph: product(graph, F16(), stored=F32()), False),
    "product rounded to F8": (lambda graph: product(graph, CODES, stored=F16()), True),
    "product of codes": (lambda graph: product(graph, None, stored=CODES), True),
    "cast to F16": (lambda graph: cast(graph, F16(), stored=F32()), False),
    "cast to F8": (lambda graph: cast(graph, CODES, stored=F16()), True),
    "codes moved": (sliced, False),
    "F16 in a body": (lambda graph: repeated(graph, None), False),
    "F8 in a body": (lambda graph: repeated(graph, CODES), True),
}


@pytest.mark.parametrize("case", CASES)
def test_one_product_or_cast_of_f8_widens_the_tolerance(case: str) -> None:
    """A difference of a tenth around 0 is a fault exactly where nothing is of F8."""
    build, rounds = CASES[case]
    graph = GraphBuilder("rounded")
    graph.output(build(graph))
    finished = graph.finish()
    assert has_f8(finished.block) == rounds
    wanted = np.array([0.0, 8.0], dtype=np.float32)
    _, _, fault = compared(wanted + np.float32(0.1), wanted, is_f8=has_f8(finished.block))
    assert (fault is None) == rounds
