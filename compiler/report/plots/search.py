"""The candidates of a search."""

from collections.abc import Sequence
from typing import Any

from bokeh.models import ColumnDataSource
from bokeh.plotting import figure

from compiler.report.build import Considered
from compiler.report.colours import fate_colour
from compiler.report.plots.style import empty_plot, hover, whole_numbers


def search_plot(considered: Sequence[Considered]) -> figure:
    """Cycles of each candidate by its place in the search, of either kind that it has."""
    plot = empty_plot(
        height=280,
        x_range=(-0.6, len(considered) - 0.4),
        x_axis_label="candidate, in the order of the search",
        y_axis_label="cycles of a run",
    )
    drawn: list[Any] = []
    for kind, marker, size in (("estimated", "circle", 8), ("scheduled", "diamond", 14)):
        chosen = [
            (place, one, measure.value)
            for place, one in enumerate(considered)
            if (measure := one.estimated if kind == "estimated" else one.scheduled) is not None
        ]
        colours = [fate_colour(one.fate) for _, one, _ in chosen]
        source = ColumnDataSource(
            {
                "candidate": [place for place, _, _ in chosen],
                "cycles": [cycles for _, _, cycles in chosen],
                "kind": [kind] * len(chosen),
                "round": [one.round for _, one, _ in chosen],
                "change": [one.change for _, one, _ in chosen],
                "fate": [one.fate for _, one, _ in chosen],
                "reason": [one.reason for _, one, _ in chosen],
                "line": colours,
                "fill": [colour if kind == "scheduled" else "#FFFFFF" for colour in colours],
            }
        )
        drawn.append(
            plot.scatter(
                x="candidate",
                y="cycles",
                marker=marker,
                size=size,
                source=source,
                line_color="line",
                fill_color="fill",
                line_width=1.6,
                name=kind,
            )
        )
    hover(
        plot,
        drawn,
        ("candidate", "@candidate of round @round"),
        ("change", "@change"),
        ("cycles", "@cycles{0,0} (@kind)"),
        ("fate", "@fate @reason"),
    )
    whole_numbers(plot, counted=True)
    return plot
