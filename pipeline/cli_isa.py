"""``tilewright isa``: assemble, disassemble, inspect and link machine code, list decisions, check vectors."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.errors import InvalidInput
    from compiler.target.instructions import Mode
    from compiler.target.isa_decisions import Decisions


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
    disassemble.add_argument("--address", type=_integer, default=0, help="byte address of the first word")
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


def _integer(text: str) -> int:
    return int(text, 0)


def _unreadable(path: Path, reason: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(
        reason, stage="read file", subject=str(path), next_step="give the path of a readable file"
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise _unreadable(path, f"it cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise _unreadable(path, "it is no text") from None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(path, f"it cannot be read ({error.strerror})") from None


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise _unreadable(path, f"it cannot be written ({error.strerror})") from None


def _chosen_mode(name: str | None) -> "Mode | None":
    from compiler.target.instructions import Mode

    return None if name is None else Mode(name)


def _chosen_decisions(path: Path | None) -> "Decisions":
    from compiler.target.isa_decisions import our_decisions, read_overrides

    return our_decisions() if path is None else read_overrides(_text(path), path.name)


def _assemble(arguments: argparse.Namespace) -> int:
    from compiler.isa.assembler import assemble
    from compiler.isa.listing import list_program
    from compiler.isa.objects import write_object
    from compiler.isa.rules import program_faults
    from compiler.isa.text import parse
    from compiler.target.instructions import Mode

    path: Path = arguments.file
    constants = _chosen_decisions(arguments.isa_overrides).constants
    program = parse(_text(path), path.name, mode=Mode(arguments.mode), constants=constants)
    for fault in program_faults(program):
        print(f"warning: {fault.place}: {fault.reason}", file=sys.stderr)
    output: Path = arguments.output or path.with_suffix(".o")
    object_file = assemble(program, output.name)
    _write(output, write_object(object_file))
    if arguments.listing:
        sys.stdout.write(list_program(program, output.name))
    return 0


def _disassemble(arguments: argparse.Namespace) -> int:
    from compiler.isa.listing import list_bytes

    content = _bytes(arguments.file)
    mode = _chosen_mode(arguments.mode)
    print(".byte_branches")
    for line in list_bytes(content, mode=mode, address=arguments.address, labels={}, remarks={}):
        print(line)
    return 0


def _objdump(arguments: argparse.Namespace) -> int:
    from compiler.isa.listing import list_object
    from compiler.isa.objects import read_object

    path: Path = arguments.file
    sys.stdout.write(list_object(read_object(_bytes(path), path.name), _chosen_mode(arguments.mode)))
    return 0


def _link(arguments: argparse.Namespace) -> int:
    from compiler.isa.linker import link, map_text, write_image
    from compiler.isa.listing import list_image
    from compiler.isa.objects import read_object

    paths: list[Path] = arguments.files
    objects = [read_object(_bytes(path), path.name) for path in paths]
    image = link(objects, entry=arguments.entry, keep=arguments.keep)
    _write(arguments.output, write_image(image))
    if arguments.map:
        sys.stdout.write(map_text(image))
    if arguments.listing:
        sys.stdout.write(list_image(image))
    return 0


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
    vectors = read_vectors(_text(path), path.name)
    disagreements = check_vectors(vectors)
    for disagreement in disagreements:
        print(disagreement)
    print(f"{len(vectors) - len(disagreements)} of {len(vectors)} vectors agree")
    return 1 if disagreements else 0
