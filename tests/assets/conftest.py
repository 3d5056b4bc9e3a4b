"""A store that the tests of this folder share, and an instance of Dagster for each."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions
from tests.stages.builds import SMALL, opened


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    """A store in which ``SMALL`` was built without Dagster, and what that gave."""
    root = tmp_path_factory.mktemp("assets") / "store"
    with opened(root) as store:
        return root, build(store, SMALL, BuildOptions())


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """One in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        yield ephemeral
