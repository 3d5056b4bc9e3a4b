"""``tilewright store``: what it prints for people and for programs, and its exit codes."""

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.errors import InvalidInput, StoreError
from compiler.fingerprint import REPOSITORY
from compiler.store.collect import pin
from compiler.store.digest import digest_of
from pipeline.cli_store import add_commands
from tests.store.helpers import Open
from tests.store.sample_stages import REFUSE, SCALE, SQUARE
from tests.store.sample_types import INTS, NumberInputs, Options, ScaleInputs


@pytest.fixture
def root(reopen: Open) -> Path:
    """A store with four results of three stages."""
    with reopen() as store:
        values = store.put(np.arange(100), INTS)
        for _ in range(4):
            store.run(SCALE, ScaleInputs(values=values), Options(), label="model")
        store.attempt(REFUSE, NumberInputs(number=10), Options(), label="model")
        store.run(SQUARE, NumberInputs(number=2), Options(), label="model")
        store.run(SQUARE, NumberInputs(number=2), Options(seed=9), label="model")
        return store.root


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(root: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command of the group on the store; exit code and output."""

    def command(*words: str) -> tuple[int, str]:
        parser = argparse.ArgumentParser(prog="tilewright store")
        add_commands(parser)
        arguments = parser.parse_args([*words, "--store", str(root)])
        code = arguments.run(arguments)
        return code, capsys.readouterr().out

    return command


def as_json(output: tuple[int, str]) -> Any:  # noqa: ANN401  # whatever was printed
    """The object that a successful command printed."""
    assert output[0] == 0
    assert output[1].count("\n") == 1
    return json.loads(output[1])


def test_stats_shows_each_namespace(run: Run, root: Path) -> None:
    code, text = run("stats")
    assert code == 0
    lines = text.splitlines()
    assert lines[0] == f"store {root}"
    assert lines[1].split() == [
        *(
            "namespace",
            "results",
            "failures",
            "content",
            "on",
            "disk",
            "computed",
            "in",
            "hit",
            "rate",
            "saved",
        )
    ]
    assert [line.split()[0] for line in lines[2:]] == ["stage", "fragment", "geometry", "kernel", "schedule"]
    assert lines[2].split()[1:3] == ["2", "1"]
    assert lines[2].split()[-3] == "60%"
    assert lines[3].split()[1:] == ["0", "0", "0", "B", "0", "B", "0.0", "s", "-", "0.0", "s"]
    stats = as_json(run("stats", "--json"))
    assert stats["kernel"]["results"] == 2
    assert stats["stage"]["hits"] == 3
    assert stats["stage"]["hit_rate"] == 0.6
    assert stats["geometry"]["hit_rate"] is None


def test_verify_is_silent_about_a_sound_store_and_fails_on_damage(run: Run, root: Path) -> None:
    code, text = run("verify")
    assert code == 0
    assert text.splitlines()[:2] == [
        "read 4 results and 3 objects: 0 damaged",
        "computed again: 0 equal, 0 different",
    ]
    assert text.splitlines()[2:] == [
        (
            f"  4 not computed again: the stage is not there: {SCALE.module} is not a module of "
            f"{', '.join(REPOSITORY.packages)}"
        )
    ]
    found = as_json(run("verify", "--sample", "0", "--json"))
    assert found == {
        "damaged": [],
        "different": [],
        "equal": 0,
        "incomplete": [],
        "objects": 3,
        "results": 4,
        "skipped": {},
    }
    path = next(root.glob(f"cas/*/{digest_of(b'4')}"))
    path.write_bytes(b"x")
    code, text = run("verify", "--sample", "0")
    assert code == 1
    assert f"  set aside: {path.relative_to(root)}" in text.splitlines()
    assert "2 results name objects that are gone" in text
    assert run("verify", "--sample", "0")[0] == 0


def test_gc_says_what_goes_and_a_dry_run_removes_nothing(run: Run, root: Path, reopen: Open) -> None:
    for path in root.glob("ac/*/*/*"):
        os.utime(path, (1, 1))
    keys = [path.name for path in root.glob("ac/kernel/*/*")]
    code, text = run("gc", "--age", "1", "--grace", "0", "--dry-run")
    assert code == 0
    assert text.splitlines()[0] == "would remove 1 results, 0 objects and 0 other files:"
    assert as_json(run("gc", "--budget", "10K", "--grace", "0", "--json"))["kept_bytes"] <= 10 * 1024
    pin(reopen(), "release", [])
    done = as_json(run("gc", "--budget", "0", "--grace", "0", "--json"))
    assert done["kept_bytes"] == 0
    assert done["pretended"] is False
    assert not list(root.glob("ac/*/*/*"))
    assert keys
    assert run("gc")[1].splitlines()[-1] == "kept 0 B"


def test_explain_names_what_changed(run: Run, root: Path, reopen: Open) -> None:
    code, text = run("explain", "model", "square")
    assert code == 0
    lines = text.splitlines()
    assert lines[0].startswith("square ")
    assert lines[1].startswith("changed against ")
    assert lines[2:] == ["  option seed 0 -> 9"]
    key = lines[0].split()[1]
    again = as_json(run("explain", key[:10], "--json"))
    assert again["key"] == key
    assert again["changes"] == ["option seed 0 -> 9"]
    assert again["document"]["options"] == {"seed": 9}
    assert (
        run("explain", "model", "scale")[1].splitlines()[1] == "the store has no other result of this stage"
    )
    with pytest.raises(InvalidInput, match="no result in the store has this key"):
        run("explain", "0" * 20)
    with pytest.raises(InvalidInput, match="3 words are given"):
        run("explain", "a", "b", "c")
    assert reopen().root == root


@pytest.mark.parametrize("command", [["stats"], ["verify"], ["gc"], ["explain", "a", "b"]])
def test_no_command_makes_a_store_where_there_is_none(tmp_path: Path, command: list[str]) -> None:
    parser = argparse.ArgumentParser()
    add_commands(parser)
    arguments = parser.parse_args([*command, "--store", str(tmp_path / "nothing")])
    with pytest.raises(StoreError, match="there is no store here"):
        arguments.run(arguments)
    assert not (tmp_path / "nothing").exists()


def test_the_usual_store_is_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    parser = argparse.ArgumentParser()
    add_commands(parser)
    arguments = parser.parse_args(["stats"])
    with pytest.raises(StoreError, match=f"{tmp_path}/tilewright/store: there is no store here"):
        arguments.run(arguments)


@pytest.mark.parametrize(
    "words",
    [
        ["gc", "--budget", "x"],
        ["gc", "--budget", "-1"],
        ["gc", "--age", "-1"],
        ["verify", "--sample", "-1"],
        [],
    ],
)
def test_bad_arguments_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_commands(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(words)
    assert "error:" in capsys.readouterr().err
