"""``tilewright exchange``: check examples of exchange rows and phases."""

import argparse
from pathlib import Path


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the group; each sets ``run`` to a function from arguments to an exit status."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    check = commands.add_parser(
        "check-fixtures",
        help="work out again what a file of exchange examples states",
        description=(
            "Work out again what a file of exchange examples states: events from the formulas, rows by"
            " decoding them, payloads by running them in the simulated fabric. The file is Markdown with json"
            " blocks, a JSON object, a list of objects, or one object a line. Exit status 1 when something"
            " disagrees; unknown kinds and keys are named and counted, and change nothing else."
        ),
    )
    check.add_argument("file", type=Path, help="examples")
    check.set_defaults(run=_check_fixtures)


def _check_fixtures(arguments: argparse.Namespace) -> int:
    from pipeline.exchange_fixtures.check import check_objects
    from pipeline.exchange_fixtures.reading import read_objects

    path: Path = arguments.file
    checked = check_objects(read_objects(path))
    wrong = unknown_kinds = unknown_keys = 0
    for example in checked:
        found = example.findings
        head = f"{example.number} {example.kind}"
        if not example.is_known:
            unknown_kinds += 1
            print(f"{head}: unknown kind")
            continue
        wrong += bool(found.wrong)
        unknown_keys += len(found.unknown)
        print(f"{head}: {found.agreed} facts agree" + (f", {len(found.wrong)} wrong" if found.wrong else ""))
        for line in found.wrong:
            print(f"  wrong: {line}")
        for key in found.unknown:
            print(f"  unknown key: {key}")
    held = len(checked) - wrong - unknown_kinds
    print(
        f"{held} of {len(checked)} examples agree, {wrong} wrong,"
        f" {unknown_kinds} of unknown kind, {unknown_keys} unknown keys"
    )
    return 1 if wrong else 0
