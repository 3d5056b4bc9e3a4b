"""The instruction table: guarantees checked on load, and every form encodes and decodes."""

import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.isa.assembler import assemble
from compiler.isa.disassembler import disassemble
from compiler.isa.printing import print_instruction, print_program
from compiler.isa.program import Bundle, Data, Instruction, Permission, Program, Section, SectionKind
from compiler.isa.text import parse
from compiler.target.instructions import (
    COISSUE_BIT,
    Group,
    InstructionForm,
    Lane,
    Mode,
    Operand,
    OperandKind,
    Standing,
    encode,
    encode_payload,
    extract,
    instruction_table,
    parse_table,
)

TABLE = instruction_table()
HEADER = "mnemonic,operands,layout,payload,mode,lane,group,scale,region,relocation,generation,standing,note\n"
LENIENT = (Permission.INVALID_REPEAT, Permission.INVALID_OPERANDS, Permission.INVALID_BUNDLES)
seeds = st.integers(0, 2**32)


def row(
    operands: str = "destination=m/w immediate=u20",
    layout: str = "coissue 0011001 destination[3:0] immediate[19:0]",
    *,
    mnemonic: str = "setzi",
    mode: str = "both",
    payload: str = "",
) -> str:
    """One row of a table."""
    return f"{mnemonic},{operands},{layout},{payload},{mode},main,plain,,,,ipu1,public,\n"


def legal(operand: Operand, source: random.Random) -> int:
    """A random value that the operand accepts, extremes more often."""
    values = range(operand.lowest, operand.highest + 1, operand.step)
    return source.choice((values[0], values[-1], source.choice(values), source.choice(values)))


def legal_operands(operands: tuple[Operand, ...], source: random.Random) -> tuple[int, ...]:
    return tuple(legal(operand, source) for operand in operands)


def illegal_values(operand: Operand) -> Iterator[int]:
    """Values just outside the range and, where there is an alignment, between legal ones."""
    yield operand.lowest - operand.step
    yield operand.highest + operand.step
    if operand.step > 1:
        yield operand.lowest + 1
        yield operand.highest - 1


def slow_word(form: InstructionForm, operands: tuple[int, ...]) -> int:
    """The word bit by bit, from the meaning of the fields."""
    word = form.fixed_bits
    for field in form.fields:
        for bit in range(field.width):
            stored = operands[field.operand] >> form.operands[field.operand].shift
            word |= (stored >> (field.operand_low + bit) & 1) << (field.low + bit)
    return word


def test_size_of_the_table() -> None:
    assert len(TABLE.rows) == 368
    assert len(TABLE.mnemonics) == 251
    assert len([form for form in TABLE.rows if form.standing is Standing.THIRD_PARTY]) == 9
    assert {form.mnemonic for form in TABLE.rows if form.group is Group.EXCHANGE} == {
        *("sync", "sans", "delay", "send", "sendoff", "sendpic", "sendpicp", "delaypic", "delayxpic")
    }


def test_digest_depends_on_facts_and_not_on_notes() -> None:
    digest = parse_table(HEADER + row()).digest
    assert parse_table(HEADER + row().replace("public,", "public,remark")).digest == digest
    assert parse_table(HEADER + row(mode="worker")).digest != digest
    assert len(TABLE.digest) == 64


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (row(layout="coissue 0011001 destination[3:0] immediate[18:0]"), "describes 31 bits"),
        (
            row(layout="coissue 0011001 destination[3:0] 0 immediate[18:0]"),
            "immediate is not stored completely",
        ),
        (
            row(layout="coissue 0011001 destination[3:0] immediate[9:0] immediate[9:0]"),
            "immediate stores a bit twice",
        ),
        (row(layout="0 coissue 001100 destination[3:0] immediate[19:0]"), "the co-issue bit is bit 31"),
        (row() + row(mnemonic="other"), "other m, u20 and setzi m, u20 share a word in worker mode"),
        (row() + row(), "setzi m, u20 appears twice"),
        (row(operands="destination=m immediate=u20"), "registers, and only they, say whether"),
        (
            row(
                operands="immediate=m/w immediate=u20",
                layout="coissue 0011001 immediate[3:0] immediate[19:0]",
            ),
            "two operands have one name",
        ),
        (row(operands="target=m/w immediate=u20"), "places an unknown operand destination"),
        (row(operands="destination=m3/w immediate=u20"), "groups have 1, 2 or 4 registers"),
        (row(operands="destination:m immediate=u20"), "is not an operand"),
        (row(payload="high[15:0]"), "describes 16 bits"),
    ],
)
def test_a_wrong_table_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_table(HEADER + text)


