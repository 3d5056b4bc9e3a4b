"""Pages of reports in a browser: they open without complaint and do what a reader asks for."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from compiler.config import BuildOptions, PlanningOptions
from compiler.graph.text import text_of_graph
from compiler.models.programs import PROGRAMS
from compiler.models.smoke import mlp_smoke
from compiler.models.subjects import GraphModel
from compiler.report.build import BuildReport, build_report, report_from_json
from compiler.report.comparison import page_of_comparison
from compiler.report.memory import KINDS
from compiler.report.page import page_of_report
from compiler.report.written import written
from compiler.target.tiles import TILE_COUNT
from pipeline.cli_report import write_report
from tests.report.browser import Opened, opened, running_browser
from tests.report.builds import Small, reported
from tests.report.test_page import HOSTILE, LARGEST_PAGE, large, named

SHEET = 1047
"""Pixels of a sheet in landscape between its margins."""


def model(tiles: int) -> tuple[GraphModel, BuildOptions]:
    """``mlp-smoke`` for so many tiles."""
    graph = text_of_graph(mlp_smoke(tiles), with_provenance=True)
    options = BuildOptions(planning=PlanningOptions(tiles=tiles, attempts=0))
    return GraphModel(name=f"mlp-smoke-{tiles}", text=graph), options


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for this module alone: while it runs, nothing else can run coroutines in this thread."""
    with running_browser() as found:
        yield found


@pytest.fixture(scope="module")
def report(folder: Path) -> BuildReport:
    """Of a build for all tiles, written in the folder."""
    return report_from_json(reported(folder, *model(TILE_COUNT)).data)


@pytest.fixture
def page(browser: Browser, folder: Path, report: BuildReport) -> Iterator[Opened]:
    """Its page, open; whatever a test does there, the page does not complain and asks for nothing."""
    with opened(browser, folder / f"{report.model}.html") as found:
        yield found
        found.settled()
        assert found.complaints == []
        assert found.requests == []


def rectangles(report: BuildReport, tile: int) -> set[tuple[Any, ...]]:
    """What the map of a tile has to show, from the data."""
    memory = report.memory
    maps = (memory.support[memory.support_of[tile]], memory.tensors[memory.tensors_of[tile]])
    return {
        (start, start + size, first - 0.5, last + 0.5, KINDS[kind], memory.names[name])
        for one in maps
        for start, size, first, last, kind, name in zip(
            one.start, one.size, one.first, one.last, one.kind, one.name, strict=True
        )
    }


def drawn(page: Opened) -> set[tuple[Any, ...]]:
    """What the map shows."""
    found = page.columns("map")
    names = ("bottom", "top", "left", "right", "kind", "name")
    return set(zip(*(found[name] for name in names), strict=True))


def assert_shown(page: Opened, report: BuildReport, tile: int) -> None:
    """Everything about the chosen tile is about this one."""
    told = page.page.get_by_text(f"Tile {tile}", exact=True)
    told.wait_for()
    assert page.page.get_by_text(f"{report.memory.used[tile]:,} of").count() == 1
    assert drawn(page) == rectangles(report, tile)
    assert page.columns("live")["bytes"] == list(report.memory.live[report.memory.series[tile]])


@pytest.mark.slow
def test_a_build_for_64_tiles(browser: Browser, folder: Path) -> None:
    """Tiles without tensors have no map but that of the program itself."""
    subject, options = model(64)
    report = report_from_json(reported(folder, subject, options).data)
    with opened(browser, folder / f"{subject.name}.html") as page:
        assert_shown(page, report, report.memory.fullest)
        idle = report.memory.class_of.index(-1)
        page.page.locator("#plot-choice input").fill(str(idle))
        page.page.locator("#plot-choice input").press("Enter")
        assert_shown(page, report, idle)
        page.page.get_by_text("It has no tensors.").wait_for()
        assert (page.complaints, page.requests) == ([], [])


def test_the_fullest_tile_is_shown_first(page: Opened, report: BuildReport, folder: Path) -> None:
    assert (folder / f"{report.model}.html").stat().st_size < LARGEST_PAGE
    assert_shown(page, report, report.memory.fullest)


def test_a_tile_is_chosen_by_number(page: Opened, report: BuildReport) -> None:
    for tile in (777, TILE_COUNT - 1):
        page.page.locator("#plot-choice input").fill(str(tile))
        page.page.locator("#plot-choice input").press("Enter")
        assert_shown(page, report, tile)


def test_a_tile_is_chosen_by_a_click(page: Opened, report: BuildReport) -> None:
    cells = page.columns("tiles")
    tile = 1234
    page.page.mouse.click(*page.place_of("tiles", cells["x"][tile], cells["y"][tile]))
    assert_shown(page, report, tile)
    assert page.page.locator("#plot-choice input").input_value() == str(tile)


def test_tiles_are_coloured_by_what_is_asked_for(page: Opened, report: BuildReport) -> None:
    assert page.columns("tiles")["shown"] == list(report.memory.used)
    page.page.get_by_role("button", name="exchange rows").click()
    page.settled()
    assert page.columns("tiles")["shown"] == list(report.memory.rows)


