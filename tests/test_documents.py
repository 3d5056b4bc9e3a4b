"""Documents describe what is: every command they show runs, and prints what they say.

A block fenced as ``console`` is a session in an empty folder: lines that begin with ``$ `` are commands, the
lines up to the next one are what they print, where ``...`` stands for anything. Blocks of one document share
the folder. ``make`` targets are checked to exist; what they run is what continuous integration runs.

A command line inside a sentence or a table, or in a block that is not run (``sh``), is one that some block
runs, or that a test runs which is named here. What ``make`` runs of ours is held to the same.
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

PROGRAMS = ("tilewright", "make", "python", "dg", "dagster")
"""What the command lines begin with that documents may mention."""
TESTED = {
    "tilewright accept --json acceptance.json": "pipeline/test_cli_accept.py::test_packages_that_run",
    "tilewright build four-tiles --dagster": (
        "assets/test_homes.py::test_a_build_that_is_killed_leaves_everything_usable"
    ),
    "tilewright build mlp-smoke --workers 2": (
        "stages/test_kills.py::test_a_build_killed_again_and_again_ends_with_the_same_package"
    ),
    "tilewright build siglip-mlp --attempts 32 --backend dask --scheduler tcp://scheduler:8786 "
    "--store /shared/tilewright/store": (
        "pipeline/test_scale_out.py::test_the_command_for_a_cluster_is_understood"
    ),
    "tilewright exchange bench": (
        "pipeline/test_exchange_bench.py::test_bench_prints_numbers_with_their_kinds"
    ),
    "tilewright nightly": (
        "pipeline/test_cli_nightly.py::test_a_model_that_fails_does_not_keep_the_others_from_their_turn"
    ),
    "tilewright place": "placement/test_plain.py::test_public_instances_are_placed",
    "tilewright store explain": "store/test_cli.py::test_explain_names_what_changed",
    "tilewright ui": "ui/test_pages.py::test_a_model_is_built_looked_at_edited_and_rebuilt_in_a_browser",
    "python -m tests.test_requirements": (
        "test_requirements.py::test_the_document_is_what_citations_make_of_it"
    ),
    "python -m tests.kernels.test_comparison": (
        "kernels/test_comparison.py::test_the_document_shows_these_figures"
    ),
    "dg check defs": "assets/test_location.py::test_the_commands_of_dagster_find_the_definitions_valid",
}
"""Command lines that no block runs, and the test that runs each or holds it to what it should do."""


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


def mentioned(document: Path) -> list[str]:
    """The command lines of a document that no block runs."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.MULTILINE | re.DOTALL)
    sentences = re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", sentences)]
    for kind, block in blocks:
        if kind == "sh":
            found += block.replace("\\\n", " ").splitlines()
    return [line for line in found if len(line.split()) > 1 and line.split()[0] in PROGRAMS]


def is_like(shown: str, run: str) -> bool:
    """Whether a command line is one that runs, or its beginning.

    A word in capitals stands for any, and the name of a file for any file of its kind.
    """
    words, others = shlex.split(shown, comments=True), shlex.split(run)
    return len(words) <= len(others) and all(
        word == other or word.isupper() or Path(word).suffix == Path(other).suffix != ""
        for word, other in zip(words, others, strict=False)
    )


def recipe(target: str) -> list[str]:
    """What a target runs of ours."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None, target
    lines = re.findall(r"\$\(BIN\)/(tilewright .*)", found[1])
    return [line.replace("$(MODEL)", "MODEL").replace(" $(ARGS)", "") for line in lines]


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


def test_command_lines_that_are_mentioned_run_in_a_block_or_in_a_test() -> None:
    run = [command.words for document in DOCUMENTS for command in commands(document)]
    for document in DOCUMENTS:
        for line in mentioned(document):
            given = shlex.split(line, comments=True)
            if given[0] == "make":
                assert given[1] in _make_targets(), f"{document}: {line}"
                lines = recipe(given[1])
            else:
                lines = [line]
            for words in lines:
                assert any(is_like(words, known) for known in (*run, *TESTED)), f"{document}: {words}"


def test_tests_of_command_lines_exist() -> None:
    for name in TESTED.values():
        path, _, test = name.partition("::")
        assert f"\ndef {test}(" in (ROOT / "tests" / path).read_text(), name


def test_the_readme_shows_commands() -> None:
    shown = [command.words for command in commands(ROOT / "README.md")]
    assert any(words.startswith("tilewright") for words in shown)
    assert "make test" in shown
