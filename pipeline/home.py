"""Where Dagster keeps its history, prepared once.

Without ``DAGSTER_HOME`` every command of Dagster forgets what it did, and the first use of a fresh home by
two processes at once damages it for good. So a home is made here, alone, under a lock that the operating
system frees: first its settings (no telemetry, no sign-up page, few runs at a time), then its databases, then
a mark that says so.
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from compiler.errors import InvalidInput, TilewrightError
from compiler.fingerprint import REPOSITORY
from compiler.store.lock import held

if TYPE_CHECKING:
    from dagster import DagsterInstance

VARIABLE: Final = "DAGSTER_HOME"

SETTINGS: Final = """\
# Written once; edit freely.
telemetry: {enabled: false}
nux: {enabled: false}
concurrency:
  runs: {max_concurrent_runs: 2}
run_monitoring: {enabled: true, free_slots_after_run_end_seconds: 60}
retention:
  schedule: {purge_after_days: 30}
"""

_SETTINGS_FILE: Final = "dagster.yaml"
_LONGEST_REASON: Final = 160
_ANOTHER_HOME: Final = f"set {VARIABLE} to another folder"
_FAULTS: Final = (
    ("SQLITE_FULL", "no space is left for the history", "free some space"),
    ("SQLITE_BUSY", "another program has locked the history", "end that program, and try again"),
    ("SQLITE_READONLY", "the history cannot be written", f"set {VARIABLE} to a folder that can be written"),
    ("SQLITE_CANTOPEN", "the history cannot be opened", f"set {VARIABLE} to a folder that can be written"),
    ("SQLITE_CORRUPT", "the history is damaged", f"move the folder away, or {_ANOTHER_HOME}"),
    ("SQLITE_NOTADB", "the history is damaged", f"move the folder away, or {_ANOTHER_HOME}"),
)
"""How the name of an error of SQLite begins, what a person is told of it, and what to do."""

_PREPARED: Final = ".prepared"
_LOCK: Final = ".lock"


def home() -> Path:
    """The folder: what ``DAGSTER_HOME`` names, else ``.dagster`` in this checkout.

    Raises:
        InvalidInput: the variable names no absolute path.
    """
    configured = os.environ.get(VARIABLE)
    if configured is None:
        return REPOSITORY.root / ".dagster"
    if not Path(configured).is_absolute():
        raise InvalidInput(
            f"{configured!r} is no absolute path",
            stage="dagster home",
            subject=VARIABLE,
            next_step=f"set {VARIABLE} to an absolute path, or unset it",
        )
    return Path(configured)


def prepare(folder: Path) -> None:
    """Make a folder a home that any number of processes can use; does nothing when it is one.

    Settings that are there stay as they are.

    Raises:
        InvalidInput: the folder cannot be made or written, or its settings or databases not be used.
    """
    if (folder / _PREPARED).exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / _LOCK, shared=False), usable(folder):
            if (folder / _PREPARED).exists():
                return
            settings = folder / _SETTINGS_FILE
            if not settings.exists():
                settings.write_text(SETTINGS, encoding="utf-8")
            _make_databases(folder)
            (folder / _PREPARED).touch()
    except OSError as error:
        raise InvalidInput(
            f"the folder cannot be made or written ({error.strerror})",
            stage="dagster home",
            subject=str(folder),
            next_step=f"set {VARIABLE} to a folder that can be written",
        ) from error


@contextmanager
def instance_of(folder: Path) -> "Generator[DagsterInstance]":
    """Dagster over a home that was prepared.

    Raises:
        InvalidInput: its settings, which anybody may edit, are not understood.
    """
    from dagster import DagsterInstance

    try:
        instance = DagsterInstance.from_config(str(folder))
    except Exception as error:
        if _fault_of_database(error) is not None:
            raise
        raise InvalidInput(  # of Dagster, of YAML, or of a module that the settings name
            f"Dagster does not understand its settings ({' '.join(str(error).split())[:_LONGEST_REASON]})",
            stage="dagster home",
            subject=str(folder / _SETTINGS_FILE),
            next_step="correct the file, or remove it and the file .prepared to have it written again",
        ) from error
    with instance:
        yield instance


@contextmanager
def usable(folder: Path) -> Generator[None]:
    """What goes wrong with the databases of a home meanwhile is told as what is wrong with the home.

    Raises:
        InvalidInput: they cannot be opened, read or written.
    """
    try:
        yield
    except TilewrightError:
        raise
    except Exception as error:
        fault = _fault_of_database(error)
        if fault is None:
            raise
        name: str = getattr(fault, "sqlite_errorname", "")  # those that Python raises itself have none
        message, next_step = f"the history cannot be used ({fault})", _ANOTHER_HOME
        for start, told, advice in _FAULTS:
            if name.startswith(start):
                message, next_step = told, advice
        raise InvalidInput(message, stage="dagster home", subject=str(folder), next_step=next_step) from error


def _fault_of_database(error: BaseException | None) -> sqlite3.Error | None:
    """The error of SQLite that stands behind an exception of Dagster, if one does."""
    while error is not None and not isinstance(error, sqlite3.Error):
        error = error.__cause__ or error.__context__
    return error


def _make_databases(folder: Path) -> None:
    """Whatever asks for runs, events and schedules first creates their databases."""
    from dagster import AssetKey

    with instance_of(folder) as instance:
        instance.get_runs(limit=1)
        instance.get_latest_materialization_event(AssetKey("none"))
        instance.all_instigator_state()
