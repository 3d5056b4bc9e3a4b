"""Registers and groups of registers as types.

The two files of a worker are the main file ``$m0..$m15`` and the arithmetic file ``$a0..$a15``; the
supervisor has a main file only. Groups are aligned and named by their lowest register. The constructors
``m``, ``m2``, ``a``, ``a2`` and ``a4`` carry the names that the instruction table uses.
"""

import functools
import re
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias, final

from compiler.target.instructions import OperandKind
from compiler.target.registers import ARITHMETIC_ZEROS as ZERO_NUMBERS
from compiler.target.registers import REGISTER_NAMES, REGISTERS_PER_FILE, MainRegister

ZERO_REGISTERS: Final = {
    OperandKind.MRF: frozenset({int(MainRegister.ZERO)}),
    OperandKind.ARF: frozenset(ZERO_NUMBERS),
}
"""Registers that read as zero and discard what is written."""


@dataclass(frozen=True, slots=True)
class _Group:
    """An aligned group of registers of one file.

    Args:
        first: number of the lowest register.
    """

    first: int
    kind: ClassVar[OperandKind]
    count: ClassVar[int]

    def __post_init__(self) -> None:
        """Check range and alignment."""
        if not 0 <= self.first < REGISTERS_PER_FILE:
            raise ValueError(
                f"there is no register ${self.kind.value}{self.first}: a file has {REGISTERS_PER_FILE}"
            )
        if self.first % self.count:
            size = "pair" if self.count == 2 else "quad"
            raise ValueError(
                f"${self.kind.value}{self.first} cannot begin a {size}: "
                f"its number must be a multiple of {self.count}"
            )

    def __str__(self) -> str:
        """As in assembly text: ``$m3``, ``$a4:5``."""
        last = f":{self.first + self.count - 1}" if self.count > 1 else ""
        return f"${self.kind.value}{self.first}{last}"

    @property
    def token(self) -> str:
        """The kind as in the instruction table."""
        return self.kind.value + (str(self.count) if self.count > 1 else "")


@final
@dataclass(frozen=True, slots=True)
class Main(_Group):
    """A register of the main file."""

    kind = OperandKind.MRF
    count = 1


@final
@dataclass(frozen=True, slots=True)
class MainPair(_Group):
    """Two registers of the main file; the first number is even."""

    kind = OperandKind.MRF
    count = 2


@final
@dataclass(frozen=True, slots=True)
class Arithmetic(_Group):
    """A register of the arithmetic file."""

    kind = OperandKind.ARF
    count = 1

    @property
    def low(self) -> "Broadcast":
        """Its low half for every element of a vector operation."""
        return Broadcast(self, ":BL")

    @property
    def high(self) -> "Broadcast":
        """Its upper half for every element of a vector operation."""
        return Broadcast(self, ":BU")

    @property
    def word(self) -> "Broadcast":
        """The whole register for every element of a vector operation."""
        return Broadcast(self, ":B")


@final
@dataclass(frozen=True, slots=True)
class ArithmeticPair(_Group):
    """Two registers of the arithmetic file; the first number is even."""

    kind = OperandKind.ARF
    count = 2


@final
@dataclass(frozen=True, slots=True)
class ArithmeticQuad(_Group):
    """Four registers of the arithmetic file; the first number is a multiple of four."""

    kind = OperandKind.ARF
    count = 4


@final
@dataclass(frozen=True, slots=True)
class Broadcast:
    """One scalar of an arithmetic register, taken for all elements of a vector."""

    register: Arithmetic
    suffix: str


Register: TypeAlias = Main | MainPair | Arithmetic | ArithmeticPair | ArithmeticQuad

m: Final = Main
m2: Final = MainPair
a: Final = Arithmetic
a2: Final = ArithmeticPair
a4: Final = ArithmeticQuad

STACK_POINTER: Final = Main(11)
LINK: Final = Main(10)
WORKER_BASE: Final = Main(MainRegister.WORKER_BASE)
"""In workers a read-only mirror of the scratch base of the context."""
VERTEX_BASE: Final = Main(MainRegister.VERTEX_BASE)
"""In workers a read-only mirror of the base given by ``run`` or ``runall``."""
ZERO: Final = Main(MainRegister.ZERO)
ARITHMETIC_ZERO: Final = Arithmetic(ZERO_NUMBERS[1])
ARITHMETIC_ZEROS: Final = ArithmeticPair(ZERO_NUMBERS[0])

_GROUPS: Final[dict[tuple[str, int], type[Register]]] = {
    ("m", 1): Main,
    ("m", 2): MainPair,
    ("a", 1): Arithmetic,
    ("a", 2): ArithmeticPair,
    ("a", 4): ArithmeticQuad,
}
_DIGITS: Final = 6
_LIKE_A_REGISTER: Final = re.compile(r"\$([ma])(\d+)(?::(\d+))?", re.ASCII)


def register_of(kind: OperandKind, first: int, count: int) -> Register:
    """The register or group with these numbers.

    Raises:
        ValueError: there is no such group, or it is not aligned.
    """
    group = _GROUPS.get((kind.value, count))
    if group is None:
        raise ValueError(f"the {kind.value} file has no groups of {count} registers")
    return group(first)


@functools.cache
def read_register(name: str) -> Register | None:
    """The register that a name or alias of assembly text means; None when it is not the name of a register.

    Raises:
        ValueError: it looks like a register but there is none of that number, width or alignment.
    """
    known = REGISTER_NAMES.get(name)
    if known is not None:
        return register_of(OperandKind(known.file.value), known.number, known.count)
    match = _LIKE_A_REGISTER.fullmatch(name)
    if match is None:
        return None
    if max(len(match[2]), len(match[3] or "")) > _DIGITS:
        raise ValueError(f"there is no register with so large a number: a file has {REGISTERS_PER_FILE}")
    first = int(match[2])
    count = int(match[3]) - first + 1 if match[3] else 1
    if count < 1:
        raise ValueError(f"{name} is no group of registers: its last number is below its first")
    return register_of(OperandKind(match[1]), first, count)
