"""``tilewright exchange``: check examples of exchange rows and phases, measure phases of known patterns."""

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
    bench = commands.add_parser(
        "bench",
        help="schedule a phase of a known pattern: bounds, horizon, rows, speed",
        description=(
            "Schedule a phase of a known pattern on all tiles, write its rows and check them: how close it"
            " comes to its bounds, how large its rows are, and how long each part took on one core. Every"
            " number says what kind it is. Not among the seconds are the pattern itself, its placement and"
            " the compilation of hot loops."
        ),
    )
    bench.add_argument("--pattern", required=True, metavar="P", help="its name; a wrong one lists all")
    bench.add_argument("--seed", type=_seed, default=0, metavar="S", help="of its random parts (default 0)")
    bench.set_defaults(run=_bench)


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


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


_seed.__name__ = "number from 0 on"  # what argparse calls it in its message


def _bench(arguments: argparse.Namespace) -> int:
    from compiler.errors import InvalidInput
    from pipeline.exchange_bench import measured
    from pipeline.exchange_patterns import PATTERNS

    if arguments.pattern not in PATTERNS:
        raise InvalidInput(
            f"there is no pattern {arguments.pattern!r}",
            stage="exchange bench",
            subject="--pattern",
            next_step=f"choose one of {', '.join(PATTERNS)}",
        )
    for line in measured(arguments.pattern, arguments.seed).lines():
        print(line)
    return 0
