"""``tilewright models``: list the models, and print one as the text of a graph.

A model is a name of the list or the path of a user's file (``pipeline.model_files``). The programs that are
written by hand stand in the list as well, as what they are: they have no graph, and are shown as tables.
"""

import argparse
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.figures import Figures
    from compiler.graph.ir import Graph, TensorType, ValueId
    from compiler.low.ir import LowProgram, Role
    from compiler.models.programs import Program
    from compiler.models.registry import Model


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
    values = commands.add_parser(
        "values",
        help="write the parameters of an ONNX model",
        description="Write the parameters of an ONNX model as .npz, as tilewright simulate takes them.",
    )
    values.add_argument("model", type=Path, metavar="FILE.onnx")
    values.add_argument("--output", type=Path, required=True, metavar="FILE.npz")
    values.set_defaults(run=_values)


def _list(_arguments: argparse.Namespace) -> int:
    from compiler.models.registry import MODELS
    from compiler.planner.supported import unplanned_operations

    graphs = [model.build() for model in MODELS]
    head = ("model", "is a", "inputs", "outputs", "parameters", "GFLOP", "build", "")
    table = [head, *map(_model_row, MODELS, graphs), *_program_rows()]
    widths = [max(len(row[column]) for row in table) for column in range(len(head) - 1)]
    for row in table:
        cells = [cell.ljust(width) for cell, width in zip(row[:4], widths[:4], strict=True)]
        cells += [cell.rjust(width) for cell, width in zip(row[4:7], widths[4:], strict=True)]
        print(f"{'  '.join(cells)}  {row[7]}".rstrip())
    print(
        "\n*: representative. Parameters, and GFLOP of products, two FLOP for each pair: counted (measured)."
    )
    missing = list(dict.fromkeys(name for graph in graphs for name in unplanned_operations(graph)))
    if missing:
        print(
            f"build: what needs {', '.join(missing)} cannot be built; the planner has no constructor for it."
        )
    print("program: written by hand in the tables of tiles; it has no graph.")
    return 0


def _model_row(model: "Model", graph: "Graph") -> tuple[str, ...]:
    from compiler.graph.flops import graph_flops
    from compiler.planner.supported import obstacle

    return (
        f"{model.name}{' *' if model.representative else ''}",
        "graph",
        _types(graph, graph.inputs),
        _types(graph, graph.outputs),
        f"{_parameter_count(graph):,}",
        _giga(graph_flops(graph)),
        "yes" if obstacle(graph) is None else "no",
        model.summary,
    )


def _giga(count: int) -> str:
    """Thousandths, and more places of what is small."""
    return f"{count / 1e9:,.3f}" if count >= 10**9 else f"{count / 1e9:.3g}"


def _program_rows() -> Iterator[tuple[str, ...]]:
    import math

    from compiler.low.ir import Role
    from compiler.models.programs import PROGRAMS

    for program in PROGRAMS.values():
        low = _low(program)
        parameters = sum(math.prod(tensor.shape) for tensor in _tensors(low, Role.PARAMETER))
        inputs, outputs = (", ".join(map(str, _tensors(low, role))) for role in (Role.INPUT, Role.OUTPUT))
        yield (program.name, "program", inputs, outputs, f"{parameters:,}", "-", "yes", program.summary)


def _show(arguments: argparse.Namespace) -> int:
    from compiler.graph.digest import graph_digest
    from compiler.graph.text import text_of_graph
    from compiler.low.text import text_of_program
    from compiler.models.programs import PROGRAMS
    from compiler.planner.supported import obstacle
    from pipeline.model_files import model_of

    program = PROGRAMS.get(arguments.model)
    if program is not None:
        text = text_of_program(_low(program))
        print(f"# {program.summary}\n{text}", end="")
        return 0
    graph = model_of(arguments.model)
    for figure in _figures(graph):
        print(f"# {figure}")
    print(f"# digest {graph_digest(graph)}")
    reason = obstacle(graph)
    if reason is not None:
        print(f"# cannot be built: {reason}")
    print(text_of_graph(graph, with_provenance=not arguments.no_lines), end="")
    return 0


def _values(arguments: argparse.Namespace) -> int:
    import io

    import numpy as np

    from pipeline.model_files import load_onnx
    from pipeline.user_files import write_whole

    found = load_onnx(arguments.model).values
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:  # numpy.savez takes no names that are its own arguments
        for name, values in found.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, values, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue())
    write_whole(arguments.output, content.getvalue())
    size = sum(values.nbytes for values in found.values())
    print(f"{arguments.output}: {len(found)} parameters, {size:,} bytes (measured)")
    return 0


def _figures(graph: "Graph") -> "Figures":
    from compiler.figures import counted
    from compiler.graph.flops import graph_flops

    return (
        counted("parameters", _parameter_count(graph), "elements"),
        counted("parameters", _parameter_bytes(graph), "bytes"),
        counted("products", graph_flops(graph), "FLOP"),
    )


def _low(program: "Program") -> "LowProgram":
    from compiler.models.skeleton import SkeletonOptions, skeleton

    return skeleton(SkeletonOptions(rows=program.rows, panels=program.panels))


def _tensors(program: "LowProgram", role: "Role") -> "Sequence[TensorType]":
    """Types of a program's tensors of one role."""
    from compiler.graph.ir import TensorType

    return [
        TensorType(precision=value.format.precision, shape=value.shape)
        for value in program.values
        if value.role == role
    ]


def _types(graph: "Graph", values: Sequence["ValueId"]) -> str:
    return ", ".join(str(graph.block.values[value].type) for value in values)


def _parameter_count(graph: "Graph") -> int:
    import math

    return sum(math.prod(graph.block.values[value].type.shape) for value in graph.parameters)


def _parameter_bytes(graph: "Graph") -> int:
    import math

    types = [graph.block.values[value].type for value in graph.parameters]
    return sum(math.prod(type_.shape) * type_.precision.element_bytes for type_ in types)
