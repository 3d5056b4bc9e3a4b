"""``tilewright exchange check-fixtures``: examples hold, every number matters, bad files are explained."""

import argparse
import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from compiler.errors import InvalidInput
from pipeline import cli_exchange
from pipeline.exchange_fixtures.check import CHECKS, check_objects

FOLDER = Path(__file__).parent.parent / "fixtures/exchange/kinds"
FILES = tuple(sorted(FOLDER.glob("*.json")))
EXAMPLES: list[dict[str, Any]] = [
    example for path in FILES for example in cast("list[dict[str, Any]]", json.loads(path.read_text()))
]


def run(path: Path) -> int:
    """The command, as the shell runs it."""
    parser = argparse.ArgumentParser()
    cli_exchange.add_commands(parser)
    parsed = parser.parse_args(["check-fixtures", str(path)])
    return parsed.run(parsed)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_examples_hold(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Literal vendor rows are contract (TE-07)."""
    assert run(path) == 0
    count = len(json.loads(path.read_text()))
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"{count} of {count} examples agree, 0 wrong, 0 of unknown kind, 0 unknown keys"


def test_every_kind_has_an_example() -> None:
    assert {example["kind"] for example in EXAMPLES} == set(CHECKS)


def leaves(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Paths to everything in an example that is not a text for readers."""
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            if key not in ("kind", "about"):
                yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from leaves(inner, (*path, index))
    else:
        yield path


def altered(value: object) -> object:
    """Another value of the same form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 3
    text = cast("str", value)
    if text.startswith("0x"):
        return hex(int(text, 16) + 64)
    if len(text) == 8 and all(digit in "0123456789abcdef" for digit in text):
        return f"{int(text, 16) ^ 0x10008:08x}"
    return text + "1"


def changed(example: dict[str, Any], path: tuple[str | int, ...]) -> dict[str, Any]:
    """A copy with one value altered."""
    result = copy.deepcopy(example)
    inner: Any = result
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = altered(inner[path[-1]])
    return result


CASES = [(index, path) for index, example in enumerate(EXAMPLES) for path in leaves(example)]
TRUE_ANYWAY: dict[tuple[str, tuple[str | int, ...]], str] = {
    ("point_to_point", ("dst",)): "a tile of the same row with the same time to the source",
    ("multicast", ("sender", 2)): "where the data are read is not stated: the base register is set to suit",
    ("decode_row", ("words", 2)): "the item of a sendpicp that sends nothing",
    ("decode_row", ("words", 4)): "the item of a sendpicp that sends nothing",
    ("decode_row", ("words", 6)): "the item of a sendpicp that sends nothing",
    ("decode_row", ("words", 8)): "the item of a sendpicp that sends nothing",
    ("phase", ("tiles", 1, "words", 2)): "the item of a sendpicp that sends nothing",
    ("phase", ("tiles", 1, "words", 4)): "the item of a sendpicp that sends nothing",
    ("f143", ("encode", 2, 0)): "both saturate",
    ("mixed_boundary", ("transfers", 0, "receivers", 0, "addr")): "the phase is at fault wherever data go",
    ("mixed_boundary", ("transfers", 1, "receivers", 0, "addr")): "the phase is at fault wherever data go",
    ("mixed_boundary", ("transfers", 1, "receivers", 1, "addr")): "the phase is at fault wherever data go",
    ("route_digest", ("parts", 1, "destinations", "stop")): "the step leads past both ends",
}
"""Alterations after which an example still holds, and why."""


@pytest.mark.parametrize("part", range(8))
def test_every_number_matters(part: int) -> None:
    """Altering any stated value is noticed: nothing in an example goes unchecked."""
    unnoticed: list[str] = []
    for index, path in CASES[part::8]:
        (checked,) = check_objects([changed(EXAMPLES[index], path)])
        is_noticed = checked.findings.wrong or checked.findings.unknown
        if not is_noticed and (checked.kind, path) not in TRUE_ANYWAY:
            unnoticed.append(f"example {index} ({checked.kind}): {path}")
    assert unnoticed == []


def test_unknown_kinds_and_keys_are_named_and_the_rest_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "examples.jsonl"
    lines: list[dict[str, object]] = [
        {"kind": "unheard_of", "x": 1},
        {"kind": "host_mux", "pairs": [[116, "0x634"]], "colour": 3},
        {"kind": "routes", "routes": [{"src": 0, "dst": 1, "T": -28, "speed": 9}]},
        {"no kind": 1},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run(path) == 0
    assert capsys.readouterr().out == (
        "1 unheard_of: unknown kind\n"
        "2 host_mux: 1 facts agree\n"
        "  unknown key: colour\n"
        "3 routes: 1 facts agree\n"
        "  unknown key: routes[0].speed\n"
        "4 None: unknown kind\n"
        "2 of 4 examples agree, 0 wrong, 2 of unknown kind, 2 unknown keys\n"
    )


def test_disagreements_are_shown_with_both_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "examples.json"
    routes = [{"src": 0, "dst": 1, "D": 2, "T": -27}, {"src": 0, "dst": 2000, "T": 1}]
    path.write_text(json.dumps([{"kind": "routes", "routes": routes}]))
    assert run(path) == 1
    assert capsys.readouterr().out == (
        "1 routes: 1 facts agree, 2 wrong\n"
        "  wrong: routes[0].T: stated -27, ours -28\n"
        "  wrong: routes[1].dst: logical tile 2000 is outside 0..1471\n"
        "0 of 1 examples agree, 1 wrong, 0 of unknown kind, 0 unknown keys\n"
    )


NO_TILES: list[int] = []
MUX = {"kind": "host_mux", "pairs": [[116, "0x634"]]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(MUX),
        json.dumps([MUX]),
        json.dumps(MUX) + "\n" + json.dumps(MUX),
        f"# Heading\n\ntext\n\n```json\n{json.dumps(MUX, indent=1)}\n```\n\nmore\n",
    ],
)
def test_forms_of_files(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "examples"
    path.write_text(text)
    assert run(path) == 0
    assert "1 host_mux: 1 facts agree" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON, line 1: Expecting value"),
        ("[]", "holds no example"),
        ("[1]", "value 1 is not an object"),
        (
            "```json\n{\n```\n",
            "block 1 is no JSON, line 2 of it: Expecting property name enclosed in double quotes",
        ),
        ('{"kind": 1}\n{"kind"\n', "line 2 is no JSON, line 1 of it: Expecting ':' delimiter"),
        ("[" * 100_000, "is nested too deeply"),
        ('[{"kind": ' + "9" * 5000 + "}]", "holds a number of too many digits"),
        (
            '{"kind": 1}\n{"kind": ' + "9" * 5000 + "}\n",
            "line 2 holds a number of too many digits",
        ),
    ],
)
def test_files_that_are_no_examples(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "examples.md"
    path.write_text(text)
    with pytest.raises(InvalidInput) as refused:
        run(path)
    assert str(refused.value) == (
        f"invalid input (exchange check-fixtures): examples.md: {message}.\n"
        "  next: give Markdown with json blocks, a JSON object, a list of objects, or one object a line"
    )


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file or directory"):
        run(tmp_path / "absent.md")


@pytest.mark.parametrize(
    ("example", "line"),
    [
        ({"kind": "host_mux"}, "pairs: is missing"),
        ({"kind": "host_mux", "pairs": 3}, "pairs: must be a list"),
        ({"kind": "host_mux", "pairs": [[1, 2, 3]]}, "pairs: must be a list of pairs"),
        ({"kind": "routes", "routes": [3]}, "routes[0]: must be an object"),
        (
            {"kind": "routes", "routes": [{"src": "x", "dst": 0}]},
            "routes[0].src: x is not a whole number of up to 48 bits",
        ),
        ({"kind": "routes", "routes": []}, "states nothing that can be checked"),
        (
            {"kind": "xreq", "cases": [{"phys": NO_TILES}]},
            "cases[0].phys: must have at least 1 of them, not 0",
        ),
        (
            {"kind": "paired_plans", "plans": [{"src": 0, "pair": [2]}]},
            "plans[0].pair: must have at least 2 of them, not 1",
        ),
        ({"kind": "paired", "src": 0, "dsts": NO_TILES}, "dsts: must have at least 1 of them, not 0"),
        (
            {"kind": "decode_row", "words": ["12345678"]},
            "words: row word 0 (12345678): is no instruction of a row",
        ),
        (
            {"kind": "decode_row", "words": [5]},
            "words: 5 is not a word of up to 8 hexadecimal digits",
        ),
    ],
)
def test_malformed_objects(example: dict[str, object], line: str) -> None:
    (checked,) = check_objects([example])
    assert checked.findings.wrong == [line]
