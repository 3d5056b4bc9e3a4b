"""Where the report of a build lies to be opened: one page for each model, that of its last materialization.

The store keeps every page by its digest, packed; a browser wants a file of its own.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.store.result import StageResult
    from compiler.store.store import Store

STAGE = "build_report"


def shown_page(store: "Store", group: str, result: "StageResult[Any]") -> Path | None:
    """Write the page of a report beside the store; where, or None when there is no place for it."""
    path = store.root.with_name("reports") / f"{group}.html"
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(result.value().page)
        part.replace(path)
    except OSError:
        return None
    return path
