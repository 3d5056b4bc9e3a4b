"""What simulations of packages have in common: options, descriptions of tensors, and a run that must end."""

import dataclasses
from typing import Protocol

from compiler.errors import InternalError
from compiler.package.host import HostLayout, read_layout
from compiler.simulator.application import RunResult, SimulationOptions
from compiler.simulator.tile import TileOptions
from compiler.target.isa_decisions import IsaChoices, decisions_of


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
        stage="simulation",
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
