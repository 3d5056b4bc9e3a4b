"""``tilewright ui`` over a copy of the sources, with a home and a store of its own."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from compiler.cache_home import cache_home
from compiler.fingerprint import REPOSITORY
from pipeline.home import VARIABLE

_PARTS = ("compiler", "assets", "pipeline", "pyproject.toml", "workspace.yaml")
_SECONDS_TO_START = 240


def copied_checkout(folder: Path) -> Path:
    """A copy of what the definitions are made of, to be edited."""
    for name in _PARTS:
        source = REPOSITORY.root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, folder / name)
    return folder


@contextmanager
def served(checkout: Path, folder: Path) -> Generator[str]:
    """The address of the pages over a checkout, while they are served.

    Args:
        checkout: what is served.
        folder: gets the home of Dagster, the store and what was said. Machine code is this user's, since
            compiling it would take most of the time.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    environment = {
        **os.environ,
        VARIABLE: str(folder / "home"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(cache_home() / "numba")),
        "PYTHONPATH": str(checkout),
        "PYTHONDONTWRITEBYTECODE": "1",  # two edits within a second would be one
    }
    with (folder / "said.txt").open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli", "ui", "--port", str(port)],
            cwd=checkout,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _wait_for(address, process, folder / "said.txt")
            yield address
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait_for(address: str, process: subprocess.Popen[bytes], said: Path) -> None:
    end = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < end:
        assert process.poll() is None, said.read_text()
        try:
            with urllib.request.urlopen(f"{address}/server_info", timeout=10):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    raise AssertionError(f"nothing answers at {address}: {said.read_text()}")
