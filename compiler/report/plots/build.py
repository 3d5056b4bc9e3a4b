"""The plots of one build, by name: those that there are no data for are missing.

==============  ===========================================================================================
``nodes``       cycles by graph node
``steps``       cycles by step
``phases``      horizons and bounds of exchange phases; choosing one changes ``occupancy``
``occupancy``   how busy the chosen phase is
``metric``      what tiles are coloured by
``tiles``       all tiles as the chip is laid out; choosing one changes the following
``choice``      the number of the chosen tile, and what is said of it
``live``        bytes of its tensors by step
``map``         its memory by step
``search``      candidates of the search
==============  ===========================================================================================
"""

from bokeh.models import CustomJS, UIElement

from compiler.report.build import BuildReport
from compiler.report.plots.cycles import node_plot, step_plot
from compiler.report.plots.embedding import Plots, embedded
from compiler.report.plots.exchange import phase_plots
from compiler.report.plots.memory import memory_plots
from compiler.report.plots.search import search_plot


def plots_of_report(report: BuildReport) -> Plots:
    """The plots of a build."""
    found: dict[str, UIElement] = {}
    at_start: list[CustomJS] = []
    if report.cycles.nodes:
        found["nodes"] = node_plot([(node.node, node.share) for node in report.cycles.nodes])
    if report.cycles.steps:
        found["steps"] = step_plot(report.cycles.steps)
    if report.phases:
        found["phases"], found["occupancy"], show_phase = phase_plots(report.phases)
        at_start.append(show_phase)
    plots, show_tile = memory_plots(report.memory)
    found |= plots
    at_start.append(show_tile)
    if report.considered:
        found["search"] = search_plot(report.considered)
    return embedded(found, at_start)
