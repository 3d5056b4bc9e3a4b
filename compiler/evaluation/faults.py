"""Faults that are made on purpose, so that it can be tried whether an alarm rings.

Checks of a build are worth what happens when they fail. So each thing that they watch can be made wrong by an
option of the build, at the place where it is found out and by the code that finds it out; the option is part
of the keys of those stages, and a result with a fault is never taken for one without.
"""

import dataclasses
from typing import Protocol

from compiler.simulator.application import RunResult
from compiler.target.units import Cycles


class InjectChoices(Protocol):
    """What is read of the options of faults."""

    @property
    def fault(self) -> str:
        """What is made wrong; the options of a build say what each name means."""
        ...


def falsified(result: RunResult, fault: str) -> RunResult:
    """What a simulated run gave, with the fault."""
    cycles = result.cycles
    if fault == "wrong_output":
        name, data = next(iter(sorted(result.outputs.items())))
        turned = bytes(byte ^ 0x80 if place % 2 else byte for place, byte in enumerate(data))
        return dataclasses.replace(result, outputs={**result.outputs, name: turned})
    if fault == "more_cycles" and cycles is not None:
        return dataclasses.replace(result, cycles=dataclasses.replace(cycles, value=cycles.value * 5 // 4))
    if fault == "unrepeatable" and cycles is not None:
        # What a table that is ordered by addresses of objects would do.
        return dataclasses.replace(
            result, cycles=dataclasses.replace(cycles, value=cycles.value + id(result) // 16 % (1 << 24))
        )
    return result


def falsified_cycles(cycles: Cycles, fault: str) -> Cycles:
    """The cycles of an accepted program, with the fault."""
    return Cycles(cycles * 11 // 10) if fault == "worse_program" else cycles
