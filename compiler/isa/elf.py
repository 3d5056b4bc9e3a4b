"""The bytes of ELF32 files, little endian, as far as our objects and images need them.

Writing is deterministic: order and padding depend on the content only. Reading accepts what other tool
chains write for this machine, as long as it is well formed.
"""

import struct
from dataclasses import dataclass
from typing import Final, final

MACHINE: Final = 248
"""``EM_GRAPHCORE_IPU`` (vendor tool chain)."""
FLAGS_MASK: Final = 0xFF
FLAGS_READ: Final = frozenset({0x01, 0x02, 0x21})
"""Architectures whose code runs on IPU21: the two before it, and itself (vendor tool chain)."""
FLAGS_IPU21: Final = 0x21
"""Architecture in the low byte of the header flags (vendor tool chain)."""
OS_ABI_STANDALONE: Final = 255

TYPE_OBJECT: Final = 1
TYPE_EXECUTABLE: Final = 2

SHT_NULL: Final = 0
SHT_PROGBITS: Final = 1
SHT_SYMTAB: Final = 2
SHT_STRTAB: Final = 3
SHT_RELA: Final = 4
SHT_NOBITS: Final = 8
SHT_REL: Final = 9

SHF_WRITE: Final = 1
SHF_ALLOC: Final = 2
SHF_EXECINSTR: Final = 4
SHF_INFO_LINK: Final = 0x40

SHN_UNDEF: Final = 0
SHN_ABS: Final = 0xFFF1

STB_LOCAL: Final = 0
STB_GLOBAL: Final = 1
STT_NOTYPE: Final = 0
STT_FUNC: Final = 2
STT_SECTION: Final = 3
STV_HIDDEN: Final = 2

PT_LOAD: Final = 1
PF_EXECUTE: Final = 1
PF_WRITE: Final = 2
PF_READ: Final = 4

