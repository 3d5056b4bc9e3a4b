"""The ``tilewright`` command: a shell that loads its groups only when they are asked for.

Inputs: the command line. Guarantees: no traceback (an error of the closed hierarchy is printed with its
numbers and next step, exit status 1, and any other exception as an internal error with the places it went
through; wrong words on the command line exit with 2), and a start in a few hundredths of a second, since no
group and nothing of the compiler but its errors is imported before it is needed.

Every group is one module with ``add_commands(parser)``, which adds its subcommands and gives each a ``run``
default: a function from the parsed arguments to an exit status.
"""

import argparse
import io
import os
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, cast


class _Group(Protocol):
    """What a module of commands provides."""

    def add_commands(self, parser: argparse.ArgumentParser) -> None: ...


GROUPS: Final[dict[str, tuple[str, str]]] = {
    "accept": ("pipeline.cli_accept", "whether full-size models build, fit and run as promised"),
    "build": ("pipeline.cli_build", "build a model: its package, and cycles from the simulator"),
    "calibrate": ("pipeline.cli_calibrate", "hold the cycle formulas of kernels against simulated cycles"),
    "diff": ("pipeline.cli_diff", "what differs between two builds, by graph node"),
    "exchange": ("pipeline.cli_exchange", "check examples of exchange rows and phases"),
    "explain": ("pipeline.cli_explain", "what each stage of the last build of a model decided"),
    "inspect": ("pipeline.cli_inspect", "look into a package: content, tiles, exchanges, functions"),
    "isa": ("pipeline.cli_isa", "assemble, disassemble, link, inspect and run IPU21 machine code"),
    "kernels": ("pipeline.cli_kernels", "show and run the kernels: contracts, machine code, cycles"),
    "ledger": ("pipeline.cli_ledger", "every candidate of the last search of a model, and what became of it"),
    "materialize": ("pipeline.cli_materialize", "run one stage of a model again, or it and all behind it"),
    "models": ("pipeline.cli_models", "list the models and look at one"),
    "nightly": ("pipeline.cli_nightly", "build the representative models again and compare with the store"),
    "place": ("pipeline.cli_place", "place buffers with lives and sizes in one memory"),
    "report": ("pipeline.cli_report", "the last build of a model as a page to look at, or two side by side"),
    "simulate": ("pipeline.cli_simulate", "run an application from its package"),
    "store": ("pipeline.cli_store", "look into, check and clean the content-addressed store"),
    "ui": ("pipeline.cli_ui", "show the assets in Dagster's pages, and run their schedules"),
}
"""Group name -> (module, what it is for)."""


def _parser(chosen: str | None) -> argparse.ArgumentParser:
    """The parser, with the commands of the chosen group only."""
    parser = argparse.ArgumentParser(
        prog="tilewright", description="Compile transformer models for the Graphcore IPU21."
    )
    groups = parser.add_subparsers(metavar="GROUP", required=True)
    for name, (module, purpose) in GROUPS.items():
        group = groups.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
        if name == chosen:
            cast(_Group, import_module(module)).add_commands(group)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: the words after ``tilewright``; those of the process when None.

    Returns:
        The exit status: 0 done, 1 refused or failed with a message on standard error, 2 wrong usage, 130
        interrupted, 143 terminated.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    output: object = sys.stdout  # None when the caller closed it
    if isinstance(output, io.TextIOWrapper):
        # Paths may hold bytes that are no text, and terminals may lack letters: both appear as escapes.
        output.reconfigure(errors="backslashreplace")
    from compiler.errors import InternalError, TilewrightError

    try:
        try:
            with _ended_in_order():
                return _run(words)
        finally:
            if output is not None:
                sys.stdout.flush()
    except TilewrightError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output has gone (`tilewright ... | head`).
        _discard_output()
    except OSError as error:
        # Commands answer for the files they read and write; an error without a file is about what is printed.
        if error.filename is not None:
            print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        else:
            print(f"the output cannot be written ({error.strerror})", file=sys.stderr)
            _discard_output()
    except _Terminated:
        print("terminated", file=sys.stderr)
        return 143
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:  # noqa: BLE001  # a bug of ours, told so that it can be found without a traceback
        text = " ".join(str(error).split())
        print(
            InternalError(
                f"{type(error).__name__}{f': {text[:500]}' if text else ''} (at {_place(error)})",
                stage="command",
                subject=shlex.join(["tilewright", *words]),
                next_step="report this message",
            ),
            file=sys.stderr,
        )
    return 1


class _Terminated(KeyboardInterrupt):
    """The process was asked to end (SIGTERM): what is left is what an interrupt leaves."""


def _terminate(_number: int, _frame: object) -> None:
    raise _Terminated


@contextmanager
def _ended_in_order() -> Generator[None, None, None]:
    """Lets a request to end take the way of an interrupt, on which workers are ended and files removed."""
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    ):
        yield  # somebody else answers for the process
        return
    signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(words: list[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), None)
    parsed = _parser(chosen).parse_args(words)
    return cast(Callable[[argparse.Namespace], int], parsed.run)(parsed)


def _discard_output() -> None:
    """What is left to flush goes nowhere, so that the end of the process has nothing to complain about."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: BaseException) -> str:
    """Where an exception was raised and through which lines, the innermost first; a long way is shortened."""
    places = [
        f"{'/'.join(Path(frame.filename).parts[-3:])}:{frame.lineno}"
        for frame in reversed(traceback.extract_tb(error.__traceback__))
    ]
    return " < ".join(places if len(places) <= 12 else [*places[:8], "...", *places[-3:]])


if __name__ == "__main__":
    sys.exit(main())
