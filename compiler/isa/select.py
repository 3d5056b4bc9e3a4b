"""From what is written, a mnemonic with arguments, to a form of the instruction table with operand values.

Shared by the builder and the text parser, so that both know the same spellings: aliases, optional deltas,
forced immediate forms, reverse subtraction. Every refusal is a ``ValueError`` with a sentence that names the
operand; the callers add the place.

Choice of an immediate form, where a mnemonic has several: the signed one if the number fits, else the
unsigned one, else the one that holds upper bits. A suffix on the mnemonic forces one: ``s``, ``z``, and
``.high`` of ours for the upper bits (which only a zero needs).
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from compiler.isa.expressions import Expression, Value
from compiler.isa.registers import (
    ARITHMETIC_ZERO,
    ARITHMETIC_ZEROS,
    LINK,
    ZERO,
    Arithmetic,
    ArithmeticPair,
    ArithmeticQuad,
    Broadcast,
    Main,
    MainPair,
    Register,
)
from compiler.target.instructions import (
    InstructionForm,
    Operand,
    OperandKind,
    instruction_table,
)


@final
@dataclass(frozen=True, slots=True)
class Suffixed:
    """A register with the literal text that followed it in assembly text (``+=``, ``:BL``, or "")."""

    register: Register
    suffix: str


Argument: TypeAlias = Register | Broadcast | Suffixed | Value
Choice: TypeAlias = tuple[InstructionForm, tuple[Value, ...]]

IMMEDIATE_KINDS: Final = frozenset({OperandKind.SIGNED, OperandKind.UNSIGNED, OperandKind.HIGH})
_IMMEDIATE_ORDER: Final = {OperandKind.SIGNED: 0, OperandKind.UNSIGNED: 1, OperandKind.HIGH: 2}
_FORCED: Final[Mapping[str, tuple[str, OperandKind]]] = {
    **{
        f"{name}{letter}": (name, kind)
        for name in ("add", "cmpeq", "max", "min", "sub")
        for letter, kind in (("s", OperandKind.SIGNED), ("z", OperandKind.UNSIGNED))
    },
    **{f"{name}.high": (name, OperandKind.HIGH) for name in ("and", "andc", "or")},
}
FORCED_SPELLING: Final[Mapping[tuple[str, OperandKind], str]] = {
    meaning: spelling for spelling, meaning in _FORCED.items()
}
"""(mnemonic, kind of its immediate) -> spelling that can mean no other form."""
_RENAMED: Final[Mapping[str, str]] = {
    "movnz": "movz",
    "f16v4sisov2amp": "f16v4sisoamp",
    "f16v4sisov2slic": "f16v4sisoslic",
}
_ALIAS_FORMS: Final[Mapping[str, str]] = {
    "nop": "nop",
    "fnop": "fnop",
    "rtn": "rtn",
    "strap": "strap",
    "mov": "mov m, m | mov a, a | mov m, a | mov a2, a2",
    "zero": "zero m | zero a | zero a2",
    "swap16": "swap16 m, m | swap16 a, a",
}
"""What the names take that are only aliases, for messages."""
NOP: Final[Choice] = (instruction_table().form("setzi", ("m", "u20")), (14, 0))
FNOP: Final[Choice] = (instruction_table().form("setzi", ("a", "u20")), (13, 0))
STRAP_CSR: Final = 255


def select(
    mnemonic: str, arguments: Sequence[Argument], known: Callable[[Expression], int | None]
) -> tuple[Choice, ...]:
    """The instruction, or the instructions of a macro, that a statement means.

    Args:
        mnemonic: name or alias.
        arguments: as written, left to right. In the builder the ``+=``-like suffixes may be left out.
        known: value of an expression that is a number already.

    Raises:
        ValueError: no such instruction, or an operand is of the wrong class or out of range.
    """
    if mnemonic == "ldconst":
        return _load_constant(arguments, known)
    forced: OperandKind | None = None
    if mnemonic in _FORCED:
        mnemonic, forced = _FORCED[mnemonic]
    mnemonic, arguments = _rewrite(mnemonic, arguments, known, forced=forced)
    forms = instruction_table().forms(mnemonic)
    if not forms and mnemonic in _ALIAS_FORMS:
        shown = ", ".join(describe(argument) for argument in arguments)
        raise ValueError(f"{mnemonic} does not take ({shown}); its forms are: {_ALIAS_FORMS[mnemonic]}")
    if not forms:
        raise ValueError(f"there is no instruction {mnemonic}")
    arguments = _with_default_delta(mnemonic, arguments)
    return (_choose(mnemonic, forms, arguments, known, forced),)


def _rewrite(
    mnemonic: str,
    arguments: Sequence[Argument],
    known: Callable[[Expression], int | None],
    *,
    forced: OperandKind | None,
) -> tuple[str, Sequence[Argument]]:
    """Replace an alias by what it stands for."""
    registers = [_plain(argument) for argument in arguments]
    match mnemonic, registers:
        case "nop", []:
            return "setzi", [Main(14), 0]
        case "fnop", []:
            return "setzi", [Arithmetic(13), 0]
        case "rtn", []:
            return "br", [LINK]
        case "strap", []:
            return "put", [STRAP_CSR, ZERO]
        case "mov", [Main() | Arithmetic() as to, Main() | Arithmetic() as source]:
            if isinstance(to, Main) and isinstance(source, Arithmetic):
                return "atom", arguments
            return "or", [to, source, 0]
        case "mov", [ArithmeticPair() as to, ArithmeticPair() as source]:
            return "or64", [to, source, ARITHMETIC_ZEROS]
        case "zero", [Main() as to]:
            return "or", [to, ZERO, ZERO]
        case "zero", [Arithmetic() as to]:
            return "or", [to, ARITHMETIC_ZERO, ARITHMETIC_ZERO]
        case "zero", [ArithmeticPair() as to]:
            return "or64", [to, ARITHMETIC_ZEROS, ARITHMETIC_ZEROS]
        case "get", [Arithmetic(), _]:
            return "uget", arguments
        case "put", [_, Arithmetic()]:
            return "uput", arguments
        case "swap16", [to, source] if to is not None and source is not None:
            return "roll16", [to, source, source]
        case "sub", [Main() as to, Main() as source, None] if forced is None:
            number = arguments[2]
            value = number if isinstance(number, int) else known(_as_expression(number))
            if value is None:
                raise ValueError("sub of a register and a symbol needs a number that is known here")
            return "add", [to, source, -value]
        case _:
            return _RENAMED.get(mnemonic, mnemonic), arguments


def _plain(argument: Argument) -> Register | None:
    """The register of an argument without suffix; None for anything else."""
    if isinstance(argument, Suffixed):
        return argument.register if argument.suffix == "" else None
    return argument if isinstance(argument, Register) else None


def _as_expression(argument: Argument) -> Expression:
    if isinstance(argument, Expression):
        return argument
    raise ValueError("an operand that must be a number is a register")


def _with_default_delta(mnemonic: str, arguments: Sequence[Argument]) -> Sequence[Argument]:
    """Insert the zero register for a delta that was left out: ``ld32 $m0, $m1, 4``."""
    place = _place_of_delta(mnemonic)
    if place is None or len(arguments) != place + 1:
        return arguments
    return [*arguments[:place], ZERO, *arguments[place:]]


@functools.cache
def _place_of_delta(mnemonic: str) -> int | None:
    """Index of an operand ``delta`` that stands between base and offset, as in ``ld32``."""
    names = [operand.name for operand in instruction_table().forms(mnemonic)[0].operands]
    return len(names) - 2 if names[-3:] == ["base", "delta", "offset"] else None


def _load_constant(
    arguments: Sequence[Argument], known: Callable[[Expression], int | None]
) -> tuple[Choice, ...]:
    """``ldconst``: the low 20 bits, and the top 12 when they are not zero."""
    if len(arguments) != 2:
        raise ValueError(f"ldconst takes 2 operands, not {len(arguments)}")
    to = _plain(arguments[0])
    if not isinstance(to, Main | Arithmetic):
        raise ValueError("ldconst: operand destination must be one register")
    number = arguments[1]
    value = number if isinstance(number, int) else known(_as_expression(number))
    if value is None:
        raise ValueError("ldconst: operand value must be a number that is known here")
    if not -(1 << 31) <= value < 1 << 32:
        raise ValueError(f"ldconst: operand value does not fit 32 bits: {value}")
    word = value & 0xFFFF_FFFF
    low = select("setzi", [to, word & 0xF_FFFF], known)
    return low if word >> 20 == 0 else (*low, *select("or.high", [to, to, word & 0xFFF0_0000], known))


@functools.cache
def _by_preference(mnemonic: str) -> tuple[InstructionForm, ...]:
    """Forms of a mnemonic, preferred immediate kinds first."""

    def rank(form: InstructionForm) -> int:
        return max((_IMMEDIATE_ORDER.get(operand.kind, 0) for operand in form.operands), default=0)

    return tuple(sorted(instruction_table().forms(mnemonic), key=rank))


def _choose(
    mnemonic: str,
    forms: Sequence[InstructionForm],
    arguments: Sequence[Argument],
    known: Callable[[Expression], int | None],
    forced: OperandKind | None,
) -> Choice:
    refused: list[tuple[Operand, int]] = []
    for form in _by_preference(mnemonic):
        operands = (*form.operands, *form.payload)
        if len(operands) != len(arguments):
            continue
        if forced is not None and not any(operand.kind is forced for operand in form.operands):
            continue
        values: list[Value] = []
        for operand, argument in zip(operands, arguments, strict=True):
            value = _value_for(operand, argument)
            if value is None:
                break
            values.append(value)
        else:
            wrong = _out_of_range(form, values, known)
            if wrong is None:
                return form, tuple(values)
            refused.append(wrong)
    if refused:
        operand, number = refused[0]
        rules = " or ".join(other.rule for other, _ in refused if other.name == operand.name)
        raise ValueError(f"{mnemonic}: operand {operand.name} must be {rules}, not {operand.shown(number)}")
    raise ValueError(_no_form(mnemonic, forms, arguments))


def _value_for(operand: Operand, argument: Argument) -> Value | None:
    """The operand's value if the argument is of its class."""
    if not operand.is_register:
        return argument if isinstance(argument, int | Expression) else None
    match argument:
        case Suffixed(register, suffix):
            fits = suffix == operand.suffix
        case Broadcast(register, suffix):
            fits = suffix == operand.suffix
        case Main() | MainPair() | Arithmetic() | ArithmeticPair() | ArithmeticQuad():
            register = argument
            fits = not operand.suffix.startswith(":")
        case _:
            return None
    fits = fits and register.kind is operand.kind and register.count == operand.count
    return register.first if fits else None


