"""Symbols, bindings, the registry, and what may import what."""

import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.order import RowMajor
from compiler.geometry.relation import Identity
from compiler.geometry.traversal import Loops, Traversal
from compiler.isa.linker import link
from compiler.isa.objects import write_object
from compiler.kernels import objects, registry
from compiler.kernels.contract import (
    Access,
    Alias,
    Argument,
    Binding,
    Operand,
    Pointer,
    Reference,
    Result,
    Scalar,
    Work,
    arguments_at,
    check_addresses,
)
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.packed import span
from compiler.kernels.pointwise.binding import PointwiseParameters
from compiler.kernels.symbols import SymbolKey, parse_symbol
from compiler.target.isa_decisions import our_decisions
from compiler.target.units import Cycles
from tests.kernels.kernels import EVERY_KERNEL
from tests.kernels.machine import Sram, bound
from tests.kernels.tensors import operand

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
VALUES = st.from_regex(r"[a-z0-9_]{1,6}", fullmatch=True)


@given(family=NAMES, variant=NAMES, choices=st.dictionaries(NAMES, VALUES, max_size=4))
def test_symbols_are_read_back(family: str, variant: str, choices: dict[str, str]) -> None:
    key = SymbolKey(family=family, variant=variant, choices=tuple(choices.items()))
    assert parse_symbol(str(key)) == key
    assert all(key.choice(name) == value for name, value in choices.items())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("gemm", "'gemm' is no symbol of a kernel: it has no variant"),
        (
            "gemm.fast.precision",
            "'gemm.fast.precision' is no symbol of a kernel: 'precision' is not key=value",
        ),
        ("Gemm.fast", "'Gemm' is no name in a symbol"),
        ("gemm.fast.a=", "'' is no value in a symbol"),
        ("gemm.fast.a=1.a=2", "a key of gemm.fast repeats"),
    ],
)
def test_other_texts_are_no_symbols(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="^" + reason.replace(".", r"\.") + "$"):
        parse_symbol(text)


def access(extent: int, *, start: int = 0, alignment: int = 8, tail: int = 0, writes: bool = False) -> Access:
    """An access to so many bytes."""
    part = span(start, extent)
    nothing = Traversal(pieces=())
    return Access(
        operand=None,
        start=start,
        alignment=alignment,
        tail=tail,
        reads=nothing if writes else part,
        writes=part if writes else nothing,
    )


def binding(
    results: tuple[Access, ...],
    operands: tuple[Access, ...],
    *,
    arguments: tuple[Argument, ...] = (),
    separate: tuple[tuple[Reference, Reference], ...] = (),
    permitted: tuple[Alias, ...] = (),
    aliases: tuple[Alias, ...] = (),
) -> Binding:
    """A binding of no real kernel."""
    return Binding(
        family="copy",
        parameters=CopyParameters(kind=Kind.FILL, rows=1, row_bytes=8, destination_stride=8),
        results=results,
        operands=operands,
        separate=separate,
        aliases=aliases,
        permitted=permitted,
        arguments=arguments,
        symbol=SymbolKey(family="copy", variant="made_up"),
        work=Work(),
        cycles=Cycles(1),
    )


def test_results_are_numbered_before_operands_and_none_is_special() -> None:
    """MO-01, MO-02, MO-03: any result can be named, registers keep the family's order."""
    two = binding(
        (access(16, writes=True), access(8, writes=True, start=32)),
        (access(8), access(8)),
        arguments=(
            Pointer(reference=Result(1)),
            Pointer(reference=Operand(1)),
            Scalar(name="rows", value=-2),
            Pointer(reference=Result(0)),
        ),
        separate=((Result(1), Operand(0)),),
    )
    assert [two.position(reference) for reference in (Result(0), Result(1), Operand(0), Operand(1))] == [
        0,
        1,
        2,
        3,
    ]
    assert [two.reference(position) for position in range(4)] == [
        Result(0),
        Result(1),
        Operand(0),
        Operand(1),
    ]
    addresses = (0x60000, 0x64000, 0x70000, 0x74000)
    assert arguments_at(two, addresses) == (0x64020, 0x74000, 0xFFFF_FFFE, 0x60000)
    assert check_addresses(two, addresses) is None
    assert check_addresses(two, (0x60000, 0x64000, 0x67FF8, 0x74000)) is not None
    with pytest.raises(ValueError, match=r"copy\.made_up has no result 2"):
        two.access(Result(2))
    with pytest.raises(ValueError, match=r"copy\.made_up has 4 accesses, not 2"):
        arguments_at(two, (1, 2))


def test_tails_count_when_memory_elements_are_kept_apart() -> None:
    """A load past the end meets a store in the next element all the same."""
    last = 0x64000 - 16
    for tail, verdict in ((0, None), (8, "result 0 and operand 0 of copy.made_up share a memory element")):
        pair = binding(
            (access(16, writes=True),), (access(16, tail=tail),), separate=((Result(0), Operand(0)),)
        )
        assert check_addresses(pair, (0x64000, last)) == verdict


