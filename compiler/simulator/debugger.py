"""Stepping through a tile's program, and looking at registers and SRAM as text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from compiler.simulator.faults import context_name, locate
from compiler.simulator.state import CONTEXTS, SUPERVISOR, WORKERS
from compiler.simulator.tile import Stop, Tile

BYTES_PER_LINE: Final = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """An instruction or bundle that ran.

    Args:
        context: 0 to 5 for workers, 6 for the supervisor.
        address: its address.
        cycle: when it issued.
        instruction: its text.
        symbol: place in the program, or None.
    """

    context: int
    address: int
    cycle: int
    instruction: str
    symbol: str | None

    def __str__(self) -> str:
        """One line for people."""
        where = f"{self.address:#x}" if self.symbol is None else f"{self.address:#x} {self.symbol}"
        return f"{self.cycle:>8} {context_name(self.context):<10} {where}: {self.instruction}"


@final
class Debugger:
    """Runs a started tile instruction by instruction.

    Args:
        tile: the tile; its contexts are started by whoever made it.
        limit: cycle at which it stops at the latest.
    """

    def __init__(self, tile: Tile, limit: int) -> None:
        self.tile: Final = tile
        self.limit: Final = limit
        self.stop: Stop = Stop.LIMIT
        """Why the tile stopped last; LIMIT while it can go on."""

    def step(self) -> Step | None:
        """Run until one instruction of any context has issued; None when nothing can run any more.

        Raises:
            Unsupported: the instruction is not simulated.
        """
        tile = self.tile
        while tile.cycle < self.limit:
            addresses = [tile.program_counter(context) for context in range(CONTEXTS)]
            of_workers, of_supervisor = tile.instructions, tile.supervisor_instructions
            cycle, worker = tile.cycle, tile.cycle % WORKERS
            self.stop = tile.advance(tile.cycle + 1)
            if tile.supervisor_instructions != of_supervisor:
                return self._describe(SUPERVISOR, addresses[SUPERVISOR], cycle)
            if tile.instructions != of_workers:
                return self._describe(worker, addresses[worker], cycle)
            if self.stop is not Stop.LIMIT:
                return None
        self.stop = Stop.LIMIT
        return None

    def run_until(self, is_wanted: Callable[[Step], bool]) -> Step | None:
        """Step until an instruction is wanted; None when the tile stops first."""
        while (step := self.step()) is not None:
            if is_wanted(step):
                return step
        return None

    def _describe(self, context: int, address: int, cycle: int) -> Step:
        tile = self.tile
        return Step(
            context=context,
            address=address,
            cycle=cycle,
            instruction=tile.instruction_at(address, context),
            symbol=locate(address, tile.ranges),
        )


def registers_text(tile: Tile, context: int) -> str:
    """Program counter and registers of a context."""
    state = "active" if tile.is_active(context) else "inactive"
    lines = [f"{context_name(context)} ({state}), pc {tile.program_counter(context):#x}"]
    files: list[tuple[str, Callable[[int, int], int]]] = [("m", tile.main_register)]
    if context != SUPERVISOR:
        files.append(("a", tile.arithmetic_register))
    for name, register in files:
        count = 16 if name == "m" else 8
        for first in range(0, count, 4):
            group = range(first, first + 4)
            lines.append("  ".join(f"${name}{number:<2} {register(context, number):08x}" for number in group))
    if context != SUPERVISOR:
        lines += [
            "  ".join(f"acc{number:<2} {float(tile.accumulator(context, number)):<12.6g}" for number in group)
            for group in (range(first, first + 8, 2) for first in range(0, 32, 8))
        ]
    return "\n".join(line.rstrip() for line in lines)


def memory_text(tile: Tile, address: int, size: int) -> str:
    """Bytes of SRAM in hexadecimal, ``..`` for bytes that nothing wrote.

    Raises:
        ValueError: they do not lie in SRAM.
    """
    data = tile.read(address, size)
    written = tile.written(address, size)
    lines: list[str] = []
    for first in range(0, size, BYTES_PER_LINE):
        fields = [
            f"{data[at]:02x}" if written[at] else ".."
            for at in range(first, min(first + BYTES_PER_LINE, size))
        ]
        lines.append(f"{address + first:#x}  {' '.join(fields)}")
    return "\n".join(lines)
