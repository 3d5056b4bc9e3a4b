"""What callers of the stages of this package need, and how their results are kept in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np
import numpy.typing as npt

from compiler.exchange.ir import RowReservations
from compiler.figures import Figures
from compiler.graph.codec import Labels
from compiler.graph.ir import Graph
from compiler.isa.linker import Image
from compiler.isa.objects import ObjectFile
from compiler.low.artifacts import Symbols
from compiler.low.ir import LowProgram
from compiler.package.support import Support
from compiler.placement.ir import Placement
from compiler.store.codec import ColumnsCodec, JsonCodec
from compiler.store.container import Columns
from compiler.store.stage import Artifact

HostShapes = tuple[tuple[str, tuple[int, ...]], ...]
"""Name and shape, as users know it, of each tensor of the host."""
HostFiles = tuple[tuple[str, str], ...]
"""Name and text of the description of each tensor of the host, in the order of the program."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SupportSizingInputs:
    """Of stage ``support_sizing``: a program with provisional addresses, and the kernels that it calls."""

    program: Artifact[LowProgram]
    placement: Artifact[Placement]
    symbols: Artifact[Symbols]
    objects: Artifact[tuple[ObjectFile, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SizedSupport:
    """What stage ``support_sizing`` gives: everything that is not a tensor.

    Args:
        code: linked runtime and kernels.
        support: places of code, rows, tables and programs.
        row_reservations: those of exchange rows, as schedules take them.
        figures: how much that is.
    """

    code: Image
    support: Support
    row_reservations: RowReservations
    figures: Figures


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FinalPlacementInputs:
    """Of stage ``final_placement``: a verified program, and what has to lie beside its tensors."""

    program: Artifact[LowProgram]
    support: Artifact[Support]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedProgram:
    """What stage ``final_placement`` gives.

    Args:
        placement: of tensors, final.
        figures: how full tiles are.
    """

    placement: Placement
    figures: Figures


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmissionInputs:
    """Of stage ``emission``: a program and where everything of it is.

    ``shapes`` are those of the host's tensors as users know them, by name, where the program merges axes.
    """

    program: Artifact[LowProgram]
    placement: Artifact[Placement]
    code: Artifact[Image]
    support: Artifact[Support]
    row_reservations: Artifact[RowReservations]
    shapes: HostShapes = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EmittedPackage:
    """What stage ``emission`` gives.

    Args:
        package: the file.
        host_files: what lies beside it.
        figures: of the final schedules and of the file.
    """

    package: bytes
    host_files: HostFiles
    figures: Figures


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SimulationInputs:
    """Of stage ``simulation``: the package, and the program that it should compute."""

    program: Artifact[LowProgram]
    package: Artifact[bytes]
    host_files: Artifact[HostFiles]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelSimulationInputs:
    """Of stage ``simulation`` of a model: the package, and the graph that it should compute."""

    structure: Artifact[Graph]
    labels: Artifact[Labels]
    package: Artifact[bytes]
    host_files: Artifact[HostFiles]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Simulated:
    """What stage ``simulation`` gives.

    Args:
        outputs: [runs, *shape] values of each output of the simulated package.
        cycles: [runs] simulated cycles of each run.
        accuracy: [runs, 2] for each output of a model, the largest absolute difference to the graph's
            reference and the cosine of both; nothing for a hand-written program.
        differences: what is wrong with outputs, a sentence for each run and output, and none if all is well:
            of a model, where they are beyond the tolerance around the reference; of a hand-written program,
            where they differ in a bit from those of the executor of low programs.
    """

    outputs: Mapping[str, npt.NDArray[np.float32]]
    cycles: npt.NDArray[np.int64]
    accuracy: Mapping[str, npt.NDArray[np.float64]]
    differences: tuple[str, ...]


def plain_host_files(files: HostFiles) -> object:
    """Descriptions as plain values."""
    return files


def host_files_of_plain(plain: Any) -> HostFiles:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of descriptions.
    """
    try:
        return tuple((str(name), str(text)) for name, text in plain)
    except TypeError as fault:
        raise ValueError(f"no descriptions: {fault}") from fault


def columns_of_simulated(simulated: Simulated) -> Columns:
    """Outputs and cycles as columns."""
    return Columns(
        arrays={f"output.{name}": values for name, values in simulated.outputs.items()}
        | {f"accuracy.{name}": values for name, values in simulated.accuracy.items()}
        | {"cycles": simulated.cycles},
        meta=simulated.differences,
    )


def simulated_of_columns(columns: Columns) -> Simulated:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of a simulation.
    """
    arrays: dict[str, npt.NDArray[Any]] = dict(columns.arrays)
    cycles = arrays.pop("cycles", None)
    if cycles is None or cycles.dtype != np.int64 or not isinstance(columns.meta, tuple):
        raise ValueError("a simulation has cycles and differences")
    kinds: dict[str, tuple[type[np.floating[Any]], dict[str, npt.NDArray[Any]]]] = {
        "output.": (np.float32, {}),
        "accuracy.": (np.float64, {}),
    }
    for name, values in arrays.items():
        for prefix, (dtype, found) in kinds.items():
            if name.startswith(prefix) and values.dtype == dtype:
                found[name.removeprefix(prefix)] = values
                break
        else:
            raise ValueError(f"column {name} is nothing of a simulation")
    outputs, accuracy = kinds["output."][1], kinds["accuracy."][1]
    if accuracy and accuracy.keys() != outputs.keys():
        raise ValueError("the accuracies of a simulation are not those of its outputs")
    return Simulated(
        outputs=outputs,
        cycles=cycles,
        accuracy=accuracy,
        differences=tuple(str(text) for text in cast("tuple[object, ...]", columns.meta)),
    )


HOST_FILES: Final = JsonCodec(plain=plain_host_files, value=host_files_of_plain)
"""Descriptions of the host's tensors."""
SIMULATED: Final = ColumnsCodec(columns=columns_of_simulated, value=simulated_of_columns)
"""Outputs and cycles of a simulation."""


def host_shapes(graph: Graph) -> HostShapes:
    """Of a model's inputs, parameters and outputs."""
    numbers = (*graph.inputs, *graph.parameters, *graph.block.results)
    values = graph.block.values
    return tuple((values[number].name, values[number].type.shape) for number in numbers)
