"""How long whole-device programs take to verify, to make local and to interpret. Figures, no assertions.

A perceptron, 729 x 1152 x 4304 and back, on 1,472 tiles: products in parts of K, their sums, a bias and GELU.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.geometry.order import AmpLeft, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.relation import Identity, broadcast_relation
from compiler.kernels.pointwise.binding import Operation
from compiler.mid.build import BlockBuilder, program
from compiler.mid.interpret import interpret
from compiler.mid.ir import Compute, MidProgram, MidValueId, Value
from compiler.mid.local import bind_all, local_calls
from compiler.mid.verify import verify
from compiler.mid.work import Elementwise
from tests.mid.products import cut, grid_format, parallel_product, reduced

TILES = 1472


class Benchmark(Protocol):
    """The part of pytest-benchmark used here; it declares no types for it."""

    def pedantic(self, target: Callable[[], object], *, warmup_rounds: int, rounds: int) -> object:
        """Run ``target``."""
        ...


def perceptron() -> MidProgram:
    """Up on 2 x 92 x 8 tiles, down on 3 x 18 x 27."""
    owners = OwnerMap(tile_count=TILES)
    builder = BlockBuilder()

    def argument(name: str, shape: tuple[int, ...]) -> MidValueId:
        homes = grid_format(RowMajor(), (cut(0, min(shape[0], TILES)),))
        return builder.argument(Value(name=name, shape=shape, format=homes, owners=owners))

    def gemm(x: MidValueId, w: MidValueId, grid: tuple[int, int, int], node: str) -> MidValueId:
        rows, columns, parts = grid
        partials = parallel_product(
            builder, x, w, owners=owners, rows=rows, columns=columns, parts=parts, node=node
        )
        scattered = grid_format(AmpLeft(), (cut(0, rows * parts), cut(1, columns, block=16)))
        return reduced(builder, partials, tensor_format=scattered, owners=owners, node=node)

    x, up, bias, down = (
        argument(name, shape)
        for name, shape in (("x", (729, 1152)), ("up", (1152, 4304)), ("b", (4304,)), ("down", (4304, 1152)))
    )
    h = gemm(x, up, (2, 92, 8), "up")
    value = builder.value(h)
    near = builder.copy(
        bias,
        tensor_format=grid_format(RowMajor(), (cut(0, 92, block=16, stride=1),), replicas=16),
        owners=owners,
    )
    g = builder.compute(
        Elementwise(operation=Operation.BIAS_GELU),
        (h, near),
        (Identity(rank=2), broadcast_relation((4304,), value.shape)),
        shape=value.shape,
        tensor_format=value.format,
        owners=owners,
    )
    return program(
        builder.finish((gemm(g, down, (3, 18, 27), "down"),)),
        name="perceptron",
        tile_count=TILES,
        input_count=1,
        outputs=("y",),
    )


def test_verify(benchmark: BenchmarkFixture) -> None:
    """All clauses."""
    made = perceptron()
    assert benchmark(lambda: verify(made)) == ()


def test_local_calls(benchmark: BenchmarkFixture) -> None:
    """Calls of five computations, bound."""
    made = perceptron()
    computes = [operation for operation in made.block.operations if isinstance(operation, Compute)]
    benchmark(lambda: [bind_all(local_calls(made.block, compute)) for compute in computes])


def test_interpret(benchmark: Benchmark) -> None:
    """7.2 * 10^9 multiplications, shard by shard."""
    made = perceptron()
    random = np.random.default_rng(0)
    tensors = {
        value.name: (random.standard_normal(value.shape) / 30).astype(np.float16)
        for value in map(made.block.value, made.block.arguments)
    }
    benchmark.pedantic(lambda: interpret(made, tensors), warmup_rounds=0, rounds=1)
