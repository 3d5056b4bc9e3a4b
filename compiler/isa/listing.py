"""Listings: assembly text with the address, the words and the source of each line in a comment.

A listing is text that the assembler reads: ``parse`` of one gives the listed program again.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from compiler.isa.assembler import assemble
from compiler.isa.disassembler import disassemble
from compiler.isa.expressions import spelled
from compiler.isa.linker import Image
from compiler.isa.objects import ObjectFile
from compiler.isa.printing import INDENT, header_lines, mode_of, print_item, section_directive
from compiler.isa.program import Bundle, Instruction, Item, Program, Section, SectionKind
from compiler.target.instructions import Mode

_COLUMN: Final = 56
_WORDS_SHOWN: Final = 2


def list_program(program: Program, name: str) -> str:
    """A program with the offset in its section and the words of each item, before linking."""
    object_file = assemble(program, name)
    lines = list(header_lines(program))
    mode: Mode | None = None
    for section, assembled in zip(program.sections, object_file.sections, strict=True):
        lines.append(section_directive(section))
        for offset, item, size in section.placed():
            following = mode_of(item)
            if following is not None and following is not mode:
                mode = following
                lines.append(f".{mode.value}")
            content = assembled.content[offset : offset + size]
            lines += _listed(item, offset, content, _source(item))
    return "\n".join(lines) + "\n"


def _source(item: Item) -> str:
    instruction = item.main if isinstance(item, Bundle) else item
    if not isinstance(instruction, Instruction):
        return ""
    return "  ".join(text for text in (instruction.place, instruction.note) if text)


def _listed(item: Item, address: int, content: bytes, remark: str) -> Iterator[str]:
    for text in print_item(item):
        if not content:
            yield text
            continue
        words = [content[start : start + 4][::-1].hex() for start in range(0, len(content), 4)]
        shown = " ".join(words[:_WORDS_SHOWN]) + (" ..." if len(words) > _WORDS_SHOWN else "")
        yield f"{text:{_COLUMN}}# {address:08x}: {shown}  {remark}".rstrip()


def list_bytes(
    content: bytes,
    *,
    mode: Mode | None,
    address: int,
    labels: Mapping[int, Sequence[str]],
    remarks: Mapping[int, str],
) -> Iterator[str]:
    """Lines of a disassembly.

    Args:
        content: the bytes.
        mode: as for ``disassemble``.
        address: of the first byte.
        labels: names at addresses.
        remarks: remarks about addresses.
    """
    current: Mode | None = None
    for decoded in disassemble(content, mode, address):
        start = address + decoded.offset
        for name in labels.get(start, ()):
            yield f"{spelled(name)}:"
        following = mode_of(decoded.item)
        if following is not None and following is not current:
            current = following
            yield f".{current.value}"
        found = [remarks[place] for place in range(start, start + decoded.size) if place in remarks]
        part = content[decoded.offset : decoded.offset + decoded.size]
        yield from _listed(decoded.item, start, part, "  ".join(found))


def list_object(object_file: ObjectFile, mode: Mode | None = None) -> str:
    """Sections, symbols and relocations of an object, with its code disassembled."""
    lines = [f"# object {object_file.name}, {object_file.digest}", ".byte_branches"]
    for symbol in object_file.symbols:
        where = symbol.section or ("absolute" if symbol.is_defined else "undefined")
        kind = "global" if symbol.is_global else "local"
        lines.append(f"# symbol {symbol.name}: {kind}, {where}, value {symbol.value}, size {symbol.size}")
    for section in object_file.sections:
        labels: dict[int, list[str]] = {}
        for symbol in object_file.symbols:
            if symbol.section == section.name and symbol.value is not None:
                labels.setdefault(symbol.value, []).append(symbol.name)
        remarks = {
            relocation.offset: f"{relocation.kind} {relocation.symbol}{relocation.addend:+d}"
            for relocation in section.relocations
        }
        shape = Section(name=section.name, kind=section.kind, items=())
        lines.append(f"{section_directive(shape)}  # {section.size} bytes, alignment {section.alignment}")
        lines += _section_lines(section.kind, section.content, section.size, mode, 0, labels, remarks)
    return "\n".join(lines) + "\n"


def list_image(image: Image, mode: Mode | None = None) -> str:
    """A linked image with its code disassembled at its addresses."""
    entry = "none" if image.entry is None else f"{image.entry:#x}"
    lines = [f"# image {image.digest}, entry {entry}", ".byte_branches"]
    for section in image.sections:
        labels: dict[int, list[str]] = {}
        for symbol in image.symbols:
            if symbol.section == section.name and symbol.origin == section.origin:
                labels.setdefault(symbol.address, []).append(symbol.name)
        lines.append(f"# {section.address:#010x} {section.name} of {section.origin}, {section.size} bytes")
        lines += _section_lines(
            section.kind, section.content, section.size, mode, section.address, labels, {}
        )
    return "\n".join(lines) + "\n"


def _section_lines(
    kind: SectionKind,
    content: bytes,
    size: int,
    mode: Mode | None,
    address: int,
    labels: Mapping[int, Sequence[str]],
    remarks: Mapping[int, str],
) -> Iterator[str]:
    if kind is SectionKind.ZEROS:
        yield f"{INDENT}.space {size}"
    elif kind is SectionKind.CODE:
        yield from list_bytes(content, mode=mode, address=address, labels=labels, remarks=remarks)
    else:
        for start in range(0, len(content), 4):
            for offset in range(start, min(start + 4, len(content))):
                for name in labels.get(address + offset, ()):
                    yield f"{spelled(name)}:"
            word = content[start : start + 4]
            text = ", ".join(f"0x{byte:02x}" for byte in word)
            remark = "  ".join(remarks[place] for place in range(start, start + 4) if place in remarks)
            yield f"{INDENT + '.byte ' + text:{_COLUMN}}# {address + start:08x}:  {remark}".rstrip()
