"""``tilewright accept``: lines are carried out and judged, and every check can fail.

EC-01, CA-06: what a user relies on, of small models; the full-size lines are the same code.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline import acceptance
from pipeline.acceptance import LINES, Cached, Killed, Line, Refused, Runs, Variant
from pipeline.cli import main

SMOKE = Variant(model="mlp-smoke", tiles=16)


def lines(monkeypatch: pytest.MonkeyPatch, *chosen: Line) -> None:
    monkeypatch.setattr(acceptance, "LINES", chosen)


def report(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_packages_that_run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Numbers, repetition, functional simulation, another device, cycles; and one line that asks too much."""
    path = tmp_path / "report.json"
    lines(
        monkeypatch,
        Line(name="smoke", demand=Runs(variant=SMOKE, runs=2, cycles_at_most=20_000, functional=True)),
        Line(name="stochastic", demand=Runs(variant=replace(SMOKE, rounding="stochastic"), again=True)),
        Line(name="too-fast", demand=Runs(variant=SMOKE, runs=2, cycles_at_most=100)),
    )
    assert main(["accept", "--store", str(tmp_path / "store"), "--json", str(path)]) == 1
    told = capsys.readouterr()
    assert told.err == ""
    assert told.out.splitlines()[-1] == "2 of 3 lines hold; failed: too-fast"
    assert told.out.count("  FAIL ") == 1
    found = report(path)["lines"]
    assert [(line["name"], line["passed"]) for line in found] == [
        ("smoke", True),
        ("stochastic", True),
        ("too-fast", False),
    ]
    assert [[check["what"] for check in line["checks"]] for line in found] == [
        [
            "outputs against the reference of the graph",
            "cycles of a run",
            "scheduled cycles against simulated ones",
            "outputs of runs after one upload",
            "outputs of functional simulation",
        ],
        [
            "outputs against the reference of the graph",
            "scheduled cycles against simulated ones",
            "outputs of another device from start-up",
        ],
        [
            "outputs against the reference of the graph",
            "cycles of a run",
            "scheduled cycles against simulated ones",
            "outputs of runs after one upload",
        ],
    ]
    kinds = {figure["name"]: figure["kind"] for figure in found[0]["figures"]}
    assert kinds["roofline"] == "bound"
    assert {figure["kind"] for figure in found[0]["figures"] if figure["name"] == "a run"} == {
        "estimated",
        "scheduled",
        "simulated",
    }
    scheduled = next(
        figure["value"]
        for figure in found[0]["figures"]
        if figure["name"] == "a run" and figure["kind"] == "scheduled"
    )
    parts = found[0]["cycles_by_part"]["parts"]
    assert parts.keys() == {"compute", "exchange", "overhead", "idle"}
    assert abs(sum(parts.values()) - scheduled) < 1


def test_caches_interruptions_and_refusals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "report.json"
    lines(
        monkeypatch,
        Line(name="caches", demand=Cached(variant=SMOKE)),
        Line(name="killed", demand=Killed(variant=SMOKE, results=3)),
        Line(name="refused", demand=Refused(variant=Variant(model="siglip-mlp", tiles=8), seconds=300)),
        Line(name="not refused", demand=Refused(variant=Variant(model="mlp-smoke", tiles=2), seconds=300)),
    )
    assert main(["accept", "--store", str(tmp_path / "store"), "--json", str(path)]) == 1
    told = capsys.readouterr()
    assert told.out.splitlines()[-1] == "3 of 4 lines hold; failed: not refused"
    found = {line["name"]: line for line in report(path)["lines"]}
    figures = {figure["name"]: figure["value"] for figure in found["caches"]["figures"]}
    assert figures["warm, stage: misses"] == figures["warm, schedule: misses"] == 0
    assert figures["warm, stage: hits"] > 0
    assert figures["cold, stage: misses"] == figures["cold, stage: entries"] > 0
    assert figures["cold, fragment: misses"] == figures["cold, fragment: entries"] > 0
    assert figures["cold, stage: retained"] == figures["warm, stage: retained"] > 0
    wrong = [check["what"] for check in found["not refused"]["checks"] if not check["passed"]]
    assert wrong == ["the build", "its message", "files beside the store"]


def test_an_error_fails_its_line_and_no_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines(
        monkeypatch,
        Line(name="attention", demand=Runs(variant=Variant(model="attention-smoke"))),
        Line(name="refused", demand=Refused(variant=Variant(model="siglip-mlp", tiles=8), seconds=300)),
    )
    assert main(["accept", "--store", str(tmp_path / "store")]) == 1
    out = capsys.readouterr().out
    assert "  FAIL the line: unsupported (planner): attention-smoke: " in out
    assert out.splitlines()[-1] == "1 of 2 lines hold; failed: attention"


def test_lines_are_listed_and_chosen(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["accept", "--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == [line.name for line in LINES]
    assert len({line.name for line in LINES}) == len(LINES)
    assert main(["accept", "--list", "--lines", "siglip-mlp-b128,mlp-smoke-16"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert main(["accept", "--list", "--quick"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == sum(line.quick for line in LINES)
    assert main(["accept", "--lines", "nothing"]) == 1
    assert "nothing: there is no line of this name" in capsys.readouterr().err
    assert main(["accept", "--json", str(tmp_path / "no" / "x.json")]) == 1
    assert "the report cannot be written there" in capsys.readouterr().err
