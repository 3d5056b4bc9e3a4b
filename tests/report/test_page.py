"""The page of a report: what it says, that it says nothing else, and that its bytes are those of its data."""

import dataclasses
import subprocess
import sys
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import grimp
import pytest

from compiler.report.build import BuildReport, build_report, report_from_json, report_json
from compiler.report.comparison import page_of_comparison
from compiler.report.memory import TileMap
from compiler.report.page import page_of_report
from compiler.report.timeline import NodeShare, Occupancy, StepShare
from compiler.target.tiles import TILE_COUNT
from tests.report.builds import Small

LARGEST_PAGE = 5_000_000
ROOT = Path(__file__).parents[2]
HOSTILE = "</script><script>window.broken=1</script> $$x$$ \"&'"


class Reader(HTMLParser):
    """The text of a page's cells and figures, its sections, and addresses that its tags name."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.sections: list[str] = []
        self.addresses: list[str] = []
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Rows, cells, sections and addresses begin."""
        named = dict(attrs)
        self._tag = tag
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "section":
            self.sections.append(named["id"] or "")
        self.addresses += [value for name, value in attrs if name in ("href", "src") and value is not None]

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002  # the parser's signature
        """What follows belongs to nothing in particular."""
        self._tag = ""

    def handle_data(self, data: str) -> None:
        """Text of a cell, or other text that is shown."""
        if self._tag in ("td", "th"):
            self.rows[-1][-1] += data
        elif self._tag not in ("script", "style") and data.strip():
            self.texts.append(data)


@pytest.fixture(scope="module")
def report(wide: Small) -> BuildReport:
    """Of the build for four tiles."""
    return build_report(wide.built)


def named(report: BuildReport, name: str) -> BuildReport:
    """The report with a name wherever a user chooses names."""
    memory = dataclasses.replace(report.memory, names=tuple(name for _ in report.memory.names))
    cycles = dataclasses.replace(
        report.cycles,
        nodes=tuple(
            dataclasses.replace(node, node=f"{number} {name}")
            for number, node in enumerate(report.cycles.nodes)
        ),
        steps=tuple(dataclasses.replace(step, nodes=(name,)) for step in report.cycles.steps),
    )
    return dataclasses.replace(
        report,
        model=name,
        cycles=cycles,
        memory=memory,
        phases=tuple(dataclasses.replace(phase, nodes=(name,)) for phase in report.phases),
        choices=tuple(dataclasses.replace(choice, node=name) for choice in report.choices),
        considered=tuple(dataclasses.replace(one, change=name) for one in report.considered),
    )


def large(report: BuildReport) -> BuildReport:
    """More of everything than any model has: no two tiles alike, and each with a hundred rectangles."""

    def rectangles(tile: int) -> TileMap:
        places = range(100)
        return TileMap(
            start=tuple(report.memory.base + 4096 * place + 4 * (tile % 1024) for place in places),
            size=tuple(4 + tile % 97 for _ in places),
            first=tuple(place for place in places),
            last=tuple(place + 9 for place in places),
            kind=tuple(place % 9 for place in places),
            name=tuple(0 for _ in places),
        )

    busy = Occupancy(events=7, sending=(1.234,) * 160, receiving=(5.678,) * 160)
    share, phase, tiles = report.cycles.steps[0].share, report.phases[0], range(TILE_COUNT)
    return dataclasses.replace(
        report,
        cycles=dataclasses.replace(
            report.cycles,
            nodes=tuple(NodeShare(node=f"layer{number}.product", share=share) for number in range(500)),
            steps=tuple(
                StepShare(
                    step=number, kind="compute", nodes=("a", "b"), iterations=1, tiles=4, start=9, share=share
                )
                for number in range(1000)
            ),
        ),
        phases=tuple(dataclasses.replace(phase, step=number, occupancy=busy) for number in range(300)),
        memory=dataclasses.replace(
            report.memory,
            steps=tuple(range(200)),
            live=tuple(tuple(range(tile, tile + 200)) for tile in range(300)),
            series=tuple(tile % 300 for tile in tiles),
            tensors=tuple(rectangles(tile) for tile in tiles),
            tensors_of=tuple(tiles),
        ),
    )


