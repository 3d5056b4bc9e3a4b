"""Objects against an independent reader of ELF files, and their own reader against damaged files."""

import contextlib
import io
import random
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidInput
from compiler.isa.assembler import assemble
from compiler.isa.linker import link, write_image
from compiler.isa.objects import ObjectFile, ObjectSection, ObjectSymbol, read_object, write_object
from compiler.isa.program import SectionKind
from compiler.isa.text import parse

TEXT = """
    .globl main
    .hidden main
    .type main, @function
    .set LIMIT, 0x1000
    .set VERTEX, 0x50000
    .section .text.main, "ax", @progbits
main:
    setzi $m0, table + 8
    brnz $m0, .Lloop
    call $m10, helper
    cmpult $m0, $m0, LIMIT
.Lloop:
    bri main
    .size main, . - main
    .supervisor
    run $m0, $m1, VERTEX
    runall $m0, $m1, 3
    .section .data, "aw", @progbits
table:
    .word main + 4, 1, outside@abs@21
    .half outside, outside@relative@16@s2
    .section .bss, "aw", @nobits
    .space 64
    .section .rodata, "a"
    .byte 1, 2, 3
"""


def make() -> ObjectFile:
    return assemble(parse(TEXT, "main.s"), "main.o")


def test_an_independent_reader_agrees() -> None:
    """Header, sections, symbols and relocations as read by pyelftools."""
    ours = make()
    file: Any = ELFFile(io.BytesIO(write_object(ours)))  # the reader has no types
    header = file.header
    assert (file.elfclass, file.little_endian) == (32, True)
    assert (header["e_machine"], header["e_flags"], header["e_type"]) == (248, 0x21, "ET_REL")
    assert header["e_ident"]["EI_OSABI"] == "ELFOSABI_STANDALONE"
    for section in ours.sections:
        read = file.get_section_by_name(section.name)
        assert read["sh_size"] == section.size
        assert read["sh_addralign"] == section.alignment
        assert (read["sh_type"] == "SHT_NOBITS") == (section.kind is SectionKind.ZEROS)
        assert bool(read["sh_flags"] & 4) == (section.kind is SectionKind.CODE)
        assert bool(read["sh_flags"] & 1) == (section.kind in (SectionKind.DATA, SectionKind.ZEROS))
        if section.kind is not SectionKind.ZEROS:
            assert read.data() == section.content
    table = file.get_section_by_name(".symtab")
    rows = list(table.iter_symbols())
    named = {row.name: row for row in rows if row["st_info"]["type"] != "STT_SECTION" and row.name}
    assert named.keys() == {symbol.name for symbol in ours.symbols}
    for symbol in ours.symbols:
        row = named[symbol.name]
        assert row["st_info"]["bind"] == ("STB_GLOBAL" if symbol.is_global else "STB_LOCAL")
        assert row["st_info"]["type"] == ("STT_FUNC" if symbol.is_function else "STT_NOTYPE")
        assert row["st_other"]["visibility"] == ("STV_HIDDEN" if symbol.is_hidden else "STV_DEFAULT")
        assert (row["st_value"], row["st_size"]) == (symbol.value or 0, symbol.size)
        if symbol.section is not None:
            assert file.get_section(row["st_shndx"]).name == symbol.section
        else:
            assert row["st_shndx"] == ("SHN_ABS" if symbol.is_defined else "SHN_UNDEF")
    assert all(row["st_info"]["bind"] == "STB_LOCAL" for row in rows[: table["sh_info"]])
    assert all(row["st_info"]["bind"] == "STB_GLOBAL" for row in rows[table["sh_info"] :])
    for section in ours.sections:
        if not section.relocations:
            assert file.get_section_by_name(f".rela{section.name}") is None
            continue
        relocations = file.get_section_by_name(f".rela{section.name}")
        assert file.get_section(relocations["sh_info"]).name == section.name
        listed: list[tuple[int, int, str, int]] = []
        for entry in relocations.iter_relocations():
            symbol = rows[entry["r_info_sym"]]
            is_section = symbol["st_info"]["type"] == "STT_SECTION"
            name = file.get_section(symbol["st_shndx"]).name if is_section else symbol.name
            listed.append((entry["r_offset"], entry["r_info_type"], name, entry["r_addend"]))
        assert listed == [
            (relocation.offset, relocation.kind.number, relocation.symbol, relocation.addend)
            for relocation in section.relocations
        ]


