"""Files of known encodings: which lines count, what agrees, and what is malformed."""

import json
from pathlib import Path

import pytest

from compiler.errors import InvalidInput
from compiler.isa.disassembler import disassemble
from compiler.isa.program import Instruction, Program
from compiler.isa.vectors import check_vectors, read_vectors
from compiler.target.instructions import instruction_table

NOP = "0000e019"


def line(asm: str, mode: str | None, content: str | None, **others: object) -> str:
    return json.dumps(
        {"asm": asm, **({} if mode is None else {"mode": mode}), "bytes_hex_le": content} | others
    )


def reasons(text: str) -> list[str]:
    return [str(disagreement) for disagreement in check_vectors(read_vectors(text, "v"))]


@pytest.mark.parametrize(
    "text",
    [
        line("nop", "worker", NOP),
        line("nop", None, NOP),
        line("nop", "Worker ", NOP),
        line("nop", "both", NOP.upper()),
        line("sync 3", "?", "03008041"),
        line("f32add $a0, $azero, $a1", "?", "00 10 f0 58"),
        line("nop", "worker", NOP, arch="ipu1", source="s", note="n", also=["a", "b"], expect=None),
        line("nop // the usual padding", "worker", NOP),
        line("start: nop", "worker", NOP),
        line("nop\nfnop", "worker", NOP + "0000d01a"),
        line("{ add $m1, $m2, $m3\n f32add $a0, $a1, $a2 }", "worker", "113020c4002010d8"),
        line("{ rpt 5, 3 ; fnop }", "worker", "030500c00000d09a"),
        line("rpt $m1, 255", "worker", "ffa01043"),
        line("sendpicp 51, 0, 0, 0", "supervisor", "000060f600500903"),
        line("sendpicp 51, 0, 0, 0, 194, 0x15000", "?", "000060f600500903"),
        line(".byte 0, 1, 0x10, 0xcc, 0xff", "?", "000110ccff"),
        line(".half 0, 1, 0x45", "?", "000001004500"),
        line("x", "worker", "10f0205f", expect="reject"),
        line("x", "worker", "0000e099", expect="Reject"),
        line("add $m0", "worker", None, expect="reject"),
        "\ufeff" + line("nop", "worker", NOP),
        line("nop", "worker", NOP) + "\r\n\r\n",
        "# comment\n\n  // another\n  " + line("nop", "worker", NOP),
        json.dumps({"asm": "nop", "note": "a\u2028b\x85c", "bytes_hex_le": NOP}, ensure_ascii=False),
    ],
)
def test_what_agrees(text: str) -> None:
    assert reasons(text) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line("nop", "worker", "0000d01a"), "v:1: nop: assembles to 0000e019, not 0000d01a (worker)"),
        (line("", "worker", NOP), "v:1: : does not assemble: it has 0 sections, not one with code (worker)"),
        (
            line(".data\n.text\nnop", "worker", NOP),
            r"v:1: .data\n.text\nnop: does not assemble: it has 2 sections, not one with code (worker)",
        ),
        (
            line("nop \ud800", "worker", NOP),
            r"v:1: nop \ud800: does not assemble: '\ud800' begins no word of assembly text (worker)",
        ),
        (
            line("x", None, "0010f058", expect="reject"),  # no supervisor knows it, but a worker does
            "v:1: x: should be refused and decodes to f32add $a0, $a15, $a1 (worker)",
        ),
        (line("x", "worker", NOP, expect="reject"), "v:1: x: should be refused and decodes to nop (worker)"),
        (
            line("nop", "worker", "", expect="reject"),
            "v:1: nop: the text should be refused and assembles (worker)",
        ),
        (
            line("bri target", "worker", "00008040"),
            "v:1: bri target: does not assemble: its symbols are not defined (worker)",
        ),
        (line("setzi $m0, " + "9" * 5000, "worker", NOP), "does not assemble: a number has at most 64 bits"),
    ],
)
def test_what_disagrees(text: str, reason: str) -> None:
    found = reasons(text)
    assert len(found) == 1
    assert reason in found[0]


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "null",
        "nop",
        '{"asm": 5, "bytes_hex_le": ""}',
        '{"bytes_hex_le": "0000e019"}',
        '{"asm": "nop"}',
        '{"asm": "nop", "bytes_hex_le": 19}',
        '{"asm": "nop", "bytes_hex_le": "0000e01"}',
        '{"asm": "nop", "bytes_hex_le": "0000e01g"}',
        '{"asm": "x", "bytes_hex_le": "10f020", "expect": "reject"}',
        '{"asm": "nop", "x": ' + "9" * 5000 + "}",
        '{"asm":' * 100_000,
        "",
        "# nothing else",
    ],
)
def test_what_is_no_vector(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_vectors(text, "v")


def test_text_that_prints_with_another_meaning_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(_: Program) -> str:
        return "fnop\n"

    monkeypatch.setattr("compiler.isa.vectors.print_program", wrong)
    assert reasons(line("nop", "worker", NOP)) == [
        r"v:1: nop: prints as text with another meaning: 'fnop\n' (worker)"
    ]


def test_every_form_against_words_of_another_encoder() -> None:
    """One instance of each of the 368 forms; its words are from an encoder that shares nothing with ours."""
    source = Path(__file__).parent.parent / "fixtures" / "isa" / "forms.jsonl"
    vectors = read_vectors(source.read_text(encoding="utf-8"), source.name)
    assert check_vectors(vectors) == ()
    forms: set[str] = set()
    for vector in vectors:
        item = next(disassemble(vector.content, vector.modes[0])).item
        assert isinstance(item, Instruction)
        forms.add(str(item.form))
    assert len(forms) == len(vectors) == len(instruction_table().rows) == 368
