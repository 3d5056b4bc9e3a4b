"""Values of mid as expressions: ``Cast(is_separate=true)``, ``AxisTiling(axis=0, partitions=4)``.

A frozen dataclass is its name with the fields that differ from their defaults. Three kinds have a shorter
form of their own: regions (``[0:16,32:64]``), axes of products (``ProductAxes("ac,cb->ab")``) and coordinate
mappings (``CoordinateMapping("[4,6]->[6,4] (d1, d0)")``); both texts in quotes are those of geometry. Runs of
consecutive integers in a tuple are ``0..1471``. Reading is the inverse and makes only classes that it is
given.
"""

import dataclasses
import enum
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast, final

from compiler.geometry.mapping import CoordinateMapping, Digit
from compiler.geometry.product import BatchAxis, ContractionAxis, OuterAxis, ProductAxes
from compiler.geometry.region import Region

_LONG: Final = 4
"""Consecutive integers that are worth a range."""

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<number>-?[0-9]+)
  | (?P<range>\.\.)
  | (?P<name>[A-Za-z_][A-Za-z0-9_./-]*)
  | (?P<mark>[][(){}:,=+])
  )""",
    re.VERBOSE | re.ASCII,
)


def text_of(value: object) -> str:
    """The expression.

    Raises:
        TypeError: there is no expression for a value of such a type.
    """
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case str():
            return json.dumps(value)
        case enum.Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple():
            items = cast("tuple[object, ...]", value)
            return f"({', '.join(_items(items))}{',' if len(items) == 1 else ''})"
        case Region(bounds=bounds):
            return f"[{','.join(f'{start}:{stop}' for start, stop in bounds)}]"
        case ProductAxes() | CoordinateMapping():
            return f"{type(value).__name__}({json.dumps(str(value))})"
        case _:
            pass
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"{value!r} has no expression")
    fields: list[str] = []
    for field in dataclasses.fields(value):
        found: object = getattr(value, field.name)
        if found != field.default:
            fields.append(f"{field.name}={text_of(found)}")
    return f"{type(value).__name__}({', '.join(fields)})"


def _items(values: tuple[object, ...]) -> list[str]:
    items: list[str] = []
    at = 0
    while at < len(values):
        first, stop = values[at], at + 1
        while type(first) is int and stop < len(values) and values[stop] == first + stop - at:
            stop += 1
        if type(first) is int and stop - at >= _LONG:
            items.append(f"{first}..{values[stop - 1]}")
            at = stop
        else:
            items.append(text_of(first))
            at += 1
    return items


@final
class Tokens:
    """The tokens of a line, read from the left.

    Args:
        text: the line.
        classes: what expressions can make, by name.

    Raises:
        ValueError: it is not made of tokens. All methods raise it where something else is needed.
    """

    def __init__(self, text: str, classes: Mapping[str, type]) -> None:
        self._classes = classes
        self._tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"{text[at:].strip()!r} cannot be read")
            self._tokens.append(found.group().strip())
            at = found.end()
        self._next = 0

    def peek(self) -> str:
        """The next token; empty behind the last."""
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        """The next token, which is ``wanted``."""
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            raise ValueError(f"{wanted or 'something'} is missing before {token or 'the end'}")
        self._next += 1
        return token

    def takes(self, wanted: str) -> bool:
        """Whether the next token is ``wanted``; then it is taken."""
        if self.peek() != wanted:
            return False
        self._next += 1
        return True

    def integer(self) -> int:
        """A number."""
        token = self.take()
        if not re.fullmatch(r"-?[0-9]+", token):
            raise ValueError(f"{token} is no number")
        return int(token)

    def name(self) -> str:
        """A name, in quotes or not."""
        return _plain(self.take())

    def names(self) -> tuple[str, ...]:
        """At least one name, between commas."""
        found = [self.name()]
        while self.takes(","):
            found.append(self.name())
        return tuple(found)

    def shape(self) -> tuple[int, ...]:
        """``[2,3]``."""
        self.take("[")
        extents = [self.integer()]
        while self.takes(","):
            extents.append(self.integer())
        self.take("]")
        return tuple(extents)

    def region(self) -> Region:
        """``[0:2,0:3]``."""
        self.take("[")
        bounds = [self._bounds()]
        while self.takes(","):
            bounds.append(self._bounds())
        self.take("]")
        return Region(bounds=tuple(bounds))

    def last_after(self, word: str) -> str:
        """The name behind the last ``word`` of the line, if nothing but a brace follows; else empty."""
        tokens = self._tokens[:-1] if self._tokens[-1:] == ["{"] else self._tokens
        return _plain(tokens[-1]) if len(tokens) > 1 and tokens[-2] == word else ""

    def end(self) -> None:
        """Nothing follows."""
        if self.peek():
            raise ValueError(f"{self.peek()} follows what was complete")

    def expression(self) -> object:
        """Any value that :func:`text_of` writes."""
        token = self.peek()
        if token == "[":
            return self.region()
        if token == "(":
            return self._tuple()
        if token.startswith('"'):
            return self.name()
        if re.fullmatch(r"-?[0-9]+", token):
            return self.integer()
        self.take()
        if token in _WORDS:
            return _WORDS[token]
        if self.peek() != "(":
            return self._member(token)
        return self._made(token)

    def _bounds(self) -> tuple[int, int]:
        start = self.integer()
        self.take(":")
        return start, self.integer()

    def _tuple(self) -> tuple[object, ...]:
        self.take("(")
        items: list[object] = []
        while not self.takes(")"):
            item = self.expression()
            if isinstance(item, int) and self.takes(".."):
                items += range(item, self.integer() + 1)
            else:
                items.append(item)
            if self.peek() != ")":
                self.take(",")
        return tuple(items)

    def _member(self, token: str) -> object:
        name, _, member = token.rpartition(".")
        kind = self._classes.get(name)
        if kind is None or not issubclass(kind, enum.Enum) or member not in kind.__members__:
            raise ValueError(f"{token} is unknown")
        return kind.__members__[member]

    def _made(self, name: str) -> object:
        kind = self._classes.get(name)
        if kind is None or not dataclasses.is_dataclass(kind):
            raise ValueError(f"{name} is unknown")
        self.take("(")
        if kind in (ProductAxes, CoordinateMapping):
            text = self.name()
            self.take(")")
            return axes_of(text) if kind is ProductAxes else mapping_of(text)
        fields: dict[str, Any] = {}
        while not self.takes(")"):
            if fields:
                self.take(",")
            field = self.name()
            self.take("=")
            fields[field] = self.expression()
        unknown = [field for field in fields if field not in {each.name for each in dataclasses.fields(kind)}]
        missing = [
            each.name
            for each in dataclasses.fields(kind)
            if each.default is dataclasses.MISSING and each.name not in fields
        ]
        if unknown or missing:
            raise ValueError(f"{name} has no {unknown[0]}" if unknown else f"{name} needs {missing[0]}")
        try:
            return kind(**fields)
        except TypeError as error:
            raise ValueError(f"{name}: {error}") from error


def _plain(token: str) -> str:
    """The name that a token is."""
    if token.startswith('"'):
        return cast("str", json.loads(token))
    if not re.match(r"[A-Za-z_]", token):
        raise ValueError(f"{token} is no name")
    return token


_WORDS: Final[Mapping[str, bool | None]] = {"none": None, "true": True, "false": False}


def axes_of(text: str) -> ProductAxes:
    """The axes that ``str`` writes as ``abd,dc->abc``.

    Raises:
        ValueError: the text is none.
    """
    found = re.fullmatch(r"([^,>]*),([^,>]*)->([^,>]*)", text)
    if found is None:
        raise ValueError(f"{text!r} does not tell the axes of a product")
    left, right, result = found.groups()

    def places(side: str) -> dict[str, int]:
        return {letter: axis for axis, letter in enumerate(side) if letter != "1"}

    lefts, rights, results = places(left), places(right), places(result)
    summed = sorted(
        (lefts[letter], rights[letter]) for letter in lefts if letter in rights and letter not in results
    )
    return ProductAxes(
        batch=tuple(
            BatchAxis(left=lefts[letter], right=rights[letter], result=axis)
            for letter, axis in results.items()
            if letter in lefts and letter in rights
        ),
        rows=tuple(
            OuterAxis(operand=lefts[letter], result=axis)
            for letter, axis in results.items()
            if letter in lefts and letter not in rights
        ),
        columns=tuple(
            OuterAxis(operand=rights[letter], result=axis)
            for letter, axis in results.items()
            if letter in rights and letter not in lefts
        ),
        contraction=tuple(ContractionAxis(left=one, right=other) for one, other in summed),
        left_single=tuple(axis for axis, letter in enumerate(left) if letter == "1"),
        right_single=tuple(axis for axis, letter in enumerate(right) if letter == "1"),
    )


def mapping_of(text: str) -> CoordinateMapping:
    """The mapping that ``str`` writes as ``[4,2*3]->[6,8] (3*d1.0+d1.1, 1+d0)``.

    Raises:
        ValueError: the text is none.
    """
    found = re.fullmatch(r"\[([0-9*,]*)\]->\[([0-9,]*)\] \(([^()]*)\)", text)
    if found is None:
        raise ValueError(f"{text!r} is no mapping")
    destination, source, terms = found.groups()
    extents = [
        [int(extent) for extent in axis.split("*") if extent != "1"] for axis in _listed(destination, ",")
    ]
    steps: dict[tuple[int, int], tuple[int, int]] = {}
    offsets: list[int] = []
    for axis, term in enumerate(_listed(terms, ", ")):
        offset = 0
        for part in term.split("+"):
            step = re.fullmatch(r"(?:([0-9]+)\*)?d([0-9]+)(?:\.([0-9]+))?", part)
            if step is None:
                offset += int(part)
            else:
                stride, destination_axis, position = step.groups(default=None)
                place = (int(destination_axis or 0), int(position or 0))
                steps[place] = (axis, int(stride or 1))
        offsets.append(offset)

    def digit(place: tuple[int, int], extent: int) -> Digit:
        axis, stride = steps.get(place, (None, 0))
        return Digit(extent=extent, axis=axis, stride=stride)

    return CoordinateMapping(
        source_shape=tuple(map(int, _listed(source, ","))),
        offsets=tuple(offsets),
        digits=tuple(
            tuple(digit((axis, position), extent) for position, extent in enumerate(digits))
            for axis, digits in enumerate(extents)
        ),
    )


def _listed(text: str, separator: str) -> Sequence[str]:
    return text.split(separator) if text else ()
