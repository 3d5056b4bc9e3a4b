"""Rules about instructions that an encoding cannot express.

Every function answers with a sentence, or None when nothing is wrong; builder and text parser add the place.
The rules are those of the vendor's assembler where they are known:

* an instruction belongs to a kind of context, a lane, and a generation (all of ours run on IPU21);
* the halves of a bundle are a main and an aux instruction that may co-issue and do not write one register;
* code lies at multiples of 4, bundles and words with a payload at multiples of 8;
* a section is no larger than the memory of a tile;
* a repeat body begins at a multiple of 8 and holds 1 to 256 bundles and nothing else, in particular no
  control and no system instruction, so repeats cannot nest.

Registers that discard writes do not count as written twice: kernels use them as the target of both halves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.isa.expressions import Place, Slot, Value, evaluate
from compiler.isa.program import (
    BUNDLE,
    MOST_BYTES,
    WORD,
    Align,
    Bundle,
    Data,
    Instruction,
    Item,
    Label,
    Permission,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.registers import ZERO_REGISTERS
from compiler.target.instructions import Access, Group, Lane, Mode, OperandKind

REPEAT_LIMIT: Final = 256
"""Most bundles in a repeat body: the field holds the number minus one in 8 bits."""

_WRITES: Final = frozenset({Access.WRITE, Access.READ_WRITE})
_BARRED_FROM_REPEATS: Final = frozenset({Group.CONTROL, Group.SYSTEM})


def instruction_refusal(instruction: Instruction, permissions: Sequence[Permission] = ()) -> str | None:
    """What is wrong with an instruction on its own."""
    form = instruction.form
    if instruction.mode not in form.modes and Permission.INVALID_MODE not in permissions:
        other = "supervisor" if instruction.mode is Mode.WORKER else "worker"
        return f"{form.mnemonic} is a {other} instruction ({form}), and this is {instruction.mode.value} code"
    for operand, value in zip((*form.operands, *form.payload), instruction.operands, strict=True):
        if isinstance(value, int) and not operand.accepts(value):
            return f"{form.mnemonic}: {operand.refusal(value)}"
    if Permission.INVALID_OPERANDS in permissions:
        return None
    if form.mnemonic == "ld128putcs" and instruction.operands[0] in range(1, 256, 2):
        return (
            f"ld128putcs: operand weight must be even, not {instruction.operands[0]}: it writes two registers"
        )
    if sum(operand.access in _WRITES for operand in form.operands) < 2:
        return None
    seen: dict[tuple[OperandKind, int], str] = {}
    for name, register in _written(instruction):
        if (first := seen.setdefault(register, name)) != name:
            return f"{form.mnemonic}: operands {first} and {name} both write {_name(register)}"
    return None


def _written(instruction: Instruction) -> Iterator[tuple[str, tuple[OperandKind, int]]]:
    """(operand name, register) for every register written, without those that discard it."""
    for operand, value in zip(instruction.form.operands, instruction.operands, strict=False):
        if operand.access in _WRITES and isinstance(value, int):
            for register in range(value, value + operand.count):
                if register not in ZERO_REGISTERS[operand.kind]:
                    yield operand.name, (operand.kind, register)


def _name(register: tuple[OperandKind, int]) -> str:
    return f"${register[0].value}{register[1]}"


def bundle_refusal(main: Instruction, aux: Instruction) -> str | None:
    """What is wrong with two instructions as a bundle."""
    for instruction, lane in ((main, Lane.MAIN), (aux, Lane.AUX)):
        form = instruction.form
        if not form.can_coissue:
            return f"{form.mnemonic} must be issued alone"
        if instruction.mode is Mode.SUPERVISOR:
            return "the supervisor has no bundles"
        if form.lane is not lane:
            return (
                f"{form.mnemonic} is an instruction of the {form.lane.value} lane ({form}) "
                f"and cannot be the {lane.value} half of a bundle"
            )
    written = {register for _, register in _written(main)}
    for _, register in _written(aux):
        if register in written:
            return f"{main.form.mnemonic} and {aux.form.mnemonic} both write {_name(register)}"
    return None


def place_refusal(offset: int, item: Item) -> str | None:
    """What is wrong with an item at this offset (bytes) of an aligned section."""
    match item:
        case Bundle() if offset % BUNDLE:
            return f"a bundle must be at a multiple of {BUNDLE}, not at offset {offset}: put a nop before it"
        case Instruction(form=form) if form.payload and offset % BUNDLE:
            return f"{form.mnemonic} must be at a multiple of {BUNDLE}, not at offset {offset}"
        case Instruction(form=form) if offset % WORD:
            return f"{form.mnemonic} must be at a multiple of {WORD}, not at offset {offset}"
        case _:
            return None


def repeat_of(item: Item) -> Instruction | None:
    """The repeat instruction that an item is or contains."""
    match item:
        case Instruction(form=form) if form.mnemonic == "rpt":
            return item
        case Bundle(main=main) if main.form.mnemonic == "rpt":
            return main
        case _:
            return None


def body_operand(repeat: Instruction) -> Value:
    """The length operand of a repeat: bundles minus one."""
    return repeat.operands[1]


def repeat_start_refusal(offset: int) -> str | None:
    """What is wrong with a repeat body that begins at this offset (bytes)."""
    if offset % BUNDLE == 0:
        return None
    return f"a repeat body must begin at a multiple of {BUNDLE}, not at offset {offset}: move rpt by one word"


def repeat_length_refusal(bundles: int) -> str | None:
    """What is wrong with a repeat body of so many bundles."""
    if 1 <= bundles <= REPEAT_LIMIT:
        return None
    return f"a repeat body has 1 to {REPEAT_LIMIT} bundles, not {bundles}"


def repeat_item_refusal(item: Item, size: int) -> str | None:
    """What is wrong with an item inside a repeat body; ``size`` is its size in bytes."""
    match item:
        case Label():
            return None
        case Align() | Space() | Data():
            return None if size == 0 else "a repeat body may hold only bundles, not data or padding"
        case Instruction(form=form):
            if form.mnemonic == "rpt":
                return "repeats cannot nest"
            return f"a repeat body may hold only bundles, and {form.mnemonic} stands alone"
        case Bundle(main=main, aux=aux):
            for form in (main.form, aux.form):
                if form.mnemonic == "rpt":
                    return "repeats cannot nest"
                if form.group in _BARRED_FROM_REPEATS:
                    return (
                        f"{form.mnemonic} is a {form.group.value} instruction and cannot be in a repeat body"
                    )
            return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A broken rule.

    Args:
        place: where the item was written.
        reason: the sentence.
        warning: a permission of the program turns it into a warning.
    """

    place: str
    reason: str
    warning: bool = False


