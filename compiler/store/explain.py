"""Why a stage runs: the difference between its key document and the nearest earlier one.

The documents compared are the ones that were hashed, so every change of a key has a line, and a line per
change is all there is: applying the differences to the earlier document gives the later one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

from compiler.store.canonical import JsonObject, JsonValue, decode, to_text

Place: TypeAlias = tuple[str | int, ...]
"""Where something lies in a document: names of objects' members and positions in arrays."""

_SHORT = 12
"""Digits of a digest that a person is shown."""

_LONGEST = 60
"""Characters of a text that a person is shown."""

_COMPONENTS = {"options": "option", "inputs": "input", "tables": "table", "libraries": "library"}
"""Parts of a key document that hold named things, in the singular."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """Stands for a part that a document does not have."""


Part: TypeAlias = "JsonValue | Absent"
"""What a document has in one place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One part of a document that changed.

    Args:
        path: the part.
        old: what the earlier document has there.
        new: what the later one has.
    """

    path: Place
    old: Part
    new: Part

    def __str__(self) -> str:
        """One line, as ``option exchange.stream_words 0 -> 1024`` or ``code: compiler/exchange/order.py``."""
        change = f"{_short(self.old)} -> {_short(self.new)}"
        if not self.path:
            return change
        name, rest = self.path[0], self.path[1:]
        if name == "code" and len(rest) == 2:
            added, removed = isinstance(self.old, Absent), isinstance(self.new, Absent)
            return f"code: {rest[1]}{' (added)' if added else ' (removed)' if removed else ''}"
        if name == "code":
            return f"code: {change}"
        if name == "inputs" and len(rest) > 1:  # whether an input is an artifact or plain says its digest
            rest = (rest[0], *rest[2:])
        if name in _COMPONENTS and rest:
            return f"{_COMPONENTS[str(name)]} {_dotted(rest)} {change}"
        return f"{_dotted(self.path)} {change}"


def differences(old: JsonValue, new: JsonValue) -> tuple[Difference, ...]:
    """Every part that differs, as deep as both documents have the same structure, in the order of paths."""
    return tuple(_differences(old, new, ()))


def explain(old: JsonObject, new: JsonObject) -> tuple[str, ...]:
    """A line for each difference; the code's fingerprint is left out when the files behind it are named."""
    changes = differences(old, new)
    named = any(change.path[:2] == ("code", "modules") for change in changes)
    return tuple(str(change) for change in changes if not (named and change.path == ("code", "fingerprint")))


def nearest(document: JsonObject, candidates: Iterable[JsonObject]) -> JsonObject | None:
    """The candidate with the fewest differences from ``document``; the first of several; None without any."""
    best: JsonObject | None = None
    fewest = 0
    for candidate in candidates:
        count = len(differences(candidate, document))
        if best is None or count < fewest:
            best, fewest = candidate, count
    return best


def _differences(old: JsonValue, new: JsonValue, path: Place) -> Iterable[Difference]:
    if isinstance(old, dict) and isinstance(new, dict) and not (_is_whole(old) or _is_whole(new)):
        for name in sorted(old.keys() | new.keys()):
            if name not in old:
                yield Difference(path=(*path, name), old=Absent(), new=new[name])
            elif name not in new:
                yield Difference(path=(*path, name), old=old[name], new=Absent())
            else:
                yield from _differences(old[name], new[name], (*path, name))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (first, second) in enumerate(zip(old, new, strict=True)):
            yield from _differences(first, second, (*path, index))
    elif to_text(old) != to_text(new):  # by text: True equals 1 in Python and not in a key
        yield Difference(path=path, old=old, new=new)


def _is_whole(value: JsonObject) -> bool:
    """Whether an object is compared as one: empty, or the encoding of a float, an enum member, an array."""
    return not value or any(key.startswith("$") and not key.startswith(("$$", "$type")) for key in value)


def _dotted(path: Place) -> str:
    """A path for a reader: without the word that the encoding of dataclasses adds."""
    return ".".join(str(part) for part in path if part != "fields")


def _line_of(text: str) -> str:
    """A text on one line: two that differ look different, which the beginnings of long ones may not."""
    if text and len(text) <= _LONGEST and text.isprintable():
        return text
    return f"{len(text):,} characters {sha256(text.encode()).hexdigest()[:_SHORT]}" if text else "nothing"


def _short(value: Part) -> str:
    """A value for a reader: digests by their first digits, encodings as what they encode."""
    match value:
        case Absent():
            return "absent"
        case str() if len(value) == 64 and set(value) <= set("0123456789abcdef"):
            return value[:_SHORT]
        case {"$enum": str(), "name": str(name)}:
            return name
        case {"$array": str(dtype), "shape": list(shape), "sha256": str(digest)}:
            return f"{dtype}{shape} {digest[:_SHORT]}"
        case str():
            return _line_of(value)
        case {"artifact": str(digest)}:
            return digest[:_SHORT]
        case {"value": inner, **rest} if not rest:
            return _short(inner)
        case {"$float": str()}:
            return repr(decode(value))
        case _:
            text = to_text(value).decode()
            return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
