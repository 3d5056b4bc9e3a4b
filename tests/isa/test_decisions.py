"""Decisions where no source states the fact, and files that override them."""

import pytest

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
    row = Decision(name="A", value=1, width=3, may_override=True, group="G", statement="s", reason="r")
    with pytest.raises(ValueError, match="listed twice"):
        Decisions(rows=(row, row))
    with pytest.raises(ValueError, match="does not fit 0 bits"):
        Decision(name="A", value=1, width=0, may_override=True, group="G", statement="s", reason="r")
