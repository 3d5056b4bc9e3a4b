"""Assembling test programs, and running a few instructions on given registers."""

from collections.abc import Mapping, Sequence

from compiler.isa.assembler import assemble
from compiler.isa.linker import link
from compiler.isa.text import parse
from compiler.simulator.faults import NamedRange
from compiler.simulator.harness import Program, Run, Segment, load, run_workers
from compiler.simulator.tile import Tile, TileOptions, default_options
from compiler.target.instructions import Mode

DATA = 0x60000
"""Standard memory far from linked code."""
INTERLEAVED = 0x90000


def program_of(text: str, mode: Mode = Mode.SUPERVISOR) -> Program:
    """Assemble and link a text; every global or local label is a symbol."""
    image = link([assemble(parse(text, "test", mode=mode), "test")])
    return Program(
        segments=tuple(Segment(address=address, data=data) for address, data in image.runs()),
        symbols=tuple(
            NamedRange(name=symbol.name, start=symbol.address, size=symbol.size) for symbol in image.symbols
        ),
    )


def worker_program(body: str) -> Program:
    """A worker program named ``main`` that ends with ``exitz``."""
    return program_of(f".worker\nmain:\n{body}\nexitz $m15\n", Mode.WORKER)


def run_worker(
    body: str,
    *,
    main: Mapping[int, int] | None = None,
    arithmetic: Mapping[int, int] | None = None,
    worker: int = 0,
    tile: Tile | None = None,
    options: TileOptions | None = None,
    limit: int = 1_000_000,
) -> tuple[Tile, Run]:
    """Run a text on one worker with given registers."""
    used = Tile(default_options() if options is None else options) if tile is None else tile
    program = worker_program(body)
    load(used, program)
    for number, value in (main or {}).items():
        used.set_main_register(worker, number, value)
    for number, value in (arithmetic or {}).items():
        used.set_arithmetic_register(worker, number, value)
    run = run_workers(used, program.address_of("main"), 0, workers=(worker,), limit=limit)
    return used, run


def words_of(text: str, mode: Mode = Mode.WORKER) -> Sequence[int]:
    """The words of a text."""
    data = program_of(text, mode).segments[0].data
    return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]
