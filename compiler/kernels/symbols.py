"""Symbols of kernels: the specialization of a kernel as text, and back.

    gemm.initialize.precision=f16.weights=wide.rounding=nearest

A symbol names family, variant and every choice that is compiled into the code, in the family's order, and
nothing else: row counts, group counts and scales are arguments of the call. Two calls share a kernel exactly
when their symbols are equal. Whoever meets a symbol in a program (the stage that makes objects, functional
simulation, reports) reads it back with :func:`parse_symbol`.
"""

import re
from dataclasses import dataclass
from typing import Final, final

_JOINT: Final = "="
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_VALUE: Final = re.compile(r"[a-z0-9_]+")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolKey:
    """What a kernel is specialized on.

    Args:
        family: name of the family.
        variant: which of the family's kernels.
        choices: (key, value) pairs; keys are unique.

    Raises:
        ValueError: a part is not made of lower-case letters, digits and underscores, or a key repeats.
    """

    family: str
    variant: str
    choices: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name in (self.family, self.variant, *(key for key, _ in self.choices)):
            if _NAME.fullmatch(name) is None:
                raise ValueError(f"{name!r} is no name in a symbol")
        for _, value in self.choices:
            if _VALUE.fullmatch(value) is None:
                raise ValueError(f"{value!r} is no value in a symbol")
        if len({key for key, _ in self.choices}) != len(self.choices):
            raise ValueError(f"a key of {self.family}.{self.variant} repeats")

    def choice(self, key: str) -> str:
        """The value of a key.

        Raises:
            ValueError: the symbol has no such key.
        """
        for name, value in self.choices:
            if name == key:
                return value
        raise ValueError(f"symbol {self} has no {key}")

    def __str__(self) -> str:
        """The symbol's text."""
        return ".".join(
            (self.family, self.variant, *(f"{key}{_JOINT}{value}" for key, value in self.choices))
        )


def parse_symbol(text: str) -> SymbolKey:
    """Read a symbol; the inverse of ``str``.

    Raises:
        ValueError: the text is no symbol of a kernel.
    """
    family, *rest = text.split(".")
    if not rest:
        raise ValueError(f"{text!r} is no symbol of a kernel: it has no variant")
    variant, *choices = rest
    pairs: list[tuple[str, str]] = []
    for choice in choices:
        key, joint, value = choice.partition(_JOINT)
        if not joint:
            raise ValueError(f"{text!r} is no symbol of a kernel: {choice!r} is not key{_JOINT}value")
        pairs.append((key, value))
    return SymbolKey(family=family, variant=variant, choices=tuple(pairs))
