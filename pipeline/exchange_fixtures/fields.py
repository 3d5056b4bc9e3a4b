"""Access to the object of an example that remembers what was looked at.

Every key of an object is either compared with something we computed, used as an input, or one of the plain
texts in ``TEXTS``. ``Fields.close`` reports the rest as unknown, so that nothing is skipped in silence.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from compiler.target.memory import SRAM_SIZE
from compiler.target.units import WORD_BYTES

TEXTS: Final = frozenset({"about", "comment", "kind", "name", "note", "reason", "result", "source", "why"})
"""Keys whose value, a text, is for readers."""

_LARGEST: Final = (1 << 48) - 1
"""Beyond every number of a phase, and safe to calculate with in 64 bits."""

Nested: TypeAlias = "int | float | str | bool | list[Nested] | None"
"""A value of JSON without objects; texts like ``0x40`` have become numbers."""


class Malformed(Exception):
    """A value that is not of the form its key needs."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """What came of checking one object.

    Args:
        agreed: facts that were worked out again and agree.
        wrong: what does not, one line each.
        unknown: keys that nothing was done with.
    """

    agreed: int = 0
    wrong: list[str] = field(default_factory=lambda: list[str]())
    unknown: list[str] = field(default_factory=lambda: list[str]())

    def fact(self, place: str, stated: object, ours: object) -> None:
        """Compare."""
        if stated == ours:
            self.agreed += 1
        else:
            self.wrong.append(f"{place}: stated {shown(stated)}, ours {shown(ours)}")


def shown(value: object) -> str:
    """A value in a message; large numbers also in hexadecimal."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 0xFFFF:
        return f"{value} ({value:#x})"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(shown(inner) for inner in cast("Sequence[object]", value)) + "]"
    return str(value)


class Fields:
    """An object of an example.

    Args:
        values: the object.
        place: where it is, for messages: empty or like ``transfers[0]``.
        findings: what receives results.
    """

    def __init__(self, values: Mapping[str, object], place: str, findings: Findings) -> None:
        self._values = values
        self._used: set[str] = set()
        self._children: dict[str, list[Fields]] = {}
        self.place = place
        self.findings = findings

    def __contains__(self, key: str) -> bool:
        """Whether the object has the key."""
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        """The keys, in order."""
        return iter(self._values)

    def at(self, key: str) -> str:
        """The place of a value."""
        return f"{self.place}.{key}" if self.place else key

    def nested(self, key: str) -> Nested:
        """A value without objects."""
        return _nested(self._take(key), self.at(key))

    def number(self, key: str) -> int:
        """A whole number."""
        return _number(self.nested(key), self.at(key))

    def count(self, key: str) -> int:
        """A number of items that a tile can hold."""
        value = self.number(key)
        if not 1 <= value <= SRAM_SIZE // WORD_BYTES:
            raise Malformed(f"{self.at(key)}: a tile cannot hold {value} items")
        return value

    def numbers(self, key: str, least: int = 0) -> list[int]:
        """A list of at least so many whole numbers."""
        values = self.values(key)
        if len(values) < least:
            raise Malformed(f"{self.at(key)}: must have at least {least} of them, not {len(values)}")
        return [_number(value, self.at(key)) for value in values]

    def values(self, key: str) -> list[Nested]:
        """A list."""
        value = self.nested(key)
        if not isinstance(value, list):
            raise Malformed(f"{self.at(key)}: must be a list")
        return value

    def pairs(self, key: str) -> Iterator[tuple[Nested, Nested]]:
        """A list of lists of two."""
        for value in self.values(key):
            if not isinstance(value, list) or len(value) != 2:
                raise Malformed(f"{self.at(key)}: must be a list of pairs")
            yield value[0], value[1]

    def text(self, key: str) -> str:
        """A text."""
        value = self._take(key)
        if not isinstance(value, str):
            raise Malformed(f"{self.at(key)}: must be a text")
        return value

    def words(self, key: str) -> list[int]:
        """A list of 32-bit words, each written with hexadecimal digits; a single word counts as a list."""
        value = self._take(key)
        texts = cast("list[object]", value) if isinstance(value, list) else [value]
        return [_word(text, self.at(key)) for text in texts]

    def child(self, key: str) -> "Fields":
        """An object in the object; the same each time."""
        if key not in self._children:
            self._children[key] = [self._child(self._take(key), self.at(key))]
        return self._children[key][0]

    def children(self, key: str) -> "list[Fields]":
        """A list of objects; the same each time."""
        if key not in self._children:
            value = self._take(key)
            if not isinstance(value, list):
                raise Malformed(f"{self.at(key)}: must be a list of objects")
            self._children[key] = [
                self._child(inner, f"{self.at(key)}[{index}]")
                for index, inner in enumerate(cast("list[object]", value))
            ]
        return self._children[key]

    def is_object(self, key: str) -> bool:
        """Whether the value is an object or a list that starts with one."""
        value = self._values.get(key)
        if isinstance(value, list) and value:
            value = cast("list[object]", value)[0]
        return isinstance(value, dict)

    def is_list(self, key: str) -> bool:
        """Whether the value is a list."""
        return isinstance(self._values.get(key), list)

    def check(self, key: str, ours: Nested) -> None:
        """Compare the value, if there is one, with what we computed."""
        if key in self:
            self.findings.fact(self.at(key), self.nested(key), ours)

    def close(self) -> None:
        """Report keys that nothing was done with, here and in objects inside."""
        for key in self._values:
            if key not in self._used and not (key in TEXTS and isinstance(self._values[key], str)):
                self.findings.unknown.append(self.at(key))
        for children in self._children.values():
            for child in children:
                child.close()

    def _take(self, key: str) -> object:
        if key not in self._values:
            raise Malformed(f"{self.at(key)}: is missing")
        self._used.add(key)
        return self._values[key]

    def _child(self, value: object, place: str) -> "Fields":
        if not isinstance(value, dict):
            raise Malformed(f"{place}: must be an object")
        return Fields(cast("Mapping[str, object]", value), place, self.findings)


def _nested(value: object, place: str) -> Nested:
    if isinstance(value, str):
        return int(value, 16) if re.fullmatch(r"0x[0-9a-fA-F]+", value) else value
    if isinstance(value, list):
        return [_nested(inner, place) for inner in cast("list[object]", value)]
    if value is None or isinstance(value, int | float | bool):
        return value
    raise Malformed(f"{place}: holds an object where values are expected")


def _number(value: Nested, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
        raise Malformed(f"{place}: {shown(value)} is not a whole number of up to 48 bits")
    return value


def number_of(value: Nested, place: str) -> int:
    """A whole number inside a list.

    Raises:
        Malformed: it is something else.
    """
    return _number(value, place)


def _word(value: object, place: str) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"(0x)?[0-9a-fA-F]{1,8}", value):
        raise Malformed(f"{place}: {shown(value)} is not a word of up to 8 hexadecimal digits")
    return int(value, 16)
