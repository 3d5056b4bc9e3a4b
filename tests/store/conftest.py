"""Fixtures that the store's tests share."""

from pathlib import Path

import pytest

from compiler.store.store import Store
from tests.store.helpers import TABLES, Open
from tests.store.sample_stages import CALLS
from tests.store.sample_types import SOURCES


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    """Opens the same store each time, strict unless asked otherwise."""
    CALLS.clear()
    root = tmp_path / "store"

    def opened(**settings: object) -> Store:
        known: dict[str, object] = {"sources": SOURCES, "tables": TABLES, "strict": True, **settings}
        return Store.open(root, **known)  # pyright: ignore[reportArgumentType]  # settings by name

    return opened


@pytest.fixture
def store(reopen: Open) -> Store:
    """A strict store for the sample stages."""
    return reopen()
