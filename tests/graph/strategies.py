"""Random well-formed graphs and random numbers for them."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Constant, Fill, Graph, Normal, Value
from compiler.graph.rounding import stored

COMPUTED = st.sampled_from([F16(), F32()])
STORED = st.sampled_from([F16(), F32(), F8(scale_exponent=-4), F8(scale_exponent=1)])
SCALES = st.floats(min_value=0.1, max_value=2.0)
FILLS: st.SearchStrategy[Fill | None] = st.one_of(
    st.none(),
    st.builds(Normal, sigma=st.floats(min_value=0, max_value=4)),
    st.builds(Constant, value=st.floats(min_value=-4, max_value=4)),
)


def shapes(least_rank: int = 1, most_rank: int = 4, most: int = 3) -> st.SearchStrategy[tuple[int, ...]]:
    """Small shapes; now and then of twice as many axes, most of which are single."""
    extents = st.integers(min_value=1, max_value=most)
    usual = st.lists(extents, min_size=least_rank, max_size=most_rank).map(tuple)
    single = st.sampled_from([1, 1, 1, 2])
    many = st.lists(single, min_size=most_rank + 1, max_size=2 * most_rank).map(tuple)
    return st.one_of(usual, usual, many) if most_rank > 2 else usual


def numbers(value: Value, random: np.random.Generator) -> npt.NDArray[np.generic]:
    """Values of an input, as they are stored."""
    return stored(random.normal(size=value.type.shape) * 0.7, value.type.precision)


def bound(graph: Graph, seed: int) -> Mapping[str, npt.NDArray[np.generic]]:
    """Values of all inputs and parameters."""
    random = np.random.default_rng(seed)
    values = [graph.block.values[argument] for argument in graph.block.arguments]
    return {value.name: numbers(value, random) for value in values}


@st.composite
def broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with another one, which may grow by it: extents, and axes in front."""
    kept = draw(st.integers(min_value=0, max_value=len(shape)))
    grown = st.integers(min_value=2, max_value=3)
    extents = [
        draw(st.one_of(st.just(1), grown)) if extent == 1 else draw(st.sampled_from([1, extent]))
        for extent in shape[len(shape) - kept :]
    ]
    in_front = draw(shapes(0, 2, most=2)) if kept == len(shape) else ()
    return (*in_front, *extents) or (1,)


