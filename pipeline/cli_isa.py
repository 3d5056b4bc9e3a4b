"""``tilewright isa``: assemble, disassemble, inspect, link and run machine code; decisions; vectors.

A result is written under another name and then renamed, so that a command that fails leaves the earlier file
or none; a result never replaces one of the files it is made from. What is printed may hold characters of
files that the terminal cannot show; they appear as escapes.
"""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pipeline.cli_isa_run import add_run_command
from pipeline.user_files import read_bytes, read_text, unwritable, write_whole

if TYPE_CHECKING:
    from compiler.target.instructions import Mode
    from compiler.target.isa_decisions import Decisions


_READING: Final = "read file"
"""Stage of what is refused of a file before it is looked into."""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the group; each sets ``run`` to a function from arguments to an exit status."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    assemble = commands.add_parser("assemble", help="assemble text to an object file")
    assemble.add_argument("file", type=Path, help="assembly text")
    assemble.add_argument(
        "-o", "--output", type=Path, help="object file; FILE with the suffix .o when left out"
    )
    assemble.add_argument("--listing", action="store_true", help="print addresses, words and text")
    assemble.add_argument(
        "--mode", choices=("worker", "supervisor"), default="worker", help="mode at the start"
    )
    _add_overrides(assemble)
    assemble.set_defaults(run=_assemble)

    disassemble = commands.add_parser("disassemble", help="disassemble a file of plain words")
    disassemble.add_argument("file", type=Path, help="little-endian words without any header")
    disassemble.add_argument("--address", type=_address, default=0, help="byte address of the first word")
    disassemble.add_argument(
        "--mode", choices=("worker", "supervisor"), help="kind of context; both when left out"
    )
    disassemble.set_defaults(run=_disassemble)

    objdump = commands.add_parser("objdump", help="show an object: sections, symbols, relocations, code")
    objdump.add_argument("file", type=Path, help="object file")
    objdump.add_argument(
        "--mode", choices=("worker", "supervisor"), help="kind of context; both when left out"
    )
    objdump.set_defaults(run=_objdump)

    link = commands.add_parser("link", help="link objects to an image of tile memory")
    link.add_argument("files", type=Path, nargs="+", help="object files")
    link.add_argument("-o", "--output", type=Path, required=True, help="executable file")
    link.add_argument("--entry", help="global symbol where execution begins")
    link.add_argument(
        "--keep", action="append", default=[], help="global symbol that must stay; can be repeated"
    )
    link.add_argument("--map", action="store_true", help="print addresses of sections and symbols")
    link.add_argument("--listing", action="store_true", help="print the linked code")
    link.set_defaults(run=_link)

    add_run_command(commands)

    decisions = commands.add_parser(
        "decisions", help="list the answers where no public source states the fact"
    )
    _add_overrides(decisions)
    decisions.set_defaults(run=_decisions)

    vectors = commands.add_parser("check-vectors", help="check known encodings in both directions")
    vectors.add_argument("file", type=Path, help="one JSON object a line: asm, mode, bytes_hex_le, expect")
    vectors.set_defaults(run=_check_vectors)


def _add_overrides(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--isa-overrides", type=Path, metavar="FILE", help="lines NAME = VALUE that replace decisions"
    )


def _address(text: str) -> int:
    try:
        address = int(text, 0)
    except ValueError:
        address = -1
    if not 0 <= address < 1 << 32 or address % 4:
        raise argparse.ArgumentTypeError("it must be a multiple of 4 in 0..0xfffffffc")
    return address


def _refuse_replacing(output: Path, inputs: Sequence[Path]) -> None:
    """Refuse an output that is one of the files it is made from."""
    for path in inputs:
        with contextlib.suppress(OSError, ValueError):
            if output.samefile(path):
                raise unwritable(
                    output, "it would replace a file that it is made from", "give another path with -o"
                )


