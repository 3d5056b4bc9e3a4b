"""Where the cycles of a run go, by graph node and by step."""

from collections.abc import Sequence
from typing import Any, Final

from bokeh.models import ColumnDataSource, DataRange1d, NumeralTickFormatter
from bokeh.plotting import figure

from compiler.report.colours import PART_COLOURS
from compiler.report.plots.style import empty_plot, few, hover, whole_numbers
from compiler.report.timeline import PARTS, Share, StepShare

MOST_NODES: Final = 40
"""Graph nodes with bars of their own."""


def step_plot(steps: Sequence[StepShare]) -> figure:
    """Cycles of all iterations of each step."""
    columns: dict[str, Any] = {
        "step": [step.step for step in steps],
        "kind": [step.kind for step in steps],
        "nodes": [few(step.nodes) for step in steps],
        "iterations": [step.iterations for step in steps],
        "tiles": [step.tiles for step in steps],
        "start": [step.start for step in steps],
        "cycles": [step.share.cycles for step in steps],
    }
    plot = empty_plot(
        height=280,
        y_range=DataRange1d(start=0),
        x_axis_label="step",
        y_axis_label="cycles of a run (scheduled)",
    )
    bars = _stacked(plot, columns, [step.share for step in steps], "step", is_flat=False)
    hover(
        plot,
        bars,
        ("step", "@step, @kind, @iterations times on @tiles{0,0} tiles"),
        ("for", "@nodes"),
        ("begins at", "@start{0,0} cycles"),
        *((part, f"@{part}{{0,0}}") for part in PARTS),
        ("in all", "@cycles{0,0}"),
    )
    whole_numbers(plot, counted=True)
    return plot


def node_plot(nodes: Sequence[tuple[str, Share]]) -> figure:
    """Cycles of graph nodes, those with most first; the last ones of many in one bar."""
    largest = sorted(nodes, key=lambda item: -item[1].cycles)
    shown, others = largest[:MOST_NODES], largest[MOST_NODES:]
    if others:
        rest = Share()
        for _, share in others:
            rest = rest.plus(share)
        shown.append((f"{len(others)} others", rest))
    names = [name for name, _ in shown]
    total = sum(share.cycles for _, share in nodes) or 1.0
    plot = empty_plot(
        height=70 + 24 * len(names),
        x_range=DataRange1d(start=0),
        y_range=names[::-1],
        x_axis_label="cycles of a run (scheduled)",
        zoom="width",
    )
    columns: dict[str, Any] = {
        "node": names,
        "cycles": [share.cycles for _, share in shown],
        "part": [100 * share.cycles / total for _, share in shown],
    }
    bars = _stacked(plot, columns, [share for _, share in shown], "node", is_flat=True)
    hover(
        plot,
        bars,
        ("node", "@node"),
        *((part, f"@{part}{{0,0}}") for part in PARTS),
        ("in all", "@cycles{0,0} (@part{0.0} %)"),
    )
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.ygrid.visible = False
    return plot


def _stacked(
    plot: figure, columns: dict[str, Any], shares: Sequence[Share], axis: str, *, is_flat: bool
) -> list[Any]:
    """Bars of shares on top of each other."""
    for part in PARTS:
        columns[part] = [float(getattr(share, part)) for share in shares]
    source = ColumnDataSource(columns)
    look: dict[str, Any] = {"color": [PART_COLOURS[part] for part in PARTS], "line_color": None}
    if is_flat:
        return plot.hbar_stack(list(PARTS), y=axis, height=0.72, source=source, **look)
    return plot.vbar_stack(list(PARTS), x=axis, width=0.86, source=source, **look)
