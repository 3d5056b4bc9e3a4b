"""Graphs of shapes that nothing divides, with the bindings that models seldom have."""

from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph

Grow = Callable[[st.DrawFn, GraphBuilder], None]
EXTENTS = st.sampled_from((1, 2, 3, 5, 7, 13, 16, 17, 31, 32, 33, 48, 61, 64))
EVEN = st.sampled_from((2, 4, 6, 16, 18, 32, 34, 48, 64))


def _batches(draw: st.DrawFn, build: GraphBuilder) -> None:
    """Several batch axes, which one operand or both have."""
    batch = draw(st.sampled_from(((1,), (5,), (2, 3), (2, 1, 2))))
    rows, inner, columns = draw(EXTENTS), draw(EVEN), draw(EVEN)
    x = build.input("x", (*batch, rows, inner), F16())
    first = build.parameter("v", draw(st.sampled_from(((inner, columns), (*batch, inner, columns)))), F16())
    curved = build.gelu(build.gemm(x, first, name="first"), name="curved")
    build.output(build.gemm(curved, build.parameter("w", (columns, draw(EVEN)), F16()), name="second"))


def _transposed(draw: st.DrawFn, build: GraphBuilder) -> None:
    """One product, its operands stored either way, in any precisions."""
    precision: Precision = draw(st.sampled_from((F16(), F8(scale_exponent=-3), F8(scale_exponent=2))))
    rows, inner, columns = draw(EXTENTS), draw(EVEN), draw(EXTENTS)
    left, right = draw(st.booleans()), draw(st.booleans())
    x = build.input("x", (inner, rows) if left else (rows, inner), F16())
    w = build.parameter("w", (columns, inner) if right else (inner, columns), precision)
    declared = precision if isinstance(precision, F8) else None
    build.output(build.gemm(x, w, transpose_left=left, transpose_right=right, precision=declared, name="y"))


def _views(draw: st.DrawFn, build: GraphBuilder) -> None:
    """A product between two reshapes, and slices of it joined the other way round."""
    rows, width, inner = draw(st.integers(1, 9)), draw(st.sampled_from((2, 3, 4))), draw(EVEN)
    x = build.reshape(build.input("x", (rows, width * inner), F16()), (rows * width, inner), name="seen")
    y = build.gemm(x, build.parameter("w", (inner, 32), F16()), name="y")
    build.output(build.gelu(build.reshape(y, (rows, width * 32), name="back"), name="curved"))
    halves = [build.slice(y, 1, start, start + 16, name=f"half{start}") for start in (16, 0)]
    build.output(build.concat(halves, axis=1, name="joined"))


def _exchanging(draw: st.DrawFn, build: GraphBuilder) -> None:
    """A Repeat that exchanges what it carries, whose sequences share members and invariants."""
    count, rows, width = draw(st.integers(1, 4)), draw(st.integers(1, 20)), draw(EVEN)
    x, z = (build.input(name, (rows, width), F16()) for name in ("x", "z"))
    weights = [build.parameter(f"w{number}", (width, width), F16()) for number in range(2)]
    # The name of what the first product is copied to.
    biases = [build.parameter(name, (width,), F16()) for name in ("b", "loop/p.copy")]
    members = [draw(st.sampled_from(weights)) for _ in range(count)]
    added = [draw(st.sampled_from(biases)) for _ in range(count)]
    turn = draw(st.integers(0, 2))

    def body(inner: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        product = inner.gemm(tensors["x"], tensors["w"], name="p")
        biased = inner.add(product, tensors["loop/p.copy"], name="biased")
        match turn:
            case 0:
                return {"x": tensors["z"], "z": biased}
            case 1:
                return {"x": inner.add(tensors["z"], biased, name="both"), "z": biased}
            case _:
                return {"x": inner.gelu(inner.gemm(biased, tensors["v"], name="q")), "z": tensors["z"]}

    made = build.repeat(
        count,
        body,
        carried={"x": x, "z": z},
        invariants={"v": weights[0]},
        sequences={"w": members, "loop/p.copy": added},
        name="loop",
    )
    build.output(made["x"])
    build.output(made["z"])


@st.composite
def odd_graphs(draw: st.DrawFn) -> Graph:
    """One of them."""
    build = GraphBuilder("odd")
    grow: Grow = draw(st.sampled_from((_batches, _transposed, _views, _exchanging)))
    grow(draw, build)
    return build.finish()