def test_the_pointer_over_a_phase(page: Opened, report: BuildReport) -> None:
    """Its numbers are told; a click shows its occupancy."""
    phase = report.phases[1]
    x, y = page.place_of("phases", 1, phase.horizon.value / 2)
    page.page.mouse.move(x, y)
    told = page.page.locator(".bk-Tooltip", has_text="largest row")
    for text in (
        f"{phase.bound.value:,} events (bound)",
        f"{phase.horizon.value:,} events (scheduled)",
        f"{phase.ratio:.3f}",
        f"{phase.row_bytes.value:,} bytes, {phase.all_row_bytes.value:,} in all",
        f"{phase.transfers:,} to {phase.recipients:,} recipients",
        phase.limit,
    ):
        told.get_by_text(text).wait_for()
    page.page.mouse.click(x, y)
    page.settled()
    busy = page.columns("sending")
    assert busy["sending"] == pytest.approx([*phase.occupancy.sending, 0.0])
    assert busy["receiving"] == pytest.approx([*phase.occupancy.receiving, 0.0])
    assert busy["event"] == [phase.occupancy.events * place for place in range(len(busy["event"]))]


def test_a_box_zooms(page: Opened, report: BuildReport) -> None:
    """Both plots over steps zoom together; a double click goes back."""
    program = "() => { const {x_range} = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('map'))"
    program += ".plot_view.model; return [x_range.start, x_range.end] }"
    before = page.page.evaluate(program)
    low = report.memory.base + report.memory.size // 4
    left, bottom = page.place_of("map", 1, low)
    right, top = page.place_of("map", 3, low + report.memory.size // 2)
    page.page.mouse.move(left, bottom)
    page.page.mouse.down()
    page.page.mouse.move((left + right) / 2, (bottom + top) / 2, steps=4)
    page.page.mouse.move(right, top, steps=4)
    page.page.mouse.up()
    page.settled()
    start, end = page.page.evaluate(program)
    assert start == pytest.approx(1, abs=0.1)
    assert end == pytest.approx(3, abs=0.1)
    assert page.page.evaluate(program.replace("'map'", "'live'")) == [start, end]
    page.page.mouse.dblclick((left + right) / 2, (bottom + top) / 2)
    page.settled()
    assert page.page.evaluate(program) == before


def test_print(page: Opened) -> None:
    """A sheet is as wide as the page, every section is there, and no table is cut."""
    page.page.set_viewport_size({"width": SHEET, "height": 720})
    page.page.emulate_media(media="print")
    page.settled()
    assert page.page.evaluate("() => document.documentElement.scrollWidth") <= SHEET
    headings = page.page.locator("section h2")
    assert headings.all_inner_texts() == ["Headline", "Cycles", "Exchange", "Memory", "Search", "Provenance"]
    assert all(heading.is_visible() for heading in headings.all())
    assert all(plot.is_visible() for plot in page.page.locator(".plot").all())
    cut = page.page.evaluate(
        "() => [...document.querySelectorAll('.scroll')].filter("
        "box => getComputedStyle(box).overflow !== 'visible' || box.scrollWidth > box.clientWidth).length"
    )
    assert cut == 0
    assert len(page.page.pdf(prefer_css_page_size=True)) > 50_000


def test_names_that_are_tags(browser: Browser, folder: Path, wide: Small) -> None:
    path = folder / "hostile.html"
    path.write_text(page_of_report(named(build_report(wide.built), HOSTILE)))
    with opened(browser, path) as page:
        assert page.page.evaluate("() => window.broken") is None
        assert (page.complaints, page.requests) == ([], [])


def test_a_hand_written_program(browser: Browser, folder: Path) -> None:
    program = next(iter(PROGRAMS.values()))
    report = report_from_json(reported(folder, program, BuildOptions()).data)
    assert report.headline.roofline is None
    with opened(browser, folder / f"{program.name}.html") as page:
        assert page.page.get_by_text("written by hand").is_visible()
        assert_shown(page, report, report.memory.fullest)
        assert (page.complaints, page.requests) == ([], [])


def test_what_a_page_cannot_hold(browser: Browser, folder: Path, wide: Small) -> None:
    """A tile whose map is not in the page says so."""
    report = large(build_report(wide.built))
    write_report(folder / "large.html", written(report))
    with opened(browser, folder / "large.html") as page:
        page.page.locator("#plot-choice input").fill(str(TILE_COUNT - 1))
        page.page.locator("#plot-choice input").press("Enter")
        page.page.get_by_text(f"Tile {TILE_COUNT - 1}", exact=True).wait_for()
        page.settled()
        title = page.page.evaluate(
            "() => Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name('map'))"
            ".plot_view.model.title.text"
        )
        assert title == f"Memory of tile {TILE_COUNT - 1}: too much for this page, its data have all"
        assert (page.complaints, page.requests) == ([], [])


def test_two_builds(browser: Browser, folder: Path, wide: Small, narrow: Small) -> None:
    before, after = build_report(wide.built), build_report(narrow.built)
    path = folder / "two.html"
    path.write_text(page_of_comparison(before, after, ("wide", "narrow")))
    with opened(browser, path) as page:
        horizon = after.phases[0].horizon.value
        page.page.mouse.move(*page.place_of("phases after", 0.2, horizon / 2))
        assert page.page.locator("#plot-nodes svg").count() > 0
        assert (page.complaints, page.requests) == ([], [])
