"""Kernels by meaning instead of by instruction.

A caller that knows what kernels mean gives a table from symbols to functions on bytes. When a supervisor
calls one of them, it is not stepped through: the function is applied to SRAM, what it writes is marked as
written, and the call returns. Addresses, schedules and everything outside of kernels stay the same.

**Unwritten bytes.** A kernel may read bytes that nothing wrote, as padding, and instructions carry along
which values come from there. Functions on bytes cannot, so that a call which reads such bytes is applied
twice, with two different values in their place: what comes out differently is not known, and is not marked
as written. Using it later is a fault, as it is for instructions.

How the call is caught: the interpreter remembers each decoded instruction, and what it remembers for the
first instruction of a kernel is made to be one of the exchange, before which it stops. SRAM is untouched.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.simulator import state as at
from compiler.simulator.application_faults import ApplicationFault, ApplicationFaultKind
from compiler.simulator.decoder import SUPERVISOR_MODE
from compiler.simulator.machine import Machine
from compiler.simulator.operations import EXCHANGE
from compiler.simulator.rows import LINK
from compiler.target.costs import KERNEL_LAUNCH
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.units import WORD_BYTES, Address, BoolArray, Cycles, Int64Array, PhysicalTile

FIRST_ARGUMENT: Final = 2
LAST_ARGUMENT: Final = 9


@final
class Refused(Exception):  # not an error of ours: becomes a fault of the application
    """A kernel's function touched bytes that it may not."""


@final
class KernelMemory:
    """SRAM of one tile as a kernel's function sees it.

    Args:
        machine: the tiles.
        place: of the tile.
        unknown: what the two bytes of a half hold that nothing wrote.
    """

    def __init__(self, machine: Machine, place: int, unknown: bytes) -> None:
        self._machine: Final = machine
        self._place: Final = place
        self._unknown: Final = np.frombuffer(unknown, np.uint8)
        self.has_read_unknown = False
        self.replaced: Final[list[tuple[int, bytes, BoolArray]]] = []
        """Address, bytes and marks that each write replaced."""

    def read(self, address: int, count: int, /) -> npt.NDArray[np.uint8]:
        """``count`` bytes [count], a copy.

        Raises:
            Refused: they are not in SRAM.
        """
        self._check(address, count)
        content, written = self._machine.read(self._place, Address(address), count)
        data = np.frombuffer(content, np.uint8)
        if written.all():
            return data
        self.has_read_unknown = True
        return np.where(written, data, self._unknown[(address + np.arange(count)) % 2])

    def write(self, address: int, data: npt.NDArray[np.uint8], /) -> None:
        """Replace the bytes [count] at an address.

        Raises:
            Refused: they are not in SRAM.
        """
        self._check(address, data.size)
        self.replaced.append((address, *self._machine.read(self._place, Address(address), data.size)))
        self._machine.write(self._place, Address(address), np.ascontiguousarray(data).tobytes())

    def results(self) -> list[tuple[int, bytes]]:
        """What all bytes that were written hold now."""
        return [
            (address, self._machine.read(self._place, Address(address), len(old))[0])
            for address, old, _ in self.replaced
        ]

    def undo(self) -> None:
        """Put back what was there before."""
        for address, old, written in reversed(self.replaced):
            self._machine.write(self._place, Address(address), old, written)

    @staticmethod
    def _check(address: int, count: int) -> None:
        if address < SRAM_BASE or address + count > SRAM_END:
            raise Refused(f"it touches bytes {address:#x}..{address + count:#x}, outside of SRAM")


_UNKNOWN: Final = (b"\xff\x7f", b"\x00\x3c")
"""Two halves, of which one is not a number and the other is 1."""

Apply: TypeAlias = Callable[[tuple[int, ...], KernelMemory], None]
"""What a kernel does to memory, given the registers from $m2 to $m9."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a kernel means.

    Args:
        apply: its effect.
        cycles: its formula, from the same registers; None when it is not known, and counts as 0 beside the
            cost of a launch.
    """

    apply: Apply
    cycles: Callable[[tuple[int, ...]], Cycles] | None = None


@final
class Functional:
    """Catches the calls of kernels with a known meaning.

    Args:
        entries: meanings by the address of the kernel, with its symbol.
    """

    def __init__(self, entries: Mapping[int, tuple[str, Meaning]]) -> None:
        self._entries: Final = dict(sorted(entries.items()))
        self._addresses: Final[Int64Array] = np.array(list(self._entries), dtype=np.int64)

    @property
    def symbols(self) -> tuple[str, ...]:
        """The kernels that are caught, by address."""
        return tuple(symbol for symbol, _ in self._entries.values())

    def intercept(self, machine: Machine) -> None:
        """Make supervisors stop at the entries."""
        index = (self._addresses - at.BASE) // WORD_BYTES
        inside = index[(index >= 0) & (index < at.CODE_WORDS)]
        machine.decoded[:, inside] = EXCHANGE | SUPERVISOR_MODE

    def is_entry(self, addresses: Int64Array) -> BoolArray:
        """Whether each address is that of a caught kernel."""
        return np.isin(addresses, self._addresses)

    def apply(self, machine: Machine, place: int) -> list[ApplicationFault]:
        """Do what the kernel does at whose entry a tile stands, and return from it."""
        symbol, meaning = self._entries[machine.program_counter(place)]
        cycle = machine.cycle(place)
        arguments = tuple(
            machine.register(place, number) for number in range(FIRST_ARGUMENT, LAST_ARGUMENT + 1)
        )
        try:
            _apply(meaning, arguments, machine, place)
        except Refused as refusal:
            return [
                ApplicationFault(
                    kind=ApplicationFaultKind.UNINITIALISED,
                    text=f"{symbol}: {refusal}",
                    tile=PhysicalTile(int(machine.physical[place])),
                    cycle=Cycles(cycle),
                )
            ]
        taken = KERNEL_LAUNCH + (0 if meaning.cycles is None else meaning.cycles(arguments))
        machine.resume(place, machine.register(place, LINK), cycle + taken)
        return []


def _apply(meaning: Meaning, arguments: tuple[int, ...], machine: Machine, place: int) -> None:
    """Apply a meaning; bytes that depend on unwritten ones become unwritten."""
    memory = KernelMemory(machine, place, _UNKNOWN[0])
    meaning.apply(arguments, memory)
    if not memory.has_read_unknown:
        return
    first = memory.results()
    memory.undo()
    again = KernelMemory(machine, place, _UNKNOWN[1])
    meaning.apply(arguments, again)
    second = again.results()
    if [address for address, _ in first] != [address for address, _ in second]:
        raise Refused("where it writes depends on bytes that nothing wrote")
    for (address, one), (_, other) in zip(first, second, strict=True):
        known = np.frombuffer(one, np.uint8) == np.frombuffer(other, np.uint8)
        machine.write(place, Address(address), one, known)
