"""Linking: known results of relocations, placement, symbols, dead sections, determinism."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, InvalidInput
from compiler.isa.assembler import assemble
from compiler.isa.linker import TILE_REGIONS, Image, LinkRegion, link, map_text, write_image
from compiler.isa.objects import ObjectFile, ObjectSection, ObjectSymbol, read_object, write_object
from compiler.isa.program import SectionKind
from compiler.isa.relocations import BY_NAME, RELOCATIONS, Relocation, RelocationType
from compiler.isa.text import parse
from compiler.target.memory import SRAM_BASE


def make(text: str, name: str = "t.o") -> ObjectFile:
    return assemble(parse(text, name.replace(".o", ".s")), name)


def content(text: str, **symbols: int) -> str:
    """The linked bytes of one section in which symbols have these values."""
    equates = "".join(f".globl {name}\n.set {name}, {value}\n" for name, value in symbols.items())
    image = link([make(text), make(equates, "values.o")])
    return image.sections[0].content.hex()


@pytest.mark.parametrize(
    ("text", "symbols", "expected"),
    [
        (".data\n.byte 0, 1, 0x10, 0xcc, 0xff", {}, "000110ccff"),
        (".data\n.byte a, b, c, d, e", {"a": 0, "b": 1, "c": 0x10, "d": 0xCC, "e": 0xFF}, "000110ccff"),
        (
            ".data\n.half a, b, c, d, e",
            {"a": 0, "b": 1, "c": 0x45, "d": 0x1234, "e": 0xFFFF},
            "0000010045003412ffff",
        ),
        (".data\n.long a@abs@21, b@abs@21", {"a": 0x7AE40, "b": 0x512F8}, "40ae0700f8120500"),
        (".data\n.quad a + 1", {"a": 0x12345678}, "7956341200000000"),
        ("setzi $m0, a", {"a": 0xFFFFF}, "ffff0f19"),
        ("bri a", {"a": 4}, "01008040"),
        ("bri a", {"a": 0x42000}, "00088140"),
        ("bri a", {"a": 0xFFFF4}, "fdff8340"),
        ("cmpult $m0, $m0, a", {"a": 256}, "0001002a"),
        ("cmpult $m0, $m0, a", {"a": 65535}, "ffff002a"),
        (".supervisor\nrun $m0, $m0, a", {"a": 0x4C000}, "00000014"),
        (".supervisor\nrun $m0, $m0, a", {"a": 0x4C000 + 4 * 0xABCD}, "cd0b0a14"),
        ("nop\nrpt $m0, a", {"a": 255}, "0000e019ffa00043"),
        (".supervisor\ndelaypic 0, 1, a@abs18@s2", {"a": 0xE7FFC}, "ff9f0760"),
        (".data\n.word a@abs19@s2", {"a": 0x4C100}, "40300100"),
        (".data\n.half a@relative@16@s2", {"a": 0x4C100}, "4000"),
        (
            ".data\n.half a@abs@16@s3, a@abs@16@s4, a@abs16@s5",
            {"a": 0x4C100},
            "2098104c0826",
        ),
    ],
)
def test_known_results(text: str, symbols: dict[str, int], expected: str) -> None:
    assert content(text, **symbols) == expected


def test_bits_outside_of_the_mask_are_kept() -> None:
    place = bytearray.fromhex("0000f0ff")
    BY_NAME["20"].apply(place, 0, 0xABCDE)
    assert place.hex() == "debcfaff"


@given(st.sampled_from(RELOCATIONS[1:]), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_relocations_write_their_bits_and_no_others(kind: RelocationType, value: int, before: int) -> None:
    """Against a second statement of the layout: values are contiguous but for RUN."""
    stored = value % (1 << kind.bits)
    place = bytearray((before % (1 << 8 * kind.size)).to_bytes(kind.size, "little"))
    kept = int.from_bytes(place, "little") & ~kind.mask
    kind.apply(place, 0, (stored << kind.shift) + (SRAM_BASE if kind.from_base else 0))
    after = int.from_bytes(place, "little")
    assert after & ~kind.mask == kept
    if kind.name == "RUN":
        assert (after >> 16 & 0xF) << 12 | after & 0xFFF == stored
    else:
        assert after & kind.mask == stored


@given(st.sampled_from(RELOCATIONS[1:]), st.integers(1, 2**20))
def test_violated_ranges_and_alignments_are_errors(kind: RelocationType, excess: int) -> None:
    base = SRAM_BASE if kind.from_base else 0
    place = bytearray(kind.size)
    for value in (((1 << kind.bits) - 1 + excess) << kind.shift, -excess << kind.shift):
        with pytest.raises(ValueError, match=r"is not in 0\.\."):
            kind.apply(place, 0, value + base)
    if kind.shift:
        with pytest.raises(ValueError, match="is not a multiple of"):
            kind.apply(place, 0, base + (1 << kind.shift) + 1)
    assert place == bytes(kind.size)


CODE = '.globl {name}\n.section .text.{name}, "ax"\n{name}: {body}\nexitz $m15\n'


def test_addresses_and_origins_of_symbols() -> None:
    first = make(
        CODE.format(name="a", body="setzi $m0, table\ncall $lr, b") + ".data\n.align 16\ntable: .word a",
        "a.o",
    )
    second = make(CODE.format(name="b", body="nop") + '.section .interleave_2_x, "aw"\nfar: .quad 1', "b.o")
    image = link([first, second], entry="b", keep=["a"])
    found = {(symbol.name, symbol.origin): symbol.address for symbol in image.symbols}
    assert found == {("b", "b.o"): 0x4C000, ("a", "a.o"): 0x4C008, ("table", "a.o"): 0x4C020}
    assert image.entry == image.address_of("b")
    assert image.removed == (("b.o", ".interleave_2_x"),)
    everything = link([first, second])
    assert {(symbol.name, symbol.address) for symbol in everything.symbols} == {
        ("a", 0x4C000),
        ("b", 0x4C00C),
        ("table", 0x4C020),
        ("far", 0x80000),
    }
    word = int.from_bytes(everything.sections[0].content[:4], "little")
    assert word & 0xFFFFF == 0x4C020
    with pytest.raises(KeyError):
        everything.address_of("table")


def test_standard_interleave_stays_in_standard_memory() -> None:
    image = link(
        [make('.section .interleave_1_bank_a, "aw"\n.quad 1\n.section .interleave_2_bank_a, "aw"\n.quad 1')]
    )
    assert [section.address for section in image.sections] == [0x4C000, 0x80000]


def test_data_overflows_to_interleaved_memory_and_code_does_not() -> None:
    regions = [
        LinkRegion(name="low", start=0x4C000, end=0x4C010, executable=True, interleave=1),
        LinkRegion(name="high", start=0x80000, end=0x80010, executable=False, interleave=2),
    ]
    image = link([make("nop\nnop\n.data\n.quad 1, 2")], regions=regions)
    assert [section.address for section in image.sections] == [0x4C000, 0x80000]
    with pytest.raises(DoesNotFit) as refused:
        link([make("\n".join(["nop"] * 5))], regions=regions)
    (number,) = refused.value.numbers
    assert (number.value, number.limit) == (20, 16)


def test_dead_sections_go_and_their_needs_with_them() -> None:
    text = (
        CODE.format(name="main", body="call $lr, used")
        + CODE.format(name="used", body="setzi $m0, .Lvalue")
        + CODE.format(name="unused", body="call $lr, missing")
        + '.section .rodata.value, "a"\n.Lvalue: .word 1\n.section .rodata.other, "a"\n.word 2\n'
    )
    image = link([make(text)], entry="main")
    assert [section.name for section in image.sections] == [".text.main", ".text.used", ".rodata.value"]
    assert [name for _, name in image.removed] == [".text.unused", ".rodata.other"]
    with pytest.raises(InvalidInput, match="no object defines it"):
        link([make(text)])


def test_local_names_of_two_objects_do_not_meet() -> None:
    first = make(CODE.format(name="f", body="setzi $m0, here\nhere: nop"), "a.o")
    second = make(CODE.format(name="g", body="nop\nsetzi $m0, here\nhere: nop"), "b.o")
    image = link([first, second])
    words = [
        int.from_bytes(section.content[at : at + 4], "little") & 0xFFFFF
        for section, at in zip(image.sections, (0, 4), strict=True)
    ]
    assert words == [0x4C004, 0x4C014]


def test_objects_link_the_same_after_a_trip_through_files() -> None:
    objects = [
        make(CODE.format(name="f", body="call $lr, g\n.Lx: bri .Lx") + ".data\n.word f, g + 4", "a.o"),
        make(CODE.format(name="g", body="bri f"), "b.o"),
    ]
    image = link(objects, entry="f")
    again = link([read_object(write_object(one), one.name) for one in objects], entry="f")
    assert write_image(again) == write_image(image)
    assert again.digest == image.digest


def test_map_names_everything() -> None:
    image = link([make(CODE.format(name="f", body="nop") + CODE.format(name="g", body="nop"))], entry="g")
    assert map_text(image) == (
        "entry 0x0004c000\n\nsections\n"
        "  0x0004c000        8 code      .text.g  t.o\n"
        "\nsymbols\n"
        "  0x0004c000        0 global g  t.o .text.g\n"
        "\nleft out\n"
        "  .text.f  t.o\n"
    )


@given(st.integers(0, 2**32))
def test_sections_never_overlap_and_keep_their_rules(seed: int) -> None:
    """Random objects against the definition of a placement."""
    source = random.Random(seed)
    objects = [_random_object(source, f"{index}.o") for index in range(source.randrange(1, 5))]
    image = link(objects)
    spans = sorted((section.address, section.address + section.size) for section in image.sections)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))
    wanted = {(one.name, section.name): section for one in objects for section in one.sections}
    assert len(image.sections) == len(wanted)
    for section in image.sections:
        asked = wanted[section.origin, section.name]
        assert section.address % asked.alignment == 0
        region = next(region for region in TILE_REGIONS if region.start <= section.address < region.end)
        assert section.address + section.size <= region.end
        assert region.executable or section.kind is not SectionKind.CODE
        if section.name.startswith(".interleave_2"):
            assert section.address >= 0x80000
    _check_relocations(image, objects)


def _random_object(source: random.Random, name: str) -> ObjectFile:
    sections: list[ObjectSection] = []
    symbols: list[ObjectSymbol] = []
    for index in range(source.randrange(1, 5)):
        kind = source.choice([SectionKind.CODE, SectionKind.CONSTANTS, SectionKind.DATA])
        prefix = ".interleave_2." if kind is SectionKind.DATA and source.random() < 0.5 else ".s"
        section_name = f"{prefix}{index}"
        size = 4 * source.randrange(1, 200)
        symbols.append(
            ObjectSymbol(
                name=f"{name}.{index}",
                section=section_name,
                value=4 * source.randrange(size // 4),
                size=0,
                is_global=source.random() < 0.5,
                is_hidden=False,
                is_function=False,
            )
        )
        relocations = tuple(
            Relocation(
                offset=4 * at, kind=BY_NAME["32"], symbol=f"{name}.{source.randrange(index + 1)}", addend=at
            )
            for at in sorted(source.sample(range(size // 4), min(3, size // 4)))
        )
        sections.append(
            ObjectSection(
                name=section_name,
                kind=kind,
                alignment=2 ** source.randrange(2, 7),
                size=size,
                content=bytes(size),
                relocations=relocations,
            )
        )
    return ObjectFile(name=name, sections=tuple(sections), symbols=tuple(symbols))


def _check_relocations(image: Image, objects: list[ObjectFile]) -> None:
    placed = {(section.origin, section.name): section for section in image.sections}
    addresses = {symbol.name: symbol.address for symbol in image.symbols}
    for one in objects:
        for symbol in one.symbols:
            assert symbol.section is not None
            assert symbol.value is not None
            assert addresses[symbol.name] == placed[one.name, symbol.section].address + symbol.value
        for section in one.sections:
            final = placed[one.name, section.name].content
            for relocation in section.relocations:
                value = int.from_bytes(final[relocation.offset : relocation.offset + 4], "little")
                assert value == addresses[relocation.symbol] + relocation.addend


@pytest.mark.parametrize("entry", ["number", "datum", "end", "odd"])
def test_execution_begins_at_an_instruction(entry: str) -> None:
    text = """
        .globl number, datum, end, odd
        .set number, 0x4c000
        nop
        .byte 1
        odd: .byte 2, 3, 4
        end:
        .data
        datum: .word 0
    """
    with pytest.raises(InvalidInput, match="it names no instruction"):
        link([make(text)], entry=entry)
    assert link([make(text)], keep=[entry]).entry is None


def test_a_relocation_without_effect_has_none() -> None:
    """R_COLOSSUS_NONE stands for references that were discarded; the value of its symbol does not matter."""
    section = ObjectSection(
        name=".data",
        kind=SectionKind.DATA,
        alignment=1,
        size=2,
        content=b"ab",
        relocations=(Relocation(offset=2, kind=BY_NAME["NONE"], symbol=".data", addend=-1),),
    )
    image = link([ObjectFile(name="o", sections=(section,), symbols=())])
    assert image.sections[0].content == b"ab"