def test_forms_of_different_modes_may_share_words() -> None:
    table = parse_table(HEADER + row(mode="worker") + row(mode="supervisor", mnemonic="other"))
    word = encode(table.forms("setzi")[0], (3, 5))
    worker, supervisor = table.decode(word, Mode.WORKER), table.decode(word, Mode.SUPERVISOR)
    assert worker is not None
    assert supervisor is not None
    assert (worker[0].mnemonic, supervisor[0].mnemonic) == ("setzi", "other")


def test_look_up_of_forms() -> None:
    assert str(TABLE.form("ld32", ("m", "m", "m", "u12"))) == "ld32 m, m, m, u12"
    assert TABLE.forms("nothing") == ()
    with pytest.raises(ValueError, match="no instruction ld32 m, m"):
        TABLE.form("ld32", ("m", "m"))


@settings(max_examples=10)
@given(seeds)
def test_every_form_encodes_and_decodes(seed: int) -> None:
    source = random.Random(seed)
    for form in TABLE.rows:
        operands = legal_operands(form.operands, source)
        for mode in Mode:
            for coissue in (False, True):
                if coissue and not form.can_coissue:
                    continue
                word = encode(form, operands, coissue=coissue)
                assert word & ~COISSUE_BIT == slow_word(form, operands) & ~COISSUE_BIT
                found = TABLE.decode(word, mode, coissue=coissue)
                reachable = mode in form.modes and not (coissue and mode is Mode.SUPERVISOR)
                assert found == ((form, operands) if reachable else None) or (
                    not reachable and found is not None and found[0] is not form
                )
        if form.payload:
            values = legal_operands(form.payload, source)
            assert extract(form.payload, form.payload_fields, encode_payload(form, values)) == values


def test_every_operand_refuses_what_it_cannot_hold() -> None:
    source = random.Random(1)
    for form in TABLE.rows:
        operands = legal_operands(form.operands, source)
        for index, operand in enumerate(form.operands):
            for value in illegal_values(operand):
                wrong = (*operands[:index], value, *operands[index + 1 :])
                named = rf"^{form.mnemonic}: operand {operand.name} must be .*, not {operand.shown(value)}$"
                with pytest.raises(ValueError, match=named):
                    encode(form, wrong)


def test_bundles_and_number_of_operands() -> None:
    form = TABLE.form("run", ("m", "m", "u16"))
    with pytest.raises(ValueError, match="run cannot be part of a bundle"):
        encode(form, (0, 0, 0), coissue=True)
    with pytest.raises(ValueError, match="run takes 3 operands, not 2"):
        encode(form, (0, 0))
    with pytest.raises(ValueError, match="run has no second word"):
        encode_payload(form, ())


@settings(max_examples=20)
@given(seeds)
def test_every_word_decodes_to_what_encodes_to_it_or_is_rejected(seed: int) -> None:
    """Half of the words are random, half are random forms with random operand bits."""
    source = random.Random(seed)
    for _ in range(400):
        word = source.getrandbits(32)
        if source.random() < 0.5:
            form = source.choice(TABLE.rows)
            word = word & ~form.fixed_mask | form.fixed_bits
        for mode in Mode:
            coissue = bool(word & COISSUE_BIT) and mode is Mode.WORKER
            found = TABLE.decode(word, mode, coissue=coissue)
            if found is not None:
                assert encode(*found, coissue=coissue) == word
                assert mode in found[0].modes
            else:
                assert not any(_slow_match(form, word, mode) for form in TABLE.rows)


def _slow_match(form: InstructionForm, word: int, mode: Mode) -> bool:
    """Whether a word is an instance of a form, by looking at every form and operand."""
    if mode not in form.modes or (word & COISSUE_BIT and form.can_coissue and mode is Mode.SUPERVISOR):
        return False
    if word & COISSUE_BIT and not form.can_coissue and not form.fixed_bits & COISSUE_BIT:
        return False
    if word & form.fixed_mask != form.fixed_bits:
        return False
    stored = [0] * len(form.operands)
    for field in form.fields:
        stored[field.operand] |= (word >> field.low & ((1 << field.width) - 1)) << field.operand_low
    return all(value % operand.count == 0 for value, operand in zip(stored, form.operands, strict=True))


