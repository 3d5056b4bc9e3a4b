"""A family in a module of its own: what adding a kernel touches.

The first part is what ``binding.py`` and ``code.py`` of a family hold. It is made known by one line for what
plans and simulates and one for what generates; the rest of this module runs it through everything that other
kernels go through.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F16
from compiler.geometry.relation import Identity
from compiler.isa.expressions import Symbol
from compiler.isa.linker import link
from compiler.isa.program import Program
from compiler.isa.registers import VERTEX_BASE, ZERO, a, a2, m
from compiler.kernels import emit, objects, registry
from compiler.kernels.contract import (
    Access,
    Alias,
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
)
from compiler.kernels.halves import halves, round_halves, to_bytes
from compiler.kernels.packed import pack, span
from compiler.kernels.symbols import SymbolKey, parse_symbol
from compiler.kernels.timing import call_cycles, shares
from compiler.target.isa_decisions import Decisions, our_decisions
from compiler.target.units import Cycles
from tests.kernels.kernels import EVERY_KERNEL
from tests.kernels.machine import STANDARD, bound, refused, run
from tests.kernels.registration import registered
from tests.kernels.tensors import loaded, normal_halves, operand, stored

# The family: binding.

SYMBOL = SymbolKey(family="toy", variant="scale", choices=(("precision", "f16"),))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleParameters(Parameters):
    """Every element times a constant.

    Args:
        factor: the constant, a pattern of F16. (Patterns differ where numbers are equal: 0 and -0.)
    """

    family: ClassVar[str] = "toy"
    factor: int


def bind(request: Request) -> Binding | Refusal:
    """The call for one result and one operand, stored alike, in place or not."""
    parameters = request.parameters
    if not isinstance(parameters, ScaleParameters) or len(request.operands) != 2:
        raise ValueError("not a request of this family")
    geometry, source = request.operands
    packed = pack(geometry), pack(source)
    if packed[0] is None or packed[1] is None or packed[0].digits != packed[1].digits:
        return Refusal(reason="operand 0 is not stored like the result")
    count = packed[0].elements
    if count % 4 or geometry.is_padded or not isinstance(geometry.precision, F16):
        return Refusal(reason=f"{count} elements are no multiple of 4 halves")
    quads = count // 4
    return Binding(
        family="toy",
        parameters=parameters,
        results=(
            Access(
                operand=geometry, start=packed[0].start, alignment=8, writes=span(packed[0].start, 2 * count)
            ),
        ),
        operands=(
            Access(
                operand=source,
                relation=request.relations[1],
                start=packed[1].start,
                alignment=8,
                reads=span(packed[1].start, 2 * count),
            ),
        ),
        aliases=request.aliases,
        permitted=(Alias(result=Result(0), operand=Operand(0)),),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=Operand(0)),
            Scalar(name="quads_per_worker", value=quads // 6),
            Scalar(name="quads_left", value=quads % 6),
            Scalar(name="factor", value=parameters.factor),
        ),
        symbol=SYMBOL,
        work=Work(flops=count),
        cycles=call_cycles(7, [12 + 3 * share for share in shares(quads)]),
    )


def execute(_key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What the kernel does."""
    result, source, per_worker, left, factor = arguments[:5]
    values = halves(memory.read(source, 8 * (6 * per_worker + left)))
    scaled = values.astype(np.float32) * np.uint16(factor).view(np.float16).astype(np.float32)
    memory.write(result, to_bytes(round_halves(scaled)))


def cycles(_key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """What the kernel takes."""
    per_worker, left = arguments[2:4]
    return call_cycles(7, [12 + 3 * share for share in shares(6 * per_worker + left)])


FAMILY = Family(name="toy", bind=bind, execute=execute, cycles=cycles)

# The family: code.


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """Workers take quads in turn."""
    del decisions
    code = emit.begin(key)
    emit.call_frame(code, 5, 5)
    emit.launch_and_return(code, Symbol("worker"), 5)
    emit.begin_workers(code)
    out, source, count, left, worker = m(0), m(1), m(2), m(3), m(4)
    code.label("worker")
    emit.worker_number(code, worker)
    for word, register in enumerate((out, source, count, left)):
        emit.load(code, register, word)
    code.emit("ld32", a(4), VERTEX_BASE, ZERO, 4)
    emit.share_of(code, worker, count, left)
    code.emit("shl", worker, worker, 3)
    with code.repeat(count):
        code.bundle(("ld64", a2(0), source, worker, 0), ("fnop",))
        code.bundle(("nop",), ("f16v4mul", a2(0), a(4).low, a2(0)))
        code.bundle(("st64step", a2(0), out, worker, 6), ("fnop",))
    code.emit("exitz", ZERO)
    return code.finish()


# The registration.


@pytest.fixture(autouse=True, scope="module")
def known() -> Iterator[None]:
    """One line in ``registry.py``, one in ``objects.py``."""
    with registered(FAMILY, program):
        yield


def scaled(count: int, factor: float, *aliases: Alias) -> Binding | Refusal:
    """A vector times a constant."""
    vector = operand(RowMajor(), (count,), origin=8)
    pattern = int(np.float16(factor).view(np.uint16))
    return registry.bind(
        "toy", ScaleParameters(factor=pattern), (vector, vector), (None, Identity(rank=1)), aliases
    )


@given(
    quads=st.integers(1, 40),
    factor=st.floats(-4, 4, width=16),
    is_in_place=st.booleans(),
    seed=st.integers(0, 1 << 16),
)
def test_it_runs_like_the_others(quads: int, factor: float, is_in_place: bool, seed: int) -> None:
    aliases = [Alias(result=Result(0), operand=Operand(0))] if is_in_place else []
    binding = bound(scaled(4 * quads, factor, *aliases))
    vector = operand(RowMajor(), (4 * quads,), origin=8)
    values = normal_halves(np.random.default_rng(seed), (4 * quads,))
    addresses = (STANDARD + 8, (STANDARD if is_in_place else 0x70000) + 8)
    outcome = run(binding, addresses, {Operand(0): stored(vector, values)}, seed=seed)
    found = loaded(vector, outcome.memory, addresses[0])
    assert np.array_equal(found.view(np.uint16), (values * np.float16(factor)).view(np.uint16))
    assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02)


def test_two_constants_share_a_kernel() -> None:
    assert bound(scaled(8, 1.5)).symbol == bound(scaled(40, -3.0)).symbol == SYMBOL
    assert refused(scaled(6, 1.5)) == "6 elements are no multiple of 4 halves"


def test_it_links_with_every_other_kernel() -> None:
    keys = [SYMBOL, *map(parse_symbol, EVERY_KERNEL)]
    image = link(objects.kernel_objects(keys, our_decisions()))
    assert image.address_of(str(SYMBOL)) % 8 == 0
    assert len(image.symbols) >= len(keys)
