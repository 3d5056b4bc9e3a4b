"""A group of commands that fail as no command should."""

import argparse
from pathlib import Path


def add_commands(parser: argparse.ArgumentParser) -> None:
    """One command for each way to fail."""
    commands = parser.add_subparsers(required=True)
    for kind in ("KeyError", "RecursionError", "MemoryError", "OSError", "KeyboardInterrupt"):
        command = commands.add_parser(kind)
        command.add_argument("word")
        command.set_defaults(run=_fail, kind=kind)


def _fail(arguments: argparse.Namespace) -> int:
    match arguments.kind:
        case "KeyError":
            return {"a": 1}["x"]
        case "RecursionError":
            return _fail(arguments)
        case "MemoryError":
            raise MemoryError
        case "KeyboardInterrupt":
            raise KeyboardInterrupt
        case _:
            return len(Path("/no/such/file").read_bytes())
