"""From a program to an object: bytes, relocations and symbols.

A label becomes a symbol; names that begin with ``.L`` stay inside the object. A symbol operand becomes a
relocation, also when the label is in the same section: addresses are decided by the linker. Only distances of
labels of one section are numbers here. The offset of ``run`` is left to the linker even when its symbol is
absolute, as the vendor's assembler does, because it counts from the start of memory.
"""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never, final

from compiler.isa import rules
from compiler.isa.expressions import Place, Slot, Value, evaluate
from compiler.isa.lexer import refusal_at
from compiler.isa.objects import ObjectFile, ObjectSection, ObjectSymbol
from compiler.isa.program import (
    MOST_BYTES,
    WORD,
    Align,
    Bundle,
    Data,
    Declaration,
    Instruction,
    Item,
    Label,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.relocations import BY_NAME, DATA_RELOCATIONS, Relocation, RelocationType
from compiler.isa.select import NOP
from compiler.target.instructions import Operand, encode, encode_payload

_RUN: Final = BY_NAME["RUN"]
_NOP_WORD: Final = encode(NOP[0], [value for value in NOP[1] if isinstance(value, int)]).to_bytes(4, "little")
LOCAL_PREFIX: Final = ".L"


def assemble(program: Program, name: str) -> ObjectFile:
    """The object of a program.

    Args:
        program: what to assemble.
        name: of the object, in messages and maps.

    Raises:
        InvalidInput: a rule of ``rules.py`` is broken, or an operand that had to wait for the layout does not
            fit; the subject is the place where the item was written. For a program of the builder that is
            rare, since it has checked everything but numbers that depend on the layout.
    """
    for fault in rules.program_faults(program):
        if not fault.warning:
            raise refusal_at(fault.place, fault.reason, "correct this line")
    places = rules.known_places(program)
    sections: list[ObjectSection] = []
    for section in program.sections:
        writer = _SectionWriter(section, places)
        writer.write()
        sections.append(
            ObjectSection(
                name=section.name,
                kind=section.kind,
                alignment=section.alignment,
                size=section.size,
                content=bytes(writer.content),
                relocations=tuple(writer.relocations),
            )
        )
    return ObjectFile(name=name, sections=tuple(sections), symbols=tuple(_symbols(program, places, sections)))


def _symbols(
    program: Program, places: Mapping[str, Place | int], sections: list[ObjectSection]
) -> Iterator[ObjectSymbol]:
    declarations = {declaration.name: declaration for declaration in program.declarations}
    section_names = {section.name for section in program.sections}
    used = {relocation.symbol for section in sections for relocation in section.relocations}
    for name in (*places, *sorted((used | declarations.keys()) - places.keys() - {""})):
        found = places.get(name)
        declaration = declarations.get(name)
        if found is None and name not in used:
            continue  # declared, but neither defined nor used
        if found is None and name in section_names:
            continue  # a local label, told by its section
        if isinstance(found, Place) and name.startswith(LOCAL_PREFIX):
            continue
        size = 0
        if declaration is not None and declaration.size is not None:
            size = _declared_size(declaration, declaration.size, places)
        yield ObjectSymbol(
            name=name,
            section=found.section if isinstance(found, Place) else None,
            value=found.offset if isinstance(found, Place) else _stored(found),
            size=size,
            is_global=found is None or (declaration is not None and declaration.is_global),
            is_hidden=declaration is not None and declaration.is_hidden,
            is_function=declaration is not None and declaration.is_function,
        )


def _declared_size(declaration: Declaration, size: Value, places: Mapping[str, Place | int]) -> int:
    try:
        term = evaluate(size, places.get)
        if term.symbol is not None or term.relocation is not None:
            raise ValueError(f"the size of {declaration.name} is an address, not a number of bytes")
        if not 0 <= term.addend <= MOST_BYTES:
            raise ValueError(
                f"the size of {declaration.name} must be in 0..{MOST_BYTES} bytes, not {term.addend}"
            )
    except ValueError as refusal:
        raise refusal_at(declaration.place or declaration.name, str(refusal), "correct this line") from None
    return term.addend


def _stored(value: int | None) -> int | None:
    """An absolute value as object files hold it: 32 bits without a sign."""
    return None if value is None else value & 0xFFFF_FFFF


@final
class _SectionWriter:
    """Bytes and relocations of one section."""

    def __init__(self, section: Section, places: Mapping[str, Place | int]) -> None:
        self.section: Final = section
        self.places: Final = places
        self.content: Final = bytearray()
        self.relocations: Final[list[Relocation]] = []

    def write(self) -> None:
        """Fill both."""
        if self.section.kind is SectionKind.ZEROS:
            return
        for offset, item, size in self.section.placed():
            assert offset == len(self.content)
            self.item(item, size)

    def item(self, item: Item, size: int) -> None:
        """Append one item of so many bytes."""
        match item:
            case Instruction():
                self.instruction(item, coissue=False)
            case Bundle(main=main, aux=aux):
                self.instruction(main, coissue=True)
                self.instruction(aux, coissue=True)
            case Data(width=width, values=values):
                for value in values:
                    self.number(item, width, value)
            case Align():
                is_code = self.section.kind is SectionKind.CODE
                self.content.extend(_NOP_WORD * (size // WORD) if is_code else bytes(size))
            case Space():
                self.content.extend(bytes(size))
            case Label():
                pass
            case _:
                assert_never(item)

    def instruction(self, instruction: Instruction, *, coissue: bool) -> None:
        """Append the word, or words, of an instruction."""
        form = instruction.form
        operands = (*form.operands, *form.payload)
        values = [
            value if isinstance(value, int) else self.operand(instruction, index, operands[index], value)
            for index, value in enumerate(instruction.operands)
        ]
        first = len(form.operands)
        try:
            self.content.extend(encode(form, values[:first], coissue=coissue).to_bytes(WORD, "little"))
            if form.payload:
                self.content.extend(encode_payload(form, values[first:]).to_bytes(WORD, "little"))
        except ValueError as refusal:
            raise refusal_at(instruction.place, str(refusal), "correct this line") from None

    def operand(self, instruction: Instruction, index: int, operand: Operand, value: Value) -> int:
        """The number of an operand, 0 where the linker fills it in."""
        form = instruction.form
        default = form.relocation
        kind = BY_NAME[default[1]] if default is not None and default[0] == index else None
        offset = len(self.content) + (WORD if index >= len(form.operands) else 0)
        if isinstance(value, Slot):
            return 0
        try:
            term = evaluate(value, self.places.get)
            if kind is not None and kind is _RUN and term.symbol is None:
                return self.absolute_run(value, offset, kind, instruction)
            if term.symbol is None and term.relocation is None:
                return term.addend
            if term.relocation is not None:
                kind = BY_NAME[term.relocation]
                self.check_fit(instruction, index, kind)
        except ValueError as refusal:
            raise refusal_at(
                instruction.place, f"{form.mnemonic}: operand {operand.name}: {refusal}", "correct this line"
            ) from None
        if kind is None:
            raise refusal_at(
                instruction.place,
                f"{form.mnemonic}: operand {operand.name} must be a number: no relocation fits it",
                "load the address with setzi and use a register",
            )
        self.relocate(offset, kind, term.symbol or "", term.addend, instruction.place)
        return 0

    def absolute_run(self, value: Value, offset: int, kind: RelocationType, instruction: Instruction) -> int:
        """Relocate the offset of ``run`` against an absolute symbol."""
        term = evaluate(value, lambda _: None)
        if term.symbol is None:
            return term.addend
        self.relocate(offset, kind, term.symbol, term.addend, instruction.place)
        return 0

    def check_fit(self, instruction: Instruction, index: int, kind: RelocationType) -> None:
        """Refuse a relocation that would write other bits than those of the operand."""
        form = instruction.form
        fields, position = form.fields, index
        if index >= len(form.operands):
            fields, position = form.payload_fields, index - len(form.operands)
        mask = sum(field.mask for field in fields if field.operand == position)
        default = form.relocation == (index, kind.name)
        if kind.mask != mask and not default:
            raise ValueError(f"{kind} writes other bits than those of this operand")

    def number(self, item: Data, width: int, value: Value) -> None:
        """Append a number of data."""
        kind = DATA_RELOCATIONS[width]
        number = 0
        if not isinstance(value, Slot):
            try:
                term = evaluate(value, self.places.get)
            except ValueError as refusal:
                raise refusal_at(item.place, str(refusal), "correct this line") from None
            if term.relocation is not None:
                kind = BY_NAME[term.relocation]
                if kind.size > width:
                    raise refusal_at(item.place, f"{kind} writes {kind.size} bytes", "use wider data")
            if term.symbol is not None or term.relocation is not None:
                self.relocate(len(self.content), kind, term.symbol or "", term.addend, item.place)
            else:
                number = term.addend
        bits = 8 * width
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise refusal_at(item.place, f"{number} does not fit {bits} bits", "use wider data")
        self.content.extend((number & ((1 << bits) - 1)).to_bytes(width, "little"))

    def relocate(self, offset: int, kind: RelocationType, symbol: str, addend: int, place: str) -> None:
        """Leave a place to the linker; local labels are told by their section."""
        found = self.places.get(symbol)
        if symbol.startswith(LOCAL_PREFIX) and isinstance(found, Place):
            symbol, addend = found.section, addend + found.offset
        self.relocations.append(
            Relocation(offset=offset, kind=kind, symbol=symbol, addend=addend, note=place)
        )
