"""Floors of code and tables: true of what generators and emitters make, and counted where they are due."""

from collections.abc import Callable, Iterator, Mapping

import pytest

from compiler.estimate import least
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Graph
from compiler.isa.objects import ObjectFile
from compiler.kernels.objects import kernel_objects
from compiler.kernels.symbols import SymbolKey, parse_symbol
from compiler.package import templates
from compiler.package.runtime import DESCRIPTOR_WORDS, link_tile_code
from compiler.planner.floors import Floor, floors_of
from compiler.target.isa_decisions import our_decisions
from compiler.target.memory import SRAM_SIZE
from compiler.target.units import WORD_BYTES, Bytes
from tests.kernels.kernels import EVERY_KERNEL

NARROW = {"f32": F32(), "f16": F16(), "f8": F8(scale_exponent=0)}


@pytest.fixture(scope="module")
def kernels() -> Mapping[SymbolKey, int]:
    """Bytes of the code of every kernel."""
    keys = [parse_symbol(symbol) for symbol in EVERY_KERNEL]
    return {parse_symbol(made.name): size_of(made) for made in kernel_objects(keys, our_decisions())}


def size_of(made: ObjectFile) -> int:
    """Bytes of what an object adds to an image."""
    return sum(section.size for section in made.sections)


def words(*parts: int) -> int:
    """Bytes of so many words."""
    return WORD_BYTES * sum(parts)


def close(floor: int, smallest: int) -> bool:
    """A floor that is true, and so near that it says something."""
    return smallest * 3 // 4 <= floor <= smallest


def test_the_least_kernels_are_no_larger_than_generated_ones(kernels: Mapping[SymbolKey, int]) -> None:
    """Held against every object that there is."""

    def smallest(family: str, has: Callable[[SymbolKey], bool]) -> int:
        return min(size for key, size in kernels.items() if key.family == family and has(key))

    assert close(least.PRODUCT, smallest("gemm", lambda _: True))
    assert close(least.GELU, smallest("pointwise", lambda key: "gelu" in key.variant))
    assert close(least.ADDITION, smallest("pointwise", lambda _: True))


def test_the_least_casts_are_no_larger_than_generated_ones(kernels: Mapping[SymbolKey, int]) -> None:
    """Every way from one precision to a narrower one has a kernel of that size, by way of others too."""
    steps: dict[tuple[str, str], int] = {}
    for key, size in kernels.items():
        if key.family == "cast":
            step = (key.choice("source"), key.choice("result"))
            steps[step] = min(steps.get(step, size), size)

    def ways(source: str, result: str, seen: tuple[str, ...]) -> Iterator[int]:
        """The largest kernel of each way."""
        for (one, other), size in steps.items():
            if one != source or other in seen:
                continue
            if other == result:
                yield size
            for rest in ways(other, result, (*seen, other)):
                yield max(size, rest)

    for source, result in (("f32", "f16"), ("f32", "f8"), ("f16", "f8")):
        floor = least.narrowing(NARROW[source], NARROW[result])
        assert 0 < floor <= min(ways(source, result, (source,)))
        assert least.narrowing(NARROW[result], NARROW[source]) == 0


def test_the_least_programs_are_no_larger_than_emitted_ones() -> None:
    """Runtime, constructs of tile programs and descriptors, from what writes them."""
    image = link_tile_code((), ())
    assert close(least.RUNTIME, sum(section.size for section in image.sections))
    sizes = {
        one: len(one().words)
        for one in (
            templates.sample,
            templates.complete,
            templates.serve_again,
            templates.host_run,
            templates.follow,
            templates.open_frame,
            templates.close_frame,
        )
    }
    ends = min(sizes[templates.complete], sizes[templates.serve_again])
    assert words(2 * sizes[templates.sample], ends) == least.TILE_PROGRAM
    assert words(min(sizes[templates.host_run], sizes[templates.follow])) == least.HOST_MEETINGS
    assert words(sizes[templates.open_frame], sizes[templates.close_frame]) == least.LOOP
    shortest = min(templates.ArgumentForm, key=lambda form: form.value)
    assert words(len(templates.call((shortest,) * 3).words)) == least.CALL
    assert words(DESCRIPTOR_WORDS) == least.HOST_DESCRIPTOR
    assert words(templates.BUNDLE_WORDS) == least.EXCHANGE_ROW


def test_shares_of_tiles_add_up_before_they_are_rounded() -> None:
    """Some tile has the average, rounded up; parts that are rounded first would be more than the whole."""
    one, other = Floor(each=3, shared=10), Floor(shared=2)
    assert one.of_a_tile(8) == 3 + 2
    assert (one + other).of_a_tile(4) == 3 + 3
    assert one.of_a_tile(4) + other.of_a_tile(4) == 3 + 3 + 1


