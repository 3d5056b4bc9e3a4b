"""What a person sees of a materialization: under 4 KiB, the sentence first.

Dagster stores each byte of metadata four times and plots every number over materializations. So figures are
numbers with their unit and kind in the name, explanations are cut, and everything large stays in the store,
whose record is named.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from assets.sentences import outcome_of, reasons_of

if TYPE_CHECKING:
    from compiler.figures import Figures
    from compiler.store.result import StageResult
    from compiler.store.store import Store

DATA_VERSION: Final = "dagster/data_version"
"""Tag of Dagster on each materialization."""
CHOICES: Final = "choices"
"""Entry with what a run chose otherwise than by default."""
FAULT: Final = "fault made on purpose"
"""Entry of results that are not what they seem."""
OUTCOME: Final = "outcome"
"""Entry that says whether the result is the one that was materialized before."""
UNKNOWN: Final = "has none before it"
"""Outcome of what was never materialized before."""
UNCHANGED: Final = "nothing that decides the result changed"
"""Why a result was reused."""
REUSED: Final = "reused"
"""Entry that says whether the result was."""
SAVED: Final = "seconds saved (measured)"
"""Entry with the seconds that a reused result took when it was computed."""
MOST_REASONS: Final = 6
_MOST_FIGURES: Final = 12


def metadata_of(
    store: "Store", result: "StageResult[Any]", figures: "Figures", choices: Mapping[str, Any], fault: str
) -> dict[str, dg.MetadataValue[Any]]:
    """The metadata of a result.

    Args:
        store: that holds it.
        result: of a stage.
        figures: of the result, the most telling first.
        choices: what the run chose otherwise than by default.
        fault: what was made wrong on purpose; "none" for nothing.
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
        "why": dg.MetadataValue.text("\n".join(reasons_of(result, MOST_REASONS)) or UNCHANGED),
        CHOICES: dg.MetadataValue.text(json.dumps(choices, sort_keys=True)),
        "seconds (measured)": dg.MetadataValue.float(round(result.seconds, 3)),
        REUSED: dg.MetadataValue.bool(result.hit),
        SAVED: dg.MetadataValue.float(round(result.saved_seconds, 3)),
        "digest": dg.MetadataValue.text(result.digest),
        "key": dg.MetadataValue.text(result.key),
    }
    if fault != "none":
        entries[FAULT] = dg.MetadataValue.text(fault)
    record = store.records.path(result.record.namespace, result.key)
    if store.writable or result.hit:
        entries["record"] = dg.PathMetadataValue(str(record))
    return entries


def outcome_against(digest: str, last: dg.AssetMaterialization | None) -> str:
    """Whether a result, reused or computed again, is the one that was materialized before.

    Of a search whose later stages were edited, this says whether its outcome still holds.
    """
    before = None if last is None else (last.tags or {}).get(DATA_VERSION)
    if before is None:
        return UNKNOWN
    if before == digest:
        return "still holds: the bytes are those that were materialized before"
    return f"is another: {before[:12]} -> {digest[:12]}"


def _table(figures: "Figures") -> str:
    rows = [
        f"| {figure.name} | {figure.value:,} {figure.unit} | "
        f"{'' if figure.limit is None else f'{figure.limit:,}'} | {figure.kind.value} |"
        for figure in figures
    ]
    return "\n".join(["| figure | value | limit | kind |", "|---|--:|--:|---|", *rows])
