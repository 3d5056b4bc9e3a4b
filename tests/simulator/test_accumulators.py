"""Accumulating instructions and reading back, against a model of 32 accumulators in NumPy."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.simulator.tile import Tile
from tests.simulator.numerics import saturated_half
from tests.simulator.programs import run_worker

Doubles = list[float]


class Model:
    """AACC[0..31] of a worker, binary32 after every instruction."""

    def __init__(self) -> None:
        self.sums = [0.0] * 32

    def add(self, number: int, value: float) -> None:
        """One rounding to binary32."""
        self.sums[number] = float(np.float32(self.sums[number] + value))


def words(seed: int, *, halves: bool) -> npt.NDArray[np.uint32]:
    normal = np.random.default_rng(seed).normal(size=16 if halves else 8)
    return normal.astype(np.float16 if halves else np.float32).view(np.uint32)


def halves_of(raw: npt.NDArray[np.uint32]) -> Doubles:
    return raw.view(np.float16).astype(np.float64).tolist()


def words_of(raw: npt.NDArray[np.uint32]) -> Doubles:
    return raw.view(np.float32).astype(np.float64).tolist()


EVEN = [0, 2, 4, 6, 8, 10, 12, 14]


def vector(change: Callable[[float], float], count: int) -> Callable[[Model, Doubles], None]:
    def apply(model: Model, x: Doubles) -> None:
        for k in range(count):
            model.add(EVEN[k], change(x[k]))

    return apply


def products(pairs: list[list[int]]) -> Callable[[Model, Doubles], None]:
    """Sums of products of elements k of the sources, one list for each accumulator."""

    def apply(model: Model, x: Doubles) -> None:
        half = len(x) // 2
        for place, elements in enumerate(pairs):
            total = x[elements[0]] * x[half + elements[0]]
            for element in elements[1:]:
                total += x[element] * x[half + element]
            model.add(EVEN[place], total)

    return apply


CASES: dict[str, tuple[str, bool, Callable[[Model, Doubles], None]]] = {
    "f16v4acc": ("$a0:1", True, vector(lambda v: v, 4)),
    "f16v4absacc": ("$a0:1", True, vector(abs, 4)),
    "f16v8acc": ("$a0:3", True, vector(lambda v: v, 8)),
    "f16v8absacc": ("$a0:3", True, vector(abs, 8)),
    "f16v8sqacc": ("$a0:3", True, vector(lambda v: v * v, 8)),
    "f32v4acc": ("$a0:3", False, vector(lambda v: v, 4)),
    "f32v4absacc": ("$a0:3", False, vector(abs, 4)),
    "f32v4sqacc": ("$a0:3", False, vector(lambda v: v * v, 4)),
    "f32mac": ("$a0, $a2", False, products([[0]])),
    "f32v2mac": ("$a0:1, $a2:3", False, products([[0], [1]])),
    "f16v2cmac": ("$a0, $a2", True, products([[0, 1]])),
    "f16v4cmac": ("$a0:1, $a2:3", True, products([[0, 1], [2, 3]])),
}


def accumulators(tile: Tile) -> Doubles:
    return [float(tile.accumulator(0, k)) for k in range(32)]


@pytest.mark.parametrize("name", CASES)
@given(seed=st.integers(0, 2**32 - 1), times=st.integers(1, 5))
def test_accumulation(name: str, seed: int, times: int) -> None:
    operands, halves, apply = CASES[name]
    raw = words(seed, halves=halves)
    body = "setzi $a7, 8\nuput $FP_CLR, $a7\n" + f"{name} {operands}\n" * times
    arithmetic = {k: int(raw[k]) for k in range(4)}
    tile, run = run_worker(body, arithmetic=arithmetic)
    assert run.fault is None
    model = Model()
    numbers = halves_of(raw[:4]) if halves else words_of(raw[:4])
    for _ in range(times):
        apply(model, numbers)
    assert accumulators(tile) == model.sums


def fill(seed: int) -> tuple[str, dict[int, int], Doubles]:
    """Text that puts eight numbers in the even accumulators of set 0."""
    raw = words(seed, halves=True)
    body = "setzi $a7, 8\nuput $FP_CLR, $a7\nf16v8acc $a0:3\n"
    sums = [0.0] * 32
    for k, value in enumerate(halves_of(raw[:4])):
        sums[EVEN[k]] = value
    return body, {k: int(raw[k]) for k in range(4)}, sums


@given(seed=st.integers(0, 2**32 - 1), bank=st.sampled_from([0, 1, 2, 3]))
def test_shifting_out_and_in(seed: int, bank: int) -> None:
    """Four pairs in, four pairs out, in the order they entered; other banks stay."""
    body, arithmetic, sums = fill(seed)
    body += "".join(f"f32v2gina $azeros, $a{2 * (k % 2)}:{2 * (k % 2) + 1}, {bank}\n" for k in range(4))
    body += f"f32v2gina $a4:5, $azeros, {bank}\nf32v2gina $a6:7, $azeros, {bank}\n"
    tile, run = run_worker(body, arithmetic=arithmetic)
    assert run.fault is None
    pairs = [arithmetic[k] for k in range(4)]
    assert [tile.arithmetic_register(0, k) for k in range(4, 8)] == pairs
    first = {0: 0, 1: 1, 2: 16, 3: 17}[bank]
    expected = list(sums)
    entered = [np.uint32(word).view(np.float32) for word in pairs]
    for place, value in enumerate([*entered, 0.0, 0.0, 0.0, 0.0]):
        expected[first + 2 * place] = float(value)
    assert accumulators(tile) == expected


def test_accumulators_must_be_cleared_before_use() -> None:
    """What they hold when a tile starts is unknown; a later launch finds what the last one left."""
    tile, run = run_worker("f16v4gacc $a0:1\nf32v2gina $a2:3, $azeros, 3")
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in range(4)] == [0x7E007E00] * 2 + [0x7FC00000] * 2
    tile, run = run_worker("setzi $a0, 8\nuput $FP_CLR, $a0\nldconst $a0, 0x3f800000\nf32mac $a0, $a0")
    tile, run = run_worker("f32v2gina $a2:3, $azeros, 0", tile=tile)
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in (2, 3)] == [0x3F800000, 0]


@given(seed=st.integers(0, 2**32 - 1))
def test_shifting_halves(seed: int) -> None:
    body, arithmetic, sums = fill(seed)
    body += "f16v2gina $a4, $a0, 0\nf16v2gina $a5, $azero, 0\nf16v4gacc $a6:7\n"
    tile, run = run_worker(body, arithmetic=arithmetic)
    assert run.fault is None
    got = np.array([tile.arithmetic_register(0, k) for k in range(4, 8)], np.uint32).view(np.float16)
    expected = saturated_half(np.array([sums[k] for k in (0, 2, 4, 6, 8, 10, 12, 14)]))
    # Two shifts moved four accumulators; what is left is read without moving.
    assert np.array_equal(got, expected)
    moved = halves_of(np.array([arithmetic[0]], np.uint32))
    assert [float(tile.accumulator(0, k)) for k in (8, 10, 12, 14)] == [*moved, 0.0, 0.0]


@given(seed=st.integers(0, 2**32 - 1), bank=st.sampled_from([1, 2, 3]))
def test_shifting_halves_through_other_banks(seed: int, bank: int) -> None:
    """What four instructions put in, the next ones take out; the even accumulators of set 0 stay."""
    body, arithmetic, sums = fill(seed)
    body += "".join(f"f16v2gina $azero, $a{k}, {bank}\n" for k in range(4))
    body += "".join(f"f16v2gina $a{4 + k}, $azero, {bank}\n" for k in range(4))
    tile, run = run_worker(body, arithmetic=arithmetic)
    assert run.fault is None
    assert [tile.arithmetic_register(0, 4 + k) for k in range(4)] == [arithmetic[k] for k in range(4)]
    assert accumulators(tile) == sums


@given(seed=st.integers(0, 2**32 - 1))
def test_scaled_sums_come_one_step_late(seed: int) -> None:
    """``f16v4mix`` and ``f32v2axpy`` return what the accumulators held before."""
    raw = words(seed, halves=True)
    numbers = halves_of(raw)
    tas = int(raw[7])
    body = "setzi $a4, 8\nuput $FP_CLR, $a4\nuput $TAS, $a7\n"
    body += "f16v4mix $a4:5, $a0:1, $a2:3\nf16v4mix $a6:7, $azeros, $azeros\n"
    tile, run = run_worker(body, arithmetic={**{k: int(raw[k]) for k in range(4)}, 7: tas})
    assert run.fault is None
    low, high = halves_of(np.array([tas], np.uint32))
    sums = [float(np.float32(low * numbers[k] + high * numbers[4 + k])) for k in range(4)]
    got = np.array([tile.arithmetic_register(0, k) for k in range(4, 8)], np.uint32).view(np.float16)
    assert np.array_equal(got, saturated_half(np.array([0.0] * 4 + sums)))

    raw = words(seed, halves=False)
    numbers = words_of(raw)
    body = body.replace("f16v4mix", "f32v2axpy")
    tile, run = run_worker(body, arithmetic={**{k: int(raw[k]) for k in range(4)}, 7: int(raw[7])})
    assert run.fault is None
    sums = [float(np.float32(numbers[7] * numbers[k] + numbers[2 + k])) for k in range(2)]
    got = np.array([tile.arithmetic_register(0, k) for k in range(4, 8)], np.uint32).view(np.float32)
    assert got.tolist() == [0.0, 0.0, *sums]


def test_flags_of_accumulation() -> None:
    body = """
    setzi $a7, 8
    uput $FP_CLR, $a7
    ldconst $a0, 0x7f7fffff
    ldconst $a1, 0x7f7fffff
    f32v2mac $a0:1, $a0:1
    uget $a2, $FP_STS
    ldconst $a0, 0xff800000
    ldconst $a1, 0x3f800000
    f32v2mac $a0:1, $a0:1
    ldconst $a3, 0x3f800000
    f32mac $a0, $a3
    uget $a3, $FP_STS
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in (2, 3)] == [4, 5]
