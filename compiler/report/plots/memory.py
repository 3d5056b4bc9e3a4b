"""The tiles of the chip, and what lives in the chosen one.

A page holds the maps of all tiles once, and scripts show that of the chosen tile; they run when the page
opens, too, for the fullest tile.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from bokeh.layouts import row
from bokeh.models import (
    AdaptiveTicker,
    ColorBar,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    DataRange1d,
    Div,
    FixedTicker,
    LinearColorMapper,
    NumeralTickFormatter,
    RadioButtonGroup,
    Range1d,
    Span,
    Spinner,
    TapTool,
    Title,
    UIElement,
)
from bokeh.palettes import Blues256
from bokeh.plotting import figure

from compiler.report.colours import CHOICE, INK, KIND_COLOURS
from compiler.report.memory import KINDS, MemoryUse, TileMap
from compiler.report.plots.style import WIDTH, empty_plot, hover, whole_numbers
from compiler.target.tiles import COLUMNS, LANES, ROWS, TILE_COUNT, TILES_PER_ROW, logical_tiles

LARGEST_MAPS: Final = 120_000
"""Rectangles of maps that a page holds, which keeps it under 5 MB. The data hold all."""

METRICS: Final[Mapping[str, str]] = {
    "used": "used in all",
    "peak": "tensors at the fullest step",
    "resident": "resident tensors",
    "own": "code, rows, tables, runtime",
    "rows": "exchange rows",
}
"""What tiles can be coloured by, in words."""

_GAP: Final = 0.6
"""Between columns of tiles, in tiles."""

_MAP_COLUMNS: Final = (
    ("start", np.uint32),
    ("size", np.uint32),
    ("first", np.uint16),
    ("last", np.uint16),
    ("kind", np.uint8),
    ("name", np.uint16),
)

_RECTANGLE: Final = (
    "left",
    "right",
    "bottom",
    "top",
    "colour",
    "kind",
    "name",
    "addresses",
    "size",
    "steps",
)


def memory_plots(memory: MemoryUse) -> tuple[dict[str, UIElement], CustomJS]:
    """The plots by name, and the script that shows the chosen tile."""
    cells = ColumnDataSource(_cells(memory))
    low, high = min(memory.used), max(memory.used)
    mapper = LinearColorMapper(palette=list(reversed(Blues256)), low=low, high=max(high, low + 1))
    mark = ColumnDataSource({"x": [0.0], "y": [0.0]})
    chip = _chip(cells, mapper, mark)
    metric = RadioButtonGroup(labels=list(METRICS.values()), active=0, name="metric")
    metric.js_on_change(
        "active",
        CustomJS(args={"cells": cells, "mapper": mapper, "names": list(METRICS)}, code=_SHOW_METRIC),
    )
    chooser = Spinner(
        low=0, high=TILE_COUNT - 1, step=1, value=memory.fullest, width=110, title="tile (physical)"
    )
    told = Div(text="", width=WIDTH - 150, styles={"padding-top": "18px", "font-size": "13px"}, name="told")
    bars = ColumnDataSource({"step": list(memory.steps), "bytes": [0] * len(memory.steps)})
    shown = ColumnDataSource({column: [] for column in _RECTANGLE})
    live_title, map_title = Title(text=" "), Title(text=" ")
    steps = Range1d(start=-0.7, end=max(len(memory.steps), 1) - 0.3, bounds="auto")
    show = CustomJS(
        args={
            "chooser": chooser,
            "cells": cells,
            "mark": mark,
            "told": told,
            "bars": bars,
            "live": np.array(memory.live, dtype=np.uint32).reshape(-1),
            "shown": shown,
            "live_title": live_title,
            "map_title": map_title,
            "size": memory.size,
            "classes": len(memory.classes),
            "names": list(memory.names),
            "kinds": list(KINDS),
            "colours": [KIND_COLOURS[kind] for kind in KINDS],
            **_map_columns(memory),
        },
        code=_SHOW_TILE,
    )
    chooser.js_on_change("value", show)
    cells.selected.js_on_change("indices", CustomJS(args={"chooser": chooser}, code=_CHOOSE))
    return {
        "metric": metric,
        "tiles": chip,
        "choice": row(chooser, told, width=WIDTH),
        "live": _live_plot(bars, steps, live_title),
        "map": _map_plot(shown, memory, steps, map_title),
    }, show


def _cells(memory: MemoryUse) -> dict[str, Any]:
    """[physical tiles] where each is, and what it has."""
    tiles = np.arange(TILE_COUNT)
    column = tiles // LANES % COLUMNS
    metrics: dict[str, Sequence[int]] = {
        "used": memory.used,
        "peak": [max(memory.live[series], default=0) for series in memory.series],
        "resident": memory.resident,
        "own": memory.own,
        "rows": memory.rows,
    }
    return {
        "tile": tiles.astype(np.uint16),
        "logical": logical_tiles(tiles).astype(np.uint16),
        "row": (tiles // TILES_PER_ROW).astype(np.uint8),
        "column": column.astype(np.uint8),
        "lane": (tiles % LANES).astype(np.uint8),
        "x": (tiles % TILES_PER_ROW + _GAP * column).astype(np.float32),
        "y": (tiles // TILES_PER_ROW).astype(np.float32),
        "series": np.array(memory.series, dtype=np.uint16),
        "class": np.array(memory.class_of, dtype=np.int16),
        "shown": np.array(memory.used, dtype=np.uint32),
        **{name: np.array(values, dtype=np.uint32) for name, values in metrics.items()},
    }


def _chip(cells: ColumnDataSource, mapper: LinearColorMapper, mark: ColumnDataSource) -> figure:
    chip = empty_plot(
        height=430,
        x_range=(-0.6, TILES_PER_ROW - 0.4 + _GAP * (COLUMNS - 1)),
        y_range=(ROWS - 0.4, -0.6),
        x_axis_label="column of four lanes",
        y_axis_label="row",
        tools=(TapTool(),),
    )
    cell = chip.rect(
        x="x",
        y="y",
        width=0.92,
        height=0.86,
        source=cells,
        fill_color={"field": "shown", "transform": mapper},
        line_color="#B8C4CE",
        line_width=0.5,
        name="tiles",
    )
    # The chosen tile is framed; the others keep their colours.
    cell.nonselection_glyph = cell.selection_glyph = cell.glyph
    chip.rect(
        x="x", y="y", width=1.1, height=1.1, source=mark, fill_color=None, line_color=CHOICE, line_width=3
    )
    hover(
        chip,
        [cell],
        ("tile", "@tile (logical @logical): row @row, column @column, lane @lane"),
        *((words, f"@{name}{{0,0}} bytes") for name, words in METRICS.items()),
        ("class", "@class"),
    )
    centres = [(LANES + _GAP) * column + (LANES - 1) / 2 for column in range(COLUMNS)]
    chip.xaxis.ticker = FixedTicker(ticks=centres)
    chip.xaxis.major_label_overrides = {centre: str(column) for column, centre in enumerate(centres)}
    chip.yaxis.ticker = FixedTicker(ticks=list(range(0, ROWS, 2)))
    chip.grid.visible = False
    chip.add_layout(
        ColorBar(
            color_mapper=mapper,
            width=12,
            title="bytes",
            formatter=NumeralTickFormatter(format="0,0"),
            label_standoff=8,
            title_text_font_style="normal",
        ),
        "right",
    )
    return chip


def _live_plot(bars: ColumnDataSource, steps: Range1d, title: Title) -> figure:
    plot = empty_plot(
        height=200,
        title=title,
        x_range=steps,
        y_range=DataRange1d(start=0),
        y_axis_label="bytes",
        x_axis_label="step",
    )
    drawn = plot.vbar(
        x="step",
        top="bytes",
        width=0.86,
        source=bars,
        color=KIND_COLOURS["temporary"],
        line_color=None,
        name="live",
    )
    hover(plot, [drawn], ("step", "@step"), ("tensors that live", "@bytes{0,0} bytes"))
    whole_numbers(plot, counted=True)
    return plot


def _map_plot(shown: ColumnDataSource, memory: MemoryUse, steps: Range1d, title: Title) -> figure:
    plot = empty_plot(
        height=460,
        title=title,
        x_range=steps,
        y_range=Range1d(start=memory.base, end=memory.base + memory.size, bounds="auto"),
        x_axis_label="step",
        y_axis_label="byte address",
    )
    drawn = plot.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        source=shown,
        fill_color="colour",
        line_color="#FFFFFF",
        line_width=0.5,
        name="map",
    )
    plot.add_layout(
        Span(location=memory.interleaved, dimension="width", line_color=INK, line_dash="dashed", line_width=1)
    )
    hover(
        plot,
        [drawn],
        ("what", "@kind: @name"),
        ("addresses", "@addresses"),
        ("bytes", "@size{0,0}"),
        ("steps", "@steps"),
    )
    whole_numbers(plot, counted=True)
    plot.yaxis.ticker = AdaptiveTicker(base=16, mantissas=[1, 2, 4, 8], desired_num_ticks=10)
    plot.yaxis.formatter = CustomJSTickFormatter(code="return '0x' + Math.round(tick).toString(16)")
    return plot


def _map_columns(memory: MemoryUse) -> dict[str, npt.NDArray[Any]]:
    """The maps in one table, those of most tiles first, as far as a page holds them.

    ``bounds`` says where each map begins; ``support_of`` and ``tensors_of`` say for each tile which maps it
    has, or -1 for one that the page does not hold.
    """
    maps: tuple[TileMap, ...] = (*memory.support, *memory.tensors)
    support_of = np.array(memory.support_of)
    tensors_of = np.array(memory.tensors_of) + len(memory.support)
    users = np.bincount(np.concatenate([support_of, tensors_of]), minlength=len(maps))
    sizes: list[int] = [len(one.start) for one in maps]
    kept: list[int] = []
    room: int = LARGEST_MAPS
    for number in sorted(range(len(maps)), key=lambda number: -int(users[number])):
        if sizes[number] <= room:
            kept.append(number)
            room = room - sizes[number]
    place = np.full(len(maps), -1, dtype=np.int32)
    place[kept] = np.arange(len(kept))
    columns: dict[str, npt.NDArray[Any]] = {
        "bounds": np.cumsum([0, *(sizes[number] for number in kept)]).astype(np.uint32),
        "support_of": place[support_of],
        "tensors_of": place[tensors_of],
    }
    for name, dtype in _MAP_COLUMNS:
        values = [np.array(getattr(maps[number], name), dtype=dtype) for number in kept]
        columns[f"map_{name}"] = np.concatenate([np.zeros(0, dtype=dtype), *values])
    return columns


_CHOOSE: Final = """
if (cb_obj.indices.length > 0) chooser.value = cb_obj.indices[0]
"""

_SHOW_METRIC: Final = """
const values = cells.data[names[cb_obj.active]]
let low = Infinity, high = -Infinity
for (const value of values) { low = Math.min(low, value); high = Math.max(high, value) }
mapper.low = low
mapper.high = Math.max(high, low + 1)
cells.data.shown = values
cells.change.emit()
"""

_SHOW_TILE: Final = """
const tile = chooser.value
if (!Number.isInteger(tile) || tile < 0 || tile >= cells.get_length()) return
const at = name => cells.data[name][tile]
const number = value => value.toLocaleString("en-US")
mark.data = {x: [at("x")], y: [at("y")]}
told.text = `<b>Tile ${tile}</b> (logical ${at("logical")}): row ${at("row")}, column ${at("column")}, `
  + `lane ${at("lane")}. ${number(at("used"))} of ${number(size)} bytes used: `
  + `${number(at("own"))} by code, rows, tables and runtime, ${number(at("resident"))} by resident tensors; `
  + `${number(at("peak"))} bytes of tensors at the fullest step. `
  + (at("class") < 0 ? "It has no tensors." : `Class ${at("class")} of ${classes}.`)
