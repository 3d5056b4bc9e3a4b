"""The steps of a profile as lines for people."""

from collections.abc import Iterator, Sequence

from compiler.package.records import StepKind
from compiler.report.profile import StepSpan


def lines_of_spans(spans: Sequence[StepSpan], kind: str) -> Iterator[str]:
    """A heading, a line for each step, and the sum of both columns over the steps that are planned.

    Args:
        spans: of one run.
        kind: of the spans: simulated, estimated or measured.
    """
    yield f"steps: cycles as planned (estimated, scheduled), and of the deciding tile ({kind}, with sampling)"
    yield "    step  kind              tiles    planned      found  deciding  what"
    for span in spans:
        planned = "-" if span.planned is None else f"{span.planned:,}"
        what = ": ".join(part for part in (span.operation, span.kernel) if part)
        yield (
            f"  {span.step:>6}  {span.kind.name.lower():<16}{span.tiles:>7,}{planned:>11}{span.found:>11,}"
            f"{span.deciding:>10}  {what}"
        )
    compared = [span for span in spans if span.planned is not None and span.kind is not StepKind.IDLE]
    total = sum(span.planned or 0 for span in compared)
    found = sum(span.found for span in compared)
    yield f"  in all {total:,} planned and {found:,} found in {len(compared)} steps"
