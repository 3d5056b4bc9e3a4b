"""Running a program on one tile: load it, place operands, call a symbol, look at what happened."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InvalidInput
from compiler.simulator.faults import Fault, NamedRange
from compiler.simulator.state import SUPERVISOR, WORKERS
from compiler.simulator.tile import STAGE, QueueReport, Stop, Tile
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.runtime_layout import DEFAULT_LAYOUT

LINK_REGISTER: Final = 10
STACK_REGISTER: Final = 11
RETURN_ADDRESS: Final = 0
"""Where a called function returns to: the address at which programs end."""
STACK: Final = int(DEFAULT_LAYOUT.state.end)
"""Where the stack of the supervisor starts, descending."""
DEFAULT_LIMIT: Final = 100_000_000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Bytes at an address."""

    address: int
    data: bytes

    def __post_init__(self) -> None:
        """They lie in SRAM."""
        if self.address < SRAM_BASE or self.address + len(self.data) > SRAM_END:
            raise ValueError(f"segment {self.address:#x}..{self.address + len(self.data):#x} is not in SRAM")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Linked code and data.

    Args:
        segments: what to place.
        symbols: named places, for calls and messages.
    """

    segments: tuple[Segment, ...]
    symbols: tuple[NamedRange, ...] = ()

    def address_of(self, name: str) -> int:
        """Address of a symbol.

        Raises:
            InvalidInput: there is none of that name.
        """
        for symbol in self.symbols:
            if symbol.name == name:
                return symbol.start
        known = ", ".join(sorted(symbol.name for symbol in self.symbols)) or "none"
        raise InvalidInput(
            f"there is no symbol {name}",
            stage=STAGE,
            subject="program",
            next_step=f"name one of its symbols: {known}",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a call did.

    Args:
        stop: why it ended; RETURNED for a supervisor function, IDLE for workers started alone.
        cycles: tile cycles from its first to after its last.
        instructions: of workers, both halves of bundles counted.
        matrix_instructions: of the matrix units among them.
        fault: what went wrong, when ``stop`` is FAULT.
        queue_report: set when a result depends on the unknown model of the matrix queues.
    """

    stop: Stop
    cycles: int
    instructions: int
    matrix_instructions: int
    fault: Fault | None
    queue_report: QueueReport | None


def load(tile: Tile, program: Program) -> None:
    """Place a program and remember its symbols.

    A symbol of unknown size reaches to the next one or the end of its segment.
    """
    for segment in program.segments:
        tile.place(segment.address, segment.data)
    starts = sorted({symbol.start for symbol in program.symbols})
    for symbol in program.symbols:
        if symbol.size > 0:
            tile.ranges.append(symbol)
            continue
        ends = [start for start in starts if start > symbol.start]
        ends += [
            segment.address + len(segment.data)
            for segment in program.segments
            if segment.address <= symbol.start < segment.address + len(segment.data)
        ]
        size = min(ends, default=symbol.start) - symbol.start
        tile.ranges.append(NamedRange(name=symbol.name, start=symbol.start, size=size))


def name_operands(tile: Tile, operands: Sequence[NamedRange]) -> None:
    """Let messages name operands by address."""
    tile.ranges.extend(operands)


def call(
    tile: Tile,
    entry: int,
    registers: Mapping[int, int],
    *,
    stack: int = STACK,
    limit: int = DEFAULT_LIMIT,
) -> Run:
    """Call a function of the supervisor and wait for its return.

    Args:
        tile: the tile, program loaded and operands placed.
        entry: address of the function.
        registers: main registers of the supervisor by number.
        stack: where its stack starts, descending.
        limit: most cycles it may take.

    Raises:
        Unsupported: it runs an instruction that is not simulated, or uses the exchange.
    """
    prepare_call(tile, entry, registers, stack=stack)
    return finish(tile, limit)


def prepare_call(tile: Tile, entry: int, registers: Mapping[int, int], *, stack: int = STACK) -> None:
    """Let the supervisor be about to run a function that returns to the end of the program.

    Whatever an earlier run left unfinished is stopped.
    """
    tile.stop()
    tile.set_main_register(SUPERVISOR, LINK_REGISTER, RETURN_ADDRESS)
    tile.set_main_register(SUPERVISOR, STACK_REGISTER, stack)
    for number, value in registers.items():
        tile.set_main_register(SUPERVISOR, number, value)
    tile.start_supervisor(entry)


def run_workers(
    tile: Tile,
    entry: int,
    vertex_base: int,
    *,
    workers: Sequence[int] = tuple(range(WORKERS)),
    limit: int = DEFAULT_LIMIT,
) -> Run:
    """Run workers without a supervisor until the last has exited."""
    prepare_workers(tile, entry, vertex_base, workers)
    return finish(tile, limit)


def prepare_workers(tile: Tile, entry: int, vertex_base: int, workers: Sequence[int]) -> None:
    """Let workers be about to run, and nothing else."""
    tile.stop()
    for worker in workers:
        tile.start_worker(worker, entry, vertex_base)


def finish(tile: Tile, limit: int = DEFAULT_LIMIT) -> Run:
    """Run what was prepared to its end.

    Raises:
        Unsupported: as :func:`call`.
    """
    started = (tile.cycle, tile.instructions, tile.matrix_instructions)
    stop = tile.advance(started[0] + limit)
    if stop is Stop.EXCHANGE:
        raise tile.unsupported()
    return Run(
        stop=stop,
        cycles=tile.cycle - started[0],
        instructions=tile.instructions - started[1],
        matrix_instructions=tile.matrix_instructions - started[2],
        fault=tile.fault() if stop is Stop.FAULT else None,
        queue_report=tile.queue_report(),
    )
