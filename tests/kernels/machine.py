"""Running one call of a kernel on a simulated tile, against its semantics and its declared accesses.

The surroundings are hostile: SRAM that nothing placed is poisoned, bytes of a storage that a call does not
declare to use hold NaN, padding holds the worst that the binding admits, every storage is framed by 64 bytes
that must survive, and all floating-point exceptions are enabled.
"""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import settings

from compiler.geometry.precision import F8, F16, F32, F143_NAN
from compiler.geometry.traversal import Traversal
from compiler.isa.linker import link
from compiler.kernels import objects, registry
from compiler.kernels.contract import (
    Access,
    Binding,
    Operand,
    PaddingState,
    Reference,
    Refusal,
    Result,
    arguments_at,
    check_addresses,
)
from compiler.kernels.symbols import parse_symbol
from compiler.simulator import harness
from compiler.simulator.faults import NamedRange
from compiler.simulator.tile import Stop, Tile, TileOptions
from compiler.target.control_registers import SupervisorRegister
from compiler.target.isa_decisions import our_decisions
from compiler.target.memory import SRAM_BASE, SRAM_SIZE

Bytes = npt.NDArray[np.uint8]

Contents = Mapping[Reference, Bytes] | Mapping[Operand, Bytes] | Mapping[Result, Bytes]