def known_places(program: Program) -> Mapping[str, Place | int]:
    """Place of every label and value of every absolute symbol."""
    places: dict[str, Place | int] = {equate.name: equate.value for equate in program.equates}
    for section in program.sections:
        for offset, item, _ in section.placed():
            if isinstance(item, Label):
                places[item.name] = Place(section.name, offset)
    return places


def program_faults(program: Program) -> Iterator[Fault]:
    """Every broken rule, in the order of the program."""
    places = known_places(program)
    for section in program.sections:
        placed = list(section.placed())
        for index, (offset, item, size) in enumerate(placed):
            if offset <= MOST_BYTES < offset + size:
                reason = f"section {section.name} has more than {MOST_BYTES:,} bytes, the memory of a tile"
                yield Fault(place=item.place, reason=reason)
            yield from _item_faults(program, section, offset, item, size)
            repeat = repeat_of(item)
            if repeat is not None and Permission.INVALID_REPEAT not in program.permissions:
                body = placed[index + 1 :]
                yield from _repeat_faults(repeat, offset + size, body, places)


def _item_faults(program: Program, section: Section, offset: int, item: Item, size: int) -> Iterator[Fault]:
    if isinstance(item, Instruction | Bundle) and section.kind is not SectionKind.CODE:
        yield Fault(place=item.place, reason=f"section {section.name} holds no code")
    if (
        isinstance(item, Data | Space)
        and size
        and section.kind is SectionKind.ZEROS
        and isinstance(item, Data)
    ):
        yield Fault(place=item.place, reason=f"section {section.name} holds only zeros")
    if isinstance(item, Align) and section.kind is SectionKind.CODE and offset % WORD and size:
        yield Fault(place=item.place, reason=f"padding of code must begin at a multiple of {WORD}")
    halves = (item,) if isinstance(item, Instruction) else ()
    if isinstance(item, Bundle):
        halves = (item.main, item.aux)
        reason = bundle_refusal(item.main, item.aux)
        if reason is not None:
            lenient = Permission.INVALID_BUNDLES in program.permissions and item.main.form.can_coissue
            lenient = lenient and item.aux.form.can_coissue
            yield Fault(place=item.place, reason=reason, warning=lenient)
    for half in halves:
        reason = instruction_refusal(half, program.permissions)
        if reason is not None:
            yield Fault(place=half.place, reason=reason)
    reason = place_refusal(offset, item)
    if reason is not None and isinstance(item, Instruction | Bundle):
        yield Fault(place=item.place, reason=reason)


def _repeat_faults(
    repeat: Instruction,
    start: int,
    following: Sequence[tuple[int, Item, int]],
    places: Mapping[str, Place | int],
) -> Iterator[Fault]:
    """The first broken rule of a repeat whose body begins at ``start``."""
    length = body_operand(repeat)
    if isinstance(length, Slot):
        return  # whoever fills the template answers for it
    try:
        term = evaluate(length, places.get)
    except ValueError as refusal:
        yield Fault(place=repeat.place, reason=f"rpt: operand body: {refusal}")
        return
    if term.symbol is not None:
        return  # the linker fills in the length
    bundles = term.addend + 1
    reason = repeat_start_refusal(start) or repeat_length_refusal(bundles)
    if reason is not None:
        yield Fault(place=repeat.place, reason=reason)
        return
    for _, item, size in following:
        if bundles == 0:
            return
        reason = repeat_item_refusal(item, size)
        if reason is not None:
            yield Fault(place=item.place, reason=reason)
            return
        bundles -= isinstance(item, Bundle)
    if bundles:
        missing = "a bundle is" if bundles == 1 else f"{bundles} bundles are"
        yield Fault(
            place=repeat.place, reason=f"{missing} missing from the repeat body at the end of the section"
        )
