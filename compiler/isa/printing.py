"""The text of a program: ``parse(print_program(p)) == p`` for every program.

Targets that are numbers are printed as byte addresses, after a ``.byte_branches``. Where a statement would be
read as another form (a small number in a zero-extended form), the mnemonic carries the suffix that forces it.
"""

from collections.abc import Iterator
from typing import Final, assert_never

from compiler.isa.expressions import Binary, Relocated, Slot, Symbol, Value, spelled
from compiler.isa.program import (
    Align,
    Bundle,
    Data,
    Instruction,
    Item,
    Label,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.registers import register_of
from compiler.isa.relocations import BY_NAME
from compiler.isa.select import FNOP, FORCED_SPELLING, IMMEDIATE_KINDS, NOP
from compiler.target.control_registers import UPPER_REGISTERS, SupervisorRegister, WorkerRegister
from compiler.target.instructions import Mode, Operand, OperandKind, instruction_table

INDENT: Final = "    "
_DIRECTIVES: Final = {1: ".byte", 2: ".half", 4: ".word", 8: ".quad"}
_HEX_FROM: Final = 1024
_UPPER_ACCESS: Final = frozenset({"uget", "uput"})


def print_program(program: Program) -> str:
    """The text, one statement a line."""
    return "\n".join(_program_lines(program)) + "\n"


def header_lines(program: Program) -> Iterator[str]:
    """Everything that stands before the first section."""
    for permission in program.permissions:
        yield f".{permission.value}"
    yield ".byte_branches"
    for equate in program.equates:
        yield f".set {spelled(equate.name)}, {equate.value}"
    for declaration in program.declarations:
        # The order of these statements says nothing, but one of them must introduce the symbol.
        name = spelled(declaration.name)
        if declaration.is_global:
            yield f".globl {name}"
        if declaration.is_hidden:
            yield f".hidden {name}"
        if declaration.is_function or not (
            declaration.is_global or declaration.is_hidden or declaration.size is not None
        ):
            yield f".type {name}, {'@function' if declaration.is_function else '@object'}"
        if declaration.size is not None:
            yield f".size {name}, {print_value(declaration.size)}"


def _program_lines(program: Program) -> Iterator[str]:
    yield from header_lines(program)
    mode: Mode | None = None
    for section in program.sections:
        yield section_directive(section)
        for item in section.items:
            following = mode_of(item)
            if following is not None and following is not mode:
                mode = following
                yield f".{mode.value}"
            yield from print_item(item)


def section_directive(section: Section) -> str:
    """The statement that begins a section."""
    zeros = section.kind is SectionKind.ZEROS
    flags = section.kind.value.removesuffix("z")
    return f'.section {spelled(section.name)}, "{flags}", {"@nobits" if zeros else "@progbits"}'


def mode_of(item: Item) -> Mode | None:
    """The kind of context that executes an item; None when it is not code."""
    if isinstance(item, Bundle):
        return item.main.mode
    return item.mode if isinstance(item, Instruction) else None


def print_item(item: Item) -> Iterator[str]:
    """The lines of one item."""
    match item:
        case Label(name=name):
            yield f"{spelled(name)}:"
        case Instruction():
            yield INDENT + print_instruction(item)
        case Bundle(main=main, aux=aux):
            yield f"{INDENT}{{ {print_instruction(main)} ; {print_instruction(aux)} }}"
        case Data(width=width, values=values):
            yield f"{INDENT}{_DIRECTIVES[width]} {', '.join(map(print_value, values))}"
        case Space(size=size):
            yield f"{INDENT}.space {size}"
        case Align(boundary=boundary):
            yield f"{INDENT}.align {boundary}"
        case _:
            assert_never(item)


def print_instruction(instruction: Instruction) -> str:
    """One instruction without its place in a program."""
    form, values = instruction.form, instruction.operands
    if (form, values) == NOP:
        return "nop"
    if (form, values) == FNOP:
        return "fnop"
    mnemonic = _mnemonic(instruction)
    if form.mnemonic == "or" and values[1:] == (15, 15) and form.operands[1].count == 1:
        return f"zero {_operand(form.operands[0], values[0])}"
    if mnemonic == "or" and form.operands[2].token == "u12" and values[2] == 0:
        mnemonic, values = "mov", values[:2]
    operands = (*form.operands, *form.payload)
    texts = [_operand(operand, value) for operand, value in zip(operands, values, strict=False)]
    if operands and any(operand.name == "csr" for operand in operands):
        index = next(index for index, operand in enumerate(operands) if operand.name == "csr")
        texts[index] = _control_register(instruction, values[index]) or texts[index]
    return f"{mnemonic} {', '.join(texts)}".rstrip()


def _mnemonic(instruction: Instruction) -> str:
    """The spelling that reads back as this form."""
    form = instruction.form
    if form.mnemonic == "movz":
        return "movnz"
    immediate = next(
        (index for index, operand in enumerate(form.operands) if operand.kind in IMMEDIATE_KINDS), None
    )
    if immediate is None:
        return form.mnemonic
    kind = form.operands[immediate].kind
    forced = FORCED_SPELLING.get((form.mnemonic, kind))
    if forced is None:
        return form.mnemonic
    value = instruction.operands[immediate]
    rivals = [
        other.operands[immediate]
        for other in instruction_table().forms(form.mnemonic)
        if other is not form and _same_but(form.operands, other.operands, immediate)
    ]
    if isinstance(value, int) and not any(rival.accepts(value) for rival in rivals):
        return form.mnemonic
    if kind is OperandKind.SIGNED and isinstance(value, int):
        return form.mnemonic  # it is preferred
    return forced


def _same_but(first: tuple[Operand, ...], second: tuple[Operand, ...], index: int) -> bool:
    """Whether two forms differ in the kind of one immediate only."""
    return (
        len(first) == len(second)
        and second[index].kind in IMMEDIATE_KINDS
        and all(first[i].token == second[i].token for i in range(len(first)) if i != index)
    )


def _operand(operand: Operand, value: Value) -> str:
    if operand.is_register and isinstance(value, int):
        return f"{register_of(operand.kind, value, operand.count)}{operand.suffix}"
    return print_value(value)


def _control_register(instruction: Instruction, value: Value) -> str | None:
    if not isinstance(value, int):
        return None
    registers = WorkerRegister if instruction.mode is Mode.WORKER else SupervisorRegister
    upper = instruction.form.mnemonic in _UPPER_ACCESS
    number = value + UPPER_REGISTERS if upper else value
    if number not in registers._value2member_map_:
        return None
    return f"${registers(number).name}"


def print_value(value: Value) -> str:
    """A number or expression."""
    match value:
        case int():
            return str(int(value)) if abs(value) < _HEX_FROM else hex(value)
        case Symbol(name):
            return spelled(name)
        case Binary(operator, left, right):
            return f"({print_value(left)} {operator} {print_value(right)})"
        case Relocated(inner, relocation):
            return f"{print_value(inner)}@{BY_NAME[relocation].spelling}"
        case Slot(name):
            return f"?{name}"
        case _:
            assert_never(value)
