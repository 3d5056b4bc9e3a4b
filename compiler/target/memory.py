"""The SRAM of a tile: range, regions, elements, and what each kind of access demands of an address.

A tile sees one range of SRAM in two regions. Region 0, "standard", is a row of single-ported 16 KiB arrays;
code runs only there. Region 1, "interleaved", joins such arrays to pairs: consecutive 64-bit atoms
alternate between the two arrays of a pair, so that 128 bits can be read at once. The *element* of an
address is the array (region 0) or the pair (region 1) it lies in, named by its lowest address. Everything
that may not happen twice at once in one memory, from exchange traffic to co-issued loads, is stated in
elements.

All functions refuse addresses outside SRAM with ``ValueError``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, final

import numpy as np

from compiler.target.standing import EARLIER, VENDOR, VERIFIED
from compiler.target.units import Address, BoolArray, Bytes, Element, Int64Array, IntegerArray

SRAM_BASE: Annotated[Address, VERIFIED] = Address(0x4C000)
"""Lowest byte address. Fact, ran on hardware."""

SRAM_SIZE: Annotated[Bytes, VERIFIED] = Bytes(0x9C000)
"""Bytes of SRAM in each tile, 624 KiB. Fact, ran on hardware."""

SRAM_END: Annotated[Address, VERIFIED] = Address(SRAM_BASE + SRAM_SIZE)
"""First byte address behind SRAM. Fact, ran on hardware."""

ARRAY_SIZE: Annotated[Bytes, VERIFIED] = Bytes(0x4000)
"""Bytes of one single-ported memory array. Fact, ran on hardware."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A part of SRAM in which one rule names the elements.

    Args:
        name: the word used in reports.
        base: lowest byte address.
        end: first byte address behind it.
        interleave: arrays in each element.
    """

    name: str
    base: Address
    end: Address
    interleave: int

    def __post_init__(self) -> None:
        """A region is a whole number of elements."""
        if self.end <= self.base or (self.end - self.base) % self.element_size:
            raise ValueError(f"region {self.name} is not a whole number of {self.element_size}-byte elements")

    @property
    def element_size(self) -> Bytes:
        """Bytes of one element."""
        return Bytes(ARRAY_SIZE * self.interleave)

    @property
    def size(self) -> Bytes:
        """Bytes of the region."""
        return Bytes(self.end - self.base)

    def __contains__(self, address: int) -> bool:
        """Whether a byte address lies in the region."""
        return self.base <= address < self.end


EXECUTABLE_LIMIT: Annotated[Address, VERIFIED] = Address(0x80000)
"""Instructions run only below this byte address: the end of region 0. Fact, ran on hardware."""

STANDARD: Annotated[Region, VERIFIED] = Region(
    name="standard", base=SRAM_BASE, end=EXECUTABLE_LIMIT, interleave=1
)
"""Region 0: code, exchange rows and data. Fact, ran on hardware."""

INTERLEAVED: Annotated[Region, VERIFIED] = Region(
    name="interleaved", base=EXECUTABLE_LIMIT, end=SRAM_END, interleave=2
)
"""Region 1: data, and the only place of 128-bit accesses. Fact, ran on hardware."""

FETCH_LOOKAHEAD: Annotated[Bytes, VERIFIED] = Bytes(64)
"""Bytes behind the running instruction that the fetcher may touch. Fact, measured on hardware."""

INSTRUCTION_ALIGNMENT: Annotated[Bytes, VENDOR] = Bytes(4)
"""Bytes that the address of an instruction is a multiple of. Fact, vendor tools."""

BUNDLE_ALIGNMENT: Annotated[Bytes, VENDOR] = Bytes(8)
"""The same for worker bundles and two-word supervisor instructions. Fact, vendor tools."""

ATOM_SIZE: Annotated[Bytes, EARLIER] = Bytes(8)
"""Bytes of the widest access that one array serves in a cycle. Fact, earlier generation."""

WIDE_ACCESS_SIZE: Annotated[Bytes, VENDOR] = Bytes(16)
"""Bytes, and alignment, of a 128-bit access: both arrays of a pair at once. Fact, vendor tools."""

LOADS_PER_BUNDLE: Annotated[int, EARLIER] = 2
"""Most loads in one bundle. Fact, earlier generation."""

STORES_PER_BUNDLE: Annotated[int, EARLIER] = 1
"""Most stores in one bundle. Fact, earlier generation."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ByteRange:
    """Consecutive bytes ``start .. start + size - 1`` of a tile; an empty range shares nothing."""

    start: Address
    size: Bytes

    def __post_init__(self) -> None:
        """The range lies in SRAM."""
        if self.size < 0 or self.start < SRAM_BASE or self.end > SRAM_END:
            raise ValueError(
                f"bytes {self.start:#x}..{self.end:#x} are not a range of SRAM"
                f" ({SRAM_BASE:#x}..{SRAM_END:#x})"
            )

    @property
    def end(self) -> Address:
        """First byte address behind the range."""
        return Address(self.start + self.size)

    def overlaps(self, other: "ByteRange") -> bool:
        """Whether a byte is in both."""
        return max(self.start, other.start) < min(self.end, other.end)

    def contains(self, other: "ByteRange") -> bool:
        """Whether every byte of the other range is in this one."""
        return other.size == 0 or (self.start <= other.start and other.end <= self.end)

    def elements(self) -> Iterator[Element]:
        """The elements that hold a byte of the range, in ascending order."""
        address = self.start
        while address < self.end:
            element = element_key(address)
            yield element
            address = Address(element + region_of(address).element_size)


