"""Relocatable objects: sections, symbols and relocations, and their ELF files.

An object is a value; its bytes depend on nothing else, so its digest identifies it. A relocation names a
symbol, the section it wants the start of (a local label is told by its section), or nothing ("" is zero).
"""

import hashlib
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InvalidInput
from compiler.isa import elf
from compiler.isa.program import MOST_ALIGNED, SectionKind
from compiler.isa.relocations import BY_NUMBER, Relocation

_FLAGS: Final = {
    SectionKind.CODE: elf.SHF_ALLOC | elf.SHF_EXECINSTR,
    SectionKind.CONSTANTS: elf.SHF_ALLOC,
    SectionKind.DATA: elf.SHF_ALLOC | elf.SHF_WRITE,
    SectionKind.ZEROS: elf.SHF_ALLOC | elf.SHF_WRITE,
}
_KINDS: Final = {flags: kind for kind, flags in _FLAGS.items() if kind is not SectionKind.ZEROS}
_KNOWN_FLAGS: Final = elf.SHF_ALLOC | elf.SHF_EXECINSTR | elf.SHF_WRITE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSection:
    """A section.

    Args:
        name: unique in the object.
        kind: what it holds.
        alignment: bytes, a power of two.
        size: bytes.
        content: the bytes; empty for ``SectionKind.ZEROS``.
        relocations: places to fill, by ascending offset.
    """

    name: str
    kind: SectionKind
    alignment: int
    size: int
    content: bytes
    relocations: tuple[Relocation, ...]

    def __post_init__(self) -> None:
        """Check alignment, content and relocations."""
        if not 1 <= self.alignment <= MOST_ALIGNED or self.alignment & (self.alignment - 1):
            raise ValueError(f"section {self.name} has the impossible alignment {self.alignment}")
        if len(self.content) != (0 if self.kind is SectionKind.ZEROS else self.size):
            raise ValueError(f"section {self.name} has {len(self.content)} bytes of content, not {self.size}")
        for relocation in self.relocations:
            if not 0 <= relocation.offset <= len(self.content) - relocation.kind.size:
                raise ValueError(f"section {self.name} has no place for a relocation at {relocation.offset}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectSymbol:
    """A symbol.

    Args:
        name: unique in the object.
        section: the section it is in, or None.
        value: offset in the section; the value itself without section; None when it is defined elsewhere.
        size: bytes of what it names; 0 when not stated.
        is_global: other objects can refer to it; true for what is defined elsewhere.
        is_hidden: not visible outside of the linked image.
        is_function: it names code that is called.
    """

    name: str
    section: str | None
    value: int | None
    size: int
    is_global: bool
    is_hidden: bool
    is_function: bool

    @property
    def is_defined(self) -> bool:
        """Whether this object gives it a value."""
        return self.value is not None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectFile:
    """An object.

    Args:
        name: for messages and maps; not part of the bytes.
        sections: in order.
        symbols: in order.
    """

    name: str
    sections: tuple[ObjectSection, ...]
    symbols: tuple[ObjectSymbol, ...]

    def __post_init__(self) -> None:
        """Check that every name has one meaning."""
        names = [section.name for section in self.sections]
        sections = {section.name: section.size for section in self.sections}
        names += [symbol.name for symbol in self.symbols]
        known = {*names, ""}
        if len(known) != len(names) + 1:
            raise ValueError("two of its sections and symbols have one name, or one has none")
        for symbol in self.symbols:
            if symbol.section is not None and symbol.section not in sections:
                raise ValueError(f"symbol {symbol.name} is in the missing section {symbol.section}")
            room = 0xFFFF_FFFF if symbol.section is None else sections[symbol.section]
            if symbol.value is not None and not 0 <= symbol.value <= room:
                where = "32 bits" if symbol.section is None else f"section {symbol.section}"
                raise ValueError(
                    f"symbol {symbol.name} with the value {symbol.value:#x} is outside of {where}"
                )
        for section in self.sections:
            for relocation in section.relocations:
                if relocation.symbol not in known:
                    raise ValueError(
                        f"section {section.name} refers to the missing symbol {relocation.symbol}"
                    )

    def section(self, name: str) -> ObjectSection:
        """The section of this name."""
        return next(section for section in self.sections if section.name == name)

    @property
    def digest(self) -> str:
        """SHA-256 of the file in hexadecimal."""
        return hashlib.sha256(write_object(self)).hexdigest()


def write_object(object_file: ObjectFile) -> bytes:
    """The ELF file of an object."""
    sections = object_file.sections
    index_of = {section.name: index for index, section in enumerate(sections, start=1)}
    entries = [
        elf.SymbolEntry(
            name="",
            value=0,
            size=0,
            binding=elf.STB_LOCAL,
            type=elf.STT_SECTION,
            visibility=0,
            section=index_of[section.name],
        )
        for section in sections
    ]
    ordered = sorted(object_file.symbols, key=lambda symbol: symbol.is_global)
    entries += [_symbol_entry(symbol, index_of) for symbol in ordered]
    row_of = {"": 0, **index_of}
    row_of |= {symbol.name: len(sections) + 1 + row for row, symbol in enumerate(ordered)}
    symbol_table, strings = elf.pack_symbols(tuple(entries))

    relocated = [section for section in sections if section.relocations]
    symbol_table_index = len(sections) + len(relocated) + 1
    headers = [
        elf.SectionHeader(
            name=section.name,
            type=elf.SHT_NOBITS if section.kind is SectionKind.ZEROS else elf.SHT_PROGBITS,
            flags=_FLAGS[section.kind],
            size=section.size,
            alignment=section.alignment,
            content=section.content,
        )
        for section in sections
    ]
    headers += [
        elf.relocation_header(
            f".rela{section.name}",
            elf.pack_relocations(
                tuple(
                    elf.Rela(
                        offset=relocation.offset,
                        symbol=row_of[relocation.symbol],
                        type=relocation.kind.number,
                        addend=relocation.addend,
                    )
                    for relocation in section.relocations
                )
            ),
            link=symbol_table_index,
            info=index_of[section.name],
        )
        for section in relocated
    ]
    locals_count = 1 + len(sections) + sum(not symbol.is_global for symbol in ordered)
    headers.append(
        elf.symbol_table_header(symbol_table, link=symbol_table_index + 1, first_global=locals_count)
    )
    headers.append(elf.string_table_header(".strtab", strings))
    return elf.write(elf.TYPE_OBJECT, 0, tuple(headers))


def _symbol_entry(symbol: ObjectSymbol, index_of: dict[str, int]) -> elf.SymbolEntry:
    section = elf.SHN_UNDEF
    if symbol.section is not None:
        section = index_of[symbol.section]
    elif symbol.is_defined:
        section = elf.SHN_ABS
    return elf.SymbolEntry(
        name=symbol.name,
        value=(symbol.value or 0) & 0xFFFF_FFFF,
        size=symbol.size,
        binding=elf.STB_GLOBAL if symbol.is_global else elf.STB_LOCAL,
        type=elf.STT_FUNC if symbol.is_function else elf.STT_NOTYPE,
        visibility=elf.STV_HIDDEN if symbol.is_hidden else 0,
        section=section,
    )


def read_object(content: bytes, name: str) -> ObjectFile:
    """Read the ELF file of an object.

    Sections that are not loaded (debug information, notes) are left out. Objects for the two processor
    generations before this one are taken like our own.

    Raises:
        InvalidInput: the file is damaged, of another kind or machine, or uses what we do not know.
    """
    try:
        file = elf.read(content)
        if file.type != elf.TYPE_OBJECT:
            raise ValueError("it is no relocatable object")
        return _object_of(file, name)
    except ValueError as refusal:
        raise InvalidInput(
            str(refusal),
            stage="read object",
            subject=name,
            next_step="assemble it again, or give the file of an IPU object",
        ) from None


def _object_of(file: elf.ElfFile, name: str) -> ObjectFile:
    loaded = {index: section for index, section in enumerate(file.sections) if section.flags & elf.SHF_ALLOC}
    for section in loaded.values():
        if section.type not in (elf.SHT_PROGBITS, elf.SHT_NOBITS):
            raise ValueError(f"section {section.name} is loaded and of the unknown type {section.type}")
    relocations: dict[int, list[Relocation]] = {index: [] for index in loaded}
    for table in file.sections:
        if table.type == elf.SHT_REL and table.info in loaded:
            raise ValueError(f"section {table.name} has relocations without addends")
        if table.type == elf.SHT_RELA and table.info in loaded:
            relocations[table.info] += [
                _relocation_of(row, file, loaded) for row in elf.read_relocations(table)
            ]
    sections = tuple(
        ObjectSection(
            name=section.name,
            kind=_kind_of(section),
            alignment=max(1, section.alignment),
            size=section.size,
            content=section.content,
            relocations=tuple(sorted(relocations[index], key=lambda relocation: relocation.offset)),
        )
        for index, section in loaded.items()
    )
    symbols = tuple(
        ObjectSymbol(
            name=symbol.name,
            section=loaded[symbol.section].name if symbol.section in loaded else None,
            value=None if symbol.section == elf.SHN_UNDEF else symbol.value,
            size=symbol.size,
            is_global=symbol.binding != elf.STB_LOCAL,
            is_hidden=symbol.visibility == elf.STV_HIDDEN,
            is_function=symbol.type == elf.STT_FUNC,
        )
        for symbol in file.symbols[1:]
        if symbol.type <= elf.STT_FUNC
        and (symbol.section in loaded or symbol.section in (elf.SHN_UNDEF, elf.SHN_ABS))
    )
    return ObjectFile(name=name, sections=sections, symbols=symbols)


def _relocation_of(row: elf.Rela, file: elf.ElfFile, loaded: dict[int, elf.SectionHeader]) -> Relocation:
    kind = BY_NUMBER.get(row.type)
    if kind is None:
        raise ValueError(f"it has a relocation of the unknown type {row.type}")
    if row.symbol >= len(file.symbols):
        raise ValueError(f"it has no symbol {row.symbol}")
    symbol = file.symbols[row.symbol]
    name = symbol.name
    if symbol.type == elf.STT_SECTION:
        if symbol.section not in loaded:
            raise ValueError("it refers to a section that is not loaded")
        name = loaded[symbol.section].name
    return Relocation(offset=row.offset, kind=kind, symbol=name, addend=row.addend)


def _kind_of(section: elf.SectionHeader) -> SectionKind:
    if section.type == elf.SHT_NOBITS:
        return SectionKind.ZEROS
    kind = _KINDS.get(section.flags & _KNOWN_FLAGS)
    if kind is None:
        raise ValueError(f"section {section.name} is both code and writable")
    return kind
