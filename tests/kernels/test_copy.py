"""Copies and fills in the simulator."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.geometry.order import RowMajor
from compiler.kernels import registry
from compiler.kernels.contract import Binding, Operand, Refusal, Result, check_addresses
from compiler.kernels.copy.binding import CopyParameters, Kind
from tests.kernels.machine import MANY, STANDARD, bound, positions, refused, run
from tests.kernels.tensors import operand

SOURCE = 0x70000


def copy(
    rows: int,
    row_bytes: int,
    *,
    strides: tuple[int, int] | None = None,
    origins: tuple[int, int] = (0, 0),
    kind: Kind = Kind.MOVE,
) -> Binding | Refusal:
    """A copy or fill; strides and origins are of destination and source."""
    used = (row_bytes, row_bytes) if strides is None else strides
    is_move = kind is Kind.MOVE
    return registry.bind(
        "copy",
        CopyParameters(
            kind=kind,
            rows=rows,
            row_bytes=row_bytes,
            destination_stride=used[0],
            destination_origin=origins[0],
            source_stride=used[1] if is_move else 0,
            source_origin=origins[1] if is_move else 0,
        ),
    )


def symbol(answer: Binding | Refusal) -> str:
    """Which kernel a copy takes."""
    return str(bound(answer).symbol)


def check(
    rows: int,
    row_bytes: int,
    *,
    strides: tuple[int, int] | None = None,
    origins: tuple[int, int] = (0, 0),
    kind: Kind = Kind.MOVE,
    seed: int = 0,
) -> Binding:
    """Run it and compare with rows copied one by one."""
    used = (row_bytes, row_bytes) if strides is None else strides
    binding = bound(copy(rows, row_bytes, strides=strides, origins=origins, kind=kind))
    random = np.random.default_rng(seed)
    source = random.integers(0, 256, (rows - 1) * used[1] + row_bytes, dtype=np.uint8)
    before = random.integers(0, 256, binding.results[0].extent[1], dtype=np.uint8)
    if kind is Kind.MOVE:
        addresses = (STANDARD + origins[0], SOURCE + origins[1])
        outcome = run(binding, addresses, {Operand(0): source, Result(0): before}, seed=seed)
    else:
        outcome = run(binding, (STANDARD + origins[0],), {Result(0): before}, seed=seed)
    for row in range(rows):
        found = outcome.memory.read(STANDARD + origins[0] + row * used[0], row_bytes)
        expected = source[row * used[1] :][:row_bytes] if kind is Kind.MOVE else np.zeros(row_bytes)
        assert np.array_equal(found, expected)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)
    assert binding.work.moved_bytes == rows * row_bytes
    return binding


UNITS = {"unit=u64": 8, "unit=u32": 4, "halves": 2}
"""Bytes of what each kernel moves at a time."""


@pytest.mark.parametrize("kernel", ["span.unit=u64", "span.unit=u32", "halves"])
@pytest.mark.parametrize("kind", list(Kind))
@MANY
@given(units=st.integers(1, 200), origins=st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_one_row_of_any_unit(kind: Kind, kernel: str, units: int, origins: tuple[int, int]) -> None:
    """CP-01, CP-02; lesson 7: every unit at its smallest alignment."""
    unit = UNITS[kernel.removeprefix("span.")]
    here = (origins[0] * unit, origins[1] * unit)
    assume(symbol(copy(1, units * unit, origins=here, kind=kind)) == f"copy.{kind.value}_{kernel}")
    check(1, units * unit, origins=here, kind=kind, seed=units)


@pytest.mark.parametrize("kernel", ["rows.unit=u64", "rows.unit=u32", "halves"])
@pytest.mark.parametrize("kind", list(Kind))
@MANY
@given(
    rows=st.integers(2, 30),
    units=st.integers(1, 24),
    gaps=st.tuples(st.integers(0, 5), st.integers(0, 5)),
    origins=st.tuples(st.integers(0, 3), st.integers(0, 3)),
)
def test_rows_with_strides(
    kind: Kind, kernel: str, rows: int, units: int, gaps: tuple[int, int], origins: tuple[int, int]
) -> None:
    """CP-03; lesson 6: neighbours in one word, gaps, gathers into a contiguous destination."""
    unit = UNITS[kernel.removeprefix("rows.")]
    strides = ((units + gaps[0]) * unit, (units + gaps[1]) * unit)
    here = (origins[0] * unit, origins[1] * unit)
    asked = copy(rows, units * unit, strides=strides, origins=here, kind=kind)
    assume(symbol(asked) == f"copy.{kind.value}_{kernel}")
    check(rows, units * unit, strides=strides, origins=here, kind=kind, seed=rows)


@pytest.mark.parametrize("kind", list(Kind))
def test_long_rows_and_many_rows(kind: Kind) -> None:
    check(1, 20_000, kind=kind)
    check(1, 10_002, kind=kind)
    check(3, 4_000, strides=(4_008, 4_016), kind=kind)
    check(900, 8, strides=(16, 24), kind=kind)
    check(900, 2, strides=(6, 4), kind=kind)


def test_the_widest_unit_is_taken() -> None:
    def taken(rows: int, row_bytes: int, strides: tuple[int, int], origins: tuple[int, int]) -> str:
        return symbol(copy(rows, row_bytes, strides=strides, origins=origins))

    assert taken(1, 64, (64, 64), (0, 8)) == "copy.move_span.unit=u64"
    assert taken(1, 64, (64, 64), (4, 8)) == "copy.move_span.unit=u32"
    assert taken(1, 64, (64, 64), (6, 8)) == "copy.move_halves"
    assert taken(4, 64, (64, 64), (0, 8)) == "copy.move_span.unit=u64"
    assert taken(4, 64, (96, 64), (0, 8)) == "copy.move_rows.unit=u64"
    assert taken(4, 64, (96, 68), (0, 8)) == "copy.move_rows.unit=u32"
    assert symbol(copy(4, 8, strides=(16, 0), kind=Kind.FILL)) == "copy.fill_rows.unit=u64"


def test_lengths_and_addresses_never_make_another_kernel() -> None:
    symbols = {
        symbol(copy(rows, 8 * units, strides=(8 * units + 8, 8 * units + 16)))
        for rows in (2, 7, 100)
        for units in (1, 5, 50)
    }
    assert len(symbols) == 1


def test_ends_of_rows_of_halves_are_declared() -> None:
    """Words that are not all ours are read and written: the access says which bytes."""
    binding = bound(copy(1, 6, origins=(2, 0)))
    (destination,) = binding.results
    assert positions(destination.writes).tolist() == list(range(-2, 6))
    assert positions(destination.reads).tolist() == [-2, -1]
    assert destination.operand is None
    assert check_addresses(binding, (STANDARD + 2, SOURCE)) is None
    assert check_addresses(binding, (STANDARD + 4, SOURCE)) == (
        "result 0 of copy.move_halves at 0x60002 is not aligned to 4 bytes"
    )


def test_a_copy_of_64_bit_words_costs_two_issues_a_word() -> None:
    binding = bound(copy(1, 48_000))
    assert binding.cycles == pytest.approx(246 + 12 * 1000, rel=0.02)
    assert binding.cycles <= 246 + 12 * 1000


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (copy(0, 8), "0 rows of 8 bytes are nothing to copy"),
        (copy(2, 3, strides=(4, 4)), "rows of 3 bytes at strides 4 and 4 are not made of 16-bit units"),
        (copy(2, 16, strides=(8, 16)), "rows of 16 bytes overlap at a destination stride of 8"),
        (copy(2, 16, strides=(16, 8)), "rows of 16 bytes overlap at a source stride of 8"),
        (copy(70_000, 4, strides=(8, 8)), "70000 rows are not fewer than 65536"),
        (copy(1 << 20, 1 << 20), "1048576 rows of 1048576 bytes lie beyond every address"),
        (
            registry.bind(
                "copy",
                CopyParameters(kind=Kind.FILL, rows=1, row_bytes=8, destination_stride=8),
                (operand(RowMajor(), (4,)),),
                (None,),
            ),
            "a copy is described by bytes; it has no operands and no aliases",
        ),
    ],
)
def test_refusals_say_what_is_wrong(answer: Binding | Refusal, reason: str) -> None:
    """KB-07."""
    assert refused(answer) == reason
