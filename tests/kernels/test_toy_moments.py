"""A family with two results of different types in one storage: the moments of rows.

As in ``test_toy``, the first part is what ``binding.py`` and ``code.py`` of a family hold, and all of it: the
planner's, placement's and simulators' side of a kernel with typed regions is what they do with any binding
(MS-01, MS-04, MO-01).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F16, F32
from compiler.geometry.relation import Follow, SelectedWindow, Span
from compiler.isa.builder import Half
from compiler.isa.expressions import Symbol
from compiler.isa.program import Program
from compiler.isa.registers import VERTEX_BASE, ZERO, a, a2, m
from compiler.kernels import emit, registry
from compiler.kernels.contract import (
    Access,
    Binding,
    Family,
    Operand,
    Parameters,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
    check_addresses,
)
from compiler.kernels.halves import halves, round_halves, to_bytes
from compiler.kernels.packed import pack
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import call_cycles, shares
from compiler.target.isa_decisions import Decisions
from compiler.target.units import Cycles
from tests.kernels.machine import STANDARD, bound, refused, run
from tests.kernels.registration import registered
from tests.kernels.tensors import normal_halves, operand
from tests.kernels.typed import loaded_values, stored_values

# The family: binding.

SYMBOL = SymbolKey(family="moments", variant="rows", choices=(("precision", "f16"),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsParameters(Parameters):
    """Mean (result 0, F16) and mean square (result 1, F32) of each row of operand 0."""

    family: ClassVar[str] = "moments"


def bind(request: Request) -> Binding | Refusal:
    """The call for an even number of rows, so that a worker has both halves of a word of means."""
    if not isinstance(request.parameters, MomentsParameters) or len(request.operands) != 3:
        raise ValueError("not a request of this family")
    means, squares, source = request.operands
    kinds = tuple(type(one.precision) for one in request.operands)
    if kinds != (F16, F32, F16) or not isinstance(source.order, RowMajor) or pack(source) is None:
        return Refusal(reason="these are not means in F16, mean squares in F32 and gapless rows in F16")
    rows, width = source.logical
    if rows % 2 or width % 4 or any(one.is_padded for one in request.operands):
        return Refusal(reason=f"{rows} rows of {width} are not an even number of rows of whole quads")
    if means.logical != (rows,) or squares.logical != (rows,):
        return Refusal(reason=f"results 0 and 1 do not have {rows} elements each")
    pairs, quads = rows // 2, width // 4
    results = tuple(Access(operand=one, alignment=8, writes=one.traversal()) for one in (means, squares))
    return Binding(
        family="moments",
        parameters=request.parameters,
        results=results,
        operands=(
            Access(operand=source, relation=request.relations[2], alignment=8, reads=source.traversal()),
        ),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Result(1)),
            Pointer(reference=Operand(0)),
            Scalar(name="pairs_per_worker", value=pairs // 6),
            Scalar(name="pairs_left", value=pairs % 6),
            Scalar(name="quads", value=quads),
            Scalar(name="inverse_width", value=int(np.float32(1 / width).view(np.uint32))),
        ),
        symbol=SYMBOL,
        work=Work(flops=3 * rows * width),
        cycles=_cycles(pairs, quads),
    )


def _cycles(pairs: int, quads: int) -> Cycles:
    issues = [20 + share * (9 + 2 * (13 + 9 * quads)) for share in shares(pairs)]
    return call_cycles(9, issues)


def cycles(_key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """What the kernel takes."""
    per_worker, left, quads = arguments[3:6]
    return _cycles(6 * per_worker + left, quads)


def execute(_key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """Sums of even and of odd columns in F32, left to right, then of both."""
    means, squares, source, per_worker, left, quads, inverse = arguments[:7]
    rows = 2 * (6 * per_worker + left)
    x = halves(memory.read(source, 8 * rows * quads)).reshape(rows, -1, 2).astype(np.float32)
    sums = np.zeros((2, rows, 2), dtype=np.float32)
    for pair in x.transpose(1, 0, 2):
        sums += np.stack([pair, pair * pair])
    totals = (sums[..., 0] + sums[..., 1]) * np.uint32(inverse).view(np.float32)
    memory.write(means, to_bytes(round_halves(totals[0])))
    memory.write(squares, totals[1].view(np.uint8))


FAMILY = Family(name="moments", bind=bind, execute=execute, cycles=cycles)

# The family: code.


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """Workers take pairs of rows in turn."""
    del decisions
    code = emit.begin(key)
    emit.call_frame(code, 7, 7)
    emit.launch_and_return(code, Symbol("worker"), 7)
    emit.begin_workers(code)
    means, squares, source, count, left, worker = (m(number) for number in range(6))
    quads, stride, both, mean = m(6), m(7), m(8), m(9)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((means, squares, source, count, left, quads)):
        emit.load(code, register, word)
    emit.share_of(code, worker, count, left)
    code.emit("shl", stride, quads, 4)
    code.emit("mul", left, stride, worker)
    code.emit("add", source, source, left)
    code.emit("mul", stride, stride, 5)
    code.emit("shl", left, worker, 2)
    code.emit("add", means, means, left)
    code.emit("add", squares, squares, left)
    code.emit("add", squares, squares, left)
    code.emit("brz", count, Symbol("done"))
    code.label("pair")
    for row in range(2):
        for register in range(4, 8):
            code.emit("setzi", a(register), 0)
        with code.repeat(quads):
            code.bundle(("ld64step", a2(0), ZERO, source, 1), ("fnop",))
            for word in range(2):
                for aux in _steps(word):
                    code.bundle(("nop",), aux)
        code.emit("ld32", a(0), VERTEX_BASE, ZERO, 6)
        for total in (4, 6):
            code.emit("f32add", a(total), a(total), a(total + 1))
            code.emit("f32mul", a(total), a(total), a(0))
        code.emit("f32tof16", a(4), a(4))
        code.emit("atom", (both, mean)[row], a(4))
        code.emit("st32", a(6), squares, ZERO, row)
    code.emit("shl", mean, mean, 16)
    code.emit("shl", both, both, 16)
    code.emit("shr", both, both, 16)
    code.emit("or", both, both, mean)
    code.emit("st32step", both, ZERO, means, 6)
    code.emit("add", squares, squares, 48)
    code.emit("add", source, source, stride)
    code.emit("add", count, count, -1)
    code.emit("brnz", count, Symbol("pair"))
    code.label("done")
    code.emit("exitz", ZERO)
    return code.finish()


def _steps(word: int) -> tuple[Half, ...]:
    """Two halves into both sums."""
    return (
        ("f16v2tof32", a2(2), a(word)),
        ("f32v2add", a2(4), a2(4), a2(2)),
        ("f32v2mul", a2(2), a2(2), a2(2)),
        ("f32v2add", a2(6), a2(6), a2(2)),
    )


# The registration, and what is asked.


@pytest.fixture(autouse=True, scope="module")
def known() -> Iterator[None]:
    with registered(FAMILY, program):
        yield


def moments(rows: int, width: int) -> Binding | Refusal:
    """Moments of a row-major matrix."""
    every_column = SelectedWindow(result_rank=1, axes=(Follow(axis=0), Span(start=0, stop=width)))
    return registry.bind(
        "moments",
        MomentsParameters(),
        (
            operand(RowMajor(), (rows,)),
            operand(RowMajor(), (rows,), precision=F32()),
            operand(RowMajor(), (rows, width)),
        ),
        (None, None, every_column),
    )


@given(pairs=st.integers(1, 15), quads=st.integers(1, 12), seed=st.integers(0, 1 << 16))
def test_two_results_of_different_types_lie_in_one_storage(pairs: int, quads: int, seed: int) -> None:
    """Means first, mean squares behind them at the next 64 bits; both are one region to whoever owns it."""
    rows, width = 2 * pairs, 4 * quads
    binding = bound(moments(rows, width))
    values = normal_halves(np.random.default_rng(seed), (rows, width))
    region = STANDARD
    addresses = (region, region + -(-2 * rows // 8) * 8, 0x70000)
    means, squares, source = (access.operand for access in binding.accesses)
    assert means is not None
    assert squares is not None
    assert source is not None
    outcome = run(binding, addresses, {Operand(0): stored_values(source, values)}, seed=seed)
    exact = values.astype(np.float64)
    found = (
        loaded_values(means, outcome.memory, addresses[0]),
        loaded_values(squares, outcome.memory, addresses[1]),
    )
    assert found[0].dtype == np.float16
    assert found[1].dtype == np.float32
    assert np.allclose(found[0].astype(np.float64), exact.mean(axis=1), rtol=1e-3, atol=1e-5)
    assert np.allclose(found[1].astype(np.float64), (exact**2).mean(axis=1), rtol=1e-5)
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


def test_results_may_not_meet() -> None:
    """Neither is the other's alias, and each is named in what is wrong (MO-01)."""
    binding = bound(moments(8, 16))
    assert check_addresses(binding, (STANDARD, STANDARD + 8, 0x70000)) == (
        "result 0 and result 1 of moments.rows.precision=f16 overlap and were not asked to"
    )
    assert refused(moments(3, 8)) == "3 rows of 8 are not an even number of rows of whole quads"
