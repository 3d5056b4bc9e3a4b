"""A store that the tests of this folder share, and an instance of Dagster for each."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import dagster as dg
import pytest

from compiler.compile import Results, build
from tests.stages.builds import SUBJECTS, opened


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, Results]]:
    """A store in which each of ``SUBJECTS`` was built without Dagster, and what that gave."""
    root = tmp_path_factory.mktemp("assets") / "store"
    with opened(root) as store:
        return root, {kind: build(store, subject, options) for kind, (subject, options) in SUBJECTS.items()}


@pytest.fixture(scope="session")
def warm(builds: tuple[Path, Mapping[str, Results]]) -> tuple[Path, Results]:
    """The store, and what the build of the program gave."""
    return builds[0], builds[1]["program"]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """One in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        yield ephemeral
