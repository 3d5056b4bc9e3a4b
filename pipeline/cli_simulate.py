"""``tilewright simulate``: run an application from its package.

Inputs and weights come from one ``.npz`` file: a logical tensor for each binding whose description
(``NAME.host.json``) lies beside the package, and otherwise the bytes of the binding's file (uint8). Outputs
go into another. What goes wrong on the device is printed on standard error, with exit status 1; then no
outputs are written. Files are written whole or not at all.
"""

import argparse
import dataclasses
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.arguments import positive
from pipeline.user_files import read_text, unwritable, why_unwritable, write_whole

if TYPE_CHECKING:
    import numpy.typing as npt

    from compiler.errors import InvalidInput
    from compiler.package.host import HostLayout
    from compiler.package.records import Application, Binding
    from compiler.simulator.application import RunResult, Simulator
    from compiler.simulator.recording import Breakpoint

STAGE: Final = "simulate"

_FAULTS_SHOWN: Final = 20

_HEADING: Final = (
    "   no  kind              tiles   last entry   limiting      release   horizon         end    words"
    "  (cycles: {kind})"
)

EPILOGUE: Final = """\
PLACE is an address or the name of a function of the package; TILE is a physical number. A breakpoint stops
all tiles: the registers of the tile that reached it are printed, and --sram saves its memory. Without a tile
every tile is watched, which takes longer.
"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    parser.epilog = EPILOGUE
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("package", type=Path, metavar="PACKAGE", help="the .ipuexe file")
    parser.add_argument("--inputs", type=Path, metavar="FILE", help="inputs and weights by name, .npz")
    parser.add_argument("--outputs", type=Path, metavar="FILE", help="where to put the outputs, .npz")
    parser.add_argument(
        "--mode",
        choices=("instruction", "functional"),
        default="instruction",
        help="execute every instruction (default), or known kernels by their meaning, with estimated cycles",
    )
    parser.add_argument(
        "--runs", type=positive, default=1, metavar="N", help="run so often with the same inputs; 1"
    )
    parser.add_argument("--threads", type=positive, default=1, metavar="N", help="threads for tiles; 1")
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE",
        help="write the samples of the last run, of a package that was built with --profile",
    )
    parser.add_argument("--timeline", action="store_true", help="print every barrier of each run")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write a trace for Chrome or Perfetto")
    parser.add_argument(
        "--trace-tiles", default="", metavar="TILE,...", help="tiles in the trace; the first of the package"
    )
    parser.add_argument("--break", dest="stop", metavar="PLACE[@TILE]", help="stop before this instruction")
    parser.add_argument("--sram", type=Path, metavar="FILE", help="save the memory of the tile that stopped")
    parser.add_argument(
        "--dump",
        action="append",
        default=[],
        metavar="TILE:PLACE:SIZE",
        help="print memory at the end; can be repeated",
    )
    parser.add_argument(
        "--isa-overrides", type=Path, metavar="FILE", help="lines NAME = VALUE that replace decisions"
    )
    parser.set_defaults(run=_run)


def _refused(subject: str, message: str, next_step: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(message, stage=STAGE, subject=subject, next_step=next_step)


def _check_words(arguments: argparse.Namespace) -> None:
    """Before any work: that words have the effect that somebody waits for.

    Raises:
        InvalidInput: a word means nothing without another, or a file cannot be written.
    """
    for word, value, other, needed in (
        ("--sram", arguments.sram, "--break", arguments.stop),
        ("--trace-tiles", arguments.trace_tiles or None, "--trace", arguments.trace),
    ):
        if value is not None and needed is None:
            raise _refused(
                word, f"it has no effect without {other}", f"give {other} with it, or leave it out"
            )
    files: tuple[Path | None, ...] = (arguments.outputs, arguments.trace, arguments.profile, arguments.sram)
    for path in files:
        reason = None if path is None else why_unwritable(path)
        if path is not None and reason is not None:
            raise unwritable(path, f"it cannot be written: {reason}")


def _run(arguments: argparse.Namespace) -> int:
    from compiler.evaluation.meanings import meanings_of
    from compiler.package.format import package_bytes, read_package
    from compiler.simulator.application import SimulationOptions, Simulator
    from compiler.simulator.tile import TileOptions
    from compiler.target.isa_decisions import our_decisions, read_overrides

    _check_words(arguments)
    path: Path = arguments.package
    package = package_bytes(path)
    application = read_package(package, name=path.name)
    layouts = _layouts(path, package, application)
    del package
    tensors = _tensors(arguments.inputs)
    _check_names(application, tensors)
    weights = {binding.name: _file(binding, layouts, tensors, "weight") for binding in application.weights}
    inputs = {binding.name: _file(binding, layouts, tensors, "input") for binding in application.inputs}
    decisions = our_decisions()
    overrides: Path | None = arguments.isa_overrides
    if overrides is not None:
        decisions = read_overrides(read_text(overrides, stage=STAGE), overrides.name)
    dumps = [_dump_place(text, application) for text in arguments.dump]
    trace: Path | None = arguments.trace
    traced = [_number(text, "tile") for text in arguments.trace_tiles.split(",") if text]
    if trace is not None and not traced:
        traced = [min(image.physical_tile for image in application.tiles)]
    simulator = Simulator(
        application,
        SimulationOptions(
            meanings=meanings_of(application) if arguments.mode == "functional" else None,
            threads=arguments.threads,
            tile=TileOptions(decisions=decisions),
            trace_tiles=tuple(_tiles(traced)),
            stop_at=None if arguments.stop is None else _breakpoint(arguments.stop, application),
        ),
    )
    profiled: Path | None = arguments.profile
    if profiled is not None and not application.profile_tiles:
        raise _refused(path.name, "it was not built for profiling", "build it again with --profile")
    # From here on the simulator has its own copy of the images.
    bindings = application.outputs
    application = dataclasses.replace(application, tiles=())
    result = simulator.initialize(weights)
    for number in range(arguments.runs):
        if result.is_complete:
            result = simulator.run(inputs)
            _report(result, number, timeline=arguments.timeline)
    status = _finish(simulator, result, arguments.sram)
    if arguments.stop is not None and result.is_complete:
        print(f"note: the breakpoint {arguments.stop} was not reached")
    if result.is_complete and application.profile_tiles:
        _profile(application, result, profiled)
    if trace is not None:
        write_whole(trace, simulator.trace().encode())
    for tile, address, size in dumps:
        _print_memory(simulator, tile, address, size)
    if result.is_complete and arguments.outputs is not None:
        for binding in bindings:
            if _is_raw(binding, layouts):
                print(f"note: {binding.name} has no description beside the package: written as packed bytes")
        _save(arguments.outputs, {binding.name: _tensor(binding, layouts, result) for binding in bindings})
    return status


# Tensors.


def _layouts(path: Path, package: bytes, application: "Application") -> Mapping[str, "HostLayout"]:
    """Descriptions of bindings that lie beside the package."""
    from urllib.parse import quote

    from compiler.package.host import belongs, read_layout

    layouts: dict[str, HostLayout] = {}
    for binding in (*application.inputs, *application.outputs, *application.weights):
        description = path.with_name(f"{quote(binding.name, safe='')}.host.json")
        if description.exists():
            text = read_text(description, stage=STAGE)
            layouts[binding.name] = read_layout(text, name=description.name)
            if not belongs(text, package):
                raise _refused(
                    str(description),
                    f"it describes a tensor of another package than {path.name}",
                    "build the package again, or put its own descriptions beside it",
                )
    return layouts


def _tensors(path: Path | None) -> Mapping[str, "npt.NDArray[Any]"]:
    """The arrays of a file."""
    import numpy as np

    if path is None:
        return {}
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
            if not all(isinstance(values, np.ndarray) for values in found.values()):
                raise TypeError("a member is given as bytes, since it does not begin as arrays do")
            return found
    except OSError as error:
        raise _refused(
            str(path), f"it cannot be read ({error.strerror or error})", "give a readable .npz file"
        ) from None
    except Exception:  # noqa: BLE001  # whatever the parsers of NumPy and of zip stumble over in the file
        raise _refused(str(path), "it is no .npz file of plain arrays", "write it with numpy.savez") from None


def _check_names(application: "Application", tensors: Mapping[str, object]) -> None:
    known = [binding.name for binding in (*application.weights, *application.inputs)]
    for name in tensors:
        if name not in known:
            raise _refused(
                name, "the package has no input or weight of this name", f"give {', '.join(known) or 'none'}"
            )


def _file(
    binding: "Binding",
    layouts: Mapping[str, "HostLayout"],
    tensors: Mapping[str, "npt.NDArray[Any]"],
    role: str,
) -> bytes:
    """The file of a binding, from the tensor that was given."""
    import numpy as np

    from compiler.package.host import pack

    values = tensors.get(binding.name)
    if values is None:
        raise _refused(
            binding.name,
            f"this {role} is missing",
            f"put an array of shape {list(binding.shape)} under its name into the file of --inputs",
        )
    layout = layouts.get(binding.name)
    if layout is not None:
        if not np.issubdtype(values.dtype, np.floating):
            raise _refused(
                binding.name, f"its elements are {values.dtype}, not floating-point", "convert it before"
            )
        return pack(layout, values)
    if values.dtype != np.uint8 or values.ndim != 1:
        raise _refused(
            binding.name,
            f"its description is not beside the package, and {values.dtype}{list(values.shape)} is no list of"
            " bytes",
            "put the .host.json files beside the package, or give its packed bytes as uint8",
        )
    return values.tobytes()


def _tensor(
    binding: "Binding", layouts: Mapping[str, "HostLayout"], result: "RunResult"
) -> "npt.NDArray[Any]":
    """An output as a tensor, or as the bytes of its file."""
    import numpy as np

    from compiler.package.host import unpack

    file = result.outputs[binding.name]
    layout = layouts.get(binding.name)
    if layout is not None:
        return unpack(layout, file)
    if binding.dtype == "u32":
        return np.frombuffer(file, "<u4").reshape(binding.shape)
    return np.frombuffer(file, np.uint8)


def _is_raw(binding: "Binding", layouts: Mapping[str, "HostLayout"]) -> bool:
    """Whether nothing says how an output becomes a tensor."""
    return binding.name not in layouts and binding.dtype != "u32"


def _save(path: Path, tensors: Mapping[str, "npt.NDArray[Any]"]) -> None:
    """Write arrays as NumPy does, without the time of day."""
    import io

    import numpy as np

    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, values in tensors.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(values), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    write_whole(path, content.getvalue())


# Options.


def _tiles(numbers: Sequence[int]) -> list[Any]:
    from compiler.target.units import PhysicalTile

    return [PhysicalTile(number) for number in numbers]


def _breakpoint(text: str, application: "Application") -> "Breakpoint":
    from compiler.simulator.recording import Breakpoint
    from compiler.target.memory import SRAM_BASE, SRAM_END
    from compiler.target.units import WORD_BYTES, Address, PhysicalTile

    place, separator, tile = text.rpartition("@")
    address = _address(place if separator else text, application)
    if not SRAM_BASE <= address < SRAM_END or address % WORD_BYTES:
        raise _refused(
            text, f"no instruction is at {address:#x}", "give a multiple of 4 from 0x4c000 to 0xe7ffc"
        )
    return Breakpoint(
        address=Address(address), tile=PhysicalTile(_number(tile, "tile")) if separator else None
    )


def _address(text: str, application: "Application") -> int:
    """An address: a number or a symbol."""
    try:
        return int(text, 0)
    except ValueError:
        pass
    for symbol in application.debug_symbols:
        if symbol.name == text:
            return int(symbol.address)
    known = ", ".join(symbol.name for symbol in application.debug_symbols) or "none"
    raise _refused(text, "the package has no function of this name", f"give an address, or one of {known}")


def _number(text: str, what: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise _refused(text, f"this is no {what}", "write a number, as 16 or 0x10") from None


def _dump_place(text: str, application: "Application") -> tuple[int, int, int]:
    from compiler.target.memory import SRAM_BASE, SRAM_END

    parts = text.split(":")
    if len(parts) != 3:  # tile, place, size
        raise _refused(text, "this is not TILE:PLACE:SIZE", "separate the three parts with colons")
    tile, address, size = (
        _number(parts[0], "tile"),
        _address(parts[1], application),
        _number(parts[2], "size"),
    )
    if tile not in [image.physical_tile for image in application.tiles]:
        raise _refused(
            text, f"the package does not hold tile {tile}", "choose a physical number of its tiles"
        )
    if size < 1 or not SRAM_BASE <= address <= SRAM_END - size:
        raise _refused(
            text,
            f"{size:,} bytes from {address:#x} are not in SRAM",
            "name some bytes from 0x4c000 to 0xe7fff",
        )
    return tile, address, size


# What is printed.


def _report(result: "RunResult", number: int, *, timeline: bool) -> None:
    if timeline and result.timeline:
        kind = "simulated" if result.cycles is None else result.cycles.kind.value
        print(_HEADING.format(kind=kind))
        for meeting in result.timeline:
            print(
                f"{meeting.number:>5}  {meeting.kind.value:<16}{meeting.taking_part:>7}"
                f"{meeting.last_entry:>13,}{meeting.limiting_tile:>11}{meeting.release:>13,}"
                f"{meeting.horizon:>10,}{meeting.end:>12,}{meeting.delivered:>9,}"
            )
    if result.cycles is not None:
        print(f"run {number}: {result.cycles.value:,} cycles ({result.cycles.kind.value})")


def _profile(application: "Application", result: "RunResult", path: Path | None) -> None:
    """How long each step of a profiled package took in the last run; all samples into a file."""
    from compiler.package.format import write_profile
    from compiler.package.profile import SAMPLES
    from compiler.report.profile import profile_of, step_spans
    from pipeline.profile_lines import lines_of_spans

    profile = profile_of(application, result.outputs[SAMPLES])
    kind = "simulated" if result.cycles is None else result.cycles.kind.value
    for line in lines_of_spans(step_spans(application.profile_tiles, profile, SAMPLES), kind):
        print(line)
    if path is not None:
        write_whole(path, write_profile(profile))


def _finish(simulator: "Simulator", result: "RunResult", sram: Path | None) -> int:
    """Print how it ended; the exit status."""
    from compiler.simulator.debugger import registers_text
    from compiler.simulator.state import CONTEXTS
    from compiler.target.memory import SRAM_BASE, SRAM_SIZE

    for note in result.notes:
        print(f"note: {note}")
    for fault in result.faults[:_FAULTS_SHOWN]:
        print(f"fault: {fault}", file=sys.stderr)
    if len(result.faults) > _FAULTS_SHOWN:
        print(f"and {len(result.faults) - _FAULTS_SHOWN:,} faults more", file=sys.stderr)
    if result.stopped_at is not None:
        tile = simulator.tile(result.stopped_at)
        print(f"tile {result.stopped_at} is at the breakpoint, cycle {tile.cycle:,}")
        for context in range(CONTEXTS):
            print(registers_text(tile, context))
        if sram is not None:
            write_whole(sram, tile.read(SRAM_BASE, SRAM_SIZE))
    return 1 if result.faults else 0


def _print_memory(simulator: "Simulator", tile: int, address: int, size: int) -> None:
    from compiler.simulator.debugger import memory_text

    (number,) = _tiles([tile])
    print(f"tile {tile}\n{memory_text(simulator.tile(number), address, size)}")
