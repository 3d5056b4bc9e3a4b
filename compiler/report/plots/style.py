"""Empty plots in the style of reports, and what all plots have in common."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from bokeh.models import (
    AdaptiveTicker,
    BoxZoomTool,
    HoverTool,
    NumeralTickFormatter,
    PanTool,
    ResetTool,
    SaveTool,
    Title,
    Tool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from compiler.report.colours import INK

WIDTH: Final = 1040
"""Of a plot, in pixels: what a sheet of paper in landscape takes."""

_FONT: Final = "system-ui, sans-serif"
_LINES: Final = "#8A8F98"
_GRID: Final = "#E6E8EB"


def empty_plot(
    *,
    height: int,
    title: Title | None = None,
    zoom: Literal["both", "width"] = "both",
    tools: Sequence[Tool] = (),
    **settings: Any,  # noqa: ANN401  # what the library takes
) -> figure:
    """An empty plot.

    Args:
        height: in pixels.
        title: above it.
        zoom: directions in which a box zooms.
        tools: beside those to zoom, move, reset and save.
        settings: ranges and labels of axes, by the library's names.
    """
    box = BoxZoomTool(dimensions=zoom)
    plot = figure(
        width=WIDTH,
        height=height,
        tools=[PanTool(), box, WheelZoomTool(), ResetTool(), SaveTool(), *tools],
        active_drag=box,
        active_scroll=None,
        toolbar_location="above",
        output_backend="svg",  # sharp in print
        min_border_left=70,
        **settings,
    )
    plot.toolbar.logo = None
    plot.toolbar.autohide = True
    plot.outline_line_color = None
    plot.background_fill_color = plot.border_fill_color = "#FFFFFF"
    plot.grid.grid_line_color = _GRID
    for axis in plot.axis:
        axis.axis_line_color = axis.major_tick_line_color = _LINES
        axis.minor_tick_line_color = None
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = _FONT
        axis.axis_label_text_font_size = axis.major_label_text_font_size = "12px"
        axis.axis_label_text_color = axis.major_label_text_color = INK
    if title is not None:
        title.text_font, title.text_font_size, title.text_color = _FONT, "13px", INK
        plot.title = title
    return plot


def hover(plot: figure, drawn: Sequence[Any], *lines: tuple[str, str]) -> None:
    """What is told of the thing under the pointer: heading and template of each line."""
    plot.add_tools(HoverTool(renderers=list(drawn), tooltips=list(lines), point_policy="follow_mouse"))


def whole_numbers(plot: figure, *, counted: bool = False) -> None:
    """Numbers of both axes with separators; what is ``counted`` on the x axis has no fractions."""
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    plot.yaxis.formatter = NumeralTickFormatter(format="0,0")
    if counted:
        plot.xaxis.ticker = AdaptiveTicker(base=10, mantissas=[1, 2, 5], min_interval=1)
        plot.xgrid.visible = False


def few(names: Sequence[str], most: int = 4) -> str:
    """Names behind one another; the first ones of many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
