"""``tilewright inspect``: what is in a package, from its file alone.

An overview, and what is asked for beside it: one tile, the exchanges, the functions. With ``--json`` one JSON
object on one line, with the same content. A file that is no package ends in the words of its reader.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compiler.package.records import Application
    from compiler.report.package import Overview, PackagePhase, Symbol, TileContents
    from compiler.report.profile import StepSpan

STAGE: Final = "inspect"
_SMALLEST_GAP: Final = 64
"""Bytes without a name that are worth a line."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    parser.add_argument("package", type=Path, metavar="PACKAGE", help="the .ipuexe file")
    parser.add_argument(
        "--tile", type=_number, metavar="T", help="memory and program of a tile, by its physical number"
    )
    parser.add_argument(
        "--phases", action="store_true", help="the exchanges; with --tile also that tile's rows, decoded"
    )
    parser.add_argument("--symbols", action="store_true", help="the functions")
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="the steps with their cycles in a profile of a run"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_inspect)


def _inspect(arguments: argparse.Namespace) -> int:
    import json

    from compiler.errors import InvalidInput
    from compiler.package.format import load
    from compiler.report.package import overview_of, phases_of, symbols_of, tile_of
    from compiler.report.plain import json_of
    from compiler.target.units import PhysicalTile
    from pipeline.profile_lines import lines_of_spans

    path: Path = arguments.package
    application = load(path)
    overview = overview_of(application, path.stat().st_size)
    tile = None
    if arguments.tile is not None:
        tile = tile_of(application, PhysicalTile(arguments.tile))
        if tile is None:
            raise InvalidInput(
                "the package has no image for it",
                stage=STAGE,
                subject=f"tile {arguments.tile}",
                next_step=f"give the physical number of one of the {len(application.tiles):,} tiles",
            )
    phases = phases_of(application) if arguments.phases else None
    symbols = symbols_of(application) if arguments.symbols else None
    steps = None if arguments.profile is None else _steps(application, arguments.profile)
    if arguments.json:
        parts = {"overview": overview, "tile": tile, "phases": phases, "symbols": symbols, "steps": steps}
        texts = [f"{json.dumps(name)}:{json_of(part)}" for name, part in parts.items() if part is not None]
        print(f"{{{','.join(texts)}}}")
        return 0
    _print_overview(path.name, overview)
    if tile is not None:
        _print_tile(tile)
    if phases is not None:
        _print_phases(application, phases, arguments.tile)
    if symbols is not None:
        _print_symbols(symbols)
    if steps is not None:
        for line in lines_of_spans(steps, "by the profile"):
            print(line)
    return 0


def _steps(application: "Application", path: Path) -> "tuple[StepSpan, ...]":
    """What a profile says of the steps of a package."""
    from compiler.package.format import read_profile
    from compiler.report.profile import step_spans
    from pipeline.user_files import read_bytes

    profile = read_profile(read_bytes(path, stage=STAGE), name=path.name)
    return step_spans(application.profile_tiles, profile, path.name)


def _print_overview(name: str, overview: "Overview") -> None:
    print(f"{name}: for {overview.target}, written by {overview.compiler_version}; {overview.file}")
    for figure in (overview.tiles, overview.working_tiles, overview.phases, overview.symbols):
        print(f"  {figure}")
    print(f"  calls: {', '.join(overview.calls) or 'none'}")
    print("content (measured)")
    for part in overview.parts:
        where = f" on {part.tiles:,} tiles, at most {part.largest.value:,} on one" if part.tiles else ""
        print(f"  {part.total.value:>12,} bytes  {part.name}{where}")
    print("tensors of the host (measured)")
    for tensor in overview.tensors:
        extents = ", ".join(map(str, tensor.shape))
        print(
            f"  {tensor.total.value:>12,} bytes  {tensor.role} {tensor.name} {tensor.dtype} [{extents}] on "
            f"{tensor.tiles:,} tiles, at most {tensor.largest.value:,} on one"
        )


def _print_tile(tile: "TileContents") -> None:
    print(f"tile {tile.tile}: starts at {tile.entry:#x}; {tile.initialized}; {tile.named}")
    for span in tile.memory:
        size = span.stop - span.start
        if span.name or size >= _SMALLEST_GAP:
            state = "" if span.is_initialized or not span.name else ", set by nobody before the host or a run"
            print(f"  {span.start:#08x} {size:>9,} bytes  {span.name or 'no name'}{state}")
    for heading, lines in (("program", tile.program), ("host programs", tile.host_programs)):
        print(f"{heading} of tile {tile.tile}")
        for line in lines:
            print(line)


def _print_phases(application: "Application", phases: "tuple[PackagePhase, ...]", tile: int | None) -> None:
    from compiler.report.package import row_lines

    for phase in phases:
        print(
            f"phase {phase.number}: {phase.horizon}; {phase.items}; {phase.row_bytes}; "
            f"{len(phase.rows):,} tiles"
        )
        for row in phase.rows:
            if row.tile == tile:
                print(f"  row at {row.address:#x}: {row.words:,} words, {row.events:,} events")
                for line in row_lines(application, row):
                    print(f"    {line}")


def _print_symbols(symbols: "tuple[Symbol, ...]") -> None:
    print("functions: address, bytes, calls in tile programs, calling tiles (all measured)")
    for symbol in symbols:
        print(
            f"  {symbol.address:#08x} {symbol.size.value:>7,} {symbol.calls.value:>9,} "
            f"{symbol.tiles.value:>6,}  {symbol.name}"
        )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not the number of a tile")
    return int(text)
