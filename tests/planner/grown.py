"""Graphs that grow at random from any operation that can be planned: odd extents, all precisions, views.

A number gives one graph, always the same: what went wrong once is kept by its number.
"""

from collections.abc import Callable, Mapping
from math import prod
from random import Random
from typing import Final

from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph, Normal

CODES: Final = F8(scale_exponent=-2)
PRECISIONS: Final[tuple[Precision, ...]] = (F16(), F16(), F16(), F32(), CODES)
TILES: Final = (1, 2, 3, 5, 7, 16, 24)
LONGEST: Final = 40
MOST_ELEMENTS: Final = 4000


class _Growth:
    """A graph that grows."""

    def __init__(self, number: int) -> None:
        self.random = Random(number)
        self.build = GraphBuilder(f"grown {number}")

    def extent(self) -> int:
        return self.random.randint(1, LONGEST)

    def parameter(self, shape: tuple[int, ...], precision: Precision, name: str) -> Tensor:
        return self.build.parameter(name, shape, precision, fill=Normal(sigma=0.1))

    def product(self, x: Tensor, name: str) -> Tensor:
        """With weights in a precision that the rules of products allow."""
        shape, precision = x.shape, x.type.precision
        if len(shape) < 2:
            return self.curved(x, name)
        transpose_left, transpose_right = self.random.random() < 0.2, self.random.random() < 0.3
        inner, columns = shape[-2 if transpose_left else -1], self.extent()
        batch = shape[:-2] if self.random.random() < 0.3 else ()
        weights: Precision = self.random.choice((F16(), F16(), CODES))
        declared: F16 | F8 | None = None
        match precision:
            case F32():
                weights, declared = self.random.choice((F16(), F32())), F16()
            case F16():
                declared = weights if isinstance(weights, F8) else None
            case F8():
                weights = precision
        shape = (*batch, columns, inner) if transpose_right else (*batch, inner, columns)
        return self.build.gemm(
            x,
            self.parameter(shape, weights, f"{name} weights"),
            transpose_left=transpose_left,
            transpose_right=transpose_right,
            precision=declared,
            name=name,
        )

    def curved(self, x: Tensor, name: str) -> Tensor:
        if not isinstance(x.type.precision, F16):
            return self.build.cast(x, F16(), name=name)
        return self.build.gelu(x, name=name)

    def added(self, x: Tensor, name: str) -> Tensor:
        """To a vector, to itself, or to anything that repeats to its shape; or both repeat."""
        if not isinstance(x.type.precision, F16):
            return self.build.cast(x, F16(), name=name)
        match self.random.randrange(4):
            case 0:
                other = self.parameter(x.shape[-1:], F16(), f"{name} other")
            case 1:
                other = x
            case 2:
                other = self.parameter((3, *(1 for _ in x.shape)), F16(), f"{name} other")
            case _:
                shape = tuple(extent if self.random.random() < 0.6 else 1 for extent in x.shape)
                other = self.parameter(shape, F16(), f"{name} other")
        pair = (x, other) if self.random.random() < 0.7 else (other, x)
        return self.build.add(*pair, name=name)

    def cast(self, x: Tensor, name: str) -> Tensor:
        return self.build.cast(x, self.random.choice((F16(), F32(), F8(scale_exponent=1))), name=name)

    def turned(self, x: Tensor, name: str) -> Tensor:
        order = list(range(len(x.shape)))
        self.random.shuffle(order)
        return self.build.transpose(x, order, name=name)

    def reshaped(self, x: Tensor, name: str) -> Tensor:
        """Axes merged, or the last one taken apart."""
        *first, last = x.shape
        if first and self.random.random() < 0.5:
            return self.build.reshape(x, (prod(x.shape),), name=name)
        part = self.random.choice([part for part in range(1, last + 1) if last % part == 0])
        return self.build.reshape(x, (*first, last // part, part), name=name)

    def joined(self, x: Tensor, name: str) -> Tensor:
        other = (
            x if self.random.random() < 0.6 else self.parameter(x.shape, x.type.precision, f"{name} other")
        )
        return self.build.concat([x, other], axis=self.random.randrange(len(x.shape)), name=name)

    def sliced(self, x: Tensor, name: str) -> Tensor:
        axis = self.random.randrange(len(x.shape))
        start = self.random.randrange(x.shape[axis])
        return self.build.slice(x, axis, start, self.random.randint(start + 1, x.shape[axis]), name=name)

    def looped(self, x: Tensor) -> Tensor:
        """A Repeat that carries it."""
        count, inner, width = self.random.randint(1, 3), x.shape[-1], self.extent()
        shapes = {"w": (inner, width), "v": (width, inner)}
        kind = self.random.randrange(3)
        if kind == 2:
            shapes = {"b": (inner,)}

        def body(block: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            carried = tensors["x"]
            if kind == 2:
                return {"x": block.gelu(block.add(carried, tensors["b"], name="o"), name="g")}
            hidden = block.gemm(carried, tensors["w"], name="p")
            if kind == 0:
                return {"x": block.gemm(block.gelu(hidden, name="g"), tensors["v"], name="q")}
            return {"x": block.add(carried, block.gemm(hidden, tensors["v"], name="q"), name="o")}

        sequences = {
            name: [self.parameter(shape, F16(), f"{name}{turn}") for turn in range(count)]
            for name, shape in shapes.items()
        }
        return self.build.repeat(count, body, carried={"x": x}, sequences=sequences, name="loop")["x"]

    def graph(self) -> Graph:
        rank = self.random.choice((1, 2, 2, 2, 3))
        shape = [self.extent() for _ in range(min(rank, 2))]
        if rank == 3:
            shape.insert(0, self.random.randint(1, 4))
        precision = self.random.choice(PRECISIONS)
        values = [self.build.input("x", tuple(shape), precision, fill=Normal(sigma=0.5))]
        kinds: tuple[Callable[[Tensor, str], Tensor], ...] = (
            self.product,
            self.product,
            self.curved,
            self.added,
            self.cast,
            self.turned,
            self.reshaped,
            self.joined,
            self.sliced,
        )
        for step in range(self.random.randint(1, 5)):
            x = self.random.choice(values[-3:])
            made = self.random.choice(kinds)(x, f"n{step}")
            if prod(made.shape) <= MOST_ELEMENTS:
                values.append(made)
        last = values[-1]
        if isinstance(last.type.precision, F16) and len(last.shape) > 1 and self.random.random() < 0.4:
            values.append(self.looped(last))
        if len(values) == 1:
            values.append(self.curved(values[0], "only"))
        self.build.output(values[-1])
        if len(values) > 2 and self.random.random() < 0.3:
            self.build.output(values[-2])
        return self.build.finish()


def grown(number: int) -> tuple[Graph, int]:
    """A graph, and for how many tiles it is planned."""
    growth = _Growth(number)
    graph = growth.graph()
    return graph, growth.random.choice(TILES)
