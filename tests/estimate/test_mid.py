"""Estimates of whole-device programs are of the work that expansion appends for them."""

import dataclasses
from collections.abc import Mapping

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from compiler.errors import NumberKind, Unsupported
from compiler.estimate.low import phase_estimates, timeline
from compiler.estimate.mid import estimate
from compiler.geometry.layout import TensorFormat
from compiler.geometry.order import AmpLeft, ElementOrder, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16
from compiler.geometry.tiling import GridTiling, LinearTiling
from compiler.graph.build import BlockBuilder as GraphBlockBuilder
from compiler.graph.build import GraphBuilder, Tensor
from compiler.low.expand.program import construct, expand
from compiler.mid.build import BlockBuilder, program
from compiler.mid.ir import MidProgram, Value
from compiler.mid.verify import verify
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from tests.mid.products import cut, grid_format, reduced


def summed(parts: int, rows: int, columns: int, tensor_format: TensorFormat, batch: int | None) -> MidProgram:
    """A sum of partials that are an input, one on each tile."""
    builder = BlockBuilder()
    owners = OwnerMap(tile_count=parts)
    partials = builder.argument(
        Value(
            name="partials",
            shape=(parts, rows, columns),
            format=grid_format(AmpLeft(), (cut(0, parts),)),
            owners=owners,
        )
    )
    total = reduced(builder, partials, tensor_format=tensor_format, owners=owners, batch=batch, node="total")
    return program(builder.finish([total]), name="sums", tile_count=parts, input_count=1, outputs=["total"])


@given(
    parts=st.integers(2, 8),
    rows=st.integers(1, 5),
    panels=st.integers(1, 4),
    order=st.sampled_from((AmpLeft(), RowMajor())),
    batch=st.sampled_from((None, 1)),
)
def test_a_sum_takes_what_its_expansion_takes(
    parts: int, rows: int, panels: int, order: ElementOrder, batch: int | None
) -> None:
    """RD-04, RD-11: phases, calls, and copies of first partials that cannot be summed from where they lie."""
    shape = (parts * rows, 16 * panels)
    made = summed(parts, *shape, grid_format(order, (cut(0, parts),)), batch)
    assert verify(made) == ()
    low = construct(made)
    event("first partials are copied" if len(low.copies.step) else "summed from where they lie")
    assert estimate(made).cycles == timeline(low, phase_estimates(low), NumberKind.ESTIMATED).cycles


def test_a_sum_that_is_cut_in_runs_is_refused_by_name() -> None:
    """It is a program, and nothing builds it: the node is named, by the estimate and by the expansion."""
    scattered = grid_format(RowMajor(), (cut(0, 4),))
    runs = dataclasses.replace(
        scattered,
        layout=dataclasses.replace(scattered.layout, tiling=LinearTiling(partitions=4, grain=16)),
    )
    assert isinstance(scattered.layout.tiling, GridTiling)
    made = summed(4, 8, 32, runs, None)
    assert verify(made) == ()
    for build in (estimate, expand):
        with pytest.raises(Unsupported, match="shards of the result are runs of storage") as refusal:
            build(made)
        assert refusal.value.nodes == ("total",)


@pytest.mark.parametrize("tiles", [1, 4])
@pytest.mark.parametrize("turn", ["exchange", "invariant", "member", "itself", "made", "twice"])
def test_a_loop_takes_what_its_expansion_takes(turn: str, tiles: int) -> None:
    """RP-06: what is carried in, set aside and carried back, outputs that are not made in place."""
    build = GraphBuilder("loop")
    x, y = (build.input(name, (8, 16), F16()) for name in ("x", "y"))

    def body(inner: GraphBlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        made = inner.gelu(tensors["x"], name="made")
        given = {
            "exchange": (tensors["y"], tensors["x"]),
            "invariant": (tensors["i"], tensors["i"]),
            "member": (tensors["s"], made),
            "itself": (tensors["x"], made),
            "made": (made, tensors["x"]),
            "twice": (made, made),
        }
        return dict(zip(("x", "y"), given[turn], strict=True))

    carried = {"x": build.gelu(x, name="start"), "y": y}
    made = build.repeat(3, body, carried=carried, invariants={"i": y}, sequences={"s": [x, y, x]}, name="l")
    for tensor in (*made.values(), build.reshape(y, y.shape, name="given")):
        build.output(tensor)
    planned = build_candidate(build.finish(), Setting(tile_count=tiles), Recipe()).program
    low = construct(planned)
    assert estimate(planned).cycles == timeline(low, phase_estimates(low), NumberKind.ESTIMATED).cycles