def test_every_figure_is_in_the_page(report: BuildReport) -> None:
    """All sections; each number of the data in its table."""
    page = Reader(page_of_report(report))
    assert page.sections == ["headline", "cycles", "exchange", "memory", "search", "provenance"]
    headline = report.headline
    for figure in (*headline.cycles, headline.largest_row, headline.package):
        assert any(text.startswith(f"{figure.value:,}") for text in page.texts)
    assert f"{headline.accuracy[0].cosine:.7f}" in page.texts
    for number, phase in enumerate(report.phases):
        (row,) = [
            row for row in page.rows if row[:2] == [str(number), str(phase.step)] and row[-1] == phase.limit
        ]
        for value in (phase.bound.value, phase.horizon.value, phase.row_bytes.value, phase.limiting_tile):
            assert value is not None
            assert f"{value:,}" in row
    for node in report.cycles.nodes:
        assert any(row[0] == node.node and f"{node.share.cycles:,.0f}" in row for row in page.rows)
    for number, one in enumerate(report.considered):
        (row,) = [row for row in page.rows if row[:3] == [str(number), str(one.round), one.change]]
        assert row[-2:] == [one.fate, one.reason]
    for option in report.options:
        assert any(row[:2] == [option.name, option.value] for row in page.rows)
    for kind in report.memory.classes:
        assert any(row[1:3] == [f"{kind.tiles:,}", str(kind.tile)] for row in page.rows)


def test_pages_ask_for_nothing(report: BuildReport) -> None:
    """Every address in a tag is an anchor of the page itself."""
    page = Reader(page_of_report(report))
    assert page.addresses == [f"#{name}" for name in page.sections]


def test_what_is_missing_is_said(wide: Small) -> None:
    page = page_of_report(build_report(dataclasses.replace(wide.built, simulated=None)))
    assert escape("The package was not simulated: cycles are those of its schedules") in page
    bare = dataclasses.replace(wide.built, simulated=None, planned=None, ledger=())
    page = page_of_report(build_report(bare))
    assert "The program was written by hand" in page
    assert "There was no search." in page


def test_names_are_text(report: BuildReport) -> None:
    """A name that would be a tag or end a script is shown as it is."""
    text = page_of_report(named(report, HOSTILE))
    assert "<script>window.broken" not in text
    assert HOSTILE in {cell for row in Reader(text).rows for cell in row}


def test_equal_data_equal_bytes(report: BuildReport, tmp_path: Path) -> None:
    """A second time, and in other processes with other hash seeds."""
    once = page_of_report(report)
    assert page_of_report(report_from_json(report_json(report))) == once
    data = tmp_path / "data.json"
    data.write_text(report_json(report))
    program = (
        "import sys; from pathlib import Path; from compiler.report.build import report_from_json as read;"
        "from compiler.report.page import page_of_report as page;"
        "sys.stdout.buffer.write(page(read(Path(sys.argv[1]).read_bytes())).encode())"
    )
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program, str(data)],
            capture_output=True,
            check=True,
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        )
        assert found.stdout.decode() == once


def test_the_largest_page(report: BuildReport) -> None:
    """Under 5 MB even where no two tiles are alike."""
    assert len(page_of_report(large(report)).encode()) < LARGEST_PAGE


def test_a_comparison_of_equal_builds(report: BuildReport) -> None:
    page = Reader(page_of_comparison(report, report, ("one", "other")))
    assert page.sections == ["headline", "cycles", "exchange", "memory", "provenance"]
    changes = [row[3] for row in page.rows if len(row) == 5 and row[0] != "figure"]
    assert set(changes) == {"0"}
    assert page.texts.count("None.") == 2


def test_nobody_else_waits_for_the_plotting_library() -> None:
    """One package of the compiler imports it; neither driver nor definitions do so when they load."""
    graph = grimp.build_graph("compiler", include_external_packages=True)
    users = graph.find_modules_that_directly_import("bokeh")
    assert users
    assert all(user.startswith("compiler.report.plots.") for user in users)
    program = (
        "import sys, pipeline.definitions, compiler.compile, compiler.report.difference, pipeline.cli_report;"
        "sys.exit('bokeh' in sys.modules)"
    )
    command: list[Any] = [sys.executable, "-W", "ignore", "-c", program]
    assert subprocess.run(command, check=False, cwd=ROOT).returncode == 0