def _out_of_range(
    form: InstructionForm, values: Sequence[Value], known: Callable[[Expression], int | None]
) -> tuple[Operand, int] | None:
    """The first operand that cannot hold its value."""
    for index, (operand, value) in enumerate(zip((*form.operands, *form.payload), values, strict=True)):
        if form.relocation == (index, "RUN") and not isinstance(value, int):
            continue  # the linker stores another number than the symbol's
        number = value if isinstance(value, int) else known(value)
        if number is not None and not operand.accepts(number):
            return operand, number
    return None


def describe(argument: Argument) -> str:
    """An argument's class, for messages."""
    match argument:
        case Suffixed(register, suffix):
            return register.token + suffix
        case Broadcast(register, suffix):
            return register.token + suffix
        case int():
            return "number"
        case Main() | MainPair() | Arithmetic() | ArithmeticPair() | ArithmeticQuad():
            return argument.token
        case _:
            return "symbol"


def _no_form(mnemonic: str, forms: Sequence[InstructionForm], arguments: Sequence[Argument]) -> str:
    """Say which operand is wrong when one form fits but for it, else list the forms."""
    shown = [describe(argument) for argument in arguments]
    closest: list[tuple[Operand, str]] = []
    for form in forms:
        operands = (*form.operands, *form.payload)
        if len(operands) != len(arguments):
            continue
        wrong = [
            (operand, describe(argument))
            for operand, argument in zip(operands, arguments, strict=True)
            if _value_for(operand, argument) is None
        ]
        if len(wrong) == 1:
            closest.append(wrong[0])
    if len(closest) == 1:
        operand, found = closest[0]
        return f"{mnemonic}: operand {operand.name} must be {_class_of(operand)}, not {found}"
    known_forms = " | ".join(str(form) for form in forms)
    return f"{mnemonic} does not take ({', '.join(shown)}); its forms are: {known_forms}"


def _class_of(operand: Operand) -> str:
    if not operand.is_register:
        return f"a number ({operand.token})"
    if operand.count == 1:
        return f"a register {operand.token}"
    return f"{'a pair' if operand.count == 2 else 'a quad'} {operand.token}"
