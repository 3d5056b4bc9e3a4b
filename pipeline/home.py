"""Where Dagster keeps its history, prepared once.

Without ``DAGSTER_HOME`` every command of Dagster forgets what it did, and the first use of a fresh home by
two processes at once damages it for good. So a home is made here, alone, under a lock that the operating
system frees: first its settings (no telemetry, no sign-up page, few runs at a time), then its databases, then
a mark that says so.
"""

import os
from pathlib import Path
from typing import Final

from compiler.errors import InvalidInput
from compiler.fingerprint import REPOSITORY
from compiler.store.lock import held

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
        InvalidInput: the folder cannot be made or written.
    """
    if (folder / _PREPARED).exists():
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with held(folder / _LOCK, shared=False):
            if (folder / _PREPARED).exists():
                return
            settings = folder / "dagster.yaml"
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


def _make_databases(folder: Path) -> None:
    """Whatever asks for runs, events and schedules first creates their databases."""
    from dagster import AssetKey, DagsterInstance

    with DagsterInstance.from_config(str(folder)) as instance:
        instance.get_runs(limit=1)
        instance.get_latest_materialization_event(AssetKey("none"))
        instance.all_instigator_state()
