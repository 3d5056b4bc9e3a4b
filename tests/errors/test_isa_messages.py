"""The text of every refusal of assembler, builder, linker and files of the instruction set."""

from collections.abc import Callable

import pytest

from compiler.errors import TilewrightError
from compiler.isa.assembler import assemble
from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.linker import LinkRegion, link
from compiler.isa.objects import ObjectFile, read_object
from compiler.isa.program import SectionKind
from compiler.isa.registers import Main, a, a2, a4, m, m2
from compiler.isa.text import parse
from compiler.isa.vectors import read_vectors
from compiler.target.instructions import Mode
from compiler.target.isa_decisions import read_overrides

LINE = "correct this line"

TEXTS: list[tuple[str, str, str, str]] = [
    (
        "setzi $m0, " + "9" * 5000,
        "1:12",
        f"a number has at most 64 bits, and {'9' * 40}... has more",
        LINE,
    ),
    (
        ".quad 0x10000000000000000",
        "1:7",
        "a number has at most 64 bits, and 0x10000000000000000 has more",
        LINE,
    ),
    (".quad 1 << 63 << 1", "1:15", "the result of << has more than 64 bits", LINE),
    (".quad x + (1 << 63) + (1 << 63)", "1:1", "the result of + has more than 64 bits", LINE),
    (".word 1e999", "1:7", "1e999 is too large for 32 bits", "write inf or infh for infinity"),
    (".word 1e39", "1:7", "1e39 is too large for 32 bits", "write inf or infh for infinity"),
    ("setzi $a0, 65520.0h", "1:12", "65520.0h is too large for 16 bits", "write inf or infh for infinity"),
    (".space 638977", "1:1", "space is 0 to 638,976 bytes, not 638,977", LINE),
    (
        ".data\n.space 638975\nlabel: .half 1",
        "3:8",
        "section .data has more than 638,976 bytes, the memory of a tile",
        LINE,
    ),
    (
        ".bss\n.space 638976\n.space 1",
        "3:1",
        "section .bss has more than 638,976 bytes, the memory of a tile",
        LINE,
    ),
    (
        "ld32step $m1, $m0, $m1+=, 1",
        "1:1",
        "ld32step: operands destination and delta both write $m1",
        LINE,
    ),
    (
        "ldd16a64 $a2:3, $m1++, $m0, $m1@",
        "1:1",
        "ldd16a64: operands address and delta both write $m1",
        LINE,
    ),
    (".byte 1\n.align 8", "2:1", "padding of code must begin at a multiple of 4", LINE),
    (".p2align 21", "1:1", "an alignment is at most 1,048,576 bytes, not 2,097,152", LINE),
    ("a: nop\n.size a, -1", "2:1", "the size of a must be in 0..638976 bytes, not -1", LINE),
    ("a: nop\n.size a, a", "2:1", "the size of a is an address, not a number of bytes", LINE),
    ("a: nop\n.size a, a@abs@21", "2:1", "the size of a is an address, not a number of bytes", LINE),
    (
        "a: nop\n.size a, ?n",
        "2:1",
        "slot n has no number before its template is filled",
        LINE,
    ),
    (
        "a: nop\n.size a, b - a",
        "2:1",
        "b - a is no number: they are not labels of one section",
        LINE,
    ),
    (
        ".text: nop",
        "1:8",
        ".text is the name of a symbol already",
        "use another name for the section",
    ),
    (
        "x: nop\n.section x",
        "2:1",
        "x is the name of a symbol already",
        "use another name for the section",
    ),
    (
        ".set x, 1\n.section x",
        "2:1",
        "x is the name of a symbol already",
        "use another name for the section",
    ),
    ("{ nop ; fnop } nop", "1:16", "'nop' follows a complete statement", LINE),
    (
        "mov $m0, 5",
        "1:1",
        "mov does not take (m, number); its forms are: mov m, m | mov a, a | mov m, a | mov a2, a2",
        LINE,
    ),
    ("{ nop fnop }", "1:3", "nop does not take (symbol); its forms are: nop", LINE),
    (
        "add $m0, $m1, $m1234567",
        "1:15",
        "add: there is no register with so large a number: a file has 16",
        LINE,
    ),
    (
        "add $m0, $m1",
        "1:1",
        "add does not take (m, m); its forms are: add m, m, m | add m, m, s16 | add m, m, u16",
        LINE,
    ),
    ("add $m0, $a1, $m2", "1:1", "add: operand source0 must be a register m, not a", LINE),
    (
        "ld64 $a1:2, $m0, $m1, 0",
        "1:6",
        "ld64: $a1 cannot begin a pair: its number must be a multiple of 2",
        LINE,
    ),
    ("ld64 $m0, $m0, $m1, 0", "1:1", "ld64: operand destination must be a pair a2, not m", LINE),
    ("f16v4add $a0, $a2:3, $a4:5", "1:1", "f16v4add: operand destination must be a pair a2, not a", LINE),
    (
        "f16v4add $a1:2, $a2:3, $a4:5",
        "1:10",
        "f16v4add: $a1 cannot begin a pair: its number must be a multiple of 2",
        LINE,
    ),
    (
        "ld128 $a2:5, $m0, $m1, 0",
        "1:7",
        "ld128: $a2 cannot begin a quad: its number must be a multiple of 4",
        LINE,
    ),
    ("add $m16, $m0, $m0", "1:5", "add: there is no register $m16: a file has 16", LINE),
    ("f32v4acc $aq16", "1:1", "f32v4acc: operand source must be a quad a4, not symbol", LINE),
    (
        "add $m0, $m1, 70000",
        "1:1",
        "add: operand immediate must be in -32768..32767 or in 0..65535, not 70000",
        LINE,
    ),
    ("setzi $a0, 1.0", "1:1", "setzi: operand immediate must be in 0..1048575, not 1065353216", LINE),
    (
        "or $m0, $m0, 0x12345",
        "1:1",
        "or: operand immediate must be in 0..4095 or a multiple of 0x100000 in 0..0xfff00000, not 74565",
        LINE,
    ),
    ("st32step $m0, $m1, $m2, 1", "1:1", "st32step: operand delta must be a register m+=, not m", LINE),
    ("ld32step $m0, $m1+=, $m2+=, 1", "1:1", "ld32step: operand base must be a register m, not m+=", LINE),
    ("frob $m0", "1:1", "there is no instruction frob", LINE),
    (
        "put $FP_ICTL, $m0",
        "1:5",
        "put: a worker has no control register $FP_ICTL",
        "check the name and the directive .worker or .supervisor above",
    ),
    ("get $m0, $FP_CTL", "1:1", "get: operand csr must be in 0..255, not 258", LINE),
    ("sync 3", "1:1", "sync is a supervisor instruction (sync u4), and this is worker code", LINE),
    (
        ".supervisor;exitz $m0",
        "1:13",
        "exitz is a worker instruction (exitz m), and this is supervisor code",
        LINE,
    ),
    (
        ".supervisor;ld64step $a0:1, $m0, $m1+=, 1",
        "1:13",
        "ld64step is a worker instruction (ld64step a2, m, m+=, s8), and this is supervisor code",
        LINE,
    ),
    (".supervisor;{ nop ; fnop }", "1:15", "the supervisor has no bundles", LINE),
    (
        "{ fnop ; nop }",
        "1:3",
        "setzi is an instruction of the aux lane (setzi a, u20) and cannot be the main half of a bundle",
        LINE,
    ),
    (
        "{ add $m1, $m2, $m3 ; add $m4, $m5, $m6 }",
        "1:3",
        "add is an instruction of the main lane (add m, m, m) and cannot be the aux half of a bundle",
        LINE,
    ),
    ("{ exitz $m0 ; fnop }", "1:3", "exitz must be issued alone", LINE),
    ("{ ld32 $a0, $m1, 0 ; f32add $a0, $a1, $a2 }", "1:3", "ld32 and f32add both write $a0", LINE),
    (
        "{ ld128 $a0:3, $m1, $m2, 0 ; f16v4add $a2:3, $a4:5, $a6:7 }",
        "1:3",
        "ld128 and f16v4add both write $a2",
        LINE,
    ),
    ("{ nop }", "1:1", "a bundle has two instructions, not 1", "use nop or fnop for the other half"),
    (
        "{ nop ; fnop ; fnop }",
        "1:1",
        "a bundle has two instructions, not 3",
        "use nop or fnop for the other half",
    ),
    ("{ nop ; fnop", "1:1", "this bundle has no end", "put '}' after its second half"),
    ("nop }", "1:5", "'}' ends no bundle", "put '{' before the first half"),
    ("{ { nop", "1:3", "a bundle begins inside a bundle", "put '}' after the second half of the first"),
    (
        "nop; { nop ; fnop }",
        "1:8",
        "a bundle must be at a multiple of 8, not at offset 4: put a nop before it",
        LINE,
    ),
    (
        "{ ldconst $m0, 0x12345678 ; fnop }",
        "1:3",
        "ldconst is 2 instructions here and cannot be in a bundle",
        LINE,
    ),
    (
        "ld2x64pace $a0:1, $a0:1, $m0:1+=, $m2, 0",
        "1:1",
        "ld2x64pace: operands destination0 and destination1 both write $a0",
        LINE,
    ),
    (
        ".supervisor;ld128putcs 3",
        "1:13",
        "ld128putcs: operand weight must be even, not 3: it writes two registers",
        LINE,
    ),
    (
        ".supervisor; nop; sendpicp 1, 0, 0, 0, 0, 0",
        "1:19",
        "sendpicp must be at a multiple of 8, not at offset 4",
        LINE,
    ),
    (
        ".supervisor; sendpicp 1, 0, 0, 0",
        "1:14",
        "sendpicp does not take (number, number, number, number); its forms are: sendpicp u6, u18, u3, u1",
        LINE,
    ),
    (
        "rpt $m0, 0",
        "1:1",
        "a repeat body must begin at a multiple of 8, not at offset 4: move rpt by one word",
        LINE,
    ),
    (
        "{ rpt $m0, 0 ; fnop }; nop",
        "1:24",
        "a repeat body may hold only bundles, and setzi stands alone",
        LINE,
    ),
    ("{ rpt $m0, 0 ; fnop }; { rpt $m0, 0 ; fnop }", "1:26", "repeats cannot nest", LINE),
    (
        "{ rpt $m0, 1 ; fnop }; { nop ; fnop }",
        "1:3",
        "a bundle is missing from the repeat body at the end of the section",
        LINE,
    ),
    (
        "{ rpt $m0, 0 ; fnop }; { brnz $m0, 4 ; fnop }",
        "1:26",
        "brnz is a control instruction and cannot be in a repeat body",
        LINE,
    ),
    (
        "{ rpt $m0, 0 ; fnop }; { get $m0, $WSR ; fnop }",
        "1:26",
        "get is a system instruction and cannot be in a repeat body",
        LINE,
    ),
    (
        "{ rpt $m0, 0 ; fnop }; .align 16; { nop ; fnop }",
        "1:24",
        "a repeat body may hold only bundles, not data or padding",
        LINE,
    ),
    ("{ rpt $m0, (e-b)/8-1 ; fnop }; b: e: nop", "1:3", "a repeat body has 1 to 256 bundles, not 0", LINE),
    ("{ rpt $m0, 256 ; fnop }", "1:3", "rpt: operand body must be in 0..255, not 256", LINE),
    ("{ rpt 4096, 0 ; fnop }", "1:3", "rpt: operand count must be in 0..4095, not 4096", LINE),
    ("bri 0x80000", "1:1", "bri: operand target must be a multiple of 4 in 0..0x1ffffc, not 0x200000", LINE),
    (
        ".byte_branches; bri 6",
        "1:17",
        "bri: operand target must be a multiple of 4 in 0..0x1ffffc, not 6",
        LINE,
    ),
    (
        "bri x@abs@21",
        "1:1",
        "bri: operand target: R_COLOSSUS_21 writes other bits than those of this operand",
        LINE,
    ),
    (
        "add $m0, $m1, x",
        "1:1",
        "add: operand immediate must be a number: no relocation fits it",
        "load the address with setzi and use a register",
    ),
    (
        "ld32 $m0, $m1, 1-x",
        "1:1",
        "ld32: operand offset: operator - needs numbers, and x is an address",
        LINE,
    ),
    (
        "setzi $m0, x*2",
        "1:1",
        "setzi: operand immediate: operator * needs numbers, and x is an address",
        LINE,
    ),
    ("setzi $m0, 1/0", "1:13", "division by zero", LINE),
    ("x: ; x:", "1:6", "symbol x is defined twice", "rename one of the two"),
    (".set x, 1; .set x, 2", "1:17", "symbol x is defined twice", "rename one of the two"),
    ("setzi $m0,", "1:11", "an operand is missing before the end of the statement", LINE),
    ("setzi $m0 $m1", "1:11", "a comma is missing before '$m1'", LINE),
    ("setzi $m0, 5 6", "1:14", "a comma is missing before '6'", LINE),
    ("setzi $m0, (5", "1:12", "this parenthesis is not closed", "add ')'"),
    (
        "setzi $m0, 010",
        "1:12",
        "010 could mean octal or decimal",
        "leave out the zeros in front, or write 0x",
    ),
    ("setzi $m0, 70000.0h", "1:12", "70000.0h is too large for 16 bits", "write inf or infh for infinity"),
    ("setzi $m0, x@what", "1:13", "@what begins no relocation", "use one of the documented spellings"),
    (".data; .byte 256", "1:8", "256 does not fit 8 bits", LINE),
    (".data; nop", "1:8", "section .data holds no code", LINE),
    (".bss; .byte 1", "1:7", "section .bss holds only zeros", LINE),
    (
        '.data; .byte 1; .text; .section .data, "ax"',
        "1:24",
        'section .data has the flags "aw" already, not "ax"',
        "use one set of flags, or another name",
    ),
    ('.section .x, "q"', "1:14", 'a section with the flags "q" does not exist', LINE),
    ('.section .x, "aw", @what', "1:20", "a section is @progbits or @nobits", LINE),
    (".section .x, aw", "1:14", "the flags of a section are a string", LINE),
    (".frob", "1:1", "there is no directive .frob", "correct the spelling"),
    (".align 3", "1:1", "alignment 3 is no power of two", LINE),
    (".p2align 40", "1:1", "alignment 2**40 does not exist", LINE),
    (".space -1", "1:1", "space is 0 to 638,976 bytes, not -1", LINE),
    (".space x", "1:8", "a number of bytes must be a number that is known here", LINE),
    (".globl", "1:7", "a symbol is missing before the end of the statement", LINE),
    (".type f, @thing", "1:10", "a symbol is of type @function or @object", LINE),
    (".size f", "1:8", "a comma is missing before the end of the statement", LINE),
    ('"a=b" 1', "1:1", "':' is missing behind the label \"a=b\"", LINE),
    ('.globl "a b"', "1:8", "'a b' cannot be the name of a symbol or section", "use another name"),
    ("`", "1:1", "'`' begins no word of assembly text", "correct the spelling"),
    ("/* x", "1:1", "this comment has no end", "close it with */"),
    ("ldconst $m0, x", "1:1", "ldconst: operand value must be a number that is known here", LINE),
    ("ldconst $a0:1, 5", "1:1", "ldconst: operand destination must be one register", LINE),
    ("sub $m0, $m1, x", "1:1", "sub of a register and a symbol needs a number that is known here", LINE),
    ("5: nop", "1:1", "a label, directive or instruction is missing before '5'", LINE),
    (".data; .byte 1; .byte x@abs@32", "1:17", "R_COLOSSUS_32 writes 4 bytes", "use wider data"),
    (
        "delaypic 0, 0, 1",
        "1:1",
        "delaypic is a supervisor instruction (delaypic u7, u1, u18), and this is worker code",
        LINE,
    ),
]


