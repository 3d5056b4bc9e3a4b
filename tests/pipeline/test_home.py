"""The home of Dagster is made once, however many processes want it, with telemetry off."""

import multiprocessing
import sqlite3
from pathlib import Path

import dagster as dg
import pytest

from compiler.errors import InvalidInput
from compiler.fingerprint import REPOSITORY
from pipeline.home import SETTINGS, VARIABLE, home, instance_of, prepare, usable


def test_many_processes_prepare_one_home(tmp_path: Path) -> None:
    """Unprotected, the databases of a home that several processes use first are damaged for good."""
    folder = tmp_path / "home"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=prepare, args=(folder,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        assert instance.get_runs() == []
        assert not instance.telemetry_enabled
        assert not instance.nux_enabled


def test_what_is_there_stays(tmp_path: Path) -> None:
    settings = tmp_path / "dagster.yaml"
    settings.write_text("telemetry: {enabled: false}\n")
    prepare(tmp_path)
    prepare(tmp_path)
    assert settings.read_text() == "telemetry: {enabled: false}\n" != SETTINGS


def test_the_variable_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert home() == tmp_path
    monkeypatch.delenv(VARIABLE)
    assert home() == REPOSITORY.root / ".dagster"


def test_a_folder_that_cannot_be_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, "here")
    with pytest.raises(InvalidInput) as relative:
        home()
    assert str(relative.value) == (
        "invalid input (dagster home): DAGSTER_HOME: 'here' is no absolute path.\n"
        "  next: set DAGSTER_HOME to an absolute path, or unset it"
    )
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput) as refused:
        prepare(tmp_path / "file")
    assert str(refused.value) == (
        f"invalid input (dagster home): {tmp_path}/file: the folder cannot be made or written "
        "(File exists).\n"
        "  next: set DAGSTER_HOME to a folder that can be written"
    )


def test_settings_that_dagster_does_not_understand(tmp_path: Path) -> None:
    for text, reason in (
        ("telemetry: {", "while parsing a flow node"),
        ("telemetry: 3", "Errors whilst loading dagster instance config at dagster.yaml."),
        ("- telemetry", "Failure condition: Expected YAML"),
    ):
        (tmp_path / "dagster.yaml").write_text(text)
        with pytest.raises(InvalidInput) as refused:
            prepare(tmp_path)
        told, step = str(refused.value).splitlines()
        assert told.startswith(
            f"invalid input (dagster home): {tmp_path}/dagster.yaml: "
            f"Dagster does not understand its settings ({reason}"
        )
        assert (
            step == "  next: correct the file, or remove it and the file .prepared to have it written again"
        )
    (tmp_path / "dagster.yaml").write_text(SETTINGS)
    prepare(tmp_path)


def test_databases_that_cannot_be_used(tmp_path: Path) -> None:
    """Every command that writes history says what is wrong with the home, and not with Dagster."""
    prepare(tmp_path)
    place = f"invalid input (dagster home): {tmp_path}: "
    for name in ("history/runs.db", "history/runs/index.db", "schedules/schedules.db"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(b"no database" * 1000)
        with pytest.raises(InvalidInput) as damaged, usable(tmp_path), instance_of(tmp_path) as instance:
            _read(instance)
        assert str(damaged.value) == (
            f"{place}the history is damaged.\n"
            f"  next: move the folder away, or set {VARIABLE} to another folder"
        )
        (tmp_path / name).write_bytes(whole)
    with usable(tmp_path), instance_of(tmp_path) as instance:
        _read(instance)


@pytest.mark.parametrize(
    ("name", "told", "step"),
    [
        ("SQLITE_FULL", "no space is left for the history", "free some space"),
        (
            "SQLITE_READONLY_DBMOVED",
            "the history cannot be written",
            f"set {VARIABLE} to a folder that can be written",
        ),
        (
            "SQLITE_BUSY",
            "another program has locked the history",
            "end that program, and try again",
        ),
        ("", "the history cannot be used (said so)", f"set {VARIABLE} to another folder"),
    ],
)
def test_kinds_of_faults_of_databases(tmp_path: Path, name: str, told: str, step: str) -> None:
    """Those that no test can make at will: as SQLite names them, inside what others raise for them."""
    fault = sqlite3.OperationalError("said so")
    if name:
        fault.sqlite_errorname = name
    raised = RuntimeError("of somebody else")
    raised.__cause__ = fault
    with pytest.raises(InvalidInput) as refused, usable(tmp_path):
        raise raised
    assert str(refused.value) == f"invalid input (dagster home): {tmp_path}: {told}.\n  next: {step}"


def test_other_errors_are_left_as_they_are(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="of ours"), usable(tmp_path):
        raise RuntimeError("of ours")


def _read(instance: dg.DagsterInstance) -> None:
    instance.get_runs(limit=1)
    instance.get_latest_materialization_event(dg.AssetKey("none"))
    instance.all_instigator_state()
