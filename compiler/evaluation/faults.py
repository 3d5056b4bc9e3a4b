"""Faults that are made on purpose, so that it can be tried whether an alarm rings.

Checks of a build are worth what happens when they fail. So each thing that they watch can be made wrong by an
option of the build, at the place where it is found out and by the code that finds it out; the option is part
of the keys of those stages, and a result with a fault is never taken for one without.
"""

from typing import Protocol

from compiler.target.units import Cycles


class InjectChoices(Protocol):
    """What is read of the options of faults."""

    @property
    def fault(self) -> str:
        """What is made wrong; the options of a build say what each name means."""
        ...


def falsified_cycles(cycles: Cycles, fault: str) -> Cycles:
    """The cycles of an accepted program, with the fault."""
    return Cycles(cycles * 11 // 10) if fault == "worse_program" else cycles
