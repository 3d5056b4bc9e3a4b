"""``tilewright report``: the report of a model's last build as a page, or two builds side by side.

``report MODEL`` finds the last build in the store, builds nothing, and writes a page that opens in any
browser, with its data as JSON beside it. ``report diff A B`` takes two such files, page or data, or names of
models.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.user_files import read_text, why_unwritable, write_whole

if TYPE_CHECKING:
    from compiler.report.build import BuildReport
    from compiler.report.written import WrittenReport

STAGE: Final = "report"
_PAGE: Final = ".html"
_DATA: Final = ".json"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    parser.usage = (
        "tilewright report [-h] [--output FILE] [--store PATH] MODEL\n"
        "       tilewright report [-h] [--output FILE] [--store PATH] diff A B"
    )
    parser.add_argument(
        "subject",
        nargs="+",
        metavar="MODEL | diff A B",
        help="a model that was built; or diff, and two sides, each a report (page or data) or a model",
    )
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="the page (default: MODEL.report.html or report-diff.html here); its data go beside it",
    )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )

    def run(arguments: argparse.Namespace) -> int:
        subject: list[str] = arguments.subject
        is_comparison = subject[0] == "diff"
        if len(subject) != (3 if is_comparison else 1):
            parser.error("give one model, or diff and two sides")
        if is_comparison:
            return _compare(subject[1], subject[2], arguments)
        return _report(subject[0], arguments)

    parser.set_defaults(run=run)


def _report(model: str, arguments: argparse.Namespace) -> int:
    page = _page_path(arguments.output, f"{model}.report{_PAGE}")
    report = last_report(model, arguments.store)
    write_report(page, report)
    print(f"{model}: {page} and {page.with_suffix(_DATA)}")
    return 0


def _compare(before: str, after: str, arguments: argparse.Namespace) -> int:
    from compiler.report.comparison import comparison_of, page_of_comparison
    from compiler.report.plain import json_of

    page = _page_path(arguments.output, f"report-diff{_PAGE}")
    sides = _side(before, arguments.store), _side(after, arguments.store)
    names = _name(before), _name(after)
    write_whole(page.with_suffix(_DATA), f"{json_of(comparison_of(*sides, names))}\n".encode())
    write_whole(page, page_of_comparison(*sides, names).encode())
    print(f"{names[0]} and {names[1]}: {page} and {page.with_suffix(_DATA)}")
    return 0


def last_report(model: str, root: Path | None) -> "WrittenReport":
    """The report of the last build of a model, as the build left it, or made of what its stages left.

    Raises:
        InvalidInput: it was never built, came to no package, or its results are gone.
    """
    from compiler.report.build import build_report
    from compiler.report.written import WrittenReport, written
    from pipeline.cli_explain import open_store
    from pipeline.last_results import built_of, last_build

    with open_store(root) as store:
        last = last_build(store, model)
        result = last.results().get("build_report")
        if result is not None:
            value: WrittenReport = result.value()
            return value
        return written(build_report(built_of(store, last)))


def write_report(page: Path, report: "WrittenReport") -> None:
    """Write a report: its data beside the page, and the page last."""

    write_whole(page.with_suffix(_DATA), report.data)
    write_whole(page, report.page)


def _side(place: str, root: Path | None) -> "BuildReport":
    """The report of a side.

    Raises:
        InvalidInput: there is no such file or build, or the file holds no report.
    """
    from compiler.errors import InvalidInput
    from compiler.report.build import report_from_json

    path = Path(place)
    if path.suffix not in (_PAGE, _DATA):
        return report_from_json(last_report(place, root).data)
    data = path.with_suffix(_DATA)
    try:
        return report_from_json(read_text(data, stage=STAGE))
    except ValueError as fault:
        raise InvalidInput(
            f"the file holds no report: {fault}",
            stage=STAGE,
            subject=str(data),
            next_step="give a page or data that tilewright report has written, or the name of a model",
        ) from fault


def _name(place: str) -> str:
    """What a side is called."""
    path = Path(place)
    return path.name if path.suffix in (_PAGE, _DATA) else place


def _page_path(path: Path | None, usual: str) -> Path:
    """Where the page goes.

    Raises:
        InvalidInput: its data would have the same path, or it cannot be written there.
    """
    from compiler.errors import InvalidInput

    found = Path(usual) if path is None else path
    if found.suffix != _PAGE:
        reason, step = "the page needs a name that ends in .html", "name a file such as build.html"
    else:
        reason, step = why_unwritable(found), "name a file in a folder that exists and can be written"
        if reason is None:
            return found
    raise InvalidInput(reason, stage=STAGE, subject=str(found), next_step=step)
