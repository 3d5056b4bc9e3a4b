"""What a person sees of a materialization: under 4 KiB, the sentence first.

Dagster stores each byte of metadata four times and plots every number over materializations. So figures are
numbers with their unit and kind in the name, explanations are cut, and everything large stays in the store,
whose record is named.
"""

from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from assets.sentences import outcome_of, reasons_of

if TYPE_CHECKING:
    from compiler.figures import Figures
    from compiler.store.result import StageResult
    from compiler.store.store import Store

_MOST_REASONS: Final = 6
_MOST_FIGURES: Final = 12


def metadata_of(
    store: "Store", result: "StageResult[Any]", figures: "Figures"
) -> dict[str, dg.MetadataValue[Any]]:
    """The metadata of a result.

    Args:
        store: that holds it.
        result: of a stage.
        figures: of the result, the most telling first.
    """
    shown = figures[:_MOST_FIGURES]
    entries: dict[str, dg.MetadataValue[Any]] = {"result": dg.MetadataValue.text(outcome_of(result, shown))}
    entries |= {
        f"{figure.name} ({figure.unit}, {figure.kind.value})": dg.MetadataValue.int(figure.value)
        for figure in shown
    }
    if shown:
        entries["figures"] = dg.MetadataValue.md(_table(shown))
    entries |= {
        "why": dg.MetadataValue.text(
            "\n".join(reasons_of(result, _MOST_REASONS)) or "nothing that decides the result changed"
        ),
        "seconds (measured)": dg.MetadataValue.float(round(result.seconds, 3)),
        "seconds saved (measured)": dg.MetadataValue.float(round(result.saved_seconds, 3)),
        "digest": dg.MetadataValue.text(result.digest),
        "key": dg.MetadataValue.text(result.key),
    }
    record = store.records.path(result.record.namespace, result.key)
    if store.writable or result.hit:
        entries["record"] = dg.PathMetadataValue(str(record))
    return entries


def _table(figures: "Figures") -> str:
    rows = [
        f"| {figure.name} | {figure.value:,} {figure.unit} | "
        f"{'' if figure.limit is None else f'{figure.limit:,}'} | {figure.kind.value} |"
        for figure in figures
    ]
    return "\n".join(["| figure | value | limit | kind |", "|---|--:|--:|---|", *rows])
