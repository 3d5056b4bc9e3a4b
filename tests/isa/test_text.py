"""Assembly text: spellings, directives, expressions, and that programs print as text that reads back."""

import ast
import contextlib
import math
import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidInput
from compiler.isa.assembler import assemble
from compiler.isa.expressions import Binary, Expression, Relocated, Slot, Symbol, Value
from compiler.isa.listing import list_program
from compiler.isa.printing import print_program
from compiler.isa.program import (
    Align,
    Bundle,
    Data,
    Declaration,
    Equate,
    Instruction,
    Item,
    Label,
    Permission,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.text import parse
from compiler.target.instructions import Lane, Mode, instruction_table
from tests.isa.test_instruction_table import legal_operands


def words(text: str, mode: Mode = Mode.WORKER) -> list[int]:
    """The words of a text without symbols."""
    section = assemble(parse(text, mode=mode), "t").sections[0]
    assert not section.relocations
    return [int.from_bytes(section.content[at : at + 4], "little") for at in range(0, section.size, 4)]


SAME_WORDS = [
    # Defaults and aliases of registers
    ("ld32 $m0, $m1, 4", "ld32 $m0, $m1, $m15, 4"),
    ("ld32 $m0, $m1, $m2", "ld32 $m0, $m1, $m15, $m2"),
    ("st64 $a0:1, $m2, 0", "st64 $a0:1, $m2, $m15, 0"),
    ("add $bp, $fp, $lr", "add $m8, $m9, $m10"),
    ("add $sp, $mworker_base, $mvertex_base", "add $m11, $m12, $m13"),
    ("add $m0, $mzero, $mzero", "add $m0, $m15, $m15"),
    ("or64 $ap0, $ap3, $azeros", "or64 $a0:1, $a6:7, $a14:15"),
    ("or64 $ap0, $ap7, $ap14", "or64 $a0:1, $a14:15, $a14:15"),
    ("f32v4acc $aq1", "f32v4acc $a4:7"),
    ("f32v4acc $aq9", "f32v4acc $a12:15"),
    ("f32add $a0, $azero, $a1", "f32add $a0, $a15, $a1"),
    # Immediate forms
    ("sub $m1, $m2, 5", "add $m1, $m2, -5"),
    ("sub $m1, $m2, -5", "add $m1, $m2, 5"),
    ("adds $m1, $m2, 5", "add $m1, $m2, 5"),
    ("addz $m1, $m2, 40000", "add $m1, $m2, 40000"),
    ("or $m1, $m2, 0xabc", "or $m1, $m2, 2748"),
    ("or.high $m1, $m2, 0xabc00000", "or $m1, $m2, 0xabc00000"),
    # Other names
    ("mov $m1, $m2", "or $m1, $m2, 0"),
    ("mov $a1, $a2", "or $a1, $a2, 0"),
    ("mov $m1, $a2", "atom $m1, $a2"),
    ("mov $a0:1, $a2:3", "or64 $a0:1, $a2:3, $azeros"),
    ("zero $m4", "or $m4, $mzero, $mzero"),
    ("zero $a4", "or $a4, $azero, $azero"),
    ("zero $a4:5", "or64 $a4:5, $azeros, $azeros"),
    ("get $a1, 2", "uget $a1, 2"),
    ("put 2, $a1", "uput 2, $a1"),
    ("swap16 $m1, $m2", "roll16 $m1, $m2, $m2"),
    ("swap16 $a1, $a2", "roll16 $a1, $a2, $a2"),
    ("movnz $m1, $m2, $m3", "movz $m1, $m2, $m3"),
    ("strap", "put 255, $m15"),
    ("f16v4sisov2amp $a0:1, $a2:3, $a4:5, 1", "f16v4sisoamp $a0:1, $a2:3, $a4:5, 1"),
    ("f16v4sisov2slic $a0:1, $a2:3, $a4:5, 1", "f16v4sisoslic $a0:1, $a2:3, $a4:5, 1"),
    ("rtn", "br $m10"),
    ("nop", "setzi $m14, 0"),
    ("fnop", "setzi $a13, 0"),
    ("ldconst $m1, 0x12345678", "setzi $m1, 0x45678\nor $m1, $m1, 0x12300000"),
    ("ldconst $a1, 0xfffff", "setzi $a1, 0xfffff"),
    ("ldconst $m1, -1", "setzi $m1, 0xfffff\nor $m1, $m1, 0xfff00000"),
    ("ldconst $a1, 1.0", "setzi $a1, 0\nor $a1, $a1, 0x3f800000"),
    ("or $a1, $a1, -2.0", "or $a1, $a1, 0xc0000000"),
    # Numbers
    ("setzi $a0, 1.0h", "setzi $a0, 15360"),
    ("setzi $a0, -2.0h", "setzi $a0, 0xc000"),
    ("setzi $a0, infh", "setzi $a0, 0x7c00"),
    ("setzi $a0, -infh", "setzi $a0, 0xfc00"),
    ("setzi $a0, 2h", "setzi $a0, 0x4000"),
    ("setzi $m0, 0b101", "setzi $m0, 5"),
    ("setzi $m0, (1 << 4 | 3) * 2 - 7 / 2", "setzi $m0, 35"),
    ("setzi $m0, 7 & ~2 ^ 1", "setzi $m0, 4"),
    ("setzi $m0, -7 / 2 + 4", "setzi $m0, 1"),
    # Control registers and other names with a number
    ("get $m0, $WSR", "get $m0, 1"),
    ("uget $a0, $FP_CTL", "uget $a0, 2"),
    ("get $a0, $FP_CTL", "uget $a0, 2"),
    ("put $FP_CLR, $a0", "uput 1, $a0"),
    ("f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P3", "f16v4hihov4amp $a0:1, $a2:3, $a4:5, 3"),
    # Layout of text
    ("add $m0,$m1,$m2;nop", "add $m0, $m1, $m2\nnop"),
    ("/* two\nlines */ nop // rest\nnop # rest", "nop\nnop"),
    ("{ nop ; fnop }", "{ nop\n\n fnop\n }"),
    (".set N, 3\nadd $m0, $m1, N * 2", "add $m0, $m1, 6"),
    (".set N, 40000\nadd $m0, $m1, N", "add $m0, $m1, 40000"),
    ("nop\n.align 8\nnop", "nop\nnop\nnop"),
    (".p2align 3\nnop", "nop"),
]


@pytest.mark.parametrize(("text", "plain"), SAME_WORDS)
def test_spellings(text: str, plain: str) -> None:
    assert words(text) == words(plain)


def test_names_of_supervisor_registers() -> None:
    assert words("put $INCOMING_MUX, $m8\nld64putcs $CWEI_9_3", Mode.SUPERVISOR) == [0x438080A0, 0x4100C027]
    assert words(".supervisor\nget $m0, $SSR") == words("get $m0, $WSR")


def test_words_of_padding() -> None:
    assert words("nop\nfnop") == [0x19E00000, 0x1AD00000]


def test_branch_constants_are_word_addresses_unless_said_otherwise() -> None:
    assert words("bri 0x13000") == words(".byte_branches\nbri 0x4c000") == [0x40813000]
    with pytest.raises(InvalidInput, match="must be a multiple of 4"):
        parse(".byte_branches\nbri 2")


@given(st.floats(width=16, allow_nan=False), st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float_literals_are_bit_patterns(half: float, single: float) -> None:
    half_text = (
        ("-" if math.copysign(1, half) < 0 else "") + ("inf" if math.isinf(half) else repr(abs(half))) + "h"
    )
    sign = "-" if math.copysign(1, single) < 0 else ""
    content = (
        assemble(parse(f".data\n.half {half_text}\n.half 0\n.word {sign}{abs(single)!r}"), "t")
        .sections[0]
        .content
    )
    assert content == struct.pack("<e2xf", half, single)


def test_data_directives() -> None:
    text = """
        .data
        .byte 0, 1, 0x10, 0xcc, 0xff, -1
        .half 0x1234
        .long 0x12345678, -2
        .quad 0x0123456789abcdef
        .space 2
    """
    content = assemble(parse(text), "t").sections[0].content
    assert content.hex() == "000110ccffff341278563412feffffffefcdab89674523010000"


def test_sections_declarations_and_sizes() -> None:
    program = parse(
        """
        .globl f, g
        .hidden g
        .type f, @function
        .section .text.f, "ax", @progbits
        f:  exitz $mzero
        .size f, . - f
        .section .bss.g, "aw", @nobits
        g:  .space 16
        .section .interleave_2_bank_a, "aw"
            .quad 1
        .rodata
            .byte 1
        """
    )
    assert [(section.name, section.kind) for section in program.sections] == [
        (".text.f", SectionKind.CODE),
        (".bss.g", SectionKind.ZEROS),
        (".interleave_2_bank_a", SectionKind.DATA),
        (".rodata", SectionKind.CONSTANTS),
    ]
    symbols = {symbol.name: symbol for symbol in assemble(program, "t").symbols}
    assert symbols.keys() == {"f", "g"}
    assert (symbols["f"].is_global, symbols["f"].is_function, symbols["f"].size) == (True, True, 4)
    assert (symbols["g"].is_global, symbols["g"].is_hidden, symbols["g"].section) == (True, True, ".bss.g")
    assert parse(print_program(program)) == program


REPEATED = """
    rpt $m0, ((end - begin) / 8) - 1
    {before}
begin:
    {body}
end:
"""


@pytest.mark.parametrize(
    ("permission", "text"),
    [
        ("allow_invalid_repeat", "rpt $m0, 0\nnop"),
        ("allow_invalid_operands", "ld2x64pace $a0:1, $a0:1, $m0:1+=, $m2, 0"),
        ("allow_invalid_execution_mode", ".supervisor\nexitz $m0"),
        ("warn_on_invalid_bundles", "{ add $m1, $m2, $m3 ; add $m4, $m5, $m6 }"),
    ],
)
def test_permissions_switch_checks_off(permission: str, text: str) -> None:
    with pytest.raises(InvalidInput):
        parse(text)
    program = parse(f".{permission}\n{text}")
    assert parse(print_program(program)) == program


def test_errors_of_bundles_can_be_switched_on_again() -> None:
    with pytest.raises(InvalidInput):
        parse(".warn_on_invalid_bundles\n.error_on_invalid_bundles\n{ nop ; nop }")


def test_repeat_bodies() -> None:
    body = "{ ld32step $a0, $m1, $m2+=, 1 ; f32add $a1, $a1, $a0 }"
    text = f"nop\nrpt $m0, ((end - begin) / 8) - 1\nbegin:\n{body}\n{body}\nend:\nexitz $m15"
    assert words(text)[1] == 0x4300A001
    assert words(f"{{ rpt 5, 0 ; fnop }}\n{body}\nbri 0")[:2] == [0xC0000500, 0x9AD00000]


# Random programs

TABLE = instruction_table()
SECTIONS = (
    (".text", SectionKind.CODE),
    (".text.more", SectionKind.CODE),
    (".data", SectionKind.DATA),
    (".rodata.x", SectionKind.CONSTANTS),
    (".bss", SectionKind.ZEROS),
)
PLAIN = [form for form in TABLE.rows if form.mnemonic != "rpt"]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A legal program with code of both modes, data, labels and expressions."""
    source = random.Random(draw(st.integers(0, 2**32)))
    names = [f"label{index}" for index in range(draw(st.integers(0, 6)))]
    names += ["$odd.name", ".Llocal", "kernel.unit=u64", "1:#//{;}+@-"]
    unused = list(names)
    sections: list[Section] = []
    for name, kind in source.sample(SECTIONS, draw(st.integers(1, len(SECTIONS)))):
        items: list[Item] = []
        for _ in range(source.randrange(12)):
            if unused and source.random() < 0.3:
                items.append(Label(name=unused.pop()))
            items.append(_item(kind, source, names))
            if kind is SectionKind.CODE:
                items.append(Align(boundary=8))
        sections.append(Section(name=name, kind=kind, items=tuple(items)))
    return Program(
        sections=tuple(sections),
        declarations=(
            Declaration(
                name="label0", is_global=True, is_function=True, size=Binary("-", Symbol("a"), Symbol("b"))
            ),
            Declaration(name="outside", is_hidden=True),
            Declaration(name="plain"),
        ),
        equates=(Equate(name="CONSTANT", value=source.randrange(-(2**31), 2**31)),),
        permissions=(Permission.OPTIMIZATIONS, Permission.INVALID_OPERANDS, Permission.INVALID_BUNDLES),
    )


def _item(kind: SectionKind, source: random.Random, names: list[str]) -> Item:
    if kind is SectionKind.CODE:
        mode = source.choice(tuple(Mode))
        if mode is Mode.WORKER and source.random() < 0.4:
            halves = [
                source.choice(
                    [form for form in PLAIN if form.lane is lane and form.can_coissue and mode in form.modes]
                )
                for lane in Lane
            ]
            main, aux = (
                Instruction(form=form, operands=legal_operands(form.operands, source), mode=mode)
                for form in halves
            )
            return Bundle(main=main, aux=aux)
        form = source.choice([form for form in PLAIN if mode in form.modes])
        operands: list[Value] = [*legal_operands((*form.operands, *form.payload), source)]
        if form.relocation is not None and source.random() < 0.7:
            operands[form.relocation[0]] = _expression(source, names)
        return Instruction(form=form, operands=tuple(operands), mode=mode)
    if kind is SectionKind.ZEROS:
        return Space(size=source.randrange(100))
    width = source.choice((1, 2, 4, 8))
    values = [source.choice((source.getrandbits(8 * width), _expression(source, names))) for _ in range(3)]
    return source.choice((Data(width=width, values=tuple(values)), Space(size=3), Align(boundary=16)))


def _expression(source: random.Random, names: list[str]) -> Expression:
    symbol = Symbol(source.choice(names))
    return source.choice(
        (
            symbol,
            Slot("slot"),
            Binary("+", symbol, source.randrange(-5000, 5000)),
            Relocated(symbol, "18_S2"),
            Relocated(Binary("-", symbol, 4), "21"),
            Binary("/", Binary("-", symbol, Symbol(names[0])), 8),
        )
    )


@given(programs())
def test_programs_print_as_text_that_reads_back(program: Program) -> None:
    printed = print_program(program)
    assert parse(printed) == program
    assert print_program(parse(printed)) == printed


def test_names_with_other_characters_stand_in_quotation_marks() -> None:
    program = parse(
        """
        .globl "a.k=v", plain
        .section ".text.a.k=v", "ax", @progbits
        "a.k=v": setzi $m0, "a.k=v" + 4
        "plain": exitz $mzero
        """
    )
    assert program.sections[0].name == ".text.a.k=v"
    assert list(program.defined_names()) == ["a.k=v", "plain"]
    symbols = {symbol.name: symbol for symbol in assemble(program, "t").symbols}
    assert symbols["a.k=v"].is_global
    assert symbols["plain"].value == 4
    assert 'setzi $m0, ("a.k=v" + 4)' in print_program(program)
    assert "\nplain:\n" in print_program(program)
    assert parse(print_program(program)) == program
    assert parse(list_program(program, "t")) == program


LISTED = """
    .globl main
    .section .text.main, "ax", @progbits
main:
    setzi $m0, table
    { ld64step $a0:1, $m0, $m1+=, 1 ; fnop }   # aligned by the pair before
    nop
    .supervisor
    delay 5
    .data
table:
    .word main + 4, 1, 2
""".replace("    { ld64step", "    nop\n    { ld64step")


def test_a_listing_shows_words_and_reads_back() -> None:
    program = parse(LISTED, "main.s")
    listing = list_program(program, "main.o")
    assert parse(listing) == program
    assert listing.splitlines()[5:8] == [
        "    setzi $m0, table                                    # 00000000: 19000000  main.s:5:5",
        "    nop                                                 # 00000004: 19e00000  main.s:6:5",
        "    { ld64step $a0:1, $m0, $m1+=, 1 ; fnop }            # 00000008: 9e001201 9ad00000  main.s:7:7",
    ]


PIECES = tuple(sorted({piece for text, _ in SAME_WORDS for piece in text.replace(",", " , ").split(" ")}))


@given(st.integers(0, 2**32))
def test_damaged_text_is_refused_or_means_what_it_prints(seed: int) -> None:
    source = random.Random(seed)
    pieces = source.choice(SAME_WORDS)[0].replace(",", " , ").split(" ")
    for _ in range(source.randrange(1, 4)):
        at = source.randrange(len(pieces) + 1)
        pieces[at : at + source.randrange(2)] = [source.choice(PIECES)] * source.randrange(2)
    with contextlib.suppress(InvalidInput):
        program = parse(" ".join(pieces), "t.s")
        assert parse(print_program(program)) == program
        assert parse(list_program(program, "t.o")) == program


@pytest.mark.parametrize("text", ["(" * 5000, "-" * 5000 + "1", "x" + " + 1" * 5000, "~" * 5000])
def test_endless_expressions_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="an expression has at most 100 terms"):
        parse(f".data\n.word {text}")


def test_parentheses_nest_to_the_limit_of_terms() -> None:
    assert words(".word " + "(" * 98 + "7" + ")" * 98) == [7]


def test_operators_bind_as_in_c() -> None:
    source = random.Random(9)
    for _ in range(300):
        pieces: list[str] = []
        for _ in range(source.randrange(1, 8)):
            pieces += [str(source.randrange(1, 4)), source.choice(["+", "-", "*", "&", "|", "^"])]
        text = " ".join([*pieces, str(source.randrange(1, 4))])
        # Python's operators of these names bind in the same order.
        tree = ast.parse(text, mode="eval").body
        assert words(f".word {text}") == [_value(tree) & 0xFFFF_FFFF], text


def _value(tree: ast.expr) -> int:
    if isinstance(tree, ast.Constant):
        assert isinstance(tree.value, int)
        return tree.value
    assert isinstance(tree, ast.BinOp)
    left, right = _value(tree.left), _value(tree.right)
    match tree.op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.BitAnd():
            return left & right
        case ast.BitOr():
            return left | right
        case _:
            return left ^ right


def test_the_current_place_never_meets_a_label() -> None:
    text = ".data\n.Lhere1: .word .\n.word .\n.word . - .Lhere1\n.Lhere0: .word .\n"
    object_file = assemble(parse(text), "t")
    assert [relocation.addend for relocation in object_file.sections[0].relocations] == [0, 4, 12]
    assert object_file.sections[0].content[8:12] == b"\x08\0\0\0"


def test_too_many_sections_are_refused() -> None:
    text = "".join(f'.section s{index}, "aw"\n' for index in range(30_001))
    with pytest.raises(InvalidInput, match="a program has at most 30,000 sections") as refused:
        parse(text, "t.s")
    assert refused.value.subject == "t.s:30001:1"


def test_the_largest_numbers() -> None:
    text = ".data\n.quad 0xffffffffffffffff, -(1 << 63), (1 << 63) - 1 + (1 << 63), 1.0, 1.0h"
    content = assemble(parse(text), "t").sections[0].content
    assert struct.unpack("<5Q", content) == (2**64 - 1, 2**63, 2**64 - 1, 0x3F80_0000, 0x3C00)
