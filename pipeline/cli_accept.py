"""``tilewright accept``: whether what users rely on holds, line by line.

The lines are those of ``acceptance``: full-size models with the cycles that they may take, models that must
be refused, caches, interruptions. Each is carried out, judged and printed; ``--json`` writes all figures with
their kinds, after every line, so that whoever interrupts the command keeps what is done. What is in the store
is not computed again. The exit status is 1 when a line fails.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.arguments import positive, whole
from pipeline.user_files import write_whole

if TYPE_CHECKING:
    from pipeline.acceptance import Line, Outcome

VERSION: Final = 1
"""Form of the JSON."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    parser.add_argument("--lines", default="", metavar="NAME,...", help="these lines (default: all)")
    parser.add_argument("--quick", action="store_true", help="the lines that take seconds")
    parser.add_argument("--list", action="store_true", help="say what the lines demand, and do nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write checks and figures, too")
    parser.add_argument(
        "--attempts",
        type=whole,
        default=0,
        metavar="N",
        help="of the search in every build (default: 0: the first plan has to do)",
    )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="threads that a stage may use (default: 1)"
    )
    parser.set_defaults(run=_accept)


def _accept(arguments: argparse.Namespace) -> int:
    lines = _chosen(arguments)
    if arguments.list:
        for line in lines:
            print(f"{line.name:<28}{type(line.demand).__name__.lower():<9}{_words(line)}")
        return 0
    from compiler.cache_home import cache_home
    from compiler.errors import TilewrightError
    from pipeline.acceptance import Check, Outcome
    from pipeline.acceptance_runs import Settings, run_line

    report: Path | None = arguments.json
    if report is not None:
        _check_folder(report)
    given: Path | None = arguments.store
    settings = Settings(
        store=(cache_home() / "store" if given is None else given).absolute(),
        attempts=arguments.attempts,
        workers=arguments.workers,
    )
    done: list[Outcome] = []
    for line in lines:
        print(line.name, flush=True)
        try:
            outcome = run_line(line, settings)
        except TilewrightError as error:
            failed = Check(what="the line", required="comes to its end", found=str(error), passed=False)
            outcome = Outcome(
                name=line.name,
                demand=type(line.demand).__name__.lower(),
                words=("build", *line.demand.variant.words(), "--attempts", str(settings.attempts)),
                checks=(failed,),
                figures=(),
                parts=(),
                wall_seconds=0.0,
                processor_seconds=0.0,
            )
        done.append(outcome)
        _print(outcome)
        if report is not None:
            write_whole(report, _json_of(done, settings.workers).encode())
    failing = [outcome.name for outcome in done if not outcome.passed]
    print(f"{len(done) - len(failing)} of {len(done)} lines hold{_failed(failing)}")
    return 1 if failing else 0


def _chosen(arguments: argparse.Namespace) -> "list[Line]":
    """The lines that are asked for, in the order of the table.

    Raises:
        InvalidInput: there is no line of a name.
    """
    from compiler.errors import InvalidInput
    from pipeline.acceptance import LINES

    names = [name for name in str(arguments.lines).split(",") if name]
    known = [line.name for line in LINES]
    for name in names:
        if name not in known:
            raise InvalidInput(
                "there is no line of this name",
                stage="accept",
                subject=name,
                next_step="list the names with: tilewright accept --list",
            )
    return [
        line for line in LINES if (not names or line.name in names) and (line.quick or not arguments.quick)
    ]


def _check_folder(path: Path) -> None:
    """Before any work: that there is a place for the report.

    Raises:
        InvalidInput: there is none.
    """
    from compiler.errors import InvalidInput

    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInput(
            "the report cannot be written there",
            stage="accept",
            subject=str(path),
            next_step="name a file in a folder that exists",
        )


def _words(line: "Line") -> str:
    return " ".join(line.demand.variant.words())


def _print(outcome: "Outcome") -> None:
    for check in outcome.checks:
        kind = f" ({check.kind})" if check.kind else ""
        state = "ok  " if check.passed else "FAIL"
        print(f"  {state} {check.what}: {check.found}{kind}; required: {check.required}")
    for figure in outcome.figures:
        print(f"       {figure}")
    if outcome.parts:
        parts = ", ".join(f"{name} {cycles:,.0f}" for name, cycles in outcome.parts)
        print(f"       cycles by what happens in them: {parts} (scheduled)")
    print(
        f"       {outcome.wall_seconds:,.1f} s, {outcome.processor_seconds:,.1f} s of processors (measured)",
        flush=True,
    )


def _failed(names: list[str]) -> str:
    return f"; failed: {', '.join(names)}" if names else ""


def _json_of(done: "list[Outcome]", workers: int) -> str:
    import json
    import os
    import platform

    from compiler.version import VERSION as COMPILER

    return (
        json.dumps(
            {
                "version": VERSION,
                "compiler": COMPILER,
                "python": platform.python_version(),
                "cores": len(os.sched_getaffinity(0)),
                "workers": workers,
                "lines": [
                    {
                        "name": outcome.name,
                        "demand": outcome.demand,
                        "command": " ".join(("tilewright", *outcome.words)),
                        "passed": outcome.passed,
                        "checks": [
                            {
                                "what": check.what,
                                "required": check.required,
                                "found": check.found,
                                "kind": check.kind or None,
                                "passed": check.passed,
                            }
                            for check in outcome.checks
                        ],
                        "figures": [
                            {
                                "name": figure.name,
                                "value": figure.value,
                                "unit": figure.unit,
                                "kind": figure.kind.value,
                            }
                            for figure in outcome.figures
                        ],
                        "cycles_by_part": {
                            "kind": "scheduled",
                            "parts": dict(outcome.parts),
                        }
                        if outcome.parts
                        else None,
                        "wall_seconds": outcome.wall_seconds,
                        "processor_seconds": outcome.processor_seconds,
                    }
                    for outcome in done
                ],
            },
            indent=2,
        )
        + "\n"
    )
