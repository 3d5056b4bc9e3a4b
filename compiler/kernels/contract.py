"""What every kernel family promises: the checked, address-independent description of one call.

A family answers ``bind`` with a :class:`Binding` or a :class:`Refusal`. The binding is complete: planner,
low, placement, costs, padding analysis, fusion and emission read this one value and know nothing of families
(KB-01 .. KB-08). Whatever depends on geometry was checked before it exists; :func:`check_addresses` is the
only later check, of what depends on addresses.

**Numbering.** Results come first, then operands. Sequences over both (``operands`` and ``relations`` of a
request, ``addresses`` of a call, ``Binding.accesses``) use this numbering. Results are indexed and none is
special: a :class:`Reference` can name any (MO-01). Two results, or two operands, may lie in one storage;
that is how storage with parts of different types is described (MS-01).

**Addresses.** An address in ``addresses`` is that of the backing storage of an operand, to which its strides
and traversals are relative. ``Access.start`` is where the touched bytes begin in it; pointers in registers
and alignments speak of that byte.

**Call.** A kernel is called by the supervisor with its arguments from $m2 on, in the order of
``Binding.arguments`` (each family keeps its own, MO-02), the return address in $m10 and a descending stack in
$m11. It may change every other register of the supervisor and all of the workers', and returns when all
workers are done.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, Protocol, TypeAlias, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.relation import Relation
from compiler.geometry.traversal import Traversal
from compiler.kernels.symbols import SymbolKey
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, ByteRange, share_an_element
from compiler.target.runtime_layout import FIRST_ARGUMENT, LAST_ARGUMENT
from compiler.target.units import Address, Bytes, Cycles

ARGUMENT_LIMIT: Final = LAST_ARGUMENT - FIRST_ARGUMENT + 1
"""Most arguments of a call: one register each."""

ADDRESSABLE: Final = 1 << 32
"""No storage has more bytes: addresses, and the scalars of calls, are words of 32 bits."""

NO_BYTES: Final = Traversal(pieces=())
"""The traversal of an access that reads nothing, or writes nothing."""


@final
@dataclass(frozen=True, slots=True)
class Result:
    """The result of this index."""

    index: int

    def __str__(self) -> str:
        """``result 0``."""
        return f"result {self.index}"


@final
@dataclass(frozen=True, slots=True)
class Operand:
    """The operand of this index."""

    index: int

    def __str__(self) -> str:
        """``operand 0``."""
        return f"operand {self.index}"


Reference: TypeAlias = Result | Operand
"""Names one access of a call."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A result in the storage of an operand.

    Args:
        result: the result.
        operand: the operand whose storage it takes.
        displacement: bytes from the operand's storage to the result's.
    """

    result: Result
    operand: Operand
    displacement: int = 0

    def __str__(self) -> str:
        """``result 0 at operand 1 + 0``."""
        return f"{self.result} at {self.operand} {self.displacement:+d}"


class PaddingState(Enum):
    """What padding bytes hold."""

    ANY = "any"
    """Anything, NaN included."""
    FINITE = "finite"
    """Elements that are finite."""
    ZERO = "zero"
    """Zero bytes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Padding:
    """Padding that is treated alike.

    Args:
        part: its bytes, relative to the backing storage; inside the operand's padding.
        before: what it must hold when the call begins.
        after: what it holds when the call ends; None when the call leaves it as it was.
    """

    part: Traversal
    before: PaddingState
    after: PaddingState | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What a call does with one result or operand.

    Args:
        operand: its geometry; None for bytes without elements, as in copies.
        relation: which of its coordinates a coordinate of the results needs; None for results and bytes.
        start: byte of the backing storage that the pointer names and that is aligned.
        alignment: bytes; the address of ``start`` is a multiple of it.
        memory_class: the kind of SRAM that the access needs, whatever its owner asked for.
        reads: bytes whose values the call uses, relative to the backing storage, padding included.
        writes: bytes it writes, padding included. There are no 16-bit stores: where an odd half ends a run,
            the rest of its word is in ``reads`` and ``writes`` and keeps its value, even past the storage.
        tail: bytes behind the last byte of both that it may load without using them; they must be mapped.
        padding: disjoint parts of the operand's padding that it reads or writes. Padding in none of them is
            not touched.

    Raises:
        ValueError: nothing is touched, the alignment is no power of two, or the tail is negative.
    """

    operand: LocalOperand | None
    relation: Relation | None = None
    start: int = 0
    alignment: int
    memory_class: MemoryClass = MemoryClass.STANDARD
    reads: Traversal = NO_BYTES
    writes: Traversal = NO_BYTES
    tail: int = 0
    padding: tuple[Padding, ...] = ()

    def __post_init__(self) -> None:
        if self.alignment < 1 or self.alignment & (self.alignment - 1):
            raise ValueError(f"an alignment of {self.alignment} bytes is not a power of two")
        if not self.reads.pieces and not self.writes.pieces:
            raise ValueError("an access touches at least one byte")
        if self.tail < 0:
            raise ValueError(f"a tail of {self.tail} bytes is negative")

    @property
    def extent(self) -> tuple[int, int]:
        """First byte touched and one past the last, without tail, relative to the backing storage."""
        extents = [traversal.extent for traversal in (self.reads, self.writes) if traversal.pieces]
        return (min(start for start, _ in extents), max(stop for _, stop in extents))

    @property
    def is_written(self) -> bool:
        """Whether it writes anything."""
        return bool(self.writes.pieces)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """An argument: the address of byte ``Access.start`` of a result or operand."""

    reference: Reference


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Scalar:
    """An argument: a number.

    Args:
        name: what it means to the kernel.
        value: unsigned, or negative in two's complement; 32 bits.

    Raises:
        ValueError: the value does not fit.
    """

    name: str
    value: int

    def __post_init__(self) -> None:
        if not -(1 << 31) <= self.value < 1 << 32:
            raise ValueError(f"scalar {self.name}: {self.value} does not fit 32 bits")

    @property
    def word(self) -> int:
        """The value as a register holds it."""
        return self.value & 0xFFFF_FFFF


Argument: TypeAlias = Pointer | Scalar


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a call achieves, padding and repetition left out.

    Args:
        flops: floating-point operations on elements; a product and its addition are two.
        moved_bytes: bytes of copies and fills; 0 for arithmetic.
    """

    flops: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Parameters:
    """What is asked of a family beside the operands; each family has its own subclass."""

    family: ClassVar[str]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A checked call without addresses. Equal calls compare and hash equal.

    Args:
        family: name of the family.
        parameters: what was asked.
        results: what the call does with each result.
        operands: what it does with each operand.
        separate: pairs that must not share a memory element, tails included.
        aliases: results in the storage of operands, as asked.
        permitted: every alias that the family would accept.
        arguments: what the registers from $m2 on hold.
        symbol: the kernel.
        work: what is achieved.
        cycles: estimated, from the kernel's first instruction to its return.

    Raises:
        ValueError: a reference without access, an alias that is not permitted, or too many arguments.
    """

    family: str
    parameters: Parameters
    results: tuple[Access, ...]
    operands: tuple[Access, ...]
    separate: tuple[tuple[Reference, Reference], ...] = ()
    aliases: tuple[Alias, ...] = ()
    permitted: tuple[Alias, ...] = ()
    arguments: tuple[Argument, ...]
    symbol: SymbolKey
    work: Work
    cycles: Cycles

    def __post_init__(self) -> None:
        references: list[Reference] = [reference for pair in self.separate for reference in pair]
        references += [argument.reference for argument in self.arguments if isinstance(argument, Pointer)]
        for alias in self.permitted:
            references += [alias.result, alias.operand]
        for reference in references:
            self.access(reference)
        for alias in self.aliases:
            if alias not in self.permitted:
                raise ValueError(f"{self.symbol} does not permit {alias}")
        if len(self.arguments) > ARGUMENT_LIMIT:
            raise ValueError(f"{self.symbol} has {len(self.arguments)} arguments, {ARGUMENT_LIMIT} fit")
        if self.symbol.family != self.family or self.parameters.family != self.family:
            raise ValueError(f"{self.symbol} and {self.parameters} are not both of family {self.family}")

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Results, then operands."""
        return (*self.results, *self.operands)

    def position(self, reference: Reference) -> int:
        """Its number among results and operands.

        Raises:
            ValueError: there is no such result or operand.
        """
        match reference:
            case Result(index):
                first, count = 0, len(self.results)
            case Operand(index):
                first, count = len(self.results), len(self.operands)
            case _:
                assert_never(reference)
        if not 0 <= index < count:
            raise ValueError(f"{self.symbol} has no {reference}")
        return first + index

    def access(self, reference: Reference) -> Access:
        """What the call does with a result or operand.

        Raises:
            ValueError: there is no such result or operand.
        """
        return self.accesses[self.position(reference)]

    def reference(self, position: int) -> Reference:
        """The inverse of :meth:`position`."""
        results = len(self.results)
        return Result(position) if position < results else Operand(position - results)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a family cannot make a call.

    Args:
        reason: one sentence that names the operand and what is wrong with it, without a final full stop.
    """

    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A call that is asked for.

    Args:
        parameters: what, beside the operands.
        operands: geometry of results, then operands; empty where the parameters describe bytes.
        relations: index relation of each of them; None for results.
        aliases: results that are to take the storage of operands.

    Raises:
        ValueError: not one relation, or None, for each operand.
    """

    parameters: Parameters
    operands: tuple[LocalOperand, ...]
    relations: tuple[Relation | None, ...]
    aliases: tuple[Alias, ...] = ()

    def __post_init__(self) -> None:
        if len(self.operands) != len(self.relations):
            raise ValueError(f"{len(self.operands)} operands have {len(self.relations)} relations")


