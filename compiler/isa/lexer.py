"""Words of assembly text, with their places.

Comments run from ``#`` or ``//`` to the end of the line, or stand between ``/*`` and ``*/``. A statement
ends at a newline or ``;``. Numbers are decimal, ``0x`` or ``0b``; a number with a point or exponent is the
bit pattern of its binary32 value, one that ends in ``h`` (also ``infh``, ``nanh``) that of its binary16
value. Numbers have at most 64 bits, the widest data there is. A string is the flags of a section, or a name
with characters that mean something in text (``"kernel.unit=u64"``).
"""

import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from compiler.errors import InvalidInput

STAGE: Final = "assemble"
NUMBER_BITS: Final = 64
_LONGEST_SHOWN: Final = 40


@final
class TokenKind(Enum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    FLOAT = "float"
    """A bit pattern; ``width`` is its size."""
    STRING = "string"
    MARK = "mark"
    END = "end of statement"


@final
@dataclass(frozen=True, slots=True)
class Token:
    """One word.

    Args:
        kind: what it is.
        text: as written.
        offset: characters before it.
        value: of a number or bit pattern.
        width: bits of a bit pattern.
    """

    kind: TokenKind
    text: str
    offset: int
    value: int = 0
    width: int = 0


_PATTERN: Final = re.compile(
    r"""
    (?P<skip>[ \t\r\f]+|\#[^\n]*|//[^\n]*|/\*.*?\*/)
  | (?P<open>/\*)
  | (?P<end>\n|;)
  | (?P<name>\$[ma]\d+(?::\d+)?(?![\w.$])|[A-Za-z_.$][\w.$]*)
  | (?P<float>(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)h?(?![\w.])|\d+h(?!\w))
  | (?P<number>0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?![\w.])
  | (?P<string>"[^"\n]*")
  | (?P<mark>:BL\b|:BU\b|:B\b|@\w+|\?\w+|\+=|\+\+|<<|>>|[-+*/&|^~@,(){}:=])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_SPECIAL_FLOATS: Final = {
    "infh": (0x7C00, 16),
    "nanh": (0x7E00, 16),
    "inf": (0x7F80_0000, 32),
    "nan": (0x7FC0_0000, 32),
}


@final
class Source:
    """A text with a name, that knows lines and columns.

    Args:
        text: the text.
        name: file name for messages.
    """

    def __init__(self, text: str, name: str) -> None:
        self.text: Final = text
        self.name: Final = name
        self._starts: list[int] = [0]
        self._starts.extend(match.end() for match in re.finditer("\n", text))
        self._line = 0

    def place(self, offset: int) -> str:
        """``file:line:column`` of a character."""
        # Questions come in ascending order but for the occasional look back.
        if offset < self._starts[self._line]:
            self._line = 0
        while self._line + 1 < len(self._starts) and self._starts[self._line + 1] <= offset:
            self._line += 1
        return f"{self.name}:{self._line + 1}:{offset - self._starts[self._line] + 1}"

    def refusal(self, offset: int, message: str, next_step: str) -> InvalidInput:
        """An error about a character of the text."""
        return refusal_at(self.place(offset), message, next_step)

    def tokens(self) -> Iterator[Token]:
        """All tokens; the last one ends a statement.

        Raises:
            InvalidInput: a character begins no token, or a literal has no value.
        """
        position = 0
        while position < len(self.text):
            match = _PATTERN.match(self.text, position)
            if match is None:
                shown = self.text[position : position + 12].split("\n")[0]
                raise self.refusal(
                    position, f"{shown!r} begins no word of assembly text", "correct the spelling"
                )
            text = match.group()
            match match.lastgroup:
                case "name":
                    if text in _SPECIAL_FLOATS:
                        value, width = _SPECIAL_FLOATS[text]
                        yield Token(TokenKind.FLOAT, text, position, value, width)
                    else:
                        yield Token(TokenKind.NAME, text, position)
                case "mark":
                    yield Token(TokenKind.MARK, text, position)
                case "number":
                    yield Token(TokenKind.NUMBER, text, position, self._number(text, position))
                case "open":
                    raise self.refusal(position, "this comment has no end", "close it with */")
                case "end":
                    yield Token(TokenKind.END, text, position)
                case "float":
                    yield self._float(text, position)
                case "string":
                    yield Token(TokenKind.STRING, text[1:-1], position)
                case _:
                    pass
            position = match.end()
        yield Token(TokenKind.END, "\n", position)

    def _number(self, text: str, position: int) -> int:
        if text[0] == "0" and text.isdigit() and len(text) > 1:
            raise self.refusal(
                position, f"{text} could mean octal or decimal", "leave out the zeros in front, or write 0x"
            )
        try:
            value = int(text, 0)
        except ValueError:  # so many digits that Python does not convert them
            value = 1 << NUMBER_BITS
        if value >> NUMBER_BITS:
            raise self.refusal(
                position,
                f"a number has at most {NUMBER_BITS} bits, and {_shortened(text)} has more",
                "correct this line",
            )
        return value

    def _float(self, text: str, position: int) -> Token:
        width = 16 if text.endswith("h") else 32
        number = float(text.removesuffix("h"))
        try:
            if math.isinf(number):
                raise OverflowError
            packed = struct.pack("<e" if width == 16 else "<f", number)
        except OverflowError:
            raise self.refusal(
                position,
                f"{_shortened(text)} is too large for {width} bits",
                "write inf or infh for infinity",
            ) from None
        return Token(TokenKind.FLOAT, text, position, int.from_bytes(packed, "little"), width)


def _shortened(text: str) -> str:
    """A literal for messages."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def refusal_at(place: str, message: str, next_step: str) -> InvalidInput:
    """An error about a place of a text."""
    return InvalidInput(message, stage=STAGE, subject=place, next_step=next_step)
