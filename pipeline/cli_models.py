"""``tilewright models``: list the models, and print one as the text of a graph.

A model is a name of the list or the path of a user's file (``pipeline.model_files``).
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.graph.ir import Graph, ValueId


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the group; each sets ``run`` to a function from arguments to an exit status."""
    parser.set_defaults(run=_list)
    commands = parser.add_subparsers(metavar="COMMAND")
    listing = commands.add_parser("list", help="list the models; what happens without a command, too")
    listing.set_defaults(run=_list)
    show = commands.add_parser(
        "show",
        help="print one model",
        description=(
            "Print a model as the text of a graph, behind a summary in comments. The text can be saved and"
            " given back as a model."
        ),
    )
    show.add_argument(
        "model", help="a name of the list, FILE.py, FILE.py:FUNCTION, or a file with the text of a graph"
    )
    show.add_argument("--no-lines", action="store_true", help="leave out where each value was written")
    show.set_defaults(run=_show)


def _list(_arguments: argparse.Namespace) -> int:
    from compiler.graph.flops import graph_flops
    from compiler.models.buildable import unplanned_operations
    from compiler.models.catalogue import MODELS as PROGRAMS
    from compiler.models.registry import MODELS

    head = ("model", "inputs", "outputs", "parameters", "GFLOP", "build")
    rows: list[tuple[str, ...]] = [head]
    for model in MODELS:
        graph = model.build()
        rows.append(
            (
                f"{model.name}{' *' if model.representative else ''}",
                _types(graph, graph.inputs),
                _types(graph, graph.outputs),
                f"{_parameter_count(graph):,}",
                f"{graph_flops(graph) / 1e9:,.3f}",
                "no" if unplanned_operations(graph) else "yes",
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, summary in zip(rows, ("", *(model.summary for model in MODELS)), strict=True):
        left, right = row[:3], row[3:]
        cells = [cell.ljust(width) for cell, width in zip(left, widths[:3], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(right, widths[3:], strict=True)]
        print(f"{'  '.join(cells)}  {summary}".rstrip())
    missing = list(dict.fromkeys(name for model in MODELS for name in unplanned_operations(model.build())))
    print("\n*: representative. FLOP: of products, two for each pair.")
    if missing:
        print(
            f"build: what needs {', '.join(missing)} cannot be built; the planner has no constructor for it."
        )
    programs = "; ".join(f"{program.name} ({program.summary})" for program in PROGRAMS.values())
    print(f"Programs without a graph, which can be built: {programs}.")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from compiler.graph.digest import graph_digest
    from compiler.graph.flops import graph_flops
    from compiler.graph.text import text_of_graph
    from compiler.models.buildable import unplanned_operations

    graph = _model(arguments.model)
    missing = unplanned_operations(graph)
    print(f"# {_parameter_count(graph):,} parameters in {_parameter_bytes(graph):,} bytes")
    print(f"# {graph_flops(graph):,} floating-point operations of products")
    print(f"# digest {graph_digest(graph)}")
    if missing:
        print(f"# cannot be built: the planner has no constructor for {', '.join(missing)}")
    print(text_of_graph(graph, with_provenance=not arguments.no_lines), end="")
    return 0


def _model(place: str) -> "Graph":
    """The model that a user asks for: what looks like a path is one, unless it is in the list."""
    from compiler.models.registry import MODELS, model_named
    from pipeline.model_files import load_model

    is_path = "/" in place or "." in place or Path(place).is_file()
    if is_path and place not in [model.name for model in MODELS]:
        return load_model(place)
    return model_named(place).build()


def _types(graph: "Graph", values: Sequence["ValueId"]) -> str:
    return ", ".join(str(graph.block.values[value].type) for value in values)


def _parameter_count(graph: "Graph") -> int:
    import math

    return sum(math.prod(graph.block.values[value].type.shape) for value in graph.parameters)


def _parameter_bytes(graph: "Graph") -> int:
    import math

    types = [graph.block.values[value].type for value in graph.parameters]
    return sum(math.prod(type_.shape) * type_.precision.element_bytes for type_ in types)
