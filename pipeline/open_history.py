"""Keeps the databases of a home open while a build writes its history.

Dagster opens and closes a connection for every event. Whoever closes the last connection to a database of
SQLite writes its log back into it and waits for the disk, several times for each stage: half the time of a
build in which everything is reused. One connection of ours that only stays open makes none of theirs the
last. It reads once, since a connection that never did holds nothing, and keeps no transaction.

A home whose history is elsewhere (``docs/scale-out.md``) has no such files, and nothing is done.
"""

import sqlite3
from collections.abc import Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Final, final

_DATABASES: Final = ("history/runs.db", "history/runs/index.db", "schedules/schedules.db")
"""Of a home, in which every run has one of its own beside them."""


@final
class OpenHistory:
    """The databases that are kept open.

    Args:
        home: folder of Dagster's home.
        run: whose events are written.
        stack: closes them.
    """

    def __init__(self, home: Path, run: str, stack: ExitStack) -> None:
        self._missing = [home / name for name in (*_DATABASES, f"history/runs/{run}.db")]
        self._stack = stack

    def keep(self) -> None:
        """Open those that are there by now: that of a run appears with its first event."""
        for path in [path for path in self._missing if path.exists()]:
            self._missing.remove(path)
            with suppress(sqlite3.Error):  # whoever needs it will say what is wrong
                connection = self._stack.enter_context(closing(sqlite3.connect(path)))
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()


@contextmanager
def open_history(home: Path, run: str) -> Generator[OpenHistory]:
    """What keeps the databases open; they are closed at the end."""
    with ExitStack() as stack:
        history = OpenHistory(home, run, stack)
        history.keep()
        yield history