@st.composite
def reshaped(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that another one is reshaped to: axes are split, and then neighbours merged."""
    parts: list[int] = []
    for extent in shape:
        first = draw(st.sampled_from([number for number in range(1, extent + 1) if extent % number == 0]))
        parts += [first, extent // first] if draw(st.booleans()) else [extent]
    extents: list[int] = []
    for part in parts:
        if extents and draw(st.booleans()):
            extents[-1] *= part
        else:
            extents.append(part)
    return tuple(extents)


class Application:
    """Adds random operations to a block; sources that they need are asked for by ``source``."""

    def __init__(self, draw: st.DrawFn, build: BlockBuilder, graph: GraphBuilder) -> None:
        self._draw = draw
        self._build = build
        self._graph = graph
        self._count = 0

    def source(self, shape: tuple[int, ...], precision: Precision) -> Tensor:
        """A new input or parameter. Bodies have none: they use what they carry."""
        self._count += 1
        fill = self._draw(FILLS)
        if self._draw(st.booleans()):
            return self._graph.input(f"input {self._count}", shape, precision, fill=fill)
        return self._graph.parameter(f"parameter.{self._count}", shape, precision, fill=fill)

    def apply(self, kind: str, operand: Tensor | None = None) -> Tensor:
        """One operation of a kind, to ``operand`` or to new sources."""
        draw, build = self._draw, self._build
        match kind:
            case "gemm":
                return self._gemm(operand)
            case "add":
                left = operand or self.source(draw(shapes()), draw(COMPUTED))
                right = self.source(draw(broadcastable(left.shape)), left.type.precision)
                both = (left, right) if draw(st.booleans()) else (right, left)
                return build.add(*both)
            case "gelu":
                return build.gelu(operand or self.source(draw(shapes()), draw(COMPUTED)))
            case "softmax":
                return build.softmax(operand or self.source(draw(shapes(most=4)), draw(COMPUTED)))
            case "layer_norm":
                x = operand or self.source(draw(shapes(most=4)), draw(COMPUTED))
                epsilon = draw(st.sampled_from([1e-6, 1e-3, 0.5]))
                if draw(st.booleans()):
                    return build.layer_norm(x, epsilon=epsilon)
                vectors = [self.source(x.shape[-1:], x.type.precision) for _ in range(2)]
                return build.layer_norm(x, (vectors[0], vectors[1]), epsilon=epsilon)
            case "attention":
                return self._attention(operand)
            case "cast":
                return build.cast(operand or self.source(draw(shapes()), draw(STORED)), draw(STORED))
            case "repeat":
                return self._repeat(operand)
            case _:
                return self._view(kind, operand or self.source(draw(shapes(most=6)), draw(STORED)))

    def _view(self, kind: str, x: Tensor) -> Tensor:
        draw, build, rank = self._draw, self._build, len(x.shape)
        axis = draw(st.integers(min_value=0, max_value=rank - 1))
        match kind:
            case "reshape":
                return build.reshape(x, draw(reshaped(x.shape)))
            case "split_axis":
                divisors = [number for number in range(1, x.shape[axis] + 1) if x.shape[axis] % number == 0]
                first = draw(st.sampled_from(divisors))
                return build.split_axis(x, axis, (first, x.shape[axis] // first))
            case "merge_axes":
                return build.merge_axes(x, axis, draw(st.integers(min_value=1, max_value=rank - axis)))
            case "transpose":
                return build.transpose(x, draw(st.permutations(range(rank))))
            case "slice":
                start = draw(st.integers(min_value=0, max_value=x.shape[axis] - 1))
                return build.slice(x, axis, start, draw(st.integers(start + 1, x.shape[axis])))
            case "concat":
                extents = draw(st.lists(st.integers(min_value=1, max_value=3), max_size=2))
                others = [
                    self.source((*x.shape[:axis], extent, *x.shape[axis + 1 :]), x.type.precision)
                    for extent in extents
                ]
                return build.concat([x, *others], axis)
            case _:
                raise AssertionError(kind)

    def _product_precision(self, *operands: Precision) -> Precision | None:
        """A precision that operands can be multiplied in; None where they are equal already."""
        narrow = [precision for precision in operands if isinstance(precision, F8)]
        if narrow:
            return narrow[0]
        equal = len(set(operands)) == 1
        fitting = [F8(scale_exponent=-2)]
        fitting += [F16()] if F16() in operands or F32() in operands else []
        return self._draw(st.sampled_from([*([None] if equal else []), *fitting]))

    def _gemm(self, operand: Tensor | None) -> Tensor:
        draw = self._draw
        matrices = st.sampled_from([(2, 3), (1, 35), (3, 16), (2, 33), (33, 1)])
        batch_axes = draw(shapes(0, 2, most=2))
        left = operand or self.source((*batch_axes, *draw(matrices)), draw(STORED))
        if len(left.shape) < 2:
            left = self._build.reshape(left, (1, *left.shape))
        *batch, rows, inner = left.shape
        transpose_left, transpose_right = draw(st.booleans()), draw(st.booleans())
        if transpose_left:
            rows, inner = inner, rows
        columns = draw(st.integers(min_value=1, max_value=5))
        matrix = (columns, inner) if transpose_right else (inner, columns)
        right_batch = draw(broadcastable(tuple(batch))) if draw(st.booleans()) else ()
        narrow = isinstance(left.type.precision, F8)
        precision = left.type.precision if narrow else draw(STORED)
        right = self.source((*right_batch, *matrix), precision)
        return self._build.gemm(
            left,
            right,
            transpose_left=transpose_left,
            transpose_right=transpose_right,
            precision=self._product_precision(left.type.precision, precision),
        )

    def _attention(self, operand: Tensor | None) -> Tensor:
        draw = self._draw
        query = operand or self.source(draw(shapes(2, most=3)), draw(COMPUTED))
        if len(query.shape) < 2:
            query = self._build.reshape(query, (1, *query.shape))
        *batch, _, depth = query.shape
        keys, width = (
            draw(st.integers(min_value=1, max_value=20)),
            draw(st.integers(min_value=1, max_value=4)),
        )
        precision = query.type.precision
        narrow = F8(scale_exponent=-4)
        value_precision = draw(st.sampled_from([precision, narrow]))
        key = self.source((*batch, keys, depth), precision)
        value = self.source((*batch, keys, width), value_precision)
        return self._build.attention(
            query,
            key,
            value,
            scale=draw(SCALES),
            causal=draw(st.booleans()),
            score_precision=draw(st.sampled_from([None, F8(scale_exponent=-2)])),
            value_precision=narrow if value_precision == narrow else draw(st.sampled_from([None, narrow])),
        )

    def _repeat(self, operand: Tensor | None) -> Tensor:
        """What is carried changes places in each iteration; a member and an invariant are added."""
        draw = self._draw
        x = operand or self.source(draw(shapes()), F16())
        y, mask = (self.source(x.shape, x.type.precision) for _ in range(2))
        count = draw(st.integers(min_value=1, max_value=3))
        members = [self.source((x.shape[-1],), x.type.precision) for _ in range(count)]
        depth = draw(st.integers(min_value=0, max_value=1))

        def body(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            moved = build.add(build.add(tensors["x"], tensors["member"]), tensors["mask"])
            if depth:
                moved = build.repeat(2, halved, carried={"z": moved}, name="inner")["z"]
            return {"x": tensors["y"], "y": moved}

        def halved(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
            return {"z": build.gelu(tensors["z"])}

        made = self._build.repeat(
            count,
            body,
            carried={"x": x, "y": y},
            invariants={"mask": mask},
            sequences={"member": members},
        )
        return made["y"]


KINDS = (
    "gemm",
    "add",
    "gelu",
    "softmax",
    "layer_norm",
    "attention",
    "cast",
    "reshape",
    "split_axis",
    "merge_axes",
    "transpose",
    "slice",
    "concat",
    "repeat",
)

_CHAINED = ("gelu", "softmax", "layer_norm", "add", "transpose", "merge_axes", "slice", "concat", "repeat")


@st.composite
def single(draw: st.DrawFn, kind: str) -> Graph:
    """A graph with one operation of a kind, on inputs and parameters."""
    build = GraphBuilder(kind)
    build.output(Application(draw, build, build).apply(kind))
    return build.finish()


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A graph of several operations, some in a chain."""
    build = GraphBuilder(draw(st.sampled_from(["model", "a model", "Modell 1", 'quoted "name"'])))
    application = Application(draw, build, build)
    last: Tensor | None = None
    for kind in draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4)):
        chained = last is not None and kind in _CHAINED and not isinstance(last.type.precision, F8)
        last = application.apply(kind, last if chained else None)
        with build.noted(draw(st.sampled_from(["", "here", 'a "note"; # no comment']))):
            build.output(build.cast(last, F32()))
    return build.finish()
