"""The builder: what it writes, and that it says the same as text."""

import pytest

from compiler.isa.assembler import assemble
from compiler.isa.builder import Builder
from compiler.isa.expressions import Slot, Symbol
from compiler.isa.printing import print_program
from compiler.isa.program import SectionKind
from compiler.isa.registers import (
    Arithmetic,
    ArithmeticPair,
    ArithmeticQuad,
    Main,
    MainPair,
    a,
    a2,
    a4,
    m,
    m2,
    read_register,
)
from compiler.isa.text import parse
from compiler.target.control_registers import WorkerRegister
from compiler.target.instructions import Mode


def test_a_kernel_is_the_same_as_its_text() -> None:
    code = Builder("scale")
    code.section(".text.scale", SectionKind.CODE, Mode.WORKER)
    code.label("scale", is_global=True, is_function=True)
    code.emit("ld32", m(0), m(13), 0)
    code.emit("ldconst", a(6), 0x3F800000)
    code.emit("get", m(3), WorkerRegister.WSR)
    code.align(8)
    code.emit("ld64step", a2(0), m(15), m(0), 1, note="first pair")
    with code.repeat(m(4)):
        code.bundle(("ld64step", a2(2), m(15), m(0), 1), ("f16v4mul", a2(4), a(6).low, a2(0)))
        code.bundle(("st64step", a2(4), m(15), m(1), 1), ("mov", a2(0), a2(2)))
    with code.repeat(10):
        code.bundle(("nop",), ("f16v4add", a2(2), a(6).high, a2(2)))
    code.emit("ld2x64pace", a2(0), a2(2), m2(2), m(4), 0b0100)
    code.emit("f32v4acc", a4(0))
    code.emit("f32v2mul", a2(2), a(6).word, a2(2))
    code.label("end")
    code.emit("brnz", m(4), Symbol("scale"))
    code.emit("exitz", m(15))
    code.section(".text.control", SectionKind.CODE, Mode.SUPERVISOR)
    code.emit("setzi", m(0), Symbol("end"))
    code.emit("call", m(10), code.external("elsewhere"))
    code.section(".data", SectionKind.DATA)
    code.data(4, Symbol("scale"), 7)
    code.space(4)
    program = code.finish()
    text = """
        .globl scale
        .type scale, @function
        .section .text.scale, "ax", @progbits
        scale:
            ld32 $m0, $m13, 0
            ldconst $a6, 1.0
            get $m3, $WSR
            .align 8
            ld64step $a0:1, $m15, $m0+=, 1
            rpt $m4, 1
            { ld64step $a2:3, $m15, $m0+=, 1 ; f16v4mul $a4:5, $a6:BL, $a0:1 }
            { st64step $a4:5, $m15, $m1+=, 1 ; mov $a0:1, $a2:3 }
            { rpt 10, 0 ; fnop }
            { nop ; f16v4add $a2:3, $a6:BU, $a2:3 }
            ld2x64pace $a0:1, $a2:3, $m2:3+=, $m4, 4
            f32v4acc $a0:3
            f32v2mul $a2:3, $a6:B, $a2:3
        end:
            brnz $m4, scale
            exitz $m15
        .section .text.control, "ax", @progbits
        .supervisor
            setzi $m0, end
            call $m10, elsewhere
        .section .data, "aw", @progbits
            .word scale, 7
            .space 4
    """
    assert parse(text) == program
    assert parse(print_program(program)) == program
    assert assemble(parse(text), "x").digest == assemble(program, "x").digest


def test_places_and_notes_lead_back_to_the_source() -> None:
    code = Builder("notes")
    code.section(".text", SectionKind.CODE)
    code.emit("nop", note="why")
    item = code.finish().sections[0].items[0]
    place = getattr(item, "place", "")
    assert place.startswith(f"{__name__}:")
    assert getattr(item, "note", "") == "why"


def test_offsets_and_sections_continue() -> None:
    code = Builder("sections")
    code.section(".text", SectionKind.CODE)
    code.emit("nop")
    code.section(".data", SectionKind.DATA)
    code.data(2, 1, 2)
    assert code.offset == 4
    code.section(".text", SectionKind.CODE)
    code.emit("nop")
    assert code.offset == 8


def test_slots_stand_for_any_number() -> None:
    code = Builder("slots")
    code.section(".text", SectionKind.CODE)
    code.emit("setzi", m(0), Slot("address"))
    assert assemble(code.finish(), "t").sections[0].content.hex() == "00000019"


@pytest.mark.parametrize(
    ("name", "register"),
    [
        ("$m3", Main(3)),
        ("$m2:3", MainPair(2)),
        ("$a7", Arithmetic(7)),
        ("$a6:7", ArithmeticPair(6)),
        ("$a4:7", ArithmeticQuad(4)),
        ("$aq3", ArithmeticQuad(12)),
        ("$frame", None),
        ("m3", None),
    ],
)
def test_names_of_registers(name: str, register: object) -> None:
    assert read_register(name) == register
    if register is not None and name != "$aq3":
        assert str(register) == name


def test_a_repeat_that_is_written_out_ends_after_its_bundles() -> None:
    code = Builder("repeat")
    code.section(".text", SectionKind.CODE)
    code.bundle(("rpt", m(1), 1), ("fnop",))
    code.bundle(("nop",), ("fnop",))
    with pytest.raises(ValueError, match="a repeat body may hold only bundles, and setzi stands alone"):
        code.emit("nop")
    code.bundle(("nop",), ("fnop",))
    code.emit("nop")
    assert code.offset == 28
    code.finish()