@pytest.mark.parametrize(("text", "place", "message", "next_step"), TEXTS)
def test_assembly_text(text: str, place: str, message: str, next_step: str) -> None:
    with pytest.raises(TilewrightError) as refused:
        assemble(parse(text, "t.s"), "t.o")
    assert str(refused.value) == f"invalid input (assemble): t.s:{place}: {message}.\n  next: {next_step}"


def code(mode: Mode = Mode.WORKER) -> Builder:
    """A builder with an open section of code."""
    builder = Builder("k")
    builder.section(".text", SectionKind.CODE, mode)
    return builder


def in_repeat(write: Callable[[Builder], object], count: Main | int = 2) -> None:
    """Write into the body of a repeat."""
    builder = code()
    with builder.repeat(count):
        write(builder)


BUILDER: list[tuple[Callable[[], object], str]] = [
    (lambda: code().emit("add", m(0), a(1), m(2)), "add: operand source0 must be a register m, not a"),
    (
        lambda: code().emit("f16v4add", a2(0), a(1), a2(2)),
        (
            "f16v4add does not take (a2, a, a2); its forms are: f16v4add a2, a:BL, a2 | "
            "f16v4add a2, a:BU, a2 | f16v4add a2, a2, a2"
        ),
    ),
    (lambda: code().emit("frob"), "there is no instruction frob"),
    (
        lambda: code().emit("setzi", m(0), 1 << 20),
        "setzi: operand immediate must be in 0..1048575, not 1048576",
    ),
    (
        lambda: code().emit("bri", 0x200000),
        "bri: operand target must be a multiple of 4 in 0..0x1ffffc, not 0x200000",
    ),
    (
        lambda: code().emit("ld2x64pace", a2(0), a2(0), m2(0), m(2), 0),
        "ld2x64pace: operands destination0 and destination1 both write $a0",
    ),
    (
        lambda: code(Mode.SUPERVISOR).emit("exitz", m(0)),
        "exitz is a worker instruction (exitz m), and this is supervisor code",
    ),
    (lambda: code().emit("sync", 3), "sync is a supervisor instruction (sync u4), and this is worker code"),
    (
        lambda: code(Mode.SUPERVISOR).bundle(("nop",), ("fnop",)),
        "setzi is a worker instruction (setzi a, u20), and this is supervisor code",
    ),
    (
        lambda: code().bundle(("fnop",), ("nop",)),
        "setzi is an instruction of the aux lane (setzi a, u20) and cannot be the main half of a bundle",
    ),
    (lambda: code().bundle(("exitz", m(0)), ("fnop",)), "exitz must be issued alone"),
    (
        lambda: code().bundle(("ld128", a4(0), m(1), m(2), 0), ("f16v4add", a2(2), a2(4), a2(6))),
        "ld128 and f16v4add both write $a2",
    ),
    (
        lambda: code().bundle(("ldconst", m(0), 0x12345678), ("fnop",)),
        "ldconst is 2 instructions here and cannot be in a bundle",
    ),
    (lambda: code().bundle((m(0),), ("fnop",)), "half of a bundle begins with a mnemonic"),
    (lambda: code().bundle(("br", "m"), ("fnop",)), "'m' is no operand"),
    (
        lambda: misaligned_bundle(),
        "a bundle must be at a multiple of 8, not at offset 4: put a nop before it",
    ),
    (
        lambda: code().emit("rpt", m(0), 1),
        "a repeat body must begin at a multiple of 8, not at offset 4: move rpt by one word",
    ),
    (
        lambda: in_repeat(lambda body: body.emit("nop")),
        "a repeat body may hold only bundles, and setzi stands alone",
    ),
    (
        lambda: in_repeat(lambda body: body.data(4, 1)),
        "a repeat body may hold only bundles, not data or padding",
    ),
    (
        lambda: in_repeat(lambda body: body.bundle(("brnz", m(0), 4), ("fnop",))),
        "brnz is a control instruction and cannot be in a repeat body",
    ),
    (
        lambda: in_repeat(lambda body: body.bundle(("get", m(0), 1), ("fnop",))),
        "get is a system instruction and cannot be in a repeat body",
    ),
    (lambda: in_repeat(lambda body: body.repeat(2).__enter__()), "repeats cannot nest"),
    (lambda: in_repeat(lambda body: body.bundle(("rpt", 1, 0), ("fnop",))), "repeats cannot nest"),
    (
        lambda: in_repeat(lambda body: body.section(".data", SectionKind.DATA)),
        "a section cannot change inside a repeat body",
    ),
    (lambda: in_repeat(lambda _: None), "a repeat body has 1 to 256 bundles, not 0"),
    (
        lambda: in_repeat(lambda body: [body.bundle(("nop",), ("fnop",)) for _ in range(257)]),
        "a repeat body has 1 to 256 bundles, not 257",
    ),
    (lambda: in_repeat(lambda _: None, 4096), "rpt: operand count must be in 0..4095, not 4096"),
    (lambda: Builder("k").emit("nop"), "nothing can be written before the first section begins"),
    (lambda: code().section(".text", SectionKind.DATA), "section .text is CODE, not DATA"),
    (lambda: twice(), "label x is defined twice"),
    (lambda: unfinished(), "the last repeat body is not complete"),
    (lambda: unknown_symbol(), "symbol there is neither a label of k nor external"),
    (lambda: code().data(1, 256), "256 does not fit 8 bits"),
    (lambda: code().align(3), "alignment 3 is no power of two"),
    (lambda: code_in_data(), "section .data holds no code"),
]