SRAM: Annotated[ByteRange, VERIFIED] = ByteRange(start=SRAM_BASE, size=SRAM_SIZE)
"""All of it. Fact, ran on hardware."""


def region_of(address: Address) -> Region:
    """The region of a byte address."""
    if address in STANDARD:
        return STANDARD
    if address in INTERLEAVED:
        return INTERLEAVED
    raise ValueError(f"address {address:#x} is outside SRAM ({SRAM_BASE:#x}..{SRAM_END:#x})")


def element_key(address: Address) -> Element:
    """The element of a byte address (rule of both regions: ran on hardware)."""
    region = region_of(address)
    return Element(address - (address - region.base) % region.element_size)


def element_keys(addresses: IntegerArray) -> Int64Array:
    """``element_key`` of each address, any shape."""
    wide = addresses.astype(np.int64)
    outside = (wide < SRAM_BASE) | (wide >= SRAM_END)
    if outside.any():
        region_of(Address(int(wide[outside][0])))
    is_standard = wide < STANDARD.end
    offset = np.where(is_standard, wide - STANDARD.base, wide - INTERLEAVED.base)
    size = np.where(is_standard, STANDARD.element_size, INTERLEAVED.element_size)
    return wide - offset % size


def share_an_element(first: ByteRange, second: ByteRange) -> bool:
    """Whether some element holds bytes of both ranges.

    Elements are contiguous and keys ascend with addresses, so two spans of elements meet exactly when
    neither ends before the other begins.
    """
    if first.size == 0 or second.size == 0:
        return False
    return element_key(first.start) <= _last_element(second) and element_key(second.start) <= _last_element(
        first
    )


def ranges_share_an_element(
    first_starts: IntegerArray,
    first_sizes: IntegerArray,
    second_starts: IntegerArray,
    second_sizes: IntegerArray,
) -> BoolArray:
    """``share_an_element`` of ranges given by start (byte address) and size (bytes, 1 or more), broadcast."""
    if (first_sizes < 1).any() or (second_sizes < 1).any():
        raise ValueError("vectorized ranges hold at least one byte")
    first_low = element_keys(first_starts)
    second_low = element_keys(second_starts)
    first_high = element_keys(first_starts.astype(np.int64) + first_sizes - 1)
    second_high = element_keys(second_starts.astype(np.int64) + second_sizes - 1)
    return (first_low <= second_high) & (second_low <= first_high)


def _last_element(span: ByteRange) -> Element:
    return element_key(Address(span.end - 1))


def atom_parity(address: Address) -> int:
    """Which array of its pair holds an interleaved address: 0 or 1 (earlier generation, inferred)."""
    return address // ATOM_SIZE % INTERLEAVED.interleave


def accesses_conflict(first: ByteRange, second: ByteRange) -> bool:
    """Whether two accesses of one bundle are a memory conflict (inferred; an exception on hardware).

    They conflict when one array must serve both. In the standard region that is any element in common; in
    the interleaved region the atoms decide. Ranges are single accesses: at most ``WIDE_ACCESS_SIZE`` bytes,
    naturally aligned, so that each lies in one element.
    """
    for access in (first, second):
        if access.size not in (1, 2, 4, ATOM_SIZE, WIDE_ACCESS_SIZE) or access.start % access.size:
            raise ValueError(f"{access.size} bytes at {access.start:#x} are not one aligned access")
    if not share_an_element(first, second):
        return False
    return first.start in STANDARD or not _parities(first).isdisjoint(_parities(second))


def _parities(access: ByteRange) -> frozenset[int]:
    return frozenset({atom_parity(access.start), atom_parity(Address(access.end - 1))})


def wide_access_allowed(address: Address) -> bool:
    """Whether a 128-bit access may start here: interleaved and aligned (vendor tools)."""
    return region_of(address) is INTERLEAVED and address % WIDE_ACCESS_SIZE == 0


def is_executable(code: ByteRange) -> bool:
    """Whether instructions may run from every byte of the range."""
    return code.end <= EXECUTABLE_LIMIT and code.start % INSTRUCTION_ALIGNMENT == 0


def fetched(code: ByteRange) -> ByteRange:
    """The bytes that the fetcher may touch while the code runs: it and the look-ahead, within SRAM."""
    return ByteRange(start=code.start, size=Bytes(min(code.end + FETCH_LOOKAHEAD, SRAM_END) - code.start))