def test_relocations_of_operands() -> None:
    sections = {section.name: section for section in make().sections}
    found = [
        (relocation.offset, relocation.kind.name, relocation.symbol, relocation.addend)
        for relocation in sections[".text.main"].relocations
    ]
    assert found == [
        (0, "20", "table", 8),
        (4, "19_S2", ".text.main", 16),
        (8, "19_S2", "helper", 0),
        (16, "19_S2", "main", 0),
        (20, "RUN", "VERTEX", 0),
    ]
    data = [(row.offset, row.kind.name, row.symbol, row.addend) for row in sections[".data"].relocations]
    assert data == [
        (0, "32", "main", 4),
        (8, "21", "outside", 0),
        (12, "16", "outside", 0),
        (14, "RELATIVE_16_S2", "outside", 0),
    ]


def test_relocations_inside_bundles_are_at_their_word() -> None:
    text = "{ setzi $m0, f ; setzi $a0, g }\n{ brnz $m0, f ; fnop }\nnop\nrpt $m0, f"
    section = assemble(parse(text), "t").sections[0]
    assert [(row.offset, row.kind.name, row.symbol) for row in section.relocations] == [
        (0, "20", "f"),
        (4, "20", "g"),
        (8, "19_S2", "f"),
        (20, "8", "f"),
    ]


def test_reading_gives_the_object_back() -> None:
    ours = make()
    content = write_object(ours)
    again = read_object(content, ours.name)
    assert write_object(again) == content
    assert again.digest == ours.digest
    assert {section.name: section.content for section in again.sections} == {
        section.name: section.content for section in ours.sections
    }


def test_bytes_depend_on_the_content_only() -> None:
    assert assemble(parse(TEXT, "other.s"), "other.o").digest == make().digest
    assert assemble(parse(TEXT.replace("0x1000", "0x2000")), "main.o").digest != make().digest


def test_an_independent_reader_agrees_about_images() -> None:
    helper = assemble(parse(".globl helper, outside\nhelper: br $lr\n.data\noutside: .quad 5"), "helper.o")
    text = TEXT.replace(".half outside, ", ".half ")  # its address has more than 16 bits
    image = link([assemble(parse(text), "main.o"), helper], entry="main")
    file: Any = ELFFile(io.BytesIO(write_image(image)))  # the reader has no types
    assert file.header["e_type"] == "ET_EXEC"
    assert file.header["e_entry"] == image.entry == 0x4C000
    for symbol in image.symbols:
        rows = file.get_section_by_name(".symtab").get_symbol_by_name(symbol.name)
        assert [row["st_value"] for row in rows] == [symbol.address]
    segments = [(segment["p_vaddr"], segment.data()) for segment in file.iter_segments()]
    assert segments == list(image.runs())
    loaded = [section for section in file.iter_sections() if section["sh_flags"] & 2]
    assert [(section.name, section["sh_addr"], section["sh_size"]) for section in loaded] == [
        (section.name, section.address, section.size) for section in image.sections
    ]


