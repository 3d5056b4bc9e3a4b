"""Templates: filling slots gives the words that assembling each instance gives."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.isa.assembler import assemble
from compiler.isa.expressions import Slot
from compiler.isa.program import Instruction, Program, Section, SectionKind
from compiler.isa.template import prepare
from compiler.isa.text import parse
from compiler.target.instructions import Mode, encode, encode_payload, instruction_table
from tests.isa.test_instruction_table import legal


def test_a_row_with_slots() -> None:
    template = prepare(
        parse(
            """
            .supervisor
            delay ?wait
            send ?words, ?item, 1
            sendpicp 51, 0, 0, 0, ?source, ?pointer
            setzi $m0, ?address
            br $m10
            .word ?address
            """
        )
    )
    assert template.names == ("wait", "words", "item", "source", "pointer", "address")
    columns = {
        "wait": np.array([134, 29]),
        "words": np.array([2, 9]),
        "item": 0x18000,
        "source": 0xC0,
        "pointer": np.array([0x14048, 0x15000]),
        "address": np.array([0x4C000, 0x50000]),
    }
    filled = template.fill(columns, 2)
    assert filled.dtype == np.uint32
    assert [f"{word:08x}" for word in filled[0]] == [
        "40a00086",
        "784c0001",
        "f6600000",
        "03014048",
        "1904c000",
        "43a00000",
        "0004c000",
    ]
    assert [f"{word:08x}" for word in filled[1]] == [
        "40a0001d",
        "792c0001",
        "f6600000",
        "03015000",
        "19050000",
        "43a00000",
        "00050000",
    ]


@given(st.integers(0, 2**32))
def test_every_operand_of_every_form_can_be_a_slot(seed: int) -> None:
    source = random.Random(seed)
    form = source.choice(instruction_table().rows)
    operands = (*form.operands, *form.payload)
    slots = tuple(Slot(operand.name) for operand in operands)
    instruction = Instruction(form=form, operands=slots, mode=form.modes[0])
    section = Section(name=".text", kind=SectionKind.CODE, items=(instruction,))
    template = prepare(Program(sections=(section,))) if form.mnemonic != "rpt" else None
    if template is None:
        return
    instances = [tuple(legal(operand, source) for operand in operands) for _ in range(5)]
    columns = {
        operand.name: np.array([values[index] for values in instances])
        for index, operand in enumerate(operands)
    }
    filled = template.fill(columns, len(instances))
    for words, values in zip(filled, instances, strict=True):
        first = len(form.operands)
        expected = [encode(form, values[:first])]
        if form.payload:
            expected.append(encode_payload(form, values[first:]))
        assert words.tolist() == expected


def test_an_instance_equals_its_own_assembly() -> None:
    text = "{{ ld32 $m0, $m1, $m15, {offset} ; setzi $a0, {value} }}\nadd $m0, $m1, {value}"
    template = prepare(parse(text.format(offset="?offset", value="?value")))
    (words,) = template.fill({"offset": 17, "value": 99}, 1)
    alone = assemble(parse(text.format(offset=17, value=99), mode=Mode.WORKER), "t").sections[0].content
    assert words.astype("<u4").tobytes() == alone


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (
            {"wait": np.array([0, 1, 524288])},
            "slot wait, instance 2: operand events_minus_1 must be in 0..524287, not 524288",
        ),
        ({"wait": -1}, "slot wait, instance 0: operand events_minus_1 must be in 0..524287, not -1"),
        ({}, "the template has the slots wait; wait does not match"),
        ({"wait": 1, "more": 1}, "the template has the slots wait; more does not match"),
    ],
)
def test_values_are_checked(columns: dict[str, int], reason: str) -> None:
    template = prepare(parse(".supervisor\ndelay ?wait"))
    with pytest.raises(ValueError, match=reason):
        template.fill(columns, 3)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("setzi $m0, symbol", "a template has no symbols, and this one needs symbol"),
        ("nop\n.data\n.word 1", "a template has one section, not 2"),
        (".data\n.byte 1", "a template is a number of words, not 1 bytes"),
        (".data\n.half ?x, 1", "slot x in data is no aligned word"),
    ],
)
def test_what_cannot_be_a_template(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        prepare(parse(text))


@pytest.mark.parametrize(
    ("text", "good", "bad", "rule"),
    [
        ("bri ?at", 0x4C004, 0x4C002, "operand target must be a multiple of 4 in 0..0x1ffffc, not 0x4c002"),
        ("or.high $m0, $m1, ?at", 0x300000, 0x300001, "operand immediate must be a multiple of 0x100000"),
    ],
)
def test_values_are_multiples_of_what_is_stored(text: str, good: int, bad: int, rule: str) -> None:
    template = prepare(parse(text))
    assert template.fill({"at": good}, 1).tolist() == [
        np.frombuffer(
            assemble(parse(".byte_branches\n" + text.replace("?at", hex(good))), "t").sections[0].content,
            "<u4",
        ).tolist()
    ]
    with pytest.raises(ValueError, match=f"slot at, instance 1: {rule}"):
        template.fill({"at": np.array([good, bad])}, 2)