_IDENTITY: Final = 16
_HEADER_NUMBERS: Final = struct.Struct("<HHIIIIIHHHHHH")
_HEADER_SIZE: Final = _IDENTITY + _HEADER_NUMBERS.size
_SECTION: Final = struct.Struct("<10I")
_SYMBOL: Final = struct.Struct("<IIIBBH")
_RELA: Final = struct.Struct("<IIi")
_SEGMENT: Final = struct.Struct("<8I")
_ALIGNMENT: Final = 4


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SectionHeader:
    """A section of a file; ``content`` is empty for ``SHT_NOBITS``."""

    name: str
    type: int
    flags: int = 0
    address: int = 0
    size: int
    link: int = 0
    info: int = 0
    alignment: int = 1
    entry_size: int = 0
    content: bytes = b""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolEntry:
    """A row of the symbol table."""

    name: str
    value: int
    size: int
    binding: int
    type: int
    visibility: int
    section: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rela:
    """A row of a relocation table; ``symbol`` is an index into the symbol table."""

    offset: int
    symbol: int
    type: int
    addend: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A part of memory that a loader fills."""

    address: int
    content: bytes
    memory_size: int
    flags: int
    alignment: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ElfFile:
    """What a file holds; ``sections`` begins with the null section."""

    type: int
    entry: int
    flags: int
    sections: tuple[SectionHeader, ...]
    symbols: tuple[SymbolEntry, ...] = ()


class _Strings:
    """A string table; equal strings share their place."""

    def __init__(self) -> None:
        self.content: Final = bytearray(1)
        self._places: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        """Offset of a string."""
        if text not in self._places:
            self._places[text] = len(self.content)
            self.content.extend(text.encode() + b"\0")
        return self._places[text]


def pack_symbols(symbols: tuple[SymbolEntry, ...]) -> tuple[bytes, bytes]:
    """Contents of a symbol table (with its null row) and of its string table."""
    strings = _Strings()
    table = bytearray(_SYMBOL.size)
    for symbol in symbols:
        table += _SYMBOL.pack(
            strings.add(symbol.name),
            symbol.value,
            symbol.size,
            symbol.binding << 4 | symbol.type,
            symbol.visibility,
            symbol.section,
        )
    return bytes(table), bytes(strings.content)


def pack_relocations(relocations: tuple[Rela, ...]) -> bytes:
    """Content of a relocation table."""
    return b"".join(_RELA.pack(row.offset, row.symbol << 8 | row.type, row.addend) for row in relocations)


def symbol_table_header(content: bytes, *, link: int, first_global: int) -> SectionHeader:
    """The section of a symbol table."""
    return SectionHeader(
        name=".symtab",
        type=SHT_SYMTAB,
        size=len(content),
        link=link,
        info=first_global,
        alignment=_ALIGNMENT,
        entry_size=_SYMBOL.size,
        content=content,
    )


def string_table_header(name: str, content: bytes) -> SectionHeader:
    """The section of a string table."""
    return SectionHeader(name=name, type=SHT_STRTAB, size=len(content), content=content)


def relocation_header(name: str, content: bytes, *, link: int, info: int) -> SectionHeader:
    """The section of the relocations of section ``info``, against symbol table ``link``."""
    return SectionHeader(
        name=name,
        type=SHT_RELA,
        flags=SHF_INFO_LINK,
        size=len(content),
        link=link,
        info=info,
        alignment=_ALIGNMENT,
        entry_size=_RELA.size,
        content=content,
    )


def write(
    file_type: int, entry: int, sections: tuple[SectionHeader, ...], segments: tuple[Segment, ...] = ()
) -> bytes:
    """A file: header, segments, section contents, section names, section headers.

    Args:
        file_type: ``TYPE_OBJECT`` or ``TYPE_EXECUTABLE``.
        entry: address where execution begins.
        sections: all but the null section and the table of section names, which are added.
        segments: parts of memory; their contents come before those of the sections.
    """
    names = _Strings()
    listed = (SectionHeader(name="", type=SHT_NULL, size=0, alignment=0), *sections)
    name_offsets = [names.add(section.name) for section in listed]
    names_offset = names.add(".shstrtab")
    listed += (string_table_header(".shstrtab", bytes(names.content)),)
    name_offsets.append(names_offset)

    body = bytearray(_HEADER_SIZE + _SEGMENT.size * len(segments))
    segment_rows: list[bytes] = []
    for segment in segments:
        body.extend(bytes(-len(body) % segment.alignment))
        segment_rows.append(
            _SEGMENT.pack(
                PT_LOAD,
                len(body),
                segment.address,
                segment.address,
                len(segment.content),
                segment.memory_size,
                segment.flags,
                segment.alignment,
            )
        )
        body.extend(segment.content)
    section_rows: list[bytes] = []
    for name_offset, section in zip(name_offsets, listed, strict=True):
        body.extend(bytes(-len(body) % max(1, section.alignment)))
        section_rows.append(
            _SECTION.pack(
                name_offset,
                section.type,
                section.flags,
                section.address,
                0 if section.type == SHT_NULL else len(body),
                section.size,
                section.link,
                section.info,
                section.alignment,
                section.entry_size,
            )
        )
        body.extend(section.content)
    body.extend(bytes(-len(body) % _ALIGNMENT))
    header = b"\x7fELF" + bytes([1, 1, 1, OS_ABI_STANDALONE]) + bytes(8)
    header += _HEADER_NUMBERS.pack(
        file_type,
        MACHINE,
        1,
        entry,
        _HEADER_SIZE if segments else 0,
        len(body),
        FLAGS_IPU21,
        _HEADER_SIZE,
        _SEGMENT.size if segments else 0,
        len(segments),
        _SECTION.size,
        len(listed),
        len(listed) - 1,
    )
    body[: len(header)] = header
    start = _HEADER_SIZE
    for row in segment_rows:
        body[start : start + len(row)] = row
        start += len(row)
    return bytes(body) + b"".join(section_rows)


def read(content: bytes) -> ElfFile:
    """Read a file.

    Raises:
        ValueError: it is no ELF32 file of this machine, or refers to bytes that it does not have.
    """
    if content[:4] != b"\x7fELF":
        raise ValueError("it does not begin like an ELF file")
    if content[4:6] != b"\x01\x01":
        raise ValueError("it is not a 32-bit little-endian ELF file")
    header: tuple[int, ...] = _HEADER_NUMBERS.unpack(_slice(content, _IDENTITY, _HEADER_NUMBERS.size))
    file_type, machine, _, entry, _, section_offset, flags, _, _, _, row_size, rows, names_index = header
    if machine != MACHINE:
        raise ValueError(f"it is for machine {machine}, not {MACHINE}")
    if flags & FLAGS_MASK not in FLAGS_READ:
        raise ValueError(f"it is for the unknown architecture {flags & FLAGS_MASK:#x}")
    if row_size != _SECTION.size:
        raise ValueError(f"its section headers have {row_size} bytes, not {_SECTION.size}")
    raw: list[tuple[int, ...]] = [
        _SECTION.unpack(_slice(content, section_offset + index * row_size, row_size)) for index in range(rows)
    ]
    if names_index >= rows:
        raise ValueError("it has no names of sections")
    names = _slice(content, raw[names_index][4], raw[names_index][5])
    sections = tuple(
        SectionHeader(
            name=_string(names, name),
            type=kind,
            flags=section_flags,
            address=address,
            size=size,
            link=link,
            info=info,
            alignment=alignment,
            entry_size=entry_size,
            content=b"" if kind in (SHT_NOBITS, SHT_NULL) else _slice(content, offset, size),
        )
        for name, kind, section_flags, address, offset, size, link, info, alignment, entry_size in raw
    )
    return ElfFile(
        type=file_type, entry=entry, flags=flags, sections=sections, symbols=_read_symbols(sections)
    )


def _read_symbols(sections: tuple[SectionHeader, ...]) -> tuple[SymbolEntry, ...]:
    """All rows of the symbol table, the null row included."""
    table = next((section for section in sections if section.type == SHT_SYMTAB), None)
    if table is None:
        return ()
    if table.link >= len(sections):
        raise ValueError("its symbols have no names")
    strings = sections[table.link].content
    return tuple(
        SymbolEntry(
            name=_string(strings, name),
            value=value,
            size=size,
            binding=info >> 4,
            type=info & 15,
            visibility=other & 3,
            section=section,
        )
        for name, value, size, info, other, section in _SYMBOL.iter_unpack(
            _slice(table.content, 0, table.size // _SYMBOL.size * _SYMBOL.size)
        )
    )


def read_relocations(section: SectionHeader) -> tuple[Rela, ...]:
    """The rows of a relocation section.

    Raises:
        ValueError: its size is no number of rows.
    """
    if section.size % _RELA.size:
        raise ValueError(f"section {section.name} is no table of relocations")
    return tuple(
        Rela(offset=offset, symbol=info >> 8, type=info & 0xFF, addend=addend)
        for offset, info, addend in _RELA.iter_unpack(section.content)
    )


def _slice(content: bytes, offset: int, size: int) -> bytes:
    part = content[offset : offset + size]
    if len(part) != size:
        raise ValueError(f"bytes {offset}..{offset + size} are missing")
    return part


def _string(strings: bytes, offset: int) -> str:
    end = strings.find(b"\0", offset)
    if end < 0:
        raise ValueError("a name has no end")
    try:
        name = strings[offset:end].decode()
    except UnicodeDecodeError:
        raise ValueError("a name is no text") from None
    if not name.isprintable():
        raise ValueError("a name has characters that cannot be printed")
    return name
