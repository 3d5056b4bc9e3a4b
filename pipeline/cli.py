"""The ``tilewright`` command: a shell that loads its groups only when they are asked for.

Inputs: the command line. Guarantees: no traceback for bad input (an error of the closed hierarchy is printed
with its numbers and next step, exit status 1; wrong words on the command line exit with 2), and a start in a
few hundredths of a second, since no group and no part of the compiler is imported before it is needed.

Every group is one module with ``add_commands(parser)``, which adds its subcommands and gives each a ``run``
default: a function from the parsed arguments to an exit status.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final, Protocol, cast


class _Group(Protocol):
    """What a module of commands provides."""

    def add_commands(self, parser: argparse.ArgumentParser) -> None: ...


GROUPS: Final[dict[str, tuple[str, str]]] = {
    "isa": ("pipeline.cli_isa", "assemble, disassemble, link and inspect IPU21 machine code"),
    "store": ("pipeline.cli_store", "look into, check and clean the content-addressed store"),
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
        The exit status: 0 done, 1 refused or failed with a message on standard error, 2 wrong usage.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((word for word in words if not word.startswith("-")), None)
    parsed = _parser(chosen).parse_args(words)
    run = cast(Callable[[argparse.Namespace], int], parsed.run)
    from compiler.errors import TilewrightError

    try:
        status = run(parsed)
        sys.stdout.flush()
    except TilewrightError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has gone (`tilewright ... | head`); what is left to flush goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        # Commands answer for the files they read and write; an error without a file is about what is printed.
        if error.filename is not None:
            raise
        print(f"the output cannot be written ({error.strerror})", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return status


if __name__ == "__main__":
    sys.exit(main())
