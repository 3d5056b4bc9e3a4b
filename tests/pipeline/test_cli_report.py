"""``tilewright report``: pages of last builds, and two builds side by side."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compiler.report.build import BuildReport, report_from_json
from compiler.report.comparison import Comparison, Pair
from compiler.report.plain import report_of_json
from pipeline.cli import main
from tests.report.builds import Small, small_builds


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Small, Small]:
    """For four tiles and for two."""
    found = small_builds(tmp_path_factory)
    return found["wide"], found["narrow"]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files go into a folder of the test."""
    monkeypatch.chdir(tmp_path)


def told(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed."""
    assert main(["report", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The message."""
    assert main(["report", *words]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def report_of(small: Small) -> BuildReport:
    """The report that the build left."""
    return report_from_json(small.results["build_report"].value().data)


def test_the_report_of_the_last_build(
    builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is what the stage gave, to the byte; its data are those that explain writes."""
    wide, _ = builds
    store = ["--store", str(wide.root)]
    assert told(["wide", *store], capsys) == "wide: wide.report.html and wide.report.json\n"
    left = wide.results["build_report"].value()
    assert Path("wide.report.html").read_bytes() == left.page
    assert Path("wide.report.json").read_bytes() == left.data
    assert main(["explain", "wide", *store, "--report", "other.json"]) == 0
    capsys.readouterr()
    assert Path("other.json").read_bytes() == left.data


def test_two_builds(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    """Sides by page, data or model; the numbers are those of both reports."""
    wide, narrow = builds
    told(["wide", "--store", str(wide.root), "--output", "one.html"], capsys)
    told(["narrow", "--store", str(narrow.root), "--output", "other.html"], capsys)
    assert told(["diff", "one.html", "other.json"], capsys) == (
        "one.html and other.json: report-diff.html and report-diff.json\n"
    )
    found = report_of_json(Comparison, Path("report-diff.json").read_text())
    before, after = report_of(wide), report_of(narrow)
    runs = [pair for pair in found.headline if pair.what.startswith("cycles of a run")]
    assert runs == [
        Pair(what=f"cycles of a run ({one.kind.value})", unit="cycles", before=one.value, after=other.value)
        for one, other in zip(before.headline.cycles[::-1], after.headline.cycles[::-1], strict=True)
    ]
    assert {pair.node: (pair.before, pair.after) for pair in found.nodes} == {
        node.node: (
            node.share,
            next((other.share for other in after.cycles.nodes if other.node == node.node), None),
        )
        for node in before.cycles.nodes
    }
    assert [pair.before for pair in found.phases if pair.before is not None] == list(before.phases)
    assert [pair.after for pair in found.phases if pair.after is not None] == list(after.phases)
    (tiles,) = [pair for pair in found.options if pair.name == "planning.tiles"]
    assert (tiles.before, tiles.after) == ("4", "2")
    page = Path("report-diff.html").read_text()
    assert "<td>planning.tiles</td><td>4</td><td>2</td>" in page
    told(["diff", "wide", "narrow", "--store", str(wide.root), "--output", "models.html"], capsys)
    named = json.loads(Path("models.json").read_text())
    assert (named["before"], named["after"]) == ("wide", "narrow")
    assert named["headline"] == json.loads(Path("report-diff.json").read_text())["headline"]


def test_what_cannot_be_reported(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(builds[0].root)]
    assert refused(["nothing", *store], capsys) == (
        "invalid input (last build): nothing: the store knows no build of it.\n"
        "  next: build it first: tilewright build nothing\n"
    )
    assert refused(["wide", *store, "--output", "page.txt"], capsys) == (
        "invalid input (report): page.txt: the page needs a name that ends in .html.\n"
        "  next: name a file such as build.html\n"
    )
    assert refused(["wide", *store, "--output", "no/page.html"], capsys) == (
        "invalid input (report): no/page.html: its folder does not exist.\n"
        "  next: name a file in a folder that exists and can be written\n"
    )
    Path("wrong.json").write_text("{}")
    assert refused(["diff", "wrong.json", "wide", *store], capsys).startswith(
        "invalid input (report): wrong.json: the file holds no report: no BuildReport: "
    )
    assert refused(["diff", "gone.html", "wide", *store], capsys).startswith(
        "invalid input (report): gone.json: it cannot be read"
    )
    assert not list(Path().glob("*.html"))


def test_wrong_words(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["diff", "a"], ["a", "b"], ["diff", "a", "b", "c"], []):
        with pytest.raises(SystemExit) as ended:
            main(["report", *words])
        assert ended.value.code == 2
        assert "usage: tilewright report" in capsys.readouterr().err
