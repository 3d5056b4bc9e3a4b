"""What simulations of packages have in common: options, descriptions of tensors, and runs that must end."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np
import numpy.typing as npt

from compiler.errors import InternalError, Measure
from compiler.graph.ir import Graph
from compiler.graph.parameters import RandomTensors
from compiler.graph.rounding import loaded
from compiler.package.host import HostLayout, pack, read_layout, unpack
from compiler.simulator.application import RunResult, SimulationOptions, Simulator
from compiler.simulator.tile import TileOptions
from compiler.target.isa_decisions import IsaChoices, decisions_of

STAGE: Final = "simulation"


class SimulationChoices(Protocol):
    """What is read of the options of simulations."""

    @property
    def seed(self) -> int:
        """Of weights and inputs."""
        ...

    @property
    def runs(self) -> int:
        """Runs after one upload of the weights."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ModelRun:
    """One run of a model's package.

    Args:
        outputs: values by name, in the shapes of the graph.
        cycles: of the run.
        result: all that the simulator tells of it.
    """

    outputs: Mapping[str, npt.NDArray[np.float32]]
    cycles: Measure
    result: RunResult


def model_runs(
    simulator: Simulator,
    graph: Graph,
    files: tuple[tuple[str, str], ...],
    *,
    seed: int,
    runs: int,
    fault: str = "none",
) -> Iterator[ModelRun]:
    """Upload the weights of a model once, then run it again and again with the same inputs.

    Args:
        simulator: a device with the package on it, fresh.
        graph: of the model; its fills and the seed give weights and inputs.
        files: descriptions of the package's tensors, as (name, text).
        seed: of the tensors.
        runs: how many.
        fault: what is made wrong on purpose in what they gave.

    Raises:
        InternalError: the device stopped, or a run has no cycles.
        InvalidInput: an input or parameter of the graph has no fill.
    """
    layouts = {layout.name: layout for layout in layouts_of(files)}
    tensors = RandomTensors(graph, seed)
    values = graph.block.values

    def packed(numbers: tuple[int, ...]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for number in numbers:
            value = values[number]
            elements = loaded(tensors[value.name], value.type.precision)
            found[value.name] = pack(layouts[value.name], elements.astype(np.float64))
        return found

    completed(simulator.initialize(packed(graph.parameters)))
    inputs = packed(graph.inputs)
    names = [values[number].name for number in graph.outputs]
    for _ in range(runs):
        result = falsified(completed(simulator.run(inputs)), fault)
        if result.cycles is None:
            raise InternalError(
                "the run has no cycles",
                stage=STAGE,
                subject=graph.name,
                next_step="report the model and the options",
            )
        outputs = {name: unpack(layouts[name], result.outputs[name]) for name in names}
        yield ModelRun(outputs=outputs, cycles=result.cycles, result=result)


def layouts_of(files: tuple[tuple[str, str], ...]) -> list[HostLayout]:
    """The descriptions of a package's tensors."""
    return [read_layout(text, name=name) for name, text in files]


def simulation_options(isa: IsaChoices, threads: int) -> SimulationOptions:
    """How a package is run that was built with some answers of the instruction set.

    Raises:
        InvalidInput: an override is none.
    """
    return SimulationOptions(threads=threads, tile=TileOptions(decisions=decisions_of(isa)))


def completed(result: RunResult) -> RunResult:
    """The result, if the device came to the end of the call."""
    if result.is_complete:
        return result
    raise InternalError(
        "the device stopped: " + "; ".join(str(fault) for fault in result.faults[:3]),
        stage=STAGE,
        subject="package",
        next_step="report the model and the options; what was emitted does not run",
    )


def falsified(result: RunResult, fault: str) -> RunResult:
    """What a simulated run gave, with the fault."""
    cycles = result.cycles
    if fault == "wrong_output":
        turned = {
            name: bytes(byte ^ 0x80 if place % 2 else byte for place, byte in enumerate(data))
            for name, data in result.outputs.items()
        }
        return dataclasses.replace(result, outputs=turned)
    if fault == "more_cycles" and cycles is not None:
        return dataclasses.replace(result, cycles=dataclasses.replace(cycles, value=cycles.value * 5 // 4))
    if fault == "unrepeatable" and cycles is not None:
        # What a table that is ordered by addresses of objects would do.
        return dataclasses.replace(
            result, cycles=dataclasses.replace(cycles, value=cycles.value + id(result) // 16 % (1 << 24))
        )
    return result
