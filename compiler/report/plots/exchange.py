"""Exchange phases, and how busy the chosen one is."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from bokeh.models import ColumnDataSource, CustomJS, DataRange1d, HoverTool, TapTool, Title
from bokeh.plotting import figure

from compiler.report.colours import PHASE_COLOURS
from compiler.report.plots.style import empty_plot, few, hover, whole_numbers
from compiler.report.timeline import PhaseFigures


def phase_plots(phases: Sequence[PhaseFigures]) -> tuple[figure, figure, CustomJS]:
    """Bars of the phases, the occupancy of the chosen one, and the script that shows it.

    At first the longest one is chosen.
    """
    columns: dict[str, Any] = {
        "phase": list(range(len(phases))),
        "left": [phase - 0.4 for phase in range(len(phases))],
        "right": [phase + 0.4 for phase in range(len(phases))],
        "step": [phase.step for phase in phases],
        "nodes": [few(phase.nodes) for phase in phases],
        "bound": [phase.bound.value for phase in phases],
        "horizon": [phase.horizon.value for phase in phases],
        "ratio": [phase.ratio for phase in phases],
        "row": [phase.row_bytes.value for phase in phases],
        "rows": [phase.all_row_bytes.value for phase in phases],
        "transfers": [phase.transfers for phase in phases],
        "recipients": [phase.recipients for phase in phases],
        "iterations": [phase.iterations for phase in phases],
        "limit": [phase.limit for phase in phases],
    }
    source = ColumnDataSource(columns)
    plot = empty_plot(
        height=260,
        y_range=DataRange1d(start=0),
        x_axis_label="phase",
        y_axis_label="events",
        tools=(TapTool(),),
    )
    bars = plot.vbar(
        x="phase",
        top="horizon",
        width=0.8,
        source=source,
        color=PHASE_COLOURS["horizon"],
        line_color=None,
        nonselection_alpha=0.45,
        name="phases",
    )
    plot.segment(
        x0="left",
        x1="right",
        y0="bound",
        y1="bound",
        source=source,
        line_width=2,
        color=PHASE_COLOURS["bound"],
        nonselection_alpha=1.0,
    )
    hover(
        plot,
        [bars],
        ("phase", "@phase, step @step, @iterations times"),
        ("for", "@nodes"),
        ("bound", "@bound{0,0} events (bound)"),
        ("horizon", "@horizon{0,0} events (scheduled)"),
        ("ratio", "@ratio{0.000}"),
        ("largest row", "@row{0,0} bytes, @rows{0,0} in all"),
        ("transfers", "@transfers{0,0} to @recipients{0,0} recipients"),
        ("limit", "@limit"),
    )
    whole_numbers(plot, counted=True)
    source.selected.indices = [max(range(len(phases)), key=lambda place: phases[place].horizon.value)]
    occupancy = ColumnDataSource({"event": [0, 1], "sending": [0, 0], "receiving": [0, 0]})
    title = Title(text=" ")
    busy = empty_plot(
        height=240,
        title=title,
        x_axis_label="event of the phase",
        y_axis_label="tiles",
        y_range=DataRange1d(start=0),
    )
    lines: list[Any] = [
        busy.step(
            x="event",
            y=side,
            mode="after",
            source=occupancy,
            line_width=2,
            color=PHASE_COLOURS[side],
            name=side,
        )
        for side in ("sending", "receiving")
    ]
    told = [
        ("event", "@event{0,0}"),
        ("transmit lanes in use", "@sending{0,0.0}"),
        ("tiles that receive", "@receiving{0,0.0}"),
    ]
    busy.add_tools(HoverTool(renderers=lines[:1], mode="vline", tooltips=told))
    whole_numbers(busy)
    first = np.cumsum([0, *(len(phase.occupancy.sending) for phase in phases)])
    show = CustomJS(
        args={
            "phases": source,
            "shown": occupancy,
            "title": title,
            "first": first.astype(np.uint32),
            "events": np.array([phase.occupancy.events for phase in phases], dtype=np.uint32),
            "sending": _flat([phase.occupancy.sending for phase in phases]),
            "receiving": _flat([phase.occupancy.receiving for phase in phases]),
        },
        code=_SHOW_PHASE,
    )
    source.selected.js_on_change("indices", show)
    return plot, busy, show


def _flat(rows: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    return np.concatenate([np.zeros(0), *(np.array(row) for row in rows)]).astype(np.float32)


_SHOW_PHASE: Final = """
const phase = phases.selected.indices[0]
if (phase === undefined) return
const begin = first[phase], end = first[phase + 1]
const event = []
for (let stretch = 0; stretch <= end - begin; stretch++) event.push(events[phase] * stretch)
shown.data = {
  event,
  sending: [...sending.slice(begin, end), 0],
  receiving: [...receiving.slice(begin, end), 0],
}
title.text = `Occupancy of phase ${phase} (step ${phases.data.step[phase]})`
"""
