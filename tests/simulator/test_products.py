"""Matrix kernels: results equal the pinned numerics, and cycles equal what was measured on hardware."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.simulator.faults import NamedRange
from compiler.simulator.harness import Run, call, load, name_operands
from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.gemm import Product, panels_of, product_program, right_of
from tests.simulator.numerics import Floats, Halves, byte_values
from tests.simulator.numerics import product as reference
from tests.simulator.programs import run_worker

LEFT = 0x5C000
OUT = 0x90000
RIGHT_INTERLEAVED = 0xC0000
RIGHT_STANDARD = 0x78000


def operands(shape: Product, seed: int) -> tuple[np.ndarray, np.ndarray, Floats, Floats]:
    """Left and right as stored, and as numbers."""
    random = np.random.default_rng(seed)
    sizes = ((shape.rows, shape.inner), (shape.inner, shape.columns))
    if shape.is_byte:
        values = byte_values(is_143=True)
        stored = [random.integers(0, 256, size).astype(np.uint8) for size in sizes]
        for matrix in stored:
            matrix[matrix == 0x80] = 0
        left, right = stored
        return left, right, values[left], values[right]
    halves = [
        (random.normal(size=size) * 2.0 ** random.integers(-6, 3, size)).astype(np.float16) for size in sizes
    ]
    left, right = halves
    return left, right, left.astype(np.float64), right.astype(np.float64)


def execute(
    shape: Product,
    left: np.ndarray,
    right: np.ndarray,
    start: Halves | None,
    *,
    seeds: Sequence[int] = (1, 2, 3, 4, 5, 6),
) -> tuple[Tile, Run, Halves]:
    tile = Tile(default_options())
    for worker, number in enumerate(seeds):
        body = f"ldconst $a0, {number:#x}\nuput $PRNG_SEED, $a0" + "\nurand64 $a0:1" * 15
        run_worker(body, tile=tile, worker=worker)
    program = product_program(shape)
    load(tile, program)
    at_right = RIGHT_INTERLEAVED if shape.interleaved else RIGHT_STANDARD
    tile.place(LEFT, panels_of(left, shape.micro))
    tile.place(at_right, right_of(right, shape.micro))
    if start is not None:
        tile.place(OUT, panels_of(start, 16))
    size = 2 * shape.rows * shape.columns
    name_operands(
        tile,
        [
            NamedRange(name="left", start=LEFT, size=left.nbytes),
            NamedRange(name="right", start=at_right, size=right.nbytes),
            NamedRange(name="out", start=OUT, size=size),
        ],
    )
    run = call(tile, program.address_of("gemm"), {2: OUT, 3: LEFT, 4: at_right})
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.written(OUT, size).all()
    out = np.frombuffer(tile.read(OUT, size), np.float16)
    return tile, run, out.reshape(shape.groups, shape.rows, 16).transpose(1, 0, 2).reshape(shape.rows, -1)


@st.composite
def products(draw: st.DrawFn) -> Product:
    is_byte = draw(st.booleans())
    return Product(
        rows=draw(st.integers(1, 30)),
        inner=(32 if is_byte else 16) * draw(st.integers(1, 3)),
        columns=16 * draw(st.integers(1, 3)),
        is_byte=is_byte,
        interleaved=draw(st.booleans()),
        accumulate=draw(st.booleans()),
        scale=draw(st.integers(-12, 3)) if is_byte else 0,
    )


@given(shape=products(), seed=st.integers(0, 2**32 - 1))
def test_products_equal_the_pinned_numerics(shape: Product, seed: int) -> None:
    left, right, left_values, right_values = operands(shape, seed)
    start = None
    if shape.accumulate:
        start = np.random.default_rng(seed + 1).normal(size=(shape.rows, shape.columns)).astype(np.float16)
    _, run, out = execute(shape, left, right, start)
    expected = reference(left_values, right_values, start, shape.micro, shape.scale)
    assert np.array_equal(out.view(np.uint16), expected.view(np.uint16))
    assert run.queue_report is None


@pytest.mark.parametrize(
    ("shape", "measured"),
    [
        (Product(rows=244, inner=128, columns=64, is_byte=True), 18_576),
        (Product(rows=82, inner=96, columns=160), 29_508),
        (Product(rows=122, inner=80, columns=128), 26_232),
        (Product(rows=81, inner=80, columns=80), 12_402),
        (Product(rows=146, inner=48, columns=48), 7_122),
        (Product(rows=56, inner=64, columns=80), 8_076),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else "",
)
def test_measured_products(shape: Product, measured: int) -> None:
    left, right, _, _ = operands(shape, 1)
    _, run, _ = execute(shape, left, right, None)
    assert abs(run.cycles - measured) <= 0.03 * measured
