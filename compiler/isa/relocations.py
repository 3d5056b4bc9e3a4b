"""Relocations: places in a section that the linker fills with ``symbol + addend``.

All are absolute. Ranges are checked as unsigned numbers after the alignment has been checked and shifted out;
a violation is an error, never a truncation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

from compiler.target.memory import SRAM_BASE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RelocationType:
    """How a value is written.

    Args:
        name: as in the instruction table, and after ``R_COLOSSUS_`` in object files.
        number: in object files.
        size: bytes that are read and written.
        pieces: (lowest bit of the place, bits, lowest bit of the value) for each part that is written.
        shift: low bits of the value that must be zero and are dropped.
        from_base: the value counts from the lowest address of the tile's memory.
        spelling: text after the symbol, in assembly, that asks for it; "" when nothing does.
    """

    name: str
    number: int
    size: int
    pieces: tuple[tuple[int, int, int], ...]
    shift: int = 0
    from_base: bool = False
    spelling: str = ""

    @property
    def bits(self) -> int:
        """Width of the value that is written."""
        return sum(bits for _, bits, _ in self.pieces)

    @property
    def mask(self) -> int:
        """Bits of the place that are replaced."""
        return sum(((1 << bits) - 1) << low for low, bits, _ in self.pieces)

    def written(self, value: int) -> int:
        """The number that is stored for ``symbol + addend``.

        Raises:
            ValueError: alignment or range is violated.
        """
        if not self.bits:
            return 0
        if self.from_base:
            value -= SRAM_BASE
        if value % (1 << self.shift):
            raise ValueError(f"{value:#x} is not a multiple of {1 << self.shift}, as {self} demands")
        stored = value >> self.shift
        if not 0 <= stored < 1 << self.bits:
            highest = ((1 << self.bits) - 1) << self.shift
            origin = " from the start of memory" if self.from_base else ""
            raise ValueError(f"{value:#x}{origin} is not in 0..{highest:#x}, as {self} demands")
        return stored

    def apply(self, content: bytearray, offset: int, value: int) -> None:
        """Write ``symbol + addend`` at an offset; bits outside of the mask are kept."""
        stored = self.written(value)
        place = int.from_bytes(content[offset : offset + self.size], "little") & ~self.mask
        for low, bits, value_low in self.pieces:
            place |= (stored >> value_low & ((1 << bits) - 1)) << low
        content[offset : offset + self.size] = place.to_bytes(self.size, "little")

    def __str__(self) -> str:
        """The name of object files."""
        return f"R_COLOSSUS_{self.name}"


def _whole(name: str, number: int, size: int, shift: int = 0, spelling: str = "") -> RelocationType:
    return RelocationType(
        name=name, number=number, size=size, pieces=((0, 8 * size, 0),), shift=shift, spelling=spelling
    )


def _low_bits(name: str, number: int, bits: int, shift: int = 0, spelling: str = "") -> RelocationType:
    return RelocationType(
        name=name, number=number, size=4, pieces=((0, bits, 0),), shift=shift, spelling=spelling
    )


NONE: Final = RelocationType(name="NONE", number=0, size=0, pieces=())
RELOCATIONS: Final[tuple[RelocationType, ...]] = (
    NONE,
    _whole("8", 1, 1, spelling="abs@8"),
    _whole("16", 2, 2, spelling="abs@16"),
    _low_bits("20", 3, 20, spelling="abs@20"),
    _whole("32", 4, 4, spelling="abs@32"),
    _whole("64", 5, 8, spelling="abs@64"),
    RelocationType(
        name="RELATIVE_16_S2",
        number=6,
        size=2,
        pieces=((0, 16, 0),),
        shift=2,
        from_base=True,
        spelling="relative@16@s2",
    ),
    _low_bits("18_S2", 7, 18, 2, spelling="abs18@s2"),
    _low_bits("19_S2", 8, 19, 2, spelling="abs19@s2"),
    RelocationType(
        name="RUN",
        number=9,
        size=4,
        pieces=((16, 4, 12), (0, 12, 0)),
        shift=2,
        from_base=True,
        spelling="run",
    ),
    _whole("16_S3", 14, 2, 3, spelling="abs@16@s3"),
    _whole("16_S4", 15, 2, 4, spelling="abs@16@s4"),
    _whole("16_S5", 16, 2, 5, spelling="abs@16@s5"),
    _low_bits("21", 17, 21, spelling="abs@21"),
)
BY_NAME: Final[Mapping[str, RelocationType]] = {kind.name: kind for kind in RELOCATIONS}
BY_NUMBER: Final[Mapping[int, RelocationType]] = {kind.number: kind for kind in RELOCATIONS}
BY_SPELLING: Final[Mapping[str, RelocationType]] = {
    # ``abs18`` and ``abs@18`` are both in use.
    kind.spelling.replace("@", ""): kind
    for kind in RELOCATIONS
    if kind.spelling
}
DATA_RELOCATIONS: Final[Mapping[int, RelocationType]] = {
    1: BY_NAME["8"],
    2: BY_NAME["16"],
    4: BY_NAME["32"],
    8: BY_NAME["64"],
}
"""What a symbol in data of so many bytes becomes."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """One place to fill.

    Args:
        offset: bytes from the start of the section.
        kind: how the value is written.
        symbol: name of the symbol.
        addend: what is added to its value.
        note: where the place comes from, for messages.
    """

    offset: int
    kind: RelocationType
    symbol: str
    addend: int
    note: str = ""
