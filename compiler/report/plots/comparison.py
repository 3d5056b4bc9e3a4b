"""The plots of two builds, by name: nodes, phases, tiles. Those that there are no data for are missing."""

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, DataRange1d, FixedTicker, NumeralTickFormatter, UIElement
from bokeh.plotting import figure

from compiler.report.build import BuildReport
from compiler.report.colours import SIDE_COLOURS
from compiler.report.plots.cycles import MOST_NODES
from compiler.report.plots.embedding import Plots, embedded
from compiler.report.plots.style import empty_plot, few, hover, whole_numbers


def plots_of_comparison(before: BuildReport, after: BuildReport) -> Plots:
    """The plots of two builds."""
    found: dict[str, UIElement] = {}
    nodes = list(dict.fromkeys(node.node for side in (before, after) for node in side.cycles.nodes))
    if nodes:
        found["nodes"] = _nodes(nodes, before, after)
    if before.phases or after.phases:
        found["phases"] = _phases(before, after)
    found["tiles"] = _tiles(before, after)
    return embedded(found)


def _nodes(nodes: list[str], before: BuildReport, after: BuildReport) -> figure:
    cycles = [{node.node: node.share.cycles for node in side.cycles.nodes} for side in (before, after)]
    nodes = sorted(nodes, key=lambda node: -max(side.get(node, 0.0) for side in cycles))[:MOST_NODES]
    source = ColumnDataSource(
        {
            "node": nodes,
            "place": list(range(len(nodes))),
            "above": [place - 0.2 for place in range(len(nodes))],
            "below": [place + 0.2 for place in range(len(nodes))],
            "before": [cycles[0].get(node, 0.0) for node in nodes],
            "after": [cycles[1].get(node, 0.0) for node in nodes],
        }
    )
    plot = empty_plot(
        height=70 + 32 * len(nodes),
        y_range=(len(nodes) - 0.4, -0.6),
        x_axis_label="cycles of a run (scheduled)",
        zoom="width",
    )
    drawn = [
        plot.hbar(
            y=place,
            right=side,
            height=0.38,
            source=source,
            color=SIDE_COLOURS[side],
            line_color=None,
            name=f"nodes {side}",
        )
        for side, place in (("before", "above"), ("after", "below"))
    ]
    hover(plot, drawn, ("node", "@node"), ("before", "@before{0,0}"), ("after", "@after{0,0}"))
    plot.yaxis.ticker = FixedTicker(ticks=list(range(len(nodes))))
    plot.yaxis.major_label_overrides = dict(enumerate(nodes))
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.ygrid.visible = False
    return plot


def _phases(before: BuildReport, after: BuildReport) -> figure:
    plot = empty_plot(height=260, x_axis_label="phase", y_axis_label="events (scheduled)")
    drawn: list[Any] = []
    for side, phases, shift in (("before", before.phases, -0.2), ("after", after.phases, 0.2)):
        source = ColumnDataSource(
            {
                "phase": list(range(len(phases))),
                "place": [place + shift for place in range(len(phases))],
                "horizon": [phase.horizon.value for phase in phases],
                "bound": [phase.bound.value for phase in phases],
                "side": [side] * len(phases),
                "nodes": [few(phase.nodes) for phase in phases],
            }
        )
        drawn.append(
            plot.vbar(
                x="place",
                top="horizon",
                width=0.38,
                source=source,
                color=SIDE_COLOURS[side],
                line_color=None,
                name=f"phases {side}",
            )
        )
    hover(
        plot,
        drawn,
        ("phase", "@phase, @side"),
        ("for", "@nodes"),
        ("bound", "@bound{0,0} events"),
        ("horizon", "@horizon{0,0} events"),
    )
    whole_numbers(plot, counted=True)
    return plot


def _tiles(before: BuildReport, after: BuildReport) -> figure:
    plot = empty_plot(
        height=260,
        x_axis_label="tiles, the fullest first",
        y_axis_label="bytes used",
        y_range=DataRange1d(start=0),
    )
    drawn: list[Any] = []
    for side, report in (("before", before), ("after", after)):
        used = np.array(report.memory.used, dtype=np.uint32)
        order = np.argsort(-used.astype(np.int64), kind="stable")
        source = ColumnDataSource(
            {
                "place": np.arange(len(used), dtype=np.uint16),
                "side": [side] * len(used),
                "used": used[order],
                "tile": order.astype(np.uint16),
            }
        )
        drawn.append(
            plot.step(
                x="place",
                y="used",
                mode="after",
                source=source,
                line_width=2,
                color=SIDE_COLOURS[side],
                name=f"tiles {side}",
            )
        )
    hover(plot, drawn, ("@side", "tile @tile, @used{0,0} bytes"))
    whole_numbers(plot)
    return plot
