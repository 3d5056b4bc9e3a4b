"""A browser for pages of reports: opens one from its file, and notes what it complains about and asks for."""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def running_browser() -> Generator[Browser]:
    """Chromium. Without it the test is skipped, or fails where tests must be complete."""
    place = shutil.which("chromium")
    if place is None:
        reason = "needs chromium, and there is none in the path"
        if "CI" in os.environ:
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=place, args=list(ARGUMENTS))
        yield browser
        browser.close()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """An open page.

    Args:
        page: the page.
        complaints: errors and warnings of its console.
        requests: addresses other than its own that it asked for.
    """

    page: Page
    complaints: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])

    def columns(self, name: str) -> dict[str, list[Any]]:
        """The columns that the plot of a name draws now."""
        found: dict[str, list[Any]] = self.page.evaluate(
            """name => {
              const data = Bokeh.documents[0].get_model_by_name(name).data_source.data
              return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Array.from(value)]))
            }""",
            name,
        )
        return found

    def place_of(self, name: str, x: float, y: float) -> tuple[float, float]:
        """Where the plot of a name draws a point, in the window; scrolls there first."""
        self.page.evaluate(
            "name => Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name))"
            ".plot_view.el.scrollIntoView({block: 'center'})",
            name,
        )
        found: list[float] = self.page.evaluate(
            """([name, x, y]) => {
              const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name))
              const box = view.plot_view.el.getBoundingClientRect()
              const {x_scale, y_scale} = view.coordinates
              return [box.left + x_scale.compute(x), box.top + y_scale.compute(y)]
            }""",
            [name, x, y],
        )
        return found[0], found[1]

    def settled(self) -> None:
        """Wait until what a script changed is drawn."""
        self.page.evaluate(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
        )


@contextmanager
def opened(browser: Browser, path: Path) -> Generator[Opened]:
    """A page from its file, once its plots are drawn."""
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    found = Opened(page=page)

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            found.complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_function("() => Bokeh.documents.length > 0 && Bokeh.documents[0].is_idle")
    found.settled()
    own = path.as_uri()
    found.requests[:] = [
        url for url in found.requests if url != own and not url.startswith(("data:", "blob:"))
    ]
    yield found
    page.close()
