"""One cold build that the tests of this folder share."""

from pathlib import Path

import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions
from tests.stages.builds import SMALL, opened


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """A store in which ``SMALL`` was built, and what that gave."""
    root = tmp_path_factory.mktemp("builds") / "store"
    with opened(root) as store:
        return root, build(store, SMALL, BuildOptions())