GOOD = write_object(make())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "does not begin like an ELF file"),
        (GOOD[:4] + b"\x02" + GOOD[5:], "not a 32-bit little-endian"),
        (GOOD[:16] + b"\x02" + GOOD[17:], "no relocatable object"),
        (GOOD[:18] + b"\x03" + GOOD[19:], "it is for machine 3, not 248"),
        (GOOD[:-1], "are missing"),
        (GOOD[:36] + b"\x22" + GOOD[37:], "it is for the unknown architecture 0x22"),
        (GOOD.replace(b"main", b"ma\x1bn"), "a name has characters that cannot be printed"),
    ],
)
def test_damaged_files_are_refused(content: bytes, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        read_object(content, "x.o")


@given(st.integers(0, 2**32))
def test_no_damage_leads_to_anything_but_a_refusal(seed: int) -> None:
    source = random.Random(seed)
    content = bytearray(GOOD)
    for _ in range(source.randrange(1, 4)):
        content[source.randrange(len(content))] = source.getrandbits(8)
    with contextlib.suppress(InvalidInput):
        read_object(bytes(content), "x.o")


@pytest.mark.parametrize("architecture", [0x01, 0x02, 0x21])
def test_objects_of_earlier_generations_are_read(architecture: int) -> None:
    assert read_object(GOOD[:36] + bytes([architecture]) + GOOD[37:], "main.o") == read_object(GOOD, "main.o")


def damaged(section: str, field: int, value: int) -> bytes:
    """An object in which one 32-bit number of a section header differs."""
    file: Any = ELFFile(io.BytesIO(GOOD))  # the reader has no types
    row = file.header["e_shoff"] + file.get_section_index(section) * 40 + 4 * field
    return GOOD[:row] + value.to_bytes(4, "little") + GOOD[row + 4 :]


TYPE, INFO = 1, 7


def test_nothing_that_is_loaded_is_left_out() -> None:
    with pytest.raises(InvalidInput, match=r"section \.data is loaded and of the unknown type 14"):
        read_object(damaged(".data", TYPE, 14), "x.o")
    with pytest.raises(InvalidInput, match=r"section \.rela\.data has relocations without addends"):
        read_object(damaged(".rela.data", TYPE, 9), "x.o")


def test_symbols_lie_in_their_sections() -> None:
    section = ObjectSection(
        name=".text", kind=SectionKind.CODE, alignment=4, size=4, content=bytes(4), relocations=()
    )

    def with_symbol(value: int, where: str | None) -> ObjectFile:
        symbol = ObjectSymbol(
            name="s", section=where, value=value, size=0, is_global=True, is_hidden=False, is_function=False
        )
        return ObjectFile(name="o", sections=(section,), symbols=(symbol,))

    good = with_symbol(4, ".text")
    assert read_object(write_object(good), "o") == good
    with pytest.raises(ValueError, match=r"symbol s with the value 0x5 is outside of section \.text"):
        with_symbol(5, ".text")
    with pytest.raises(ValueError, match="symbol s with the value -0x1 is outside of 32 bits"):
        with_symbol(-1, None)
    file: Any = ELFFile(io.BytesIO(write_object(good)))  # the reader has no types
    at = file.get_section_by_name(".symtab")["sh_offset"] + 2 * 16 + 4
    content = write_object(good)
    with pytest.raises(InvalidInput, match="outside of section"):
        read_object(content[:at] + b"\x05" + content[at + 1 :], "o")


def test_negative_absolute_symbols_survive_their_file() -> None:
    object_file = assemble(parse(".globl a\n.set a, -2\n"), "a.o")
    assert [symbol.value for symbol in object_file.symbols] == [0xFFFF_FFFE]
    assert read_object(write_object(object_file), "a.o") == object_file


def test_reserved_memory_is_part_of_the_segment() -> None:
    """A loader clears what a segment has in memory and not in the file."""
    text = "br $m10\n.data\n.byte 1\n.bss\n.space 10"
    image = link([assemble(parse(text), "m.o")])
    only_zeros = link([assemble(parse('.section .interleave_2.x, "aw", @nobits\n.space 6'), "z.o")])
    found: list[tuple[int, int, int]] = []
    for linked in (image, only_zeros):
        file: Any = ELFFile(io.BytesIO(write_image(linked)))  # the reader has no types
        found += [(row["p_vaddr"], row["p_filesz"], row["p_memsz"]) for row in file.iter_segments()]
    assert found == [(0x4C000, 5, 15), (0x80000, 0, 6)]
    assert image.runs() == ((0x4C000, b"\x00\x00\xa0\x43\x01"),)
    assert only_zeros.runs() == ()


def test_weak_symbols_are_visible_to_other_objects() -> None:
    file: Any = ELFFile(io.BytesIO(GOOD))  # the reader has no types
    table: Any = file.get_section_by_name(".symtab")
    row = [symbol.name for symbol in table.iter_symbols()].index("main")
    at: int = table["sh_offset"] + 16 * row + 12
    assert GOOD[at] >> 4 == 1  # STB_GLOBAL
    weak = read_object(GOOD[:at] + bytes([2 << 4 | GOOD[at] & 15]) + GOOD[at + 1 :], "main.o")
    assert weak == read_object(GOOD, "main.o")