def _show(text: str) -> None:
    """Print text that may hold what the terminal cannot show."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _chosen_mode(name: str | None) -> "Mode | None":
    from compiler.target.instructions import Mode

    return None if name is None else Mode(name)


def _chosen_decisions(path: Path | None) -> "Decisions":
    from compiler.target.isa_decisions import our_decisions, read_overrides

    return our_decisions() if path is None else read_overrides(read_text(path, stage=_READING), path.name)


def _assemble(arguments: argparse.Namespace) -> int:
    from compiler.isa.assembler import assemble
    from compiler.isa.listing import list_program
    from compiler.isa.objects import write_object
    from compiler.isa.rules import program_faults
    from compiler.isa.text import parse
    from compiler.target.instructions import Mode

    path: Path = arguments.file
    overrides: Path | None = arguments.isa_overrides
    source = read_text(path, stage=_READING)
    output: Path = path.with_suffix(".o") if arguments.output is None else arguments.output
    _refuse_replacing(output, [path] if overrides is None else [path, overrides])
    constants = _chosen_decisions(overrides).constants
    program = parse(source, path.name, mode=Mode(arguments.mode), constants=constants)
    for fault in program_faults(program):
        print(f"warning: {fault.place}: {fault.reason}", file=sys.stderr)
    object_file = assemble(program, output.name)
    write_whole(output, write_object(object_file))
    if arguments.listing:
        _show(list_program(program, output.name))
    return 0


def _disassemble(arguments: argparse.Namespace) -> int:
    from compiler.isa.listing import list_bytes

    content = read_bytes(arguments.file, stage=_READING)
    mode = _chosen_mode(arguments.mode)
    print(".byte_branches")
    for line in list_bytes(content, mode=mode, address=arguments.address, labels={}, remarks={}):
        print(line)
    return 0


def _objdump(arguments: argparse.Namespace) -> int:
    from compiler.isa.listing import list_object
    from compiler.isa.objects import read_object

    path: Path = arguments.file
    _show(list_object(read_object(read_bytes(path, stage=_READING), path.name), _chosen_mode(arguments.mode)))
    return 0


def _link(arguments: argparse.Namespace) -> int:
    from compiler.isa.linker import link, map_text, write_image
    from compiler.isa.listing import list_image
    from compiler.isa.objects import read_object

    paths: list[Path] = arguments.files
    _refuse_replacing(arguments.output, paths)
    objects = [
        read_object(read_bytes(path, stage=_READING), name)
        for path, name in zip(paths, _names(paths), strict=True)
    ]
    image = link(objects, entry=arguments.entry, keep=arguments.keep)
    write_whole(arguments.output, write_image(image))
    if arguments.map:
        _show(map_text(image))
    if arguments.listing:
        _show(list_image(image))
    return 0


def _names(paths: Sequence[Path]) -> list[str]:
    """Names of objects in messages and maps: of the file, or the path where two files have one name."""
    names = [path.name for path in paths]
    return [str(path) if names.count(path.name) > 1 else path.name for path in paths]


def _decisions(arguments: argparse.Namespace) -> int:
    decisions = _chosen_decisions(arguments.isa_overrides)
    print(f"digest {decisions.digest}")
    for row in decisions.rows:
        value = "" if row.value is None else f" = {row.value}"
        standing = "overridden by file" if row.overridden else "decision"
        changeable = ", can be overridden" if row.may_override and not row.overridden else ""
        print(f"\n{row.name}{value}  [{standing}{changeable}]\n    {row.statement}\n    why: {row.reason}")
    return 0


def _check_vectors(arguments: argparse.Namespace) -> int:
    from compiler.isa.vectors import check_vectors, read_vectors

    path: Path = arguments.file
    vectors = read_vectors(read_text(path, stage=_READING), path.name)
    disagreements = check_vectors(vectors)
    for disagreement in disagreements:
        _show(f"{disagreement}\n")
    print(f"{len(vectors) - len(disagreements)} of {len(vectors)} vectors agree")
    return 1 if disagreements else 0