@settings(max_examples=10)
@given(seeds)
def test_every_form_prints_as_text_that_reads_back(seed: int) -> None:
    source = random.Random(seed)
    for mode in Mode:
        items = tuple(
            Instruction(
                form=form, operands=legal_operands((*form.operands, *form.payload), source), mode=mode
            )
            for form in TABLE.rows
            if mode in form.modes
        )
        # The instruction with a payload must lie at a multiple of 8: it comes first.
        items = tuple(sorted(items, key=lambda item: not item.form.payload))
        section = Section(name=".text.all", kind=SectionKind.CODE, items=items)
        program = Program(sections=(section,), permissions=LENIENT[:2])
        assert parse(print_program(program)) == program
        content = assemble(program, "all").sections[0].content
        assert tuple(decoded.item for decoded in disassemble(content, mode)) == items


@settings(max_examples=20)
@given(seeds)
def test_bundles_assemble_and_disassemble(seed: int) -> None:
    source = random.Random(seed)
    halves = {
        lane: [
            form
            for form in TABLE.rows
            if form.lane is lane and form.can_coissue and Mode.WORKER in form.modes
        ]
        for lane in Lane
    }
    items = tuple(
        Bundle(
            main=Instruction(form=main, operands=legal_operands(main.operands, source), mode=Mode.WORKER),
            aux=Instruction(form=aux, operands=legal_operands(aux.operands, source), mode=Mode.WORKER),
        )
        for main, aux in zip(
            source.choices(halves[Lane.MAIN], k=50), source.choices(halves[Lane.AUX], k=50), strict=True
        )
    )
    section = Section(name=".text", kind=SectionKind.CODE, items=items)
    program = Program(sections=(section,), permissions=LENIENT)
    assert parse(print_program(program)) == program
    content = assemble(program, "bundles").sections[0].content
    assert tuple(decoded.item for decoded in disassemble(content, Mode.WORKER)) == items
    assert all(not isinstance(decoded.item, Bundle) for decoded in disassemble(content, Mode.SUPERVISOR))


def test_printed_forms_are_the_usual_ones() -> None:
    def printed(mnemonic: str, tokens: tuple[str, ...], operands: tuple[int, ...]) -> str:
        form = TABLE.form(mnemonic, tokens)
        return print_instruction(Instruction(form=form, operands=operands, mode=form.modes[0]))

    assert printed("setzi", ("m", "u20"), (14, 0)) == "nop"
    assert printed("setzi", ("a", "u20"), (13, 0)) == "fnop"
    assert printed("movz", ("m", "m", "m"), (1, 2, 3)) == "movnz $m1, $m2, $m3"
    assert printed("or", ("m", "m", "u12"), (1, 2, 0)) == "mov $m1, $m2"
    assert printed("or", ("a", "a", "a"), (1, 15, 15)) == "zero $a1"
    assert printed("or", ("m", "m", "high12"), (1, 2, 0)) == "or.high $m1, $m2, 0"
    assert printed("add", ("m", "m", "u16"), (1, 2, 3)) == "addz $m1, $m2, 3"
    assert printed("add", ("m", "m", "u16"), (1, 2, 40000)) == "add $m1, $m2, 0x9c40"
    assert printed("uget", ("a", "u8"), (1, 2)) == "uget $a1, $FP_CTL"
    assert printed("bri", ("target19",), (0x4C100,)) == "bri 0x4c100"


def test_rest_of_a_word_stays_data() -> None:
    items = [decoded.item for decoded in disassemble(bytes(7), Mode.SUPERVISOR)]
    assert items == [
        Data(width=4, values=(0,)),
        Data(width=2, values=(0,)),
        Data(width=1, values=(0,)),
    ]


def test_kinds_cover_the_table() -> None:
    used = {operand.kind for form in TABLE.rows for operand in form.operands}
    assert used == set(OperandKind)


def test_bundles_begin_at_multiples_of_8() -> None:
    """The same words are a bundle at one address and plain numbers four bytes on."""
    content = bytes.fromhex("0000e0990000d09a")
    assert [type(decoded.item) for decoded in disassemble(content, Mode.WORKER, 0x4C008)] == [Bundle]
    assert [type(decoded.item) for decoded in disassemble(content, Mode.WORKER, 0x4C00C)] == [Data, Data]
    payload = bytes.fromhex("000060f600500903")
    assert [type(decoded.item) for decoded in disassemble(payload, Mode.SUPERVISOR, 8)] == [Instruction]
    assert [type(decoded.item) for decoded in disassemble(payload, Mode.SUPERVISOR, 4)] == [Data, Data]
