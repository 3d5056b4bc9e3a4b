"""What the store's tests share besides fixtures."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Protocol

from compiler.store.digest import digest_of
from compiler.store.store import Store

TABLES = {"target": digest_of(b"table of the target")}


class Open(Protocol):
    """Opens the test's store again."""

    def __call__(self, **settings: object) -> Store:
        """With other settings than the usual."""
        ...


@contextlib.contextmanager
def reachable_folder() -> Generator[Path]:
    """A folder that users without privileges can reach, unlike pytest's temporary ones."""
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
