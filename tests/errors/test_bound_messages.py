"""What planning says of models whose floors exceed a tile: exact text, with every part and its limit."""

import pytest

from compiler.errors import DoesNotFit
from compiler.estimate.prices import DATA_BUDGET
from compiler.geometry.precision import F16
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.planner.bounds import Limits, check_bounds
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from compiler.target.units import Bytes


def product() -> Graph:
    """A product of small matrices."""
    build = GraphBuilder("product")
    x, w = build.input("x", (4, 16), F16()), build.parameter("w", (16, 8), F16())
    build.output(build.gelu(build.gemm(x, w, name="y"), name="z"))
    return build.finish()


def many_parameters() -> Graph:
    """Some data, in so many tensors that the host's descriptors leave no room for them."""
    build = GraphBuilder("many")
    whole = build.input("x", (1, 16), F16())
    for number in range(4000):
        build.parameter(f"bias{number}", (1,), F16())
    build.output(build.gemm(whole, build.parameter("w", (16, 17_800), F16()), name="y"))
    return build.finish()


def test_data_fit_and_descriptors_do_not() -> None:
    """With the limits of the chip, on one tile, before any layout is tried."""
    with pytest.raises(DoesNotFit) as refused:
        build_candidate(many_parameters(), Setting(tile_count=1), Recipe())
    numbers = {measure.name: measure for measure in refused.value.numbers}
    data = numbers["floor of a tile's data"]
    assert data.limit is not None
    assert data.value <= data.limit == DATA_BUDGET
    assert str(refused.value) == (
        "does not fit (planner): many: parameters, each stored once, with code, rows and descriptors need "
        "more than the 1 tile has.\n"
        "  floor of a tile's data: 577,600 bytes (bound), limit 586,960\n"
        "  floor of a tile's code: 1,664 bytes (bound)\n"
        "  floor of a tile's exchange rows: 0 bytes (bound)\n"
        "  floor of a tile's descriptors: 49,800 bytes (bound)\n"
        "  floor of a tile's code and rows together: 1,664 bytes (bound), limit 163,824\n"
        "  floor of a tile's memory, with what runtime and host reserve: 663,608 bytes (bound), "
        "limit 638,976, 24,632 too many\n"
        "  kept free of data for code, exchange rows and descriptors: 49,152 bytes (bound)\n"
        "  graph nodes: y\n"
        "  next: use at least 2 tiles or a narrower precision"
    )


def test_data_fit_and_code_does_not() -> None:
    """On a tile with little memory: every tile has the code, and more of them do not help."""
    with pytest.raises(DoesNotFit) as refused:
        check_bounds(product(), 4, Limits(memory=Bytes(36_000)))
    assert str(refused.value) == (
        "does not fit (planner): product: parameters, each stored once, with code, rows and descriptors need "
        "more than the 4 tiles have.\n"
        "  floor of a tile's data: 64 bytes (bound), limit 586,960\n"
        "  floor of a tile's code: 2,124 bytes (bound)\n"
        "  floor of a tile's exchange rows: 0 bytes (bound)\n"
        "  floor of a tile's descriptors: 9 bytes (bound)\n"
        "  floor of a tile's code and rows together: 2,124 bytes (bound), limit 163,824\n"
        "  floor of a tile's memory, with what runtime and host reserve: 36,741 bytes (bound), "
        "limit 36,000, 741 too many\n"
        "  kept free of data for code, exchange rows and descriptors: 49,152 bytes (bound)\n"
        "  graph nodes: y\n"
        "  next: build a part of the model"
    )


def test_memory_suffices_and_what_runs_code_does_not() -> None:
    """The executable part of the memory has a limit of its own, whose excess is named."""
    limit = Bytes(2123)
    with pytest.raises(
        DoesNotFit, match="code and exchange rows need more than a tile can execute"
    ) as refused:
        check_bounds(product(), 4, Limits(executable=limit))
    assert [number.name for number in refused.value.numbers if number.limit == limit] == [
        "floor of a tile's code and rows together"
    ]
    check_bounds(product(), 4, Limits(executable=Bytes(limit + 1)))
