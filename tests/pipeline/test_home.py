"""The home of Dagster is made once, however many processes want it, with telemetry off."""

import multiprocessing
from pathlib import Path

import dagster as dg
import pytest

from compiler.errors import InvalidInput
from compiler.fingerprint import REPOSITORY
from pipeline.home import SETTINGS, VARIABLE, home, prepare


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