def misaligned_bundle() -> None:
    builder = code()
    builder.emit("nop")
    builder.bundle(("nop",), ("fnop",))


def twice() -> None:
    builder = code()
    builder.label("x")
    builder.label("x")


def unfinished() -> None:
    builder = code()
    builder.emit("nop")
    builder.emit("rpt", m(0), 0)
    builder.finish()


def unknown_symbol() -> None:
    builder = code()
    builder.emit("bri", Symbol("there"))
    builder.finish()


def code_in_data() -> None:
    builder = code()
    builder.section(".data", SectionKind.DATA)
    builder.emit("nop")


@pytest.mark.parametrize(("write", "message"), BUILDER)
def test_the_builder_names_the_place_in_our_code(write: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=r"^tests\.errors\.test_isa_messages:\d+: ") as refused:
        write()
    assert str(refused.value).split(": ", 1)[1] == message


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: m(16), "there is no register $m16: a file has 16"),
        (lambda: a2(3), "$a3 cannot begin a pair: its number must be a multiple of 2"),
        (lambda: a4(2), "$a2 cannot begin a quad: its number must be a multiple of 4"),
    ],
)
def test_registers_that_do_not_exist(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=r"register|cannot begin") as refused:
        make()
    assert str(refused.value) == message


def made(text: str, name: str) -> ObjectFile:
    """An object."""
    return assemble(parse(text, name.replace(".o", ".s")), name)


