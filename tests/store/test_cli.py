"""``tilewright store``: what it prints for people and for programs, and its exit codes."""

import argparse
import contextlib
import io
import json
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.cache_home import cache_home
from compiler.errors import InvalidInput, StoreError
from compiler.fingerprint import REPOSITORY
from compiler.store.collect import pin
from compiler.store.digest import digest_of
from compiler.store.store import Store
from pipeline.cli import main
from pipeline.cli_store import add_commands
from tests.store.helpers import Open, in_child, reachable_folder
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
    assert [line.split()[0] for line in lines[2:-1]] == [
        "stage",
        "fragment",
        "kernel",
        "schedule",
    ]
    assert lines[2].split()[1:3] == ["2", "1"]
    assert lines[2].split()[-3] == "60%"
    assert lines[3].split()[1:] == ["0", "0", "0", "B", "0", "B", "0.0", "s", "-", "0.0", "s"]
    stats = as_json(run("stats", "--json"))
    assert stats["kernel"]["results"] == 2
    assert stats["stage"]["hits"] == 3
    assert stats["stage"]["hit_rate"] == 0.6
    assert stats["fragment"]["hit_rate"] is None


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


@pytest.fixture
def usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the usual store will be, on a machine that has none."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/tilewright/store"


COMMANDS = [["stats"], ["verify"], ["gc"], ["gc", "--dry-run"], ["explain", "a", "b"], ["explain", "abcdef"]]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("found", ["nothing", "empty folder", "first build killed"])
def test_that_nothing_is_stored_yet_is_said_in_a_sentence(
    usual: Path, command: list[str], found: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if found != "nothing":
        usual.mkdir(parents=True)
    if found == "first build killed":
        (usual / "tmp").mkdir()
    before = sorted(usual.parent.parent.rglob("*"))
    assert main(["store", *command]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"Nothing is stored yet; builds will keep their results in {usual}.\n"
    assert captured.err == ""
    assert sorted(usual.parent.parent.rglob("*")) == before, "nothing is made"


@pytest.mark.parametrize("command", COMMANDS)
def test_programs_get_the_answer_of_an_empty_store(
    usual: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["store", *command, "--json"]) == 0
    nothing = json.loads(capsys.readouterr().out)
    assert not usual.exists()
    if command[0] == "explain":
        assert nothing == {"stage": None, "key": None, "nearest": None, "changes": [], "document": None}
        return
    Store.open(usual).close()
    assert main(["store", *command, "--json"]) == 0
    empty = json.loads(capsys.readouterr().out)
    assert {**empty, "pretended": None} == {**nothing, "pretended": None}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_usual_store_that_is_none_stays_an_error(
    usual: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    usual.mkdir(parents=True)
    (usual / "thesis.tex").touch()
    assert main(["store", *command]) == 1
    assert f"{usual}: the folder holds other things, such as 'thesis.tex'" in capsys.readouterr().err
    (usual / "thesis.tex").unlink()
    usual.rmdir()
    usual.symlink_to("nowhere")
    assert main(["store", *command]) == 1
    assert f"{usual}: there is no store here" in capsys.readouterr().err
    usual.unlink()
    usual.parent.rmdir()
    usual.parent.write_text("x")
    assert main(["store", *command]) == 1
    assert f"{usual}: a file is where the store needs a folder" in capsys.readouterr().err


def test_the_home_of_a_path_is_found_where_the_shell_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Store.open(tmp_path / "mine").close()
    assert main(["store", "stats", "--store=~/mine"]) == 0
    assert capsys.readouterr().out.startswith(f"store {tmp_path}/mine\n")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"XDG_CACHE_HOME": "/a b/ü"}, "/a b/ü/tilewright"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/users/x"}, "/users/x/.cache/tilewright"),
        ({"XDG_CACHE_HOME": "~/x", "HOME": "/users/x"}, "/users/x/.cache/tilewright"),
        ({"XDG_CACHE_HOME": "", "HOME": "/users/x"}, "/users/x/.cache/tilewright"),
        ({"HOME": "/users/x"}, "/users/x/.cache/tilewright"),
        ({"HOME": ""}, "/users/me/.cache/tilewright"),
        ({"HOME": "relative"}, "/users/me/.cache/tilewright"),
        ({}, "/users/me/.cache/tilewright"),
    ],
)
def test_caches_lie_where_the_user_says_and_never_in_the_working_folder(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], expected: str
) -> None:
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    here = pwd.getpwuid(os.getuid())

    def listed(_: int) -> pwd.struct_passwd:
        return pwd.struct_passwd((*here[:5], "/users/me", here[6]))

    monkeypatch.setattr("pwd.getpwuid", listed)
    assert str(cache_home()) == expected


