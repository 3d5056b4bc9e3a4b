"""``tilewright ui`` refuses in a sentence what Dagster would tell with tracebacks, or not at all."""

import socket
from pathlib import Path

import pytest

from pipeline.cli import main
from pipeline.home import SETTINGS, VARIABLE


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of this test's own, not made yet."""
    folder = tmp_path / "home"
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


def test_an_address_that_is_taken_or_is_none(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port: int = taken.getsockname()[1]
        for number, reason in ((port, "Address already in use"), (70000, "bind(): port must be 0-65535.")):
            assert main(["ui", "--port", str(number)]) == 1
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err == (
                f"invalid input (ui): 127.0.0.1:{number}: the pages cannot be served there ({reason}).\n"
                "  next: name another address with --port or --host\n"
            )
    assert not home.exists()


def test_settings_that_dagster_does_not_understand(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    home.mkdir()
    (home / "dagster.yaml").write_text(f"{SETTINGS}more: [\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    assert main(["ui", "--port", str(port)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 2
    assert told.err.startswith(f"invalid input (dagster home): {home}/dagster.yaml: Dagster does not under")
