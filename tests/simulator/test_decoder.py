"""The machine's decoder against the instruction table's own, and what it refuses beyond that."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.simulator.decoder import (
    BROADCAST,
    IMMEDIATE,
    OPERATION_MASK,
    PAIRED,
    R0,
    RESULT_WORDS,
    SUPERVISOR_MODE,
    decode_tables,
    decode_word,
)
from compiler.simulator.operations import ILLEGAL, SAME, UNSUPPORTED, operation_of
from compiler.target.instructions import (
    COISSUE_BIT,
    Access,
    InstructionForm,
    Lane,
    Mode,
    Operand,
    OperandKind,
    encode,
    instruction_table,
)
from compiler.target.isa_decisions import our_decisions

TABLES = decode_tables(our_decisions())
ROWS = instruction_table().rows


def decode(word: int, mode: Mode) -> int:
    return decode_word(word, int(mode is Mode.SUPERVISOR), TABLES.forms, TABLES.lookup)


def values_of(operand: Operand) -> st.SearchStrategy[int]:
    """Values that the field can hold and the machine accepts."""
    if operand.kind is OperandKind.ARF:
        # $a8 to $a13 have no storage.
        groups = [first for first in range(0, 16, operand.count) if first < 8 or first >= 14]
        return st.sampled_from(groups)
    if operand.kind is OperandKind.MRF:
        readable = operand.access is Access.READ
        groups = [first for first in range(0, 16, operand.count) if readable or first not in (12, 13)]
        return st.sampled_from(groups)
    if operand.kind is OperandKind.FLAGS:
        return st.just(0)
    return st.integers(operand.lowest // operand.step, operand.highest // operand.step).map(
        lambda value: value * operand.step
    )


@pytest.mark.parametrize("form", ROWS, ids=str)
@settings(max_examples=10)
@given(data=st.data())
def test_every_form_decodes_to_its_operation(form: InstructionForm, data: st.DataObject) -> None:
    operands = [data.draw(values_of(operand)) for operand in form.operands]
    written = [
        value
        for operand, value in zip(form.operands, operands, strict=True)
        if operand.access in (Access.WRITE, Access.READ_WRITE)
    ]
    if len(set(written)) < len(written):
        return  # two results in one register are refused; see below
    if form.mnemonic == "setzi" and form.lane is Lane.AUX and operands[0] >= 8:
        return
    coissue = form.can_coissue and Mode.WORKER in form.modes and data.draw(st.booleans())
    word = encode(form, operands, coissue=coissue)
    for mode in Mode:
        if coissue and mode is Mode.SUPERVISOR:
            continue
        micro = decode(word, mode)
        if mode not in form.modes:
            continue
        overlapping = form.mnemonic == "ldd16a64" or form.mnemonic.endswith("pace")
        if micro & OPERATION_MASK in (ILLEGAL, SAME) and overlapping:
            continue  # groups of different sizes can overlap without being equal
        assert micro & OPERATION_MASK == operation_of(form)
        assert bool(micro & PAIRED) == (coissue or bool(word & COISSUE_BIT))
        assert bool(micro & SUPERVISOR_MODE) == (mode is Mode.SUPERVISOR)
        immediates = [
            value
            for operand, value in zip(form.operands, operands, strict=True)
            if not operand.is_register and operand.kind is not OperandKind.FLAGS
        ]
        if len(immediates) == 1 and operation_of(form) != UNSUPPORTED and not form.payload:
            expected = immediates[0] * (form.scale or 1)
            assert (micro >> IMMEDIATE) & 0xFFFFFFFF == expected & 0xFFFFFFFF
        destinations = [
            (operand, value)
            for operand, value in zip(form.operands, operands, strict=True)
            if operand.name == "destination"
        ]
        if destinations and operation_of(form) != UNSUPPORTED:
            assert (micro >> R0) & 15 == destinations[0][1]
            if form.lane is Lane.AUX:
                assert (micro >> RESULT_WORDS) & 3 == destinations[0][0].count
        suffix = {":BL": 1, ":BU": 2, ":B": 3}
        spread = next((suffix[o.suffix] for o in form.operands if o.suffix in suffix), 0)
        if operation_of(form) != UNSUPPORTED:
            assert (micro >> BROADCAST) & 3 == spread


def test_random_words_decode_when_the_table_decodes_them() -> None:
    """The machine accepts nothing that the table does not know, and refuses little that it does."""
    table = instruction_table()
    random = np.random.default_rng(0)
    refused = known = 0
    for word in random.integers(0, 1 << 32, 40_000, dtype=np.uint64).tolist():
        for mode in Mode:
            if word & COISSUE_BIT and mode is Mode.SUPERVISOR:
                continue
            found = table.decode(word, mode, coissue=bool(word & COISSUE_BIT))
            micro = decode(word, mode)
            if found is None:
                assert micro & OPERATION_MASK == ILLEGAL
                continue
            known += 1
            if micro & OPERATION_MASK in (ILLEGAL, SAME):
                refused += 1
            elif micro & OPERATION_MASK == UNSUPPORTED:
                assert operation_of(found[0]) == UNSUPPORTED or "amp" in found[0].mnemonic
            else:
                assert micro & OPERATION_MASK == operation_of(found[0])
    assert known > 10_000
    assert refused < 0.6 * known


def test_two_results_in_one_register_are_illegal() -> None:
    table = instruction_table()
    step = table.form("ld32step", ["m", "m", "m+=", "s8"])
    for form, operands, legal in (
        (step, [3, 1, 3, 1], False),
        (step, [3, 1, 2, 1], True),
        (step, [15, 1, 15, 1], True),
    ):
        micro = decode(encode(form, operands), Mode.WORKER)
        assert (micro & OPERATION_MASK != ILLEGAL) == legal, operands


@pytest.mark.parametrize(
    ("name", "kinds", "first", "second", "is_same"),
    [
        ("ld2x64pace", "a2", 0, 0, True), ("ld2x64pace", "a2", 0, 2, False),
        ("ld2x64pace", "a2", 14, 14, True), ("ld2x64pace", "a2", 14, 2, False),
        ("ld64a32pace", "a", 2, 3, True), ("ld64a32pace", "a", 2, 4, False),
        ("ld64b16pace", "a", 2, 2, True), ("ld64b16pace", "a", 14, 5, False),
    ],
)  # fmt: skip
def test_destinations_of_two_loads_must_differ(
    name: str, kinds: str, first: int, second: int, is_same: bool
) -> None:
    """One of them may be the zero registers, but not both."""
    form = instruction_table().form(name, ["a2", kinds, "m2+=", "m", "strides4"])
    operation = decode(encode(form, [first, second, 4, 6, 0]), Mode.WORKER) & OPERATION_MASK
    assert operation == (SAME if is_same else operation_of(form))