def test_aliases_are_permitted_first_and_checked_last() -> None:
    alias = Alias(result=Result(0), operand=Operand(0), displacement=-8)
    with pytest.raises(ValueError, match=r"copy\.made_up does not permit result 0 at operand 0 -8"):
        binding((access(16, writes=True),), (access(16),), aliases=(alias,))
    pair = binding((access(16, writes=True),), (access(16),), aliases=(alias,), permitted=(alias,))
    assert check_addresses(pair, (0x60000, 0x60008)) is None
    assert check_addresses(pair, (0x60000, 0x60000)) == (
        "result 0 of copy.made_up is +0 bytes from operand 0, not -8"
    )


@given(distance=st.integers(-80, 80))
def test_nothing_is_written_where_something_else_is_read(distance: int) -> None:
    """Interleaved rows of two accesses do not meet; one byte in common is refused."""

    def rows(first: int) -> Traversal:
        return Traversal(pieces=(Loops(run_bytes=8, bases=(first,), counts=(3,), strides=((24,),)),))

    nothing = Traversal(pieces=())
    pair = binding(
        (Access(operand=None, alignment=1, writes=rows(0), reads=nothing),),
        (Access(operand=None, alignment=1, reads=rows(4)),),
    )
    written = {24 * row + byte for row in range(3) for byte in range(8)}
    is_met = any(24 * row + byte + 4 + distance in written for row in range(3) for byte in range(8))
    assert check_addresses(pair, (0x60000, 0x60000 + distance)) == (
        "result 0 and operand 0 of copy.made_up overlap and were not asked to" if is_met else None
    )


def test_a_call_has_eight_registers() -> None:
    pointers = tuple(Scalar(name=f"scalar{index}", value=index) for index in range(9))
    with pytest.raises(ValueError, match=r"copy\.made_up has 9 arguments, 8 fit"):
        binding((access(16, writes=True),), (), arguments=pointers)


def test_equal_requests_are_one_binding() -> None:
    """KB-08: bindings are interned by equality."""
    vector = operand(RowMajor(), (12,))
    relations = (None, Identity(rank=1), Identity(rank=1))
    one, other = (
        bound(registry.bind("pointwise", PointwiseParameters(), (vector, vector, vector), relations))
        for _ in range(2)
    )
    assert one is other
    assert hash(one) == hash(other)


def test_families_are_closed() -> None:
    assert list(registry.FAMILIES) == list(objects.GENERATORS)
    with pytest.raises(
        ValueError, match="there is no kernel family fft; the families are cast, copy, gemm, "
    ):
        registry.execute("fft.radix2", (), Sram(bytes_of_nothing()))
    with pytest.raises(ValueError, match="there is no kernel family fft"):
        objects.kernel_objects([parse_symbol("fft.radix2")], our_decisions())
    with pytest.raises(ValueError, match="PointwiseParameters belongs to family pointwise, not gemm"):
        registry.bind("gemm", PointwiseParameters())


def bytes_of_nothing() -> npt.NDArray[np.uint8]:
    """An empty memory."""
    return np.zeros(0, dtype=np.uint8)


@pytest.mark.parametrize(
    "symbol",
    [
        "gemm.initialize.precision=f32.weights=wide.rounding=nearest",
        "gemm.initialize.precision=f16.weights=wide.rounding=nearest.rows=5",
        "gemm.initialize.precision=f8.weights=wide.rounding=nearest.result=blocks",
        "pointwise.add_flat.precision=f32",
        "reduce.sum.precision=f32",
        "copy.swap_span.unit=u64",
    ],
)
def test_symbols_of_kernels_that_do_not_exist(symbol: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        objects.kernel_objects([parse_symbol(symbol)], our_decisions())
    with pytest.raises(ValueError, match=r".+"):
        registry.execute(symbol, (0,) * 8, Sram(bytes_of_nothing()))


def test_bindings_know_no_code() -> None:
    """Editing a generator must not change the key of a stage that plans, lowers or simulates."""
    script = (
        "import sys, compiler.kernels.registry\n"
        "print([name for name in sys.modules if name.startswith('compiler.isa') or name.endswith('.code')"
        " or name.startswith('compiler.simulator')])"
    )
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_objects_depend_on_nothing_but_their_symbols() -> None:
    keys = [parse_symbol(symbol) for symbol in EVERY_KERNEL]
    forward = objects.kernel_objects(keys, our_decisions())
    backward = objects.kernel_objects([*reversed(keys), *keys], our_decisions())
    assert [write_object(one) for one in forward] == [write_object(one) for one in backward]
    image = link(forward)
    for symbol in EVERY_KERNEL:
        assert image.address_of(symbol) % 8 == 0