class TileMemory(Protocol):
    """SRAM as the semantics of kernels see it: real addresses in simulation, private ones elsewhere."""

    def read(self, address: int, count: int, /) -> npt.NDArray[np.uint8]:
        """``count`` bytes [count]; a copy, or a view that later writes do not change."""
        ...

    def write(self, address: int, data: npt.NDArray[np.uint8], /) -> None:
        """Replace the bytes [count] at an address."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A kernel family as the registry knows it. Its code generator is known to ``objects`` alone.

    Args:
        name: the first part of its symbols.
        bind: checks a request of its parameters and describes the call.
        execute: what a kernel does to memory, given its symbol and the argument registers from $m2 on. Its
            kernels are bit-equal to it while rounding is to nearest even.
        cycles: what a kernel takes, given the same; of a binding's arguments it is the binding's estimate.
    """

    name: str
    bind: Callable[[Request], Binding | Refusal]
    execute: Callable[[SymbolKey, tuple[int, ...], TileMemory], None]
    cycles: Callable[[SymbolKey, tuple[int, ...]], Cycles]


def arguments_at(binding: Binding, addresses: Sequence[int]) -> tuple[int, ...]:
    """Values of the registers from $m2 on.

    Args:
        binding: the call.
        addresses: of the backing storages of results, then operands.

    Raises:
        ValueError: not one address for each.
    """
    accesses = binding.accesses
    if len(addresses) != len(accesses):
        raise ValueError(f"{binding.symbol} has {len(accesses)} accesses, not {len(addresses)}")
    words: list[int] = []
    for argument in binding.arguments:
        match argument:
            case Pointer(reference=reference):
                position = binding.position(reference)
                words.append(addresses[position] + accesses[position].start)
            case Scalar():
                words.append(argument.word)
            case _:
                assert_never(argument)
    return tuple(words)


