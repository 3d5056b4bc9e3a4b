"""A report as it is kept: its data, and the page that is made of them.

The plotting library takes half a second to import. That happens here, when a page is made, so that nobody
else waits for it.
"""

from dataclasses import dataclass
from typing import final

from compiler.figures import Figures, counted
from compiler.report.build import BuildReport, report_json


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WrittenReport:
    """A report as bytes.

    Args:
        data: the report as JSON.
        page: the same to look at, as HTML.
        figures: the last cycles of the headline, and the sizes of both.
    """

    data: bytes
    page: bytes
    figures: Figures


def written(report: BuildReport) -> WrittenReport:
    """A report as bytes."""
    from compiler.report.page import page_of_report

    data, page = report_json(report).encode() + b"\n", page_of_report(report).encode()
    return WrittenReport(
        data=data,
        page=page,
        figures=(
            report.headline.cycles[-1],
            counted("page", len(page), "bytes"),
            counted("data", len(data), "bytes"),
        ),
    )
