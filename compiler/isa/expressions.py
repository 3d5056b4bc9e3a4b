"""Operand values that are not yet numbers.

An operand is an ``int`` or an expression over symbols. Expressions are values; :func:`evaluate` reduces one
to ``symbol + addend``, a number when the symbol cancels out (the distance of two labels of one section is a
number as soon as the section is laid out).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never, final

from compiler.target.registers import REGISTER_NAMES

_NAME: Final = re.compile(r"[!#-\[\]-~]+")
"""Visible ASCII characters but quotation marks and backslashes."""
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII)
"""A name that needs no quotation marks in text."""
_RESULT_LIMIT: Final = 1 << 64
_NO_NAMES: Final = frozenset({".", "inf", "nan", "infh", "nanh"})


def check_name(name: str) -> None:
    """Refuse a name that assembly text cannot have, in quotation marks or without.

    Raises:
        ValueError: it is no name, or it means a register or number.
    """
    if _NAME.fullmatch(name) is None or name in _NO_NAMES or name in REGISTER_NAMES:
        raise ValueError(f"{name!r} cannot be the name of a symbol or section")


def spelled(name: str) -> str:
    """A name as text has it: in quotation marks when it holds characters that mean something there."""
    return name if _PLAIN_NAME.fullmatch(name) is not None else f'"{name}"'


OPERATORS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    # Toward zero, as C does.
    "/": lambda left, right: abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1),
    "<<": lambda left, right: left << right,
    ">>": lambda left, right: left >> right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
    "^": lambda left, right: left ^ right,
}


class _Operators:
    """Arithmetic that builds expressions."""

    __slots__ = ()

    def __add__(self, other: "Value") -> "Binary":
        return Binary("+", _expression(self), other)

    def __sub__(self, other: "Value") -> "Binary":
        return Binary("-", _expression(self), other)

    def __mul__(self, other: "Value") -> "Binary":
        return Binary("*", _expression(self), other)

    def __floordiv__(self, other: "Value") -> "Binary":
        return Binary("/", _expression(self), other)

    def __rshift__(self, other: "Value") -> "Binary":
        return Binary(">>", _expression(self), other)


@final
@dataclass(frozen=True, slots=True)
class Symbol(_Operators):
    """The address of a label, or the value of a symbol defined elsewhere."""

    name: str

    def __post_init__(self) -> None:
        """Check the name."""
        check_name(self.name)


@final
@dataclass(frozen=True, slots=True)
class Binary(_Operators):
    """An operation on two values; ``operator`` is one of :data:`OPERATORS`."""

    operator: str
    left: "Value"
    right: "Value"

    def __post_init__(self) -> None:
        """Check the operator."""
        if self.operator not in OPERATORS:
            raise ValueError(f"there is no operator {self.operator!r}")


@final
@dataclass(frozen=True, slots=True)
class Relocated:
    """A value with a relocation chosen in the source: ``sym@abs18@s2``.

    Args:
        value: symbol and addend.
        relocation: name of a relocation type.
    """

    value: "Value"
    relocation: str


@final
@dataclass(frozen=True, slots=True)
class Slot:
    """A number that is filled into a prepared template later."""

    name: str


Expression: TypeAlias = Symbol | Binary | Relocated | Slot
Value: TypeAlias = int | Expression


def _expression(value: _Operators) -> Expression:
    if isinstance(value, (Symbol, Binary)):
        return value
    raise TypeError(f"{type(value).__name__} is no expression")


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where a label is: a section and the offset from its start."""

    section: str
    offset: int


@final
@dataclass(frozen=True, slots=True)
class Term:
    """``symbol + addend``, a plain number when there is no symbol.

    Args:
        addend: the number.
        symbol: name of the symbol, or None.
        relocation: name of a relocation type asked for in the source, or None.
    """

    addend: int
    symbol: str | None = None
    relocation: str | None = None


def evaluate(value: Value, look_up: Callable[[str], Place | int | None]) -> Term:
    """Reduce an expression.

    Args:
        value: what to reduce.
        look_up: place of a label, value of an absolute symbol, or None when the symbol is not known here.

    Raises:
        ValueError: the expression is not a number or a symbol plus a number.
    """
    match value:
        case int():
            return Term(value)
        case Symbol(name):
            found = look_up(name)
            return Term(found) if isinstance(found, int) else Term(0, name)
        case Relocated(inner, relocation):
            term = evaluate(inner, look_up)
            return Term(term.addend, term.symbol, relocation)
        case Slot(name):
            raise ValueError(f"slot {name} has no number before its template is filled")
        case Binary(operator, left, right):
            return _combine(operator, evaluate(left, look_up), evaluate(right, look_up), look_up)
        case _:
            assert_never(value)


def _combine(operator: str, left: Term, right: Term, look_up: Callable[[str], Place | int | None]) -> Term:
    if left.relocation is not None or right.relocation is not None:
        raise ValueError("a value with a relocation cannot be part of a larger expression")
    if operator == "+" and (left.symbol is None or right.symbol is None):
        return Term(_bounded(operator, left.addend + right.addend), left.symbol or right.symbol)
    if operator == "-" and right.symbol is None:
        return Term(_bounded(operator, left.addend - right.addend), left.symbol)
    if operator == "-" and left.symbol is not None and right.symbol is not None:
        distance = _distance(left.symbol, right.symbol, look_up)
        return Term(_bounded(operator, left.addend - right.addend + distance))
    if left.symbol is not None or right.symbol is not None:
        raise ValueError(
            f"operator {operator} needs numbers, and {left.symbol or right.symbol} is an address"
        )
    if operator == "/" and right.addend == 0:
        raise ValueError("division by zero")
    if operator in ("<<", ">>") and not 0 <= right.addend < 64:
        raise ValueError(f"cannot shift by {right.addend}")
    return Term(_bounded(operator, OPERATORS[operator](left.addend, right.addend)))


def _bounded(operator: str, result: int) -> int:
    """A result; refused when nothing could hold it, so that expressions cannot grow without end."""
    if not -_RESULT_LIMIT <= result < _RESULT_LIMIT:
        raise ValueError(f"the result of {operator} has more than 64 bits")
    return result


def _distance(end: str, begin: str, look_up: Callable[[str], Place | int | None]) -> int:
    if end == begin:
        return 0
    last, first = look_up(end), look_up(begin)
    if isinstance(last, Place) and isinstance(first, Place) and last.section == first.section:
        return last.offset - first.offset
    raise ValueError(f"{end} - {begin} is no number: they are not labels of one section")


def symbols_of(value: Value) -> tuple[str, ...]:
    """Names of the symbols in an expression, in reading order."""
    match value:
        case int() | Slot():
            return ()
        case Symbol(name):
            return (name,)
        case Relocated(inner, _):
            return symbols_of(inner)
        case Binary(_, left, right):
            return symbols_of(left) + symbols_of(right)
        case _:
            assert_never(value)
