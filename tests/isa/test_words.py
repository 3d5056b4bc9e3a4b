"""Words that others have fixed: known vectors, supervisor words, exchange rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from compiler.isa.assembler import assemble
from compiler.isa.disassembler import disassemble
from compiler.isa.program import Instruction
from compiler.isa.text import parse
from compiler.isa.vectors import check_vectors, read_vectors
from compiler.target.instructions import Mode

FIXTURES = Path(__file__).parent.parent / "fixtures" / "isa"
ROWS: list[dict[str, Any]] = json.loads((FIXTURES / "exchange_rows.json").read_text())
WORDS: list[tuple[str, str]] = json.loads((FIXTURES / "words.json").read_text())


def _decode(words: list[str]) -> list[Instruction]:
    content = b"".join(int(word, 16).to_bytes(4, "little") for word in words)
    items = [decoded.item for decoded in disassemble(content, Mode.SUPERVISOR)]
    instructions = [item for item in items if isinstance(item, Instruction)]
    assert len(instructions) == len(items)
    return instructions


def _operands(instruction: Instruction) -> tuple[int, ...]:
    return tuple(value for value in instruction.operands if isinstance(value, int))


def test_known_vectors_agree_in_both_directions() -> None:
    vectors = read_vectors((FIXTURES / "vectors.jsonl").read_text(), "vectors")
    assert len(vectors) == 160
    assert sum(vector.is_rejected for vector in vectors) == 9
    assert [str(disagreement) for disagreement in check_vectors(vectors)] == []


@pytest.mark.parametrize("broken", ["4500000d", "4508004c", "4508004d 00"])
def test_a_wrong_vector_is_found(broken: str) -> None:
    line = json.dumps({"asm": "ld128 $a4:7, $m0, $m0, $m0", "mode": "worker", "bytes_hex_le": broken})
    assert len(check_vectors(read_vectors(line, "v"))) == 1


def test_a_word_that_should_be_refused_and_decodes_is_found() -> None:
    line = json.dumps({"asm": "-", "mode": "worker", "bytes_hex_le": "00000019", "expect": "reject"})
    (found,) = check_vectors(read_vectors(line, "v"))
    assert str(found) == "v:1: -: should be refused and decodes to setzi $m0, 0 (worker)"


def test_text_that_should_be_refused() -> None:
    lines = [
        json.dumps({"asm": "setzi $a0, 1.0", "mode": "worker", "expect": "reject"}),
        json.dumps({"asm": "setzi $a0, 1.0h", "mode": "worker", "expect": "reject"}),
    ]
    (found,) = check_vectors(read_vectors("\n".join(lines), "v"))
    assert found.vector.place == "v:2"


@pytest.mark.parametrize(("text", "word"), WORDS)
def test_supervisor_and_exchange_words(text: str, word: str) -> None:
    program = parse(text, mode=Mode.SUPERVISOR, byte_branches=True)
    content = assemble(program, "t").sections[0].content
    assert content[::-1].hex() == word
    assert _decode([word]) == list(program.sections[0].items)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
def test_exchange_rows_mean_what_they_are_described_as(row: dict[str, Any]) -> None:
    """A slow reading of a row, event by event, against its description."""
    event = 0
    controls: list[tuple[int, str, Any]] = []
    sends: list[tuple[int, int, int, int]] = []

    def send(words: int, item: int | None, control: int) -> None:
        nonlocal event
        if item is not None:
            sends.append((event, words, item, control))
        else:
            start, before, first, kept = sends[-1]
            assert start + before == event
            sends[-1] = (start, before + words, first, control or kept)
        event += words

    for instruction in _decode(row["words"]):
        values = _operands(instruction)
        match instruction.form.mnemonic:
            case "sync":
                assert (values, event) == ((3,), 0)
            case "delay":
                event += values[0] + 1
            case "delaypic" | "delayxpic":
                event += values[0] + 1
                kind = "PIC" if instruction.form.mnemonic == "delaypic" else "XPIC"
                controls.append((event, f"{kind}{values[1]}", values[2]))
            case "send":
                send(values[0] + 1, values[1], values[2])
            case "sendoff":
                send(values[0] + 1, None, values[2])
            case "sendpic":
                kind = "PIC" if values[1] & 2 else "XPIC"
                controls.append((event + 1, f"{kind}{values[1] & 1}", values[2]))
                send(values[0] + 1, None, 0) if sends and row["sends"] else None
            case "sendpicp":
                words, item, control, selector, xpic, pic = values
                controls += [(event + 1, "XPIC0", xpic), (event + 1, f"PIC{selector}", pic)]
                if row["sends"]:
                    assert item or control
                    send(words + 1, None, control)
                else:
                    event += words + 1
            case "put":
                event += 13
                controls.append((event, "BASE", f"m{values[1]}"))
            case name:
                assert (name, values) == ("br", (10,))
    expected = [(at, name, value) for at, name, value in row["controls"]]
    found = [(at, name, None if (at, name, None) in expected else value) for at, name, value in controls]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sends == [tuple(sent) for sent in row["sends"]]
    assert event == row["horizon"]
