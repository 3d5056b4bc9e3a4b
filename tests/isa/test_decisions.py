"""Decisions where no source states the fact, and files that override them."""

from dataclasses import replace

import pytest

from compiler.errors import InvalidInput
from compiler.isa.assembler import assemble
from compiler.isa.text import parse
from compiler.target.isa_decisions import Decision, Decisions, our_decisions, read_overrides


def test_every_decision_says_what_and_why() -> None:
    rows = our_decisions().rows
    assert all(row.statement and row.reason for row in rows)
    assert not any(row.overridden for row in rows)
    assert all(row.value is not None for row in rows if row.may_override)


def test_flags_follow_the_stated_layout() -> None:
    """Phase in the low bits, engines in the next two: one rule for all matrix flags."""
    engines = {"E4": 0, "E2": 1, "E1": 2}
    constants = our_decisions().constants
    flags = [name for name in constants if name.startswith("TAMP_")]
    assert len(flags) == 7 + 13 + 4
    for name in flags:
        _, _, engine, phase = name.split("_")
        assert constants[name] == engines[engine] << 3 | int(phase.removeprefix("P"))


def test_overrides_change_values_digest_and_machine_code() -> None:
    ours = our_decisions()
    changed = read_overrides(
        "# the vendor's\n\nTAMP_F16V4_E4_P0 = 0x30 # first\nTAMP_F16V4_E4_P1 = 49\n", "file"
    )
    assert changed.overridden == {"TAMP_F16V4_E4_P0": 48, "TAMP_F16V4_E4_P1": 49}
    assert ours.overridden == {}
    assert changed.digest != ours.digest
    assert len(ours.digest) == 64
    text = "f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P0"
    words = [
        assemble(parse(text, constants=decisions.constants), "t").sections[0].content.hex()
        for decisions in (ours, changed)
    ]
    assert words == ["4027405b", "7027405b"]


def test_an_empty_file_changes_nothing() -> None:
    assert read_overrides("", "file") == our_decisions()


def test_decisions_are_consistent() -> None:
    row = Decision(name="A", value=1, highest=7, may_override=True, group="G", statement="s", reason="r")
    with pytest.raises(ValueError, match="listed twice"):
        Decisions(rows=(row, row))
    with pytest.raises(ValueError, match=r"8 is not in 0\.\.7"):
        replace(row, value=8)
    with pytest.raises(ValueError, match="have a largest value"):
        replace(row, highest=None)


def test_every_number_has_the_limit_of_its_field() -> None:
    """Flags have the width of their operands, positions leave room for the field in a register of 32 bits."""
    flags = {"TAMP": 63, "TSLIC": 63, "TISTACC": 63, "TSTACC": 255, "TFPU": 7}
    for row in our_decisions().rows:
        if row.value is None:
            assert row.highest is None
        elif row.group == "FP_NFMT":
            assert row.highest == 31
        elif row.group == "FP_SCL":
            assert row.highest == 32 - 6
        else:
            assert row.highest == flags[row.name.split("_")[0]]


@pytest.mark.parametrize(
    "line",
    [
        "TISTACC_P0 = -1",
        "TISTACC_P0 = 010",
        "TISTACC_P0 = 1_0",
        "TISTACC_P0 = \u0663",
        "TISTACC_P0 = 3\u2028TISTACC_P1 = 4",
        "TISTACC_P0 = 1.0",
        "TISTACC_P0 == 3",
        "TISTACC_P0 = " + "9" * 5000,
        "FP_SCL_SCALE = 27",
        "istacc_p0 = 3",
        "amp-queues = 3",
    ],
)
def test_lines_that_are_refused(line: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_overrides(f"# ours\n{line}\n", "file")
    assert refused.value.subject == "file:2"


@pytest.mark.parametrize(
    "text", ["\ufeffTISTACC_P0 = 0x21\r\n", "  TISTACC_P0=33#x", "\n\nTISTACC_P0 = 0b100001"]
)
def test_spellings_of_a_number(text: str) -> None:
    assert read_overrides(text, "file").overridden == {"TISTACC_P0": 33}
