"""The small builds as fixtures."""

from pathlib import Path

import pytest

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
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pages of tests are."""
    return tmp_path_factory.mktemp("reports")
