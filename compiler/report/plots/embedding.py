"""Plots as HTML that needs no network, equal bytes for equal plots.

The plots of a page are one document of the library, so that a choice in one can change the others. The
library numbers its models in the order in which a process makes them; here they are numbered anew, in the
order in which the document names them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast, final

from bokeh.document import Document
from bokeh.events import DocumentReady
from bokeh.models import CustomJS, UIElement
from bokeh.resources import Resources


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plots:
    """Plots as HTML.

    Args:
        places: by name; each goes into the page once.
        scripts: go into the page once, behind all places.
    """

    places: Mapping[str, str]
    scripts: str


def embedded(plots: Mapping[str, UIElement], at_start: Sequence[CustomJS] = ()) -> Plots:
    """Some plots as one document.

    Args:
        plots: by name.
        at_start: scripts that run once, when all plots are there.
    """
    document = Document()
    for plot in plots.values():
        document.add_root(plot)
    if at_start:
        document.js_on_event(DocumentReady, *at_start)
    numbers: dict[str, str] = {}
    content = _renumbered(document.to_json(deferred=False), numbers)
    roots = {numbers[plot.id]: f"plot-{name}" for name, plot in plots.items()}
    item = {"docid": "report", "roots": roots, "root_ids": list(roots)}
    library = Resources(mode="inline", components=["bokeh", "bokeh-widgets"], log_level="warn").js_raw
    start = f"Bokeh.embed.embed_items({{report: {_script(content)}}}, [{_script(item)}])"
    return Plots(
        places={name: f'<div class="plot" id="plot-{name}"></div>\n' for name in plots},
        scripts="".join(f"<script>\n{text.strip()}\n</script>\n" for text in (*library, start)),
    )


def _renumbered(value: object, numbers: dict[str, str]) -> object:
    """A document with its models numbered in the order in which it names them."""
    if isinstance(value, dict):
        found: dict[str, object] = {}
        for key, item in cast("dict[str, object]", value).items():
            if key == "id" and isinstance(item, str):
                found[key] = numbers.setdefault(item, f"m{len(numbers)}")
            else:
                found[key] = _renumbered(item, numbers)
        return found
    if isinstance(value, list | tuple):
        return [_renumbered(item, numbers) for item in cast("Sequence[object]", value)]
    return value


def _script(value: object) -> str:
    """A value inside of a script, where no text of it can end the script."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
