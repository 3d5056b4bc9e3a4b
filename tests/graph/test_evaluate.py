"""The reference evaluation against explicit loops, and what it must not do."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16, F32, Precision, encode_f143
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import Block, Graph, Node, Repeat, ValueId
from compiler.graph.order import in_definition_order
from compiler.graph.parser import parse_graph
from compiler.graph.verify import verify
from tests.graph.oracle import Oracle
from tests.graph.strategies import KINDS, bound, graphs, single

SEEDS = st.integers(min_value=0, max_value=1 << 32)


def _one(outputs: Mapping[str, npt.NDArray[np.floating]]) -> npt.NDArray[np.float64]:
    (array,) = outputs.values()
    return array.astype(np.float64)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_each_operation_is_what_loops_compute(kind: str, data: st.DataObject) -> None:
    """Shapes, ranks, broadcasts, flags and precisions are random; nothing is rounded on the way."""
    graph = data.draw(single(kind))
    tensors = bound(graph, data.draw(SEEDS))
    wanted = _one(Oracle().outputs(graph, tensors))
    found = _one(evaluate(graph, tensors, Numerics.F32))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "attention"])
@given(data=st.data())
def test_each_operation_rounds_operands_and_result(kind: str, data: st.DataObject) -> None:
    """Two F16 numbers that are neighbours may be exchanged where binary32 sums end beside a tie."""
    graph = data.draw(single(kind))
    tensors = bound(graph, data.draw(SEEDS))
    wanted = _one(Oracle(rounds=True).outputs(graph, tensors))
    found = _one(evaluate(graph, tensors, Numerics.ROUNDED))
    np.testing.assert_allclose(found, wanted, rtol=2**-10, atol=1e-5)
    exchanged = np.count_nonzero(found != wanted)
    is_rounded = graph.block.values[graph.outputs[0]].type.precision != F32()
    assert not is_rounded or exchanged <= max(1, found.size // 10)


@pytest.mark.parametrize("numerics", [Numerics.ROUNDED, Numerics.ROUNDED_PANELS])
@given(data=st.data())
def test_attention_rounds_scores_and_probabilities(numerics: Numerics, data: st.DataObject) -> None:
    """A probability beside a tie of F8 may fall to the other side: an eighth of it, times a value."""
    graph = data.draw(single("attention"))
    tensors = bound(graph, data.draw(SEEDS))
    oracle = Oracle(rounds=True, panels=numerics is Numerics.ROUNDED_PANELS)
    difference = np.abs(_one(oracle.outputs(graph, tensors)) - _one(evaluate(graph, tensors, numerics)))
    assert difference.max() < 0.15
    assert np.median(difference) < 2e-3


@given(data=st.data())
def test_products_round_after_each_panel(data: st.DataObject) -> None:
    graph = data.draw(single("gemm"))
    tensors = bound(graph, data.draw(SEEDS))
    wanted = _one(Oracle(rounds=True, panels=True).outputs(graph, tensors))
    found = _one(evaluate(graph, tensors, Numerics.ROUNDED_PANELS))
    np.testing.assert_allclose(found, wanted, rtol=2**-10, atol=2**-9)


@pytest.mark.parametrize(("precision", "panel"), [(F16(), 16), (F8(), 32)])
def test_panels_lose_what_f16_cannot_hold(precision: Precision, panel: int) -> None:
    """2,048 + 0.75 is 2,048 in F16, as often as a panel ends there."""
    build = GraphBuilder("panels")
    x = build.input("x", (1, 5 * panel), F16())
    w = build.input("w", (5 * panel, 1), F16())
    build.output(build.gemm(x, w, precision=precision, name="y"))
    graph = build.finish()
    left, right = np.zeros((1, 5 * panel), np.float16), np.zeros((5 * panel, 1), np.float16)
    left[0, 0], right[0, 0] = 64, 32
    left[0, panel::panel], right[panel::panel, 0] = 0.75, 1
    tensors: dict[str, npt.NDArray[np.generic]] = {"x": left, "w": right}
    assert evaluate(graph, tensors, Numerics.F32)["y"] == 2051
    assert evaluate(graph, tensors, Numerics.ROUNDED)["y"] == 2052  # spacing 2, to even
    assert evaluate(graph, tensors, Numerics.ROUNDED_PANELS)["y"] == 2048


def test_declared_precision_rounds_operands_but_not_in_f32() -> None:
    build = GraphBuilder("operands")
    x, w = build.input("x", (1, 1)), build.parameter("w", (1, 1))
    build.output(build.gemm(x, w, precision=F8(scale_exponent=0), name="y"))
    graph = build.finish()
    tensors: dict[str, npt.NDArray[np.generic]] = {
        "x": np.full((1, 1), 1.0625, np.float16),  # halfway from 1 to 1.125, to even
        "w": np.full((1, 1), 300, np.float16),  # above 240
    }
    assert evaluate(graph, tensors, Numerics.F32)["y"] == 318.75
    assert evaluate(graph, tensors, Numerics.ROUNDED)["y"] == 240


def test_f8_values_are_read_as_codes_with_their_scale() -> None:
    build = GraphBuilder("codes")
    build.output(build.cast(build.input("x", (2,), F8(scale_exponent=3)), F16(), name="y"))
    codes: dict[str, npt.NDArray[np.generic]] = {"x": encode_f143([8.0, -24.0], 3)}
    assert evaluate(build.finish(), codes, Numerics.F32)["y"].tolist() == [8.0, -24.0]


def test_too_large_becomes_the_largest_and_infinity_stays() -> None:
    build = GraphBuilder("large")
    build.output(build.cast(build.input("x", (3,), F32()), F16(), name="y"))
    graph = build.finish()
    tensors: dict[str, npt.NDArray[np.generic]] = {"x": np.array([1e9, -7e4, np.inf], np.float32)}
    assert evaluate(graph, tensors, Numerics.ROUNDED)["y"].tolist() == [65504.0, -65504.0, np.inf]


@given(data=st.data())
def test_inputs_are_not_written_to(data: st.DataObject) -> None:
    graph = data.draw(single(data.draw(st.sampled_from(KINDS))))
    tensors = bound(graph, 0)
    before = {name: array.copy() for name, array in tensors.items()}
    for numerics in Numerics:
        evaluate(graph, tensors, numerics)
    for name, array in tensors.items():
        np.testing.assert_array_equal(array, before[name])


def _layer(build: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
    """A body with two carried values that change places, an invariant and two sequences."""
    hidden = build.gelu(build.gemm(tensors["x"], tensors["weight"]))
    moved = build.add(build.add(hidden, tensors["bias"]), tensors["mask"])
    return {"x": build.layer_norm(tensors["other"], epsilon=1e-3), "other": moved}


def _layers(count: int, *, unrolled: bool) -> Graph:
    build = GraphBuilder("layers")
    carried = {name: build.input(name, (5, 8), F32()) for name in ("x", "other")}
    mask = build.parameter("mask", (1, 8), F32())
    weights = [build.parameter(f"weight {number}", (8, 8), F32()) for number in range(count)]
    biases = [build.parameter(f"bias {number}", (8,), F32()) for number in range(count)]
    if unrolled:
        for weight, bias in zip(weights, biases, strict=True):
            carried = dict(_layer(build, {**carried, "mask": mask, "weight": weight, "bias": bias}))
    else:
        carried = build.repeat(
            count,
            _layer,
            carried=carried,
            invariants={"mask": mask},
            sequences={"weight": weights, "bias": biases},
        )
    build.output(carried["x"])
    build.output(carried["other"])
    return build.finish()


def _unrolled(block: Block) -> Block:
    """The block with the nodes of bodies in the place of repeats, once for each iteration."""
    values, nodes = list(block.values), list[Node]()
    name = {ValueId(row): ValueId(row) for row in range(len(values))}

    def inlined(inner: Block, bound: Sequence[ValueId]) -> Sequence[ValueId]:
        known = dict(zip(inner.arguments, bound, strict=True))
        for node in inner.nodes:
            operands = [known[operand] for operand in node.operands]
            known.update(zip(node.results, applied(node, operands, inner), strict=True))
        return [known[result] for result in inner.results]

    def applied(node: Node, operands: Sequence[ValueId], owner: Block) -> Sequence[ValueId]:
        if isinstance(node.operation, Repeat):
            bindings = node.operation.bindings(operands)
            carried: Sequence[ValueId] = bindings.carried
            for iteration in range(node.operation.count):
                members = [sequence[iteration] for sequence in bindings.sequences]
                carried = inlined(node.operation.body, [*carried, *bindings.invariants, *members])
            return carried
        results = [ValueId(len(values) + number) for number in range(len(node.results))]
        values.extend(
            replace(owner.values[result], name=f"value {new}")
            for result, new in zip(node.results, results, strict=True)
        )
        nodes.append(replace(node, operands=tuple(operands), results=tuple(results)))
        return results

    for node in block.nodes:
        operands = [name[operand] for operand in node.operands]
        name.update(zip(node.results, applied(node, operands, block), strict=True))
    results = tuple(name[result] for result in block.results)
    return in_definition_order(
        Block(values=tuple(values), arguments=block.arguments, nodes=tuple(nodes), results=results)
    )


@pytest.mark.parametrize("numerics", list(Numerics))
@given(data=st.data())
def test_random_repeats_equal_their_unrolled_forms(numerics: Numerics, data: st.DataObject) -> None:
    """With what is around them, nested ones too: bit for bit."""
    graph = data.draw(st.one_of(single("repeat"), graphs()))
    unrolled = replace(graph, block=_unrolled(graph.block))
    assert verify(unrolled) == ()
    assert not any(isinstance(node.operation, Repeat) for node in unrolled.block.nodes)
    tensors = bound(graph, data.draw(SEEDS))
    found = evaluate(graph, tensors, numerics).values()
    wanted = evaluate(unrolled, tensors, numerics).values()
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def _result(text: str, **tensors: npt.ArrayLike) -> list[float]:
    """Elements of y, in binary32."""
    graph = parse_graph(f"graph g\n{text}\noutput y", "f")
    given = {
        graph.block.values[argument].name: np.asarray(
            tensors[graph.block.values[argument].name], graph.block.values[argument].type.precision.dtype
        )
        for argument in graph.block.arguments
    }
    return evaluate(graph, given, Numerics.F32)["y"].ravel().tolist()


def test_rows_without_spread_are_normalized_to_the_bias() -> None:
    text = "input x: F16[2,2]\ninput s: F16[2]\ninput b: F16[2]\n"
    text += "y: F16[2,2] = layer_norm(x, s, b, epsilon=1e-06)"
    assert _result(text, x=[[3, 3], [65504, 65504]], s=[1, 2], b=[5, -6]) == [5, -6, 5, -6]


def test_minus_infinity_has_no_share() -> None:
    """Unless everything is: shares of nothing do not exist, as in IEEE 754."""
    found = _result("input x: F32[2,2]\ny: F32[2,2] = softmax(x)", x=[[-np.inf, 7], [-np.inf, -np.inf]])
    assert found[:2] == [0, 1]
    assert np.isnan(found[2:]).all()


def test_large_numbers_pass_gelu() -> None:
    largest = float(np.finfo(np.float32).max)
    assert _result("input x: F32[3]\ny: F32[3] = gelu(x)", x=[largest, -largest, np.inf]) == [
        largest,
        0,
        np.inf,
    ]


@pytest.mark.parametrize(("queries", "keys"), [(5, 2), (2, 5), (1, 4), (4, 1)])
def test_causal_queries_see_nothing_behind_them(queries: int, keys: int) -> None:
    """A change of key and value j reaches the queries from j on, and no other."""
    text = f"input q: F32[{queries},2]\ninput k: F32[{keys},2]\ninput v: F32[{keys},1]\n"
    text += f"y: F32[{queries},1] = attention(q, k, v, scale=0.5, causal=true)"
    random = np.random.default_rng(queries)
    q, k, v = (random.normal(size=shape) for shape in ((queries, 2), (keys, 2), (keys, 1)))
    before = np.array(_result(text, q=q, k=k, v=v))
    for key in range(keys):
        other_keys, other_values = k.copy(), v.copy()
        other_keys[key] += 1
        other_values[key] += 1
        changed = np.array(_result(text, q=q, k=other_keys, v=other_values)) != before
        assert changed.tolist() == [query >= key for query in range(queries)]


@pytest.mark.parametrize("scale", [-32, 31])
def test_the_widest_scales_of_f8(scale: int) -> None:
    """Every code is a number of binary32; F16 holds what it can."""
    text = f"input x: F8({scale})[3]\ny: F32[3] = cast(x, precision=F32)"
    wanted = [2.0 ** (scale - 10), 240 * 2.0**scale, -240 * 2.0**scale]
    assert _result(text, x=[1, 127, 255]) == wanted


def test_sixty_four_axes() -> None:
    """As many as there may be, through views, products, statistics and attention."""
    ones = ",".join(["1"] * 62)
    text = f"""input x: F32[2]
r: F32[{ones},2,1] = reshape(x, shape=[{ones},2,1])
z: F32[{ones},2,2] = gemm(r, r, transpose_right=true)
s: F32[{ones},2,2] = softmax(z)
a: F32[{ones},2,2] = attention(s, s, s, scale=1.0)
y: F32[4] = reshape(a, shape=[4])"""
    flat = "input x: F32[2]\nr: F32[2,1] = reshape(x, shape=[2,1])\n"
    flat += "z: F32[2,2] = gemm(r, r, transpose_right=true)\ns: F32[2,2] = softmax(z)\n"
    flat += "y: F32[2,2] = attention(s, s, s, scale=1.0)"
    np.testing.assert_allclose(_result(text, x=[1, 2]), _result(flat, x=[1, 2]), rtol=1e-6)


@pytest.mark.parametrize("numerics", list(Numerics))
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_repeat_equals_its_unrolled_form_bit_for_bit(count: int, numerics: Numerics) -> None:
    rolled, unrolled = _layers(count, unrolled=False), _layers(count, unrolled=True)
    tensors = bound(rolled, 7)
    found = list(evaluate(rolled, tensors, numerics).values())
    wanted = list(evaluate(unrolled, tensors, numerics).values())
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
