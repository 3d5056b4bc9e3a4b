"""The small builds as fixtures."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.report.browser import running_browser
from tests.report.builds import Small, small_builds


@pytest.fixture(scope="session")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Four tiles."""
    return small_builds(tmp_path_factory)["wide"]


@pytest.fixture(scope="session")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """Two tiles."""
    return small_builds(tmp_path_factory)["narrow"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, for all tests of a process."""
    with running_browser() as found:
        yield found


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages of tests are."""
    return tmp_path_factory.mktemp("reports")
