"""``tilewright ledger``: every candidate of the last search of a model, and what became of it."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.evaluation.ledger import Entry


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    parser.add_argument("model", metavar="MODEL", help="name of a model that was built")
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_ledger)


def _ledger(arguments: argparse.Namespace) -> int:
    from compiler.report.plain import json_of
    from pipeline.cli_explain import open_store
    from pipeline.last_results import last_build, ledger_of

    with open_store(arguments.store) as store:
        ledger = ledger_of(last_build(store, arguments.model))
    if arguments.json:
        print(json_of(ledger))
        return 0
    if not ledger:
        print(f"{arguments.model}: its last build had no search")
    for entry in ledger:
        print(line_of(entry))
    return 0


def line_of(entry: "Entry") -> str:
    """An entry in a line: round, fate, cycles by kind, and what it does otherwise."""
    cycles = [
        f"{count:,} cycles ({kind})"
        for count, kind in ((entry.estimated_cycles, "estimated"), (entry.scheduled_cycles, "scheduled"))
        if count is not None
    ]
    reason = f"; {entry.reason}" if entry.reason else ""
    figures = f", {', '.join(cycles)}" if cycles else ""
    return f"round {entry.round}: {entry.fate.value}{figures}: {entry.change}{reason}"
