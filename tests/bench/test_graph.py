"""Time of the reference, and of reading and checking graphs.

The reference of the MLP of SigLIP at batch 1 with partial sums rounded after each panel (7.2 * 10^9
multiplications) has to stay below 10 s on two cores; the texts are of the shapes that are costly to read.
"""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.graph.codec import STORED_GRAPH, stored
from compiler.graph.digest import graph_digest
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.parameters import RandomTensors
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from compiler.graph.verify import verify
from compiler.models.blocks import siglip_mlp
from compiler.models.registry import model_named

LONG = 100_000
"""Nodes of a chain; operands of a concat."""
WIDE = 20_000
"""Carried values of a Repeat."""


def _chain() -> str:
    lines = [f"y{number + 1}: F16[4] = gelu(y{number})" for number in range(LONG)]
    return "\n".join(["graph chain", "input y0: F16[4]", *lines, f"output y{LONG}\n"])


def _wide() -> str:
    declared = ", ".join(f"r{number}: F16[4]" for number in range(WIDE))
    carried = [f"carried a{number}: F16[4] = x" for number in range(WIDE)]
    given = ", ".join(f"a{number}" for number in range(WIDE))
    head = ["graph wide", "input x: F16[4]", f"{declared} = repeat 1 {{"]
    return "\n".join([*head, *carried, f"yield {given}", "}", "output r0\n"])


def _concat() -> str:
    operands = ", ".join(["x"] * LONG)
    return f"graph c\ninput x: F16[1]\ny: F16[{LONG}] = concat({operands}, axis=0)\noutput y\n"


TEXTS = {"chain": _chain, "wide repeat": _wide, "concat": _concat}


@pytest.mark.parametrize("numerics", list(Numerics), ids=lambda numerics: numerics.name)
def test_reference_of_the_mlp(benchmark: BenchmarkFixture, numerics: Numerics) -> None:
    graph = siglip_mlp()
    drawn = RandomTensors(graph, 0)
    tensors = {name: drawn[name] for name in drawn}
    benchmark(lambda: evaluate(graph, tensors, numerics))


def test_random_parameters_of_the_mlp(benchmark: BenchmarkFixture) -> None:
    graph = siglip_mlp()
    benchmark(lambda: dict(RandomTensors(graph, 0)))


@pytest.mark.parametrize("name", TEXTS)
def test_reading_large_texts(benchmark: BenchmarkFixture, name: str) -> None:
    text = TEXTS[name]()
    benchmark(lambda: parse_graph(text, "f"))


@pytest.mark.parametrize("part", ["build", "verify", "text", "parse", "digest", "store"])
def test_the_largest_model(benchmark: BenchmarkFixture, part: str) -> None:
    """The tower of 27 layers."""
    model = model_named("siglip-vit-27")
    graph = model.build()
    text = text_of_graph(graph)
    calls = {
        "build": model.build,
        "verify": lambda: verify(graph),
        "text": lambda: text_of_graph(graph),
        "parse": lambda: parse_graph(text, "f"),
        "digest": lambda: graph_digest(graph),
        "store": lambda: STORED_GRAPH.join(dict(STORED_GRAPH.split(stored(graph))).__getitem__),
    }
    benchmark(calls[part])