MANY = settings(max_examples=settings().max_examples * 3 // 2)
"""Random cases of one kernel: 300 under the profile ``ci``."""

CANARY = 64
STANDARD = 0x60000
"""A place in standard memory; elements are 0x4000 bytes."""
INTERLEAVED = 0x90000
"""A place in interleaved memory; elements are 0x8000 bytes."""
ALL_EXCEPTIONS = 7


class Sram:
    """All of a tile's bytes, as the semantics of kernels see them."""

    def __init__(self, data: Bytes) -> None:
        self.data = data

    def read(self, address: int, count: int) -> Bytes:
        """A copy."""
        assert address >= SRAM_BASE
        assert address + count <= SRAM_BASE + SRAM_SIZE
        return self.data[address - SRAM_BASE : address - SRAM_BASE + count].copy()

    def write(self, address: int, data: Bytes) -> None:
        """Replace bytes."""
        assert address >= SRAM_BASE
        assert address + len(data) <= SRAM_BASE + SRAM_SIZE
        self.data[address - SRAM_BASE : address - SRAM_BASE + len(data)] = data


@functools.cache
def program_of(symbol: str) -> harness.Program:
    """A kernel, linked alone."""
    image = link(objects.kernel_objects([parse_symbol(symbol)], our_decisions()))
    return harness.Program(
        segments=tuple(harness.Segment(address=address, data=data) for address, data in image.runs()),
        symbols=tuple(
            NamedRange(name=entry.name, start=entry.address, size=entry.size) for entry in image.symbols
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a checked call did."""

    cycles: int
    memory: Sram


def bound(binding: Binding | Refusal) -> Binding:
    """The binding, which must not be a refusal."""
    assert isinstance(binding, Binding), binding.reason
    return binding


def refused(binding: Binding | Refusal) -> str:
    """The reason of a refusal."""
    assert isinstance(binding, Refusal)
    return binding.reason


def positions(part: Traversal) -> npt.NDArray[np.int64]:
    """Every byte of a traversal, relative to the storage."""
    found: list[int] = []
    for start, length in zip(*part.runs(), strict=True):
        found.extend(range(int(start), int(start + length)))
    return np.array(found, dtype=np.int64)


def poisoned_storage(access: Access, elements: Bytes, random: np.random.Generator) -> Bytes:
    """Bytes [storage] to place for an access.

    Args:
        access: of the call.
        elements: [storage] bytes; those of elements are kept.
        random: for finite padding.
    """
    stop = max(len(elements), access.extent[1])
    is_f8 = access.operand is not None and isinstance(access.operand.precision, F8)
    nan = np.array([F143_NAN] if is_f8 else [0xFF, 0x7E], dtype=np.uint8)
    content = np.resize(nan, stop)
    # Kept bytes beside rows of halves can lie before the first one, in the frame.
    used = positions(access.reads)
    used = used[used >= 0]
    content[used] = elements[used]
    for padding in access.padding:
        where = positions(padding.part)
        match padding.before:
            case PaddingState.ANY:
                content[where] = np.resize(nan, len(where))
            case PaddingState.FINITE:
                finite = random.integers(0, 0x7BFF, len(where) // 2).astype(np.uint16)
                content[where] = (finite | random.integers(0, 2, finite.shape).astype(np.uint16) << 15).view(
                    np.uint8
                )
            case PaddingState.ZERO:
                content[where] = 0
    return content


def new_tile() -> Tile:
    """A tile that tracks accesses, its workers' registers full of NaN."""
    tile = Tile(TileOptions(decisions=our_decisions(), track=True))
    for worker in range(6):
        for number in (*range(12), 14):
            tile.set_main_register(worker, number, 0x7FFF_7FFF)
        for number in range(8):
            tile.set_arithmetic_register(worker, number, 0x7FFF_7FFF)
    return tile


def run(
    binding: Binding,
    addresses: Sequence[int],
    contents: Contents,
    *,
    seed: int = 0,
    exceptions: int = ALL_EXCEPTIONS,
    check_numbers: bool = True,
    tile: Tile | None = None,
) -> Outcome:
    """Run a call and check everything that its binding says.

    Args:
        binding: the call.
        addresses: of the storages of results, then operands.
        contents: storages of what is read; the others are poisoned.
        seed: of canaries and padding.
        exceptions: floating-point exceptions that are enabled.
        check_numbers: whether results must equal the semantics bit for bit.
        tile: where earlier calls ran, or None for a new one whose registers hold garbage.
    """
    assert check_addresses(binding, addresses) is None
    random = np.random.default_rng(seed)
    if tile is None:
        tile = new_tile()
    tile.forget_touched()
    program = program_of(str(binding.symbol))
    harness.load(tile, program)
    tile.set_control_register(SupervisorRegister.FP_ICTL, exceptions)
    placed: dict[Reference, Bytes] = dict(contents.items())
    may_read = np.zeros(SRAM_SIZE, dtype=np.bool_)
    may_write = np.zeros(SRAM_SIZE, dtype=np.bool_)
    for place, access in enumerate(binding.accesses):
        reference = binding.reference(place)
        base = addresses[place]
        high = access.extent[1]
        elements = placed.get(reference, np.zeros(high, dtype=np.uint8))
        storage = poisoned_storage(access, elements, random)
        if not _is_in_place(binding, reference):
            frame = random.integers(0, 256, CANARY, dtype=np.uint8)
            tile.place(base - CANARY, frame)
            tile.place(base + len(storage), frame[::-1])
            tile.place(base, storage)
        tile.ranges.append(NamedRange(name=str(reference), start=base, size=len(storage)))
        offset = base - SRAM_BASE
        may_read[offset + positions(access.reads)] = True
        may_read[offset + positions(access.writes)] = True
        may_read[offset + high : offset + high + access.tail] = True
        may_write[offset + positions(access.writes)] = True
    before = np.frombuffer(tile.read(SRAM_BASE, SRAM_SIZE), dtype=np.uint8)
    expected = Sram(before.copy())
    arguments = arguments_at(binding, addresses)
    assert registry.cycles_of_call(str(binding.symbol), arguments) == binding.cycles
    registers = {2 + index: word for index, word in enumerate(arguments)}
    registers |= {number: 0xDEAD_0000 + number for number in range(10) if number not in registers}
    entry = program.address_of(str(binding.symbol))
    result = harness.call(tile, entry, registers)
    assert result.fault is None, str(result.fault)
    assert result.stop is Stop.RETURNED
    assert result.queue_report is None, str(result.queue_report)
    assert tile.main_register(6, harness.STACK_REGISTER) == harness.STACK
    assert tile.control_register(SupervisorRegister.FP_ICTL) == exceptions
    stack = slice(harness.STACK - 256 - SRAM_BASE, harness.STACK - SRAM_BASE)
    may_read[stack] = may_write[stack] = True
    assert not (tile.bytes_read() & ~may_read).any(), _where(tile.bytes_read() & ~may_read, tile)
    assert not (tile.bytes_written() & ~may_write).any(), _where(tile.bytes_written() & ~may_write, tile)
    after = np.frombuffer(tile.read(SRAM_BASE, SRAM_SIZE), dtype=np.uint8).copy()
    registry.execute(str(binding.symbol), arguments, expected)
    expected.data[stack] = after[stack]
    wrong = after != expected.data
    if not check_numbers:
        wrong &= ~may_write
    assert not wrong.any(), _where(wrong, tile)
    _check_padding_after(binding, addresses, Sram(after))
    return Outcome(cycles=result.cycles, memory=Sram(after))


def _is_in_place(binding: Binding, reference: Reference) -> bool:
    """Whether a result begins where the operand does whose storage it takes."""
    return any(
        alias.result == reference
        and alias.displacement == binding.access(alias.operand).start - binding.access(reference).start
        for alias in binding.aliases
    )


def _check_padding_after(binding: Binding, addresses: Sequence[int], memory: Sram) -> None:
    for access, base in zip(binding.accesses, addresses, strict=True):
        for padding in access.padding:
            where = base + positions(padding.part) - SRAM_BASE
            if padding.after is PaddingState.ZERO:
                assert not memory.data[where].any()
            elif padding.after is PaddingState.FINITE:
                assert _is_finite(access, memory.data[where])


def _is_finite(access: Access, data: Bytes) -> bool:
    """Whether bytes of an operand hold finite elements; without operand, of F16."""
    precision = F16() if access.operand is None else access.operand.precision
    match precision:
        case F8():
            return not (data == F143_NAN).any()
        case F16() | F32():
            return bool(np.isfinite(data.view(precision.dtype)).all())


def _where(wrong: npt.NDArray[np.bool_], tile: Tile) -> str:
    """The first bytes of a set, for messages."""
    found = np.flatnonzero(wrong)[:8] + SRAM_BASE
    names = [f"{named.name} {named.start:#x}+{named.size:#x}" for named in tile.ranges]
    return f"bytes {[hex(int(address)) for address in found]} of {int(wrong.sum())} ({', '.join(names)})"


def random_halves(random: np.random.Generator, count: int, largest: float = 4.0) -> Bytes:
    """Bytes of normally distributed halves, some of them zeros and subnormals."""
    values = (random.standard_normal(count) * largest).astype(np.float16)
    values[random.random(count) < 0.02] = -0.0
    values[random.random(count) < 0.02] = np.float16(3e-7)
    return values.view(np.uint8)