def check_addresses(binding: Binding, addresses: Sequence[int]) -> str | None:
    """What is wrong with a call at these addresses, or None (KB-06).

    Alignment, range and region of every access, element separation, that aliased results are where they were
    asked to be, and that nothing else that is written meets another access. An address in SRAM always fits
    the immediate of a ``setzi``.

    Args:
        binding: the call.
        addresses: of the backing storages of results, then operands.

    Raises:
        ValueError: not one address for each.
    """
    if len(addresses) != len(binding.accesses):
        raise ValueError(f"{binding.symbol} has {len(binding.accesses)} accesses, not {len(addresses)}")
    spans: list[ByteRange] = []
    for position, (access, address) in enumerate(zip(binding.accesses, addresses, strict=True)):
        reference = binding.reference(position)
        first, last = access.extent
        low, high = address + first, address + last + access.tail
        if (address + access.start) % access.alignment:
            return (
                f"{reference} of {binding.symbol} at {address + access.start:#x} is not aligned to "
                f"{access.alignment} bytes"
            )
        if low < SRAM_BASE or high > SRAM_END:
            return f"{reference} of {binding.symbol} at {low:#x}..{high:#x} leaves SRAM"
        if access.memory_class is MemoryClass.INTERLEAVED and low < INTERLEAVED.base:
            return f"{reference} of {binding.symbol} at {low:#x} is not in interleaved memory"
        spans.append(ByteRange(start=Address(low), size=Bytes(high - low)))
    for one, other in binding.separate:
        if share_an_element(spans[binding.position(one)], spans[binding.position(other)]):
            return f"{one} and {other} of {binding.symbol} share a memory element"
    for alias in binding.aliases:
        distance = addresses[binding.position(alias.result)] - addresses[binding.position(alias.operand)]
        if distance != alias.displacement:
            return (
                f"{alias.result} of {binding.symbol} is {distance:+d} bytes from {alias.operand}, "
                f"not {alias.displacement:+d}"
            )
    return _unasked_overlap(binding, addresses)


def _unasked_overlap(binding: Binding, addresses: Sequence[int]) -> str | None:
    """What is written where something else is accessed, other than by an alias of the binding."""
    asked = {(binding.position(alias.result), binding.position(alias.operand)) for alias in binding.aliases}
    for first, one in enumerate(binding.results):
        for second, other in enumerate(binding.accesses[first + 1 :], start=first + 1):
            if (first, second) in asked or not one.is_written:
                continue
            distance = addresses[second] - addresses[first]
            low, high = other.extent
            if one.extent[1] <= low + distance or high + distance <= one.extent[0]:
                continue
            touched = Traversal(pieces=(*other.reads.pieces, *other.writes.pieces))
            if _meet(one.writes, touched, distance):
                return (
                    f"{binding.reference(first)} and {binding.reference(second)} of {binding.symbol} overlap "
                    "and were not asked to"
                )
    return None


def _meet(one: Traversal, other: Traversal, distance: int) -> bool:
    """Whether two sets of bytes have one in common, the other moved by ``distance`` bytes."""
    starts, stops = one.spans()
    other_starts, lengths = other.runs()
    # Of the spans that end behind the start of a run, the first begins first.
    candidates = np.searchsorted(stops, other_starts + distance, side="right")
    inside = candidates < len(starts)
    found = starts[candidates[inside]] < (other_starts + distance + lengths)[inside]
    return bool(found.any())