def chain(precisions: tuple[Precision, Precision], *, gelu: bool = False, bias: bool = False) -> Graph:
    """One product, stored and multiplied in given precisions, and what follows it."""
    stored, multiplied = precisions
    build = GraphBuilder("chain")
    x, w = build.input("x", (4, 32), stored), build.parameter("w", (32, 16), stored)
    declared = None if stored == multiplied else multiplied
    assert not isinstance(declared, F32)
    y = build.gemm(x, w, precision=declared)
    if bias:
        y = build.add(y, build.parameter("b", (16,), F16()))
    build.output(build.gelu(y) if gelu else y)
    return build.finish()


HALVES = (F16(), F16())
CASES: dict[str, tuple[Graph, int]] = {
    "product": (chain(HALVES), least.PRODUCT),
    "sum": (chain(HALVES, bias=True), least.PRODUCT + least.ADDITION),
    "GELU of a sum, which one kernel may do": (
        chain(HALVES, bias=True, gelu=True),
        least.PRODUCT + least.GELU,
    ),
    "operands of a wider precision": (
        chain((F16(), F8(scale_exponent=-2))),
        least.PRODUCT + least.narrowing(F16(), F8(scale_exponent=-2)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_family_that_a_graph_needs_is_counted_once(case: str) -> None:
    """And nothing else is: no copies, no sums of partials."""
    graph, kernels_bytes = CASES[case]
    assert floors_of(graph, SRAM_SIZE).code == Floor(
        each=least.RUNTIME + kernels_bytes + least.TILE_PROGRAM + 3 * least.HOST_MEETINGS, shared=least.CALL
    )


def looped(*, is_read: bool) -> Graph:
    """A Repeat whose body multiplies what it carries, and a sum that may be all that is read."""
    build = GraphBuilder("looped")
    x, w = build.input("x", (4, 16), F16()), build.parameter("w", (16, 16), F16())

    def body(inner: BlockBuilder, arguments: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {"h": inner.gemm(arguments["h"], arguments["w"]), "kept": inner.gelu(arguments["kept"])}

    after = build.repeat(3, body, carried={"h": x, "kept": x}, invariants={"w": w})
    build.output(after["h"] if is_read else after["kept"])
    return build.finish()


def test_loops_are_counted_and_what_they_compute_in_vain_is_not() -> None:
    """One of the two carried values is read; the other's arithmetic is no part of the floor."""
    frame = least.RUNTIME + least.TILE_PROGRAM + 3 * least.HOST_MEETINGS + least.LOOP
    assert floors_of(looped(is_read=True), SRAM_SIZE).code == Floor(
        each=frame + least.PRODUCT, shared=least.CALL
    )
    assert floors_of(looped(is_read=False), SRAM_SIZE).code == Floor(each=frame + least.GELU)


def test_every_page_of_every_tensor_has_a_descriptor() -> None:
    """An input of a page and two bytes, a parameter of two bytes, an output of a page and two bytes."""
    build = GraphBuilder("pages")
    x = build.input("x", (2049,), F16())
    build.output(build.add(x, build.parameter("w", (1,), F16())))
    assert floors_of(build.finish(), SRAM_SIZE).descriptors == Floor(shared=5 * least.HOST_DESCRIPTOR)


def deep(rows: int, *, is_turned: bool = False) -> Graph:
    """Two products, of which the second sums over all columns of the first."""
    build = GraphBuilder("deep")
    x = build.input("x", (rows, 8), F16())
    hidden = build.gelu(build.gemm(x, build.parameter("w", (8, 64), F16())))
    v = build.parameter("v", (rows, 8) if is_turned else (64, 8), F16())
    build.output(build.gemm(hidden, v, transpose_left=is_turned))
    return build.finish()


def test_tiles_exchange_where_a_number_depends_on_more_than_one_holds() -> None:
    """All of ``w`` in each number; or, summed over rows, all of ``x``. A tile that holds it needs no row."""
    weights, inputs = 2 * 8 * 64, 2 * 100 * 8
    assert floors_of(deep(4), Bytes(weights)).rows == Floor()
    assert floors_of(deep(4), Bytes(weights - 1)).rows == Floor(shared=2 * least.EXCHANGE_ROW)
    assert floors_of(deep(4), Bytes(weights // 4)).rows == Floor(shared=4 * least.EXCHANGE_ROW)
    assert floors_of(deep(100, is_turned=True), Bytes(inputs)).rows == Floor()
    assert floors_of(deep(100, is_turned=True), Bytes(inputs - 1)).rows == Floor(
        shared=2 * least.EXCHANGE_ROW
    )
