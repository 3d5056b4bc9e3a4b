"""The command line as a shell: lazy groups, exit statuses, messages without tracebacks."""

import os
import subprocess
import sys

import pytest

from compiler.errors import InvalidInput
from pipeline import cli


def test_every_group_answers_help(capsys: pytest.CaptureFixture[str]) -> None:
    for group in cli.GROUPS:
        with pytest.raises(SystemExit) as stop:
            cli.main([group, "--help"])
        assert stop.value.code == 0
        assert f"tilewright {group}" in capsys.readouterr().out


def test_help_names_every_group(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert all(purpose in " ".join(printed.split()) for _, purpose in cli.GROUPS.values())


@pytest.mark.parametrize("words", [[], ["unknown"], ["store"], ["store", "unknown"]])
def test_wrong_words_exit_with_2_and_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2
    assert "usage: tilewright" in capsys.readouterr().err


def test_an_error_of_the_hierarchy_is_printed_and_exits_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.GROUPS, "broken", (__name__, "always refuses"))
    assert cli.main(["broken", "now"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "invalid input (test): nothing: it is refused.\n  next: expect this\n"


def add_commands(parser: "cli.argparse.ArgumentParser") -> None:
    """A group whose only command refuses."""

    def refuse(_: object) -> int:
        raise InvalidInput("it is refused", stage="test", subject="nothing", next_step="expect this")

    commands = parser.add_subparsers(required=True)
    commands.add_parser("now").set_defaults(run=refuse)


def test_help_imports_neither_numpy_nor_any_group() -> None:
    program = (
        "import sys\n"
        "from pipeline.cli import main\n"
        "try:\n"
        "    main(['--help'])\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'numpy', 'numba', 'fsspec', 'zstandard', 'pipeline.cli_isa', 'pipeline.cli_store'}\n"
        "sys.exit(sorted(heavy & set(sys.modules)).__repr__() if heavy & set(sys.modules) else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_goes_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as gone:
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", "isa", "decisions"],
            stdout=gone,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.stderr == ""


def test_a_bug_is_told_with_its_place_and_without_a_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.GROUPS, "broken", ("tests.pipeline.broken_group", "fails in every way"))
    for kind, text in (
        ("KeyError", "KeyError: 'x'"),
        ("RecursionError", "RecursionError: "),
        ("MemoryError", "MemoryError "),
    ):
        assert cli.main(["broken", kind, "a b"]) == 1
        err = capsys.readouterr().err
        first, second = err.splitlines()
        assert first.startswith(
            f"internal error, please report it (command): tilewright broken {kind} 'a b': {text}"
        )
        assert "(at tests/pipeline/broken_group.py:" in first
        assert "pipeline/cli.py:" in first
        assert second == "  next: report this message"
        assert len(err) < 3000


def test_a_file_that_a_command_did_not_answer_for_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.GROUPS, "broken", ("tests.pipeline.broken_group", "fails in every way"))
    assert cli.main(["broken", "OSError", "x"]) == 1
    assert capsys.readouterr().err == "/no/such/file: No such file or directory\n"
    assert cli.main(["broken", "KeyboardInterrupt", "x"]) == 130
    assert capsys.readouterr().err == "interrupted\n"
