"""Machine code as a value: sections of instructions, bundles, labels and data.

Builder and text parser make it, the printer writes it, the assembler turns it into an object. A program is
legal by construction as far as single instructions go; rules about neighbours (repeat bodies, alignment) are
in ``rules.py`` and are checked when it is built or parsed and again when it is assembled.

Operands hold values as the instruction table decodes them: register numbers, signed numbers, byte addresses.
``place`` and ``note`` say where an item comes from; they never take part in comparisons.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias, final

from compiler.isa.expressions import Value, check_name
from compiler.target.instructions import InstructionForm, Mode
from compiler.target.memory import SRAM_SIZE

WORD: Final = 4
BUNDLE: Final = 8
MOST_BYTES: Final = int(SRAM_SIZE)
"""Bytes of a section: no more than the memory of a tile."""
MOST_ALIGNED: Final = 1 << 20
"""Bytes of an alignment: more than the memory of a tile."""
MOST_SECTIONS: Final = 30_000
"""Sections of a program: each may need a second one for its relocations, and object files number 65,279."""


@final
class SectionKind(Enum):
    """What a section holds; the value is (flags as written in text, name as in listings)."""

    CODE = "ax"
    CONSTANTS = "a"
    DATA = "aw"
    ZEROS = "awz"
    """Reserved memory that an image does not carry."""


@final
class Permission(Enum):
    """A check that a source file switches off, by the directive of that name."""

    OPTIMIZATIONS = "allow_optimizations"
    """The assembler may reorder; ours never does."""
    INVALID_REPEAT = "allow_invalid_repeat"
    INVALID_OPERANDS = "allow_invalid_operands"
    INVALID_MODE = "allow_invalid_execution_mode"
    INVALID_BUNDLES = "warn_on_invalid_bundles"
    """Broken rules of bundles are warnings. The directive ``error_on_invalid_bundles`` takes it back."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction.

    Args:
        form: row of the instruction table.
        operands: values for the operands of the form, then for those of its payload word.
        mode: kind of context that executes it.
        place: where in our source or in a text it was written.
        note: what it is for.
    """

    form: InstructionForm
    operands: tuple[Value, ...]
    mode: Mode
    place: str = field(default="", compare=False)
    note: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Check the number of operands."""
        if len(self.operands) != len(self.form.operands) + len(self.form.payload):
            raise ValueError(f"{self.form} has {len(self.operands)} values")

    @property
    def size(self) -> int:
        """Bytes."""
        return WORD * self.form.words


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Two instructions that issue together."""

    main: Instruction
    aux: Instruction

    @property
    def size(self) -> int:
        """Bytes."""
        return BUNDLE

    @property
    def place(self) -> str:
        """Where it was written."""
        return self.main.place


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """A name for the address of what follows."""

    name: str
    place: str = field(default="", compare=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Numbers in memory, little endian.

    Args:
        width: bytes of each: 1, 2, 4 or 8.
        values: the numbers; the lower bits of negative ones are stored.
    """

    width: int
    values: tuple[Value, ...]
    place: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Check width and range."""
        if self.width not in (1, 2, 4, 8):
            raise ValueError(f"data of {self.width} bytes does not exist")
        bits = 8 * self.width
        for value in self.values:
            if isinstance(value, int) and not -(1 << (bits - 1)) <= value < 1 << bits:
                raise ValueError(f"{value} does not fit {bits} bits")

    @property
    def size(self) -> int:
        """Bytes."""
        return self.width * len(self.values)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A number of zero bytes."""

    size: int
    place: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Check the size."""
        if not 0 <= self.size <= MOST_BYTES:
            raise ValueError(f"space is 0 to {MOST_BYTES:,} bytes, not {self.size:,}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Align:
    """Padding to a multiple: ``nop`` words in code, zeros elsewhere."""

    boundary: int
    place: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        """Check for a power of two."""
        if self.boundary < 1 or self.boundary & (self.boundary - 1):
            raise ValueError(f"alignment {self.boundary} is no power of two")
        if self.boundary > MOST_ALIGNED:
            raise ValueError(f"an alignment is at most {MOST_ALIGNED:,} bytes, not {self.boundary:,}")


Item: TypeAlias = Instruction | Bundle | Label | Data | Space | Align


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A named run of items that the linker places as a whole."""

    name: str
    kind: SectionKind
    items: tuple[Item, ...]

    @property
    def alignment(self) -> int:
        """Bytes that the address of the section is a multiple of."""
        alignment = WORD if self.kind is SectionKind.CODE else 1
        for item in self.items:
            match item:
                case Align(boundary=boundary):
                    alignment = max(alignment, boundary)
                case Bundle():
                    alignment = max(alignment, BUNDLE)
                case Instruction(form=form):
                    # A repeat body must begin at a multiple of 8, a word with a payload too.
                    alignment = max(alignment, BUNDLE if form.payload or form.mnemonic == "rpt" else WORD)
                case Data(width=width):
                    alignment = max(alignment, width)
                case Label() | Space():
                    pass
        return alignment

    def placed(self) -> Iterator[tuple[int, Item, int]]:
        """Offset in bytes, item and size in bytes, in order; sizes of :class:`Align` depend on the offset."""
        offset = 0
        for item in self.items:
            match item:
                case Align(boundary=boundary):
                    size = -offset % boundary
                case Label():
                    size = 0
                case _:
                    size = item.size
            yield offset, item, size
            offset += size

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(size for _, _, size in self.placed())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a program says about a symbol.

    Args:
        name: the symbol.
        is_global: other objects can refer to it.
        is_hidden: not visible outside of the linked image.
        is_function: it names code that is called.
        size: bytes, or None when not stated.
        place: where the size was written.
    """

    name: str
    is_global: bool = False
    is_hidden: bool = False
    is_function: bool = False
    size: Value | None = None
    place: str = field(default="", compare=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Equate:
    """An absolute symbol."""

    name: str
    value: int

    def __post_init__(self) -> None:
        """Check the range."""
        if not -(1 << 31) <= self.value < 1 << 32:
            raise ValueError(f"the value {self.value} of symbol {self.name} does not fit 32 bits")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A translation unit.

    Args:
        sections: in order of first mention; names are unique.
        declarations: one for each symbol about which something is said.
        equates: absolute symbols, in order of definition.
        permissions: checks that are off, in the order of :class:`Permission`.
    """

    sections: tuple[Section, ...]
    declarations: tuple[Declaration, ...] = ()
    equates: tuple[Equate, ...] = ()
    permissions: tuple[Permission, ...] = ()

    def __post_init__(self) -> None:
        """Check that every name has one meaning."""
        names = [section.name for section in self.sections]
        if len(set(names)) != len(names):
            raise ValueError("two sections have one name")
        if len(names) > MOST_SECTIONS:
            raise ValueError(f"a program has at most {MOST_SECTIONS:,} sections")
        for name in (*names, *(declaration.name for declaration in self.declarations)):
            check_name(name)
        defined: set[str] = set(names)
        for name in self.defined_names():
            check_name(name)
            if name in defined:
                raise ValueError(f"symbol {name} is defined twice")
            defined.add(name)

    def defined_names(self) -> Iterator[str]:
        """Names of all labels and absolute symbols."""
        for section in self.sections:
            for item in section.items:
                if isinstance(item, Label):
                    yield item.name
        for equate in self.equates:
            yield equate.name
