"""What the store's tests share: an open store, and processes without privileges."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from compiler.store.digest import digest_of
from compiler.store.store import Store
from tests.store.sample_stages import CALLS
from tests.store.sample_types import SOURCES

TABLES = {"target": digest_of(b"table of the target")}


class Open(Protocol):
    """Opens the test's store again."""

    def __call__(self, **settings: object) -> Store:
        """With other settings than the usual."""
        ...


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


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that users without privileges can reach, unlike the usual temporary ones."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def in_child(action: Callable[[], str], *, unprivileged: bool = False) -> str:
    """What ``action`` gives in a forked child, which cannot override permissions if so asked."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            if unprivileged and os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            text = action()
        except BaseException as error:  # noqa: BLE001  # the parent shows it
            text = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "w") as pipe:
            pipe.write(text)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text
