"""What callers of the stages that give low programs need."""

from dataclasses import dataclass
from typing import Any, Final, cast, final

from compiler.figures import Figures
from compiler.low.ir import LowProgram
from compiler.mid.ir import MidProgram
from compiler.store.codec import JsonCodec
from compiler.store.stage import Artifact

Symbols = tuple[str, ...]
"""Texts of kernels' symbols, once each, ascending, so that a set has one digest."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpansionInputs:
    """Of stage ``expansion``: a whole-device program."""

    program: Artifact[MidProgram]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpandedProgram:
    """What stages that give low programs give.

    Args:
        program: that its verifier accepts.
        symbols: of the kernels that it calls, ascending: a part of its own, so that kernels depend on
            nothing else of a program.
        figures: of the program.
    """

    program: LowProgram
    symbols: Symbols
    figures: Figures


def plain_symbols(symbols: Symbols) -> object:
    """Symbols as plain values."""
    return symbols


def symbols_of_plain(plain: Any) -> Symbols:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: these are not symbols once each, ascending.
    """
    if not isinstance(plain, tuple):
        raise ValueError("symbols of kernels are a sequence")
    symbols = tuple(str(symbol) for symbol in cast("tuple[object, ...]", plain))
    if list(symbols) != sorted(set(symbols)):
        raise ValueError("symbols of kernels are given once each, ascending")
    return symbols


SYMBOLS: Final = JsonCodec(plain=plain_symbols, value=symbols_of_plain)
"""Symbols of kernels."""
