"""Cold builds that the tests of this folder share."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from compiler.compile import Results, build
from tests.stages.builds import SUBJECTS, opened


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Results]]:
    """A store in which each of ``SUBJECTS`` was built, and what that gave."""
    root = tmp_path_factory.mktemp("builds") / "store"
    with opened(root) as store:
        return root, {kind: build(store, subject, options) for kind, (subject, options) in SUBJECTS.items()}


@pytest.fixture(scope="session")
def warm(builds: tuple[Path, Mapping[str, Results]]) -> tuple[Path, Results]:
    """The store, and what the build of the program gave."""
    return builds[0], builds[1]["program"]
