"""From objects to an image of tile memory.

Placement is first fit in a fixed order: code, then constants, data and reserved memory, each in the order of
objects and sections, with the section of the entry in front. Code goes to regions that can execute; a
section whose name begins with ``.interleave_2`` to interleaved memory, with ``.interleave_1`` to standard
memory; other data goes where the first room is. Sections that nothing reachable refers to are left out.

Every address in the image comes from one table of symbols, which the image keeps together with the object and
section that each symbol is from.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import DoesNotFit, InvalidInput, Measure, NumberKind
from compiler.isa import elf
from compiler.isa.objects import ObjectFile, ObjectSection, ObjectSymbol
from compiler.isa.program import WORD, SectionKind
from compiler.target.memory import INTERLEAVED, STANDARD

STAGE: Final = "link"
MOST_SECTIONS: Final = 60_000
"""Sections of an image: object files number 65,279."""
_ORDER: Final = {kind: order for order, kind in enumerate(SectionKind)}
_FACTOR_PREFIX: Final = ".interleave_"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRegion:
    """Memory that sections can be placed in.

    Args:
        name: for messages and maps.
        start: first byte address.
        end: first byte address behind it.
        executable: code can be here.
        interleave: arrays of an element, 1 or 2.
    """

    name: str
    start: int
    end: int
    executable: bool
    interleave: int

    def __post_init__(self) -> None:
        """Check the range."""
        if not 0 <= self.start <= self.end:
            raise ValueError(f"region {self.name} ends before it begins")

    def takes(self, section: ObjectSection) -> bool:
        """Whether the kind and name of a section allow it here."""
        if section.kind is SectionKind.CODE and not self.executable:
            return False
        if section.name.startswith(_FACTOR_PREFIX):
            return section.name.startswith(f"{_FACTOR_PREFIX}{self.interleave}")
        return True


TILE_REGIONS: Final = tuple(
    LinkRegion(
        name=region.name,
        start=region.base,
        end=region.end,
        executable=region is STANDARD,
        interleave=region.interleave,
    )
    for region in (STANDARD, INTERLEAVED)
)
"""The whole memory of a tile."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedSection:
    """A section with its address and its final bytes."""

    name: str
    origin: str
    kind: SectionKind
    address: int
    size: int
    content: bytes
    region: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSymbol:
    """A symbol of an image.

    Args:
        name: unique among global symbols.
        address: byte address, or the value of an absolute symbol.
        size: bytes; 0 when not stated.
        origin: the object that defines it.
        section: the section it is in; None for an absolute symbol.
        is_global: it was visible to the other objects.
        is_function: it names code that is called.
    """

    name: str
    address: int
    size: int
    origin: str
    section: str | None
    is_global: bool
    is_function: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Linked code and data.

    Args:
        entry: address where execution begins, or None.
        sections: by ascending address.
        symbols: by (address, name, origin).
        removed: (object, section) of what nothing refers to.
    """

    entry: int | None
    sections: tuple[PlacedSection, ...]
    symbols: tuple[ImageSymbol, ...]
    removed: tuple[tuple[str, str], ...]

    def address_of(self, name: str) -> int:
        """Address of a global symbol.

        Raises:
            KeyError: there is none of that name.
        """
        for symbol in self.symbols:
            if symbol.is_global and symbol.name == name:
                return symbol.address
        raise KeyError(name)

    def runs(self) -> tuple[tuple[int, bytes], ...]:
        """(address, bytes) of each contiguous part of memory that the image fills, by region."""
        return tuple((start, content) for start, content, _ in self.segments() if content)

    def segments(self) -> tuple[tuple[int, bytes, int], ...]:
        """(address, bytes, size in memory) of what the image occupies in each region.

        The size counts reserved memory as well, which lies behind the bytes and is zero at the start.
        """
        segments: list[tuple[int, bytearray, int]] = []
        region = None
        for section in self.sections:
            if section.region != region:
                segments.append((section.address, bytearray(), 0))
                region = section.region
            start, content, _ = segments[-1]
            if section.kind is not SectionKind.ZEROS:
                content.extend(bytes(section.address - start - len(content)) + section.content)
            segments[-1] = (start, content, section.address + section.size - start)
        return tuple((start, bytes(content), size) for start, content, size in segments if size)

    @property
    def digest(self) -> str:
        """SHA-256 of the file in hexadecimal."""
        return hashlib.sha256(write_image(self)).hexdigest()


@final
class _Link:
    """The objects of one link, with what they define."""

    def __init__(self, objects: Sequence[ObjectFile]) -> None:
        self.objects: Final = tuple(objects)
        self.globals: Final[dict[str, tuple[int, ObjectSymbol]]] = {}
        self.locals: Final[list[dict[str, ObjectSymbol]]] = []
        for index, object_file in enumerate(self.objects):
            self.locals.append({symbol.name: symbol for symbol in object_file.symbols if symbol.is_defined})
            for symbol in object_file.symbols:
                if not symbol.is_global or not symbol.is_defined:
                    continue
                if symbol.name in self.globals:
                    first = self.objects[self.globals[symbol.name][0]].name
                    raise InvalidInput(
                        f"it is defined in {first} and in {object_file.name}",
                        stage=STAGE,
                        subject=f"symbol {symbol.name}",
                        next_step="rename one of the two, or leave one object out",
                    )
                self.globals[symbol.name] = (index, symbol)

    def find(self, user: int, name: str) -> tuple[int, ObjectSymbol] | None:
        """The object and symbol that a name in object ``user`` means."""
        local = self.locals[user].get(name)
        return (user, local) if local is not None else self.globals.get(name)

    def section_of(self, user: int, name: str) -> tuple[int, str] | None:
        """The section that a reference keeps alive."""
        found = self.find(user, name)
        if found is not None:
            return None if found[1].section is None else (found[0], found[1].section)
        own = any(section.name == name for section in self.objects[user].sections)
        return (user, name) if own else None

    def code_of(self, entry: str) -> tuple[int, str]:
        """The section of a global symbol where execution begins."""
        index, symbol = self.globals[entry]
        section = None if symbol.section is None else self.objects[index].section(symbol.section)
        offset = symbol.value or 0
        if section is None or section.kind is not SectionKind.CODE or not self.has_word(section, offset):
            raise InvalidInput(
                "execution cannot begin there: it names no instruction",
                stage=STAGE,
                subject=f"symbol {entry}",
                next_step="give a label in a section of code",
            )
        return index, section.name

    @staticmethod
    def has_word(section: ObjectSection, offset: int) -> bool:
        """Whether a whole instruction can be at this offset."""
        return offset % WORD == 0 and offset + WORD <= section.size

    def sections(self) -> Iterator[tuple[int, ObjectSection]]:
        """Every section with the number of its object."""
        for index, object_file in enumerate(self.objects):
            for section in object_file.sections:
                yield index, section

    def live(self, roots: Sequence[str]) -> frozenset[tuple[int, str]]:
        """Sections reachable from the sections of some symbols; all, when there are no roots."""
        if not roots:
            return frozenset((index, section.name) for index, section in self.sections())
        pending: list[tuple[int, str]] = []
        for root in roots:
            found = self.globals.get(root)
            if found is None:
                raise InvalidInput(
                    "no object defines it as a global symbol",
                    stage=STAGE,
                    subject=f"symbol {root}",
                    next_step="add the object that defines it, or declare it with .globl",
                )
            if found[1].section is not None:
                pending.append((found[0], found[1].section))
        reached: set[tuple[int, str]] = set()
        while pending:
            key = pending.pop()
            if key in reached:
                continue
            reached.add(key)
            index, name = key
            for relocation in self.objects[index].section(name).relocations:
                target = self.section_of(index, relocation.symbol)
                if target is not None:
                    pending.append(target)
        return frozenset(reached)


def link(
    objects: Sequence[ObjectFile],
    *,
    entry: str | None = None,
    keep: Sequence[str] = (),
    regions: Sequence[LinkRegion] = TILE_REGIONS,
) -> Image:
    """Link objects.

    Args:
        objects: in the order in which their sections are placed.
        entry: global symbol where execution begins.
        keep: further global symbols whose sections must stay. Without entry and these, everything stays.
        regions: memory to use, preferred first.

    Raises:
        InvalidInput: a symbol is undefined or defined twice, or a relocation's range or alignment is
        violated. DoesNotFit: a section has no room in the regions that can take it.
    """
    names = [object_file.name for object_file in objects]
    if len(set(names)) != len(names):
        raise InvalidInput(
            "two objects have one name",
            stage=STAGE,
            subject=", ".join(names),
            next_step="give each object once",
        )
    joint = _Link(objects)
    roots = [entry, *keep] if entry is not None else [*keep]
    live = joint.live(roots)
    first = joint.code_of(entry) if entry is not None else None
    ordered = sorted(
        ((index, section) for index, section in joint.sections() if (index, section.name) in live),
        key=lambda item: (_ORDER[item[1].kind], (item[0], item[1].name) != first),
    )
    if len(ordered) > MOST_SECTIONS:
        raise InvalidInput(
            f"an image has at most {MOST_SECTIONS:,} sections, not {len(ordered):,}",
            stage=STAGE,
            subject=names[0],
            next_step="put more code or data into one section",
        )
    placed = _place(joint, ordered, regions)
    addresses = {key: address for key, (address, _) in placed.items()}
    _refuse_undefined(joint, ordered)
    sections = [
        PlacedSection(
            name=section.name,
            origin=joint.objects[index].name,
            kind=section.kind,
            address=addresses[index, section.name],
            size=section.size,
            content=_relocated(joint, index, section, addresses),
            region=placed[index, section.name][1].name,
        )
        for index, section in ordered
    ]
    symbols = [
        ImageSymbol(
            name=symbol.name,
            address=_value(symbol, index, addresses),
            size=symbol.size,
            origin=object_file.name,
            section=symbol.section,
            is_global=symbol.is_global,
            is_function=symbol.is_function,
        )
        for index, object_file in enumerate(joint.objects)
        for symbol in object_file.symbols
        if symbol.is_defined and (symbol.section is None or (index, symbol.section) in live)
    ]
    return Image(
        entry=_value(joint.globals[entry][1], joint.globals[entry][0], addresses)
        if entry is not None
        else None,
        sections=tuple(sorted(sections, key=lambda section: (section.address, section.size, section.origin))),
        symbols=tuple(sorted(symbols, key=lambda symbol: (symbol.address, symbol.name, symbol.origin))),
        removed=tuple(
            (joint.objects[index].name, section.name)
            for index, section in joint.sections()
            if (index, section.name) not in live
        ),
    )


def _place(
    joint: _Link, ordered: Sequence[tuple[int, ObjectSection]], regions: Sequence[LinkRegion]
) -> dict[tuple[int, str], tuple[int, LinkRegion]]:
    cursors = {region.name: region.start for region in regions}
    placed: dict[tuple[int, str], tuple[int, LinkRegion]] = {}
    for index, section in ordered:
        usable = [region for region in regions if region.takes(section)]
        for region in usable:
            address = cursors[region.name] + -cursors[region.name] % section.alignment
            if address + section.size <= region.end:
                cursors[region.name] = address + section.size
                placed[index, section.name] = (address, region)
                break
        else:
            where = ", ".join(region.name for region in usable) or "no region"
            raise DoesNotFit(
                f"section {section.name} of {section.size:,} bytes has no room in {where}",
                stage=STAGE,
                subject=joint.objects[index].name,
                numbers=[
                    Measure(
                        name=f"{region.name} memory up to the end of this section",
                        value=cursors[region.name]
                        + -cursors[region.name] % section.alignment
                        + section.size
                        - region.start,
                        limit=region.end - region.start,
                        unit="bytes",
                        kind=NumberKind.MEASURED,
                    )
                    for region in usable
                ],
                next_step="link less code or data, or give larger regions",
            )
    return placed


def _refuse_undefined(joint: _Link, ordered: Sequence[tuple[int, ObjectSection]]) -> None:
    for index, section in ordered:
        own = {other.name for other in joint.objects[index].sections}
        for relocation in section.relocations:
            name = relocation.symbol
            if name and joint.find(index, name) is None and name not in own:
                place = f", at {relocation.note}" if relocation.note else ""
                user = joint.objects[index].name
                raise InvalidInput(
                    f"no object defines it, and {user} needs it in {section.name}{place}",
                    stage=STAGE,
                    subject=f"symbol {name}",
                    next_step="add the object that defines it, or correct the spelling",
                )


def _value(symbol: ObjectSymbol, index: int, addresses: Mapping[tuple[int, str], int]) -> int:
    assert symbol.value is not None
    return symbol.value if symbol.section is None else addresses[index, symbol.section] + symbol.value


def _relocated(
    joint: _Link, index: int, section: ObjectSection, addresses: Mapping[tuple[int, str], int]
) -> bytes:
    content = bytearray(section.content)
    for relocation in section.relocations:
        found = joint.find(index, relocation.symbol) if relocation.symbol else None
        if found is not None:
            base = _value(found[1], found[0], addresses)
        else:
            base = addresses[index, relocation.symbol] if relocation.symbol else 0
        try:
            relocation.kind.apply(content, relocation.offset, base + relocation.addend)
        except ValueError as refusal:
            target = relocation.symbol or "a number"
            raise InvalidInput(
                f"{target}{relocation.addend:+d}: {refusal}" if relocation.addend else f"{target}: {refusal}",
                stage=STAGE,
                subject=f"{joint.objects[index].name}, {section.name}+{relocation.offset:#x}",
                next_step="move the code or data, or use an instruction that reaches it",
            ) from None
    return bytes(content)


def write_image(image: Image) -> bytes:
    """The executable ELF file of an image."""
    headers: list[elf.SectionHeader] = []
    for section in image.sections:
        flags = elf.SHF_ALLOC
        if section.kind is SectionKind.CODE:
            flags |= elf.SHF_EXECINSTR
        elif section.kind is not SectionKind.CONSTANTS:
            flags |= elf.SHF_WRITE
        headers.append(
            elf.SectionHeader(
                name=section.name,
                type=elf.SHT_NOBITS if section.kind is SectionKind.ZEROS else elf.SHT_PROGBITS,
                flags=flags,
                address=section.address,
                size=section.size,
                content=section.content,
            )
        )
    numbers = {(section.origin, section.name): row for row, section in enumerate(image.sections, start=1)}
    ordered = sorted(image.symbols, key=lambda symbol: symbol.is_global)
    table, strings = elf.pack_symbols(
        tuple(
            elf.SymbolEntry(
                name=symbol.name,
                value=symbol.address & 0xFFFF_FFFF,
                size=symbol.size,
                binding=elf.STB_GLOBAL if symbol.is_global else elf.STB_LOCAL,
                type=elf.STT_FUNC if symbol.is_function else elf.STT_NOTYPE,
                visibility=0,
                section=elf.SHN_ABS if symbol.section is None else numbers[symbol.origin, symbol.section],
            )
            for symbol in ordered
        )
    )
    first_global = 1 + sum(not symbol.is_global for symbol in ordered)
    headers.append(elf.symbol_table_header(table, link=len(headers) + 2, first_global=first_global))
    headers.append(elf.string_table_header(".strtab", strings))
    segments = tuple(
        elf.Segment(
            address=address,
            content=content,
            memory_size=size,
            flags=elf.PF_READ | (elf.PF_EXECUTE if address < STANDARD.end else elf.PF_WRITE),
            alignment=4,
        )
        for address, content, size in image.segments()
    )
    return elf.write(elf.TYPE_EXECUTABLE, image.entry or 0, tuple(headers), segments)


def map_text(image: Image) -> str:
    """A table of the image for people: sections and symbols by address, then what was left out."""
    lines = [f"entry {image.entry:#010x}" if image.entry is not None else "entry none", "", "sections"]
    lines += [
        f"  {section.address:#010x} {section.size:8} {section.kind.name.lower():9} "
        f"{section.name}  {section.origin}"
        for section in image.sections
    ]
    lines += ["", "symbols"]
    lines += [
        f"  {symbol.address:#010x} {symbol.size:8} {'global' if symbol.is_global else 'local ':6} "
        f"{symbol.name}  {symbol.origin} {symbol.section or 'absolute'}"
        for symbol in image.symbols
    ]
    if image.removed:
        lines += ["", "left out"]
        lines += [f"  {section}  {origin}" for origin, section in image.removed]
    return "\n".join(lines) + "\n"
