"""A person builds a model in a browser, looks at what came of it, edits a stage and rebuilds that stage.

One story on one server, since its parts follow from each other: pages, runs and what is out of date are what
a person sees (Playwright over Chromium), and what the server says of staleness is compared with it.
``make screenshots`` tells the story and keeps pictures of it.
"""

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from compiler.chain import MODEL_CHAIN
from tests.report.browser import opened
from tests.ui.pages import Group, browser_page
from tests.ui.serving import copied_checkout, served

STAGES = {stage.name for stage in MODEL_CHAIN}
PICTURES = "TILEWRIGHT_SCREENSHOTS"
"""Names the folder that gets pictures; they are not taken without."""


@pytest.mark.slow
def test_a_model_is_built_looked_at_edited_and_rebuilt_in_a_browser(tmp_path: Path) -> None:
    checkout = copied_checkout(tmp_path / "checkout")
    with browser_page() as page, served(checkout, tmp_path) as address:
        group = Group(page, address, "mlp_smoke", STAGES)

        group.open_graph()
        assert group.shown_stages() == STAGES
        assert group.materialize_all() == "Success"
        expect(page.get_by_text(f"Succeeded ({len(STAGES)})")).to_be_visible()
        picture(page, "run")

        group.open_graph()
        group.wait_for_materialized(len(STAGES))
        assert group.stale_stages() == {}
        picture(page, "graph")

        group.open_asset("simulation", "overview")
        for shown in ("result", "why", "no earlier run of this stage is known", "seconds (measured)"):
            expect(page.get_by_text(shown, exact=True).first).to_be_visible()
        table = page.locator("table table")  # the figures, as markdown, inside the table of metadata
        expect(table.get_by_text("simulated", exact=True).first).to_be_visible()
        picture(page, "asset")
        page.get_by_role("button", name="Plots").click()
        expect(page.locator("canvas").first).to_be_visible()

        group.open_asset("final_placement", "checks")
        expect(page.get_by_text("every_tile_fits").first).to_be_visible()
        expect(page.get_by_text("placement_checked").first).to_be_visible()
        expect(page.get_by_text("second_build_identical").first).to_be_visible()
        expect(page.get_by_text("Succeeded", exact=True)).to_have_count(3)
        expect(page.get_by_text("limit of fullest tile").first).to_be_visible()
        picture(page, "checks")

        look_at_report(page, group.report_path())

        edited = checkout / "compiler/evaluation/stage_final_placement.py"
        edited.write_text(f"{edited.read_text()}\nADDED = 1\n")
        group.open_graph()
        group.reload_definitions()
        group.wait_for_unsynced(1)
        assert group.unsynced_nodes() == {"final_placement"}
        assert group.stale_stages() == {"final_placement": ["has a new code version"]}

        assert group.materialize("final_placement") == "Success"
        group.open_asset("final_placement", "overview")
        expect(page.get_by_text("code: compiler/evaluation/stage_final_placement.py").first).to_be_visible()
        group.open_graph()
        group.wait_for_materialized(len(STAGES))
        group.wait_for_unsynced(0)
        assert group.stale_stages() == {}, "its bytes are equal"


def look_at_report(page: Page, path: Path) -> None:
    """Open it in the same browser, choose a tile and point at a phase; nothing complains or is fetched."""
    browser = page.context.browser
    assert browser is not None
    with opened(browser, path) as report:
        report.page.locator("#plot-choice input").fill("777")
        report.page.locator("#plot-choice input").press("Enter")
        report.page.get_by_text("Tile 777", exact=True).wait_for()
        phases = report.columns("phases")
        report.page.mouse.move(*report.place_of("phases", 0, phases["horizon"][0] / 2))
        told = report.page.locator(".bk-Tooltip", has_text="largest row")
        told.get_by_text("events (scheduled)").first.wait_for()
        picture(report.page, "report")
        assert (report.complaints, report.requests) == ([], [])


def picture(page: Page, name: str) -> None:
    """Keep a picture of the page, if pictures are wanted."""
    folder = os.environ.get(PICTURES)
    if folder is not None:
        page.wait_for_timeout(3000)  # pages arrange themselves
        page.screenshot(path=Path(folder) / f"{name}.png")
