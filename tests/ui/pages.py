"""What a person does in the pages of Dagster, by what is written there."""

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

from playwright.sync_api import Page, expect

from tests.report.browser import running_browser

_PAGE: Final = 120_000
"""Milliseconds that a page may take."""
_RUN: Final = 900_000
"""Milliseconds that a run may take: machine code may have to be compiled first."""
_NODE: Final = "div[class*=assetNodeContainer]"
_STALE: Final = """
{ assetNodes(group: {groupName: "%s", repositoryName: "__repository__", repositoryLocationName: "tilewright"})
  { assetKey { path } staleStatus staleCauses { reason } } }
"""


@contextmanager
def browser_page() -> Generator[Page]:
    """A page of a browser; an exception in its scripts or a request to another machine fails the test.

    Skips the test where there is no browser, except in continuous integration.
    """
    faults: list[str] = []
    with running_browser() as browser:
        page = browser.new_page()
        page.set_default_timeout(_PAGE)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.extend(_elsewhere(request.url)))
        yield page
    assert not faults


def _elsewhere(url: str) -> list[str]:
    is_here = url.startswith(("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:", "file:"))
    return [] if is_here else [f"asks for {url}"]


@final
class Group:
    """The pages of one model.

    Args:
        page: of the browser.
        address: where the pages are served.
        name: of the group of the model's assets.
        stages: the names of its assets.
    """

    def __init__(self, page: Page, address: str, name: str, stages: Iterable[str]) -> None:
        self._page = page
        self._address = address
        self._name = name
        self._stages = tuple(stages)

    def open_graph(self) -> None:
        """Show the graph of its assets from top to bottom, with room for all that its nodes say."""
        self._page.set_viewport_size({"width": 1400, "height": 1800})
        self._page.add_init_script("localStorage.setItem('asset-graph-direction', '\"vertical\"')")
        self._page.goto(f"{self._address}/locations/tilewright/asset-groups/{self._name}/lineage")
        expect(self._page.get_by_role("button", name="Materialize all")).to_be_visible(timeout=_PAGE)

    def open_asset(self, stage: str, view: str) -> None:
        """Show the page of one asset."""
        self._page.set_viewport_size({"width": 1600, "height": 1200})
        self._page.goto(f"{self._address}/assets/{self._name}/{stage}?view={view}")

    def shown_stages(self) -> set[str]:
        """The nodes of the graph."""
        expect(self._page.locator(_NODE).first).to_be_visible(timeout=_PAGE)
        return {self._whole(text.removeprefix("Unsynced (1)\n")) for text in self._node_texts()}

    def materialize_all(self) -> str:
        """Click on the button, follow the link to the run and wait for its end; what its page says of it."""
        self._page.get_by_role("button", name="Materialize all").click()
        return self._followed()

    def materialize(self, stage: str) -> str:
        """The same with one asset, from its page."""
        self.open_asset(stage, "overview")
        self._page.get_by_role("button").filter(has_text=re.compile("^Materialize$")).click()
        return self._followed()

    def reload_definitions(self) -> None:
        """Click on the button of the graph."""
        self._page.get_by_role("button", name="Reload definitions").click()

    def wait_for_unsynced(self, count: int) -> None:
        """Until the graph shows that many nodes as out of date."""
        expect(self._page.locator(_NODE).filter(has_text="Unsynced")).to_have_count(count, timeout=_PAGE)

    def wait_for_materialized(self, count: int) -> None:
        """Until the graph shows that many nodes as materialized."""
        expect(self._page.locator(_NODE).filter(has_text="Materialized")).to_have_count(count, timeout=_PAGE)

    def unsynced_nodes(self) -> set[str]:
        """The stages that the graph shows as out of date."""
        return {
            self._whole(text.split("\n", 1)[1]) for text in self._node_texts() if text.startswith("Unsynced")
        }

    def report_path(self) -> Path:
        """Where the asset of the report says that its page lies."""
        self.open_asset("build_report", "overview")
        shown = self._page.get_by_text(re.compile(rf"^/.*/{self._name}\.html$")).first
        expect(shown).to_be_visible(timeout=_PAGE)
        return Path(shown.inner_text())

    def stale_stages(self) -> dict[str, list[str]]:
        """The stages that are out of date as the server says, and why."""
        answer = self._page.request.post(f"{self._address}/graphql", data={"query": _STALE % self._name})
        return {
            node["assetKey"]["path"][-1]: [cause["reason"] for cause in node["staleCauses"]]
            for node in answer.json()["data"]["assetNodes"]
            if node["staleStatus"] != "FRESH"
        }

    def _whole(self, text: str) -> str:
        """The stage of a node by its first line; the graph shortens long names in their middle."""
        shown = text.split("\n")[0]
        start, _, end = shown.partition("…")
        found = [name for name in self._stages if name.startswith(start) and name.endswith(end)]
        return found[0] if "…" in shown and len(found) == 1 else shown

    def _node_texts(self) -> list[str]:
        return self._page.locator(_NODE).all_inner_texts()

    def _followed(self) -> str:
        self._page.set_viewport_size({"width": 1600, "height": 1200})
        self._page.locator("a[href^='/runs/']", has_text="View").click()
        self._page.mouse.move(0, 0)  # the notice with the link stays while it is pointed at
        end = self._page.get_by_text("Success", exact=True).or_(self._page.get_by_text("Failure", exact=True))
        expect(end.first).to_be_visible(timeout=_RUN)
        return end.first.inner_text()
