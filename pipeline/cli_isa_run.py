"""``tilewright isa run``: execute a function of object files on one simulated tile."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from pipeline.user_files import read_bytes, read_text

if TYPE_CHECKING:
    from compiler.errors import InvalidInput
    from compiler.simulator.debugger import Debugger
    from compiler.simulator.harness import Program
    from compiler.simulator.tile import Tile

_STAGE: Final = "isa run"

EPILOGUE: Final = """\
The function is called by the supervisor with $m10 as return address and $m11 as stack; --workers runs it on
all six workers instead. With --debug, commands are read from standard input:
  s [N]        run N instructions (1) of any context     c            continue
  b PLACE      stop before a symbol or address           r CONTEXT    registers: 0 to 5, or s
  d PLACE SIZE bytes of memory                           q            quit
"""


class Commands(Protocol):
    """What ``argparse`` returns for adding subcommands."""

    def add_parser(
        self,
        name: str,
        /,
        *,
        help: str,  # noqa: A002  # argparse's own name
        epilog: str,
        formatter_class: type[argparse.HelpFormatter],
    ) -> argparse.ArgumentParser:
        """A parser for one more command."""
        ...


def add_run_command(commands: Commands) -> None:
    """Add ``run``, which sets ``run`` to a function from arguments to an exit status."""
    parser = commands.add_parser(
        "run",
        help="run a function of object files on one simulated tile",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=Path, nargs="+", help="object files; they are linked first")
    parser.add_argument("--symbol", required=True, help="global symbol to call")
    parser.add_argument(
        "--workers", type=_vertex_base, metavar="BASE", help="run it on six workers with this vertex base"
    )
    parser.add_argument(
        "--register",
        action="append",
        default=[],
        metavar="N=VALUE",
        help="main register of the supervisor; VALUE is a number or a symbol; can be repeated",
    )
    parser.add_argument(
        "--place", action="append", default=[], metavar="PLACE=FILE", help="put a file's bytes into memory"
    )
    parser.add_argument(
        "--dump", action="append", default=[], metavar="PLACE:SIZE", help="print memory afterwards"
    )
    parser.add_argument("--registers", action="store_true", help="print all registers afterwards")
    parser.add_argument("--trace", action="store_true", help="print every instruction as it runs")
    parser.add_argument("--debug", action="store_true", help="read commands from standard input; see below")
    parser.add_argument("--limit", type=_cycles, default=100_000_000, help="most cycles; 100,000,000")
    parser.add_argument("--no-poison", action="store_true", help="let memory that nothing wrote be used")
    parser.add_argument(
        "--perturb",
        choices=("none", "up", "down", "mixed"),
        default="none",
        help="move results of transcendental functions by one unit in the last place",
    )
    parser.add_argument(
        "--isa-overrides", type=Path, metavar="FILE", help="lines NAME = VALUE that replace decisions"
    )
    parser.set_defaults(run=_run)


def _vertex_base(text: str) -> int:
    try:
        base = int(text, 0)
    except ValueError:
        base = -1
    if not 0 <= base < 1 << 32 or base % 4:
        raise argparse.ArgumentTypeError("it must be a multiple of 4 in 0..0xfffffffc")
    return base


def _cycles(text: str) -> int:
    try:
        cycles = int(text, 0)
    except ValueError:
        cycles = -1
    if not 0 <= cycles < 1 << 62:
        raise argparse.ArgumentTypeError("it must be a number of cycles")
    return cycles


def _refused(subject: str, message: str, next_step: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(message, stage=_STAGE, subject=subject, next_step=next_step)


def _program(paths: Sequence[Path], symbol: str) -> "Program":
    from compiler.isa.linker import link
    from compiler.isa.objects import read_object
    from compiler.simulator.faults import NamedRange
    from compiler.simulator.harness import Program, Segment
    from compiler.target.memory import SRAM_END

    image = link([read_object(read_bytes(path, stage=_STAGE), path.name) for path in paths], keep=[symbol])
    names = [named for named in image.symbols if named.section is not None]
    return Program(
        segments=tuple(Segment(address=address, data=data) for address, data in image.runs()),
        symbols=tuple(
            # What a file says of sizes is not verified: a name reaches to the end of memory at most.
            NamedRange(name=named.name, start=named.address, size=min(named.size, SRAM_END - named.address))
            for named in names
        ),
    )


def _pair(text: str, separator: str, shape: str) -> tuple[str, str]:
    left, found, right = text.partition(separator)
    if not found or not left or not right:
        raise _refused(text, f"this is not {shape}", "separate the two parts as shown")
    return left, right


def _place(text: str, program: "Program") -> int:
    """An address: a number or a symbol."""
    try:
        return int(text, 0)
    except ValueError:
        return program.address_of(text)


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise _refused(text, f"this is no {what}", "write a number, as 16 or 0x10") from None


def _registers(texts: Sequence[str], program: "Program") -> Mapping[int, int]:
    registers: dict[int, int] = {}
    for text in texts:
        name, value = _pair(text, "=", "N=VALUE")
        number = _number(name.removeprefix("$").removeprefix("m"), "register number")
        if not 0 <= number < 15:
            raise _refused(text, f"there is no register $m{number} to set", "use $m0 to $m14")
        registers[number] = _place(value, program)
    return registers


def _run(arguments: argparse.Namespace) -> int:
    from compiler.simulator.debugger import Debugger
    from compiler.simulator.harness import load, prepare_call, prepare_workers
    from compiler.simulator.state import WORKERS
    from compiler.simulator.tile import Perturbation, Tile, TileOptions
    from compiler.target.isa_decisions import our_decisions, read_overrides

    overrides: Path | None = arguments.isa_overrides
    decisions = our_decisions()
    if overrides is not None:
        decisions = read_overrides(read_text(overrides, stage=_STAGE), overrides.name)
    program = _program(arguments.files, arguments.symbol)
    tile = Tile(
        TileOptions(
            decisions=decisions,
            poison=not arguments.no_poison,
            perturbation=Perturbation[arguments.perturb.upper()],
        )
    )
    load(tile, program)
    for text in arguments.place:
        where, name = _pair(text, "=", "PLACE=FILE")
        _guarded(
            text,
            lambda where=where, name=name: tile.place(
                _place(where, program), read_bytes(Path(name), stage=_STAGE)
            ),
        )
    entry = program.address_of(arguments.symbol)
    registers = _registers(arguments.register, program)
    if arguments.workers is None:
        prepare_call(tile, entry, registers)
    else:
        if registers:
            raise _refused(
                "--register", "workers alone have no supervisor", "leave out --register or --workers"
            )
        prepare_workers(tile, entry, arguments.workers, range(WORKERS))
    if arguments.debug:
        return _debug(Debugger(tile, arguments.limit), program)
    if arguments.trace:
        debugger = Debugger(tile, arguments.limit)
        while (step := debugger.step()) is not None:
            print(step)
    status = _report(tile, arguments.limit)
    if arguments.registers:
        _print_registers(tile)
    for text in arguments.dump:
        where, size = _pair(text, ":", "PLACE:SIZE")
        _dump(tile, _place(where, program), _number(size, "size"))
    return status


def _guarded(subject: str, action: Callable[[], None]) -> None:
    """Run something that refuses addresses outside memory."""
    try:
        action()
    except ValueError as error:
        raise _refused(subject, str(error), "name bytes from 0x4c000 to 0xe7fff") from None


def _report(tile: "Tile", limit: int) -> int:
    from compiler.simulator.harness import finish
    from compiler.simulator.tile import Stop

    run = finish(tile, max(limit - tile.cycle, 0))
    if run.fault is not None:
        print(f"fault: {run.fault}", file=sys.stderr)
    elif run.stop is Stop.LIMIT:
        print(f"not finished after {limit:,} cycles", file=sys.stderr)
    print(
        f"{tile.cycle:,} cycles (simulated), {tile.instructions:,} worker instructions,"
        f" {tile.matrix_instructions:,} of them of the matrix units"
    )
    if run.queue_report is not None:
        print(f"note: {run.queue_report}")
    return 0 if run.stop in (Stop.RETURNED, Stop.IDLE) else 1


def _print_registers(tile: "Tile") -> None:
    from compiler.simulator.debugger import registers_text
    from compiler.simulator.state import CONTEXTS

    for context in range(CONTEXTS):
        print(registers_text(tile, context))


def _dump(tile: "Tile", address: int, size: int) -> None:
    from compiler.simulator.debugger import memory_text

    _guarded(hex(address), lambda: print(memory_text(tile, address, size)))


def _debug(debugger: "Debugger", program: "Program") -> int:
    """Obey commands until one of them, or the end of input, quits."""
    from compiler.errors import TilewrightError

    breakpoints: set[int] = set()
    for line in _lines():
        words = line.split()
        if not words:
            continue
        if words[0] == "q":
            break
        try:
            _obey(debugger, program, words, breakpoints)
        except TilewrightError as error:
            print(error)
    return 0


def _lines() -> Iterator[str]:
    """Lines of standard input; what cannot be decoded is no command."""
    try:
        for line in sys.stdin:
            yield line.strip()
    except UnicodeDecodeError:
        raise _refused("standard input", "it is no text", "write commands in UTF-8") from None


def _obey(debugger: "Debugger", program: "Program", words: Sequence[str], breakpoints: set[int]) -> None:
    from compiler.simulator.debugger import registers_text
    from compiler.simulator.state import CONTEXTS, SUPERVISOR

    tile = debugger.tile
    match words:
        case ["s", *rest] if len(rest) <= 1:
            for _ in range(_number(rest[0], "count") if rest else 1):
                step = debugger.step()
                if step is None:
                    _say_end(debugger)
                    break
                print(step)
        case ["c"]:
            step = debugger.run_until(
                lambda _: any(
                    tile.is_active(context) and tile.program_counter(context) in breakpoints
                    for context in range(CONTEXTS)
                )
            )
            if step is None:
                _say_end(debugger)
            else:
                print(step)
        case ["b", place]:
            breakpoints.add(_place(place, program))
        case ["r", name]:
            context = SUPERVISOR if name == "s" else _number(name, "context")
            if not 0 <= context < CONTEXTS:
                raise _refused(name, "there is no such context", "use 0 to 5, or s for the supervisor")
            print(registers_text(tile, context))
        case ["d", place, size]:
            _dump(tile, _place(place, program), _number(size, "size"))
        case _:
            raise _refused(" ".join(words), "this is no command", "use s, c, b, r, d or q")


def _say_end(debugger: "Debugger") -> None:
    from compiler.simulator.tile import Stop

    tile = debugger.tile
    if debugger.stop is Stop.FAULT:
        print(f"fault: {tile.fault()}")
    elif debugger.stop is Stop.LIMIT:
        print(f"not finished after {debugger.limit:,} cycles")
    elif debugger.stop is Stop.EXCHANGE:
        print(tile.unsupported())
    else:
        print(f"finished after {tile.cycle:,} cycles")
