"""Documents describe what is: every command they show runs, and prints what they say.

A block fenced as ``console`` is a session in an empty folder: lines that begin with ``$ `` are commands, the
lines up to the next one are what they print, where ``...`` stands for anything. Blocks of one document share
the folder. ``make`` targets are checked to exist; what they run is what continuous integration runs.
"""

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from compiler.cache_home import cache_home

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a document and what it is shown to print."""

    line: int
    words: str
    output: str


def commands(document: Path) -> list[Command]:
    """The commands of a document, in order."""
    found: list[Command] = []
    inside = False
    for number, line in enumerate(document.read_text().splitlines(), start=1):
        if line.startswith("```"):
            inside = line == "```console"
        elif inside and line.startswith("$ "):
            found.append(Command(line=number, words=line[2:], output=""))
        elif inside and found:
            last = found[-1]
            found[-1] = Command(line=last.line, words=last.words, output=f"{last.output}{line}\n")
    return found


def _make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_of_documents_run_and_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "home" / "cache"),
        # Machine code of hot loops is not compiled again for each document.
        "NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", str(cache_home() / "numba")),
        "DAGSTER_HOME": str(tmp_path / "home" / "dagster"),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "100",
    }
    folder = tmp_path / "folder"
    folder.mkdir()
    for command in commands(document):
        where = f"{document.relative_to(ROOT)}:{command.line}: {command.words}"
        if command.words.startswith("make "):
            targets = [word for word in shlex.split(command.words)[1:] if "=" not in word]
            assert set(targets) <= _make_targets(), where
            continue
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command.words],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{where}\n{done.stderr}"
        if command.output:
            printed = done.stdout + done.stderr
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(command.output, printed, flags), (
                f"{where}\nprints\n{printed}"
            )


def test_the_readme_shows_commands() -> None:
    shown = [command.words for command in commands(ROOT / "README.md")]
    assert any(words.startswith("tilewright") for words in shown)
    assert "make test" in shown