F = ".globl f\nf: "
SMALL = [LinkRegion(name="small", start=0x4C000, end=0x4C008, executable=True, interleave=1)]
LINKS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: link([made(F, "a.o"), made(F, "b.o")]),
        (
            "invalid input (link): symbol f: it is defined in a.o and in b.o.\n"
            "  next: rename one of the two, or leave one object out"
        ),
    ),
    (
        lambda: link([made("nop\nbri f", "a.o")]),
        (
            "invalid input (link): symbol f: no object defines it, and a.o needs it in .text, at a.s:2:1.\n"
            "  next: add the object that defines it, or correct the spelling"
        ),
    ),
    (
        lambda: link([made("nop", "a.o")], entry="f"),
        (
            "invalid input (link): symbol f: no object defines it as a global symbol.\n"
            "  next: add the object that defines it, or declare it with .globl"
        ),
    ),
    (
        lambda: link([made("nop", "a.o"), made("nop", "a.o")]),
        "invalid input (link): a.o, a.o: two objects have one name.\n  next: give each object once",
    ),
    (
        lambda: link([made("nop\nnop\nnop", "a.o")], regions=SMALL),
        (
            "does not fit (link): a.o: section .text of 12 bytes has no room in small.\n"
            "  small memory up to the end of this section: 12 bytes (measured), limit 8, 4 too many\n"
            "  next: link less code or data, or give larger regions"
        ),
    ),
    (
        lambda: link([made('.section .interleave_2_x, "aw"\n.byte 1', "a.o")], regions=SMALL),
        (
            "does not fit (link): a.o: section .interleave_2_x of 1 bytes has no room in no region.\n"
            "  next: link less code or data, or give larger regions"
        ),
    ),
    (
        lambda: link([made("nop\nbri f + 2\n" + F, "a.o")]),
        (
            "invalid input (link): a.o, .text+0x4: f+2: 0x4c00a is not a multiple of 4, as R_COLOSSUS_19_S2 "
            "demands.\n  next: move the code or data, or use an instruction that reaches it"
        ),
    ),
    (
        lambda: link([made(".data\n.half f\n" + F, "a.o")]),
        (
            "invalid input (link): a.o, .data+0x0: f: 0x4c002 is not in 0..0xffff, as R_COLOSSUS_16 "
            "demands.\n  next: move the code or data, or use an instruction that reaches it"
        ),
    ),
    (
        lambda: link([made(".supervisor\nrun $m0, $m1, f\n.globl f\n.set f, 0x100", "a.o")]),
        (
            "invalid input (link): a.o, .text+0x0: f: -0x4bf00 from the start of memory is not in "
            "0..0x3fffc, as R_COLOSSUS_RUN demands.\n"
            "  next: move the code or data, or use an instruction that reaches it"
        ),
    ),
    (
        lambda: read_object(b"text", "a.o"),
        (
            "invalid input (read object): a.o: it does not begin like an ELF file.\n"
            "  next: assemble it again, or give the file of an IPU object"
        ),
    ),
    (
        lambda: link([assemble(parse(".globl q\n.set q, 0x4c000"), "o.o")], entry="q"),
        (
            "invalid input (link): symbol q: execution cannot begin there: it names no instruction.\n"
            "  next: give a label in a section of code"
        ),
    ),
    (
        lambda: link(
            [
                assemble(parse("".join(f'.section s{row}, "a"\n' for row in range(20_001))), f"{name}.o")
                for name in "abc"
            ]
        ),
        (
            "invalid input (link): a.o: an image has at most 60,000 sections, not 60,003.\n"
            "  next: put more code or data into one section"
        ),
    ),
    (
        lambda: read_vectors("{}", "v.jsonl"),
        (
            "invalid input (check vectors): v.jsonl:1: this line is no vector: asm is missing.\n"
            "  next: write one JSON object a line with asm, mode and bytes_hex_le"
        ),
    ),
    (
        lambda: read_vectors("\n# nothing\n", "v.jsonl"),
        (
            "invalid input (check vectors): v.jsonl: this file has no vectors.\n"
            "  next: write one JSON object a line with asm, mode and bytes_hex_le"
        ),
    ),
    (
        lambda: read_vectors("\n" + "[" * 10**6, "v.jsonl"),
        (
            "invalid input (check vectors): v.jsonl:2: this line is no vector: it is nested too deeply.\n"
            "  next: write one JSON object a line with asm, mode and bytes_hex_le"
        ),
    ),
    (
        lambda: read_overrides("TAMP_F16V4_E4_P0", "o"),
        (
            "invalid input (isa overrides): o:1: this is not NAME = VALUE.\n"
            "  next: write one name and one number on the line"
        ),
    ),
    (
        lambda: read_overrides("# comment\nTFPU_ROUND_UP = 1", "o"),
        (
            "invalid input (isa overrides): o:2: TFPU_ROUND_UP is not a value that can be overridden.\n"
            "  next: see `tilewright isa decisions` for the names that can be"
        ),
    ),
    (
        lambda: read_overrides("TISTACC_P0 = 2\nTISTACC_P0 = 3", "o"),
        "invalid input (isa overrides): o:2: TISTACC_P0 is given twice.\n  next: keep one of the two lines",
    ),
    (
        lambda: read_overrides("TISTACC_P0 = 64", "o"),
        (
            "invalid input (isa overrides): o:1: TISTACC_P0 is at most 63 and cannot be 64.\n"
            "  next: take the value of the header"
        ),
    ),
    (
        lambda: read_overrides("TISTACC_P0 = 1", "o"),
        (
            "invalid input (isa overrides): o: TISTACC_P0 and TISTACC_P1 have the same value 1.\n"
            "  next: override every name of the group"
        ),
    ),
]


@pytest.mark.parametrize(("act", "message"), LINKS)
def test_linker_and_files(act: Callable[[], object], message: str) -> None:
    with pytest.raises(TilewrightError) as refused:
        act()
    assert str(refused.value) == message