def test_a_user_whom_the_system_does_not_know_is_told_what_to_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(_: int) -> pwd.struct_passwd:
        raise KeyError("uid not found")

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    for command in COMMANDS:
        assert main(["store", *command]) == 1
        assert capsys.readouterr().err == (
            "store (store): the user's cache folder: neither XDG_CACHE_HOME nor HOME names an absolute path, "
            "and the system does not know this user.\n"
            "  next: set XDG_CACHE_HOME to a folder, or give one where the command takes it\n"
        )


def shell(line: str, root: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which ``tilewright`` is the command and ``$STORE`` the store."""
    return subprocess.run(
        ["bash", "-c", f'tilewright() {{ "{sys.executable}" -m pipeline.cli "$@"; }}; {line}'],
        env={**os.environ, "PYTHONUNBUFFERED": "", "STORE": str(root), **settings},
        cwd=REPOSITORY.root,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=60,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "status", "err"),
    [
        ('tilewright store stats --store "$STORE" --json | head -c0; exit ${PIPESTATUS[0]}', {0, 1}, ""),
        ("tilewright store --help | head -c0; exit ${PIPESTATUS[0]}", {0, 1}, ""),
        ('tilewright store stats --store "$STORE" >&-', {0}, ""),
        ('tilewright store stats --store "$STORE" >/dev/full', {1}, "the output cannot be written (No space"),
        ("tilewright --help >/dev/full", {1}, "the output cannot be written (No space"),
        ('tilewright store stats --store "$STORE" 2>&-', {0}, ""),
    ],
)
def test_output_that_goes_nowhere_leaves_no_traceback(
    root: Path, line: str, status: set[int], err: str
) -> None:
    done = shell(line, root)
    assert done.returncode in status
    assert done.stderr.startswith(err)
    assert done.stderr.count("\n") == (1 if err else 0)


@pytest.mark.slow
def test_a_path_that_is_no_text_is_shown_with_escapes(root: Path) -> None:
    odd = root.parent / "fü\udcff"
    root.rename(odd)
    done = shell('tilewright store stats --store "$STORE"', odd, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"store {root.parent}/f\\xfc\\udcff"
    done = shell('tilewright store stats --store "$STORE/none"', odd)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_folder_that_cannot_be_read_is_named(root: Path) -> None:
    with reachable_folder() as above:
        place = above / "store"
        shutil.copytree(root, place)

        def action() -> str:
            lines: list[str] = []
            for command in (["stats"], ["verify"], ["gc"], ["explain", "model", "square"]):
                errors = io.StringIO()
                with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
                    status = main(["store", *command, "--store", str(place)])
                lines.append(f"{status} {errors.getvalue().splitlines()[0]}")
            return "\n".join(lines)

        place.chmod(0o777)
        (place / "ac/kernel").chmod(0)
        subject = f"store (store): {place}/ac/kernel: permission is denied."
        text = in_child(action, unprivileged=True)
        (place / "ac/kernel").chmod(0o777)
        assert text.splitlines()[0] == f"1 {subject}"
        assert all(line.startswith(f"1 store (store): {place}") for line in text.splitlines())
        assert text.count("permission is denied") == 4


def test_a_store_that_may_only_be_read_can_be_verified(root: Path) -> None:
    with reachable_folder() as above:
        place = above / "store"
        shutil.copytree(root, place)
        damaged = next(iter(sorted(place.glob("cas/*/*"))))
        damaged.write_bytes(b"x")
        before = sorted(place.rglob("*"))

        def action() -> str:
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = main(["store", "verify", "--sample", "0", "--store", str(place)])
            return f"{status} {output.getvalue()}"

        place.chmod(0o755)
        text = in_child(action, unprivileged=True)
        assert text.startswith("1 read 4 results and 2 objects: 1 damaged\n")
        assert f"  damaged: {damaged.relative_to(place)}\n" in text
        assert sorted(place.rglob("*")) == before


def test_a_dry_run_leaves_damaged_files_where_they_are(run: Run, root: Path) -> None:
    next(root.glob("cas/*/*")).write_bytes(b"x")
    next(root.glob("ac/*/*/*")).write_bytes(b"x")

    def state() -> dict[Path, tuple[int, int, int]]:
        found = {path: path.lstat() for path in root.rglob("*")}  # looking changes when it was looked at
        return {path: (one.st_ino, one.st_size, one.st_mtime_ns) for path, one in found.items()}

    before = state()
    assert run("gc", "--budget", "0", "--grace", "0", "--dry-run")[0] == 0
    assert state() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gc", "--budget", "x"], "argument --budget: 'x' is not a number of bytes such as 500M"),
        (["gc", "--budget", "-1"], "argument --budget: '-1' is not a number of bytes"),
        (["gc", "--budget", ""], "argument --budget: '' is not a number of bytes"),
        (["gc", "--budget", "G"], "argument --budget: 'G' is not a number of bytes"),
        (["gc", "--budget", "nanG"], "argument --budget: 'nanG' is not a number of bytes"),
        (["gc", "--budget", "1e999G"], "argument --budget: '1e999G' is not a number of bytes"),
        (["gc", "--budget", "9" * 5000], "argument --budget: '9999"),
        (["gc", "--age", "-1"], "argument --age: '-1' is not a time"),
        (["gc", "--age", "nan"], "argument --age: 'nan' is not a time"),
        (["gc", "--grace", "soon"], "argument --grace: 'soon' is not a time"),
        (["verify", "--sample", "-1"], "argument --sample: -1 is negative"),
        (["verify", "--sample", "1e3"], "argument --sample: '1e3' is not a whole number"),
        (["verify", "--seed", "9" * 5000], "argument --seed: '9999"),
        (["stats", "--store", ""], "argument --store: it is empty, and no path"),
        (["stats", "--store", "~nobody-has-this-name/x"], "begins with the home of nobody"),
        (["stats", "extra"], "unrecognized arguments: extra"),
        (["explain"], "the following arguments are required: KEY | LABEL STAGE"),
        (["statistics"], "invalid choice: 'statistics'"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_bad_words_exit_with_2_and_say_which(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["store", *words])
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert len(err) < 2000
    assert "_" not in err.splitlines()[-1].replace("tilewright", ""), "no name of a function"


def test_a_label_that_nobody_used_is_answered_with_a_few_that_are_known(run: Run, reopen: Open) -> None:
    with reopen() as store:
        for number in range(30):
            store.run(SQUARE, NumberInputs(number=number), Options(), label=f"label {number:02}")
    with pytest.raises(InvalidInput) as refused:
        run("explain", "x", "square")
    assert refused.value.next_step == (
        "give one of `label 00 square`, `label 01 square`, `label 02 square`, `label 03 square`, "
        "`label 04 square`, or another of 33"
    )
    for label, stage in (("x" * 5000, "square"), ("model", "../../.."), ("model", "x" * 5000), ("", "")):
        with pytest.raises(InvalidInput, match="never run under this label"):
            run("explain", label, stage)
