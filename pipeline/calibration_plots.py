"""Pictures of calibrations: a small one that fits into a cell of metadata, and a page to look into.

The small one is SVG in a data URI of less than 1,000 characters, which is what Dagster shows in place; the
page is one file without a network, by Bokeh.
"""

import base64
from collections.abc import Sequence
from typing import Any, Final

from pipeline.calibration import LIMIT, Calibration

_WIDTH: Final = 240
_HEIGHT: Final = 60
_MOST: Final = 48
"""Points of the small picture; of more points it shows the worst of neighbours."""


def small_plot(calibration: Calibration) -> str:
    """Deviations of all points in the order of the grid, between the limits, as Markdown."""
    deviations = [point.deviation for point in calibration.points]
    step = -(-len(deviations) // _MOST)
    shown = [max(deviations[first : first + step], key=abs) for first in range(0, len(deviations), step)]
    scale = (_HEIGHT / 2 - 4) / max(LIMIT, *map(abs, shown))
    across = _WIDTH / max(len(shown) - 1, 1)
    path = "L".join(
        f"{round(number * across)} {round(_HEIGHT / 2 - value * scale)}" for number, value in enumerate(shown)
    )
    limits = "".join(f"M0 {round(_HEIGHT / 2 + sign * LIMIT * scale)}h{_WIDTH}" for sign in (-1, 1))
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" fill="none">'
        f'<path d="{limits}" stroke="#c33"/><path d="M{path}" stroke="#06c"/></svg>'
    )
    return f"![deviations](data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()})"


def page(calibrations: Sequence[Calibration]) -> str:
    """A page with two plots for each family: cycles of formula and machine code, and deviations."""
    from bokeh.embed import file_html
    from bokeh.layouts import column, row
    from bokeh.models import ColumnDataSource, HoverTool, Span
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    rows: list[Any] = []
    for calibration in calibrations:
        points = calibration.points
        source = ColumnDataSource(
            {
                "simulated": [int(point.simulated) for point in points],
                "estimated": [int(point.estimated) for point in points],
                "deviation": [100 * point.deviation for point in points],
                "symbol": [point.symbol for point in points],
                "shape": [
                    ", ".join(
                        f"{name} {extent}"
                        for name, extent in zip(calibration.extents, point.shape, strict=True)
                    )
                    for point in points
                ],
            }
        )
        tips = [("kernel", "@symbol"), ("shape", "@shape"), ("simulated", "@simulated{0,0} cycles")]
        tips += [("formula", "@estimated{0,0} cycles"), ("off by", "@deviation{0.00} %")]
        cycles = figure(
            title=f"{calibration.family}: cycles of the formula over simulated cycles",
            x_axis_type="log",
            y_axis_type="log",
            x_axis_label="cycles (simulated)",
            y_axis_label="cycles (estimated)",
            width=560,
            height=360,
        )
        ends = [min(int(point.simulated) for point in points), max(int(point.simulated) for point in points)]
        cycles.line(ends, ends, color="gray")
        cycles.scatter("simulated", "estimated", source=source, size=7)
        deviations = figure(
            title=f"{calibration.family}: at most {100 * abs(calibration.worst.deviation):.2f} % off",
            x_axis_type="log",
            x_axis_label="cycles (simulated)",
            y_axis_label="deviation of the formula (%)",
            width=560,
            height=360,
        )
        deviations.scatter("simulated", "deviation", source=source, size=7)
        for sign in (-1, 1):
            limit = Span(location=sign * 100 * LIMIT, dimension="width", line_color="red", line_dash="dashed")
            deviations.add_layout(limit)
        for plot in (cycles, deviations):
            plot.add_tools(HoverTool(tooltips=tips))
        rows.append(row(cycles, deviations))
    return file_html(column(*rows), INLINE, "Formulas of the kernel families")