const step = bars.data.step
const begin = at("series") * step.length
bars.data = {step, bytes: Array.from(live.slice(begin, begin + step.length))}
live_title.text = `Tensors that live on tile ${tile}`
map_title.text = `Memory of tile ${tile}`
const found = {left: [], right: [], bottom: [], top: [], colour: [], kind: [], name: [], addresses: [],
  size: [], steps: []}
for (const map of [support_of[tile], tensors_of[tile]]) {
  if (map < 0) {
    map_title.text = `Memory of tile ${tile}: too much for this page, its data have all`
    continue
  }
  for (let place = bounds[map]; place < bounds[map + 1]; place++) {
    const start = map_start[place], bytes = map_size[place], first = map_first[place], last = map_last[place]
    found.left.push(first - 0.5)
    found.right.push(last + 0.5)
    found.bottom.push(start)
    found.top.push(start + bytes)
    found.colour.push(colours[map_kind[place]])
    found.kind.push(kinds[map_kind[place]])
    found.name.push(names[map_name[place]])
    found.addresses.push(`0x${start.toString(16)} to 0x${(start + bytes - 1).toString(16)}`)
    found.size.push(bytes)
    found.steps.push(first == last ? `${first}` : `${first} to ${last}`)
  }
}
shown.data = found
"""
