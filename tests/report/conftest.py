"""The small builds as fixtures."""

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
